#!/usr/bin/env bash
# That the crate builds for other systems and CPUs, without a warning: whole, and as a library with `npy`.
#
#   scripts/check_systems.sh [TARGET...]
#
# Needs the targets' standard libraries: `rustup target add TARGET`; those that are not there are named and left out.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- aarch64-unknown-linux-gnu x86_64-apple-darwin aarch64-apple-darwin x86_64-pc-windows-gnu

installed=$(rustup target list --installed 2>/dev/null || true)
for target in "$@"; do
    if ! grep -qx "$target" <<<"$installed"; then
        echo "check_systems: NOT CHECKED: $target (rustup target add $target)"
        continue
    fi
    for features in parallel,npy cli; do
        # What only the kernels of x86-64 use is dead on other CPUs.
        RUSTFLAGS="-D warnings -A dead_code" cargo check --quiet --target "$target" --target-dir target/systems \
            --no-default-features --features "$features"
    done
    echo "check_systems: $target builds"
done

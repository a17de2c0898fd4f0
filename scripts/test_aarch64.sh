#!/usr/bin/env bash
# Builds the library's tests for AArch64 and runs them under qemu-user: the NEON level on a machine
# that has none. Needs Debian (or a derivative) and, unless the packages are there already, root.
#
#   scripts/test_aarch64.sh            the library's tests, every kernel against the reference among them
#   scripts/test_aarch64.sh FILTER...  arguments of the test binary, as after `cargo test --`
#
# Debian's rustc-web is used because it brings a standard library for arm64 out of the package archive.
# The binary is linked statically: threads hang in dynamically linked programs under this qemu.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
packages=(rustc-web libstd-rust-web-dev:arm64 gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)

installed() {
    local package
    for package in "${packages[@]}"; do
        dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || return 1
    done
}

if ! installed; then
    if [ "$(id -u)" != 0 ]; then
        echo "test_aarch64: install first, as root: dpkg --add-architecture arm64; apt-get install ${packages[*]}" >&2
        exit 1
    fi
    dpkg --add-architecture arm64
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${packages[@]}"
fi

export RUSTC=/usr/bin/rustc
# Debian's compiler knows no rustup overrides; a cargo of rustup must not pick its own beside it.
unset RUSTUP_TOOLCHAIN RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
# A level that is skipped silently is a failure.
export RESTRIDE_REQUIRE_ISA="${RESTRIDE_REQUIRE_ISA-neon}"

echo "test_aarch64: $("$RUSTC" --version), $(qemu-aarch64 --version | head -n 1)"
exec cargo test --lib --no-default-features --features "${RESTRIDE_FEATURES-parallel}" \
    --target "$target" --target-dir target/aarch64 -- "$@"

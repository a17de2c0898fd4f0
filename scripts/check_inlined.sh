#!/usr/bin/env bash
# A vector instruction that is not inlined into the kernel that uses it costs a call, and its operands go
# through memory: some kernels would be five times slower and still right. Builds the library as a dependent
# crate gets it (several codegen units, no link-time optimisation) and looks for such calls.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v nm >/dev/null || { echo "nm is missing: install binutils" >&2; exit 1; }

target=target/inlined
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
rm -rf "$target"
cargo build --quiet --release --no-default-features --lib --target-dir "$target"
symbols=$(nm -C "$target/release/librestride.rlib" 2>/dev/null)
count=$(grep -c "copy::kernels" <<<"$symbols" || true)
[ "$count" -ge 20 ] || { echo "only $count symbols of kernels found: the library is not where it was" >&2; exit 1; }
if found=$(grep -E "core_arch::(x86|aarch64|arm_shared)" <<<"$symbols" | grep -vE "xgetbv|cpuid"); then
    printf 'vector instructions that were not inlined:\n%s\n' "$found" >&2
    exit 1
fi
echo "$count symbols of kernels, every vector instruction inlined"

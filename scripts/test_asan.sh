#!/usr/bin/env bash
# The whole test suite under AddressSanitizer, with the nightly toolchain.
#
#   scripts/test_asan.sh               everything but doc tests
#   scripts/test_asan.sh ARGS...       arguments of `cargo test` instead of the default `--lib --bins --tests`
#
# Where there is no nightly toolchain this says so and fails with status 3, so that no run counts
# as checked by mistake; RESTRIDE_ASAN_OPTIONAL=1 turns that into a loud success.
set -euo pipefail
cd "$(dirname "$0")/.."

toolchain=$(rustup toolchain list 2>/dev/null | sed -n 's/^\(nightly[^ ]*\).*/\1/p' | head -n 1)
if [ -z "$toolchain" ]; then
    echo "test_asan: NOT RUN: no nightly toolchain (\`rustup toolchain install nightly\`)" >&2
    [ "${RESTRIDE_ASAN_OPTIONAL-}" = 1 ] && exit 0
    exit 3
fi

target=$(rustc "+$toolchain" -vV | sed -n 's/^host: //p')
# Impossible sizes are asked for on purpose: the allocator must refuse them instead of ending the program.
export ASAN_OPTIONS="allocator_may_return_null=1:detect_stack_use_after_return=1:${ASAN_OPTIONS-}"
# Names of temporary files are never freed: a signal handler on another thread may be reading them (`npy/guard.rs`).
suppressions=$(mktemp)
trap 'rm -f "$suppressions"' EXIT
echo "leak:guard::Doomed" >"$suppressions"
export LSAN_OPTIONS="suppressions=$suppressions:print_suppressions=0:${LSAN_OPTIONS-}"
export RUSTFLAGS="-Zsanitizer=address --cfg sanitized ${RUSTFLAGS-}"
# Left out: a limit of the address space, of which the sanitizer reserves terabytes, and an emptied environment, which
# lacks these options.
[ $# -gt 0 ] || set -- --lib --bins --tests --all-features -- --skip too_little_address_space --skip empty_environment

echo "test_asan: $(rustc "+$toolchain" --version), $target"
cargo "+$toolchain" test --target "$target" --target-dir target/asan "$@"

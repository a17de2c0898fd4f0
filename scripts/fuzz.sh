#!/usr/bin/env bash
# Runs every fuzz target for so many seconds each, one after the other, and says how many inputs each ran.
#
#   scripts/fuzz.sh SECONDS [TARGET...]
#
# Needs a nightly toolchain and cargo-fuzz (`cargo install cargo-fuzz`). The oracles are in `tests/oracles`, the seeds
# in `tests/fuzzed.rs`; what a run finds new stays in `fuzz/corpus`, what breaks in `fuzz/artifacts`.
#
# Without nightly, `RESTRIDE_FUZZ_CASES=1000000 cargo test --test fuzzed` runs the same oracles on random inputs.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET...]}
shift
[ $# -gt 0 ] || set -- expressions layouts plans npy records profiles

rustup toolchain list 2>/dev/null | grep -q '^nightly' || { echo "fuzz: no nightly toolchain: rustup toolchain install nightly" >&2; exit 3; }
cargo fuzz --version >/dev/null 2>&1 || { echo "fuzz: no cargo-fuzz: cargo install cargo-fuzz" >&2; exit 3; }

# The seeds are those of the tests that run the same oracles.
RESTRIDE_FUZZ_SEEDS="$PWD/fuzz/corpus" RESTRIDE_FUZZ_CASES=0 cargo test --quiet --all-features --test fuzzed >/dev/null

cargo +nightly fuzz build --fuzz-dir fuzz --features records --codegen-units 16
log=fuzz/target/fuzz.log
for target in "$@"; do
    printf '== %s, %s s\n' "$target" "$seconds"
    limit=4096
    case $target in records | profiles) limit=65536 ;; esac
    if ! cargo +nightly fuzz run --fuzz-dir fuzz --features records --codegen-units 16 "$target" -- \
        -max_total_time="$seconds" -max_len="$limit" -timeout=120 -rss_limit_mb=3000 -print_final_stats=1 >"$log" 2>&1; then
        tail -n 60 "$log"
        exit 1
    fi
    grep -E 'stat::number_of_executed_units|cov: ' "$log" | tail -n 2
done

#!/usr/bin/env bash
# Compares the cache model with valgrind's cachegrind: the same walks, the same caches.
#
# Each walk runs twice under cachegrind, with and without the walk itself; the difference must agree with
# the model within 0.1 %. Cachegrind cannot run AVX-512 code, so the portable kernels are asked for.
# Needs valgrind; exits 1 on a difference and 2 where valgrind is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "check_cachegrind: valgrind is not installed: install the package valgrind" >&2; exit 2; }

cargo build --quiet --release --example cachegrind_walk
program=${CARGO_TARGET_DIR:-target}/release/examples/cachegrind_walk
export RESTRIDE_ISA=scalar
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# Data reads, D1 read misses and LL read misses of one run: fields 4 to 6 of the summary
# (Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw).
count() {
    valgrind --tool=cachegrind --cache-sim=yes --D1="$1" --LL="$2" --cachegrind-out-file="$out" \
        "$program" "${@:3}" 2>/dev/null >&2
    awk '/^summary:/ { print $5, $6, $7 }' "$out"
}

# WALK: rows columns row_stride column_stride, in elements of 8 bytes.
check() {
    local d1=$1 ll=$2 caches=$3 name=$4
    shift 4
    read -r reads d1_misses ll_misses <<<"$(count "$d1" "$ll" walk "$@")"
    read -r rest_reads rest_d1 rest_ll <<<"$(count "$d1" "$ll" rest "$@")"
    read -r model_reads model_d1 model_ll <<<"$("$program" model "$@" "$caches")"
    awk -v name="$name" -v caches="$caches" \
        -v got="$((reads - rest_reads)) $((d1_misses - rest_d1)) $((ll_misses - rest_ll))" \
        -v model="$model_reads $model_d1 $model_ll" 'BEGIN {
        split(got, g); split(model, m); split("reads;L1d misses;L2 misses", what, ";")
        for (k = 1; k <= 3; k++) {
            off = m[k] ? 100 * (g[k] - m[k]) / m[k] : 100 * (g[k] != m[k])
            bad = off > 0.1 || off < -0.1
            printf "%-8s %-28s %-28s cachegrind %9d  model %9d  %+.4f %%%s\n", bad ? "DIFFERS" : "ok", name, caches " " what[k], g[k], m[k], off, ""
            failed = failed || bad
        }
        exit failed
    }' || status=1
}

status=0
while read -r d1 ll caches; do
    check "$d1" "$ll" "$caches" "rows" 1024 1024 1024 1
    check "$d1" "$ll" "$caches" "columns, pitch 1024" 1024 1024 1 1024
    check "$d1" "$ll" "$caches" "columns, pitch 1032" 1024 1024 1 1032
    check "$d1" "$ll" "$caches" "columns, 700 x 900" 900 700 1 900
    check "$d1" "$ll" "$caches" "every second element" 500 700 4200 2
done <<'CASES'
49152,12,64 2097152,16,64 L1d=48K/12/64,L2=2M/16/64
32768,8,64 1048576,16,64 L1d=32K/8/64,L2=1M/16/64
16384,1,32 262144,4,64 L1d=16K/1/32,L2=256K/4/64
CASES
exit $status

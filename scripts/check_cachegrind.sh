#!/usr/bin/env bash
# Compares the cache model with valgrind's cachegrind: the same walks and copies, the same caches.
#
# Each walk runs twice under cachegrind, with and without the walk itself; the difference must agree with
# the model within 0.1 %. So does each copy, at the portable level and at avx2 (cachegrind cannot run AVX-512
# code), reads and writes together: within 0.1 % at L2; within 1 % at L1d, where registers that the compiler
# spills and the frames of functions take room that the model does not know of.
# Needs valgrind; exits 1 on a difference and 2 where valgrind is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v valgrind >/dev/null || { echo "check_cachegrind: valgrind is not installed: install the package valgrind" >&2; exit 2; }

cargo build --quiet --release --example cachegrind_walk --example cachegrind_plan
walks=${CARGO_TARGET_DIR:-target}/release/examples/cachegrind_walk
copies=${CARGO_TARGET_DIR:-target}/release/examples/cachegrind_plan
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# What one run costs: fields of the summary (Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw).
count() { # D1 LL PROGRAM ARGUMENTS
    valgrind --tool=cachegrind --cache-sim=yes --D1="$1" --LL="$2" --cachegrind-out-file="$out" \
        "${@:3}" 2>/dev/null >&2
    sed -n 's/^summary: *//p' "$out"
}

# Prints a line for each of what was counted (LABEL GOT MODEL PERCENT, a number a word but the label) and
# fails where one is further off than it may be.
judge() { # NAME < lines of: GOT MODEL PERCENT LABEL
    awk -v name="$1" '{
        got = $1; model = $2; most = $3; $1 = $2 = $3 = ""; sub(/^ +/, "")
        off = model ? 100 * (got - model) / model : 100 * (got != model)
        bad = off > most || off < -most
        printf "%-8s %-44s %-46s cachegrind %9d  model %9d  %+.4f %%\n", bad ? "DIFFERS" : "ok", name, $0, got, model, off
        failed = failed || bad
    } END { exit failed }' || status=1
}

# WALK: rows columns row_stride column_stride, in elements of 8 bytes.
check() {
    local d1=$1 ll=$2 caches=$3 name=$4
    shift 4
    read -r _ _ _ reads d1_misses ll_misses _ <<<"$(count "$d1" "$ll" "$walks" walk "$@")"
    read -r _ _ _ rest_reads rest_d1 rest_ll _ <<<"$(count "$d1" "$ll" "$walks" rest "$@")"
    read -r model_reads model_d1 model_ll <<<"$("$walks" model "$@" "$caches")"
    judge "$name" <<LINES
$((reads - rest_reads)) $model_reads 0.1 $caches reads
$((d1_misses - rest_d1)) $model_d1 0.1 $caches L1d misses
$((ll_misses - rest_ll)) $model_ll 0.1 $caches L2 misses
LINES
}

# COPY: shape, bytes of an element, expression.
check_copy() {
    local d1=$1 ll=$2 caches=$3 got rest
    shift 3
    read -ra got <<<"$(count "$d1" "$ll" "$copies" copy "$@")"
    read -ra rest <<<"$(count "$d1" "$ll" "$copies" rest "$@")"
    read -r _ _ model_d1 model_ll <<<"$("$copies" model "$@" "$caches")"
    judge "$RESTRIDE_ISA: $1 of $2 bytes $3" <<LINES
$((got[4] - rest[4] + got[7] - rest[7])) $model_d1 1 $caches L1d misses
$((got[5] - rest[5] + got[8] - rest[8])) $model_ll 0.1 $caches L2 misses
LINES
}

status=0
export RESTRIDE_ISA=scalar
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
for RESTRIDE_ISA in scalar avx2; do
    while read -r shape size expression; do
        check_copy 49152,12,64 2097152,16,64 L1d=48K/12/64,L2=2M/16/64 "$shape" "$size" "$expression"
    done <<'COPIES'
1000,1000 4 .T
1001,999 8 .T
1999,2001 1 .T
1000,2000 4 [:,::2]
1000,2000 4 [:,::-1]
64,1000,64 4 .permute(1,0,2)
32,48,64,16 4 .permute(2,0,3,1)
3,640,480 4 .permute(1,2,0)
8,300,200 8 .mT
1,1000 4 .broadcast_to(1000,1000)
COPIES
done
exit $status

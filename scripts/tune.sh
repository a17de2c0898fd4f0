#!/usr/bin/env bash
# Tunes this machine and leaves profile, check, record and report together in reports/<date>-<machine>/.
#
# scripts/tune.sh [BUDGET [FOLDER]]     time for the search, 60s unless given, as in 30s or 5m
#
# RESTRIDE_BIN names a program that is already built. Exit code 1 where the profile loses on a case; everything is
# written all the same.
set -euo pipefail
cd "$(dirname "$0")/.."
budget=${1:-60s}
program=${RESTRIDE_BIN:-}
if [ -z "$program" ]; then
    cargo build --quiet --release
    program=${CARGO_TARGET_DIR:-target}/release/restride
fi
folder=${2:-}
if [ -z "$folder" ]; then
    # The CPU's name as a folder name.
    machine=$("$program" machine | awk '/^CPU /{ $1 = ""; print }' | tr '[:upper:]' '[:lower:]' | tr -cs '[:alnum:]' '-' | sed 's/^-*//; s/-*$//')
    folder=reports/$(date -u +%Y-%m-%d)-${machine:-unknown}
fi
mkdir -p "$folder"
profile=$folder/profile.json

echo "tuning for $budget"
"$program" tune --budget "$budget" --profile "$profile" | tee "$folder/tune.txt"
echo "checking the profile against the defaults"
lost=0
"$program" tune --check --profile "$profile" | tee "$folder/check.txt" || lost=$?
echo "measuring with the profile"
"$program" bench --preset quick -o "$folder/record.json" --profile "$profile" >"$folder/bench.txt"
tail -n 3 "$folder/bench.txt"
"$program" report "$folder/record.json" -o "$folder" --profile "$profile"
rm -f "$folder/bench.txt"
echo "all of it is in $folder; to use the profile: restride tune --import $profile"
exit "$lost"

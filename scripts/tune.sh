#!/usr/bin/env bash
# Tunes this machine and leaves profile, check, record and report together in reports/<date>-<machine>/.
#
# scripts/tune.sh [BUDGET]     time for the search, 60s unless given, as in 30s or 5m
set -euo pipefail
cd "$(dirname "$0")/.."
budget=${1:-60s}
cargo build --quiet --release
program=${CARGO_TARGET_DIR:-target}/release/restride
# The CPU's name as a folder name.
machine=$("$program" machine | awk '/^CPU /{ $1 = ""; print }' | tr '[:upper:]' '[:lower:]' | tr -cs '[:alnum:]' '-' | sed 's/^-*//; s/-*$//')
folder=reports/$(date -u +%Y-%m-%d)-${machine:-unknown}
mkdir -p "$folder"
profile=$folder/profile.json

echo "tuning for $budget"
"$program" tune --budget "$budget" --profile "$profile" | tee "$folder/tune.txt"
echo "checking the profile against the defaults"
"$program" tune --check --profile "$profile" | tee "$folder/check.txt"
echo "measuring with the profile"
"$program" bench --preset quick -o "$folder/record.json" --profile "$profile"
"$program" report "$folder/record.json" -o "$folder"
rm -f "$profile.lock"
echo "all of it is in $folder; to use the profile: $program tune --import $profile"

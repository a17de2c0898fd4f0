#!/usr/bin/env bash
# Opens the pages that `restride report` and `restride explore` write in a real browser (Debian's chromium).
#
#   scripts/test_browser.sh                  all browser tests
#   RESTRIDE_SHOTS=shots scripts/test_browser.sh   and keeps a picture of every page in every theme and size
#   RESTRIDE_BIN=target/release/restride ...       with a program that is already built
#
# Needs chromium, node (18 or newer) and npm. Without them it says so and skips, but fails where CI=true.
set -euo pipefail
cd "$(dirname "$0")/.."

lacking() {
    echo "##################################################################"
    echo "## BROWSER TESTS NOT RUN: $1"
    echo "## On Debian: apt-get install chromium nodejs npm"
    echo "##################################################################"
    [ "${CI:-}" = true ] && exit 1
    exit 0
}

browser=${RESTRIDE_BROWSER:-}
for name in chromium chromium-browser google-chrome; do
    [ -n "$browser" ] || browser=$(command -v "$name" || true)
done
[ -n "$browser" ] || lacking "there is no chromium on the PATH"
command -v node >/dev/null || lacking "there is no node on the PATH"
command -v npm >/dev/null || lacking "there is no npm on the PATH"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || lacking "node $(node --version) is too old"

restride=${RESTRIDE_BIN:-}
if [ -z "$restride" ]; then
    cargo build --quiet
    restride=${CARGO_TARGET_DIR:-target}/debug/restride
fi
restride=$(realpath "$restride")
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT

shots=${RESTRIDE_SHOTS:+$(realpath -m "$RESTRIDE_SHOTS")}
records=tests/data/records
report() { # folder, then what `restride report` takes
    local folder=$1
    shift
    "$restride" report "$@" -o "$pages/$folder" >/dev/null
}
report counters "$records/counters.json"
report no-counters "$records/no-counters.json"
report hostile "$records/hostile.json"
report several "$records/counters.json" "$records/no-counters.json"
report change "$records/counters.json" --baseline "$records/baseline.json"
# The reports of real machines that are kept in this repository.
for real in reports/*/record.json; do
    [ -e "$real" ] && report "$(basename "$(dirname "$real")")" "$real"
done
"$restride" explore -o "$pages/explore.html" >/dev/null
"$restride" explore --shape 64,64 .T -o "$pages/large.html" >/dev/null

cd tests/browser
[ -d node_modules/playwright-core ] && [ package-lock.json -ot node_modules ] || npm ci --silent --no-audit --no-fund
RESTRIDE_PAGES=$pages RESTRIDE_BROWSER=$browser RESTRIDE_BIN=$restride RESTRIDE_SHOTS=$shots node --test --test-reporter=spec

#!/usr/bin/env bash
# Builds the library as a dependency without optimisation, as a user's debug build does, with and without
# threads, and copies on small stacks.
#
#   scripts/test_debug_build.sh
set -euo pipefail
cd "$(dirname "$0")/.."

for features in "" parallel; do
    cargo run --quiet --manifest-path tests/debug_build/Cargo.toml --target-dir target/debug_build --features "$features"
done

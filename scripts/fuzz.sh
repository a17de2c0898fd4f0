#!/usr/bin/env bash
# Runs every fuzz target for so many seconds each, one after the other, and says how many inputs each ran.
#
#   scripts/fuzz.sh SECONDS [TARGET...]
#
# Needs a nightly toolchain and cargo-fuzz (`cargo install cargo-fuzz`). Seeds come from the handed cases in
# `tests/data`; what a run finds new stays in `fuzz/corpus`, what breaks in `fuzz/artifacts`.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: scripts/fuzz.sh SECONDS [TARGET...]}
shift
[ $# -gt 0 ] || set -- expressions layouts plans npy records profiles

rustup toolchain list 2>/dev/null | grep -q '^nightly' || { echo "fuzz: no nightly toolchain: rustup toolchain install nightly" >&2; exit 3; }
cargo fuzz --version >/dev/null 2>&1 || { echo "fuzz: no cargo-fuzz: cargo install cargo-fuzz" >&2; exit 3; }

python3 - <<'SEEDS'
import json, os, shutil, zlib

def seed(target, data):
    folder = f"fuzz/corpus/{target}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/seed-{zlib.crc32(data):08x}", "wb") as f:
        f.write(data)

for name in ("seeds", "views", "reports"):
    for line in open(f"tests/data/{name}.jsonl", encoding="utf-8"):
        case = json.loads(line)
        if not isinstance(case.get("expr"), str) or not isinstance(case.get("shape"), list):
            continue
        shape = [n for n in case["shape"] if isinstance(n, int)]
        if len(shape) <= 5:
            seed("expressions", bytes([len(shape)]) + bytes(n % 6 for n in shape) + case["expr"].encode())
for folder, _, files in os.walk("tests/data/npy"):
    for name in files:
        path = os.path.join(folder, name)
        if name.endswith(".npy") and os.path.getsize(path) < 4096:
            data = open(path, "rb").read()
            seed("npy", data)
            seed("npy", data[10:])
for k in range(64):
    data = b"".join(zlib.crc32(bytes([k, i])).to_bytes(4, "little") for i in range(40))
    seed("layouts", data)
    seed("plans", data)
case = {"id": "x", "kind": "copy", "params": {"dtype": "f32", "shape": [3, 4], "group": "2-D", "name": "x"}, "unit": "ns",
        "samples": [3, 4, 5], "memcpy_samples": [2, 3], "bytes_moved": 96, "model": {"L1d": {"accesses": 1, "misses": 1}},
        "counters": [{"event": "cycles", "state": "NoPmu", "value": None}]}
record = {"schema": "restride.record/1", "created": "2026-01-01T00:00:00Z", "command": "restride bench", "git": None,
          "machine": {"cpu": "<zq>"}, "environment": {"load": 0.5}, "cases": [case], "unknown": [1, 2.5]}
seed("records", json.dumps(record).encode())
for kind in ("walk", "tile", "peer", "chase"):
    seed("records", json.dumps({**record, "cases": [{**case, "kind": kind}]}).encode())
key = {"version": "0.1.0", "arch": "x86_64", "vendor": "V", "family": 6, "model": 1, "stepping": None, "hypervisor": None,
       "caches": [{"level": "L1d", "bytes": 49152, "ways": 12, "line_bytes": 64, "shared_by": 1}], "isa": "avx2",
       "page_bytes": 4096, "huge_pages": "madvise"}
winners = [{"knob": knob, "value": 4096, "replaces": 2048, "gain": 1.25, "noise": 1.02}
           for knob in ("tile_src_bytes", "tile_dst_bytes", "warp_factor")]
winners += [{**winners[0], "element_bytes": 4}, {**winners[0], "element_bytes": 3}]
entry = {"key": key, "created": "2026-01-01T00:00:00Z", "command": "restride tune", "winners": winners, "measurements": [
    {"knob": "tile_src_bytes", "values": [4096], "case": "x", "confirms": True, "samples_ns": [1.5], "current_samples_ns": [2]}]}
for entries in ([entry], [entry, {**entry, "key": {**key, "isa": "sse2"}}], [entry, entry, 17, {"key": key}]):
    seed("profiles", json.dumps({"schema": "restride.profile/1", "entries": entries, "unknown": {"a": [1, 2.5]}}).encode())
for folder, _, files in os.walk("reports"):
    for name in files:
        path = os.path.join(folder, name)
        if name.endswith(".json") and os.path.getsize(path) < 20000:
            seed("records", open(path, "rb").read())
SEEDS

cargo +nightly fuzz build --fuzz-dir fuzz --features records --codegen-units 16
log=fuzz/target/fuzz.log
for target in "$@"; do
    printf '== %s, %s s\n' "$target" "$seconds"
    limit=4096
    case $target in records | profiles) limit=16384 ;; esac
    if ! cargo +nightly fuzz run --fuzz-dir fuzz --features records --codegen-units 16 "$target" -- \
        -max_total_time="$seconds" -max_len="$limit" -timeout=120 -rss_limit_mb=3000 -print_final_stats=1 >"$log" 2>&1; then
        tail -n 60 "$log"
        exit 1
    fi
    grep -E 'stat::number_of_executed_units|cov: ' "$log" | tail -n 2
done

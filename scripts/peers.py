#!/usr/bin/env python3
"""The case table of benches/peers through NumPy and PyTorch: one process, the same buffers, in turn with memcpy.

  scripts/peers.py [--filter WORD] [--threads N] [--quick] [--with PEERS.json] [--json OUT]

PEERS.json is what `benches/peers --json` wrote of the same cases; with it the table has those libraries too, each
in its ratio to the memcpy of its own run. Makes an environment of its own in target/ with NumPy and, where pip
has it, PyTorch. Results are checked against NumPy's own contiguous copy. Exit code 1 when one is wrong.
"""

import argparse
import datetime
import json
import math
import pathlib
import platform
import subprocess
import sys
import time

import own_venv as own

if __name__ == "__main__":
    own.enter("peers", ["numpy"], [["torch"]])

import numpy as np
from numpy.lib.stride_tricks import as_strided

import restride_c
from numpy_speed import Pad

try:
    import torch
except ImportError:
    torch = None

SAMPLE_S = 100e-6
DTYPES = {"u8": "u1", "u16": "u2", "f32": "f4", "f64": "f8", "c128": "c16"}


def cases():
    """The table with the layout of every view, as the program of benches/peers lists it."""
    command = ["cargo", "run", "--release", "--quiet", "--locked", "--", "--list"]
    done = subprocess.run(command, cwd=own.ROOT / "benches" / "peers", check=True, capture_output=True, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


class View:
    """The arrays of a case, and its copy as each library does it."""

    def __init__(self, case, library, threads):
        self.dtype = np.dtype(DTYPES.get(case["dtype"]) or "V" + case["dtype"].removeprefix("bytes"))
        size, random = math.prod(case["shape"]), np.random.default_rng(1)
        if self.dtype.kind in "fc":  # whole numbers: what a library computes with stays what it was
            self.source = random.integers(0, 1 << 20, size, dtype=np.int32).astype(self.dtype)
        else:
            self.source = np.frombuffer(random.bytes(size * self.dtype.itemsize), self.dtype).copy()
        self.source = self.source.reshape(case["shape"])
        view = case["view"]
        self.target = np.empty(view["shape"], self.dtype)
        self.target.view(np.uint8).fill(0xA5)
        self.ways, self.threads = {}, {"NumPy": 1, "restride": threads, "torch": threads}
        copier = restride_c.Copier(library, case["shape"], case["expr"], self.dtype.itemsize, threads=threads)
        self.ways["restride"] = lambda: copier.run_ns(self.source, self.target)
        if view["padded"]:
            pad = Pad(*eval(case["expr"].removeprefix(".pad"), {"__builtins__": {}}))
            self.ways["NumPy"] = lambda: pad.copy(self.source, self.target)
            if torch and self.dtype.kind != "V":
                theirs = torch.from_numpy(self.source), torch.from_numpy(self.target)
                self.ways["torch"] = lambda: pad.copy(*theirs, copy=lambda to, of: to.copy_(of))
            return
        step = self.dtype.itemsize
        array = as_strided(self.source.reshape(-1)[view["offset"]:], view["shape"], [s * step for s in view["strides"]])
        self.ways["NumPy"] = lambda: np.copyto(self.target, array)
        if torch and self.dtype.kind != "V" and min(view["strides"], default=0) >= 0:
            number = np.int16 if self.dtype == np.uint16 else self.dtype  # torch moves no unsigned words
            flat = torch.from_numpy(self.source.view(number).reshape(-1))
            theirs = flat.as_strided(view["shape"], view["strides"], view["offset"])
            result = torch.from_numpy(self.target.view(number))
            self.ways["torch"] = lambda: result.copy_(theirs)


def sample(way, repeat):
    start = time.perf_counter_ns()
    for _ in range(repeat):
        way()
    return (time.perf_counter_ns() - start) / repeat


def repeats(once_ns):
    return max(1, min(10000, math.ceil(SAMPLE_S * 1e9 / max(once_ns, 1))))


def measure(view, library, names, budget_s, least):
    """Nanoseconds of one copy by each library and by memcpy, in turn; which results were right."""
    copy_from, copy_to = np.full(view.target.nbytes, 1, np.uint8), np.full(view.target.nbytes, 2, np.uint8)
    addresses = copy_from.ctypes.data, copy_to.ctypes.data, copy_to.nbytes
    ways = {"memcpy": lambda: library.restride_memcpy(*addresses, 1)} | {
        name: view.ways[name] for name in names if name in view.ways}
    right, counts, samples = {}, {}, {name: [] for name in ways}
    view.ways["NumPy"]()
    expect = view.target.copy()
    for name, way in ways.items():
        view.target.view(np.uint8).fill(0x5A)
        way()
        right[name] = name == "memcpy" or view.target.tobytes() == expect.tobytes()
        counts[name] = repeats(sample(way, 1))
    start = time.perf_counter()
    while len(samples["memcpy"]) < least or len(samples["memcpy"]) < 101 and time.perf_counter() - start < budget_s:
        for name, way in ways.items():
            samples[name].append(sample(way, counts[name]))
    return samples, right


class Others:
    """Ratios to memcpy in a record of benches/peers."""

    def __init__(self, path):
        self.ratios, self.names = {}, []
        for case in json.loads(path.read_text())["cases"] if path else []:
            params = case["params"]
            if params["peer"] == "restride":
                continue
            if params["peer"] not in self.names:
                self.names.append(params["peer"])
            ratio = float(np.median(case["memcpy_samples"]) / np.median(case["samples"]))
            self.ratios[params["case"], params["peer"]] = ratio if params["verified"] else None


def record_case(case, name, samples, memcpy, right, threads):
    version = {"NumPy": np.__version__, "torch": torch and torch.__version__, "restride": None}[name]
    view = case["view"]
    params = {
        "case": case["id"], "group": case["group"], "peer": name, "version": version, "threads": threads,
        "verified": right, "shape": case["shape"], "expr": case["expr"], "dtype": case["dtype"],
        "elements": math.prod(view["shape"]), "pages": "as numpy.empty gives them",
    }
    return {"id": f"peer/{case['id']}/{name}", "kind": "peer", "params": params, "unit": "ns", "samples": samples,
            "memcpy_samples": memcpy, "bytes_moved": case["bytes_moved"], "model": {}, "counters": []}


def cpu():
    """The CPU's name."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="", help="only cases whose name holds this")
    parser.add_argument("--threads", type=int, default=1, help="threads of restride and PyTorch")
    parser.add_argument("--quick", action="store_true", help="fewer samples, results of at most 64 MiB")
    parser.add_argument("--with", dest="peers", type=pathlib.Path, metavar="PEERS.json", help="a record of benches/peers")
    parser.add_argument("--json", type=pathlib.Path, metavar="OUT", help="write every sample as a record")
    args = parser.parse_args()
    library, table, others = restride_c.load(), cases(), Others(args.peers)
    names = ["restride", "NumPy"]
    if torch is None:
        print("PyTorch is NOT here (pip has no wheel for this machine): running without it", file=sys.stderr)
    else:
        names.append("torch")
        torch.set_num_threads(args.threads)
    versions = f"NumPy {np.__version__}" + (f", torch {torch.__version__}" if torch else "")
    print(f"{args.threads} thread(s) (NumPy 1), {versions}; GB/s (distinct source bytes read + bytes written, decimal) and")
    print("memcpy time / its time, medians; * fastest of this run; - no such operation")
    head = "".join(f"{name:>15}" for name in names) + "".join(f"{name:>15}" for name in others.names)
    print(f"{'case':42}{'memcpy':>8}{head}")
    wrong, found, ratios = [], [], {name: [] for name in names}
    wins = dict.fromkeys(names, 0)
    budget, least = (0.3, 3) if args.quick else (2.0, 7)
    started = time.time()
    for case in table:
        view_bytes = math.prod(case["view"]["shape"]) * case["element_size"]
        if args.filter not in case["id"] or args.quick and view_bytes > 64 << 20:
            continue
        view = View(case, library, args.threads)
        samples, right = measure(view, library, names, budget, least)
        medians = {name: float(np.median(times)) for name, times in samples.items()}
        wrong += [f"{case['id']} by {name}" for name, ok in right.items() if not ok]
        fastest = min((name for name in medians if name != "memcpy" and right[name]), key=medians.get)
        wins[fastest] += 1
        line = f"{case['id']:42}{2 * view_bytes / medians['memcpy']:8.1f}"
        for name in names:
            if name not in medians:
                line += f"{'-':>15}"
                continue
            ratio = medians["memcpy"] / medians[name]
            ratios[name].append(ratio)
            mark = "*" if name == fastest else " "
            line += f"{case['bytes_moved'] / medians[name]:9.1f} {ratio:.2f}{mark}" if right[name] else f"{'WRONG':>15}"
            found.append(record_case(case, name, samples[name], samples["memcpy"], right[name], view.threads[name]))
        for name in others.names:
            ratio = others.ratios.get((case["id"], name))
            line += f"{ratio:14.2f} " if ratio else f"{'-':>15}"
        print(line, flush=True)
    for name in names:
        if ratios[name]:
            mean = math.exp(sum(map(math.log, ratios[name])) / len(ratios[name]))
            print(f"{name:10} geomean {mean:.2f} of memcpy over {len(ratios[name])} cases, worst {min(ratios[name]):.2f}, "
                  f"fastest in {wins[name]}")
    for name in wrong:
        print(f"WRONG RESULT: {name}")
    if args.json:
        record = {
            "schema": "restride.record/1", "created": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]), "git": None,
            "machine": {"cpu": cpu()},
            "environment": {"threads": args.threads, "seconds": time.time() - started}, "cases": found,
        }
        beside = args.json.with_name(args.json.name + ".part")
        beside.write_text(json.dumps(record))
        beside.replace(args.json)
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main())

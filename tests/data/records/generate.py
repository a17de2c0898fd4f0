#!/usr/bin/env python3
"""Writes the synthetic records that the report tests read (no machine was measured for them).

    python3 tests/data/records/generate.py

`counters.json`    a machine whose counters are Ok and Multiplexed, peers and tiles included
`baseline.json`    the same machine some weeks earlier: some cases slower, some within noise
`no-counters.json` another machine, without counters, with a last-level cache shared with others
`hostile.json`     names made to break a page, and numbers made to give NaN
"""
import json
import math
import random
from pathlib import Path

HERE = Path(__file__).parent
K, M = 1024, 1024 * 1024


def cache(level, kind, size, ways, shared):
    return {"level": level, "type": kind, "bytes": size, "ways": ways, "line_bytes": 64,
            "sets": size // ways // 64, "shared_by": shared, "source": "sysfs", "probably_shared": False}


def machine(cpu, hypervisor, isa, cores, cpus, huge, caches, counters, **more):
    return {"cpu": cpu, "ram_bytes": 64 << 30, "counters": counters,
            "fingerprint": {"os": "linux", "arch": "x86_64", "vendor": "Synthetic", "family": 6, "model": 1, "stepping": 1,
                            "brand": cpu, "hypervisor": hypervisor, "caches": caches, "isa": isa, "page_bytes": 4096,
                            "huge_mode": huge, "cpus": cpus, "cores": cores}, **more}


MACHINE_A = machine(
    "Synthetic Octacore 4.2 GHz (test data)", None, ["scalar", "sse2", "avx2", "avx512"], 8, 16, "madvise",
    [cache(1, "Data", 32 * K, 8, 2), cache(1, "Instruction", 32 * K, 8, 2),
     cache(2, "Unified", 1 * M, 8, 2), cache(3, "Unified", 32 * M, 16, 16)],
    [{"event": "cycles", "state": "Ok"},
     {"event": "instructions", "state": "Ok"},
     {"event": "l1d-misses", "state": "Multiplexed", "coverage": 0.62,
      "reason": "the counters were shared with other events", "remedy": "count fewer events at a time"},
     {"event": "llc-misses", "state": "Ok"},
     {"event": "dtlb-misses", "state": "SuspectZero",
      "reason": "the control made 100,000 misses and the counter stayed at 0",
      "remedy": "use the model; the firmware hides this event"}])
PROFILE_A = {"name": "profile.json", "created": "2026-11-19T20:15:00Z", "key": "Synthetic 6/1/1 avx512", "values": 5}
MACHINE_B = machine(
    "Synthetic Server 2.1 GHz, 2 cores of a virtual machine (test data)", "KVM", ["scalar", "sse2", "avx2"], 2, 2, "always",
    [cache(1, "Data", 48 * K, 12, 1), cache(1, "Instruction", 32 * K, 8, 1),
     cache(2, "Unified", 2 * M, 16, 1),
     dict(cache(3, "Unified", 300 * M, 20, 2), probably_shared=True)],
    [{"event": e, "state": "NoPmu",
      "reason": "the kernel has no performance monitoring unit for this CPU (errno 2)",
      "remedy": "run on the host, or give the guest a virtual PMU"}
     for e in ("cycles", "instructions", "l1d-misses", "llc-misses", "dtlb-misses")])


class Maker:
    def __init__(self, machine, seed, speed=1.0, noise=0.015, counters=False):
        self.rng = random.Random(seed)
        self.machine, self.speed, self.noise, self.counters = machine, speed, noise, counters
        self.l1, self.l2 = 0.0, 0.0
        for c in machine["fingerprint"]["caches"]:
            if c["type"] == "Instruction":
                continue
            if c["level"] == 1:
                self.l1 = c["bytes"]
            if c["level"] == 2:
                self.l2 = c["bytes"]
            if c["level"] == 3:
                self.l3 = min(c["bytes"], 40 * M)
        self.cases = []

    def samples(self, ns, n=7, noise=None):
        noise = self.noise if noise is None else noise
        return [round(ns * self.speed * math.exp(abs(self.rng.gauss(0, noise))), 1) for _ in range(n)]

    def by_level(self, ws, l1, l2, l3, mem):
        def blend(a, b, edge):
            t = 1 / (1 + math.exp(-5 * math.log2(max(ws, 1) / edge) / 1.2))
            return a * (1 - t) + b * t
        return blend(blend(blend(l1, l2, self.l1), l3, self.l2), mem, self.l3)

    def model(self, elements, size, row, ws, column_rows=0):
        line = elements * size / 64
        misses = {}
        for name, cap in (("L1d", self.l1), ("L2", self.l2), ("L3", self.l3)):
            if row or ws <= cap:
                misses[name] = int(line)
            elif column_rows * 64 > cap or column_rows % 512 == 0 and column_rows * 64 > cap / 4:
                misses[name] = elements
            else:
                misses[name] = int(line)
        levels, before = {}, elements
        for name, m in misses.items():
            levels[name] = {"accesses": int(before), "misses": int(min(m, before))}
            before = min(m, before)
        return {"naive": {"levels": levels,
                          "misses_per_element": {k: v["misses"] / elements for k, v in levels.items()},
                          "lines_touched": int(line)}}

    def counted(self, elements, model):
        if not self.counters:
            return [{"event": e, "state": "NoPmu", "value": None} for e in ("l1d-misses", "llc-misses")]
        levels = model["naive"]["levels"]
        return [{"event": "l1d-misses", "state": "Multiplexed", "coverage": 0.62,
                 "value": round(levels["L1d"]["misses"] * self.rng.uniform(1.0, 1.08), 1)},
                {"event": "llc-misses", "state": "Ok", "value": round(levels["L3"]["misses"] * self.rng.uniform(0.9, 1.3))}]

    def add(self, case_id, kind, params, ns, moved, memcpy=None, model=None, counters=None, n=7, noise=None):
        self.cases.append({"id": case_id, "kind": kind, "params": params, "unit": "ns",
                           "samples": self.samples(ns, n, noise),
                           "memcpy_samples": self.samples(memcpy, n, noise) if memcpy else [],
                           "bytes_moved": int(moved), "model": model or {}, "counters": counters or []})

    def ladder(self):
        cost = {"row": (.22, .24, .33, .62), "column": (.26, 1.5, 4.4, 10.5), "tiled": (.27, .42, .58, .95),
                "random": (.55, 2.1, 7.5, 34), "chase": (1.2, 3.9, 19, 96)}
        size = 16 * K
        while size <= 128 * M:
            side = int(math.sqrt(size / 8))
            elements = side * side
            for pattern, c in cost.items():
                ns = self.by_level(size, *c) * elements
                row = pattern in ("row", "tiled")
                model = self.model(elements, 8, row, size, side)
                self.add(f"walk/{pattern}/f64/{side}x{side}", "chase" if pattern == "chase" else "walk",
                         {"pattern": pattern, "sweep": "ladder", "dtype": "f64", "shape": [side, side],
                          "elements": elements, "working_set_bytes": elements * 8, "threads": 1, "pages": "4k",
                          "cold": False, "bytes_useful": elements * 8,
                          "bytes_lines": elements * (8 if row else 64) if size > self.l1 else elements * 8,
                          "lines_per_element": 0.125 if row or size <= self.l1 else 1.0},
                         ns, elements * 8, model=model, counters=self.counted(elements, model))
            size *= 2

    def mountain(self):
        size = 16 * K
        while size <= 64 * M:
            for e in range(0, 13, 1):
                stride = 2 ** e
                elements = size // 8
                base = self.by_level(size, .22, .25, .36, .66)
                far = self.by_level(size, .25, 1.3, 4.0, 9.8)
                ns = base + (far - base) * min(1, stride / 8) * (1.25 if stride >= 512 and size > self.l2 else 1)
                self.add(f"walk/strided/f64/{size // K}K/{stride}", "walk",
                         {"pattern": "strided", "sweep": "mountain", "dtype": "f64", "shape": [elements], "stride": stride,
                          "elements": elements, "working_set_bytes": size, "threads": 1, "pages": "4k"},
                         ns * elements, elements * 8, n=5)
            size *= 4

    def pitch(self):
        for center in (1024, 2048, 4096):
            for d in (-64, -32, -16, -8, -4, -1, 0, 1, 4, 8, 16, 32, 64):
                p = center + d
                near = 1.0 if d == 0 else (.82 if abs(d) == 1 else .45)
                ns = (1.1 + 3.4 * math.log2(center / 512) / 2 * near)
                elements = 1024 * 1024
                misses = 1.0 if d == 0 else .125
                model = {"naive": {"levels": {"L1d": {"accesses": elements, "misses": elements},
                                              "L2": {"accesses": elements, "misses": int(elements * misses)}},
                                   "misses_per_element": {"L1d": 1.0, "L2": misses}}}
                for pattern in ("row", "column"):
                    self.add(f"walk/pitch/{pattern}/f64/{p}", "walk",
                             {"pattern": pattern, "sweep": "pitch", "dtype": "f64", "shape": [1024, 1024], "row_pitch": p,
                              "elements": elements, "working_set_bytes": 1024 * p * 8, "threads": 1, "pages": "4k"},
                             (ns if pattern == "column" else .38) * elements, elements * 8,
                             model=model if pattern == "column" else {}, n=5)

    COPIES = [
        ("2-D", "f32 1024", [1024, 1024], ".T", 1.12, "transpose"), ("2-D", "f32 4096", [4096, 4096], ".T", .98, "transpose"),
        ("2-D", "f32 8192", [8192, 8192], ".T", .86, "transpose"), ("2-D", "f32 1000", [1000, 1000], ".T", .74, "transpose, staged"),
        ("2-D", "f32 4097", [4097, 4097], ".T", .71, "transpose, staged"), ("2-D", "f32 256", [256, 256], ".T", .66, "transpose"),
        ("2-D", "f32 64", [64, 64], ".T", .25, "transpose"), ("2-D", "f64 2048", [2048, 2048], ".T", .93, "transpose"),
        ("2-D", "u8 4096", [4096, 4096], ".T", .61, "transpose"), ("2-D", "u16 4096", [4096, 4096], ".T", .92, "transpose"),
        ("tensors", "ttc 1", [64, 96, 128, 60], ".permute(3, 1, 0, 2)", .81, "transpose"),
        ("tensors", "ttc 7", [48, 48, 48, 120], ".permute(2, 0, 3, 1)", .77, "transpose"),
        ("tensors", "ttc 12", [15, 31, 127, 15, 57], ".permute(4, 2, 0, 3, 1)", .63, "transpose, staged"),
        ("tensors", "ttc 20", [7200, 28, 240], ".permute(1, 2, 0)", .9, "transpose"),
        ("images and attention", "u8 HWC to CHW", [4000, 6000, 3], ".permute(2, 0, 1)", 1.07, "deinterleave 3"),
        ("images and attention", "u8 CHW to HWC", [3, 4000, 6000], ".permute(1, 2, 0)", 1.41, "interleave 3"),
        ("images and attention", "attention heads", [8, 16, 1024, 64], ".permute(0, 2, 1, 3)", 1.37, "rows of runs"),
        ("images and attention", "NCHW to NHWC", [32, 64, 112, 112], ".permute(0, 2, 3, 1)", 1.16, "transpose"),
        ("slices", "every second column", [4096, 4096], "[:, ::2]", .92, "gather 2"),
        ("slices", "every third", [4096, 4096], "[::2, ::3]", .83, "gather 3"),
        ("slices", "reversed rows", [4096, 4096], "[::-1]", 1.02, "rows of runs"),
        ("slices", "reversed columns", [4096, 4096], "[:, ::-1]", .97, "reverse"),
        ("broadcast", "row to matrix", [4096], ".broadcast_to(4096, 4096)", 2.66, "repeat rows"),
        ("broadcast", "column to matrix", [4096, 1], ".broadcast_to(4096, 4096)", 2.2, "splat"),
        ("pad", "pad 1 on each side", [64, 56, 56, 64], ".pad((0, 0), (1, 1), (1, 1), (0, 0))", .93, "rows of runs, border fill"),
    ]

    def copies(self):
        for group, name, shape, expr, r, strategy in self.COPIES:
            size = {"u8": 1, "u1": 2, "f6": 8}.get(name[:2], 4)
            n = math.prod(shape) * (4096 if group == "broadcast" else 1)
            moved = 2 * n * size if group != "broadcast" else n * size + shape[0] * size
            memcpy_ns = n * size * 2 / self.by_level(n * size * 2, 180, 62, 26, 17)
            if group == "slices" and ":2" in expr:
                memcpy_ns, moved = memcpy_ns / 2, moved // 2
            self.add(f"copy/{group}/{name}", "copy",
                     {"name": name, "group": group, "shape": shape, "expr": expr, "dtype": {1: "u8", 2: "u16", 8: "f64"}.get(size, "f32"),
                      "strategy": strategy, "isa": self.machine["fingerprint"]["isa"][-1], "threads": 1, "pages": "4k",
                      "streaming": n * size > 3 * M, "working_set_bytes": 2 * n * size, "verified": True},
                     memcpy_ns / r, moved, memcpy=memcpy_ns, n=9, noise=.06 if name == "ttc 12" else None)

    def limits(self):
        size = 16 * K
        while size <= 128 * M:
            for name, bw in (("memcpy", (180, 62, 24, 15)), ("streaming stores", (31, 33, 30, 19))):
                self.add(f"copy/limit/{name}/{size // K}K", "copy",
                         {"name": name, "group": "limit", "dtype": "u8", "shape": [size], "expr": "", "working_set_bytes": 2 * size,
                          "threads": 1, "pages": "4k", "isa": self.machine["fingerprint"]["isa"][-1]},
                         2 * size / self.by_level(2 * size, *bw), 2 * size, n=5)
            size *= 4

    def tiles(self, tuned=True):
        for i, a in enumerate((16, 32, 64, 128, 256, 512)):
            for j, b in enumerate((16, 32, 64, 128, 256, 512, 1024)):
                d = (i - 1) ** 2 * .06 + (j - 5) ** 2 * .045
                self.add(f"tile/f32/{a}x{b}", "tile",
                         {"shape": [4096, 4096], "dtype": "f32", "isa": self.machine["fingerprint"]["isa"][-1], "tile": [a, b],
                          "default": (a, b) == (64, 256), "tuned": tuned and (a, b) == (32, 512)},
                         5.1e6 * (1 + d), 2 * 4096 * 4096 * 4, n=5)

    def peers(self):
        rates = {"restride": None, "HPTT": .46, "strided-perm": .26, "ndarray": .2, "oneDNN": .27, "NumPy": .12}
        for group, name, shape, expr, r, _ in self.COPIES[:19:2]:
            n = math.prod(shape)
            base = n * 8 / self.by_level(n * 8, 180, 62, 26, 17)
            for peer, q in rates.items():
                if peer == "HPTT" and "u8" in name or peer == "oneDNN" and group == "slices":
                    continue
                ratio = r if q is None else q * self.rng.uniform(.4, 1.7)
                self.add(f"peer/{name}/{peer}", "peer",
                         {"case": name, "group": group, "peer": peer, "version": "1.0", "expr": expr, "shape": shape,
                          "dtype": "f32", "threads": 1, "pages": "4k", "verified": True},
                         base / ratio, n * 8, memcpy=base, n=5)

    def record(self, created, command, notes=(), **environment):
        env = {"governor": "performance", "load": 0.31, "kernel": "Linux 6.12", "pinning": "pinned", "cpu": 2, "steal_share": 0.0,
               "migrations": 0, "isa": self.machine["fingerprint"]["isa"][-1], "threads": 1, "seconds": 96.4,
               "interrupted": False, "noise": list(notes)}
        env.update(environment)
        return {"schema": "restride.record/1", "created": created, "command": command, "git": "0123abc",
                "machine": self.machine, "environment": env, "cases": self.cases}


def write(name, record):
    cases = record.pop("cases")
    head = json.dumps(record, ensure_ascii=False, indent=1)[:-2]
    body = ",\n".join(json.dumps(c, ensure_ascii=False, separators=(",", ":")) for c in cases)
    (HERE / name).write_text(f'{head},\n "cases": [\n{body}\n]\n}}\n')


def main():
    a = Maker(MACHINE_A, 1, counters=True)
    a.ladder(), a.mountain(), a.pitch(), a.copies(), a.limits(), a.tiles(), a.peers()
    write("counters.json", a.record("2026-11-20T14:03:11Z", "restride bench --preset quick -o counters.json", profile=PROFILE_A))

    old = Maker(MACHINE_A, 2, counters=True)
    old.COPIES = [(g, n, s, e, r * (.7 if n in ("f32 1000", "ttc 12", "u8 4096") else 1.25 if n == "f32 8192" else 1), st)
                  for g, n, s, e, r, st in Maker.COPIES]
    old.ladder(), old.copies()
    write("baseline.json", old.record("2026-10-02T09:40:00Z", "restride bench --preset quick -o baseline.json"))

    b = Maker(MACHINE_B, 3, speed=1.25, noise=.03)
    b.ladder(), b.mountain(), b.pitch(), b.copies(), b.limits(), b.tiles(tuned=False)
    write("no-counters.json", b.record("2026-11-21T08:15:42Z", "restride bench --preset quick -o no-counters.json",
                                       notes=["the hypervisor gave 2.4 % of the time to others"], governor=None, steal_share=0.024, load=1.7,
                                       pinning="not honoured", cpu=None, profile="none"))

    evil = '</script><script>alert(1)</script>'
    long = "a name of one hundred characters " * 3 + "x"
    names = [evil, "\"double\" & 'single' quotes <b>bold</b>", "tensor \U0001F9CA \U0001F469\u200d\U0001F52C \u202eright to left", long[:100],
             "comma, semicolon; =SUM(A1:A9)", "line\nbreak and\ttab", "a|pipe `tick` \\ backslash", ""]
    m = json.loads(json.dumps(MACHINE_B))
    m["cpu"] = m["fingerprint"]["brand"] = evil + " \U0001F9CA " + long[:60]
    m["fingerprint"]["isa"] = [evil]
    m["counters"] = [{"event": evil, "state": "Forbidden", "reason": None, "remedy": "<img src=x onerror=alert(1)>"}]
    h = Maker(m, 4)
    for i, name in enumerate(names):
        h.add(f"copy/{i}/{name}", "copy", {"name": name, "group": names[i % 3] if i % 2 else "2-D", "shape": [64, 64], "expr": name,
                                       "dtype": "f32", "strategy": name, "isa": evil, "threads": 1, "verified": i % 3 != 0},
              20000, 32768, memcpy=15000)
        h.add(f"peer/{i}/{name}", "peer", {"case": name, "peer": names[(i + 1) % 4], "shape": [64, 64]}, 20000, 32768, memcpy=15000)
        h.add(f"walk/{i}/{name}", "walk", {"pattern": name, "sweep": "ladder", "dtype": "f64", "elements": 100,
                                       "working_set_bytes": 4096 * (i + 1)}, 1000, 800)
    odd = [[], [5.0], [5.0, 5.0, 5.0], [0.0, 0.0, 0.0], [0.0], [1e308, 1e308], [1e-308]]
    for i, s in enumerate(odd):
        for kind, params in (
                ("walk", {"pattern": "row", "sweep": "ladder", "dtype": "f64", "elements": [0, 64, None][i % 3], "working_set_bytes": [0, 65536, None, 1e300][i % 4]}),
                ("walk", {"pattern": "column", "sweep": "pitch", "row_pitch": [1024, None, 0][i % 3], "elements": 64}),
                ("walk", {"pattern": "strided", "sweep": "mountain", "stride": [1, 0, None][i % 3], "working_set_bytes": 16384, "elements": 64}),
                ("copy", {"name": f"odd {i}", "group": "2-D", "dtype": "f32"}),
                ("tile", {"tile": [[16, 16], [], None, [16], [0, 0]][i % 5]}),
                ("peer", {"case": f"odd {i}", "peer": "restride"}),
                ("something new", {})):
            h.cases.append({"id": f"odd/{i}/{kind}/{len(h.cases)}", "kind": kind, "params": params, "unit": "ns", "samples": s,
                            "memcpy_samples": odd[(i + 3) % len(odd)], "bytes_moved": [0, 4096, None][i % 3],
                            "model": {"naive": {"levels": {"L1d": {"accesses": 0, "misses": 0}}, "misses_per_element": {"L1d": None}}},
                            "counters": [{"event": "l1d-misses", "state": "SuspectZero", "value": None}]})
    write("hostile.json", h.record("not a date", evil, notes=[evil, "\u2028 line separator"], load=None, governor=evil, steal_share=None, pinning=None,
                                   profile={"name": evil, "created": None, "key": long, "values": "many"}))


if __name__ == "__main__":
    main()

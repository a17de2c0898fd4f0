#!/usr/bin/env python3
"""Compares restride with NumPy, live: random view expressions, or with --speed the time of copies.

  scripts/numpy_check.py [--count 1000] [--seed 1]     shape, strides, offset, contiguity, copies, lines, values, errors
  scripts/numpy_check.py --speed [--filter WORD]       one thread, np.copyto against restride, interleaved medians

Every expression goes through `restride explain --json` (over --shape and over a file) and through `restride
materialize` on real .npy files of i64, i32, i16, u8, f64 and complex128, in C and Fortran order and both byte
orders. Axes of extent 1 have no stride worth comparing; strides along padding count where two neighbours are
there. Makes an environment of its own in target/. Exit code 1 on any difference, or below 0.9 of NumPy's speed.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

import own_venv as own

if __name__ == "__main__":
    own.enter("numpy", ["numpy"])

import numpy as np

from numpy_expressions import Generator
from numpy_model import PADDED, Expression, Model, Refused, TooLarge

DTYPES = {"i64": "<i8", "i32": "<i4", "i16": "<i2", "u8": "|u1", "f64": "<f8", "c128": "<c16"}
KINDS = ["legal", "legal", "legal", "legal", "legal", "legal", "fault", "fault", "unread"]


class Case:
    """One expression over one shape, and what NumPy makes of it for each element type."""

    def __init__(self, number, shape, text, spans, kind, order, seed):
        self.number, self.shape, self.text, self.spans, self.kind, self.order = number, shape, text, spans, kind, order
        self.random = random.Random(seed)
        self.unreadable = False

    def model(self, dtype):
        """The resulting model, or the refusal; for a text that nobody can read the string "syntax"."""
        if self.unreadable:
            return "syntax"
        try:
            return Expression.apply(self.text, Model.of(self.shape, dtype, self.order))
        except Refused as refusal:
            return refusal
        except Exception as error:
            assert self.kind == "unread", f"{self.text}: {error!r}"
            return "syntax"


def draw(number, seed):
    """The case of a number: the same for the same seed, whatever the count."""
    source = random.Random(f"{seed}/{number}")
    generator = Generator(source)
    while True:
        shape, order = generator.shape(), source.choice(["C", "C", "F"])
        model = Model.of(shape, np.dtype(source.choice(list(DTYPES.values()))), order)
        kind = source.choice(KINDS)
        text, spans, names = "", [], []
        space = generator.write.space

        def add(piece):
            spans.append((len(text), len(text) + len(piece)))
            return text + piece + space()

        text = space()
        for _ in range(source.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 6])):
            name, piece, model = generator.piece(model)
            names.append(name)
            text = add(piece)
        if kind == "fault":
            piece = generator.fault(model)
            try:
                Expression.apply(piece, model)
                continue  # legal after all
            except Refused:
                text = add(piece)
            except TooLarge:
                continue
            if source.random() < 0.3:
                text = add(source.choice([".T", "[None]", ".flatten()"]))
        if kind == "unread":
            text = generator.unread(text)
        case = Case(number, shape, text, spans, kind, order, source.random())
        case.names = names
        try:
            outcomes = [case.model(dtype) for dtype in DTYPES.values()]
        except TooLarge:
            continue
        if kind == "unread" and "syntax" not in outcomes:
            continue  # Python reads it all the same
        case.unreadable = kind == "unread"
        return case


class Checker:
    """Runs the program on cases and compares."""

    def __init__(self, program, folder, only):
        self.program, self.folder, self.only = program, folder, only
        self.counts = collections.Counter()

    def run(self, *args):
        words = [str(self.program), *map(str, args)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        return done, shlex.join(["restride", *words[1:]])

    def check(self, case):
        """Differences of one case, a line each."""
        wrong = []
        ways = [self.explain_shape, self.explain_file, self.materialize]
        for what in ways if self.only is None else [way for way in ways if way.__name__.startswith(self.only)]:
            for command, difference in what(case):
                wrong.append(f"case {case.number}: {command}\n    {difference}")
        return wrong

    def explain_shape(self, case):
        """`explain --shape`, which is row-major."""
        name = case.random.choice(list(DTYPES))
        order, case.order = case.order, "C"
        outcome = case.model(DTYPES[name]) if order == "C" or case.kind != "fault" else None
        case.order = order
        if outcome is None or isinstance(outcome, Exception) and order != "C":
            return  # the fault was drawn for the other order
        shape = ",".join(map(str, case.shape))
        done, command = self.run("explain", f"--shape={shape}", "--dtype", name, "--json", "--", case.text)
        for difference in self.explained(case, outcome, done):
            yield command, difference

    def explain_file(self, case):
        """`explain FILE`."""
        path, source = self.file(case, case.random.choice(list(DTYPES)))
        done, command = self.run("explain", path, "--json", "--", case.text)
        for difference in self.explained(case, case.model(source.dtype), done):
            yield command, difference

    def explained(self, case, outcome, done):
        self.counts["explain"] += 1
        if not isinstance(outcome, Model):
            yield from self.refused(case, outcome, done, True)
            return
        if done.returncode != 0:
            yield f"refused with {done.stderr.strip()!r} instead of shape {outcome.shape}"
            return
        try:
            said = json.loads(done.stdout)
        except ValueError:
            yield f"prints no JSON: {done.stdout[:200]!r}"
            return
        finished = bool(outcome.passes) and outcome.contiguous and outcome.pos.size == len(outcome.source)
        passes = [*outcome.passes, *([] if finished else [outcome])]
        expect = {
            "shape": list(outcome.shape), "offset": outcome.offset, "numel": outcome.pos.size,
            "contiguous": outcome.contiguous, "writable": outcome.writable, "padded": outcome.padded,
            "copies": len(outcome.passes),
        }
        if outcome.pos.size == 0 and said.get("offset") == 0:
            expect["offset"] = 0  # normalised: an empty view reaches nothing
        for key, value in expect.items():
            if said.get(key) != value:
                yield f"{key} is {said.get(key)} instead of {value}"
        yield from self.strides("strides", said, outcome)
        if len(said["passes"]) != len(passes):
            yield f"{len(said['passes'])} passes instead of {len(passes)}"
            return
        for number, (one, model) in enumerate(zip(said["passes"], passes)):
            if one["shape"] != list(model.shape):
                yield f"pass {number} has shape {one['shape']} instead of {list(model.shape)}"
                continue
            if one["offset"] != model.offset and not (model.pos.size == 0 and one["offset"] == 0):
                yield f"pass {number} has offset {one['offset']} instead of {model.offset}"
            yield from self.strides(f"pass {number} strides", one, model)
            size, line = model.dtype.itemsize, one["lines"]["line_bytes"]
            read = np.unique(model.pos[model.pos != PADDED])
            touched = len(np.unique(np.concatenate([(read * size) // line, (read * size + size - 1) // line])))
            got = (one["lines"]["touched"], one["lines"]["bytes_used"])
            if got != (touched, len(read) * size):
                yield f"pass {number} lines (touched, bytes used) are {got} instead of {(touched, len(read) * size)}"
        if (said["plan"], said["lines"]) != (said["passes"][0]["plan"], said["passes"][0]["lines"]):
            yield "plan and lines do not repeat those of the first pass"

    @staticmethod
    def strides(what, said, model):
        got, expect = said.get("strides"), model.strides
        if not isinstance(got, list) or len(got) != len(expect) or any(
                b is not None and n != 1 and a != b for a, b, n in zip(got, expect, model.shape)):
            yield f"{what} are {got} instead of {expect}"

    def refused(self, case, outcome, done, json_asked):
        """A refusal: exit code, one sentence, and with --json kind, piece, span and shape."""
        self.counts["refused"] += 1
        kind = outcome if outcome == "syntax" else outcome.kind
        code = 2 if kind == "syntax" else 1
        if done.returncode != code:
            yield f"ends with {done.returncode} instead of {code} ({kind}): {done.stderr.strip()!r}"
            return
        if not done.stderr.startswith("restride: ") or "panicked" in done.stderr:
            yield f"says {done.stderr!r}"
        if not json_asked:
            return
        try:
            error = json.loads(done.stdout)["error"]
        except (ValueError, KeyError):
            yield f"prints no error object: {done.stdout[:200]!r}"
            return
        if error["kind"] != kind:
            yield f"kind is {error['kind']} instead of {kind}: {error['message']}"
        elif kind != "syntax":
            start, end = case.spans[outcome.piece]
            if error["span"] != [start, end] or error["piece"] != case.text[start:end]:
                yield f"span is {error['span']} instead of {[start, end]} ({case.text[start:end]!r})"
            # What is refused while the text is read has met no shape.
            if error["shape"] not in (list(outcome.shape), *([None] if kind in ("index", "overflow") else [])):
                yield f"met shape {error['shape']} instead of {list(outcome.shape)}"

    def file(self, case, name, big=False):
        """A .npy file of random elements."""
        dtype = np.dtype(DTYPES[name])
        dtype = dtype.newbyteorder(">") if big else dtype
        size = int(np.prod(case.shape, dtype=np.int64))
        data = case.random.randbytes(size * dtype.itemsize)
        flat = np.frombuffer(data, dtype)
        array = flat.reshape(case.shape, order=case.order)
        path = self.folder / f"{case.number}-{name}.npy"
        np.save(path, array)
        return path, flat

    def materialize(self, case):
        for name, text in DTYPES.items():
            big = np.dtype(text).itemsize > 1 and case.random.random() < 0.2
            path, source = self.file(case, name, big)
            out = self.folder / f"{case.number}-{name}-out.npy"
            options = []
            order = case.random.choice(["C", "C", "C", "F"])
            if order == "F" or case.random.random() < 0.1:
                options += ["--order", order]
            if case.random.random() < 0.2:
                options += ["--verify"]
            if case.random.random() < 0.2:
                options += ["--threads", case.random.choice("12")]
            done, command = self.run("materialize", path, "-o", out, *options, "--", case.text)
            for difference in self.materialized(case, source, done, out, order):
                yield command, difference
            path.unlink(missing_ok=True)
            out.unlink(missing_ok=True)
            for left in self.folder.glob(f"*{case.number}-{name}*"):
                yield command, f"leaves {left.name}"

    def materialized(self, case, source, done, out, order):
        self.counts["materialize"] += 1
        outcome = case.model(source.dtype)
        if not isinstance(outcome, Model):
            yield from self.refused(case, outcome, done, False)
            if out.exists():
                yield "a refusal leaves an output file"
            return
        if done.returncode != 0:
            yield f"refused with {done.stderr.strip()!r} instead of shape {outcome.shape}"
            return
        try:
            got = np.load(out)
        except (OSError, ValueError) as error:
            yield f"writes what NumPy cannot read: {error}"
            return
        numbers, fills = outcome.values()
        expect = np.empty(outcome.shape, source.dtype)
        expect[numbers >= 0] = source[numbers[numbers >= 0]]
        for k, fill in enumerate(fills):
            expect[numbers == -2 - k] = np.frombuffer(fill, source.dtype)[0]
        if got.dtype != source.dtype or got.shape != outcome.shape:
            yield f"gives {got.dtype} {got.shape} instead of {source.dtype} {outcome.shape}"
        elif got.tobytes() != expect.tobytes():
            at = np.flatnonzero(np.frombuffer(got.tobytes(), np.uint8) != np.frombuffer(expect.tobytes(), np.uint8))
            yield f"values differ from byte {at[0]} on, {len(at)} bytes in all"
        with open(out, "rb") as file:
            np.lib.format.read_magic(file)
            fortran = np.lib.format.read_array_header_1_0(file)[1]
        if fortran != (order == "F" and not np.empty(outcome.shape, order="F").flags.c_contiguous):
            yield f"fortran_order is {fortran} with --order {order}"
        self.counts["values"] += 1


def build():
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=own.ROOT, check=True)
    name = "restride.exe" if os.name == "nt" else "restride"
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", own.ROOT / "target"))
    return target / "release" / name


def compare(args):
    checker_root = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=checker_root, prefix="restride-numpy-") as folder:
        checker = Checker(args.program or build(), pathlib.Path(folder), args.only)
        numbers = [args.case] if args.case is not None else range(args.count)
        pieces, kinds, wrong = collections.Counter(), collections.Counter(), []

        def one(number):
            case = draw(number, args.seed)
            return case, checker.check(case)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for case, differences in pool.map(one, numbers):
                pieces.update(case.names)
                kinds[case.kind] += 1
                wrong += differences
    for line in wrong[:args.show]:
        print(line)
    if len(wrong) > args.show:
        print(f"... and {len(wrong) - args.show} more (--show N)")
    print(f"NumPy {np.__version__}, seed {args.seed}: {sum(kinds.values())} expressions ({dict(kinds)})")
    print(f"  legal pieces: {dict(sorted(pieces.items()))}")
    print(f"  runs: {dict(checker.counts)}")
    print(f"  differences: {len(wrong)}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="how many expressions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only the expression of this number")
    parser.add_argument("--show", type=int, default=20, help="how many differences to print")
    parser.add_argument("--program", type=pathlib.Path, help="the restride to check instead of building one")
    parser.add_argument("--only", choices=["explain", "materialize"], help="only this command (both by default)")
    parser.add_argument("--speed", action="store_true", help="compare times instead")
    parser.add_argument("--filter", default="", help="with --speed: only views whose name holds this")
    args = parser.parse_args()
    if args.speed:
        import numpy_speed
        return numpy_speed.main(args.filter)
    return compare(args)


if __name__ == "__main__":
    sys.exit(main())

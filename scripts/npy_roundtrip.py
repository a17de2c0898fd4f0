#!/usr/bin/env python3
"""What `restride materialize` writes, NumPy reads: every kind of element type, order and version.

Run by hand in an environment of its own, after `cargo build --release`:
    python3 -m venv v && v/bin/pip install numpy && v/bin/python scripts/npy_roundtrip.py [RESTRIDE]
Each case saves an array with NumPy, makes a view of it with restride, loads the result with NumPy and
compares dtype, shape, memory order and every byte. Prints the number of cases; exit code 1 on a difference.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from numpy.lib import format as npy

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESTRIDE = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "target/release/restride")

NUMBERS = ["?", "i1", "u1"] + [o + t for o in "<>" for t in
    ["i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8", "c8", "c16"]] + ["<f16", "<c32"]
OTHERS = ["<M8[ns]", ">M8[D]", "<m8[25us]", "S1", "S7", "<U3", ">U2", "V5", "V16",
    [("a", "u1"), ("b", "<f8")], [("x", ">i2", (2, 3)), ("y", [("z", "<c8"), ("w", "S3")])],
    [("gr\u00f6\u00dfe", "<i4")], [("\u03b1\u03b2", "<i4"), ("\u732b", "u1")],
    np.dtype([("a", "u1"), ("b", "<f8"), ("c", "<i2")], align=True),
    np.dtype({"names": ["p", "q"], "formats": ["u1", "<i4"], "offsets": [1, 4], "itemsize": 12})]
SHAPES = [(), (1,), (7,), (0,), (3, 4), (5, 1, 2), (2, 0, 3), (2, 3, 4, 5), (64, 65)]
VIEWS = [
    ("", lambda x: x),
    (".T", lambda x: x.T),
    ("[..., ::-1]", lambda x: x[..., ::-1]),
    ("[::2].T", lambda x: x[::2].T),
    (".reshape(-1)", lambda x: x.reshape(-1)),
    (".T.reshape(-1)[::-1]", lambda x: x.T.reshape(-1)[::-1]),
    (".unsqueeze(0).expand(3, {axes})", lambda x: np.broadcast_to(x, (3,) + x.shape)),
]


def fill(dtype, shape):
    """Random bytes, with zeros between record fields and no invalid text."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    if dtype.kind in "US":
        return np.array([chr(97 + i % 26) * (i % 4) for i in range(count)], dtype).reshape(shape)
    data = np.random.default_rng(1).integers(0, 256, count * dtype.itemsize, np.uint8)
    if dtype.kind == "b":
        data &= 1
    return np.frombuffer(data.tobytes(), dtype, count).reshape(shape)


def opaque(array):
    """Records as raw bytes: NumPy's own copies lose what lies between their fields."""
    return array.view(f"V{array.dtype.itemsize}") if array.dtype.names else array


def main():
    cases = 0
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "in.npy", pathlib.Path(folder) / "out.npy"
        for dtype in NUMBERS + OTHERS:
            for shape in SHAPES if dtype in ("<f4", ">i8") else [(), (3, 4), (2, 3, 4, 5)]:
                for stored in "CF":
                    array = np.array(fill(dtype, shape), order=stored, copy=True)
                    with open(source, "wb") as file:
                        npy.write_array(file, array, allow_pickle=False)
                    for expr, numpy_view in VIEWS:
                        if not shape and "[" in expr and expr != ".T.reshape(-1)[::-1]":
                            continue
                        order = "CF"[cases % 2]
                        text = expr.format(axes="-1, " * len(shape))
                        command = [RESTRIDE, "materialize", source, text, "-o", target, "--order", order, "--verify"]
                        ran = subprocess.run(command, capture_output=True, text=True)
                        if ran.returncode:
                            sys.exit(f"{dtype} {shape} {text}: {ran.stderr}")
                        want = numpy_view(array)
                        got = np.load(target, allow_pickle=False)
                        flags = got.flags
                        assert got.dtype == want.dtype, (dtype, got.dtype)
                        assert got.shape == want.shape, (dtype, shape, text, got.shape)
                        assert flags.f_contiguous if order == "F" else flags.c_contiguous, (dtype, shape, text)
                        assert opaque(got).tobytes() == numpy_view(opaque(array)).tobytes(), (dtype, shape, stored, text, order)
                        cases += 1
    print(f"{cases} files written by restride read by NumPy {np.__version__} as the same arrays")


if __name__ == "__main__":
    main()

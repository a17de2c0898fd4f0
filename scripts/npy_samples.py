#!/usr/bin/env python3
"""Writes tests/data/npy/made/*.npy and tests/data/npy/expected.json with NumPy.

Run by hand in an environment of its own:  python3 -m venv v && v/bin/pip install numpy
                                           v/bin/python scripts/npy_samples.py
expected.json says for every file that NumPy can read, copied ones included: shape, descr, memory order,
element size, and the CRC-32 of the elements' bytes in C order of x, x.T and x[..., ::-1].
"""

import json
import pathlib
import zlib

import numpy as np
from numpy.lib import format as npy

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "npy"
MADE = ROOT / "made"


def save(name, array, version=None):
    with open(MADE / f"{name}.npy", "wb") as file:
        npy.write_array(file, array, version=version, allow_pickle=False)


def raw(name, header, data, version=1):
    """A file with exactly this header text, whatever NumPy thinks of its layout."""
    text = header.encode("latin1")
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    (MADE / f"{name}.npy").write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + text + data)


def make():
    MADE.mkdir(parents=True, exist_ok=True)
    count = np.arange(24).reshape(2, 3, 4)
    for code in ["?", "i1", "u1", "<i2", ">u2", "<f2", "<i4", ">i4", "<u4", "<f4", "<i8", ">i8", "<u8", "<f8", "<c8", ">c8", "<c16"]:
        array = (count % 2 if code == "?" else count).astype(code)
        name = code.replace("<", "le-").replace(">", "be-").replace("?", "bool")
        save(f"{name}-c", array)
        save(f"{name}-f", np.asfortranarray(array))
    save("longdouble", count.astype(np.longdouble))
    save("datetime", (count * 86400).astype("<M8[ns]"))
    save("timedelta", count.astype(">m8[D]"))
    save("bytes-s5", np.char.mod(b"%d", count).astype("S5"))
    save("text-u3", np.char.mod("%d\u20ac", count).astype("<U3"))
    save("void-v7", np.frombuffer(bytes(range(7 * 12)), "V7").reshape(3, 4))
    save("rank-0", np.array(2.5))
    save("rank-1", np.arange(184.0))
    save("rank-12", np.arange(2 * 3 * 2).reshape([1, 2, 1, 3, 1, 1, 2, 1, 1, 1, 1, 1]).astype("<i2"))
    save("empty", np.zeros((3, 0, 2), ">f4"))
    save("empty-1", np.zeros((0,), "<i8"))
    odd = np.zeros((3, 2), [("tag", "u1"), ("value", "<f8"), ("pair", "<i2", (2,))])
    odd["value"] = np.arange(6).reshape(3, 2)
    save("record-odd", np.asfortranarray(odd))
    nested = np.zeros(4, np.dtype([("p", [("x", ">f4"), ("y", "<f8")], (2,)), ("flag", "?")], align=True))
    nested["p"]["y"] = np.arange(8).reshape(4, 2)
    save("record-aligned", nested)
    save("record-titled", np.zeros(2, [(("a title", "name"), "<i4"), ("other", "<f4")]))
    save("record-many", np.ones((2, 2), [(f"field_{i:05}", "u1") for i in range(3000)]), (2, 0))
    save("record-latin1", np.ones(3, [("caf\u00e9", "<i4")]))
    save("record-utf8", np.ones((2, 3), [("gr\u00f6\u00dfe_\u03b1", "<i4")]))
    save("version-1", count, (1, 0))
    save("version-2", count, (2, 0))
    save("version-3", count, (3, 0))
    # Data that starts where no element is aligned.
    data = count.astype("<f8").tobytes()
    raw("unaligned-c", "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4)}\n", data)
    raw("unaligned-f", "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3, 4)} ", data)
    raw("unaligned-v2", "{'descr': '<i4', 'fortran_order': False, 'shape': (5,)}", bytes(range(20)), version=2)
    raw("keys-reversed", '{"shape" : ( 2 ,3 ), "fortran_order":True,\n "descr":">i2",}', bytes(range(12)))
    raw("trailing", "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n", bytes(range(13)))


def expected():
    out = {}
    for path in sorted(ROOT.rglob("*.npy")):
        name = str(path.relative_to(ROOT))
        with open(path, "rb") as file:
            version = npy.read_magic(file)
        try:
            array = np.load(path, allow_pickle=False, max_header_size=1 << 20)
        except ValueError:
            out[name] = {"refused": "objects"}
            continue
        if array.dtype.names:
            # As opaque bytes: copying a record field by field would lose what lies between the fields.
            array = array.view(f"V{array.dtype.itemsize}")
        crc = lambda a: zlib.crc32(np.ascontiguousarray(a).tobytes())
        out[name] = {
            "shape": list(array.shape),
            "fortran_order": bool(array.flags.f_contiguous and not array.flags.c_contiguous),
            "item_bytes": array.dtype.itemsize,
            "version": list(version),
            "crc32": crc(array),
            "crc32_transposed": crc(array.T),
            "crc32_reversed": crc(array[..., ::-1] if array.ndim else array),
        }
    (ROOT / "expected.json").write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items()) + "\n}\n")


if __name__ == "__main__":
    make()
    expected()

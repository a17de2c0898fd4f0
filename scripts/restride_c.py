"""restride in this process: the C interface of benches/peers, built when it is not up to date."""

import ctypes
import os
import subprocess
import sys

import own_venv as own

NAMES = {"linux": "librestride_peers.so", "darwin": "librestride_peers.dylib", "win32": "restride_peers.dll"}


def load():
    folder = own.ROOT / "benches" / "peers"
    command = ["cargo", "build", "--release", "--quiet", "--lib", "--no-default-features", "--locked"]
    subprocess.run(command, cwd=folder, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", folder / "target")
    library = ctypes.CDLL(os.path.join(target, "release", NAMES[sys.platform]))
    size, pointer, text = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p
    for name, result, *arguments in [
        ("error", text), ("new", pointer, ctypes.POINTER(size), size, text, size, text, size, size),
        ("run", ctypes.c_int64, pointer, pointer, pointer, size),
        ("memcpy", ctypes.c_int64, pointer, pointer, size, size), ("src_bytes", size, pointer),
        ("dst_bytes", size, pointer), ("strategy", text, pointer), ("free", None, pointer),
    ]:
        function = getattr(library, f"restride_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Copier:
    """The copy of one view of a C-contiguous array into a contiguous one."""

    def __init__(self, library, shape, expr, element_size, fill=b"", threads=1):
        self.library = library
        extents = (ctypes.c_size_t * max(len(shape), 1))(*shape)
        self.handle = library.restride_new(
            extents, len(shape), expr.encode(), element_size, fill, len(fill), threads)
        if not self.handle:
            raise ValueError(library.restride_error().decode())
        self.strategy = library.restride_strategy(self.handle).decode()

    def __del__(self):
        if getattr(self, "handle", None):
            self.library.restride_free(self.handle)

    def run_ns(self, source, target, repeat=1):
        """Copies the view of `source` into `target`, which are contiguous arrays; nanoseconds of one copy."""
        if not (source.flags.forc and target.flags.c_contiguous):
            raise ValueError("both arrays must be contiguous")
        if (source.nbytes, target.nbytes) != (
                self.library.restride_src_bytes(self.handle), self.library.restride_dst_bytes(self.handle)):
            raise ValueError("an array of the wrong size")
        took = self.library.restride_run(self.handle, source.ctypes.data, target.ctypes.data, repeat)
        if took < 0:
            raise ValueError(self.library.restride_error().decode())
        return took / repeat

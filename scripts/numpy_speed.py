"""Times np.copyto into a preallocated array against restride on the same view: one thread, taken in turn.

Both copy between the same two arrays, which were written before. NumPy is called as NumPy is, from Python;
restride through its C interface, planning every call anew. A pad has no view in NumPy: there it writes the
borders and then the middle into the preallocated array, which beats filling all of it first.
"""

import time

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import restride_c

LIMIT = 0.9
SAMPLE_S = 400e-6
BUDGET_S = 0.7
LEAST, MOST = 9, 61


class Pad:
    """What NumPy does for a pad into a preallocated array."""

    def __init__(self, *widths, value=0):
        self.widths, self.value = widths, value

    def shape(self, source):
        return tuple(before + extent + after for extent, (before, after) in zip(source.shape, self.widths))

    def copy(self, source, target, copy=np.copyto):
        middle = target
        for axis, (before, after) in enumerate(self.widths):
            front, extent = (slice(None),) * axis, target.shape[axis]
            if before:
                middle[(*front, slice(None, before))] = self.value
            if after:
                middle[(*front, slice(extent - after, None))] = self.value
            middle = middle[(*front, slice(before, extent - after))]
        copy(middle, source)


def diagonal(x):
    return np.diagonal(x, 0, 0, 1)


# name, shape, dtype, expression, and NumPy's view or pad
VIEWS = [
    ("transpose 128x128", (128, 128), "f4", ".T", lambda x: x.T),
    ("transpose 100x200", (100, 200), "f4", ".T", lambda x: x.T),
    ("transpose 512x512", (512, 512), "f4", ".T", lambda x: x.T),
    ("transpose 1000x1000", (1000, 1000), "f4", ".T", lambda x: x.T),
    ("transpose 4096x4096", (4096, 4096), "f4", ".T", lambda x: x.T),
    ("transpose 1023x1025", (1023, 1025), "f8", ".T", lambda x: x.T),
    ("transpose 4096x4096", (4096, 4096), "u1", ".T", lambda x: x.T),
    ("transpose 2048x2048", (2048, 2048), "u2", ".T", lambda x: x.T),
    ("transpose 1000x1000", (1000, 1000), "c16", ".T", lambda x: x.T),
    ("transpose 300x300", (300, 300), "V3", ".T", lambda x: x.T),
    ("transpose 1024x1024", (1024, 1024), "V3", ".T", lambda x: x.T),
    ("transpose 700x700", (700, 700), "V7", ".T", lambda x: x.T),
    ("transpose 1024x1024", (1024, 1024), "V12", ".T", lambda x: x.T),
    ("transpose 500x500", (500, 500), "i4,u1", ".T", lambda x: x.T),
    ("tall (1M, 3).T", (1 << 20, 3), "f4", ".T", lambda x: x.T),
    ("wide (3, 1M).T", (3, 1 << 20), "f4", ".T", lambda x: x.T),
    ("pixels to planes 1080p", (1080, 1920, 3), "u1", ".permute(2, 0, 1)", lambda x: x.transpose(2, 0, 1)),
    ("planes to pixels 1080p", (3, 1080, 1920), "u1", ".permute(1, 2, 0)", lambda x: x.transpose(1, 2, 0)),
    ("pixels to planes 150x150", (150, 150, 3), "u1", ".permute(2, 0, 1)", lambda x: x.transpose(2, 0, 1)),
    ("one channel", (1080, 1920, 3), "u1", "[..., 1]", lambda x: x[..., 1]),
    ("RGB to BGR", (1080, 1920, 3), "u1", "[..., ::-1]", lambda x: x[..., ::-1]),
    ("attention", (4, 8, 512, 64), "f4", ".permute(0, 2, 1, 3)", lambda x: x.transpose(0, 2, 1, 3)),
    ("to channels last", (8, 64, 56, 56), "f4", ".permute(0, 2, 3, 1)", lambda x: x.transpose(0, 2, 3, 1)),
    ("columns by 2", (1024, 1024), "f4", "[:, ::2]", lambda x: x[:, ::2]),
    ("columns by 3", (1024, 1024), "f8", "[:, ::3]", lambda x: x[:, ::3]),
    ("columns by 5", (1024, 1000), "u2", "[:, ::5]", lambda x: x[:, ::5]),
    ("rows by 2, columns by 3", (4096, 4096), "f4", "[::2, ::3]", lambda x: x[::2, ::3]),
    ("columns by 2", (1024, 1024), "V7", "[:, ::2]", lambda x: x[:, ::2]),
    ("columns by -2", (1024, 1024), "u1", "[:, ::-2]", lambda x: x[:, ::-2]),
    ("columns reversed", (1024, 1024), "f4", "[:, ::-1]", lambda x: x[:, ::-1]),
    ("columns reversed", (1024, 1024), "u1", "[:, ::-1]", lambda x: x[:, ::-1]),
    ("columns reversed", (512, 512), "V12", "[:, ::-1]", lambda x: x[:, ::-1]),
    ("rows reversed", (1024, 1024), "f4", "[::-1]", lambda x: x[::-1]),
    ("all reversed 64 MiB", (4096, 4096), "f4", "[::-1, ::-1]", lambda x: x[::-1, ::-1]),
    ("left half", (1024, 1024), "f4", "[:, :500]", lambda x: x[:, :500]),
    ("short rows", (100000, 8), "f4", "[:, :5]", lambda x: x[:, :5]),
    ("short rows", (100000, 16), "u1", "[:, 3:10]", lambda x: x[:, 3:10]),
    ("corner transposed", (1024, 1024), "f4", "[:500, :700].T", lambda x: x[:500, :700].T),
    ("row broadcast", (1024,), "f4", ".broadcast_to(1024, 1024)", lambda x: np.broadcast_to(x, (1024, 1024))),
    ("column broadcast", (1024, 1), "f4", ".broadcast_to(1024, 1024)",
     lambda x: np.broadcast_to(x, (1024, 1024))),
    ("middle broadcast", (128, 1, 64), "f8", ".broadcast_to(128, 50, 64)",
     lambda x: np.broadcast_to(x, (128, 50, 64))),
    ("column broadcast", (1000, 1), "V3", ".broadcast_to(1000, 1000)", lambda x: np.broadcast_to(x, (1000, 1000))),
    ("pad 128x128", (128, 128), "f4", ".pad((1, 1), (1, 1))", Pad((1, 1), (1, 1))),
    ("pad images", (16, 56, 56, 64), "f4", ".pad((0, 0), (1, 1), (1, 1), (0, 0))",
     Pad((0, 0), (1, 1), (1, 1), (0, 0))),
    ("pad images first", (16, 64, 56, 56), "f4", ".pad((0, 0), (0, 0), (1, 1), (1, 1))",
     Pad((0, 0), (0, 0), (1, 1), (1, 1))),
    ("pad bytes with 255", (1080, 1920), "u1", ".pad((8, 8), (8, 8), value=255)", Pad((8, 8), (8, 8), value=255)),
    ("windows of 7", (200000,), "f4", ".unfold(0, 7, 1)", lambda x: sliding_window_view(x, 7)),
    ("windows of 64 by 16", (100000,), "f4", ".unfold(0, 64, 16)", lambda x: sliding_window_view(x, 64)[::16]),
    ("windows 3x3", (512, 512), "u1", ".unfold(0, 3, 1).unfold(1, 3, 1)",
     lambda x: sliding_window_view(x, (3, 3))),
    ("windows 3x3 first", (300, 300), "f4", ".unfold(0, 3, 1).unfold(1, 3, 1).permute(2, 3, 0, 1)",
     lambda x: sliding_window_view(x, (3, 3)).transpose(2, 3, 0, 1)),
    ("diagonal of matrices", (256, 256, 64), "f4", ".diagonal(0, 0, 1)", diagonal),
    ("diagonals in a row", (64, 256, 256), "f8", ".as_strided((64, 256), (65536, 257), 0)",
     lambda x: as_strided(x, (64, 256), (65536 * 8, 257 * 8))),
    ("rank 6", (15, 15, 16, 15, 8, 16), "f4", ".permute(4, 1, 0, 3, 2, 5)",
     lambda x: x.transpose(4, 1, 0, 3, 2, 5)),
    ("rank 16, all 2", (2,) * 16, "f4", ".T", lambda x: x.T),
    ("rank 20, all 2", (2,) * 20, "f8", ".T", lambda x: x.T),
    ("rank 8, shuffled", (4, 3, 5, 4, 3, 5, 4, 6), "f4", ".permute(3, 7, 1, 5, 0, 6, 4, 2)",
     lambda x: x.transpose(3, 7, 1, 5, 0, 6, 4, 2)),
    ("every second of everything", (64, 64, 64, 16), "f4", "[::2, ::2, ::2, ::2]", lambda x: x[::2, ::2, ::2, ::2]),
    ("as it is 64 KiB", (128, 128), "f4", "", lambda x: x),
    ("as it is 64 MiB", (4096, 4096), "f4", "", lambda x: x),
]


def values(shape, dtype):
    """Random bytes of that many elements."""
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(np.random.default_rng(1).bytes(size), dtype).reshape(shape).copy()


def repeats(once_s):
    return max(1, min(10000, int(SAMPLE_S / max(once_s, 1e-9))))


class Case:
    """One view, ready to be timed both ways."""

    def __init__(self, library, name, shape, dtype, expr, way):
        dtype = np.dtype(dtype)
        self.name, self.expr = f"{name} {dtype.str.lstrip('<|') if dtype.names is None else 'record'}", expr
        self.source = values(shape, dtype)
        pad = isinstance(way, Pad)
        view = None if pad else way(self.source)
        fill = dtype.type(way.value).tobytes() if pad else b""
        self.copier = restride_c.Copier(library, shape, expr, dtype.itemsize, fill, threads=1)
        self.target = values(way.shape(self.source) if pad else view.shape, dtype)
        if pad:
            self.numpy = lambda: way.copy(self.source, self.target)
        else:
            self.numpy = lambda: np.copyto(self.target, view)

    def numpy_s(self, repeat):
        start = time.perf_counter()
        for _ in range(repeat):
            self.numpy()
        return (time.perf_counter() - start) / repeat

    def restride_s(self, repeat):
        return self.copier.run_ns(self.source, self.target, repeat) * 1e-9

    def agree(self):
        self.numpy()
        expect = self.target.tobytes()
        self.target.view(np.uint8).reshape(-1)[:] = 0x5A
        self.restride_s(1)
        return self.target.tobytes() == expect

    def medians(self):
        """Seconds of one copy by NumPy and by restride, taken in turn."""
        both = (self.numpy_s, self.restride_s)
        counts = [repeats(way(1)) for way in both]
        samples, start = ([], []), time.perf_counter()
        while len(samples[0]) < LEAST or len(samples[0]) < MOST and time.perf_counter() - start < BUDGET_S:
            for k in (0, 1) if len(samples[0]) % 2 else (1, 0):
                samples[k].append(both[k](counts[k]))
        return [float(np.median(s)) for s in samples]


def main(words):
    """Prints the table; 1 when a result differs or a view is slower than LIMIT of NumPy's speed."""
    library = restride_c.load()
    slow, wrong = [], []
    print(f"NumPy {np.__version__}, one thread, medians in turn; speed = time of NumPy / time of restride")
    print(f"{'view':34} {'KiB':>7} {'NumPy us':>10} {'restride us':>12} {'speed':>7}  strategy")
    count = 0
    for row in VIEWS:
        if words not in row[0]:
            continue
        case = Case(library, *row)
        count += 1
        if not case.agree():
            wrong.append(case.name)
        theirs, ours = case.medians()
        speed = theirs / ours
        if speed < LIMIT:
            slow.append((case, theirs, ours, speed))
        mark = "" if speed >= LIMIT else f"  BELOW {LIMIT}"
        print(f"{case.name:34} {case.target.nbytes / 1024:7.0f} {theirs * 1e6:10.1f} {ours * 1e6:12.1f} {speed:7.2f}  "
              f"{case.copier.strategy}{mark}", flush=True)
    print(f"{count} views, {len(slow)} below {LIMIT}, {len(wrong)} with wrong results")
    for name in wrong:
        print(f"WRONG RESULT: {name}")
    return 1 if slow or wrong or not count else 0

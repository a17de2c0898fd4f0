#!/usr/bin/env python3
"""Times random views of 64 KiB and more against NumPy's copyto, and lists those below 0.9 of it.

    python3 scripts/numpy_random.py SEED COUNT [DTYPES]

DTYPES is a list such as c16,f8. A view that is slower is measured once more, longer. Needs NumPy and a Rust
toolchain; measure on a quiet machine. Exit code 1 where a result is wrong.
"""

import random
import sys

import own_venv as own

if __name__ == "__main__":
    own.enter("numpy", ["numpy"])

import numpy as np
import numpy_speed as speed
import restride_c

EXTENTS = [2, 3, 4, 5, 7, 8, 16, 31, 32, 64, 100, 128, 224, 256, 300, 512]


def effort(budget_s, most):
    speed.BUDGET_S, speed.MOST, speed.LEAST = budget_s, most, 5


def piece(rng, extent):
    """One axis's part of an index: all, every few, backwards, or a range."""
    kind = rng.random()
    if kind < 0.35:
        return ":"
    if kind < 0.55:
        return f"::{rng.choice([2, 3, 4, 5])}"
    if kind < 0.7:
        return f"::-{rng.choice([1, 1, 2, 3])}"
    start = rng.randrange(max(1, extent // 3))
    return f"{start}:{rng.randrange(max(start + 1, extent // 2), extent + 1)}"


def view(rng, dtypes):
    """Shape, dtype, expression, and the same view of an array in NumPy; None where it is too small or too large."""
    dtype = rng.choice(dtypes)
    size = np.dtype(dtype).itemsize
    total = rng.choice([1 << 17, 1 << 19, 1 << 21, 1 << 22]) // size
    shape = [rng.choice(EXTENTS) for _ in range(rng.choice([2, 2, 3, 3, 4]) - 1)]
    shape.append(max(1, total // int(np.prod(shape))))
    rng.shuffle(shape)
    if not 70_000 <= np.prod(shape) * size <= 20e6:
        return None
    axes = list(range(len(shape)))
    if rng.random() < 0.75:
        rng.shuffle(axes)
    expr = f".permute({', '.join(map(str, axes))})"
    index = ""
    if rng.random() < 0.6:
        index = f"[{', '.join(piece(rng, shape[axis]) for axis in axes)}]"
    way = lambda x: eval("x" + index, {"x": x.transpose(axes)})
    if way(np.empty(shape, dtype)).nbytes < 65536:
        return None
    return tuple(shape), dtype, expr + index, way


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__.strip())
    rng, count = random.Random(int(sys.argv[1])), int(sys.argv[2])
    dtypes = sys.argv[3].split(",") if len(sys.argv) > 3 else "u1 u2 f4 f4 f8 c16 V3 V12".split()
    library = restride_c.load()
    effort(0.15, 15)
    done = below = wrong = 0
    while done < count:
        found = view(rng, dtypes)
        if found is None:
            continue
        shape, dtype, expr, way = found
        case = speed.Case(library, "random", shape, dtype, expr, way)
        if not case.agree():
            wrong += 1
            print("WRONG", shape, dtype, expr)
        theirs, ours = case.medians()
        if theirs < 0.9 * ours:
            effort(0.8, 61)
            theirs, ours = case.medians()
            effort(0.15, 15)
        if theirs < 0.9 * ours:
            below += 1
            print(f"{theirs / ours:.2f} {shape} {dtype} {expr} {case.copier.strategy}, {ours * 1e6:.1f} us")
        done += 1
    print(f"{done} views, {below} below 0.9, {wrong} with wrong results")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()

"""What a view expression means, said with NumPy: `eval("x" + text)` on a `Model` is the whole parser.

A model carries NumPy's own view of the buffer as long as there is one, and beside it the buffer position that
every element reads. Padding has no counterpart in NumPy, so from the first pad on the positions alone are the
truth, and "is this reshape a view" is answered by its definition: some box of the new shape is valid, and some
strides read it.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view

PADDED = -1
MAX_NUMEL = 2**63 - 1


class Refused(Exception):
    """A refusal, with the kind that `--json` prints."""

    def __init__(self, kind):
        super().__init__(kind)
        self.kind = kind


class TooLarge(Exception):
    """More elements than a comparison is worth."""


def spread(args, keywords, *names):
    """A list of integers: spread out, in one tuple, or under one of `names`."""
    if keywords:
        (name, value), = keywords.items()
        if args or name not in names:
            raise TypeError(f"unexpected {name}")
        args = (value,)
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    if not all(type(arg) in (int, bool) for arg in args):
        raise TypeError("integers expected")
    return tuple(args)


def integers(*values):
    if not all(type(value) in (int, bool) for value in values):
        raise TypeError("integers expected")


def pairs(args):
    """One pair per axis, each its own argument or all in one tuple."""
    if len(args) == 1 and all(isinstance(pair, (tuple, list)) for pair in args[0]):
        args = args[0]
    for pair in args:
        first, second = pair
        integers(first, second)
    return [tuple(pair) for pair in args]


def encode(value, dtype):
    """The bytes of a pad value, or a refusal where the type does not hold it."""
    if type(value) not in (int, float, bool):
        raise TypeError("a number expected")
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        if value != value or value in (np.inf, -np.inf) or int(value) != value:
            raise Refused("pad")
        if not info.min <= int(value) <= info.max:
            raise Refused("pad")
        value = int(value)
    return np.array(value, dtype).tobytes()


def fit(pos):
    """Offset and strides that read the valid positions when those fill a box; None when there are none such."""
    valid = pos != PADDED
    where = np.argwhere(valid)
    if len(where) == 0:
        return 0, [0] * pos.ndim
    low, high = where.min(axis=0), where.max(axis=0) + 1
    box = tuple(slice(a, b) for a, b in zip(low, high))
    if not valid[box].all():
        return None
    inner = pos[box]
    first = inner[(0,) * inner.ndim]
    strides = []
    for axis, extent in enumerate(inner.shape):
        second = tuple(1 if a == axis else 0 for a in range(inner.ndim))
        strides.append(int(inner[second] - first) if extent > 1 else 0)
    steps = sum(np.arange(n).reshape([-1 if a == axis else 1 for a in range(inner.ndim)]) * strides[axis]
                for axis, n in enumerate(inner.shape))
    return (int(first), strides) if (inner == first + steps).all() else None


class Model:
    """A view of a buffer of source elements; every operation gives a new one."""

    def __init__(self, view, pos, source, dtype, fill=None, passes=()):
        self.view = view  # NumPy's view of an array of positions; None once it was padded
        self.pos = pos  # the buffer position that every element reads, PADDED for none
        self.source = source  # what each buffer position holds: an index of the source, or -2 - k for fill k
        self.dtype = dtype
        self.fill = fill  # bytes of one element
        self.passes = passes  # models that were copied, in order
        if pos.ndim > 64:
            raise Refused("rank")

    @classmethod
    def of(cls, shape, dtype, order="C"):
        """The array of a .npy file: one that is contiguous in both orders loads as a C array."""
        count = int(np.prod(shape, dtype=np.int64))
        if np.empty(shape, order="F").flags.c_contiguous:
            order = "C"
        # NumPy's strides of fresh empty arrays changed between versions; those after a reshape did not.
        view = np.arange(count + 1)[:count].reshape(shape, order=order)
        return cls(view, view, np.arange(count), np.dtype(dtype))

    @property
    def shape(self):
        return self.pos.shape

    @property
    def padded(self):
        return bool((self.pos == PADDED).any())

    @property
    def contiguous(self):
        if self.padded:
            return False
        flat = self.pos.ravel()
        by_position = len(flat) < 2 or bool((np.diff(flat) == 1).all())
        assert self.view is None or self.view.flags.c_contiguous == by_position
        return by_position

    @property
    def writable(self):
        return not self.padded and len(np.unique(self.pos)) == self.pos.size

    @property
    def offset(self):
        return None if self.padded or self.pos.size == 0 else int(self.pos.flat[0])

    @property
    def strides(self):
        """Elements; None for an axis that no two neighbouring valid positions decide."""
        if self.view is not None:
            return [stride // self.view.itemsize for stride in self.view.strides]
        known = []
        for axis in range(self.pos.ndim):
            lines = np.moveaxis(self.pos, axis, -1)
            before, after = lines[..., :-1], lines[..., 1:]
            both = (before != PADDED) & (after != PADDED)
            steps = np.unique((after - before)[both])
            assert len(steps) < 2, "a padded view with two strides along an axis"
            known.append(int(steps[0]) if len(steps) else None)
        return known

    def values(self):
        """What every element reads, as in `source`, and the fill values that were used."""
        fills = [m.fill for m in [*self.passes, self] if m.padded]
        here = self.source
        if self.padded:
            own = -1 - len(fills)
            flat = here[np.maximum(self.pos, 0)] if len(here) else np.zeros(self.shape, int)
            return np.where(self.pos == PADDED, own, flat), fills
        return here[self.pos], fills

    def copied(self):
        """The same elements in fresh contiguous memory."""
        values, _ = self.values()
        view = np.arange(self.pos.size).reshape(self.shape)
        return Model(view, view, values.ravel(), self.dtype, None, (*self.passes, self))

    def moved(self, operation):
        """An operation that NumPy has as a view of any array."""
        pos = operation(self.pos)
        view = None if self.view is None else operation(self.view)
        if view is not None:
            assert view.size == 0 or np.may_share_memory(view, self.view)
        fill = self.fill if (pos == PADDED).any() else None
        return Model(view, pos, self.source, self.dtype, fill, self.passes)

    def axis(self, axis, ndim=None):
        integers(axis)
        ndim = self.pos.ndim if ndim is None else ndim
        if not -ndim <= axis < ndim:
            raise Refused("axis")
        return axis % ndim

    def axes(self, axes):
        resolved = [self.axis(axis) for axis in axes]
        if len(set(resolved)) < len(resolved):
            raise Refused("axis")
        return resolved

    def __getitem__(self, key):
        items = key if isinstance(key, tuple) else (key,)
        for item in items:
            if isinstance(item, slice):
                if any(type(part) not in (int, type(None)) for part in (item.start, item.stop, item.step)):
                    raise TypeError("slice indices must be integers")
            elif isinstance(item, (list, tuple, bool)):
                raise Refused("index")
            elif item is not None and item is not Ellipsis:
                integers(item)
        if not any(item is Ellipsis for item in items):
            items = (*items, Ellipsis)  # NumPy gives a scalar, not a view, for all axes indexed
        try:
            return self.moved(lambda array: array[items])
        except IndexError:
            raise Refused("index") from None
        except ValueError:
            raise Refused("step") from None

    @property
    def T(self):
        return self.moved(lambda array: array.T)

    @property
    def mT(self):
        if self.pos.ndim < 2:
            raise Refused("axis")
        return self.moved(lambda array: array.mT)

    def permute(self, *args, **keywords):
        axes = spread(args, keywords, "dims", "axes")
        ndim = self.pos.ndim
        if len(axes) != ndim:
            raise Refused("permutation")
        resolved = [self.axis(axis) for axis in axes]
        if len(set(resolved)) < ndim:
            raise Refused("permutation")
        return self.moved(lambda array: np.transpose(array, axes))

    def swapaxes(self, axis1, axis2):
        first, second = self.axis(axis1), self.axis(axis2)
        return self.moved(lambda array: np.swapaxes(array, first, second))

    def transpose(self, dim0, dim1):
        return self.swapaxes(dim0, dim1)

    def moveaxis(self, source, destination):
        source, destination = spread((source,), {}), spread((destination,), {})
        if len(source) != len(destination):
            raise Refused("rank")
        source, destination = self.axes(source), self.axes(destination)
        return self.moved(lambda array: np.moveaxis(array, source, destination))

    def reshaped(self, shape, may_copy):
        count = self.pos.size
        known = [n for n in shape if n != -1]
        if any(n < 0 for n in known) or len(shape) - len(known) > 1:
            raise Refused("shape")
        product = 1
        for n in known:
            product *= n
        if len(known) < len(shape):
            if product == 0 or count % product:
                raise Refused("shape")
            shape = tuple(count // product if n == -1 else n for n in shape)
        elif product != count:
            raise Refused("shape")
        pos = self.pos.reshape(shape)
        expressible = fit(pos) is not None
        view = None
        if self.view is not None:
            try:
                view = self.view.reshape(shape, copy=False)
            except ValueError:
                pass
            assert (view is not None) == expressible, "NumPy and the definition of a view differ"
        if expressible:
            return Model(view, pos, self.source, self.dtype, self.fill, self.passes)
        if not may_copy:
            raise Refused("needs_copy")
        fresh = self.copied()
        view = fresh.view.reshape(shape, copy=False)
        return Model(view, view, fresh.source, self.dtype, None, fresh.passes)

    def reshape(self, *args, **keywords):
        return self.reshaped(spread(args, keywords, "shape"), True)

    def view_as(self, *args, **keywords):
        return self.reshaped(spread(args, keywords, "shape"), False)

    def flatten(self):
        return self.reshaped((self.pos.size,), True)

    def contiguous_copy(self):
        return self if self.contiguous else self.copied()

    def broadcast(self, shape):
        if any(n < 0 for n in shape):
            raise Refused("broadcast")
        sizes = 1
        for n in shape:
            sizes *= max(n, 1)
        own = self.shape
        if len(shape) < len(own) or any(a not in (1, b) for a, b in zip(own[::-1], shape[::-1])):
            raise Refused("broadcast")
        if sizes > MAX_NUMEL:
            raise Refused("overflow")
        if sizes > 1 << 20:
            raise TooLarge
        return self.moved(lambda array: np.broadcast_to(array, shape))

    def broadcast_to(self, *args, **keywords):
        return self.broadcast(spread(args, keywords, "shape"))

    def expand(self, *args):
        sizes = spread(args, {})
        added = len(sizes) - self.pos.ndim
        if added < 0 or any(n < -1 for n in sizes) or any(n == -1 for n in sizes[:added]):
            raise Refused("broadcast")
        return self.broadcast(tuple(self.shape[k - added] if n == -1 else n for k, n in enumerate(sizes)))

    def unsqueeze(self, axis=None, dim=None):
        axis = dim if axis is None else axis
        at = self.axis(axis, self.pos.ndim + 1)
        return self.moved(lambda array: np.expand_dims(array, at))

    def squeeze(self, *args, **keywords):
        if not args and not keywords:
            return self.moved(lambda array: array.squeeze())
        axes = self.axes(spread(args, keywords, "axis", "dim"))
        if any(self.shape[axis] != 1 for axis in axes):
            raise Refused("squeeze")
        return self.moved(lambda array: array.squeeze(tuple(axes)))

    def flip(self, *args, **keywords):
        if not args and not keywords:
            axes = range(self.pos.ndim)
        else:
            axes = self.axes(spread(args, keywords, "axis", "dims"))
        turn = (*(slice(None, None, -1 if axis in axes else 1) for axis in range(self.pos.ndim)), Ellipsis)
        return self.moved(lambda array: array[turn])

    def pad(self, *widths, value=0):
        widths = pairs(widths)
        if len(widths) != self.pos.ndim or any(n < 0 for pair in widths for n in pair):
            raise Refused("pad")
        size = 1
        for extent, (before, after) in zip(self.shape, widths):
            size *= max(extent + before + after, 1)
        if size > MAX_NUMEL:
            raise Refused("overflow")
        if size > 1 << 20:
            raise TooLarge
        value = encode(value, self.dtype)
        if all(pair == (0, 0) for pair in widths):
            return self
        base = self.copied() if self.padded and value != self.fill else self
        pos = np.pad(base.pos, widths, constant_values=PADDED)
        fill = value if (pos == PADDED).any() else None  # padded, yet empty: none
        return Model(None, pos, base.source, self.dtype, fill, base.passes)

    def shrink(self, *ranges):
        ranges = pairs(ranges)
        if len(ranges) != self.pos.ndim:
            raise Refused("shrink")
        if any(not 0 <= a <= b <= extent for (a, b), extent in zip(ranges, self.shape)):
            raise Refused("shrink")
        cut = (*(slice(a, b) for a, b in ranges), Ellipsis)
        return self.moved(lambda array: array[cut])

    def unfold(self, axis, size, step=1):
        axis = self.axis(axis)
        integers(size, step)
        if step < 1 or not 1 <= size <= self.shape[axis]:
            raise Refused("window")
        every = (slice(None),) * axis + (slice(None, None, step),)
        return self.moved(lambda array: sliding_window_view(array, size, axis)[every])

    def diagonal(self, offset=0, axis1=0, axis2=1):
        integers(offset)
        first, second = self.axis(axis1), self.axis(axis2)
        if first == second:
            raise Refused("axis")
        return self.moved(lambda array: np.diagonal(array, offset, first, second))

    def as_strided(self, shape, strides, offset=0):
        shape, strides = spread((shape,), {}), spread((strides,), {})
        integers(offset)
        if any(n < 0 for n in shape):
            raise Refused("shape")
        if len(shape) != len(strides):
            raise Refused("rank")
        base = self.copied() if self.padded else self
        if 0 not in shape:
            ends = [(n - 1) * stride for n, stride in zip(shape, strides)]
            low = offset + sum(end for end in ends if end < 0)
            high = offset + sum(end for end in ends if end > 0)
            if high >= 2**63:
                raise Refused("overflow")
            if low < 0 or high >= len(base.source):
                raise Refused("bounds")
        buffer = np.arange(max(len(base.source), 1))
        start = buffer[offset:] if 0 not in shape else buffer
        size = buffer.itemsize
        if abs(max(strides, default=0, key=abs)) >= 2**59:
            raise TooLarge
        view = as_strided(start, shape, [stride * size for stride in strides])
        return Model(view, view, base.source, self.dtype, None, base.passes)


class Expression:
    """What an expression is written after: the operations of a model under their own names, pieces counted."""

    NAMES = {name: name for name in (
        "T mT permute transpose swapaxes moveaxis reshape flatten broadcast_to expand unsqueeze squeeze flip pad "
        "shrink unfold diagonal as_strided").split()}
    NAMES |= {"view": "view_as", "contiguous": "contiguous_copy"}

    def __init__(self, model, pieces=0):
        self.__model, self.__pieces = model, pieces

    def __do(self, operation):
        try:
            return Expression(operation(), self.__pieces + 1)
        except Refused as refusal:
            refusal.piece, refusal.shape = self.__pieces, self.__model.shape
            raise

    def __getitem__(self, key):
        return self.__do(lambda: self.__model[key])

    def __getattr__(self, name):
        if name not in self.NAMES:
            raise AttributeError(name)
        name = self.NAMES[name]
        if isinstance(getattr(Model, name), property):
            return self.__do(lambda: getattr(self.__model, name))
        return lambda *args, **keywords: self.__do(lambda: getattr(self.__model, name)(*args, **keywords))

    @staticmethod
    def apply(text, model):
        """The model after `text`. Raises `Refused` with the number of the piece and the shape that it met, and
        whatever Python raises for a text that it cannot read."""
        names = {"__builtins__": {}, "inf": np.inf, "nan": np.nan}
        result = eval(f"(x{text}\n)", names, {"x": Expression(model)})
        if not isinstance(result, Expression):
            raise TypeError("a method that is not called")
        return result.__model

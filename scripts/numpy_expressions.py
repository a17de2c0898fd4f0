"""Random view expressions: legal ones of every piece, ones with one fault, and ones that cannot be read."""

from numpy_model import Expression, Model, Refused, TooLarge

LARGEST = 4096
LEGAL = {
    "index": 8, "T": 3, "mT": 2, "permute": 4, "transpose": 2, "swapaxes": 2, "moveaxis": 2, "reshape": 7, "view": 4,
    "flatten": 1, "contiguous": 2, "broadcast_to": 3, "expand": 3, "unsqueeze": 2, "squeeze": 2, "flip": 3, "pad": 4,
    "shrink": 2, "unfold": 3, "diagonal": 3, "as_strided": 2,
}


class Writer:
    """Writes pieces as people do: spread out or in tuples, with keywords, spaces and trailing commas."""

    def __init__(self, random):
        self.random = random

    def maybe(self, share):
        return self.random.random() < share

    def space(self):
        return self.random.choice(["", "", "", "", "", "", " ", "  ", "\n", "\t"])

    def int(self, n):
        text = str(n)
        if n >= 0 and self.maybe(0.02):
            text = "+" + text
        elif 10 <= n < 100 and self.maybe(0.1):
            text = text[0] + "_" + text[1]
        return text

    def tuple(self, numbers):
        texts = [self.space() + self.int(n) + self.space() for n in numbers]
        open_, close = ("[", "]") if self.maybe(0.1) else ("(", ")")
        comma = "," if texts and (len(texts) == 1 or self.maybe(0.1)) else ""
        return open_ + ",".join(texts) + comma + close

    def call(self, name, args):
        comma = "," if args and self.maybe(0.08) else ""
        separator = "," + self.random.choice(["", " ", " ", " ", "  "])
        return f".{name}({self.space()}{separator.join(args)}{comma}{self.space()})"

    def list(self, name, numbers, keyword=None):
        """A list of integers: spread, in one tuple, or under a keyword."""
        if keyword and self.maybe(0.15):
            return self.call(name, [f"{keyword}={self.tuple(numbers)}"])
        if self.maybe(0.3) or not numbers:
            return self.call(name, [self.tuple(numbers)])
        return self.call(name, [self.int(n) for n in numbers])

    def named(self, name, values):
        """Positional arguments up to some place, keywords from there on."""
        first = self.random.randrange(len(values) + 1) if self.maybe(0.4) else len(values)
        args = [text for _, text in values[:first]]
        rest = values[first:]
        self.random.shuffle(rest)
        return self.call(name, args + [f"{key}={text}" for key, text in rest])


class Generator:
    """Expressions from one seeded source of randomness."""

    def __init__(self, random):
        self.random = random
        self.write = Writer(random)

    def shape(self):
        r = self.random
        if r.random() < 0.03:  # high rank
            return [r.choice([1, 1, 2]) if k < 9 else 1 for k in range(r.randint(7, 20))]
        while True:
            extents = [r.choice([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 12, 16]) for _ in range(
                r.choice([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6]))]
            if 0 in extents and r.random() < 0.6:
                continue
            size = 1
            for n in extents:
                size *= n
            if size <= 1500:
                return extents

    def axis(self, ndim):
        axis = self.random.randrange(ndim)
        return axis - ndim if self.write.maybe(0.4) else axis

    def outside(self, ndim):
        """No axis of so many."""
        return self.random.choice([ndim, ndim + 1, -ndim - 1, -ndim - 7, 10**20])

    def factors(self, count):
        """A shape of `count` elements."""
        if count == 0:
            return self.shuffled([0] + [self.random.randint(0, 4) for _ in range(self.random.randint(0, 3))])
        left, shape = count, []
        while left > 1 and len(shape) < 8:
            divisors = [d for d in range(2, min(left, 64) + 1) if left % d == 0]
            if not divisors or self.write.maybe(0.2):
                break
            shape.append(self.random.choice(divisors))
            left //= shape[-1]
        if left > 1:
            shape.append(left)
        shape += [1] * self.random.choice([0, 0, 0, 1, 2])
        return self.shuffled(shape)

    def shuffled(self, items):
        self.random.shuffle(items)
        return items

    def new_shape(self, shape, count):
        if self.write.maybe(0.25) and shape:  # split or merge neighbours: often a view of an uneven layout
            at = self.random.randrange(len(shape))
            if self.write.maybe(0.5):
                sizes = [*shape[:at], *self.factors(shape[at]), *shape[at + 1:]]
            else:
                merged = 1
                for n in shape[at:at + 2]:
                    merged *= n
                sizes = [*shape[:at], merged, *shape[at + 2:]]
        else:
            sizes = self.factors(count)
        if sizes and self.write.maybe(0.4):
            product = 1
            at = self.random.randrange(len(sizes))
            for k, n in enumerate(sizes):
                product *= 1 if k == at else n
            if product:
                sizes[at] = -1
        return sizes

    def bound(self, extent):
        r = self.random
        if r.random() < 0.25:
            return ""
        if r.random() < 0.03:
            return str(r.choice([10**20, -(10**20)]))
        return str(r.randint(-extent - 2, extent + 2))

    def slice(self, extent):
        r, s = self.random, self.write.space
        text = f"{self.bound(extent)}{s()}:{s()}{self.bound(extent)}"
        if r.random() < 0.5:
            text += ":" + r.choice(["", "1", "2", "3", "-1", "-1", "-2", "-3", "7", "-9"])
        return text

    def index(self, shape):
        r = self.random
        items, left, ellipsis = [], list(shape), False
        for _ in range(r.randint(1, len(shape) + 2)):
            kind = r.random()
            if kind < 0.15:
                items.append("None")
            elif kind < 0.25 and not ellipsis:
                items.append("...")
                ellipsis = True
                for _ in range(r.randint(0, len(left))):
                    left.pop(0)
            elif left and kind < 0.4 and left[0] > 0:
                # After an ellipsis the axis is not known: an index that every axis has.
                extent = min(shape) if ellipsis else left[0]
                left.pop(0)
                items.append(self.write.int(r.randint(-extent, extent - 1)) if extent else ":")
            elif left:
                items.append(self.slice(left.pop(0)))
        if not items:
            items = ["..."]
        comma = "," if self.write.maybe(0.08) else ""
        return f"[{self.write.space()}{(',' + self.write.space()).join(items)}{comma}]"

    def broadcast(self, shape):
        r = self.random
        sizes = [r.choice([1, 2, 3, 5, 0]) if n == 1 and r.random() < 0.8 else n for n in shape]
        return [r.choice([1, 2, 3]) for _ in range(r.choice([0, 0, 1, 1, 2]))] + sizes

    def pad_value(self, dtype):
        whole = ["0", "0", "1", "7", "1.0", "100", "1e1", "True", "1_0", "0.0", "False", "+3"]
        signed = ["-1", "-3", "-0.0", "-1e2"] if dtype.kind != "u" else []
        floats = ["0.5", "-1.25e-3", "inf", "-inf", "1e300", ".5", "3."] if dtype.kind in "fc" else []
        return self.random.choice(whole + signed + floats)

    def legal(self, name, model):
        """The text of one piece, most likely legal on `model`; None where there is none such."""
        r, w, shape = self.random, self.write, model.shape
        ndim, text = len(shape), self.write.int
        if name in ("T", "mT"):
            return "." + name
        if name in ("flatten", "contiguous"):
            return w.call(name, [])
        if name == "index":
            return self.index(shape)
        if name == "permute":
            order = self.shuffled(list(range(ndim)))
            return w.list(name, [a - ndim if w.maybe(0.3) else a for a in order], "dims")
        if name in ("transpose", "swapaxes") and ndim:
            names = ("dim0", "dim1") if name == "transpose" else ("axis1", "axis2")
            return w.named(name, [(n, text(self.axis(ndim))) for n in names])
        if name == "moveaxis" and ndim:
            count = r.randint(1, ndim)
            both = [r.sample(range(ndim), count), [a - ndim for a in r.sample(range(ndim), count)]]
            texts = [text(a[0]) if count == 1 and w.maybe(0.7) else w.tuple(a) for a in both]
            return w.named(name, list(zip(("source", "destination"), texts)))
        if name in ("reshape", "view"):
            sizes = self.new_shape(shape, model.pos.size)
            return w.list(name, sizes, "shape" if name == "reshape" else None)
        if name == "broadcast_to":
            return w.list(name, self.broadcast(shape), "shape")
        if name == "expand":
            sizes = self.broadcast(shape)
            added = len(sizes) - ndim
            sizes = [-1 if k >= added and w.maybe(0.3) and n == shape[k - added] else n for k, n in enumerate(sizes)]
            return w.list(name, sizes)
        if name == "unsqueeze":
            return w.named(name, [(r.choice(["axis", "dim"]), text(self.axis(ndim + 1)))])
        if name == "squeeze":
            ones = [a for a, n in enumerate(shape) if n == 1]
            if not ones or w.maybe(0.3):
                return w.call(name, [])
            return w.list(name, [a - ndim if w.maybe(0.3) else a for a in r.sample(ones, r.randint(1, len(ones)))], "axis")
        if name == "flip":
            if not ndim or w.maybe(0.3):
                return w.call(name, [])
            return w.list(name, [a - ndim if w.maybe(0.3) else a for a in r.sample(range(ndim), r.randint(1, ndim))], "axis")
        if name in ("pad", "shrink") and ndim:
            if name == "pad":
                widths = [(0, 0) if w.maybe(0.4) else (r.randint(0, 3), r.randint(0, 3)) for _ in shape]
            else:
                widths = [sorted((r.randint(0, n), r.randint(0, n))) if w.maybe(0.6) else (0, n) for n in shape]
            texts = [w.tuple(pair) for pair in widths]
            if w.maybe(0.15):
                texts = ["(" + ", ".join(texts) + ",)"]
            if name == "pad" and w.maybe(0.7):
                texts.append("value=" + self.pad_value(model.dtype))
            return w.call(name, texts)
        if name == "unfold" and any(shape):
            axis = r.choice([a for a, n in enumerate(shape) if n])
            size = r.randint(1, min(shape[axis], 5))
            values = [("axis", text(axis - ndim if w.maybe(0.4) else axis)), ("size", text(size))]
            if w.maybe(0.7):
                values.append(("step", text(r.randint(1, 4))))
            return w.named(name, values)
        if name == "diagonal" and ndim > 1:
            values = [("offset", text(r.randint(-3, 3)))]
            if w.maybe(0.6):
                a, b = r.sample(range(ndim), 2)
                values += [("axis1", text(a - ndim if w.maybe(0.4) else a)), ("axis2", text(b))]
            return w.named(name, values[:r.choice([0, 1, 3])])
        if name == "as_strided" and len(model.source):
            return self.as_strided(len(model.pos.ravel()) if model.padded else len(model.source))
        return None

    def as_strided(self, count, leave=False):
        r, w = self.random, self.write
        shape = [r.randint(1, 5) for _ in range(r.randint(0, 3))]
        strides = [r.choice([0, 1, 1, 2, 3, 5, -1, -2]) for _ in shape]
        low = sum((n - 1) * s for n, s in zip(shape, strides) if s < 0)
        high = sum((n - 1) * s for n, s in zip(shape, strides) if s > 0)
        slack = count - 1 - (high - low)
        if leave:
            offset = r.choice([-low - 1 - r.randint(0, 3), count - high + r.randint(0, 3)])
        elif slack < 0:
            return None
        else:
            offset = -low + r.randint(0, slack)
        values = [("shape", w.tuple(shape)), ("strides", w.tuple(strides)), ("offset", w.int(offset))]
        return w.named("as_strided", values)

    def piece(self, model):
        """One legal piece and the model after it."""
        while True:
            name = self.random.choices(list(LEGAL), LEGAL.values())[0]
            text = self.legal(name, model)
            if text is None:
                continue
            try:
                after = Expression.apply(text, model)
            except (Refused, TooLarge):
                continue
            if after.pos.size <= LARGEST and len(after.source) <= LARGEST:
                return name, text, after

    def fault(self, model):
        """The text of a piece that `model` refuses."""
        r, w, shape = self.random, self.write, model.shape
        ndim, count, text = len(shape), model.pos.size, self.write.int
        outside = self.outside(ndim)
        axis = self.axis(ndim) if ndim else 0
        large = [a for a, n in enumerate(shape) if n != 1]
        full = [str(n) for n in shape]
        choices = [
            w.list("permute", list(range(ndim - 1))) if ndim > 1 else "[0, 0]",
            w.list("permute", [0] * max(ndim, 2)) if ndim else "[0]",
            w.list("permute", [*range(1, ndim), outside]) if ndim else "[0]",
            w.call(r.choice(["transpose", "swapaxes"]), [text(axis), text(outside)]),
            w.call("moveaxis", [text(outside), text(axis)]),
            w.call("moveaxis", [w.tuple([axis, axis]), "(0, 1)"]),
            w.call("moveaxis", ["(0,)", "(0, 1)"]) if ndim > 1 else "[0, 0, 0]",
            "[" + ", ".join(["0"] * (ndim + 1)) + "]",
            "[" + r.choice([":", "..."]) + ", ..., ...]",
            f"[{r.choice([shape[0], -shape[0] - 1, 10**20, -(10**20)])}]" if ndim else "[0]",
            "[" + r.choice(["::0", "1:2:0", "None, ::-0"]) + "]" if ndim else "[0]",
            r.choice(["[[0, 1]]", "[[True, False]]", "[True]", "[[0], 0]", "[(0, 1),]", "[[]]", "[..., False]"]),
            w.list(r.choice(["reshape", "view"]), [-1, *self.factors(count), -1]),
            w.list(r.choice(["reshape", "view"]), [count + r.randint(1, 5)]),
            w.list(r.choice(["reshape", "view"]), [count + 1, -1]),
            w.list(r.choice(["reshape", "view"]), [-2, *self.factors(count)]),
            w.list("reshape", [0, -1]),
            w.list("view", self.new_shape(shape, count)),
            w.list("broadcast_to", shape[1:]) if ndim else w.list("broadcast_to", [-1]),
            w.list("broadcast_to", [n + 2 if n != 1 else -3 for n in shape] or [-2]),
            w.list("expand", [-1, *shape]),
            w.list("expand", [n + 1 for n in shape] + [2]),
            w.list("broadcast_to", [2**40, 2**40, *shape]),
            w.call("unsqueeze", [text(r.choice([ndim + 1, -ndim - 2]))]),
            w.call("squeeze", [text(r.choice(large)) if large else text(outside)]),
            w.call("squeeze", [text(outside)]),
            w.call("flip", [text(outside)]),
            w.call("flip", [text(axis), text(axis)]),
            w.call("pad", [w.tuple((0, 0))] * (ndim + 1)),
            w.call("pad", [w.tuple((0, 1))] * (ndim - 1) + [w.tuple((-1, 0))]) if ndim else "[0]",
            w.call("pad", [w.tuple((0, 1))] * ndim + ["value=" + r.choice(["300", "-1", "0.5", "1e20", "nan", "99999"])]),
            w.call("shrink", [w.tuple((0, n)) for n in (*shape, 1)]),
            w.call("shrink", [w.tuple((0, n)) for n in shape[1:]] + [w.tuple((1, 0))]) if ndim else "[0]",
            w.call("shrink", [w.tuple((0, n + 1)) for n in shape]),
            w.call("shrink", [w.tuple((-1, n)) for n in shape]),
            w.call("unfold", [text(axis), text(shape[axis] + 1), "1"]) if ndim else w.call("unfold", ["0", "1"]),
            w.call("unfold", [text(axis), "1", text(r.choice([0, -1]))]),
            w.call("unfold", [text(axis), text(r.choice([0, -1]))]),
            w.call("unfold", [text(outside), "1"]),
            w.call("diagonal", ["0", text(axis), text(axis)]),
            w.call("diagonal", ["0", text(outside), text(axis)]),
            w.call("as_strided", ["(2, 2)", "(1,)", "0"]),
            w.call("as_strided", ["(2, -2)", "(1, 1)", "0"]),
            w.call("as_strided", [f"({', '.join(full)},)" if full else "(1,)", "(1,)" if ndim != 1 else "()", "0"]),
            self.as_strided(len(model.source), leave=True),
            self.as_strided(len(model.source), leave=True),
            f".as_strided((2,), ({2**63 - 1},), 1)",
            ".mT",
        ]
        return r.choice(choices)

    def unread(self, text):
        """A text that cannot be read: `text` with one thing wrong."""
        r = self.random
        at = r.randrange(len(text) + 1)
        return r.choice([
            text + r.choice([".reshap(2)", ".t", ".T()", ".permute", "[]", "[1:2", "(0)", ".reshape(2, 'a')", "..T", "[:::]",
                             ".unfold(0, 3, window=2)", ".transpose(0)", ".pad(1)", ".squeeze(axis=0, axis=0)", "[1 2]",
                             ".flip(axes=0, 1)", ".T.", ".moveaxis(0)", ".contiguous(1)", ".flatten(0)", ".as_strided((2,))",
                             ".diagonal(0, 1, 2, 3)", ".reshape(1.5)", "[1.0]", "['a']", ".pad((1, 1, 1))", "@", "[0x]",
                             ".expand(None)", ".unsqueeze()", ".broadcast_to(2, shape=(3,))", ".shrink((0, 1), value=3)"]),
            text[:at] + r.choice(["(", ")", "]", "$", "'", ",,", "=="]) + text[at:],
            r.choice(["x", "1", "T", "#"]) + text,
        ])

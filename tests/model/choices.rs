//! Operations and layouts made from a stream of numbers: the same generator under proptest and under a fuzzer.

use restride::Layout;
use restride::expr::Op;
use restride::layout::Index;

/// A stream of choices; an exhausted one answers 0 for ever.
pub struct Choices<'a> {
    bytes: std::slice::Iter<'a, u8>,
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter() }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.len() == 0
    }

    pub fn byte(&mut self) -> u8 {
        self.bytes.next().copied().unwrap_or(0)
    }

    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: usize) -> usize {
        self.byte() as usize % n.max(1)
    }

    fn signed(&mut self, low: isize, high: isize) -> isize {
        low + self.below((high - low + 1) as usize) as isize
    }

    /// One in `n` times.
    fn rarely(&mut self, n: usize) -> bool {
        self.below(n) == n - 1
    }

    /// A shape of few positions.
    pub fn shape(&mut self, max_axes: usize, max_extent: usize) -> Vec<usize> {
        let n = self.below(max_axes + 1);
        let mut shape: Vec<usize> = (0..n).map(|_| 1 + self.below(max_extent)).collect();
        if self.rarely(12) && n > 0 {
            let at = self.below(n);
            shape[at] = 0;
        }
        shape
    }

    fn axis(&mut self, ndim: usize) -> isize {
        let n = ndim as isize;
        if self.rarely(24) {
            self.signed(-n - 2, n + 1)
        } else {
            self.below(ndim.max(1)) as isize - if self.rarely(3) { n } else { 0 }
        }
    }

    fn permutation(&mut self, n: usize) -> Vec<isize> {
        let mut axes: Vec<isize> = (0..n as isize).collect();
        for k in (1..n).rev() {
            let other = self.below(k + 1);
            axes.swap(k, other);
        }
        axes
    }

    /// Some of the axes, in any order.
    fn some_axes(&mut self, ndim: usize) -> Vec<isize> {
        let mut axes = self.permutation(ndim);
        axes.truncate(self.below(ndim + 1));
        if self.rarely(24) {
            axes.push(self.axis(ndim));
        }
        axes
    }

    fn bound(&mut self, extent: usize) -> Option<isize> {
        let n = extent as isize;
        match self.below(8) {
            0..3 => None,
            3 => Some(self.signed(-n - 2, n + 2)),
            4 if self.rarely(16) => Some([isize::MIN, isize::MAX][self.below(2)]),
            _ => Some(self.signed(0, n)),
        }
    }

    fn index(&mut self, shape: &[usize]) -> Vec<Index> {
        let mut items = Vec::new();
        let mut axis = 0;
        let mut dots = false;
        while axis < shape.len() && !self.rarely(8) {
            let extent = shape[axis];
            match self.below(10) {
                1 => items.push(Index::NewAxis),
                0 if !dots && !self.is_empty() => {
                    items.push(Index::Ellipsis);
                    dots = true;
                    axis += self.below(shape.len() - axis + 1);
                }
                2 if extent > 0 => {
                    let i = self.below(extent) as isize;
                    items.push(Index::At(if self.rarely(2) { i - extent as isize } else { i }));
                    axis += 1;
                }
                3 if self.rarely(4) => {
                    items.push(Index::At(self.signed(-(extent as isize) - 2, extent as isize + 1)));
                    axis += 1;
                }
                _ => {
                    let (start, stop) = (self.bound(extent), self.bound(extent));
                    let step = match self.below(8) {
                        0 => self.signed(-4, 4),
                        1 if self.rarely(16) => [isize::MIN, isize::MAX][self.below(2)],
                        2 => -1,
                        3 => 2,
                        4 => -2,
                        _ => 1,
                    };
                    items.push(Index::Slice { start, stop, step });
                    axis += 1;
                }
            }
        }
        items
    }

    /// Another shape of as many positions, by dividing and joining; a wrong one now and then.
    pub fn reshaped(&mut self, shape: &[usize]) -> Vec<isize> {
        let mut sizes: Vec<isize> = shape.iter().map(|&extent| extent as isize).collect();
        for _ in 0..1 + self.below(3) {
            let n = sizes.len();
            match self.below(4) {
                0 if n > 1 => {
                    let at = self.below(n - 1);
                    let joined = sizes.remove(at + 1) * sizes[at];
                    sizes[at] = joined;
                }
                1 if n > 0 => {
                    let at = self.below(n);
                    let divisors: Vec<isize> =
                        (1..=sizes[at].min(64)).filter(|d| sizes[at] % d == 0).collect();
                    if !divisors.is_empty() {
                        let d = divisors[self.below(divisors.len())];
                        sizes[at] /= d;
                        sizes.insert(at + self.below(2), d);
                    }
                }
                2 => {
                    let at = self.below(n + 1);
                    sizes.insert(at, 1);
                }
                _ => sizes.retain(|&size| size != 1),
            }
        }
        if self.rarely(4) && !sizes.is_empty() {
            let at = self.below(sizes.len());
            sizes[at] = -1;
        }
        if self.rarely(24) {
            sizes.push(self.signed(-2, 3));
        }
        sizes
    }

    /// An operation that fits a view of `shape`, most of the time.
    pub fn op(&mut self, shape: &[usize], buffer_len: usize) -> Op {
        let n = shape.len();
        match self.below(20) {
            0..4 => Op::Index(self.index(shape)),
            4 => Op::T,
            5 => Op::Mt,
            6 => Op::Permute(if self.rarely(16) { self.some_axes(n) } else { self.permutation(n) }),
            7 => Op::Transpose(self.axis(n), self.axis(n)),
            8 => {
                let (from, mut to) = (self.some_axes(n), self.permutation(n));
                to.truncate(if self.rarely(16) { n } else { from.len() });
                Op::Moveaxis(from, to)
            }
            9 => Op::Reshape(self.reshaped(shape)),
            10 => {
                if self.rarely(2) {
                    Op::Flatten
                } else {
                    Op::View(self.reshaped(shape))
                }
            }
            11 => {
                let mut to: Vec<isize> = shape
                    .iter()
                    .map(|&extent| if extent == 1 { self.signed(0, 3) } else { extent as isize })
                    .collect();
                for _ in 0..self.below(2) {
                    to.insert(0, self.signed(1, 3));
                }
                if self.rarely(24) {
                    to.push(self.signed(-1, 3));
                }
                Op::BroadcastTo(to)
            }
            12 => {
                let mut to: Vec<isize> =
                    shape.iter().map(|&extent| if extent == 1 && self.rarely(2) { 2 } else { -1 }).collect();
                for _ in 0..self.below(2) {
                    let least = if self.rarely(16) { -2 } else { 1 };
                    to.insert(0, self.signed(least, 2));
                }
                Op::Expand(to)
            }
            13 => {
                if self.rarely(2) {
                    Op::Unsqueeze(self.axis(n + 1))
                } else if self.rarely(2) {
                    Op::Squeeze(None)
                } else {
                    let ones: Vec<isize> = (0..n).filter(|&a| shape[a] == 1).map(|a| a as isize).collect();
                    Op::Squeeze(Some(if self.rarely(12) { self.some_axes(n) } else { ones }))
                }
            }
            14 => Op::Flip(if self.rarely(3) { None } else { Some(self.some_axes(n)) }),
            15 | 16 => {
                let count = if self.rarely(32) { n + 1 } else { n };
                let widths = (0..count)
                    .map(|_| if self.rarely(2) { (self.signed(0, 2), self.signed(0, 2)) } else { (0, 0) })
                    .collect();
                Op::Pad {
                    widths,
                    value: ["0", "7", "-1"][self.below(3) * usize::from(self.rarely(4))].into(),
                }
            }
            17 => {
                let ranges = shape
                    .iter()
                    .map(|&extent| {
                        let from = self.below(extent + 1);
                        let to = from + self.below(extent - from + 1);
                        (from as isize, to as isize + isize::from(self.rarely(32)))
                    })
                    .collect();
                Op::Shrink(ranges)
            }
            18 => {
                if self.rarely(3) {
                    let reach = shape.iter().copied().max().unwrap_or(0) as isize;
                    let offset = self.signed(-reach - 1, reach + 1);
                    Op::Diagonal(offset / (1 + self.below(3) as isize), self.axis(n), self.axis(n))
                } else {
                    let a = self.axis(n);
                    let own = if a < 0 { a + n as isize } else { a };
                    let extent = shape.get(own as usize).copied().unwrap_or(1) as isize;
                    let size = if self.rarely(24) {
                        self.signed(-1, extent + 1)
                    } else {
                        self.signed(1, extent.max(1))
                    };
                    Op::Unfold(a, size, if self.rarely(24) { 0 } else { self.signed(1, 3) })
                }
            }
            _ => {
                if self.rarely(4) {
                    return Op::Contiguous;
                }
                let shape: Vec<isize> = self.shape(3, 4).iter().map(|&extent| extent as isize).collect();
                let strides = shape.iter().map(|_| self.signed(-3, 5)).collect();
                let offset = self.below(buffer_len.clamp(1, 256)) as isize - isize::from(self.rarely(16));
                Op::AsStrided { shape, strides, offset }
            }
        }
    }

    /// A layout of `shape` that reaches no index twice, and the length of a buffer that holds it.
    pub fn destination(&mut self, shape: &[usize]) -> (Layout, usize) {
        let mut strides = vec![0isize; shape.len()];
        let mut span = 1isize; // indices that the axes placed so far span
        for a in self.permutation(shape.len()) {
            let a = a as usize;
            // Most of the time as tight as can be, so that runs, transposes and scatters all come up.
            let stride = span + if self.rarely(4) { self.signed(0, 3) } else { 0 };
            strides[a] = if self.rarely(5) { -stride } else { stride };
            span += stride * (shape[a].max(1) as isize - 1);
        }
        let low: isize =
            shape.iter().zip(&strides).map(|(&n, &s)| (s * (n.max(1) as isize - 1)).min(0)).sum();
        let front = self.signed(0, 3);
        let len = span + front + self.signed(0, 3);
        (Layout::new(shape, &strides, front - low).unwrap(), len as usize)
    }
}

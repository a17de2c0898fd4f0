//! The covering set: copies of every kind, each run with one level and compared with the oracle byte
//! by byte, its buffers between pages that fault on touch. Shared by the tests and `restride verify`.

use super::kernels::{Guarded, Place};
use super::nest::{self, Buffers};
use super::options::CopyOptions;
use super::plan::Plan;
use super::reference;
use crate::Error;
use crate::layout::fuse;

/// One copy: extents, strides in elements on both sides, element size in bytes, and where the buffers lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Extents.
    pub shape: Vec<usize>,
    /// Source strides in elements.
    pub src: Vec<isize>,
    /// Destination strides in elements; no two positions share an element.
    pub dst: Vec<isize>,
    /// Bytes of one element.
    pub size: usize,
    /// Where the source and the destination lie between their guard pages.
    pub place: (Place, Place),
}

impl Case {
    /// A row-major destination for a permuted row-major source.
    pub fn permuted(source: &[usize], axes: &[usize], size: usize, place: (Place, Place)) -> Self {
        let strides = row_major(source);
        let shape: Vec<usize> = axes.iter().map(|&a| source[a]).collect();
        let dst = row_major(&shape);
        Self { src: axes.iter().map(|&a| strides[a]).collect(), dst, shape, size, place }
    }
}

/// A seeded stream of cases over whole layouts: up to five axes in any order on both sides, steps,
/// reversals and broadcasts in the source, gaps and reversals in the destination, any element size up to
/// 24 bytes, any alignment.
#[derive(Debug, Clone)]
pub struct Cases {
    state: u64,
}

/// Elements that a random case reaches at most, on each side.
const MOST_ELEMENTS: usize = 20_000;

/// Bytes that a random case spans at most, on each side.
pub const MOST_BYTES: usize = MOST_ELEMENTS * 24 * 8;

impl Cases {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    fn order(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for k in (1..n).rev() {
            order.swap(k, self.below(k + 1));
        }
        order
    }

    /// Strides that visit the axes in `order`, outermost first, with a step per axis (0 for a broadcast).
    fn strides(shape: &[usize], order: &[usize], steps: &[isize]) -> Vec<isize> {
        let mut strides = vec![0; shape.len()];
        let mut unit = 1isize;
        for &axis in order.iter().rev() {
            strides[axis] = unit * steps[axis];
            unit *= shape[axis].max(1) as isize * steps[axis].abs().max(1);
        }
        strides
    }

    fn place(&mut self) -> Place {
        let skew = self.below(65);
        if self.below(2) == 0 { Place::Front(skew) } else { Place::Back(skew % 4 * (skew / 4)) }
    }
}

impl Iterator for Cases {
    type Item = Case;

    fn next(&mut self) -> Option<Case> {
        let axes = 1 + self.below(5);
        let mut shape = Vec::with_capacity(axes);
        let mut elements = 1;
        for _ in 0..axes {
            let most = MOST_ELEMENTS / elements;
            let extent = match self.below(4) {
                0 => 1 + self.below(4),
                1 => 1 + self.below(20),
                2 => self.one_of(&[2, 3, 4, 8, 15, 16, 17, 31, 32, 33, 64, 100, 128]),
                _ => 1 + self.below(300),
            };
            shape.push(extent.min(most));
            elements *= extent.min(most);
        }
        let size = match self.below(3) {
            0 => 1 + self.below(24),
            _ => self.one_of(&[1, 2, 4, 8, 16]),
        };
        let steps = |choices: &[isize], cases: &mut Self| -> Vec<isize> {
            let mut room = 8;
            let mut step = || {
                let step = if cases.below(3) == 0 { cases.one_of(choices) } else { 1 };
                if step.unsigned_abs() > room {
                    step.signum()
                } else {
                    room /= step.unsigned_abs().max(1);
                    step
                }
            };
            (0..axes).map(|_| step()).collect()
        };
        let (src_steps, dst_steps) = (steps(&[0, -1, 2, 3, 4, -2, -3], self), steps(&[-1, -1, 2, 3], self));
        let (src_order, dst_order) = (self.order(axes), self.order(axes));
        let dst_order = if self.below(3) == 0 { dst_order } else { (0..axes).collect() };
        Some(Case {
            src: Self::strides(&shape, &src_order, &src_steps),
            dst: Self::strides(&shape, &dst_order, &dst_steps),
            shape,
            size,
            place: (self.place(), self.place()),
        })
    }
}

/// Strides of a dense row-major buffer.
pub fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1) as isize;
    }
    strides
}

/// Smallest and largest reachable element, counted from the first position.
fn reach(shape: &[usize], strides: &[isize]) -> (isize, isize) {
    let (mut low, mut high) = (0, 0);
    for (&extent, &stride) in shape.iter().zip(strides) {
        let far = stride * (extent.max(1) as isize - 1);
        if far < 0 { low += far } else { high += far }
    }
    (low, high)
}

/// Two guarded buffers and the room to work out what is expected.
pub struct Bench {
    src: Guarded,
    dst: Guarded,
    expected: Vec<u8>,
}

/// Bytes that no copy may change.
const CANARY: u8 = 0xA5;

impl Bench {
    /// Buffers for cases that span at most `bytes` bytes on each side.
    ///
    /// # Errors
    /// `Alloc` when the pages cannot be had.
    pub fn new(bytes: usize) -> Result<Self, Error> {
        let mut src = Guarded::new(bytes)?;
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        for byte in src.bytes_mut() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
        Ok(Self { src, dst: Guarded::new(bytes)?, expected: Vec::new() })
    }

    /// Runs one case with these options and compares every byte of the destination's pages that lie
    /// within reach.
    ///
    /// # Errors
    /// What the planner refuses, as it is; a wrong byte as a sentence in `Ok(Some(..))`.
    pub fn check(&mut self, case: &Case, options: &CopyOptions) -> Result<Option<String>, Error> {
        let size = case.size;
        let empty = case.shape.contains(&0);
        let (src_low, src_high) = if empty { (0, -1) } else { reach(&case.shape, &case.src) };
        let (dst_low, dst_high) = if empty { (0, -1) } else { reach(&case.shape, &case.dst) };
        let src_bytes = (src_high - src_low + 1) as usize * size;
        let dst_bytes = (dst_high - dst_low + 1) as usize * size;
        let src_start = self.src.start(case.place.0, src_bytes);
        let dst_start = self.dst.start(case.place.1, dst_bytes);
        let window = dst_start.saturating_sub(128)..(dst_start + dst_bytes + 128).min(self.dst.len());

        self.expected.clear();
        self.expected.resize(window.len(), CANARY);
        let src_at = src_start as isize - src_low * size as isize;
        let dst_at = (dst_start - window.start) as isize - dst_low * size as isize;
        reference::strided(
            &case.shape,
            (&case.src, src_at, self.src.bytes()),
            (&case.dst, dst_at, &mut self.expected),
            size,
        );

        self.dst.bytes_mut()[window.clone()].fill(CANARY);
        let mut fused = fuse::Fused::default();
        fuse::fuse_raw(&mut fused, &case.shape, (&case.src, -src_low), (&case.dst, -dst_low), size)?;
        let misaligned = (self.dst.bytes().as_ptr().addr() + dst_start) % 64;
        let plan = Plan::of_fused(&mut fused, size, misaligned, options)?;
        let src = self.src.bytes()[src_start..].as_ptr();
        let dst = self.dst.bytes_mut()[dst_start..].as_mut_ptr();
        // SAFETY: offsets count from the lowest reachable element, and `src_bytes` and `dst_bytes`
        // bytes lie behind the two pointers; the buffers are distinct; nothing is padded.
        unsafe { nest::execute(&plan, Buffers { src, dst, fill: std::ptr::null() }) };

        let got = &self.dst.bytes()[window.clone()];
        if *got == *self.expected {
            return Ok(None);
        }
        let at = got.iter().zip(&self.expected).position(|(g, e)| g != e).unwrap_or(0);
        let byte = (window.start + at) as isize - dst_start as isize;
        Ok(Some(format!(
            "byte {byte} of the destination is {:#x}, expected {:#x}: {case:?}\n{plan}",
            got[at], self.expected[at]
        )))
    }
}

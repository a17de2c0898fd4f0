//! Cutting the positions of a view into boxes that fit into memory.
#![forbid(unsafe_code)]

use smallvec::SmallVec;

/// A box of positions: `from..to` of each axis, none of them empty.
pub(super) type Cut = SmallVec<[(usize, usize); 6]>;

/// All boxes of one cutting, slowest axis first.
///
/// The axes before the split axis are cut into single indices, the split axis into even steps, the axes
/// after it not at all. In a memory that holds the axes in the given order, each box is one dense range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bands {
    shape: SmallVec<[usize; 6]>,
    /// All axes, slowest first.
    order: SmallVec<[usize; 6]>,
    /// Position in `order` of the axis that is cut into steps.
    split: usize,
    step: usize,
}

impl Bands {
    /// Cuts `shape` (no extent 0) into boxes of at most `elements` positions, at least one.
    pub(super) fn new(shape: &[usize], order: &[usize], elements: usize) -> Self {
        let elements = elements.max(1);
        let mut split = order.len();
        let mut inner = 1usize;
        let mut step = 1;
        // From the fastest axis outwards, as long as whole axes fit.
        while split > 0 {
            let extent = shape[order[split - 1]];
            split -= 1;
            if inner.saturating_mul(extent) > elements || split == 0 {
                let most = (elements / inner).clamp(1, extent);
                // Even steps: no small rest at the end.
                step = extent.div_ceil(extent.div_ceil(most));
                break;
            }
            inner *= extent;
        }
        Bands { shape: shape.into(), order: order.into(), split, step }
    }

    /// The largest box.
    pub(super) fn largest(&self) -> Cut {
        let mut cut: Cut = self.shape.iter().map(|&n| (0, n)).collect();
        for (place, &axis) in self.order.iter().enumerate() {
            if place < self.split {
                cut[axis] = (0, 1);
            } else if place == self.split {
                cut[axis] = (0, self.step);
            }
        }
        cut
    }

    /// Number of boxes.
    pub(super) fn count(&self) -> usize {
        let outer: usize = self.order[..self.split].iter().map(|&a| self.shape[a]).product();
        outer * self.steps()
    }

    fn steps(&self) -> usize {
        self.order.get(self.split).map_or(1, |&axis| self.shape[axis].div_ceil(self.step))
    }

    /// Box number `k`, counted with the slowest axis first.
    pub(super) fn get(&self, k: usize) -> Cut {
        let mut cut = self.largest();
        let Some(&axis) = self.order.get(self.split) else { return cut };
        let (mut rest, at) = (k / self.steps(), k % self.steps());
        cut[axis] = (at * self.step, ((at + 1) * self.step).min(self.shape[axis]));
        for &axis in self.order[..self.split].iter().rev() {
            let index = rest % self.shape[axis];
            cut[axis] = (index, index + 1);
            rest /= self.shape[axis];
        }
        cut
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Cut> + '_ {
        (0..self.count()).map(|k| self.get(k))
    }
}

/// Number of positions in a box.
pub(super) fn size(cut: &[(usize, usize)]) -> usize {
    cut.iter().map(|(from, to)| to - from).product()
}

/// Extents of a box.
pub(super) fn extents(cut: &[(usize, usize)]) -> SmallVec<[usize; 6]> {
    cut.iter().map(|(from, to)| to - from).collect()
}

/// What two boxes have in common.
pub(super) fn common(a: &[(usize, usize)], b: &[(usize, usize)]) -> Option<Cut> {
    a.iter()
        .zip(b)
        .map(|(a, b)| {
            let both = (a.0.max(b.0), a.1.min(b.1));
            (both.0 < both.1).then_some(both)
        })
        .collect()
}

/// Axes in the order of a memory in which they have these strides, slowest first; repeated axes last.
pub(super) fn memory_order(strides: &[isize]) -> SmallVec<[usize; 6]> {
    let mut order: SmallVec<[usize; 6]> = (0..strides.len()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(strides[axis].unsigned_abs()));
    order
}

/// Upper bound of the bytes in blocks of `grain` bytes that a strided walk touches; strides in elements.
pub(super) fn footprint(shape: &[usize], strides: &[isize], element_size: usize, grain: usize) -> u128 {
    let mut axes: SmallVec<[(u128, u128); 6]> = shape
        .iter()
        .zip(strides)
        .filter(|&(&extent, &stride)| extent > 1 && stride != 0)
        .map(|(&extent, &stride)| (stride.unsigned_abs() as u128 * element_size as u128, extent as u128))
        .collect();
    axes.sort_unstable();
    let grain = grain as u128;
    // Pieces of memory further than a block apart, each this long.
    let (mut length, mut pieces) = (element_size as u128, 1u128);
    let mut reach = element_size as u128;
    for (stride, extent) in axes {
        if pieces == 1 && stride <= length + grain {
            length += (extent - 1) * stride;
        } else {
            pieces *= extent;
        }
        reach += (extent - 1) * stride;
    }
    // A piece may begin and end anywhere in a block.
    let blocks = |bytes: u128| (bytes.saturating_sub(1) / grain + 2) * grain;
    (pieces * blocks(length)).min(blocks(reach))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn c_order(ndim: usize) -> Vec<usize> {
        (0..ndim).collect()
    }

    #[test]
    fn steps_are_even_and_small_enough() {
        let bands = Bands::new(&[100, 10], &[0, 1], 99);
        assert_eq!((bands.split, bands.step, bands.count()), (0, 9, 12));
        let bands = Bands::new(&[100, 10], &[0, 1], 5);
        assert_eq!((bands.split, bands.step, bands.count()), (1, 5, 200));
        let bands = Bands::new(&[100, 10], &[1, 0], 5);
        assert_eq!((bands.split, bands.step, bands.count()), (1, 5, 200));
        assert_eq!(Bands::new(&[100, 10], &[0, 1], 1 << 40).count(), 1);
        assert_eq!(Bands::new(&[], &[], 7).iter().collect::<Vec<_>>(), [Cut::new()]);
    }

    #[test]
    fn footprints_know_runs_and_jumps() {
        let page = 4096;
        // Dense: the bytes, and a block for each end.
        assert_eq!(footprint(&[1024, 1024], &[1024, 1], 4, page), (4 << 20) + page as u128);
        // One column of a wide matrix: a block or two for each row.
        assert_eq!(footprint(&[1000], &[1 << 20], 4, page), 1000 * 2 * page as u128);
        // Every second element still touches everything.
        assert_eq!(footprint(&[1 << 20], &[2], 4, page), (8 << 20) + page as u128);
        // A repeated axis costs nothing.
        assert_eq!(footprint(&[1 << 30, 4], &[0, 1], 4, page), 2 * page as u128);
    }

    proptest! {
        #[test]
        fn every_position_lies_in_exactly_one_box(
            shape in prop::collection::vec(1usize..6, 0..5),
            seed in any::<u64>(),
            elements in 1usize..200,
        ) {
            let mut order = c_order(shape.len());
            for i in (1..order.len()).rev() {
                order.swap(i, (seed >> (8 * i)) as usize % (i + 1));
            }
            let bands = Bands::new(&shape, &order, elements);
            let total: usize = shape.iter().product();
            let mut seen = vec![0u8; total];
            let mut boxes = 0;
            for cut in bands.iter() {
                boxes += 1;
                prop_assert!(size(&cut) <= elements.max(1));
                prop_assert!(size(&cut) <= size(&bands.largest()));
                for k in 0..total {
                    let mut rest = k;
                    let inside = shape.iter().zip(&cut).rev().all(|(&n, &(from, to))| {
                        let index = rest % n;
                        rest /= n;
                        (from..to).contains(&index)
                    });
                    seen[k] += u8::from(inside);
                }
            }
            prop_assert_eq!(boxes, bands.count());
            prop_assert!(seen.iter().all(|&n| n == 1));
        }

        #[test]
        fn footprints_are_upper_bounds(
            axes in prop::collection::vec((1usize..6, -40isize..40), 0..4),
            element in 1usize..5,
            grain in prop::sample::select(vec![1usize, 8, 64]),
            start in 0usize..64,
        ) {
            let shape: Vec<usize> = axes.iter().map(|a| a.0).collect();
            let strides: Vec<isize> = axes.iter().map(|a| a.1).collect();
            let mut blocks = std::collections::HashSet::new();
            for k in 0..shape.iter().product::<usize>() {
                let mut rest = k;
                let mut at = 100_000 + start as isize;
                for (&n, &stride) in shape.iter().zip(&strides) {
                    at += stride * element as isize * (rest % n) as isize;
                    rest /= n;
                }
                blocks.extend((at..at + element as isize).map(|b| b / grain as isize));
            }
            prop_assert!((blocks.len() * grain) as u128 <= footprint(&shape, &strides, element, grain));
        }
    }
}

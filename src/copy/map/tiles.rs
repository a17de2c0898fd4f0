//! The tiles of a mapped copy: where each is, on both sides, in elements.

use crate::layout::fuse::{Axes, Axis};
use smallvec::SmallVec;

pub(super) type Extents = SmallVec<[usize; 6]>;

/// A box of axes, outermost in the destination first, cut into tiles.
pub(super) struct Tiles {
    pub(super) axes: Axes,
    /// Extents of a whole tile.
    pub(super) tile: Extents,
    /// Innermost steps that the first tile of a row is short of, so that all others start on lines.
    pub(super) skew: usize,
    /// Innermost steps that tiles reach into the next one, so that each can end on a line.
    pub(super) over: usize,
    pub(super) src_offset: isize,
    pub(super) dst_offset: isize,
    counts: Extents,
}

/// One tile: where it starts in the buffers, and its extents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TileAt {
    pub(super) src: isize,
    pub(super) dst: isize,
    pub(super) extents: Extents,
    /// It is the first, or the last, along the innermost axis.
    pub(super) first: bool,
    pub(super) last: bool,
}

impl Tiles {
    pub(super) fn new(
        axes: Axes,
        (src_offset, dst_offset): (isize, isize),
        tile: Extents,
        (skew, over): (usize, usize),
    ) -> Self {
        let inner = axes.len().wrapping_sub(1);
        let skewed = |k: usize| if k == inner { skew } else { 0 };
        let each = axes.iter().zip(&tile).enumerate();
        let counts = each.map(|(k, (axis, &t))| (axis.extent + skewed(k)).div_ceil(t)).collect();
        Self { axes, tile, skew, over, src_offset, dst_offset, counts }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.counts.iter().product()
    }

    /// Tile `number`, counted along the destination.
    pub(super) fn locate(&self, mut number: usize) -> TileAt {
        let mut at = TileAt { src: self.src_offset, dst: self.dst_offset, ..TileAt::default() };
        let inner = self.counts.last().copied().unwrap_or(1);
        (at.first, at.last) = (number.is_multiple_of(inner), (number + 1).is_multiple_of(inner));
        at.extents.resize(self.axes.len(), 0);
        for k in (0..self.axes.len()).rev() {
            let axis = &self.axes[k];
            let (first, extent) = self.part(k, number % self.counts[k]);
            number /= self.counts[k];
            at.src += first as isize * axis.src;
            at.dst += first as isize * axis.dst;
            at.extents[k] = extent;
        }
        at
    }

    /// Where part `number` of axis `k` starts, and its extent.
    fn part(&self, k: usize, number: usize) -> (usize, usize) {
        let (skew, over) = if k + 1 == self.axes.len() { (self.skew, self.over) } else { (0, 0) };
        let start = (number * self.tile[k]).saturating_sub(skew);
        let end = ((number + 1) * self.tile[k] - skew + over).min(self.axes[k].extent);
        (start, end - start)
    }

    /// Every extent that tiles have along axis `k`: at most four.
    fn extents(&self, k: usize) -> SmallVec<[usize; 4]> {
        let mut found = SmallVec::new();
        // Those that are cut short by the end, by the next one's, and by the start.
        let last = self.counts[k] - 1;
        for number in [0, last.min(1), last.saturating_sub(1), last] {
            let (_, extent) = self.part(k, number);
            if !found.contains(&extent) {
                found.push(extent);
            }
        }
        found
    }

    /// Every shape of a tile, where tiles are cut along axis `sliced` into slices of so many steps.
    pub(super) fn shapes(&self, sliced: Option<(usize, usize)>) -> Vec<Extents> {
        let mut shapes: Vec<Extents> = vec![Extents::new()];
        for k in 0..self.axes.len() {
            let mut extents = self.extents(k);
            if let Some((_, slice)) = sliced.filter(|&(axis, _)| axis == k) {
                let mut parts = SmallVec::<[usize; 4]>::new();
                for extent in extents {
                    for part in [slice.min(extent), extent % slice] {
                        if part > 0 && !parts.contains(&part) {
                            parts.push(part);
                        }
                    }
                }
                extents = parts;
            }
            let longer = shapes.iter().flat_map(|shape| {
                extents.iter().map(move |&extent| {
                    let mut next = shape.clone();
                    next.push(extent);
                    next
                })
            });
            shapes = longer.collect();
        }
        shapes
    }
}

/// The axis along which the source is walked with the smallest steps.
pub(super) fn leading(axes: &[Axis]) -> Option<usize> {
    (0..axes.len()).rev().filter(|&k| axes[k].src != 0).min_by_key(|&k| axes[k].src.unsigned_abs())
}

/// Extents of a tile of at most `most` elements: first along the source's dense axes for a few lines, then
/// along the destination's, innermost first. An innermost axis that is cut is cut into multiples of `line`.
pub(super) fn tile_extents(axes: &[Axis], most: usize, along_src: usize, line: usize) -> Extents {
    let mut tile: Extents = SmallVec::from_elem(1, axes.len());
    let mut size = 1usize;
    let mut order: SmallVec<[usize; 6]> = (0..axes.len()).filter(|&k| axes[k].src != 0).collect();
    order.sort_by_key(|&k| axes[k].src.unsigned_abs());
    for k in order {
        if size >= along_src {
            break;
        }
        tile[k] = axes[k].extent.min(along_src.div_ceil(size)).min(most / size).max(1);
        size *= tile[k];
    }
    for k in (0..axes.len()).rev() {
        let others = size / tile[k];
        let fit = axes[k].extent.min((most / others).max(1)).max(tile[k]);
        let whole = if k + 1 == axes.len() && fit < axes[k].extent { fit / line * line } else { fit };
        tile[k] = if whole > 0 { whole } else { fit };
        size = others * tile[k];
        if tile[k] < axes[k].extent {
            break;
        }
    }
    tile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_long_on_both_sides() {
        let hwc_to_chw = [Axis { extent: 3, src: 1, dst: 10_000 }, Axis { extent: 10_000, src: 3, dst: 1 }];
        assert_eq!(tile_extents(&hwc_to_chw, 16384, 256, 16)[..], [3, 5456]);
        let transpose = [Axis { extent: 900, src: 1, dst: 800 }, Axis { extent: 800, src: 900, dst: 1 }];
        assert_eq!(tile_extents(&transpose, 4096, 64, 16)[..], [64, 64]);
        assert_eq!(tile_extents(&[Axis { extent: 1 << 30, src: 1, dst: 1 }], 4096, 64, 16)[..], [4096]);
    }
}

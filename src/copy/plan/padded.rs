//! A padded source as boxes: those with memory behind them are copied, the others filled, nothing is
//! written twice.

use crate::Error;
use crate::layout::fuse::{self, Fused};
use crate::layout::{Layout, Mask, Region};
use smallvec::SmallVec;
use std::ops::{ControlFlow, Range};

/// Calls `each` for every box of the index space, telling whether it is to be filled.
pub(super) fn cut(
    src: &Layout,
    mask: &Mask,
    dst: &Layout,
    element_size: usize,
    each: &mut dyn FnMut(bool, &mut Fused),
) -> Result<(), Error> {
    if src.shape() != dst.shape() {
        return Err(Error::ShapeMismatch { src: src.shape().into(), dst: dst.shape().into() });
    }
    let mut failed = None;
    let zeros: SmallVec<[isize; 6]> = SmallVec::from_elem(0, src.ndim());
    let _ = mask.regions(src.shape(), &mut |ranges, region| {
        let shape: SmallVec<[usize; 6]> = ranges.iter().map(ExactSizeIterator::len).collect();
        let to = (dst.strides(), corner(dst, ranges));
        let (from, fill) = match region {
            Region::Valid => ((src.strides(), corner(src, ranges)), false),
            Region::Fill => ((zeros.as_slice(), 0), true),
        };
        let mut fused = Fused::default();
        match fuse::fuse_raw(&mut fused, &shape, from, to, element_size) {
            Ok(()) if fused.elements > 0 => each(fill, &mut fused),
            Ok(()) => {}
            Err(error) => {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    });
    failed.map_or(Ok(()), Err)
}

/// The index of a box's first position: a reachable one (rule L1), so the sum cannot overflow; steps on
/// the way to it may, and wrap back.
pub(super) fn corner(layout: &Layout, ranges: &[Range<usize>]) -> isize {
    let mut index = layout.offset();
    for (range, &stride) in ranges.iter().zip(layout.strides()) {
        index = index.wrapping_add(stride.wrapping_mul(range.start as isize));
    }
    index
}

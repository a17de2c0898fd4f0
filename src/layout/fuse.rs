//! The joint canonical form of a (source, destination) pair of layouts.
//!
//! Most views that look hard are easy ones in disguise. Bringing both sides to one form first shows
//! it: axes of extent 1 are dropped (rule L3), destination strides are made positive (rule L4 allows
//! flipping both sides of an axis together), axes are sorted by destination stride, neighbours that
//! both sides walk as one axis are merged, and a short run that is dense on both sides becomes one
//! wider element.

use super::Layout;
use crate::Error;
use smallvec::SmallVec;

/// A run of at most this many bytes that is dense on both sides becomes one element.
pub const WIDEST_ELEMENT: usize = 64;

/// One fused axis: its extent and how far one step goes on each side, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Number of steps.
    pub extent: usize,
    /// Bytes per step in the source (0 where it repeats, negative where it runs backwards).
    pub src: isize,
    /// Bytes per step in the destination, positive for every writable destination.
    pub dst: isize,
}

/// A short list of fused axes; no heap allocation up to six of them.
pub type Axes = SmallVec<[Axis; 6]>;

/// A (source, destination) pair in canonical form.
///
/// Axes are ordered by destination stride, the largest first; offsets are those of the first element
/// in that order. `elements` is the product of the extents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fused {
    /// Fused axes, outermost in the destination first; empty when there is at most one element.
    pub axes: Axes,
    /// Bytes of one (possibly widened) element.
    pub element: usize,
    /// Byte offset of the first element in the source buffer.
    pub src_offset: isize,
    /// Byte offset of the first element in the destination buffer.
    pub dst_offset: isize,
    /// Number of (widened) elements; 0 when there is nothing to move.
    pub elements: usize,
}

/// Brings two layouts of the same shape to their joint canonical form, in `fused`, which is empty so far.
///
/// Masks are not looked at: a padded source is cut into boxes first.
///
/// # Errors
/// `ShapeMismatch` when the shapes differ, `Overflow` when a byte offset does not fit (rule L1).
pub fn fuse(fused: &mut Fused, src: &Layout, dst: &Layout, element_size: usize) -> Result<(), Error> {
    if src.shape() != dst.shape() {
        return Err(Error::ShapeMismatch { src: src.shape().into(), dst: dst.shape().into() });
    }
    fuse_raw(fused, src.shape(), (src.strides(), src.offset()), (dst.strides(), dst.offset()), element_size)
}

/// [`fuse`] on bare extents and (strides, offset) pairs in elements, all lists of one length.
pub(crate) fn fuse_raw(
    fused: &mut Fused,
    shape: &[usize],
    src: (&[isize], isize),
    dst: (&[isize], isize),
    element_size: usize,
) -> Result<(), Error> {
    debug_assert!(shape.len() == src.0.len() && shape.len() == dst.0.len());
    let size = isize::try_from(element_size).map_err(|_| overflow())?;
    fused.element = element_size;
    if size == 0 || shape.contains(&0) {
        return Ok(()); // rule L2: nothing is reached, no address is formed
    }
    fused.src_offset = bytes(src.1, size)?;
    fused.dst_offset = bytes(dst.1, size)?;
    for (axis, &extent) in shape.iter().enumerate() {
        if extent == 1 {
            continue;
        }
        let mut next = Axis { extent, src: bytes(src.0[axis], size)?, dst: bytes(dst.0[axis], size)? };
        if next.dst < 0 {
            let last = isize::try_from(extent - 1).map_err(|_| overflow())?;
            fused.src_offset = step(fused.src_offset, next.src, last)?;
            fused.dst_offset = step(fused.dst_offset, next.dst, last)?;
            next.src = next.src.checked_neg().ok_or_else(overflow)?;
            next.dst = next.dst.checked_neg().ok_or_else(overflow)?;
        }
        // Row-major destinations arrive sorted, so that this insertion sort is one comparison an axis.
        let mut at = fused.axes.len();
        while at > 0 && comes_before(&next, &fused.axes[at - 1]) {
            at -= 1;
        }
        if at == fused.axes.len() {
            fused.axes.push(next);
        } else {
            fused.axes.insert(at, next);
        }
    }
    merge(&mut fused.axes);
    widen(fused, size)?;
    let mut elements = 1usize;
    for axis in &fused.axes {
        elements = elements.checked_mul(axis.extent).ok_or_else(overflow)?;
    }
    fused.elements = elements;
    Ok(())
}

fn overflow() -> Error {
    Error::Overflow { what: "a byte offset of the copy" }
}

fn bytes(elements: isize, size: isize) -> Result<isize, Error> {
    elements.checked_mul(size).ok_or_else(overflow)
}

fn step(offset: isize, stride: isize, steps: isize) -> Result<isize, Error> {
    stride.checked_mul(steps).and_then(|by| offset.checked_add(by)).ok_or_else(overflow)
}

/// Larger destination strides first; among equals (only where the destination repeats) the source decides.
fn comes_before(a: &Axis, b: &Axis) -> bool {
    (a.dst, a.src.unsigned_abs()) > (b.dst, b.src.unsigned_abs())
}

/// Whether `outer` continues where `inner` ends on both sides, so that the two are one axis.
fn continues(outer: &Axis, inner: &Axis) -> bool {
    let Ok(extent) = isize::try_from(inner.extent) else { return false };
    inner.src.checked_mul(extent) == Some(outer.src) && inner.dst.checked_mul(extent) == Some(outer.dst)
}

fn merge(axes: &mut Axes) {
    let mut kept = 0;
    for at in 1..axes.len() {
        let inner = axes[at];
        let outer = axes[kept];
        match outer.extent.checked_mul(inner.extent) {
            Some(extent) if continues(&outer, &inner) => axes[kept] = Axis { extent, ..inner },
            _ => {
                kept += 1;
                axes[kept] = inner;
            }
        }
    }
    if !axes.is_empty() {
        axes.truncate(kept + 1);
    }
}

/// Makes a short dense run one element, and a wide element a run of bytes.
fn widen(fused: &mut Fused, size: isize) -> Result<(), Error> {
    if let Some(&last) = fused.axes.last()
        && last.src == size
        && last.dst == size
    {
        let run = last.extent.checked_mul(fused.element).ok_or_else(overflow)?;
        fused.axes.pop();
        fused.element = run;
    }
    if fused.element > WIDEST_ELEMENT {
        let run = Axis { extent: fused.element, src: 1, dst: 1 };
        fused.axes.push(run);
        fused.element = 1;
        // A run as long as the step of the axis around it has become one with it.
        merge(&mut fused.axes);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fused(shape: &[usize], src: &[isize], dst: &[isize], size: usize) -> Fused {
        of(shape, (src, 0), (dst, 0), size).unwrap()
    }

    fn of(
        shape: &[usize],
        src: (&[isize], isize),
        dst: (&[isize], isize),
        size: usize,
    ) -> Result<Fused, Error> {
        let mut fused = Fused::default();
        fuse_raw(&mut fused, shape, src, dst, size)?;
        Ok(fused)
    }

    fn axis(extent: usize, src: isize, dst: isize) -> Axis {
        Axis { extent, src, dst }
    }

    #[test]
    fn a_contiguous_pair_is_one_run_of_bytes() {
        let f = fused(&[4, 5, 6], &[30, 6, 1], &[30, 6, 1], 4);
        assert_eq!(f.axes.as_slice(), &[axis(480, 1, 1)]);
        assert_eq!((f.element, f.elements), (1, 480));
    }

    #[test]
    fn a_short_run_becomes_the_element() {
        let f = fused(&[10, 20, 3], &[3, 30, 1], &[60, 3, 1], 4);
        assert_eq!(f.axes.as_slice(), &[axis(10, 12, 240), axis(20, 120, 12)]);
        assert_eq!(f.element, 12);
    }

    #[test]
    fn a_long_run_stays_an_axis_of_bytes() {
        let f = fused(&[8, 16, 1024, 64], &[1048576, 64, 1024, 1], &[1048576, 65536, 64, 1], 4);
        assert_eq!(f.axes.last(), Some(&axis(256, 1, 1)));
        assert_eq!(f.element, 1);
    }

    #[test]
    fn a_transpose_keeps_two_axes_sorted_by_destination() {
        let f = fused(&[3, 5], &[1, 3], &[5, 1], 8);
        assert_eq!(f.axes.as_slice(), &[axis(3, 8, 40), axis(5, 24, 8)]);
        let g = fused(&[5, 3], &[3, 1], &[1, 5], 8);
        assert_eq!(f, g, "column-major destinations sort into the same form");
    }

    #[test]
    fn destination_strides_become_positive() {
        let f = of(&[4], (&[1], 0), (&[-1], 3), 2).unwrap();
        assert_eq!(f.axes.as_slice(), &[axis(4, -2, 2)]);
        assert_eq!((f.src_offset, f.dst_offset), (6, 0));
    }

    #[test]
    fn flipped_on_both_sides_is_straight() {
        let f = of(&[4, 4], (&[-4, -1], 15), (&[-4, -1], 15), 2).unwrap();
        assert!(f.axes.is_empty());
        assert_eq!((f.element, f.src_offset, f.dst_offset, f.elements), (32, 0, 0, 1));
    }

    #[test]
    fn broadcast_axes_merge() {
        let f = fused(&[2, 3, 5], &[0, 0, 1], &[15, 5, 1], 8);
        assert_eq!(f.axes.as_slice(), &[axis(6, 0, 40)]);
        assert_eq!(f.element, 40);
    }

    #[test]
    fn wide_elements_are_runs() {
        let f = fused(&[3, 4], &[1, 3], &[4, 1], 100);
        assert_eq!(f.axes.as_slice(), &[axis(3, 100, 400), axis(4, 300, 100), axis(100, 1, 1)]);
        assert_eq!(f.element, 1);
    }

    #[test]
    fn empty_and_zero_sized_move_nothing() {
        assert_eq!(fused(&[3, 0], &[1 << 60, 1], &[0, 1], 8).elements, 0);
        assert_eq!(fused(&[3], &[1], &[1], 0).elements, 0);
    }

    #[test]
    fn overflow_is_an_error() {
        let refused = of(&[2], (&[isize::MAX / 2], 0), (&[1], 0), 4);
        assert_eq!(refused.unwrap_err().kind(), "overflow");
        let huge = of(&[1 << 40, 1 << 40], (&[0, 0], 0), (&[1 << 40, 1], 0), 1);
        assert!(huge.is_err());
    }
}

//! Pure index arithmetic: how a buffer is read, without the buffer.
//!
//! A [`Layout`] is shape, strides, offset and, when padded, a mask. Every constructor and every
//! operation ends in one canonical form (`Layout::canonical`), so that two layouts that are equal as
//! values read the same way, and so that the rules L1 to L10 of `DESIGN.md` are enforced in one place.
#![forbid(unsafe_code)]

mod bounds;
pub(crate) mod fuse;
mod lines;
mod mask;
mod ops;
mod reshape;

use crate::Error;
use crate::error::words::counted;
use smallvec::SmallVec;

pub use bounds::share_memory;
pub use lines::Lines;
pub use mask::{Constraint, Mask, Region};
pub use ops::Index;
pub use reshape::{CopyPolicy, Reshaped};

/// Extents of a view, one per axis.
pub(crate) type Extents = SmallVec<[usize; 6]>;
/// Strides of a view in elements, one per axis.
pub(crate) type Strides = SmallVec<[isize; 6]>;

/// Most axes a layout may have (rule L9).
pub const MAX_NDIM: usize = 64;

/// A way to read a buffer: shape, strides, offset and (when padded) a mask.
///
/// ```
/// use restride::Layout;
/// let layout = Layout::row_major(&[3, 4])?;
/// assert_eq!(layout.strides(), [4, 1]);
/// assert_eq!(layout.index_of(&[1, 2])?, Some(6));
/// let transposed = layout.apply(".T")?;
/// assert_eq!(transposed.view_at(1)?, Some(4));
/// # Ok::<(), restride::Error>(())
/// ```
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Extents,
    strides: Strides,
    offset: isize,
    numel: usize,
    mask: Option<Box<Mask>>,
    unit: UnitStrides,
}

/// The strides as NumPy would have them, where they differ from the normalised ones: unit axes included.
///
/// They have no say in what a layout reads, and none in whether two are equal. They come back to light
/// when an axis of extent 1 is sliced to none: the empty result has NumPy's strides.
#[derive(Debug, Clone, Default)]
struct UnitStrides(Option<Box<Strides>>);

impl PartialEq for UnitStrides {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for UnitStrides {}

impl std::hash::Hash for UnitStrides {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

impl Clone for Layout {
    fn clone(&self) -> Self {
        Self {
            // Whole lists at once: small copies clone a layout or two for each call.
            shape: Extents::from_slice(&self.shape),
            strides: Strides::from_slice(&self.strides),
            offset: self.offset,
            numel: self.numel,
            mask: self.mask.clone(),
            unit: self.unit.clone(),
        }
    }
}

impl Layout {
    /// A contiguous layout of `shape`, last axis fastest (C order).
    ///
    /// # Errors
    /// `Rank` above 64 axes (rule L9); `Overflow` when the product of the non-zero extents does not fit
    /// `isize` (rules L1 and L10).
    pub fn row_major(shape: &[usize]) -> Result<Self, Error> {
        check_shape(shape)?;
        Self::canonical(shape.into(), row_major_strides(shape), 0, None)
    }

    /// A gap-free layout of `shape`, first axis fastest (Fortran order).
    ///
    /// # Errors
    /// As [`Layout::row_major`].
    pub fn column_major(shape: &[usize]) -> Result<Self, Error> {
        let reversed: Extents = shape.iter().rev().copied().collect();
        check_shape(shape)?;
        let strides = row_major_strides(&reversed).iter().rev().copied().collect();
        Self::canonical(shape.into(), strides, 0, None)
    }

    /// A layout from its parts; strides in elements, `offset` the buffer index of position 0.
    ///
    /// # Errors
    /// `Rank` when the two lists differ in length or hold more than 64 axes; `Overflow` when the number
    /// of positions or the largest index does not fit `isize`; `Bounds` when an index is negative.
    ///
    /// ```
    /// use restride::Layout;
    /// let reversed = Layout::new(&[4], &[-1], 3)?;
    /// assert_eq!(reversed.view_at(0)?, Some(3));
    /// assert!(Layout::new(&[4], &[-1], 2).is_err());
    /// # Ok::<(), restride::Error>(())
    /// ```
    pub fn new(shape: &[usize], strides: &[isize], offset: isize) -> Result<Self, Error> {
        if shape.len() != strides.len() {
            return Err(Error::Rank { what: "strides", got: strides.len(), expected: shape.len() });
        }
        Self::canonical(shape.into(), strides.into(), offset, None)
    }

    /// The one constructor: checks sizes (L1, L9, L10), normalises unit axes (L3), empty views (L2) and
    /// the mask (L7), and refuses indices that no buffer can have.
    fn canonical(
        shape: Extents,
        mut strides: Strides,
        offset: isize,
        mask: Option<Mask>,
    ) -> Result<Self, Error> {
        let numel = check_shape(&shape)?;
        let mut unit = UnitStrides::default();
        if strides.iter().zip(&shape).any(|(&stride, &extent)| extent == 1 && stride != 0) {
            unit.0 = Some(Box::new(strides.clone()));
            for (stride, &extent) in strides.iter_mut().zip(&shape) {
                if extent == 1 {
                    *stride = 0;
                }
            }
        }
        if numel == 0 {
            return Ok(Self { shape, strides, offset: 0, numel, mask: None, unit });
        }
        let mask = match mask {
            Some(mask) => mask.canonical(&shape)?,
            None => None,
        };
        let mut layout = Self { shape, strides, offset, numel, mask: mask.map(Box::new), unit };
        match layout.reachable_wide() {
            None => {
                // Nothing valid: strides and offset have no say.
                layout.strides.iter_mut().for_each(|stride| *stride = 0);
                layout.offset = 0;
            }
            Some((low, high)) => {
                if high > isize::MAX as i128 {
                    return Err(Error::Overflow { what: "the largest index" });
                }
                if low < 0 {
                    return Err(Error::Bounds { low, high, len: usize::try_from(high + 1).unwrap_or(0) });
                }
            }
        }
        Ok(layout)
    }

    /// Extents, one per axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Strides in elements, one per axis; 0 for an axis of extent 1 (rule L3).
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// As [`Layout::strides`], with NumPy's strides of axes of extent 1.
    fn raw_strides(&self) -> &[isize] {
        self.unit.0.as_deref().unwrap_or(&self.strides)
    }

    /// Buffer index of logical position 0 (may lie outside the buffer when that position is padded).
    pub fn offset(&self) -> isize {
        self.offset
    }

    /// Number of logical positions.
    pub fn numel(&self) -> usize {
        self.numel
    }

    /// Number of axes.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The constraints of a padded layout; `None` when every position has memory behind it.
    pub fn mask(&self) -> Option<&Mask> {
        self.mask.as_deref()
    }

    /// Whether some position has no memory behind it (rule L7).
    pub fn is_padded(&self) -> bool {
        self.mask.is_some()
    }

    /// Whether positions in row-major order read consecutive indices: no gaps, last axis fastest. Axes of
    /// extent 1 never matter, an empty view always is, a padded one never.
    pub fn is_contiguous(&self) -> bool {
        if self.is_padded() {
            return false;
        }
        if self.numel == 0 {
            return true;
        }
        let mut expected = 1isize;
        for (&extent, &stride) in self.shape.iter().zip(&self.strides).rev() {
            if extent != 1 {
                if stride != expected {
                    return false;
                }
                // Cannot overflow: numel fits isize (L1).
                expected *= extent as isize;
            }
        }
        true
    }

    /// The buffer index that the position `index` reads; `None` where it is padded.
    ///
    /// # Errors
    /// `Rank` for a wrong number of indices, `Index` for one outside its axis.
    pub fn index_of(&self, index: &[usize]) -> Result<Option<usize>, Error> {
        if index.len() != self.ndim() {
            return Err(Error::Rank { what: "indices", got: index.len(), expected: self.ndim() });
        }
        for (axis, (&i, &extent)) in index.iter().zip(&self.shape).enumerate() {
            if i >= extent {
                let index = isize::try_from(i).unwrap_or(isize::MAX);
                return Err(Error::Index { index, axis, extent });
            }
        }
        Ok(self.index_unchecked(index))
    }

    /// The buffer index that logical position `k` (row-major order) reads; `None` where it is padded.
    ///
    /// # Errors
    /// `Index` when `k` is not below [`Layout::numel`].
    pub fn view_at(&self, k: usize) -> Result<Option<usize>, Error> {
        if k >= self.numel {
            return Err(Error::Indices {
                reason: format!(
                    "position {k} is out of range for a view of {}",
                    counted(self.numel, "position")
                ),
            });
        }
        Ok(self.index_unchecked(&self.unravel(k)))
    }

    /// The indices of logical position `k`, which must be below `numel`.
    pub(crate) fn unravel(&self, k: usize) -> Extents {
        unravel(k, &self.shape)
    }

    fn index_unchecked(&self, index: &[usize]) -> Option<usize> {
        if self.mask.as_ref().is_some_and(|mask| !mask.allows(index)) {
            return None;
        }
        let steps: i128 = index.iter().zip(&self.strides).map(|(&i, &s)| i as i128 * s as i128).sum();
        // In range: `canonical` checked every reachable index (L1).
        Some((self.offset as i128 + steps) as usize)
    }
}

/// Checks rank and size of a shape; the number of positions (L1, L9, L10).
pub(crate) fn check_shape(shape: &[usize]) -> Result<usize, Error> {
    if shape.len() > MAX_NDIM {
        return Err(Error::Rank { what: "axes", got: shape.len(), expected: MAX_NDIM });
    }
    let nonzero = shape.iter().filter(|&&extent| extent != 0);
    let product = nonzero.copied().try_fold(1usize, usize::checked_mul);
    match product.filter(|&n| n <= isize::MAX as usize) {
        Some(product) => Ok(if shape.contains(&0) { 0 } else { product }),
        None => Err(Error::Overflow { what: "the number of elements" }),
    }
}

/// The indices of position `k` (row-major order) of a shape without an extent of 0.
fn unravel(mut k: usize, shape: &[usize]) -> Extents {
    let mut index: Extents = smallvec::smallvec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        index[axis] = k % shape[axis];
        k /= shape[axis];
    }
    index
}

/// Row-major strides of a checked shape; an extent of 0 counts as 1, as in NumPy.
pub(crate) fn row_major_strides(shape: &[usize]) -> Strides {
    let mut strides: Strides = smallvec::smallvec![0; shape.len()];
    let mut step = 1isize;
    for axis in (0..shape.len()).rev() {
        strides[axis] = step;
        step *= shape[axis].max(1) as isize;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rank_zero_reads_its_offset() {
        let layout = Layout::new(&[], &[], 7).unwrap();
        assert_eq!((layout.numel(), layout.view_at(0).unwrap()), (1, Some(7)));
        assert!(layout.is_contiguous());
        assert_eq!(layout.view_at(1).unwrap_err().kind(), "index");
    }

    #[test]
    fn sizes_are_checked_the_same_everywhere() {
        let wrapped = [3, 7, 29, 36760123, 823996703];
        assert_eq!(Layout::row_major(&wrapped).unwrap_err().kind(), "overflow");
        assert_eq!(Layout::column_major(&wrapped).unwrap_err().kind(), "overflow");
        assert_eq!(Layout::new(&wrapped, &[0; 5], 0).unwrap_err().kind(), "overflow");
        assert_eq!(Layout::new(&[5], &[1 << 62], 0).unwrap_err().kind(), "overflow");
        assert_eq!(Layout::new(&[4, 4], &[1 << 62, 1], 0).unwrap_err().kind(), "overflow");
        assert!(Layout::row_major(&[0, 1 << 62]).is_ok());
        assert_eq!(Layout::row_major(&[0, 1 << 62, 2]).unwrap_err().kind(), "overflow");
        assert_eq!(Layout::row_major(&[1; 65]).unwrap_err().kind(), "rank");
        assert!(Layout::row_major(&[1; 64]).is_ok());
    }

    #[test]
    fn unit_axes_have_no_say() {
        let layout = Layout::new(&[3, 1, 3], &[3, isize::MAX, 1], 0).unwrap();
        assert!(layout.is_contiguous());
        assert_eq!(layout, Layout::row_major(&[3, 1, 3]).unwrap());
        assert!(Layout::new(&[1, 1], &[isize::MIN, isize::MAX], 0).unwrap().is_contiguous());
    }

    #[test]
    fn strides_of_unit_axes_have_no_say_in_what_is_made_of_them() {
        // NumPy's stride of the sliced axis is isize::MIN; padding must not step by it.
        let layout = Layout::row_major(&[2, 1]).unwrap().apply("[:, ::-9223372036854775808]").unwrap();
        let padded = layout.apply(".pad((0, 0), (3, 1))").unwrap();
        assert_eq!((padded.shape(), padded.index_of(&[1, 3])), (&[2, 5][..], Ok(Some(1))));
        let wide = Layout::new(&[1, 1], &[isize::MAX, isize::MIN], 0).unwrap();
        for expr in [".pad((9, 9), (9, 9))", ".unfold(0, 1, 9).T[:, ::-1]", ".diagonal().pad((5, 5))"] {
            assert_eq!(wide.apply(expr).unwrap().reachable_range(), Some((0, 0)), "{expr}");
        }
    }

    #[test]
    fn empty_views_reach_nothing() {
        let layout = Layout::new(&[0], &[-42], 9).unwrap();
        assert_eq!((layout.offset(), layout.numel()), (0, 0));
        assert!(layout.is_contiguous());
    }
}

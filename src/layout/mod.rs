//! Pure index arithmetic: how a buffer is read, without the buffer.
#![forbid(unsafe_code)]

mod mask;

use crate::Error;
use smallvec::SmallVec;

pub use mask::{Constraint, Mask};

/// Extents of a view, one per axis.
pub(crate) type Extents = SmallVec<[usize; 6]>;
/// Strides of a view in elements, one per axis.
pub(crate) type Strides = SmallVec<[isize; 6]>;

/// Most axes a layout may have (rule L9).
pub const MAX_NDIM: usize = 64;

/// A way to read a buffer: shape, strides, offset and (when padded) a mask.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    shape: Extents,
    strides: Strides,
    offset: isize,
    numel: usize,
    mask: Option<Box<Mask>>,
}

impl Layout {
    /// Extents, one per axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    /// Strides in elements, one per axis; 0 for an axis of extent 1 (rule L3).
    pub fn strides(&self) -> &[isize] {
        &self.strides
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
}

#[allow(dead_code)]
fn unused(_: Error) {}

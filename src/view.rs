//! A slice and a validated layout over it.
//!
//! [`View`] reads, [`ViewMut`] writes; [`BytesView`] and [`BytesViewMut`] are the same for elements whose
//! type is known only at run time. A value of these types is the proof that every index which the layout
//! reaches lies inside the slice (rule L2) and, for the writable ones, that no two positions share an index
//! (rule L5). The copy engine rests on that.

use crate::layout::{Index, Layout};
use crate::{Error, Expr};
use bytemuck::{NoUninit, Zeroable};

/// An element that can be moved as bytes: plain data without padding bytes, for which all-zero bytes are a
/// value (the default fill of a padded view). Implemented for every such type, of any size.
pub trait Element: NoUninit + Zeroable + Send + Sync {}

impl<T: NoUninit + Zeroable + Send + Sync> Element for T {}

/// A readable view: a slice, a layout over it, and the value that padded positions read.
///
/// ```
/// use restride::{Layout, View};
/// let data = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let view = View::new(&data, Layout::row_major(&[2, 3])?)?;
/// assert_eq!(view.t()?.materialize()?.as_slice(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
/// # Ok::<(), restride::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct View<'a, T> {
    data: &'a [T],
    layout: Layout,
    fill: T,
}

/// A writable view: a mutable slice and a layout over it that reaches no index twice.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    data: &'a mut [T],
    layout: Layout,
}

/// Checks a layout against a slice of `len` elements of `element_size` bytes (rules L1, L2, L10).
fn check(layout: &Layout, len: usize, element_size: usize) -> Result<(), Error> {
    if layout.numel() == 0 {
        let nonzero = layout.shape().iter().filter(|&&extent| extent != 0);
        let bytes = nonzero.copied().try_fold(element_size, usize::checked_mul);
        return match bytes {
            Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
            _ => Err(Error::Overflow { what: "the size in bytes" }),
        };
    }
    layout.check_bounds(len)
}

/// Refuses a layout that cannot be written (rules L5 and L7).
fn check_writable(layout: &Layout) -> Result<(), Error> {
    if layout.is_padded() {
        let reason = "a padded view cannot be written: its padded positions have no memory".into();
        return Err(Error::Pad { reason });
    }
    match layout.self_overlap() {
        None => Ok(()),
        Some(axis) => {
            let what = match axis {
                Some(axis) => format!("axis {axis} of extent {} has stride 0", layout.shape()[axis]),
                None => "its axes overlap".into(),
            };
            let reason = format!("the view cannot be written: {what}, so that positions share memory");
            Err(Error::Overlap { axis, reason })
        }
    }
}

impl<'a, T: Element> View<'a, T> {
    /// A view of `data` through `layout`; padded positions read zero bytes.
    ///
    /// # Errors
    /// `Bounds` when the layout leaves the slice (rule L2), `Overflow` for an empty view whose non-zero
    /// extents do not fit the address space (rule L10).
    pub fn new(data: &'a [T], layout: Layout) -> Result<Self, Error> {
        Self::with_fill(data, layout, T::zeroed())
    }

    /// As [`View::new`], with the value that padded positions read.
    ///
    /// # Errors
    /// As [`View::new`].
    pub fn with_fill(data: &'a [T], layout: Layout, fill: T) -> Result<Self, Error> {
        check(&layout, data.len(), size_of::<T>())?;
        Ok(Self { data, layout, fill })
    }

    /// The whole slice.
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// How the slice is read.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Extents, one per axis.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// What padded positions read.
    pub fn fill_value(&self) -> T {
        self.fill
    }

    /// The element at `index`: the fill value where it is padded.
    ///
    /// # Errors
    /// `Rank` for a wrong number of indices, `Index` for one outside its axis.
    pub fn get(&self, index: &[usize]) -> Result<T, Error> {
        Ok(self.layout.index_of(index)?.map_or(self.fill, |i| self.data[i]))
    }

    /// All elements in row-major order, one at a time: for tests and small views.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.layout.numel()).map(|k| match self.layout.view_at(k) {
            Ok(Some(index)) => self.data[index],
            _ => self.fill,
        })
    }

    fn with(&self, layout: Layout) -> Self {
        Self { data: self.data, layout, fill: self.fill }
    }

    /// The view that an expression names, as in `".T[:, ::2]"` (see [`Expr`]).
    ///
    /// # Errors
    /// `NeedsCopy` where the expression cannot be a view of this memory; else what the refused piece says.
    pub fn apply(&self, expr: &str) -> Result<Self, Error> {
        let fill = crate::expr::Fill::Bytes(bytemuck::bytes_of(&self.fill));
        let layout = Expr::parse(expr)?.apply(&self.layout, self.data.len(), fill)?;
        Ok(self.with(layout))
    }

    /// Padded positions around, that read `value`: one (before, after) pair per axis.
    ///
    /// # Errors
    /// As [`Layout::pad`]; `NeedsCopy` when the view is already padded with another value (rule L7).
    pub fn pad(&self, widths: &[(usize, usize)], value: T) -> Result<Self, Error> {
        let layout = self.layout.pad(widths)?;
        if self.layout.is_padded() && widths.iter().any(|&width| width != (0, 0)) {
            if bytemuck::bytes_of(&value) != bytemuck::bytes_of(&self.fill) {
                return Err(crate::expr::second_fill());
            }
            return Ok(self.with(layout));
        }
        let fill = if self.layout.is_padded() { self.fill } else { value };
        Ok(Self { data: self.data, layout, fill })
    }

    /// Any shape, strides and absolute offset over the whole slice (elements).
    ///
    /// # Errors
    /// As [`Layout::as_strided`].
    pub fn as_strided(&self, shape: &[usize], strides: &[isize], offset: isize) -> Result<Self, Error> {
        self.layout.as_strided(shape, strides, offset, self.data.len()).map(|layout| self.with(layout))
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// A writable view of `data` through `layout`.
    ///
    /// # Errors
    /// `Bounds` and `Overflow` as [`View::new`]; `Overlap` naming the axis when two positions share an index
    /// (rule L5), `Pad` for a padded layout (rule L7).
    pub fn new(data: &'a mut [T], layout: Layout) -> Result<Self, Error> {
        check(&layout, data.len(), size_of::<T>())?;
        check_writable(&layout)?;
        Ok(Self { data, layout })
    }

    /// The whole slice.
    pub fn data(&self) -> &[T] {
        self.data
    }

    /// The whole slice, writable.
    pub fn data_mut(&mut self) -> &mut [T] {
        self.data
    }

    /// The slice and how it is written.
    pub(crate) fn parts_mut(&mut self) -> (&mut [T], &Layout) {
        (self.data, &self.layout)
    }

    /// How the slice is written.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Extents, one per axis.
    pub fn shape(&self) -> &[usize] {
        self.layout.shape()
    }

    /// The same view for a shorter time.
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { data: self.data, layout: self.layout.clone() }
    }

    /// The same positions, readable.
    pub fn as_view(&self) -> View<'_, T> {
        View { data: self.data, layout: self.layout.clone(), fill: T::zeroed() }
    }

    /// A reference to the element at `index`.
    ///
    /// # Errors
    /// `Rank` for a wrong number of indices, `Index` for one outside its axis.
    pub fn get_mut(&mut self, index: &[usize]) -> Result<&mut T, Error> {
        let i = self.layout.index_of(index)?.unwrap_or(0); // never padded: see `new`
        Ok(&mut self.data[i])
    }

    fn with(self, layout: Layout) -> Result<Self, Error> {
        check_writable(&layout)?;
        Ok(Self { data: self.data, layout })
    }

    /// The view that an expression names (see [`Expr`]).
    ///
    /// # Errors
    /// As [`View::apply`]; `Overlap` or `Pad` where the result cannot be written.
    pub fn apply(self, expr: &str) -> Result<Self, Error> {
        let len = self.data.len();
        let layout = Expr::parse(expr)?.apply(&self.layout, len, crate::expr::Fill::None)?;
        self.with(layout)
    }

    /// Any shape, strides and absolute offset over the whole slice (elements).
    ///
    /// # Errors
    /// As [`Layout::as_strided`]; `Overlap` where positions would share an index.
    pub fn as_strided(self, shape: &[usize], strides: &[isize], offset: isize) -> Result<Self, Error> {
        let layout = self.layout.as_strided(shape, strides, offset, self.data.len())?;
        self.with(layout)
    }
}

/// Calls a macro with the operations of [`Layout`] that views and tensors have as methods of their own: one
/// list, so that none of the kinds lacks one.
macro_rules! with_operations {
    ($methods:ident) => {
        $methods! {
            /// The axes in another order.
            permute(axes: &[isize]);
            /// All axes reversed.
            t();
            /// The last two axes exchanged.
            mt();
            /// Two axes exchanged.
            transpose(axis0: isize, axis1: isize);
            /// Moves axes to new positions.
            moveaxis(source: &[isize], destination: &[isize]);
            /// Basic indexing with Python's rules.
            slice(items: &[Index]);
            /// Reverses the given axes, all of them when the list is empty.
            flip(axes: &[isize]);
            /// Stretches axes of extent 1 and adds axes in front.
            broadcast_to(shape: &[usize]);
            /// As `broadcast_to`, with −1 for "as it is".
            expand(sizes: &[isize]);
            /// A new axis of extent 1.
            unsqueeze(axis: isize);
            /// Drops axes of extent 1.
            squeeze(axes: Option<&[isize]>);
            /// Keeps `from..to` of each axis.
            shrink(ranges: &[(usize, usize)]);
            /// Sliding windows; the window becomes the last axis.
            unfold(axis: isize, size: isize, step: isize);
            /// The diagonal of two axes, which becomes the last axis.
            diagonal(offset: isize, axis1: isize, axis2: isize);
            /// Another shape over the same memory.
            reshape(sizes: &[isize]);
            /// All axes as one.
            flatten();
        }
    };
}
pub(crate) use with_operations;

macro_rules! view_methods {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*);)*) => {
        impl<'a, T: Element> View<'a, T> {
            $($(#[$doc])*
            ///
            /// # Errors
            #[doc = concat!("As [`Layout::", stringify!($name), "`].")]
            pub fn $name(&self, $($arg: $type),*) -> Result<Self, Error> {
                self.layout.$name($($arg),*).map(|layout| self.with(layout))
            })*
        }

        impl<'a, T: Element> ViewMut<'a, T> {
            $($(#[$doc])*
            ///
            /// # Errors
            #[doc = concat!("As [`Layout::", stringify!($name), "`]; `Overlap` where the result cannot be written.")]
            pub fn $name(self, $($arg: $type),*) -> Result<Self, Error> {
                let layout = self.layout.$name($($arg),*)?;
                self.with(layout)
            })*
        }
    };
}

with_operations!(view_methods);

/// A readable view of elements whose type is known only at run time.
#[derive(Debug, Clone)]
pub struct BytesView<'a> {
    data: &'a [u8],
    layout: Layout,
    element_size: usize,
    fill: Option<&'a [u8]>,
}

/// A writable view of elements whose type is known only at run time.
#[derive(Debug)]
pub struct BytesViewMut<'a> {
    data: &'a mut [u8],
    layout: Layout,
    element_size: usize,
}

/// Checks a layout, in elements, against a slice of bytes; the largest address is computed in 128 bits (L1).
fn check_bytes(layout: &Layout, len: usize, element_size: usize) -> Result<(), Error> {
    if element_size == 0 {
        return Err(Error::LengthMismatch { got: 0, expected: 1 });
    }
    check(layout, len / element_size, element_size)
}

impl<'a> BytesView<'a> {
    /// A view of `data` through `layout` (in elements of `element_size` bytes, at least 1); padded positions
    /// read zero bytes. The data need not be aligned.
    ///
    /// # Errors
    /// As [`View::new`]; `LengthMismatch` for an element size of 0.
    pub fn new(data: &'a [u8], layout: Layout, element_size: usize) -> Result<Self, Error> {
        check_bytes(&layout, data.len(), element_size)?;
        Ok(Self { data, layout, element_size, fill: None })
    }

    /// The same view, whose padded positions read the element `fill`.
    ///
    /// # Errors
    /// `LengthMismatch` unless `fill` is one element long.
    pub fn with_fill(self, fill: &'a [u8]) -> Result<Self, Error> {
        if fill.len() != self.element_size {
            return Err(Error::LengthMismatch { got: fill.len(), expected: self.element_size });
        }
        Ok(Self { fill: Some(fill), ..self })
    }

    /// The whole slice.
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// How the slice is read, in elements.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of one element.
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// The element that padded positions read; `None` for zero bytes.
    pub fn fill_bytes(&self) -> Option<&'a [u8]> {
        self.fill
    }
}

impl<'a> BytesViewMut<'a> {
    /// A writable view of `data` through `layout` (in elements of `element_size` bytes, at least 1).
    ///
    /// # Errors
    /// As [`ViewMut::new`]; `LengthMismatch` for an element size of 0.
    pub fn new(data: &'a mut [u8], layout: Layout, element_size: usize) -> Result<Self, Error> {
        check_bytes(&layout, data.len(), element_size)?;
        check_writable(&layout)?;
        Ok(Self { data, layout, element_size })
    }

    /// The whole slice, writable.
    pub fn data_mut(&mut self) -> &mut [u8] {
        self.data
    }

    /// The slice and how it is written.
    pub(crate) fn parts_mut(&mut self) -> (&mut [u8], &Layout) {
        (self.data, &self.layout)
    }

    /// How the slice is written, in elements.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Bytes of one element.
    pub fn element_size(&self) -> usize {
        self.element_size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broadcast_destination_is_refused_by_name() {
        let mut data = [0i64, 1, 2, 3];
        let layout = Layout::row_major(&[4]).unwrap().broadcast_to(&[5, 4]).unwrap();
        match ViewMut::new(&mut data, layout).unwrap_err() {
            Error::Overlap { axis: Some(0), reason } => assert!(reason.contains("axis 0"), "{reason}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn unit_axes_of_stride_zero_are_writable() {
        let mut data = vec![0f64; 128 * 128 * 3];
        let layout = Layout::row_major(&[128, 128, 3]).unwrap().apply(".permute(2, 0, 1)[None]").unwrap();
        assert_eq!(ViewMut::new(&mut data, layout).unwrap().shape(), [1, 3, 128, 128]);
    }

    #[test]
    fn offsets_that_would_wrap_are_refused() {
        let data = [0i64; 10];
        for offset in [8170450533120000000, isize::MAX - 10000 + 1] {
            let layout = Layout::new(&[5], &[2], offset);
            let refused = layout.and_then(|layout| View::new(&data, layout)).unwrap_err();
            assert!(["bounds", "overflow"].contains(&refused.kind()), "{refused}");
        }
    }

    #[test]
    fn empty_views_follow_numpys_size_rule() {
        let empty: [f64; 0] = [];
        for (extent, legal) in [(1usize << 59, true), (1 << 60, false), (1 << 62, false)] {
            let layout = Layout::row_major(&[0, extent]).unwrap();
            assert_eq!(View::new(&empty, layout).is_ok(), legal, "{extent}");
        }
    }

    #[test]
    fn a_second_fill_value_needs_a_copy() {
        let data = [1u8, 2];
        let view = View::new(&data, Layout::row_major(&[2]).unwrap()).unwrap();
        let padded = view.pad(&[(1, 0)], 7).unwrap();
        assert_eq!(padded.iter().collect::<Vec<_>>(), [7, 1, 2]);
        assert!(padded.pad(&[(0, 1)], 7).is_ok());
        assert_eq!(padded.pad(&[(0, 1)], 8).unwrap_err().kind(), "needs_copy");
        assert_eq!(padded.pad(&[(0, 0)], 8).unwrap().fill_value(), 7);
    }
}

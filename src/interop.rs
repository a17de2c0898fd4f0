//! Views to and from `ndarray`, and a fast replacement for its `as_standard_layout` (feature `ndarray`).
//!
//! ```
//! use ndarray::{Array2, ShapeBuilder};
//! use restride::{View, interop::standard_layout};
//! let columns = Array2::from_shape_vec((2, 3).f(), vec![1, 2, 3, 4, 5, 6])?;
//! let rows = standard_layout(&columns)?;
//! assert_eq!(rows.as_slice().unwrap(), [1, 3, 5, 2, 4, 6]);
//! let view = View::try_from(columns.view())?;
//! assert_eq!(view.apply("[:, 1:].T")?.to_ndarray()?.shape(), [2, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::copy::CopyOptions;
use crate::layout::Layout;
use crate::view::{Element, View, ViewMut};
use crate::{Error, Tensor};
use ndarray::{
    Array, ArrayBase, ArrayView, ArrayViewD, ArrayViewMut, ArrayViewMutD, Axis, CowArray, Data, Dimension,
    IxDyn, ShapeBuilder,
};

fn gaps() -> Error {
    Error::NeedsCopy {
        axes: [].into(),
        reason: "the array view leaves gaps in memory, which others may be writing: view the whole array and slice \
                 that, or copy with `to_owned` first"
            .into(),
    }
}

/// The layout of an array whose lowest element is the first of a slice.
fn layout_of(shape: &[usize], strides: &[isize]) -> Result<Layout, Error> {
    let back =
        |(&extent, &stride): (&usize, &isize)| if stride < 0 { stride * (extent as isize - 1) } else { 0 };
    let low: isize = if shape.contains(&0) { 0 } else { shape.iter().zip(strides).map(back).sum() };
    Layout::new(shape, strides, -low)
}

impl<'a, A: Element, D: Dimension> TryFrom<ArrayView<'a, A, D>> for View<'a, A> {
    type Error = Error;

    /// The same memory: permuted, reversed and broadcast axes are kept as they are.
    ///
    /// # Errors
    /// `NeedsCopy` for an array view that leaves gaps in memory (a stepped or cropped one): what lies in the
    /// gaps may be borrowed by somebody else.
    fn try_from(array: ArrayView<'a, A, D>) -> Result<Self, Error> {
        let layout = layout_of(array.shape(), array.strides())?;
        if array.is_empty() {
            return View::new(&[], layout);
        }
        // Along a broadcast axis every index reads the same memory: one of them stands for all.
        let mut solid = array.into_dyn();
        for axis in (0..solid.ndim()).rev() {
            if solid.strides()[axis] == 0 {
                solid.index_axis_inplace(Axis(axis), 0);
            }
        }
        View::new(solid.to_slice_memory_order().ok_or_else(gaps)?, layout)
    }
}

impl<'a, A: Element, D: Dimension> TryFrom<ArrayViewMut<'a, A, D>> for ViewMut<'a, A> {
    type Error = Error;

    /// The same memory, writable.
    ///
    /// # Errors
    /// `NeedsCopy` as for [`View`].
    fn try_from(array: ArrayViewMut<'a, A, D>) -> Result<Self, Error> {
        let layout = layout_of(array.shape(), array.strides())?;
        if array.is_empty() {
            return ViewMut::new(&mut [], layout);
        }
        ViewMut::new(array.into_slice_memory_order().ok_or_else(gaps)?, layout)
    }
}

/// Shape and positive strides for `ndarray`, the reversed axes, and where the lowest element lies.
#[allow(clippy::type_complexity)] // used twice, three lines below
fn parts(layout: &Layout) -> Result<(ndarray::StrideShape<IxDyn>, Vec<usize>, usize), Error> {
    if layout.is_padded() {
        let reason = "a padded view has positions without memory: materialize it first".into();
        return Err(Error::NeedsCopy { axes: [].into(), reason });
    }
    let reversed = (0..layout.ndim()).filter(|&axis| layout.strides()[axis] < 0).collect();
    let strides: Vec<usize> = layout.strides().iter().map(|stride| stride.unsigned_abs()).collect();
    let low = layout.reachable_range().map_or(0, |(low, _)| low);
    Ok((IxDyn(layout.shape()).strides(IxDyn(&strides)), reversed, low))
}

fn refused(error: ndarray::ShapeError) -> Error {
    Error::Indices { reason: format!("ndarray refuses the layout: {error}") }
}

impl<'a, T: Element> View<'a, T> {
    /// The same memory as an `ndarray` view.
    ///
    /// # Errors
    /// `NeedsCopy` for a padded view; `Index` for a layout that `ndarray` has no words for.
    pub fn to_ndarray(&self) -> Result<ArrayViewD<'a, T>, Error> {
        let (shape, reversed, low) = parts(self.layout())?;
        let mut array = ArrayView::from_shape(shape, &self.data()[low..]).map_err(refused)?;
        reversed.into_iter().for_each(|axis| array.invert_axis(Axis(axis)));
        Ok(array)
    }
}

impl<T: Element> ViewMut<'_, T> {
    /// The same memory as a writable `ndarray` view.
    ///
    /// # Errors
    /// As [`View::to_ndarray`].
    pub fn as_ndarray_mut(&mut self) -> Result<ArrayViewMutD<'_, T>, Error> {
        let (shape, reversed, low) = parts(self.layout())?;
        let mut array = ArrayViewMut::from_shape(shape, &mut self.data_mut()[low..]).map_err(refused)?;
        reversed.into_iter().for_each(|axis| array.invert_axis(Axis(axis)));
        Ok(array)
    }
}

impl<T: Element> Tensor<T> {
    /// The tensor as an `ndarray` view.
    pub fn to_ndarray(&self) -> ArrayViewD<'_, T> {
        ArrayView::from_shape(IxDyn(self.shape()), self.as_slice())
            .expect("a tensor holds what its shape says")
    }
}

/// The array in standard (row-major) order: borrowed when it is already, else copied by the engine.
///
/// An array view that leaves gaps in memory is copied by `ndarray` itself.
///
/// # Errors
/// `Isa` when `RESTRIDE_ISA` names a level that this CPU lacks.
pub fn standard_layout<A, S, D>(array: &ArrayBase<S, D>) -> Result<CowArray<'_, A, D>, Error>
where
    A: Element,
    S: Data<Elem = A>,
    D: Dimension,
{
    standard_layout_with(array, &CopyOptions::default())
}

/// [`standard_layout`] with options.
///
/// # Errors
/// As [`standard_layout`].
pub fn standard_layout_with<'a, A, S, D>(
    array: &'a ArrayBase<S, D>,
    options: &CopyOptions,
) -> Result<CowArray<'a, A, D>, Error>
where
    A: Element,
    S: Data<Elem = A>,
    D: Dimension,
{
    if array.is_standard_layout() {
        return Ok(array.view().into());
    }
    let Ok(view) = View::try_from(array.view()) else {
        return Ok(array.as_standard_layout());
    };
    let mut out = Array::uninit(array.raw_dim());
    let memory = out.as_slice_mut().expect("a new array is in standard order");
    view.materialize_into_uninit_with(memory, options)?;
    // SAFETY: the line above wrote every element.
    Ok(unsafe { out.assume_init() }.into())
}

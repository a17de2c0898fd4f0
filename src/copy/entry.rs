//! The public entry points, and the one place that turns checked layouts into pointers.

use super::nest::{self, Buffers};
use super::options::CopyOptions;
use super::plan::Plan;
use crate::Error;
use crate::layout::{Layout, share_memory};
use crate::tensor::{Tensor, Uninit};
use crate::view::{BytesView, BytesViewMut, Element, View, ViewMut};
use std::mem::MaybeUninit;
use std::ops::Deref;

/// Copies `src` into `dst`, whose shapes must be equal.
///
/// # Errors
/// `ShapeMismatch` (a copy never broadcasts), `Isa` when `RESTRIDE_ISA` names a level that this CPU lacks.
///
/// ```
/// use restride::{Layout, View, ViewMut, copy};
/// let from = [1u16, 2, 3, 4, 5, 6];
/// let mut to = [0u16; 6];
/// let src = View::new(&from, Layout::row_major(&[2, 3])?)?;
/// let mut dst = ViewMut::new(&mut to, Layout::column_major(&[2, 3])?)?;
/// copy(&src, &mut dst)?;
/// assert_eq!(to, [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), restride::Error>(())
/// ```
pub fn copy<T: Element>(src: &View<'_, T>, dst: &mut ViewMut<'_, T>) -> Result<(), Error> {
    copy_with(src, dst, &CopyOptions::default())
}

/// [`copy`] with options.
///
/// # Errors
/// As [`copy`]; `Isa` when the options name a level that this CPU lacks.
pub fn copy_with<T: Element>(
    src: &View<'_, T>,
    dst: &mut ViewMut<'_, T>,
    options: &CopyOptions,
) -> Result<(), Error> {
    let (data, layout) = dst.parts_mut();
    // SAFETY: a `ViewMut` reaches only its own slice (L2), no element of it twice (L5).
    unsafe { view_into(src, layout, data.as_mut_ptr().cast(), options) }
}

/// Copies elements of a size known at run time. Neither side need be aligned.
///
/// # Errors
/// `ShapeMismatch`; `LengthMismatch` when the element sizes differ; `Isa`.
///
/// ```
/// use restride::{BytesView, BytesViewMut, CopyOptions, Layout, copy_bytes};
/// let mut to = [0u8; 6];
/// let layout = Layout::row_major(&[2])?;
/// let src = BytesView::new(b"abcdef", layout.apply("[::-1]")?, 3)?;
/// copy_bytes(&src, &mut BytesViewMut::new(&mut to, layout, 3)?, &CopyOptions::default())?;
/// assert_eq!(&to, b"defabc");
/// # Ok::<(), restride::Error>(())
/// ```
pub fn copy_bytes(
    src: &BytesView<'_>,
    dst: &mut BytesViewMut<'_>,
    options: &CopyOptions,
) -> Result<(), Error> {
    let size = src.element_size();
    if dst.element_size() != size {
        return Err(Error::LengthMismatch { got: dst.element_size(), expected: size });
    }
    let (data, layout) = dst.parts_mut();
    // SAFETY: a `BytesViewMut` reaches only its own slice (L2), no element of it twice (L5).
    unsafe { bytes_into(src, layout, data.as_mut_ptr(), options) }
}

/// Copies from one layout to another inside one buffer of elements of `element_size` bytes.
///
/// # Errors
/// `Overlap` when the two layouts share an element (exact, rule L8) or `dst` reaches one twice (L5);
/// `Bounds` when one leaves the buffer; `ShapeMismatch`, `Isa`.
///
/// ```
/// use restride::{CopyOptions, Layout, copy_within};
/// let mut data = *b"a.b.c.";
/// let even = Layout::new(&[3], &[2], 0)?;
/// let odd = Layout::new(&[3], &[2], 1)?;
/// copy_within(&mut data, &even, &odd, 1, &CopyOptions::default())?;
/// assert_eq!(&data, b"aabbcc");
/// assert_eq!(copy_within(&mut data, &even, &even, 1, &CopyOptions::default()).unwrap_err().kind(), "overlap");
/// # Ok::<(), restride::Error>(())
/// ```
pub fn copy_within(
    data: &mut [u8],
    src: &Layout,
    dst: &Layout,
    element_size: usize,
    options: &CopyOptions,
) -> Result<(), Error> {
    BytesView::new(data, src.clone(), element_size)?;
    BytesViewMut::new(data, dst.clone(), element_size)?;
    if share_memory(src, dst) {
        return Err(Error::Overlap {
            axis: None,
            reason: "source and destination share memory: copy through a buffer of its own".into(),
        });
    }
    let zeros = smallvec::SmallVec::<[u8; 16]>::from_elem(0, element_size);
    let plan = Plan::at_address(src, dst, element_size, data.as_ptr().addr() % 64, options)?;
    let data = data.as_mut_ptr();
    // SAFETY: both layouts were checked against the buffer above (L2, L5) and share no element (L8).
    unsafe { nest::execute(&plan, Buffers { src: data, dst: data, fill: zeros.as_ptr() }) };
    Ok(())
}

/// Writes `value` to every position of `dst`.
///
/// # Errors
/// `Isa` when `RESTRIDE_ISA` names a level that this CPU lacks.
///
/// ```
/// use restride::{Layout, ViewMut, fill};
/// let mut data = [0i32; 6];
/// fill(&mut ViewMut::new(&mut data, Layout::new(&[3], &[2], 1)?)?, 7)?;
/// assert_eq!(data, [0, 7, 0, 7, 0, 7]);
/// # Ok::<(), restride::Error>(())
/// ```
pub fn fill<T: Element>(dst: &mut ViewMut<'_, T>, value: T) -> Result<(), Error> {
    fill_with(dst, value, &CopyOptions::default())
}

/// [`fill`] with options.
///
/// # Errors
/// As [`fill`].
pub fn fill_with<T: Element>(dst: &mut ViewMut<'_, T>, value: T, options: &CopyOptions) -> Result<(), Error> {
    let one = [value];
    let layout = Layout::new(&[], &[], 0)?.broadcast_to(dst.shape())?;
    copy_with(&View::new(&one, layout)?, dst, options)
}

impl<T: Element> View<'_, T> {
    /// The view's elements in a new contiguous tensor.
    ///
    /// # Errors
    /// `Overflow` and `Alloc` when the result is too large; `Isa`.
    pub fn materialize(&self) -> Result<Tensor<T>, Error> {
        self.materialize_with(&CopyOptions::default())
    }

    /// [`View::materialize`] with options.
    ///
    /// # Errors
    /// As [`View::materialize`].
    pub fn materialize_with(&self, options: &CopyOptions) -> Result<Tensor<T>, Error> {
        let mut memory = Uninit::new(self.shape())?;
        self.materialize_into_uninit_with(memory.spare(), options)?;
        // SAFETY: the line above wrote every element.
        Ok(unsafe { memory.assume_init() })
    }

    /// The view's elements in row-major order into a slice of exactly as many.
    ///
    /// # Errors
    /// `LengthMismatch`, `Isa`.
    pub fn materialize_into(&self, out: &mut [T]) -> Result<(), Error> {
        self.materialize_into_with(out, &CopyOptions::default())
    }

    /// [`View::materialize_into`] with options.
    ///
    /// # Errors
    /// As [`View::materialize_into`].
    pub fn materialize_into_with(&self, out: &mut [T], options: &CopyOptions) -> Result<(), Error> {
        // SAFETY: `out` is `out.len()` elements long and this function only writes elements to it.
        unsafe { materialize_raw(self, out.as_mut_ptr(), out.len(), options) }
    }

    /// [`View::materialize_into`] for memory that nobody has written yet; gives back the same memory.
    ///
    /// # Errors
    /// As [`View::materialize_into`].
    pub fn materialize_into_uninit<'m>(&self, out: &'m mut [MaybeUninit<T>]) -> Result<&'m mut [T], Error> {
        self.materialize_into_uninit_with(out, &CopyOptions::default())
    }

    /// [`View::materialize_into_uninit`] with options.
    ///
    /// # Errors
    /// As [`View::materialize_into`].
    pub fn materialize_into_uninit_with<'m>(
        &self,
        out: &'m mut [MaybeUninit<T>],
        options: &CopyOptions,
    ) -> Result<&'m mut [T], Error> {
        let (data, len) = (out.as_mut_ptr().cast::<T>(), out.len());
        // SAFETY: `out` is `len` elements long; once the call succeeds all of them are written.
        unsafe {
            materialize_raw(self, data, len, options)?;
            Ok(std::slice::from_raw_parts_mut(data, len))
        }
    }

    /// The view's elements as one slice: borrowed when the view is contiguous, else materialized.
    ///
    /// # Errors
    /// As [`View::materialize`].
    pub fn to_contiguous(&self) -> Result<Contiguous<'_, T>, Error> {
        self.to_contiguous_with(&CopyOptions::default())
    }

    /// [`View::to_contiguous`] with options.
    ///
    /// # Errors
    /// As [`View::materialize`].
    pub fn to_contiguous_with(&self, options: &CopyOptions) -> Result<Contiguous<'_, T>, Error> {
        if self.layout().is_contiguous() {
            // An empty view's offset is 0 (L2); any other starts inside the slice.
            let start = self.layout().offset() as usize;
            return Ok(Contiguous::Borrowed(&self.data()[start..start + self.layout().numel()]));
        }
        self.materialize_with(options).map(Contiguous::Owned)
    }
}

impl BytesView<'_> {
    /// The view's elements in row-major order into a slice of exactly their bytes.
    ///
    /// # Errors
    /// `LengthMismatch`, `Isa`; `Overflow` when the result does not fit in memory.
    ///
    /// ```
    /// use restride::{BytesView, CopyOptions, Layout};
    /// let turned = Layout::row_major(&[2, 2])?.apply(".T")?;
    /// let mut out = [0; 4];
    /// BytesView::new(b"abcd", turned, 1)?.materialize_into_with(&mut out, &CopyOptions::default())?;
    /// assert_eq!(&out, b"acbd");
    /// # Ok::<(), restride::Error>(())
    /// ```
    pub fn materialize_into_with(&self, out: &mut [u8], options: &CopyOptions) -> Result<(), Error> {
        let size = self.element_size();
        let bytes =
            self.layout().numel().checked_mul(size).ok_or(Error::Overflow { what: "the size in bytes" })?;
        if out.len() != bytes {
            return Err(Error::LengthMismatch { got: out.len(), expected: bytes });
        }
        let data = out.as_mut_ptr();
        let plan = Plan::contiguous(self.layout(), size, data.addr() % 64, options)?;
        // SAFETY: row-major memory of the view's elements is exactly the `bytes` bytes at `data`.
        unsafe { run_bytes(self, &plan, data) };
        Ok(())
    }

    /// The view's elements in row-major order, as the bytes of a one-axis tensor.
    ///
    /// # Errors
    /// `Overflow` or `Alloc` when the result does not fit in memory; `Isa`.
    pub fn materialize_with(&self, options: &CopyOptions) -> Result<Tensor<u8>, Error> {
        let layout = Layout::row_major(self.layout().shape())?;
        let bytes = layout.numel().checked_mul(self.element_size());
        let mut memory = Uninit::new(&[bytes.ok_or(Error::Overflow { what: "the size in bytes" })?])?;
        // SAFETY: a row-major layout reaches exactly the bytes of the new memory, none of them twice.
        unsafe { bytes_into(self, &layout, memory.spare().as_mut_ptr().cast(), options)? };
        // SAFETY: the copy wrote every position of the row-major layout, which is all of the memory.
        Ok(unsafe { memory.assume_init() })
    }
}

/// The elements of a view in row-major order: borrowed where no copy was needed.
#[derive(Debug)]
pub enum Contiguous<'a, T> {
    /// The view was contiguous.
    Borrowed(&'a [T]),
    /// The view was materialized.
    Owned(Tensor<T>),
}

impl<T> Deref for Contiguous<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match self {
            Self::Borrowed(slice) => slice,
            Self::Owned(tensor) => tensor,
        }
    }
}

/// # Safety
/// `out` is writable for `len` elements and nothing else refers to them.
unsafe fn materialize_raw<T: Element>(
    src: &View<'_, T>,
    out: *mut T,
    len: usize,
    options: &CopyOptions,
) -> Result<(), Error> {
    let numel = src.layout().numel();
    if len != numel {
        return Err(Error::LengthMismatch { got: len, expected: numel });
    }
    let plan = Plan::contiguous(src.layout(), size_of::<T>(), out.addr() % 64, options)?;
    let fill = src.fill_value();
    let buffers =
        Buffers { src: src.data().as_ptr().cast(), dst: out.cast(), fill: (&raw const fill).cast() };
    // SAFETY: a `View` reaches only its own slice (L2); row-major memory of `numel` positions is exactly the
    // `len` elements at `out`.
    unsafe { nest::execute(&plan, buffers) };
    Ok(())
}

/// # Safety
/// `dst` reaches only writable elements of `T`'s size from `data`, none of them twice, and nothing
/// else refers to them.
unsafe fn view_into<T: Element>(
    src: &View<'_, T>,
    dst: &Layout,
    data: *mut u8,
    options: &CopyOptions,
) -> Result<(), Error> {
    let plan = Plan::at_address(src.layout(), dst, size_of::<T>(), data.addr() % 64, options)?;
    let fill = src.fill_value();
    let buffers = Buffers { src: src.data().as_ptr().cast(), dst: data, fill: (&raw const fill).cast() };
    // SAFETY: a `View` reaches only its own slice (L2); the destination is the caller's promise.
    unsafe { nest::execute(&plan, buffers) };
    Ok(())
}

/// # Safety
/// As [`view_into`], with elements of `src.element_size()` bytes.
unsafe fn bytes_into(
    src: &BytesView<'_>,
    dst: &Layout,
    data: *mut u8,
    options: &CopyOptions,
) -> Result<(), Error> {
    let plan = Plan::at_address(src.layout(), dst, src.element_size(), data.addr() % 64, options)?;
    // SAFETY: the caller's promise.
    unsafe { run_bytes(src, &plan, data) };
    Ok(())
}

/// # Safety
/// As [`view_into`], for the layout that `plan` was made for.
unsafe fn run_bytes(src: &BytesView<'_>, plan: &Plan, data: *mut u8) {
    let zeros;
    let fill = match src.fill_bytes() {
        Some(fill) => fill.as_ptr(),
        None => {
            zeros = smallvec::SmallVec::<[u8; 16]>::from_elem(0, src.element_size());
            zeros.as_ptr()
        }
    };
    // SAFETY: a `BytesView` reaches only its own slice (L2); the destination is the caller's promise.
    unsafe { nest::execute(plan, Buffers { src: src.data().as_ptr(), dst: data, fill }) };
}

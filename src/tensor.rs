//! An owned, aligned, contiguous tensor.

use crate::Error;
use crate::error::words::counted;
use crate::layout::{Extents, Index, Layout, check_shape};
use crate::view::{Element, View, ViewMut};
use aligned_vec::{AVec, RuntimeAlign};
use std::mem::MaybeUninit;

/// Alignment of every tensor: one cache line.
const LINE: usize = 64;
/// From this many bytes on, memory is aligned to a huge page and asked for as such.
const HUGE: usize = 2 << 20;

/// Owned, contiguous (row-major) elements of a shape, aligned to 64 bytes, from 2 MiB on to 2 MiB with a
/// request for huge pages.
///
/// ```
/// use restride::Tensor;
/// let x = Tensor::from_slice(&[2, 3], &[1, 2, 3, 4, 5, 6])?;
/// assert_eq!(x.t()?.materialize()?.as_slice(), [1, 4, 2, 5, 3, 6]);
/// # Ok::<(), restride::Error>(())
/// ```
pub struct Tensor<T> {
    data: AVec<T, RuntimeAlign>,
    shape: Extents,
}

/// Memory for a tensor that nobody has written yet.
pub struct Uninit<T> {
    data: AVec<T, RuntimeAlign>,
    shape: Extents,
    numel: usize,
}

impl<T: Element> Uninit<T> {
    /// Allocates memory for `shape` without touching it.
    ///
    /// # Errors
    /// `Overflow` when the size does not fit the address space, `Alloc` when the memory cannot be had.
    pub fn new(shape: &[usize]) -> Result<Self, Error> {
        let numel = check_shape(shape)?;
        let bytes = numel.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize - HUGE);
        let bytes = bytes.ok_or(Error::Overflow { what: "the size in bytes" })?;
        let align = if bytes >= HUGE { HUGE } else { LINE };
        let mut data: AVec<T, RuntimeAlign> = AVec::new(align.max(align_of::<T>()));
        data.try_reserve_exact(numel).map_err(|_| Error::Alloc { bytes })?;
        if bytes >= HUGE {
            crate::machine::pages::advise_huge(data.as_mut_ptr().cast(), bytes);
        }
        Ok(Self { data, shape: shape.into(), numel })
    }

    /// The memory, to be written.
    pub fn spare(&mut self) -> &mut [MaybeUninit<T>] {
        // SAFETY: `new` reserved `numel` elements; `MaybeUninit` asks nothing of what they hold.
        unsafe { std::slice::from_raw_parts_mut(self.data.as_mut_ptr().cast(), self.numel) }
    }

    /// The tensor whose element `k` in row-major order is `f(k)`.
    pub fn write_with(mut self, mut f: impl FnMut(usize) -> T) -> Tensor<T> {
        for (k, place) in self.spare().iter_mut().enumerate() {
            place.write(f(k));
        }
        // SAFETY: the loop wrote every element.
        unsafe { self.assume_init() }
    }

    /// The tensor.
    ///
    /// # Safety
    /// Every element of [`Uninit::spare`] must have been written.
    pub unsafe fn assume_init(mut self) -> Tensor<T> {
        // SAFETY: capacity for `numel` was reserved by `new`, and the caller wrote all of it.
        unsafe { self.data.set_len(self.numel) };
        Tensor { data: self.data, shape: self.shape }
    }
}

impl<T: Element> Tensor<T> {
    /// A tensor of `shape` with a copy of `data` in row-major order.
    ///
    /// # Errors
    /// `LengthMismatch` unless the slice holds as many elements as the shape; `Overflow`, `Alloc`.
    pub fn from_slice(shape: &[usize], data: &[T]) -> Result<Self, Error> {
        let mut memory = Uninit::new(shape)?;
        let spare = memory.spare();
        if spare.len() != data.len() {
            return Err(Error::LengthMismatch { got: data.len(), expected: spare.len() });
        }
        spare.write_copy_of_slice(data);
        // SAFETY: the line above wrote all of it, the lengths being equal.
        Ok(unsafe { memory.assume_init() })
    }

    /// A tensor of `shape` whose element `k` in row-major order is `f(k)`.
    ///
    /// # Errors
    /// `Overflow`, `Alloc`.
    pub fn from_fn(shape: &[usize], f: impl FnMut(usize) -> T) -> Result<Self, Error> {
        Ok(Uninit::new(shape)?.write_with(f))
    }

    /// Extents, one per axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The same elements in another shape; nothing is copied.
    ///
    /// # Errors
    /// `Shape` when the sizes differ.
    pub fn into_shape(self, shape: &[usize]) -> Result<Self, Error> {
        let refuse = || Error::Shape {
            from: self.shape[..].into(),
            to: shape.iter().map(|&extent| extent as isize).collect(),
            reason: format!("the tensor holds {}", counted(self.data.len(), "element")),
        };
        if check_shape(shape)? != self.data.len() {
            return Err(refuse());
        }
        Ok(Self { data: self.data, shape: shape.into() })
    }

    /// The elements in row-major order.
    pub fn as_slice(&self) -> &[T] {
        &self.data
    }

    /// The elements in row-major order, writable.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.data
    }

    /// The contiguous layout of this shape.
    pub fn layout(&self) -> Layout {
        // The shape was checked when the tensor was made.
        Layout::row_major(&self.shape).expect("the shape of a tensor is legal")
    }

    /// A view of all of it.
    pub fn view(&self) -> View<'_, T> {
        View::new(&self.data, self.layout()).expect("a tensor holds what its shape says")
    }

    /// A writable view of all of it.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        let layout = self.layout();
        ViewMut::new(&mut self.data, layout).expect("a tensor holds what its shape says")
    }

    /// The view that an expression names (see [`Expr`](crate::Expr)).
    ///
    /// # Errors
    /// As [`View::apply`].
    pub fn apply(&self, expr: &str) -> Result<View<'_, T>, Error> {
        self.view().apply(expr)
    }

    /// Share of this tensor's memory that lies in huge pages, 0 to 1; `None` where the system does not say.
    pub fn huge_page_share(&self) -> Option<f64> {
        crate::machine::pages::huge_share(self.data.as_ptr().cast(), size_of_val(self.as_slice()))
    }
}

macro_rules! tensor_methods {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*);)*) => {
        impl<T: Element> Tensor<T> {
            $($(#[$doc])*
            ///
            /// # Errors
            #[doc = concat!("As [`Layout::", stringify!($name), "`].")]
            pub fn $name(&self, $($arg: $type),*) -> Result<View<'_, T>, Error> {
                self.view().$name($($arg),*)
            })*

            /// Padded positions around, that read `value`: one (before, after) pair per axis.
            ///
            /// # Errors
            /// As [`Layout::pad`].
            pub fn pad(&self, widths: &[(usize, usize)], value: T) -> Result<View<'_, T>, Error> {
                self.view().pad(widths, value)
            }

            /// Any shape, strides and absolute offset over the elements.
            ///
            /// # Errors
            /// As [`Layout::as_strided`].
            pub fn as_strided(
                &self,
                shape: &[usize],
                strides: &[isize],
                offset: isize,
            ) -> Result<View<'_, T>, Error> {
                self.view().as_strided(shape, strides, offset)
            }
        }
    };
}

crate::view::with_operations!(tensor_methods);

impl<T> std::ops::Deref for Tensor<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.data
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tensor").field("shape", &self.shape).field("data", &&self.data[..]).finish()
    }
}

impl<T: PartialEq> PartialEq for Tensor<T> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.data[..] == other.data[..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_and_impossible_sizes_are_errors() {
        let small = Tensor::from_fn(&[3, 5], |k| k as u16).unwrap();
        assert_eq!(small.as_slice().as_ptr() as usize % LINE, 0);
        let large = Tensor::from_fn(&[1 << 20], |k| k as u32).unwrap();
        assert_eq!(large.as_slice().as_ptr() as usize % HUGE, 0);
        assert_eq!(Uninit::<f32>::new(&[1 << 62]).err().unwrap().kind(), "overflow");
        assert_eq!(Uninit::<u8>::new(&[1 << 61]).err().unwrap().kind(), "alloc");
        // The size rounded up to the alignment must fit too.
        let most = isize::MAX as usize;
        for (bytes, kind) in [(most - HUGE, "alloc"), (most - HUGE + 1, "overflow"), (most, "overflow")] {
            assert_eq!(Uninit::<u8>::new(&[bytes]).err().unwrap().kind(), kind, "{bytes}");
            let wide = bytes / 16 + usize::from(kind == "overflow");
            assert_eq!(Uninit::<[u8; 16]>::new(&[wide]).err().unwrap().kind(), kind, "{wide} x 16");
        }
        assert_eq!(Tensor::<u8>::from_slice(&[0, 9], &[]).unwrap().as_slice(), [0u8; 0]);
        assert_eq!(Tensor::from_slice(&[2], &[1u8]).unwrap_err().kind(), "length_mismatch");
    }
}

//! Reshape that copies where no view expresses the result, and says which of the two happened.

use super::CopyOptions;
use crate::layout::{CopyPolicy, Reshaped};
use crate::view::{Element, View};
use crate::{Error, Tensor};

/// What [`View::reshape_with`] came to.
#[derive(Debug)]
pub enum ReshapedView<'a, T> {
    /// The same memory, read through another layout.
    View(View<'a, T>),
    /// The elements were copied.
    Copied(Tensor<T>),
}

impl<T: Element> ReshapedView<'_, T> {
    /// The result as a view, wherever its memory is.
    pub fn view(&self) -> View<'_, T> {
        match self {
            Self::View(view) => view.clone(),
            Self::Copied(tensor) => tensor.view(),
        }
    }

    /// Whether the elements were copied.
    pub fn copied(&self) -> bool {
        matches!(self, Self::Copied(_))
    }
}

impl<'a, T: Element> View<'a, T> {
    /// Another shape, copied only where no strides express it; at most one −1 is inferred.
    ///
    /// # Errors
    /// `Shape` for sizes that do not fit; `Overflow`, `Alloc`, `Isa` when the copy cannot be made.
    ///
    /// ```
    /// use restride::{Layout, View};
    /// let data = [1, 2, 3, 4, 5, 6];
    /// let x = View::new(&data, Layout::row_major(&[2, 3])?)?;
    /// assert!(!x.reshape_or_copy(&[6])?.copied());
    /// let flat = x.t()?.reshape_or_copy(&[-1])?;
    /// assert!(flat.copied());
    /// assert_eq!(flat.view().iter().collect::<Vec<_>>(), [1, 4, 2, 5, 3, 6]);
    /// # Ok::<(), restride::Error>(())
    /// ```
    pub fn reshape_or_copy(&self, sizes: &[isize]) -> Result<ReshapedView<'a, T>, Error> {
        self.reshape_with(sizes, CopyPolicy::IfNeeded, &CopyOptions::default())
    }

    /// Another shape, with a say in whether it may copy.
    ///
    /// # Errors
    /// As [`View::reshape_or_copy`]; `NeedsCopy` only under [`CopyPolicy::Never`].
    pub fn reshape_with(
        &self,
        sizes: &[isize],
        policy: CopyPolicy,
        options: &CopyOptions,
    ) -> Result<ReshapedView<'a, T>, Error> {
        match self.layout().reshape_with(sizes, policy)? {
            Reshaped::View(_) => self.reshape(sizes).map(ReshapedView::View),
            Reshaped::Copy(layout) => {
                let tensor = self.materialize_with(options)?;
                Ok(ReshapedView::Copied(tensor.into_shape(layout.shape())?))
            }
        }
    }
}

//! Views of tensors made contiguous at the speed of memory.

#[cfg(feature = "instruments")]
pub mod bench;
#[cfg(feature = "instruments")]
pub mod cachesim;
pub mod copy;
pub mod dtype;
pub mod error;
pub mod eval;
pub mod expr;
pub mod layout;
pub mod machine;
#[cfg(feature = "npy")]
pub mod npy;
pub mod tensor;
pub mod view;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod report;

pub use copy::{Contiguous, CopyOptions, Isa, copy, copy_bytes, copy_with, copy_within, fill, fill_with};
pub use copy::{ReshapedView, plan::Plan, tuning::Tuning};
pub use error::Error;
pub use expr::Expr;
pub use layout::{CopyPolicy, Index, Layout, share_memory};
pub use tensor::Tensor;
pub use view::{BytesView, BytesViewMut, Element, View, ViewMut};

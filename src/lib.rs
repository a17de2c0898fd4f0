//! Views of tensors made contiguous at the speed of memory.

pub mod error;
pub mod layout;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;

pub use error::Error;
pub use layout::Layout;

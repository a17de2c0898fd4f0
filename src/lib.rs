//! Views of tensors made contiguous at the speed of memory.

#[cfg(feature = "instruments")]
pub mod bench;
#[cfg(feature = "npy")]
pub mod dtype;
pub mod error;
pub mod layout;
pub mod machine;
#[cfg(feature = "npy")]
pub mod npy;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;

pub use error::Error;
pub use layout::Layout;

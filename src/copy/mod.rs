//! The engine: any view into contiguous memory, or into any other view, at the speed of memory.

#[cfg(any(test, feature = "instruments"))]
#[doc(hidden)]
pub mod cover;
mod entry;
pub(crate) mod kernels;
mod map;
mod nest;
mod options;
pub(crate) mod parallel;
pub mod plan;
pub mod reference;
#[cfg(any(test, feature = "instruments"))]
pub mod replay;
mod reshape;
pub mod tuning;

pub use entry::{Contiguous, copy, copy_bytes, copy_with, copy_within, fill, fill_with};
pub use kernels::Isa;
pub use map::{map_copy, map_copy_with, map_runs, update, update_with};
pub use options::CopyOptions;
pub use reshape::ReshapedView;

#[cfg(test)]
mod tests;

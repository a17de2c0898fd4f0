//! `.npy` files in and out: the header, the mapped input, the atomic output.

mod descr;
mod header;
mod literal;

pub use descr::Element;
pub use header::{Header, HeaderError};

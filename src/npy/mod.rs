//! `.npy` files in and out: the header, the mapped input, the atomic output.

mod bands;
mod descr;
mod error;
#[cfg(unix)]
mod guard;
#[cfg(not(unix))]
#[path = "guard_none.rs"]
mod guard;
mod header;
mod input;
mod literal;
mod output;
mod pass;
mod sides;

pub use descr::Element;
pub use error::NpyError;
pub use guard::install_signal_handlers;
pub use header::{Header, HeaderError};
pub use input::Input;
pub use output::Output;
pub use pass::{CopyBytes, Job, Limits, Ran, run, verify};
pub use sides::{Between, Sink, Source};

//! Views of tensors made contiguous at the speed of memory, and instruments that show what a walk costs.
//!
//! A [`Layout`] says how a buffer is read, a [`View`] is a layout over a slice, and
//! [`View::materialize`] makes the view contiguous. [`copy()`] goes from any view into any other;
//! [`Expr`] reads view expressions such as `".T[:, ::2]"`; [`Plan`] shows how a copy will run.
//!
//! # Features
//!
//! - `cli` (default): the command-line tool; turns on all of the following but the last three.
//! - `parallel`: copies on several threads.
//! - `npy`: `.npy` files in and out.
//! - `profile`: the tuning profile of this machine on disk.
//! - `instruments`: topology, pinning, counters, the cache model, benchmarks (unstable surface).
//! - `ndarray`: views to and from its arrays.
//! - `half`, `num-complex`: elements of those crates.

#[cfg(feature = "instruments")]
pub mod bench;
#[cfg(feature = "instruments")]
pub mod cachesim;
pub mod copy;
pub mod dtype;
pub mod error;
pub mod eval;
pub mod expr;
#[cfg(feature = "ndarray")]
pub mod interop;
pub mod layout;
#[cfg_attr(not(feature = "instruments"), doc(hidden))]
pub mod machine;
#[cfg(feature = "npy")]
pub mod npy;
#[cfg(feature = "profile")]
pub mod profile;
pub mod tensor;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod tune;
pub mod view;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod report;

pub use copy::{Contiguous, CopyOptions, Isa, copy, copy_bytes, copy_with, copy_within, fill, fill_with};
pub use copy::{ReshapedView, plan::Plan, tuning::Tuning};
pub use copy::{map_copy, map_copy_with, map_runs, update, update_with};
pub use error::Error;
pub use expr::Expr;
pub use layout::{CopyPolicy, Index, Layout, share_memory};
pub use tensor::Tensor;
pub use view::{BytesView, BytesViewMut, Element, View, ViewMut};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! The search for this machine's tuning values.
//!
//! A [`Target`] is a few knobs that are tuned together for one element size. For each target in turn the
//! model of the caches proposes at most a dozen choices; every choice must copy right before it is timed.
//! Successive halving then times all of them in turn with the current choice on cases that represent what
//! the knob decides, drops the slower half, and gives the rest twice the samples. What is left is confirmed
//! on other cases in reverse order, beside a twin of the current choice: the gain between the two equal
//! twins is the noise of this machine at this moment. That is done in several rounds, each on buffers in other
//! places, because on many machines the pages that a buffer happens to get decide more than a knob does. Only
//! a gain in all rounds but one, above the noise and of at least 5 %, replaces the current choice; of choices that are
//! equally fast the one that changes the least is taken, or the one that an earlier run found. When all targets
//! are through, every winner is confirmed once more, and all of them together are timed against the defaults on
//! the cases of the check; what loses there is dropped. So two searches come to the same copies.
//!
//! All of that is written over [`Stopwatch`], so that tests run it with a clock of their own.

mod cases;
mod check;
mod floor;
mod search;
mod settle;
mod stopwatch;
mod target;

pub use cases::{Case, cases};
pub use check::{Checked, Verdict, check};
pub use search::{Found, Verdict as SearchVerdict, confirm_again, search};
pub use settle::{settle, with_winners};
pub use stopwatch::Real;
pub use target::{Choice, Group, Target, targets};

use crate::copy::tuning::Tuning;
use std::time::Duration;

/// What runs copies and times them.
pub trait Stopwatch {
    /// Nanoseconds of one copy of a case.
    ///
    /// # Errors
    ///
    /// What the copy refuses.
    fn sample(&mut self, case: &Case, tuning: &Tuning) -> Result<f64, crate::Error>;

    /// Whether a copy of the case equals the reference.
    ///
    /// # Errors
    ///
    /// What the copy refuses.
    fn right(&mut self, case: &Case, tuning: &Tuning) -> Result<bool, crate::Error>;

    /// Whether two tunings make the same plan for a case, so that timing them would compare nothing.
    ///
    /// # Errors
    ///
    /// What the plan refuses.
    fn same_plan(&mut self, case: &Case, a: &Tuning, b: &Tuning) -> Result<bool, crate::Error>;

    /// Time since the start.
    fn elapsed(&self) -> Duration;

    /// Whether the user wants it to stop.
    fn stopped(&self) -> bool;

    /// Lets go of the memory of cases.
    fn forget(&mut self) {}
}

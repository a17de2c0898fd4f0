//! Benchmarks: what is timed, how, and the record of it (unstable surface).

pub mod cases;
pub mod record;
pub mod stats;
pub mod timing;
pub mod walks;

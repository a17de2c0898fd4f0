//! Benchmarks: what is timed, how, and the record of it (unstable surface).

pub mod cases;
pub mod compare;
pub mod criterion;
pub mod environment;
pub mod record;
pub mod stats;
pub mod suite;
pub mod timing;
pub mod walks;

//! Benchmarks: what is timed, how, and the record of it (unstable surface).

pub mod record;
pub mod stats;

//! What the fuzz targets check, one file a target, shared with `tests/fuzzed.rs`: `check` takes any bytes and panics
//! where the oracle is not met.

pub mod expressions;
pub mod layouts;
pub mod npy;
pub mod plans;
pub mod profiles;
pub mod records;

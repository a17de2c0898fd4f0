//! Plans over arbitrary pairs of layouts, made with arbitrary tuning values.
#![no_main]

#[path = "../../tests/model/mod.rs"]
mod model;
#[path = "../../tests/oracles/plans.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::check(data));

//! Chains of layout operations, and copies of what they make into arbitrary destinations.
#![no_main]

#[path = "../../tests/model/mod.rs"]
mod model;
#[path = "../../tests/oracles/layouts.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::check(data));

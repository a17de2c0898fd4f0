//! `.npy` files. Input: the bytes of a file; when they are none, a header is put before them.
#![no_main]

#[path = "../../tests/oracles/npy.rs"]
mod oracle;

libfuzzer_sys::fuzz_target!(|data: &[u8]| oracle::check(data));

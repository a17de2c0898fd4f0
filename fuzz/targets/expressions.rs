//! View expressions as text. Input: up to five extents in the first bytes, then the text.
#![no_main]

#[path = "../../tests/model/mod.rs"]
mod model;
#[path = "../../tests/oracles/expressions.rs"]
mod oracle;

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus { if oracle::check(data) { Corpus::Keep } else { Corpus::Reject } });

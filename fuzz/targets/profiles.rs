//! Tuning profiles as text.
#![no_main]

#[path = "../../tests/oracles/profiles.rs"]
mod oracle;

use libfuzzer_sys::{Corpus, fuzz_target};

fuzz_target!(|data: &[u8]| -> Corpus { if oracle::check(data) { Corpus::Keep } else { Corpus::Reject } });

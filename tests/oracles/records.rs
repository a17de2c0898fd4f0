//! Benchmark records as text.
//!
//! Oracle: what is read, written and read again is the same, fields that nobody knows included; the report
//! of any record is well-formed enough to be one page; a record compared with itself has no change.

use restride::bench::compare::Comparison;
use restride::bench::record::Record;
use restride::report::{Data, Options, html};
use std::collections::BTreeSet;

/// Runs one input; says whether it is worth keeping.
pub fn check(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let record = match Record::parse(text, "input") {
        Ok(record) => record,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return true;
        }
    };
    let written = serde_json::to_string(&record).unwrap();
    let back = Record::parse(&written, "written").unwrap();
    assert_eq!(serde_json::to_string(&back).unwrap(), written);
    let names: BTreeSet<&str> = record.cases.iter().map(|case| case.id.as_str()).collect();
    if names.len() == record.cases.len() {
        let comparison = Comparison::new(&record, &record);
        assert!(comparison.beyond_noise().is_empty(), "{:?}", comparison.beyond_noise());
        assert!(comparison.only_base.is_empty() && comparison.only_new.is_empty());
        assert!(comparison.machines.is_empty(), "{:?}", comparison.machines);
    }
    if let Ok(data) = Data::parse(written, "input") {
        let page = html(&[data], &Options { command: "restride report input", baseline: None, views: None });
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
        // Nothing of the record becomes markup.
        assert!(!page.contains("<zq"), "{page}");
    }
    true
}

//! The sections of the page, one file each, in the order of the page.

pub(crate) mod change;
pub(crate) mod copies;
pub(crate) mod machine;
pub(crate) mod mountain;
pub(crate) mod peers;
pub(crate) mod raw;
pub(crate) mod summary;
pub(crate) mod tiles;
pub(crate) mod walks;

use super::charts::Edge;
use super::data::Data;
use maud::{Markup, html};

/// What stands where a record has nothing to show: never an empty section.
fn missing(what: &str, command: &str) -> Markup {
    html! { p.missing { (what) " To add it: " code { (command) } "." } }
}

/// Cache sizes as vertical lines; only when all records agree on them.
fn edges(records: &[&Data]) -> Vec<Edge> {
    let mut all: Vec<(String, f64)> = Vec::new();
    for d in records {
        for c in d.caches() {
            if !all.iter().any(|(n, b)| *n == c.name && *b == c.bytes) {
                all.push((c.name, c.bytes));
            }
        }
    }
    let one = records.len() == 1 || all.len() == records[0].caches().len();
    if one { all.into_iter().map(|(name, x)| Edge { x, name }).collect() } else { Vec::new() }
}

/// A heading for one record where several are shown.
fn which(records: &[&Data], d: &Data) -> Markup {
    html! { @if records.len() > 1 { h3.which { (d.label) } } }
}

/// A list such as a shape, as `64 × 32`.
fn shape(list: &[f64]) -> String {
    list.iter().map(|v| super::num::count(*v)).collect::<Vec<_>>().join(" × ")
}

//! Data, method, and how to make this page again.

use crate::error::words::counted;
use crate::report::data::Data;
use crate::report::num::bytes;
use maud::{Markup, html};

/// The section.
pub(crate) fn section(records: &[&Data], command: &str) -> Markup {
    html! {
        h3 { "Data" }
        ul.downloads { @for (i, d) in records.iter().enumerate() {
            @let known = ["walk", "chase", "copy", "tile", "peer"];
            @let other = d.cases.iter().filter(|c| !known.contains(&c.kind.as_str())).count();
            li {
                strong { (d.label) }
                span.dim { " " (counted(d.cases.len(), "case")) ", made " (if d.created().is_empty() { "at an unknown time".to_owned() } else { d.created() }) }
                p { "Measured with " code { (d.command()) } @if let Some(g) = d.value["git"].as_str() { " at " code { (g) } } "." }
                @if other > 0 { p.note { (counted(other, "case")) " of kinds that this version does not draw, kept in the data." } }
                p.js { button type="button" data-download="json" data-record=(i) { "Download JSON" } " "
                       button type="button" data-download="csv" data-record=(i) { "Download CSV" } }
                noscript { p.note { "The record and its tables (JSON, CSV, Markdown) lie beside this page." } }
            }
        } }
        h3 { "Made by" }
        p { code.block { (command) } }
        h3 { "Method and conventions" }
        ul.method {
            li { strong { "GB/s" } " is decimal and counts the distinct source bytes that a view reads plus the destination bytes written. A broadcast source counts once." }
            li { strong { "Of memcpy" } " is the time of memcpy, one thread, for as many bytes as the result holds, over the time of the case; both were timed in turns in the same run, on buffers of their own that had been touched before." }
            li { strong { "Intervals" } " are about 95 % intervals of the median, from order statistics; nothing is assumed about the shape of the noise. A single sample has no interval." }
            li { strong { "Model" } " is an exact simulation of the caches in the table above: LRU, no prefetch, no TLB, all levels cold at the start. It is not a measurement, and the page never mixes the two: what a counter counted is called " strong { "measured" } "." }
            li { "Counters run in a pass of their own, never in a timed one. A counter that cannot be read shows its state, never 0." }
            li { "The time of a walk is the median time of a whole pass divided by the elements that it reads." }
        }
        @let total: usize = records.iter().map(|d| d.text.len()).sum();
        p.note { "Records inside this page: " (bytes(total as f64)) "." }
    }
}

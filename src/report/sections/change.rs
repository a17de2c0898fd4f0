//! Change against a baseline: only what exceeds the noise is called one.

use crate::bench::compare::{Change, Comparison};
use crate::error::words::counted;
use crate::report::charts::{Intervals, Span, Table};
use crate::report::data::Data;
use crate::report::num::{percent, ratio, time};
use maud::{Markup, html};

/// `better`, `worse` or `same`, as `restride compare` decides it.
pub(crate) fn verdict(c: &Change) -> &'static str {
    match (c.slower(), c.faster()) {
        (true, _) => "worse",
        (_, true) => "better",
        _ => "same",
    }
}

fn in_words(c: &Change) -> &'static str {
    match verdict(c) {
        "worse" => "slower",
        "better" => "faster",
        _ => "within the noise",
    }
}

/// An amount in the unit of a case.
pub(crate) fn amount(v: f64, unit: &str) -> String {
    if unit == "ns" { time(v) } else { format!("{} {unit}", crate::report::num::sig3(v)) }
}

/// The record to compare with: the one that was named, or the earliest of the last record's machine.
fn pair<'a>(records: &'a [&'a Data], baseline: Option<&'a Data>) -> Option<(&'a Data, &'a Data)> {
    if let Some(b) = baseline {
        return Some((b, records.last()?));
    }
    let mut all: Vec<&Data> = records.to_vec();
    all.sort_by_key(|d| d.created());
    let older =
        |new: &&Data| all.iter().copied().find(|d| d.created() < new.created() && d.cpu() == new.cpu());
    all.iter().rev().find_map(|new| Some((older(new)?, *new)))
}

/// The section.
pub(crate) fn section(records: &[&Data], baseline: Option<&Data>) -> Markup {
    let Some((base, new)) = pair(records, baseline) else {
        return super::missing("No baseline was given.", "restride report NEW.json --baseline BASE.json");
    };
    let comparison = Comparison::new(&base.record, &new.record);
    let all = &comparison.changes;
    if all.is_empty() {
        return html! { p.missing { "The baseline and this record have no timed case in common." } };
    }
    let mut changed: Vec<&Change> = comparison.beyond_noise();
    changed.sort_by(|a, b| b.ratio.unwrap_or(1.0).total_cmp(&a.ratio.unwrap_or(1.0)));
    let worse = changed.iter().filter(|c| c.slower()).count();
    let better = changed.len() - worse;
    let shown = |r: Option<f64>| r.map_or_else(|| "–".into(), ratio);
    let spans = (changed.iter())
        .filter_map(|c| {
            let (r, low, high) = (c.ratio?, c.ratio_low?, c.ratio_high?);
            Some(Span {
                name: c.id.clone(),
                value: r,
                range: (low, high),
                shown: format!("{} {}", percent((r - 1.0).abs()), in_words(c)),
                verdict: verdict(c),
                tip: format!(
                    "{}: {} → {}, ratio {} ({} to {})",
                    c.id,
                    amount(c.base.median, &c.unit),
                    amount(c.new.median, &c.unit),
                    ratio(r),
                    ratio(low),
                    ratio(high)
                ),
            })
        })
        .collect();
    let head = ["case", "before", "now", "time ratio", "interval", "verdict"].map(String::from).into();
    let rows = (all.iter())
        .map(|c| {
            vec![
                c.id.clone(),
                amount(c.base.median, &c.unit),
                amount(c.new.median, &c.unit),
                shown(c.ratio),
                format!("{} to {}", shown(c.ratio_low), shown(c.ratio_high)),
                in_words(c).into(),
            ]
        })
        .collect();
    let table = Table { head, rows };
    html! {
        p {
            "Against " strong { (base.label) } ", made " (base.created()) ". Of " (counted(all.len(), "case")) " in both records, "
            strong { (worse) } " slower and " strong { (better) } " faster beyond the noise; the other "
            (all.len() - worse - better) " did not change measurably."
        }
        @if !comparison.machines.is_empty() {
            p.warn { "The machines differ (" (comparison.machines.join("; ")) "): the ratios compare machines, not versions." }
        }
        @match (Intervals {
            id: "what-changed".into(),
            title: "What changed".into(),
            reading: "Time now over time then; right of the middle line is slower. The bar is the interval: it combines both records' 95 % intervals.".into(),
            spans,
            table,
        }).figure() {
            Some(f) => (f),
            None => p.note { "Nothing changed beyond the noise." },
        }
    }
}

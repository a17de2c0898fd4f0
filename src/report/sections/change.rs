//! Change against a baseline: only what exceeds the noise is called one.

use crate::report::charts::{Intervals, Span, Table};
use crate::report::data::{Data, Stat};
use crate::report::num::{percent, ratio, time};
use maud::{Markup, html};

/// Differences below this are never called a change, however narrow the intervals.
const LEAST: f64 = 0.02;

/// How one case changed: time now over time then.
pub(crate) struct Change {
    pub name: String,
    pub ratio: Stat,
    pub before_ns: f64,
    pub after_ns: f64,
}

impl Change {
    /// `better`, `worse`, or `same` while 1 lies in the interval or the difference is tiny.
    pub(crate) fn verdict(&self) -> &'static str {
        match self.ratio {
            r if (r.median - 1.0).abs() < LEAST => "same",
            r if r.high < 1.0 => "better",
            r if r.low > 1.0 => "worse",
            _ => "same",
        }
    }
}

/// All cases that both records have.
pub(crate) fn changes(base: &Data, new: &Data) -> Vec<Change> {
    let mut out: Vec<Change> = (new.cases.iter())
        .filter_map(|c| {
            let b = base.cases.iter().find(|b| b.id == c.id && b.kind == c.kind)?;
            let (before, after) = (b.time_ns.filter(|t| t.low > 0.0)?, c.time_ns.filter(|t| t.low > 0.0)?);
            let r = Stat {
                median: after.median / before.median,
                low: after.low / before.high,
                high: after.high / before.low,
                samples: after.samples.min(before.samples),
            };
            let ratio = r.map(|v| v)?;
            Some(Change { name: c.id.clone(), ratio, before_ns: before.median, after_ns: after.median })
        })
        .collect();
    out.sort_by(|a, b| b.ratio.median.total_cmp(&a.ratio.median));
    out
}

/// The record to compare with: the one that was named, or the earliest of the last record's machine.
fn pair<'a>(records: &'a [Data], baseline: Option<&'a Data>) -> Option<(&'a Data, &'a Data)> {
    if let Some(b) = baseline {
        return Some((b, records.last()?));
    }
    let mut all: Vec<&Data> = records.iter().collect();
    all.sort_by_key(|d| d.created());
    let new = all.pop()?;
    Some((all.into_iter().find(|d| d.cpu() == new.cpu() && !changes(d, new).is_empty())?, new))
}

/// The section.
pub(crate) fn section(records: &[Data], baseline: Option<&Data>) -> Markup {
    let Some((base, new)) = pair(records, baseline) else {
        return super::missing("No baseline was given.", "restride report NEW.json --baseline BASE.json");
    };
    let all = changes(base, new);
    if all.is_empty() {
        return html! { p.missing { "The baseline and this record have no timed case in common." } };
    }
    let changed: Vec<&Change> = all.iter().filter(|c| c.verdict() != "same").collect();
    let (worse, better) = (
        changed.iter().filter(|c| c.verdict() == "worse").count(),
        changed.iter().filter(|c| c.verdict() == "better").count(),
    );
    let spans = (changed.iter())
        .map(|c| Span {
            name: c.name.clone(),
            value: c.ratio.median,
            range: (c.ratio.low, c.ratio.high),
            shown: format!(
                "{} {}",
                percent((c.ratio.median - 1.0).abs()),
                if c.verdict() == "worse" { "slower" } else { "faster" }
            ),
            verdict: c.verdict(),
            tip: format!(
                "{}: {} → {}, ratio {} ({} to {})",
                c.name,
                time(c.before_ns),
                time(c.after_ns),
                ratio(c.ratio.median),
                ratio(c.ratio.low),
                ratio(c.ratio.high)
            ),
        })
        .collect();
    let head = ["case", "before", "now", "time ratio", "interval", "verdict"].map(String::from).into();
    let rows = (all.iter())
        .map(|c| {
            vec![
                c.name.clone(),
                time(c.before_ns),
                time(c.after_ns),
                ratio(c.ratio.median),
                format!("{} to {}", ratio(c.ratio.low), ratio(c.ratio.high)),
                verdict(c).into(),
            ]
        })
        .collect();
    let table = Table { head, rows };
    html! {
        p {
            "Against " strong { (base.label) } ", " (base.created()) ". Of " (all.len()) " cases in both records, "
            strong { (worse) } " are slower and " strong { (better) } " faster beyond the noise; the other "
            (all.len() - worse - better) " did not change measurably."
        }
        @if base.cpu() != new.cpu() {
            p.warn { "The two records are from different machines (" (base.cpu()) " and " (new.cpu()) "): the ratios compare machines, not versions." }
        }
        @match (Intervals {
            id: "change".into(),
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

fn verdict(c: &Change) -> &'static str {
    match c.verdict() {
        "worse" => "slower",
        "better" => "faster",
        _ => "within the noise",
    }
}

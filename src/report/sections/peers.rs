//! Other libraries on the same cases, when a record of the peers program is given.

use crate::error::words::counted;
use crate::report::charts::{Bar, Bars, Group, Table};
use crate::report::data::{Case, Data, geomean};
use crate::report::num::{counts, ratio, sig3};
use maud::{Markup, html};

/// The section.
pub(crate) fn section(records: &[&Data]) -> Markup {
    let with: Vec<&Data> = records.iter().copied().filter(|d| d.of_kind("peer").next().is_some()).collect();
    if with.is_empty() {
        return super::missing(
            "No record of the peers program was given.",
            "(cd benches/peers && cargo run --release -- --json peers.json), then restride report RECORD.json benches/peers/peers.json",
        );
    }
    html! {
        @for (i, d) in with.iter().enumerate() { (super::which(&with, d)) (one(d, i)) }
    }
}

/// Distinct values of a parameter, in the order of the record.
fn distinct(d: &Data, f: impl Fn(&Case) -> String) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for c in d.of_kind("peer") {
        let v = f(c);
        if !out.contains(&v) {
            out.push(v);
        }
    }
    out
}

fn case_of(c: &Case) -> String {
    let name = c.str("case").unwrap_or_else(|| c.name());
    match c.num("threads").filter(|t| *t > 1.0) {
        Some(t) => format!("{name} ({})", counts(t, "thread")),
        None => name,
    }
}

fn peer_of(c: &Case) -> String {
    c.str("peer").unwrap_or_else(|| "unnamed".into())
}

fn one(d: &Data, i: usize) -> Markup {
    let cases = distinct(d, case_of);
    let mut peers = distinct(d, peer_of);
    peers.sort_by_key(|p| p != "restride");
    let at = |case: &str, peer: &str| d.of_kind("peer").find(|c| case_of(c) == case && peer_of(c) == peer);
    let speed = |case: &str, peer: &str| at(case, peer).and_then(Case::ratio).map(|r| r.median);
    // Only cases that every peer of a pair has can be compared by their means: each mean says how many.
    let means: Vec<(String, f64, f64, usize)> = (peers.iter())
        .filter_map(|p| {
            let all: Vec<f64> = cases.iter().filter_map(|c| speed(c, p)).collect();
            let worst = all.iter().copied().reduce(f64::min)?;
            Some((p.clone(), geomean(all.iter().copied())?, worst, all.len()))
        })
        .collect();
    let bars = (means.iter())
        .map(|(name, mean, worst, n)| Bar {
            name: name.clone(),
            detail: counted(*n, "case"),
            value: *mean,
            range: None,
            shown: format!("{} · worst {}", ratio(*mean), ratio(*worst)),
            style: usize::from(name != "restride") * 7,
            ticks: vec![(*worst, "worst", "worst case".into())],
            tip: format!(
                "{name}: geometric mean {} of memcpy over {}, worst {}",
                ratio(*mean),
                counted(*n, "case"),
                ratio(*worst)
            ),
        })
        .collect();
    let head = ["library", "geometric mean", "worst", "cases"].map(String::from).into();
    let rows =
        means.iter().map(|(p, m, w, n)| vec![p.clone(), ratio(*m), ratio(*w), n.to_string()]).collect();
    let figure = Bars {
        id: format!("peers-{i}"),
        title: "Libraries against memcpy".into(),
        reading: "Geometric mean over all cases that a library can do (its number is beside the name), on the same buffers, \
                  interleaved. The tick is its worst case."
            .into(),
        groups: vec![Group { name: "one run, all libraries".into(), bars }],
        legend: html! { ul.legend {
            li.key { svg viewBox="0 0 14 14" aria-hidden="true" { line.ref x1="7" x2="7" y1="0" y2="14" {} } span { "memcpy (1.00)" } }
            li.key { svg viewBox="0 0 14 14" aria-hidden="true" { line.tickmark.worst x1="7" x2="7" y1="0" y2="14" {} } span { "worst case" } }
        } },
        line: Some((1.0, "memcpy".into())),
        table: Table { head, rows },
    };
    html! {
        (figure.figure().unwrap_or_default())
        div.plot {
            h3 { "Case by case" }
            p { "Speed relative to memcpy; the fastest of each row is marked ★." }
            div.scroll.tall tabindex="0" role="region" aria-label="Peers case by case" {
                table.sortable {
                    thead { tr { th scope="col" { "case" } @for p in &peers { th scope="col" { (p) } } } }
                    tbody { @for c in &cases {
                        @let best = peers.iter().filter_map(|p| speed(c, p)).fold(0.0, f64::max);
                        tr {
                            th scope="row" { (c) }
                            @for p in &peers { (cell(at(c, p), speed(c, p), best)) }
                        }
                    } }
                }
            }
        }
    }
}

fn cell(case: Option<&Case>, speed: Option<f64>, best: f64) -> Markup {
    let failed = case.is_some_and(|c| c.params["verified"] == false);
    let tip = case.and_then(|c| {
        Some(format!("{} GB/s {}", sig3(c.gb_per_s()?.median), c.str("version").unwrap_or_default()))
    });
    html! {
        td class=[(speed == Some(best) && !failed).then_some("best")] data-v=[speed.map(|v| format!("{v}"))] title=[tip] {
            @match (speed, failed) {
                (_, true) => "wrong result",
                (Some(v), _) => { (ratio(v)) @if v == best { " ★" } },
                (None, _) => "–",
            }
        }
    }
}

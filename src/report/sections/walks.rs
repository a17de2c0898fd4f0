//! ns per element against working-set size; bandwidth useful and moved; lines and misses.

use crate::report::charts::{Axis, Bar, Bars, Format, Group, Line, Point, Series, Table};
use crate::report::data::{Case, Data};
use crate::report::facts::{is_plain, main_dtype};
use crate::report::num::{bytes, percent, sig3};
use maud::{Markup, html};

/// Patterns in the order of the legend; the place is the style.
const PATTERNS: [(&str, &str); 6] = [
    ("row", "row-major"),
    ("column", "transposed"),
    ("tiled", "tiled"),
    ("random", "random"),
    ("chase", "chase (latency)"),
    ("strided", "strided"),
];

/// Name and style of a pattern; an unknown one keeps its own name.
pub(crate) fn pattern_name(p: &str) -> (String, usize) {
    let at = PATTERNS.iter().position(|k| k.0 == p);
    at.map_or_else(|| (p.to_owned(), 6), |i| (PATTERNS[i].1.to_owned(), i))
}

/// The patterns that occur, known ones first.
fn patterns(records: &[&Data]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for c in records.iter().flat_map(|d| d.sweep("ladder")) {
        let p = c.str("pattern").unwrap_or_else(|| c.kind.clone());
        if !out.contains(&p) {
            out.push(p);
        }
    }
    out.sort_by_key(|p| PATTERNS.iter().position(|k| k.0 == p).unwrap_or(PATTERNS.len()));
    out
}

fn of<'a>(d: &'a Data, pattern: &'a str) -> impl Iterator<Item = &'a Case> {
    let is = move |c: &&Case| c.str("pattern").unwrap_or_else(|| c.kind.clone()) == pattern;
    d.sweep("ladder").filter(is)
}

fn time_point(c: &Case) -> Option<Point> {
    let s = c.ns_per_element()?;
    let note = [c.variant(), c.list("shape").iter().map(|v| v.to_string()).collect::<Vec<_>>().join("×")];
    let note = note.into_iter().filter(|n| !n.is_empty()).collect::<Vec<_>>().join(", ");
    Some(Point { x: c.working_set_bytes()?, y: s.median, range: Some((s.low, s.high)), note })
}

fn size_axis() -> Axis {
    Axis::new("working set", Format::Bytes, true)
}

/// The section.
pub(crate) fn section(records: &[&Data]) -> Markup {
    if records.iter().all(|d| d.sweep("ladder").next().is_none()) {
        return super::missing(
            "No walks over a ladder of sizes in this record.",
            "restride bench --preset quick -o record.json",
        );
    }
    html! {
        @if let [d] = records { (times(d)) (bandwidth(d)) (misses(d)) (others(d)) }
        @else {
            @for p in patterns(records) { (across(records, &p)) }
        }
    }
}

/// Plain walks over the main element type.
fn main(d: &Data, pattern: &str) -> Vec<Point> {
    let dtype = main_dtype(d);
    of(d, pattern).filter(|c| is_plain(c) && c.str("dtype") == dtype).filter_map(time_point).collect()
}

/// One record: all patterns in one chart.
fn times(d: &Data) -> Markup {
    let mut series: Vec<Series> = (patterns(&[d]).iter())
        .map(|p| {
            let (name, style) = pattern_name(p);
            Series { name, style, joined: true, points: main(d, p) }
        })
        .collect();
    // Unknown patterns take the styles that are still free, so that no two lines look alike.
    for i in 0..series.len() {
        if series[..i].iter().any(|s| s.style == series[i].style) {
            series[i].style = (0..8).find(|k| series[..i].iter().all(|s| s.style != *k)).unwrap_or(7);
        }
    }
    Line {
        id: "walk-times".into(),
        title: format!("Time per element{}", main_dtype(d).map_or_else(String::new, |t| format!(", {t}"))),
        reading: "Lower is better. Where a line climbs, the data has outgrown a cache. Row-major reads come in whole lines \
                  that the prefetcher fetches ahead; transposed reads take one element from each line."
            .into(),
        x: size_axis(),
        y: Axis::new("ns per element", Format::Unit("ns"), true),
        series,
        edges: super::edges(&[d]),
    }
    .figure()
    .unwrap_or_default()
}

/// Other element types, cold caches, huge pages, several threads: bars beside the plain walk of that size.
fn others(d: &Data) -> Markup {
    let dtype = main_dtype(d);
    let odd = |c: &&Case| !is_plain(c) || c.str("dtype") != dtype;
    let mut sizes: Vec<f64> = d.sweep("ladder").filter(odd).filter_map(Case::working_set_bytes).collect();
    sizes.sort_by(f64::total_cmp);
    // Sizes that differ only by rounding to whole rows belong together.
    sizes.dedup_by(|a, b| (*a / *b - 1.0).abs() < 0.1);
    let (mut groups, mut rows) = (Vec::new(), Vec::new());
    for size in sizes {
        let mut bars = Vec::new();
        for (style, p) in ["row", "column", "chase"].into_iter().enumerate() {
            let near = |c: &&Case| c.working_set_bytes().is_some_and(|b| (b / size - 1.0).abs() < 0.1);
            for c in of(d, p).filter(near) {
                let Some(s) = c.ns_per_element() else { continue };
                let kind = [c.str("dtype").unwrap_or_default(), c.variant()];
                let detail = kind.into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(", ");
                let name = pattern_name(p).0;
                rows.push(vec![
                    bytes(size),
                    name.clone(),
                    detail.clone(),
                    sig3(s.median),
                    sig3(s.low),
                    sig3(s.high),
                ]);
                if p == "chase" {
                    // A latency is no cost per element of a stream: it stands in the table only.
                    continue;
                }
                bars.push(Bar {
                    tip: format!(
                        "{name}, {detail}: {} ns per element ({} to {})",
                        sig3(s.median),
                        sig3(s.low),
                        sig3(s.high)
                    ),
                    name,
                    detail,
                    value: s.median,
                    range: Some((s.low, s.high)),
                    shown: format!("{} ns", sig3(s.median)),
                    style: style % 2,
                    ticks: Vec::new(),
                });
            }
        }
        groups.push(Group { name: bytes(size), bars });
    }
    let head = ["size", "pattern", "how", "ns per element", "low", "high"].map(String::from).into();
    Bars {
        id: "walk-others".into(),
        title: "Other ways to walk".into(),
        reading: "The same sizes with other element types, cold caches, huge pages or all cores at once, beside the plain walk. \
                  Shorter is better; latencies are in the table."
            .into(),
        groups,
        legend: html! {},
        line: None,
        table: Table { head, rows },
    }
    .figure()
    .unwrap_or_default()
}

/// Useful bytes, and bytes of all lines that had to come for them, per time.
fn bandwidth(d: &Data) -> Markup {
    let dtype = main_dtype(d);
    let near = d.caches().first().map(|c| c.name.clone()).unwrap_or_default();
    let line = d.fingerprint()["caches"][0]["line_bytes"].as_f64().unwrap_or(64.0);
    let mut series = Vec::new();
    let mut modelled = false;
    for (i, p) in ["row", "column", "tiled", "random"].into_iter().enumerate() {
        let cases = || of(d, p).filter(|c| is_plain(c) && c.str("dtype") == dtype);
        let point = |c: &Case, bytes: Option<f64>, note: &str| {
            Some(Point { x: c.working_set_bytes()?, y: c.rate(bytes)?, range: None, note: note.into() })
        };
        let name = pattern_name(p).0;
        let useful = cases().filter_map(|c| point(c, c.num("bytes_useful"), "")).collect();
        series.push(Series { name: format!("{name} useful"), style: i, joined: true, points: useful });
        // Along rows both are the same: one line is enough.
        if matches!(p, "column" | "random") {
            let moved = |c: &Case| Some(c.model_misses(&near)? * c.elements()? * line);
            let points: Vec<Point> =
                cases().filter_map(|c| point(c, moved(c), "lines by the model")).collect();
            modelled |= !points.is_empty();
            series.push(Series {
                name: format!("{name} moved"),
                style: [0, 6, 0, 7][i],
                joined: true,
                points,
            });
        }
    }
    let what = if modelled {
        format!(
            "moved counts whole lines of {} B that have to come into {near} for them, by the cache model.",
            line
        )
    } else {
        "the lines moved for them are not shown: this record has no model of these walks.".into()
    };
    Line {
        id: "walk-bandwidth".into(),
        title: "Useful against moved bandwidth".into(),
        reading: format!("Useful counts the elements that were asked for; {what} The gap is what a walk against the rows throws away."),
        x: size_axis(),
        y: Axis::new("GB/s", Format::Unit("GB/s"), true),
        series,
        edges: super::edges(&[d]),
    }
    .figure()
    .unwrap_or_default()
}

/// Model misses as lines, counted misses as markers, for the transposed walk; all patterns as a table.
fn misses(d: &Data) -> Markup {
    let dtype = main_dtype(d);
    let levels: Vec<String> = d.caches().into_iter().map(|c| c.name).collect();
    let mut events: Vec<String> = Vec::new();
    for e in d.sweep("ladder").flat_map(|c| &c.counters).filter_map(|c| c["event"].as_str()) {
        if !events.iter().any(|k| k == e) {
            events.push(e.into());
        }
    }
    events.retain(|e| e.contains("miss") && d.sweep("ladder").any(|c| c.counted(e).is_some()));
    let mut series = Vec::new();
    for (i, l) in levels.iter().enumerate() {
        let points = (of(d, "column").filter(|c| is_plain(c) && c.str("dtype") == dtype))
            .filter_map(|c| {
                Some(Point {
                    x: c.working_set_bytes()?,
                    y: c.model_misses(l)?,
                    range: None,
                    note: "model".into(),
                })
            })
            .collect();
        series.push(Series { name: format!("model {l}"), style: [0, 2, 4, 5][i % 4], joined: true, points });
    }
    for (i, e) in events.iter().enumerate() {
        let points = (of(d, "column").filter(|c| is_plain(c) && c.str("dtype") == dtype))
            .filter_map(|c| {
                let (y, coverage) = c.counted(e)?;
                let note = if coverage < 0.995 {
                    format!("measured, counted {} of the time", percent(coverage))
                } else {
                    "measured".into()
                };
                Some(Point { x: c.working_set_bytes()?, y, range: None, note })
            })
            .collect();
        series.push(Series { name: format!("measured {e}"), style: [1, 3, 6][i % 3], joined: false, points });
    }
    let counted = if events.is_empty() {
        " No counter could be read on this machine, so there are no measured points."
    } else {
        " Markers without a line are hardware counters, measured in a pass of their own."
    };
    let chart = Line {
        id: "walk-misses".into(),
        title: "Misses of a transposed walk".into(),
        reading: format!("Lines are the cache model (exact for its rules, no prefetch).{counted}"),
        x: size_axis(),
        y: Axis::new("misses per element", Format::Unit(""), false),
        series,
        edges: super::edges(&[d]),
    };
    html! { (chart.figure().unwrap_or_default()) (lines_table(d, &levels, &events)) }
}

fn lines_table(d: &Data, levels: &[String], events: &[String]) -> Markup {
    let mut head: Vec<String> =
        ["pattern", "working set", "ns per element", "lines per element (exact)"].map(String::from).into();
    head.extend(levels.iter().map(|l| format!("model: {l} misses per element")));
    head.extend(events.iter().map(|e| format!("measured: {e} per element")));
    let opt = |v: Option<f64>| v.map_or_else(|| "–".into(), sig3);
    let mut rows = Vec::new();
    for p in patterns(&[d]) {
        for c in of(d, &p) {
            let lines = c.num("lines_per_element").or_else(|| Some(c.num("lines")? / c.elements()?));
            let name = [pattern_name(&p).0, c.variant()]
                .into_iter()
                .filter(|s| !s.is_empty())
                .collect::<Vec<_>>()
                .join(", ");
            let mut row = vec![
                name,
                c.working_set_bytes().map_or_else(|| "–".into(), bytes),
                opt(c.ns_per_element().map(|s| s.median)),
                opt(lines),
            ];
            row.extend(levels.iter().map(|l| opt(c.model_misses(l))));
            row.extend(events.iter().map(|e| opt(c.counted(e).map(|v| v.0))));
            rows.push(row);
        }
    }
    html! { div.plot { h3 { "Lines and misses of every walk" } (Table { head, rows }.named("Lines and misses of every walk", "Show the table")) } }
}

/// Several records: one chart a pattern, one line a record.
fn across(records: &[&Data], pattern: &str) -> Markup {
    let name = pattern_name(pattern).0;
    let series = (records.iter().enumerate())
        .map(|(i, d)| {
            let points = main(d, pattern);
            Series { name: d.label.clone(), style: i, joined: true, points }
        })
        .collect();
    let id: String = pattern.chars().filter(char::is_ascii_alphanumeric).collect();
    Line {
        id: format!("walk-times-{id}"),
        title: format!("Time per element, {name}"),
        reading: "One line a record; lower is better.".into(),
        x: size_axis(),
        y: Axis::new("ns per element", Format::Unit("ns"), true),
        series,
        edges: super::edges(records),
    }
    .figure()
    .unwrap_or_default()
}

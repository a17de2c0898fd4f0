//! ns per element against working-set size; bandwidth useful and moved; lines and misses.

use crate::report::charts::{Axis, Format, Line, Point, Series, Table};
use crate::report::data::{Case, Data};
use crate::report::facts::is_plain;
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
fn patterns(records: &[Data]) -> Vec<String> {
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

/// Variants of one pattern: plain, then what differs from plain.
fn variant(c: &Case) -> String {
    let mut out = Vec::new();
    if let Some(t) = c.num("threads").filter(|t| *t > 1.0) {
        out.push(format!("{t} threads"));
    }
    if c.flag("cold") {
        out.push("cold".into());
    }
    if c.str("pages").is_some_and(|p| p == "huge") {
        out.push("huge pages".into());
    }
    out.join(", ")
}

fn of<'a>(d: &'a Data, pattern: &'a str) -> impl Iterator<Item = &'a Case> {
    let is = move |c: &&Case| c.str("pattern").unwrap_or_else(|| c.kind.clone()) == pattern;
    d.sweep("ladder").filter(is)
}

fn dtypes(d: &Data) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for t in d.sweep("ladder").filter_map(|c| c.str("dtype")) {
        if !out.contains(&t) {
            out.push(t);
        }
    }
    out
}

fn time_point(c: &Case) -> Option<Point> {
    let s = c.ns_per_element()?;
    let note = [variant(c), c.list("shape").iter().map(|v| v.to_string()).collect::<Vec<_>>().join("×")];
    let note = note.into_iter().filter(|n| !n.is_empty()).collect::<Vec<_>>().join(", ");
    Some(Point { x: c.working_set_bytes()?, y: s.median, range: Some((s.low, s.high)), note })
}

fn size_axis() -> Axis {
    Axis::new("working set", Format::Bytes, true)
}

/// The section.
pub(crate) fn section(records: &[Data]) -> Markup {
    if records.iter().all(|d| d.sweep("ladder").next().is_none()) {
        return super::missing(
            "No walks over a ladder of sizes in this record.",
            "restride bench --preset quick -o record.json",
        );
    }
    html! {
        @if let [d] = records { (times(d)) (bandwidth(d)) (misses(d)) }
        @else {
            @for p in patterns(records) { (across(records, &p)) }
        }
    }
}

/// One record: all patterns in one chart.
fn times(d: &Data) -> Markup {
    let several = dtypes(d).len() > 1;
    let mut series: Vec<Series> = Vec::new();
    for p in patterns(std::slice::from_ref(d)) {
        for c in of(d, &p) {
            let (base, style) = pattern_name(&p);
            let more = [variant(c), if several { c.str("dtype").unwrap_or_default() } else { String::new() }];
            let name =
                [base].into_iter().chain(more).filter(|s| !s.is_empty()).collect::<Vec<_>>().join(", ");
            let Some(point) = time_point(c) else { continue };
            match series.iter_mut().find(|s| s.name == name) {
                Some(s) => s.points.push(point),
                None => series.push(Series { name, style, joined: true, points: vec![point] }),
            }
        }
    }
    // Variants of a pattern take the styles that are still free, so that no two lines look alike.
    for i in 0..series.len() {
        if series[..i].iter().any(|s| s.style == series[i].style) {
            series[i].style = (0..8).find(|k| series[..i].iter().all(|s| s.style != *k)).unwrap_or(7);
        }
    }
    Line {
        id: "walk-times".into(),
        title: "Time per element".into(),
        reading: "Lower is better. Where a line climbs, the data has outgrown a cache. Row-major reads come in whole lines \
                  that the prefetcher fetches ahead; transposed reads take one element from each line."
            .into(),
        x: size_axis(),
        y: Axis::new("ns per element", Format::Unit("ns"), true),
        series,
        edges: super::edges(std::slice::from_ref(d)),
    }
    .figure()
    .unwrap_or_default()
}

/// Useful bytes and bytes of all lines fetched, per time.
fn bandwidth(d: &Data) -> Markup {
    let mut series = Vec::new();
    for (i, p) in ["row", "column", "tiled", "random"].into_iter().enumerate() {
        for (j, key) in ["bytes_useful", "bytes_lines"].into_iter().enumerate() {
            let points: Vec<Point> = of(d, p)
                .filter(|c| is_plain(c))
                .filter_map(|c| {
                    Some(Point {
                        x: c.working_set_bytes()?,
                        y: c.rate(c.num(key))?,
                        range: None,
                        note: String::new(),
                    })
                })
                .collect();
            // Both are the same for walks along rows: one line is enough.
            if j == 1 && matches!(p, "row" | "tiled") {
                continue;
            }
            let name = format!("{} {}", pattern_name(p).0, if j == 0 { "useful" } else { "moved" });
            series.push(Series { name, style: [i, [4, 6, 5, 7][i]][j], joined: true, points });
        }
    }
    Line {
        id: "walk-bandwidth".into(),
        title: "Useful against moved bandwidth".into(),
        reading: "Useful counts the elements that were asked for; moved counts the whole cache lines that had to come with \
                  them (exact, from the layout). The gap is what a transposed walk throws away."
            .into(),
        x: size_axis(),
        y: Axis::new("GB/s", Format::Unit("GB/s"), true),
        series,
        edges: super::edges(std::slice::from_ref(d)),
    }
    .figure()
    .unwrap_or_default()
}

/// Model misses as lines, counted misses as markers, for the transposed walk; all patterns as a table.
fn misses(d: &Data) -> Markup {
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
        let points = (of(d, "column").filter(|c| is_plain(c)))
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
        let points = (of(d, "column").filter(|c| is_plain(c)))
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
        edges: super::edges(std::slice::from_ref(d)),
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
    for p in patterns(std::slice::from_ref(d)) {
        for c in of(d, &p) {
            let lines = c.num("lines_per_element").or_else(|| Some(c.num("lines")? / c.elements()?));
            let name = [pattern_name(&p).0, variant(c)]
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
fn across(records: &[Data], pattern: &str) -> Markup {
    let name = pattern_name(pattern).0;
    let series = (records.iter().enumerate())
        .map(|(i, d)| {
            let points = of(d, pattern).filter(|c| is_plain(c)).filter_map(time_point).collect();
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

//! Materialization: every case against memcpy and the streaming limit, as bars, table and roofline.

use crate::report::charts::{Axis, Bar, Bars, Format, Group, Line, Point, Series, Table};
use crate::report::data::{Case, Data, geomean};
use crate::report::facts;
use crate::report::num::{ratio, sig3, time};
use maud::{Markup, html};

/// The section.
pub(crate) fn section(records: &[&Data]) -> Markup {
    if records.iter().all(|d| facts::copies(d).next().is_none()) {
        return super::missing("No copies in this record.", "restride bench --preset quick -o record.json");
    }
    html! {
        @for (i, d) in records.iter().enumerate() {
            @if facts::copies(d).next().is_some() {
                (super::which(records, d))
                (bars(d, i))
                (table(d, i))
                (roofline(d, i))
            }
        }
        @if records.len() > 1 { (across(records)) }
    }
}

/// Groups in the order of the issue, then the others as they come.
pub(crate) fn groups(d: &Data) -> Vec<String> {
    const ORDER: [&str; 6] = ["2-D", "tensors", "images and attention", "slices", "broadcast", "pad"];
    let mut out: Vec<String> = Vec::new();
    for c in facts::copies(d) {
        let g = group(c);
        if !out.contains(&g) {
            out.push(g);
        }
    }
    let place =
        |g: &String| ORDER.iter().position(|o| g.split(", ").next() == Some(o)).unwrap_or(ORDER.len());
    out.sort_by_key(|g| (g.contains(", "), place(g)));
    out
}

/// The heading that a case stands under: its group in plain words, and what differs from a plain run.
pub(crate) fn group(c: &Case) -> String {
    let (group, name) = (c.str("group"), c.name());
    let base = match group.as_deref() {
        Some("square" | "matrix") => "2-D",
        Some("pixels" | "layers") if name.starts_with("pad") => "pad",
        Some("pixels" | "layers") => "images and attention",
        Some("slices") if name.contains("broadcast") => "broadcast",
        Some("transposes" | "ttc") => "tensors",
        Some(other) => other,
        None => "other",
    };
    [base.to_owned(), c.variant()].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(", ")
}

/// What tells two cases of one name apart.
fn detail(c: &Case) -> String {
    c.str("expr").unwrap_or_default()
}

/// GB/s of streaming stores nearest in size.
fn streaming(d: &Data, c: &Case) -> Option<f64> {
    let size = c.working_set_bytes()?;
    let limit = d
        .of_kind("copy")
        .filter(|l| l.str("group").as_deref() == Some("limit") && l.name().contains("stream"));
    let near = limit
        .filter_map(|l| Some(((l.working_set_bytes()? / size).ln().abs(), l.gb_per_s()?.median)))
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    (near.0 < 1.0).then_some(near.1)
}

fn bars(d: &Data, i: usize) -> Markup {
    let mut out = Vec::new();
    let mut streams = false;
    for (style, name) in groups(d).into_iter().enumerate() {
        let mut bars = Vec::new();
        for c in facts::copies(d).filter(|c| group(c) == name) {
            let (Some(r), Some(g)) = (c.ratio(), c.gb_per_s()) else { continue };
            let memcpy = g.median / r.median;
            let mut tip = format!(
                "{}: {} GB/s, {} of memcpy (95 %: {} to {}), {}",
                c.name(),
                sig3(g.median),
                ratio(r.median),
                ratio(r.low),
                ratio(r.high),
                c.str("strategy").unwrap_or_else(|| "strategy not recorded".into())
            );
            let mut ticks = Vec::new();
            if let Some(s) = streaming(d, c) {
                streams = true;
                ticks.push((s / memcpy, "stream", "streaming".to_owned()));
                tip.push_str(&format!("; streaming stores {} GB/s", sig3(s)));
            }
            bars.push(Bar {
                name: c.name(),
                detail: detail(c),
                value: r.median,
                range: Some((r.low, r.high)),
                shown: format!("{} GB/s · {}", sig3(g.median), ratio(r.median)),
                style: style % 6,
                ticks,
                tip,
            });
        }
        out.push(Group { name, bars });
    }
    let legend = html! {
        ul.legend {
            li.key { svg viewBox="0 0 14 14" aria-hidden="true" { line.ref x1="7" x2="7" y1="0" y2="14" {} } span { "memcpy of as many bytes as the result, same run (1.00)" } }
            @if streams { li.key { svg viewBox="0 0 14 14" aria-hidden="true" { line.tickmark.stream x1="7" x2="7" y1="0" y2="14" {} } span { "streaming stores at that size" } } }
            li.key { svg viewBox="0 0 20 14" aria-hidden="true" { line.whisker x1="1" x2="19" y1="7" y2="7" {} } span { "95 % interval" } }
        }
    };
    let mean = facts::copy_ratio(d)
        .map_or_else(String::new, |r| format!(" Geometric mean of all plain cases: {}.", ratio(r.mean)));
    let head = ["case", "GB/s", "of memcpy", "low", "high"].map(String::from).into();
    let rows = (facts::copies(d).filter_map(|c| {
        let (g, r) = (c.gb_per_s()?, c.ratio()?);
        Some(vec![c.name(), sig3(g.median), ratio(r.median), ratio(r.low), ratio(r.high)])
    }))
    .collect();
    Bars {
        id: format!("copies-{i}"),
        title: "Speed of each copy".into(),
        reading: format!(
            "The length of a bar is the speed relative to memcpy, timed interleaved with it on one thread; the figures are \
             GB/s (distinct bytes read + bytes written) and that ratio. Longer is better.{mean}"
        ),
        groups: out,
        legend,
        line: Some((1.0, "memcpy".into())),
        table: Table { head, rows },
    }
    .figure()
    .unwrap_or_default()
}

/// A cell of a sortable table: what one sees, and what it sorts by.
fn td(shown: Option<String>, sort: Option<f64>) -> Markup {
    html! { td data-v=[sort.map(|v| format!("{v}"))] { (shown.unwrap_or_else(|| "–".into())) } }
}

/// Columns of the table that hold words.
const TEXT: [&str; 6] = ["view", "group", "strategy", "SIMD", "pages", "checked"];

fn table(d: &Data, i: usize) -> Markup {
    let cases: Vec<&Case> = facts::copies(d).collect();
    let heads = [
        "case",
        "view",
        "group",
        "GB/s",
        "of memcpy",
        "interval",
        "time",
        "strategy",
        "SIMD",
        "threads",
        "pages",
        "checked",
    ];
    html! {
        div.plot id={ "copies-table-" (i) } {
            h3 { "All copies" }
            div.tools.js data-filter={ "copies-rows-" (i) } {
                label { "Filter " input type="search" placeholder="name, view, strategy" {} }
                label { "Group " select { option value="" { "all" } @for g in groups(d) { option value=(g) { (g) } } } }
                span.shown role="status" {}
            }
            div.scroll.tall tabindex="0" role="region" aria-label="All copies" {
                table.sortable id={ "copies-rows-" (i) } {
                    thead { tr { @for h in heads { th.text[TEXT.contains(&h)] scope="col" { (h) } } } }
                    tbody { @for c in cases {
                        @let (g, r, t) = (c.gb_per_s(), c.ratio(), c.time_ns);
                        tr data-group=(group(c)) {
                            th scope="row" { (c.name()) }
                            td.text { @if let Some(e) = c.str("expr") { code { (e) } " " } span.dim { (super::shape(&c.list("shape"))) " " (c.str("dtype").unwrap_or_default()) } }
                            td.text { (group(c)) }
                            (td(g.map(|g| sig3(g.median)), g.map(|g| g.median)))
                            (td(r.map(|r| ratio(r.median)), r.map(|r| r.median)))
                            (td(r.map(|r| format!("{} to {}", ratio(r.low), ratio(r.high))), r.map(|r| r.high - r.low)))
                            (td(t.map(|t| time(t.median)), t.map(|t| t.median)))
                            td.text { (c.str("strategy").unwrap_or_else(|| "–".into())) @if c.flag("streaming") { span.dim { " · streaming" } } }
                            td.text { (c.str("isa").unwrap_or_else(|| "–".into())) }
                            (td(Some(c.threads()), c.num("threads")))
                            td.text { (c.str("pages").unwrap_or_else(|| "–".into())) }
                            td.text { (match c.params["verified"].as_bool() { Some(true) => "yes", Some(false) => "FAILED", None => "–" }) }
                        }
                    } }
                }
            }
        }
    }
}

/// GB/s against size: the limits as lines (the roofs), the cases as points.
fn roofline(d: &Data, i: usize) -> Markup {
    let mut series: Vec<Series> = Vec::new();
    let mut push =
        |name: String, style, joined, point: Point| match series.iter_mut().find(|s| s.name == name) {
            Some(s) => s.points.push(point),
            None => series.push(Series { name, style, joined, points: vec![point] }),
        };
    for c in d.of_kind("copy").filter(|c| c.str("group").as_deref() == Some("limit")) {
        if let (Some(x), Some(g)) = (c.working_set_bytes(), c.gb_per_s()) {
            let style = if c.name().contains("stream") { 3 } else { 6 };
            push(
                format!("limit: {}", c.name()),
                style,
                true,
                Point { x, y: g.median, range: None, note: String::new() },
            );
        }
    }
    let dtype = facts::main_dtype(d);
    let rows =
        d.sweep("ladder").filter(|c| c.str("pattern").as_deref() == Some("row") && c.str("dtype") == dtype);
    for c in rows.filter(|c| facts::is_plain(c)) {
        if let (Some(x), Some(y)) = (c.working_set_bytes(), c.rate(c.num("bytes_useful").or(c.bytes_moved))) {
            push(
                "limit: reading along rows".into(),
                7,
                true,
                Point { x, y, range: None, note: "reads only".into() },
            );
        }
    }
    for (style, name) in groups(d).into_iter().enumerate() {
        for c in facts::copies(d).filter(|c| group(c) == name) {
            if let (Some(x), Some(g)) = (c.working_set_bytes(), c.gb_per_s()) {
                push(
                    name.clone(),
                    [0, 1, 2, 4, 5, 3][style % 6],
                    false,
                    Point { x, y: g.median, range: None, note: c.name() },
                );
            }
        }
    }
    Line {
        id: format!("roofline-{i}"),
        title: "Roofline of copies".into(),
        reading: "The lines are what this machine gives at each size (its roofs, falling at every cache edge); each marker is \
                  one copy. A marker close below its roof has nothing left to gain; above memcpy's line it won by streaming \
                  stores."
            .into(),
        x: Axis::new("bytes read + written", Format::Bytes, true),
        y: Axis::new("GB/s", Format::Unit("GB/s"), true),
        series,
        edges: super::edges(&[d]),
    }
    .figure()
    .unwrap_or_default()
}

/// Several records: the ratio of each case side by side.
fn across(records: &[&Data]) -> Markup {
    let mut ids: Vec<(&str, String)> = Vec::new();
    for c in records.iter().flat_map(|d| facts::copies(d)) {
        if !ids.iter().any(|k| k.0 == c.id) {
            ids.push((&c.id, c.name()));
        }
    }
    let at =
        |d: &Data, id: &str| facts::copies(d).find(|c| c.id == id).and_then(Case::ratio).map(|r| r.median);
    html! {
        div.plot {
            h3 { "Copies side by side" }
            p { "Speed relative to memcpy on the same machine." }
            div.scroll.tall tabindex="0" role="region" aria-label="Copies side by side" {
                table.sortable {
                    thead { tr { th scope="col" { "case" } @for d in records { th scope="col" { (d.label) } } } }
                    tbody {
                        @for (id, name) in &ids { tr {
                            th scope="row" { (name) }
                            @for d in records { @let r = at(d, id); (td(r.map(ratio), r)) }
                        } }
                    }
                    tfoot { tr {
                        th scope="row" { "geometric mean" }
                        @for d in records { td { (geomean(ids.iter().filter_map(|k| at(d, k.0))).map_or_else(|| "–".into(), ratio)) } }
                    } }
                }
            }
        }
    }
}

//! The tile sweep as a heat map with the default and the tuned choice.

use crate::report::charts::{Heat, HeatCell};
use crate::report::data::{Case, Data};
use crate::report::num::{bytes, count, percent, sig3, time};
use maud::{Markup, html};

/// The section.
pub(crate) fn section(records: &[&Data]) -> Markup {
    if records.iter().all(|d| d.of_kind("tile").next().is_none()) {
        return super::missing(
            "No tile sweep in this record.",
            "restride bench --preset quick -o record.json",
        );
    }
    html! {
        @for (i, d) in records.iter().enumerate() {
            @if d.of_kind("tile").next().is_some() {
                (super::which(records, d))
                @for (j, key) in sweeps(d).into_iter().enumerate() { (map(d, &key, i * 100 + j)) }
            }
        }
    }
}

/// What a sweep was made on: all tile cases that share this belong together.
fn sweep(c: &Case) -> String {
    let parts = [
        super::shape(&c.list("shape")),
        c.str("dtype").unwrap_or_default(),
        c.str("isa").unwrap_or_default(),
    ];
    parts.into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(" ")
}

fn sweeps(d: &Data) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for c in d.of_kind("tile") {
        let key = sweep(c);
        if !out.contains(&key) {
            out.push(key);
        }
    }
    out
}

fn map(d: &Data, key: &str, id: usize) -> Markup {
    let cases: Vec<(&Case, f64, f64)> = (d.of_kind("tile").filter(|c| sweep(c) == key))
        .filter_map(|c| match c.list("tile")[..] {
            [a, b] if a > 0.0 && b > 0.0 => Some((c, a, b)),
            _ => None,
        })
        .collect();
    let axis = |f: fn(&(&Case, f64, f64)) -> f64| {
        let mut v: Vec<f64> = cases.iter().map(f).collect();
        v.sort_by(f64::total_cmp);
        v.dedup();
        v
    };
    let (rows, columns) = (axis(|c| c.1), axis(|c| c.2));
    let cells = (cases.iter())
        .filter_map(|(c, a, b)| {
            Some(HeatCell {
                row: rows.iter().position(|r| r == a)?,
                column: columns.iter().position(|v| v == b)?,
                value: c.gb_per_s()?.median,
                note: time(c.time_ns?.median),
                marks: ["tuned", "default"].into_iter().filter(|key| c.flag(key)).collect(),
            })
        })
        .collect();
    // The record says what the two extents are.
    let unit = cases.iter().find_map(|c| c.0.str("tile_unit")).unwrap_or_default();
    let labels = match unit.split_once(", ") {
        Some((a, b)) => (a.to_owned(), b.to_owned()),
        None => ("rows of a tile".to_owned(), "elements along each source row".to_owned()),
    };
    let in_bytes = labels.0.starts_with("bytes");
    let extent = |v: f64| if in_bytes { bytes(v) } else { count(v) };
    let figure = Heat {
        id: format!("tiles-{id}"),
        title: format!("Tiles of a transpose, {key}"),
        reading: reading(&cases),
        x_label: labels.1,
        y_label: labels.0,
        columns: columns.iter().map(|v| extent(*v)).collect(),
        rows: rows.iter().map(|v| extent(*v)).collect(),
        cells,
        unit: "GB/s",
    }
    .figure();
    match figure {
        Some(f) => f,
        None => html! { p.missing { "The tile sweep " (key) " holds no tile with a time." } },
    }
}

fn reading(cases: &[(&Case, f64, f64)]) -> String {
    let rate = |c: &Case| c.gb_per_s().map(|g| g.median);
    let find = |key: &str| cases.iter().find(|c| c.0.flag(key)).and_then(|c| Some((c.1, c.2, rate(c.0)?)));
    let best = cases.iter().filter_map(|c| Some((c.1, c.2, rate(c.0)?))).max_by(|a, b| a.2.total_cmp(&b.2));
    let mut out = String::from("Bright is fast.");
    if let Some(b) = best {
        out.push_str(&format!(
            " Best of the sweep: {} × {} with {} GB/s.",
            count(b.0),
            count(b.1),
            sig3(b.2)
        ));
        let reached = |name: &str, t: (f64, f64, f64)| {
            format!(" {name} {} × {} reaches {} of that.", count(t.0), count(t.1), percent(t.2 / b.2))
        };
        match (find("default"), find("tuned")) {
            (Some(default), Some(tuned)) if (default.0, default.1) == (tuned.0, tuned.1) => {
                out.push_str(&reached("The tuned tile is the default:", default));
            }
            (default, tuned) => {
                out.extend(default.map(|t| reached("The default tile", t)));
                out.extend(tuned.map(|t| reached("The tuned tile", t)));
            }
        }
        if find("tuned").is_none() {
            out.push_str(" No tuned tile is marked: no profile was in force (restride tune makes one).");
        }
    }
    out
}

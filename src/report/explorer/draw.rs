//! One card a view: the logical grid, the buffer in cache lines, and the facts.

use super::{Cell, MAX_CELLS, View, Views, list};
use crate::error::words::counted;
use crate::report::charts::{Table, round};
use crate::report::page::embed;
use maud::{Markup, html};
use std::collections::BTreeMap;

/// Cells of the buffer in one row of the drawing.
const ROW_CELLS: usize = 16;
/// The way is drawn up to this many reads.
const WAY_READS: usize = 600;
/// Positions listed in the table.
const POSITIONS: usize = 512;

/// A drawing that is as wide as it is, or shrinks to fit when that keeps it readable.
fn canvas(width: f64, height: f64, label: &str, grid: bool, inner: Markup) -> Markup {
    let style = if width <= 620.0 { "max-width:100%;height:auto" } else { "" };
    html! {
        div.grids {
            svg.cells width=(round(width)) height=(round(height)) viewBox={ "0 0 " (round(width)) " " (round(height)) } style=(style)
                role="img" aria-label=(label) tabindex=[grid.then_some("0")] data-grid[grid] { (inner) }
        }
    }
}

pub(super) fn card(views: &Views, v: &View, number: usize) -> Markup {
    let cells = v.cells(views);
    let contiguous = v.layout.is_contiguous();
    let columns = v.layout.shape().last().copied().unwrap_or(1).max(1);
    let data = serde_json::json!({
        "columns": if v.layout.ndim() == 1 { wrap(columns) } else { columns },
        "index": cells.iter().map(|c| c.index).collect::<Vec<_>>(),
        "line": cells.iter().map(|c| c.line.map(|l| l as u64)).collect::<Vec<_>>(),
        "formula": cells.iter().map(|c| v.filled(c, views)).collect::<Vec<_>>(),
        "at": cells.iter().map(|c| list(&c.at)).collect::<Vec<_>>(),
    });
    html! {
        article.view id={ "view-" (number) } aria-labelledby={ "view-" (number) "-h" } {
            header {
                h3 id={ "view-" (number) "-h" } { (v.name) }
                @if v.name != v.expr { code { (v.title()) } }
                span class={ "verdict " (if contiguous { "yes" } else { "no" }) } { (if contiguous { "contiguous: read it as it is" } else { "a view; contiguous only by a copy" }) }
                @if !v.about.is_empty() { p { (v.about) } }
            }
            @if cells.is_empty() {
                p.note { "A view of shape " (list(v.layout.shape())) " reads nothing: it has no positions." }
            } @else {
                div.panes {
                    div { h4 { "What one sees: shape " (list(v.layout.shape())) } (logical(v, &cells)) }
                    div { h4 { "What is in memory: " (v.buffer_len) " elements in lines" } (buffer(views, v, &cells)) }
                }
                p.formula role="status" aria-live="polite" { (v.formula()) }
                div.step.js {
                    button type="button" data-step="first" aria-label="First position" { "⇤" }
                    button type="button" data-step="back" aria-label="One back" { "←" }
                    button type="button" data-step="play" aria-pressed="false" { "▶ Play" }
                    button type="button" data-step="next" aria-label="One on" { "→" }
                    button type="button" data-step="last" aria-label="Last position" { "⇥" }
                    span.pos {}
                }
            }
            dl.facts { @for (k, t) in facts(views, v, &cells) { div { dt { (k) } dd { (t) } } } }
            @if !cells.is_empty() { (positions(v, &cells)) }
            script.view-data type="application/json" { (embed(&data.to_string())) }
        }
    }
}

/// A long vector is drawn in rows.
fn wrap(n: usize) -> usize {
    if n > 24 { ROW_CELLS } else { n.max(1) }
}

fn cell_size(columns: usize) -> f64 {
    match columns {
        0..=8 => 48.0,
        9..=12 => 40.0,
        13..=20 => 34.0,
        _ => 30.0,
    }
}

fn logical(v: &View, cells: &[Cell]) -> Markup {
    let shape = v.layout.shape();
    let vector = shape.len() == 1;
    let columns = if vector { wrap(shape[0]) } else { shape.last().copied().unwrap_or(1) };
    let rows = match shape.len() {
        0 => 1,
        1 => shape[0].div_ceil(columns),
        n => shape[n - 2],
    };
    let (size, left) = (cell_size(columns), 26.0);
    let panels = cells.len() / (if vector { shape[0] } else { columns * rows }).max(1);
    let top = if panels > 1 { 40.0 } else { 20.0 };
    let (pw, ph) = (left + size * columns as f64 + 18.0, top + size * rows as f64 + 10.0);
    let across = ((560.0 / pw) as usize).clamp(1, panels.max(1));
    let place = |k: usize| {
        let (panel, inside) = if vector { (0, k) } else { (k / (columns * rows), k % (columns * rows)) };
        let (px, py) = ((panel % across) as f64 * pw, (panel / across) as f64 * ph);
        (px + left + (inside % columns) as f64 * size, py + top + (inside / columns) as f64 * size)
    };
    let middles: Vec<Option<(f64, f64)>> =
        (0..cells.len()).map(|k| Some(place(k)).map(|(x, y)| (x + size / 2.0, y + size - 7.0))).collect();
    let inner = html! {
        @for panel in 0..panels {
            @let (x, y) = place(panel * columns * rows);
            @if panels > 1 {
                @let at = cells[panel * columns * rows].at[..shape.len() - 2].iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                text.lbl x=(round(x)) y=(round(y - 24.0)) { "[" (at) ", :, :]" }
            }
            @for c in 0..columns { text.lbl x=(round(x + size * (c as f64 + 0.5))) y=(round(y - 7.0)) text-anchor="middle" { (c) } }
            @for r in 0..rows { text.lbl x=(round(x - 8.0)) y=(round(y + size * (r as f64 + 0.5) + 4.0)) text-anchor="end" { (if vector { r * columns } else { r }) } }
        }
        @for (k, c) in cells.iter().enumerate() {
            @let (x, y) = place(k);
            g class={ "c " (c.line.map_or("pad".into(), |l| format!("t{}", l % 6))) } data-k=(k) {
                title { (list(&c.at)) @if let Some(m) = c.index { " reads buffer[" (m) "]" } @else { " is padding: " (v.fill) } }
                rect x=(round(x + 1.0)) y=(round(y + 1.0)) width=(round(size - 2.0)) height=(round(size - 2.0)) rx="4" {}
                text x=(round(x + size / 2.0)) y=(round(y + size / 2.0 + 2.0)) text-anchor="middle" {
                    @match c.index { Some(m) => (m), None => (crate::report::charts::cut(&v.fill, 4)) }
                }
            }
        }
        (way(&middles))
    };
    let down = panels.div_ceil(across);
    let label = format!("Logical grid of {}: each cell shows the buffer index that it reads", v.title());
    canvas(pw * across as f64 - 14.0, ph * down as f64, &label, true, inner)
}

/// The order of reading as a thin line, with its start and its end marked.
fn way(points: &[Option<(f64, f64)>]) -> Markup {
    if points.len() > WAY_READS || points.iter().flatten().count() < 2 {
        return html! {};
    }
    let mut path = String::new();
    let mut down = false;
    for p in points {
        match p {
            Some((x, y)) => {
                path.push_str(&format!("{}{} {}", if down { "L" } else { "M" }, round(*x), round(*y)));
                down = true;
            }
            None => down = false,
        }
    }
    let real: Vec<(f64, f64)> = points.iter().flatten().copied().collect();
    let (start, end) = (real[0], real[real.len() - 1]);
    let before = real.iter().rev().find(|p| **p != end).copied().unwrap_or(start);
    let angle = (end.1 - before.1).atan2(end.0 - before.0).to_degrees();
    html! {
        path.way d=(path) {}
        circle.way-start cx=(round(start.0)) cy=(round(start.1)) r="3" {}
        g.way-end transform={ "translate(" (round(end.0)) " " (round(end.1)) ") rotate(" (round(angle)) ")" } { path d="M-4-4 4 0-4 4z" {} }
    }
}

/// How often each buffer cell is read.
fn reads(cells: &[Cell]) -> BTreeMap<usize, usize> {
    let mut out = BTreeMap::new();
    for m in cells.iter().filter_map(|c| c.index) {
        *out.entry(m).or_insert(0) += 1;
    }
    out
}

/// Lines that are drawn: all of a small buffer, only the touched ones of a large one.
fn lines_drawn(views: &Views, v: &View, cells: &[Cell]) -> Vec<u128> {
    if v.buffer_len == 0 {
        return Vec::new();
    }
    if v.buffer_len <= MAX_CELLS {
        return (0..=views.line_of(v.buffer_len - 1)).collect();
    }
    let mut lines: Vec<u128> = cells.iter().filter_map(|c| c.line).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

fn buffer(views: &Views, v: &View, cells: &[Cell]) -> Markup {
    let count = reads(cells);
    let per_line = (views.line_bytes / views.element_size()).max(1);
    let across = per_line.min(ROW_CELLS);
    let (size, left, gap) = (cell_size(across), 52.0, 9.0);
    let lines = lines_drawn(views, v, cells);
    let mut places: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    let mut bands = Vec::new();
    let mut y = 6.0;
    let mut before: Option<u128> = None;
    for &line in &lines {
        let skipped = line - before.map_or(0, |b| b + 1);
        if skipped > 0 {
            bands.push((y, 0.0, line, Some(skipped)));
            y += 24.0;
        }
        before = Some(line);
        // An element belongs to the line of its first byte.
        let first = (line * views.line_bytes as u128).div_ceil(views.element_size() as u128) as usize;
        let members: Vec<usize> = (first..v.buffer_len).take_while(|m| views.line_of(*m) == line).collect();
        for (i, m) in members.iter().enumerate() {
            places
                .insert(*m, (left + 4.0 + (i % across) as f64 * size, y + 4.0 + (i / across) as f64 * size));
        }
        let height = 8.0 + size * members.len().max(1).div_ceil(across) as f64;
        bands.push((y, height, line, None));
        y += height + gap;
    }
    let width = left + 8.0 + size * across as f64 + 4.0;
    let middles: Vec<Option<(f64, f64)>> = cells
        .iter()
        .map(|c| c.index.and_then(|m| places.get(&m)).map(|(x, y)| (x + size / 2.0, y + size - 7.0)))
        .collect();
    let inner = html! {
        @for (y, h, line, skipped) in &bands {
            @if let Some(n) = skipped { text.lbl x=(round(left)) y=(round(y + 14.0)) { (counted(*n, "line")) @if *n == 1 { " that is not read" } @else { " that are not read" } } }
            @else {
                text.lbl x=(round(left - 8.0)) y=(round(y + h / 2.0 + 4.0)) text-anchor="end" { "line " (line) }
                rect.band data-line=(line) x=(round(left)) y=(round(*y)) width=(round(8.0 + size * across as f64)) height=(round(*h)) rx="7" {}
            }
        }
        @for (m, (x, y)) in &places {
            @let n = count.get(m).copied().unwrap_or(0);
            g class={ "c " (if n == 0 { "never".into() } else { format!("t{}", views.line_of(*m) % 6) }) } data-m=(m) {
                title { "buffer[" (m) "], " @match n { 0 => "never read", 1 => "read once", _ => { "read " (n) " times" } } }
                rect x=(round(x + 1.0)) y=(round(y + 1.0)) width=(round(size - 2.0)) height=(round(size - 2.0)) rx="4" {}
                text x=(round(x + size / 2.0)) y=(round(y + size / 2.0 + 2.0)) text-anchor="middle" { (m) }
                @if n > 1 { text.mult x=(round(x + size - 4.0)) y=(round(y + 11.0)) text-anchor="end" { "×" (n) } }
            }
        }
        (way(&middles))
    };
    let label = format!(
        "The buffer, {} in lines of {}, {} of them read",
        counted(v.buffer_len, "element"),
        counted(views.line_bytes, "byte"),
        count.len()
    );
    canvas(width, y, &label, false, inner)
}

fn facts(views: &Views, v: &View, cells: &[Cell]) -> Vec<(&'static str, String)> {
    let l = &v.layout;
    let (lines, count) = (l.lines(views.element_size(), views.line_bytes), reads(cells));
    let sequence: Vec<u128> = cells.iter().filter_map(|c| c.line).collect();
    let switches = sequence.windows(2).filter(|w| w[0] != w[1]).count();
    let most = count.values().copied().max().unwrap_or(0);
    let all = if v.buffer_len == 0 { 0 } else { views.line_of(v.buffer_len - 1) + 1 };
    let mut out = vec![
        ("shape", list(l.shape())),
        ("strides", list(l.strides())),
        (
            "offset",
            if l.is_padded() {
                format!("{} (before the padding: not always inside the buffer)", l.offset())
            } else {
                l.offset().to_string()
            },
        ),
        (
            "contiguous",
            if l.is_contiguous() {
                "yes: the buffer can be used as it is".into()
            } else {
                "no: materialize copies it".into()
            },
        ),
        (
            "writable",
            if l.is_writable() {
                "yes"
            } else if l.is_padded() {
                "no: padding has no memory"
            } else {
                "no: positions share memory"
            }
            .into(),
        ),
        ("lines touched", format!("{} of {all}, {} of them used in full", lines.touched, lines.used_in_full)),
        ("bytes used per line", per_line(views, v)),
        (
            "line changes",
            format!(
                "{switches} while reading in order (at least {} would do)",
                (lines.touched as usize).saturating_sub(1)
            ),
        ),
    ];
    let unread = v.buffer_len - count.len().min(v.buffer_len);
    out.push((
        "reads",
        format!(
            "{}, {}{}{}",
            counted(cells.len(), "position"),
            counted(count.len(), "different cell"),
            if most > 1 { format!(", up to {most} times each") } else { String::new() },
            if unread > 0 { format!(", {unread} never read") } else { String::new() }
        ),
    ));
    let padded = cells.iter().filter(|c| c.index.is_none()).count();
    if padded > 0 {
        out.push((
            "padding",
            format!(
                "{} the fill value {}",
                if padded == 1 { "1 position reads".to_owned() } else { format!("{padded} positions read") },
                v.fill
            ),
        ));
    }
    out
}

fn per_line(views: &Views, v: &View) -> String {
    let used = v.layout.bytes_per_line(views.element_size(), views.line_bytes);
    let total: usize = used.iter().map(|u| u.1).sum();
    match used.len() {
        0 => "none".into(),
        1..=8 => {
            let each: Vec<String> = used.iter().map(|(l, b)| format!("line {l}: {b}")).collect();
            format!("{} of {} B", each.join(", "), views.line_bytes)
        }
        n => format!("{:.1} of {} B on average over {n} lines", total as f64 / n as f64, views.line_bytes),
    }
}

fn positions(v: &View, cells: &[Cell]) -> Markup {
    let head = ["position", "buffer index", "line"].map(String::from).into();
    let rows = (cells.iter().take(POSITIONS))
        .map(|c| {
            let or_fill = |t: Option<String>| t.unwrap_or_else(|| format!("fill {}", v.fill));
            vec![
                list(&c.at),
                or_fill(c.index.map(|m| m.to_string())),
                c.line.map_or_else(|| "none".into(), |l| l.to_string()),
            ]
        })
        .collect();
    Table { head, rows }.named(&format!("Positions of {}", v.title()), "All positions")
}

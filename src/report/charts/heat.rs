//! Heat maps: a number for each pair of two ordered lists.

use super::{Form, Table, cut, figure, round, svg};
use crate::report::num;
use maud::{Markup, html};

/// One measured pair.
pub(crate) struct HeatCell {
    pub column: usize,
    pub row: usize,
    pub value: f64,
    /// What the tooltip adds.
    pub note: String,
    /// Marks with their meaning, such as "default": frames inside each other.
    pub marks: Vec<&'static str>,
}

/// A whole heat map.
pub(crate) struct Heat {
    pub id: String,
    pub title: String,
    pub reading: String,
    pub x_label: String,
    pub y_label: String,
    pub columns: Vec<String>,
    /// From the bottom up.
    pub rows: Vec<String>,
    pub cells: Vec<HeatCell>,
    pub unit: &'static str,
}

/// Dark blue over grey to yellow: even steps of lightness, readable without colour vision.
const RAMP: [(f64, f64, f64); 6] = [
    (12., 35., 78.),
    (52., 68., 110.),
    (96., 100., 116.),
    (140., 133., 113.),
    (190., 170., 98.),
    (252., 226., 72.),
];

/// Colour of a share of the range, and whether text on it must be dark.
pub(crate) fn colour(t: f64) -> (String, bool) {
    let t = if t.is_finite() { t.clamp(0.0, 1.0) } else { 0.5 } * (RAMP.len() - 1) as f64;
    let i = (t as usize).min(RAMP.len() - 2);
    let (a, b, f) = (RAMP[i], RAMP[i + 1], t - i as f64);
    let mix = |a: f64, b: f64| (a + (b - a) * f).round();
    let (r, g, b) = (mix(a.0, b.0), mix(a.1, b.1), mix(a.2, b.2));
    (format!("#{:02x}{:02x}{:02x}", r as u8, g as u8, b as u8), 0.299 * r + 0.587 * g + 0.114 * b > 118.0)
}

impl Heat {
    /// The figure; `None` when no cell can be drawn.
    pub(crate) fn figure(mut self) -> Option<Markup> {
        let (nc, nr) = (self.columns.len(), self.rows.len());
        self.cells.retain(|c| c.value.is_finite() && c.value > 0.0 && c.column < nc && c.row < nr);
        if self.cells.is_empty() {
            return None;
        }
        self.cells.sort_by_key(|c| (std::cmp::Reverse(c.row), c.column));
        let table = Table {
            head: vec![self.y_label.clone(), self.x_label.clone(), self.unit.into(), "note".into()],
            rows: (self.cells.iter())
                .map(|c| {
                    let note: Vec<&str> = std::iter::once(c.note.as_str())
                        .chain(c.marks.iter().copied())
                        .filter(|s| !s.is_empty())
                        .collect();
                    vec![
                        self.rows[c.row].clone(),
                        self.columns[c.column].clone(),
                        num::sig3(c.value),
                        note.join(" · "),
                    ]
                })
                .collect(),
        };
        let body = html! { (self.draw(Form::Wide)) (self.draw(Form::Narrow)) };
        Some(figure(&self.id, &self.title, &self.reading, self.legend(), body, &table))
    }

    fn range(&self) -> (f64, f64) {
        (self.cells.iter()).fold((f64::INFINITY, 0.0), |(a, b), c| (a.min(c.value), b.max(c.value)))
    }

    fn share(&self, v: f64) -> f64 {
        let (low, high) = self.range();
        if high / low > 1.0 + 1e-9 { (v / low).ln() / (high / low).ln() } else { 0.5 }
    }

    fn legend(&self) -> Markup {
        let (low, high) = self.range();
        let marks: std::collections::BTreeSet<&str> =
            self.cells.iter().flat_map(|c| c.marks.iter().copied()).collect();
        html! {
            ul.legend {
                li.ramp {
                    span { (num::sig3(low)) }
                    svg viewBox="0 0 120 10" aria-hidden="true" { @for i in 0..24 {
                        rect x=(i * 5) y="0" width="5.2" height="10" fill=(colour(f64::from(i) / 23.0).0) {}
                    } }
                    span { (num::sig3(high)) " " (self.unit) }
                }
                @for m in marks { li.key { svg viewBox="0 0 14 14" aria-hidden="true" {
                    rect class={ "mark " (m) } x="2" y="2" width="10" height="10" {}
                } span { (m) } } }
            }
        }
    }

    fn draw(&self, form: Form) -> Markup {
        let wide = form == Form::Wide;
        let w = form.width();
        let (left, top) = if wide { (76.0, 24.0) } else { (52.0, 22.0) };
        let cw = ((w - left - 4.0) / self.columns.len() as f64).min(if wide { 72.0 } else { 60.0 });
        let ch = (if wide { 32.0_f64 } else { 26.0 }).min(cw.max(18.0));
        let bottom = top + ch * self.rows.len() as f64;
        let every = ((if wide { 44.0 } else { 36.0 }) / cw).ceil().max(1.0) as usize;
        let numbers = cw >= 38.0;
        let desc = format!("Heat map of {} for {} by {}.", self.unit, self.y_label, self.x_label);
        let y_of = |row: usize| bottom - ch * (row + 1) as f64;
        let mut by_row: Vec<Vec<&HeatCell>> = (0..self.rows.len()).map(|_| Vec::new()).collect();
        for c in &self.cells {
            by_row[c.row].push(c);
        }
        let inner = html! {
            text.axis x="0" y="12" { (self.y_label) }
            text.axis x=(round(left + cw * self.columns.len() as f64 / 2.0)) y=(round(bottom + 38.0)) text-anchor="middle" { (self.x_label) }
            @for (i, r) in self.rows.iter().enumerate() {
                text.tick x=(round(left - 8.0)) y=(round(y_of(i) + ch / 2.0 + 4.0)) text-anchor="end" { (cut(r, 10)) }
            }
            @for (i, c) in self.columns.iter().enumerate().step_by(every) {
                text.tick x=(round(left + cw * (i as f64 + 0.5))) y=(round(bottom + 17.0)) text-anchor="middle" { (cut(c, 9)) }
            }
            @for (i, cells) in by_row.iter().enumerate().rev() {
                g data-series=(i) { @for c in cells { (self.draw_cell(c, left + cw * c.column as f64, y_of(i), cw, ch, numbers)) } }
            }
            @for c in &self.cells { @for (i, mark) in c.marks.iter().enumerate() {
                @let inset = 1.5 + 3.0 * i as f64;
                rect class={ "mark " (mark) } x=(round(left + cw * c.column as f64 + inset)) y=(round(y_of(c.row) + inset))
                    width=(round(cw - 2.0 * inset)) height=(round(ch - 2.0 * inset)) {}
            } }
        };
        svg(&self.id, form, bottom + 46.0, &self.title, &desc, inner)
    }

    fn draw_cell(&self, c: &HeatCell, x: f64, y: f64, w: f64, h: f64, numbers: bool) -> Markup {
        let (fill, dark_text) = colour(self.share(c.value));
        html! {
            g.pt.cell {
                title {
                    (num::sig3(c.value)) " " (self.unit) " · " (self.y_label) " " (self.rows[c.row]) " · " (self.x_label) " " (self.columns[c.column])
                    @for m in &c.marks { " · " (m) }
                    @if !c.note.is_empty() { " · " (c.note) }
                }
                rect x=(round(x + 0.5)) y=(round(y + 0.5)) width=(round(w - 1.0)) height=(round(h - 1.0)) rx="2" fill=(fill) {}
                @if numbers {
                    text class=(if dark_text { "on-light" } else { "on-dark" }) x=(round(x + w / 2.0)) y=(round(y + h / 2.0 + 4.0)) text-anchor="middle" { (num::sig3(c.value)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_and_impossible_values() {
        let cell = |value| HeatCell {
            column: 0,
            row: 0,
            value,
            note: "<b>".into(),
            marks: vec!["tuned", "default"],
        };
        let heat = |cells| Heat {
            id: "h".into(),
            title: "t".into(),
            reading: String::new(),
            x_label: "x".into(),
            y_label: "y".into(),
            columns: vec!["1".into()],
            rows: vec!["1".into()],
            cells,
            unit: "ns",
        };
        assert!(heat(vec![cell(f64::NAN), cell(0.0), cell(-1.0)]).figure().is_none());
        let html = heat(vec![cell(2.0), cell(2.0)]).figure().unwrap().into_string();
        assert!(!html.contains("NaN") && html.contains("&lt;b&gt;"));
        // Both frames on one cell, and both in the legend.
        for mark in ["mark tuned", "mark default", "<span>tuned</span>", "<span>default</span>"] {
            assert!(html.contains(mark), "{mark}");
        }
        assert_eq!(colour(f64::NAN).0.len(), 7);
    }
}

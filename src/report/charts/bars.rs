//! Horizontal bars and intervals: one row of HTML a case, the drawing a full-width SVG in percent, so
//! that the same markup fits a phone and a wide screen.

use super::{STYLES, Table, figure};
use maud::{Markup, html};

/// One bar.
pub(crate) struct Bar {
    pub name: String,
    /// Small text under or behind the name.
    pub detail: String,
    pub value: f64,
    pub range: Option<(f64, f64)>,
    /// What stands at the end of the bar.
    pub shown: String,
    pub style: usize,
    /// Ticks on the bar's row: value, class, name.
    pub ticks: Vec<(f64, &'static str, String)>,
    /// Whole text of the tooltip.
    pub tip: String,
}

/// Bars under one heading.
pub(crate) struct Group {
    pub name: String,
    pub bars: Vec<Bar>,
}

/// A whole bar chart; all groups share one scale from zero.
pub(crate) struct Bars {
    pub id: String,
    pub title: String,
    pub reading: String,
    pub groups: Vec<Group>,
    pub legend: Markup,
    /// A value that gets a line through all rows, and its name.
    pub line: Option<(f64, String)>,
    pub table: Table,
}

fn percent(v: f64, top: f64) -> String {
    format!("{:.2}%", (v / top * 100.0).clamp(0.0, 100.0))
}

impl Bars {
    /// The figure; `None` when no bar can be drawn.
    pub(crate) fn figure(mut self) -> Option<Markup> {
        for g in &mut self.groups {
            g.bars.retain(|b| b.value.is_finite() && b.value >= 0.0);
        }
        self.groups.retain(|g| !g.bars.is_empty());
        let bars = || self.groups.iter().flat_map(|g| &g.bars);
        let values = bars().flat_map(|b| b.ticks.iter().map(|t| t.0).chain([b.value]));
        let most =
            values.chain(self.line.as_ref().map(|l| l.0)).filter(|v| v.is_finite()).fold(0.0, f64::max);
        // One noisy case must not press all others against the edge: its interval is cut there.
        let ends = bars().filter_map(|b| b.range).map(|r| r.1).filter(|v| v.is_finite()).fold(0.0, f64::max);
        let top = most.max(ends.min(1.25 * most)) * 1.02;
        if self.groups.is_empty() || top <= 0.0 {
            return None;
        }
        let body = html! {
            div.bars data-chart=(self.id) tabindex="0" role="group" aria-label={ (self.title) ". Arrow keys move from bar to bar." } {
                @for (i, g) in self.groups.iter().enumerate() {
                    div.group data-series=(i) {
                        h4 { (g.name) }
                        ul { @for b in &g.bars { (self.draw(b, top)) } }
                    }
                }
            }
        };
        Some(figure(&self.id, &self.title, &self.reading, self.legend, body, &self.table))
    }

    fn draw(&self, b: &Bar, top: f64) -> Markup {
        html! {
            li.bar.pt data-tip=(b.tip) {
                span.name title=(b.name) { (b.name) @if !b.detail.is_empty() { " " span.dim { (b.detail) } } }
                svg class={ "s" (b.style % STYLES) } width="100%" height="18" aria-hidden="true" {
                    rect.track x="0" y="0" width="100%" height="18" {}
                    rect.fill x="0" y="2" width=(percent(b.value, top)) height="14" rx="1.5" {}
                    @if let Some((v, _)) = &self.line { line.ref x1=(percent(*v, top)) x2=(percent(*v, top)) y1="0" y2="18" {} }
                    @for (v, class, _) in b.ticks.iter().filter(|t| t.0.is_finite()) {
                        line class={ "tickmark " (class) } x1=(percent(*v, top)) x2=(percent(*v, top)) y1="0" y2="18" {}
                    }
                    @if let Some((a, z)) = b.range.filter(|r| r.1.is_finite() && (r.1 - r.0) / top > 0.004) {
                        line.whisker x1=(percent(a, top)) x2=(percent(z, top)) y1="9" y2="9" {}
                    }
                }
                span.value { (b.shown) }
            }
        }
    }
}

/// One interval on a logarithmic axis around 1.
pub(crate) struct Span {
    pub name: String,
    pub value: f64,
    pub range: (f64, f64),
    pub shown: String,
    /// `better`, `worse` or `same`.
    pub verdict: &'static str,
    pub tip: String,
}

/// Ratios with their intervals, one row each.
pub(crate) struct Intervals {
    pub id: String,
    pub title: String,
    pub reading: String,
    pub spans: Vec<Span>,
    pub table: Table,
}

impl Intervals {
    /// The figure; `None` when there is no ratio.
    pub(crate) fn figure(mut self) -> Option<Markup> {
        self.spans.retain(|s| [s.value, s.range.0, s.range.1].iter().all(|v| v.is_finite() && *v > 0.0));
        if self.spans.is_empty() {
            return None;
        }
        let reach =
            self.spans.iter().flat_map(|s| [s.range.0, s.range.1]).map(|v| v.ln().abs()).fold(0.1, f64::max)
                * 1.05;
        let at = |v: f64| format!("{:.2}%", 50.0 + v.ln() / reach * 50.0);
        let body = html! {
            div.bars.intervals data-chart=(self.id) tabindex="0" role="group" aria-label={ (self.title) ". Arrow keys move from row to row." } {
                div.group data-series="0" { ul { @for s in &self.spans {
                    li class={ "bar pt " (s.verdict) } data-tip=(s.tip) {
                        span.name title=(s.name) { (s.name) }
                        svg width="100%" height="18" aria-hidden="true" {
                            rect.track x="0" y="0" width="100%" height="18" {}
                            line.ref x1="50%" x2="50%" y1="0" y2="18" {}
                            line.whisker x1=(at(s.range.0)) x2=(at(s.range.1)) y1="9" y2="9" {}
                            circle.dot cx=(at(s.value)) cy="9" r="4" {}
                        }
                        span.value { (s.shown) }
                    }
                } } }
            }
        };
        Some(figure(&self.id, &self.title, &self.reading, html! {}, body, &self.table))
    }
}

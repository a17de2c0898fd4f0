//! SVG charts drawn on the server side: each comes in a wide and a narrow form and with its numbers
//! as a table; the script of the page only adds tooltips and switches series.

mod bars;
mod heat;
mod lines;
mod scale;

pub(crate) use bars::{Bar, Bars, Group, Intervals, Span};
pub(crate) use heat::{Heat, HeatCell};
pub(crate) use lines::{Edge, Line, Point, Series};
pub(crate) use scale::{Axis, Format};

use crate::error::words::counted;
use maud::{Markup, html};

/// Drawing area of one form of a chart.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Form {
    /// From 700 px up.
    Wide,
    /// Phones.
    Narrow,
}

impl Form {
    fn width(self) -> f64 {
        match self {
            Self::Wide => 880.0,
            Self::Narrow => 350.0,
        }
    }
    fn class(self) -> &'static str {
        match self {
            Self::Wide => "chart wide",
            Self::Narrow => "chart narrow",
        }
    }
    fn tag(self) -> &'static str {
        match self {
            Self::Wide => "w",
            Self::Narrow => "n",
        }
    }
}

/// Rows of text under a chart, for people who do not see it and for copying.
pub(crate) struct Table {
    /// Column titles.
    pub head: Vec<String>,
    /// One vector a row, as long as `head`.
    pub rows: Vec<Vec<String>>,
}

/// More rows than this stay in the CSV files.
const ROWS_SHOWN: usize = 1500;

impl Table {
    /// The table inside a closed `<details>`.
    pub(crate) fn details(&self, what: &str) -> Markup {
        self.named(&format!("Numbers: {what}"), "Numbers of this chart")
    }

    /// The same under a title of its own.
    pub(crate) fn named(&self, label: &str, title: &str) -> Markup {
        let more = self.rows.len().saturating_sub(ROWS_SHOWN);
        html! {
            details.data {
                summary { (title) " " span.dim { "(" (counted(self.rows.len(), "row")) ")" } }
                div.scroll tabindex="0" role="region" aria-label=(label) {
                    table {
                        thead { tr { @for h in &self.head { th scope="col" { (h) } } } }
                        tbody {
                            @for row in self.rows.iter().take(ROWS_SHOWN) {
                                tr { @for (i, cell) in row.iter().enumerate() {
                                    @if i == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                                } }
                            }
                        }
                    }
                }
                @if more > 0 { p.note { (more) " more rows are in the CSV file." } }
            }
        }
    }
}

/// A chart with its title, what one should see in it, and its numbers.
pub(crate) fn figure(
    id: &str,
    title: &str,
    reading: &str,
    legend: Markup,
    body: Markup,
    table: &Table,
) -> Markup {
    html! {
        figure.plot id=(id) {
            figcaption { h3 { (title) } @if !reading.is_empty() { p { (reading) } } }
            (legend)
            (body)
            (table.details(title))
        }
    }
}

/// The `<svg>` around a drawing, with what screen readers say.
fn svg(id: &str, form: Form, height: f64, title: &str, desc: &str, inner: Markup) -> Markup {
    let ids = format!("{id}-{}", form.tag());
    html! {
        svg class=(form.class()) viewBox={ "0 0 " (form.width()) " " (round(height)) } tabindex="0" role="img"
            aria-labelledby={ (ids) "-t " (ids) "-d" } data-chart=(id) {
            title id={ (ids) "-t" } { (title) }
            desc id={ (ids) "-d" } { (desc) " Arrow keys move from point to point." }
            (inner)
        }
    }
}

/// A coordinate with one decimal and no trailing zero.
pub(crate) fn round(v: f64) -> String {
    let r = (v * 10.0).round() / 10.0;
    format!("{}", if r == 0.0 { 0.0 } else { r })
}

/// A text cut to `n` characters with an ellipsis.
pub(crate) fn cut(s: &str, n: usize) -> String {
    if s.chars().count() <= n {
        s.to_owned()
    } else {
        s.chars().take(n.saturating_sub(1)).chain(['…']).collect()
    }
}

/// Shapes of the point markers and patterns, once a page.
pub(crate) fn definitions() -> Markup {
    html! {
        svg.defs width="0" height="0" aria-hidden="true" focusable="false" {
            defs {
                circle id="mk0" r="3.6" {}
                path id="mk1" d="M-3.4-3.4h6.8v6.8h-6.8z" {}
                path id="mk2" d="M0-4.6 4.4 3.4H-4.4z" {}
                path id="mk3" d="M0-4.8 4.8 0 0 4.8-4.8 0z" {}
                path id="mk4" d="M-3.6-3.6 3.6 3.6M3.6-3.6-3.6 3.6" class="mkx" {}
                path id="mk5" d="M0-4.6V4.6M-4.6 0H4.6" class="mkx" {}
                path id="mk6" d="M0 4.6 4.4-3.4H-4.4z" {}
                path id="mk7" d="M-4.4 0-2.2-3.8h4.4L4.4 0 2.2 3.8h-4.4z" {}
                path id="arrow" d="M0 0 8 4 0 8z" {}
            }
        }
    }
}

/// Styles repeat after this many series.
pub(crate) const STYLES: usize = 8;

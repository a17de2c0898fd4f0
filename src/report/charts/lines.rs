//! Line charts: several series over one x axis, with intervals and marked edges.

use super::scale::Scale;
use super::{Axis, Form, STYLES, Table, cut, figure, round, svg};
use maud::{Markup, html};

/// One measured point.
#[derive(Clone)]
pub(crate) struct Point {
    /// Where.
    pub x: f64,
    /// How much.
    pub y: f64,
    /// Interval of `y`.
    pub range: Option<(f64, f64)>,
    /// What the tooltip adds.
    pub note: String,
}

/// Points of one kind, joined by a line.
pub(crate) struct Series {
    /// In the legend.
    pub name: String,
    /// Colour, dash and marker.
    pub style: usize,
    /// Joined by a line; otherwise only markers.
    pub joined: bool,
    /// In the order of x.
    pub points: Vec<Point>,
}

/// A vertical line with a name, such as the end of a cache.
pub(crate) struct Edge {
    /// Where.
    pub x: f64,
    /// Its name.
    pub name: String,
}

/// A whole chart.
pub(crate) struct Line {
    pub id: String,
    pub title: String,
    /// What to see in it, in words.
    pub reading: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
    pub edges: Vec<Edge>,
}

/// More points than this in a series are thinned to the smallest and largest of each stretch.
const POINTS_DRAWN: usize = 400;

impl Line {
    /// The figure; `None` when there is nothing to draw.
    pub(crate) fn figure(mut self) -> Option<Markup> {
        for s in &mut self.series {
            let (x, y) = (&self.x, &self.y);
            s.points.retain(|p| x.can(p.x) && y.can(p.y));
            s.points.sort_by(|a, b| a.x.total_cmp(&b.x));
            for p in &mut s.points {
                p.range = p.range.filter(|r| y.can(r.0) && y.can(r.1));
            }
        }
        self.series.retain(|s| !s.points.is_empty());
        if self.series.is_empty() {
            return None;
        }
        let body = html! { (self.draw(Form::Wide)) (self.draw(Form::Narrow)) };
        Some(figure(&self.id, &self.title, &self.reading, self.legend(), body, &self.table()))
    }

    fn legend(&self) -> Markup {
        html! {
            ul.legend data-for=(self.id) {
                @for (i, s) in self.series.iter().enumerate() {
                    li class={ "key s" (s.style % STYLES) } data-key=(i) title=(s.name) {
                        svg viewBox="0 0 34 12" aria-hidden="true" {
                            @if s.joined { path.line d="M1 6H33" {} }
                            use href={ "#mk" (s.style % STYLES) } x="17" y="6" {}
                        }
                        span { (s.name) }
                    }
                }
            }
        }
    }

    fn table(&self) -> Table {
        let mut rows = Vec::new();
        for s in &self.series {
            for p in &s.points {
                let range = p.range.map_or(String::new(), |(a, b)| {
                    format!("{} to {}", self.y.format.show(a), self.y.format.show(b))
                });
                rows.push(vec![
                    s.name.clone(),
                    self.x.format.show(p.x),
                    self.y.format.show(p.y),
                    range,
                    p.note.clone(),
                ]);
            }
        }
        let head = ["series", &self.x.label, &self.y.label, "95 % interval", "note"].map(String::from).into();
        Table { head, rows }
    }

    fn draw(&self, form: Form) -> Markup {
        let wide = form == Form::Wide;
        let (w, h) = (form.width(), if wide { 400.0 } else { 300.0 });
        let labelled = wide && self.series.len() <= 9 && self.ends_together();
        let (left, right) = if wide { (58.0, if labelled { 138.0 } else { 18.0 }) } else { (40.0, 10.0) };
        let (top, bottom) = (24.0, h - 46.0);
        let xs = self.series.iter().flat_map(|s| s.points.iter().map(|p| p.x));
        let ys = self
            .series
            .iter()
            .flat_map(|s| s.points.iter().flat_map(|p| [p.y].into_iter().chain(p.range.map(|r| r.1))));
        let x = Scale::over(&self.x, xs, left, w - right);
        let y = Scale::over(&self.y, ys, bottom, top);
        let desc = format!(
            "Line chart of {} against {}, {} series: {}.",
            self.y.label,
            self.x.label,
            self.series.len(),
            self.series.iter().map(|s| s.name.as_str()).collect::<Vec<_>>().join(", ")
        );
        let inner = html! {
            g.grid {
                @for (py, t) in y.ticks(if wide { 8 } else { 6 }) {
                    path d={ "M" (round(left)) " " (round(py)) "H" (round(w - right)) } {}
                    text.tick x=(round(left - 8.0)) y=(round(py + 4.0)) text-anchor="end" { (t) }
                }
                @for (px, t) in x.ticks(if wide { 9 } else { 5 }) {
                    path d={ "M" (round(px)) " " (round(bottom)) "v5" } {}
                    text.tick x=(round(px)) y=(round(bottom + 19.0)) text-anchor="middle" { (t) }
                }
            }
            text.axis x=(round((left + w - right) / 2.0)) y=(round(h - 6.0)) text-anchor="middle" { (self.x.label) }
            text.axis x="0" y="12" { (self.y.label) }
            (self.draw_edges(&x, top, bottom, w - right))
            @for (i, s) in self.series.iter().enumerate() { (draw_series(self, i, s, &x, &y)) }
            @if labelled { (self.end_labels(&y, &x, top, bottom, w - right)) }
        };
        svg(&self.id, form, h, &self.title, &desc, inner)
    }

    fn draw_edges(&self, x: &Scale<'_>, top: f64, bottom: f64, right: f64) -> Markup {
        let mut marks: Vec<(f64, f64, &str)> = Vec::new();
        for e in self.edges.iter().filter(|e| self.x.can(e.x) && x.holds(e.x)) {
            let px = x.at(e.x);
            // Names of close neighbours go to the next row.
            let row = marks.iter().filter(|m| (m.0 - px).abs() < 52.0).count() as f64;
            marks.push((px, row, &e.name));
        }
        html! {
            g.edges {
                @for (px, row, name) in marks {
                    @let flip = px > right - 40.0;
                    path d={ "M" (round(px)) " " (round(top)) "V" (round(bottom)) } {}
                    text x=(round(if flip { px - 5.0 } else { px + 5.0 })) y=(round(top + 11.0 + 14.0 * row))
                        text-anchor=(if flip { "end" } else { "start" }) { (name) }
                }
            }
        }
    }

    /// Whether lines reach the right edge, so that their names can stand there.
    fn ends_together(&self) -> bool {
        let position = |x: f64| if self.x.log { x.ln() } else { x };
        let all = self.series.iter().flat_map(|s| &s.points).map(|p| position(p.x));
        let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
        let mut joined = self.series.iter().filter(|s| s.joined).peekable();
        joined.peek().is_some()
            && joined.all(|s| s.points.last().is_some_and(|p| position(p.x) >= high - 0.15 * (high - low)))
    }

    /// Names at the line ends, pushed apart until they can be read.
    fn end_labels(&self, y: &Scale<'_>, x: &Scale<'_>, top: f64, bottom: f64, right: f64) -> Markup {
        let mut ends: Vec<(f64, f64, &Series)> = (self.series.iter())
            .filter(|s| s.joined)
            .filter_map(|s| s.points.last().map(|p| (y.at(p.y), x.at(p.x), s)))
            .filter(|(_, px, _)| *px > right - 60.0)
            .collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        for i in 1..ends.len() {
            ends[i].0 = ends[i].0.max(ends[i - 1].0 + 15.0);
        }
        let over = ends.last().map_or(0.0, |e| (e.0 - bottom).max(0.0));
        html! {
            g.ends aria-hidden="true" {
                @for (py, _, s) in ends {
                    text class={ "s" (s.style % STYLES) } x=(round(right + 10.0)) y=(round((py - over).max(top) + 4.0)) { (cut(&s.name, 18)) }
                }
            }
        }
    }
}

fn draw_series(chart: &Line, index: usize, s: &Series, x: &Scale<'_>, y: &Scale<'_>) -> Markup {
    let points = thin(&s.points);
    let mut path = String::new();
    for (i, p) in points.iter().enumerate() {
        path.push_str(&format!(
            "{}{} {}",
            if i == 0 { 'M' } else { 'L' },
            round(x.at(p.x)),
            round(y.at(p.y))
        ));
    }
    let whiskers: String = (points.iter())
        .filter_map(|p| p.range.map(|r| (x.at(p.x), y.at(r.0), y.at(r.1))))
        .filter(|(_, a, b)| (a - b).abs() > 5.0)
        .map(|(px, a, b)| format!("M{} {}V{}", round(px), round(a), round(b)))
        .collect();
    html! {
        g class={ "series s" (s.style % STYLES) } data-series=(index) {
            @if s.joined && points.len() > 1 { path.line d=(path) {} }
            @if !whiskers.is_empty() { path.whisker d=(whiskers) {} }
            @for p in points {
                use.pt href={ "#mk" (s.style % STYLES) } x=(round(x.at(p.x))) y=(round(y.at(p.y))) {
                    title {
                        (s.name) ": " (chart.y.format.show(p.y)) " at " (chart.x.format.show(p.x))
                        @if !p.note.is_empty() { " · " (p.note) }
                    }
                }
            }
        }
    }
}

/// The smallest and the largest point of each stretch, when there are too many.
fn thin(points: &[Point]) -> Vec<&Point> {
    if points.len() <= POINTS_DRAWN {
        return points.iter().collect();
    }
    let stretch = points.len().div_ceil(POINTS_DRAWN / 2);
    let mut out = Vec::with_capacity(POINTS_DRAWN);
    for part in points.chunks(stretch) {
        let low = part.iter().enumerate().min_by(|a, b| a.1.y.total_cmp(&b.1.y)).map_or(0, |m| m.0);
        let high = part.iter().enumerate().max_by(|a, b| a.1.y.total_cmp(&b.1.y)).map_or(0, |m| m.0);
        out.push(&part[low.min(high)]);
        if low != high {
            out.push(&part[low.max(high)]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::charts::Format;

    fn chart(points: Vec<Point>) -> Line {
        Line {
            id: "c".into(),
            title: "t".into(),
            reading: String::new(),
            x: Axis::new("size", Format::Bytes, true),
            y: Axis::new("ns", Format::Unit("ns"), false),
            series: vec![Series { name: "<row>".into(), style: 9, joined: true, points }],
            edges: vec![Edge { x: 4096.0, name: "L1d".into() }],
        }
    }

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, range: Some((y, y)), note: String::new() }
    }

    #[test]
    fn nothing_to_draw_gives_no_figure() {
        assert!(chart(vec![]).figure().is_none());
        assert!(
            chart(vec![point(0.0, 1.0), point(f64::NAN, 1.0), point(4.0, f64::INFINITY)]).figure().is_none()
        );
    }

    #[test]
    fn escapes_and_has_no_nan() {
        let html = chart(vec![point(4096.0, 0.0), point(4096.0, 0.0)]).figure().unwrap().into_string();
        assert!(html.contains("&lt;row&gt;") && !html.contains("<row>"));
        assert!(!html.contains("NaN") && !html.contains("inf"));
    }

    #[test]
    fn thins_thousands_of_points_and_keeps_the_extremes() {
        let mut points: Vec<Point> = (0..9000).map(|i| point(f64::from(i + 1), 1.0)).collect();
        points[4321].y = 77.0;
        let kept = thin(&points);
        assert!(kept.len() <= 402);
        assert!(kept.iter().any(|p| p.y == 77.0));
    }
}

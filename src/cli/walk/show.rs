//! What a walk found, for people and as JSON.

use super::Found;
use crate::bench::stats::Summary;
use crate::bench::walks::Pattern;
use crate::bench::walks::ladder::{self, Edge, LevelSpeed};
use crate::bench::walks::measure::Point;
use crate::cli::text;
use crate::error::words::counted;
use crate::machine::fingerprint::Fingerprint;
use crate::machine::topology::Topology;
use serde_json::{Value, json};

/// Nanoseconds per element.
pub(super) fn per_element(point: &Point) -> Option<Summary> {
    let elements = point.walk.elements().max(1) as f64;
    Summary::of(&point.samples_ns).map(|summary| summary.scaled(1.0 / elements))
}

/// Decimal gigabytes a second of `bytes` in a pass; `None` where the clock saw no time.
fn rate(point: &Point, bytes: u64) -> Option<f64> {
    let median = Summary::of(&point.samples_ns)?.median;
    (median > 0.0).then(|| bytes as f64 / median)
}

fn line_traffic(point: &Point) -> u64 {
    point.traffic.lines_touched * point.traffic.line_bytes
}

impl Found {
    pub(super) fn json(&self, topology: &Topology) -> Value {
        json!({
            "cpu": Fingerprint::host().cpu(),
            "pinning": self.pinning.name(),
            "pinned_cpu": self.pinning.cpu(),
            "interrupted": self.interrupted,
            "points": self.points.iter().map(|shown| {
                let (point, walk) = (&shown.point, &shown.point.walk);
                let summary = per_element(point);
                json!({
                    "pattern": walk.pattern.name(),
                    "dtype": walk.number.name(),
                    "rows": walk.rows,
                    "cols": walk.cols,
                    "pitch": walk.pitch,
                    "stride": (walk.pattern == Pattern::Strided).then_some(walk.stride),
                    "tile": (walk.pattern == Pattern::Tiled).then_some(walk.tile),
                    "seed": matches!(walk.pattern, Pattern::Random | Pattern::Chase).then_some(walk.seed),
                    "bytes": walk.bytes(),
                    "elements": walk.elements(),
                    "threads": point.threads,
                    "cold": self.cold,
                    "pages": self.pages.name(),
                    "huge_share": point.huge_share,
                    "verified": point.verified,
                    "samples_ns": point.samples_ns,
                    "median_ns_per_element": summary.map(|s| s.median),
                    "ci_low_ns_per_element": summary.map(|s| s.low),
                    "ci_high_ns_per_element": summary.map(|s| s.high),
                    "gb_per_s": rate(point, point.traffic.bytes_used),
                    "lines_gb_per_s": rate(point, line_traffic(point)),
                    "lines_touched": point.traffic.lines_touched,
                    "lines_per_element": point.traffic.lines_touched as f64 / walk.elements() as f64,
                    "model": shown.model.as_ref().map(|model| {
                        let mut map = model.to_json();
                        map.insert("caches".to_owned(), json!(self.caches));
                        map
                    }),
                    "counters": counters_json(point),
                })
            }).collect::<Vec<_>>(),
            "levels": self.level_rows(topology).iter().map(|row| json!({
                "level": row.name,
                "bytes": row.bytes,
                "gb_per_s": row.gb_per_s,
                "latency_ns": row.latency_ns,
            })).collect::<Vec<_>>(),
            "edges": self.edges().iter().map(|(pattern, edge)| json!({
                "pattern": pattern.name(),
                "from_bytes": edge.from_bytes,
                "to_bytes": edge.to_bytes,
                "ratio": edge.ratio,
            })).collect::<Vec<_>>(),
        })
    }

    pub(super) fn text(&self, topology: &Topology, with_model: bool) -> String {
        let mut header = vec![
            "pattern",
            "shape",
            "size",
            "ns/element",
            "95 % interval",
            "GB/s",
            "lines GB/s",
            "lines/el.",
        ];
        let mut right = vec![2, 3, 4, 5, 6, 7];
        let levels: Vec<String> =
            self.caches.iter().map(|cache| format!("model {} misses/el.", cache.level)).collect();
        if with_model {
            right.extend(header.len()..header.len() + levels.len());
            header.extend(levels.iter().map(String::as_str));
        }
        let events: Vec<&str> = match self.points.first() {
            Some(shown) if self.counting => {
                shown.point.counts.iter().filter(|c| !c.event.is_software()).map(|c| c.event.name()).collect()
            }
            _ => Vec::new(),
        };
        let event_header: Vec<String> = events.iter().map(|event| format!("{event}/el.")).collect();
        right.extend(header.len()..header.len() + events.len());
        header.extend(event_header.iter().map(String::as_str));
        let rows: Vec<Vec<String>> = self
            .points
            .iter()
            .map(|shown| {
                let mut row = figures(&shown.point);
                if with_model {
                    match &shown.model {
                        Some(model) => {
                            row.extend(model.per_element().into_iter().map(|(_, n)| text::figure(n)))
                        }
                        None => row.extend(levels.iter().map(|_| "too long".to_owned())),
                    }
                }
                let elements = shown.point.walk.elements() as f64;
                for count in shown.point.counts.iter().filter(|_| self.counting) {
                    if !count.event.is_software() {
                        row.push(count.value.map_or_else(
                            || count.state.name().to_owned(),
                            |value| text::figure(value / elements),
                        ));
                    }
                }
                row
            })
            .collect();
        let mut out = self.heading();
        out.push_str(&text::table(&header, &right, &rows));
        out.push_str(&self.summary(topology));
        out
    }

    fn heading(&self) -> String {
        let mut out = String::new();
        if let Some(shown) = self.points.first() {
            let point = &shown.point;
            out.push_str(&format!(
                "{}, {}, {} pages{}, {} caches, {}\n",
                point.walk.number.name(),
                counted(point.threads, "thread"),
                self.pages.name(),
                point.huge_share.map_or_else(
                    || " (huge share unknown)".to_owned(),
                    |share| format!(" ({:.0} % huge)", share * 100.0)
                ),
                if self.cold { "cold" } else { "warm" },
                match self.pinning.cpu() {
                    Some(cpu) => format!("pinned to CPU {cpu}"),
                    None => format!("pinning {}", self.pinning.name()),
                }
            ));
        }
        out.push_str("GB/s counts distinct bytes read, lines GB/s the whole lines that hold them\n\n");
        out
    }

    fn summary(&self, topology: &Topology) -> String {
        let mut out = String::new();
        let rows = self.level_rows(topology);
        if !rows.is_empty() {
            let cells: Vec<Vec<String>> = rows
                .iter()
                .map(|row| {
                    vec![
                        row.name.clone(),
                        row.bytes.map_or_else(String::new, |bytes| text::bytes(bytes as u64)),
                        row.gb_per_s.map_or_else(|| "-".to_owned(), text::figure),
                        row.latency_ns.map_or_else(|| "-".to_owned(), text::figure),
                    ]
                })
                .collect();
            out.push('\n');
            out.push_str(&text::table(&["level", "size", "row GB/s", "latency ns"], &[1, 2, 3], &cells));
        }
        for (pattern, edge) in self.edges() {
            out.push_str(&format!(
                "edge seen by the {} walk between {} and {}: {} times slower\n",
                pattern.name(),
                text::bytes(edge.from_bytes as u64),
                text::bytes(edge.to_bytes as u64),
                text::figure(edge.ratio)
            ));
        }
        if !self.counting {
            out.push_str("no hardware counters here: restride machine says why\n");
        }
        out
    }

    /// Edges in the ladders of row walks and chases: one stride and one size after the other.
    fn edges(&self) -> Vec<(Pattern, Edge)> {
        [Pattern::Row, Pattern::Chase]
            .into_iter()
            .flat_map(|pattern| {
                ladder::edges(&self.rungs(pattern)).into_iter().map(move |edge| (pattern, edge))
            })
            .collect()
    }

    /// Bandwidth by the row walk and latency by the chase, level by level.
    fn level_rows(&self, topology: &Topology) -> Vec<LevelRow> {
        let (bandwidth, latency) = (
            ladder::levels(topology, &self.rungs(Pattern::Row)),
            ladder::levels(topology, &self.rungs(Pattern::Chase)),
        );
        let width = self.points.first().map_or(1, |shown| shown.point.walk.number.bytes()) as f64;
        let mut rows: Vec<LevelRow> = Vec::new();
        let mut row = |speed: &LevelSpeed, set: &dyn Fn(&mut LevelRow)| {
            let at = rows.iter().position(|row| row.name == speed.level).unwrap_or_else(|| {
                rows.push(LevelRow { name: speed.level.clone(), bytes: speed.bytes, ..LevelRow::default() });
                rows.len() - 1
            });
            set(&mut rows[at]);
        };
        for speed in &bandwidth {
            let gb_per_s = (speed.ns > 0.0).then(|| width / speed.ns);
            row(speed, &|row| row.gb_per_s = gb_per_s);
        }
        for speed in &latency {
            row(speed, &|row| row.latency_ns = Some(speed.ns));
        }
        rows
    }
}

/// What one level gives.
#[derive(Default)]
struct LevelRow {
    name: String,
    bytes: Option<usize>,
    gb_per_s: Option<f64>,
    latency_ns: Option<f64>,
}

fn figures(point: &Point) -> Vec<String> {
    let walk = &point.walk;
    let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), text::figure);
    let summary = per_element(point);
    let shape = match walk.pattern {
        Pattern::Strided => format!("{} by {}", walk.len(), walk.stride),
        Pattern::Random => walk.len().to_string(),
        Pattern::Chase => counted(walk.elements(), "line"),
        _ if walk.pitch != walk.cols => format!("{}x{} pitch {}", walk.rows, walk.cols, walk.pitch),
        _ => format!("{}x{}", walk.rows, walk.cols),
    };
    vec![
        walk.pattern.name().to_owned(),
        shape,
        text::bytes(walk.bytes() as u64),
        show(summary.map(|s| s.median)),
        summary.map_or_else(
            || "-".to_owned(),
            |s| format!("{} - {}", text::figure(s.low), text::figure(s.high)),
        ),
        show(rate(point, point.traffic.bytes_used)),
        show(rate(point, line_traffic(point))),
        text::figure(point.traffic.lines_touched as f64 / walk.elements() as f64),
    ]
}

/// Every event of this machine: those that were counted with their value, the others with their state.
fn counters_json(point: &Point) -> Value {
    crate::machine::counters::host_probes()
        .iter()
        .map(|probe| {
            let counted = point.counts.iter().find(|count| count.event == probe.event);
            let state = counted.map_or(probe.state, |count| count.state);
            json!({
                "event": probe.event.name(),
                "state": state.name(),
                "value": counted.and_then(|count| count.value),
                "reason": state.reason(),
            })
        })
        .collect()
}

//! What the numbers of a record say: costs per cache level, cliffs, noise. Used by the summary and by
//! the tables in Markdown.

use super::data::{Case, Data, Stat, geomean, number, text};

/// Row-major against transposed at one level of the memory.
pub(crate) struct LevelCost {
    /// `L1d`, `L2`, ..., `memory`, or a size when the caches are unknown.
    pub level: String,
    pub working_set_bytes: f64,
    /// ns per element.
    pub row: f64,
    /// ns per element.
    pub column: f64,
}

impl LevelCost {
    pub(crate) fn factor(&self) -> f64 {
        self.column / self.row
    }
}

/// One pass of one thread with ordinary pages and warm caches: the plain case.
pub(crate) fn is_plain(c: &Case) -> bool {
    c.variant().is_empty()
}

/// Size and time per element of one pattern, by size; the element type that most cases have.
pub(crate) fn ladder(d: &Data, pattern: &str) -> Vec<(f64, Stat)> {
    let dtype = main_dtype(d);
    let mut out: Vec<(f64, Stat)> = d
        .sweep("ladder")
        .filter(|c| c.str("pattern").as_deref() == Some(pattern) && is_plain(c) && c.str("dtype") == dtype)
        .filter_map(|c| Some((c.working_set_bytes()?, c.ns_per_element()?)))
        .collect();
    out.sort_by(|a, b| a.0.total_cmp(&b.0));
    out.dedup_by(|a, b| a.0 == b.0);
    out
}

/// The element type that most walks have.
pub(crate) fn main_dtype(d: &Data) -> Option<String> {
    let all: Vec<String> = d.sweep("ladder").filter_map(|c| c.str("dtype")).collect();
    all.iter().max_by_key(|t| all.iter().filter(|o| o == t).count()).cloned()
}

/// Row-major against transposed, one entry a level that was measured.
pub(crate) fn level_costs(d: &Data) -> Vec<LevelCost> {
    let column = ladder(d, "column");
    let pairs: Vec<(f64, f64, f64)> = (ladder(d, "row").into_iter())
        .filter_map(|(size, r)| {
            let near =
                column.iter().min_by(|a, b| (a.0 / size).ln().abs().total_cmp(&(b.0 / size).ln().abs()))?;
            let good = (near.0 / size).ln().abs() < 0.2 && r.median > 0.0 && near.1.median > 0.0;
            good.then_some((size, r.median, near.1.median))
        })
        .collect();
    let mut out: Vec<LevelCost> = Vec::new();
    let mut add = |level: String, p: Option<&(f64, f64, f64)>| {
        if let Some(&(working_set_bytes, row, column)) = p {
            out.push(LevelCost { level, working_set_bytes, row, column });
        }
    };
    let caches = d.caches();
    if caches.is_empty() {
        for p in pairs.first().into_iter().chain(pairs.last().filter(|_| pairs.len() > 1)) {
            add(super::num::bytes(p.0), Some(p));
        }
        return out;
    }
    let mut below = 0.0;
    for c in &caches {
        let within = pairs.iter().filter(|p| p.0 > below * 1.4 && p.0 <= c.bytes * 0.8);
        let goal =
            (c.bytes * 0.5).min(below.max(1.0) * 24.0).max(if below == 0.0 { c.bytes * 0.5 } else { 0.0 });
        let name = if c.shared { format!("{} (shared)", c.name) } else { c.name.clone() };
        add(name, within.min_by(|a, b| (a.0 / goal).ln().abs().total_cmp(&(b.0 / goal).ln().abs())));
        below = c.bytes;
    }
    add("memory".into(), pairs.last().filter(|p| p.0 > below * 1.4));
    out
}

/// A power-of-two row pitch that costs more than the pitches beside it.
pub(crate) struct Cliff {
    pub pitch: f64,
    /// ns per element.
    pub at: f64,
    /// Median ns per element of the neighbours.
    pub beside: f64,
}

/// Power-of-two pitches against their neighbours, the worst first.
pub(crate) fn cliffs(d: &Data) -> Vec<Cliff> {
    let points: Vec<(f64, f64)> = (d.sweep("pitch"))
        .filter(|c| c.str("pattern").is_none_or(|p| p == "column") && is_plain(c))
        .filter_map(|c| Some((c.num("row_pitch")?, c.ns_per_element()?.median)))
        .filter(|p| p.0 >= 1.0 && p.1 > 0.0)
        .collect();
    let mut out: Vec<Cliff> = Vec::new();
    for &(pitch, at) in points.iter().filter(|p| p.0.log2().fract() == 0.0) {
        let beside: Vec<f64> =
            points.iter().filter(|p| p.0 != pitch && (p.0 / pitch - 1.0).abs() < 0.1).map(|p| p.1).collect();
        if let Some(s) = Stat::of(&beside) {
            out.push(Cliff { pitch, at, beside: s.median });
        }
    }
    out.sort_by(|a, b| (b.at / b.beside).total_cmp(&(a.at / a.beside)));
    out
}

/// Cases whose interval is wider than a tenth of the median, the widest first.
pub(crate) fn noisy(d: &Data) -> Vec<(&Case, f64)> {
    let mut out: Vec<(&Case, f64)> =
        d.cases.iter().filter_map(|c| Some((c, c.time_ns?.spread()?))).filter(|n| n.1 > 0.10).collect();
    out.sort_by(|a, b| b.1.total_cmp(&a.1));
    out
}

/// Copies that are not limits: what the engine did.
pub(crate) fn copies(d: &Data) -> impl Iterator<Item = &Case> {
    d.of_kind("copy").filter(|c| c.str("group").as_deref() != Some("limit"))
}

/// How fast the copies of a record are against memcpy.
pub(crate) struct CopyRatio {
    /// Geometric mean of all cases.
    pub mean: f64,
    pub cases: usize,
    pub slowest: (String, f64),
    pub fastest: (String, f64),
}

/// The plain copies of a record against memcpy; `None` when it has none.
pub(crate) fn copy_ratio(d: &Data) -> Option<CopyRatio> {
    let plain = copies(d).filter(|c| is_plain(c));
    let all: Vec<(String, f64)> = plain.filter_map(|c| Some((c.name(), c.ratio()?.median))).collect();
    Some(CopyRatio {
        mean: geomean(all.iter().map(|r| r.1))?,
        cases: all.len(),
        slowest: all.iter().min_by(|a, b| a.1.total_cmp(&b.1))?.clone(),
        fastest: all.iter().max_by(|a, b| a.1.total_cmp(&b.1))?.clone(),
    })
}

/// How often a transposed view must be read in full before making it contiguous has paid: copy time
/// over the time that each later read saves. From the largest 2-D transpose and the last ladder level.
pub(crate) fn break_even(d: &Data) -> Option<(f64, f64, f64)> {
    let level = level_costs(d).pop()?;
    let transpose = copies(d)
        .filter(|c| {
            is_plain(c)
                && matches!(c.str("expr").as_deref().map(str::trim), Some(".T" | ".mT" | ".permute(1, 0)"))
        })
        .filter(|c| c.list("shape").len() == 2 && c.num("element_size").unwrap_or(8.0) >= 4.0)
        .max_by(|a, b| a.bytes_moved.unwrap_or(0.0).total_cmp(&b.bytes_moved.unwrap_or(0.0)))?;
    let size: f64 = transpose.list("shape").iter().product();
    let copy = transpose.time_ns?.median / size;
    let saved = level.column - level.row;
    (saved > 0.0 && copy.is_finite()).then_some((copy / saved, copy, saved))
}

/// Every counter with its state, coverage, reason and remedy.
pub(crate) fn counters(d: &Data) -> Vec<Counter> {
    let all = d.machine()["counters"].as_array().into_iter().flatten();
    all.map(|c| {
        let word = |key: &str| text(&c[key]).unwrap_or_default();
        let coverage = number(&c["coverage"]);
        Counter {
            event: word("event"),
            state: word("state"),
            coverage,
            reason: word("reason"),
            remedy: word("remedy"),
        }
    })
    .collect()
}

/// One hardware event and whether it can be counted here.
pub(crate) struct Counter {
    pub event: String,
    pub state: String,
    pub coverage: Option<f64>,
    pub reason: String,
    pub remedy: String,
}

impl Counter {
    pub(crate) fn works(&self) -> bool {
        matches!(self.state.as_str(), "Ok" | "Multiplexed")
    }
}

//! The table: GB/s and ratio to `memcpy` of each library, wins marked, and what it comes to.

use crate::run::{Outcome, Results};
use crate::subject::Subject;
use restride::bench::stats::median;
use std::fmt::Write as _;

/// Width of one library's column.
const COLUMN: usize = 14;

/// The lines of a table, one case after the other.
pub struct Table {
    peers: Vec<&'static str>,
    /// Per library: its ratios to `memcpy`.
    ratios: Vec<Vec<f64>>,
    wins: Vec<usize>,
    /// Cases where another library was faster than restride, with how much.
    losses: Vec<String>,
    wrong: Vec<String>,
    cases: usize,
}

/// GB/s and ratio, a star for the fastest; a dash where there is no such operation.
fn cell(figures: Option<(f64, f64)>, verified: bool, fastest: bool) -> String {
    match figures {
        None => "-".to_owned(),
        Some(_) if !verified => "WRONG".to_owned(),
        Some((gb_per_s, ratio)) => format!("{gb_per_s:.1} {ratio:.2}{}", if fastest { "*" } else { " " }),
    }
}

impl Table {
    /// A table of these libraries.
    pub fn new(peers: Vec<&'static str>) -> Self {
        let count = peers.len();
        Self {
            peers,
            ratios: vec![Vec::new(); count],
            wins: vec![0; count],
            losses: Vec::new(),
            wrong: Vec::new(),
            cases: 0,
        }
    }

    /// The two lines above the cases.
    pub fn head(&self, threads: usize) -> String {
        let mut out = format!(
            "{threads} thread{}, medians; per library GB/s (distinct source bytes read + bytes written, decimal) \
             and memcpy time / its time; * fastest; - no such operation\n{:42} {:>8}",
            if threads == 1 { "" } else { "s" },
            "case",
            "memcpy"
        );
        for peer in &self.peers {
            let _ = write!(out, " {peer:>COLUMN$}");
        }
        out
    }

    /// The line of a case.
    pub fn row(&mut self, subject: &Subject, results: &Results) -> String {
        let id = &subject.case.id;
        let memcpy_ns = median(&results.memcpy_ns).unwrap_or(f64::NAN);
        let bytes = subject.bytes_moved() as f64;
        let figures: Vec<Option<f64>> = results
            .outcomes
            .iter()
            .map(|outcome: &Outcome| median(&outcome.samples_ns).filter(|_| outcome.verified))
            .collect();
        let best = figures.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        self.cases += 1;
        let mut out = format!("{id:42} {:8.1}", 2.0 * subject.dst_bytes() as f64 / memcpy_ns);
        for (k, outcome) in results.outcomes.iter().enumerate() {
            let time = median(&outcome.samples_ns);
            if time.is_some() && !outcome.verified {
                self.wrong.push(format!("{id} by {}", outcome.peer));
            }
            let fastest = figures[k] == Some(best);
            if let Some(ns) = figures[k] {
                self.ratios[k].push(memcpy_ns / ns);
                self.wins[k] += usize::from(fastest);
            }
            let text = cell(time.map(|ns| (bytes / ns, memcpy_ns / ns)), outcome.verified, fastest);
            let _ = write!(out, " {text:>COLUMN$}");
        }
        if let Some(Some(ours)) = figures.first()
            && best < *ours
            && self.peers[0] == "restride"
        {
            let by = results.outcomes.iter().zip(&figures).find(|(_, f)| **f == Some(best));
            self.losses.push(format!(
                "{id}: {} {:.2} times as fast",
                by.map_or("", |(o, _)| o.peer),
                ours / best
            ));
        }
        out
    }

    /// Geometric means, wins, and where restride was not the fastest.
    pub fn foot(&self) -> String {
        let mut out = String::new();
        let geomean =
            |ratios: &[f64]| (ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len() as f64).exp();
        for (k, peer) in self.peers.iter().enumerate() {
            let ratios = &self.ratios[k];
            if ratios.is_empty() {
                let _ = writeln!(out, "{peer:16} no case");
                continue;
            }
            let worst = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let _ = writeln!(
                out,
                "{peer:16} geomean {:.2} of memcpy over {} of {} cases, worst {worst:.2}, fastest in {}",
                geomean(ratios),
                ratios.len(),
                self.cases,
                self.wins[k]
            );
        }
        for loss in &self.losses {
            let _ = writeln!(out, "not the fastest: {loss}");
        }
        for wrong in &self.wrong {
            let _ = writeln!(out, "WRONG RESULT: {wrong}");
        }
        out
    }

    /// Whether every result was right.
    pub fn all_right(&self) -> bool {
        self.wrong.is_empty()
    }
}

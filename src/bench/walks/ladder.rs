//! A ladder of sizes, and what it says of the machine: bandwidth and latency of each level, and where
//! the levels end.

use super::{Number, Pattern, Walk};
use crate::Error;
use crate::machine::topology::Topology;

/// Growth of a time from one rung to the next that counts as leaving a level.
const STEP: f64 = 1.12;
/// Growth over a whole edge below which it is noise.
const EDGE: f64 = 1.3;

/// Sizes in bytes from half of the L1 to four times the last level that is not flagged as shared with
/// others, two to an octave, each a multiple of 4 KiB.
pub fn sizes(topology: &Topology) -> Vec<usize> {
    let last = topology.last_private_level().and_then(|cache| cache.bytes);
    let low = topology.l1d().bytes / 2;
    let high = last.unwrap_or_else(|| topology.l2().bytes).saturating_mul(4);
    between(low, high)
}

/// Sizes in bytes from `low` to `high`, both included, two to an octave, multiples of 4 KiB.
pub fn between(low: usize, high: usize) -> Vec<usize> {
    let round = |bytes: f64| ((bytes / 4096.0).round() as usize).max(1) * 4096;
    let mut sizes = Vec::new();
    let mut size = low.max(4096) as f64;
    while size < high as f64 * 0.99 {
        sizes.push(round(size));
        size *= std::f64::consts::SQRT_2;
    }
    sizes.push(round(high.max(4096) as f64));
    sizes.dedup();
    sizes
}

/// A walk over about `bytes` bytes: near square, rows of whole lines, and no row a multiple of 4 KiB
/// from the next, which is a case of its own.
///
/// # Errors
/// Overflow, where `bytes` is beyond what is walked.
pub fn square(pattern: Pattern, number: Number, bytes: usize, line_bytes: usize) -> Result<Walk, Error> {
    let width = number.bytes();
    let line = (line_bytes / width).max(1);
    let side = ((bytes / width) as f64).sqrt() as usize;
    let mut cols = (side / line).max(1) * line;
    if (cols * width).is_multiple_of(4096) {
        cols += line;
    }
    let rows = (bytes / width / cols).max(1);
    Ok(Walk::new(pattern, number, rows, cols)?.with_line_bytes(line_bytes))
}

/// One rung: a size and a time per element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rung {
    /// Bytes of the array.
    pub bytes: usize,
    /// Median nanoseconds per element.
    pub ns: f64,
}

/// Where times rise from one level to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// The last size before the rise, in bytes.
    pub from_bytes: usize,
    /// The first size after it, in bytes.
    pub to_bytes: usize,
    /// Time after the rise divided by the time before.
    pub ratio: f64,
}

/// The edges of a ladder that ascends by size.
///
/// Neighbouring steps upwards are one edge; a single step that does not rise ends it. Times of zero are
/// below what the clock resolves and end an edge too.
pub fn edges(rungs: &[Rung]) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut start: Option<usize> = None;
    for at in 1..=rungs.len() {
        let rises = at < rungs.len() && rungs[at - 1].ns > 0.0 && rungs[at].ns / rungs[at - 1].ns >= STEP;
        match (rises, start) {
            (true, None) => start = Some(at - 1),
            (false, Some(from)) => {
                let (low, high) = (rungs[from], rungs[at - 1]);
                let ratio = high.ns / low.ns;
                if ratio >= EDGE {
                    edges.push(Edge { from_bytes: low.bytes, to_bytes: high.bytes, ratio });
                }
                start = None;
            }
            _ => {}
        }
    }
    edges
}

/// What a level gives.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelSpeed {
    /// `L1d`, `L2` and so on, `memory` beyond the last.
    pub level: String,
    /// Its size in bytes; `None` for memory.
    pub bytes: Option<usize>,
    /// Nanoseconds per element of the rung that stands for it.
    pub ns: f64,
    /// Bytes of that rung.
    pub at_bytes: usize,
}

/// For each data cache the rung that stands for it: the largest up to three quarters of its size and
/// more than the level below; for memory the last rung beyond twice the last level.
pub fn levels(topology: &Topology, rungs: &[Rung]) -> Vec<LevelSpeed> {
    let mut found = Vec::new();
    let mut below = 0;
    let caches = topology.caches.iter().filter(|cache| cache.holds_data());
    for cache in caches {
        let Some(bytes) = cache.bytes else { continue };
        let rung = rungs.iter().rfind(|rung| rung.bytes <= bytes / 4 * 3 && rung.bytes > below);
        if let Some(rung) = rung {
            found.push(LevelSpeed {
                level: cache.name(),
                bytes: Some(bytes),
                ns: rung.ns,
                at_bytes: rung.bytes,
            });
        }
        below = bytes;
    }
    if let Some(rung) = rungs.last().filter(|rung| below > 0 && rung.bytes >= 2 * below) {
        found.push(LevelSpeed { level: "memory".to_owned(), bytes: None, ns: rung.ns, at_bytes: rung.bytes });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::caches;

    fn machine(text: &str) -> Topology {
        let mut topology = Topology::default();
        topology.override_caches(&caches::parse(text).unwrap());
        topology
    }

    #[test]
    fn sizes_span_the_levels() {
        let sizes_of = |text| {
            let sizes = sizes(&machine(text));
            (sizes[0], sizes[sizes.len() - 1], sizes.len())
        };
        assert_eq!(sizes_of("L1d=48K/12/64,L2=1M/16/64,L3=32M/16/64"), (24 << 10, 128 << 20, 26));
        // A last level that others share is left out: four times the L2 is enough.
        assert_eq!(sizes_of("L1d=32K/8/64,L2=2M/16/64,L3=300M/20/64").1, 8 << 20);
        // Nothing known: assumed sizes, and it still ends.
        let unknown = sizes(&Topology::default());
        assert!(unknown.windows(2).all(|pair| pair[0] < pair[1]) && unknown.len() < 40);
        assert_eq!(between(1, 1), [4096]);
        assert_eq!(between(8192, 4096), [4096]);
    }

    #[test]
    fn squares_avoid_the_cliff() {
        for number in Number::ALL {
            for bytes in between(4096, 64 << 20) {
                let walk = square(Pattern::Column, number, bytes, 64).unwrap();
                assert_ne!(walk.cols * number.bytes() % 4096, 0, "{walk:?}");
                assert_eq!(walk.cols * number.bytes() % 64, 0, "{walk:?}");
                assert!(
                    walk.bytes() <= bytes.max(8192) && walk.bytes() * 10 >= bytes * 8,
                    "{walk:?} for {bytes}"
                );
            }
        }
    }

    fn rungs(times: &[f64]) -> Vec<Rung> {
        times.iter().enumerate().map(|(at, &ns)| Rung { bytes: 4096 << at, ns }).collect()
    }

    #[test]
    fn edges_are_whole_rises() {
        let found = edges(&rungs(&[1.0, 1.0, 1.02, 2.0, 4.0, 4.1, 4.0, 12.0]));
        let spans: Vec<_> = found.iter().map(|edge| (edge.from_bytes >> 12, edge.to_bytes >> 12)).collect();
        assert_eq!(spans, [(4, 16), (64, 128)]);
        assert!((found[1].ratio - 3.0).abs() < 1e-9);
        assert!(edges(&rungs(&[1.0, 1.15, 1.0, 1.2])).is_empty(), "a small rise is noise");
        for flat in [&[][..], &[1.0], &[0.0, 0.0], &[0.0, 5.0]] {
            assert!(edges(&rungs(flat)).is_empty());
        }
    }

    #[test]
    fn a_rung_stands_for_each_level() {
        let topology = machine("L1d=32K/8/64,L2=256K/8/64");
        let ladder: Vec<Rung> =
            between(16 << 10, 1 << 20).into_iter().map(|bytes| Rung { bytes, ns: 1.0 }).collect();
        let found = levels(&topology, &ladder);
        let names: Vec<_> = found.iter().map(|level| level.level.as_str()).collect();
        assert_eq!(names, ["L1d", "L2", "memory"]);
        assert!(found[0].at_bytes <= 24 << 10 && found[1].at_bytes > 32 << 10);
        assert!(levels(&Topology::default(), &ladder).is_empty());
        assert!(levels(&topology, &[]).is_empty());
    }
}

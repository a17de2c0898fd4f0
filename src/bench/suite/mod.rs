//! The suite: which walks, copies and tiles are measured, and their cases for the record.

mod about;
mod run;

pub use about::{git, left_out, machine};
pub use run::Context;

use super::cases;
use super::record;
use super::timing::{Effort, PageMode};
use super::walks::{Number, Pattern, Walk, ladder};
use crate::dtype::Dtype;
use crate::machine::caches::short_bytes;
use crate::machine::pages::Pages;
use crate::machine::topology::Topology;
use crate::{Error, Layout, Tuning};
use std::collections::HashSet;
use std::time::Duration;

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// Under two minutes.
    Quick,
    /// Under twenty.
    Full,
}

impl Preset {
    /// When jobs are left out rather than begun: a machine that is busy with something else, or slow,
    /// gets a shorter record and not a longer wait.
    pub fn limit(self) -> Duration {
        Duration::from_secs(if self == Self::Quick { 105 } else { 18 * 60 })
    }

    /// Time for one walk.
    fn walk_effort(self) -> Effort {
        let budget = Duration::from_millis(if self == Self::Quick { 80 } else { 700 });
        Effort { budget, min_samples: 5, max_samples: record::MAX_SAMPLES }
    }

    /// Time for one copy and its `memcpy`.
    fn copy_effort(self) -> Effort {
        let budget = Duration::from_millis(if self == Self::Quick { 250 } else { 1500 });
        Effort { budget, min_samples: 7, max_samples: record::MAX_SAMPLES }
    }

    /// Largest input and output of a copy, together, in bytes.
    fn copy_bytes(self) -> u64 {
        if self == Self::Quick { 160 << 20 } else { 2 << 30 }
    }
}

/// One thing to be measured.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Job {
    /// A walk.
    Walk {
        /// The walk.
        walk: Walk,
        /// Which chart it belongs to: `ladder`, `mountain` or `pitch`.
        sweep: &'static str,
        /// Pages of the array.
        pages: PageMode,
        /// Whether the caches are flushed before every pass.
        cold: bool,
        /// Whether all cores walk at once.
        all_cores: bool,
    },
    /// A copy, interleaved with `memcpy`.
    Copy {
        /// The case of the table.
        case: cases::Case,
        /// Pages of the buffers.
        pages: PageMode,
        /// Whether all cores copy at once.
        all_cores: bool,
    },
    /// A plain copy of so many bytes: what `memcpy` and streaming stores give.
    Limit {
        /// Bytes of one array.
        bytes: usize,
    },
    /// One transpose with one tile.
    Tile {
        /// Rows and columns of the matrix of `f32`.
        side: usize,
        /// Bytes along a source row.
        src_bytes: usize,
        /// Bytes along a destination row.
        dst_bytes: usize,
    },
}

/// Everything that a preset measures on a machine, in order.
pub fn jobs(preset: Preset, topology: &Topology) -> Vec<Job> {
    let mut jobs = walks(preset, topology);
    let quick = preset == Preset::Quick;
    let copy = |case: &cases::Case, pages, all_cores| Job::Copy { case: case.clone(), pages, all_cores };
    let all = cases::all();
    jobs.extend(all.iter().map(|case| copy(case, PageMode::Small, false)));
    let several = topology.default_threads() > 1;
    let largest = |case: &&cases::Case| case.shape.iter().product::<usize>() >= 1 << 20;
    let every = if quick { 6 } else { 1 };
    jobs.extend(
        all.iter()
            .filter(largest)
            .step_by(every)
            .filter(|_| several)
            .map(|case| copy(case, PageMode::Small, true)),
    );
    if Pages::host().huge_possible() {
        jobs.extend(all.iter().filter(largest).step_by(every).map(|case| copy(case, PageMode::Huge, false)));
    }
    let sizes = ladder::sizes(topology);
    jobs.extend(sizes.iter().step_by(if quick { 3 } else { 1 }).map(|&bytes| Job::Limit { bytes }));
    let (side, src, dst) = match preset {
        Preset::Quick => (2048, &[256, 1024, 4096][..], &[64, 128, 512][..]),
        Preset::Full => {
            (4096, &[64, 128, 256, 512, 1024, 2048, 4096, 8192][..], &[64, 128, 256, 512, 1024][..])
        }
    };
    let mut tiles: Vec<(usize, usize)> =
        src.iter().flat_map(|&src_bytes| dst.iter().map(move |&dst_bytes| (src_bytes, dst_bytes))).collect();
    // What the defaults and the profile in force choose belongs to the sweep.
    for tuning in [Tuning::unprofiled(), Tuning::machine()] {
        let chosen = (tuning.tile_src_bytes.of(4), tuning.tile_dst_bytes.of(4));
        if !tiles.contains(&chosen) {
            tiles.push(chosen);
        }
    }
    jobs.extend(tiles.into_iter().map(|(src_bytes, dst_bytes)| Job::Tile { side, src_bytes, dst_bytes }));
    // A machine of one level has its sizes coincide.
    let mut seen = HashSet::new();
    jobs.retain(|job| {
        (job.bytes() <= preset.copy_bytes() || matches!(job, Job::Walk { .. })) && seen.insert(job.id())
    });
    jobs
}

/// The walks: ladders of sizes, the mountain of sizes and strides, and pitches around powers of two.
fn walks(preset: Preset, topology: &Topology) -> Vec<Job> {
    let quick = preset == Preset::Quick;
    let line = topology.line_bytes().bytes;
    let mut jobs = Vec::new();
    let mut add = |walk: Result<Walk, Error>, sweep, pages, cold, all_cores| {
        // A size that does not fit this machine's addresses is no part of the suite.
        if let Ok(walk) = walk {
            let walk = walk.with_line_bytes(line);
            if !walk.is_empty() {
                jobs.push(Job::Walk { walk, sweep, pages, cold, all_cores });
            }
        }
    };
    let sizes = ladder::sizes(topology);
    let thinned: Vec<usize> = sizes.iter().rev().step_by(if quick { 2 } else { 1 }).rev().copied().collect();
    for &bytes in &thinned {
        for pattern in [Pattern::Row, Pattern::Column, Pattern::Tiled, Pattern::Random, Pattern::Chase] {
            add(ladder::square(pattern, Number::F64, bytes, line), "ladder", PageMode::Small, false, false);
        }
    }
    // What else may change a walk, at one size beyond the private caches and at the largest.
    let beyond = [topology.l2().bytes.saturating_mul(4), sizes.last().copied().unwrap_or(64 << 20)];
    for bytes in beyond {
        for pattern in [Pattern::Row, Pattern::Column] {
            for number in [Number::F32, Number::U8, Number::I64] {
                add(ladder::square(pattern, number, bytes, line), "ladder", PageMode::Small, false, false);
            }
            let walk = || ladder::square(pattern, Number::F64, bytes, line);
            if crate::machine::flush::available() {
                add(walk(), "ladder", PageMode::Small, true, false);
            }
            if Pages::host().huge_possible() {
                add(walk(), "ladder", PageMode::Huge, false, false);
            }
            if topology.default_threads() > 1 {
                add(walk(), "ladder", PageMode::Small, false, true);
            }
        }
        if Pages::host().huge_possible() {
            add(
                ladder::square(Pattern::Chase, Number::F64, bytes, line),
                "ladder",
                PageMode::Huge,
                false,
                false,
            );
        }
    }
    let (every_size, strides) = match preset {
        Preset::Quick => (4, &[1, 2, 4, 8, 16, 64, 256, 1024, 4096][..]),
        Preset::Full => (2, &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096][..]),
    };
    for &bytes in sizes.iter().step_by(every_size) {
        for &stride in strides {
            let walk =
                Walk::new(Pattern::Strided, Number::F64, 1, bytes / 8).map(|walk| walk.with_stride(stride));
            add(walk, "mountain", PageMode::Small, false, false);
        }
    }
    let (sides, steps): (&[usize], &[isize]) = match preset {
        Preset::Quick => (&[1024], &[-16, -8, 0, 8, 16]),
        Preset::Full => (&[512, 1024, 2048], &[-64, -32, -16, -8, -4, 0, 4, 8, 16, 32, 64]),
    };
    for &side in sides {
        for &step in steps {
            let pitch = side.saturating_add_signed(step);
            for pattern in [Pattern::Row, Pattern::Column] {
                // Fewer columns than the smallest pitch, so that all pitches read the same elements.
                let walk =
                    Walk::new(pattern, Number::F64, side, side - 64).and_then(|walk| walk.with_pitch(pitch));
                add(walk, "pitch", PageMode::Small, false, false);
            }
        }
    }
    jobs
}

impl Job {
    /// Name of its case: unique, and the same on every machine for the same work.
    pub fn id(&self) -> String {
        match self {
            Self::Walk { walk, sweep, pages, cold, all_cores } => {
                let Walk { rows, cols, pitch, stride, .. } = *walk;
                let size = match (*sweep, walk.pattern) {
                    ("pitch", _) => {
                        format!("pitch/{}/{}/{rows}x{cols}/{pitch}", walk.pattern.name(), walk.number.name())
                    }
                    (_, Pattern::Strided) => {
                        format!("strided/{}/{}/{stride}", walk.number.name(), short_bytes(walk.bytes()))
                    }
                    _ => format!("{}/{}/{rows}x{cols}", walk.pattern.name(), walk.number.name()),
                };
                format!("walk/{size}{}", suffix(*pages, *cold, *all_cores))
            }
            Self::Copy { case, pages, all_cores } => {
                format!("copy/{}{}", case.id, suffix(*pages, false, *all_cores))
            }
            Self::Limit { bytes } => format!("copy/limit/{}", short_bytes(*bytes)),
            Self::Tile { side, src_bytes, dst_bytes } => format!("tile/f32/{side}/{src_bytes}x{dst_bytes}"),
        }
    }

    /// Bytes of its arrays, about.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Walk { walk, .. } => {
                walk.bytes() as u64
                    + if walk.pattern == Pattern::Random { walk.elements() as u64 * 4 } else { 0 }
            }
            // Input, output, and the two buffers of `memcpy`.
            Self::Copy { case, .. } => match prepared(case) {
                Ok((from, view, dtype)) => {
                    let size = dtype.size_bytes() as u64;
                    (from as u64)
                        .saturating_mul(size)
                        .saturating_add((view.numel() as u64).saturating_mul(3 * size))
                }
                Err(_) => 0,
            },
            Self::Limit { bytes } => 4 * *bytes as u64,
            Self::Tile { side, .. } => 16 * (*side as u64).pow(2),
        }
    }
}

fn suffix(pages: PageMode, cold: bool, all_cores: bool) -> String {
    let mut out = String::new();
    for (word, said) in [("huge", pages == PageMode::Huge), ("cold", cold), ("all cores", all_cores)] {
        if said {
            out.push_str(&format!("/{word}"));
        }
    }
    out
}

/// Elements of the input, the view, and the element type of a case.
fn prepared(case: &cases::Case) -> Result<(usize, Layout, Dtype), Error> {
    let input = Layout::row_major(&case.shape)?;
    let dtype = case
        .dtype
        .parse()
        .map_err(|_| Error::Indices { reason: format!("no element type {}", case.dtype) })?;
    Ok((input.numel(), input.apply(&case.expr)?, dtype))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::caches;

    fn topology() -> Topology {
        let mut topology = Topology::default();
        topology.override_caches(&caches::parse("L1d=16K/4/64,L2=64K/8/64,L3=256K/16/64").unwrap());
        topology
    }

    #[test]
    fn names_are_unique_on_any_machine() {
        for machine in [topology(), Topology::default(), Topology::host().clone()] {
            for preset in [Preset::Quick, Preset::Full] {
                let jobs = jobs(preset, &machine);
                let names: HashSet<String> = jobs.iter().map(Job::id).collect();
                assert_eq!(names.len(), jobs.len());
                for sweep in ["ladder", "mountain", "pitch"] {
                    assert!(jobs.iter().any(|job| matches!(job, Job::Walk { sweep: s, .. } if *s == sweep)));
                }
                assert!(jobs.iter().any(|job| matches!(job, Job::Copy { .. })));
                assert!(jobs.iter().any(|job| matches!(job, Job::Tile { .. })));
            }
        }
    }

    #[test]
    fn the_full_preset_is_the_larger_one() {
        let count = |preset| jobs(preset, &topology()).len();
        assert!(count(Preset::Full) > count(Preset::Quick));
        let within = |job: &Job| matches!(job, Job::Walk { .. }) || job.bytes() <= 160 << 20;
        assert!(jobs(Preset::Quick, &topology()).iter().all(within));
    }
}

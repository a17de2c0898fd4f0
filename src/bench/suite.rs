//! The suite: which walks, copies and tiles are measured, and their cases for the record.

use super::cases;
use super::record::{self, Case, CounterState, CounterValue, Kind, Machine};
use super::timing::{self, Effort, PageMode, Pass};
use super::walks::measure::{self, Setup};
use super::walks::{Number, Pattern, Walk, ladder, model};
use crate::cachesim::CacheSpec;
use crate::copy::tuning::{Knob, Origin, Value as Setting};
use crate::dtype::Dtype;
use crate::machine::caches::short_bytes;
use crate::machine::counters::{self, Probe};
use crate::machine::fingerprint::Fingerprint;
use crate::machine::pages::{self, Pages};
use crate::machine::topology::Topology;
use crate::{CopyOptions, Error, Layout, Tuning};
use rayon::ThreadPool;
use serde_json::json;
use std::collections::HashSet;
use std::sync::atomic::AtomicBool;
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
    let tuning = Tuning::default();
    let default = (tuning.tile_src_bytes.of(4), tuning.tile_dst_bytes.of(4));
    if !tiles.contains(&default) {
        tiles.push(default);
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

/// What jobs are run with.
pub struct Context<'a> {
    /// How much is measured.
    pub preset: Preset,
    /// All cores, a thread pinned to each; `None` where there is one.
    pub pool: Option<&'a ThreadPool>,
    /// Caches of the model; none where they are unknown.
    pub caches: Vec<CacheSpec>,
    /// Events that can be counted.
    pub probes: Vec<Probe>,
    /// Set from outside to stop.
    pub stop: &'a AtomicBool,
    /// Whether the run is behind its time: then each job takes the fewest samples.
    pub hurry: bool,
}

impl Context<'_> {
    /// The effort for one job, cut down to the fewest samples in a hurry.
    fn paced(&self, effort: Effort) -> Effort {
        match self.hurry {
            true => Effort { budget: Duration::ZERO, min_samples: 3, ..effort },
            false => effort,
        }
    }

    /// Measures one job; no case where it was stopped before the first sample.
    ///
    /// # Errors
    /// Alloc, where the arrays cannot be had.
    pub fn run(&self, job: &Job) -> Result<Vec<Case>, Error> {
        match job {
            Job::Walk { walk, sweep, pages, cold, all_cores } => {
                let setup = Setup {
                    pages: *pages,
                    cold: *cold,
                    effort: self.paced(self.preset.walk_effort()),
                    pool: self.pool.filter(|_| *all_cores),
                    probes: &self.probes,
                    stop: self.stop,
                };
                self.walk(job.id(), walk, sweep, &setup)
            }
            Job::Copy { case, pages, all_cores } => self.copy(job.id(), case, *pages, *all_cores),
            Job::Limit { bytes } => self.limit(*bytes),
            Job::Tile { side, src_bytes, dst_bytes } => self.tile(job.id(), *side, *src_bytes, *dst_bytes),
        }
    }

    fn walk(&self, id: String, walk: &Walk, sweep: &str, setup: &Setup<'_>) -> Result<Vec<Case>, Error> {
        let point = measure::measure(walk, setup)?;
        if point.samples_ns.is_empty() {
            return Ok(Vec::new());
        }
        let kind = if walk.pattern == Pattern::Chase { Kind::Chase } else { Kind::Walk };
        let shape = match walk.pattern {
            Pattern::Row | Pattern::Column | Pattern::Tiled => json!([walk.rows, walk.cols]),
            _ => json!([walk.elements()]),
        };
        let lines = point.traffic.lines_touched;
        let mut case = Case::new(id, kind)
            .param("pattern", walk.pattern.name())
            .param("sweep", sweep)
            .param("dtype", walk.number.name())
            .param("shape", shape)
            .param("elements", walk.elements())
            .param("working_set_bytes", walk.bytes())
            .param("threads", point.threads)
            .param("pages", setup.pages.name())
            .param("huge_share", json!(point.huge_share))
            .param("cold", setup.cold)
            .param("bytes_useful", point.traffic.bytes_used)
            .param("bytes_lines", lines * point.traffic.line_bytes)
            .param("lines_per_element", lines as f64 / walk.elements() as f64)
            .param("verified", point.verified);
        case = match walk.pattern {
            Pattern::Strided => case.param("stride", walk.stride),
            Pattern::Tiled => case.param("tile", json!([walk.tile, walk.tile])),
            Pattern::Random | Pattern::Chase => case.param("seed", walk.seed),
            _ => case,
        };
        if sweep == "pitch" {
            case = case.param("row_pitch", walk.pitch);
        }
        case.samples = point.samples_ns;
        case.bytes_moved = Some(point.traffic.bytes_used);
        // The model knows neither threads nor warm caches: it stands beside the plain and the cold walk.
        if point.threads == 1 && !self.caches.is_empty() && walk.elements() <= self.model_reads() {
            let mut naive = model::misses(walk, &self.caches)?.to_json();
            naive.insert("lines_touched".to_owned(), lines.into());
            case.model.insert("naive".to_owned(), naive.into());
        }
        case.counters = counters::host_probes()
            .iter()
            .map(|probe| {
                let counted = point.counts.iter().find(|count| count.event == probe.event);
                let state = counted.map_or(probe.state, |count| count.state);
                let mut value = CounterValue::new(
                    probe.event.name(),
                    state.name(),
                    counted.and_then(|count| count.value),
                );
                if let counters::State::Multiplexed { coverage } = state {
                    value.extra.insert("coverage".to_owned(), coverage.into());
                }
                value
            })
            .collect();
        Ok(vec![case])
    }

    /// Reads above which a walk is not modelled.
    fn model_reads(&self) -> usize {
        if self.preset == Preset::Quick { 5 << 20 } else { model::MAX_READS }
    }

    fn copy(
        &self,
        id: String,
        table: &cases::Case,
        pages: PageMode,
        all_cores: bool,
    ) -> Result<Vec<Case>, Error> {
        let (input_len, view, dtype) = prepared(table)?;
        let job = timing::Job {
            input_len,
            element_size: dtype.size_bytes(),
            passes: vec![Pass { src: view, fill: None }],
            options: CopyOptions::default().threads(if all_cores { 0 } else { 1 }),
            pages,
        };
        let timed = timing::time(&job, self.paced(self.preset.copy_effort()))?;
        let name = table.id.strip_prefix(table.group).unwrap_or(&table.id).trim_start_matches('/');
        let mut case = Case::new(id, Kind::Copy)
            .param("name", name)
            .param("group", table.group)
            .param("shape", json!(table.shape))
            .param("expr", table.expr.as_str())
            .param("dtype", table.dtype)
            .param("strategy", timed.strategy)
            .param("isa", timed.isa.name())
            .param("threads", timed.threads)
            .param("pages", pages.name())
            .param("working_set_bytes", timed.bytes_moved)
            .param("verified", timed.verified);
        case.samples = timed.samples_ns;
        case.memcpy_samples = timed.memcpy_samples_ns;
        case.bytes_moved = Some(timed.bytes_moved);
        Ok(vec![case])
    }

    /// `memcpy` and this library's copy with streaming stores, at one size.
    fn limit(&self, bytes: usize) -> Result<Vec<Case>, Error> {
        let job = timing::Job {
            input_len: bytes,
            element_size: 1,
            passes: vec![Pass { src: Layout::row_major(&[bytes])?, fill: None }],
            options: CopyOptions::default().threads(1).streaming(true),
            pages: PageMode::Small,
        };
        let timed = timing::time(&job, self.paced(self.preset.copy_effort()))?;
        let size = short_bytes(bytes);
        let case = |name: &str, samples: Vec<f64>| {
            let mut case = Case::new(format!("copy/limit/{name}/{size}"), Kind::Copy)
                .param("name", name)
                .param("group", "limit")
                .param("dtype", "u8")
                .param("shape", json!([bytes]))
                .param("expr", "")
                .param("working_set_bytes", 2 * bytes)
                .param("threads", 1)
                .param("pages", PageMode::Small.name())
                .param("isa", timed.isa.name())
                .param("verified", timed.verified);
            case.samples = samples;
            case.bytes_moved = Some(2 * bytes as u64);
            case
        };
        Ok(vec![case("memcpy", timed.memcpy_samples_ns.clone()), case("streaming", timed.samples_ns.clone())])
    }

    fn tile(&self, id: String, side: usize, src_bytes: usize, dst_bytes: usize) -> Result<Vec<Case>, Error> {
        let preset = Tuning::default();
        let mut tuning = preset;
        for (knob, bytes) in [(Knob::TileSrc, src_bytes), (Knob::TileDst, dst_bytes)] {
            tuning.set(knob, Some(4), Setting::new(bytes, Origin::Caller))?;
        }
        let job = timing::Job {
            input_len: side * side,
            element_size: 4,
            passes: vec![Pass { src: Layout::column_major(&[side, side])?, fill: None }],
            options: CopyOptions::default().threads(1).tuning(tuning),
            pages: PageMode::Small,
        };
        let timed = timing::time(&job, self.paced(self.preset.copy_effort()))?;
        let is_default = (src_bytes, dst_bytes) == (preset.tile_src_bytes.of(4), preset.tile_dst_bytes.of(4));
        let mut case = Case::new(id, Kind::Tile)
            .param("shape", json!([side, side]))
            .param("expr", ".T")
            .param("dtype", "f32")
            .param("isa", timed.isa.name())
            .param("strategy", timed.strategy)
            .param("tile", json!([src_bytes, dst_bytes]))
            .param("tile_unit", "bytes along a source row, bytes along a destination row")
            .param("default", is_default)
            .param("threads", timed.threads)
            .param("pages", PageMode::Small.name())
            .param("verified", timed.verified);
        case.samples = timed.samples_ns;
        case.memcpy_samples = timed.memcpy_samples_ns;
        case.bytes_moved = Some(timed.bytes_moved);
        Ok(vec![case])
    }
}

/// Why a job is left out on this machine; `None` where it can be run.
pub fn left_out(job: &Job) -> Option<String> {
    let free = pages::available_bytes()?;
    let need = job.bytes();
    (need > free / 10 * 8).then(|| format!("{}: needs {need} bytes, {free} are free", job.id()))
}

/// This machine, as a record names it.
pub fn machine() -> Machine {
    let mut machine = Machine::default();
    machine.fingerprint = Fingerprint::host();
    machine.cpu = machine.fingerprint.cpu();
    machine.ram_bytes = Pages::host().ram_bytes;
    machine.counters = counters::host_probes()
        .iter()
        .map(|probe| {
            let mut state = CounterState::new(probe.event.name(), probe.state.name());
            state.reason = probe.state.reason();
            state.remedy = probe.state.remedy(probe.event);
            state
        })
        .collect();
    machine
}

/// Commit of the program, where it runs inside its own checkout and git is there.
pub fn git() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let root = program.ancestors().skip(1).find(|dir| dir.join(".git").exists())?;
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).ok()?;
    if !manifest.lines().any(|line| line.trim() == "name = \"restride\"") {
        return None;
    }
    let describe = ["describe", "--always", "--dirty", "--abbrev=12"];
    let output = std::process::Command::new("git").arg("-C").arg(root).args(describe).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let name = text.trim();
    (output.status.success() && !name.is_empty()).then(|| name.to_owned())
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

    #[test]
    fn each_kind_of_job_gives_its_case() {
        let stop = AtomicBool::new(false);
        let context = Context {
            preset: Preset::Quick,
            pool: None,
            caches: topology().cache_specs().iter().map(Into::into).collect(),
            probes: Vec::new(),
            stop: &stop,
            hurry: false,
        };
        let walk = Walk::new(Pattern::Column, Number::F64, 64, 40).unwrap().with_pitch(64).unwrap();
        let small = cases::Case {
            id: "square/64/f32".to_owned(),
            group: "square",
            shape: vec![64, 64],
            dtype: "f32",
            expr: ".T".to_owned(),
        };
        let jobs = [
            Job::Walk { walk, sweep: "pitch", pages: PageMode::Small, cold: false, all_cores: false },
            Job::Copy { case: small, pages: PageMode::Small, all_cores: false },
            Job::Limit { bytes: 4096 },
            Job::Tile { side: 64, src_bytes: 128, dst_bytes: 64 },
        ];
        let mut ids = HashSet::new();
        for job in &jobs {
            for case in context.run(job).unwrap() {
                assert!(!case.samples.is_empty() && case.samples.len() <= record::MAX_SAMPLES, "{}", case.id);
                assert_eq!(case.params["verified"], true, "{}", case.id);
                assert!(case.bytes_moved.is_some_and(|bytes| bytes > 0));
                assert!(ids.insert(case.id.clone()), "{}", case.id);
                if job.id().starts_with("walk") {
                    assert_eq!(case.params["row_pitch"], 64);
                    assert!(case.model["naive"]["misses_per_element"]["L1d"].is_number());
                }
            }
        }
        assert_eq!(ids.len(), 5);
    }

    #[test]
    fn bytes_moved_counts_distinct_bytes() {
        let stop = AtomicBool::new(false);
        let context = Context {
            preset: Preset::Quick,
            pool: None,
            caches: Vec::new(),
            probes: Vec::new(),
            stop: &stop,
            hurry: false,
        };
        let moved = |shape: &[usize], expr: &str| {
            let case = cases::Case {
                id: "a".to_owned(),
                group: "b",
                shape: shape.to_vec(),
                dtype: "f32",
                expr: expr.to_owned(),
            };
            let job = Job::Copy { case, pages: PageMode::Small, all_cores: false };
            context.run(&job).unwrap()[0].bytes_moved
        };
        // A row of 8 read once for 4 rows written; a padded row reads what is there and writes all.
        assert_eq!(moved(&[8], ".broadcast_to(4, 8)"), Some(32 + 128));
        assert_eq!(moved(&[8], ".pad((1, 1))"), Some(32 + 40));
        assert_eq!(moved(&[8, 8], "[:, ::2]"), Some(128 + 128));
    }
}

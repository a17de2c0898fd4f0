//! Runs the suite's jobs: each gives its cases for the record.

use super::{Job, Preset, prepared};
use crate::bench::cases;
use crate::bench::record::{Case, CounterValue, Kind};
use crate::bench::timing::{self, Effort, PageMode, Pass};
use crate::bench::walks::measure::{self, Setup};
use crate::bench::walks::{Pattern, Walk, model};
use crate::cachesim::CacheSpec;
use crate::copy::tuning::{Knob, Origin, Value as Setting};
use crate::machine::caches::short_bytes;
use crate::machine::counters::{self, Probe};
use crate::{CopyOptions, Error, Layout, Tuning};
use rayon::ThreadPool;
use serde_json::json;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What jobs are run with.
pub struct Context<'a> {
    /// How much is measured.
    pub preset: Preset,
    /// Whether a profile is in force: then the tile that the tuning chooses is a tuned one.
    pub profile: bool,
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
        let chosen_by = |tuning: &Tuning| {
            (src_bytes, dst_bytes) == (tuning.tile_src_bytes.of(4), tuning.tile_dst_bytes.of(4))
        };
        let mut case = Case::new(id, Kind::Tile)
            .param("shape", json!([side, side]))
            .param("expr", ".T")
            .param("dtype", "f32")
            .param("isa", timed.isa.name())
            .param("strategy", timed.strategy)
            .param("tile", json!([src_bytes, dst_bytes]))
            .param("tile_unit", "bytes along a source row, bytes along a destination row")
            .param("default", chosen_by(Tuning::unprofiled()))
            .param("tuned", self.profile && chosen_by(&preset))
            .param("threads", timed.threads)
            .param("pages", PageMode::Small.name())
            .param("verified", timed.verified);
        case.samples = timed.samples_ns;
        case.memcpy_samples = timed.memcpy_samples_ns;
        case.bytes_moved = Some(timed.bytes_moved);
        Ok(vec![case])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::record;
    use crate::bench::walks::Number;
    use crate::machine::caches;
    use crate::machine::topology::Topology;
    use std::collections::HashSet;

    fn topology() -> Topology {
        let mut topology = Topology::default();
        topology.override_caches(&caches::parse("L1d=16K/4/64,L2=64K/8/64,L3=256K/16/64").unwrap());
        topology
    }

    #[test]
    fn each_kind_of_job_gives_its_case() {
        let stop = AtomicBool::new(false);
        let context = Context {
            preset: Preset::Quick,
            profile: true,
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
            profile: true,
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

//! `restride bench --preset`: the suite and its record.

use super::progress::{self, Progress};
use super::{Failure, text, tune_profile};
use crate::bench::criterion;
use crate::bench::environment::Watch;
use crate::bench::record::{Case, Kind, Record};
use crate::bench::stats::Summary;
use crate::bench::suite::{self, Context, Preset};
use crate::error::words::{counted, plain};
use crate::machine::affinity::{self, Pinned, Pinning};
use crate::machine::counters;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct SuiteArgs {
    /// How much the suite measures: quick is under 2 minutes, full under 20.
    #[arg(long, value_name = "quick|full", conflicts_with = "from_criterion")]
    preset: Option<String>,
    /// File to write the record to.
    #[arg(short, long, value_name = "RECORD.json")]
    output: Option<PathBuf>,
    /// Takes the results of `cargo bench` into a record instead of measuring.
    #[arg(long, value_name = "DIR")]
    from_criterion: Option<PathBuf>,
    /// Runs only the cases whose name contains this.
    #[arg(long, value_name = "WORD", conflicts_with = "from_criterion")]
    filter: Option<String>,
}

impl SuiteArgs {
    /// Whether one of them was given.
    pub(crate) fn named(&self) -> bool {
        self.preset.is_some()
            || self.output.is_some()
            || self.from_criterion.is_some()
            || self.filter.is_some()
    }
}

pub(crate) fn run(args: &SuiteArgs, json: bool) -> Result<(), Failure> {
    let preset = read_preset(args.preset.as_deref())?;
    if let Some(path) = &args.output {
        check_writable(path)?;
    }
    let (record, total) = match &args.from_criterion {
        Some(dir) => (from_criterion(dir)?, None),
        None => {
            let (record, total) = measure(preset, args.filter.as_deref())?;
            (record, Some(total))
        }
    };
    if let Some(path) = &args.output {
        record.write(path).map_err(|error| Failure::new("record", error.to_string()))?;
    }
    let shown = match json {
        true => {
            let value =
                serde_json::to_value(&record).map_err(|error| Failure::new("record", error.to_string()))?;
            text::json_text(&value)
        }
        false => summary(&record, args.output.as_deref()),
    };
    text::print(&shown)?;
    let failed: Vec<&str> = record
        .cases
        .iter()
        .filter(|case| case.params.get("verified") == Some(&false.into()))
        .map(|case| case.id.as_str())
        .collect();
    if let Some(first) = failed.first() {
        return Err(Failure::after_result(
            "verify",
            format!(
                "{} {} from the reference, the first is {first}: report this",
                counted(failed.len(), "case"),
                if failed.len() == 1 { "differs" } else { "differ" }
            ),
        ));
    }
    match total {
        Some(total) if record.environment.interrupted => Err(Failure::after_result(
            "interrupted",
            format!(
                "interrupted: {} of {} done and kept",
                record.environment.extra["jobs_done"],
                counted(total, "job")
            ),
        )),
        _ => Ok(()),
    }
}

/// The preset of a name; quick where none is given.
pub(crate) fn read_preset(name: Option<&str>) -> Result<Preset, Failure> {
    match name {
        None | Some("quick") => Ok(Preset::Quick),
        Some("full") => Ok(Preset::Full),
        Some(other) => Err(Failure::usage("preset", format!("--preset {other}: write quick or full"))),
    }
}

/// Says now what would otherwise be found out after minutes of measuring.
fn check_writable(path: &Path) -> Result<(), Failure> {
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let refuse = |why: &str| Err(Failure::new("io", format!("record {}: {why}", path.display())));
    match (path.is_dir(), dir.is_dir()) {
        (true, _) => refuse("it is a directory, name a file"),
        (_, false) => refuse("its folder does not exist, make it first"),
        _ => match tempfile::tempfile_in(dir) {
            Ok(_) => Ok(()),
            Err(error) => refuse(&format!("its folder cannot be written: {}", plain(error))),
        },
    }
}

fn new_record() -> Record {
    let mut record = Record::new(super::report::command_line(std::env::args()));
    record.git = suite::git();
    record.machine = suite::machine();
    record
}

fn from_criterion(dir: &Path) -> Result<Record, Failure> {
    let mut record = new_record();
    record.cases = criterion::read(dir).map_err(|reason| Failure::new("criterion", reason))?;
    record.environment.extra.insert("source".to_owned(), "criterion: not interleaved with memcpy".into());
    // The benches are a program of their own, and a library loads no profile by itself.
    record.environment.extra.insert("profile".to_owned(), "none".into());
    Ok(record)
}

/// Runs the suite; the record and the number of jobs that there were.
pub(crate) fn measure(preset: Preset, filter: Option<&str>) -> Result<(Record, usize), Failure> {
    let topology = super::machine::checked_topology()?;
    crate::Isa::active()?;
    let mut jobs = suite::jobs(preset, topology);
    if let Some(word) = filter {
        jobs.retain(|job| job.id().contains(word));
        if jobs.is_empty() {
            return Err(Failure::usage(
                "filter",
                format!("--filter {word}: no case of the suite has such a name"),
            ));
        }
    }
    let mut record = new_record();
    let stop = progress::on_interrupt();
    let probes = counters::host_probes().iter().filter(|probe| probe.state.usable()).copied().collect();
    let threads = topology.default_threads();
    let pinned = Pinned::best();
    let pool = match threads {
        1 => None,
        _ => {
            Some(affinity::pinned_pool(threads).map_err(|error| Failure::new("threads", error.to_string()))?)
        }
    };
    let mut context = Context {
        preset,
        profile: tune_profile::in_force().is_object(),
        pool: pool.as_ref().map(|(pool, _)| pool),
        caches: topology.cache_specs().iter().map(Into::into).collect(),
        probes,
        stop,
        hurry: false,
    };
    let start = Instant::now();
    let watch = Watch::start();
    let progress = Progress::new(jobs.len() as u64);
    let (mut left_out, mut done) = (Vec::new(), 0);
    for job in &jobs {
        if progress::interrupted(stop) {
            break;
        }
        progress.step(&job.id());
        // Behind its time, more than the twentieth part that one long job may take.
        let gone = start.elapsed().as_secs_f64() / preset.limit().as_secs_f64();
        context.hurry = gone > done as f64 / jobs.len() as f64 + 0.05;
        match suite::left_out(job) {
            _ if gone > 1.0 => left_out.push(format!("{}: the time was up", job.id())),
            Some(why) => left_out.push(why),
            None => match context.run(job) {
                Ok(cases) => {
                    record.cases.extend(cases);
                    done += 1;
                }
                // The machine has less memory than it said: the other cases are still worth having.
                Err(error @ crate::Error::Alloc { .. }) => left_out.push(format!("{}: {error}", job.id())),
                Err(error) => return Err(error.into()),
            },
        }
    }
    progress.finish();
    let workers = pool.iter().flat_map(|(_, pinnings)| pinnings);
    let worst: Option<&Pinning> = workers.rev().find(|pinning| pinning.cpu().is_none());
    record.environment = watch.finish(worst.unwrap_or(&pinned.pinning), &record.cases);
    record.environment.interrupted = progress::interrupted(stop);
    record.environment.extra.insert("profile".to_owned(), tune_profile::in_force());
    record.environment.extra.insert("jobs_done".to_owned(), done.into());
    record.environment.extra.insert("jobs_total".to_owned(), jobs.len().into());
    record.environment.extra.insert("preset".to_owned(), format!("{preset:?}").to_lowercase().into());
    if !left_out.is_empty() {
        record.environment.extra.insert("left_out".to_owned(), left_out.into());
    }
    Ok((record, jobs.len()))
}

/// The record in short, for people.
fn summary(record: &Record, path: Option<&Path>) -> String {
    let rows: Vec<Vec<String>> = record.cases.iter().map(row).collect();
    let mut out = format!(
        "{}\nGB/s counts distinct bytes read and bytes written; ratio is memcpy time over case time\n\n",
        record.machine.cpu
    );
    out.push_str(&text::table(
        &["case", "median", "95 % interval", "ns/element", "GB/s", "ratio"],
        &[1, 2, 3, 4, 5],
        &rows,
    ));
    out.push('\n');
    if let Some(seconds) = record.environment.seconds {
        out.push_str(&format!("{} in {seconds:.0} s\n", counted(record.cases.len(), "case")));
    }
    out.push_str(&shortfalls(record));
    match path {
        Some(path) => out.push_str(&format!("record: {}\n", path.display())),
        None => out.push_str("not kept: -o RECORD.json writes the record\n"),
    }
    out
}

/// What made a run noisy, and what it left out: a line each.
pub(super) fn shortfalls(record: &Record) -> String {
    let mut out = String::new();
    for sentence in &record.environment.noise {
        out.push_str(&format!("noisy: {sentence}\n"));
    }
    let left_out = record.environment.extra.get("left_out").and_then(|list| list.as_array());
    if let Some([first, ..]) = left_out.map(Vec::as_slice) {
        let first = first.as_str().unwrap_or_default();
        let count = counted(left_out.map_or(0, Vec::len), "job");
        out.push_str(&format!("left out: {count}, the first is {first}\n"));
    }
    out
}

fn row(case: &Case) -> Vec<String> {
    let summary = Summary::of(&case.samples);
    let memcpy = Summary::of(&case.memcpy_samples);
    let in_ns = case.unit == "ns";
    let amount =
        |value: f64| if in_ns { text::time(value) } else { format!("{} {}", text::figure(value), case.unit) };
    let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), text::figure);
    let median = summary.map(|summary| summary.median).filter(|median| in_ns && *median > 0.0);
    let elements =
        case.params.get("elements").and_then(serde_json::Value::as_f64).filter(|count| *count > 0.0);
    let per_element = match case.kind {
        Kind::Walk | Kind::Chase => median.zip(elements).map(|(median, count)| median / count),
        _ => None,
    };
    vec![
        case.id.clone(),
        summary.map_or_else(|| "-".to_owned(), |summary| amount(summary.median)),
        summary.map_or_else(
            || "-".to_owned(),
            |summary| format!("{} - {}", amount(summary.low), amount(summary.high)),
        ),
        show(per_element),
        show(median.zip(case.bytes_moved).map(|(median, bytes)| bytes as f64 / median)),
        show(median.zip(memcpy).map(|(median, memcpy)| memcpy.median / median)),
    ]
}

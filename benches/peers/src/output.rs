//! The record of a run: one case per view and library.

use crate::peers;
use crate::run::Results;
use crate::subject::Subject;
use restride::bench::environment::Watch;
use restride::bench::record::{Case, Kind, MAX_SAMPLES, Record};
use restride::bench::suite;
use restride::machine::affinity::Pinning;

/// An empty record of this machine.
pub fn start() -> Record {
    let command = std::env::args().collect::<Vec<_>>();
    let name = command.first().and_then(|path| std::path::Path::new(path).file_name());
    let name = name.map_or("peers".into(), |name| name.to_string_lossy().into_owned());
    let mut record = Record::new([&[name], command.get(1..).unwrap_or_default()].concat().join(" "));
    record.machine = suite::machine();
    record.git = suite::git();
    record
}

/// Adds the state that the machine was in; several threads are not pinned.
pub fn finish(record: &mut Record, watch: Watch, pinning: Option<&Pinning>, threads: usize) {
    let reason = "several threads are left to the system".to_owned();
    let pinning = pinning.cloned().unwrap_or(Pinning::Unsupported { reason });
    record.environment = watch.finish(&pinning, &record.cases);
    record.environment.threads = Some(threads);
    // A library loads no profile by itself.
    record.environment.extra.insert("profile".into(), "none".into());
}

/// Adds what the libraries did with one view.
pub fn add(record: &mut Record, subject: &Subject, results: &Results, pages: &str) {
    for outcome in results.outcomes.iter().filter(|outcome| !outcome.samples_ns.is_empty()) {
        let row = &subject.case;
        let mut case = Case::new(format!("peer/{}/{}", row.id, outcome.peer), Kind::Peer)
            .param("case", row.id.as_str())
            .param("group", row.group)
            .param("peer", outcome.peer)
            .param("version", peers::version(outcome.peer))
            .param("threads", outcome.threads)
            .param("verified", outcome.verified)
            .param("shape", row.shape.clone())
            .param("expr", row.expr.as_str())
            .param("dtype", row.dtype)
            .param("elements", subject.dst.numel())
            .param("pages", pages);
        let kept = |samples: &[f64]| samples[..samples.len().min(MAX_SAMPLES)].to_vec();
        case.samples = kept(&outcome.samples_ns);
        case.memcpy_samples = kept(&results.memcpy_ns);
        case.bytes_moved = Some(subject.bytes_moved());
        record.cases.push(case);
    }
}

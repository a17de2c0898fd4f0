//! The same copies through restride and through other libraries: one process, the same buffers, taken in
//! turn with `memcpy`, results checked.

mod output;
mod peers;
mod run;
mod subject;
mod table;

use clap::Parser;
use restride::bench::cases::{self, Case};
use restride::bench::environment::Watch;
use restride::machine::affinity::Pinned;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use subject::Subject;

/// Runs the case table through restride and other libraries, and prints GB/s and the ratio to memcpy.
#[derive(Parser)]
#[command(after_help = "Example:\n  cargo run --release -- --filter square --json peers.json")]
struct Args {
    /// Only cases whose name holds one of these
    #[arg(long, value_name = "WORD", num_args = 1..)]
    filter: Vec<String>,
    /// Only these libraries
    #[arg(long, value_name = "NAME", num_args = 1..)]
    peers: Vec<String>,
    /// Threads that each library may use; memcpy always runs on one
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: u16,
    /// Ask for huge pages for all buffers instead of none
    #[arg(long)]
    huge: bool,
    /// Write every sample as a record (restride.record/1)
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// The 29 tensor transposes of about 200 MB instead of the table
    #[arg(long)]
    tensors: bool,
    /// Print the cases with their layouts, one JSON object a line, and run nothing
    #[arg(long)]
    list: bool,
    /// Fewer samples, and only cases whose result is at most 64 MiB
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    match compare(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("peers: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Tensor transposes of about 200 MB each, as the tests have them.
fn tensors() -> Result<Vec<Case>, String> {
    let lines = include_str!("../../../src/bench/transposes.jsonl").lines();
    let read = |(number, line): (usize, &str)| {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        let extents = value["shape"].as_array()?.iter();
        let shape: Vec<usize> = extents.filter_map(|n| n.as_u64()?.try_into().ok()).collect();
        let expr = value["expr"].as_str()?.to_owned();
        let name = shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
        let id = format!("tensors/{:02}-{name}/f32", number + 1);
        (value["dtype"] == "f32").then_some(Case { id, group: "tensors", shape, dtype: "f32", expr })
    };
    let cases =
        lines.enumerate().map(|line| read(line).ok_or(format!("transposes.jsonl: line {}", line.0 + 1)));
    cases.collect()
}

/// The cases that were asked for.
fn subjects(args: &Args) -> Result<Vec<Subject>, String> {
    let wanted =
        |id: &str| args.filter.is_empty() || args.filter.iter().any(|word| id.contains(word.as_str()));
    let mut subjects = Vec::new();
    let table = if args.tensors { tensors()? } else { cases::all() };
    for case in table.into_iter().filter(|case| wanted(&case.id)) {
        let subject = Subject::new(case)?;
        if !args.quick || subject.dst_bytes() <= 64 << 20 {
            subjects.push(subject);
        }
    }
    match subjects.is_empty() {
        true => Err("no case has such a name: see src/bench/cases.rs".to_owned()),
        false => Ok(subjects),
    }
}

/// One case as a line of JSON.
fn line(subject: &Subject) -> String {
    let (case, view) = (&subject.case, &subject.src);
    serde_json::json!({
        "id": case.id, "group": case.group, "shape": case.shape, "dtype": case.dtype, "expr": case.expr,
        "element_size": subject.element_size, "bytes_moved": subject.bytes_moved(),
        "view": {
            "shape": view.shape(), "strides": view.strides(), "offset": view.offset(), "padded": view.is_padded(),
        },
    })
    .to_string()
}

fn compare(args: &Args) -> Result<bool, String> {
    if args.list {
        subjects(args)?.iter().for_each(|subject| println!("{}", line(subject)));
        return Ok(true);
    }
    let threads = usize::from(args.threads);
    let libraries = run::chosen(&args.peers);
    if libraries.is_empty() {
        return Err(format!("no library of this build is called {}", args.peers.join(" or ")));
    }
    let effort = match args.quick {
        true => run::Effort { budget: Duration::from_millis(300), least: 3, most: 11, huge: args.huge },
        false => run::Effort { budget: Duration::from_millis(2000), least: 7, most: 101, huge: args.huge },
    };
    let mut table = table::Table::new(libraries.iter().map(|peer| peer.name()).collect());
    let mut record = output::start();
    let pinned = (threads == 1).then(Pinned::best);
    let watch = Watch::start();
    println!("{}", table.head(threads));
    for subject in subjects(args)? {
        let results = run::run(&subject, &libraries, threads, effort)?;
        println!("{}", table.row(&subject, &results));
        output::add(&mut record, &subject, &results, if args.huge { "huge" } else { "4k" });
    }
    print!("\n{}", table.foot());
    if cfg!(not(feature = "hptt")) {
        println!(
            "hptt             not in this build: build with --features hptt (needs cmake and a C++ compiler)"
        );
    }
    output::finish(&mut record, watch, pinned.as_ref().map(|pinned| &pinned.pinning), threads);
    if let Some(path) = &args.json {
        record.write(path).map_err(|error| error.to_string())?;
    }
    Ok(table.all_right())
}

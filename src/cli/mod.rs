//! The command line: one file per subcommand.

mod machine;
mod materialize;
mod text;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Reads tensors against the grain: views, fast copies, and what they cost.
#[derive(Parser)]
#[command(name = "restride", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes a view of a `.npy` file contiguous.
    Materialize(materialize::Args),
    /// Shows this machine: CPU, caches, pages, counters.
    Machine(machine::Args),
}

/// A failed command: one sentence for stderr, a kind for `--json`, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What happened, where, and what to do.
    pub message: String,
    /// Short stable name of the reason.
    pub kind: &'static str,
    /// 2 for a wrong command line, shape, dtype, cache list or expression syntax; 1 for the rest.
    pub code: u8,
    /// The refused piece of the expression and its byte range, where there is one.
    pub piece: Option<(String, (usize, usize))>,
    /// The shape that the piece met.
    pub shape: Option<Vec<usize>>,
    /// Whether the command was asked for `--json`.
    pub json: bool,
}

/// Parses the arguments, runs the command, prints its failure.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Materialize(args) => materialize::run(args),
        Command::Machine(args) => machine::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("restride: {}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

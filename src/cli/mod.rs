//! The command line: one file per subcommand.

mod bench;
mod bench_suite;
mod compare;
mod draw;
mod explain;
mod explore;
mod failure;
mod machine;
mod materialize;
mod memory;
mod model;
mod progress;
mod report;
mod text;
mod tune;
mod tune_check;
mod tune_profile;
mod verify;
mod walk;

use crate::machine::topology::Topology;
use clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

pub(crate) use failure::Failure;

/// Reads tensors against the grain: views, fast copies, and what they cost.
#[derive(Parser)]
#[command(name = "restride", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Tuning profile to use instead of this user's; `none` for the defaults
    #[arg(long, global = true, value_name = "PATH")]
    profile: Option<std::path::PathBuf>,
}

#[derive(Subcommand)]
enum Command {
    /// Times one copy against memcpy, or runs the suite and writes its record.
    Bench(bench::Args),
    /// Compares two records: what changed beyond noise.
    Compare(compare::Args),
    /// Shows what a view is, which pieces copy and why, and what the copy costs.
    Explain(explain::Args),
    /// Makes a view of a `.npy` file contiguous.
    Materialize(materialize::Args),
    /// Shows this machine: CPU, caches, pages, counters.
    Machine(machine::Args),
    /// Makes one HTML page of this machine, or of given records.
    Report(report::Args),
    /// Draws views of one buffer as a page: which cell and which cache line each position reads.
    Explore(explore::Args),
    /// Searches this machine's tuning values and keeps them in its profile.
    Tune(tune::Args),
    /// Checks every kernel level of this CPU against the reference.
    Verify(verify::Args),
    /// Measures what reading an array in some order costs.
    Walk(walk::Args),
}

/// The extents after `--shape`, where they were written as several arguments.
fn spaced_shape(args: impl Iterator<Item = String>) -> Option<String> {
    let number = |arg: &String| arg.trim_end_matches(',').parse::<usize>().is_ok();
    let extents: Vec<String> = args.skip_while(|arg| arg != "--shape").skip(1).take_while(number).collect();
    let extents: Vec<&str> = extents.iter().map(|extent| extent.trim_end_matches(',')).collect();
    (extents.len() > 1).then(|| extents.join(","))
}

/// Parses the arguments, runs the command, prints its failure.
pub fn main() -> ExitCode {
    #[cfg(unix)]
    crate::machine::interrupt::ignore_file_size_signal();
    let json = std::env::args_os().any(|arg| arg == "--json");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() && error.kind() != DisplayHelpOnMissingArgumentOrSubcommand => {
            // What comes before the first empty line says it; the rest is usage.
            let text = error.to_string();
            let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
            let sentence = lines.join(" ");
            let sentence = sentence.trim_start_matches("error: ");
            let hint = match spaced_shape(std::env::args()) {
                Some(shape) => {
                    format!(": write extents with commas, as in --shape {shape}, and an expression in quotes")
                }
                None => String::new(),
            };
            return Failure::usage("usage", format!("{sentence}{hint} (see --help)")).report(json);
        }
        Err(error) => {
            return match text::printed(error.print()) {
                Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
                Err(failure) => failure.report(json),
            };
        }
    };
    if let Some(reason) = &Topology::host().override_error {
        return Failure::usage("caches", reason.clone()).report(json);
    }
    let profile = cli.profile.as_deref();
    if !matches!(cli.command, Command::Tune(_)) {
        tune_profile::install(profile);
    }
    let result = match cli.command {
        Command::Bench(args) => bench::run(args),
        Command::Compare(args) => compare::run(args),
        Command::Explain(args) => explain::run(args),
        Command::Materialize(args) => materialize::run(args),
        Command::Machine(args) => machine::run(args),
        Command::Report(args) => report::run(args),
        Command::Explore(args) => explore::run(args),
        Command::Tune(args) => tune::run(args, profile),
        Command::Verify(args) => verify::run(args),
        Command::Walk(args) => walk::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}

#[cfg(test)]
mod tests {
    use super::spaced_shape;

    #[test]
    fn extents_with_spaces_between_them_are_told_from_one_argument() {
        let shape = |line: &str| spaced_shape(line.split(' ').map(String::from));
        assert_eq!(shape("restride bench --shape 3 4 .T").as_deref(), Some("3,4"));
        assert_eq!(shape("restride bench --shape 3, 4, 5 .T").as_deref(), Some("3,4,5"));
        assert_eq!(shape("restride bench --shape 3,4 .T extra"), None);
        assert_eq!(shape("restride bench .T"), None);
    }
}

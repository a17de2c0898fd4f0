//! `restride compare`: two records, and what changed beyond noise.

use super::{Failure, text};
use crate::bench::compare::{Change, Comparison, parse_percent};
use crate::bench::record::Record;
use crate::error::words::counted;
use serde_json::{Value, json};
use std::path::PathBuf;

/// Compares two records: what changed beyond noise.
#[derive(clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Example:\n  restride compare before.json after.json --fail-on 10%\n\n\
                        A case changed where its intervals do not overlap. Exit code 1 where --fail-on is given and a \
                        case is slower by more than that, beyond noise, or a case of BASE.json is gone (see \
                        --allow-missing)."
)]
pub(crate) struct Args {
    /// The record to compare with.
    #[arg(value_name = "BASE.json")]
    base: PathBuf,
    /// The record that is judged.
    #[arg(value_name = "NEW.json")]
    new: PathBuf,
    /// Exit code 1 where a case is slower by more than this, beyond noise.
    #[arg(long, value_name = "10%")]
    fail_on: Option<String>,
    /// With --fail-on: does not fail where the new record lacks cases of the base.
    #[arg(long, requires = "fail_on")]
    allow_missing: bool,
    /// Judges records of different machines all the same.
    #[arg(long)]
    across_machines: bool,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let limit = args
        .fail_on
        .as_deref()
        .map(parse_percent)
        .transpose()
        .map_err(|why| Failure::usage("percent", format!("--fail-on: {why}")))?;
    let read = |path: &PathBuf| Record::read(path).map_err(|error| Failure::new("record", error.to_string()));
    let (base, new) = (read(&args.base)?, read(&args.new)?);
    let found = Comparison::new(&base, &new);
    if !found.machines.is_empty() {
        let machines = found.machines.join("; ");
        if limit.is_some() && !args.across_machines {
            return Err(Failure::new(
                "machines",
                format!(
                    "the records are of different machines ({machines}): give --across-machines to judge them all the same"
                ),
            ));
        }
        text::warn(&format!("the records are of different machines: {machines}"));
    }
    if found.changes.is_empty() {
        return Err(Failure::new("cases", "the records have no case in common that can be compared"));
    }
    for (path, record) in [(&args.base, &base), (&args.new, &new)] {
        for sentence in &record.environment.noise {
            text::warn(&format!("{} is noisy: {sentence}", path.display()));
        }
    }
    text::print(&if args.json { text::json_text(&as_json(&found, limit)) } else { as_text(&found) })?;
    let Some(limit) = limit else { return Ok(()) };
    let mut failed: Vec<&Change> = found.changes.iter().filter(|change| change.fails(limit)).collect();
    failed.sort_by(|a, b| b.ratio.unwrap_or(f64::MAX).total_cmp(&a.ratio.unwrap_or(f64::MAX)));
    if let Some(worst) = failed.first() {
        return Err(Failure::after_result(
            "regression",
            format!(
                "{} of {} {} slower by more than {} %, the worst is {} ({})",
                failed.len(),
                counted(found.changes.len(), "case"),
                if failed.len() == 1 { "is" } else { "are" },
                text::figure(limit * 100.0),
                worst.id,
                percent(worst.ratio)
            ),
        ));
    }
    match found.lost.first() {
        // What is no longer measured may be any slower.
        Some(first) if !args.allow_missing => Err(Failure::after_result(
            "missing",
            format!(
                "{} of the base cannot be judged, {first} first: the new record lacks it, or one of the two has fewer than 3 samples; measure it \
                 again, or give --allow-missing",
                counted(found.lost.len(), "case")
            ),
        )),
        _ => Ok(()),
    }
}

/// `+12.3 %`; what was nothing before has no percentage.
fn percent(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "from zero".to_owned(), |ratio| format!("{:+.1} %", (ratio - 1.0) * 100.0))
}

fn as_text(found: &Comparison) -> String {
    let changed = found.beyond_noise();
    let mut out = String::new();
    if !changed.is_empty() {
        let rows: Vec<Vec<String>> = changed
            .iter()
            .map(|change| {
                let amount = |value: f64| match change.unit.as_str() {
                    "ns" => text::time(value),
                    _ => text::figure(value),
                };
                let range = match (change.ratio_low, change.ratio_high) {
                    (Some(low), Some(high)) => format!("{} to {}", percent(Some(low)), percent(Some(high))),
                    _ => "-".to_owned(),
                };
                vec![
                    change.id.clone(),
                    if change.slower() { "slower" } else { "faster" }.to_owned(),
                    percent(change.ratio),
                    range,
                    amount(change.base.median),
                    amount(change.new.median),
                ]
            })
            .collect();
        out.push_str(&text::table(
            &["case", "", "change", "interval", "before", "after"],
            &[2, 3, 4, 5],
            &rows,
        ));
        out.push('\n');
    }
    let slower = changed.iter().filter(|change| change.slower()).count();
    let few = found.changes.iter().filter(|change| !change.enough()).count();
    out.push_str(&format!(
        "{}: {slower} slower, {} faster, {} the same within noise\n",
        counted(found.changes.len(), "case"),
        changed.len() - slower,
        found.changes.len() - changed.len() - few
    ));
    if few > 0 {
        out.push_str(&format!("{few} with fewer than 3 samples on a side, which decide nothing\n"));
    }
    for (names, what) in [
        (&found.only_base, "only in the first record"),
        (&found.only_new, "only in the second record"),
        (&found.unlike, "without samples or in another unit"),
    ] {
        if !names.is_empty() {
            let few: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
            let more = if names.len() > 3 { format!(" and {} more", names.len() - 3) } else { String::new() };
            out.push_str(&format!("{what}: {}{more}\n", few.join(", ")));
        }
    }
    out
}

fn as_json(found: &Comparison, limit: Option<f64>) -> Value {
    let change = |change: &Change| {
        json!({
            "id": change.id,
            "unit": change.unit,
            "verdict": match (change.slower(), change.faster()) {
                (true, _) => "slower",
                (_, true) => "faster",
                _ => "same",
            },
            "ratio": change.ratio,
            "ratio_low": change.ratio_low,
            "ratio_high": change.ratio_high,
            "base_median": change.base.median,
            "new_median": change.new.median,
            "fails": limit.map(|limit| change.fails(limit)),
        })
    };
    json!({
        "machines_differ": found.machines,
        "cases": found.changes.iter().map(change).collect::<Vec<_>>(),
        "only_base": found.only_base,
        "only_new": found.only_new,
        "unlike": found.unlike,
        "lost": found.lost,
    })
}

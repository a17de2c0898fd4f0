//! `restride tune`: searches this machine's tuning values, checks them, and keeps them.

use super::progress::{self, Progress};
use super::{Failure, text, tune_check, tune_profile};
use crate::bench::record::rfc3339;
use crate::bench::timing::PageMode;
use crate::copy::tuning::{Origin, Tuning, Value as Setting};
use crate::error::words::counted;
use crate::machine::affinity::Pinned;
use crate::machine::topology::Topology;
use crate::profile::{Entry, Key, Location, Profile, ProfileError, Winner};
use crate::tune::{self, Case, Choice, Found, Real, SearchVerdict, Stopwatch as _, Target};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Passes of the last check in a row that drop nothing.
const QUIET_PASSES: usize = 2;

/// Searches the tuning values of this machine and keeps them in its profile.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  restride tune --budget 60s\n  restride tune --check\n  \
                        restride tune --show --json\n\nThe profile is restride/profile.json in the \
                        configuration folder unless --profile or RESTRIDE_PROFILE name another file.")]
pub(crate) struct Args {
    /// Time for the search, as in 60s, 2m or 500ms; the last check of what it found may take some seconds more
    #[arg(long, default_value = "60s", value_name = "TIME")]
    budget: String,
    /// Say what would be tried, measure and write nothing
    #[arg(long, group = "mode")]
    dry_run: bool,
    /// Time the profile against the defaults, on the benchmark's cases and on those that confirmed its values;
    /// exit code 1 on a loss of more than 3 %
    #[arg(long, group = "mode")]
    check: bool,
    /// Show the profile, what of it this machine uses, and every value with its origin
    #[arg(long, group = "mode")]
    show: bool,
    /// Write the profile to a file
    #[arg(long, group = "mode", value_name = "FILE")]
    export: Option<PathBuf>,
    /// Take the entries of a file into the profile
    #[arg(long, group = "mode", value_name = "FILE")]
    import: Option<PathBuf>,
    /// Remove the profile, whatever is in it
    #[arg(long, group = "mode")]
    reset: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Self {
        Self::new("profile", error.to_string())
    }
}

pub(crate) fn run(args: Args, profile: Option<&Path>) -> Result<(), Failure> {
    let budget = read_time(&args.budget)?;
    let Location::File(path) = Location::find(profile)? else {
        return Err(Failure::usage(
            "profile",
            "profiles are switched off by `none`: name a file to tune into",
        ));
    };
    if args.reset {
        return tune_profile::reset(&path, args.json);
    }
    if let Some(to) = &args.export {
        return tune_profile::export(&path, to, args.json);
    }
    if let Some(from) = &args.import {
        return tune_profile::import(&path, from, args.json);
    }
    // A broken profile is said before a minute of measuring.
    let stored = Profile::read(&path)?;
    let key = Key::host()?;
    let loaded = stored.over(*Tuning::unprofiled(), &key);
    if args.show {
        return tune_profile::show(&path, &stored, &key, &loaded, args.json);
    }
    if args.dry_run {
        return dry_run(&path, args.json);
    }
    match args.check {
        true => tune_check::check(&path, &loaded, args.json),
        false => {
            // So is a place that cannot be written.
            Profile::check_writable(&path)?;
            search(&path, &key, &loaded.tuning, budget, args.json)
        }
    }
}

/// Reads `60s`, `2m`, `500ms` or seconds.
fn read_time(text: &str) -> Result<Duration, Failure> {
    let refuse =
        || Failure::usage("budget", format!("--budget {text:?} is no time: write it as 60s, 2m or 500ms"));
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "m" | "min" => 60.0,
        _ => return Err(refuse()),
    };
    let number: f64 = digits.parse().map_err(|_| refuse())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| refuse())
}

pub(super) fn threads() -> usize {
    Topology::host().default_threads()
}

fn values(choice: &Choice) -> String {
    choice.0.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ")
}

fn dry_run(path: &Path, json: bool) -> Result<(), Failure> {
    let tuning = Tuning::unprofiled();
    let mut out = format!("would be kept in {}\n", path.display());
    let mut list = Vec::new();
    for target in tune::targets(threads()) {
        let (cases, confirming) = tune::cases(&target, tuning);
        let current = target.current(tuning);
        let proposals = target.proposals(tuning);
        let names = |cases: &[Case]| cases.iter().map(|case| case.name.clone()).collect::<Vec<_>>();
        let _ = writeln!(out, "\n{target}: {} bytes now", values(&current));
        let _ = writeln!(out, "  tried     {}", proposals.iter().map(values).collect::<Vec<_>>().join(", "));
        let _ = writeln!(out, "  timed on  {}", names(&cases).join(", "));
        let _ = writeln!(out, "  confirmed {}", names(&confirming).join(", "));
        list.push(json!({
            "knobs": knobs(&target),
            "element_bytes": target.element_bytes,
            "current": current.0,
            "proposals": proposals.iter().map(|choice| &choice.0).collect::<Vec<_>>(),
            "cases": names(&cases),
            "confirming_cases": names(&confirming),
        }));
    }
    let value = json!({ "profile": path, "targets": list });
    text::print(&if json { text::json_text(&value) } else { out })
}

fn knobs(target: &Target) -> Vec<&'static str> {
    target.group.knobs().iter().map(|knob| knob.name()).collect()
}

/// `earlier` holds what the profile has for this machine.
fn search(path: &Path, key: &Key, earlier: &Tuning, budget: Duration, json: bool) -> Result<(), Failure> {
    let stop = progress::on_interrupt();
    // The pool's threads must exist before this one is pinned, or they would share its CPU.
    crate::copy::parallel::wake();
    let mut watch = Real::start(PageMode::Small, Some(stop));
    let base = *Tuning::unprofiled();
    let mut tuning = base;
    let targets = tune::targets(threads());
    let bar = Progress::new(targets.len() as u64);
    let mut entry = Entry {
        key: key.clone(),
        created: rfc3339(SystemTime::now()),
        command: super::report::command_line(std::env::args()),
        winners: Vec::new(),
        measurements: Vec::new(),
    };
    let mut results = Vec::new();
    for (k, &target) in targets.iter().enumerate() {
        bar.step(&target.to_string());
        // A share of what is left, several times over: many targets have nothing to try. A third is kept for
        // the second confirmation.
        let left = (budget * 2 / 3).saturating_sub(watch.elapsed());
        let deadline = watch.elapsed() + (5 * left / (targets.len() - k) as u32).min(left);
        let pinned = (!target.group.shares()).then(Pinned::best);
        let known = target.current(earlier);
        let known = (known != target.current(&base)).then_some(&known);
        let found = tune::search(&mut watch, target, &tuning, known, deadline)?;
        drop(pinned);
        watch.forget();
        for winner in found.winners() {
            put(&mut tuning, &winner)?;
        }
        results.push(found);
        if progress::interrupted(stop) {
            break;
        }
    }
    for found in &mut results {
        let pinned = (!found.target.group.shares()).then(Pinned::best);
        tune::confirm_again(&mut watch, found, &tuning, budget)?;
        drop(pinned);
        watch.forget();
    }
    settle(&mut watch, &mut results, &base, budget)?;
    for found in &results {
        entry.winners.extend(found.winners());
        entry.measurements.extend(found.measurements.iter().cloned());
    }
    bar.finish();
    let interrupted = progress::interrupted(stop);
    let elapsed = watch.elapsed();
    let winners = entry.winners.clone();
    let nothing = interrupted && winners.is_empty();
    if !nothing {
        Profile::update(path, |profile| profile.insert(&entry))?;
    }
    let value = json!({
        "profile": path,
        "written": !nothing,
        "elapsed_s": elapsed.as_secs_f64(),
        "interrupted": interrupted,
        "key": key,
        "winners": winners,
        "targets": results.iter().map(found_json).collect::<Vec<_>>(),
    });
    let mut out = String::new();
    for found in &results {
        let _ = writeln!(out, "{}", found_text(found));
    }
    let _ = match nothing {
        true => writeln!(out, "\nnothing confirmed, nothing written"),
        false => writeln!(
            out,
            "\n{} confirmed in {:.0} s, written to {}",
            counted(winners.len(), "value"),
            elapsed.as_secs_f64(),
            path.display()
        ),
    };
    text::print(&if json { text::json_text(&value) } else { out })?;
    match interrupted {
        true => Err(Failure::new("interrupted", "interrupted: what was confirmed before is kept")),
        false => Ok(()),
    }
}

/// Drops what loses against the defaults on the cases of the check.
fn settle(
    watch: &mut Real<'_>,
    results: &mut [Found],
    base: &Tuning,
    budget: Duration,
) -> Result<(), Failure> {
    let cases = tune_check::cases(base, &tune::with_winners(base, results)?)?;
    let (one, all): (Vec<Case>, Vec<Case>) = cases.into_iter().partition(|case| case.threads == 1);
    // Nothing is kept that has not gone through this: it takes a few seconds, past the budget if need be.
    let deadline = watch.elapsed().max(budget) + budget / 3;
    let mut quiet = 0;
    while quiet < QUIET_PASSES && watch.elapsed() < deadline && !watch.stopped() {
        let pinned = Pinned::best();
        let dropped = tune::settle(watch, results, base, &one, deadline)?;
        drop(pinned);
        // What is dropped here changes copies on one thread, too.
        let dropped = dropped + tune::settle(watch, results, base, &all, deadline)?;
        quiet = if dropped == 0 { quiet + 1 } else { 0 };
    }
    Ok(())
}

fn put(tuning: &mut Tuning, winner: &Winner) -> Result<(), Failure> {
    let knob = crate::copy::tuning::Knob::from_name(&winner.knob);
    let knob = knob.ok_or_else(|| Failure::new("tuning", format!("no knob is named {}", winner.knob)))?;
    Ok(tuning.set(knob, winner.element_bytes, Setting::new(winner.value, Origin::Profile))?)
}

fn found_text(found: &Found) -> String {
    let best = found.best.as_ref().map(values).unwrap_or_default();
    let target = found.target.to_string();
    let before = values(&found.before);
    let mut line = format!("{target:32} {before:>14} bytes  ");
    line += &match &found.verdict {
        SearchVerdict::Better { gain, noise } => {
            format!("-> {best}: {gain:.3} times as fast (noise {noise:.3})")
        }
        SearchVerdict::CurrentIsBest => "kept, nothing was faster".to_owned(),
        SearchVerdict::NotConfirmed { gain, noise } => {
            format!("kept, {best} came to {gain:.3}, not surely worth a change (noise {noise:.3})")
        }
        SearchVerdict::SlowerOn { case, ratio } => format!("kept, {best} is {ratio:.3} on {case}"),
        SearchVerdict::NothingToTry => "kept, no other value makes another plan".to_owned(),
        SearchVerdict::Unfinished => "kept, no time to decide".to_owned(),
    };
    for (choice, case) in &found.wrong {
        let _ = write!(line, "\n  WRONG RESULT with {} on {case}: dropped, please report it", values(choice));
    }
    line
}

fn found_json(found: &Found) -> Value {
    let (verdict, gain, noise) = match &found.verdict {
        SearchVerdict::Better { gain, noise } => ("better", Some(*gain), Some(*noise)),
        SearchVerdict::CurrentIsBest => ("current_is_best", None, None),
        SearchVerdict::NotConfirmed { gain, noise } => ("not_confirmed", Some(*gain), Some(*noise)),
        SearchVerdict::SlowerOn { ratio, .. } => ("slower_on_a_case", Some(*ratio), None),
        SearchVerdict::NothingToTry => ("nothing_to_try", None, None),
        SearchVerdict::Unfinished => ("unfinished", None, None),
    };
    json!({
        "knobs": knobs(&found.target),
        "element_bytes": found.target.element_bytes,
        "before": found.before.0,
        "best": found.best.as_ref().map(|choice| &choice.0),
        "verdict": verdict,
        "gain": gain,
        "noise": noise,
        "wrong": found.wrong.iter().map(|(choice, case)| json!({"values": choice.0, "case": case})).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        assert_eq!(read_time("60s").unwrap(), Duration::from_secs(60));
        assert_eq!(read_time("1.5m").unwrap(), Duration::from_secs(90));
        assert_eq!(read_time("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(read_time("7").unwrap(), Duration::from_secs(7));
        for text in ["", "s", "-1s", "1h", "1e400s", "NaN", "inf"] {
            assert_eq!(read_time(text).unwrap_err().code, 2, "{text}");
        }
    }
}

//! `restride tune --check`: the profile against the defaults, in turn, case by case.

use super::progress::{self, Progress};
use super::tune::threads;
use super::{Failure, text};
use crate::bench::cases as table;
use crate::bench::timing::PageMode;
use crate::copy::tuning::Tuning;
use crate::dtype::Dtype;
use crate::error::words::counted;
use crate::machine::affinity::Pinned;
use crate::profile::Loaded;
use crate::tune::{self, Case, Checked, Real, Stopwatch as _};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Largest input of the check, in bytes.
const CHECK_BYTES: usize = 256 << 20;

/// The benchmark's table as cases of the check, those that are too large left out: on one thread, and after
/// that on all cores where there are several.
fn check_cases() -> Result<Vec<Case>, Failure> {
    let mut cases = Vec::new();
    for case in table::all() {
        let dtype: Dtype = case.dtype.parse().map_err(|_| Failure::new("dtype", case.dtype.to_owned()))?;
        let bytes = case.shape.iter().product::<usize>() * dtype.size_bytes();
        if bytes <= CHECK_BYTES {
            cases.push(Case {
                name: case.id,
                element_bytes: dtype.size_bytes(),
                shape: case.shape,
                expr: case.expr,
                threads: 1,
            });
        }
    }
    if threads() > 1 {
        let all = |case: &Case| Case { name: format!("{}/all cores", case.name), threads: 0, ..case.clone() };
        cases.extend(cases.iter().map(all).collect::<Vec<_>>());
    }
    Ok(cases)
}

/// What a profile is checked on.
pub(super) fn cases(default: &Tuning, profile: &Tuning) -> Result<Vec<Case>, Failure> {
    let mut cases = confirming_cases(default, profile);
    cases.extend(check_cases()?);
    Ok(cases)
}

/// The cases that confirm the values in which a profile differs from the defaults: the benchmark's table need not
/// have one that such a value decides.
fn confirming_cases(default: &Tuning, profile: &Tuning) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for target in tune::targets(threads()) {
        if target.current(default) == target.current(profile) {
            continue;
        }
        for case in tune::cases(&target, default).1 {
            let name = format!("{} of {target}", case.name);
            let same = |other: &Case| Case { name: String::new(), ..other.clone() };
            if !cases.iter().any(|other| same(other) == same(&case)) {
                cases.push(Case { name, ..case });
            }
        }
    }
    // Pinned first.
    cases.sort_by_key(|case| case.threads != 1);
    cases
}

pub(super) fn check(path: &Path, loaded: &Loaded, json: bool) -> Result<(), Failure> {
    let (default, tuning) = (Tuning::unprofiled(), &loaded.tuning);
    if loaded.created.is_none() {
        return Err(nothing(path, loaded));
    }
    let stop = progress::on_interrupt();
    // The pool's threads must exist before this one is pinned, or they would share its CPU.
    crate::copy::parallel::wake();
    let mut pinned = None;
    let mut watch = Real::start(PageMode::Small, Some(stop));
    let cases = cases(default, tuning)?;
    let bar = Progress::new(cases.len() as u64);
    let mut checked = Vec::new();
    for case in &cases {
        bar.step(&case.name);
        match case.threads {
            1 => _ = pinned.get_or_insert_with(Pinned::best),
            _ => pinned = None,
        }
        checked.push(tune::check(&mut watch, case, default, tuning)?);
        watch.forget();
        if progress::interrupted(stop) {
            break;
        }
    }
    bar.finish();
    let losses: Vec<&Checked> = checked.iter().filter(|c| c.verdict == tune::Verdict::Loss).collect();
    let lost = losses.first().map(|loss| {
        let message = format!(
            "the profile {} is {:.3} times as fast as the defaults on {} ({} of {}): tune again, or drop it with --reset",
            path.display(),
            loss.ratio,
            loss.case,
            losses.len(),
            counted(cases.len(), "case")
        );
        Failure::new("loss", message)
    });
    let shown = if json {
        text::json_text(&checks_json(path, &checked, loaded))
    } else {
        checks_text(&checked, loaded)
    };
    text::print(&shown)?;
    match (lost, progress::interrupted(stop)) {
        (Some(lost), _) => Err(lost),
        (None, true) => Err(Failure::new("interrupted", "interrupted before every case was checked")),
        (None, false) => Ok(()),
    }
}

/// Why there is nothing to check.
fn nothing(path: &Path, loaded: &Loaded) -> Failure {
    let why = match loaded.ignored.first() {
        _ if !path.exists() => "is not there".to_owned(),
        Some(first) => format!("holds nothing for this machine ({}: {})", first.entry, first.reason),
        None => "holds no entry".to_owned(),
    };
    Failure::new(
        "profile",
        format!("the profile {} {why}: there is nothing to check, tune first", path.display()),
    )
}

fn verdict(checked: &Checked) -> &'static str {
    match checked.verdict {
        tune::Verdict::SamePlan => "same_plan",
        tune::Verdict::Gain => "gain",
        tune::Verdict::Even => "even",
        tune::Verdict::Loss => "loss",
    }
}

fn checks_json(path: &Path, checked: &[Checked], loaded: &Loaded) -> Value {
    let cases = checked.iter().map(|c| {
        json!({
            "case": c.case, "ratio": c.ratio, "ci_low": c.low, "ci_high": c.high,
            "repeated": c.repeated, "verdict": verdict(c),
        })
    });
    json!({ "profile": path, "values": loaded.values, "cases": cases.collect::<Vec<_>>() })
}

fn checks_text(checked: &[Checked], loaded: &Loaded) -> String {
    let mut rows = Vec::new();
    for c in checked.iter().filter(|c| c.verdict != tune::Verdict::SamePlan) {
        let repeated = c.repeated.iter().map(|ratio| format!("{ratio:.3}")).collect::<Vec<_>>().join(" ");
        rows.push(vec![
            c.case.clone(),
            format!("{:.3}", c.ratio),
            format!("{:.3} to {:.3}", c.low, c.high),
            verdict(c).to_owned(),
            repeated,
        ]);
    }
    let same = checked.len() - rows.len();
    let mut out = String::new();
    if loaded.values == 0 {
        out += "the profile holds no value in place of a default: there is nothing to compare\n";
    }
    if !rows.is_empty() {
        out += "time with the defaults / time with the profile, above 1 is a gain\n\n";
        out += &text::table(&["case", "ratio", "interval", "", "repeated"], &[1], &rows);
        out.push('\n');
    }
    let _ = writeln!(out, "the same plan either way: {same} of {}", counted(checked.len(), "case"));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::tuning::{Knob, Origin, Value as Setting};

    #[test]
    fn the_check_covers_the_table() {
        let cases = check_cases().unwrap();
        assert!(cases.len() > 40);
        let (one, all): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.threads == 1);
        assert!(all.len() == if threads() > 1 { one.len() } else { 0 } && one.len() > 40);
    }

    #[test]
    fn what_a_profile_changes_is_checked_on_cases_that_it_decides() {
        let default = *Tuning::unprofiled();
        assert!(confirming_cases(&default, &default).is_empty());
        let mut profile = default;
        let other = 2 * default.get(Knob::RowTile, 4).value;
        profile.set(Knob::RowTile, Some(4), Setting::new(other, Origin::Profile)).unwrap();
        let cases = confirming_cases(&default, &profile);
        assert!(cases.len() >= 3 && cases.iter().all(|case| case.element_bytes == 4), "{cases:?}");
        let mut watch = Real::start(PageMode::Small, None);
        assert!(cases.iter().any(|case| !watch.same_plan(case, &default, &profile).unwrap()));
        for case in cases {
            assert!(case.name.ends_with("of rows of 4-byte elements"), "{}", case.name);
        }
    }
}

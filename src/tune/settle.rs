//! The last word on what a search found: all winners together against the defaults, on the cases of the check.
//!
//! Each winner was confirmed for itself, on copies that it decides, beside the winners before it. Together, and on
//! other copies, they may lose all the same; those that do are dropped here.

use super::check::{Verdict as Checked, check_within};
use super::search::{Found, Verdict};
use super::{Case, Stopwatch};
use crate::Error;
use crate::copy::tuning::Tuning;
use std::time::Duration;

/// Slower than this is a loss: the check that follows allows 3 %, and noise must not push a case over that.
const MOST_LOSS: f64 = 0.98;

/// `base` with every winner in its place.
///
/// # Errors
///
/// A value outside the range of its knob.
pub fn with_winners(base: &Tuning, found: &[Found]) -> Result<Tuning, Error> {
    let mut tuning = *base;
    for found in found {
        if let (Some(best), Verdict::Better { .. }) = (&found.best, &found.verdict) {
            tuning = found.target.with(&tuning, best)?;
        }
    }
    Ok(tuning)
}

/// Times `base` against all winners on each case; of those that decide a case on which they lose together, the ones
/// that lose there by themselves are dropped, or all where none does. Says how many were.
///
/// # Errors
///
/// What the copies refuse.
pub fn settle(
    watch: &mut dyn Stopwatch,
    found: &mut [Found],
    base: &Tuning,
    cases: &[Case],
    deadline: Duration,
) -> Result<usize, Error> {
    let mut dropped = 0;
    let mut tuning = with_winners(base, found)?;
    let mut open: Vec<usize> = (0..cases.len()).rev().collect();
    while let Some(at) = open.pop() {
        let case = &cases[at];
        if watch.stopped() || watch.elapsed() >= deadline {
            break;
        }
        let checked = check_within(watch, case, base, &tuning, MOST_LOSS)?;
        if checked.verdict == Checked::Loss {
            let blamed = blame(watch, found, base, &tuning, case)?;
            for &k in &blamed {
                found[k].verdict = Verdict::SlowerOn { case: case.name.clone(), ratio: checked.ratio };
            }
            dropped += blamed.len();
            let less = with_winners(base, found)?;
            // What is planned otherwise now is looked at again, this case among it.
            for (at, case) in cases.iter().enumerate().rev() {
                if !open.contains(&at) && !watch.same_plan(case, &tuning, &less)? {
                    open.push(at);
                }
            }
            tuning = less;
        }
        watch.forget();
    }
    Ok(dropped)
}

/// Which winners make a case slower.
fn blame(
    watch: &mut dyn Stopwatch,
    found: &mut [Found],
    base: &Tuning,
    tuning: &Tuning,
    case: &Case,
) -> Result<Vec<usize>, Error> {
    let (mut deciding, mut losing) = (Vec::new(), Vec::new());
    for k in 0..found.len() {
        if !matches!(found[k].verdict, Verdict::Better { .. }) {
            continue;
        }
        let without = found[k].target.with(tuning, &found[k].target.current(base))?;
        if watch.same_plan(case, &without, tuning)? {
            continue;
        }
        deciding.push(k);
        if check_within(watch, case, &without, tuning, MOST_LOSS)?.verdict == Checked::Loss {
            losing.push(k);
        }
    }
    Ok(if losing.is_empty() { deciding } else { losing })
}

#[cfg(test)]
mod tests {
    use super::super::target::{Choice, Group, Target, targets};
    use super::*;
    use crate::copy::tuning::Knob;

    /// A clock and copies that a test makes up, where every knob may have a say.
    struct Fake<F> {
        cost: F,
        now: Duration,
    }

    impl<F: Fn(&Case, &Tuning) -> f64> Stopwatch for Fake<F> {
        fn sample(&mut self, case: &Case, tuning: &Tuning) -> Result<f64, Error> {
            let ns = (self.cost)(case, tuning);
            self.now += Duration::from_nanos(ns as u64);
            Ok(ns)
        }

        fn right(&mut self, _: &Case, _: &Tuning) -> Result<bool, Error> {
            Ok(true)
        }

        fn same_plan(&mut self, _: &Case, a: &Tuning, b: &Tuning) -> Result<bool, Error> {
            Ok(targets(2).iter().all(|target| target.current(a) == target.current(b)))
        }

        fn elapsed(&self) -> Duration {
            self.now
        }

        fn stopped(&self) -> bool {
            false
        }
    }

    const BUDGET: Duration = Duration::from_secs(60);

    fn base() -> Tuning {
        Tuning::for_caches(48 << 10, 2 << 20, 0)
    }

    fn winner(group: Group, value: usize) -> Found {
        let target = Target { group, element_bytes: Some(4) };
        Found {
            target,
            before: target.current(&base()),
            best: Some(Choice(vec![value])),
            verdict: Verdict::Better { gain: 1.1, noise: 1.01 },
            wrong: Vec::new(),
            measurements: Vec::new(),
        }
    }

    fn case(name: &str) -> Case {
        let (expr, shape) = (".T".to_owned(), vec![8, 8]);
        Case { name: name.into(), element_bytes: 4, shape, expr, threads: 1 }
    }

    /// Settles two winners on two cases, and says which are left.
    fn left(cost: impl Fn(&Case, bool, bool) -> f64, deadline: Duration) -> Vec<bool> {
        let mut found = [winner(Group::Rows, 64 << 10), winner(Group::RowAhead, 512)];
        let cost = |case: &Case, tuning: &Tuning| {
            let (rows, ahead) = (tuning.get(Knob::RowTile, 4), tuning.get(Knob::RowAhead, 4));
            cost(case, rows.value == 64 << 10, ahead.value == 512)
        };
        let mut fake = Fake { cost, now: Duration::ZERO };
        let dropped = settle(&mut fake, &mut found, &base(), &[case("a"), case("b")], deadline).unwrap();
        let left: Vec<bool> =
            found.iter().map(|found| matches!(found.verdict, Verdict::Better { .. })).collect();
        assert_eq!(dropped, left.iter().filter(|left| !**left).count());
        let tuning = with_winners(&base(), &found).unwrap();
        for (found, left) in found.iter().zip(&left) {
            assert_eq!(found.target.current(&tuning) == found.target.current(&base()), !left);
        }
        left
    }

    #[test]
    fn winners_that_lose_nowhere_stay() {
        assert_eq!(left(|_, rows, _| if rows { 0.9e6 } else { 1e6 }, BUDGET), [true, true]);
        assert_eq!(left(|_, rows, ahead| if rows || ahead { 1.01e6 } else { 1e6 }, BUDGET), [true, true]);
    }

    #[test]
    fn the_winner_that_loses_is_dropped_and_the_other_stays() {
        let cost = |case: &Case, rows: bool, ahead: bool| match (case.name == "b" && ahead, rows) {
            (true, _) => 1.2e6,
            (false, true) => 0.9e6,
            _ => 1e6,
        };
        assert_eq!(left(cost, BUDGET), [true, false]);
        assert_eq!(left(cost, Duration::ZERO), [true, true]);
    }

    #[test]
    fn winners_that_lose_only_together_go() {
        let cost = |_: &Case, rows: bool, ahead: bool| if rows && ahead { 1.2e6 } else { 1e6 };
        assert_eq!(left(cost, BUDGET), [false, false]);
        // Each slower than nothing by too little to lose by itself.
        let cost = |_: &Case, rows: bool, ahead: bool| 1e6 + 0.015e6 * (f64::from(rows) + f64::from(ahead));
        assert_eq!(left(cost, BUDGET), [false, false]);
    }
}

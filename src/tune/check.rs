//! Default against profile on the benchmark's cases.

use super::{Case, Stopwatch};
use crate::Error;
use crate::bench::stats::{Summary, median};
use crate::copy::tuning::Tuning;

/// A profile that is slower than this on a case, three times, fails the check.
pub const MOST_LOSS: f64 = 0.97;

/// Pairs of samples a measurement of one case takes.
const PAIRS: usize = 11;

/// What the check of one case came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Both make the same plan: nothing to compare.
    SamePlan,
    /// Faster, and the interval says so.
    Gain,
    /// No difference beyond the interval, or a small one.
    Even,
    /// More than 3 % slower, and so in both measurements that repeated it in reverse order.
    Loss,
}

/// One case of the check.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Name of the case.
    pub case: String,
    /// Time with the defaults over time with the profile, its interval around it.
    pub ratio: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// The ratios of the measurements that repeated a loss.
    pub repeated: Vec<f64>,
    /// What that means.
    pub verdict: Verdict,
}

/// Times defaults and profile in turn on one case.
///
/// # Errors
///
/// What the copies refuse.
pub fn check(
    watch: &mut dyn Stopwatch,
    case: &Case,
    default: &Tuning,
    profile: &Tuning,
) -> Result<Checked, Error> {
    let mut checked = Checked {
        case: case.name.clone(),
        ratio: 1.0,
        low: 1.0,
        high: 1.0,
        repeated: Vec::new(),
        verdict: Verdict::SamePlan,
    };
    if watch.same_plan(case, default, profile)? {
        return Ok(checked);
    }
    let ratios = pairs(watch, case, default, profile, false)?;
    if let Some(summary) = Summary::of(&ratios) {
        (checked.ratio, checked.low, checked.high) = (summary.median, summary.low, summary.high);
    }
    checked.verdict = if checked.low > 1.0 { Verdict::Gain } else { Verdict::Even };
    if checked.ratio < MOST_LOSS {
        checked.verdict = Verdict::Loss;
        for _ in 0..2 {
            let ratios = pairs(watch, case, default, profile, true)?;
            let again = median(&ratios).unwrap_or(1.0);
            checked.repeated.push(again);
            if again >= MOST_LOSS {
                checked.verdict = Verdict::Even;
                break;
            }
        }
    }
    Ok(checked)
}

/// Time with the defaults over time with the profile, pair by pair.
fn pairs(
    watch: &mut dyn Stopwatch,
    case: &Case,
    default: &Tuning,
    profile: &Tuning,
    reversed: bool,
) -> Result<Vec<f64>, Error> {
    let mut ratios = Vec::with_capacity(PAIRS);
    for _ in 0..PAIRS {
        if watch.stopped() {
            break;
        }
        let (a, b) = if reversed {
            let b = watch.sample(case, profile)?;
            (watch.sample(case, default)?, b)
        } else {
            (watch.sample(case, default)?, watch.sample(case, profile)?)
        };
        if a > 0.0 && b > 0.0 {
            ratios.push(a / b);
        }
    }
    Ok(ratios)
}

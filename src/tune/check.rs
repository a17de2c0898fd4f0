//! Default against profile on the benchmark's cases.

use super::floor::{chance, ratio};
use super::{Case, Stopwatch};
use crate::Error;
use crate::copy::tuning::Tuning;

/// A profile that is slower than this on a case, three times, fails the check.
pub const MOST_LOSS: f64 = 0.97;

/// Pairs of samples a measurement of one case takes.
const PAIRS: usize = 15;

/// What the check of one case came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Both make the same plan: nothing to compare.
    SamePlan,
    /// Faster, and the interval says so.
    Gain,
    /// No difference beyond the interval, or a small one.
    Even,
    /// Too much slower, and so in both measurements that repeated it in reverse order on other buffers.
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

/// Times defaults and profile in turn on one case; more than 3 % slower is a loss.
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
    check_within(watch, case, default, profile, MOST_LOSS)
}

/// [`check`] where less than `least` times as fast is a loss.
pub(super) fn check_within(
    watch: &mut dyn Stopwatch,
    case: &Case,
    default: &Tuning,
    profile: &Tuning,
    least: f64,
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
    let (defaults, profiles) = pairs(watch, case, default, profile, false)?;
    if let Some(ratio) = ratio(&defaults, &profiles) {
        let chance = chance(&[defaults], &[profiles]);
        (checked.ratio, checked.low, checked.high) = (ratio, ratio / chance, ratio * chance);
    }
    checked.verdict = if checked.low > 1.0 { Verdict::Gain } else { Verdict::Even };
    if checked.ratio < least {
        checked.verdict = Verdict::Loss;
        for _ in 0..2 {
            // Where buffers happen to lie is no loss of the profile.
            watch.forget();
            let (defaults, profiles) = pairs(watch, case, default, profile, true)?;
            let again = ratio(&defaults, &profiles).unwrap_or(1.0);
            checked.repeated.push(again);
            if again >= least {
                checked.verdict = Verdict::Even;
                break;
            }
        }
    }
    Ok(checked)
}

/// Times with the defaults and with the profile, taken in turn.
fn pairs(
    watch: &mut dyn Stopwatch,
    case: &Case,
    default: &Tuning,
    profile: &Tuning,
    reversed: bool,
) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let (mut defaults, mut profiles) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        if watch.stopped() {
            break;
        }
        if reversed {
            profiles.push(watch.sample(case, profile)?);
            defaults.push(watch.sample(case, default)?);
        } else {
            defaults.push(watch.sample(case, default)?);
            profiles.push(watch.sample(case, profile)?);
        }
    }
    Ok((defaults, profiles))
}

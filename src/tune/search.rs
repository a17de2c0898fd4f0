//! Successive halving, and the confirmation of what it leaves.

use super::Stopwatch;
use super::cases::{Case, cases};
use super::floor::{chance, ratio, speed};
use super::target::{Choice, Target};
use crate::bench::stats::Summary;
use crate::copy::tuning::Tuning;
use crate::profile::{Measurement, Winner};
use std::time::Duration;

/// A winner must be at least this much faster, however quiet the machine is: a value that makes no difference
/// worth having stays what it is, so that two searches agree.
const LEAST_GAIN: f64 = 1.05;
/// Half of that, as a factor: what gains less in the search is not confirmed.
const POOR_GAIN: f64 = 1.025;
/// A gain must be so many powers above the noise.
const ABOVE_NOISE: f64 = 1.5;
/// Choices whose speeds differ by less count as equal; the one that changes the least is taken.
const EQUAL: f64 = 1.02;
/// A winner may be slower on no confirming case by more than this.
const MOST_LOSS: f64 = 0.97;
/// Samples of each choice on each case in the first round.
const FIRST_SAMPLES: usize = 5;
/// Choices that are confirmed where the fastest fails: a threshold that is best on most cases may lose on
/// one where the next does not.
const FINALISTS: usize = 3;
/// Laps of the choices that are left.
const LAST_LAPS: usize = 3;
/// Samples of each choice on each confirming case, in one round.
const CONFIRM_SAMPLES: usize = 21;
/// Rounds of a confirmation, each on new buffers and all but one in favour of the winner.
const ROUNDS: usize = 6;
/// Rounds of a close call, whose gain the noise may have made: chance favours one of two equal choices in all of
/// them but one in 13 of 4096 cases.
const CLOSE_ROUNDS: usize = 12;
/// Rounds of a confirmation of what was confirmed before.
const KNOWN_ROUNDS: usize = 4;
/// Rounds after which a gain of less than half of the least is not followed up.
const POOR_ROUNDS: usize = 3;

/// How the search of one target ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The winner replaces the current choice.
    Better {
        /// Time of the current choice over time of the winner, over the confirming cases.
        gain: f64,
        /// The largest gain that equal choices show, between twins or by chance.
        noise: f64,
    },
    /// Nothing was faster in the search.
    CurrentIsBest,
    /// The best of the search was not faster in all rounds but one, beyond the noise, and by enough to be worth a change.
    NotConfirmed {
        /// Its gain over the confirming cases.
        gain: f64,
        /// The largest gain that equal choices show, between twins or by chance.
        noise: f64,
    },
    /// The best of the search was slower on a confirming case.
    SlowerOn {
        /// The case.
        case: String,
        /// Time of the current choice over its time.
        ratio: f64,
    },
    /// Every proposal makes the same plans as the current choice.
    NothingToTry,
    /// The time or the user's patience ran out before an answer.
    Unfinished,
}

/// What the search of one target found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What was tuned.
    pub target: Target,
    /// The choice before.
    pub before: Choice,
    /// The best choice of the search, where there was one.
    pub best: Option<Choice>,
    /// How it ended.
    pub verdict: Verdict,
    /// Choices that failed their check against the reference, with the case.
    pub wrong: Vec<(Choice, String)>,
    /// Everything that was timed.
    pub measurements: Vec<Measurement>,
}

impl Found {
    /// The values that replace others, one for each knob that changed.
    pub fn winners(&self) -> Vec<Winner> {
        let (Some(best), Verdict::Better { gain, noise }) = (&self.best, &self.verdict) else {
            return Vec::new();
        };
        let values = best.0.iter().zip(&self.before.0);
        let knobs = self.target.group.knobs().iter();
        knobs
            .zip(values)
            .filter(|(_, (value, before))| value != before)
            .map(|(knob, (&value, &replaces))| Winner {
                knob: knob.name().to_owned(),
                element_bytes: self.target.element_bytes,
                value,
                replaces,
                gain: *gain,
                noise: *noise,
            })
            .collect()
    }
}

/// Samples of several choices on several cases: `samples[choice][case]`.
type Samples = Vec<Vec<Vec<f64>>>;

struct Race<'a> {
    watch: &'a mut dyn Stopwatch,
    deadline: Duration,
}

impl Race<'_> {
    fn over(&self) -> bool {
        self.watch.stopped() || self.watch.elapsed() >= self.deadline
    }

    /// Takes `count` samples of each tuning that runs, in turn, on each case; `false` where it had to stop.
    fn lap(
        &mut self,
        cases: &[Case],
        tunings: &[Tuning],
        running: &[usize],
        count: usize,
        samples: &mut Samples,
    ) -> Result<bool, crate::Error> {
        for (k, case) in cases.iter().enumerate() {
            if !self.turns(case, k, tunings, running, count, samples)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for the case of one place.
    fn turns(
        &mut self,
        case: &Case,
        place: usize,
        tunings: &[Tuning],
        running: &[usize],
        count: usize,
        samples: &mut Samples,
    ) -> Result<bool, crate::Error> {
        for lap in 0..count {
            // Every other lap runs the other way round: what one leaves behind hits all alike.
            for step in 0..running.len() {
                if self.over() {
                    return Ok(false);
                }
                let at = if lap % 2 == 0 { step } else { running.len() - 1 - step };
                let who = running[at];
                samples[who][place].push(self.watch.sample(case, &tunings[who])?);
            }
        }
        Ok(true)
    }
}

/// Searches one target around `tuning` until `deadline`, the time of the stopwatch. What an `earlier` search came to
/// stays unless this one speaks against it: two searches that differ by chance alone come to one result.
///
/// # Errors
///
/// What a copy of the cases refuses, other than a wrong result: that only drops the choice.
pub fn search(
    watch: &mut dyn Stopwatch,
    target: Target,
    tuning: &Tuning,
    earlier: Option<&Choice>,
    deadline: Duration,
) -> Result<Found, crate::Error> {
    let before = target.current(tuning);
    let earlier = earlier.filter(|earlier| **earlier != before);
    let (search_cases, confirm_cases) = cases(&target, tuning);
    let mut found = Found {
        target,
        before: before.clone(),
        best: None,
        verdict: Verdict::Unfinished,
        wrong: Vec::new(),
        measurements: Vec::new(),
    };
    // The current choice is number 0.
    let (mut choices, mut tunings) = (vec![before.clone()], vec![*tuning]);
    // Whether a choice plans a case otherwise than the current one: only that is timed.
    let mut telling = vec![vec![false; search_cases.len()]];
    let mut proposals = target.proposals(tuning);
    proposals.extend(earlier.filter(|earlier| !proposals.contains(earlier)).cloned());
    proposals.sort_by(|a, b| change(&before, a).total_cmp(&change(&before, b)));
    for choice in proposals {
        let with = target.with(tuning, &choice)?;
        // Where a smaller change makes the same plans, this one is not told from it.
        if same_plans(watch, &search_cases, &tunings[1..], &with)? {
            continue;
        }
        let mut differs = vec![false; search_cases.len()];
        let mut right = true;
        for (k, case) in search_cases.iter().enumerate() {
            if watch.stopped() || watch.elapsed() >= deadline {
                return Ok(found);
            }
            if watch.same_plan(case, tuning, &with)? {
                continue;
            }
            differs[k] = true;
            if !watch.right(case, &with)? {
                found.wrong.push((choice.clone(), case.name.clone()));
                right = false;
                break;
            }
        }
        if differs.contains(&true) && right {
            telling.push(differs);
            choices.push(choice);
            tunings.push(with);
        }
    }
    if choices.len() == 1 {
        found.verdict = Verdict::NothingToTry;
        return Ok(found);
    }
    let mut race = Race { watch, deadline };
    let mut samples: Samples = vec![vec![Vec::new(); search_cases.len()]; choices.len()];
    let mut rivals: Vec<usize> = (1..choices.len()).collect();
    let mut count = FIRST_SAMPLES;
    let mut finished = true;
    // The few that are left at the end are confirmed one after the other, the fastest first.
    while finished {
        let running = [&[0], &rivals[..]].concat();
        // Those take several laps, each on buffers in other places.
        let laps = if rivals.len() <= FINALISTS { LAST_LAPS } else { 1 };
        for _ in 0..laps {
            for (k, case) in search_cases.iter().enumerate() {
                let runs = |who: &usize| match who {
                    0 => rivals.iter().any(|&rival| telling[rival][k]),
                    &who => telling[who][k],
                };
                let running: Vec<usize> = running.iter().copied().filter(runs).collect();
                finished = finished && race.turns(case, k, &tunings, &running, count, &mut samples)?;
            }
            race.watch.forget();
        }
        // Steps of a percent, so that chance does not order what is equal.
        let rate = |&who: &usize| (gain(&samples, who) * 100.0).round();
        rivals.sort_by(|a, b| rate(b).total_cmp(&rate(a)).then(a.cmp(b)));
        if count > FIRST_SAMPLES {
            // Time is better spent where there is something to gain.
            rivals.retain(|&who| gain(&samples, who) > POOR_GAIN.ln());
        }
        if rivals.len() <= FINALISTS {
            break;
        }
        rivals.truncate(rivals.len().div_ceil(2).max(FINALISTS));
        count *= 2;
    }
    for who in 1..choices.len() {
        for (k, case) in search_cases.iter().enumerate().filter(|(k, _)| telling[who][*k]) {
            found.measurements.push(measurement(
                &target,
                &choices[who],
                case,
                false,
                &samples[who][k],
                &samples[0][k],
            ));
        }
    }
    if !finished {
        return Ok(found);
    }
    rivals.retain(|&who| gain(&samples, who) > 0.0);
    // As fast as the fastest: the smallest change first, which is the order of the choices.
    if let Some(&fastest) = rivals.first() {
        rivals.sort_by_key(|&who| {
            let equal = gain(&samples, fastest) - gain(&samples, who) < EQUAL.ln();
            match equal {
                true if Some(&choices[who]) == earlier => (0, 0),
                true => (1, who),
                false => (2, 0),
            }
        });
    }
    found.verdict = Verdict::CurrentIsBest;
    for who in rivals {
        found.best = Some(choices[who].clone());
        let bar = if Some(&choices[who]) == earlier { Bar::Known } else { Bar::New };
        confirm(&mut race, &mut found, &confirm_cases, tuning, &tunings[who], bar)?;
        if matches!(found.verdict, Verdict::Better { .. }) || race.over() {
            return Ok(found);
        }
    }
    if let Some(who) = (1..choices.len()).find(|&who| Some(&choices[who]) == earlier) {
        let before = found.clone();
        found.best = Some(choices[who].clone());
        confirm(&mut race, &mut found, &confirm_cases, tuning, &tunings[who], Bar::Known)?;
        if !matches!(found.verdict, Verdict::Better { .. }) {
            (found.best, found.verdict) = (before.best, before.verdict);
        }
    }
    Ok(found)
}

/// Confirms a winner once more, some time after the search that found it: what else the machine does may favour
/// a value for seconds. `tuning` holds every winner. Out of time, the first confirmation stands.
///
/// # Errors
///
/// As [`search`].
pub fn confirm_again(
    watch: &mut dyn Stopwatch,
    found: &mut Found,
    tuning: &Tuning,
    deadline: Duration,
) -> Result<(), crate::Error> {
    let (Some(best), first @ Verdict::Better { .. }) = (found.best.clone(), found.verdict.clone()) else {
        return Ok(());
    };
    let current = found.target.with(tuning, &found.before)?;
    let winner = found.target.with(tuning, &best)?;
    let (_, confirm_cases) = cases(&found.target, &current);
    confirm(&mut Race { watch, deadline }, found, &confirm_cases, &current, &winner, Bar::Known)?;
    if found.verdict == Verdict::Unfinished {
        found.verdict = first;
    }
    Ok(())
}

/// How much faster a choice is than the current one, as a logarithm, in the mean over all cases; those that
/// both plan alike have no samples and count as equal.
fn gain(samples: &Samples, who: usize) -> f64 {
    let pairs = samples[0].iter().zip(&samples[who]);
    let gained: f64 = pairs.filter_map(|(current, own)| Some(ratio(current, own)?.ln())).sum();
    gained / samples[0].len().max(1) as f64
}

/// How far one choice is from another, in powers of e over its knobs.
fn change(from: &Choice, to: &Choice) -> f64 {
    let steps = from.0.iter().zip(&to.0).map(|(&a, &b)| (b.max(1) as f64 / a.max(1) as f64).ln().abs());
    steps.sum()
}

/// Whether one of `known` plans every case as `with` does.
fn same_plans(
    watch: &mut dyn Stopwatch,
    cases: &[Case],
    known: &[Tuning],
    with: &Tuning,
) -> Result<bool, crate::Error> {
    'known: for known in known {
        for case in cases {
            if !watch.same_plan(case, known, with)? {
                continue 'known;
            }
        }
        return Ok(true);
    }
    Ok(false)
}

/// What a choice has to show.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bar {
    /// A gain that is worth a change, surely.
    New,
    /// That what was found before is not contradicted.
    Known,
}

impl Bar {
    fn rounds(self) -> usize {
        match self {
            Self::New => ROUNDS,
            Self::Known => KNOWN_ROUNDS,
        }
    }

    fn least(self) -> f64 {
        match self {
            Self::New => LEAST_GAIN,
            Self::Known => POOR_GAIN,
        }
    }
}

/// Times the winner, the current choice and its twin, in that order and back, on cases that are new.
fn confirm(
    race: &mut Race<'_>,
    found: &mut Found,
    cases: &[Case],
    current: &Tuning,
    winner: &Tuning,
    bar: Bar,
) -> Result<(), crate::Error> {
    let Some(best) = found.best.clone() else { return Ok(()) };
    for case in cases {
        if !race.watch.right(case, winner)? {
            found.wrong.push((best, case.name.clone()));
            found.best = None;
            found.verdict = Verdict::CurrentIsBest;
            return Ok(());
        }
    }
    // A case that both copy by the same plan says nothing.
    let mut telling = Vec::new();
    for case in cases {
        if !race.watch.same_plan(case, current, winner)? {
            telling.push(case.clone());
        }
    }
    let cases = &telling[..];
    if cases.is_empty() {
        found.verdict = Verdict::NotConfirmed { gain: 1.0, noise: 1.0 };
        return Ok(());
    }
    let tunings = [*winner, *current, *current];
    let mut samples: Samples = vec![vec![Vec::new(); cases.len()]; 3];
    let (mut gains, mut twins) = (Vec::new(), Vec::new());
    let (mut rounds, mut decided) = (bar.rounds(), false);
    while gains.len() < rounds {
        // Where buffers lie in memory decides as much as some knobs do: each round has new ones.
        race.watch.forget();
        let mut round: Samples = vec![vec![Vec::new(); cases.len()]; 3];
        // Reversed: the search ran the current choice first.
        if !race.lap(cases, &tunings, &[0, 2, 1], CONFIRM_SAMPLES, &mut round)? {
            break;
        }
        let twin = speed(&round[1], &round[2]);
        twins.push(twin.max(1.0 / twin));
        gains.push(speed(&round[1], &round[0]));
        for (all, new) in samples.iter_mut().flatten().zip(round.into_iter().flatten()) {
            all.extend(new);
        }
        // The next search would have it by chance, or it is not worth having.
        if against(&gains) > 1 || gains.len() == POOR_ROUNDS && middle(&gains) < POOR_GAIN {
            decided = true;
            break;
        }
        let close = middle(&gains) >= bar.least() && !clear(&gains, noise(&twins, &samples));
        if bar == Bar::New && gains.len() == ROUNDS && close {
            rounds = CLOSE_ROUNDS;
        }
    }
    for (k, case) in cases.iter().enumerate() {
        found.measurements.push(measurement(
            &found.target,
            &best,
            case,
            true,
            &samples[0][k],
            &samples[1][k],
        ));
    }
    let (gain, noise) = (middle(&gains), noise(&twins, &samples));
    if !decided && gains.len() < rounds {
        found.verdict = Verdict::Unfinished;
        return Ok(());
    }
    let sure = bar == Bar::Known || clear(&gains, noise) || gains.len() == CLOSE_ROUNDS;
    if against(&gains) > 1 || gain < bar.least() || !sure {
        found.verdict = Verdict::NotConfirmed { gain, noise };
        return Ok(());
    }
    let mut losses: Vec<(f64, usize)> = (0..cases.len())
        .filter_map(|k| Some((ratio(&samples[1][k], &samples[0][k])?, k)))
        .filter(|(ratio, _)| *ratio < MOST_LOSS)
        .collect();
    losses.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.verdict = Verdict::Better { gain, noise };
    for (ratio, k) in losses {
        if loses_again(race, &cases[k], current, winner)? {
            found.verdict = Verdict::SlowerOn { case: cases[k].name.clone(), ratio };
            break;
        }
    }
    Ok(())
}

/// What equal choices differ by, in a round and by chance.
fn noise(twins: &[f64], samples: &Samples) -> f64 {
    middle(twins).max(chance(&samples[1], &samples[0]))
}

/// Whether a gain is well above the noise.
fn clear(gains: &[f64], noise: f64) -> bool {
    middle(gains) > noise.powf(ABOVE_NOISE)
}

/// Rounds that do not favour a choice.
fn against(gains: &[f64]) -> usize {
    gains.iter().filter(|gain| **gain <= 1.0).count()
}

/// The median of some numbers, 1 of none.
fn middle(numbers: &[f64]) -> f64 {
    Summary::of(numbers).map_or(1.0, |summary| summary.median)
}

/// Whether a loss on a case shows in two more measurements: one that does not is chance.
fn loses_again(
    race: &mut Race<'_>,
    case: &Case,
    current: &Tuning,
    winner: &Tuning,
) -> Result<bool, crate::Error> {
    for _ in 0..2 {
        let mut samples: Samples = vec![vec![Vec::new()]; 2];
        let tunings = [*current, *winner];
        race.lap(std::slice::from_ref(case), &tunings, &[0, 1], CONFIRM_SAMPLES, &mut samples)?;
        // Out of time: what was seen stands.
        let again = ratio(&samples[0][0], &samples[1][0]).unwrap_or(0.0);
        if again >= MOST_LOSS {
            return Ok(false);
        }
    }
    Ok(true)
}

fn measurement(
    target: &Target,
    choice: &Choice,
    case: &Case,
    confirms: bool,
    samples: &[f64],
    current: &[f64],
) -> Measurement {
    Measurement {
        knob: target.group.name().to_owned(),
        element_bytes: target.element_bytes,
        values: choice.0.clone(),
        case: case.name.clone(),
        confirms,
        samples_ns: samples.to_vec(),
        current_samples_ns: current.to_vec(),
    }
}

#[cfg(test)]
mod tests;

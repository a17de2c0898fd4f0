use super::super::target::Group;
use super::super::{Checked, Verdict as CheckVerdict, check, targets};
use super::*;
use crate::Error;
use std::collections::HashSet;

/// A clock and copies that a test makes up.
struct Fake<F> {
    /// Nanoseconds of a copy of a case with a choice.
    cost: F,
    target: Target,
    /// Samples vary by up to this share, from a fixed sequence.
    noise: f64,
    /// Share of the samples that take twice the time, as if somebody else had used the machine.
    disturbed: f64,
    wrong: HashSet<Choice>,
    state: u64,
    now: Duration,
    samples: usize,
    stop_after: usize,
}

impl<F: Fn(&Case, &Choice) -> f64> Fake<F> {
    fn new(target: Target, noise: f64, cost: F) -> Self {
        Self {
            cost,
            target,
            noise,
            disturbed: 0.0,
            wrong: HashSet::new(),
            state: 1,
            now: Duration::ZERO,
            samples: 0,
            stop_after: usize::MAX,
        }
    }

    fn random(&mut self) -> f64 {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }
}

impl<F: Fn(&Case, &Choice) -> f64> Stopwatch for Fake<F> {
    fn sample(&mut self, case: &Case, tuning: &Tuning) -> Result<f64, Error> {
        let mut noise = 1.0 + self.noise * (self.random() - 0.5);
        if self.random() < self.disturbed {
            noise *= 2.0;
        }
        let ns = (self.cost)(case, &self.target.current(tuning)) * noise;
        self.now += Duration::from_nanos(ns as u64);
        self.samples += 1;
        Ok(ns)
    }

    fn right(&mut self, _: &Case, tuning: &Tuning) -> Result<bool, Error> {
        Ok(!self.wrong.contains(&self.target.current(tuning)))
    }

    fn same_plan(&mut self, _: &Case, a: &Tuning, b: &Tuning) -> Result<bool, Error> {
        Ok(self.target.current(a) == self.target.current(b))
    }

    fn elapsed(&self) -> Duration {
        self.now
    }

    fn stopped(&self) -> bool {
        self.samples >= self.stop_after
    }
}

const BUDGET: Duration = Duration::from_secs(60);

fn tile() -> Target {
    Target { group: Group::Tile, element_bytes: Some(4) }
}

fn tuning() -> Tuning {
    Tuning::for_caches(48 << 10, 2 << 20, 0)
}

/// 10 ms with the planted choice and more the further away a choice is.
fn planted(best: [usize; 3]) -> impl Fn(&Case, &Choice) -> f64 {
    move |_, choice| {
        let far = |a: usize, b: usize| (a as f64 / b as f64).log2().abs();
        1e7 * (1.0 + 0.1 * (far(choice.0[0], best[0]) + far(choice.0[1], best[1])))
    }
}

#[test]
fn the_planted_optimum_is_found_in_time() {
    for target in targets(2) {
        let proposals = target.proposals(&tuning());
        for best in &proposals {
            let cost = |_: &Case, choice: &Choice| if choice == best { 8e6 } else { 1e7 };
            let mut fake = Fake::new(target, 0.05, cost);
            let found = search(&mut fake, target, &tuning(), None, BUDGET).unwrap();
            assert_eq!(found.best.as_ref(), Some(best), "{target}");
            assert!(matches!(found.verdict, Verdict::Better { gain, noise } if gain > 1.15 && noise < 1.05));
            assert!(fake.elapsed() < BUDGET);
            let winners = found.winners();
            assert!(!winners.is_empty() && winners.iter().all(|w| w.value != w.replaces));
        }
    }
}

#[test]
fn halving_follows_a_slope() {
    let mut fake = Fake::new(tile(), 0.05, planted([2048, 512, 0]));
    let found = search(&mut fake, tile(), &tuning(), None, BUDGET).unwrap();
    assert_eq!(found.best, Some(Choice(vec![2048, 512, 0])));
    assert!(found.measurements.iter().any(|m| m.confirms) && found.measurements.iter().any(|m| !m.confirms));
}

#[test]
fn noise_keeps_the_default() {
    // Nothing differs but by noise, whatever its size: some choice always looks best.
    for noise in [0.0, 0.02, 0.1, 0.5] {
        for seed in 1..40 {
            let mut fake = Fake::new(tile(), noise, |_: &Case, _: &Choice| 1e6);
            fake.state = seed;
            let found = search(&mut fake, tile(), &tuning(), None, BUDGET).unwrap();
            assert!(found.winners().is_empty(), "noise {noise}, seed {seed}: {:?}", found.verdict);
        }
    }
}

#[test]
fn a_gain_of_three_percent_is_no_reason_to_change() {
    let cost = |_: &Case, choice: &Choice| if choice.0 == [2048, 128, 0] { 0.97e6 } else { 1e6 };
    let found = search(&mut Fake::new(tile(), 0.0, cost), tile(), &tuning(), None, BUDGET).unwrap();
    assert!(matches!(found.verdict, Verdict::NotConfirmed { .. }), "{:?}", found.verdict);
}

/// Nanoseconds of a copy: tiles in a valley with a flat floor, thresholds that are right at one size.
fn plausible(case: &Case, choice: &Choice, group: Group) -> f64 {
    let bytes = 2.0 * (case.shape.iter().product::<usize>() * case.element_bytes) as f64;
    let far = |a: usize, b: usize| ((a as f64 / b as f64).log2().abs() - 1.0).max(0.0);
    match group {
        Group::Tile => bytes * (1.0 + 0.06 * (far(choice.0[0], 2048) + far(choice.0[1], 1024))),
        Group::Staged => bytes * (1.0 + 0.04 * (far(choice.0[0], 256) + far(choice.0[1], 1024))),
        Group::Rows => bytes * (1.0 + 0.02 * far(choice.0[0], 64 << 10)),
        _ => {
            let beyond = bytes >= choice.0[0] as f64;
            bytes * if beyond == (bytes >= 5e6) { 1.0 } else { 1.2 }
        }
    }
}

#[test]
fn two_searches_agree_whatever_disturbs_them() {
    for target in targets(2) {
        let (mut cases, confirm) = cases(&target, &tuning());
        cases.extend(confirm);
        let time = |choice: &Choice| -> f64 {
            cases.iter().map(|case| plausible(case, choice, target.group).ln()).sum::<f64>()
                / cases.len() as f64
        };
        let found = |seed: u64| {
            let cost = |case: &Case, choice: &Choice| plausible(case, choice, target.group);
            let mut fake = Fake::new(target, 0.06, cost);
            (fake.state, fake.disturbed) = (seed, 0.15);
            let found = search(&mut fake, target, &tuning(), None, BUDGET).unwrap();
            match found.verdict {
                Verdict::Better { .. } => found.best.unwrap(),
                _ => found.before,
            }
        };
        let all: Vec<Choice> = (1..=16).map(|seed| found(seed * 7919)).collect();
        let (best, worst) = all.iter().map(time).fold((f64::MAX, f64::MIN), |(a, b), t| (a.min(t), b.max(t)));
        assert!(worst - best < 0.02, "{target}: {all:?} differ by {:.3}", worst - best);
        // None of them is slower than what it replaces.
        assert!(worst <= time(&target.current(&tuning())) + 1e-9, "{target}: {all:?}");
    }
}

#[test]
fn a_winner_of_a_moment_is_dropped_when_it_is_confirmed_again() {
    let best = [2048, 512, 0];
    let favoured = std::cell::Cell::new(true);
    let cost = |_: &Case, choice: &Choice| if choice.0 == best && favoured.get() { 0.8e6 } else { 1e6 };
    let mut fake = Fake::new(tile(), 0.02, cost);
    let mut found = search(&mut fake, tile(), &tuning(), None, BUDGET).unwrap();
    assert_eq!(found.winners().len(), 2);
    let tuned = tile().with(&tuning(), &Choice(best.to_vec())).unwrap();
    confirm_again(&mut fake, &mut found, &tuned, BUDGET * 2).unwrap();
    assert_eq!(found.winners().len(), 2);
    // Out of time: what was confirmed before stands.
    let now = fake.elapsed();
    confirm_again(&mut fake, &mut found, &tuned, now).unwrap();
    assert_eq!(found.winners().len(), 2);
    favoured.set(false);
    confirm_again(&mut fake, &mut found, &tuned, BUDGET * 2).unwrap();
    assert!(matches!(found.verdict, Verdict::NotConfirmed { .. }) && found.winners().is_empty());
}

#[test]
fn among_equals_the_smallest_change_wins() {
    let target = Target { group: Group::Streaming, element_bytes: Some(4) };
    let before = target.current(&tuning()).0[0];
    let cost = move |_: &Case, choice: &Choice| if choice.0[0] < before { 0.8e6 } else { 1e6 };
    let nearest =
        target.proposals(&tuning()).into_iter().map(|c| c.0[0]).filter(|v| *v < before).max().unwrap();
    for seed in 1..20 {
        let mut fake = Fake::new(target, 0.06, cost);
        fake.state = seed;
        let found = search(&mut fake, target, &tuning(), None, BUDGET).unwrap();
        assert_eq!(found.best, Some(Choice(vec![nearest])), "seed {seed}");
    }
}

#[test]
fn what_an_earlier_search_found_stays_unless_it_is_contradicted() {
    let known = Choice(vec![2048, 512, 0]);
    let search = |earlier: f64, other: f64| {
        let cost = |_: &Case, choice: &Choice| match &choice.0[..] {
            [2048, 512, 0] => earlier,
            [2048, 128, 0] => other,
            _ => 1e6,
        };
        let mut fake = Fake::new(tile(), 0.0, cost);
        search(&mut fake, tile(), &tuning(), Some(&known), BUDGET).unwrap()
    };
    // A gain that is not worth a change is worth no change back, and among equals the known one stays.
    for (earlier, other) in [(0.96e6, 1e6), (0.9e6, 0.9e6), (0.9e6, 0.89e6), (0.96e6, 0.945e6)] {
        let found = search(earlier, other);
        assert_eq!(found.best, Some(known.clone()), "{earlier} {other}");
        assert!(matches!(found.verdict, Verdict::Better { .. }), "{earlier} {other}: {:?}", found.verdict);
    }
    // Slower, of no use, or much slower than another: it goes.
    for (earlier, other) in [(1.05e6, 1e6), (1e6, 1e6), (1.0e6, 0.8e6), (0.95e6, 0.8e6)] {
        let found = search(earlier, other);
        assert!(found.winners().is_empty() || found.best != Some(known.clone()), "{earlier} {other}");
    }
    // A value that no proposal has is kept as well.
    let odd = Choice(vec![3072, 320, 0]);
    let cost = |_: &Case, choice: &Choice| if choice.0 == [3072, 320, 0] { 0.9e6 } else { 1e6 };
    let found =
        super::search(&mut Fake::new(tile(), 0.0, cost), tile(), &tuning(), Some(&odd), BUDGET).unwrap();
    assert_eq!(found.best, Some(odd));
}

#[test]
fn a_loss_on_one_case_that_does_not_repeat_drops_no_winner() {
    let target = tile();
    let (_, confirm) = cases(&target, &tuning());
    let name = confirm[0].name.clone();
    let count = std::cell::Cell::new(0);
    // Slow on one case for as long as a confirmation takes samples of it, and never again.
    let cost = move |case: &Case, choice: &Choice| match (choice.0[..] == [1024, 512, 0], case.name == name) {
        (true, true) => {
            count.set(count.get() + 1);
            if count.get() <= CONFIRM_SAMPLES { 1.1e6 } else { 0.5e6 }
        }
        (true, false) => 0.5e6,
        _ => 1e6,
    };
    let found = search(&mut Fake::new(target, 0.0, cost), target, &tuning(), None, BUDGET).unwrap();
    assert_eq!(found.best, Some(Choice(vec![1024, 512, 0])));
    assert!(matches!(found.verdict, Verdict::Better { .. }), "{:?}", found.verdict);
}

#[test]
fn the_current_choice_stays_where_it_is_best() {
    let best = tile().current(&tuning());
    let cost = move |_: &Case, choice: &Choice| if *choice == best { 1e6 } else { 2e6 };
    let found = search(&mut Fake::new(tile(), 0.05, cost), tile(), &tuning(), None, BUDGET).unwrap();
    assert_eq!(found.verdict, Verdict::CurrentIsBest);
}

#[test]
fn a_choice_that_copies_wrong_never_wins() {
    let best = [2048, 512, 0];
    let mut fake = Fake::new(tile(), 0.02, planted(best));
    fake.wrong.insert(Choice(best.to_vec()));
    let found = search(&mut fake, tile(), &tuning(), None, BUDGET).unwrap();
    assert_eq!(found.wrong.len(), 1);
    assert_ne!(found.best, Some(Choice(best.to_vec())));
    assert!(found.measurements.iter().all(|m| m.values != best));
}

#[test]
fn a_winner_that_loses_on_a_new_case_is_dropped() {
    let target = tile();
    let (_, confirm) = cases(&target, &tuning());
    let bad = confirm[0].name.clone();
    let cost = move |case: &Case, choice: &Choice| match (choice.0[..] == [1024, 512, 0], case.name == bad) {
        (true, true) => 1.2e6,
        (true, false) => 0.5e6,
        _ => 1e6,
    };
    let found = search(&mut Fake::new(target, 0.0, cost), target, &tuning(), None, BUDGET).unwrap();
    assert!(matches!(found.verdict, Verdict::SlowerOn { ratio, .. } if ratio < 0.9), "{:?}", found.verdict);
    assert!(found.winners().is_empty());
}

#[test]
fn the_budget_and_the_user_end_it() {
    let budget = Duration::from_millis(300);
    let mut fake = Fake::new(tile(), 0.02, planted([2048, 512, 0]));
    let found = search(&mut fake, tile(), &tuning(), None, budget).unwrap();
    assert_eq!(found.verdict, Verdict::Unfinished);
    assert!(fake.elapsed() < budget + Duration::from_millis(30) && found.winners().is_empty());
    let mut fake = Fake::new(tile(), 0.02, planted([2048, 512, 0]));
    fake.stop_after = 25;
    let found = search(&mut fake, tile(), &tuning(), None, BUDGET).unwrap();
    assert_eq!((found.verdict, fake.samples), (Verdict::Unfinished, 25));
}

fn checked(cost: impl Fn(&Case, &Choice) -> f64) -> Checked {
    let target = tile();
    let profile = target.with(&tuning(), &Choice(vec![1024, 512, 0])).unwrap();
    let (case, _) = cases(&target, &tuning());
    check(&mut Fake::new(target, 0.02, cost), &case[0], &tuning(), &profile).unwrap()
}

#[test]
fn a_check_tells_gain_loss_and_noise() {
    let profile = |choice: &Choice| choice.0 == [1024, 512, 0];
    let gain = checked(|_, choice| if profile(choice) { 0.9e6 } else { 1e6 });
    assert_eq!(gain.verdict, CheckVerdict::Gain);
    assert!(gain.low <= gain.ratio && gain.ratio <= gain.high && gain.ratio > 1.08);
    assert_eq!(checked(|_, _| 1e6).verdict, CheckVerdict::Even);
    let loss = checked(|_, choice| if profile(choice) { 1.1e6 } else { 1e6 });
    assert_eq!((loss.verdict, loss.repeated.len()), (CheckVerdict::Loss, 2));
}

#[test]
fn a_loss_that_does_not_repeat_is_none() {
    // The first fifteen pairs are slow for the profile, as if somebody else had used the machine.
    let count = std::cell::Cell::new(0);
    let passing = checked(|_, choice| {
        count.set(count.get() + 1);
        if choice.0 == [1024, 512, 0] && count.get() <= 30 { 1.3e6 } else { 1e6 }
    });
    assert_eq!((passing.verdict, passing.repeated.len()), (CheckVerdict::Even, 1));
}

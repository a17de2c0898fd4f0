//! The time that a copy takes when nobody disturbs it.

/// The fastest third of some samples.
///
/// Whatever else a machine does only adds to a time, and on a shared machine it doubles every other
/// sample. The mean of the fastest third moves little under that, and tells two choices apart where
/// medians cannot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Floor {
    /// Mean of the fastest third.
    pub ns: f64,
    /// The range of the fastest third as a share of its mean.
    pub spread: f64,
}

impl Floor {
    /// `None` where there is no sample, or where one is no time at all.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let fast = &sorted[..sorted.len().div_ceil(3)];
        let ns = fast.iter().sum::<f64>() / fast.len() as f64;
        let range = fast.last()? - fast.first()?;
        (ns.is_finite() && ns > 0.0).then(|| Self { ns, spread: range / ns })
    }
}

/// How many times as fast `choice` is as `base`.
pub(super) fn ratio(base: &[f64], choice: &[f64]) -> Option<f64> {
    Some(Floor::of(base)?.ns / Floor::of(choice)?.ns)
}

/// How many times as fast over several cases: the geometric mean.
pub(super) fn speed(base: &[Vec<f64>], choice: &[Vec<f64>]) -> f64 {
    let ratios: Vec<f64> = base.iter().zip(choice).filter_map(|(base, choice)| ratio(base, choice)).collect();
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (sum / ratios.len().max(1) as f64).exp()
}

/// Samples that the spread of the fastest third is taken for as it is.
const USUAL_SAMPLES: f64 = 21.0;

/// The largest speed that chance alone is likely to make of equal choices.
///
/// The mean of the fastest third strays by about 0.3 of its spread; three times that, of both sides and
/// over all cases, leaves one mistake in hundreds. It strays less the more samples it is of.
pub(super) fn chance(base: &[Vec<f64>], choice: &[Vec<f64>]) -> f64 {
    let more = |samples: &Vec<f64>| (USUAL_SAMPLES / samples.len().max(1) as f64).sqrt().min(1.0);
    let spread =
        |samples: &Vec<f64>| Floor::of(samples).map_or(1.0, |floor| floor.spread.min(1.0) * more(samples));
    let squares: f64 = base.iter().chain(choice).map(spread).map(|spread| spread * spread).sum();
    (squares.sqrt() / base.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbed_samples_do_not_move_the_floor() {
        let quiet = [1.0, 1.01, 1.0, 1.02, 1.01, 1.0];
        let disturbed = [1.0, 2.9, 1.01, 3.0, 2.2, 1.0];
        assert!((ratio(&quiet, &disturbed).unwrap() - 1.0).abs() < 0.01);
        assert!(chance(&[quiet.to_vec()], &[disturbed.to_vec()]) < 1.02);
    }

    #[test]
    fn no_samples_and_no_time_are_no_ratio() {
        assert_eq!(Floor::of(&[]), None);
        assert_eq!(Floor::of(&[0.0, 0.0]), None);
        assert_eq!(ratio(&[1.0], &[]), None);
        assert_eq!(speed(&[vec![]], &[vec![]]), 1.0);
        assert_eq!(Floor::of(&[5.0]), Some(Floor { ns: 5.0, spread: 0.0 }));
    }
}

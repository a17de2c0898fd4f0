//! The median of a few samples and how sure it is.

/// Confidence that [`Summary`]'s interval aims at.
pub const CONFIDENCE: f64 = 0.95;

/// Median and confidence interval of samples of one unit.
///
/// The interval is that of the median by order statistics: it assumes no distribution, and its ends
/// are two of the samples. Below 6 samples no pair of samples reaches [`CONFIDENCE`]; the interval is
/// then the whole range. Identical samples, a single one and zeros are ordinary cases: nothing here is
/// NaN or infinite as long as the samples are finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of samples.
    pub samples: usize,
    /// Median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
}

impl Summary {
    /// Summarises finite samples; `None` where there are none. Samples that are not finite are left out.
    ///
    /// # Examples
    /// ```
    /// use restride::bench::stats::Summary;
    /// let summary = Summary::of(&[3.0, 1.0, 2.0]).unwrap();
    /// assert_eq!((summary.median, summary.low, summary.high), (2.0, 1.0, 3.0));
    /// assert!(Summary::of(&[]).is_none());
    /// ```
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.iter().copied().filter(|sample| sample.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let count = sorted.len();
        let below = rank_below(count);
        Some(Self {
            samples: count,
            median: middle(&sorted),
            low: sorted[below],
            high: sorted[count - 1 - below],
            min,
            max,
        })
    }

    /// Half the interval's width as a share of the median; 0 where both are 0.
    pub fn relative_half_width(&self) -> f64 {
        let half = (self.high - self.low) / 2.0;
        match (half == 0.0, self.median == 0.0) {
            (true, _) => 0.0,
            // An interval around zero: as wide as it can be said to be.
            (false, true) => 1.0,
            (false, false) => half / self.median.abs(),
        }
    }

    /// The same figures in another unit: each times `factor`, which is positive.
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            samples: self.samples,
            median: self.median * factor,
            low: self.low * factor,
            high: self.high * factor,
            min: self.min * factor,
            max: self.max * factor,
        }
    }
}

/// Median of samples; `None` where there are none.
pub fn median(samples: &[f64]) -> Option<f64> {
    Summary::of(samples).map(|summary| summary.median)
}

fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[half] } else { f64::midpoint(sorted[half - 1], sorted[half]) }
}

/// How many samples may lie below the interval (and as many above) so that it still covers the median
/// with [`CONFIDENCE`]: the largest `k` with `2 * P(B < k + 1) <= 1 - CONFIDENCE`, where `B` counts heads
/// of as many fair coins as there are samples; 0 where not even the whole range does.
///
/// Beyond 1000 samples the normal approximation is used: the exact first term would underflow.
fn rank_below(count: usize) -> usize {
    if count > 1000 {
        return (count as f64 / 2.0 - 0.98 * (count as f64).sqrt()) as usize - 1;
    }
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut tail = 0.0;
    let mut rank = 0;
    for k in 0..count / 2 {
        tail += term;
        if 2.0 * tail > 1.0 - CONFIDENCE {
            break;
        }
        rank = k + 1;
        term *= (count - k) as f64 / (k + 1) as f64;
    }
    // `P(B < k + 1)` is the chance that the k-th order statistic lies above the median: with `rank`
    // tails allowed the interval starts at order statistic `rank`, index `rank - 1`.
    rank.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // 95 % intervals of the median by the sign test: n = 10 leaves out 1 of each side, n = 20 5,
        // n = 101 39 (order statistics 2, 6 and 41 of tables that count from 1 are index 1, 5 and 40).
        for (count, index) in [(1, 0), (2, 0), (5, 0), (6, 0), (8, 0), (9, 1), (10, 1), (20, 5), (101, 40)] {
            assert_eq!(rank_below(count), index, "{count}");
        }
    }

    #[test]
    fn few_identical_and_zero_samples() {
        for samples in [vec![0.0], vec![7.0], vec![0.0; 5], vec![3.0; 40]] {
            let summary = Summary::of(&samples).unwrap();
            assert_eq!((summary.median, summary.low, summary.high), (samples[0], samples[0], samples[0]));
            assert_eq!(summary.relative_half_width(), 0.0);
        }
        let mixed = Summary::of(&[0.0, 0.0, 0.0, 1.0]).unwrap();
        assert!(mixed.relative_half_width().is_finite());
    }

    #[test]
    fn what_is_not_finite_is_left_out() {
        let summary = Summary::of(&[f64::NAN, 1.0, f64::INFINITY, 3.0]).unwrap();
        assert_eq!((summary.samples, summary.median, summary.max), (2, 2.0, 3.0));
        assert!(Summary::of(&[f64::NAN]).is_none());
    }

    #[test]
    fn an_outlier_does_not_move_the_median() {
        let mut samples: Vec<f64> = (0..20).map(f64::from).collect();
        samples.push(1e9);
        let summary = Summary::of(&samples).unwrap();
        assert_eq!(summary.median, 10.0);
        assert!(summary.high < 20.0);
    }

    #[test]
    fn many_samples_meet_the_exact_rule_where_it_ends() {
        assert_eq!((rank_below(1000), rank_below(1001)), (468, 468));
        assert_eq!(rank_below(10_000), 4901);
    }
}

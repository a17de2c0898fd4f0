//! Two records against each other: what changed beyond noise.

use super::record::{Case, Record};
use super::stats::Summary;
use std::collections::HashSet;

/// One case that both records hold.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its name.
    pub id: String,
    /// Unit of the samples.
    pub unit: String,
    /// Before.
    pub base: Summary,
    /// After.
    pub new: Summary,
    /// After divided by before; `None` where before is zero.
    pub ratio: Option<f64>,
    /// The least that the intervals allow.
    pub ratio_low: Option<f64>,
    /// The most that they allow; `None` where the interval of before reaches zero.
    pub ratio_high: Option<f64>,
}

impl Change {
    /// Compares two sets of samples; `None` where one is empty.
    fn new(base: &Case, new: &Case) -> Option<Self> {
        let (before, after) = (Summary::of(&base.samples)?, Summary::of(&new.samples)?);
        let over = |a: f64, b: f64| (b > 0.0).then(|| a / b).filter(|ratio| ratio.is_finite());
        Some(Self {
            id: new.id.clone(),
            unit: new.unit.clone(),
            base: before,
            new: after,
            ratio: over(after.median, before.median),
            ratio_low: over(after.low, before.high),
            ratio_high: over(after.high, before.low),
        })
    }

    /// Whether it is slower beyond noise: even the most favourable ends of the intervals say so.
    ///
    /// Below 6 samples an interval is no more than the range; two cases of one sample each differ by
    /// chance, so fewer than 3 samples on a side decide nothing.
    pub fn slower(&self) -> bool {
        self.enough() && (self.new.low > self.base.high)
    }

    /// Whether it is faster beyond noise.
    pub fn faster(&self) -> bool {
        self.enough() && (self.new.high < self.base.low)
    }

    /// Whether it is slower beyond noise and by more than a share (0.1 is 10 %).
    pub fn fails(&self, limit: f64) -> bool {
        self.slower() && self.ratio.is_none_or(|ratio| ratio > 1.0 + limit)
    }

    /// Whether both sides have samples enough to decide anything.
    pub fn enough(&self) -> bool {
        self.base.samples.min(self.new.samples) >= 3
    }
}

/// What two records have in common and what not.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Comparison {
    /// Cases of both, in the order of the newer record.
    pub changes: Vec<Change>,
    /// Names that only the older record has.
    pub only_base: Vec<String>,
    /// Names that only the newer record has.
    pub only_new: Vec<String>,
    /// Names of cases without samples or in another unit, which cannot be compared.
    pub unlike: Vec<String>,
    /// Names of cases that the older record measured and that cannot be judged: absent from the newer one, or
    /// there without samples or in another unit, or with fewer than 3 samples on a side.
    pub lost: Vec<String>,
    /// How the machines differ, a short sentence each.
    pub machines: Vec<String>,
}

impl Comparison {
    /// Compares two records.
    pub fn new(base: &Record, new: &Record) -> Self {
        let mut out = Self {
            machines: base.machine.fingerprint.differences(&new.machine.fingerprint),
            ..Self::default()
        };
        if out.machines.is_empty() && base.machine.cpu != new.machine.cpu {
            out.machines.push(format!("CPU: {} and {}", base.machine.cpu, new.machine.cpu));
        }
        for case in &new.cases {
            match base.case(&case.id) {
                None => out.only_new.push(case.id.clone()),
                Some(before) if before.unit != case.unit => out.unlike.push(case.id.clone()),
                Some(before) => match Change::new(before, case) {
                    Some(change) => out.changes.push(change),
                    None => out.unlike.push(case.id.clone()),
                },
            }
        }
        let missing = base.cases.iter().filter(|case| new.case(&case.id).is_none());
        out.only_base = missing.map(|case| case.id.clone()).collect();
        let judged: HashSet<&str> =
            out.changes.iter().filter(|change| change.enough()).map(|change| change.id.as_str()).collect();
        let measured = base.cases.iter().filter(|case| !case.samples.is_empty());
        out.lost =
            measured.map(|case| &case.id).filter(|id| !judged.contains(id.as_str())).cloned().collect();
        out
    }

    /// Changes beyond noise, the largest first.
    pub fn beyond_noise(&self) -> Vec<&Change> {
        let mut found: Vec<&Change> =
            self.changes.iter().filter(|change| change.slower() || change.faster()).collect();
        let size = |change: &Change| {
            change.ratio.filter(|ratio| *ratio > 0.0).map_or(f64::INFINITY, |ratio| ratio.ln().abs())
        };
        found.sort_by(|a, b| size(b).total_cmp(&size(a)));
        found
    }
}

/// Reads `10%`, `10 %` or `10`: a share of at least 0.
///
/// # Errors
/// A sentence where it is none.
pub fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent / 100.0),
        _ => Err(format!("\"{text}\" is no percentage: write it as 10%")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Kind;
    use super::*;

    fn record(cases: &[(&str, &[f64])]) -> Record {
        let mut record = Record::new("test");
        for (id, samples) in cases {
            let mut case = Case::new(*id, Kind::Walk);
            case.samples = samples.to_vec();
            record.cases.push(case);
        }
        record
    }

    fn change(base: &[f64], new: &[f64]) -> Change {
        Comparison::new(&record(&[("a", base)]), &record(&[("a", new)])).changes.remove(0)
    }

    #[test]
    fn only_what_the_intervals_allow_is_a_change() {
        let slower = change(&[10.0, 11.0, 12.0], &[20.0, 21.0, 22.0]);
        assert!(slower.slower() && !slower.faster() && slower.fails(0.1) && !slower.fails(1.0));
        assert!(
            slower.ratio_low.unwrap() < slower.ratio.unwrap()
                && slower.ratio.unwrap() < slower.ratio_high.unwrap()
        );
        assert!(change(&[20.0; 5], &[10.0; 5]).faster());
        let noise = change(&[10.0, 11.0, 30.0], &[20.0, 21.0, 22.0]);
        assert!(!noise.slower() && !noise.fails(0.0));
        // Identical samples on both sides: no change; a tiny but sure one is no failure at 10 %.
        assert!(!change(&[5.0; 9], &[5.0; 9]).slower());
        assert!(change(&[5.0; 9], &[5.1; 9]).slower() && !change(&[5.0; 9], &[5.1; 9]).fails(0.1));
    }

    #[test]
    fn single_samples_and_zeros_decide_nothing_and_break_nothing() {
        let single = change(&[1.0], &[100.0]);
        assert!(!single.slower() && !single.enough() && single.ratio == Some(100.0));
        let undecided = |base: &[f64], new: &[f64]| {
            Comparison::new(&record(&[("a", base)]), &record(&[("a", new)])).lost == ["a"]
        };
        assert!(undecided(&[1.0], &[9.0; 5]) && undecided(&[1.0; 5], &[9.0, 9.0]));
        assert!(!undecided(&[1.0; 3], &[9.0; 3]));
        let from_zero = change(&[0.0; 5], &[3.0; 5]);
        assert_eq!((from_zero.ratio, from_zero.ratio_low, from_zero.ratio_high), (None, None, None));
        assert!(from_zero.slower() && from_zero.fails(0.1));
        let to_zero = change(&[3.0; 5], &[0.0; 5]);
        assert!(to_zero.faster() && to_zero.ratio == Some(0.0));
        let base = record(&[("a", &[0.0; 5]), ("b", &[1.0; 5])]);
        let new = record(&[("a", &[1.0; 5]), ("b", &[9.0; 5])]);
        assert_eq!(Comparison::new(&base, &new).beyond_noise().len(), 2);
    }

    #[test]
    fn what_cannot_be_compared_is_named() {
        let base = record(&[("gone", &[1.0]), ("empty", &[]), ("same", &[1.0; 3])]);
        let mut new = record(&[("same", &[1.0; 3]), ("empty", &[1.0]), ("fresh", &[1.0])]);
        let mut events = Case::new("gone", Kind::Walk);
        events.unit = "cycles".to_owned();
        let comparison = Comparison::new(&base, &new);
        assert_eq!(comparison.only_base, ["gone"]);
        // One that the older record has no samples of is no loss; one that changed its unit is.
        assert_eq!(comparison.lost, ["gone"]);
        assert_eq!(
            (comparison.only_new, comparison.unlike),
            (vec!["fresh".to_owned()], vec!["empty".to_owned()])
        );
        new.cases.push(events);
        let comparison = Comparison::new(&base, &new);
        assert!(comparison.unlike.contains(&"gone".to_owned()) && comparison.only_base.is_empty());
        assert_eq!(comparison.lost, ["gone"]);
    }

    #[test]
    fn other_machines_are_noticed() {
        let (base, mut new) = (record(&[]), record(&[]));
        assert!(Comparison::new(&base, &new).machines.is_empty());
        new.machine.cpu = "Another".to_owned();
        assert_eq!(Comparison::new(&base, &new).machines.len(), 1);
        new.machine.fingerprint.brand = Some("Another".to_owned());
        assert!(!Comparison::new(&base, &new).machines.is_empty());
    }

    #[test]
    fn percentages_are_read() {
        assert_eq!(parse_percent("10%"), Ok(0.1));
        assert_eq!(parse_percent(" 2.5 % "), Ok(0.025));
        assert_eq!(parse_percent("0"), Ok(0.0));
        for bad in ["", "%", "ten", "-1%", "NaN", "inf%", "1e999"] {
            assert!(parse_percent(bad).is_err(), "{bad}");
        }
    }
}

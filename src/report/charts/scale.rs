//! Axes: where a value goes, and which values get a tick.

use crate::report::num;

/// How values of an axis are written.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Format {
    /// 1024-based bytes; ticks at powers of two.
    Bytes,
    /// A number with three digits and this unit.
    Unit(&'static str),
    /// Integers.
    Count,
}

impl Format {
    /// The value with its unit.
    pub(crate) fn show(self, v: f64) -> String {
        match self {
            Self::Bytes => num::bytes(v),
            Self::Unit("") => num::sig3(v),
            Self::Unit(u) => format!("{} {u}", num::sig3(v)),
            Self::Count => num::count(v),
        }
    }

    fn tick(self, v: f64) -> String {
        match self {
            Self::Bytes => num::bytes(v).replace("iB", ""),
            Self::Unit(_) if v != 0.0 && (v.abs() < 1e-4 || v.abs() >= 1e6) => format!("{v:.0e}"),
            Self::Unit(_) => format!("{}", (v * 1e6).round() / 1e6),
            Self::Count => num::count(v),
        }
    }
}

/// One axis of a chart.
#[derive(Clone)]
pub(crate) struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// How its values are written.
    pub format: Format,
    /// Logarithmic.
    pub log: bool,
}

impl Axis {
    pub(crate) fn new(label: &str, format: Format, log: bool) -> Self {
        Self { label: label.into(), format, log }
    }

    /// Whether a value can be drawn.
    pub(crate) fn can(&self, v: f64) -> bool {
        v.is_finite() && v.abs() < 1e18 && (v > 1e-18 || !self.log && (v == 0.0 || v < -1e-18))
    }
}

/// A range of values laid over a range of pixels.
pub(crate) struct Scale<'a> {
    axis: &'a Axis,
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl<'a> Scale<'a> {
    /// Over all `values` that the axis can show.
    pub(crate) fn over(axis: &'a Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values.filter(|v| axis.can(*v)) {
            low = low.min(v);
            high = high.max(v);
        }
        if low > high {
            (low, high) = if axis.log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if axis.log {
            if high / low < 1.5 {
                (low, high) = (low / 1.5, high * 1.5);
            }
            (low, high) = (low / (high / low).powf(0.04), high * (high / low).powf(0.04));
        } else {
            // A linear axis shows zero unless the values sit far from it.
            if low > 0.0 && low < 0.7 * high {
                low = 0.0;
            }
            if high <= low {
                (low, high) = (low - 0.5 * low.abs().max(1.0), high + 0.5 * high.abs().max(1.0));
            }
            let room = 0.05 * (high - low);
            high += room;
            if low != 0.0 {
                low -= room;
            }
        }
        Self { axis, low, high, from, to }
    }

    /// The pixel of a value.
    pub(crate) fn at(&self, v: f64) -> f64 {
        let t = if self.axis.log {
            (v / self.low).ln() / (self.high / self.low).ln()
        } else {
            (v - self.low) / (self.high - self.low)
        };
        self.from + t.clamp(-0.02, 1.02) * (self.to - self.from)
    }

    /// Whether a value lies on the axis.
    pub(crate) fn holds(&self, v: f64) -> bool {
        v >= self.low && v <= self.high
    }

    /// Ticks: pixel and text, at most about `most`.
    pub(crate) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let most = most.max(2);
        let mut values = Vec::new();
        if self.axis.log && self.axis.format == Format::Bytes {
            let (a, b) = (self.low.log2().ceil() as i32, self.high.log2().floor() as i32);
            let step = ((b - a + 1).max(1) as usize).div_ceil(most) as i32;
            values.extend((a..=b).filter(|k| k.rem_euclid(step.max(1)) == 0).map(|k| 2f64.powi(k)));
        } else if self.axis.log {
            let (a, b) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
            let every = ((b - a) as usize).div_ceil(most).max(1) as i32;
            const FINE: [f64; 13] = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
            for steps in [&FINE[..], &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0], &[1.0, 2.0, 5.0], &[1.0, 3.0], &[1.0]] {
                values = (a..=b)
                    .filter(|k| k.rem_euclid(every) == 0)
                    .flat_map(|k| steps.iter().map(move |s| s * 10f64.powi(k)))
                    .filter(|v| self.holds(*v))
                    .collect();
                if values.len() <= most {
                    break;
                }
            }
        } else {
            let raw = (self.high - self.low) / most as f64;
            let unit = 10f64.powf(raw.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * unit).into_iter().find(|s| *s >= raw).unwrap_or(raw);
            let first = (self.low / step).ceil();
            values.extend((0..=most * 2).map(|i| (first + i as f64) * step).take_while(|v| *v <= self.high));
        }
        values.into_iter().map(|v| (self.at(v), self.axis.format.tick(v))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_difficult_ranges() {
        for log in [false, true] {
            for format in [Format::Bytes, Format::Count, Format::Unit("ns")] {
                let axis = Axis::new("x", format, log);
                for values in [
                    vec![],
                    vec![0.0],
                    vec![5.0],
                    vec![5.0, 5.0],
                    vec![1e-300, 1e300],
                    vec![-3.0, 4.0],
                    vec![f64::NAN],
                ] {
                    let s = Scale::over(&axis, values.iter().copied(), 0.0, 100.0);
                    let ticks = s.ticks(6);
                    assert!(ticks.len() <= 14, "{values:?} {}", ticks.len());
                    for (x, t) in ticks {
                        assert!(
                            x.is_finite() && !t.contains("NaN") && !t.contains("inf"),
                            "{values:?} {x} {t}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn powers_of_two_for_bytes() {
        let axis = Axis::new("size", Format::Bytes, true);
        let s = Scale::over(&axis, [16384.0, 67108864.0].into_iter(), 0.0, 1.0);
        let t: Vec<String> = s.ticks(7).into_iter().map(|t| t.1).collect();
        assert_eq!(t, ["16 K", "64 K", "256 K", "1 M", "4 M", "16 M", "64 M"]);
    }
}

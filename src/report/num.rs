//! Numbers as people read them: three significant digits, one unit.

use crate::error::words::plural;

/// Three significant digits without an exponent where one can do without.
pub(crate) fn sig3(v: f64) -> String {
    if !v.is_finite() {
        return "unknown".into();
    }
    if v == 0.0 {
        return "0".into();
    }
    let magnitude = v.abs().log10().floor();
    if !(-4.0..15.0).contains(&magnitude) {
        return format!("{v:.2e}");
    }
    let decimals = (2.0 - magnitude).clamp(0.0, 6.0) as usize;
    // Rounding may carry into one more digit (9.996 is 10.0, not 10.00).
    let text = format!("{v:.decimals$}");
    let carried = text.trim_start_matches('-').chars().filter(char::is_ascii_digit).count() > decimals + 1
        && text.parse::<f64>().is_ok_and(|t| t.abs().log10().floor() > magnitude);
    if carried && decimals > 0 { format!("{v:.*}", decimals - 1) } else { text }
}

/// A time with its unit; the argument is in ns.
pub(crate) fn time(ns: f64) -> String {
    let (v, unit) = match ns.abs() {
        a if !a.is_finite() => return "unknown".into(),
        a if a < 1e3 => (ns, "ns"),
        a if a < 1e6 => (ns / 1e3, "µs"),
        a if a < 1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", sig3(v))
}

/// A size with a 1024-based unit.
pub(crate) fn bytes(v: f64) -> String {
    if !v.is_finite() || v < 0.0 {
        return "unknown".into();
    }
    let mut value = v;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1023.95 {
            let text = if value.fract() == 0.0 { format!("{value:.0}") } else { sig3(value) };
            return format!("{text} {unit}");
        }
        value /= 1024.0;
    }
    format!("{} PiB", sig3(value))
}

/// A count with thin gaps between thousands.
pub(crate) fn count(v: f64) -> String {
    if !v.is_finite() {
        return "unknown".into();
    }
    if v.abs() >= 1e15 {
        return format!("{v:.2e}");
    }
    let digits = format!("{:.0}", v.abs());
    let mut out = String::from(if v <= -0.5 { "−" } else { "" });
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// A count and its noun, in the plural unless the count is 1.
pub(crate) fn counts(v: f64, noun: &str) -> String {
    format!("{} {}", count(v), if v == 1.0 { noun.to_owned() } else { plural(noun) })
}

/// A factor such as `4.2×`.
pub(crate) fn times(v: f64) -> String {
    if v.is_finite() && v >= 9.95 { format!("{v:.0}×") } else { format!("{}×", sig2(v)) }
}

/// Two digits after the point for ratios of everyday size.
pub(crate) fn ratio(v: f64) -> String {
    if v.is_finite() && v.abs() >= 0.005 && v.abs() < 100.0 { format!("{v:.2}") } else { sig3(v) }
}

fn sig2(v: f64) -> String {
    if v.is_finite() && (0.095..99.5).contains(&v.abs()) { format!("{v:.1}") } else { sig3(v) }
}

/// A share such as `3.4 %`; the argument is a fraction.
pub(crate) fn percent(v: f64) -> String {
    if !v.is_finite() {
        return "unknown".into();
    }
    let p = v * 100.0;
    if p.abs() >= 9.95 { format!("{p:.0} %") } else { format!("{p:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let got: Vec<String> =
            [0.0, 0.5, 9.996, 1.0, 12.34, 99.96, 123.4, 1234.0, -0.0321, 1e-30, 1e300].map(sig3).into();
        assert_eq!(
            got,
            ["0", "0.500", "10.0", "1.00", "12.3", "100", "123", "1234", "-0.0321", "1.00e-30", "1.00e300"]
        );
        assert_eq!(sig3(f64::NAN), "unknown");
    }

    #[test]
    fn units() {
        assert_eq!(time(0.25), "0.250 ns");
        assert_eq!(time(1500.0), "1.50 µs");
        assert_eq!(bytes(49152.0), "48 KiB");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(bytes(f64::NAN), "unknown");
        assert_eq!(count(1_048_576.0), "1\u{202f}048\u{202f}576");
        assert_eq!(count(-12.0), "−12");
        assert_eq!([1.0, 2000.0].map(|n| counts(n, "line")), ["1 line", "2\u{202f}000 lines"]);
        assert_eq!(times(14.2), "14×");
        assert_eq!(times(1.84), "1.8×");
        assert_eq!(percent(0.034), "3.4 %");
        assert_eq!(ratio(0.823), "0.82");
    }
}

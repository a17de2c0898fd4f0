//! Cache sizes as text: `L1d=48K/12/64,L2=2M/16/64,L3=300M/20/64`.
//!
//! The same notation serves `--caches` and the environment variable [`CACHES_VARIABLE`].

use std::fmt;

/// Name of the environment variable that replaces what the machine says of its data caches.
pub const CACHES_VARIABLE: &str = "RESTRIDE_CACHES";

/// Ways and sets above which a level is refused: far more than hardware has, small enough to model.
const MAX_WAYS: u64 = 65_536;
const MAX_BYTES: u64 = 1 << 40;

/// One data-cache level of known geometry.
///
/// The number of sets, `bytes / (ways * line_bytes)`, is whole and at least 1; it need not be a power
/// of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheSpec {
    /// 1 for L1d, 2 for L2 and so on.
    pub level: u8,
    /// Capacity in bytes.
    pub bytes: usize,
    /// Lines a set holds.
    pub ways: usize,
    /// Bytes of one line, a power of two.
    pub line_bytes: usize,
}

impl CacheSpec {
    /// Number of sets.
    pub fn sets(&self) -> usize {
        self.bytes / (self.ways * self.line_bytes)
    }

    /// `L1d`, `L2`, `L3`, `L4`.
    pub fn name(&self) -> &'static str {
        match self.level {
            1 => "L1d",
            2 => "L2",
            3 => "L3",
            _ => "L4",
        }
    }
}

impl fmt::Display for CacheSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}/{}/{}", self.name(), short_bytes(self.bytes), self.ways, self.line_bytes)
    }
}

/// Why a list of cache sizes was refused; one sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct CachesError {
    /// What is wrong, where, and what would be right.
    pub reason: String,
}

/// Reads a list of cache sizes, `NAME=SIZE/WAYS/LINE` separated by commas, ascending by level.
///
/// Names are `L1d`, `L2`, `L3` and `L4`; sizes are bytes with an optional `K`, `M` or `G` (1024-based).
///
/// # Errors
/// An unknown or repeated name, a missing or zero number, a line that is no power of two, a size that
/// is no whole number of sets or above 1 TiB.
///
/// # Examples
/// ```
/// let caches = restride::machine::caches::parse("L1d=48K/12/64,L2=2M/16/64").unwrap();
/// assert_eq!((caches[0].bytes, caches[0].sets()), (49_152, 64));
/// assert!(restride::machine::caches::parse("L1d=0/12/64").is_err());
/// ```
pub fn parse(text: &str) -> Result<Vec<CacheSpec>, CachesError> {
    let mut specs: Vec<CacheSpec> = Vec::new();
    for item in text.split(',') {
        let spec = parse_level(item.trim())
            .map_err(|why| refuse(format!("cache sizes \"{text}\": \"{}\" {why}", item.trim())))?;
        if specs.iter().any(|other| other.level == spec.level) {
            return Err(refuse(format!(
                "cache sizes \"{text}\": {} is given twice, name each level once",
                spec.name()
            )));
        }
        specs.push(spec);
    }
    specs.sort_by_key(|spec| spec.level);
    Ok(specs)
}

/// The caches that [`CACHES_VARIABLE`] names, or `None` where it is unset or empty.
///
/// # Errors
/// As [`parse`], with the name of the variable in front.
pub fn from_env() -> Result<Option<Vec<CacheSpec>>, CachesError> {
    match std::env::var(CACHES_VARIABLE) {
        Ok(text) if text.trim().is_empty() => Ok(None),
        Ok(text) => {
            parse(&text).map(Some).map_err(|error| refuse(format!("{CACHES_VARIABLE}: {}", error.reason)))
        }
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(refuse(format!("{CACHES_VARIABLE} is not text: write it as {EXAMPLE}")))
        }
    }
}

/// Writes bytes as the notation reads them: `48K`, `2M`, `1000`.
pub fn short_bytes(bytes: usize) -> String {
    for (unit, name) in [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")] {
        if bytes != 0 && bytes.is_multiple_of(unit) {
            return format!("{}{name}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// Reads a byte size with an optional `K`, `M`, `G` or `T` (1024-based): `32K`, `64M`, `4096`.
///
/// # Errors
/// No number, another suffix, or a size that does not fit 64 bits; the text says which.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(['K', 'k', 'M', 'm', 'G', 'g', 'T', 't']);
    let unit: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        "T" | "t" => 1 << 40,
        _ => return Err(format!("has more than one unit in \"{text}\"")),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("has no size in \"{text}\": write bytes with an optional K, M or G"));
    }
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| format!("has a size that does not fit 64 bits, \"{text}\""))
}

const EXAMPLE: &str = "L1d=48K/12/64,L2=2M/16/64";

fn refuse(reason: String) -> CachesError {
    CachesError { reason }
}

fn parse_level(item: &str) -> Result<CacheSpec, String> {
    let Some((name, geometry)) = item.split_once('=') else {
        return Err(format!("is no cache level: write NAME=SIZE/WAYS/LINE as in {EXAMPLE}"));
    };
    let level = match name.trim().to_ascii_lowercase().as_str() {
        "l1d" | "l1" => 1,
        "l2" => 2,
        "l3" => 3,
        "l4" => 4,
        _ => return Err("names no data cache: use L1d, L2, L3 or L4".to_owned()),
    };
    let fields: Vec<&str> = geometry.split('/').map(str::trim).collect();
    let &[size, ways, line] = fields.as_slice() else {
        return Err(format!("has {} fields, expected SIZE/WAYS/LINE", fields.len()));
    };
    let bytes = parse_bytes(size)?;
    let ways = parse_count(ways, "ways")?;
    let line = parse_count(line, "line bytes")?;
    if bytes == 0 || ways == 0 || line == 0 {
        return Err("has a zero: size, ways and line must be at least 1".to_owned());
    }
    if bytes > MAX_BYTES || ways > MAX_WAYS {
        return Err("is larger than any cache: at most 1024G and 65536 ways".to_owned());
    }
    if !line.is_power_of_two() || line > 65_536 {
        return Err(format!("has a line of {line} bytes, expected a power of two up to 65536"));
    }
    if !bytes.is_multiple_of(ways * line) {
        return Err(format!("is no whole number of sets: {bytes} bytes are no multiple of {ways} x {line}"));
    }
    let fits = |value: u64| usize::try_from(value).map_err(|_| "does not fit this machine".to_owned());
    Ok(CacheSpec { level, bytes: fits(bytes)?, ways: fits(ways)?, line_bytes: fits(line)? })
}

fn parse_count(text: &str, what: &str) -> Result<u64, String> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("has \"{text}\" for {what}, expected a whole number"));
    }
    match text.parse::<u64>() {
        Ok(number) if number <= u64::from(u32::MAX) => Ok(number),
        _ => Err(format!("has \"{text}\" for {what}, which is too large")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_example_is_read() {
        let caches = parse("L1d=48K/12/64,L2=2M/16/64,L3=300M/20/64").unwrap();
        assert_eq!(caches.len(), 3);
        assert_eq!(caches[0], CacheSpec { level: 1, bytes: 48 << 10, ways: 12, line_bytes: 64 });
        assert_eq!(caches[2].bytes, 300 << 20);
        // 300 MiB in 20 ways: a number of sets that is no power of two.
        assert_eq!(caches[2].sets(), 245_760);
    }

    #[test]
    fn order_case_and_spaces_do_not_matter() {
        let caches = parse(" l2=64k/4/64 , L1D = 1000/5/8 ").unwrap();
        assert_eq!(caches.iter().map(|c| c.level).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(caches[0].sets(), 25);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = "L1d=48K/12/64,L2=1280K/10/64,L3=1000/5/8";
        let caches = parse(text).unwrap();
        let written: Vec<String> = caches.iter().map(ToString::to_string).collect();
        assert_eq!(written.join(","), text);
    }

    #[test]
    fn nonsense_is_refused_in_one_sentence() {
        for bad in [
            "",
            "L1d",
            "L1d=",
            "L1d=48K",
            "L1d=48K/12",
            "L1d=48K/12/64/1",
            "L1i=32K/8/64",
            "L9=1M/8/64",
            "L1d=0/12/64",
            "L1d=48K/0/64",
            "L1d=48K/12/0",
            "L1d=48K/12/48",
            "L1d=48K/7/64",
            "L1d=-1/12/64",
            "L1d=48KK/12/64",
            "L1d=K/12/64",
            "L1d=1.5M/12/64",
            "L1d=99999999999999999999/12/64",
            "L1d=18446744073709551615G/12/64",
            "L1d=2048G/16/64",
            "L1d=48K/99999999999999999999/64",
            "L1d=48K/12/64,",
            "L1d=48K/12/64,L1d=48K/12/64",
            "L1d=48K/12/64;L2=2M/16/64",
            "L1d=４８K/12/64",
        ] {
            let error = parse(bad).expect_err(bad);
            assert!(!error.reason.contains('\n') && error.reason.len() > 20, "{bad}: {error}");
        }
    }

    #[test]
    fn bytes_with_units() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("64M"), Ok(64 << 20));
        assert_eq!(parse_bytes("1g"), Ok(1 << 30));
        for bad in ["", "M", "1X", "1KM", "1 K", "-1", "99999999T"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
        assert_eq!(short_bytes(0), "0");
        assert_eq!(short_bytes(1536), "1536");
        assert_eq!(short_bytes(3 << 20), "3M");
    }
}

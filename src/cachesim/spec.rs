//! What is modelled: the caches, the TLB and the options.

use crate::Error;
use crate::machine::caches;
use serde::Serialize;

/// One cache level: its name, its size in bytes, its ways and its line in bytes.
///
/// ```
/// use restride::cachesim::CacheSpec;
///
/// let l1 = CacheSpec::new("L1d", 48 << 10, 12, 64);
/// assert_eq!(l1.sets().unwrap(), 64);
/// assert!(CacheSpec::new("L1d", 50_000, 12, 64).sets().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CacheSpec {
    /// Name such as `L1d`, `L2` or `L3`; unique in a list.
    pub level: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Lines a set.
    pub ways: u64,
    /// Bytes a line.
    pub line: u64,
}

impl CacheSpec {
    /// A level of `bytes` bytes with `ways` lines of `line` bytes in each set.
    pub fn new(level: &str, bytes: u64, ways: u64, line: u64) -> Self {
        Self { level: level.to_owned(), bytes, ways, line }
    }

    /// Number of sets, `bytes / (ways * line)`.
    ///
    /// # Errors
    ///
    /// `Caches` where one of the three is 0 or where the size is not a multiple of `ways * line`.
    pub fn sets(&self) -> Result<u64, Error> {
        let Self { level, bytes, ways, line } = self;
        if *bytes == 0 || *ways == 0 || *line == 0 {
            return Err(Error::Caches {
                reason: format!(
                    "cache {level} has {bytes} bytes, {ways} ways and lines of {line} bytes: all three must be at least 1"
                ),
            });
        }
        match ways.checked_mul(*line) {
            Some(set) if bytes % set == 0 => Ok(bytes / set),
            _ => Err(Error::Caches {
                reason: format!(
                    "cache {level} of {bytes} bytes cannot be cut into sets of {ways} ways of {line} bytes: give a size that is a multiple of ways times line"
                ),
            }),
        }
    }
}

impl From<&caches::CacheSpec> for CacheSpec {
    fn from(spec: &caches::CacheSpec) -> Self {
        Self::new(spec.name(), spec.bytes as u64, spec.ways as u64, spec.line_bytes as u64)
    }
}

/// How a full set chooses the line that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Replacement {
    /// The least recently used line leaves.
    #[default]
    Lru,
    /// A binary tree of bits points away from recent use; only for a power-of-two number of ways.
    TreePlru,
}

/// A translation buffer: how many page addresses it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TlbSpec {
    /// Page addresses held in all.
    pub entries: u64,
    /// Page addresses a set.
    pub ways: u64,
    /// Bytes a page.
    pub page_bytes: u64,
}

impl TlbSpec {
    /// A TLB of `entries` pages of `page_bytes` bytes with `ways` entries a set.
    pub fn new(entries: u64, ways: u64, page_bytes: u64) -> Self {
        Self { entries, ways, page_bytes }
    }

    /// The same thing seen as a cache whose lines are pages.
    pub(super) fn as_cache(&self) -> Result<CacheSpec, Error> {
        let bytes = self
            .entries
            .checked_mul(self.page_bytes)
            .ok_or(Error::Overflow { what: "the reach of the TLB" })?;
        Ok(CacheSpec::new("TLB", bytes, self.ways, self.page_bytes))
    }
}

/// What is modelled beyond plain LRU levels; everything is off by default.
///
/// ```
/// use restride::cachesim::{Options, TlbSpec};
///
/// let mut options = Options::default();
/// options.tlb = Some(TlbSpec::new(64, 4, 4096));
/// options.classes = true;
/// assert!(!options.prefetch_next_line);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Options {
    /// Replacement inside a set, the same at every level.
    pub replacement: Replacement,
    /// A miss at the first level also requests the line after it, through all levels.
    pub prefetch_next_line: bool,
    /// A TLB in front of the caches that every access, streaming stores included, goes through.
    pub tlb: Option<TlbSpec>,
    /// Sorts the misses of every level into compulsory, capacity and conflict.
    pub classes: bool,
}

impl Options {
    /// Whether this is the plain model.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_need_not_be_a_power_of_two() {
        assert_eq!(CacheSpec::new("L3", 300 << 20, 20, 64).sets().unwrap(), 245_760);
        assert_eq!(CacheSpec::new("x", 96, 1, 32).sets().unwrap(), 3);
    }

    #[test]
    fn what_does_not_divide_is_refused() {
        for (bytes, ways, line) in
            [(0, 1, 64), (64, 0, 64), (64, 1, 0), (100, 1, 64), (64, 2, 64), (64, u64::MAX, 3)]
        {
            let error = CacheSpec::new("L2", bytes, ways, line).sets().unwrap_err();
            assert_eq!(error.kind(), "caches");
            assert!(error.to_string().contains("L2"), "{error}");
        }
    }

    #[test]
    fn a_tlb_is_a_cache_of_pages() {
        let cache = TlbSpec::new(64, 4, 4096).as_cache().unwrap();
        assert_eq!((cache.bytes, cache.sets().unwrap()), (64 * 4096, 16));
        assert!(TlbSpec::new(u64::MAX, 4, 4096).as_cache().is_err());
    }
}

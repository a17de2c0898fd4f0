//! The values that plans are made with, and where each came from.

use std::sync::OnceLock;

/// Where a tuning value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// Chosen by measurements on other machines.
    Default,
    /// Read from this machine's topology.
    Machine,
    /// Found by a search on this machine.
    Profile,
    /// Set by the caller.
    Caller,
}

impl Origin {
    /// A word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Machine => "machine",
            Self::Profile => "profile",
            Self::Caller => "caller",
        }
    }
}

/// A tuning value and where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value {
    /// The value, in the unit that its field names.
    pub value: usize,
    /// Where it came from.
    pub origin: Origin,
}

impl Value {
    /// A value with its origin.
    pub fn new(value: usize, origin: Origin) -> Self {
        Self { value, origin }
    }
}

const fn preset(value: usize) -> Value {
    Value { value, origin: Origin::Default }
}

/// The values that a [`Plan`](crate::Plan) is made with.
///
/// ```
/// use restride::Tuning;
/// let tuning = Tuning::default();
/// assert!(tuning.l1d_bytes.value > 0 && tuning.l2_bytes.value > tuning.l1d_bytes.value);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Tuning {
    /// First-level data cache of one core.
    pub l1d_bytes: Value,
    /// Second-level cache of one core.
    pub l2_bytes: Value,
    /// Last-level cache, shared.
    pub l3_bytes: Value,
    /// Stores bypass the caches from this many bytes on, source and destination together.
    pub streaming_from_bytes: Value,
    /// Several threads share the work from this many destination bytes on.
    pub parallel_from_bytes: Value,
    /// How far a direct transpose tile walks along each source row.
    pub tile_src_bytes: Value,
    /// How much a direct transpose tile writes of each destination row.
    pub tile_dst_bytes: Value,
    /// How far a staged transpose tile walks along each source row.
    pub staged_src_bytes: Value,
    /// How much a staged transpose tile writes of each destination row.
    pub staged_dst_bytes: Value,
}

impl Tuning {
    /// Values for a machine with these caches (bytes); 0 where a size is unknown.
    pub fn for_caches(l1d: usize, l2: usize, l3: usize) -> Self {
        let known = |value: usize, fallback: usize| match value {
            0 => preset(fallback),
            _ => Value::new(value, Origin::Machine),
        };
        let l2_bytes = known(l2, 1 << 20);
        Self {
            l1d_bytes: known(l1d, 32 << 10),
            l2_bytes,
            l3_bytes: known(l3, 16 << 20),
            streaming_from_bytes: Value::new((l2_bytes.value * 3 / 2).max(1 << 20), l2_bytes.origin),
            parallel_from_bytes: preset(2 << 20),
            tile_src_bytes: preset(4 << 10),
            tile_dst_bytes: preset(128),
            staged_src_bytes: preset(128),
            staged_dst_bytes: preset(1 << 10),
        }
    }

    /// The values of this machine, read once.
    pub fn machine() -> &'static Self {
        static MACHINE: OnceLock<Tuning> = OnceLock::new();
        MACHINE.get_or_init(|| Self::for_caches(0, 0, 0))
    }
}

impl Default for Tuning {
    fn default() -> Self {
        *Self::machine()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_caches_say_default_and_known_ones_machine() {
        let t = Tuning::for_caches(48 << 10, 0, 0);
        assert_eq!(t.l1d_bytes, Value::new(48 << 10, Origin::Machine));
        assert_eq!(t.l2_bytes.origin, Origin::Default);
        assert_eq!(t.streaming_from_bytes.origin, Origin::Default);
    }
}

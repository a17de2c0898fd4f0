//! Padding as constraints on the indices (rule L7).
//!
//! A padded position is one that breaks at least one constraint
//! `low <= sum(coefficient[a] * index[a]) < high`. One axis a constraint is the common case: a box.

use smallvec::SmallVec;

/// One constraint: `low <= sum(coefficients[a] * index[a]) < high`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Constraint {
    /// One coefficient per axis, zero for axes that have no say.
    pub coefficients: SmallVec<[isize; 6]>,
    /// Smallest allowed sum.
    pub low: isize,
    /// One past the largest allowed sum.
    pub high: isize,
}

/// The constraints that a position must meet to have memory behind it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Mask {
    pub(super) constraints: Vec<Constraint>,
}

impl Mask {
    /// The constraints, each of which every valid position meets.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }
}

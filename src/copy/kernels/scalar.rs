//! The portable level: plain Rust loops.

use super::{Isa, LevelEntry, level::Level, stage, tile};

struct Scalar;

impl Level for Scalar {}

pub(super) const ENTRY: LevelEntry = LevelEntry {
    isa: Isa::Scalar,
    present: || true,
    tile: run,
    stream: stage::stream::<Scalar>,
    fence: Scalar::fence,
};

/// # Safety
/// As [`tile::run`].
unsafe fn run(t: &tile::Tile<'_>) {
    // SAFETY: the caller's promise is the callee's.
    unsafe { tile::run::<Scalar>(t) }
}

//! The portable level: plain Rust loops.

use super::{Isa, LevelEntry, level::Level, stage, tile};

struct Scalar;

impl Level for Scalar {
    type Recipe = ();
    type Run = ();

    unsafe fn apart<P: tile::Part>(t: &tile::Tile<'_>) {
        // SAFETY: the caller's promise is the callee's.
        unsafe { P::run::<Self>(t) }
    }
}

pub(super) const ENTRY: LevelEntry = LevelEntry {
    isa: Isa::Scalar,
    present: || true,
    tile: tile::run::<Scalar>,
    stream: stage::stream::<Scalar>,
    fence: Scalar::fence,
};

//! The loops that move bytes: instruction-set levels, and one macro-kernel written over them.
//!
//! Nothing here knows layouts, only pointers, extents and strides. A tile is two-dimensional:
//! `na` rows by `nb` columns, where a row is dense in the destination; the offsets of rows and
//! columns come from tables, so that fused axes cost nothing. Adding a level is one file, one `mod`
//! line and one line in [`LEVELS`].

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod bordered;
mod cells;
#[cfg(any(test, feature = "instruments"))]
mod guard;
mod isa;
mod level;
pub(crate) mod map;
#[cfg(any(test, feature = "instruments"))]
pub(crate) mod replay;
mod scalar;
mod stage;
mod tile;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64", test, feature = "instruments"))]
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub(crate) use cells::{CELL_BYTES, CELL_REACH};
#[cfg(any(test, feature = "instruments"))]
pub use guard::{Guarded, Place};
pub use isa::Isa;
pub(crate) use tile::{Border, Kind, MAX_STEPS, STAGING_BYTES, Step, Tile};
pub(crate) use vector::crowds as crowds_narrow;

/// The function that moves one tile.
pub(crate) type TileFn = unsafe fn(&Tile<'_>);

/// One instruction-set level: its name, whether this CPU has it, its tile function and its fence.
pub(crate) struct LevelEntry {
    pub(crate) isa: Isa,
    pub(crate) present: fn() -> bool,
    pub(crate) tile: TileFn,
    /// Moves a run, whole lines past the caches: (destination, source, bytes).
    pub(crate) stream: unsafe fn(*mut u8, *const u8, usize),
    pub(crate) fence: fn(),
}

/// Every level of this target, best first. The last one is portable and always present.
pub(crate) static LEVELS: &[LevelEntry] = &[
    #[cfg(target_arch = "x86_64")]
    x86_64::avx512::ENTRY,
    #[cfg(target_arch = "x86_64")]
    x86_64::avx2::ENTRY,
    #[cfg(target_arch = "x86_64")]
    x86_64::sse2::ENTRY,
    #[cfg(target_arch = "aarch64")]
    aarch64::neon::ENTRY,
    scalar::ENTRY,
];

/// The entry of a level that [`Isa::active`] or a plan named.
pub(crate) fn entry(isa: Isa) -> &'static LevelEntry {
    LEVELS.iter().find(|level| level.isa == isa).unwrap_or(&LEVELS[LEVELS.len() - 1])
}

/// Asks for the line at an address to be read into the caches, where the architecture can; any address may be given.
#[inline(always)]
pub(crate) fn ask(address: usize) {
    level::prefetch(std::ptr::without_provenance(address));
}

/// Elements along one edge of the squares that transpose tiles are walked in: one line of them.
pub(crate) fn square_edge(element: usize) -> usize {
    match element {
        ..=16 => 64 >> element.next_power_of_two().trailing_zeros(),
        _ => 8,
    }
}

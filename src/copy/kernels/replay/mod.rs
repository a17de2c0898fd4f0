//! Levels that move nothing: the kernels run as they are, and each load and store is written down instead
//! of made.
//!
//! The macro-kernel, the staging, the borders, the portable loops and the transposes are written over
//! [`Level`](super::level::Level) and [`Vector`](super::vector::Vector); with the levels of this room they
//! form the same addresses in the same order as with the real ones. What a real level does by instructions of
//! its own is described here: moves of bytes in [`portable`], rows of 512-bit vectors in [`wide`] and
//! [`slide`].
//!
//! Written down is what the source says, tables of offsets included: registers that the compiler spills are
//! not, nor what is set up once a row or a tile; loops that the compiler vectorises go element by element; a
//! run that is left to the C library is moved front to back in parts of 32 bytes.

mod log;
mod machine;
mod portable;
mod room;
mod slide;
mod wide;

pub use log::{Access, AccessKind, Side};
pub(crate) use log::{Log, Place, filled, record};
pub(crate) use room::Room;

use super::{Isa, TileFn, tile};
use machine::Replay;

/// The tile function that writes down what that of a level would touch.
///
/// Its pointers need not be readable or writable, only lie inside allocations; [`Log`] must be recording.
pub(crate) fn tile_fn(isa: Isa) -> TileFn {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => tile::run::<Replay<machine::Avx512>>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => tile::run::<Replay<machine::Avx2>>,
        #[cfg(target_arch = "x86_64")]
        Isa::Sse2 => tile::run::<Replay<machine::Sse2>>,
        #[cfg(target_arch = "aarch64")]
        Isa::Neon => tile::run::<Replay<machine::Neon>>,
        _ => tile::run::<Replay<machine::Scalar>>,
    }
}

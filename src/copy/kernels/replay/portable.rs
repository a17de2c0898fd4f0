//! Moves of a few bytes and of many, in what they touch: those of [`level`](super::super::level).

use super::log::{self, AccessKind, read, write};
use super::machine::Machine;

/// Parts in which the C library moves a long run, as far as one can tell.
const LIBRARY_BYTES: usize = 32;

/// The moves of a run of at most 64 bytes: where each is and how wide. Those of one step are loaded before
/// any of them is stored.
fn moves(size: usize) -> ([usize; 2], usize) {
    match size {
        0 => ([0, 0], 0),
        1 => ([0, 0], 1),
        2..=3 => ([0, size - 2], 2),
        4..=7 => ([0, size - 4], 4),
        8..=15 => ([0, size - 8], 8),
        16..=31 => ([0, size - 16], 16),
        _ => ([0, size - 32], 32),
    }
}

/// A move of `width` bytes, by as many registers of at most `most` bytes as that takes.
#[inline(always)]
fn parts(most: usize, at: usize, width: usize, mut each: impl FnMut(usize, usize)) {
    let part = width.min(most);
    for k in (0..width).step_by(part.max(1)) {
        each(at + k, part);
    }
}

/// A run of any length, by registers of at most `most` bytes where it is short.
pub(super) fn short(most: usize, dst: *mut u8, src: *const u8, bytes: usize) {
    if bytes > 64 {
        return long(dst, src, bytes);
    }
    let (at, width) = moves(bytes);
    let at = if bytes == 1 { &at[..1] } else { &at[..] };
    for &at in at {
        parts(most, at, width, |at, bytes| read(src.wrapping_add(at), bytes));
    }
    for &at in at {
        parts(most, at, width, |at, bytes| write(dst.wrapping_add(at), bytes));
    }
}

/// A run that the C library moves.
pub(super) fn long(dst: *mut u8, src: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(LIBRARY_BYTES) {
        let some = LIBRARY_BYTES.min(bytes - at);
        read(src.wrapping_add(at), some);
        write(dst.wrapping_add(at), some);
    }
}

/// A run of at most 16 bytes into the slot.
pub(super) fn to_slot(to: usize, src: *const u8, bytes: usize) {
    let (at, width) = moves(bytes);
    let at = if bytes == 1 { &at[..1] } else { &at[..] };
    for &at in at {
        read(src.wrapping_add(at), width);
    }
    for &at in at {
        log::slot(to + at, width, AccessKind::Write);
    }
}

/// A run of at most a register out of the slot.
pub(super) fn from_slot<M: Machine>(dst: *mut u8, bytes: usize) {
    let (at, width) = moves(bytes);
    let at = if bytes == 1 { &at[..1] } else { &at[..] };
    for &at in at {
        parts(M::REGISTER, at, width, |at, bytes| log::slot(at, bytes, AccessKind::Read));
    }
    for &at in at {
        parts(M::REGISTER, at, width, |at, bytes| write(dst.wrapping_add(at), bytes));
    }
}

//! Whole squares of narrow elements, by way of memory in the first-level cache.

use super::super::level::Way;
use super::super::tile::Step;
use super::{Vector, network};
use std::mem::MaybeUninit;

/// Lines of a destination row that are written one after the other where single lines would crowd each other out.
pub(in crate::copy::kernels) const BURST: usize = 4;

/// Whether lines of narrow elements at this pitch fall into a few sets of the first-level cache: it is a multiple of
/// 1 KiB, or all but.
#[inline(always)]
pub(crate) fn crowds(pitch: isize) -> bool {
    (pitch + 64).unsigned_abs() % 1024 <= 128
}

/// Whether rows that slide onto lines come from packed source rows. Pairs of bytes only where their destination rows
/// crowd each other.
#[cfg(any(target_arch = "x86_64", test, feature = "instruments"))]
#[inline(always)]
pub(in crate::copy::kernels) fn packs(element: usize, pitch: Option<Step>) -> bool {
    match element {
        1 => true,
        2 => pitch.is_none_or(|pitch| crowds(pitch.dst)),
        _ => false,
    }
}

/// Packed rows lie so much further apart than they are long that they do not share a set.
const SLACK: usize = 64;
const PACKED_BYTES: usize = 64 * BURST * (256 + SLACK);

/// Packed runs of up to 64 rows a block, and a square of destination rows.
#[repr(align(64))]
pub(in crate::copy::kernels) struct Runs {
    packed: MaybeUninit<[u8; PACKED_BYTES]>,
    made: MaybeUninit<[u8; 64 * BURST * 64]>,
}

/// Where rows go that were put together in the first-level cache. A trait and not a closure: see
/// [`tile`](super::super::tile).
pub(in crate::copy::kernels) trait Leave<V> {
    /// Takes a line of row `first + k`, where squares of rows start at `first`.
    ///
    /// # Safety
    /// As [`Leave::leave`].
    unsafe fn line(&self, first: usize, k: usize, v: V);

    /// Takes `lines` lines of row `row`, which lie one after the other at `from`.
    ///
    /// # Safety
    /// They are readable, and writable where the row goes. The CPU has the level.
    unsafe fn leave(&self, row: usize, from: *const u8, lines: usize);
}

/// Straight to the destination, whose rows start at `dst + rows(row)`.
pub(super) struct Straight<F> {
    pub(super) dst: *mut u8,
    pub(super) rows: F,
    pub(super) way: Way,
}

impl<V: Vector, F: Fn(usize) -> isize> Leave<V> for Straight<F> {
    #[inline(always)]
    unsafe fn line(&self, first: usize, k: usize, v: V) {
        // SAFETY: the caller's promise.
        unsafe {
            let to = self.dst.offset(match self.way.pitch {
                // Addresses from registers: see `even` of `squares`.
                Some(pitch) => (self.rows)(first) + k as isize * V::anew(pitch.dst),
                None => (self.rows)(first + k),
            });
            if self.way.stream { v.stream(to) } else { v.store(to) }
        }
    }

    #[inline(always)]
    unsafe fn leave(&self, row: usize, from: *const u8, lines: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let to = self.dst.offset((self.rows)(row));
            for line in 0..lines {
                let v = V::load(from.add(64 * line));
                if self.way.stream { v.stream(to.add(64 * line)) } else { v.store(to.add(64 * line)) }
            }
        }
    }
}

/// Whole squares of narrow elements. Runs of each source row are first packed side by side: reading whole runs
/// keeps the hardware's prefetchers busy, which single lines of 64 rows do not. Destination rows leave several
/// lines at a time: where their pitch is a power of two, single lines all fall into one set.
///
/// # Safety
/// As [`transpose`], for `squares` whole squares of the columns `b`, whole lines of them, at most `BLOCKS`;
/// `memory` is writable.
#[inline(always)]
pub(in crate::copy::kernels) unsafe fn runs<
    V: Vector,
    const E: usize,
    const BLOCKS: usize,
    const RUN: usize,
>(
    src: *const u8,
    squares: usize,
    b: &[Step],
    way: Way,
    memory: *mut Runs,
    to: &impl Leave<V>,
) {
    let stream = way.stream;
    // At least the run after this one.
    let ahead = way.ahead.max(RUN);
    let (group, edge) = (16 / E, 64 / E);
    let blocks = b.len() / edge;
    // SAFETY: fields of memory that is there, not read before it is written.
    let (packed, made) =
        unsafe { ((&raw mut (*memory).packed).cast::<u8>(), (&raw mut (*memory).made).cast::<u8>()) };
    let mut first = 0;
    while first < squares {
        let n = (RUN / 64).min(squares - first);
        // SAFETY: the lines of a run lie in the tile and in `packed`.
        unsafe {
            for (k, step) in b.iter().enumerate() {
                let from = src.offset(V::look(&step.src)).add(64 * first);
                let far = from.wrapping_add(ahead);
                for line in 0..n {
                    if stream {
                        V::prefetch(far.wrapping_add(64 * line));
                    }
                    V::load(from.add(64 * line)).store(packed.add((RUN + SLACK) * k + 64 * line));
                }
            }
            for q in 0..n {
                for block in 0..blocks {
                    let lines = packed.add((RUN + SLACK) * edge * block + 64 * q).cast_const();
                    for g in 0..4 {
                        let at = |k: usize| {
                            V::lanes(|lane| lines.add(16 * g + (RUN + SLACK) * (lane * group + k)))
                        };
                        let mut r = [at(0); 16];
                        let mut k = 1;
                        while k < group {
                            r[k] = at(k);
                            k += 1;
                        }
                        let out = network::<V, E>(r);
                        let mut k = 0;
                        while k < group {
                            let row = g * group + k;
                            if BLOCKS == 1 {
                                to.line((first + q) * edge, row, out[k]);
                            } else {
                                out[k].store(made.add(64 * (BLOCKS * row + block)));
                            }
                            k += 1;
                        }
                    }
                }
                if BLOCKS == 1 {
                    continue;
                }
                for k in 0..edge {
                    to.leave((first + q) * edge + k, made.add(64 * BLOCKS * k), blocks);
                }
            }
        }
        first += n;
    }
}

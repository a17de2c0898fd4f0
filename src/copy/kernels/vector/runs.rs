//! Whole squares of narrow elements, by way of memory in the first-level cache.

use super::super::level::Way;
use super::super::tile::Step;
use super::{Vector, network};
use std::mem::MaybeUninit;

/// Lines of a destination row that are written one after the other where single lines would crowd each other
/// out: all of a pitch that is a multiple of this fall into a few sets of the first-level cache.
pub(super) const BURST: usize = 4;
pub(super) const CROWDED_PITCH: usize = 1024;

/// Packed rows lie so much further apart than they are long that they do not share a set.
const SLACK: usize = 64;
const PACKED_BYTES: usize = 64 * BURST * (256 + SLACK);

/// Packed runs of up to 64 rows a block, and a square of destination rows.
#[repr(align(64))]
pub(super) struct Runs {
    packed: MaybeUninit<[u8; PACKED_BYTES]>,
    made: MaybeUninit<[u8; 64 * BURST * 64]>,
}

/// Whole squares of narrow elements. Runs of each source row are first packed side by side: reading whole runs
/// keeps the hardware's prefetchers busy, which single lines of 64 rows do not. Destination rows leave several
/// lines at a time: where their pitch is a power of two, single lines all fall into one set.
///
/// # Safety
/// As [`transpose`], for `squares` whole squares of the columns `b`, whole lines of them, at most `BLOCKS`;
/// `memory` is writable.
#[inline(always)]
pub(super) unsafe fn runs<V: Vector, const E: usize, const BLOCKS: usize, const RUN: usize>(
    src: *const u8,
    dst: *mut u8,
    squares: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    way: Way,
    memory: *mut Runs,
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
                            if BLOCKS > 1 {
                                out[k].store(made.add(64 * (BLOCKS * row + block)));
                            } else if stream {
                                out[k].stream(dst.offset(rows((first + q) * edge + row)));
                            } else {
                                out[k].store(dst.offset(rows((first + q) * edge + row)));
                            }
                            k += 1;
                        }
                    }
                }
                if BLOCKS == 1 {
                    continue;
                }
                for k in 0..edge {
                    let row = dst.offset(rows((first + q) * edge + k));
                    for block in 0..blocks {
                        let v = V::load(made.add(64 * (BLOCKS * k + block)));
                        if stream { v.stream(row.add(64 * block)) } else { v.store(row.add(64 * block)) }
                    }
                }
            }
        }
        first += n;
    }
}

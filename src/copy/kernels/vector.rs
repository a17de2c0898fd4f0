//! The micro-kernel, written once over vectors of one, two or four 128-bit lanes.
//!
//! A square of one line of elements a side is transposed in groups of 16 bytes of source columns. For a
//! group, vector `k` takes 16 bytes of row `k` into its first lane, of row `k + g` into the next, and so
//! on, where `g` is the number of elements in 16 bytes. Transposing the `g` by `g` elements inside each
//! lane then leaves in vector `c` what belongs to destination row `c`, in order. The transposition inside
//! lanes is the same step `log2(g)` times: interleave vector `i` with vector `i + g/2`.

mod runs;
mod squares;

use super::level::{prefetch, short};
use std::mem::MaybeUninit;

pub(crate) use runs::crowds;
#[cfg(any(target_arch = "x86_64", test, feature = "instruments"))]
pub(super) use runs::{BURST, Leave, Runs, packs, runs};
#[cfg(any(target_arch = "x86_64", test, feature = "instruments"))]
pub(super) use squares::read_square;
pub(super) use squares::transpose;

/// The vectors of a square, lanes turned: `x[g][k]` is written for the first `16 / E` of `k` only.
pub(super) type Turned<V> = [[MaybeUninit<V>; 16]; 4];

/// A vector register and the few things that the kernels ask of it.
pub(super) trait Vector: Copy {
    /// 128-bit lanes of one vector: 1, 2 or 4.
    const LANES: usize;

    /// 16 bytes from each of `LANES` places.
    ///
    /// # Safety
    /// Each is readable for 16 bytes. The CPU has the level, here and below.
    unsafe fn lanes(at: impl Fn(usize) -> *const u8) -> Self;

    /// `bytes` bytes from each of `LANES` places; the rest is zero.
    ///
    /// # Safety
    /// Each is readable for `bytes` bytes, at most 16.
    #[inline(always)]
    unsafe fn lanes_partial(at: impl Fn(usize) -> *const u8, bytes: usize) -> Self {
        let mut lanes = [[0u8; 16]; 4];
        // SAFETY: `bytes` readable bytes each, at most 16; a vector is as large as its lanes, of which there are
        // four at most.
        unsafe {
            for (lane, to) in lanes.iter_mut().enumerate().take(Self::LANES) {
                short(to.as_mut_ptr(), at(lane), bytes);
            }
            Self::load(lanes.as_ptr().cast())
        }
    }

    /// Transposes four vectors of four lanes: lane `a` of vector `b` becomes lane `b` of vector `a`.
    /// Only asked of vectors of four lanes.
    ///
    /// # Safety
    /// See [`Vector::lanes`].
    #[inline(always)]
    unsafe fn turn(rows: [Self; 4]) -> [Self; 4] {
        rows
    }

    /// A whole vector.
    ///
    /// # Safety
    /// `src` is readable for all of it.
    unsafe fn load(src: *const u8) -> Self;

    /// Asks for the line at `at` to be read into the caches; any address may be given.
    ///
    /// # Safety
    /// See [`Vector::lanes`].
    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        prefetch(at);
    }

    /// What an entry of a table says. Where loads are written down instead of made, this is one.
    #[inline(always)]
    fn look<T: Copy>(entry: &T) -> T {
        *entry
    }

    /// The same number, of which the compiler does not know that it is the same: what it makes of it, it makes
    /// anew instead of keeping it in memory.
    #[inline(always)]
    fn anew(x: isize) -> isize {
        x
    }

    /// Moves 16 bytes.
    ///
    /// # Safety
    /// `src` is readable and `dst` writable for 16 bytes.
    #[inline(always)]
    unsafe fn lane(dst: *mut u8, src: *const u8) {
        // SAFETY: the caller's promise.
        unsafe { dst.cast::<[u8; 16]>().write_unaligned(src.cast::<[u8; 16]>().read_unaligned()) }
    }

    /// Interleaves the elements of `E` bytes of the lower and of the upper half of each lane.
    ///
    /// # Safety
    /// See [`Vector::lanes`].
    unsafe fn interleave<const E: usize>(self, other: Self) -> (Self, Self);

    /// Ordinary store.
    ///
    /// # Safety
    /// `dst` is writable for the whole vector.
    unsafe fn store(self, dst: *mut u8);

    /// Ordinary store of the first `bytes` bytes.
    ///
    /// # Safety
    /// `dst` is writable for `bytes` bytes, at most the whole vector.
    #[inline(always)]
    unsafe fn store_partial(self, dst: *mut u8, bytes: usize) {
        let mut lanes = [0u8; 64];
        // SAFETY: no vector is larger than 64 bytes; `bytes` writable bytes, at most a vector.
        unsafe {
            self.store(lanes.as_mut_ptr());
            short(dst, lanes.as_ptr(), bytes);
        }
    }

    /// Store past the caches.
    ///
    /// # Safety
    /// As [`Vector::store`]; `dst` is aligned to the vector.
    unsafe fn stream(self, dst: *mut u8);
}

/// The first `16 / E` of sixteen vectors, the rest filled with the first.
///
/// # Safety
/// They were written.
#[inline(always)]
pub(super) unsafe fn written<V: Vector, const E: usize>(x: &[MaybeUninit<V>; 16]) -> [V; 16] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut r = [x[0].assume_init(); 16];
        let mut k = 1;
        while k < 16 / E {
            r[k] = x[k].assume_init();
            k += 1;
        }
        r
    }
}

/// Transposes inside lanes: see the module's text.
///
/// # Safety
/// The CPU has the level.
#[inline(always)]
pub(super) unsafe fn network<V: Vector, const E: usize>(mut r: [V; 16]) -> [V; 16] {
    let group = 16 / E;
    let mut stage = 1;
    while stage < group {
        let mut next = r;
        let mut i = 0;
        while i < group / 2 {
            // SAFETY: the caller's promise.
            let (low, high) = unsafe { r[i].interleave::<E>(r[i + group / 2]) };
            next[2 * i] = low;
            next[2 * i + 1] = high;
            i += 1;
        }
        r = next;
        stage *= 2;
    }
    r
}

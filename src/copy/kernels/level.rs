//! What a level must be able to do. The default methods are the portable loops; a level overrides
//! those for which its instructions do better.
//!
//! `E` is the element size in bytes where it is 1, 2, 4, 8 or 16, and 0 for every other size, which
//! is then in `size`. All pointers may be unaligned.

use super::cells::Cells;
use super::tile::{Part, Step, Tile};

/// One element of `E` bytes (`size` bytes where `E` is 0).
///
/// # Safety
/// `src` is readable and `dst` writable for the element's bytes, and they do not overlap.
#[inline(always)]
pub(super) unsafe fn element<const E: usize>(dst: *mut u8, src: *const u8, size: usize) {
    // SAFETY: the caller vouches for both ranges; `E` is `size` wherever it is not 0.
    unsafe {
        match E {
            0 => short(dst, src, size),
            _ => dst.cast::<[u8; E]>().write_unaligned(src.cast::<[u8; E]>().read_unaligned()),
        }
    }
}

/// A short run of any length, by overlapping moves.
///
/// # Safety
/// As [`element`].
#[inline(always)]
pub(super) unsafe fn short(dst: *mut u8, src: *const u8, size: usize) {
    /// Moves the first and the last `W` bytes, which cover all when `W <= size <= 2 * W`.
    ///
    /// # Safety
    /// Both ranges hold `size >= W` bytes.
    #[inline(always)]
    unsafe fn ends<const W: usize>(dst: *mut u8, src: *const u8, size: usize) {
        // SAFETY: `size >= W`, so both moves stay inside the caller's ranges.
        unsafe {
            let first = src.cast::<[u8; W]>().read_unaligned();
            let last = src.add(size - W).cast::<[u8; W]>().read_unaligned();
            dst.cast::<[u8; W]>().write_unaligned(first);
            dst.add(size - W).cast::<[u8; W]>().write_unaligned(last);
        }
    }
    // SAFETY: each branch is taken only when the width it moves fits in `size`.
    unsafe {
        match size {
            0 => {}
            1 => dst.write(src.read()),
            2..=3 => ends::<2>(dst, src, size),
            4..=7 => ends::<4>(dst, src, size),
            8..=15 => ends::<8>(dst, src, size),
            16..=31 => ends::<16>(dst, src, size),
            32..=64 => ends::<32>(dst, src, size),
            _ => std::ptr::copy_nonoverlapping(src, dst, size),
        }
    }
}

/// Asks for the line at `at` to be read into the caches, where the architecture can; any address may be given.
#[inline(always)]
pub(super) fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint that faults on no address; every x86-64 has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(at.cast())
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// [`Level::gather`], portable.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn gather<const E: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
) {
    for j in 0..n {
        // SAFETY: j < n, which the caller vouches for on both sides.
        unsafe { element::<E>(dst.add(j * size), src.offset(j as isize * stride), size) }
    }
}

/// [`Level::interleave`], portable.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn interleave<const E: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    channels: usize,
    channel: isize,
    size: usize,
) {
    for j in 0..n {
        for c in 0..channels {
            // SAFETY: j < n and c < channels, which the caller vouches for on both sides.
            unsafe {
                let from = src.offset(c as isize * channel).add(j * size);
                element::<E>(dst.add((j * channels + c) * size), from, size);
            }
        }
    }
}

/// [`Level::transpose`], portable.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn transpose<const E: usize>(
    src: *const u8,
    dst: *mut u8,
    na: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    size: usize,
) {
    // Squares of one line of elements: every line that comes in is used up at once.
    let edge = super::square_edge(size);
    for j0 in (0..b.len()).step_by(edge) {
        for i0 in (0..na).step_by(edge) {
            for i in i0..na.min(i0 + edge) {
                for (j, step) in b.iter().enumerate().take(j0 + edge).skip(j0) {
                    // SAFETY: i < na and j < b.len(), which the caller vouches for.
                    unsafe {
                        let from = src.offset(step.src).add(i * size);
                        element::<E>(dst.offset(rows(i)).add(j * size), from, size);
                    }
                }
            }
        }
    }
}

/// A level's inner loops.
pub(super) trait Level: Sized {
    /// Runs a part in a function of its own that has the level's instructions.
    ///
    /// # Safety
    /// As [`Part::run`]; the CPU has the level.
    unsafe fn apart<P: Part>(t: &Tile<'_>);

    /// Moves one line of 64 bytes past the caches where the level can.
    ///
    /// # Safety
    /// `dst` is writable for 64 bytes and aligned to 64, `src` readable for 64 bytes.
    #[inline(always)]
    unsafe fn line(dst: *mut u8, src: *const u8) {
        // SAFETY: the caller vouches for 64 bytes on both sides.
        unsafe { std::ptr::copy_nonoverlapping(src, dst, 64) }
    }

    /// Asks for the line at `at` to be read into the caches; any address may be given.
    #[inline(always)]
    fn prefetch(at: *const u8) {
        prefetch(at);
    }

    /// Moves `bytes` bytes with ordinary stores.
    ///
    /// # Safety
    /// Both sides hold `bytes` bytes and do not overlap.
    #[inline(always)]
    unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
        // SAFETY: the caller vouches for both ranges.
        unsafe {
            if bytes <= 64 { short(dst, src, bytes) } else { std::ptr::copy_nonoverlapping(src, dst, bytes) }
        }
    }

    /// Writes `n` copies of the element at `src`. With `stream`, whole lines may bypass the caches, here
    /// and below.
    ///
    /// # Safety
    /// `dst` holds `n` elements, `src` one.
    #[inline(always)]
    unsafe fn splat<const E: usize>(dst: *mut u8, src: *const u8, n: usize, size: usize, stream: bool) {
        let _ = stream;
        for j in 0..n {
            // SAFETY: j < n elements of the destination; one element of the source.
            unsafe { element::<E>(dst.add(j * size), src, size) }
        }
    }

    /// Reads `n` elements `stride` bytes apart and writes them side by side.
    ///
    /// # Safety
    /// `dst` holds `n` elements; every `src + j * stride` for `j < n` holds one.
    #[inline(always)]
    unsafe fn gather<const E: usize>(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        stride: isize,
        size: usize,
        stream: bool,
    ) {
        let _ = stream;
        // SAFETY: the caller's promise.
        unsafe { gather::<E>(dst, src, n, stride, size) }
    }

    /// Writes `n` groups of `channels` elements; element `c` of group `j` comes from
    /// `src + c * channel + j * size`.
    ///
    /// # Safety
    /// `dst` holds `n * channels` elements; every source position named above holds one.
    #[inline(always)]
    unsafe fn interleave<const E: usize>(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        (channels, channel): (usize, isize),
        size: usize,
        stream: bool,
    ) {
        let _ = stream;
        // SAFETY: the caller's promise.
        unsafe { interleave::<E>(dst, src, n, channels, channel, size) }
    }

    /// Takes two to four interleaved rows apart: each source line is read once for all of them. Says whether
    /// it did; it may always leave them to [`Level::gather`].
    ///
    /// # Safety
    /// As [`super::tile::run`] for a tile of kind gather whose rows are the elements of one dense run in turn.
    #[inline(always)]
    unsafe fn planes(t: &Tile<'_>, size: usize) -> bool {
        let _ = (t, size);
        false
    }

    /// Writes `n` cells side by side.
    ///
    /// # Safety
    /// As [`Cells::one_by_one`].
    #[inline(always)]
    unsafe fn cells<const E: usize>(cells: &Cells<'_>, dst: *mut u8, src: *const u8, n: usize, stream: bool) {
        let _ = stream;
        // SAFETY: the caller's promise.
        unsafe { cells.one_by_one::<E>(dst, src, n) }
    }

    /// Transposes a tile whose destination rows do not start and end on lines, past the caches.
    ///
    /// # Safety
    /// As [`super::tile::run`] for a staged tile of kind transpose.
    #[inline(always)]
    unsafe fn transpose_staged<const E: usize>(t: &Tile<'_>, size: usize) {
        // SAFETY: the caller's promise.
        unsafe { super::stage::transpose::<Self, E>(t, size) }
    }

    /// Transposes a tile: element `(i, j)` goes from `src + b[j].src + i * size` to
    /// `dst + rows(i) + j * size`. With `stream`, whole lines may bypass the caches.
    ///
    /// # Safety
    /// Both positions hold an element for every `i < na`, `j < b.len()`; with `stream`, every row
    /// starts on a line and is whole lines long.
    #[inline(always)]
    unsafe fn transpose<const E: usize>(
        src: *const u8,
        dst: *mut u8,
        na: usize,
        rows: impl Fn(usize) -> isize,
        b: &[Step],
        size: usize,
        stream: bool,
    ) {
        let _ = stream;
        // SAFETY: the caller's promise.
        unsafe { transpose::<E>(src, dst, na, rows, b, size) }
    }

    /// Makes streamed lines visible in order.
    #[inline(always)]
    fn fence() {}
}

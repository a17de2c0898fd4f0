//! What a level must be able to do. The default methods are the portable loops; a level overrides
//! those for which its instructions do better.
//!
//! `E` is the element size in bytes where it is 1, 2, 4, 8 or 16, and 0 for every other size, which
//! is then in `size`. All pointers may be unaligned.

use super::cells::Cells;
use super::tile::{Part, Step, Tile};
use std::mem::MaybeUninit;

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

/// Rows of elements that span a few times this ask for their source ahead, so far ahead, or so many elements.
const GATHER_AHEAD: usize = 1024;
const GATHER_AHEAD_ELEMENTS: usize = 16;

/// [`Level::gather`], element by element.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn gather<L: Level, const E: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
) {
    let gap = stride.unsigned_abs();
    let asks = match n.saturating_mul(gap) {
        span if span < 4 * GATHER_AHEAD || E == 16 => 0,
        _ if gap <= 16 => 1,
        _ if gap <= 32 => 2,
        _ => 4,
    };
    // SAFETY: the caller's promise.
    unsafe {
        match asks {
            0 => gather_asking::<L, E, 0>(dst, src, n, stride, size),
            1 => gather_asking::<L, E, 1>(dst, src, n, stride, size),
            2 => gather_asking::<L, E, 2>(dst, src, n, stride, size),
            _ => gather_asking::<L, E, 4>(dst, src, n, stride, size),
        }
    }
}

/// [`gather`], asking `ASKS` times for the source of later elements with every four elements: the hardware
/// follows steps of a part of a line badly.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn gather_asking<L: Level, const E: usize, const ASKS: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
) {
    let gap = stride.unsigned_abs();
    let ahead = GATHER_AHEAD.max(GATHER_AHEAD_ELEMENTS * gap) as isize * stride.signum();
    // Four at a time: a jump for each would cost as much as the element.
    let mut j = 0;
    while j + 4 <= n {
        // SAFETY: j + 3 < n, which the caller vouches for on both sides.
        unsafe {
            let (to, from) = (dst.add(j * size), src.offset(j as isize * stride));
            let mut ask = 0;
            while ask < ASKS {
                L::prefetch(from.wrapping_offset(ahead + (4 / ASKS * ask) as isize * stride));
                ask += 1;
            }
            L::element::<E>(to, from, size);
            L::element::<E>(to.add(size), from.offset(stride), size);
            L::element::<E>(to.add(2 * size), from.offset(2 * stride), size);
            L::element::<E>(to.add(3 * size), from.offset(3 * stride), size);
        }
        j += 4;
    }
    while j < n {
        // SAFETY: j < n.
        unsafe { L::element::<E>(dst.add(j * size), src.offset(j as isize * stride), size) }
        j += 1;
    }
}

/// Rows of elements that lie far apart, a few columns of all rows at a time: going down the columns, each
/// source line is used up while it is at hand, and a short row costs no loop of its own. Where the lines of the
/// destination rows crowd each other out of the cache, a whole line of columns at a time.
///
/// # Safety
/// As [`super::tile::run`] for a tile of kind gather.
#[inline(always)]
pub(super) unsafe fn gather_down<L: Level, const E: usize>(t: &Tile<'_>, size: usize) {
    /// `N` columns.
    ///
    /// # Safety
    /// As [`gather_down`]; `src` and `dst` are where the first of them starts.
    #[inline(always)]
    unsafe fn columns<L: Level, const E: usize, const N: usize>(
        t: &Tile<'_>,
        src: *const u8,
        dst: *mut u8,
        size: usize,
    ) {
        for a in t.a {
            let a = L::look(a);
            // SAFETY: elements of the tile.
            unsafe {
                let (from, to) = (src.offset(a.src), dst.offset(a.dst));
                let mut k = 0;
                while k < N {
                    L::element::<E>(to.add(k * size), from.offset(k as isize * t.b_src), size);
                    k += 1;
                }
            }
        }
    }
    let crowded = t.a.len() > 8 && (t.a[1].dst - t.a[0].dst).unsigned_abs().is_multiple_of(1024);
    let mut j = 0;
    while j < t.nb {
        // SAFETY: columns j.. of the tile.
        unsafe {
            let (src, dst) = (t.src.offset(j as isize * t.b_src), t.dst.add(j * size));
            j += match t.nb - j {
                1 => {
                    columns::<L, E, 1>(t, src, dst, size);
                    1
                }
                3 if E == 16 => {
                    columns::<L, E, 3>(t, src, dst, size);
                    3
                }
                2 | 3 => {
                    columns::<L, E, 2>(t, src, dst, size);
                    2
                }
                4..8 => {
                    columns::<L, E, 4>(t, src, dst, size);
                    4
                }
                16.. if crowded && E == 4 => {
                    columns::<L, E, 16>(t, src, dst, size);
                    16
                }
                32.. if crowded && E == 2 => {
                    columns::<L, E, 32>(t, src, dst, size);
                    32
                }
                64.. if crowded && E == 1 => {
                    columns::<L, E, 64>(t, src, dst, size);
                    64
                }
                _ => {
                    columns::<L, E, 8>(t, src, dst, size);
                    8
                }
            };
        }
    }
}

/// Rows of elements of 8 or 16 bytes that lie apart, row by row.
///
/// # Safety
/// As [`super::tile::run`] for a tile of kind gather.
#[inline(always)]
pub(super) unsafe fn gather_across<L: Level, const E: usize>(t: &Tile<'_>) {
    for a in t.a {
        let a = L::look(a);
        // SAFETY: a row of the tile.
        unsafe { L::gather_row::<E>(t.dst.offset(a.dst), t.src.offset(a.src), t.nb, t.b_src) }
    }
}

/// [`Level::interleave`], portable.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn interleave<L: Level, const E: usize>(
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
                L::element::<E>(dst.add((j * channels + c) * size), from, size);
            }
        }
    }
}

/// [`Level::transpose`], portable.
///
/// # Safety
/// As there.
#[inline(always)]
pub(super) unsafe fn transpose<L: Level, const E: usize>(
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
                        let from = src.offset(L::look(&step.src)).add(i * size);
                        L::element::<E>(dst.offset(rows(i)).add(j * size), from, size);
                    }
                }
            }
        }
    }
}

/// What the rows of a tile that are made in the same way have in common, worked out once a tile.
pub(super) trait Recipe: Sized {
    /// For [`Level::splat`].
    ///
    /// # Safety
    /// The CPU has the level, here and below.
    unsafe fn splat(size: usize) -> Self;

    /// For [`Level::gather`] of rows of `n` elements, `stride` bytes apart.
    ///
    /// # Safety
    /// See [`Recipe::splat`].
    unsafe fn gather(n: usize, stride: isize, size: usize, stream: bool) -> Self;

    /// For [`Level::interleave`].
    ///
    /// # Safety
    /// See [`Recipe::splat`].
    unsafe fn interleave(channels: usize, size: usize) -> Self;

    /// Whether [`Level::gather`] does better with this recipe than element by element.
    fn gathers(&self) -> bool;
}

/// The portable loops need nothing.
impl Recipe for () {
    #[inline(always)]
    unsafe fn splat(_: usize) -> Self {}

    #[inline(always)]
    unsafe fn gather(_: usize, _: isize, _: usize, _: bool) -> Self {}

    #[inline(always)]
    unsafe fn interleave(_: usize, _: usize) -> Self {}

    #[inline(always)]
    fn gathers(&self) -> bool {
        false
    }
}

/// Rows that touch, on their way to memory as one run.
pub(super) trait Run {
    /// No row yet.
    fn open() -> Self;

    /// Writes what is left of the last row.
    ///
    /// # Safety
    /// What was given to the run is writable where it belongs; the CPU has the level.
    unsafe fn close(&mut self);
}

/// Every row is written whole.
impl Run for () {
    #[inline(always)]
    fn open() -> Self {}

    #[inline(always)]
    unsafe fn close(&mut self) {}
}

/// How a tile's lines leave, and how early its source is asked for.
#[derive(Clone, Copy)]
pub(super) struct Way {
    /// Whole lines may bypass the caches.
    pub(super) stream: bool,
    /// How far ahead of what is read the source is asked for, in bytes.
    pub(super) ahead: usize,
    /// How far apart the columns of a transpose's squares are read, and their rows written, where both are even.
    pub(super) pitch: Option<Step>,
    /// Squares of rows that a transpose takes abreast before it moves on along its columns.
    pub(super) abreast: usize,
}

impl Way {
    /// A way for rows.
    #[inline(always)]
    pub(super) fn of_rows(stream: bool, ahead: usize) -> Self {
        Self { stream, ahead, pitch: None, abreast: 1 }
    }
}

/// A level's inner loops.
pub(super) trait Level: Sized {
    /// Runs a part in a function of its own that has the level's instructions.
    ///
    /// # Safety
    /// As [`Part::run`]; the CPU has the level.
    unsafe fn apart<P: Part>(t: &Tile<'_>);

    /// What an entry of a table says.
    #[inline(always)]
    fn look<T: Copy>(entry: &T) -> T {
        *entry
    }

    /// Makes an entry of a table.
    #[inline(always)]
    fn put<T>(entry: &mut MaybeUninit<T>, value: T) {
        entry.write(value);
    }

    /// Moves one element of `E` bytes (`size` bytes where `E` is 0).
    ///
    /// # Safety
    /// As [`element`].
    #[inline(always)]
    unsafe fn element<const E: usize>(dst: *mut u8, src: *const u8, size: usize) {
        // SAFETY: the caller's promise.
        unsafe { element::<E>(dst, src, size) }
    }

    /// Moves 64 bytes of the staging memory, not all of which need have been written.
    ///
    /// # Safety
    /// Both sides hold 64 bytes and do not overlap.
    #[inline(always)]
    unsafe fn rest(dst: *mut u8, src: *const u8) {
        // SAFETY: the caller vouches for both; bytes that nobody wrote are moved as such.
        unsafe { dst.cast::<[MaybeUninit<u8>; 64]>().write(src.cast::<[MaybeUninit<u8>; 64]>().read()) }
    }

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

    /// See [`Recipe`].
    type Recipe: Recipe;

    /// See [`Run`].
    type Run: Run;

    /// Moves a row of `bytes` bytes past the caches, followed by one at `ahead.0`, and asks for the source
    /// `ahead.1` bytes early. What is left of a line at its end may wait in `run` for the next row, here and below.
    ///
    /// # Safety
    /// Both sides hold `bytes` bytes and do not overlap.
    #[inline(always)]
    unsafe fn stream(
        run: &mut Self::Run,
        dst: *mut u8,
        src: *const u8,
        bytes: usize,
        (next, ahead): (*const u8, usize),
    ) {
        let _ = run;
        // SAFETY: the caller's promise.
        unsafe { super::stage::stream_ahead::<Self>(dst, src, bytes, next, ahead) }
    }

    /// Writes `n` copies of the element at `src`. With `stream`, whole lines may bypass the caches, here
    /// and below.
    ///
    /// # Safety
    /// `dst` holds `n` elements, `src` one; the recipe was made for the same arguments, here and below.
    #[inline(always)]
    unsafe fn splat<const E: usize>(
        recipe: &Self::Recipe,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        size: usize,
        stream: (bool, &mut Self::Run),
    ) {
        let _ = (recipe, stream);
        for j in 0..n {
            // SAFETY: j < n elements of the destination; one element of the source.
            unsafe { Self::element::<E>(dst.add(j * size), src, size) }
        }
    }

    /// Reads `n` elements `stride` bytes apart and writes them side by side. The recipe may be that of another
    /// number of elements. `way` has where a row is read that comes soon, if whole lines may bypass the caches, how
    /// many bytes ahead the source is asked for, and the run.
    ///
    /// # Safety
    /// `dst` holds `n` elements; every `src + j * stride` for `j < n` holds one.
    #[inline(always)]
    unsafe fn gather<const E: usize>(
        recipe: &Self::Recipe,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        stride: isize,
        size: usize,
        way: (Option<*const u8>, usize, &mut Self::Run),
    ) {
        let _ = (recipe, way);
        // SAFETY: the caller's promise.
        unsafe { gather::<Self, E>(dst, src, n, stride, size) }
    }

    /// [`Level::gather`] of elements of 8 or 16 bytes that is called once a row, and no recipe.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn gather_row<const E: usize>(dst: *mut u8, src: *const u8, n: usize, stride: isize) {
        // SAFETY: the caller's promise.
        unsafe { gather_asking::<Self, E, 0>(dst, src, n, stride, E) }
    }

    /// Writes `n` groups of `channels` elements; element `c` of group `j` comes from
    /// `src + c * channel + j * size`.
    ///
    /// # Safety
    /// `dst` holds `n * channels` elements; every source position named above holds one.
    #[inline(always)]
    unsafe fn interleave<const E: usize>(
        recipe: &Self::Recipe,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        (channels, channel): (usize, isize),
        size: usize,
        way: (Way, &mut Self::Run),
    ) {
        let _ = (recipe, way);
        // SAFETY: the caller's promise.
        unsafe { interleave::<Self, E>(dst, src, n, channels, channel, size) }
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

    /// Writes `n` cells side by side; whole lines may bypass the caches where there is a run.
    ///
    /// # Safety
    /// As [`Cells::one_by_one`].
    #[inline(always)]
    unsafe fn cells<const E: usize>(
        cells: &Cells<'_>,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        stream: Option<&mut Self::Run>,
    ) {
        let _ = stream;
        // SAFETY: the caller's promise.
        unsafe { cells.one_by_one::<Self, E>(dst, src, n) }
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
    /// `dst + rows(i) + j * size`. With `way.stream`, whole lines may bypass the caches.
    ///
    /// # Safety
    /// Both positions hold an element for every `i < na`, `j < b.len()`; with `way.stream`, every row
    /// starts on a line and is whole lines long.
    #[inline(always)]
    unsafe fn transpose<const E: usize>(
        src: *const u8,
        dst: *mut u8,
        na: usize,
        rows: impl Fn(usize) -> isize,
        b: &[Step],
        size: usize,
        way: Way,
    ) {
        let _ = way;
        // SAFETY: the caller's promise.
        unsafe { transpose::<Self, E>(src, dst, na, rows, b, size) }
    }

    /// Makes streamed lines visible in order.
    #[inline(always)]
    fn fence() {}
}

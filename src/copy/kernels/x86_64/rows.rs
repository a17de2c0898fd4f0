//! Rows of elements a fixed distance apart, of one element repeated, and of interleaved rows taken apart.

use super::super::tile::Tile;
use super::pick::{Out, Pick, Store};
use super::recipe::{Gather, Recipe};
use super::run::Run;
use super::slide::{Slide, low};
use std::arch::x86_64::*;

/// Where a row is read that comes soon, if lines leave past the caches; how far ahead the source is asked for; the
/// run that the row belongs to.
type Way<'r> = (Option<*const u8>, usize, &'r mut Run);

/// Gathers `n` elements of at most 64 bytes, `stride` bytes apart. A function of its own for all sizes: it is
/// called once a row.
///
/// # Safety
/// As [`super::super::level::Level::gather`]; the CPU has the level.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn gather(
    recipe: &Gather,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
    way: Way<'_>,
) {
    // SAFETY: the caller's promise; the span of a group is within the windows of each arm.
    unsafe {
        match recipe.windows {
            1 => gather_within::<1>(recipe, dst, src, n, stride, size, way),
            2 => gather_within::<2>(recipe, dst, src, n, stride, size, way),
            3 => gather_within::<3>(recipe, dst, src, n, stride, size, way),
            _ => gather_within::<4>(recipe, dst, src, n, stride, size, way),
        }
    }
}

/// [`gather`] where as many elements as fit a line span at most `N` vectors.
///
/// # Safety
/// As [`gather`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn gather_within<const N: usize>(
    recipe: &Gather,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
    way: Way<'_>,
) {
    // SAFETY: the caller's promise; only elements that fill a vector exactly are pushed.
    unsafe {
        if !size.is_power_of_two() {
            gather_odd::<N>(recipe, dst, src, n, stride, size);
        } else if let (Some(next), ahead, run) = way {
            let row = gather_to::<N, _>(recipe, run.seek(dst), src, n, stride, (size, ahead, Some(next)));
            run.keep(row);
        } else {
            gather_to::<N, _>(recipe, Store(dst), src, n, stride, (size, way.1, None));
        }
    }
}

/// The source window of a group of elements: where it is read, and what is picked from it. Going up it
/// starts at the group's lowest byte, going down it ends at its highest.
struct Window<'r, const N: usize> {
    pick: &'r Pick,
    gap: usize,
    size: usize,
    down: bool,
    /// How far on the source is asked for, in bytes; 0 for not at all.
    ahead: isize,
}

impl<'r, const N: usize> Window<'r, N> {
    #[inline(always)]
    fn new(recipe: &'r Gather, stride: isize, size: usize, ahead: usize) -> Self {
        let ahead = ahead as isize * stride.signum();
        Self { pick: &recipe.pick, gap: stride.unsigned_abs(), size, down: stride < 0, ahead }
    }

    /// Where the window of the group that starts at `first` begins.
    #[inline(always)]
    fn base(&self, first: *const u8) -> *const u8 {
        if self.down { first.wrapping_add(self.size).wrapping_sub(64 * N) } else { first }
    }

    /// The group that starts at `first`, whose window lies inside the row.
    ///
    /// # Safety
    /// The window is readable.
    #[inline(always)]
    unsafe fn whole(&self, first: *const u8) -> __m512i {
        let base = self.base(first);
        // SAFETY: the caller's promise; hints fault on no address.
        unsafe {
            if self.ahead != 0 {
                let ahead = base.wrapping_offset(self.ahead);
                for k in 0..N {
                    _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(64 * k).cast());
                }
            }
            let mut v = [_mm512_setzero_si512(); 4];
            for (k, v) in v.iter_mut().enumerate().take(N) {
                *v = _mm512_loadu_si512(base.wrapping_add(64 * k).cast());
            }
            self.pick.from::<N>(v)
        }
    }

    /// The last `left` elements of a row of `n`, less than a group.
    ///
    /// # Safety
    /// They are readable.
    #[inline(always)]
    unsafe fn rest(&self, recipe: &Gather, first: *const u8, n: usize, left: usize) -> __m512i {
        // SAFETY: the masks of so many elements.
        unsafe {
            if n == recipe.n {
                self.masked(first, &recipe.rest)
            } else {
                self.masked(first, &Gather::masks(N, left, self.gap, self.size, self.down))
            }
        }
    }

    /// The elements of the group that starts at `first` whose bytes `masks` let through.
    ///
    /// # Safety
    /// They are readable.
    #[inline(always)]
    unsafe fn masked(&self, first: *const u8, masks: &[u64; 4]) -> __m512i {
        let base = self.base(first);
        // SAFETY: masks let through only bytes of the row.
        unsafe {
            let mut v = [_mm512_setzero_si512(); 4];
            for (k, v) in v.iter_mut().enumerate().take(N) {
                *v = _mm512_maskz_loadu_epi8(masks[k], base.wrapping_add(64 * k).cast());
            }
            self.pick.from::<N>(v)
        }
    }
}

/// Returns where the row ends.
///
/// # Safety
/// As [`gather`], for a size that divides 64.
#[inline(always)]
unsafe fn gather_to<const N: usize, O: Out>(
    recipe: &Gather,
    mut out: O,
    src: *const u8,
    n: usize,
    stride: isize,
    (size, ahead, next): (usize, usize, Option<*const u8>),
) -> O {
    let each = 64 / size;
    // SAFETY: group `j` reads elements `j..`, of which `n - j` are left; groups whose window lies inside
    // the row are read whole.
    unsafe {
        // A short row is in cache, or its neighbour was asked for.
        let far = O::STREAMS || n * size >= 2048;
        let mut window = Window::<N>::new(recipe, stride, size, if far { ahead } else { 0 });
        let step = each as isize * stride;
        // Divisions would cost more than a short row.
        let whole =
            if n == recipe.n { recipe.whole } else { Gather::whole(N, n, stride.unsigned_abs(), size) };
        let (mut from, mut done) = (src, 0);
        if let Some(next) = next
            && window.ahead != 0
        {
            // So far ahead of its last groups another row is read: of a long row the next one, from its start on,
            // of short rows as many further on as are read meanwhile.
            let span = n * window.gap;
            let over = span.saturating_sub(ahead);
            let near = if over > 0 { (over / step.unsigned_abs()).min(whole) } else { 0 };
            while done < near {
                out.push(window.whole(from));
                from = from.wrapping_offset(step);
                done += 1;
            }
            window.ahead =
                (next.addr() as isize).wrapping_sub(src.addr() as isize) - over as isize * stride.signum();
        }
        while done < whole {
            out.push(window.whole(from));
            from = from.wrapping_offset(step);
            done += 1;
        }
        for _ in whole..n / each {
            out.push(window.masked(from, &recipe.full));
            from = from.wrapping_offset(step);
        }
        let left = n % each;
        let v = if left > 0 { window.rest(recipe, from, n, left) } else { _mm512_setzero_si512() };
        out.finish(v, left * size);
    }
    out
}

/// Takes interleaved rows apart, where their elements fill vectors exactly; says whether it did.
///
/// # Safety
/// As [`super::super::level::Level::planes`]; the CPU has the level.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn planes(t: &Tile<'_>, size: usize) -> bool {
    if !matches!(size, 1 | 2 | 4 | 8 | 16) || t.nb * size < 128 {
        return false;
    }
    // SAFETY: the caller's promise.
    unsafe {
        match t.a.len() {
            2 => planes_of::<2>(t, size),
            3 => planes_of::<3>(t, size),
            4 => planes_of::<4>(t, size),
            _ => return false,
        }
    }
    true
}

/// [`planes`] of `N` rows.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn planes_of<const N: usize>(t: &Tile<'_>, size: usize) {
    // SAFETY: offsets of rows come from the tile.
    unsafe {
        // Rows there are not are never written. No closures: what is not inlined loses the level's instructions.
        let row = [row::<N>(t, 0), row::<N>(t, 1), row::<N>(t, 2), row::<N>(t, 3)];
        if t.stream {
            let out = [Slide::new(row[0]), Slide::new(row[1]), Slide::new(row[2]), Slide::new(row[3])];
            planes_to::<N, _>(out, t, size);
        } else {
            planes_to::<N, _>([Store(row[0]), Store(row[1]), Store(row[2]), Store(row[3])], t, size);
        }
    }
}

/// Where row `c` starts, or the last of `N` rows.
///
/// # Safety
/// As [`planes`].
#[inline(always)]
unsafe fn row<const N: usize>(t: &Tile<'_>, c: usize) -> *mut u8 {
    // SAFETY: offsets of rows come from the tile.
    unsafe { t.dst.offset(t.a[c.min(N - 1)].dst) }
}

/// `N` vectors of the source make one of each row.
///
/// # Safety
/// As [`planes`].
#[inline(always)]
unsafe fn planes_to<const N: usize, O: Out>(mut out: [O; 4], t: &Tile<'_>, size: usize) {
    let (each, step) = (64 / size, N * size);
    // SAFETY: whole vectors are read while there are as many columns left, then masks.
    unsafe {
        let (one, step) = (size as i16, step as i16);
        let picks = [
            Pick::evenly(size, 0, step),
            Pick::evenly(size, one, step),
            Pick::evenly(size, 2 * one, step),
            Pick::evenly(size, 3 * one, step),
        ];
        let mut v = [_mm512_setzero_si512(); 4];
        let (mut from, mut far) = (t.src, t.src.wrapping_add(t.ahead));
        for _ in 0..t.nb / each {
            for (k, v) in v.iter_mut().enumerate().take(N) {
                _mm_prefetch::<_MM_HINT_T0>(far.wrapping_add(64 * k).cast());
                *v = _mm512_loadu_si512(from.wrapping_add(64 * k).cast());
            }
            for (out, pick) in out.iter_mut().zip(&picks).take(N) {
                out.push(pick.from::<N>(v));
            }
            from = from.wrapping_add(64 * N);
            far = far.wrapping_add(64 * N);
        }
        let left = t.nb % each;
        if left > 0 {
            for (k, v) in v.iter_mut().enumerate().take(N) {
                let mask = low((left * N * size).saturating_sub(64 * k));
                *v = _mm512_maskz_loadu_epi8(mask, from.wrapping_add(64 * k).cast());
            }
        }
        for (out, pick) in out.iter_mut().zip(&picks).take(N) {
            out.finish(pick.from::<N>(v), left * size);
        }
    }
}

/// Elements that do not fill a vector: what a store writes too much the next one overwrites.
///
/// # Safety
/// As [`gather`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn gather_odd<const N: usize>(
    recipe: &Gather,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
) {
    let each = 64 / size;
    // SAFETY: a whole store only where the row goes on for 64 bytes.
    unsafe {
        let window = Window::<N>::new(recipe, stride, size, 0);
        let (step, bytes) = (each as isize * stride, each * size);
        let (mut from, mut to) = (src, dst);
        let end = dst.wrapping_add(n * size);
        for _ in 0..n / each {
            let v = window.masked(from, &recipe.full);
            if to.wrapping_add(64) <= end {
                _mm512_storeu_si512(to.cast(), v);
            } else {
                _mm512_mask_storeu_epi8(to.cast(), low(bytes), v);
            }
            (from, to) = (from.wrapping_offset(step), to.wrapping_add(bytes));
        }
        let left = n % each;
        if left > 0 {
            let v = window.rest(recipe, from, n, left);
            _mm512_mask_storeu_epi8(to.cast(), low(left * size), v);
        }
    }
}

/// Repeats the element at `src`.
///
/// # Safety
/// As [`super::super::level::Level::splat`]; the CPU has the level.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn splat(
    recipe: &Recipe,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    size: usize,
    (stream, run): (bool, &mut Run),
) {
    let bytes = n * size;
    // SAFETY: one element is read; whole vectors are stored while they fit, then a mask.
    unsafe {
        let one = _mm512_maskz_loadu_epi8(low(size), src.cast());
        let Recipe::Splat(pick) = recipe else {
            unreachable!("a tile of kind splat has the recipe of splat")
        };
        let v = pick.from::<1>([one; 4]);
        if stream && 64 % size == 0 {
            let mut out = run.seek(dst);
            for _ in 0..bytes / 64 {
                out.push(v);
            }
            out.finish(v, bytes % 64);
            return run.keep(out);
        }
        let step = 64 / size * size;
        let mut at = 0;
        while at + 64 <= bytes {
            _mm512_storeu_si512(dst.add(at).cast(), v);
            at += step;
        }
        while at < bytes {
            let left = (bytes - at).min(step);
            _mm512_mask_storeu_epi8(dst.add(at).cast(), low(left), v);
            at += left;
        }
    }
}

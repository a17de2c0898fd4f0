//! Rows of elements a fixed distance apart, of one element repeated, and of interleaved rows taken apart.

use super::super::tile::Tile;
use super::pick::{AHEAD, Out, Pick, Store};
use super::slide::{Slide, low};
use std::arch::x86_64::*;

/// Gathers `n` elements of at most 64 bytes, `stride` bytes apart; `None` where they are too far apart for
/// byte permutes. A function of its own for all sizes: it is called once a row.
///
/// # Safety
/// As [`super::super::level::Level::gather`]; the CPU has the level.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn gather(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
    stream: bool,
) -> Option<()> {
    let span = (64 / size - 1) * stride.unsigned_abs() + size;
    // As many loads as elements: one by one is as good, and starts at once.
    let wide = !stream && size >= 16 && span.div_ceil(64) * size >= 48;
    // SAFETY: the caller's promise; the span of a group is within the windows of each arm.
    unsafe {
        match span {
            _ if n < 4 || wide => return None,
            0..=64 => gather_within::<1>(dst, src, n, stride, size, stream),
            65..=128 => gather_within::<2>(dst, src, n, stride, size, stream),
            129..=192 => gather_within::<3>(dst, src, n, stride, size, stream),
            193..=256 => gather_within::<4>(dst, src, n, stride, size, stream),
            _ => return None,
        }
    }
    Some(())
}

/// [`gather`] where as many elements as fit a line span at most `N` vectors.
///
/// # Safety
/// As [`gather`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn gather_within<const N: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
    stream: bool,
) {
    // SAFETY: the caller's promise; only elements that fill a vector exactly are pushed.
    unsafe {
        if 64 % size != 0 {
            gather_odd::<N>(dst, src, n, stride, size);
        } else if stream && n * size >= 128 {
            gather_to::<N, _>(Slide::new(dst), src, n, stride, size);
        } else {
            gather_to::<N, _>(Store(dst), src, n, stride, size);
        }
    }
}

/// The source window of a group of elements: where it is read, and what is picked from it. Going up it
/// starts at the group's lowest byte, going down it ends at its highest.
struct Window<const N: usize> {
    pick: Pick,
    gap: usize,
    size: usize,
    down: bool,
    /// How far on the source is asked for, in bytes; 0 for not at all.
    ahead: isize,
}

impl<const N: usize> Window<N> {
    /// # Safety
    /// See [`Pick::evenly`].
    #[inline(always)]
    unsafe fn new(stride: isize, size: usize, stream: bool) -> Self {
        let (gap, down) = (stride.unsigned_abs(), stride < 0);
        // This is done once a row, and the size is known only at run time.
        let (first, step) = if down { (64 * N - size, -(gap as isize)) } else { (0, gap as isize) };
        // SAFETY: the caller's promise.
        let pick = unsafe {
            if size.is_power_of_two() {
                Pick::evenly(size, first as i16, step as i16)
            } else {
                Pick::cells(size, first as isize, step)
            }
        };
        let ahead = if stream { AHEAD * stride.signum() } else { 0 };
        Self { pick, gap, size, down, ahead }
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

    /// The group that starts at `first`, of whose row `left` elements are left.
    ///
    /// # Safety
    /// They are readable.
    #[inline(always)]
    unsafe fn group(&self, first: *const u8, left: usize) -> __m512i {
        let base = self.base(first);
        let reach = (left - 1) * self.gap + self.size;
        // SAFETY: a window is read whole only while the rest of the row spans as much; else masks let
        // through only bytes of the row.
        unsafe {
            if reach >= 64 * N {
                return self.whole(first);
            }
            let mut v = [_mm512_setzero_si512(); 4];
            for (k, v) in v.iter_mut().enumerate().take(N) {
                let mask = if self.down {
                    !low((64 * N - reach).saturating_sub(64 * k).min(64))
                } else {
                    low(reach.saturating_sub(64 * k).min(64))
                };
                *v = _mm512_maskz_loadu_epi8(mask, base.wrapping_add(64 * k).cast());
            }
            self.pick.from::<N>(v)
        }
    }
}

/// # Safety
/// As [`gather`], for a size that divides 64.
#[inline(always)]
unsafe fn gather_to<const N: usize, O: Out>(
    mut out: O,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
) {
    let each = 64 / size;
    // SAFETY: group `j` reads elements `j..`, of which `n - j` are left; groups whose window lies inside
    // the row are read whole.
    unsafe {
        // A short row is in cache, or its neighbour was asked for.
        let window = Window::<N>::new(stride, size, O::STREAMS || n * size >= 2048);
        let (step, gap) = (each as isize * stride, stride.unsigned_abs());
        let whole =
            ((n - 1) * gap + size).checked_sub(64 * N).map_or(0, |room| room / (each * gap).max(1) + 1);
        let whole = whole.min(n / each);
        let mut from = src;
        for _ in 0..whole {
            out.push(window.whole(from));
            from = from.wrapping_offset(step);
        }
        let mut j = whole * each;
        while j + each <= n {
            out.push(window.group(src.offset(j as isize * stride), n - j));
            j += each;
        }
        if j < n {
            let v = window.group(src.offset(j as isize * stride), n - j);
            out.finish(v, (n - j) * size);
        } else {
            out.finish(_mm512_setzero_si512(), 0);
        }
    }
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
        let row = |c: usize| t.dst.offset(t.a[c].dst);
        if t.stream {
            planes_to::<N, _>(std::array::from_fn(|c| Slide::new(row(c))), t, size);
        } else {
            planes_to::<N, _>(std::array::from_fn(|c| Store(row(c))), t, size);
        }
    }
}

/// `N` vectors of the source make one of each row.
///
/// # Safety
/// As [`planes`].
#[inline(always)]
unsafe fn planes_to<const N: usize, O: Out>(mut out: [O; N], t: &Tile<'_>, size: usize) {
    let (each, step) = (64 / size, N * size);
    // SAFETY: whole vectors are read while there are as many columns left, then masks.
    unsafe {
        let picks: [Pick; N] = std::array::from_fn(|c| Pick::evenly(size, (c * size) as i16, step as i16));
        let mut v = [_mm512_setzero_si512(); 4];
        let mut from = t.src;
        for _ in 0..t.nb / each {
            for (k, v) in v.iter_mut().enumerate().take(N) {
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_offset(AHEAD).wrapping_add(64 * k).cast());
                *v = _mm512_loadu_si512(from.wrapping_add(64 * k).cast());
            }
            for (out, pick) in out.iter_mut().zip(&picks) {
                out.push(pick.from::<N>(v));
            }
            from = from.wrapping_add(64 * N);
        }
        let left = t.nb % each;
        if left > 0 {
            for (k, v) in v.iter_mut().enumerate().take(N) {
                let mask = low((left * step).saturating_sub(64 * k));
                *v = _mm512_maskz_loadu_epi8(mask, from.wrapping_add(64 * k).cast());
            }
        }
        for (out, pick) in out.iter_mut().zip(&picks) {
            out.finish(pick.from::<N>(v), left * size);
        }
    }
}

/// Elements that do not fill a vector: what a store writes too much the next one overwrites.
///
/// # Safety
/// As [`gather`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn gather_odd<const N: usize>(dst: *mut u8, src: *const u8, n: usize, stride: isize, size: usize) {
    let each = 64 / size;
    // SAFETY: a whole store only where the row goes on for 64 bytes.
    unsafe {
        let window = Window::<N>::new(stride, size, false);
        let mut j = 0;
        while j < n {
            let left = n - j;
            let v = window.group(src.offset(j as isize * stride), left);
            let to = dst.add(j * size);
            if left * size >= 64 {
                _mm512_storeu_si512(to.cast(), v);
            } else {
                _mm512_mask_storeu_epi8(to.cast(), low(left.min(each) * size), v);
            }
            j += each;
        }
    }
}

/// Repeats the element at `src`.
///
/// # Safety
/// As [`super::super::level::Level::splat`]; the CPU has the level.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn splat(dst: *mut u8, src: *const u8, n: usize, size: usize, stream: bool) {
    let bytes = n * size;
    // SAFETY: one element is read; whole vectors are stored while they fit, then a mask.
    unsafe {
        let one = _mm512_maskz_loadu_epi8(low(size), src.cast());
        let pick = if size.is_power_of_two() { Pick::evenly(size, 0, 0) } else { Pick::cells(size, 0, 0) };
        let v = pick.from::<1>([one; 4]);
        if stream && 64 % size == 0 && bytes >= 128 {
            let mut out = Slide::new(dst);
            for _ in 0..bytes / 64 {
                out.push(v);
            }
            return out.finish(v, bytes % 64);
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

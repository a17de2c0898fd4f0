//! Rows put together by byte permutes: gathers, repeats and interleaves.

use super::super::cells::Cells;
use super::super::tile::Tile;
use super::slide::{Slide, low};
use std::arch::x86_64::*;

/// How far ahead of what is read a long row asks for its source.
const AHEAD: isize = 4096;

/// How 64 bytes of a row are put together from up to four vectors: the index of each byte.
pub(super) struct Pick {
    index: __m512i,
    /// Bytes that come from the third and fourth vector.
    upper: u64,
}

impl Pick {
    /// `index(b)` is where byte `b` comes from, counted over the concatenated vectors (below 256).
    ///
    /// # Safety
    /// The CPU has the level, here and below.
    #[inline(always)]
    pub(super) unsafe fn new(index: impl Fn(usize) -> usize) -> Self {
        let mut bytes = [0u8; 64];
        for (b, byte) in bytes.iter_mut().enumerate() {
            *byte = index(b) as u8;
        }
        // SAFETY: the caller's promise.
        unsafe { Self::of(&bytes) }
    }

    /// Elements of `size` bytes (a power of two), the first at `first`, the others `step` bytes apart.
    ///
    /// # Safety
    /// See [`Pick::new`].
    #[inline(always)]
    unsafe fn evenly(size: usize, first: i16, step: i16) -> Self {
        const COUNT: [i16; 32] = {
            let mut count = [0; 32];
            let mut b = 0;
            while b < 32 {
                count[b] = b as i16;
                b += 1;
            }
            count
        };
        // SAFETY: 64 readable bytes.
        unsafe {
            let count = _mm512_loadu_si512(COUNT.as_ptr().cast());
            let shift = _mm_cvtsi32_si128(size.trailing_zeros() as i32);
            let (low, high) = (count, _mm512_add_epi16(count, _mm512_set1_epi16(32)));
            let (low_k, high_k) = (_mm512_srl_epi16(low, shift), _mm512_srl_epi16(high, shift));
            let (step, within) = (_mm512_set1_epi16(step), _mm512_set1_epi16(size as i16 - 1));
            let low = _mm512_add_epi16(_mm512_mullo_epi16(low_k, step), _mm512_and_si512(low, within));
            let high = _mm512_add_epi16(_mm512_mullo_epi16(high_k, step), _mm512_and_si512(high, within));
            let first = _mm512_set1_epi16(first);
            let low = _mm512_cvtepi16_epi8(_mm512_add_epi16(low, first));
            let high = _mm512_cvtepi16_epi8(_mm512_add_epi16(high, first));
            let index = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            Self { index, upper: _mm512_movepi8_mask(index) }
        }
    }

    /// [`Pick::evenly`] for elements of any size, as many as fit a vector.
    ///
    /// # Safety
    /// See [`Pick::new`].
    #[inline(always)]
    unsafe fn cells(size: usize, first: isize, step: isize) -> Self {
        let mut index = [0u8; 64];
        let mut at = first;
        for element in index.chunks_exact_mut(size) {
            for (e, index) in element.iter_mut().enumerate() {
                *index = at as u8 + e as u8;
            }
            at += step;
        }
        // SAFETY: the caller's promise.
        unsafe { Self::of(&index) }
    }

    /// # Safety
    /// See [`Pick::new`].
    #[inline(always)]
    unsafe fn of(bytes: &[u8; 64]) -> Self {
        // SAFETY: 64 readable bytes.
        unsafe {
            let index = _mm512_loadu_si512(bytes.as_ptr().cast());
            Self { index, upper: _mm512_movepi8_mask(index) }
        }
    }

    /// Picks from the first `N` vectors.
    ///
    /// # Safety
    /// See [`Pick::new`].
    #[inline(always)]
    pub(super) unsafe fn from<const N: usize>(&self, v: [__m512i; 4]) -> __m512i {
        // SAFETY: register to register.
        unsafe {
            match N {
                1 => _mm512_permutexvar_epi8(self.index, v[0]),
                2 => _mm512_permutex2var_epi8(v[0], self.index, v[1]),
                3 => {
                    let lower = _mm512_permutex2var_epi8(v[0], self.index, v[1]);
                    _mm512_mask_permutexvar_epi8(lower, self.upper, self.index, v[2])
                }
                _ => {
                    let lower = _mm512_permutex2var_epi8(v[0], self.index, v[1]);
                    let upper = _mm512_permutex2var_epi8(v[2], self.index, v[3]);
                    _mm512_mask_mov_epi8(lower, self.upper, upper)
                }
            }
        }
    }
}

/// Where the vectors of a row go, in order.
trait Out {
    /// Whether the vectors leave past the caches, for a row that is read from memory.
    const STREAMS: bool;

    /// A whole vector.
    ///
    /// # Safety
    /// The row goes on for 64 bytes.
    unsafe fn push(&mut self, v: __m512i);

    /// The last `bytes` bytes, less than a vector.
    ///
    /// # Safety
    /// The row goes on for so many bytes.
    unsafe fn finish(&mut self, v: __m512i, bytes: usize);
}

/// Ordinary stores.
struct Store(*mut u8);

impl Out for Store {
    const STREAMS: bool = false;

    #[inline(always)]
    unsafe fn push(&mut self, v: __m512i) {
        // SAFETY: the caller's promise.
        unsafe { _mm512_storeu_si512(self.0.cast(), v) }
        self.0 = self.0.wrapping_add(64);
    }

    #[inline(always)]
    unsafe fn finish(&mut self, v: __m512i, bytes: usize) {
        // SAFETY: a masked store touches only `bytes` bytes; under an empty mask it would still ask for
        // the line.
        unsafe {
            if bytes > 0 {
                _mm512_mask_storeu_epi8(self.0.cast(), low(bytes), v);
            }
        }
    }
}

impl Out for Slide {
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn push(&mut self, v: __m512i) {
        // SAFETY: the caller's promise.
        unsafe { Slide::push(self, v) }
    }

    #[inline(always)]
    unsafe fn finish(&mut self, v: __m512i, bytes: usize) {
        // SAFETY: the caller's promise.
        unsafe { Slide::finish(self, v, bytes) }
    }
}

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
    // SAFETY: the caller's promise; the span of a group is within the windows of each arm.
    unsafe {
        match span {
            _ if n < 4 => return None,
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
    /// See [`Pick::new`].
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

/// Puts `n` cells together, as many at once as fit a vector.
///
/// # Safety
/// As [`super::super::level::Level::cells`]; the CPU has the level.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn cells(cells: &Cells<'_>, dst: *mut u8, src: *const u8, n: usize, stream: bool) {
    // SAFETY: the caller's promise; so many vectors hold the reach.
    unsafe {
        match cells.reach(cells.each).div_ceil(64) {
            1 => cells_of::<1>(cells, dst, src, n, stream),
            2 => cells_of::<2>(cells, dst, src, n, stream),
            3 => cells_of::<3>(cells, dst, src, n, stream),
            _ => cells_of::<4>(cells, dst, src, n, stream),
        }
    }
}

/// [`cells`], where those that leave at once reach over at most `N` vectors.
///
/// # Safety
/// As there.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn cells_of<const N: usize>(cells: &Cells<'_>, dst: *mut u8, src: *const u8, n: usize, stream: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        if stream && cells.each * cells.bytes == 64 && n * cells.bytes >= 128 {
            let mut out = Slide::new(dst);
            cells_to::<N>(
                cells,
                src,
                n,
                |v, bytes| {
                    if bytes == 64 { out.push(v) } else { out.finish(v, bytes) }
                },
            );
            if n.is_multiple_of(cells.each) {
                out.finish(_mm512_setzero_si512(), 0);
            }
            return;
        }
        // What a store writes too much the next one overwrites.
        let end = dst.wrapping_add(n * cells.bytes);
        let mut to = dst;
        cells_to::<N>(cells, src, n, |v, bytes| {
            if to.wrapping_add(64) <= end {
                _mm512_storeu_si512(to.cast(), v);
            } else {
                _mm512_mask_storeu_epi8(to.cast(), low(bytes), v);
            }
            to = to.wrapping_add(bytes);
        });
    }
}

/// Hands on one vector after the other, and how many of its bytes count.
///
/// # Safety
/// As [`cells_of`].
#[inline(always)]
unsafe fn cells_to<const N: usize>(
    cells: &Cells<'_>,
    src: *const u8,
    n: usize,
    mut each: impl FnMut(__m512i, usize),
) {
    let step = cells.each as isize * cells.step();
    let mut from = src.wrapping_offset(cells.below);
    let masks = |from: usize, to: usize| {
        [0, 1, 2, 3].map(|k| low(to.saturating_sub(64 * k)) & !low(from.saturating_sub(64 * k)))
    };
    // SAFETY: masked loads touch only what the cells that are left reach over.
    unsafe {
        let pick = Pick::of(&cells.index);
        let load = |from: *const u8, masks: [u64; 4]| {
            let mut v = [_mm512_setzero_si512(); 4];
            for (k, v) in v.iter_mut().enumerate().take(N) {
                *v = _mm512_maskz_loadu_epi8(masks[k], from.wrapping_add(64 * k).cast());
            }
            pick.from::<N>(v)
        };
        let all = masks(0, cells.reach(cells.each));
        for _ in 0..n / cells.each {
            each(load(from, all), cells.each * cells.bytes);
            from = from.wrapping_offset(step);
        }
        let left = n % cells.each;
        if left > 0 {
            let missing = cells.missing(left);
            each(load(from, masks(missing, missing + cells.reach(left))), left * cells.bytes);
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

/// Interleaves a few dense rows, element by element; `None` where a group of them does not fit a vector.
///
/// # Safety
/// As [`super::super::level::Level::interleave`]; the CPU has the level.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn interleave(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (channels, channel): (usize, isize),
    size: usize,
    stream: bool,
) -> Option<()> {
    // SAFETY: the caller's promise.
    unsafe {
        match channels {
            2 if size <= 32 => interleave_rows::<2>(dst, src, n, channel, size, stream),
            3 if size <= 21 => interleave_rows::<3>(dst, src, n, channel, size, stream),
            4 if size <= 16 => interleave_rows::<4>(dst, src, n, channel, size, stream),
            _ => return None,
        }
    }
    Some(())
}

/// [`interleave`] of `N` rows.
///
/// # Safety
/// As [`interleave`].
#[inline(always)]
unsafe fn interleave_rows<const N: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    channel: isize,
    size: usize,
    stream: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if 64 % size != 0 {
            interleave_odd::<N>(dst, src, n, channel, size);
        } else if stream && n * size * N >= 128 {
            interleave_to::<N, _>(Slide::new(dst), src, n, channel, size);
        } else {
            interleave_to::<N, _>(Store(dst), src, n, channel, size);
        }
    }
}

/// A vector of each row makes `N` vectors of the result.
///
/// # Safety
/// As [`interleave`], for a size that divides 64.
#[inline(always)]
unsafe fn interleave_to<const N: usize, O: Out>(
    mut out: O,
    src: *const u8,
    n: usize,
    channel: isize,
    size: usize,
) {
    let (unit, each) = (N * size, 64 / size);
    // SAFETY: whole vectors are read while each row has as much left, then a mask.
    unsafe {
        let pick = |line: usize| {
            Pick::new(|b| {
                let at = 64 * line + b;
                let (k, c, e) = (at / unit, at % unit / size, at % size);
                c * 64 + k * size + e
            })
        };
        let picks = [pick(0), pick(1), pick(2 % N), pick(3 % N)];
        let mut v = [_mm512_setzero_si512(); 4];
        let mut j = 0;
        while j + each <= n {
            for (c, v) in v.iter_mut().enumerate().take(N) {
                let from = src.offset(c as isize * channel).add(j * size);
                if O::STREAMS {
                    _mm_prefetch::<_MM_HINT_T0>(from.wrapping_offset(AHEAD / 2).cast());
                }
                *v = _mm512_loadu_si512(from.cast());
            }
            for pick in picks.iter().take(N) {
                out.push(pick.from::<N>(v));
            }
            j += each;
        }
        let mask = low((n - j) * size);
        for (c, v) in v.iter_mut().enumerate().take(N) {
            *v = _mm512_maskz_loadu_epi8(mask, src.offset(c as isize * channel).add(j * size).cast());
        }
        let mut left = (n - j) * unit;
        for pick in picks.iter().take(N) {
            let made = pick.from::<N>(v);
            if left < 64 {
                return out.finish(made, left);
            }
            out.push(made);
            left -= 64;
        }
    }
}

/// # Safety
/// As [`interleave`].
#[inline(always)]
unsafe fn interleave_odd<const N: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    channel: isize,
    size: usize,
) {
    let unit = N * size;
    let each = 64 / unit;
    // SAFETY: masked loads touch only what each row has left; a whole store only where the row goes on
    // for 64 bytes.
    unsafe {
        let pick = Pick::new(|b| {
            let (k, c, e) = (b / unit, b % unit / size, b % size);
            if k < each { c * 64 + k * size + e } else { 0 }
        });
        let mut j = 0;
        while j < n {
            let left = n - j;
            let mask = low(left * size);
            let mut v = [_mm512_setzero_si512(); 4];
            for (c, v) in v.iter_mut().enumerate().take(N) {
                let from = src.offset(c as isize * channel).add(j * size);
                *v = _mm512_maskz_loadu_epi8(mask, from.cast());
            }
            let out = pick.from::<N>(v);
            let to = dst.add(j * unit);
            if left * unit >= 64 {
                _mm512_storeu_si512(to.cast(), out);
            } else {
                _mm512_mask_storeu_epi8(to.cast(), low(left.min(each) * unit), out);
            }
            j += each;
        }
    }
}

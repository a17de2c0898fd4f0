//! 512-bit vectors with byte masks and byte permutes: every line is one register, every fringe a mask.

use super::super::level::Level;
use super::super::tile::Step;
use super::super::vector::{self, Vector};
use super::super::{Isa, LevelEntry, tile};
use std::arch::x86_64::*;

pub(in super::super) const ENTRY: LevelEntry =
    LevelEntry { isa: Isa::Avx512, present, tile: run, stream: stream_run, fence: Avx512::fence };

fn present() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
}

/// # Safety
/// As [`tile::run`]; the CPU has what `present` asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn run(t: &tile::Tile<'_>) {
    // SAFETY: the caller's promise is the callee's.
    unsafe { tile::run::<Avx512>(t) }
}

/// # Safety
/// As [`super::super::stage::stream`]; the CPU has what `present` asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn stream_run(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise is the callee's.
    unsafe { super::super::stage::stream::<Avx512>(dst, src, bytes) }
}

struct Avx512;

/// The lowest `n` bits, `n` at most 64.
#[inline(always)]
fn low(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

impl Vector for __m512i {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: the caller has the level, here and below.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    unsafe fn lanes(at: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: 16 readable bytes each.
        unsafe {
            let v = _mm512_castsi128_si512(_mm_loadu_si128(at(0).cast()));
            let v = _mm512_mask_broadcast_i32x4(v, 0x00F0, _mm_loadu_si128(at(1).cast()));
            let v = _mm512_mask_broadcast_i32x4(v, 0x0F00, _mm_loadu_si128(at(2).cast()));
            _mm512_mask_broadcast_i32x4(v, 0xF000, _mm_loadu_si128(at(3).cast()))
        }
    }

    #[inline(always)]
    unsafe fn lanes_partial(at: impl Fn(usize) -> *const u8, bytes: usize) -> Self {
        // SAFETY: masked loads touch only `bytes` bytes.
        unsafe {
            let mask = low(bytes) as u16;
            let v = _mm512_castsi128_si512(_mm_maskz_loadu_epi8(mask, at(0).cast()));
            let v = _mm512_mask_broadcast_i32x4(v, 0x00F0, _mm_maskz_loadu_epi8(mask, at(1).cast()));
            let v = _mm512_mask_broadcast_i32x4(v, 0x0F00, _mm_maskz_loadu_epi8(mask, at(2).cast()));
            _mm512_mask_broadcast_i32x4(v, 0xF000, _mm_maskz_loadu_epi8(mask, at(3).cast()))
        }
    }

    #[inline(always)]
    unsafe fn interleave<const E: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: register to register.
        unsafe {
            match E {
                1 => (_mm512_unpacklo_epi8(self, other), _mm512_unpackhi_epi8(self, other)),
                2 => (_mm512_unpacklo_epi16(self, other), _mm512_unpackhi_epi16(self, other)),
                4 => (_mm512_unpacklo_epi32(self, other), _mm512_unpackhi_epi32(self, other)),
                _ => (_mm512_unpacklo_epi64(self, other), _mm512_unpackhi_epi64(self, other)),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(self, dst: *mut u8) {
        // SAFETY: 64 writable bytes.
        unsafe { _mm512_storeu_si512(dst.cast(), self) }
    }

    #[inline(always)]
    unsafe fn store_partial(self, dst: *mut u8, bytes: usize) {
        // SAFETY: a masked store touches only `bytes` bytes.
        unsafe { _mm512_mask_storeu_epi8(dst.cast(), low(bytes), self) }
    }

    #[inline(always)]
    unsafe fn stream(self, dst: *mut u8) {
        // SAFETY: 64 writable bytes, aligned to 64.
        unsafe { _mm512_stream_si512(dst.cast(), self) }
    }
}

/// How 64 bytes of a row are put together from up to four vectors: the index of each byte.
struct Pick {
    index: __m512i,
    /// Bytes that come from the third and fourth vector.
    upper: u64,
}

impl Pick {
    /// `index(b)` is where byte `b` comes from, counted over the concatenated vectors (below 256).
    #[inline(always)]
    unsafe fn new(index: impl Fn(usize) -> usize) -> Self {
        let mut bytes = [0u8; 64];
        for (b, byte) in bytes.iter_mut().enumerate() {
            *byte = index(b) as u8;
        }
        // SAFETY: 64 readable bytes; the caller has the level.
        unsafe {
            let index = _mm512_loadu_si512(bytes.as_ptr().cast());
            Self { index, upper: _mm512_movepi8_mask(index) }
        }
    }

    /// Picks from `N` vectors.
    #[inline(always)]
    unsafe fn from<const N: usize>(&self, v: [__m512i; 4]) -> __m512i {
        // SAFETY: register to register; the caller has the level.
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

/// Gathers `n` elements `stride` bytes apart where as many as fit a line span at most `N` vectors.
///
/// # Safety
/// As [`Level::gather`].
#[inline(always)]
unsafe fn gather_close<const N: usize>(dst: *mut u8, src: *const u8, n: usize, stride: isize, size: usize) {
    let each = 64 / size;
    let gap = stride.unsigned_abs();
    // Source addresses count from the group's lowest byte going up, or from its highest going down.
    let span = |k: usize| (k - 1) * gap + size;
    let window = 64 * N;
    // SAFETY: whole windows are read only while the rest of the row spans as much; the last groups
    // read with masks.
    unsafe {
        let pick = Pick::new(|b| {
            let (k, e) = (b / size, b % size);
            match k < each {
                false => 0,
                true if stride >= 0 => k * gap + e,
                true => window - size - k * gap + e,
            }
        });
        let down = stride < 0;
        let mut j = 0;
        while j < n {
            let left = n - j;
            let first = src.offset(j as isize * stride);
            let base = if down { first.wrapping_add(size).wrapping_sub(window) } else { first };
            let reach = span(left);
            let mut v = [_mm512_setzero_si512(); 4];
            if reach >= window {
                for (k, v) in v.iter_mut().enumerate().take(N) {
                    *v = _mm512_loadu_si512(base.wrapping_add(64 * k).cast());
                }
            } else {
                for (k, v) in v.iter_mut().enumerate().take(N) {
                    // Valid bytes of the window: the first `reach`, or going down the last.
                    let mask = if down {
                        let skip = (window - reach).saturating_sub(64 * k).min(64);
                        !low(skip)
                    } else {
                        low(reach.saturating_sub(64 * k).min(64))
                    };
                    *v = _mm512_maskz_loadu_epi8(mask, base.wrapping_add(64 * k).cast());
                }
            }
            let out = pick.from::<N>(v);
            let to = dst.add(j * size);
            if left * size >= 64 {
                // The bytes past `each` elements are written again by the next group.
                _mm512_storeu_si512(to.cast(), out);
            } else {
                _mm512_mask_storeu_epi8(to.cast(), low(left.min(each) * size), out);
            }
            j += each;
        }
    }
}

/// Interleaves `N` dense rows, element by element.
///
/// # Safety
/// As [`Level::interleave`] with `channels` equal to `N`.
#[inline(always)]
unsafe fn weave<const N: usize>(dst: *mut u8, src: *const u8, n: usize, channel: isize, size: usize) {
    let unit = N * size;
    let each = 64 / unit;
    // SAFETY: whole vectors are read only while each row has as much left; the last groups use masks.
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
                *v = if mask == u64::MAX {
                    _mm512_loadu_si512(from.cast())
                } else {
                    _mm512_maskz_loadu_epi8(mask, from.cast())
                };
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

impl Level for Avx512 {
    #[inline(always)]
    unsafe fn line(dst: *mut u8, src: *const u8) {
        // SAFETY: 64 bytes on both sides, `dst` aligned.
        unsafe { _mm512_stream_si512(dst.cast(), _mm512_loadu_si512(src.cast())) }
    }

    #[inline(always)]
    unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
        // SAFETY: whole vectors while they fit, then a mask.
        unsafe {
            if bytes > 4096 {
                return std::ptr::copy_nonoverlapping(src, dst, bytes);
            }
            let mut at = 0;
            while at + 64 <= bytes {
                _mm512_storeu_si512(dst.add(at).cast(), _mm512_loadu_si512(src.add(at).cast()));
                at += 64;
            }
            if at < bytes {
                let mask = low(bytes - at);
                let v = _mm512_maskz_loadu_epi8(mask, src.add(at).cast());
                _mm512_mask_storeu_epi8(dst.add(at).cast(), mask, v);
            }
        }
    }

    #[inline(always)]
    unsafe fn splat<const E: usize>(dst: *mut u8, src: *const u8, n: usize, size: usize) {
        // SAFETY: one element is read; whole vectors are stored while they fit, then a mask.
        unsafe {
            let one = _mm512_maskz_loadu_epi8(low(size), src.cast());
            let each = 64 / size;
            let v = Pick::new(|b| b % size).from::<1>([one; 4]);
            let (step, bytes) = (each * size, n * size);
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

    #[inline(always)]
    unsafe fn gather<const E: usize>(dst: *mut u8, src: *const u8, n: usize, stride: isize, size: usize) {
        let each = 64 / size;
        let span = (each - 1) * stride.unsigned_abs() + size;
        // SAFETY: the caller's promise; the span of a group is within the windows of each arm.
        unsafe {
            match span {
                _ if n < 4 => super::super::level::gather::<E>(dst, src, n, stride, size),
                0..=64 => gather_close::<1>(dst, src, n, stride, size),
                65..=128 => gather_close::<2>(dst, src, n, stride, size),
                129..=192 => gather_close::<3>(dst, src, n, stride, size),
                193..=256 => gather_close::<4>(dst, src, n, stride, size),
                _ => super::super::level::gather::<E>(dst, src, n, stride, size),
            }
        }
    }

    #[inline(always)]
    unsafe fn interleave<const E: usize>(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        channels: usize,
        channel: isize,
        size: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match channels {
                2 if size <= 32 => weave::<2>(dst, src, n, channel, size),
                3 if size <= 21 => weave::<3>(dst, src, n, channel, size),
                4 if size <= 16 => weave::<4>(dst, src, n, channel, size),
                _ => super::super::level::interleave::<E>(dst, src, n, channels, channel, size),
            }
        }
    }

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
        // SAFETY: the caller's promise.
        unsafe {
            match E {
                1 => vector::transpose::<__m512i, 1>(src, dst, na, rows, b, stream),
                2 => vector::transpose::<__m512i, 2>(src, dst, na, rows, b, stream),
                4 => vector::transpose::<__m512i, 4>(src, dst, na, rows, b, stream),
                8 => vector::transpose::<__m512i, 8>(src, dst, na, rows, b, stream),
                16 => vector::transpose::<__m512i, 16>(src, dst, na, rows, b, stream),
                _ => odd(src, dst, na, rows, b, size),
            }
        }
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: every x86-64 has it.
        unsafe { _mm_sfence() }
    }
}

/// Elements of any other size, at most 64 bytes: masked loads, and stores that overlap going up.
///
/// # Safety
/// As [`Level::transpose`].
#[inline(always)]
unsafe fn odd(
    src: *const u8,
    dst: *mut u8,
    na: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    size: usize,
) {
    /// # Safety
    /// As [`odd`], with `size` at most 16.
    #[inline(always)]
    unsafe fn narrow(src: *const u8, dst: *mut u8, b: &[Step], size: usize) {
        let mask = low(size) as u16;
        let bytes = b.len() * size;
        // SAFETY: loads touch `size` bytes; a whole store only where the row goes on that far.
        unsafe {
            for (j, step) in b.iter().enumerate() {
                let v = _mm_maskz_loadu_epi8(mask, src.offset(step.src).cast());
                let to = dst.add(j * size);
                if j * size + 16 <= bytes {
                    _mm_storeu_si128(to.cast(), v);
                } else {
                    _mm_mask_storeu_epi8(to.cast(), mask, v);
                }
            }
        }
    }
    let mask = low(size);
    let bytes = b.len() * size;
    for i in 0..na {
        // SAFETY: as in `narrow`, with 64 bytes a store.
        unsafe {
            let (from, row) = (src.add(i * size), dst.offset(rows(i)));
            if size <= 16 {
                narrow(from, row, b, size);
                continue;
            }
            for (j, step) in b.iter().enumerate() {
                let v = _mm512_maskz_loadu_epi8(mask, from.offset(step.src).cast());
                let to = row.add(j * size);
                if j * size + 64 <= bytes {
                    _mm512_storeu_si512(to.cast(), v);
                } else {
                    _mm512_mask_storeu_epi8(to.cast(), mask, v);
                }
            }
        }
    }
}

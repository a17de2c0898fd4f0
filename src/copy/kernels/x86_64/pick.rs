//! Byte permutes over several vectors, and where the vectors that they make go.

use super::slide::{Slide, low};
use std::arch::x86_64::*;

/// How 64 bytes of a row are put together from up to four vectors: the index of each byte.
pub(super) struct Pick {
    index: __m512i,
    /// Bytes that come from the third and fourth vector.
    upper: u64,
}

impl Pick {
    /// Elements of `size` bytes (a power of two), the first at `first`, the others `step` bytes apart.
    ///
    /// # Safety
    /// The CPU has the level, here and below.
    #[inline(always)]
    pub(super) unsafe fn evenly(size: usize, first: i16, step: i16) -> Self {
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

    /// [`Pick::evenly`] for elements of any size.
    ///
    /// # Safety
    /// See [`Pick::evenly`].
    #[inline(always)]
    pub(super) unsafe fn of_size(size: usize, first: isize, step: isize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            if size.is_power_of_two() {
                Self::evenly(size, first as i16, step as i16)
            } else {
                Self::cells(size, first, step)
            }
        }
    }

    /// [`Pick::evenly`] for elements of any size, as many as fit a vector.
    ///
    /// # Safety
    /// See [`Pick::evenly`].
    #[inline(always)]
    pub(super) unsafe fn cells(size: usize, first: isize, step: isize) -> Self {
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
    /// See [`Pick::evenly`].
    #[inline(always)]
    pub(super) unsafe fn of(bytes: &[u8; 64]) -> Self {
        // SAFETY: 64 readable bytes.
        unsafe {
            let index = _mm512_loadu_si512(bytes.as_ptr().cast());
            Self { index, upper: _mm512_movepi8_mask(index) }
        }
    }

    /// Picks from the first `N` vectors.
    ///
    /// # Safety
    /// See [`Pick::evenly`].
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
pub(super) trait Out {
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
pub(super) struct Store(pub(super) *mut u8);

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

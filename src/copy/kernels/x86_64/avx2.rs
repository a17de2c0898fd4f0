//! 256-bit vectors of x86-64.

use super::super::level::{self, Level, Way};
use super::super::tile::Step;
use super::super::vector::{self, Vector};
use super::super::{Isa, LevelEntry, stage, tile};
use std::arch::x86_64::*;

pub(in super::super) const ENTRY: LevelEntry =
    LevelEntry { isa: Isa::Avx2, present, tile: tile::run::<Avx2>, stream, fence: Avx2::fence };

fn present() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2")
}

/// # Safety
/// As [`stage::stream`]; the CPU has what `present` asks for.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn stream(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise is the callee's.
    unsafe { stage::stream::<Avx2>(dst, src, bytes) }
}

struct Avx2;

impl Vector for __m256i {
    const LANES: usize = 2;

    #[inline(always)]
    unsafe fn lanes(at: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: 16 readable bytes each.
        unsafe {
            let low = _mm256_castsi128_si256(_mm_loadu_si128(at(0).cast()));
            _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(at(1).cast()))
        }
    }

    #[inline(always)]
    unsafe fn load(src: *const u8) -> Self {
        // SAFETY: a readable vector.
        unsafe { _mm256_loadu_si256(src.cast()) }
    }

    #[inline(always)]
    unsafe fn interleave<const E: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: register to register.
        unsafe {
            match E {
                1 => (_mm256_unpacklo_epi8(self, other), _mm256_unpackhi_epi8(self, other)),
                2 => (_mm256_unpacklo_epi16(self, other), _mm256_unpackhi_epi16(self, other)),
                4 => (_mm256_unpacklo_epi32(self, other), _mm256_unpackhi_epi32(self, other)),
                _ => (_mm256_unpacklo_epi64(self, other), _mm256_unpackhi_epi64(self, other)),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(self, dst: *mut u8) {
        // SAFETY: a writable vector.
        unsafe { _mm256_storeu_si256(dst.cast(), self) }
    }

    #[inline(always)]
    unsafe fn stream(self, dst: *mut u8) {
        // SAFETY: a writable vector, aligned.
        unsafe { _mm256_stream_si256(dst.cast(), self) }
    }
}

impl Level for Avx2 {
    type Recipe = ();
    type Run = ();

    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn apart<P: tile::Part>(t: &tile::Tile<'_>) {
        // SAFETY: the caller's promise is the callee's.
        unsafe { P::run::<Self>(t) }
    }

    #[inline(always)]
    unsafe fn line(dst: *mut u8, src: *const u8) {
        // SAFETY: 64 bytes on both sides, `dst` aligned.
        unsafe {
            _mm256_stream_si256(dst.cast(), _mm256_loadu_si256(src.cast()));
            _mm256_stream_si256(dst.add(32).cast(), _mm256_loadu_si256(src.add(32).cast()));
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
        way: Way,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match E {
                1 | 2 | 4 | 8 | 16 => vector::transpose::<__m256i, E>(src, dst, na, rows, b, way),
                _ => level::transpose::<Self, E>(src, dst, na, rows, b, size),
            }
        }
    }

    #[inline(always)]
    fn fence() {
        // SAFETY: every x86-64 has it.
        unsafe { _mm_sfence() }
    }
}

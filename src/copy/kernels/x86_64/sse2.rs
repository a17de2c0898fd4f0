//! 128-bit vectors of x86-64, which every such CPU has.

use super::super::level::{self, Level, Way};
use super::super::tile::Step;
use super::super::vector::{self, Vector};
use super::super::{Isa, LevelEntry, stage, tile};
use std::arch::x86_64::*;

pub(in super::super) const ENTRY: LevelEntry =
    LevelEntry { isa: Isa::Sse2, present, tile: tile::run::<Sse2>, stream, fence: Sse2::fence };

fn present() -> bool {
    true
}

/// # Safety
/// As [`stage::stream`]; the CPU has what `present` asks for.
#[target_feature(enable = "sse2")]
unsafe fn stream(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise is the callee's.
    unsafe { stage::stream::<Sse2>(dst, src, bytes) }
}

struct Sse2;

impl Vector for __m128i {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn lanes(at: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: 16 readable bytes each.
        unsafe { _mm_loadu_si128(at(0).cast()) }
    }

    #[inline(always)]
    unsafe fn load(src: *const u8) -> Self {
        // SAFETY: a readable vector.
        unsafe { _mm_loadu_si128(src.cast()) }
    }

    #[inline(always)]
    unsafe fn interleave<const E: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: register to register.
        unsafe {
            match E {
                1 => (_mm_unpacklo_epi8(self, other), _mm_unpackhi_epi8(self, other)),
                2 => (_mm_unpacklo_epi16(self, other), _mm_unpackhi_epi16(self, other)),
                4 => (_mm_unpacklo_epi32(self, other), _mm_unpackhi_epi32(self, other)),
                _ => (_mm_unpacklo_epi64(self, other), _mm_unpackhi_epi64(self, other)),
            }
        }
    }

    #[inline(always)]
    unsafe fn store(self, dst: *mut u8) {
        // SAFETY: a writable vector.
        unsafe { _mm_storeu_si128(dst.cast(), self) }
    }

    #[inline(always)]
    unsafe fn stream(self, dst: *mut u8) {
        // SAFETY: a writable vector, aligned.
        unsafe { _mm_stream_si128(dst.cast(), self) }
    }
}

impl Level for Sse2 {
    type Recipe = ();
    type Run = ();

    #[target_feature(enable = "sse2")]
    unsafe fn apart<P: tile::Part>(t: &tile::Tile<'_>) {
        // SAFETY: the caller's promise is the callee's.
        unsafe { P::run::<Self>(t) }
    }

    #[inline(always)]
    unsafe fn line(dst: *mut u8, src: *const u8) {
        // SAFETY: 64 bytes on both sides, `dst` aligned.
        unsafe {
            let mut at = 0;
            while at < 64 {
                _mm_stream_si128(dst.add(at).cast(), _mm_loadu_si128(src.add(at).cast()));
                at += 16;
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
        way: Way,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match E {
                1 | 2 | 4 | 8 | 16 => vector::transpose::<__m128i, E>(src, dst, na, rows, b, way),
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

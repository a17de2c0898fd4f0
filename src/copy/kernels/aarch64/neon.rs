//! 128-bit vectors of AArch64. It has no streaming store that the compiler can name: stores are ordinary.

use super::super::level::{self, Level, Way};
use super::super::tile::Step;
use super::super::vector::{self, Vector};
use super::super::{Isa, LevelEntry, stage, tile};
use std::arch::aarch64::*;

pub(in super::super) const ENTRY: LevelEntry =
    LevelEntry { isa: Isa::Neon, present, tile: tile::run::<Neon>, stream, fence: Neon::fence };

fn present() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

/// # Safety
/// As [`stage::stream`]; the CPU has what `present` asks for.
#[target_feature(enable = "neon")]
unsafe fn stream(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise is the callee's.
    unsafe { stage::stream::<Neon>(dst, src, bytes) }
}

struct Neon;

impl Vector for uint8x16_t {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn lanes(at: impl Fn(usize) -> *const u8) -> Self {
        // SAFETY: 16 readable bytes.
        unsafe { vld1q_u8(at(0)) }
    }

    #[inline(always)]
    unsafe fn load(src: *const u8) -> Self {
        // SAFETY: 16 readable bytes.
        unsafe { vld1q_u8(src) }
    }

    #[inline(always)]
    unsafe fn interleave<const E: usize>(self, other: Self) -> (Self, Self) {
        // SAFETY: register to register.
        unsafe {
            match E {
                1 => (vzip1q_u8(self, other), vzip2q_u8(self, other)),
                2 => {
                    let (a, b) = (vreinterpretq_u16_u8(self), vreinterpretq_u16_u8(other));
                    (vreinterpretq_u8_u16(vzip1q_u16(a, b)), vreinterpretq_u8_u16(vzip2q_u16(a, b)))
                }
                4 => {
                    let (a, b) = (vreinterpretq_u32_u8(self), vreinterpretq_u32_u8(other));
                    (vreinterpretq_u8_u32(vzip1q_u32(a, b)), vreinterpretq_u8_u32(vzip2q_u32(a, b)))
                }
                _ => {
                    let (a, b) = (vreinterpretq_u64_u8(self), vreinterpretq_u64_u8(other));
                    (vreinterpretq_u8_u64(vzip1q_u64(a, b)), vreinterpretq_u8_u64(vzip2q_u64(a, b)))
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn store(self, dst: *mut u8) {
        // SAFETY: 16 writable bytes.
        unsafe { vst1q_u8(dst, self) }
    }

    #[inline(always)]
    unsafe fn stream(self, dst: *mut u8) {
        // SAFETY: 16 writable bytes.
        unsafe { vst1q_u8(dst, self) }
    }
}

impl Level for Neon {
    type Recipe = ();
    type Run = ();

    #[target_feature(enable = "neon")]
    unsafe fn apart<P: tile::Part>(t: &tile::Tile<'_>) {
        // SAFETY: the caller's promise is the callee's.
        unsafe { P::run::<Self>(t) }
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
                1 | 2 | 4 | 8 | 16 => vector::transpose::<uint8x16_t, E>(src, dst, na, rows, b, way),
                _ => level::transpose::<Self, E>(src, dst, na, rows, b, size),
            }
        }
    }
}

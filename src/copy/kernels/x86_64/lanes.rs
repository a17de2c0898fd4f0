//! Rows of elements of 8 and 16 bytes that lie apart: a line of them is put together element by element.
//!
//! Each element is loaded into its place of the vector by a broadcast under a mask, which waits for the one before:
//! so the elements are read one after the other, as the hardware's prefetchers expect, and leave by one store. In
//! instructions written out, because the compiler would turn them into loads in any order, which take up to half as
//! long again where the source is not in the first-level cache.

use std::arch::asm;
use std::arch::x86_64::*;

/// Puts the 16 bytes at `at` into the lane of `v` that `mask` selects by its four bits.
///
/// # Safety
/// 16 readable bytes; the CPU has the level, here and below.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn lane(mut v: __m512i, mask: u16, at: *const u8) -> __m512i {
    // SAFETY: reads 16 bytes and changes nothing but the register.
    unsafe {
        asm!(
            "vbroadcasti32x4 {v}{{{mask}}}, xmmword ptr [{at}]",
            v = inout(zmm_reg) v, mask = in(kreg) mask, at = in(reg) at,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    v
}

/// Puts the 8 bytes at `at` into the part of `v` that `mask` selects by its bit.
///
/// # Safety
/// 8 readable bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn half_lane(mut v: __m512i, mask: u8, at: *const u8) -> __m512i {
    // SAFETY: reads 8 bytes and changes nothing but the register.
    unsafe {
        asm!(
            "vpbroadcastq {v}{{{mask}}}, qword ptr [{at}]",
            v = inout(zmm_reg) v, mask = in(kreg) mask, at = in(reg) at,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    v
}

/// Elements of 16 bytes of a row of `n` that come one by one, so that lines are written whole: long rows only.
#[inline(always)]
fn before_line(dst: *const u8, n: usize) -> usize {
    if n >= 64 && dst.addr().is_multiple_of(16) { dst.addr().wrapping_neg() % 64 / 16 } else { 0 }
}

/// A row of `n` elements of 16 bytes, `stride` bytes apart.
///
/// # Safety
/// As [`super::super::level::Level::gather`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn row_of_16(dst: *mut u8, src: *const u8, n: usize, stride: isize) {
    let (mut from, mut to) = (src, dst);
    let head = before_line(dst, n);
    // SAFETY: `n` elements on both sides.
    unsafe {
        for _ in 0..head {
            _mm_storeu_si128(to.cast(), _mm_loadu_si128(from.cast()));
            (from, to) = (from.wrapping_offset(stride), to.wrapping_add(16));
        }
        let n = n - head;
        for _ in 0..n / 4 {
            let v = _mm512_castsi128_si512(_mm_loadu_si128(from.cast()));
            let v = lane(v, 0x00F0, from.wrapping_offset(stride));
            let v = lane(v, 0x0F00, from.wrapping_offset(2 * stride));
            let v = lane(v, 0xF000, from.wrapping_offset(3 * stride));
            _mm512_storeu_si512(to.cast(), v);
            (from, to) = (from.wrapping_offset(4 * stride), to.wrapping_add(64));
        }
        for _ in 0..n % 4 {
            _mm_storeu_si128(to.cast(), _mm_loadu_si128(from.cast()));
            (from, to) = (from.wrapping_offset(stride), to.wrapping_add(16));
        }
    }
}

/// A row of `n` elements of 8 bytes, `stride` bytes apart.
///
/// # Safety
/// As [`row_of_16`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn row_of_8(dst: *mut u8, src: *const u8, n: usize, stride: isize) {
    let (mut from, mut to) = (src, dst);
    // SAFETY: `n` elements on both sides.
    unsafe {
        for _ in 0..n / 8 {
            let v = four(from, stride);
            let v = half_lane(v, 0x10, from.wrapping_offset(4 * stride));
            let v = half_lane(v, 0x20, from.wrapping_offset(5 * stride));
            let v = half_lane(v, 0x40, from.wrapping_offset(6 * stride));
            let v = half_lane(v, 0x80, from.wrapping_offset(7 * stride));
            _mm512_storeu_si512(to.cast(), v);
            (from, to) = (from.wrapping_offset(8 * stride), to.wrapping_add(64));
        }
        if n & 4 != 0 {
            _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(four(from, stride)));
            (from, to) = (from.wrapping_offset(4 * stride), to.wrapping_add(32));
        }
        for _ in 0..n % 4 {
            to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
            (from, to) = (from.wrapping_offset(stride), to.wrapping_add(8));
        }
    }
}

/// Four elements of 8 bytes, `stride` bytes apart, in the lower half of a vector.
///
/// # Safety
/// They are readable.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn four(from: *const u8, stride: isize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let v = _mm512_castsi128_si512(_mm_loadl_epi64(from.cast()));
        let v = half_lane(v, 0x02, from.wrapping_offset(stride));
        let v = half_lane(v, 0x04, from.wrapping_offset(2 * stride));
        half_lane(v, 0x08, from.wrapping_offset(3 * stride))
    }
}

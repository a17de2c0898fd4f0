//! 512-bit vectors with byte masks and byte permutes: every line is one register, every fringe a mask.

use super::super::cells::Cells;
use super::super::level::{self, Level, Way};
use super::super::stage;
use super::super::tile::Step;
use super::super::vector::{self, Vector};
use super::super::{Isa, LevelEntry, tile};
use super::recipe::Recipe;
use super::run::{self, Run};
use super::slide::low;
use super::{lanes, odd, rows, slide, weave};
use std::arch::asm;
use std::arch::x86_64::*;

pub(in super::super) const ENTRY: LevelEntry = LevelEntry {
    isa: Isa::Avx512,
    present,
    tile: tile::run::<Avx512>,
    stream: stream_run,
    fence: Avx512::fence,
};

fn present() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vbmi")
}

/// # Safety
/// As [`stage::stream`]; the CPU has what `present` asks for.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn stream_run(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise is the callee's.
    unsafe { stage::stream::<Avx512>(dst, src, bytes) }
}

pub(super) struct Avx512;

impl Vector for __m512i {
    const LANES: usize = 4;

    #[inline(always)]
    fn anew(mut x: isize) -> isize {
        // SAFETY: no instruction, and a register that stays as it is.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags));
        }
        x
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
    unsafe fn turn(rows: [Self; 4]) -> [Self; 4] {
        // SAFETY: register to register.
        unsafe {
            let a = _mm512_shuffle_i32x4::<0x44>(rows[0], rows[1]);
            let b = _mm512_shuffle_i32x4::<0xEE>(rows[0], rows[1]);
            let c = _mm512_shuffle_i32x4::<0x44>(rows[2], rows[3]);
            let d = _mm512_shuffle_i32x4::<0xEE>(rows[2], rows[3]);
            [
                _mm512_shuffle_i32x4::<0x88>(a, c),
                _mm512_shuffle_i32x4::<0xDD>(a, c),
                _mm512_shuffle_i32x4::<0x88>(b, d),
                _mm512_shuffle_i32x4::<0xDD>(b, d),
            ]
        }
    }

    #[inline(always)]
    unsafe fn load(src: *const u8) -> Self {
        // SAFETY: 64 readable bytes.
        unsafe { _mm512_loadu_si512(src.cast()) }
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

impl Level for Avx512 {
    type Recipe = Recipe;
    type Run = Run;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn apart<P: tile::Part>(t: &tile::Tile<'_>) {
        // SAFETY: the caller's promise is the callee's.
        unsafe { P::run::<Self>(t) }
    }

    #[inline(always)]
    unsafe fn element<const E: usize>(dst: *mut u8, src: *const u8, size: usize) {
        // The compiler would make gather instructions of loops over these, which take longer than as many loads:
        // it must not know that what is stored is what was loaded.
        // SAFETY: the caller vouches for `E` bytes on both sides; the empty instruction touches nothing.
        unsafe {
            match E {
                4 => {
                    let mut v = src.cast::<u32>().read_unaligned();
                    asm!("/* {v:e} */", v = inout(reg) v, options(pure, nomem, nostack, preserves_flags));
                    dst.cast::<u32>().write_unaligned(v);
                }
                8 => {
                    let mut v = src.cast::<u64>().read_unaligned();
                    asm!("/* {v:r} */", v = inout(reg) v, options(pure, nomem, nostack, preserves_flags));
                    dst.cast::<u64>().write_unaligned(v);
                }
                _ => level::element::<E>(dst, src, size),
            }
        }
    }

    #[inline(always)]
    unsafe fn line(dst: *mut u8, src: *const u8) {
        // SAFETY: 64 bytes on both sides, `dst` aligned.
        unsafe { _mm512_stream_si512(dst.cast(), _mm512_loadu_si512(src.cast())) }
    }

    #[inline(always)]
    unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
        // SAFETY: whole vectors while they fit, then a mask.
        unsafe {
            if bytes >= 2048 {
                return std::ptr::copy_nonoverlapping(src, dst, bytes);
            }
            let mut at = 0;
            if bytes >= 512 {
                // Stores that straddle lines cost twice: the first one goes as far as the next line.
                _mm512_storeu_si512(dst.cast(), _mm512_loadu_si512(src.cast()));
                at = 64 - dst.addr() % 64;
                while at + 256 <= bytes {
                    let from = src.add(at);
                    let v = [
                        _mm512_loadu_si512(from.cast()),
                        _mm512_loadu_si512(from.add(64).cast()),
                        _mm512_loadu_si512(from.add(128).cast()),
                        _mm512_loadu_si512(from.add(192).cast()),
                    ];
                    _mm512_storeu_si512(dst.add(at).cast(), v[0]);
                    _mm512_storeu_si512(dst.add(at + 64).cast(), v[1]);
                    _mm512_storeu_si512(dst.add(at + 128).cast(), v[2]);
                    _mm512_storeu_si512(dst.add(at + 192).cast(), v[3]);
                    at += 256;
                }
            }
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
    unsafe fn stream(run: &mut Run, dst: *mut u8, src: *const u8, bytes: usize, ahead: (*const u8, usize)) {
        // SAFETY: the caller's promise.
        unsafe {
            if (dst.addr() | bytes).is_multiple_of(64) {
                return stage::stream_ahead::<Self>(dst, src, bytes, ahead.0, ahead.1);
            }
            run::copy(run, dst, src, bytes, ahead);
        }
    }

    #[inline(always)]
    unsafe fn splat<const E: usize>(
        recipe: &Recipe,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        size: usize,
        stream: (bool, &mut Run),
    ) {
        // SAFETY: the caller's promise.
        unsafe { rows::splat(recipe, dst, src, n, size, stream) }
    }

    #[inline(always)]
    unsafe fn gather<const E: usize>(
        recipe: &Recipe,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        stride: isize,
        size: usize,
        way: (Option<*const u8>, usize, &mut Run),
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match recipe {
                Recipe::Gather(gather) => rows::gather(gather, dst, src, n, stride, size, way),
                _ => level::gather::<Self, E>(dst, src, n, stride, size),
            }
        }
    }

    #[inline(always)]
    unsafe fn gather_row<const E: usize>(dst: *mut u8, src: *const u8, n: usize, stride: isize) {
        // SAFETY: the caller's promise.
        unsafe {
            if E == 16 {
                lanes::row_of_16(dst, src, n, stride);
            } else {
                lanes::row_of_8(dst, src, n, stride);
            }
        }
    }

    #[inline(always)]
    unsafe fn interleave<const E: usize>(
        recipe: &Recipe,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        (channels, channel): (usize, isize),
        size: usize,
        way: (Way, &mut Run),
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match recipe {
                Recipe::Interleave(picks) => {
                    weave::interleave(picks, dst, src, n, (channels, channel), size, way);
                }
                _ => level::interleave::<Self, E>(dst, src, n, channels, channel, size),
            }
        }
    }

    #[inline(always)]
    unsafe fn planes(t: &tile::Tile<'_>, size: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { rows::planes(t, size) }
    }

    #[inline(always)]
    unsafe fn cells<const E: usize>(
        cells: &Cells<'_>,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        stream: Option<&mut Run>,
    ) {
        // SAFETY: the caller's promise.
        unsafe { weave::cells(cells, dst, src, n, stream) }
    }

    #[inline(always)]
    unsafe fn transpose_staged<const E: usize>(t: &tile::Tile<'_>, size: usize) {
        // SAFETY: the caller's promise.
        unsafe { slide::transpose::<E>(t, size) }
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
                1 | 2 | 4 | 8 | 16 => vector::transpose::<__m512i, E>(src, dst, na, rows, b, way),
                _ if size < 16 => odd::transpose(src, dst, na, rows, b, size, way.ahead),
                _ => wide(src, dst, na, rows, b, size, way.ahead),
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
unsafe fn wide(
    src: *const u8,
    dst: *mut u8,
    na: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    size: usize,
    ahead: usize,
) {
    let mask = low(size);
    let bytes = b.len() * size;
    for i in 0..na {
        // SAFETY: loads touch `size` bytes; a whole store only where the row goes on that far.
        unsafe {
            let (from, row) = (src.add(i * size), dst.offset(rows(i)));
            if i * size % 64 < size {
                for step in b {
                    // Wide elements: lines are used up sooner.
                    Avx512::prefetch(from.wrapping_offset(step.src).wrapping_add(2 * ahead));
                }
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

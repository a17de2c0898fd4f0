//! Elements of 3, 5, 6, 7 and 9 to 15 bytes: spread to the next power of two in registers, transposed as
//! such, and pushed together again, so that a square of them costs little more than one of the wider elements.

use super::super::tile::Step;
use super::super::vector::{self, Turned, Vector};
use super::slide::low;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Squares of a source row that are moved one after the other: 48 to 60 bytes each, so that a source line is
/// used up before it can be evicted.
const SQUARES: usize = 4;

/// [`super::super::level::Level::transpose`] for elements of `size` bytes, no power of two and below 16.
///
/// # Safety
/// As there; the CPU has the level.
#[inline(always)]
pub(super) unsafe fn transpose(
    src: *const u8,
    dst: *mut u8,
    na: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    size: usize,
    ahead: usize,
) {
    // SAFETY: the caller's promise; `P` is the power of two above `size`.
    unsafe {
        match size {
            ..4 => spread::<4>(src, dst, na, rows, b, (size, ahead)),
            4..8 => spread::<8>(src, dst, na, rows, b, (size, ahead)),
            _ => spread::<16>(src, dst, na, rows, b, (size, ahead)),
        }
    }
}

/// How elements are spread to `P` bytes and pushed together again.
struct Spread {
    apart: __m512i,
    together: __m512i,
    size: usize,
    /// How far ahead of a run of squares the source is asked for.
    ahead: usize,
    /// Bytes of a row that go on from a square's first column.
    row_bytes: usize,
}

/// [`transpose`] by way of elements of `P` bytes.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn spread<const P: usize>(
    src: *const u8,
    dst: *mut u8,
    na: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    (size, ahead): (usize, usize),
) {
    let edge = 64 / P;
    let (mut apart, mut together) = ([0u8; 64], [0u8; 64]);
    for k in 0..edge {
        for e in 0..size {
            apart[k * P + e] = (k * size + e) as u8;
            together[k * size + e] = (k * P + e) as u8;
        }
    }
    let run = SQUARES * edge;
    for from in (0..na).step_by(run) {
        let to = na.min(from + run);
        for (block, columns) in b.chunks(edge).enumerate() {
            for i in (from..to).step_by(edge) {
                // SAFETY: the square's rows and columns lie in the tile.
                unsafe {
                    let spread = Spread {
                        apart: _mm512_loadu_si512(apart.as_ptr().cast()),
                        together: _mm512_loadu_si512(together.as_ptr().cast()),
                        size,
                        ahead,
                        row_bytes: (b.len() - block * edge) * size,
                    };
                    let dst = dst.add(block * edge * size);
                    let n = edge.min(to - i);
                    square::<P>(src.add(i * size), dst, n, |k| rows(i + k), columns, &spread, i == from);
                }
            }
        }
    }
}

/// `n` elements of each row `b`, at most an edge of either.
///
/// # Safety
/// As [`transpose`].
#[inline(always)]
unsafe fn square<const P: usize>(
    src: *const u8,
    dst: *mut u8,
    n: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    spread: &Spread,
    ask: bool,
) {
    let group = 16 / P;
    let mask = low(n * spread.size);
    let mut x: Turned<__m512i> = [[MaybeUninit::uninit(); 16]; 4];
    // SAFETY: masked loads touch only the `n` elements (the last row again where there is none); whole stores
    // only where the row goes on for 64 bytes: what they write too much the next square overwrites.
    unsafe {
        for k in 0..group {
            let row = |lane: usize| {
                let from = src.offset(b[(lane * group + k).min(b.len() - 1)].src);
                if ask {
                    let far = from.wrapping_add(spread.ahead);
                    for line in 0..SQUARES {
                        <__m512i as Vector>::prefetch(far.wrapping_add(64 * line));
                    }
                }
                _mm512_permutexvar_epi8(spread.apart, _mm512_maskz_loadu_epi8(mask, from.cast()))
            };
            let turned = <__m512i as Vector>::turn([row(0), row(1), row(2), row(3)]);
            for (x, turned) in x.iter_mut().zip(turned) {
                x[k].write(turned);
            }
        }
        let bytes = b.len() * spread.size;
        for (g, x) in x.iter().enumerate().take(n.div_ceil(group)) {
            let out = vector::network::<__m512i, P>(vector::written::<__m512i, P>(x));
            for (k, v) in out.into_iter().enumerate().take(group.min(n - g * group)) {
                let to = dst.offset(rows(g * group + k));
                let v = _mm512_permutexvar_epi8(spread.together, v);
                if spread.row_bytes >= 64 {
                    _mm512_storeu_si512(to.cast(), v);
                } else {
                    _mm512_mask_storeu_epi8(to.cast(), low(bytes), v);
                }
            }
        }
    }
}

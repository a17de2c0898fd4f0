//! Rows woven from several places: cells of close elements, and a few dense rows in turn.

use super::super::cells::Cells;
use super::super::level::Way;
use super::pick::{Out, Pick, Store};
use super::run::Run;
use super::slide::low;
use std::arch::x86_64::*;

/// Puts `n` cells together, as many at once as fit a vector.
///
/// # Safety
/// As [`super::super::level::Level::cells`]; the CPU has the level.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn cells(
    cells: &Cells<'_>,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stream: Option<&mut Run>,
) {
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
unsafe fn cells_of<const N: usize>(
    cells: &Cells<'_>,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stream: Option<&mut Run>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(run) = stream
            && cells.each * cells.bytes == 64
        {
            let mut out = run.seek(dst);
            cells_to::<N>(
                cells,
                src,
                n,
                |v, bytes| {
                    if bytes == 64 { out.push(v) } else { out.finish(v, bytes) }
                },
            );
            return run.keep(out);
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

/// Interleaves a few dense rows, element by element, as the recipe of so many says.
///
/// # Safety
/// As [`super::super::level::Level::interleave`]; the CPU has the level.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn interleave(
    picks: &[Pick; 4],
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (channels, channel): (usize, isize),
    size: usize,
    (way, run): (Way, &mut Run),
) {
    // SAFETY: the caller's promise.
    unsafe {
        match channels {
            2 => interleave_rows::<2>(picks, dst, src, n, channel, size, (way, run)),
            3 => interleave_rows::<3>(picks, dst, src, n, channel, size, (way, run)),
            _ => interleave_rows::<4>(picks, dst, src, n, channel, size, (way, run)),
        }
    }
}

/// [`interleave`] of `N` rows.
///
/// # Safety
/// As [`interleave`].
#[inline(always)]
unsafe fn interleave_rows<const N: usize>(
    picks: &[Pick; 4],
    dst: *mut u8,
    src: *const u8,
    n: usize,
    channel: isize,
    size: usize,
    (way, run): (Way, &mut Run),
) {
    // SAFETY: the caller's promise.
    unsafe {
        if 64 % size != 0 {
            interleave_odd::<N>(&picks[0], dst, src, n, channel, size);
        } else if way.stream {
            let row = interleave_to::<N, _>(picks, run.seek(dst), src, n, channel, (size, way.ahead));
            run.keep(row);
        } else {
            interleave_to::<N, _>(picks, Store(dst), src, n, channel, (size, way.ahead));
        }
    }
}

/// A vector of each row makes `N` vectors of the result. Returns where the row ends.
///
/// # Safety
/// As [`interleave`], for a size that divides 64.
#[inline(always)]
unsafe fn interleave_to<const N: usize, O: Out>(
    picks: &[Pick; 4],
    mut out: O,
    src: *const u8,
    n: usize,
    channel: isize,
    (size, ahead): (usize, usize),
) -> O {
    let (unit, each) = (N * size, 64 / size);
    // SAFETY: whole vectors are read while each row has as much left, then a mask.
    unsafe {
        let mut v = [_mm512_setzero_si512(); 4];
        let far = src.wrapping_add(ahead / 2);
        let mut j = 0;
        while j + each <= n {
            for (c, v) in v.iter_mut().enumerate().take(N) {
                let at = c as isize * channel + (j * size) as isize;
                let from = src.offset(at);
                if O::STREAMS {
                    _mm_prefetch::<_MM_HINT_T0>(far.wrapping_offset(at).cast());
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
                out.finish(made, left);
                break;
            }
            out.push(made);
            left -= 64;
        }
    }
    out
}

/// # Safety
/// As [`interleave`].
#[inline(always)]
unsafe fn interleave_odd<const N: usize>(
    pick: &Pick,
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

//! Rows that do not start on a line, written as whole lines all the same: each line is put together from
//! the end of the vector before and the start of the next by one byte permute, so that nothing but the
//! first and the last part of a row is a masked store.

use super::super::level::Way;
use super::super::stage;
use super::super::tile::{Step, Tile};
use super::super::vector::{self, Turned, Vector};
use super::avx512::Avx512;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Lines of a destination row that are written before the next row's: at most 64 source rows at once, but where
/// they are packed.
const fn lines(element: usize, packed: bool) -> usize {
    match element {
        1 if !packed => 1,
        2 if !packed => 2,
        _ => 4,
    }
}

/// The lowest `n` bits, `n` at most 64.
#[inline(always)]
pub(super) fn low(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// The permutation that puts a vector `skew` bytes further on, after the one before.
///
/// # Safety
/// The CPU has the level, here and below.
#[inline(always)]
unsafe fn shift(skew: usize) -> __m512i {
    const COUNT: [u8; 64] = {
        let mut count = [0; 64];
        let mut b = 0;
        while b < 64 {
            count[b] = b as u8;
            b += 1;
        }
        count
    };
    // SAFETY: 64 readable bytes.
    unsafe {
        let count = _mm512_loadu_si512(COUNT.as_ptr().cast());
        _mm512_add_epi8(count, _mm512_set1_epi8(64 - skew as i8))
    }
}

/// A row on its way to memory: a line is written once the vector after it is there.
#[derive(Clone, Copy)]
pub(super) struct Slide {
    /// The next line to be written.
    to: *mut u8,
    last: __m512i,
    shift: __m512i,
    skew: usize,
    /// Bytes of the next line that belong to the row.
    mask: u64,
}

impl Slide {
    /// A row that starts at `dst`.
    ///
    /// # Safety
    /// See [`shift`].
    #[inline(always)]
    pub(super) unsafe fn new(dst: *mut u8) -> Self {
        let skew = dst.addr() % 64;
        // SAFETY: the caller's promise.
        unsafe {
            Self {
                to: dst.wrapping_sub(skew),
                last: _mm512_setzero_si512(),
                shift: shift(skew),
                skew,
                mask: !low(skew),
            }
        }
    }

    /// The next 64 bytes of the row.
    ///
    /// # Safety
    /// They are writable.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, v: __m512i) {
        // SAFETY: the caller's promise.
        unsafe { self.line(_mm512_permutex2var_epi8(self.last, self.shift, v)) }
        self.last = v;
    }

    /// The next line, of which nothing is waiting: the row pushed so far ends on one, or `line` has what is.
    ///
    /// # Safety
    /// As [`Slide::push`].
    #[inline(always)]
    pub(super) unsafe fn line(&mut self, line: __m512i) {
        // SAFETY: the line's bytes under the mask belong to the row.
        unsafe {
            if self.mask == u64::MAX {
                _mm512_stream_si512(self.to.cast(), line);
            } else {
                _mm512_mask_storeu_epi8(self.to.cast(), self.mask, line);
                self.mask = u64::MAX;
            }
        }
        self.to = self.to.wrapping_add(64);
    }

    /// Where the next byte goes.
    #[inline(always)]
    pub(super) fn next(&self) -> *mut u8 {
        self.to.wrapping_add(self.skew)
    }

    /// The next `bytes` bytes of the row, at most 64. What they leave of a line waits for what follows.
    ///
    /// # Safety
    /// As [`Slide::push`].
    #[inline(always)]
    pub(super) unsafe fn join(&mut self, v: __m512i, bytes: usize) {
        let skew = self.skew + bytes;
        // SAFETY: the caller's promise; the line is complete.
        unsafe {
            if skew >= 64 {
                self.line(_mm512_permutex2var_epi8(self.last, self.shift, v));
            }
            // The last bytes of both, one after the other, at the vector's end.
            self.last = _mm512_permutex2var_epi8(self.last, shift(64 - bytes), v);
            self.skew = skew % 64;
            self.shift = shift(self.skew);
        }
    }

    /// Writes what waits.
    ///
    /// # Safety
    /// As [`Slide::push`].
    #[inline(always)]
    pub(super) unsafe fn close(self) {
        let mask = self.mask & low(self.skew);
        // SAFETY: the bytes under the mask were pushed. A store under an empty mask would still ask for the line.
        unsafe {
            if mask != 0 {
                let line = _mm512_permutex2var_epi8(self.last, self.shift, self.last);
                _mm512_mask_storeu_epi8(self.to.cast(), mask, line);
            }
        }
    }

    /// The last `bytes` bytes of the row, at most 64, after at least one vector.
    ///
    /// # Safety
    /// They are writable.
    #[inline(always)]
    pub(super) unsafe fn finish(&mut self, v: __m512i, bytes: usize) {
        let end = self.skew + bytes;
        if end == 0 {
            return; // a store under an empty mask would still ask for the line
        }
        // SAFETY: the first `end` bytes from `to` on belong to the row, masked where they are less.
        unsafe {
            let line = _mm512_permutex2var_epi8(self.last, self.shift, v);
            if end < 64 {
                return _mm512_mask_storeu_epi8(self.to.cast(), low(end), line);
            }
            _mm512_stream_si512(self.to.cast(), line);
            if end > 64 {
                let rest = _mm512_permutex2var_epi8(v, self.shift, v);
                _mm512_mask_storeu_epi8(self.to.wrapping_add(64).cast(), low(end - 64), rest);
            }
        }
    }
}

/// Transposes a tile whose rows do not start and end on lines.
///
/// # Safety
/// As [`super::super::level::Level::transpose_staged`].
#[inline(always)]
pub(super) unsafe fn transpose<const E: usize>(t: &Tile<'_>, size: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        // Of rows that were cut the last tile may be less than a line: no vector of it is whole.
        if !t.slides || t.nb * size < 64 {
            return staged::<E>(t, size);
        }
        match E {
            1 => slide::<1>(t),
            2 => slide::<2>(t),
            4 => slide::<4>(t),
            8 => slide::<8>(t),
            16 => slide::<16>(t),
            _ => staged::<E>(t, size),
        }
    }
}

/// Through staging memory, in a frame of its own.
///
/// # Safety
/// As [`transpose`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn staged<const E: usize>(t: &Tile<'_>, size: usize) {
    // SAFETY: the caller's promise.
    unsafe { stage::transpose::<Avx512, E>(t, size) }
}

/// # Safety
/// As [`transpose`], for rows of at least one line.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn slide<const E: usize>(t: &Tile<'_>) {
    let edge = 64 / E;
    let (na, whole) = (t.a.len(), t.nb / edge * edge);
    let mut from = 0;
    let packed = vector::packs(E, t.pitch);
    let mut memory = MaybeUninit::<vector::Runs>::uninit();
    // SAFETY: offsets of rows lie in the tile, which the caller vouches for.
    unsafe { ask::<E>(t, 0) }
    while from < whole {
        let to = whole.min(from + lines(E, packed) * edge);
        if to == whole {
            // SAFETY: as above.
            unsafe { ask::<E>(t, t.nb - 1) }
        }
        let mut i = 0;
        if packed {
            let way = Way { stream: true, ahead: t.ahead, pitch: t.pitch, abreast: 1 };
            let (squares, rows) = (na / edge, Rows::<E> { t, j: from });
            // SAFETY: whole squares of rows, and of columns from..to, lie in the tile; `Rows` writes where they go.
            unsafe {
                let memory = memory.as_mut_ptr();
                vector::runs::<__m512i, E, { vector::BURST }, 256>(
                    t.src,
                    squares,
                    &t.b[from..to],
                    way,
                    memory,
                    &rows,
                );
            }
            i = squares * edge;
        }
        while i < na {
            let mut j = from;
            while j < to {
                // SAFETY: rows i.. and columns j..j + edge lie in the tile.
                unsafe { square::<E>(t, i, j, &t.b[j..j + edge]) }
                j += edge;
            }
            i += edge;
        }
        from = to;
    }
    let mut i = 0;
    while i < na {
        // SAFETY: rows i.. and the columns that are left lie in the tile.
        unsafe { last::<E>(t, i, whole, &t.b[whole..]) }
        i += edge;
    }
}

/// Asks for the line of each row that holds column `j`: the first and the last line of a row are written in
/// part, and a store that waits for its line holds up all that come after it.
///
/// # Safety
/// As [`slide`].
#[inline(always)]
unsafe fn ask<const E: usize>(t: &Tile<'_>, j: usize) {
    for a in t.a {
        // SAFETY: inside the tile; a hint besides.
        unsafe { <__m512i as Vector>::prefetch(t.dst.offset(a.dst).add(j * E)) }
    }
}

/// Where row `i` keeps the vector before.
#[inline(always)]
fn kept(t: &Tile<'_>, i: usize) -> *mut u8 {
    t.staging.wrapping_add(i * 64)
}

/// Writes the line of row `i` that vector `v`, which starts at column `j`, completes.
///
/// # Safety
/// As [`slide`].
#[inline(always)]
unsafe fn emit<const E: usize>(t: &Tile<'_>, i: usize, j: usize, v: __m512i) {
    // SAFETY: inside the tile.
    unsafe { emit_at(t, i, j, t.dst.offset(t.a[i].dst).add(j * E), v) }
}

/// [`emit`], at the column's address.
///
/// # Safety
/// As [`slide`].
#[inline(always)]
unsafe fn emit_at(t: &Tile<'_>, i: usize, j: usize, at: *mut u8, v: __m512i) {
    // SAFETY: the line's bytes under the mask belong to row `i`; `kept` holds a vector a row.
    unsafe {
        let skew = at.addr() % 64;
        let line = at.wrapping_sub(skew);
        let kept = kept(t, i);
        if j > 0 {
            let before = _mm512_load_si512(kept.cast());
            _mm512_stream_si512(line.cast(), _mm512_permutex2var_epi8(before, shift(skew), v));
        } else if skew == 0 {
            _mm512_stream_si512(line.cast(), v);
        } else {
            _mm512_mask_storeu_epi8(at.cast(), low(64 - skew), v);
        }
        _mm512_store_si512(kept.cast(), v);
    }
}

/// The rows of a tile from column `j` on, slid.
struct Rows<'t, const E: usize> {
    t: &'t Tile<'t>,
    j: usize,
}

impl<const E: usize> vector::Leave<__m512i> for Rows<'_, E> {
    #[inline(always)]
    unsafe fn line(&self, first: usize, k: usize, v: __m512i) {
        // SAFETY: the caller's promise.
        unsafe { emit::<E>(self.t, first + k, self.j, v) }
    }

    #[inline(always)]
    unsafe fn leave(&self, row: usize, from: *const u8, lines: usize) {
        let Self { t, j } = *self;
        // SAFETY: as for `emit`, line by line.
        unsafe {
            let at = t.dst.offset(t.a[row].dst).add(j * E);
            let skew = at.addr() % 64;
            let line = at.wrapping_sub(skew);
            let (kept, shift) = (kept(t, row), shift(skew));
            let mut before = _mm512_load_si512(from.cast());
            if j > 0 {
                let last = _mm512_load_si512(kept.cast());
                _mm512_stream_si512(line.cast(), _mm512_permutex2var_epi8(last, shift, before));
            } else if skew == 0 {
                _mm512_stream_si512(line.cast(), before);
            } else {
                _mm512_mask_storeu_epi8(at.cast(), low(64 - skew), before);
            }
            for k in 1..lines {
                let v = _mm512_load_si512(from.add(64 * k).cast());
                _mm512_stream_si512(
                    line.wrapping_add(64 * k).cast(),
                    _mm512_permutex2var_epi8(before, shift, v),
                );
                before = v;
            }
            _mm512_store_si512(kept.cast(), before);
        }
    }
}

/// One line of columns, at most a line of rows.
///
/// # Safety
/// As [`slide`].
#[inline(always)]
unsafe fn square<const E: usize>(t: &Tile<'_>, i: usize, j: usize, b: &[Step]) {
    let (group, edge) = (16 / E, 64 / E);
    let n = edge.min(t.a.len() - i);
    // SAFETY: loads take elements of rows of the tile, whole lines of them only where the tile has them.
    unsafe {
        let src = t.src.add(i * E);
        if n < edge {
            return partial::<E>(t, i, j, b, n);
        }
        if E >= 4
            && let Some(pitch) = t.pitch
        {
            // Addresses from registers: see `vector`.
            let across = <__m512i as Vector>::anew(pitch.src);
            let from = src.offset(b[0].src);
            let lines = vector::read_square::<__m512i, E>(from, |k| k as isize * across, Some(t.ahead));
            let mut at = t.dst.offset(t.a[i].dst).add(j * E);
            let mut g = 0;
            while g < 4 {
                let out = lines.group(g);
                let mut k = 0;
                while k < group {
                    emit_at(t, i + g * group + k, j, at, out[k]);
                    at = at.wrapping_offset(<__m512i as Vector>::anew(pitch.dst));
                    k += 1;
                }
                g += 1;
            }
            return;
        }
        let lines = vector::read_square::<__m512i, E>(src, |k| b[k].src, Some(t.ahead));
        let mut g = 0;
        while g < 4 {
            let out = lines.group(g);
            let mut k = 0;
            while k < group {
                emit::<E>(t, i + g * group + k, j, out[k]);
                k += 1;
            }
            g += 1;
        }
    }
}

/// One line of columns, `n` rows, less than a line of them.
///
/// # Safety
/// As [`slide`].
#[inline(always)]
unsafe fn partial<const E: usize>(t: &Tile<'_>, i: usize, j: usize, b: &[Step], n: usize) {
    let group = 16 / E;
    // SAFETY: as in `square`.
    unsafe {
        let x = read_partial::<E>(t.src.add(i * E), b, n);
        for (g, x) in x.iter().enumerate().take(n.div_ceil(group)) {
            let out = vector::network::<__m512i, E>(vector::written::<__m512i, E>(x));
            for (k, v) in out.into_iter().enumerate().take(group.min(n - g * group)) {
                emit::<E>(t, i + g * group + k, j, v);
            }
        }
    }
}

/// Reads `n` elements of each row `b` (the last row again where there are fewer than a line of them).
///
/// # Safety
/// They are readable from `src` on.
#[inline(always)]
unsafe fn read_partial<const E: usize>(src: *const u8, b: &[Step], n: usize) -> Turned<__m512i> {
    let mut x: Turned<__m512i> = [[MaybeUninit::uninit(); 16]; 4];
    let group = 16 / E;
    let mask = low(n * E);
    let mut k = 0;
    while k < group {
        // SAFETY: masked loads touch only `n` elements.
        unsafe {
            let row = |lane: usize| {
                let row = (lane * group + k).min(b.len() - 1);
                _mm512_maskz_loadu_epi8(mask, src.offset(b[row].src).cast())
            };
            let turned = <__m512i as Vector>::turn([row(0), row(1), row(2), row(3)]);
            x[0][k].write(turned[0]);
            x[1][k].write(turned[1]);
            x[2][k].write(turned[2]);
            x[3][k].write(turned[3]);
        }
        k += 1;
    }
    x
}

/// The columns that are left, less than a line, and with them the end of each row.
///
/// # Safety
/// As [`slide`].
#[inline(always)]
unsafe fn last<const E: usize>(t: &Tile<'_>, i: usize, j: usize, b: &[Step]) {
    let (group, edge) = (16 / E, 64 / E);
    let n = edge.min(t.a.len() - i);
    // SAFETY: as in `square`; the end of a row is written by masks.
    unsafe {
        let spare = [Step::default()];
        let (src, b, bytes) = match b {
            // Nothing is left: what is read is not written, so any line that may be read will do.
            [] => (t.src.offset(t.b[0].src).add(i * E), &spare[..], 0),
            b => (t.src.add(i * E), b, b.len() * E),
        };
        let x = read_partial::<E>(src, b, n);
        for (g, x) in x.iter().enumerate().take(n.div_ceil(group)) {
            let out = vector::network::<__m512i, E>(vector::written::<__m512i, E>(x));
            for (k, v) in out.into_iter().enumerate().take(group.min(n - g * group)) {
                let row = i + g * group + k;
                let at = t.dst.offset(t.a[row].dst).add(j * E);
                let skew = at.addr() % 64;
                let mut end = Slide {
                    to: at.wrapping_sub(skew),
                    last: _mm512_load_si512(kept(t, row).cast()),
                    shift: shift(skew),
                    skew,
                    mask: u64::MAX,
                };
                end.finish(v, bytes);
            }
        }
    }
}

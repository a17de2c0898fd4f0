//! Transposes over vectors: a tile square by square, and what is left at its edges.

use super::super::level::Way;
use super::super::tile::Step;
use super::runs::{BURST, Runs, Straight, crowds, runs};
use super::{Turned, Vector, network, written};
use std::mem::MaybeUninit;

/// [`Level::transpose`](crate::copy::kernels::level::Level::transpose) over vectors, for elements of 1, 2, 4, 8 and 16 bytes.
///
/// # Safety
/// As there; the CPU has the level.
#[inline(always)]
pub(in crate::copy::kernels) unsafe fn transpose<V: Vector, const E: usize>(
    src: *const u8,
    dst: *mut u8,
    na: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    way: Way,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match E {
            1 => whole_elements::<V, 1>(src, dst, na, rows, b, way),
            2 => whole_elements::<V, 2>(src, dst, na, rows, b, way),
            4 => whole_elements::<V, 4>(src, dst, na, rows, b, way),
            8 => whole_elements::<V, 8>(src, dst, na, rows, b, way),
            16 => whole_elements::<V, 16>(src, dst, na, rows, b, way),
            _ => unreachable!("callers choose another loop for elements of any other size"),
        }
    }
}

/// [`transpose`] for an `E` that the network can interleave.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn whole_elements<V: Vector, const E: usize>(
    src: *const u8,
    dst: *mut u8,
    na: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    way: Way,
) {
    let edge = 64 / E;
    let whole_b = b.len() / edge * edge;
    let mut i = 0;
    if V::LANES == 4 && E < 4 {
        let squares = na / edge;
        let burst = na > 1 && crowds(rows(1) - rows(0));
        let most = if burst { BURST } else { 1 } * edge;
        // One for both: without optimisation each would have a place of its own on the stack.
        let mut memory = MaybeUninit::<Runs>::uninit();
        let memory = memory.as_mut_ptr();
        for j in (0..whole_b).step_by(most) {
            let some = &b[j..whole_b.min(j + most)];
            // SAFETY: whole squares of rows and columns j.. lie in the tile.
            unsafe {
                let to = Straight { dst: dst.add(j * E), rows: &rows, way };
                if burst {
                    runs::<V, E, BURST, 256>(src, squares, some, way, memory, &to);
                } else {
                    runs::<V, E, 1, 512>(src, squares, some, way, memory, &to);
                }
            }
        }
        i = squares * edge;
        if i > 0 && whole_b < b.len() {
            for i in (0..i).step_by(edge) {
                // SAFETY: the columns that are left, row by row of squares.
                unsafe {
                    let to = dst.add(whole_b * E);
                    fringe::<V, E>(src.add(i * E), to, edge, |k| rows(i + k), &b[whole_b..]);
                }
            }
        }
    }
    if V::LANES == 4
        && E >= 4
        && !way.stream
        && let Some(pitch) = way.pitch
    {
        let squares = na / edge * edge;
        // SAFETY: whole squares of rows lie in the tile.
        unsafe { evenly::<V, E>(src, dst, squares, &rows, b, pitch, way.abreast.max(1)) }
        i = squares;
    }
    while i < na {
        let ni = edge.min(na - i);
        let mut j = 0;
        while j < whole_b {
            // SAFETY: rows i..i + ni and columns j..j + edge lie in the tile.
            unsafe {
                let from = src.add(i * E);
                let to = dst.add(j * E);
                square::<V, E>(from, to, ni, |k| rows(i + k), &b[j..j + edge], way);
            }
            j += edge;
        }
        if whole_b < b.len() {
            // SAFETY: as above, with the columns that are left.
            unsafe {
                fringe::<V, E>(src.add(i * E), dst.add(j * E), ni, |k| rows(i + k), &b[j..]);
            }
        }
        i += edge;
    }
}

/// [`transpose`] with ordinary stores, of whole squares of `na` rows whose columns and rows are `pitch` apart, so many of
/// them abreast.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn evenly<V: Vector, const E: usize>(
    src: *const u8,
    dst: *mut u8,
    na: usize,
    rows: &impl Fn(usize) -> isize,
    b: &[Step],
    pitch: Step,
    abreast: usize,
) {
    let edge = 64 / E;
    let whole_b = b.len() / edge * edge;
    for first in (0..na).step_by(abreast * edge) {
        let end = na.min(first + abreast * edge);
        for j in (0..whole_b).step_by(edge) {
            let from = V::look(&b[j].src);
            for i in (first..end).step_by(edge) {
                // SAFETY: rows i..i + edge and columns j..j + edge lie in the tile.
                unsafe { even::<V, E>(src.offset(from).add(i * E), dst.offset(rows(i)).add(j * E), pitch) }
            }
        }
        if whole_b < b.len() {
            for i in (first..end).step_by(edge) {
                // SAFETY: as above, with the columns that are left.
                unsafe {
                    let to = dst.add(whole_b * E);
                    fringe::<V, E>(src.add(i * E), to, edge, |k| rows(i + k), &b[whole_b..]);
                }
            }
        }
    }
}

/// A whole square whose columns and rows are evenly spaced. The addresses come from registers: a store that waits for
/// its line seems to hold up later loads from addresses that look like its own in their lowest 12 bits, and a table, or
/// what the compiler keeps on the stack, is soon hit by one of so many stores.
///
/// # Safety
/// As [`transpose`], for `64 / E` columns from `src` and rows from `dst` on.
#[inline(always)]
unsafe fn even<V: Vector, const E: usize>(src: *const u8, mut dst: *mut u8, pitch: Step) {
    let across = V::anew(pitch.src);
    // SAFETY: see `square`.
    unsafe {
        let lines = read_square::<V, E>(src, |k| k as isize * across, None);
        let mut g = 0;
        while g < 4 {
            let out = lines.group(g);
            let mut k = 0;
            while k < 16 / E {
                out[k].store(dst);
                dst = dst.wrapping_offset(V::anew(pitch.dst));
                k += 1;
            }
            g += 1;
        }
    }
}

/// One line of columns (`b.len() * E == 64`), at most a line of rows.
///
/// # Safety
/// As [`transpose`].
#[inline(always)]
unsafe fn square<V: Vector, const E: usize>(
    src: *const u8,
    dst: *mut u8,
    ni: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    way: Way,
) {
    let group = 16 / E;
    let parts = 4 / V::LANES;
    let stream = way.stream;
    assert!(b.len() == 64 / E);
    if V::LANES == 4 && ni == 64 / E {
        // SAFETY: a whole line of every row of the square is read, a whole line of each destination
        // row written.
        unsafe { return whole::<V, E>(src, dst, rows, b, way) }
    }
    let mut i = 0;
    while i + group <= ni {
        // SAFETY: every load is 16 bytes of `group` elements of a row of the tile, every store a part
        // of a destination row.
        unsafe {
            let mut out = [MaybeUninit::<[V; 16]>::uninit(); 4];
            let mut p = 0;
            while p < parts {
                let first = p * V::LANES * group;
                let mut r = [MaybeUninit::uninit(); 16];
                let mut k = 0;
                while k < group {
                    r[k].write(V::lanes(|lane| {
                        src.offset(V::look(&b[first + lane * group + k].src)).add(i * E)
                    }));
                    k += 1;
                }
                out[p] = MaybeUninit::new(network::<V, E>(written::<V, E>(&r)));
                p += 1;
            }
            let mut k = 0;
            while k < group {
                let row = dst.offset(rows(i + k));
                let mut p = 0;
                while p < parts {
                    let to = row.add(p * V::LANES * 16);
                    let v = out[p].assume_init_ref()[k];
                    if stream {
                        v.stream(to)
                    } else {
                        v.store(to)
                    }
                    p += 1;
                }
                k += 1;
            }
        }
        i += group;
    }
    if i < ni {
        // SAFETY: as above; the loads take only the `ni - i` elements that are left.
        unsafe {
            let bytes = (ni - i) * E;
            for p in 0..parts {
                let first = p * V::LANES * group;
                let mut r = [MaybeUninit::uninit(); 16];
                let mut k = 0;
                while k < group {
                    let at = |lane: usize| src.offset(V::look(&b[first + lane * group + k].src)).add(i * E);
                    r[k].write(V::lanes_partial(at, bytes));
                    k += 1;
                }
                let out = network::<V, E>(written::<V, E>(&r));
                for (k, v) in out.iter().enumerate().take(ni - i) {
                    let to = dst.offset(rows(i + k)).add(p * V::LANES * 16);
                    if stream { v.stream(to) } else { v.store(to) }
                }
            }
        }
    }
}

/// A whole square. Each source line is read once and whole: with a pitch that is a multiple of 4 KiB all
/// lines of a square share one set of the first-level cache, and coming back for them would miss.
///
/// # Safety
/// As [`transpose`].
#[inline(always)]
unsafe fn whole<V: Vector, const E: usize>(
    src: *const u8,
    dst: *mut u8,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    way: Way,
) {
    // SAFETY: see `square`.
    unsafe {
        let stream = way.stream;
        let lines = read_square::<V, E>(src, |k| V::look(&b[k].src), stream.then_some(way.ahead));
        let mut g = 0;
        while g < 4 {
            let out = lines.group(g);
            let mut k = 0;
            while k < 16 / E {
                let to = dst.offset(rows(g * (16 / E) + k));
                if stream {
                    out[k].stream(to)
                } else {
                    out[k].store(to)
                }
                k += 1;
            }
            g += 1;
        }
    }
}

/// A whole square, read line by line. It lives in registers or on the stack of one loop: boxing the larger
/// variant would cost more than it saves.
#[allow(clippy::large_enum_variant)]
pub(in crate::copy::kernels) enum Lines<V, const E: usize> {
    /// Wide elements: in registers, lanes turned, so that `x[g][k]` holds 16 bytes of group `g` of the rows
    /// `k`, `k + 16 / E`, ...
    Turned(Turned<V>),
    /// Narrow elements: more rows than registers, packed side by side in the first-level cache.
    Packed(Packed),
}

/// 64 lines.
#[repr(align(64))]
pub(in crate::copy::kernels) struct Packed(MaybeUninit<[u8; 4096]>);

/// Reads a whole square line by line, and asks for what lies so many bytes ahead.
///
/// # Safety
/// Each of `64 / E` rows is readable for 64 bytes from `src + at(row)` on.
#[inline(always)]
pub(in crate::copy::kernels) unsafe fn read_square<V: Vector, const E: usize>(
    src: *const u8,
    at: impl Fn(usize) -> isize,
    ahead: Option<usize>,
) -> Lines<V, E> {
    let group = 16 / E;
    let far = src.wrapping_add(ahead.unwrap_or(0));
    let ahead = ahead.is_some();
    if E < 4 {
        let mut packed = Packed(MaybeUninit::uninit());
        let to = packed.0.as_mut_ptr().cast::<u8>();
        for k in 0..64 / E {
            // SAFETY: the caller's promise; at most 64 lines of 64 bytes.
            unsafe {
                let step = at(k);
                if ahead {
                    V::prefetch(far.wrapping_offset(step));
                }
                V::load(src.offset(step)).store(to.add(64 * k));
            }
        }
        return Lines::Packed(packed);
    }
    let mut x: Turned<V> = [[MaybeUninit::uninit(); 16]; 4];
    let mut k = 0;
    while k < group {
        // SAFETY: the caller's promise.
        unsafe {
            let steps = [at(k), at(group + k), at(2 * group + k), at(3 * group + k)];
            if ahead {
                V::prefetch(far.wrapping_offset(steps[0]));
                V::prefetch(far.wrapping_offset(steps[1]));
                V::prefetch(far.wrapping_offset(steps[2]));
                V::prefetch(far.wrapping_offset(steps[3]));
            }
            let line = |lane: usize| V::load(src.offset(steps[lane]));
            let turned = V::turn([line(0), line(1), line(2), line(3)]);
            x[0][k].write(turned[0]);
            x[1][k].write(turned[1]);
            x[2][k].write(turned[2]);
            x[3][k].write(turned[3]);
        }
        k += 1;
    }
    Lines::Turned(x)
}

impl<V: Vector, const E: usize> Lines<V, E> {
    /// The destination rows of group `g`, the first `16 / E` of them.
    ///
    /// # Safety
    /// The CPU has the level.
    #[inline(always)]
    pub(in crate::copy::kernels) unsafe fn group(&self, g: usize) -> [V; 16] {
        let group = 16 / E;
        // SAFETY: `read_square` wrote every vector or line that is looked at.
        unsafe {
            match self {
                Self::Turned(x) => network::<V, E>(written::<V, E>(&x[g])),
                Self::Packed(packed) => {
                    let from = packed.0.as_ptr().cast::<u8>().add(16 * g);
                    let at = |k: usize| V::lanes(|lane| from.add(64 * (lane * group + k)));
                    let mut r = [at(0); 16];
                    let mut k = 1;
                    while k < group {
                        r[k] = at(k);
                        k += 1;
                    }
                    network::<V, E>(r)
                }
            }
        }
    }
}

/// Less than a line of columns, at most a line of rows.
///
/// # Safety
/// As [`transpose`].
#[inline(always)]
unsafe fn fringe<V: Vector, const E: usize>(
    src: *const u8,
    dst: *mut u8,
    ni: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
) {
    let group = 16 / E;
    let part = V::LANES * group;
    let mut i = 0;
    if group == 1 {
        // Nothing to interleave, and less than a vector to store.
        while i < ni {
            for (j, step) in b.iter().enumerate() {
                // SAFETY: an element of the tile.
                unsafe { V::lane(dst.offset(rows(i)).add(j * E), src.offset(V::look(&step.src)).add(i * E)) }
            }
            i += 1;
        }
    }
    while i < ni {
        let n = group.min(ni - i);
        let mut first = 0;
        while first < b.len() {
            let columns = part.min(b.len() - first);
            // SAFETY: loads take `n` elements of rows of the tile (the last row again where a lane has
            // none of its own), stores `columns` elements of its destination rows.
            unsafe {
                let mut r = [MaybeUninit::uninit(); 16];
                let mut k = 0;
                while k < group {
                    let at = |lane: usize| {
                        let row = (first + lane * group + k).min(b.len() - 1);
                        src.offset(V::look(&b[row].src)).add(i * E)
                    };
                    r[k].write(if n == group { V::lanes(at) } else { V::lanes_partial(at, n * E) });
                    k += 1;
                }
                let out = network::<V, E>(written::<V, E>(&r));
                let mut k = 0;
                while k < group {
                    if k < n {
                        let to = dst.offset(rows(i + k)).add(first * E);
                        out[k].store_partial(to, columns * E);
                    }
                    k += 1;
                }
            }
            first += part;
        }
        i += group;
    }
}

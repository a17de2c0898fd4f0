//! The micro-kernel, written once over vectors of one, two or four 128-bit lanes.
//!
//! A square of one line of elements a side is transposed in groups of 16 bytes of source columns. For a
//! group, vector `k` takes 16 bytes of row `k` into its first lane, of row `k + g` into the next, and so
//! on, where `g` is the number of elements in 16 bytes. Transposing the `g` by `g` elements inside each
//! lane then leaves in vector `c` what belongs to destination row `c`, in order. The transposition inside
//! lanes is the same step `log2(g)` times: interleave vector `i` with vector `i + g/2`.

use super::level::{Way, prefetch, short};
use super::tile::Step;
use std::mem::MaybeUninit;

/// The vectors of a square, lanes turned: `x[g][k]` is written for the first `16 / E` of `k` only.
pub(super) type Turned<V> = [[MaybeUninit<V>; 16]; 4];

/// A vector register and the few things that the kernels ask of it.
pub(super) trait Vector: Copy {
    /// 128-bit lanes of one vector: 1, 2 or 4.
    const LANES: usize;

    /// 16 bytes from each of `LANES` places.
    ///
    /// # Safety
    /// Each is readable for 16 bytes. The CPU has the level, here and below.
    unsafe fn lanes(at: impl Fn(usize) -> *const u8) -> Self;

    /// `bytes` bytes from each of `LANES` places; the rest is zero.
    ///
    /// # Safety
    /// Each is readable for `bytes` bytes, at most 16.
    #[inline(always)]
    unsafe fn lanes_partial(at: impl Fn(usize) -> *const u8, bytes: usize) -> Self {
        let mut lanes = [[0u8; 16]; 4];
        // SAFETY: `bytes` readable bytes each, at most 16; a vector is as large as its lanes, of which there are
        // four at most.
        unsafe {
            for (lane, to) in lanes.iter_mut().enumerate().take(Self::LANES) {
                short(to.as_mut_ptr(), at(lane), bytes);
            }
            Self::load(lanes.as_ptr().cast())
        }
    }

    /// Transposes four vectors of four lanes: lane `a` of vector `b` becomes lane `b` of vector `a`.
    /// Only asked of vectors of four lanes.
    ///
    /// # Safety
    /// See [`Vector::lanes`].
    #[inline(always)]
    unsafe fn turn(rows: [Self; 4]) -> [Self; 4] {
        rows
    }

    /// A whole vector.
    ///
    /// # Safety
    /// `src` is readable for all of it.
    unsafe fn load(src: *const u8) -> Self;

    /// Asks for the line at `at` to be read into the caches; any address may be given.
    ///
    /// # Safety
    /// See [`Vector::lanes`].
    #[inline(always)]
    unsafe fn prefetch(at: *const u8) {
        prefetch(at);
    }

    /// What an entry of a table says. Where loads are written down instead of made, this is one.
    #[inline(always)]
    fn look<T: Copy>(entry: &T) -> T {
        *entry
    }

    /// Interleaves the elements of `E` bytes of the lower and of the upper half of each lane.
    ///
    /// # Safety
    /// See [`Vector::lanes`].
    unsafe fn interleave<const E: usize>(self, other: Self) -> (Self, Self);

    /// Ordinary store.
    ///
    /// # Safety
    /// `dst` is writable for the whole vector.
    unsafe fn store(self, dst: *mut u8);

    /// Ordinary store of the first `bytes` bytes.
    ///
    /// # Safety
    /// `dst` is writable for `bytes` bytes, at most the whole vector.
    #[inline(always)]
    unsafe fn store_partial(self, dst: *mut u8, bytes: usize) {
        let mut lanes = [0u8; 64];
        // SAFETY: no vector is larger than 64 bytes; `bytes` writable bytes, at most a vector.
        unsafe {
            self.store(lanes.as_mut_ptr());
            short(dst, lanes.as_ptr(), bytes);
        }
    }

    /// Store past the caches.
    ///
    /// # Safety
    /// As [`Vector::store`]; `dst` is aligned to the vector.
    unsafe fn stream(self, dst: *mut u8);
}

/// The first `16 / E` of sixteen vectors, the rest filled with the first.
///
/// # Safety
/// They were written.
#[inline(always)]
pub(super) unsafe fn written<V: Vector, const E: usize>(x: &[MaybeUninit<V>; 16]) -> [V; 16] {
    // SAFETY: the caller's promise.
    unsafe {
        let mut r = [x[0].assume_init(); 16];
        let mut k = 1;
        while k < 16 / E {
            r[k] = x[k].assume_init();
            k += 1;
        }
        r
    }
}

/// Transposes inside lanes: see the module's text.
///
/// # Safety
/// The CPU has the level.
#[inline(always)]
pub(super) unsafe fn network<V: Vector, const E: usize>(mut r: [V; 16]) -> [V; 16] {
    let group = 16 / E;
    let mut stage = 1;
    while stage < group {
        let mut next = r;
        let mut i = 0;
        while i < group / 2 {
            // SAFETY: the caller's promise.
            let (low, high) = unsafe { r[i].interleave::<E>(r[i + group / 2]) };
            next[2 * i] = low;
            next[2 * i + 1] = high;
            i += 1;
        }
        r = next;
        stage *= 2;
    }
    r
}

/// [`super::level::Level::transpose`] over vectors, for elements of 1, 2, 4, 8 and 16 bytes.
///
/// # Safety
/// As there; the CPU has the level.
#[inline(always)]
pub(super) unsafe fn transpose<V: Vector, const E: usize>(
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
        let burst = na > 1 && (rows(1) - rows(0)).unsigned_abs().is_multiple_of(CROWDED_PITCH);
        let most = if burst { BURST } else { 1 } * edge;
        // One for both: without optimisation each would have a place of its own on the stack.
        let mut memory = MaybeUninit::<Runs>::uninit();
        let memory = memory.as_mut_ptr();
        for j in (0..whole_b).step_by(most) {
            let some = &b[j..whole_b.min(j + most)];
            // SAFETY: whole squares of rows and columns j.. lie in the tile.
            unsafe {
                let to = dst.add(j * E);
                if burst {
                    runs::<V, E, BURST, 256>(src, to, squares, &rows, some, way, memory);
                } else {
                    runs::<V, E, 1, 512>(src, to, squares, &rows, some, way, memory);
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
        let lines = read_square::<V, E>(src, b, stream.then_some(way.ahead));
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

/// Lines of a destination row that are written one after the other where single lines would crowd each other
/// out: all of a pitch that is a multiple of this fall into a few sets of the first-level cache.
const BURST: usize = 4;
const CROWDED_PITCH: usize = 1024;

/// Packed rows lie so much further apart than they are long that they do not share a set.
const SLACK: usize = 64;
const PACKED_BYTES: usize = 64 * BURST * (256 + SLACK);

/// Packed runs of up to 64 rows a block, and a square of destination rows.
#[repr(align(64))]
struct Runs {
    packed: MaybeUninit<[u8; PACKED_BYTES]>,
    made: MaybeUninit<[u8; 64 * BURST * 64]>,
}

/// Whole squares of narrow elements. Runs of each source row are first packed side by side: reading whole runs
/// keeps the hardware's prefetchers busy, which single lines of 64 rows do not. Destination rows leave several
/// lines at a time: where their pitch is a power of two, single lines all fall into one set.
///
/// # Safety
/// As [`transpose`], for `squares` whole squares of the columns `b`, whole lines of them, at most `BLOCKS`;
/// `memory` is writable.
#[inline(always)]
unsafe fn runs<V: Vector, const E: usize, const BLOCKS: usize, const RUN: usize>(
    src: *const u8,
    dst: *mut u8,
    squares: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    way: Way,
    memory: *mut Runs,
) {
    let stream = way.stream;
    // At least the run after this one.
    let ahead = way.ahead.max(RUN);
    let (group, edge) = (16 / E, 64 / E);
    let blocks = b.len() / edge;
    // SAFETY: fields of memory that is there, not read before it is written.
    let (packed, made) =
        unsafe { ((&raw mut (*memory).packed).cast::<u8>(), (&raw mut (*memory).made).cast::<u8>()) };
    let mut first = 0;
    while first < squares {
        let n = (RUN / 64).min(squares - first);
        // SAFETY: the lines of a run lie in the tile and in `packed`.
        unsafe {
            for (k, step) in b.iter().enumerate() {
                let from = src.offset(V::look(&step.src)).add(64 * first);
                let far = from.wrapping_add(ahead);
                for line in 0..n {
                    if stream {
                        V::prefetch(far.wrapping_add(64 * line));
                    }
                    V::load(from.add(64 * line)).store(packed.add((RUN + SLACK) * k + 64 * line));
                }
            }
            for q in 0..n {
                for block in 0..blocks {
                    let lines = packed.add((RUN + SLACK) * edge * block + 64 * q).cast_const();
                    for g in 0..4 {
                        let at = |k: usize| {
                            V::lanes(|lane| lines.add(16 * g + (RUN + SLACK) * (lane * group + k)))
                        };
                        let mut r = [at(0); 16];
                        let mut k = 1;
                        while k < group {
                            r[k] = at(k);
                            k += 1;
                        }
                        let out = network::<V, E>(r);
                        let mut k = 0;
                        while k < group {
                            let row = g * group + k;
                            if BLOCKS > 1 {
                                out[k].store(made.add(64 * (BLOCKS * row + block)));
                            } else if stream {
                                out[k].stream(dst.offset(rows((first + q) * edge + row)));
                            } else {
                                out[k].store(dst.offset(rows((first + q) * edge + row)));
                            }
                            k += 1;
                        }
                    }
                }
                if BLOCKS == 1 {
                    continue;
                }
                for k in 0..edge {
                    let row = dst.offset(rows((first + q) * edge + k));
                    for block in 0..blocks {
                        let v = V::load(made.add(64 * (BLOCKS * k + block)));
                        if stream { v.stream(row.add(64 * block)) } else { v.store(row.add(64 * block)) }
                    }
                }
            }
        }
        first += n;
    }
}

/// A whole square, read line by line. It lives in registers or on the stack of one loop: boxing the larger
/// variant would cost more than it saves.
#[allow(clippy::large_enum_variant)]
pub(super) enum Lines<V, const E: usize> {
    /// Wide elements: in registers, lanes turned, so that `x[g][k]` holds 16 bytes of group `g` of the rows
    /// `k`, `k + 16 / E`, ...
    Turned(Turned<V>),
    /// Narrow elements: more rows than registers, packed side by side in the first-level cache.
    Packed(Packed),
}

/// 64 lines.
#[repr(align(64))]
pub(super) struct Packed(MaybeUninit<[u8; 4096]>);

/// Reads a whole square line by line, and asks for what lies so many bytes ahead.
///
/// # Safety
/// Every row `b` is readable for 64 bytes from `src` on.
#[inline(always)]
pub(super) unsafe fn read_square<V: Vector, const E: usize>(
    src: *const u8,
    b: &[Step],
    ahead: Option<usize>,
) -> Lines<V, E> {
    let group = 16 / E;
    assert!(b.len() == 64 / E);
    let far = src.wrapping_add(ahead.unwrap_or(0));
    let ahead = ahead.is_some();
    if E < 4 {
        let mut packed = Packed(MaybeUninit::uninit());
        let to = packed.0.as_mut_ptr().cast::<u8>();
        for (k, step) in b.iter().enumerate() {
            // SAFETY: the caller's promise; at most 64 lines of 64 bytes.
            unsafe {
                let from = src.offset(V::look(&step.src));
                if ahead {
                    V::prefetch(far.wrapping_offset(step.src));
                }
                V::load(from).store(to.add(64 * k));
            }
        }
        return Lines::Packed(packed);
    }
    let mut x: Turned<V> = [[MaybeUninit::uninit(); 16]; 4];
    let mut k = 0;
    while k < group {
        // SAFETY: the caller's promise.
        unsafe {
            let at = |lane: usize| src.offset(V::look(&b[lane * group + k].src));
            if ahead {
                let far = |lane: usize| far.wrapping_offset(b[lane * group + k].src);
                V::prefetch(far(0));
                V::prefetch(far(1));
                V::prefetch(far(2));
                V::prefetch(far(3));
            }
            let turned = V::turn([V::load(at(0)), V::load(at(1)), V::load(at(2)), V::load(at(3))]);
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
    pub(super) unsafe fn group(&self, g: usize) -> [V; 16] {
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
pub(super) unsafe fn fringe<V: Vector, const E: usize>(
    src: *const u8,
    dst: *mut u8,
    ni: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
) {
    let group = 16 / E;
    let part = V::LANES * group;
    let mut i = 0;
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

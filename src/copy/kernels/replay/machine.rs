//! The levels, as far as they differ in what they touch.

use super::super::cells::Cells;
use super::super::level::{self, Level, Way};
use super::super::stage;
use super::super::tile::{Part, Step, Tile};
use super::super::vector::{self, Vector};
use super::log::{self, AccessKind, note, read, write};
use super::slide::Run;
use super::{portable, slide, wide};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// What a level has.
pub(super) trait Machine {
    /// Bytes of its widest register; short runs are moved by these.
    const REGISTER: usize;
    /// Lanes of its vectors; 0 where it has none and transposes element by element.
    const LANES: usize;
    /// Stores past the caches.
    const STREAMS: bool;
    /// Byte masks and permutes: rows of any kind go by whole vectors.
    const WIDE: bool = false;
}

pub(super) struct Scalar;
impl Machine for Scalar {
    const REGISTER: usize = 16;
    const LANES: usize = 0;
    const STREAMS: bool = false;
}

#[cfg(target_arch = "aarch64")]
pub(super) struct Neon;
#[cfg(target_arch = "aarch64")]
impl Machine for Neon {
    const REGISTER: usize = 16;
    const LANES: usize = 1;
    const STREAMS: bool = false;
}

#[cfg(target_arch = "x86_64")]
pub(super) struct Sse2;
#[cfg(target_arch = "x86_64")]
impl Machine for Sse2 {
    const REGISTER: usize = 16;
    const LANES: usize = 1;
    const STREAMS: bool = true;
}

#[cfg(target_arch = "x86_64")]
pub(super) struct Avx2;
#[cfg(target_arch = "x86_64")]
impl Machine for Avx2 {
    const REGISTER: usize = 32;
    const LANES: usize = 2;
    const STREAMS: bool = true;
}

#[cfg(target_arch = "x86_64")]
pub(super) struct Avx512;
#[cfg(target_arch = "x86_64")]
impl Machine for Avx512 {
    const REGISTER: usize = 64;
    const LANES: usize = 4;
    const STREAMS: bool = true;
    const WIDE: bool = true;
}

/// The level of a machine, written down.
pub(super) struct Replay<M>(PhantomData<M>);

impl<M: Machine> Replay<M> {
    /// A store past the caches where the machine has such.
    #[inline(always)]
    fn stream(at: *const u8, bytes: usize) {
        note(at, bytes, if M::STREAMS { AccessKind::StreamWrite } else { AccessKind::Write });
    }
}

impl<M: Machine> Level for Replay<M> {
    type Recipe = Recipe<M>;
    type Run = Run;

    unsafe fn apart<P: Part>(t: &Tile<'_>) {
        // SAFETY: the part's loads and stores are this level's, which makes none; its addresses lie in
        // allocations as the tile's do.
        unsafe { P::run::<Self>(t) }
    }

    fn look<T: Copy>(entry: &T) -> T {
        log::look(entry)
    }

    fn put<T>(entry: &mut MaybeUninit<T>, value: T) {
        log::filled(entry, 1);
        entry.write(value);
    }

    unsafe fn element<const E: usize>(dst: *mut u8, src: *const u8, size: usize) {
        if E == 0 {
            return portable::short(M::REGISTER, dst, src, size);
        }
        read(src, E);
        write(dst, E);
    }

    unsafe fn line(dst: *mut u8, src: *const u8) {
        for k in (0..64).step_by(M::REGISTER) {
            read(src.wrapping_add(k), M::REGISTER);
            Self::stream(dst.wrapping_add(k), M::REGISTER);
        }
    }

    fn prefetch(_at: *const u8) {}

    unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
        if M::WIDE {
            wide::copy(dst, src, bytes);
        } else {
            // Compilers take registers of 16 bytes here, whatever the level.
            portable::short(16, dst, src, bytes);
        }
    }

    unsafe fn rest(dst: *mut u8, src: *const u8) {
        portable::short(M::REGISTER, dst, src, 64);
    }

    unsafe fn stream(
        run: &mut Run,
        dst: *mut u8,
        src: *const u8,
        bytes: usize,
        (next, ahead): (*const u8, usize),
    ) {
        if M::WIDE && !(dst.addr() | bytes).is_multiple_of(64) {
            return wide::stream(run, dst, src, bytes);
        }
        // SAFETY: as in `apart`.
        unsafe { stage::stream_ahead::<Self>(dst, src, bytes, next, ahead) }
    }

    unsafe fn splat<const E: usize>(
        _: &Recipe<M>,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        size: usize,
        (stream, run): (bool, &mut Run),
    ) {
        if M::WIDE {
            return wide::splat(dst, src, n, size, stream.then_some(run));
        }
        for j in 0..n {
            // SAFETY: nothing is moved, here and below.
            unsafe { Self::element::<E>(dst.wrapping_add(j * size), src, size) }
        }
    }

    unsafe fn gather<const E: usize>(
        recipe: &Recipe<M>,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        stride: isize,
        size: usize,
        (then, _, run): (Option<*const u8>, usize, &mut Run),
    ) {
        match recipe.wide {
            true => wide::gather(dst, src, n, stride, size, then.map(|_| run)),
            // SAFETY: as above.
            false => unsafe { level::gather::<Self, E>(dst, src, n, stride, size) },
        }
    }

    unsafe fn gather_row<const E: usize>(dst: *mut u8, src: *const u8, n: usize, stride: isize) {
        if M::WIDE {
            return wide::row_of(dst, src, n, stride, E);
        }
        // SAFETY: as above.
        unsafe { level::gather::<Self, E>(dst, src, n, stride, E) }
    }

    unsafe fn interleave<const E: usize>(
        recipe: &Recipe<M>,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        (channels, channel): (usize, isize),
        size: usize,
        (way, run): (Way, &mut Run),
    ) {
        match recipe.wide {
            true => wide::interleave(dst, src, n, (channels, channel), size, way.stream.then_some(run)),
            // SAFETY: as above.
            false => unsafe { level::interleave::<Self, E>(dst, src, n, channels, channel, size) },
        }
    }

    unsafe fn planes(t: &Tile<'_>, size: usize) -> bool {
        M::WIDE && wide::planes(t, size)
    }

    unsafe fn cells<const E: usize>(
        cells: &Cells<'_>,
        dst: *mut u8,
        src: *const u8,
        n: usize,
        stream: Option<&mut Run>,
    ) {
        if M::WIDE {
            wide::cells(cells, dst, src, n, stream);
        } else {
            // SAFETY: as above.
            unsafe { cells.one_by_one::<Self, E>(dst, src, n) }
        }
    }

    unsafe fn transpose_staged<const E: usize>(t: &Tile<'_>, size: usize) {
        if !(M::WIDE && slide::transpose::<M, E>(t, size)) {
            // SAFETY: as in `apart`.
            unsafe { stage::transpose::<Self, E>(t, size) }
        }
    }

    unsafe fn transpose<const E: usize>(
        src: *const u8,
        dst: *mut u8,
        na: usize,
        rows: impl Fn(usize) -> isize,
        b: &[Step],
        size: usize,
        way: Way,
    ) {
        // SAFETY: as in `apart`.
        unsafe {
            match E {
                _ if M::LANES == 0 => level::transpose::<Self, E>(src, dst, na, rows, b, size),
                1 | 2 | 4 | 8 | 16 => vector::transpose::<Register<M>, E>(src, dst, na, rows, b, way),
                _ if M::WIDE => wide::transpose(src, dst, na, rows, b, size),
                _ => level::transpose::<Self, E>(src, dst, na, rows, b, size),
            }
        }
    }
}

/// Whether rows are made by whole vectors.
pub(super) struct Recipe<M> {
    wide: bool,
    machine: PhantomData<M>,
}

impl<M: Machine> Recipe<M> {
    fn new(wide: bool) -> Self {
        Self { wide: M::WIDE && wide, machine: PhantomData }
    }
}

impl<M: Machine> level::Recipe for Recipe<M> {
    unsafe fn splat(_: usize) -> Self {
        Self::new(true)
    }

    unsafe fn gather(n: usize, stride: isize, size: usize, stream: bool) -> Self {
        Self::new(wide::gathers(n, stride, size, stream))
    }

    unsafe fn interleave(channels: usize, size: usize) -> Self {
        Self::new(matches!(channels, 2..=4) && channels * size <= 64)
    }

    fn gathers(&self) -> bool {
        self.wide
    }
}

/// A register that holds nothing.
pub(super) struct Register<M>(PhantomData<M>);

impl<M> Clone for Register<M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M> Copy for Register<M> {}

/// Every register is like every other.
fn some<M>() -> Register<M> {
    Register(PhantomData)
}

impl<M: Machine> Vector for Register<M> {
    const LANES: usize = M::LANES;

    #[inline(always)]
    unsafe fn lanes(at: impl Fn(usize) -> *const u8) -> Self {
        for lane in 0..M::LANES {
            read(at(lane), 16);
        }
        some()
    }

    #[inline(always)]
    unsafe fn lanes_partial(at: impl Fn(usize) -> *const u8, bytes: usize) -> Self {
        if M::WIDE {
            for lane in 0..M::LANES {
                read(at(lane), bytes);
            }
            return some();
        }
        log::slot(0, M::REGISTER, AccessKind::Write);
        for lane in 0..M::LANES {
            portable::to_slot(16 * lane, at(lane), bytes);
        }
        log::slot(0, M::REGISTER, AccessKind::Read);
        some()
    }

    #[inline(always)]
    unsafe fn load(src: *const u8) -> Self {
        read(src, M::REGISTER);
        some()
    }

    #[inline(always)]
    unsafe fn lane(dst: *mut u8, src: *const u8) {
        read(src, 16);
        write(dst, 16);
    }

    #[inline(always)]
    unsafe fn prefetch(_at: *const u8) {}

    #[inline(always)]
    fn look<T: Copy>(entry: &T) -> T {
        log::look(entry)
    }

    #[inline(always)]
    unsafe fn interleave<const E: usize>(self, other: Self) -> (Self, Self) {
        (self, other)
    }

    #[inline(always)]
    unsafe fn store(self, dst: *mut u8) {
        write(dst, M::REGISTER);
    }

    #[inline(always)]
    unsafe fn store_partial(self, dst: *mut u8, bytes: usize) {
        if M::WIDE {
            return write(dst, bytes);
        }
        log::slot(0, M::REGISTER, AccessKind::Write);
        portable::from_slot::<M>(dst, bytes);
    }

    #[inline(always)]
    unsafe fn stream(self, dst: *mut u8) {
        Replay::<M>::stream(dst, M::REGISTER);
    }
}

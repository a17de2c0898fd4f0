//! Rows that are written as whole lines wherever they start, in what they touch: `x86_64::slide`, function by
//! function and under its names.

use super::super::level::{self, Way};
use super::super::tile::{Step, Tile};
use super::super::vector::{self, Vector};
use super::log::{AccessKind, look, note, read, write};
use super::machine::{Machine, Register};
use std::mem::MaybeUninit;

/// A row on its way to memory.
#[derive(Clone, Copy)]
pub(super) struct Slide {
    to: *mut u8,
    skew: usize,
    /// Bytes of the next line that belong to other rows.
    head: usize,
}

fn stream(at: *mut u8) {
    note(at, 64, AccessKind::StreamWrite);
}

impl Slide {
    pub(super) fn new(dst: *mut u8) -> Self {
        let skew = dst.addr() % 64;
        Self { to: dst.wrapping_sub(skew), skew, head: skew }
    }

    pub(super) fn push(&mut self) {
        if self.head == 0 {
            stream(self.to);
        } else {
            write(self.to.wrapping_add(self.head), 64 - self.head);
            self.head = 0;
        }
        self.to = self.to.wrapping_add(64);
    }

    pub(super) fn join(&mut self, bytes: usize) {
        let skew = self.skew + bytes;
        if skew >= 64 {
            self.push();
        }
        self.skew = skew % 64;
    }

    fn close(self) {
        write(self.to.wrapping_add(self.head), self.skew.saturating_sub(self.head));
    }

    pub(super) fn finish(&mut self, bytes: usize) {
        let end = self.skew + bytes;
        if end < 64 {
            return write(self.to, end);
        }
        stream(self.to);
        write(self.to.wrapping_add(64), end - 64);
    }
}

/// `x86_64::run`.
pub(super) struct Run(Option<Slide>);

impl Run {
    pub(super) fn seek(&mut self, dst: *mut u8) -> Slide {
        match self.0.take() {
            Some(slide) if slide.to.wrapping_add(slide.skew) == dst => slide,
            Some(slide) => {
                slide.close();
                Slide::new(dst)
            }
            None => Slide::new(dst),
        }
    }

    pub(super) fn keep(&mut self, slide: Slide) {
        self.0 = Some(slide);
    }
}

impl level::Run for Run {
    fn open() -> Self {
        Self(None)
    }

    unsafe fn close(&mut self) {
        if let Some(slide) = self.0.take() {
            slide.close();
        }
    }
}

/// Says whether it did it: other rows go through staging memory.
pub(super) fn transpose<M: Machine, const E: usize>(t: &Tile<'_>, size: usize) -> bool {
    if !t.slides || t.nb * size < 64 {
        return false;
    }
    match E {
        1 => slide::<M, 1>(t),
        2 => slide::<M, 2>(t),
        4 => slide::<M, 4>(t),
        8 => slide::<M, 8>(t),
        16 => slide::<M, 16>(t),
        _ => return false,
    }
    true
}

fn slide<M: Machine, const E: usize>(t: &Tile<'_>) {
    let edge = 64 / E;
    let packed = vector::packs(E, t.pitch);
    let lines = match E {
        1 if !packed => 1,
        2 if !packed => 2,
        _ => 4,
    };
    let mut memory = MaybeUninit::<vector::Runs>::uninit();
    let (na, whole) = (t.a.len(), t.nb / edge * edge);
    for from in (0..whole).step_by(lines * edge) {
        let to = whole.min(from + lines * edge);
        let mut first = 0;
        if packed {
            let way = Way { stream: true, ahead: t.ahead, pitch: t.pitch, abreast: 1 };
            let (b, rows) = (&t.b[from..to], Rows { t, size: E, j: from });
            let squares = na / edge;
            // SAFETY: these registers touch nothing, and `memory` is as large as its type.
            unsafe {
                let memory = memory.as_mut_ptr();
                vector::runs::<Register<M>, E, { vector::BURST }, 256>(t.src, squares, b, way, memory, &rows);
            }
            first = squares * edge;
        }
        for i in (first..na).step_by(edge) {
            for j in (from..to).step_by(edge) {
                square::<M, E>(t, i, j, &t.b[j..j + edge]);
            }
        }
    }
    for i in (0..na).step_by(edge) {
        last(t, E, i, whole);
    }
}

struct Rows<'t> {
    t: &'t Tile<'t>,
    size: usize,
    j: usize,
}

impl<M: Machine> vector::Leave<Register<M>> for Rows<'_> {
    unsafe fn line(&self, first: usize, k: usize, _: Register<M>) {
        emit(self.t, self.size, first + k, self.j);
    }

    unsafe fn leave(&self, row: usize, from: *const u8, lines: usize) {
        let at = self.t.dst.wrapping_offset(look(&self.t.a[row].dst)).wrapping_add(self.j * self.size);
        let skew = at.addr() % 64;
        for k in 0..lines {
            read(from.wrapping_add(64 * k), 64);
            if k == 0 && self.j > 0 {
                read(kept(self.t, row), 64);
            }
            if k == 0 && self.j == 0 && skew > 0 {
                write(at, 64 - skew);
            } else {
                stream(at.wrapping_sub(skew).wrapping_add(64 * k));
            }
        }
        write(kept(self.t, row), 64);
    }
}

fn kept(t: &Tile<'_>, i: usize) -> *mut u8 {
    t.staging.wrapping_add(i * 64)
}

fn emit(t: &Tile<'_>, size: usize, i: usize, j: usize) {
    let at = t.dst.wrapping_offset(look(&t.a[i].dst)).wrapping_add(j * size);
    let skew = at.addr() % 64;
    let line = at.wrapping_sub(skew);
    if j > 0 {
        read(kept(t, i), 64);
        stream(line);
    } else if skew == 0 {
        stream(line);
    } else {
        write(at, 64 - skew);
    }
    write(kept(t, i), 64);
}

fn square<M: Machine, const E: usize>(t: &Tile<'_>, i: usize, j: usize, b: &[Step]) {
    let n = (64 / E).min(t.a.len() - i);
    let src = t.src.wrapping_add(i * E);
    if n < 64 / E {
        read_partial(src, b, n, E);
        (0..n).for_each(|k| emit(t, E, i + k, j));
        return;
    }
    if E >= 4
        && let Some(pitch) = t.pitch
    {
        let from = src.wrapping_offset(b[0].src);
        // SAFETY: as below.
        unsafe { vector::read_square::<Register<M>, E>(from, |k| k as isize * pitch.src, Some(t.ahead)) };
        (0..64 / E).for_each(|k| emit(t, E, i + k, j));
        return;
    }
    // SAFETY: these registers touch nothing, and the rows' addresses lie in the tile's.
    unsafe {
        let lines = vector::read_square::<Register<M>, E>(
            src,
            |k| <Register<M> as Vector>::look(&b[k].src),
            Some(t.ahead),
        );
        for g in 0..4 {
            lines.group(g);
            (0..16 / E).for_each(|k| emit(t, E, i + g * (16 / E) + k, j));
        }
    }
}

fn read_partial(src: *const u8, b: &[Step], n: usize, size: usize) {
    let group = 16 / size;
    for k in 0..group {
        for lane in 0..4 {
            let row = (lane * group + k).min(b.len() - 1);
            read(src.wrapping_offset(look(&b[row].src)), n * size);
        }
    }
}

fn last(t: &Tile<'_>, size: usize, i: usize, j: usize) {
    let n = (64 / size).min(t.a.len() - i);
    let (spare, b) = ([Step::default()], &t.b[j..]);
    let (src, b, bytes) = match b {
        [] => (t.src.wrapping_offset(look(&t.b[0].src)).wrapping_add(i * size), &spare[..], 0),
        b => (t.src.wrapping_add(i * size), b, b.len() * size),
    };
    read_partial(src, b, n, size);
    for row in i..i + n {
        let at = t.dst.wrapping_offset(look(&t.a[row].dst)).wrapping_add(j * size);
        let skew = at.addr() % 64;
        read(kept(t, row), 64);
        Slide { to: at.wrapping_sub(skew), skew, head: 0 }.finish(bytes);
    }
}

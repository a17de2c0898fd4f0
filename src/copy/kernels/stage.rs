//! Staging: rows that do not start and end on lines are put together in a small buffer that is
//! congruent to the destination modulo 64, and leave it as whole lines; only the first and the last
//! part of a run are ordinary stores.

use super::level::{Level, Way};
use super::tile::{MAX_STEPS, STAGING_BYTES, Step, Tile};

use std::mem::MaybeUninit;

const LINE: usize = 64;

/// Bytes of a [`Sink`]'s buffer that are filled before it is emptied.
const SINK_BYTES: usize = 8 << 10;

/// Moves a run whose destination is whole lines but for a head and a tail.
///
/// # Safety
/// Both sides hold `bytes` bytes and do not overlap.
#[inline(always)]
pub(super) unsafe fn stream<L: Level>(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { lines::<L>(dst, src, bytes, |_| {}) }
}

/// [`stream`] from memory, followed by a run at `next`: the source is asked for `ahead` bytes early, in the
/// order in which it will be read.
///
/// # Safety
/// As [`stream`].
#[inline(always)]
pub(super) unsafe fn stream_ahead<L: Level>(
    dst: *mut u8,
    src: *const u8,
    bytes: usize,
    next: *const u8,
    ahead: usize,
) {
    let (here, far) = (bytes.saturating_sub(ahead), src.wrapping_add(ahead));
    // SAFETY: the caller's promise; hints fault on no address.
    unsafe {
        lines::<L>(dst, src, bytes, |at| {
            let from = if at < here { far.wrapping_add(at) } else { next.wrapping_add(at - here) };
            L::prefetch(from);
        });
    }
}

/// # Safety
/// As [`stream`].
#[inline(always)]
unsafe fn lines<L: Level>(dst: *mut u8, src: *const u8, bytes: usize, ahead: impl Fn(usize)) {
    let head = dst.align_offset(LINE).min(bytes);
    // SAFETY: head + lines * 64 + tail == bytes; `line` gets addresses that are multiples of 64.
    unsafe {
        if head > 0 {
            L::copy(dst, src, head);
        }
        let mut at = head;
        while at + LINE <= bytes {
            ahead(at);
            L::line(dst.add(at), src.add(at));
            at += LINE;
        }
        if at < bytes {
            L::copy(dst.add(at), src.add(at), bytes - at);
        }
    }
}

/// A buffer in front of a run of destination bytes.
pub(super) struct Sink {
    staging: *mut u8,
    /// Where the byte at `staging` belongs, rounded down to a line.
    base: *mut u8,
    /// First byte of the buffer that is not yet written out.
    from: usize,
    /// One past the last byte filled.
    to: usize,
}

impl Sink {
    /// An empty sink over `STAGING_BYTES` bytes aligned to 64.
    #[inline(always)]
    pub(super) fn new(staging: *mut u8) -> Self {
        Self { staging, base: std::ptr::null_mut(), from: 0, to: 0 }
    }

    /// Makes `dst` the next byte to be produced; empties the buffer unless it already is.
    ///
    /// # Safety
    /// What was produced so far is writable at its destination.
    #[inline(always)]
    pub(super) unsafe fn seek<L: Level>(&mut self, dst: *mut u8) {
        if self.base.wrapping_add(self.to) == dst && !self.base.is_null() {
            return;
        }
        // SAFETY: the caller vouches for what was produced.
        unsafe { self.finish::<L>() }
        let skew = dst.addr() % LINE;
        self.base = dst.wrapping_sub(skew);
        self.from = skew;
        self.to = skew;
    }

    /// Columns of `unit` bytes that may be produced before [`Sink::advance`].
    #[inline(always)]
    pub(super) fn room(&self, unit: usize) -> usize {
        ((SINK_BYTES - self.to) / unit).max(1)
    }

    /// Where the next byte is to be produced.
    #[inline(always)]
    pub(super) fn at(&self) -> *mut u8 {
        self.staging.wrapping_add(self.to)
    }

    /// Takes `bytes` produced bytes; writes whole lines out when the next column may not fit.
    ///
    /// # Safety
    /// They were produced, and are writable at their destination.
    #[inline(always)]
    pub(super) unsafe fn advance<L: Level>(&mut self, bytes: usize, unit: usize) {
        self.to += bytes;
        debug_assert!(self.to <= STAGING_BYTES);
        if self.to + unit <= SINK_BYTES {
            return;
        }
        let whole = self.to / LINE * LINE;
        if whole <= self.from {
            return; // one column longer than the buffer grows it; `room` keeps that to one column
        }
        // SAFETY: [from, whole) was produced; the rest, less than a line, moves to the front
        // (whole lines on both sides; the staging memory goes on that far).
        unsafe {
            stream::<L>(self.base.add(self.from), self.staging.add(self.from), whole - self.from);
            L::rest(self.staging, self.staging.add(whole));
        }
        self.base = self.base.wrapping_add(whole);
        self.from = 0;
        self.to -= whole;
    }

    /// Writes out what is left.
    ///
    /// # Safety
    /// As [`Sink::advance`].
    #[inline(always)]
    pub(super) unsafe fn finish<L: Level>(&mut self) {
        if self.to > self.from {
            // SAFETY: [from, to) was produced.
            unsafe {
                stream::<L>(self.base.add(self.from), self.staging.add(self.from), self.to - self.from);
            }
        }
        self.from = self.to;
    }
}

/// Transposes a tile into staging rows and writes those out run by run; as many rows at once as surely fit.
///
/// # Safety
/// As [`super::tile::run`]; one row with three lines of slack fits in the staging memory.
#[inline(always)]
pub(super) unsafe fn transpose<L: Level, const E: usize>(t: &Tile<'_>, size: usize) {
    let fit = (STAGING_BYTES - 2 * LINE) / (t.nb * size + 3 * LINE);
    let edge = super::square_edge(size);
    // The plan's tiles fit. The last tile of a row that slides may be too short to slide, and have too many rows.
    let most = if fit > edge { fit / edge * edge } else { fit.max(1) };
    for first in (0..t.a.len()).step_by(most) {
        let rows = &t.a[first..t.a.len().min(first + most)];
        // SAFETY: some of the tile's rows, which fit.
        unsafe { transpose_rows::<L, E>(t, t.src.add(first * size), rows, size) }
    }
}

/// [`transpose`] of the rows `rows`, the first of which is read from `src` on.
///
/// # Safety
/// As there; the rows with three lines of slack each fit in the staging memory.
#[inline(always)]
unsafe fn transpose_rows<L: Level, const E: usize>(t: &Tile<'_>, src: *const u8, rows: &[Step], size: usize) {
    let row_bytes = t.nb * size;
    let mut at = [MaybeUninit::<u32>::uninit(); MAX_STEPS];
    let slots = &mut at[..rows.len()];
    let apart = turns::<L>(rows, row_bytes);
    let mut end = 0usize;
    for run in 0..apart {
        // A line of slack keeps rows apart whose length is a power of two.
        let mut start =
            end.next_multiple_of(LINE) + LINE + t.dst.wrapping_offset(rows[run].dst).addr() % LINE;
        for slot in slots[run..].iter_mut().step_by(apart) {
            L::put(slot, start as u32);
            start += row_bytes;
        }
        end = start;
    }
    assert!(end <= STAGING_BYTES);
    // SAFETY: every one of `slots` was written above.
    let offset = |i: usize| unsafe { L::look(slots[i].assume_init_ref()) } as usize;
    let way = Way::of_rows(false, t.ahead);
    // SAFETY: staging rows do not overlap and fit; each run goes where the tile's rows go.
    unsafe {
        L::transpose::<E>(src, t.staging, rows.len(), |i| offset(i) as isize, t.b, size, way);
        for run in 0..apart {
            let bytes = (rows.len() - run).div_ceil(apart) * row_bytes;
            stream::<L>(t.dst.offset(rows[run].dst), t.staging.add(offset(run)), bytes);
        }
    }
}

/// In how many destination runs the rows go, by turns: row `i` touches row `i + turns`. As many as there are
/// rows where they do not touch.
#[inline(always)]
fn turns<L: Level>(rows: &[Step], row_bytes: usize) -> usize {
    let touch = |i: usize, j: usize| L::look(&rows[i].dst) + row_bytes as isize == L::look(&rows[j].dst);
    let turns = (1..rows.len()).find(|&j| touch(0, j));
    turns.filter(|&n| (n..rows.len()).all(|i| touch(i - n, i))).unwrap_or(rows.len())
}

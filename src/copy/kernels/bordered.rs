//! Rows with fill around them, written front to back: the destination of a tile is one run.

use super::level::Level;
use super::stage::{self, Sink};
use super::tile::Tile;
use std::mem::MaybeUninit;

const LINE: usize = 64;

/// Bytes of repeated fill that are kept ready.
const PATTERN_BYTES: usize = 256;

/// Fill from this length on may bypass the caches.
const LONG_FILL_BYTES: usize = 1024;

/// Moves a tile of kind bordered.
///
/// # Safety
/// As [`super::tile::run`]; `fill` is readable for `fill_size` bytes, and borders are multiples of that.
#[inline(always)]
pub(super) unsafe fn run<L: Level>(t: &Tile<'_>) {
    let border = t.border;
    // SAFETY: rows and the fill around them are the tile's, which the caller vouches for.
    unsafe {
        let fill = Fill::new(t.fill, t.fill_size);
        if t.staged {
            return staged::<L>(t, &fill);
        }
        fill.write::<L>(t.dst.sub(border.lead), border.lead, t.stream);
        let mut end = t.dst;
        for (i, a) in t.a.iter().enumerate() {
            let a = L::look(a);
            let (src, dst) = (t.src.offset(a.src), t.dst.offset(a.dst));
            fill.write::<L>(dst, border.before, t.stream);
            let to = dst.add(border.before);
            if t.stream {
                let next = t.a.get(i + 1).map_or(t.src.wrapping_offset(t.next), |a| t.src.offset(a.src));
                stage::stream_ahead::<L>(to, src, t.nb, next, t.ahead);
            } else {
                L::copy(to, src, t.nb);
            }
            fill.write::<L>(to.add(t.nb), border.after, t.stream);
            end = to.add(t.nb + border.after);
        }
        fill.write::<L>(end, border.trail, t.stream);
    }
}

/// [`run`] through staging memory, which whole lines leave.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn staged<L: Level>(t: &Tile<'_>, fill: &Fill) {
    let border = t.border;
    let mut sink = Sink::new(t.staging);
    // SAFETY: as in `run`; what is produced at `sink.at()` has the room that `sink.room` gives.
    unsafe {
        sink.seek::<L>(t.dst.sub(border.lead));
        fill.pour::<L>(&mut sink, border.lead);
        let row = border.before + t.nb + border.after;
        // What is staged waits for its stores as well: half as far is far enough.
        let ahead = t.ahead / 2;
        let short = border.before.max(border.after) <= fill.chunk();
        for a in t.a {
            let src = t.src.offset(L::look(&a.src));
            if short && row <= sink.room(1) {
                for line in (0..t.nb).step_by(LINE) {
                    L::prefetch(src.wrapping_add(line + ahead));
                }
                let to = sink.at();
                L::copy(to, fill.bytes(), border.before);
                L::copy(to.add(border.before), src, t.nb);
                L::copy(to.add(border.before + t.nb), fill.bytes(), border.after);
                sink.advance::<L>(row, row);
                continue;
            }
            fill.pour::<L>(&mut sink, border.before);
            let mut done = 0;
            while done < t.nb {
                let n = sink.room(1).min(t.nb - done);
                for line in (0..n).step_by(LINE) {
                    L::prefetch(src.wrapping_add(done + line + ahead));
                }
                L::copy(sink.at(), src.add(done), n);
                sink.advance::<L>(n, 1);
                done += n;
            }
            fill.pour::<L>(&mut sink, border.after);
        }
        fill.pour::<L>(&mut sink, border.trail);
        sink.finish::<L>();
    }
}

/// The fill value, repeated.
struct Fill {
    pattern: MaybeUninit<[u8; PATTERN_BYTES]>,
    /// Bytes of `pattern` that are whole values: 0 where one is larger than that.
    len: usize,
    value: *const u8,
    size: usize,
}

impl Fill {
    /// # Safety
    /// `value` is readable for `size` bytes for as long as this lives.
    #[inline(always)]
    unsafe fn new(value: *const u8, size: usize) -> Self {
        let mut pattern = MaybeUninit::<[u8; PATTERN_BYTES]>::uninit();
        let len = PATTERN_BYTES / size * size;
        let to = pattern.as_mut_ptr().cast::<u8>();
        let mut done = size.min(len);
        // SAFETY: `len` bytes fit; each round doubles what is there, up to `len`.
        unsafe {
            std::ptr::copy_nonoverlapping(value, to, done);
            while done < len {
                let more = done.min(len - done);
                std::ptr::copy_nonoverlapping(to, to.add(done), more);
                done += more;
            }
        }
        Self { pattern, len, value, size }
    }

    /// Where at most [`Fill::chunk`] bytes of fill are read.
    #[inline(always)]
    fn bytes(&self) -> *const u8 {
        if self.len == 0 { self.value } else { self.pattern.as_ptr().cast() }
    }

    /// Bytes that can be written at once.
    #[inline(always)]
    fn chunk(&self) -> usize {
        if self.len == 0 { self.size } else { self.len }
    }

    /// Writes `n` bytes of fill.
    ///
    /// # Safety
    /// `dst` is writable for `n` bytes, a multiple of the value's size.
    #[inline(always)]
    unsafe fn write<L: Level>(&self, dst: *mut u8, n: usize, stream: bool) {
        let mut done = 0;
        // SAFETY: `done` goes up to `n` by at most a chunk at a time.
        unsafe {
            if stream && n >= LONG_FILL_BYTES && LINE.is_multiple_of(self.size) {
                let head = dst.align_offset(LINE).min(n);
                L::copy(dst, self.bytes(), head);
                done = head;
                // A value that divides a line has the same phase in each of them.
                let line = self.bytes().add(head % self.size);
                while done + LINE <= n {
                    L::line(dst.add(done), line);
                    done += LINE;
                }
                return L::copy(dst.add(done), line, n - done);
            }
            while done < n {
                let some = self.chunk().min(n - done);
                L::copy(dst.add(done), self.bytes(), some);
                done += some;
            }
        }
    }

    /// Puts `n` bytes of fill into a sink.
    ///
    /// # Safety
    /// As [`Fill::write`], for where the sink's bytes go.
    #[inline(always)]
    unsafe fn pour<L: Level>(&self, sink: &mut Sink, n: usize) {
        let mut done = 0;
        while done < n {
            let room = (sink.room(self.size) * self.size).min(self.chunk());
            let some = room.min(n - done);
            // SAFETY: the sink has room for `some` bytes.
            unsafe {
                L::copy(sink.at(), self.bytes(), some);
                sink.advance::<L>(some, self.size);
            }
            done += some;
        }
    }
}

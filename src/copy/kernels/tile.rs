//! One tile, written once over the levels: which loop a tile needs and where its rows go.

use super::bordered;
use super::cells::Cells;
use super::level::{self, Level, Recipe, Run, Way};
use super::stage::Sink;

/// Most rows or columns that a table of offsets holds.
pub(crate) const MAX_STEPS: usize = 1024;

/// Bytes of staging memory that a staged tile needs, aligned to 64.
pub(crate) const STAGING_BYTES: usize = 160 << 10;

/// How far row `i` or column `j` of a tile is from its first, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) src: isize,
    pub(crate) dst: isize,
}

/// Which loop a tile needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Rows that are dense on both sides.
    Copy,
    /// Rows that are dense on both sides, with fill around them.
    Bordered,
    /// Rows that repeat one element.
    Splat,
    /// Rows whose source elements are a fixed number of bytes apart.
    Gather,
    /// Rows of groups of a few elements, one from each of as many dense source rows.
    Interleave,
    /// Rows of cells of a few elements that lie close together.
    Shuffle,
    /// Dense source rows become destination columns.
    Transpose,
    /// Any strides on both sides.
    Scatter,
}

/// One tile: element `(i, j)` goes from `src + a[i].src + (j)` to `dst + a[i].dst + (j)`, where `(j)`
/// is the column offset that [`Kind`] describes.
pub(crate) struct Tile<'t> {
    pub(crate) kind: Kind,
    pub(crate) src: *const u8,
    pub(crate) dst: *mut u8,
    /// One step per row.
    pub(crate) a: &'t [Step],
    /// One step per column, for [`Kind::Transpose`] and [`Kind::Scatter`]; one per element of a cell, for
    /// [`Kind::Shuffle`].
    pub(crate) b: &'t [Step],
    /// How far apart the columns of each square are read and its rows written, where that is the same for all
    /// ([`Kind::Transpose`] only).
    pub(crate) pitch: Option<Step>,
    /// Squares of rows that are taken abreast ([`Kind::Transpose`] only, else 1).
    pub(crate) abreast: usize,
    /// Number of columns.
    pub(crate) nb: usize,
    /// Source bytes from one column to the next, for the other kinds.
    pub(crate) b_src: isize,
    /// Bytes of an element.
    pub(crate) element: usize,
    /// Elements a column holds, and source bytes between them ([`Kind::Interleave`] only, else 1 and 0).
    pub(crate) channels: usize,
    pub(crate) channel_src: isize,
    /// How far from `src` the next tile is read (roughly), in bytes.
    pub(crate) next: isize,
    /// How far ahead of what is read the source is asked for, in bytes.
    pub(crate) ahead: usize,
    /// Whole lines may bypass the caches.
    pub(crate) stream: bool,
    /// Rows go through `staging`, because they do not start and end on lines.
    pub(crate) staged: bool,
    /// Rows of a transpose that is `staged` are put onto lines in registers, where the level can.
    pub(crate) slides: bool,
    /// [`STAGING_BYTES`] bytes aligned to 64 when `staged`, else unused.
    pub(crate) staging: *mut u8,
    /// Fill around the rows ([`Kind::Bordered`] only).
    pub(crate) border: Border,
    /// One fill value of `fill_size` bytes, for [`Kind::Bordered`].
    pub(crate) fill: *const u8,
    pub(crate) fill_size: usize,
}

impl Tile<'_> {
    #[inline(always)]
    fn way(&self) -> Way {
        Way { stream: self.stream, ahead: self.ahead, pitch: self.pitch, abreast: self.abreast }
    }
}

/// Fill bytes before and after each row, before the first row, and after the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Border {
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) lead: usize,
    pub(crate) trail: usize,
}

/// Moves one tile.
///
/// # Safety
/// Every source position of the tile is readable and every destination position writable for one
/// element, the two sides do not overlap, no two destination positions overlap, the CPU has the
/// level, and `staging` is as its field says. With `stream` and not `staged`, every row of a
/// transpose starts on a line and is whole lines long.
pub(super) unsafe fn run<L: Level>(t: &Tile<'_>) {
    // SAFETY: `E` is the element size or 0; the rest is the caller's promise.
    unsafe {
        match t.element {
            // Rows of bytes: the element has no say.
            _ if t.kind == Kind::Copy => L::apart::<Dense>(t),
            _ if t.kind == Kind::Bordered => L::apart::<Bordered>(t),
            1 => sized::<L, 1>(t),
            2 => sized::<L, 2>(t),
            4 => sized::<L, 4>(t),
            8 => sized::<L, 8>(t),
            16 => sized::<L, 16>(t),
            _ => sized::<L, 0>(t),
        }
    }
}

/// # Safety
/// As [`run`], with `E` the element size or 0.
#[inline(always)]
unsafe fn sized<L: Level, const E: usize>(t: &Tile<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        match t.kind {
            Kind::Transpose if t.staged => L::apart::<Staged<E>>(t),
            Kind::Transpose => L::apart::<Transpose<E>>(t),
            _ => L::apart::<Rows<E>>(t),
        }
    }
}

/// A part of the kernel that gets a function of its own ([`Level::apart`]). All parts in one function would
/// need more than a megabyte of stack where nothing is optimised and every local has a place of its own.
pub(super) trait Part {
    /// # Safety
    /// As [`run`], for a tile that is the part's.
    unsafe fn run<L: Level>(t: &Tile<'_>);
}

/// Rows of bytes.
struct Dense;

impl Part for Dense {
    #[inline(always)]
    unsafe fn run<L: Level>(t: &Tile<'_>) {
        // SAFETY: the caller's promise.
        unsafe { rows::<L, _>(t, t.element, Copy(t.ahead)) }
    }
}

/// Rows of bytes with fill around them.
struct Bordered;

impl Part for Bordered {
    #[inline(always)]
    unsafe fn run<L: Level>(t: &Tile<'_>) {
        // SAFETY: the caller's promise.
        unsafe { bordered::run::<L>(t) }
    }
}

/// Everything else that goes row by row.
struct Rows<const E: usize>;

impl<const E: usize> Part for Rows<E> {
    #[inline(always)]
    unsafe fn run<L: Level>(t: &Tile<'_>) {
        let size = if E == 0 { t.element } else { E };
        // SAFETY: the producers write `n` columns of a row that the caller vouches for, reading the source
        // positions that belong to them.
        unsafe {
            match t.kind {
                Kind::Splat => rows::<L, _>(t, size, Splat::<L, E>(size, L::Recipe::splat(size))),
                Kind::Gather => {
                    if !t.staged && planes(t, size) && L::planes(t, size) {
                        return;
                    }
                    let recipe = L::Recipe::gather(t.nb, t.b_src, size, t.stream);
                    if !t.staged && down(t) && !recipe.gathers() {
                        return level::gather_down::<L, E>(t, size);
                    }
                    if !t.staged && !t.stream && far::<E>(t.b_src) && !recipe.gathers() {
                        return level::gather_across::<L, E>(t);
                    }
                    rows::<L, _>(t, size, Gather::<L, E>(t.b_src, size, t.ahead, recipe));
                }
                Kind::Interleave => {
                    let recipe = L::Recipe::interleave(t.channels, size);
                    let planes = (t.channels, t.channel_src);
                    let interleave = Interleave::<L, E>(planes, size, t.ahead, recipe);
                    rows::<L, _>(t, size * t.channels, interleave);
                }
                Kind::Shuffle => {
                    let cells = Cells::new(t.b, t.b_src, size);
                    rows::<L, _>(t, cells.bytes, Shuffle::<E>(&cells));
                }
                Kind::Scatter => {
                    for a in t.a {
                        for b in t.b {
                            let (a, b) = (L::look(a), L::look(b));
                            let from = t.src.offset(a.src + b.src);
                            L::element::<E>(t.dst.offset(a.dst + b.dst), from, size);
                        }
                    }
                }
                Kind::Copy | Kind::Bordered | Kind::Transpose => {} // other parts
            }
        }
    }
}

/// A transpose whose rows are whole lines, or stay in the caches.
struct Transpose<const E: usize>;

impl<const E: usize> Part for Transpose<E> {
    #[inline(always)]
    unsafe fn run<L: Level>(t: &Tile<'_>) {
        let size = if E == 0 { t.element } else { E };
        // SAFETY: the caller's promise.
        unsafe { L::transpose::<E>(t.src, t.dst, t.a.len(), |i| L::look(&t.a[i].dst), t.b, size, t.way()) }
    }
}

/// A transpose whose rows start anywhere, past the caches.
struct Staged<const E: usize>;

impl<const E: usize> Part for Staged<E> {
    #[inline(always)]
    unsafe fn run<L: Level>(t: &Tile<'_>) {
        let size = if E == 0 { t.element } else { E };
        // SAFETY: the caller's promise.
        unsafe { L::transpose_staged::<E>(t, size) }
    }
}

/// Whether a gather tile takes a few interleaved rows apart, all of them and in order.
#[inline(always)]
fn planes(t: &Tile<'_>, size: usize) -> bool {
    let n = t.a.len();
    matches!(n, 2..=4)
        && t.b_src == (n * size) as isize
        && t.a.iter().enumerate().all(|(c, a)| a.src == (c * size) as isize)
}

/// Whether a gather tile is better walked down its columns: its rows are short (wide elements are worth a row's
/// loop sooner), or closer to each other in the source than the elements of one row.
#[inline(always)]
fn down(t: &Tile<'_>) -> bool {
    let [first, second, ..] = t.a else { return false };
    let short = match t.element {
        8.. => 64 / t.element.min(16),
        4.. if t.b_src.unsigned_abs() >= 32 => 8,
        _ => 16,
    };
    let close = first.src.abs_diff(second.src) < t.b_src.unsigned_abs();
    t.nb < short || close && !stays(t)
}

/// Whether a gather tile of wide elements is read row by row all the same: the source lines of a row are still in the
/// first-level cache when the row after it comes. No more than eight fall into one of its sets, and of elements that
/// do not fill a lane no more than a few pages are read in turn.
#[inline(always)]
fn stays(t: &Tile<'_>) -> bool {
    let pitch = t.b_src.unsigned_abs();
    let sets = if pitch < 64 { 64 } else { 64 >> (pitch / 64).trailing_zeros().min(6) };
    let pages = t.element == 16 || t.element == 8 && (pitch <= 512 || t.nb <= 32);
    pages && t.nb <= 8 * sets
}

/// Whether elements lie so far apart that each is better put into its place than read ahead of.
#[inline(always)]
fn far<const E: usize>(stride: isize) -> bool {
    match E {
        8 => stride.unsigned_abs() > 32,
        16 => !(0..64).contains(&stride),
        _ => false,
    }
}

/// For rows that may bypass the caches: where the row after this one (roughly) is read.
type Then = Option<*const u8>;

/// What fills a row. A trait and not closures: only methods can be told to inline, and what is not
/// inlined into the level's entry function loses the level's instructions.
trait Produce<L: Level> {
    /// Writes `n` columns at `dst`; `src` is where the first of them is read.
    ///
    /// # Safety
    /// `dst` holds `n` columns and every source position of theirs is readable. With `then`,
    /// whole lines may bypass the caches, and what is left of a line may wait in `run`.
    unsafe fn produce(&self, dst: *mut u8, src: *const u8, n: usize, then: Then, run: &mut L::Run);
}

/// A column is one byte. How far ahead the source is asked for.
struct Copy(usize);

impl<L: Level> Produce<L> for Copy {
    #[inline(always)]
    unsafe fn produce(&self, dst: *mut u8, src: *const u8, n: usize, then: Then, run: &mut L::Run) {
        // SAFETY: the caller's promise, here and below.
        unsafe {
            match then {
                Some(next) => L::stream(run, dst, src, n, (next, self.0)),
                None => L::copy(dst, src, n),
            }
        }
    }
}

/// Element size.
struct Splat<L: Level, const E: usize>(usize, L::Recipe);

impl<L: Level, const E: usize> Produce<L> for Splat<L, E> {
    #[inline(always)]
    unsafe fn produce(&self, dst: *mut u8, src: *const u8, n: usize, then: Then, run: &mut L::Run) {
        // SAFETY: the caller's promise.
        unsafe { L::splat::<E>(&self.1, dst, src, n, self.0, (then.is_some(), run)) }
    }
}

/// Stride, element size, how far ahead the source is asked for.
struct Gather<L: Level, const E: usize>(isize, usize, usize, L::Recipe);

impl<L: Level, const E: usize> Produce<L> for Gather<L, E> {
    #[inline(always)]
    unsafe fn produce(&self, dst: *mut u8, src: *const u8, n: usize, then: Then, run: &mut L::Run) {
        // SAFETY: the caller's promise.
        unsafe { L::gather::<E>(&self.3, dst, src, n, self.0, self.1, (then, self.2, run)) }
    }
}

/// Channels and their stride, element size, how far ahead the source is asked for.
struct Interleave<L: Level, const E: usize>((usize, isize), usize, usize, L::Recipe);

impl<L: Level, const E: usize> Produce<L> for Interleave<L, E> {
    #[inline(always)]
    unsafe fn produce(&self, dst: *mut u8, src: *const u8, n: usize, then: Then, run: &mut L::Run) {
        // SAFETY: the caller's promise.
        unsafe {
            let way = Way::of_rows(then.is_some(), self.2);
            L::interleave::<E>(&self.3, dst, src, n, self.0, self.1, (way, run))
        }
    }
}

/// A column is a cell.
struct Shuffle<'t, const E: usize>(&'t Cells<'t>);

impl<L: Level, const E: usize> Produce<L> for Shuffle<'_, E> {
    #[inline(always)]
    unsafe fn produce(&self, dst: *mut u8, src: *const u8, n: usize, then: Then, run: &mut L::Run) {
        // SAFETY: the caller's promise.
        unsafe { L::cells::<E>(self.0, dst, src, n, then.map(|_| run)) }
    }
}

/// Runs a row producer over all rows of a tile, through staging where the tile says so. A column is
/// `unit` bytes of the destination.
///
/// # Safety
/// As [`run`]; the producer's columns are those of the tile.
#[inline(always)]
unsafe fn rows<L: Level, P: Produce<L>>(t: &Tile<'_>, unit: usize, producer: P) {
    let mut run = L::Run::open();
    // SAFETY: offsets of rows come from the tile, which the caller vouches for.
    unsafe {
        if !t.staged {
            // So many rows ahead are as far as the source is asked for.
            let row_bytes = t.nb * unit;
            let span = row_bytes.max(t.nb.saturating_mul(t.b_src.unsigned_abs()));
            let ahead = (t.ahead / span.max(1)).max(1);
            if let (true, Some(last)) = (t.stream, t.a.last()) {
                // The line that the tile ends in is written in part, if it is, which waits for it to be read.
                let end = t.dst.wrapping_offset(last.dst).wrapping_add(row_bytes);
                if !end.addr().is_multiple_of(64) {
                    L::prefetch(end);
                }
            }
            for (i, a) in t.a.iter().enumerate() {
                let a = L::look(a);
                let (src, dst) = (t.src.offset(a.src), t.dst.offset(a.dst));
                let then = t.stream.then(|| match t.a.get(i + ahead) {
                    Some(later) => t.src.wrapping_offset(later.src),
                    None => t.src.wrapping_offset(t.next + t.a[(i + ahead) % t.a.len()].src),
                });
                producer.produce(dst, src, t.nb, then, &mut run);
            }
            return run.close();
        }
        let mut sink = Sink::new(t.staging);
        for a in t.a {
            let a = L::look(a);
            let (src, dst) = (t.src.offset(a.src), t.dst.offset(a.dst));
            sink.seek::<L>(dst);
            let mut done = 0;
            while done < t.nb {
                let n = sink.room(unit).min(t.nb - done);
                producer.produce(sink.at(), src.offset(done as isize * t.b_src), n, None, &mut run);
                sink.advance::<L>(n * unit, unit);
                done += n;
            }
        }
        sink.finish::<L>();
    }
}

//! A plan's loads and stores, one by one, without the copy.

use super::kernels::replay::{Log, Place, Room, filled, record, tile_fn};
use super::kernels::{STAGING_BYTES, Tile};
use super::nest::{self, Buffers};
use super::plan::{Piece, Plan};
use crate::Error;
use std::ops::Range;

pub use super::kernels::replay::{Access, AccessKind, Side};

/// Own memory is laid out on pages.
const PAGE: usize = 4096;

/// Bytes of the side [`Side::Own`] for this plan: every offset of it is less.
pub fn own_bytes(plan: &Plan) -> usize {
    slot(plan) + Log::OWN_BYTES
}

/// Where the copy's own memory goes on behind the staging memory and one fill value.
fn slot(plan: &Plan) -> usize {
    STAGING_BYTES + plan.element_size().next_multiple_of(PAGE)
}

/// Hands every load and store of a plan to `each`, in batches and in order, as the kernels of the plan's
/// level make them on one thread for a destination that starts on a cache line.
///
/// Offsets of the source and the destination count from the start of their buffers. The staging memory is at
/// the start of the copy's own; objects on the stack begin on a page behind it. Registers that the compiler
/// spills and tables of offsets are not seen; loops that the compiler may vectorise go element by element;
/// what the C library moves goes front to back.
///
/// ```
/// use restride::copy::replay::{AccessKind, Side, replay};
/// use restride::{CopyOptions, Isa, Layout, Plan};
///
/// let src = Layout::row_major(&[16, 16])?.apply(".T")?;
/// let options = CopyOptions::default().isa(Isa::Scalar);
/// let plan = Plan::new(&src, &Layout::row_major(&[16, 16])?, 8, &options)?;
/// let mut loads = Vec::new();
/// replay(&plan, &mut |accesses| {
///     loads.extend(accesses.iter().filter(|a| a.side == Side::Src).map(|a| (a.kind, a.offset, a.bytes)));
/// })?;
/// assert_eq!(loads.len(), 256);
/// assert_eq!(loads[..2], [(AccessKind::Read, 0, 8), (AccessKind::Read, 128, 8)]);
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
/// `Alloc` where the address space does not hold the buffers of the copy; none of their memory is used.
pub fn replay(plan: &Plan, each: &mut dyn FnMut(&[Access])) -> Result<(), Error> {
    // From the start of the buffers on: that is where their pointers point.
    let (mut src, mut dst) = (0..1, 0..1);
    for piece in plan.pieces() {
        let (from, to) = reach(piece);
        src = join(src, from);
        dst = join(dst, to);
    }
    let pages = |range: &Range<i128>| {
        let first = range.start.div_euclid(PAGE as i128) * PAGE as i128;
        let bytes = (range.end - first) as u128;
        let bytes = usize::try_from(bytes).ok().and_then(|n| n.checked_next_multiple_of(PAGE));
        let first = isize::try_from(first).ok();
        first.zip(bytes).ok_or(Error::Overflow { what: "the reach of the copy" })
    };
    let ((src_first, src_bytes), (dst_first, dst_bytes)) = (pages(&src)?, pages(&dst)?);
    let all = src_bytes.checked_add(dst_bytes).and_then(|n| n.checked_add(STAGING_BYTES));
    let all = all.filter(|&n| isize::try_from(n).is_ok());
    let room = Room::new(all.ok_or(Error::Overflow { what: "the reach of the copy" })?)?;
    let fill = vec![0u8; plan.element_size().max(1)];
    let part = |at: usize, bytes: usize, side: Side, offset: isize| {
        let start = room.start().addr() + at;
        Place { addresses: start..start + bytes, side, offset }
    };
    let places = [
        part(0, src_bytes, Side::Src, src_first),
        part(src_bytes, dst_bytes, Side::Dst, dst_first),
        part(src_bytes + dst_bytes, STAGING_BYTES, Side::Own, 0),
        Place {
            addresses: fill.as_ptr().addr()..fill.as_ptr().addr() + fill.len(),
            side: Side::Own,
            offset: STAGING_BYTES as isize,
        },
    ];
    let start = room.start();
    let buffers = Buffers {
        src: start.wrapping_offset(src_first.wrapping_neg()),
        dst: start.wrapping_add(src_bytes).wrapping_offset(dst_first.wrapping_neg()),
        fill: fill.as_ptr(),
    };
    let staging = start.wrapping_add(src_bytes + dst_bytes);
    let run = tile_fn(plan.isa());
    let mut log = Log::new(places, slot(plan) as isize, each);
    for piece in plan.pieces() {
        record(&mut log, || {
            // SAFETY: the room holds whatever a piece reaches on either side, and staging memory behind it;
            // the level only forms addresses and writes them down. The fill value is memory that is read.
            unsafe {
                let mut first = true;
                let each = |tile: &Tile<'_>| {
                    if std::mem::take(&mut first) {
                        filled(tile.a.as_ptr(), piece.rows.full());
                        filled(tile.b.as_ptr(), if tile.b.is_empty() { 0 } else { piece.columns.full() });
                    }
                    run(tile);
                };
                nest::tiles_of(plan, piece, buffers, staging, each);
            }
        });
    }
    Ok(())
}

/// Bytes that a piece reaches in the source and in the destination, borders included.
fn reach(piece: &Piece) -> (Range<i128>, Range<i128>) {
    let (mut src, mut dst) = (Span::at(piece.src_offset), Span::at(piece.dst_offset));
    let mut add = |count: usize, from: isize, to: isize| {
        src.walk(count, from);
        dst.walk(count, to);
    };
    for l in &piece.loops {
        add(l.count, l.src, l.dst);
    }
    for axis in [&piece.rows, &piece.columns, &piece.cell].into_iter().flat_map(|group| group.axes()) {
        add(axis.extent, axis.src, axis.dst);
    }
    add(piece.channels, piece.channel_src, piece.element as isize);
    let (src, mut dst) = (src.bytes(piece.element), dst.bytes(piece.element));
    if !piece.borders.is_empty() {
        dst = join(dst, piece.dst_offset as i128..piece.dst_offset as i128 + piece.size() as i128);
    }
    if piece.fill { (0..0, dst) } else { (src, dst) }
}

/// The lowest and the highest of many positions.
struct Span {
    low: i128,
    high: i128,
}

impl Span {
    fn at(offset: isize) -> Self {
        Self { low: offset as i128, high: offset as i128 }
    }

    /// So many steps of an axis.
    fn walk(&mut self, count: usize, step: isize) {
        let far = step as i128 * (count.max(1) as i128 - 1);
        self.low += far.min(0);
        self.high += far.max(0);
    }

    fn bytes(&self, element: usize) -> Range<i128> {
        self.low..self.high + element as i128
    }
}

fn join(a: Range<i128>, b: Range<i128>) -> Range<i128> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b,
        (_, true) => a,
        _ => a.start.min(b.start)..a.end.max(b.end),
    }
}

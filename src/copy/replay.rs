//! A plan's loads and stores, one by one, without the copy.

#[cfg(all(test, target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
mod stepped;

use super::kernels::replay::{Log, Place, Room, filled, record, tile_fn};
use super::kernels::{Kind, STAGING_BYTES, Tile};
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
                        filled(
                            tile.b.as_ptr(),
                            match tile.kind {
                                Kind::Transpose | Kind::Scatter => piece.columns.full(),
                                _ => tile.b.len(),
                            },
                        );
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::cover::{Case, Cases};
    use crate::{CopyOptions, Isa, Layout};

    /// Everything that a plan touches.
    fn all(plan: &Plan) -> Vec<Access> {
        let mut all = Vec::new();
        replay(plan, &mut |accesses| all.extend_from_slice(accesses)).unwrap();
        all
    }

    fn range(access: &Access) -> Range<usize> {
        let first = usize::try_from(access.offset).unwrap();
        first..first + access.bytes
    }

    /// A layout over a buffer that starts at its lowest element.
    fn layout(shape: &[usize], strides: &[isize]) -> (Layout, usize) {
        let steps = || shape.iter().zip(strides).map(|(&n, &s)| s * (n.max(1) as isize - 1));
        let (low, high) =
            (steps().filter(|&s| s < 0).sum::<isize>(), steps().filter(|&s| s > 0).sum::<isize>());
        (Layout::new(shape, strides, -low).unwrap(), (high - low + 1) as usize)
    }

    /// Which bytes of a buffer belong to elements of the layout.
    fn owned(layout: &Layout, elements: usize, size: usize) -> Vec<bool> {
        let mut owned = vec![false; elements * size];
        for k in 0..layout.numel() {
            let at = layout.view_at(k).unwrap().unwrap() * size;
            owned[at..at + size].fill(true);
        }
        owned
    }

    /// Reads stay inside the source and read all of it; stores write all of the destination and nothing
    /// else, each byte once but where a kernel's stores overlap; what leaves staging memory was put there.
    fn check(case: &Case, isa: Isa, streaming: bool) {
        let ((src, src_len), (dst, dst_len)) =
            (layout(&case.shape, &case.src), layout(&case.shape, &case.dst));
        let options = CopyOptions::default().isa(isa).threads(1).streaming(streaming);
        let plan = Plan::new(&src, &dst, case.size, &options).unwrap();
        let (from, to) = (owned(&src, src_len, case.size), owned(&dst, dst_len, case.size));
        let (mut read, mut written) = (vec![false; from.len()], vec![0u8; to.len()]);
        let mut own = vec![false; own_bytes(&plan)];
        let what = || format!("{case:?} {isa}\n{plan}");
        let accesses = all(&plan);
        for (k, access) in accesses.iter().enumerate() {
            let at = range(access);
            match (access.side, access.kind) {
                (Side::Src, AccessKind::Read) => {
                    assert!(at.end <= read.len(), "{access:?} leaves the source: {}", what());
                    read[at].fill(true);
                }
                (Side::Dst, AccessKind::Write | AccessKind::StreamWrite) => {
                    assert!(at.end <= written.len(), "{access:?} leaves the destination: {}", what());
                    let aligned = at.start.is_multiple_of(access.bytes);
                    assert!(access.kind == AccessKind::Write || aligned, "{access:?}: {}", what());
                    written[at].iter_mut().for_each(|n| *n += 1);
                }
                (Side::Own, AccessKind::Write) => own[at].fill(true),
                (Side::Own, AccessKind::Read) => {
                    let known = own[at.clone()].iter().any(|&known| known) || at.start >= STAGING_BYTES;
                    // What is left behind the lines that went moves to the front, a line of it in any case.
                    let to_front = |a: &Access| a.kind == AccessKind::Write && (0..64).contains(&a.offset);
                    let rest =
                        || accesses[k + 1..].iter().take(7).any(|a| a.side == Side::Own && to_front(a));
                    assert!(known || rest(), "{access:?} was never put there: {}", what());
                }
                _ => panic!("{access:?} makes no sense: {}", what()),
            }
        }
        assert!(read.iter().zip(&from).all(|(&read, &from)| read || !from), "not all is read: {}", what());
        assert!(written.iter().zip(&to).all(|(&n, &to)| (n > 0) == to), "not all is written: {}", what());
        // Whole vectors and overlapping moves write some bytes again: single bytes by whole vectors at most.
        let by_elements = isa == Isa::Scalar && !streaming && !matches!(plan.strategy(), "run" | "rows");
        let whole = plan.pieces().iter().all(|piece| matches!(piece.element, 1 | 2 | 4 | 8 | 16));
        let most = if by_elements && whole { 1 } else { 64 };
        assert!(written.iter().all(|&n| n <= most), "{:?} times: {}", written.iter().max(), what());
    }

    #[test]
    fn every_level_touches_what_a_copy_demands() {
        for isa in Isa::available() {
            for (k, case) in Cases::new(11).take(400).enumerate() {
                check(&case, isa, k % 2 == 0);
            }
        }
    }

    #[test]
    fn padding_is_written_and_read_from_one_value() {
        for expr in [".pad((1, 2), (3, 4))", ".T.pad((1, 2), (3, 4))", ".pad((0, 0), (70, 0))[::-1]"] {
            for isa in Isa::available() {
                let src = Layout::row_major(&[40, 50]).unwrap().apply(expr).unwrap();
                let dst = Layout::row_major(src.shape()).unwrap();
                for streaming in [false, true] {
                    let options = CopyOptions::default().isa(isa).threads(1).streaming(streaming);
                    let plan = Plan::new(&src, &dst, 4, &options).unwrap();
                    let mut written = vec![false; dst.numel() * 4];
                    let mut fill = 0;
                    for access in all(&plan) {
                        let at = range(&access);
                        match access.side {
                            Side::Src => assert!(at.end <= 40 * 50 * 4),
                            Side::Dst => written[at].fill(true),
                            Side::Own => fill += u32::from(access.kind == AccessKind::Read),
                        }
                    }
                    assert!(written.iter().all(|&w| w) && fill > 0, "{expr} {isa} {streaming}");
                }
            }
        }
    }

    /// What [`super::super::kernels::replay`] does not know of would be seen here: a kernel of the portable
    /// level, load by load.
    #[test]
    fn the_portable_transpose_load_by_load() {
        let src = Layout::row_major(&[2, 3]).unwrap().apply(".T").unwrap();
        let dst = Layout::row_major(&[3, 2]).unwrap();
        let options = CopyOptions::default().isa(Isa::Scalar).threads(1).streaming(false);
        let plan = Plan::new(&src, &dst, 8, &options).unwrap();
        let moves: Vec<_> = all(&plan)
            .into_iter()
            .filter(|access| access.side != Side::Own)
            .map(|access| (access.kind == AccessKind::Write, access.offset, access.bytes))
            .collect();
        let expected: Vec<_> = [(0, 0), (24, 8), (8, 16), (32, 24), (16, 32), (40, 40)]
            .iter()
            .flat_map(|&(from, to)| [(false, from, 8), (true, to, 8)])
            .collect();
        assert_eq!(moves, expected);
    }

    #[test]
    fn whole_lines_of_a_streamed_transpose_are_stored_once_past_the_caches() {
        for isa in Isa::available().into_iter().filter(|&isa| !matches!(isa, Isa::Scalar | Isa::Neon)) {
            let src = Layout::row_major(&[256, 256]).unwrap().apply(".T").unwrap();
            let dst = Layout::row_major(&[256, 256]).unwrap();
            let options = CopyOptions::default().isa(isa).threads(1).streaming(true);
            for size in [1, 2, 4, 8, 16] {
                let plan = Plan::new(&src, &dst, size, &options).unwrap();
                let stores = all(&plan).into_iter().filter(|access| access.side == Side::Dst);
                let mut bytes = 0;
                for store in stores {
                    assert_eq!(store.kind, AccessKind::StreamWrite, "{isa} {size}");
                    bytes += store.bytes;
                }
                assert_eq!(bytes, 256 * 256 * size, "{isa} {size}");
            }
        }
    }

    #[test]
    fn a_replay_inside_a_replay_has_a_log_of_its_own() {
        let layout = Layout::row_major(&[3]).unwrap();
        let options = CopyOptions::default().isa(Isa::Scalar).threads(1);
        let turned = layout.apply("[::-1]").unwrap();
        let plan = Plan::new(&turned, &layout, 4, &options).unwrap();
        let (mut outer, mut inner) = (0, 0);
        let count = |accesses: &[Access]| accesses.iter().filter(|a| a.side == Side::Dst).count();
        replay(&plan, &mut |accesses| {
            outer += count(accesses);
            replay(&plan, &mut |accesses| inner += count(accesses)).unwrap();
        })
        .unwrap();
        assert_eq!((outer, inner), (3, 3));
    }
}

//! Padded views written front to back: rows that are dense on both sides, and around them, around the rows of
//! a plane and so on, the fill value. Nothing is written twice and no line is visited twice.

use super::choose::{self, Context, Way};
use super::walk::At;
use super::{Group, Loop, Loops, Over, Piece, Strategy};
use crate::layout::fuse::Axis;
use crate::layout::{Layout, Mask};
use smallvec::SmallVec;
use std::ops::Range;

const LINE: usize = 64;

/// Rows that are shorter with their borders than this are better taken apart into boxes.
const SHORTEST_ROW: usize = 32;

/// Staged tiles are so large that their ragged ends do not count.
const STAGED_TILE_BYTES: usize = 64 << 10;

/// Rows from this length on leave without staging: their ragged ends do not count.
const LONG_ROW_BYTES: usize = 64 << 10;

/// Fill bytes around all iterations of a loop, or around a row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Border {
    /// Before the first.
    pub before: usize,
    /// After the last.
    pub after: usize,
}

impl Border {
    fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// The piece that writes a padded view into a contiguous destination; `None` where the memory behind it is no
/// box of dense rows, or where the rows are too short for that to be fast.
pub(super) fn piece(
    src: &Layout,
    mask: &Mask,
    dst: &Layout,
    size: usize,
    context: &Context<'_>,
) -> Option<Piece> {
    let ranges = mask.as_box(src.shape())?;
    if !dst.is_contiguous() || ranges.iter().any(Range::is_empty) || src.shape() != dst.shape() {
        return None;
    }
    let padded = |axis: &usize| ranges[*axis] != (0..src.shape()[*axis]);
    let inner = (0..src.ndim()).rev().find(padded)?;
    let mut unit = 1isize;
    for axis in (inner..src.ndim()).rev() {
        let extent = ranges[axis].len();
        if extent > 1 && src.strides()[axis] != unit {
            return None;
        }
        unit = unit.checked_mul(extent as isize)?;
    }
    // Destination bytes of one step of each axis, and the fill around its range.
    let mut block = size;
    let mut steps: SmallVec<[(usize, Border); 6]> = SmallVec::from_elem((0, Border::default()), src.ndim());
    for axis in (0..src.ndim()).rev() {
        let (range, extent) = (&ranges[axis], src.shape()[axis]);
        let border = Border { before: range.start * block, after: (extent - range.end) * block };
        steps[axis] = (block, border);
        block *= extent;
    }
    let (inner_step, row_border) = steps[inner];
    let row = ranges[inner].len() * inner_step;
    if row + row_border.before + row_border.after < SHORTEST_ROW {
        return None;
    }
    let (mut loops, mut borders) = (Loops::new(), Vec::new());
    for axis in 0..inner {
        let (to, border) = steps[axis];
        let count = ranges[axis].len();
        let from = if count > 1 { src.strides()[axis].checked_mul(isize::try_from(size).ok()?)? } else { 0 };
        let next = Loop { count, src: from, dst: to as isize, over: Over::Outer, last: 1 };
        match loops.last_mut() {
            Some(_) if border.is_none() && count == 1 => {}
            Some(outer)
                if border.is_none()
                    && (outer.count == 1 || from.checked_mul(count as isize) == Some(outer.src)) =>
            {
                *outer = Loop { count: outer.count * count, ..next };
            }
            _ => {
                loops.push(next);
                borders.push(border);
            }
        }
    }
    let mut rows = Group::one();
    match loops.pop() {
        Some(l) => rows.push(Axis { extent: l.count, src: l.src, dst: l.dst }),
        None => borders.push(Border::default()),
    }
    borders.push(row_border);
    let read: usize = ranges.iter().map(ExactSizeIterator::len).product();
    let total = context.bytes.saturating_add(read.saturating_mul(size));
    let streaming = context.streaming.unwrap_or(total >= context.tuning.stream_rows_from_bytes.value);
    let dst_offset = dst.offset().checked_mul(size as isize)?;
    let lines = (dst_offset.unsigned_abs() + context.misaligned).is_multiple_of(LINE)
        && row.is_multiple_of(LINE)
        && borders.iter().all(|b| b.before.is_multiple_of(LINE) && b.after.is_multiple_of(LINE));
    let staged = streaming && !lines && row < LONG_ROW_BYTES;
    let tile = if staged { STAGED_TILE_BYTES } else { context.tuning.row_tile_bytes.of(size) };
    rows.cut((tile / row).clamp(1, 256), 1);
    let mut columns = Group::one();
    columns.push(Axis { extent: row, src: 1, dst: 1 });
    let way = Way { streaming, staged, slid: false, slides: false };
    Some(Piece {
        strategy: Strategy::Bordered,
        fill: false,
        element: 1,
        channels: 1,
        channel_src: 0,
        cell: Group::one(),
        borders,
        src_offset: super::padded::corner(src, &ranges).checked_mul(size as isize)?,
        dst_offset,
        rows,
        columns,
        loops,
        streaming,
        staged,
        slides: false,
        abreast: 1,
        ahead: choose::ahead(Strategy::Bordered, 1, &way, context.tuning),
    })
}

impl Piece {
    /// Visits the tiles of a bordered piece in the order of the destination; `part` is some of the outermost
    /// loop's iterations (of the rows' blocks where there is no loop).
    pub(super) fn walk_bordered(&self, part: Option<Range<usize>>, each: &mut impl FnMut(At)) {
        let at = At {
            src: self.src_offset,
            dst: self.dst_offset,
            rows: self.rows.full(),
            columns: self.columns.full(),
            lead: 0,
            trail: 0,
        };
        self.descend_bordered(0, at, part, each);
    }

    /// Iterations of the outermost loop, for [`Piece::walk_bordered`].
    pub(super) fn bordered_parts(&self) -> usize {
        self.loops.first().map_or_else(|| self.rows.extent().div_ceil(self.rows.full()), |l| l.count)
    }

    fn descend_bordered(&self, depth: usize, at: At, part: Option<Range<usize>>, each: &mut impl FnMut(At)) {
        let border = self.borders[depth];
        let inside = |first: bool, last: bool, src: isize, dst: isize| At {
            src: at.src + src,
            dst: at.dst + border.before as isize + dst,
            lead: if first { at.lead + border.before } else { 0 },
            trail: if last { at.trail + border.after } else { 0 },
            ..at
        };
        if let Some(l) = self.loops.get(depth) {
            for k in part.unwrap_or(0..l.count) {
                let (src, dst) = (l.src * k as isize, l.dst * k as isize);
                let inner = inside(k == 0, k + 1 == l.count, src, dst);
                self.descend_bordered(depth + 1, inner, None, each);
            }
            return;
        }
        let (all, block) = (self.rows.extent(), self.rows.full());
        let step = self.rows.axes().first().map_or((0, 0), |axis| (axis.src, axis.dst));
        for k in part.unwrap_or(0..all.div_ceil(block)) {
            let first = k * block;
            let rows = block.min(all - first);
            let (src, dst) = (step.0 * first as isize, step.1 * first as isize);
            each(At { rows, ..inside(first == 0, first + rows == all, src, dst) });
        }
    }

    /// Destination bytes of a bordered piece.
    pub(super) fn bordered_size(&self) -> usize {
        let mut bytes = self.columns.extent();
        let counts = self.loops.iter().map(|l| l.count).chain([self.rows.extent()]);
        let mut around = self.borders.iter().rev();
        let mut add = |bytes: usize| around.next().map_or(bytes, |b| bytes + b.before + b.after);
        bytes = add(bytes);
        for count in counts.rev().collect::<SmallVec<[usize; 6]>>() {
            bytes = add(bytes * count);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use crate::{CopyOptions, Layout, Plan};

    fn plan(shape: &[usize], expr: &str) -> Plan {
        let src = Layout::row_major(shape).unwrap().apply(expr).unwrap();
        let dst = Layout::row_major(src.shape()).unwrap();
        Plan::new(&src, &dst, 4, &CopyOptions::default().streaming(false)).unwrap()
    }

    #[test]
    fn a_padded_batch_of_images_is_one_piece_written_front_to_back() {
        let plan = plan(&[3, 5, 6, 8], ".pad((0, 0), (1, 2), (1, 1), (0, 0))");
        assert_eq!((plan.strategy(), plan.pieces().len()), ("bordered", 1));
        let mut end = 0;
        plan.pieces()[0].walk(&mut |at| {
            assert_eq!(at.dst - at.lead as isize, end);
            end = at.dst + (at.rows * 8 * 8 * 4 + at.trail) as isize;
        });
        assert_eq!(end as usize, plan.bytes());
        assert_eq!(plan.pieces()[0].size(), plan.bytes());
    }

    #[test]
    fn axes_without_borders_join() {
        let plan = plan(&[4, 3, 5, 6, 8], ".pad((0, 0), (0, 0), (0, 0), (1, 1), (0, 0))");
        assert_eq!(plan.pieces()[0].rows.extent(), 60);
        assert!(plan.pieces()[0].loops.is_empty());
    }

    #[test]
    fn short_rows_and_turned_sources_are_boxes() {
        assert_ne!(plan(&[100, 3], ".pad((0, 0), (0, 1))").strategy(), "bordered");
        assert_ne!(plan(&[40, 50], ".T.pad((1, 1), (1, 1))").strategy(), "bordered");
    }
}

//! The order in which a piece's tiles are visited. The executor and the trace both walk here, so that
//! the trace cannot drift from what runs.

use super::{Over, Piece, Strategy};
use std::ops::Range;

/// One tile's place and size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    /// Byte offset of the tile's first element in the source.
    pub(crate) src: isize,
    /// Byte offset of the tile's first element in the destination.
    pub(crate) dst: isize,
    /// Rows of this tile.
    pub(crate) rows: usize,
    /// Columns of this tile.
    pub(crate) columns: usize,
    /// Fill bytes right before the first row (bordered pieces; else 0).
    pub(crate) lead: usize,
    /// Fill bytes right after the last row.
    pub(crate) trail: usize,
}

impl Piece {
    /// Visits every tile in order.
    pub(crate) fn walk(&self, each: &mut impl FnMut(At)) {
        self.walk_part(usize::MAX, 0..0, each);
    }

    /// Visits the tiles of iterations `range` of loop number `split`.
    pub(crate) fn walk_part(&self, split: usize, range: Range<usize>, each: &mut impl FnMut(At)) {
        if self.strategy == Strategy::Bordered {
            return self.walk_bordered((split == 0).then_some(range), each);
        }
        let at = At {
            src: self.src_offset,
            dst: self.dst_offset,
            rows: self.rows.full(),
            columns: self.columns.full(),
            lead: 0,
            trail: 0,
        };
        self.descend(0, at, split, &range, each);
    }

    fn descend(
        &self,
        depth: usize,
        mut at: At,
        split: usize,
        range: &Range<usize>,
        each: &mut impl FnMut(At),
    ) {
        let Some(l) = self.loops.get(depth) else { return each(at) };
        let run = if depth == split { range.clone() } else { 0..l.count };
        at.src += l.src * run.start as isize;
        at.dst += l.dst * run.start as isize;
        let innermost = depth + 1 == self.loops.len();
        for k in run {
            if k + 1 == l.count {
                match l.over {
                    Over::Outer => {}
                    Over::Rows => at.rows = l.last * self.rows.inner(),
                    Over::Columns => at.columns = l.last * self.columns.inner(),
                }
            }
            if innermost {
                each(at);
            } else {
                self.descend(depth + 1, at, split, range, each);
            }
            at.src += l.src;
            at.dst += l.dst;
        }
    }

    /// The loop that several threads share, and its iterations: the one that moves furthest in the
    /// destination among those with enough iterations, else the longest.
    pub(crate) fn shared_loop(&self, threads: usize) -> Option<(usize, usize)> {
        if self.strategy == Strategy::Bordered {
            let parts = self.bordered_parts();
            return (parts > 1).then_some((0, parts));
        }
        let enough =
            |count: usize| count >= 4 * threads || (count >= threads && count.is_multiple_of(threads));
        let far = self.loops.iter().enumerate().filter(|(_, l)| enough(l.count));
        let far = far.max_by_key(|(_, l)| l.dst.unsigned_abs());
        let best = far.or_else(|| self.loops.iter().enumerate().max_by_key(|(_, l)| l.count))?;
        (best.1.count > 1).then_some((best.0, best.1.count))
    }
}

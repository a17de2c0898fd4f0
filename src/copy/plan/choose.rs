//! From the fused form to a piece: which strategy, which axes make the tile, how large it is, how the
//! loops around it are ordered.

mod crowd;
mod gather;

use super::{Group, Loop, Loops, Over, Piece, Strategy};
use crate::copy::kernels::{CELL_BYTES, CELL_REACH, MAX_STEPS, STAGING_BYTES, crowds_narrow};
use crate::copy::tuning::Tuning;
use crate::layout::fuse::{Axes, Axis, Fused};
use crowd::{WAYS, abreast, crowded};

const LINE: usize = 64;

/// Longest part of a row in one tile.
const ROW_BYTES: usize = 256 << 10;

/// Destination rows shorter than this are transposed a line at a time.
const SHORT_ROW_BYTES: usize = 8 * LINE;

/// A source axis of at most this many elements is deinterleaved, a destination axis interleaved.
const FEW: usize = 4;

/// Matrices of fewer elements than this are not worth vectors, nor a tile's call each, where vectors move but a
/// part of a register; a quarter of that where they are filled.
const TINY: usize = 256;

/// Elements as wide as a lane of a vector register are moved by a load and a store each.
const LANE: usize = 16;

/// Copies of fewer bytes find all their lines close at hand.
const ABREAST_FROM: usize = 256 << 10;

/// What a choice depends on beside the axes.
pub(super) struct Context<'t> {
    pub(super) tuning: &'t Tuning,
    /// How many bytes past a cache line the destination buffer starts.
    pub(super) misaligned: usize,
    /// The caller's word on streaming stores.
    pub(super) streaming: Option<bool>,
    /// Destination bytes of the whole copy.
    pub(super) bytes: usize,
    /// Rows need no staging: the level slides them onto lines.
    pub(super) slides: bool,
}

/// The fused form, as axes are taken out of it.
struct Draft<'t> {
    axes: &'t mut Axes,
    element: usize,
    channels: usize,
    channel_src: isize,
    cell: Group,
    src_offset: isize,
    dst_offset: isize,
    streaming: bool,
    slides: bool,
    /// Staged rows slide.
    slid: bool,
    misaligned: usize,
    /// Squares of rows that a transpose takes abreast.
    abreast: usize,
    /// Rows of a tile are gathered until it moves so many bytes.
    row_tile: usize,
    tuning: &'t Tuning,
}

/// How far ahead of what is read a piece asks for its source, 0 where its kernel does not ask.
pub(super) fn ahead(strategy: Strategy, element: usize, way: &Way, tuning: &Tuning) -> usize {
    let whole = matches!(element, 1 | 2 | 4 | 8 | 16);
    match strategy {
        Strategy::Run | Strategy::Rows if way.streaming && !way.staged => tuning.row_ahead_bytes.of(1),
        Strategy::Bordered if way.streaming => tuning.row_ahead_bytes.of(1),
        // The kernels of a level that slides ask for more.
        _ if !way.slides => 0,
        // Rows that go down: the hardware's own prefetchers are of no help from row to row.
        Strategy::Reverse => tuning.row_ahead_bytes.of(element).saturating_mul(2),
        Strategy::Gather | Strategy::GatherTiled | Strategy::Deinterleave | Strategy::Interleave => {
            tuning.row_ahead_bytes.of(element)
        }
        Strategy::Transpose if !whole || way.slid || way.streaming && !way.staged => {
            tuning.tile_ahead_bytes.of(element)
        }
        _ => 0,
    }
}

/// How the rows of a piece leave.
pub(super) struct Way {
    pub(super) streaming: bool,
    pub(super) staged: bool,
    /// Staged rows slide onto lines.
    pub(super) slid: bool,
    /// The level slides rows where it may.
    pub(super) slides: bool,
}

/// Plans a fused form with at least one element, whose axes are used up.
pub(super) fn piece(fused: &mut Fused, context: &Context<'_>) -> Piece {
    let read: usize = fused.axes.iter().filter(|a| a.src != 0).map(|a| a.extent).product();
    // What a strided source skips inside a line is read all the same.
    let step = fused.axes.iter().map(|a| a.src.unsigned_abs()).filter(|&s| s > 0).min().unwrap_or(0);
    let spread = step.clamp(fused.element, LINE.max(fused.element));
    let total = context.bytes.saturating_add(read.saturating_mul(spread));
    let streaming = context.streaming.unwrap_or(total >= context.tuning.stream_rows_from_bytes.value);
    let mut draft = Draft {
        axes: &mut fused.axes,
        element: fused.element,
        channels: 1,
        channel_src: 0,
        cell: Group::one(),
        src_offset: fused.src_offset,
        dst_offset: fused.dst_offset,
        streaming,
        slides: context.slides,
        slid: false,
        misaligned: context.misaligned,
        abreast: 1,
        row_tile: context.tuning.row_tile_bytes.of(fused.element),
        tuning: context.tuning,
    };
    let size = draft.element as isize;
    let Some(&inner) = draft.axes.last() else {
        // One element, whatever its size: a run of its bytes.
        let run = Axis { extent: draft.element, src: 1, dst: 1 };
        draft.element = 1;
        draft.streaming = context.streaming.unwrap_or(false);
        return draft.row_wise(Strategy::Run, run);
    };
    if inner.dst != size {
        return draft.scatter();
    }
    if inner.src == size {
        // Only runs longer than an element are dense on both sides: see `fuse`.
        draft.axes.pop();
        let strategy = if draft.axes.is_empty() { Strategy::Run } else { Strategy::Rows };
        return draft.row_wise(strategy, inner);
    }
    if let Some(columns) = draft.take_cell() {
        return draft.row_wise(Strategy::Shuffle, columns);
    }
    let Some(lead) = draft.leading_source_axis() else {
        draft.axes.pop();
        return draft.row_wise(Strategy::Splat, inner); // the source is one element
    };
    let last = draft.axes.len() - 1;
    if lead == last {
        draft.axes.pop();
        let strategy = if inner.src == -size { Strategy::Reverse } else { Strategy::Gather };
        return draft.row_wise(strategy, inner);
    }
    if draft.axes[lead].src.unsigned_abs() != draft.element {
        if inner.src == 0 {
            draft.axes.pop();
            return draft.row_wise(Strategy::Splat, inner);
        }
        return draft.gather_tiled(Strategy::GatherTiled, lead);
    }
    if draft.axes[lead].src < 0 {
        draft.flip(lead);
    }
    let lead_axis = draft.axes[lead];
    if inner.extent <= FEW && lead_axis.dst == inner.dst * inner.extent as isize {
        draft.channels = inner.extent;
        draft.channel_src = inner.src;
        draft.axes.pop();
        draft.axes.remove(lead);
        return draft.row_wise(Strategy::Interleave, lead_axis);
    }
    if inner.src == 0 {
        draft.axes.pop();
        return draft.row_wise(Strategy::Splat, inner);
    }
    if lead_axis.extent <= FEW && inner.src.unsigned_abs() <= FEW * draft.element {
        return draft.gather_tiled(Strategy::Deinterleave, lead);
    }
    let streams = context.streaming.unwrap_or(total >= context.tuning.streaming_from_bytes.of(draft.element));
    if draft.element == LANE && !streams && draft.across(lead_axis, inner) {
        return draft.gather_tiled(Strategy::GatherTiled, lead);
    }
    draft.transpose(lead, context, total)
}

impl Draft<'_> {
    /// The axis with the smallest source step that is not 0; the innermost among equals.
    fn leading_source_axis(&self) -> Option<usize> {
        let moving = self.axes.iter().enumerate().rev().filter(|(_, a)| a.src != 0);
        moving.min_by_key(|(_, a)| a.src.unsigned_abs()).map(|(at, _)| at)
    }

    /// Whether elements as wide as a lane are better taken row after row than in squares: not where source lines crowd
    /// each other out, nor where rows are shorter than a line, unless neighbouring axes make no square of them either.
    fn across(&self, lead: Axis, inner: Axis) -> bool {
        let grows = |axis: Axis, step: fn(&Axis) -> isize| {
            self.axes.iter().any(|a| step(a).unsigned_abs() == step(&axis).unsigned_abs() * axis.extent)
        };
        let squares = lead.extent >= LINE / LANE || grows(lead, |a| a.src);
        // Parts of destination lines that are left half written, too.
        let least = LINE / LANE * if crowded(lead.dst, lead.extent.min(64), WAYS) { 2 } else { 1 };
        let short = inner.extent < least && grows(inner, |a| a.dst);
        let crowds = squares && crowded(inner.src, inner.extent.min(64), WAYS);
        !short && !crowds
    }

    /// Takes a cell out of the innermost axes, and the axis of the columns that touch it: where a few
    /// elements lie close together on both sides.
    fn take_cell(&mut self) -> Option<Axis> {
        let (mut bytes, mut reach, mut taken) = (self.element, self.element, 0);
        // A byte permute has nothing to give where an element is a lane.
        if self.element == LANE {
            return None;
        }
        // The outermost axis is left for the columns.
        for axis in self.axes.iter().skip(1).rev() {
            if axis.dst != bytes as isize || bytes.saturating_mul(axis.extent) > CELL_BYTES {
                break;
            }
            let further = axis.src.unsigned_abs().saturating_mul(axis.extent - 1).saturating_add(reach);
            if further > CELL_REACH {
                break;
            }
            (bytes, reach, taken) = (bytes * axis.extent, further, taken + 1);
        }
        let columns = *self.axes.get(self.axes.len().checked_sub(taken + 1)?)?;
        if taken == 0 || columns.dst != bytes as isize {
            return None;
        }
        // Long dense rows are better read whole than cell by cell.
        let dense = columns.src.unsigned_abs() == self.element;
        if dense && columns.extent * self.element >= 4 * LINE && columns.extent > FEW {
            return None;
        }
        self.channels = bytes / self.element;
        for _ in 0..taken {
            if let Some(axis) = self.axes.pop() {
                self.cell.push(axis);
            }
        }
        self.axes.pop()
    }

    /// Walks an axis the other way round on both sides (rule L4).
    fn flip(&mut self, at: usize) {
        let axis = &mut self.axes[at];
        let last = axis.extent as isize - 1;
        self.src_offset += axis.src * last;
        self.dst_offset += axis.dst * last;
        axis.src = -axis.src;
        axis.dst = -axis.dst;
    }

    /// Takes the axis that continues `group` out of the rest, on the side that `step` reads.
    fn grow(&mut self, group: &mut Group, step: impl Fn(&Axis) -> isize) -> bool {
        let Some(outer) = group.axes().last() else { return false };
        let Some(end) = step(outer).checked_mul(outer.extent as isize) else { return false };
        let Some(at) = self.axes.iter().position(|a| step(a).unsigned_abs() == end.unsigned_abs()) else {
            return false;
        };
        if step(&self.axes[at]) != end {
            self.flip(at);
        }
        if group.extent() > MAX_STEPS {
            return false;
        }
        group.push(self.axes.remove(at));
        true
    }

    /// Rows along `columns` (already taken out), gathered along the axes that come next in the
    /// destination until a tile is worth its call.
    fn row_wise(&mut self, strategy: Strategy, columns: Axis) -> Piece {
        let unit = self.element * self.channels;
        let mut columns = Group::axis(columns);
        columns.cut(ROW_BYTES / unit, LINE);
        let row_bytes = columns.full() * unit;
        // Gathered rows that stay in the caches need no short tiles.
        let tile = if strategy == Strategy::Gather && !self.streaming { 4 } else { 1 } * self.row_tile;
        let want = (tile / row_bytes).clamp(1, 256);
        let mut rows = Group::one();
        while rows.extent() < want && columns.full() == columns.extent() {
            let Some(axis) = self.axes.pop() else { break };
            rows.push(axis);
        }
        rows.cut(want, 1);
        let copies = matches!(strategy, Strategy::Run | Strategy::Rows);
        let slides = self.slides && LINE.is_multiple_of(self.element);
        let whole = copies
            && row_bytes.is_multiple_of(LINE)
            && self.axes.iter().chain(rows.axes()).all(|a| a.dst % LINE as isize == 0)
            && (self.dst_offset + self.misaligned as isize) % LINE as isize == 0;
        let lines = whole || row_bytes >= self.tuning.unstaged_rows_from_bytes.value && (copies || slides);
        let staged = self.streaming && !lines && row_bytes.max(self.adjacent(&rows, row_bytes)) >= 2 * LINE;
        // Short rows far apart have no whole lines to stream.
        self.streaming &= staged || lines;
        self.finish(strategy, rows, columns, staged)
    }

    /// Length of the destination run that a tile's rows make together.
    fn adjacent(&self, rows: &Group, row_bytes: usize) -> usize {
        match rows.axes().first() {
            Some(axis) if axis.dst == row_bytes as isize => row_bytes * axis.extent,
            _ => row_bytes,
        }
    }

    /// A dense source axis (`lead`) against the dense destination axis.
    fn transpose(&mut self, lead: usize, context: &Context<'_>, total: usize) -> Piece {
        let size = self.element;
        let in_cache =
            context.streaming != Some(true) && total < context.tuning.streaming_from_bytes.of(size);
        let tiny = |rows: usize, columns: usize| {
            let half = super::square_edge(size) / 2;
            let thin = rows * size < 16 || columns < half || columns == half && rows < half;
            rows * columns < TINY && thin || size == 8 && rows < 8 && in_cache
        };
        let extents = (self.axes[lead].extent, self.axes.last().map_or(1, |inner| inner.extent));
        let before =
            tiny(extents.0, extents.1).then(|| (self.axes.clone(), self.src_offset, self.dst_offset));
        let at = lead;
        let lead = self.axes.remove(lead);
        let Some(inner) = self.axes.pop() else {
            unreachable!("the leading source axis is not the innermost destination axis")
        };
        let (mut rows, mut columns) = (Group::axis(lead), Group::axis(inner));
        // Small copies feel each division.
        let shift = size.is_power_of_two().then_some(size.trailing_zeros());
        let fit = |bytes: usize| shift.map_or_else(|| bytes / size, |shift| bytes >> shift);
        // Both sides grow until they are long; whoever is shorter goes first.
        let (most_rows, most_columns) = (fit(4096).max(16), fit(1024).max(16));
        loop {
            let more_rows = rows.extent() < most_rows;
            // Whole lines of an axis of their own need no neighbour.
            let bytes = columns.extent() * size;
            let lines = bytes >= 2 * LINE && bytes.is_multiple_of(LINE);
            let more_columns = columns.extent() < most_columns && !lines;
            let rows_first = rows.extent() <= columns.extent();
            let grown = match (more_rows, more_columns) {
                (true, true) if rows_first => {
                    self.grow(&mut rows, |a| a.src) || self.grow(&mut columns, |a| a.dst)
                }
                (true, true) => self.grow(&mut columns, |a| a.dst) || self.grow(&mut rows, |a| a.src),
                (true, false) => self.grow(&mut rows, |a| a.src),
                (false, true) => self.grow(&mut columns, |a| a.dst),
                (false, false) => false,
            };
            if !grown {
                break;
            }
        }
        if let Some((axes, src_offset, dst_offset)) = before
            && tiny(rows.extent(), columns.extent())
        {
            (*self.axes, self.src_offset, self.dst_offset) = (axes, src_offset, dst_offset);
            return self.gather_tiled(Strategy::GatherTiled, at);
        }
        // A tile's tables hold so many steps; loops around it step over what is too much.
        rows.give_back(MAX_STEPS, |axis| self.axes.push(axis));
        columns.give_back(MAX_STEPS, |axis| self.axes.push(axis));
        let tuning = context.tuning;
        let edge = super::square_edge(size);
        let on_lines = self.on_lines(&rows, &columns, context.misaligned);
        let mut from = tuning.streaming_from_bytes.of(size);
        let slides = self.slides && LINE.is_multiple_of(size) && columns.extent() * size >= 8 * LINE;
        let pitch = rows.axes().first().map_or(0, |axis| axis.dst);
        // Where two squares of rows, or one of many, fall into a few sets, ordinary stores cost twice as much: streaming
        // pays earlier. Of wide elements not where rows are whole lines.
        let crowds = |least: usize| crowded(pitch, least.max(edge).min(rows.extent()), WAYS);
        // The kernel packs narrow elements where it sees such a pitch.
        let packs = size == 2 && crowds_narrow(pitch);
        let early = match on_lines {
            true => size == 4 && crowds(16),
            false => slides && size > 1 && !packs && crowds(16),
        };
        if early {
            from = (from / 4).max(from.min(tuning.l2_bytes.value / 2 * 3));
        } else if !on_lines && slides && size <= 2 {
            // Sliding rows onto lines has its own cost.
            from = from.saturating_mul(5) / 4;
        }
        // Rows off lines stream by a detour. Short ones go through staging memory, which costs more than it gives
        // where a visit to a source row takes little with it, and where elements are narrow. Long ones slide, which
        // costs more than it gives where the source rows are short and follow each other, so that ordinary stores
        // find all that they read at hand.
        let run = rows.axes()[0].extent * size;
        let follow = columns.axes().first().is_some_and(|a| a.src.unsigned_abs() <= run);
        let in_vain = if columns.extent() * size < 8 * LINE {
            (size <= 2 || run < 4 * LINE) && size.is_power_of_two()
        } else {
            matches!(size, 4 | 8) && follow && run < 32 * LINE
        };
        self.streaming = context.streaming.unwrap_or(total >= from && (on_lines || !in_vain));
        let direct = !self.streaming || on_lines;
        if direct {
            rows.cut(fit(tuning.tile_src_bytes.of(size)).clamp(1, MAX_STEPS), edge);
            // Of short rows a line at a time reads the fewest source rows at once; not where those are short
            // too and follow each other, so that they are one run.
            let run = rows.extent() * size;
            let apart = run >= 4096 || columns.axes().first().is_some_and(|a| a.src.unsigned_abs() > run);
            let thin = size >= 8
                && columns
                    .axes()
                    .first()
                    .is_some_and(|a| crowded(a.src, fit(1 << 10).min(a.extent).min(64), WAYS))
                && rows.axes().first().is_some_and(|a| !crowded(a.dst, a.extent.min(64), WAYS));
            let along = match (self.streaming, apart && columns.extent() * size < SHORT_ROW_BYTES) {
                (true, true) => LINE,
                (true, false) => tuning.tile_dst_bytes.of(size).max(LINE),
                // What is read ahead of each column must still be there when its turn comes: in one set of the
                // cache no more than eight are kept.
                (false, _) if thin => 8 * size,
                // Few rows are worth a tile's call when they are long.
                (false, _) if size >= 8 => (gather::DOWN_BYTES / rows.full()).clamp(1 << 9, 4 << 10),
                (false, _) => 1 << 10,
            };
            columns.cut(fit(along).clamp(edge, MAX_STEPS), edge);
            if !self.streaming && size >= 4 && context.bytes >= ABREAST_FROM {
                self.abreast = abreast(rows.axes()[0].dst, rows.full(), edge);
            }
            let whole = (columns.full() * size).is_multiple_of(LINE);
            if whole || !self.streaming {
                return self.finish(Strategy::Transpose, rows, columns, false);
            }
        }
        let slide_from = tuning.slide_from_bytes.of(size).max(LINE);
        // Rows fewer than a line of elements slide in parts of vectors only, which takes four times as long.
        let few = rows.extent() < edge;
        let wide = columns.extent() * size >= slide_from;
        if self.slides && LINE.is_multiple_of(size) && size <= 16 && wide && !few {
            columns.cut(MAX_STEPS, edge);
            rows.cut(fit(tuning.tile_src_bytes.of(size)).clamp(1, MAX_STEPS), edge);
            if columns.full() * size >= slide_from {
                self.slid = true;
                return self.finish(Strategy::Transpose, rows, columns, true);
            }
        }
        let along = if few { MAX_STEPS } else { fit(tuning.staged_dst_bytes.of(size)) };
        columns.cut(along.clamp(1, MAX_STEPS), edge);
        let row_bytes = columns.full() * size;
        let touch = rows.axes().iter().any(|a| a.dst == row_bytes as isize);
        let short = row_bytes < if touch { 8 * LINE } else { 4 * LINE };
        // Short rows that touch leave together as one run: the longer, the better.
        let want = if columns.full() == columns.extent() && short {
            self.row_tile / row_bytes
        } else {
            let along = tuning.staged_src_bytes.of(size);
            // Elements that are moved one by one wait for memory more: longer walks keep it busy.
            if matches!(size, 1 | 2 | 4 | 8 | 16) { fit(along) } else { fit(4 * along) }
        };
        let fit = (STAGING_BYTES - 2 * LINE) / (row_bytes + 3 * LINE);
        let most = MAX_STEPS.min(fit);
        rows.give_back(most, |axis| self.axes.push(axis));
        rows.cut(want.clamp(1, most), if edge <= most { edge } else { 1 });
        debug_assert!(rows.full() <= most);
        self.finish(Strategy::Transpose, rows, columns, true)
    }

    /// Whether every destination row of every tile starts and ends on a line.
    fn on_lines(&self, rows: &Group, columns: &Group, misaligned: usize) -> bool {
        let start = self.dst_offset + misaligned as isize;
        let mut steps = self.axes.iter().chain(rows.axes()).map(|a| a.dst);
        let end = columns.extent() * self.element;
        start % LINE as isize == 0 && end.is_multiple_of(LINE) && steps.all(|step| step % LINE as isize == 0)
    }

    /// No dense destination axis: element by element, in tiles of the two axes that matter.
    fn scatter(&mut self) -> Piece {
        self.streaming = false;
        let Some(inner) = self.axes.pop() else { unreachable!("a scatter has at least one axis") };
        let mut columns = Group::axis(inner);
        let lead = self.leading_source_axis().or(self.axes.len().checked_sub(1));
        let mut rows = lead.map_or_else(Group::one, |at| Group::axis(self.axes.remove(at)));
        let long = inner.src.unsigned_abs() <= rows.axes().first().map_or(0, |a| a.src.unsigned_abs());
        columns.cut(if long { MAX_STEPS } else { 64 }, 16);
        rows.cut(if long { 16 } else { 64 }, 16);
        self.finish(Strategy::Scatter, rows, columns, false)
    }

    /// Puts the loops around the tile in order: the smaller a loop's smaller step, the further in it
    /// goes, so that whichever side moves least is still in cache for the next tile.
    fn finish(&mut self, strategy: Strategy, rows: Group, columns: Group, staged: bool) -> Piece {
        let mut loops = Loops::new();
        for axis in self.axes.iter() {
            loops.push(Loop { count: axis.extent, src: axis.src, dst: axis.dst, over: Over::Outer, last: 1 });
        }
        for (group, over) in [(&rows, Over::Rows), (&columns, Over::Columns)] {
            if let Some(axis) = group.axes().last()
                && group.block() < axis.extent
            {
                let count = axis.extent.div_ceil(group.block());
                let block = group.block() as isize;
                loops.push(Loop {
                    count,
                    src: axis.src * block,
                    dst: axis.dst * block,
                    over,
                    last: axis.extent - (count - 1) * group.block(),
                });
            }
        }
        let key = |l: &Loop| (l.src.unsigned_abs().min(l.dst.unsigned_abs()), l.dst.unsigned_abs());
        loops.sort_by_key(|l| std::cmp::Reverse(key(l)));
        if strategy == Strategy::Transpose && self.streaming {
            block(&mut loops, columns.block(), self.tuning.block_dst_bytes.of(self.element));
        }
        let way = Way { streaming: self.streaming, staged, slid: self.slid, slides: self.slides };
        Piece {
            strategy,
            fill: false,
            element: self.element,
            channels: self.channels,
            channel_src: self.channel_src,
            cell: std::mem::replace(&mut self.cell, Group::one()),
            borders: Vec::new(),
            src_offset: self.src_offset,
            dst_offset: self.dst_offset,
            rows,
            columns,
            loops,
            streaming: self.streaming,
            staged,
            slides: self.slid,
            ahead: ahead(strategy, self.element, &way, self.tuning),
            abreast: self.abreast,
        }
    }
}

/// Takes the tiles in blocks of about `bytes` of each destination row, so that the pages of the source rows that
/// a block reads are not met again only after a whole destination row; 0 for no blocks. Where the tiles of
/// `block` columns along a row do not make equal blocks there are none.
fn block(loops: &mut Loops, block: usize, bytes: usize) {
    let Some(at) = loops.iter().position(|l| l.over == Over::Columns) else { return };
    let tiles = loops[at];
    let step = tiles.dst.unsigned_abs();
    if bytes < 2 * step || tiles.last != block {
        return;
    }
    let most = (bytes / step).min(tiles.count / 2);
    let Some(each) = (2..=most).rev().find(|each| tiles.count.is_multiple_of(*each)) else { return };
    loops[at].count = each;
    let far = each as isize;
    let blocks = Loop { count: tiles.count / each, src: tiles.src * far, dst: tiles.dst * far, ..tiles };
    // Outside of the loop over the tiles' rows.
    let rows = loops.iter().position(|l| l.over == Over::Rows).unwrap_or(at);
    loops.insert(rows.min(at), blocks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::plan::Plan;
    use crate::copy::tuning::{Knob, Origin, Value};
    use crate::{CopyOptions, Layout};

    #[test]
    fn rows_that_crowd_each_other_stream_earlier() {
        let mut tuning = Tuning::for_caches(48 << 10, 1 << 20, 32 << 20);
        tuning.set(Knob::StreamingFrom, None, Value::new(24 << 20, Origin::Caller)).unwrap();
        let options = CopyOptions::default().threads(1).tuning(tuning);
        let streams = |n: usize, size: usize| {
            let src = Layout::row_major(&[n, n]).unwrap().apply(".T").unwrap();
            let dst = Layout::row_major(&[n, n]).unwrap();
            let plan = Plan::new(&src, &dst, size, &options).unwrap();
            (plan.pieces()[0].streaming, plan.pieces()[0].abreast)
        };
        assert_eq!(streams(1024, 4), (true, 1));
        assert_eq!(streams(1000, 4), (false, 8));
        assert_eq!(streams(1024, 8), (false, 1), "whole lines of wide elements do not mind");
        assert_eq!(streams(700, 8), (false, 4));
        if crate::Isa::active().is_ok_and(|isa| isa.name() == "avx512") {
            assert_eq!(streams(1023, 8), (true, 1), "slid onto lines");
            assert_eq!(streams(1023, 4), (true, 1));
        }
    }
}

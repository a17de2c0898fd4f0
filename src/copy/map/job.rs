//! One box of a mapped copy: how it is cut, in which order a tile is moved and changed, and the loops that do it.

use super::super::kernels::{self, Isa, map::RunOp, map::run as change, map::run_past as change_past};
use super::super::nest::{self, Buffers};
use super::super::options::CopyOptions;
use super::super::plan::Plan;
use super::super::tuning::Tuning;
use super::Pointers;
use super::ahead::Ahead;
use super::tiles::{Extents, TileAt, Tiles, leading, tile_extents};
use crate::Error;
use crate::layout::fuse::{Axis, Fused, fuse_raw};
use crate::layout::{Layout, row_major_strides};
use crate::view::Element;
use smallvec::SmallVec;
use std::mem::MaybeUninit;

const LINE: usize = 64;

/// Bytes of changed elements on their way past the caches.
const CHANGED_BYTES: usize = 1 << 10;
/// Elements that make an axis worth turning.
const MANY: usize = 32;
/// Rows of the destination shorter than this do not go past the caches.
const SHORTEST_STREAMED: usize = 256;

type Strides = SmallVec<[isize; 6]>;

/// How to move each shape of tile or slice.
type Plans = SmallVec<[(Extents, Plan); 1]>;

/// In which order a tile is moved and changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Rows are dense in the source: they are changed where they are.
    InPlace,
    /// Rows are gathered into a buffer, in the destination's order, and changed on their way out of it.
    MoveFirst,
    /// Runs of the source along axis `lead` are changed into a buffer, in the source's order, and moved from there
    /// by slices of so many of them.
    ChangeFirst { lead: usize, slice: usize },
    /// Runs of the source along axis `lead` are packed into a buffer; slices of so many of their elements are
    /// gathered from there into another, in the destination's order, and changed on their way out of that.
    PackFirst { lead: usize, slice: usize },
}

/// Which tiles start on lines of the destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnLines {
    None,
    /// Those that are whole along the innermost axis.
    Whole,
    All,
}

/// One box to be mapped.
pub(super) struct Job {
    tiles: Tiles,
    order: Order,
    /// Strides of the buffer between the two steps, in elements.
    between: Strides,
    /// Its size in bytes, with that of a second one behind it, and where that starts.
    buffer: usize,
    gathered: usize,
    on_lines: OnLines,
    /// Lines of the destination are whole elements, and rows are dense.
    lines: bool,
    streaming: bool,
    /// The memory of the next tile is asked for.
    asks: bool,
    threads: usize,
    isa: Isa,
    tuning: Option<Box<Tuning>>,
}

/// What a job is made for, beside its layouts.
pub(super) struct Elements {
    pub(super) src_size: usize,
    pub(super) dst_size: usize,
    /// The destination's old elements are read.
    pub(super) reads_dst: bool,
    /// Where the destination starts.
    pub(super) address: usize,
}

impl Job {
    pub(super) fn new(
        src: &Layout,
        dst: &Layout,
        isa: Isa,
        options: &CopyOptions,
        elements: &Elements,
    ) -> Result<Self, Error> {
        let &Elements { src_size, dst_size, reads_dst, address } = elements;
        let tuning: &Tuning = options.tuning.as_deref().unwrap_or_else(|| Tuning::machine());
        // Strides in elements: sizes differ on the two sides.
        let mut fused = Fused::default();
        let (from, to) = ((src.strides(), src.offset()), (dst.strides(), dst.offset()));
        fuse_raw(&mut fused, dst.shape(), from, to, 1)?;
        let Fused { mut axes, element, src_offset, dst_offset, elements } = fused;
        if elements > 0 && (element > 1 || axes.is_empty()) {
            axes.push(Axis { extent: element, src: 1, dst: 1 });
        }
        if elements == 0 {
            axes.clear();
            axes.push(Axis { extent: 0, src: 1, dst: 1 });
        }
        let count = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.extent));
        let bytes = count.and_then(|n| n.checked_mul(src_size + dst_size));
        let bytes = bytes.ok_or(Error::Overflow { what: "the size of the copy" })?;
        // Destination rows that keep their distance from lines can all start on one.
        let inner = axes.len() - 1;
        let line = if dst_size.is_power_of_two() && dst_size <= LINE { LINE / dst_size } else { 1 };
        let lines = line > 1 && address.is_multiple_of(dst_size) && axes[inner].dst == 1;
        let grid = lines && axes[..inner].iter().all(|axis| axis.dst.unsigned_abs().is_multiple_of(line));
        let in_place = axes[inner].src == 1;
        // A last level of one's own takes what rows write for longer than what is written in parts.
        let part = tuning.stream_rows_from_bytes.value / if dst_size < 4 { 2 } else { 4 };
        let from = part.max(tuning.l2_bytes.value / 2 * 3);
        let large = match leading(&axes) {
            // Rows that are written whole stay in the last level as long as they fit.
            _ if in_place => {
                bytes / (src_size + dst_size).max(1) * dst_size >= tuning.stream_rows_from_bytes.value / 4 * 3
            }
            Some(lead) if axes[lead].extent < MANY => bytes >= from,
            _ if grid => bytes >= from / 4 * 3,
            _ => bytes >= from.saturating_mul(2),
        };
        let streaming = !reads_dst && dst_size > 0 && options.streaming.unwrap_or(large);
        let asks = streaming || !in_place && bytes >= tuning.l3_bytes.value;
        let threads = match options.threads {
            _ if bytes < tuning.parallel_from_bytes.value => 1,
            Some(n) => n,
            None => super::super::parallel::default_threads(),
        };
        let (order, tile) = choose(&axes, src_size, dst_size, line, Large { asks, reads_dst, grid, lines });
        let start = (address / dst_size.max(1)).wrapping_add_signed(dst_offset) % line;
        let cut = tile[inner] < axes[inner].extent;
        let change_first = matches!(order, Order::ChangeFirst { .. });
        let skew = if change_first && grid && cut && tile[inner].is_multiple_of(line) { start } else { 0 };
        let over = if streaming && lines && cut && !change_first { line - 1 } else { 0 };
        let on_lines = match (grid, start, skew) {
            (true, 0, _) if !cut || tile[inner].is_multiple_of(line) => OnLines::All,
            (true, _, 1..) => OnLines::Whole,
            _ => OnLines::None,
        };
        let tiles = Tiles::new(axes, (src_offset, dst_offset), tile, (skew, over));
        let mut job = Self {
            tiles,
            order,
            between: Strides::new(),
            buffer: 0,
            gathered: 0,
            on_lines,
            lines,
            streaming,
            asks,
            threads,
            isa,
            tuning: options.tuning.clone(),
        };
        job.lay_buffer(src_size, dst_size, line);
        Ok(job)
    }

    /// The buffer's strides and size.
    fn lay_buffer(&mut self, src_size: usize, dst_size: usize, line: usize) {
        let mut longest = self.tiles.tile.clone();
        if let (Some(inner), Some(axis)) = (longest.last_mut(), self.tiles.axes.last()) {
            *inner = (*inner + self.tiles.over).min(axis.extent.max(*inner));
        }
        let elements: usize = longest.iter().product();
        match self.order {
            Order::InPlace => self.between = self.tiles.axes.iter().map(|axis| axis.src).collect(),
            Order::MoveFirst => self.buffer = elements * src_size,
            Order::ChangeFirst { lead, slice } | Order::PackFirst { lead, slice } => {
                self.between = SmallVec::from_elem(1, longest.len());
                self.between[lead] = self.tiles.axes[lead].src.signum();
                // A line between runs keeps those apart whose length is a power of two.
                let mut step = longest[lead].next_multiple_of(line) + line;
                for k in (0..longest.len()).rev().filter(|&k| k != lead) {
                    self.between[k] = step as isize;
                    step *= longest[k];
                }
                if matches!(self.order, Order::ChangeFirst { .. }) {
                    self.buffer = step * dst_size;
                } else {
                    self.gathered = (step * src_size).next_multiple_of(LINE);
                    self.buffer = self.gathered + elements / longest[lead] * slice * src_size;
                }
            }
        }
    }

    /// # Safety
    /// The layouts that the job was made of reach only readable source and writable destination elements,
    /// none of the latter twice, and the two sides do not overlap.
    pub(super) unsafe fn run<S: Element, D: Element, O: RunOp<S, D>>(
        &self,
        pointers: Pointers<S, D>,
        op: &O,
    ) -> Result<(), Error> {
        if self.tiles.axes.iter().any(|axis| axis.extent == 0) || size_of::<D>() == 0 {
            return Ok(());
        }
        let plans = self.plans(size_of::<S>(), size_of::<D>())?;
        let pointers = &pointers;
        super::super::parallel::share(self.threads, self.tiles.count(), 1, |range| {
            let mut memory = Vec::<Line>::with_capacity(self.buffer.div_ceil(LINE));
            let mut part = Part {
                job: self,
                pointers,
                op,
                plans: &plans,
                buffer: memory.spare_capacity_mut().as_mut_ptr().cast(),
                changed: MaybeUninit::uninit(),
                ahead: Ahead::default(),
            };
            let end = range.end;
            let mut tile = self.tiles.locate(range.start);
            for number in range {
                let next = if number + 1 < end { self.tiles.locate(number + 1) } else { TileAt::default() };
                part.ask_for(&next, &tile);
                // SAFETY: the caller's promise; each tile is visited by one thread.
                unsafe { part.tile(&tile) };
                tile = next;
            }
            if self.streaming {
                (kernels::entry(self.isa).fence)();
            }
        });
        Ok(())
    }

    /// How to move each shape of tile into the buffer, or of slice out of it.
    fn plans(&self, src_size: usize, dst_size: usize) -> Result<Plans, Error> {
        let source: Strides = self.tiles.axes.iter().map(|axis| axis.src).collect();
        let destination: Strides = self.tiles.axes.iter().map(|axis| axis.dst).collect();
        let mut options = CopyOptions::default().threads(1).isa(self.isa);
        options.tuning = self.tuning.clone();
        let (sliced, size, from, to, streaming) = match self.order {
            Order::InPlace => return Ok(Plans::new()),
            Order::MoveFirst => (None, src_size, &source, None, false),
            Order::ChangeFirst { lead, slice } => {
                (Some((lead, slice)), dst_size, &self.between, Some(&destination), self.streaming)
            }
            Order::PackFirst { lead, slice } => (Some((lead, slice)), src_size, &self.between, None, false),
        };
        let options = options.streaming(streaming);
        let plan = |shape: Extents| {
            let dense = row_major_strides(&shape);
            let mut fused = Fused::default();
            fuse_raw(&mut fused, &shape, (from, 0), (to.unwrap_or(&dense), 0), size)?;
            let misaligned = usize::from(to.is_some() && !self.starts_on_line(&shape));
            let plan = Plan::of_fused(&mut fused, size, misaligned, &options)?;
            Ok((shape, plan))
        };
        if sliced.is_none() && self.tiles.count() == 1 {
            return Ok(smallvec::smallvec![plan(self.tiles.locate(0).extents)?]);
        }
        self.tiles.shapes(sliced).into_iter().map(plan).collect()
    }

    /// Whether every tile of that shape starts on a line of the destination.
    fn starts_on_line(&self, shape: &Extents) -> bool {
        match self.on_lines {
            OnLines::None => false,
            OnLines::Whole => shape.last() == self.tiles.tile.last(),
            OnLines::All => true,
        }
    }
}

/// What the choice of tiles depends on beside the axes.
struct Large {
    asks: bool,
    reads_dst: bool,
    grid: bool,
    lines: bool,
}

/// The order of the two steps, and the extents of a tile.
fn choose(axes: &[Axis], src_size: usize, dst_size: usize, line: usize, large: Large) -> (Order, Extents) {
    let fit = |bytes: usize, size: usize| (bytes / size.max(1)).max(1);
    let inner = axes.len() - 1;
    let cut = |most: usize, along: usize| tile_extents(axes, most, along, line);
    // What the caches hold needs no care: long rows do it.
    let wider = src_size.max(dst_size);
    let near = || cut(fit(64 << 10, src_size).min(1 << 14), fit(256, wider));
    if axes[inner].src == 1 {
        let far = || cut(fit(16 << 10, src_size), fit(256, src_size));
        return (Order::InPlace, if large.asks { far() } else { near() });
    }
    if !large.asks {
        return (Order::MoveFirst, near());
    }
    let turned = leading(axes)
        .filter(|&k| k != inner && axes[k].src.unsigned_abs() == 1 && axes[k].extent >= MANY)
        .filter(|_| axes[inner].extent >= MANY || dst_size < src_size);
    let Some(lead) = turned else {
        // The next tile's source waits in the first-level cache.
        return (Order::MoveFirst, cut(fit(12 << 10, src_size), fit(256, src_size)));
    };
    let slices = |tile: &Extents, bytes: usize, size: usize, edge: usize| {
        let others = tile.iter().product::<usize>() / tile[lead];
        (fit(bytes, size) / others).max(1).next_multiple_of(edge).min(tile[lead])
    };
    if large.reads_dst || large.lines && !large.grid {
        let bytes = if large.reads_dst { 128 << 10 } else { 256 << 10 };
        let tile = cut(fit(bytes, wider), fit(1 << 10, wider));
        let slice = slices(&tile, 16 << 10, wider, (LINE / src_size.max(1)).max(1));
        return (Order::PackFirst { lead, slice }, tile);
    }
    let tile = cut(fit(256 << 10, wider), fit(2 << 10, wider));
    let slice = slices(&tile, 8 << 10, dst_size, line.max(1));
    (Order::ChangeFirst { lead, slice }, tile)
}

/// 64 bytes of a buffer.
#[repr(align(64))]
struct Line {
    _bytes: [u8; LINE],
}

#[repr(align(64))]
struct Changed {
    _bytes: [u8; CHANGED_BYTES],
}

/// What one thread does its tiles with.
struct Part<'j, S, D, O> {
    job: &'j Job,
    pointers: &'j Pointers<S, D>,
    op: &'j O,
    plans: &'j [(Extents, Plan)],
    buffer: *mut u8,
    changed: MaybeUninit<Changed>,
    /// The next tile's source.
    ahead: Ahead,
}

impl<S: Element, D: Element, O: RunOp<S, D>> Part<'_, S, D, O> {
    /// Prepares to ask for `next` while `tile` is written.
    fn ask_for(&mut self, next: &TileAt, tile: &TileAt) {
        if !self.job.asks || next.extents.is_empty() {
            self.ahead = Ahead::default();
            return;
        }
        let work = tile.extents.iter().product::<usize>() * size_of::<D>();
        let axes = &self.job.tiles.axes;
        let address = self.pointers.src.wrapping_offset(next.src).addr();
        self.ahead = Ahead::new(address, axes, &next.extents, size_of::<S>(), work);
    }

    fn plan(&self, shape: &[usize]) -> &Plan {
        match self.plans.iter().find(|(of, _)| of[..] == *shape) {
            Some((_, plan)) => plan,
            None => unreachable!("there is a plan for every shape of tile"),
        }
    }

    /// # Safety
    /// As [`Job::run`], for one tile that no other thread visits.
    unsafe fn tile(&mut self, tile: &TileAt) {
        // SAFETY: offsets of a tile lie inside the slices (L2).
        let (from, to) = unsafe { (self.pointers.src.offset(tile.src), self.pointers.dst.offset(tile.dst)) };
        // SAFETY: the caller's promise.
        unsafe {
            match self.job.order {
                Order::InPlace => self.rows(tile, &tile.extents, from, to, &self.job.between),
                Order::MoveFirst => {
                    let buffers = Buffers { src: from.cast(), dst: self.buffer, fill: from.cast() };
                    // The plan reaches the tile's source elements, and as many in the buffer, which holds a whole
                    // tile and is aligned for every element type (64).
                    nest::execute(self.plan(&tile.extents), buffers);
                    let dense: Strides = row_major_strides(&tile.extents);
                    self.rows(tile, &tile.extents, self.buffer.cast(), to, &dense);
                }
                Order::ChangeFirst { lead, slice } => {
                    let (isa, op) = (self.job.isa, self.op);
                    self.runs::<D>(tile, lead, from, |from, to, n| change(isa, op, from, to, n));
                    self.slices::<D>(tile, lead, slice, to);
                }
                Order::PackFirst { lead, slice } => {
                    self.runs::<S>(tile, lead, from, |from, to, n| from.copy_to_nonoverlapping(to, n));
                    self.slices::<S>(tile, lead, slice, to);
                }
            }
        }
    }

    /// Brings the runs of a tile along `lead` into the buffer, as elements of type `T`.
    ///
    /// # Safety
    /// As [`Part::tile`]; `from` is where the tile starts; `each` writes so many elements to the buffer and reads
    /// as many of the source.
    #[inline(always)]
    unsafe fn runs<T>(
        &mut self,
        tile: &TileAt,
        lead: usize,
        from: *const S,
        each: impl Fn(*const S, *mut T, usize),
    ) {
        let Job { tiles, between, .. } = self.job;
        let run = tile.extents[lead];
        // A lead axis that runs backwards is walked from its other end.
        let back = tiles.axes[lead].src < 0;
        let mut index: Extents = SmallVec::from_elem(0, tile.extents.len());
        let mut from = if back { from.wrapping_sub(run - 1) } else { from };
        let mut to: *mut T = self.buffer.cast();
        loop {
            each(from, to, run);
            let others = (0..index.len()).rev().filter(|&k| k != lead);
            let mut carried = false;
            for k in others {
                index[k] += 1;
                if index[k] < tile.extents[k] {
                    from = from.wrapping_offset(tiles.axes[k].src);
                    to = to.wrapping_offset(between[k]);
                    carried = true;
                    break;
                }
                let back = index[k] as isize - 1;
                from = from.wrapping_offset(-back * tiles.axes[k].src);
                to = to.wrapping_offset(-back * between[k]);
                index[k] = 0;
            }
            if !carried {
                return;
            }
        }
    }

    /// Brings a tile of elements of type `T` from the buffer to its destination, slice by slice.
    ///
    /// # Safety
    /// As [`Part::tile`]; [`Part::runs`] filled the buffer; `to` is where the tile goes.
    unsafe fn slices<T>(&mut self, tile: &TileAt, lead: usize, slice: usize, to: *mut D) {
        let axis = self.job.tiles.axes[lead];
        let mut shape = tile.extents.clone();
        let others = shape.iter().product::<usize>() / shape[lead] * size_of::<D>();
        for first in (0..tile.extents[lead]).step_by(slice) {
            shape[lead] = slice.min(tile.extents[lead] - first);
            // The buffer has a run that is walked backwards the other way round.
            let at = if axis.src < 0 { tile.extents[lead] - 1 - first } else { first };
            // SAFETY: elements of the tile on both sides; the second buffer holds a whole slice.
            unsafe {
                let from = self.buffer.cast::<T>().add(at).cast();
                let to = to.offset(first as isize * axis.dst);
                let plan = self.plan(&shape);
                if matches!(self.job.order, Order::ChangeFirst { .. }) {
                    nest::execute_unfenced(plan, Buffers { src: from, dst: to.cast(), fill: from });
                    self.ahead.work(shape[lead] * others);
                } else {
                    let gathered = self.buffer.add(self.job.gathered);
                    nest::execute(plan, Buffers { src: from, dst: gathered, fill: from });
                    let dense: Strides = row_major_strides(&shape);
                    self.rows(tile, &shape, gathered.cast(), to, &dense);
                }
            }
        }
    }

    /// Changes the rows of a tile on their way from `from`, which `strides` walk, to `to`.
    ///
    /// # Safety
    /// As [`Part::tile`].
    unsafe fn rows(
        &mut self,
        tile: &TileAt,
        extents: &[usize],
        mut from: *const S,
        mut to: *mut D,
        strides: &[isize],
    ) {
        let axes = &self.job.tiles.axes;
        let over = self.job.tiles.over > 0;
        // The innermost axes that both sides walk as one.
        let (mut row, mut outer) =
            if over { (extents[axes.len() - 1], axes.len() - 1) } else { (1, axes.len()) };
        while !over
            && outer > 0
            && (extents[outer - 1] == 1
                || (strides[outer - 1] == row as isize && axes[outer - 1].dst == row as isize))
        {
            outer -= 1;
            row *= extents[outer];
        }
        let fits = size_of::<D>() <= CHANGED_BYTES;
        let stream = self.job.streaming && fits && row * size_of::<D>() >= SHORTEST_STREAMED;
        let mut index: Extents = SmallVec::from_elem(0, outer);
        loop {
            // From the line that this tile's part of the row ends in front of to that of the next tile's.
            let to_line = |at: usize| to.wrapping_add(at).addr().wrapping_neg() % LINE / size_of::<D>();
            let first = if over && !tile.first { to_line(0).min(row) } else { 0 };
            let own = self.job.tiles.tile[axes.len() - 1];
            let end = if over && !tile.last { (own + to_line(own)).min(row) } else { row };
            // SAFETY: the row lies in the tile on both sides, and the levels' features are there.
            unsafe { self.row(from.add(first), to.add(first), end - first, stream) };
            let Some(axis) = (0..outer).rev().find(|&k| index[k] + 1 < extents[k]) else { return };
            let mut step = (strides[axis], axes[axis].dst);
            index[axis] += 1;
            for k in axis + 1..outer {
                let back = index[k] as isize;
                step = (step.0 - back * strides[k], step.1 - back * axes[k].dst);
                index[k] = 0;
            }
            // SAFETY: still inside the tile; the last step out of it was taken by `return`.
            unsafe {
                from = from.offset(step.0);
                to = to.offset(step.1);
            }
        }
    }

    /// # Safety
    /// As [`RunOp::run`], at a level that the CPU has.
    unsafe fn row(&mut self, from: *const S, to: *mut D, row: usize, stream: bool) {
        let isa = self.job.isa;
        if !stream && !self.job.asks {
            // SAFETY: the caller's promise.
            return unsafe { change(isa, self.op, from, to, row) };
        }
        let level = kernels::entry(isa);
        let spare = self.changed.as_mut_ptr().cast::<D>();
        // A multiple of the line, so that after the first part each part starts on a line if elements do.
        let per_part = (CHANGED_BYTES / size_of::<D>()).max(1);
        let mut done = 0;
        while done < row {
            let line = to.wrapping_add(done).addr() % LINE / size_of::<D>();
            let lines = stream && self.job.lines;
            let past = lines && line == 0;
            let most = if lines && !past {
                LINE / size_of::<D>() - line
            } else {
                per_part.saturating_sub(line).max(1)
            };
            let mut n = (row - done).min(most);
            if past && n * size_of::<D>() > LINE {
                n -= n % (LINE / size_of::<D>());
            }
            let bytes = n * size_of::<D>();
            self.ahead.work(bytes);
            // SAFETY: `done + n <= row`; the buffer is aligned for every element type and holds `CHANGED_BYTES`,
            // of which n elements are written and read back.
            unsafe {
                let (from, to) = (from.add(done), to.add(done));
                if past && bytes.is_multiple_of(LINE) {
                    change_past(level, self.op, from, to, n, spare);
                } else if stream && !self.job.lines {
                    change(isa, self.op, from, spare, n);
                    (level.stream)(to.cast(), spare.cast(), bytes);
                } else {
                    change(isa, self.op, from, to, n);
                }
            }
            done += n;
        }
    }
}

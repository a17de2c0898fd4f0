//! Plans: how a copy will run, as plain data that can be compared, printed and replayed.
#![forbid(unsafe_code)]

mod bordered;
mod choose;
mod group;
mod padded;
mod trace;
mod walk;

use super::kernels::{Isa, Kind};
use super::options::CopyOptions;
use super::tuning::Tuning;
use crate::error::words::counted;
use crate::layout;
use crate::layout::fuse::{self, Axis, Fused};
use crate::{Error, Layout};
use smallvec::SmallVec;
use std::fmt;

pub use bordered::Border;
pub use group::Group;
pub use trace::{Access, AccessKind, Side, trace};
pub(crate) use walk::At;

const TOO_LARGE: Error = Error::Overflow { what: "the size of the copy" };

fn tuning(options: &CopyOptions) -> &Tuning {
    options.tuning.as_deref().unwrap_or_else(|| Tuning::machine())
}

/// What kind of loop a copy comes down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Strategy {
    /// There is nothing to move.
    Nothing,
    /// Both sides are one dense run.
    Run,
    /// Rows that are dense on both sides.
    Rows,
    /// Rows that are dense on both sides, with a padded view's fill around them.
    Bordered,
    /// Rows that repeat one element.
    Splat,
    /// Rows read backwards.
    Reverse,
    /// Rows whose source elements are a fixed distance apart.
    Gather,
    /// As gather, in tiles that use up the source lines of neighbouring rows.
    GatherTiled,
    /// A short dense source axis becomes planes.
    Deinterleave,
    /// A few planes become a short dense destination axis.
    Interleave,
    /// Cells of a few elements that lie close together, put together by byte permutes.
    Shuffle,
    /// A dense source axis becomes a strided one and the other way round.
    Transpose,
    /// The destination has no dense axis.
    Scatter,
}

impl Strategy {
    /// The name that `explain` and every record use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Run => "run",
            Self::Rows => "rows",
            Self::Bordered => "bordered",
            Self::Splat => "splat",
            Self::Reverse => "reverse",
            Self::Gather => "gather",
            Self::GatherTiled => "gather_tiled",
            Self::Deinterleave => "deinterleave",
            Self::Interleave => "interleave",
            Self::Shuffle => "shuffle",
            Self::Transpose => "transpose",
            Self::Scatter => "scatter",
        }
    }

    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Nothing | Self::Run | Self::Rows => Kind::Copy,
            Self::Bordered => Kind::Bordered,
            Self::Splat => Kind::Splat,
            Self::Reverse | Self::Gather | Self::GatherTiled | Self::Deinterleave => Kind::Gather,
            Self::Interleave => Kind::Interleave,
            Self::Shuffle => Kind::Shuffle,
            Self::Transpose => Kind::Transpose,
            Self::Scatter => Kind::Scatter,
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a loop around the tiles steps over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Over {
    /// An axis of its own.
    Outer,
    /// Blocks of the rows' outermost axis.
    Rows,
    /// Blocks of the columns' outermost axis.
    Columns,
}

/// A loop around the tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Loop {
    /// Iterations.
    pub count: usize,
    /// Source bytes per iteration.
    pub src: isize,
    /// Destination bytes per iteration.
    pub dst: isize,
    /// What it steps over.
    pub over: Over,
    /// Steps of the group's outermost axis in the last iteration, which may be shorter (1 for outer axes).
    pub last: usize,
}

/// Loops around the tiles, outermost first; no heap allocation up to six.
pub type Loops = SmallVec<[Loop; 4]>;

/// One nest of loops around two-dimensional tiles.
///
/// All strides and offsets are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What the tiles do.
    pub strategy: Strategy,
    /// The source is the fill value of a padded view, for which the source offset is 0.
    pub fill: bool,
    /// Bytes of one element, after widening.
    pub element: usize,
    /// Elements that one column holds (interleave and shuffle; else 1).
    pub channels: usize,
    /// The elements of one column (shuffle; else empty).
    pub cell: Group,
    /// Fill around each loop, outermost first, around the rows, and around each row (bordered; else empty).
    pub borders: Vec<Border>,
    /// Source bytes between the elements of one column.
    pub channel_src: isize,
    /// Where the first element is read.
    pub src_offset: isize,
    /// Where the first element is written.
    pub dst_offset: isize,
    /// The rows of a tile (A): for a transpose the axes that are dense in the source.
    pub rows: Group,
    /// The columns of a tile (B): the axes that are dense in the destination.
    pub columns: Group,
    /// Loops around the tiles, outermost first.
    pub loops: Loops,
    /// Whole destination lines bypass the caches.
    pub streaming: bool,
    /// Rows go through a staging buffer, because they do not start and end on lines.
    pub staged: bool,
    /// Rows that are `staged` are put onto lines in registers; the buffer keeps only what two lines share.
    pub slides: bool,
    /// How far ahead of what is read the source is asked for, in bytes; 0 where nothing is asked for.
    pub ahead: usize,
    /// Squares of rows that a transpose takes abreast before it moves on along its columns; 1 for all else.
    pub abreast: usize,
}

impl Piece {
    /// Destination bytes of one column.
    pub(crate) fn unit(&self) -> usize {
        self.element * self.channels
    }
}

/// How a copy will run: pure data.
///
/// ```
/// use restride::{CopyOptions, Layout, Plan};
/// # fn main() -> Result<(), restride::Error> {
/// let src = Layout::row_major(&[640, 480])?.apply(".T")?;
/// let dst = Layout::row_major(&[480, 640])?;
/// let plan = Plan::new(&src, &dst, 4, &CopyOptions::default())?;
/// assert_eq!(plan.strategy(), "transpose");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) element_size: usize,
    pub(crate) bytes: usize,
    pub(crate) isa: Isa,
    pub(crate) threads: usize,
    /// Destination bytes that one of several threads takes at a time, at least; 0 for one thread.
    pub(crate) part_bytes: usize,
}

impl Plan {
    /// Plans the copy of `src` into `dst`, for buffers that start on a cache line.
    ///
    /// # Errors
    /// `ShapeMismatch` (a copy never broadcasts), `NeedsCopy` for a padded destination, `Overflow`,
    /// `Isa` where a level was asked for that this CPU lacks.
    pub fn new(
        src: &Layout,
        dst: &Layout,
        element_size: usize,
        options: &CopyOptions,
    ) -> Result<Self, Error> {
        Self::at_address(src, dst, element_size, 0, options)
    }

    /// [`Plan::at_address`] into row-major memory of the source's shape, without a layout made for it.
    pub(crate) fn contiguous(
        src: &Layout,
        element_size: usize,
        misaligned: usize,
        options: &CopyOptions,
    ) -> Result<Self, Error> {
        if src.is_padded() {
            let dst = Layout::row_major(src.shape())?;
            return Self::at_address(src, &dst, element_size, misaligned, options);
        }
        let dst = layout::row_major_strides(src.shape());
        let mut fused = Fused::default();
        fuse::fuse_raw(&mut fused, src.shape(), (src.strides(), src.offset()), (&dst, 0), element_size)?;
        Self::of_fused(&mut fused, element_size, misaligned, options)
    }

    /// [`Plan::new`] for a destination buffer whose address is `misaligned` bytes past a cache line.
    pub(crate) fn at_address(
        src: &Layout,
        dst: &Layout,
        element_size: usize,
        misaligned: usize,
        options: &CopyOptions,
    ) -> Result<Self, Error> {
        if dst.is_padded() {
            return Err(Error::NeedsCopy {
                axes: [].into(),
                reason: "a padded layout cannot be written (rule L7)".into(),
            });
        }
        let Some(mask) = src.mask() else {
            let mut fused = Fused::default();
            fuse::fuse(&mut fused, src, dst, element_size)?;
            return Self::of_fused(&mut fused, element_size, misaligned, options);
        };
        let bytes = src.numel().checked_mul(element_size).ok_or(TOO_LARGE)?;
        let mut plan = Self::empty(bytes, element_size, options)?;
        let context = choose::Context {
            tuning: tuning(options),
            misaligned,
            streaming: options.streaming,
            bytes,
            slides: plan.isa.slides(),
        };
        if let Some(piece) = bordered::piece(src, mask, dst, element_size, &context) {
            plan.pieces.push(piece);
            return Ok(plan);
        }
        padded::cut(src, mask, dst, element_size, &mut |fill, fused| {
            plan.pieces.push(Piece { fill, ..choose::piece(fused, &context) });
        })?;
        Ok(plan)
    }

    /// Plans a fused form of elements that were `element_size` bytes before it was made; its axes are used up.
    pub(crate) fn of_fused(
        fused: &mut Fused,
        element_size: usize,
        misaligned: usize,
        options: &CopyOptions,
    ) -> Result<Self, Error> {
        let bytes = fused.elements.checked_mul(fused.element).ok_or(TOO_LARGE)?;
        let mut plan = Self::empty(bytes, element_size, options)?;
        if bytes > 0 {
            let tuning = tuning(options);
            let context = choose::Context {
                tuning,
                misaligned,
                streaming: options.streaming,
                bytes,
                slides: plan.isa.slides(),
            };
            plan.pieces = vec![choose::piece(fused, &context)];
        }
        Ok(plan)
    }

    /// A plan of so many destination bytes without a piece.
    fn empty(bytes: usize, element_size: usize, options: &CopyOptions) -> Result<Self, Error> {
        let isa = match options.isa {
            None => Isa::active()?,
            Some(isa) => isa.require("the caller asks for")?,
        };
        let threads = match options.threads {
            _ if bytes < tuning(options).parallel_from_bytes.value => 1,
            Some(n) => n,
            None => super::parallel::default_threads(),
        };
        let part_bytes = if threads > 1 { tuning(options).part_bytes.value } else { 0 };
        Ok(Self { pieces: Vec::new(), element_size, bytes, isa, threads, part_bytes })
    }

    /// Name of the strategy; for a padded view that of the largest piece that reads memory.
    pub fn strategy(&self) -> &'static str {
        self.main().map_or(Strategy::Nothing, |piece| piece.strategy).name()
    }

    /// The nests that run, in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Bytes written to the destination.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of one element before widening.
    pub fn element_size(&self) -> usize {
        self.element_size
    }

    /// The instruction-set level.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Threads that share the work.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Destination bytes that one of several threads takes at a time, at least; 0 for one thread.
    pub fn part_bytes(&self) -> usize {
        self.part_bytes
    }

    fn main(&self) -> Option<&Piece> {
        let copies = self.pieces.iter().filter(|piece| !piece.fill);
        copies.max_by_key(|piece| piece.size()).or_else(|| self.pieces.first())
    }
}

impl Piece {
    /// Destination bytes of this piece.
    pub fn size(&self) -> usize {
        if self.strategy == Strategy::Bordered {
            return self.bordered_size();
        }
        let blocks: usize = self.loops.iter().filter(|l| l.over == Over::Outer).map(|l| l.count).product();
        blocks * self.rows.extent() * self.columns.extent() * self.unit()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pieces.is_empty() {
            return f.write_str("nothing to move");
        }
        let (bytes, threads) = (counted(self.bytes, "byte"), counted(self.threads, "thread"));
        write!(f, "{}, {bytes}, {threads}", self.isa)?;
        for piece in self.pieces.iter().take(8) {
            write!(f, "\n{piece}")?;
        }
        match self.pieces.len().saturating_sub(8) {
            0 => Ok(()),
            more => write!(f, "\nand {} more", counted(more, "piece")),
        }
    }
}

impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.fill { "fill by " } else { "" })?;
        write!(f, "{}: elements of {}", self.strategy, counted(self.element, "byte"))?;
        write!(f, ", tiles of {} by {}", self.rows.full(), self.columns.full())?;
        f.write_str(if self.streaming { ", streaming stores" } else { ", ordinary stores" })?;
        f.write_str(match (self.staged, self.slides) {
            (false, _) => "",
            (true, false) => " through staging",
            (true, true) => " slid onto lines",
        })?;
        if self.ahead > 0 {
            write!(f, ", read {} bytes ahead", self.ahead)?;
        }
        if self.abreast > 1 {
            write!(f, ", {} squares abreast", self.abreast)?;
        }
        for l in &self.loops {
            let over = match l.over {
                Over::Outer => "",
                Over::Rows => " (row blocks)",
                Over::Columns => " (column blocks)",
            };
            write!(f, "\n  for {} steps of {:+} / {:+} bytes{over}", l.count, l.src, l.dst)?;
        }
        f.write_str("\n  tile rows")?;
        axes(f, self.rows.axes())?;
        f.write_str(", columns")?;
        axes(f, self.columns.axes())?;
        for (k, border) in self.borders.iter().enumerate() {
            f.write_str(if k == 0 { "\n  fill around" } else { "," })?;
            write!(f, " {} and {} bytes", border.before, border.after)?;
        }
        if self.cell.axes().is_empty() {
            return Ok(());
        }
        f.write_str(", of cells")?;
        axes(f, self.cell.axes())
    }
}

fn axes(f: &mut fmt::Formatter<'_>, axes: &[Axis]) -> fmt::Result {
    if axes.is_empty() {
        return f.write_str(" 1");
    }
    axes.iter().rev().try_for_each(|a| write!(f, " {}@{:+}/{:+}", a.extent, a.src, a.dst))
}

/// Elements along one edge of the squares that a transpose tile is walked in: a line of them, so that
/// every line that comes in is used up at once.
pub(crate) fn square_edge(element: usize) -> usize {
    super::kernels::square_edge(element)
}

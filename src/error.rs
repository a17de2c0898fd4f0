//! What can go wrong, as one enum with named fields.

pub(crate) mod words;

use words::counted;

/// An ordered list of extents or axes inside an [`Error`].
pub type List = Box<[usize]>;

/// Everything the library refuses, and why.
///
/// Each variant says what was asked, what would have been right, and on which axis. [`Error::kind`]
/// is a short stable name of the reason, the same that `--json` prints.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size, index or address does not fit the address space (rule L1).
    #[error("{what} does not fit the address space")]
    Overflow {
        /// The quantity that overflowed.
        what: &'static str,
    },
    /// A reachable index lies outside the buffer (rule L2).
    #[error("the view reaches buffer indices {low} to {high}, but the buffer holds {}", counted(*len, "element"))]
    Bounds {
        /// Smallest reachable index.
        low: i128,
        /// Largest reachable index.
        high: i128,
        /// Elements in the buffer.
        len: usize,
    },
    /// Shapes cannot be broadcast together.
    #[error("shape {from:?} cannot be broadcast to {to:?}: {reason}")]
    Broadcast {
        /// The shape that was met.
        from: List,
        /// The shape that was asked for, as given.
        to: Box<[isize]>,
        /// Which axis forbids it, and why.
        reason: String,
    },
    /// A list of axes is no permutation of all axes.
    #[error("{axes:?} is not a permutation of the {}: name each axis exactly once", counted(*ndim, "axis"))]
    Permutation {
        /// The axes as given.
        axes: Box<[isize]>,
        /// Axes of the view.
        ndim: usize,
    },
    /// An axis does not exist, or is named twice.
    #[error("axis {} {reason} ({})", given(*axis), allowed(*ndim))]
    Axis {
        /// The axis as given.
        axis: isize,
        /// Axes of the view.
        ndim: usize,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// An index is outside its axis.
    #[error("index {} is out of range for axis {axis} of extent {extent}", given(*index))]
    Index {
        /// The index as given.
        index: isize,
        /// The axis it was given for.
        axis: usize,
        /// Extent of that axis.
        extent: usize,
    },
    /// More indices than axes, or something that is no basic index.
    #[error("{reason}")]
    Indices {
        /// What is wrong with the list of indices.
        reason: String,
    },
    /// A slice step of zero.
    #[error("the slice step of axis {axis} is 0: use a step of 1 or more, or -1 or less")]
    Step {
        /// The axis it was given for.
        axis: usize,
    },
    /// Shapes of different size.
    #[error("shape {from:?} cannot become {to:?}: {reason}")]
    Shape {
        /// The shape that was met.
        from: List,
        /// The shape that was asked for (−1 where it is to be inferred).
        to: Box<[isize]>,
        /// Why not.
        reason: String,
    },
    /// An axis that is not of extent 1 cannot be dropped.
    #[error("axis {axis} has extent {extent}: only an axis of extent 1 can be squeezed")]
    Squeeze {
        /// The axis.
        axis: usize,
        /// Its extent.
        extent: usize,
    },
    /// A shrink range leaves its axis.
    #[error("{reason}")]
    Shrink {
        /// What is wrong, with axis and extent.
        reason: String,
    },
    /// A pad width or pad value that cannot be used.
    #[error("{reason}")]
    Pad {
        /// What is wrong.
        reason: String,
    },
    /// A window that does not fit its axis.
    #[error(
        "a window of {} with step {} does not fit axis {axis} of extent {extent}: {reason}",
        given(*size), given(*step)
    )]
    Window {
        /// Window length.
        size: isize,
        /// Window step.
        step: isize,
        /// The axis.
        axis: usize,
        /// Its extent.
        extent: usize,
        /// What would be right.
        reason: &'static str,
    },
    /// Wrong number of axes, strides or pairs.
    #[error("{what}: got {got}, expected {}{expected}", if *what == "axes" { "at most " } else { "" })]
    Rank {
        /// What was counted.
        what: &'static str,
        /// How many were given.
        got: usize,
        /// How many are needed (or allowed at most).
        expected: usize,
    },
    /// The result is not a view of this memory (rules L6 and L7).
    #[error("this needs a copy: {reason}")]
    NeedsCopy {
        /// Axes of the view that cannot be merged; empty when the reason is another.
        axes: List,
        /// Why no strides express it.
        reason: String,
    },
    /// Two logical positions of a destination share an index (rule L5), or source and destination share
    /// memory.
    #[error("{reason}")]
    Overlap {
        /// The axis that repeats, where there is a single one.
        axis: Option<usize>,
        /// What meets what, and what to do.
        reason: String,
    },
    /// A slice has the wrong length.
    #[error("the slice holds {}, expected {expected}", counted(*got, "element"))]
    LengthMismatch {
        /// Elements given.
        got: usize,
        /// Elements needed.
        expected: usize,
    },
    /// A copy between views of different shape: `copy` never broadcasts.
    #[error("source shape {src:?} and destination shape {dst:?} differ: a copy never broadcasts")]
    ShapeMismatch {
        /// Shape of the source.
        src: List,
        /// Shape of the destination.
        dst: List,
    },
    /// Memory for the result cannot be had.
    #[error("cannot allocate {} for the result: work on a smaller view or allow more memory", counted(*bytes, "byte"))]
    Alloc {
        /// Bytes asked for.
        bytes: usize,
    },
    /// An instruction set that was asked for is unknown or missing on this CPU.
    #[error("{reason}")]
    Isa {
        /// What was asked and what this CPU has.
        reason: String,
    },
    /// A tuning value that makes no sense.
    #[error("{reason}")]
    Tuning {
        /// Which value, what it is, and what would be right.
        reason: String,
    },
    /// Caches that cannot be modelled.
    #[error("{reason}")]
    Caches {
        /// Which cache, what is wrong with it, and what would be right.
        reason: String,
    },
    /// A view expression that cannot be read.
    #[error("{reason}")]
    Syntax {
        /// What was expected.
        reason: String,
        /// Byte range of the offending text.
        span: (usize, usize),
    },
}

/// The axes that a view of so many has.
fn allowed(ndim: usize) -> String {
    match ndim {
        0 => "the view has no axis".to_owned(),
        _ => format!("the view has {}: {} to {}", counted(ndim, "axis"), given(-(ndim as isize)), ndim - 1),
    }
}

/// A number as it was given: an expression's numbers stop at the ends of `isize`.
fn given(n: isize) -> String {
    match n {
        isize::MAX => format!("{n} or more"),
        isize::MIN => format!("{n} or less"),
        n => n.to_string(),
    }
}

impl Error {
    /// A short stable name of the reason, such as `"needs_copy"` or `"bounds"`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Overflow { .. } => "overflow",
            Self::Bounds { .. } => "bounds",
            Self::Broadcast { .. } => "broadcast",
            Self::Permutation { .. } => "permutation",
            Self::Axis { .. } => "axis",
            Self::Index { .. } | Self::Indices { .. } => "index",
            Self::Step { .. } => "step",
            Self::Shape { .. } => "shape",
            Self::Squeeze { .. } => "squeeze",
            Self::Shrink { .. } => "shrink",
            Self::Pad { .. } => "pad",
            Self::Window { .. } => "window",
            Self::Rank { .. } => "rank",
            Self::NeedsCopy { .. } => "needs_copy",
            Self::Overlap { .. } => "overlap",
            Self::LengthMismatch { .. } => "length_mismatch",
            Self::ShapeMismatch { .. } => "shape_mismatch",
            Self::Alloc { .. } => "alloc",
            Self::Isa { .. } => "isa",
            Self::Tuning { .. } => "tuning",
            Self::Caches { .. } => "caches",
            Self::Syntax { .. } => "syntax",
        }
    }
}

//! Walks: reads of one array in several orders, each summing what it reads.
//!
//! A [`Walk`] says what is read and in which order, as numbers only. [`kernel`] holds the loops,
//! [`memory`] the arrays, [`measure`] the timing, [`model`] the address stream for the cache model and
//! [`ladder`] the sizes and what a ladder of them says of the machine.

pub mod kernel;
pub mod ladder;
pub mod measure;
pub mod memory;
pub mod model;

use crate::{Error, Layout};

/// The order in which an array is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Pattern {
    /// Row after row: as it lies in memory.
    Row,
    /// Column after column: the transposed walk.
    Column,
    /// Column after column inside square tiles.
    Tiled,
    /// Every n-th element.
    Strided,
    /// Every element once, in random order.
    Random,
    /// One load per line in random order, each giving the address of the next.
    Chase,
}

impl Pattern {
    /// All patterns, in the order in which they are listed.
    pub const ALL: [Self; 6] =
        [Self::Row, Self::Column, Self::Tiled, Self::Strided, Self::Random, Self::Chase];

    /// Its name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Row => "row",
            Self::Column => "column",
            Self::Tiled => "tiled",
            Self::Strided => "strided",
            Self::Random => "random",
            Self::Chase => "chase",
        }
    }

    /// The pattern of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|pattern| pattern.name() == name)
    }
}

/// The element types of walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Number {
    /// 4-byte floats.
    F32,
    /// 8-byte floats.
    F64,
    /// Bytes.
    U8,
    /// 8-byte integers.
    I64,
}

impl Number {
    /// All types.
    pub const ALL: [Self; 4] = [Self::F32, Self::F64, Self::U8, Self::I64];

    /// Its name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::U8 => "u8",
            Self::I64 => "i64",
        }
    }

    /// The type of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|number| number.name() == name)
    }

    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 | Self::I64 => 8,
            Self::U8 => 1,
        }
    }
}

/// Seed of random orders where none is named.
pub const DEFAULT_SEED: u64 = 0x5EED;
/// Largest array that is walked, in bytes.
pub const MAX_BYTES: usize = 1 << 40;

/// One walk: a matrix and the order in which it is read.
///
/// `rows` x `cols` elements lie `pitch` elements apart from row to row. Strided, random and chase take
/// the matrix as one row of `rows * cols` elements, without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Walk {
    /// The order.
    pub pattern: Pattern,
    /// The element type.
    pub number: Number,
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Elements from one row to the next, at least `cols`.
    pub pitch: usize,
    /// Step in elements of a strided walk.
    pub stride: usize,
    /// Side in elements of the tiles of a tiled walk; where none is named, one line.
    pub tile: usize,
    /// Seed of a random order.
    pub seed: u64,
    /// Bytes from one node of a chase to the next: a cache line.
    pub line_bytes: usize,
}

impl Walk {
    /// A walk over a matrix without gaps between its rows.
    ///
    /// # Errors
    /// Overflow where the matrix is larger than [`MAX_BYTES`].
    ///
    /// # Examples
    /// ```
    /// use restride::bench::walks::{Number, Pattern, Walk};
    /// let walk = Walk::new(Pattern::Column, Number::F64, 1024, 1024)?;
    /// assert_eq!((walk.elements(), walk.bytes()), (1 << 20, 8 << 20));
    /// # Ok::<(), restride::Error>(())
    /// ```
    pub fn new(pattern: Pattern, number: Number, rows: usize, cols: usize) -> Result<Self, Error> {
        Self {
            pattern,
            number,
            rows,
            cols,
            pitch: cols,
            stride: 1,
            tile: (64 / number.bytes()).max(1),
            seed: DEFAULT_SEED,
            line_bytes: 64,
        }
        .checked()
    }

    /// The same walk with `pitch` elements from row to row.
    ///
    /// # Errors
    /// Shape where `pitch` is less than a row, Overflow where the matrix gets too large.
    pub fn with_pitch(self, pitch: usize) -> Result<Self, Error> {
        if pitch < self.cols {
            return Err(Error::Shape {
                from: Box::new([self.rows, self.cols]),
                to: Box::new([]),
                reason: format!("rows of {} elements cannot lie {pitch} elements apart", self.cols),
            });
        }
        Self { pitch, ..self }.checked()
    }

    /// The same walk over every `stride`-th element; 0 counts as 1.
    pub fn with_stride(self, stride: usize) -> Self {
        Self { stride: stride.max(1), ..self }
    }

    /// The same walk in tiles of `tile` x `tile` elements; 0 counts as 1.
    pub fn with_tile(self, tile: usize) -> Self {
        Self { tile: tile.max(1), ..self }
    }

    /// The same walk with another random order.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The same walk on a machine with lines of `line_bytes` bytes, a power of two of at least 8.
    pub fn with_line_bytes(self, line_bytes: usize) -> Self {
        Self { line_bytes: line_bytes.max(8), ..self }
    }

    fn checked(self) -> Result<Self, Error> {
        let bytes = self.rows.checked_mul(self.pitch).and_then(|n| n.checked_mul(self.number.bytes()));
        match bytes {
            Some(bytes) if bytes <= MAX_BYTES => Ok(self),
            _ => Err(Error::Overflow { what: "the size of the walked matrix" }),
        }
    }

    /// Elements in the array, gaps between rows included.
    pub fn len(&self) -> usize {
        match self.pattern {
            _ if self.rows == 0 || self.cols == 0 => 0,
            Pattern::Row | Pattern::Column | Pattern::Tiled => (self.rows - 1) * self.pitch + self.cols,
            Pattern::Strided | Pattern::Random | Pattern::Chase => self.rows * self.cols,
        }
    }

    /// Whether nothing is read.
    pub fn is_empty(&self) -> bool {
        self.elements() == 0
    }

    /// Bytes of the array.
    pub fn bytes(&self) -> usize {
        self.len() * self.number.bytes()
    }

    /// Elements that one pass reads: for a chase the loads.
    pub fn elements(&self) -> usize {
        match self.pattern {
            Pattern::Row | Pattern::Column | Pattern::Tiled | Pattern::Random => self.rows * self.cols,
            Pattern::Strided => self.len().div_ceil(self.stride),
            Pattern::Chase => self.bytes() / self.line_bytes,
        }
    }

    /// Bytes of what one pass reads at a time: an element, for a chase an address.
    pub fn element_bytes(&self) -> usize {
        if self.pattern == Pattern::Chase { 8 } else { self.number.bytes() }
    }

    /// What is read, as a layout over the array; its logical order is the walk's for row, column and
    /// strided walks.
    ///
    /// # Errors
    /// Overflow, where the shape does not fit a layout.
    pub fn layout(&self) -> Result<Layout, Error> {
        let step = |elements: usize| {
            isize::try_from(elements).map_err(|_| Error::Overflow { what: "the step of the walk" })
        };
        match self.pattern {
            Pattern::Row | Pattern::Tiled => Layout::new(&[self.rows, self.cols], &[step(self.pitch)?, 1], 0),
            Pattern::Column => Layout::new(&[self.cols, self.rows], &[1, step(self.pitch)?], 0),
            Pattern::Strided => Layout::new(&[self.elements()], &[step(self.stride)?], 0),
            Pattern::Random => Layout::row_major(&[self.elements()]),
            Pattern::Chase => Layout::new(&[self.elements()], &[step(self.line_bytes / 8)?], 0),
        }
    }

    /// Distinct bytes read and distinct cache lines touched by one pass, exact, from the layout.
    ///
    /// # Errors
    /// As [`Walk::layout`].
    pub fn traffic(&self) -> Result<Traffic, Error> {
        let lines = self.layout()?.lines(self.element_bytes(), self.line_bytes);
        Ok(Traffic {
            bytes_used: lines.bytes_used,
            lines_touched: lines.touched,
            line_bytes: self.line_bytes as u64,
        })
    }

    /// The walk of one of `threads` threads: its share of the rows, for walks over one row of the
    /// elements. The last threads may have nothing to do.
    pub fn share(&self, thread: usize, threads: usize) -> Self {
        let threads = threads.max(1);
        let part = |total: usize| {
            let each = total.div_ceil(threads);
            each.min(total.saturating_sub(thread * each))
        };
        match self.pattern {
            Pattern::Row | Pattern::Column | Pattern::Tiled => Self { rows: part(self.rows), ..*self },
            _ => {
                let elements = part(self.rows * self.cols);
                Self { rows: 1, cols: elements, pitch: elements, seed: self.seed ^ thread as u64, ..*self }
            }
        }
    }
}

/// What one pass of a walk touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// Distinct bytes read.
    pub bytes_used: u64,
    /// Distinct cache lines that hold them.
    pub lines_touched: u64,
    /// Bytes of a line.
    pub line_bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(pattern: Pattern, rows: usize, cols: usize) -> Walk {
        Walk::new(pattern, Number::F64, rows, cols).unwrap()
    }

    #[test]
    fn traffic_is_that_of_the_layout() {
        let traffic = |walk: Walk| walk.traffic().map(|t| (t.bytes_used, t.lines_touched)).unwrap();
        assert_eq!(traffic(walk(Pattern::Row, 16, 16)), (2048, 32));
        assert_eq!(traffic(walk(Pattern::Column, 16, 16)), (2048, 32));
        assert_eq!(traffic(walk(Pattern::Strided, 16, 16).with_stride(16)), (128, 16));
        assert_eq!(traffic(walk(Pattern::Chase, 16, 16)), (256, 32));
        // Rows of one line each, 9 elements apart: half of them straddle two lines.
        let pitched = walk(Pattern::Row, 8, 8).with_pitch(9).unwrap();
        assert_eq!(traffic(pitched), (512, 9));
    }

    #[test]
    fn shares_add_up() {
        for pattern in Pattern::ALL {
            for threads in [1, 2, 3, 7, 100] {
                let whole = walk(pattern, 13, 16).with_stride(1);
                let parts = (0..threads).map(|thread| whole.share(thread, threads));
                let total: usize = parts.map(|part| part.rows * part.cols).sum();
                assert_eq!(total, 13 * 16, "{pattern:?} {threads}");
            }
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        assert!(Walk::new(Pattern::Row, Number::F64, usize::MAX, 2).is_err());
        assert!(Walk::new(Pattern::Row, Number::U8, MAX_BYTES + 1, 1).is_err());
        assert!(walk(Pattern::Row, 4, 4).with_pitch(3).is_err());
        assert!(walk(Pattern::Row, 4, 4).with_pitch(usize::MAX / 2).is_err());
    }

    #[test]
    fn nothing_to_read_is_no_problem() {
        for pattern in Pattern::ALL {
            for (rows, cols) in [(0, 5), (5, 0), (0, 0)] {
                let empty = walk(pattern, rows, cols);
                assert!(empty.is_empty() && empty.bytes() == 0);
                assert_eq!(empty.traffic().unwrap().lines_touched, 0);
            }
        }
    }
}

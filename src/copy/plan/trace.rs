//! What a plan moves, tile by tile: every element that is read and where it is written. The loads and stores
//! that the kernels make of it are another matter: see `copy::replay`.

use super::{At, Piece, Plan};
use crate::copy::kernels::Kind;

/// Which buffer an access touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The source.
    Src,
    /// The destination.
    Dst,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads an element.
    Read,
    /// Writes an element through the caches.
    Write,
    /// Writes an element past the caches.
    StreamWrite,
}

/// One access: `bytes` bytes at byte `offset` of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// Which buffer.
    pub side: Side,
    /// Byte offset from the buffer's start.
    pub offset: isize,
    /// Bytes touched.
    pub bytes: usize,
    /// What it does.
    pub kind: AccessKind,
}

/// Calls `each` for every element read and written, in the order of the plan's tiles on one thread.
///
/// Elements are those of the caller, not the widened ones. The staging buffer makes no accesses here:
/// what goes through it is written where the run that it belongs to is written. The fill value of a
/// padded view is read from no buffer.
pub fn trace(plan: &Plan, each: &mut dyn FnMut(Access)) {
    for piece in plan.pieces() {
        let mut tile = TileTrace::new(piece, plan.element_size());
        piece.walk(&mut |at| tile.visit(at, each));
    }
}

struct TileTrace<'p> {
    piece: &'p Piece,
    /// Bytes of the caller's elements.
    size: usize,
    rows: Vec<(isize, isize)>,
    columns: Vec<(isize, isize)>,
    write: AccessKind,
}

impl<'p> TileTrace<'p> {
    fn new(piece: &'p Piece, size: usize) -> Self {
        let list = |group: &super::Group| {
            let mut steps = Vec::with_capacity(group.full());
            group.steps(|src, dst| steps.push((src, dst)));
            steps
        };
        Self {
            piece,
            size,
            rows: list(&piece.rows),
            columns: match piece.strategy.kind() {
                Kind::Transpose | Kind::Scatter => list(&piece.columns),
                Kind::Shuffle => list(&piece.cell),
                _ => Vec::new(),
            },
            write: if piece.streaming { AccessKind::StreamWrite } else { AccessKind::Write },
        }
    }

    fn read(&self, offset: isize, bytes: usize, each: &mut dyn FnMut(Access)) {
        if !self.piece.fill {
            self.elements(Side::Src, AccessKind::Read, offset, bytes, each);
        }
    }

    fn write(&self, offset: isize, bytes: usize, each: &mut dyn FnMut(Access)) {
        self.elements(Side::Dst, self.write, offset, bytes, each);
    }

    /// One access per element of the caller.
    fn elements(
        &self,
        side: Side,
        kind: AccessKind,
        offset: isize,
        bytes: usize,
        each: &mut dyn FnMut(Access),
    ) {
        let size = self.size.min(bytes).max(1);
        for k in 0..bytes / size {
            each(Access { side, kind, offset: offset + (k * size) as isize, bytes: size });
        }
    }

    fn visit(&mut self, at: At, each: &mut dyn FnMut(Access)) {
        let piece = self.piece;
        let element = piece.element;
        match piece.strategy.kind() {
            Kind::Transpose => {
                let edge = super::square_edge(element);
                let rows = &self.rows[..at.rows];
                let columns = &self.columns[..at.columns];
                for some_columns in columns.chunks(edge) {
                    for (k, some_rows) in rows.chunks(edge).enumerate() {
                        let along = (k * edge * element) as isize;
                        for column in some_columns {
                            self.read(at.src + column.0 + along, some_rows.len() * element, each);
                        }
                        for row in some_rows {
                            self.write(
                                at.dst + row.1 + some_columns[0].1,
                                some_columns.len() * element,
                                each,
                            );
                        }
                    }
                }
            }
            Kind::Scatter => {
                for row in &self.rows[..at.rows] {
                    for column in &self.columns[..at.columns] {
                        self.read(at.src + row.0 + column.0, element, each);
                        self.write(at.dst + row.1 + column.1, element, each);
                    }
                }
            }
            Kind::Copy => {
                for row in &self.rows[..at.rows] {
                    let step = self.size.min(at.columns * element);
                    for k in (0..at.columns * element).step_by(step) {
                        self.read(at.src + row.0 + k as isize, step, each);
                        self.write(at.dst + row.1 + k as isize, step, each);
                    }
                }
            }
            Kind::Bordered => {
                let border = piece.borders.last().copied().unwrap_or_default();
                self.write(at.dst - at.lead as isize, at.lead, each);
                for row in &self.rows[..at.rows] {
                    let to = at.dst + row.1;
                    self.write(to, border.before, each);
                    for k in (0..at.columns).step_by(self.size) {
                        self.read(at.src + row.0 + k as isize, self.size, each);
                        self.write(to + (border.before + k) as isize, self.size, each);
                    }
                    self.write(to + (border.before + at.columns) as isize, border.after, each);
                }
                let row = border.before + at.columns + border.after;
                self.write(at.dst + (at.rows * row) as isize, at.trail, each);
            }
            Kind::Shuffle => {
                let stride = piece.columns.axes().first().map_or(0, |axis| axis.src);
                for row in &self.rows[..at.rows] {
                    for k in 0..at.columns {
                        let to = at.dst + row.1 + (k * piece.unit()) as isize;
                        for (c, offset) in self.columns.iter().enumerate() {
                            self.read(at.src + row.0 + k as isize * stride + offset.0, element, each);
                            self.write(to + (c * element) as isize, element, each);
                        }
                    }
                }
            }
            Kind::Splat | Kind::Gather | Kind::Interleave => {
                let stride = piece.columns.axes().first().map_or(0, |axis| axis.src);
                for row in &self.rows[..at.rows] {
                    if stride == 0 {
                        self.read(at.src + row.0, element, each);
                    }
                    for k in 0..at.columns {
                        let from = at.src + row.0 + k as isize * stride;
                        for c in 0..piece.channels {
                            if stride != 0 {
                                self.read(from + c as isize * piece.channel_src, element, each);
                            }
                            let to = (k * piece.channels + c) * element;
                            self.write(at.dst + row.1 + to as isize, element, each);
                        }
                    }
                }
            }
        }
    }
}

//! Cells: short blocks that are dense in the destination and close together in the source (a pixel's channels
//! backwards, a 3 by 3 matrix turned), many of which one byte permute puts together at once.

use super::level::Level;
use super::tile::Step;

/// Most bytes of a cell.
pub(crate) const CELL_BYTES: usize = 64;

/// Farthest that a cell's elements may lie apart, first byte to last.
pub(crate) const CELL_REACH: usize = 256;

/// A run of cells: how each is put together, and how many leave at once.
pub(super) struct Cells<'t> {
    /// Where each element of a cell is read, in destination order.
    offsets: &'t [Step],
    /// Source bytes from one cell to the next.
    step: isize,
    /// Bytes of an element.
    size: usize,
    /// Bytes of a cell.
    pub(super) bytes: usize,
    /// Cells that fit 64 bytes of the destination and [`CELL_REACH`] bytes of the source.
    pub(super) each: usize,
    /// How far before a cell's first element the bytes of `each` cells begin.
    pub(super) below: isize,
    /// How far a single cell's bytes begin before its first element, and how many there are.
    own: (isize, usize),
    /// For each byte of `each` cells, where it is counted from `below`.
    pub(super) index: [u8; 64],
}

impl<'t> Cells<'t> {
    /// Cells of the elements at `offsets`, `step` bytes apart.
    pub(super) fn new(offsets: &'t [Step], step: isize, size: usize) -> Self {
        let (mut low, mut high) = (0, 0);
        for offset in offsets {
            low = low.min(offset.src);
            high = high.max(offset.src);
        }
        let bytes = offsets.len() * size;
        let own = (high - low) as usize + size;
        let apart = step.unsigned_abs();
        let fit = CELL_BYTES / bytes;
        let each = (CELL_REACH - own).checked_div(apart).map_or(fit, |more| fit.min(more + 1));
        let below = (each as isize - 1) * step.min(0) + low;
        let mut index = [0; 64];
        let mut b = 0;
        for cell in 0..each {
            for offset in offsets {
                let at = cell as isize * step + offset.src - below;
                for e in 0..size {
                    index[b] = (at as usize + e) as u8;
                    b += 1;
                }
            }
        }
        Self { offsets, step, size, bytes, each, below, own: (low, own), index }
    }

    /// How far `cells` cells reach, first byte to last.
    pub(super) fn reach(&self, cells: usize) -> usize {
        (cells - 1) * self.step.unsigned_abs() + self.own.1
    }

    /// Bytes at the start of a full window that belong to none of its first `cells` cells.
    pub(super) fn missing(&self, cells: usize) -> usize {
        if self.step < 0 { (self.each - cells) * self.step.unsigned_abs() } else { 0 }
    }

    /// Source bytes from one cell to the next.
    pub(super) fn step(&self) -> isize {
        self.step
    }

    /// Element by element.
    ///
    /// # Safety
    /// `dst` holds `n` cells, and every source position of theirs is readable.
    #[inline(always)]
    pub(super) unsafe fn one_by_one<L: Level, const E: usize>(&self, dst: *mut u8, src: *const u8, n: usize) {
        for j in 0..n {
            for (k, offset) in self.offsets.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe {
                    let from = src.offset(j as isize * self.step + L::look(&offset.src));
                    L::element::<E>(dst.add(j * self.bytes + k * self.size), from, self.size);
                }
            }
        }
    }
}

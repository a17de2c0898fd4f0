//! Asking for the memory of the next tile while this one is on its way: the hardware follows neither many short
//! runs nor a walk that stops between tiles.

use super::super::kernels;
const LINE: usize = 64;
use super::tiles::Extents;
use crate::layout::fuse::Axis;
use smallvec::SmallVec;

/// The lines of a tile's source, asked for in the order of their addresses.
#[derive(Default)]
pub(super) struct Ahead {
    /// Where the current run starts, and how far it has been asked for, in bytes.
    run: usize,
    at: usize,
    /// Bytes of each run.
    length: usize,
    /// Loops over the runs, innermost first: their extents, byte steps and current places.
    loops: SmallVec<[(usize, isize, usize); 4]>,
    left: usize,
    /// Bytes of work that one line is asked for with, and those not yet used up.
    price: usize,
    credit: usize,
}

impl Ahead {
    /// A tile's source: its address, its axes' extents and steps of elements of `size` bytes. It is asked for while
    /// `work` bytes are written.
    pub(super) fn new(address: usize, axes: &[Axis], extents: &Extents, size: usize, work: usize) -> Self {
        let size = size as isize;
        let mut moving: SmallVec<[(usize, isize); 6]> = axes
            .iter()
            .zip(extents)
            .map(|(axis, &extent)| (extent, axis.src.wrapping_mul(size)))
            .filter(|&(extent, by)| extent > 1 && by != 0)
            .collect();
        let mut first = address;
        for (extent, by) in &mut moving {
            if *by < 0 {
                first = first.wrapping_add_signed(by.wrapping_mul(*extent as isize - 1));
                *by = by.wrapping_neg();
            }
        }
        moving.sort_unstable_by_key(|&(_, by)| by);
        let mut length = size as usize;
        let mut loops = SmallVec::new();
        let mut runs = 1usize;
        for (extent, by) in moving {
            if loops.is_empty() && by as usize <= length + LINE {
                length += by as usize * (extent - 1);
            } else {
                loops.push((extent, by, 0));
                runs *= extent;
            }
        }
        // Runs are taken from the start of a line on.
        length += first % LINE;
        let left = runs * length.div_ceil(LINE);
        Self { run: first - first % LINE, at: 0, length, loops, left, price: (work / left).max(1), credit: 0 }
    }

    /// Asks for as much as belongs to `bytes` bytes of work.
    #[inline]
    pub(super) fn work(&mut self, bytes: usize) {
        self.credit += bytes;
        while self.credit >= self.price && self.left > 0 {
            self.credit -= self.price;
            self.next();
        }
    }

    fn next(&mut self) {
        kernels::ask(self.run.wrapping_add(self.at));
        self.left -= 1;
        self.at += LINE;
        if self.at < self.length {
            return;
        }
        self.at = 0;
        for (extent, by, place) in &mut self.loops {
            *place += 1;
            self.run = self.run.wrapping_add_signed(*by);
            if *place < *extent {
                return;
            }
            self.run = self.run.wrapping_add_signed(by.wrapping_mul(*extent as isize).wrapping_neg());
            *place = 0;
        }
    }
}

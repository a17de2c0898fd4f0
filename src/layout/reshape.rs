//! When a reshape is a view, and which axes forbid it (rules L6 and L7).
//!
//! Without padding the question is the classic one: cut both shapes into the shortest groups of axes of
//! equal size; the old axes of each group must walk memory as one axis does, then the new axes of the group
//! can divide that walk. With padding it is asked of the valid positions alone: they must be a box of the
//! new shape too, and the boxes' extents take the place of the shapes.

use super::{Extents, Layout, Mask, Strides, check_shape, mask, row_major_strides, unravel};
use crate::Error;
use crate::error::words::counted;
use std::ops::{ControlFlow, Range};

/// Whether a reshape may copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CopyPolicy {
    /// Refuse with `NeedsCopy` where no strides express the result.
    Never,
    /// Copy only where no strides express the result.
    IfNeeded,
    /// Copy in any case.
    Always,
}

/// What a reshape came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reshaped {
    /// The same memory, read through this layout.
    View(Layout),
    /// A contiguous layout of the new shape over fresh memory that the positions are first copied to.
    Copy(Layout),
}

impl Layout {
    /// The shape that `sizes` names: at most one −1 is inferred.
    ///
    /// # Errors
    /// `Shape` when the sizes do not multiply to [`Layout::numel`], when two are −1 or one is below −1.
    pub fn infer_shape(&self, sizes: &[isize]) -> Result<Vec<usize>, Error> {
        let refuse = |reason: String| Error::Shape { from: self.shape().into(), to: sizes.into(), reason };
        if let Some(size) = sizes.iter().find(|&&size| size < -1) {
            return Err(refuse(format!("{size} is no extent; only -1 stands for the one to infer")));
        }
        if sizes.iter().filter(|&&size| size == -1).count() > 1 {
            return Err(refuse("only one extent can be inferred, so only one may be -1".into()));
        }
        let known: Extents = sizes.iter().filter(|&&size| size != -1).map(|&size| size as usize).collect();
        let product = check_shape(&known)?;
        let count = self.numel();
        let Some(position) = sizes.iter().position(|&size| size == -1) else {
            if product != count {
                return Err(refuse(format!(
                    "the extents multiply to {product}, and the view has {}",
                    counted(count, "element")
                )));
            }
            return Ok(known.to_vec());
        };
        if product == 0 || !count.is_multiple_of(product) {
            return Err(refuse(match product {
                0 => "-1 cannot be inferred beside an extent of 0".into(),
                _ => format!("{} cannot be divided by {product}", counted(count, "element")),
            }));
        }
        let mut shape = known.to_vec();
        shape.insert(position, count / product);
        check_shape(&shape)?;
        Ok(shape)
    }

    /// Another shape over the same memory, positions in the same row-major order; at most one −1 is inferred.
    ///
    /// # Errors
    /// `Shape` for sizes that do not fit; `NeedsCopy` naming the axes that cannot be merged where no strides
    /// express the result (rule L6) or the valid region is no box of the new shape (rule L7).
    ///
    /// ```
    /// use restride::Layout;
    /// let x = Layout::row_major(&[3, 4])?;
    /// assert_eq!(x.reshape(&[2, -1])?.shape(), [2, 6]);
    /// assert_eq!(x.t()?.reshape(&[12]).unwrap_err().kind(), "needs_copy");
    /// # Ok::<(), restride::Error>(())
    /// ```
    pub fn reshape(&self, sizes: &[isize]) -> Result<Self, Error> {
        let shape: Extents = self.infer_shape(sizes)?.into();
        if shape == self.shape {
            return Ok(self.clone());
        }
        if self.is_contiguous() {
            let strides = row_major_strides(&shape);
            return Self::canonical(shape, strides, self.offset, None);
        }
        match self.mask() {
            None => {
                let strides = regroup(&self.shape, &self.strides, &shape).map_err(needs_copy(&self.shape))?;
                Self::canonical(shape, strides, self.offset, None)
            }
            Some(mask) if mask.is_nothing() => {
                let (ndim, strides) = (shape.len(), row_major_strides(&shape));
                Self::canonical(shape, strides, 0, Some(Mask::nothing(ndim)))
            }
            Some(_) => self.reshape_padded(shape),
        }
    }

    /// A reshape that says whether it had to copy.
    ///
    /// # Errors
    /// `Shape` for sizes that do not fit; `NeedsCopy` only under [`CopyPolicy::Never`].
    pub fn reshape_with(&self, sizes: &[isize], policy: CopyPolicy) -> Result<Reshaped, Error> {
        let copied = |layout: &Self| Self::row_major(&layout.infer_shape(sizes)?).map(Reshaped::Copy);
        match policy {
            CopyPolicy::Always => copied(self),
            CopyPolicy::Never => self.reshape(sizes).map(Reshaped::View),
            CopyPolicy::IfNeeded => match self.reshape(sizes) {
                Ok(layout) => Ok(Reshaped::View(layout)),
                Err(Error::NeedsCopy { .. }) => copied(self),
                Err(error) => Err(error),
            },
        }
    }

    /// All axes as one.
    ///
    /// # Errors
    /// `NeedsCopy` where no single stride reads it.
    pub fn flatten(&self) -> Result<Self, Error> {
        self.reshape(&[-1])
    }

    fn reshape_padded(&self, shape: Extents) -> Result<Self, Error> {
        let old = self.valid_box();
        let region = || Error::NeedsCopy {
            axes: [].into(),
            reason: "the positions that are not padding are no box of the new shape".into(),
        };
        // The valid positions, if a box of the new shape, reach from the least to the greatest of them.
        let extremes = match &old {
            Some(ranges) => Some((self.ravel(ranges, true), self.ravel(ranges, false), mask::volume(ranges))),
            None => self.valid_extremes(),
        };
        let Some((first, last, count)) = extremes else { return Err(region()) };
        let (low, high) = (unravel(first, &shape), unravel(last, &shape));
        let mut ranges: Vec<Range<usize>> = Vec::with_capacity(shape.len());
        for (&low, &high) in low.iter().zip(&high) {
            if high < low {
                return Err(region());
            }
            ranges.push(low..high + 1);
        }
        if mask::volume(&ranges) != count {
            return Err(region());
        }
        let strides = match &old {
            Some(old) => {
                if walk(old, &self.shape) != walk(&ranges, &shape) {
                    return Err(region());
                }
                regroup(&mask::extents(old), &self.strides, &mask::extents(&ranges))
                    .map_err(needs_copy(&self.shape))?
            }
            None => self.strides_by_reading(&shape, &ranges).ok_or_else(region)?,
        };
        self.boxed(shape, &strides, &ranges, first)
    }

    /// The layout over `shape` that reads `ranges` with `strides`, and reads at the corner of the box what
    /// this one reads at position `first`.
    fn boxed(
        &self,
        shape: Extents,
        strides: &[isize],
        ranges: &[Range<usize>],
        first: usize,
    ) -> Result<Self, Error> {
        let index = self.unravel(first);
        let corner: i128 = self.offset as i128
            + index.iter().zip(&self.strides).map(|(&i, &s)| i as i128 * s as i128).sum::<i128>();
        // One valid position: its stride has no say, 0 keeps the offset an index of the buffer.
        let strides: Strides =
            strides.iter().zip(ranges).map(|(&s, r)| if r.len() == 1 { 0 } else { s }).collect();
        let back: i128 = ranges.iter().zip(&strides).map(|(r, &s)| r.start as i128 * s as i128).sum();
        let offset = isize::try_from(corner - back).map_err(|_| Error::Overflow { what: "the offset" })?;
        let wide = ranges.iter().enumerate().map(|(axis, range)| {
            let mut coefficients: smallvec::SmallVec<[i128; 6]> = smallvec::smallvec![0; shape.len()];
            coefficients[axis] = 1;
            mask::Wide { coefficients, low: range.start as i128, high: range.end as i128 }
        });
        let mask = Mask::from_wide(wide.collect::<Vec<_>>(), &shape)?;
        Self::canonical(shape, strides, offset, Some(mask))
    }

    fn valid_box(&self) -> Option<Vec<Range<usize>>> {
        self.mask().and_then(|mask| mask.as_box(&self.shape))
    }

    /// Position number of the first (or last) corner of a box.
    fn ravel(&self, ranges: &[Range<usize>], first: bool) -> usize {
        ranges
            .iter()
            .zip(&self.shape)
            .fold(0, |k, (range, &extent)| k * extent + if first { range.start } else { range.end - 1 })
    }

    /// First and last valid position, and how many there are, of a mask that is no box.
    fn valid_extremes(&self) -> Option<(usize, usize, usize)> {
        let mut found: Option<(usize, usize, usize)> = None;
        self.valid_boxes(&mut |ranges| {
            let (first, last) = (self.ravel(ranges, true), self.ravel(ranges, false));
            let (f, l, n) = found.unwrap_or((first, last, 0));
            found = Some((f.min(first), l.max(last), n + mask::volume(ranges)));
            ControlFlow::Continue(())
        });
        found
    }

    /// Strides over the box `ranges` of `shape` that read what this layout reads, found by reading: the
    /// mask is no box here, so that only looking at every position of the candidate decides. That costs no
    /// more than the copy that it saves, and happens only where first, last and count already agree.
    fn strides_by_reading(&self, shape: &[usize], ranges: &[Range<usize>]) -> Option<Strides> {
        let read = |index: &[usize]| {
            let k = index.iter().zip(shape).fold(0, |k, (&i, &extent)| k * extent + i);
            self.index_unchecked(&self.unravel(k)).map(|index| index as isize)
        };
        let mut index: Vec<usize> = ranges.iter().map(|range| range.start).collect();
        let corner = read(&index)?;
        let mut strides = Strides::new();
        for (axis, range) in ranges.iter().enumerate() {
            strides.push(0);
            if range.len() > 1 {
                index[axis] += 1;
                strides[axis] = read(&index)? - corner;
                index[axis] -= 1;
            }
        }
        loop {
            let steps: i128 =
                (0..ranges.len()).map(|a| (index[a] - ranges[a].start) as i128 * strides[a] as i128).sum();
            if read(&index)? as i128 != corner as i128 + steps {
                return None;
            }
            let Some(axis) = (0..ranges.len()).rev().find(|&a| index[a] + 1 < ranges[a].end) else {
                return Some(strides);
            };
            index[axis] += 1;
            for inner in axis + 1..ranges.len() {
                index[inner] = ranges[inner].start;
            }
        }
    }
}

/// The set of positions in a box as nested counts and steps, one form for one set: steps that continue each
/// other are joined, so that two boxes of two shapes hold the same positions exactly when this agrees (and
/// their first position does).
fn walk(ranges: &[Range<usize>], shape: &[usize]) -> Vec<(usize, usize)> {
    let mut levels: Vec<(usize, usize)> = Vec::new(); // innermost first: (count, step)
    let mut step = 1;
    for (range, &extent) in ranges.iter().zip(shape).rev() {
        if range.len() > 1 {
            match levels.last_mut() {
                Some((count, inner)) if *count * *inner == step => *count *= range.len(),
                _ => levels.push((range.len(), step)),
            }
        }
        step *= extent;
    }
    levels
}

/// Strides of `new` over memory read as `old` with `strides`; else the first group of old axes that does
/// not walk memory as one axis. Both shapes have the same, non-zero product.
fn regroup(old: &[usize], strides: &[isize], new: &[usize]) -> Result<Strides, Vec<usize>> {
    let kept: Vec<usize> = (0..old.len()).filter(|&axis| old[axis] != 1).collect();
    let mut result: Strides = smallvec::smallvec![0; new.len()];
    let (mut o, mut n) = (0, 0);
    while o < kept.len() {
        let (o_start, n_start) = (o, n);
        let (mut o_size, mut n_size) = (old[kept[o]], 1);
        o += 1;
        while o_size != n_size {
            if o_size < n_size {
                o_size *= old[kept[o]];
                o += 1;
            } else {
                n_size *= new[n];
                n += 1;
            }
        }
        let group = &kept[o_start..o];
        for pair in group.windows(2) {
            let (outer, inner) = (pair[0], pair[1]);
            if strides[outer] as i128 != strides[inner] as i128 * old[inner] as i128 {
                return Err(group.to_vec());
            }
        }
        let mut stride = strides[kept[o - 1]] as i128;
        for axis in (n_start..n).rev() {
            // Below the outermost old stride times its extent, which reaches a checked index (L1); only
            // a unit axis in front, whose stride has no say, may be beyond it.
            result[axis] = isize::try_from(stride).unwrap_or(0);
            stride *= new[axis] as i128;
        }
    }
    // Unit axes at the end take the stride before them, as in NumPy.
    let last = n.checked_sub(1).map_or(1, |axis| result[axis]);
    result[n..].fill(last);
    Ok(result)
}

fn needs_copy(shape: &[usize]) -> impl Fn(Vec<usize>) -> Error {
    move |axes| {
        let named: Vec<String> = axes.iter().map(|a| format!("{a} (extent {})", shape[*a])).collect();
        let reason =
            format!("axes {} cannot be merged, their strides do not continue each other", named.join(", "));
        Error::NeedsCopy { axes: axes.into(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[usize], expr: &str) -> Layout {
        Layout::row_major(shape).unwrap().apply(expr).unwrap()
    }

    #[test]
    fn merging_names_the_axes() {
        let x = layout(&[23, 20, 34, 15], "[:, :17, :32]");
        assert_eq!(x.reshape(&[23, 17, 480]).unwrap().strides(), [10200, 510, 1]);
        match x.reshape(&[32, 15, 23, 17]).unwrap_err() {
            Error::NeedsCopy { axes, .. } => assert_eq!(*axes, [0, 1, 2, 3]),
            other => panic!("{other}"),
        }
        match layout(&[4, 3, 5], ".T").reshape(&[15, 4]).unwrap_err() {
            Error::NeedsCopy { axes, .. } => assert_eq!(*axes, [0, 1]),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn broadcast_and_reversed_axes_merge() {
        assert_eq!(layout(&[1, 1, 3], ".broadcast_to(4, 5, 3)").reshape(&[20, 3]).unwrap().strides(), [0, 1]);
        assert_eq!(layout(&[4, 5], "[::-1, ::-1]").reshape(&[20]).unwrap().strides(), [-1]);
    }

    #[test]
    fn padded_axes_merge_where_the_valid_part_is_a_box() {
        let x = layout(&[1, 3, 1, 5, 3, 1], ".pad((0, 0), (2, 2), (0, 0), (0, 0), (0, 0), (0, 0))");
        let merged = x.reshape(&[1, 1, 1, 105, 1, 1]).unwrap();
        assert_eq!((merged.strides()[3], merged.offset()), (1, -30));
        let reads: Vec<_> = [29, 30, 74, 75].iter().map(|&k| merged.view_at(k).unwrap()).collect();
        assert_eq!(reads, [None, Some(0), Some(44), None]);
        let plain =
            layout(&[2, 5, 5], ".pad((2, 0), (0, 0), (0, 0)).reshape(2, 2, 5, 5).reshape(4, 5, 5)[2:]");
        assert_eq!(plain, Layout::row_major(&[2, 5, 5]).unwrap());
        assert_eq!(layout(&[3, 4], ".pad((0, 0), (1, 1))").flatten().unwrap_err().kind(), "needs_copy");
    }

    #[test]
    fn non_overlapping_windows_of_padding_join_again() {
        let windows = layout(&[6], ".pad((1, 1)).unfold(0, 2, 2)");
        assert_eq!(windows.flatten().unwrap(), layout(&[6], ".pad((1, 1))"));
        // Two windows that share their only valid element: stride 0 reads both.
        let shared = layout(&[1], ".pad((1, 1)).unfold(0, 2, 1)").flatten().unwrap();
        let reads: Vec<_> = (0..4).map(|k| shared.view_at(k).unwrap()).collect();
        assert_eq!(reads, [None, Some(0), Some(0), None]);
    }
}

//! The operations that change how a buffer is read.
//!
//! Each one is an affine substitution of indices: the old index of an axis becomes a constant plus a sum of
//! new indices. [`Layout::substitute`] carries it out on strides and mask alike, so that padding is closed
//! under all of them (rule L7); the operations only decide what is legal and what the new shape is.

use super::{Constraint, Extents, Layout, Mask, Strides, check_shape, mask::Wide};
use crate::Error;
use crate::error::words::counted;
use smallvec::{SmallVec, smallvec};

/// One item of basic indexing, as between Python's square brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Index {
    /// One index (negative from the end); the axis is dropped.
    At(isize),
    /// `start:stop:step` with Python's rules.
    Slice {
        /// First index, or the end that the step starts from.
        start: Option<isize>,
        /// Index before which to stop.
        stop: Option<isize>,
        /// Distance between indices; not 0.
        step: isize,
    },
    /// A new axis of extent 1.
    NewAxis,
    /// As many whole axes as are missing.
    Ellipsis,
}

/// An old index as `start + sum(coefficient * new index)`.
struct Source {
    start: isize,
    terms: SmallVec<[(usize, isize); 2]>,
}

impl Source {
    fn at(start: isize) -> Self {
        Self { start, terms: smallvec![] }
    }
    fn axis(axis: usize) -> Self {
        Self::scaled(0, axis, 1)
    }
    fn scaled(start: isize, axis: usize, step: isize) -> Self {
        Self { start, terms: smallvec![(axis, step)] }
    }
}

/// A Python axis (negative from the end) as a number below `ndim`.
pub(crate) fn resolve_axis(axis: isize, ndim: usize) -> Result<usize, Error> {
    let wrapped = if axis < 0 { axis.checked_add_unsigned(ndim) } else { Some(axis) };
    match wrapped.and_then(|a| usize::try_from(a).ok()).filter(|&a| a < ndim) {
        Some(axis) => Ok(axis),
        None => Err(Error::Axis { axis, ndim, reason: "is out of range" }),
    }
}

/// Several Python axes, none twice.
fn resolve_axes(axes: &[isize], ndim: usize) -> Result<SmallVec<[usize; 6]>, Error> {
    let mut resolved: SmallVec<[usize; 6]> = SmallVec::new();
    for &axis in axes {
        let a = resolve_axis(axis, ndim)?;
        if resolved.contains(&a) {
            return Err(Error::Axis { axis, ndim, reason: "is named twice" });
        }
        resolved.push(a);
    }
    Ok(resolved)
}

/// Python's `slice.indices`: first index and number of indices.
fn slice_range(start: Option<isize>, stop: Option<isize>, step: isize, extent: usize) -> (isize, usize) {
    let n = extent as isize; // fits: check_shape
    let clamp = |index: isize, low: isize, high: isize| {
        let index = if index < 0 { index.saturating_add(n) } else { index };
        index.clamp(low, high)
    };
    let (start, count) = if step > 0 {
        let start = start.map_or(0, |i| clamp(i, 0, n));
        let stop = stop.map_or(n, |i| clamp(i, 0, n));
        (start, if stop > start { (stop - start - 1) / step + 1 } else { 0 })
    } else {
        let start = start.map_or(n - 1, |i| clamp(i, -1, n - 1));
        let stop = stop.map_or(-1, |i| clamp(i, -1, n - 1));
        // A step of isize::MIN has no negation; it reaches one element at most, as isize::MAX does.
        let back = step.checked_neg().unwrap_or(isize::MAX);
        (start, if start > stop { (start - stop - 1) / back + 1 } else { 0 })
    };
    (start, count as usize)
}

impl Layout {
    fn whole(&self) -> Vec<Source> {
        (0..self.ndim()).map(Source::axis).collect()
    }

    /// The layout whose position `j` reads what this one reads at the position that `sources` gives.
    ///
    /// Every reachable old index must lie in its axis; `extra` are further constraints on the new indices.
    fn substitute(&self, shape: Extents, sources: &[Source], extra: Vec<Wide>) -> Result<Self, Error> {
        let numel = check_shape(&shape)?;
        let mut wide = extra;
        for c in self.mask().map_or(&[][..], Mask::constraints) {
            wide.push(substitute_constraint(c, shape.len(), sources));
        }
        let mask = if wide.is_empty() || numel == 0 { None } else { Some(Mask::from_wide(wide, &shape)?) };
        if mask.as_ref().is_some_and(Mask::is_nothing) {
            // Nothing is read: the strides of what was empty have no say, however large they are (L2, L7).
            let strides = smallvec![0; shape.len()];
            return Self::canonical(shape, strides, 0, mask);
        }
        let mut strides: SmallVec<[(i128, i128); 6]> = smallvec![(0, 0); shape.len()];
        let mut offset = self.offset() as i128;
        for (source, (&stride, &raw)) in sources.iter().zip(self.strides().iter().zip(self.raw_strides())) {
            offset += source.start as i128 * stride as i128;
            for &(axis, coefficient) in &source.terms {
                strides[axis].0 += coefficient as i128 * stride as i128;
                strides[axis].1 += coefficient as i128 * raw as i128;
            }
        }
        // Without a second position to reach, a stride has no say (L3, L2): NumPy's is kept if it fits.
        let fit = |(&(stride, raw), &extent): (&(i128, i128), &usize)| match extent <= 1 || numel == 0 {
            true => Ok(isize::try_from(raw).unwrap_or(0)),
            false => isize::try_from(stride).map_err(|_| Error::Overflow { what: "a stride" }),
        };
        let strides = strides.iter().zip(&shape).map(fit).collect::<Result<Strides, _>>()?;
        let offset = match isize::try_from(offset) {
            Ok(offset) => offset,
            Err(_) if numel == 0 => 0,
            Err(_) => return Err(Error::Overflow { what: "the offset" }),
        };
        Self::canonical(shape, strides, offset, mask)
    }

    /// The axes in another order: `permute(&[2, 0, 1])`; negative axes count from the end.
    ///
    /// # Errors
    /// `Axis` for one out of range, `Permutation` unless each axis is named exactly once.
    pub fn permute(&self, axes: &[isize]) -> Result<Self, Error> {
        let ndim = self.ndim();
        let order = axes.iter().map(|&a| resolve_axis(a, ndim)).collect::<Result<Extents, _>>()?;
        let mut target: Extents = smallvec![usize::MAX; ndim];
        for (new, &old) in order.iter().enumerate() {
            target[old] = new;
        }
        if order.len() != ndim || target.contains(&usize::MAX) {
            return Err(Error::Permutation { axes: axes.into(), ndim });
        }
        let shape = order.iter().map(|&old| self.shape()[old]).collect();
        let sources: Vec<Source> = target.iter().map(|&new| Source::axis(new)).collect();
        self.substitute(shape, &sources, Vec::new())
    }

    /// All axes reversed, NumPy's `.T`.
    ///
    /// # Errors
    /// None for a layout that exists; the result type is that of the other operations.
    pub fn t(&self) -> Result<Self, Error> {
        let axes: Vec<isize> = (0..self.ndim() as isize).rev().collect();
        self.permute(&axes)
    }

    /// The last two axes exchanged, NumPy's `.mT`.
    ///
    /// # Errors
    /// `Axis` with fewer than two axes.
    pub fn mt(&self) -> Result<Self, Error> {
        self.transpose(-2, -1)
    }

    /// Two axes exchanged.
    ///
    /// # Errors
    /// `Axis` for one out of range.
    pub fn transpose(&self, axis0: isize, axis1: isize) -> Result<Self, Error> {
        let (a, b) = (resolve_axis(axis0, self.ndim())?, resolve_axis(axis1, self.ndim())?);
        let mut axes: Vec<isize> = (0..self.ndim() as isize).collect();
        axes.swap(a, b);
        self.permute(&axes)
    }

    /// Moves axes to new positions, the others keep their order (NumPy's `moveaxis`).
    ///
    /// # Errors
    /// `Axis` for one out of range or named twice, `Rank` when the lists differ in length.
    pub fn moveaxis(&self, source: &[isize], destination: &[isize]) -> Result<Self, Error> {
        let ndim = self.ndim();
        if source.len() != destination.len() {
            let (got, expected) = (destination.len(), source.len());
            return Err(Error::Rank { what: "moveaxis destinations", got, expected });
        }
        let (from, to) = (resolve_axes(source, ndim)?, resolve_axes(destination, ndim)?);
        let mut rest = (0..ndim).filter(|axis| !from.contains(axis));
        let mut axes: Vec<isize> = Vec::with_capacity(ndim);
        for new in 0..ndim {
            let old = match to.iter().position(|&t| t == new) {
                Some(moved) => from[moved],
                None => rest.next().unwrap_or_default(),
            };
            axes.push(old as isize);
        }
        self.permute(&axes)
    }

    /// Basic indexing with Python's rules: out-of-range slice ends are clamped, a negative step reverses, an
    /// integer drops its axis. An empty slice keeps the stride of its axis, as in NumPy.
    ///
    /// # Errors
    /// `Index` for an integer out of range, too many indices or a second ellipsis; `Step` for a step of 0.
    pub fn slice(&self, items: &[Index]) -> Result<Self, Error> {
        let ndim = self.ndim();
        let used = items.iter().filter(|i| matches!(i, Index::At(_) | Index::Slice { .. })).count();
        if used > ndim {
            let reason = format!(
                "{} for a view of {}: drop {}",
                counted(used, "index"),
                counted(ndim, "axis"),
                used - ndim
            );
            return Err(Error::Indices { reason });
        }
        if items.iter().filter(|i| matches!(i, Index::Ellipsis)).count() > 1 {
            return Err(Error::Indices { reason: "more than one `...`: keep one ellipsis".into() });
        }
        let mut shape = Extents::new();
        let mut sources: Vec<Source> = Vec::with_capacity(ndim);
        let keep = |shape: &mut Extents, sources: &mut Vec<Source>, count: usize| {
            for _ in 0..count {
                shape.push(self.shape()[sources.len()]);
                sources.push(Source::axis(shape.len() - 1));
            }
        };
        for &item in items {
            let axis = sources.len();
            match item {
                Index::NewAxis => shape.push(1),
                Index::Ellipsis => keep(&mut shape, &mut sources, ndim - used),
                Index::At(index) => {
                    let extent = self.shape()[axis];
                    let wrapped = if index < 0 { index.checked_add_unsigned(extent) } else { Some(index) };
                    match wrapped.filter(|&i| i >= 0 && (i as usize) < extent) {
                        Some(i) => sources.push(Source::at(i)),
                        None => return Err(Error::Index { index, axis, extent }),
                    }
                }
                Index::Slice { step: 0, .. } => return Err(Error::Step { axis }),
                Index::Slice { start, stop, step } => {
                    let (first, count) = slice_range(start, stop, step, self.shape()[axis]);
                    let (first, step) = if count == 0 { (0, 1) } else { (first, step) };
                    sources.push(Source::scaled(first, shape.len(), step));
                    shape.push(count);
                }
            }
        }
        let rest = ndim - sources.len();
        keep(&mut shape, &mut sources, rest);
        self.substitute(shape, &sources, Vec::new())
    }

    /// Reverses the given axes, all of them when the list is empty.
    ///
    /// # Errors
    /// `Axis` for one out of range or named twice.
    pub fn flip(&self, axes: &[isize]) -> Result<Self, Error> {
        let flipped = resolve_axes(axes, self.ndim())?;
        let mut sources = self.whole();
        for (axis, source) in sources.iter_mut().enumerate() {
            let extent = self.shape()[axis];
            if extent > 0 && (axes.is_empty() || flipped.contains(&axis)) {
                *source = Source::scaled(extent as isize - 1, axis, -1);
            }
        }
        self.substitute(self.shape().into(), &sources, Vec::new())
    }

    /// Stretches axes of extent 1 (stride 0) and adds axes in front.
    ///
    /// # Errors
    /// `Broadcast` naming the axis that forbids it.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Self, Error> {
        let refuse = |reason: String| {
            let to = shape.iter().map(|&extent| isize::try_from(extent).unwrap_or(isize::MAX)).collect();
            Error::Broadcast { from: self.shape().into(), to, reason }
        };
        let Some(added) = shape.len().checked_sub(self.ndim()) else {
            return Err(refuse(format!("the target needs at least {}", counted(self.ndim(), "axis"))));
        };
        let mut sources = Vec::with_capacity(self.ndim());
        for (axis, &extent) in self.shape().iter().enumerate() {
            let target = shape[axis + added];
            if extent == 1 {
                sources.push(Source::at(0));
            } else if extent == target {
                sources.push(Source::axis(axis + added));
            } else {
                return Err(refuse(format!("axis {axis} has extent {extent}, not 1 or {target}")));
            }
        }
        self.substitute(shape.into(), &sources, Vec::new())
    }

    /// As [`Layout::broadcast_to`], with −1 for "as it is" (PyTorch's `expand`).
    ///
    /// # Errors
    /// `Broadcast` naming the axis that forbids it.
    pub fn expand(&self, sizes: &[isize]) -> Result<Self, Error> {
        let added = sizes.len() as isize - self.ndim() as isize;
        let mut shape = Extents::new();
        for (position, &size) in sizes.iter().enumerate() {
            let own = usize::try_from(position as isize - added).ok().map(|axis| self.shape()[axis]);
            shape.push(match (usize::try_from(size), own) {
                (Ok(size), _) => size,
                (Err(_), Some(extent)) if size == -1 => extent,
                _ => {
                    let reason = match size {
                        -1 => format!("-1 at position {position} stands for an axis that does not exist yet"),
                        _ => format!("size {size} at position {position} is negative: -1 keeps an extent"),
                    };
                    return Err(Error::Broadcast { from: self.shape().into(), to: sizes.into(), reason });
                }
            });
        }
        self.broadcast_to(&shape)
    }

    /// A new axis of extent 1 at `axis` (0 to ndim, negative from the end).
    ///
    /// # Errors
    /// `Axis` when out of range, `Rank` above 64 axes.
    pub fn unsqueeze(&self, axis: isize) -> Result<Self, Error> {
        let at = resolve_axis(axis, self.ndim() + 1)?;
        if !self.is_padded() {
            let mut shape: Vec<isize> = self.shape().iter().map(|&extent| extent as isize).collect();
            shape.insert(at, 1);
            return self.reshape(&shape);
        }
        let mut items: Vec<Index> = vec![FULL; self.ndim()];
        items.insert(at, Index::NewAxis);
        self.slice(&items)
    }

    /// Drops the given axes of extent 1, or all of them.
    ///
    /// # Errors
    /// `Axis` for one out of range or named twice, `Squeeze` for one whose extent is not 1.
    pub fn squeeze(&self, axes: Option<&[isize]>) -> Result<Self, Error> {
        let dropped = match axes {
            Some(axes) => resolve_axes(axes, self.ndim())?,
            None => (0..self.ndim()).filter(|&axis| self.shape()[axis] == 1).collect(),
        };
        for &axis in &dropped {
            if self.shape()[axis] != 1 {
                return Err(Error::Squeeze { axis, extent: self.shape()[axis] });
            }
        }
        let items: Vec<Index> =
            (0..self.ndim()).map(|a| if dropped.contains(&a) { Index::At(0) } else { FULL }).collect();
        self.slice(&items)
    }

    /// Padded positions before and after each axis: one pair per axis (rule L7).
    ///
    /// # Errors
    /// `Pad` for a wrong number of pairs, `Overflow` when an extent does not fit.
    pub fn pad(&self, widths: &[(usize, usize)]) -> Result<Self, Error> {
        if widths.len() != self.ndim() {
            let reason = format!(
                "{} for {}: give one pair per axis",
                counted(widths.len(), "pad pair"),
                counted(self.ndim(), "axis")
            );
            return Err(Error::Pad { reason });
        }
        let mut shape = Extents::new();
        let mut sources = Vec::with_capacity(self.ndim());
        let mut extra = Vec::new();
        for (axis, (&(before, after), &extent)) in widths.iter().zip(self.shape()).enumerate() {
            let overflow = Error::Overflow { what: "a padded extent" };
            let padded = before.checked_add(extent).and_then(|n| n.checked_add(after));
            let padded = padded.filter(|&n| n <= isize::MAX as usize).ok_or(overflow)?;
            shape.push(padded);
            sources.push(Source::scaled(-(before as isize), axis, 1));
            if padded != extent {
                let mut coefficients: SmallVec<[i128; 6]> = smallvec![0; self.ndim()];
                coefficients[axis] = 1;
                extra.push(Wide { coefficients, low: before as i128, high: (before + extent) as i128 });
            }
        }
        self.substitute(shape, &sources, extra)
    }

    /// Keeps `from..to` of each axis: one pair per axis.
    ///
    /// # Errors
    /// `Shrink` for a wrong number of pairs or a range that leaves its axis.
    pub fn shrink(&self, ranges: &[(usize, usize)]) -> Result<Self, Error> {
        if ranges.len() != self.ndim() {
            let reason = format!(
                "{} for {}: give one pair per axis",
                counted(ranges.len(), "range"),
                counted(self.ndim(), "axis")
            );
            return Err(Error::Shrink { reason });
        }
        let mut items = Vec::with_capacity(self.ndim());
        for (axis, (&(from, to), &extent)) in ranges.iter().zip(self.shape()).enumerate() {
            if from > to || to > extent {
                let reason = format!(
                    "range ({from}, {to}) leaves axis {axis} of extent {extent}: use 0 <= from <= to <= {extent}"
                );
                return Err(Error::Shrink { reason });
            }
            items.push(Index::Slice { start: Some(from as isize), stop: Some(to as isize), step: 1 });
        }
        self.slice(&items)
    }

    /// Sliding windows of `size` every `step` along `axis`; the window becomes the last axis.
    ///
    /// # Errors
    /// `Axis` when out of range; `Window` unless `1 <= size <= extent` and `step >= 1`.
    pub fn unfold(&self, axis: isize, size: isize, step: isize) -> Result<Self, Error> {
        let axis = resolve_axis(axis, self.ndim())?;
        let extent = self.shape()[axis];
        let refuse = |reason| Err(Error::Window { size, step, axis, extent, reason });
        if step < 1 {
            return refuse("the step must be at least 1");
        }
        if size < 1 || size as usize > extent {
            return refuse("the window must be at least 1 and at most the extent");
        }
        let mut shape: Extents = self.shape().into();
        shape[axis] = (extent - size as usize) / step as usize + 1;
        shape.push(size as usize);
        let mut sources = self.whole();
        sources[axis] = Source { start: 0, terms: smallvec![(axis, step), (self.ndim(), 1)] };
        self.substitute(shape, &sources, Vec::new())
    }

    /// The diagonal of two axes, which becomes the last axis; `offset` above (positive) or below it.
    ///
    /// # Errors
    /// `Axis` when one is out of range or both are the same.
    pub fn diagonal(&self, offset: isize, axis1: isize, axis2: isize) -> Result<Self, Error> {
        let ndim = self.ndim();
        let (a, b) = (resolve_axis(axis1, ndim)?, resolve_axis(axis2, ndim)?);
        if a == b {
            return Err(Error::Axis {
                axis: axis2,
                ndim,
                reason: "is named twice: a diagonal needs two axes",
            });
        }
        let down = if offset < 0 { offset.unsigned_abs() } else { 0 };
        let right = if offset > 0 { offset.unsigned_abs() } else { 0 };
        let (rows, columns) = (self.shape()[a], self.shape()[b]);
        let length = rows.saturating_sub(down).min(columns.saturating_sub(right));
        let mut shape = Extents::new();
        let mut sources = self.whole();
        for axis in (0..ndim).filter(|&axis| axis != a && axis != b) {
            sources[axis] = Source::axis(shape.len());
            shape.push(self.shape()[axis]);
        }
        let (down, right) = if length == 0 { (0, 0) } else { (down as isize, right as isize) };
        sources[a] = Source::scaled(down, shape.len(), 1);
        sources[b] = Source::scaled(right, shape.len(), 1);
        shape.push(length);
        self.substitute(shape, &sources, Vec::new())
    }

    /// Any shape, strides and absolute offset over a buffer of `buffer_len` elements.
    ///
    /// # Errors
    /// `NeedsCopy` on a padded layout (rule L7), `Rank` when the lists differ in length, `Bounds` or
    /// `Overflow` where it leaves the buffer (rules L1 and L2).
    pub fn as_strided(
        &self,
        shape: &[usize],
        strides: &[isize],
        offset: isize,
        buffer_len: usize,
    ) -> Result<Self, Error> {
        if self.is_padded() {
            let reason = "padded positions have no memory, so strides cannot read them".into();
            return Err(Error::NeedsCopy { axes: [].into(), reason });
        }
        let layout = Self::new(shape, strides, offset).map_err(|error| match error {
            Error::Bounds { low, high, .. } => Error::Bounds { low, high, len: buffer_len },
            error => error,
        })?;
        layout.check_bounds(buffer_len)?;
        Ok(layout)
    }
}

const FULL: Index = Index::Slice { start: None, stop: None, step: 1 };

fn substitute_constraint(c: &Constraint, ndim: usize, sources: &[Source]) -> Wide {
    let mut wide = Wide { coefficients: smallvec![0; ndim], low: c.low as i128, high: c.high as i128 };
    for (source, &k) in sources.iter().zip(&c.coefficients) {
        let start = source.start as i128 * k as i128;
        (wide.low, wide.high) = (wide.low - start, wide.high - start);
        for &(axis, coefficient) in &source.terms {
            wide.coefficients[axis] += coefficient as i128 * k as i128;
        }
    }
    wide
}

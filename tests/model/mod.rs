//! A naive model of the layout algebra: a view is its shape and, for every position in row-major order, the
//! buffer index that it reads (`None` where it is padded). Every operation is written over that list and
//! shares nothing with the library but the `Op` type; whether a reshape is a view is decided by looking for
//! strides among the indices. Shared by the property tests, the exhaustive tests and the fuzz targets.
#![allow(dead_code)] // each of them uses its part

use restride::expr::Op;
use restride::layout::Index;
use std::collections::{BTreeMap, BTreeSet};

pub mod check;
pub mod choices;
#[cfg(feature = "npy")]
pub mod eval;

/// Views with more positions than this are not modelled.
pub const MAX_CELLS: usize = 4096;

/// Why the model refuses: the library's error kind.
pub type Refused = &'static str;
/// The model gives no verdict: the result is too large to list.
pub const TOO_LARGE: Refused = "too large for the model";

/// A view as a list of what it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    pub shape: Vec<usize>,
    pub cells: Vec<Option<usize>>,
    /// Elements in the buffer.
    pub buffer_len: usize,
}

/// Number of positions, or `TOO_LARGE`.
fn count(shape: &[usize]) -> Result<usize, Refused> {
    if shape.len() > 64 {
        return Err("rank");
    }
    let mut product: u128 = 1;
    for &extent in shape.iter().filter(|&&extent| extent > 0) {
        product = product.saturating_mul(extent as u128);
    }
    if product > MAX_CELLS as u128 {
        return Err(TOO_LARGE);
    }
    Ok(if shape.contains(&0) { 0 } else { product as usize })
}

/// Calls `each` for all indices of a shape in row-major order.
pub fn each_index(shape: &[usize], mut each: impl FnMut(&[usize])) {
    if shape.contains(&0) {
        return;
    }
    let mut index = vec![0; shape.len()];
    loop {
        each(&index);
        let Some(axis) = (0..shape.len()).rev().find(|&axis| index[axis] + 1 < shape[axis]) else { return };
        index[axis] += 1;
        index[axis + 1..].fill(0);
    }
}

fn ravel(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |k, (&i, &extent)| k * extent + i)
}

/// A Python axis.
fn axis(given: isize, ndim: usize) -> Result<usize, Refused> {
    let wrapped = if given < 0 { given as i128 + ndim as i128 } else { given as i128 };
    if (0..ndim as i128).contains(&wrapped) { Ok(wrapped as usize) } else { Err("axis") }
}

fn distinct_axes(given: &[isize], ndim: usize) -> Result<Vec<usize>, Refused> {
    let mut axes = Vec::new();
    for &a in given {
        let a = axis(a, ndim)?;
        if axes.contains(&a) {
            return Err("axis");
        }
        axes.push(a);
    }
    Ok(axes)
}

/// The indices that a Python slice names, one after the other.
pub fn python_slice(start: Option<isize>, stop: Option<isize>, step: isize, extent: usize) -> Vec<usize> {
    let n = extent as i128;
    let (least, most) = if step > 0 { (0, n) } else { (-1, n - 1) };
    let bound = |given: Option<isize>, missing: i128| match given {
        None => missing,
        Some(i) if i < 0 => (i as i128 + n).max(least),
        Some(i) => (i as i128).min(most),
    };
    let mut at = bound(start, if step > 0 { least } else { most });
    let end = bound(stop, if step > 0 { most } else { least });
    let mut named = Vec::new();
    while if step > 0 { at < end } else { at > end } {
        named.push(at as usize);
        at += step as i128;
    }
    named
}

/// Whether some strides read `cells` over `shape` (rules L6 and L7), by trying the only candidates.
pub fn strides_exist(shape: &[usize], cells: &[Option<usize>]) -> bool {
    let mut corner = None;
    let mut span = vec![(usize::MAX, 0); shape.len()];
    each_index(shape, |index| {
        if cells[ravel(index, shape)].is_some() {
            corner.get_or_insert_with(|| index.to_vec());
            span.iter_mut().zip(index).for_each(|(span, &i)| *span = (span.0.min(i), span.1.max(i)));
        }
    });
    let Some(corner) = corner else { return true };
    // The valid positions must fill the box that they span.
    let valid = cells.iter().flatten().count();
    if span.iter().map(|(low, high)| high - low + 1).product::<usize>() != valid {
        return false;
    }
    let read = |index: &[usize]| cells[ravel(index, shape)].map(|cell| cell as i128);
    let origin = read(&corner).unwrap();
    let mut strides = vec![0; shape.len()];
    for a in 0..shape.len() {
        if span[a].1 > span[a].0 {
            let mut next = corner.clone();
            next[a] += 1;
            strides[a] = read(&next).unwrap() - origin;
        }
    }
    let mut all = true;
    each_index(shape, |index| {
        if let Some(cell) = read(index) {
            let steps: i128 = (0..shape.len()).map(|a| (index[a] - corner[a]) as i128 * strides[a]).sum();
            all &= cell == origin + steps;
        }
    });
    all
}

impl Model {
    /// A contiguous buffer read in order.
    pub fn row_major(shape: &[usize]) -> Self {
        let n = count(shape).unwrap();
        Self { shape: shape.to_vec(), cells: (0..n).map(Some).collect(), buffer_len: n }
    }

    pub fn is_padded(&self) -> bool {
        self.cells.contains(&None)
    }

    pub fn is_contiguous(&self) -> bool {
        let first = self.cells.first().copied().flatten().unwrap_or(0);
        self.cells.iter().enumerate().all(|(k, cell)| *cell == Some(first + k))
    }

    /// The indices that are read, each once, in order.
    pub fn reads(&self) -> Vec<usize> {
        let mut reads: Vec<usize> = self.cells.iter().copied().flatten().collect();
        reads.sort_unstable();
        reads.dedup();
        reads
    }

    pub fn self_overlaps(&self) -> bool {
        self.reads().len() < self.cells.iter().flatten().count()
    }

    pub fn shares_memory(&self, other: &Self) -> bool {
        let theirs = other.reads();
        self.reads().iter().any(|index| theirs.binary_search(index).is_ok())
    }

    /// Bytes read of each line, by line number.
    pub fn bytes_per_line(&self, size: usize, line: usize) -> BTreeMap<usize, usize> {
        let mut lines = BTreeMap::new();
        for index in self.reads() {
            let (from, to) = (index * size, (index + 1) * size);
            for number in from / line..to.div_ceil(line) {
                let inside = to.min((number + 1) * line) - from.max(number * line);
                *lines.entry(number).or_default() += inside;
            }
        }
        lines
    }

    /// The view whose position `index` reads what this one reads at the index that `find(index, old)` leaves in
    /// `old`; `None` is padding.
    fn gather(
        &self,
        shape: Vec<usize>,
        find: impl Fn(&[usize], &mut [usize]) -> Option<()>,
    ) -> Result<Self, Refused> {
        let mut cells = Vec::with_capacity(count(&shape)?);
        let mut old = vec![0; self.shape.len()];
        each_index(&shape, |index| {
            let there = find(index, &mut old);
            cells.push(there.and_then(|()| self.cells[ravel(&old, &self.shape)]));
        });
        Ok(Self { shape, cells, buffer_len: self.buffer_len })
    }

    /// Another order of the axes: new axis `k` is old axis `order[k]`.
    fn permuted(&self, order: &[usize]) -> Result<Self, Refused> {
        let shape = order.iter().map(|&a| self.shape[a]).collect();
        self.gather(shape, |index, old| {
            order.iter().zip(index).for_each(|(&a, &i)| old[a] = i);
            Some(())
        })
    }

    /// The view after one operation.
    pub fn apply(&self, op: &Op) -> Result<Self, Refused> {
        let ndim = self.shape.len();
        match op {
            Op::Index(items) => self.index(items),
            Op::T => self.permuted(&(0..ndim).rev().collect::<Vec<_>>()),
            Op::Mt => self.apply(&Op::Transpose(-2, -1)),
            Op::Transpose(a, b) => {
                let mut order: Vec<usize> = (0..ndim).collect();
                order.swap(axis(*a, ndim)?, axis(*b, ndim)?);
                self.permuted(&order)
            }
            Op::Permute(axes) => {
                let order = axes.iter().map(|&a| axis(a, ndim)).collect::<Result<Vec<_>, _>>()?;
                let named: BTreeSet<usize> = order.iter().copied().collect();
                if named.len() != ndim || order.len() != ndim {
                    return Err("permutation");
                }
                self.permuted(&order)
            }
            Op::Moveaxis(from, to) => {
                if from.len() != to.len() {
                    return Err("rank");
                }
                let (from, to) = (distinct_axes(from, ndim)?, distinct_axes(to, ndim)?);
                // As NumPy does it: the axes that stay, then each moved one inserted in order of its target.
                let mut order: Vec<usize> = (0..ndim).filter(|a| !from.contains(a)).collect();
                let mut moves: Vec<(usize, usize)> = to.into_iter().zip(from).collect();
                moves.sort_unstable();
                for (at, a) in moves {
                    order.insert(at, a);
                }
                self.permuted(&order)
            }
            Op::Reshape(sizes) | Op::View(sizes) => self.reshape(sizes),
            Op::Flatten => self.reshape(&[-1]),
            Op::Contiguous if self.is_contiguous() => Ok(self.clone()),
            Op::Contiguous => Err("needs_copy"),
            Op::BroadcastTo(sizes) => {
                if sizes.iter().any(|&size| size < 0) {
                    return Err("broadcast");
                }
                self.broadcast(sizes.iter().map(|&size| size as usize).collect())
            }
            Op::Expand(sizes) => {
                let added = sizes.len() as isize - ndim as isize;
                let own = |position: usize| {
                    let a = position as isize - added;
                    if a >= 0 { self.shape.get(a as usize).copied() } else { None }
                };
                let mut shape = Vec::new();
                for (position, &size) in sizes.iter().enumerate() {
                    shape.push(match size {
                        -1 => own(position).ok_or("broadcast")?,
                        _ => usize::try_from(size).map_err(|_| "broadcast")?,
                    });
                }
                self.broadcast(shape)
            }
            Op::Unsqueeze(at) => {
                let at = axis(*at, ndim + 1)?;
                let mut shape = self.shape.clone();
                shape.insert(at, 1);
                count(&shape)?;
                Ok(Self { shape, ..self.clone() })
            }
            Op::Squeeze(axes) => {
                let dropped = match axes {
                    Some(axes) => distinct_axes(axes, ndim)?,
                    None => (0..ndim).filter(|&a| self.shape[a] == 1).collect(),
                };
                if dropped.iter().any(|&a| self.shape[a] != 1) {
                    return Err("squeeze");
                }
                let shape = (0..ndim).filter(|a| !dropped.contains(a)).map(|a| self.shape[a]).collect();
                Ok(Self { shape, ..self.clone() })
            }
            Op::Flip(axes) => {
                let all: Vec<isize> = (0..ndim as isize).collect();
                let flipped = distinct_axes(axes.as_deref().unwrap_or(&all), ndim)?;
                self.gather(self.shape.clone(), |index, old| {
                    for (a, &i) in index.iter().enumerate() {
                        old[a] = if flipped.contains(&a) { self.shape[a] - 1 - i } else { i };
                    }
                    Some(())
                })
            }
            Op::Pad { widths, .. } => {
                if widths.len() != ndim || widths.iter().any(|&(a, b)| a < 0 || b < 0) {
                    return Err("pad");
                }
                let mut shape = Vec::new();
                for (&(before, after), &extent) in widths.iter().zip(&self.shape) {
                    let padded = before as u128 + extent as u128 + after as u128;
                    shape.push(usize::try_from(padded).ok().filter(|&n| n < 1 << 62).ok_or(TOO_LARGE)?);
                }
                self.gather(shape, |index, old| {
                    for a in 0..ndim {
                        let inner = index[a].checked_sub(widths[a].0 as usize)?;
                        old[a] = Some(inner).filter(|&i| i < self.shape[a])?;
                    }
                    Some(())
                })
            }
            Op::Shrink(ranges) => {
                if ranges.len() != ndim {
                    return Err("shrink");
                }
                let mut shape = Vec::new();
                for (&(from, to), &extent) in ranges.iter().zip(&self.shape) {
                    if from < 0 || to < from || to as usize > extent {
                        return Err("shrink");
                    }
                    shape.push((to - from) as usize);
                }
                self.gather(shape, |index, old| {
                    (0..ndim).for_each(|a| old[a] = index[a] + ranges[a].0 as usize);
                    Some(())
                })
            }
            Op::Unfold(a, size, step) => {
                let a = axis(*a, ndim)?;
                if *step < 1 || *size < 1 || *size as usize > self.shape[a] {
                    return Err("window");
                }
                let (size, step) = (*size as usize, *step as usize);
                let mut shape = self.shape.clone();
                shape[a] = (0..self.shape[a]).step_by(step).filter(|at| at + size <= self.shape[a]).count();
                shape.push(size);
                self.gather(shape, |index, old| {
                    old.copy_from_slice(&index[..ndim]);
                    old[a] = index[a] * step + index[ndim];
                    Some(())
                })
            }
            Op::Diagonal(offset, a, b) => {
                let (a, b) = (axis(*a, ndim)?, axis(*b, ndim)?);
                if a == b {
                    return Err("axis");
                }
                let offset = *offset as i128;
                let on: Vec<(usize, usize)> = (0..self.shape[a])
                    .map(|i| (i, i as i128 + offset))
                    .filter(|&(_, j)| j >= 0 && j < self.shape[b] as i128)
                    .map(|(i, j)| (i, j as usize))
                    .collect();
                let rest: Vec<usize> = (0..ndim).filter(|&c| c != a && c != b).collect();
                let mut shape: Vec<usize> = rest.iter().map(|&c| self.shape[c]).collect();
                shape.push(on.len());
                self.gather(shape, |index, old| {
                    rest.iter().zip(index).for_each(|(&c, &i)| old[c] = i);
                    (old[a], old[b]) = on[index[rest.len()]];
                    Some(())
                })
            }
            Op::AsStrided { shape, strides, offset } => self.as_strided(shape, strides, *offset),
            // What no shape would take: index lists and masks, and numbers beyond the address space.
            Op::Refused(restride::Error::Overflow { .. }) => Err("overflow"),
            Op::Refused(_) => Err("index"),
            other => panic!("the model does not know {other:?}"),
        }
    }

    fn index(&self, items: &[Index]) -> Result<Self, Refused> {
        let ndim = self.shape.len();
        let used = items.iter().filter(|i| matches!(i, Index::At(_) | Index::Slice { .. })).count();
        let dots = items.iter().filter(|i| matches!(i, Index::Ellipsis)).count();
        if used > ndim || dots > 1 {
            return Err("index");
        }
        let whole = Index::Slice { start: None, stop: None, step: 1 };
        let mut full = Vec::new();
        for &item in items {
            match item {
                Index::Ellipsis => full.extend(vec![whole; ndim - used]),
                _ => full.push(item),
            }
        }
        if dots == 0 {
            full.extend(vec![whole; ndim - used]);
        }
        // Per old axis the indices it may take, and whether it stays.
        let (mut shape, mut taken) = (Vec::new(), Vec::new());
        for item in &full {
            let a = taken.len();
            match *item {
                Index::NewAxis => shape.push(1),
                Index::At(i) => {
                    let i = if i < 0 { i as i128 + self.shape[a] as i128 } else { i as i128 };
                    if i < 0 || i >= self.shape[a] as i128 {
                        return Err("index");
                    }
                    taken.push((vec![i as usize], None));
                }
                Index::Slice { step: 0, .. } => return Err("step"),
                Index::Slice { start, stop, step } => {
                    let named = python_slice(start, stop, step, self.shape[a]);
                    shape.push(named.len());
                    taken.push((named, Some(shape.len() - 1)));
                }
                Index::Ellipsis => unreachable!("expanded above"),
                other => panic!("the model does not know {other:?}"),
            }
        }
        self.gather(shape, |index, old| {
            for (old, (named, at)) in old.iter_mut().zip(&taken) {
                *old = named[at.map_or(0, |at| index[at])];
            }
            Some(())
        })
    }

    fn broadcast(&self, shape: Vec<usize>) -> Result<Self, Refused> {
        let ndim = self.shape.len();
        let Some(added) = shape.len().checked_sub(ndim) else { return Err("broadcast") };
        if (0..ndim).any(|a| self.shape[a] != 1 && self.shape[a] != shape[a + added]) {
            return Err("broadcast");
        }
        self.gather(shape, |index, old| {
            (0..ndim).for_each(|a| old[a] = if self.shape[a] == 1 { 0 } else { index[a + added] });
            Some(())
        })
    }

    fn reshape(&self, sizes: &[isize]) -> Result<Self, Refused> {
        let unknown = sizes.iter().filter(|&&size| size == -1).count();
        if unknown > 1 || sizes.iter().any(|&size| size < -1) {
            return Err("shape");
        }
        if sizes.len() - unknown > 64 {
            return Err("rank");
        }
        let known: u128 = sizes
            .iter()
            .filter(|&&size| size != -1)
            .fold(1, |product: u128, &size| product.saturating_mul(size as u128));
        let have = self.cells.len() as u128;
        let shape: Vec<usize> = match unknown {
            0 if known == have => sizes.iter().map(|&size| size as usize).collect(),
            1 if known > 0 && have.is_multiple_of(known) => sizes
                .iter()
                .map(|&size| if size == -1 { (have / known) as usize } else { size as usize })
                .collect(),
            _ => {
                // A shape that no memory holds is an overflow before it is a mismatch.
                let sizes: Vec<usize> = sizes.iter().filter(|&&s| s > 0).map(|&s| s as usize).collect();
                return Err(match count(&sizes) {
                    Err(TOO_LARGE) => TOO_LARGE,
                    _ => "shape",
                });
            }
        };
        count(&shape)?;
        let result = Self { shape, ..self.clone() };
        // The shape that is there already asks for nothing.
        let asked = !self.cells.is_empty() && result.shape != self.shape;
        if asked && !strides_exist(&result.shape, &self.cells) {
            return Err("needs_copy");
        }
        Ok(result)
    }

    fn as_strided(&self, shape: &[isize], strides: &[isize], offset: isize) -> Result<Self, Refused> {
        if shape.iter().any(|&extent| extent < 0) {
            return Err("shape");
        }
        if self.is_padded() {
            return Err("needs_copy");
        }
        let shape: Vec<usize> = shape.iter().map(|&extent| extent as usize).collect();
        if shape.len() != strides.len() {
            return Err("rank");
        }
        count(&shape)?;
        let mut cells: Vec<i128> = Vec::new();
        each_index(&shape, |index| {
            let steps: i128 = index.iter().zip(strides).map(|(&i, &s)| i as i128 * s as i128).sum();
            cells.push(offset as i128 + steps);
        });
        if cells.iter().any(|&at| at > isize::MAX as i128 || at < isize::MIN as i128) {
            return Err(TOO_LARGE);
        }
        if cells.iter().any(|&at| at < 0 || at >= self.buffer_len as i128) {
            return Err("bounds");
        }
        let cells = cells.into_iter().map(|at| Some(at as usize)).collect();
        Ok(Self { shape, cells, buffer_len: self.buffer_len })
    }
}

//! Padding as constraints on the indices (rule L7).
//!
//! A padded position is one that breaks at least one constraint
//! `low <= sum(coefficient[a] * index[a]) < high`. One axis a constraint is the common case: a box. Two
//! and more axes appear when a padded axis is windowed (`index = step * window + inside`).

use super::Extents;
use crate::Error;
use smallvec::SmallVec;
use std::ops::{ControlFlow, Range};

/// One constraint: `low <= sum(coefficients[a] * index[a]) < high`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Constraint {
    /// One coefficient per axis, zero for axes that have no say.
    pub coefficients: SmallVec<[isize; 6]>,
    /// Smallest allowed sum.
    pub low: isize,
    /// One past the largest allowed sum.
    pub high: isize,
}

impl Constraint {
    /// Smallest and largest sum over a box of indices (none of the ranges empty).
    fn span(&self, ranges: &[Range<usize>]) -> (i128, i128) {
        let mut span = (0, 0);
        for (&c, range) in self.coefficients.iter().zip(ranges) {
            let (first, last) = (c as i128 * range.start as i128, c as i128 * (range.end as i128 - 1));
            span = (span.0 + first.min(last), span.1 + first.max(last));
        }
        span
    }

    /// The only axis with a say, when there is just one.
    fn single_axis(&self) -> Option<usize> {
        let mut axes = (0..self.coefficients.len()).filter(|&axis| self.coefficients[axis] != 0);
        let first = axes.next()?;
        axes.next().is_none().then_some(first)
    }
}

/// What a part of a masked layout is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Region {
    /// Every position has memory behind it.
    Valid,
    /// No position has memory behind it: all read the fill value.
    Fill,
}

/// What [`Mask::regions`] calls for each box: one range per axis, and what the box is made of.
pub type Visit<'a> = dyn FnMut(&[Range<usize>], Region) -> ControlFlow<()> + 'a;

/// The constraints that a position must meet to have memory behind it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Mask {
    pub(super) constraints: Vec<Constraint>,
}

/// A constraint on its way to canonical form, in arithmetic that cannot overflow.
#[derive(Clone)]
pub(super) struct Wide {
    pub coefficients: SmallVec<[i128; 6]>,
    pub low: i128,
    pub high: i128,
}

impl From<&Constraint> for Wide {
    fn from(c: &Constraint) -> Self {
        let coefficients = c.coefficients.iter().map(|&c| c as i128).collect();
        Self { coefficients, low: c.low as i128, high: c.high as i128 }
    }
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

fn div_ceil(a: i128, b: i128) -> i128 {
    a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0)
}

impl Wide {
    /// Divides by the common factor, makes the first coefficient positive, clips to what `shape` can
    /// reach. `Ok(None)` when it excludes nothing, `Err(())` when it excludes everything.
    fn normalise(mut self, shape: &[usize]) -> Result<Option<Self>, ()> {
        for (c, &extent) in self.coefficients.iter_mut().zip(shape) {
            if extent == 1 {
                *c = 0;
            }
        }
        let divisor = self.coefficients.iter().fold(0, |g, &c| gcd(g, c));
        if divisor > 1 {
            self.coefficients.iter_mut().for_each(|c| *c /= divisor);
            self.low = div_ceil(self.low, divisor);
            self.high = div_ceil(self.high, divisor);
        }
        if self.coefficients.iter().find(|&&c| c != 0).is_some_and(|&c| c < 0) {
            self.coefficients.iter_mut().for_each(|c| *c = -*c);
            (self.low, self.high) = (1 - self.high, 1 - self.low);
        }
        let (mut least, mut most) = (0, 0);
        for (&c, &extent) in self.coefficients.iter().zip(shape) {
            let end = c * (extent as i128 - 1);
            least += end.min(0);
            most += end.max(0);
        }
        self.low = self.low.max(least);
        self.high = self.high.min(most + 1);
        if self.low >= self.high {
            return Err(());
        }
        Ok((self.low > least || self.high <= most).then_some(self))
    }

    fn narrow(self) -> Result<Constraint, Error> {
        let fit = |x: i128| isize::try_from(x).map_err(|_| Error::Overflow { what: "a padded extent" });
        let coefficients = self.coefficients.iter().map(|&c| fit(c)).collect::<Result<_, _>>()?;
        Ok(Constraint { coefficients, low: fit(self.low)?, high: fit(self.high)? })
    }
}

impl Mask {
    /// The constraints, each of which every valid position meets.
    pub fn constraints(&self) -> &[Constraint] {
        &self.constraints
    }

    /// Collects constraints that are not canonical yet.
    pub(super) fn from_wide(wide: impl IntoIterator<Item = Wide>, shape: &[usize]) -> Result<Self, Error> {
        let mut kept: Vec<Wide> = Vec::new();
        for constraint in wide {
            match constraint.normalise(shape) {
                Err(()) => return Ok(Self::nothing(shape.len())),
                Ok(None) => {}
                Ok(Some(c)) => match kept.iter_mut().find(|k| k.coefficients == c.coefficients) {
                    Some(k) => (k.low, k.high) = (k.low.max(c.low), k.high.min(c.high)),
                    None => kept.push(c),
                },
            }
        }
        if kept.iter().any(|k| k.low >= k.high) {
            return Ok(Self::nothing(shape.len()));
        }
        let mut constraints = kept.into_iter().map(Wide::narrow).collect::<Result<Vec<_>, _>>()?;
        constraints.sort();
        Ok(Self { constraints })
    }

    /// The mask that allows no position.
    pub(super) fn nothing(ndim: usize) -> Self {
        let coefficients = smallvec::smallvec![0; ndim];
        Self { constraints: vec![Constraint { coefficients, low: 0, high: 0 }] }
    }

    /// Canonical form: `None` when nothing is excluded, one constraint when nothing is valid.
    pub(super) fn canonical(self, shape: &[usize]) -> Result<Option<Self>, Error> {
        let mask = Self::from_wide(self.constraints.iter().map(Wide::from), shape)?;
        if mask.constraints.is_empty() {
            return Ok(None);
        }
        // One-axis constraints that each leave something leave something together; others may not.
        if mask.as_box(shape).is_none() && !mask.allows_any(shape) {
            return Ok(Some(Self::nothing(shape.len())));
        }
        Ok(Some(mask))
    }

    /// Whether no position is valid (canonical masks only).
    pub fn is_nothing(&self) -> bool {
        self.constraints.iter().any(|c| c.low >= c.high)
    }

    /// Whether the position `index` has memory behind it.
    pub fn allows(&self, index: &[usize]) -> bool {
        self.constraints.iter().all(|c| {
            let sum: i128 = c.coefficients.iter().zip(index).map(|(&c, &i)| c as i128 * i as i128).sum();
            (c.low as i128..c.high as i128).contains(&sum)
        })
    }

    /// The valid positions as one range per axis, when every constraint is on one axis.
    pub fn as_box(&self, shape: &[usize]) -> Option<Vec<Range<usize>>> {
        let mut ranges: Vec<Range<usize>> = shape.iter().map(|&extent| 0..extent).collect();
        for c in &self.constraints {
            if self.is_nothing() {
                return None;
            }
            // Canonical: the coefficient of a one-axis constraint is 1 and its range lies in the axis.
            let axis = c.single_axis()?;
            ranges[axis] = ranges[axis].start.max(c.low as usize)..ranges[axis].end.min(c.high as usize);
        }
        Some(ranges)
    }

    fn allows_any(&self, shape: &[usize]) -> bool {
        let found = self.regions(shape, &mut |_, region| match region {
            Region::Valid => ControlFlow::Break(()),
            Region::Fill => ControlFlow::Continue(()),
        });
        found.is_break()
    }

    /// Cuts the index space of `shape` into boxes that are wholly valid or wholly padded; every position
    /// lies in exactly one of them.
    ///
    /// The visitor gets one range per axis. A constraint on several axes is cut along the axis on which the
    /// fewest indices are neither always nor never allowed; those few are visited one by one.
    pub fn regions(&self, shape: &[usize], visit: &mut Visit<'_>) -> ControlFlow<()> {
        let mut ranges: Vec<Range<usize>> = shape.iter().map(|&extent| 0..extent).collect();
        if shape.contains(&0) {
            return ControlFlow::Continue(());
        }
        let all: Vec<&Constraint> = self.constraints.iter().collect();
        cut(&mut ranges, &all, visit)
    }
}

fn cut(
    ranges: &mut Vec<Range<usize>>,
    constraints: &[&Constraint],
    visit: &mut Visit<'_>,
) -> ControlFlow<()> {
    let mut open: Vec<&Constraint> = Vec::with_capacity(constraints.len());
    for &c in constraints {
        let (least, most) = c.span(ranges);
        if most < c.low as i128 || least >= c.high as i128 {
            return visit(ranges, Region::Fill);
        }
        if least < c.low as i128 || most >= c.high as i128 {
            open.push(c);
        }
    }
    let Some((axis, always, possible)) = open
        .iter()
        .flat_map(|c| (0..ranges.len()).filter(|&a| c.coefficients[a] != 0).map(move |a| (*c, a)))
        .filter(|&(_, axis)| ranges[axis].len() > 1)
        .map(|(c, axis)| {
            let (always, possible) = split(c, axis, ranges);
            (possible.len() - always.len(), axis, always, possible)
        })
        .min_by_key(|&(partial, axis, ..)| (partial, axis))
        .map(|(_, axis, always, possible)| (axis, always, possible))
    else {
        return visit(ranges, Region::Valid);
    };
    let whole = ranges[axis].clone();
    let mut part = |range: Range<usize>, ranges: &mut Vec<Range<usize>>| {
        if range.is_empty() {
            return ControlFlow::Continue(());
        }
        ranges[axis] = range;
        cut(ranges, &open, visit)
    };
    part(whole.start..possible.start, ranges)?;
    for i in possible.start..always.start {
        part(i..i + 1, ranges)?;
    }
    part(always.clone(), ranges)?;
    for i in always.end..possible.end {
        part(i..i + 1, ranges)?;
    }
    part(possible.end..whole.end, ranges)?;
    ranges[axis] = whole;
    ControlFlow::Continue(())
}

/// The indices of `axis` that `c` always allows, and those that it allows for some other indices; the
/// first lie inside the second, and both inside the axis's range.
fn split(c: &Constraint, axis: usize, ranges: &[Range<usize>]) -> (Range<usize>, Range<usize>) {
    let k = c.coefficients[axis] as i128;
    let (mut least, mut most) = c.span(ranges);
    let range = &ranges[axis];
    let (first, last) = (k * range.start as i128, k * (range.end as i128 - 1));
    least -= first.min(last);
    most -= first.max(last);
    let (low, high) = (c.low as i128, c.high as i128);
    // k * i + rest in [low, high) with rest in [least, most].
    let within = |from: i128, below: i128| -> Range<usize> {
        // from <= k * i < below
        let (start, end) = if k > 0 {
            (div_ceil(from, k), div_ceil(below, k))
        } else {
            (div_ceil(1 - below, -k), div_ceil(1 - from, -k))
        };
        let clamp = |x: i128| x.clamp(range.start as i128, range.end as i128) as usize;
        let start = clamp(start);
        start..clamp(end).max(start)
    };
    let possible = within(low - most, high - least);
    let always = within(low - least, high - most);
    if always.is_empty() {
        // Keep the two nested: an empty range at the start of the possible one.
        return (possible.end..possible.end, possible);
    }
    (always, possible)
}

/// Volume of a box.
pub(super) fn volume(ranges: &[Range<usize>]) -> usize {
    ranges.iter().map(|range| range.len()).product()
}

/// Extents of a box.
pub(super) fn extents(ranges: &[Range<usize>]) -> Extents {
    ranges.iter().map(|range| range.len()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Layout;

    fn regions_of(layout: &Layout) -> Vec<(Vec<Range<usize>>, Region)> {
        let mut all = Vec::new();
        let _ = layout.mask().unwrap().regions(layout.shape(), &mut |ranges, region| {
            all.push((ranges.to_vec(), region));
            ControlFlow::Continue(())
        });
        all
    }

    /// Every position in exactly one region, of the kind that `allows` gives it.
    fn check(layout: &Layout) -> usize {
        let mut seen = vec![0u8; layout.numel()];
        let regions = regions_of(layout);
        for (ranges, region) in &regions {
            for (k, seen) in seen.iter_mut().enumerate() {
                let index = layout.unravel(k);
                if index.iter().zip(ranges).all(|(i, range)| range.contains(i)) {
                    *seen += 1;
                    assert_eq!(layout.mask().unwrap().allows(&index), *region == Region::Valid);
                }
            }
        }
        assert!(seen.iter().all(|&n| n == 1));
        regions.len()
    }

    #[test]
    fn a_padded_matrix_is_five_boxes() {
        let layout = Layout::row_major(&[3, 4]).unwrap().apply(".pad((1, 1), (2, 2))").unwrap();
        assert_eq!(check(&layout), 5);
    }

    #[test]
    fn im2col_stays_a_handful_of_boxes() {
        let layout = Layout::row_major(&[6, 7]).unwrap();
        let layout = layout.apply(".pad((1, 1), (1, 1)).unfold(0, 3, 1).unfold(1, 3, 1)").unwrap();
        assert!(check(&layout) < 40);
        let strided = Layout::row_major(&[9, 2]).unwrap();
        check(&strided.apply(".pad((2, 1), (0, 0)).unfold(0, 4, 2)[::-1, :, ::-2]").unwrap());
        check(&strided.apply(".pad((2, 1), (1, 0)).unfold(0, 4, 2).diagonal(0, 0, 2)").unwrap());
    }

    #[test]
    fn constraints_merge_and_vanish() {
        let layout = Layout::row_major(&[5]).unwrap();
        let padded = layout.apply(".pad((2, 2))").unwrap();
        assert_eq!(padded.mask().unwrap().constraints().len(), 1);
        assert_eq!(padded.apply("[2:7]").unwrap(), layout);
        let nothing = padded.apply("[:2]").unwrap();
        assert!(nothing.mask().unwrap().is_nothing());
        assert_eq!((nothing.offset(), nothing.strides()), (0, &[0][..]));
    }
}

//! The address stream of a view in row-major logical order, as runs of equal steps.

use crate::layout::{Constraint, Layout};

/// Accesses at `start`, `start + stride`, and so on: `count` of them, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Byte address of the first access.
    pub start: u64,
    /// Bytes from one access to the next.
    pub stride: i64,
    /// Number of accesses.
    pub count: u64,
}

impl Run {
    /// The accesses from number `from` on, `count` of them.
    pub(super) fn part(&self, from: u64, count: u64) -> Run {
        let start = self.start.wrapping_add_signed(self.stride.wrapping_mul(from as i64));
        Run { start, stride: self.stride, count }
    }
}

/// One axis of a walk: its extent and its step in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub extent: usize,
    pub stride: isize,
}

/// What a walk covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// One past the largest valid element index; 0 where nothing is valid.
    pub reach: u64,
    /// Valid elements, repeated ones as often as they are read.
    pub elements: u64,
}

/// The order in which the valid elements of a layout are visited.
#[derive(Debug, Clone)]
pub(super) struct Order {
    axes: Vec<Axis>,
    offset: i128,
    constraints: Vec<Constraint>,
}

impl Order {
    /// Row-major logical order.
    ///
    /// Without a mask, neighbouring axes that step as one are one axis, which keeps the order and
    /// makes the runs longer.
    pub fn logical(layout: &Layout) -> Self {
        let constraints: Vec<_> = layout.mask().map(|m| m.constraints().to_vec()).unwrap_or_default();
        let all =
            layout.shape().iter().zip(layout.strides()).map(|(&extent, &stride)| Axis { extent, stride });
        let axes = if constraints.is_empty() { merged(all) } else { all.collect() };
        Self { axes, offset: layout.offset() as i128, constraints }
    }

    /// How far the walk reaches and how many elements it reads.
    ///
    /// A padded walk is looked at row by row, because the ends of its axes may be padding.
    pub fn span(&self) -> Span {
        let mut span = Span { reach: 0, elements: 0 };
        if self.axes.iter().any(|a| a.extent == 0) {
            return span;
        }
        if self.constraints.is_empty() {
            let up = |a: &Axis| (a.stride.max(0) as i128) * (a.extent as i128 - 1);
            let largest = self.offset + self.axes.iter().map(up).sum::<i128>();
            span.reach = u64::try_from(largest + 1).unwrap_or(u64::MAX);
            span.elements = self.axes.iter().fold(1u64, |n, a| n.saturating_mul(a.extent as u64));
            return span;
        }
        self.for_each(|first, step, count| {
            let last = first.wrapping_add_signed(step as i64 * (count as i64 - 1));
            span.reach = span.reach.max(first.max(last) + 1);
            span.elements += count;
        });
        span
    }

    /// Number of runs and the longest possible run, to judge the work before doing it.
    pub fn rows(&self) -> (u128, Axis) {
        let inner = self.axes.last().copied().unwrap_or(Axis { extent: 1, stride: 0 });
        let outer = &self.axes[..self.axes.len().saturating_sub(1)];
        (outer.iter().fold(1u128, |n, a| n.saturating_mul(a.extent as u128)), inner)
    }

    /// Calls `each(first element index, step in elements, count)` for every run, in order.
    pub fn for_each(&self, mut each: impl FnMut(u64, isize, u64)) {
        if self.axes.iter().any(|a| a.extent == 0) {
            return;
        }
        let (outer, inner) = match self.axes.split_last() {
            Some((last, rest)) => (rest, *last),
            None => (&[][..], Axis { extent: 1, stride: 0 }),
        };
        let mut index = vec![0usize; outer.len()];
        let mut base = self.offset;
        let mut sums = vec![0i128; self.constraints.len()];
        loop {
            let (mut from, mut to) = (0i128, inner.extent as i128);
            for (constraint, &sum) in self.constraints.iter().zip(&sums) {
                let step = constraint.coefficients.last().copied().unwrap_or(0);
                let (low, high) = allowed(constraint, sum, step as i128);
                from = from.max(low);
                to = to.min(high);
            }
            if from < to {
                let first = base + from * inner.stride as i128;
                debug_assert!(first >= 0, "a valid element lies inside its buffer (rule L2)");
                each(first as u64, inner.stride, (to - from) as u64);
            }
            let mut axis = outer.len();
            loop {
                if axis == 0 {
                    return;
                }
                axis -= 1;
                index[axis] += 1;
                let turn = index[axis] == outer[axis].extent;
                let steps = if turn { 1 - outer[axis].extent as i128 } else { 1 };
                base += steps * outer[axis].stride as i128;
                for (constraint, sum) in self.constraints.iter().zip(&mut sums) {
                    *sum += steps * constraint.coefficients[axis] as i128;
                }
                if !turn {
                    break;
                }
                index[axis] = 0;
            }
        }
    }
}

/// Positions `from..to` of the innermost axis at which `low <= sum + step * i < high`.
fn allowed(constraint: &Constraint, sum: i128, step: i128) -> (i128, i128) {
    let (low, high) = (constraint.low as i128 - sum, constraint.high as i128 - sum);
    let ceil = |a: i128, b: i128| a.div_euclid(b) + i128::from(a.rem_euclid(b) != 0);
    match step {
        0 if low <= 0 && 0 < high => (0, i128::MAX),
        0 => (0, 0),
        1 => (low, high),
        2.. => (ceil(low, step), ceil(high, step)),
        // low <= -d*i < high  <=>  -high < d*i <= -low
        _ => ((-high).div_euclid(-step) + 1, (-low).div_euclid(-step) + 1),
    }
}

/// Neighbouring axes that step as one, merged; axes of extent 1 dropped (rule L3).
fn merged(axes: impl Iterator<Item = Axis>) -> Vec<Axis> {
    let mut out: Vec<Axis> = Vec::new();
    for axis in axes.filter(|a| a.extent != 1) {
        match out.last_mut() {
            Some(last) if axis.stride.checked_mul(axis.extent as isize) == Some(last.stride) => {
                match last.extent.checked_mul(axis.extent) {
                    Some(extent) => *last = Axis { extent, stride: axis.stride },
                    None => out.push(axis),
                }
            }
            _ => out.push(axis),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(axes: &[(usize, isize)], offset: isize, constraints: &[(&[isize], isize, isize)]) -> Order {
        Order {
            axes: axes.iter().map(|&(extent, stride)| Axis { extent, stride }).collect(),
            offset: offset as i128,
            constraints: constraints
                .iter()
                .map(|&(c, low, high)| Constraint { coefficients: c.iter().copied().collect(), low, high })
                .collect(),
        }
    }

    fn elements(order: &Order) -> Vec<u64> {
        let mut out = Vec::new();
        order.for_each(|first, step, count| {
            out.extend((0..count).map(|i| first.wrapping_add_signed(step as i64 * i as i64)));
        });
        out
    }

    fn by_definition(order: &Order) -> Vec<u64> {
        let shape: Vec<usize> = order.axes.iter().map(|a| a.extent).collect();
        let numel: usize = shape.iter().product();
        (0..numel)
            .filter_map(|mut k| {
                let mut index = vec![0isize; shape.len()];
                for axis in (0..shape.len()).rev() {
                    index[axis] = (k % shape[axis]) as isize;
                    k /= shape[axis];
                }
                let dot = |c: &[isize]| c.iter().zip(&index).map(|(a, b)| a * b).sum::<isize>();
                let valid = order.constraints.iter().all(|c| (c.low..c.high).contains(&dot(&c.coefficients)));
                let strides: Vec<isize> = order.axes.iter().map(|a| a.stride).collect();
                valid.then(|| (order.offset as isize + dot(&strides)) as u64)
            })
            .collect()
    }

    #[test]
    fn a_run_in_parts_is_the_run() {
        let run = Run { start: 80, stride: -8, count: 11 };
        assert_eq!(run.part(3, 2), Run { start: 56, stride: -8, count: 2 });
    }

    #[test]
    fn a_matrix_and_its_transpose() {
        assert_eq!(elements(&order(&[(2, 3), (3, 1)], 0, &[])), [0, 1, 2, 3, 4, 5]);
        assert_eq!(elements(&order(&[(3, 1), (2, 3)], 0, &[])), [0, 3, 1, 4, 2, 5]);
        assert_eq!(elements(&order(&[], 7, &[])), [7]);
        assert_eq!(elements(&order(&[(3, 1), (0, 2)], 7, &[])), [] as [u64; 0]);
    }

    #[test]
    fn masks_of_every_sign_cut_the_rows() {
        let cases = [
            order(&[(5, 4), (6, 1)], -5, &[(&[1, 0], 1, 4), (&[0, 1], 1, 5)]),
            order(&[(4, 0), (5, 1)], 0, &[(&[1, 1], 2, 6)]),
            order(&[(4, 7), (7, -1)], 6, &[(&[2, -3], -9, 2)]),
            order(&[(3, 10), (2, 5), (5, 1)], 0, &[(&[0, 1, 0], 0, 1), (&[-1, 0, 2], -1, 5)]),
            order(&[(3, 1), (2, 3)], 0, &[(&[0, 0], 1, 2)]),
        ];
        for case in &cases {
            assert_eq!(elements(case), by_definition(case), "{case:?}");
        }
    }

    #[test]
    fn axes_that_step_as_one_merge() {
        let axis = |extent, stride| Axis { extent, stride };
        assert_eq!(merged([axis(2, 12), axis(1, 99), axis(3, 4), axis(4, 1)].into_iter()), [axis(24, 1)]);
        assert_eq!(merged([axis(5, 0), axis(4, 0)].into_iter()), [axis(20, 0)]);
        assert_eq!(merged([axis(4, 1), axis(4, 4)].into_iter()), [axis(4, 1), axis(4, 4)]);
        assert_eq!(merged([axis(4, -3), axis(3, -1)].into_iter()), [axis(12, -1)]);
    }
}

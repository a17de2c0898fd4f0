//! What a layout reaches: its range, overlap inside one layout, overlap between two (exact).
//!
//! Whether strides make two positions meet is the question whether a sum of bounded multiples hits a
//! number: `sum(c[k] * x[k]) = target` with `0 <= x[k] <= bound[k]`. [`has_solution`] decides it exactly,
//! by depth-first search over the largest coefficients with range and divisibility pruning; the last two
//! unknowns are solved at once with Bézout's identity (as NumPy's `solve_diophantine` does).

use super::mask::Region;
use super::{Extents, Layout, Strides};
use crate::Error;
use std::collections::HashSet;
use std::ops::{ControlFlow, Range};

impl Layout {
    /// Smallest and largest buffer index that some position reads; `None` when nothing is read.
    pub fn reachable_range(&self) -> Option<(usize, usize)> {
        // `canonical` checked that both fit (L1).
        self.reachable_wide().map(|(low, high)| (low as usize, high as usize))
    }

    pub(super) fn reachable_wide(&self) -> Option<(i128, i128)> {
        if self.numel == 0 {
            return None;
        }
        let Some(mask) = self.mask() else {
            return Some(self.range_of(self.shape.iter().map(|&extent| 0..extent)));
        };
        if let Some(ranges) = mask.as_box(&self.shape) {
            return Some(self.range_of(ranges.iter().cloned()));
        }
        let mut reach: Option<(i128, i128)> = None;
        self.valid_boxes(&mut |ranges| {
            let (low, high) = self.range_of(ranges.iter().cloned());
            reach = Some(reach.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
            ControlFlow::Continue(())
        });
        reach
    }

    /// Index range of a box of positions, none of whose ranges is empty.
    fn range_of(&self, ranges: impl Iterator<Item = Range<usize>>) -> (i128, i128) {
        let (mut low, mut high) = (self.offset as i128, self.offset as i128);
        for (range, &stride) in ranges.zip(&self.strides) {
            let (first, last) =
                (stride as i128 * range.start as i128, stride as i128 * (range.end as i128 - 1));
            low += first.min(last);
            high += first.max(last);
        }
        (low, high)
    }

    /// Refuses a layout that leaves a buffer of `len` elements (rule L2).
    ///
    /// # Errors
    /// `Bounds` with the indices that it would reach.
    pub fn check_bounds(&self, len: usize) -> Result<(), Error> {
        match self.reachable_range() {
            Some((low, high)) if high >= len => {
                Err(Error::Bounds { low: low as i128, high: high as i128, len })
            }
            _ => Ok(()),
        }
    }

    /// Visits the boxes of positions that have memory behind them.
    pub(super) fn valid_boxes(&self, visit: &mut dyn FnMut(&[Range<usize>]) -> ControlFlow<()>) {
        if self.numel == 0 {
            return;
        }
        match self.mask() {
            None => {
                let whole: Vec<Range<usize>> = self.shape.iter().map(|&extent| 0..extent).collect();
                let _ = visit(&whole);
            }
            Some(mask) => {
                let _ = mask.regions(&self.shape, &mut |ranges, region| match region {
                    Region::Valid => visit(ranges),
                    Region::Fill => ControlFlow::Continue(()),
                });
            }
        }
    }

    /// The layout of one valid box, without mask.
    pub(super) fn part(&self, ranges: &[Range<usize>]) -> Layout {
        let steps: i128 = ranges.iter().zip(&self.strides).map(|(r, &s)| r.start as i128 * s as i128).sum();
        let shape: Extents = super::mask::extents(ranges);
        let strides: Strides =
            self.strides.iter().zip(&shape).map(|(&s, &n)| if n == 1 { 0 } else { s }).collect();
        let numel = super::mask::volume(ranges);
        // A valid box reaches a subset of what `self` reaches, so the offset is an index that fits (L1).
        Layout {
            shape,
            strides,
            offset: (self.offset as i128 + steps) as isize,
            numel,
            mask: None,
            unit: Default::default(),
        }
    }

    /// Whether two positions with memory behind them read the same index (exact, rule L5).
    pub fn self_overlaps(&self) -> bool {
        self.self_overlap().is_some()
    }

    /// As [`Layout::self_overlaps`]: the axis of stride 0 when one repeats, `Some(None)` when several axes
    /// meet, `None` when no two positions share an index.
    pub fn self_overlap(&self) -> Option<Option<usize>> {
        if self.numel == 0 {
            return None;
        }
        match self.mask() {
            None => box_overlap(&self.shape, &self.strides),
            Some(mask) => {
                if let Some(ranges) = mask.as_box(&self.shape) {
                    return box_overlap(&super::mask::extents(&ranges), &self.strides);
                }
                let mut parts: Vec<Layout> = Vec::new();
                let mut found = None;
                self.valid_boxes(&mut |ranges| {
                    let part = self.part(ranges);
                    found = box_overlap(&part.shape, &part.strides)
                        .or_else(|| parts.iter().any(|other| boxes_meet(other, &part)).then_some(None));
                    parts.push(part);
                    if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                found
            }
        }
    }

    /// Whether this layout can be written: not padded, and no two positions share an index (rule L5).
    pub fn is_writable(&self) -> bool {
        !self.is_padded() && !self.self_overlaps()
    }
}

/// Whether the two layouts, over one buffer, read an index in common. Exact (rule L8).
///
/// ```
/// use restride::{Layout, share_memory};
/// let even = Layout::row_major(&[20])?.apply("[::2]")?;
/// let odd = Layout::row_major(&[20])?.apply("[1::2]")?;
/// assert!(!share_memory(&even, &odd));
/// # Ok::<(), restride::Error>(())
/// ```
pub fn share_memory(a: &Layout, b: &Layout) -> bool {
    // The cheap test may only answer "no" (L8).
    let (Some((a_low, a_high)), Some((b_low, b_high))) = (a.reachable_range(), b.reachable_range()) else {
        return false;
    };
    if a_high < b_low || b_high < a_low {
        return false;
    }
    let mut found = false;
    a.valid_boxes(&mut |a_box| {
        let a_part = a.part(a_box);
        b.valid_boxes(&mut |b_box| {
            found = boxes_meet(&a_part, &b.part(b_box));
            if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}

/// Whether two unmasked, non-empty layouts read an index in common.
fn boxes_meet(a: &Layout, b: &Layout) -> bool {
    // a.offset + sum(s i) = b.offset + sum(t j); reversed axes are turned round to make every sign positive.
    let mut target = b.offset as i128 - a.offset as i128;
    let mut terms: Vec<(i128, i128)> = Vec::new();
    let sides = [(a, 1i128), (b, -1i128)];
    for (layout, sign) in sides {
        for (&extent, &stride) in layout.shape.iter().zip(&layout.strides) {
            let (c, bound) = (stride as i128 * sign, extent as i128 - 1);
            if c < 0 {
                target -= c * bound;
            }
            terms.push((c.abs(), bound));
        }
    }
    has_solution(terms, target)
}

fn box_overlap(shape: &[usize], strides: &[isize]) -> Option<Option<usize>> {
    let mut axes: Vec<(i128, i128)> = Vec::new();
    for (axis, (&extent, &stride)) in shape.iter().zip(strides).enumerate() {
        if extent > 1 && stride == 0 {
            return Some(Some(axis));
        }
        if extent > 1 {
            axes.push(((stride as i128).abs(), extent as i128 - 1));
        }
    }
    axes.sort_unstable_by(|a, b| b.cmp(a));
    // Two positions that differ first (largest stride first) in axis k by d >= 1: d * s[k] plus what the
    // smaller strides differ by, -bound..=bound each, is zero. Shifted to start at 0.
    for k in 0..axes.len() {
        let (stride, bound) = axes[k];
        let rest = &axes[k + 1..];
        let reach: i128 = rest.iter().map(|&(s, bound)| s * bound).sum();
        if stride > reach {
            continue;
        }
        let mut terms: Vec<(i128, i128)> = rest.iter().map(|&(s, bound)| (s, 2 * bound)).collect();
        terms.push((stride, bound - 1));
        if has_solution(terms, reach - stride) {
            return Some(None);
        }
    }
    None
}

/// Whether `sum(c * x) = target` for integers `0 <= x <= bound`, given (c, bound) pairs, none negative.
fn has_solution(terms: Vec<(i128, i128)>, target: i128) -> bool {
    // Equal coefficients are one unknown with the sum of the bounds.
    let mut merged: Vec<(i128, i128)> = Vec::new();
    let mut terms: Vec<_> = terms.into_iter().filter(|&(c, bound)| c > 0 && bound > 0).collect();
    terms.sort_unstable_by(|a, b| b.cmp(a));
    for (c, bound) in terms {
        match merged.last_mut() {
            Some(last) if last.0 == c => last.1 += bound,
            _ => merged.push((c, bound)),
        }
    }
    // What the unknowns from k on can reach, and their common divisor.
    let mut reach = vec![0i128; merged.len() + 1];
    let mut divisor = vec![0i128; merged.len() + 1];
    for k in (0..merged.len()).rev() {
        reach[k] = reach[k + 1] + merged[k].0 * merged[k].1;
        divisor[k] = gcd(merged[k].0, divisor[k + 1]);
    }
    search(&Problem { terms: &merged, reach, divisor }, 0, target, &mut HashSet::new())
}

struct Problem<'a> {
    terms: &'a [(i128, i128)],
    reach: Vec<i128>,
    divisor: Vec<i128>,
}

fn search(p: &Problem, k: usize, target: i128, failed: &mut HashSet<(usize, i128)>) -> bool {
    if target == 0 {
        return true;
    }
    if target < 0 || target > p.reach[k] || target % p.divisor[k] != 0 {
        return false;
    }
    let (c, bound) = p.terms[k];
    if k + 1 == p.terms.len() {
        return true; // divisible and within reach
    }
    if k + 2 == p.terms.len() {
        return solve_two((c, bound), p.terms[k + 1], target);
    }
    if failed.contains(&(k, target)) {
        return false;
    }
    let high = bound.min(target / c);
    let low = ((target - p.reach[k + 1]).max(0) + c - 1) / c;
    // Only every period-th x leaves a remainder that the rest can divide.
    let period = p.divisor[k + 1] / gcd(c, p.divisor[k + 1]);
    let mut x = low;
    while x <= high && (target - c * x) % p.divisor[k + 1] != 0 {
        x += 1;
        if x - low > period {
            break;
        }
    }
    while x <= high {
        if search(p, k + 1, target - c * x, failed) {
            return true;
        }
        x += period;
    }
    failed.insert((k, target));
    false
}

/// `a * x + b * y = target` with bounded x and y, all positive, by the extended Euclidean algorithm.
fn solve_two((a, a_bound): (i128, i128), (b, b_bound): (i128, i128), target: i128) -> bool {
    let (g, u) = bezout(a, b);
    if target % g != 0 {
        return false;
    }
    let (a, b, target) = (a / g, b / g, target / g);
    // x = u * target mod b; the product fits: u < b and target % b < b, both below 2^63.
    let x = (u.rem_euclid(b) * (target.rem_euclid(b))).rem_euclid(b);
    // y = (target - a x) / b must be in 0..=b_bound; x may grow by steps of b.
    let least_x = ((target - b * b_bound).max(0) + a - 1) / a;
    let x = x + (least_x - x).max(0).div_euclid(b) * b;
    let x = if x < least_x { x + b } else { x };
    x <= a_bound && a * x <= target
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// (g, u) with g = gcd(a, b) and u * a = g modulo b.
fn bezout(a: i128, b: i128) -> (i128, i128) {
    let (mut r0, mut r1, mut u0, mut u1) = (a, b, 1i128, 0i128);
    while r1 != 0 {
        let q = r0 / r1;
        (r0, r1) = (r1, r0 - q * r1);
        (u0, u1) = (u1, u0 - q * u1);
    }
    (r0, u0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounded_sums_agree_with_counting() {
        for a in 1..7i128 {
            for b in 1..7 {
                for c in 1..5 {
                    for (na, nb, nc) in [(0, 3, 2), (1, 1, 1), (3, 2, 4), (5, 0, 2)] {
                        let mut hit = HashSet::new();
                        for x in 0..=na {
                            for y in 0..=nb {
                                for z in 0..=nc {
                                    hit.insert(a * x + b * y + c * z);
                                }
                            }
                        }
                        for target in -3..80 {
                            let terms = vec![(a, na), (b, nb), (c, nc)];
                            assert_eq!(
                                has_solution(terms, target),
                                hit.contains(&target),
                                "{a} {b} {c} {na} {nb} {nc} -> {target}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn overlap_is_exact_for_small_strides() {
        for n in 1..4usize {
            for m in 1..4usize {
                for s in -5..6isize {
                    for t in -5..6isize {
                        let offset = 30;
                        let layout = Layout::new(&[n, m, 2], &[s, t, 7], offset).unwrap();
                        let mut seen = HashSet::new();
                        let distinct =
                            (0..layout.numel()).all(|k| seen.insert(layout.view_at(k).unwrap().unwrap()));
                        assert_eq!(layout.self_overlaps(), !distinct, "{layout:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn mixed_signs_meet_or_not() {
        let a = Layout::new(&[2, 2], &[3, -1], 1).unwrap();
        let b = Layout::new(&[2, 2], &[3, 1], 4).unwrap();
        assert!(share_memory(&a, &b));
        assert_eq!(a.reachable_range(), Some((0, 4)));
    }

    #[test]
    fn many_axes_with_hard_strides_end() {
        // Powers of two never meet; one more stride of their sum does.
        let strides: Vec<isize> = (0..40).map(|k| 1isize << k).collect();
        let layout = Layout::new(&[2; 40], &strides, 0).unwrap();
        assert!(!layout.self_overlaps());
        let mut strides = strides;
        strides.push((1 << 40) - 3);
        assert!(Layout::new(&[2; 41], &strides, 0).unwrap().self_overlaps());
    }
}

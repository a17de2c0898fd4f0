//! The rows or the columns of a tile: a list of axes walked as one.

use crate::layout::fuse::Axis;
use smallvec::SmallVec;

/// Axes walked as one, innermost first; a tile takes `block` steps of the outermost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    axes: SmallVec<[Axis; 2]>,
    inner: usize,
    block: usize,
}

impl Group {
    /// A single step.
    pub(crate) fn one() -> Self {
        Self { axes: SmallVec::new(), inner: 1, block: 1 }
    }

    /// A single axis, walked whole.
    pub(crate) fn axis(axis: Axis) -> Self {
        let mut group = Self::one();
        group.push(axis);
        group
    }

    /// Puts `axis` around the group.
    pub(crate) fn push(&mut self, axis: Axis) {
        self.inner *= self.axes.last().map_or(1, |a| a.extent);
        self.block = axis.extent;
        self.axes.push(axis);
    }

    /// Gives back outermost axes until the steps inside the outermost are at most `steps`, so that a cut
    /// can reach that.
    pub(crate) fn give_back(&mut self, steps: usize, mut to: impl FnMut(Axis)) {
        while self.inner > steps {
            let Some(axis) = self.axes.pop() else { return };
            to(axis);
            let inner = self.axes.iter().rev().skip(1).map(|a| a.extent).product();
            self.inner = inner;
            self.block = self.axes.last().map_or(1, |a| a.extent);
        }
    }

    /// Cuts the outermost axis into blocks of about `steps` steps in all, equal in size and (where
    /// only one axis is walked) a multiple of `multiple`.
    pub(crate) fn cut(&mut self, steps: usize, multiple: usize) {
        let Some(last) = self.axes.last() else { return };
        let most = if self.inner == 1 { steps } else { steps / self.inner }.max(1);
        self.block = last.extent;
        if most >= last.extent {
            return;
        }
        let blocks = last.extent.div_ceil(most);
        let mut block = last.extent.div_ceil(blocks);
        if self.inner == 1 {
            block = block.next_multiple_of(multiple).min(most.max(multiple));
        }
        self.block = block.min(last.extent);
    }

    /// The axes, innermost first.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Steps of the whole group.
    pub fn extent(&self) -> usize {
        self.inner * self.axes.last().map_or(1, |a| a.extent)
    }

    /// Steps of one tile (the last tile may have fewer).
    pub fn full(&self) -> usize {
        self.inner * self.block
    }

    /// Steps of all axes but the outermost.
    pub(crate) fn inner(&self) -> usize {
        self.inner
    }

    /// Steps of the outermost axis in one tile.
    pub(crate) fn block(&self) -> usize {
        self.block
    }

    /// The source and destination offsets of one tile's steps, in order.
    pub(crate) fn steps(&self, mut each: impl FnMut(isize, isize)) {
        let Some((outermost, rest)) = self.axes.split_last() else { return each(0, 0) };
        let axis = Axis { extent: self.block, ..*outermost };
        around(&[&axis], rest, (0, 0), &mut each);
    }
}

/// Walks `outer` around `rest` (innermost first).
fn around(outer: &[&Axis], rest: &[Axis], base: (isize, isize), each: &mut impl FnMut(isize, isize)) {
    let Some(axis) = outer.first() else { return each(base.0, base.1) };
    let (mut src, mut dst) = base;
    for _ in 0..axis.extent {
        match rest.split_last() {
            None => each(src, dst),
            Some((next, rest)) => around(&[next], rest, (src, dst), each),
        }
        src += axis.src;
        dst += axis.dst;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(extent: usize, src: isize, dst: isize) -> Axis {
        Axis { extent, src, dst }
    }

    #[test]
    fn steps_run_innermost_first() {
        let mut group = Group::axis(axis(3, 4, 100));
        group.push(axis(2, 12, 7));
        let mut seen = Vec::new();
        group.steps(|s, d| seen.push((s, d)));
        assert_eq!(seen, [(0, 0), (4, 100), (8, 200), (12, 7), (16, 107), (20, 207)]);
        assert_eq!((group.extent(), group.full(), group.inner()), (6, 6, 3));
    }

    #[test]
    fn blocks_are_equal_and_multiples() {
        let mut group = Group::axis(axis(1216, 4, 100));
        group.cut(1024, 16);
        assert_eq!(group.full(), 608);
        let mut short = Group::axis(axis(15, 4, 100));
        short.push(axis(15, 60, 7));
        short.cut(64, 16);
        assert_eq!((short.full(), short.block()), (60, 4));
    }

    #[test]
    fn axes_are_given_back_until_a_cut_can_reach() {
        let mut group = Group::axis(axis(16, 4, 100));
        group.push(axis(8, 64, 7));
        group.push(axis(5, 512, 9));
        let mut back = Vec::new();
        group.give_back(100, |a| back.push(a.extent));
        assert_eq!((back.as_slice(), group.inner(), group.full()), (&[5][..], 16, 128));
        group.cut(100, 16);
        assert_eq!(group.full(), 64);
        group.give_back(16, |_| unreachable!("16 inner steps are few enough"));
    }

    #[test]
    fn the_empty_group_is_one_step() {
        let mut seen = 0;
        Group::one().steps(|s, d| seen += 1 + s + d);
        assert_eq!(seen, 1);
    }
}

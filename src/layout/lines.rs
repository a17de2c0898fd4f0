//! Cache lines that a view touches, and how much of each it uses.
//!
//! Counting is exact and, for ordinary layouts, does not walk the elements: axes that repeat, interleave or
//! continue each other are joined first; what is left is nested, so that a summary of one block (lines,
//! bytes, the partly used lines at both ends) can be repeated n times by doubling. Only layouts whose axes
//! overlap in ways that do not join, and padded windows, are counted with a bitmap, window by window.

use super::Layout;
use std::collections::HashMap;
use std::ops::{ControlFlow, Range};

/// How a view uses the cache lines of its buffer, which starts at byte 0 of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Lines {
    /// Size of a line in bytes.
    pub line_bytes: usize,
    /// Distinct lines that hold at least one byte that the view reads.
    pub touched: u64,
    /// Distinct bytes read, in all touched lines together.
    pub bytes_used: u64,
    /// Lines of which every byte is read.
    pub used_in_full: u64,
}

impl Layout {
    /// Distinct lines touched and distinct bytes used, for elements of `element_size` bytes.
    ///
    /// # Panics
    /// When `line_bytes` is 0.
    ///
    /// ```
    /// use restride::Layout;
    /// let every_second = Layout::row_major(&[64])?.apply("[::2]")?;
    /// let lines = every_second.lines(4, 64);
    /// assert_eq!((lines.touched, lines.bytes_used, lines.used_in_full), (4, 128, 0));
    /// # Ok::<(), restride::Error>(())
    /// ```
    pub fn lines(&self, element_size: usize, line_bytes: usize) -> Lines {
        assert!(line_bytes > 0, "a cache line has at least one byte");
        let mut boxes: Vec<Nest> = Vec::new();
        if element_size > 0 {
            self.valid_boxes(&mut |ranges| {
                boxes.push(Nest::new(&self.part(ranges), element_size));
                ControlFlow::Continue(())
            });
        }
        let summary = match &boxes[..] {
            [] => Summary::default(),
            [nest] if nest.is_nested() => nest.summarise(line_bytes as Count),
            nests => by_bitmap(nests, line_bytes as Count),
        };
        // Only a view that no buffer can hold reaches beyond 2^64 bytes.
        let narrow = |count: Count| u64::try_from(count).unwrap_or(u64::MAX);
        Lines {
            line_bytes,
            touched: narrow(summary.touched),
            bytes_used: narrow(summary.bytes),
            used_in_full: narrow(summary.full),
        }
    }

    /// Each touched line with the number of distinct bytes read from it, in address order.
    ///
    /// Costs time and memory in proportion to the bytes read: for drawings of small views.
    pub fn bytes_per_line(&self, element_size: usize, line_bytes: usize) -> Vec<(usize, usize)> {
        let mut bytes = std::collections::BTreeSet::new();
        for k in 0..self.numel() {
            if let Some(index) = self.index_unchecked(&self.unravel(k)) {
                bytes.extend(index * element_size..(index + 1) * element_size);
            }
        }
        let mut lines: Vec<(usize, usize)> = Vec::new();
        for byte in bytes {
            match lines.last_mut() {
                Some((line, used)) if *line == byte / line_bytes => *used += 1,
                _ => lines.push((byte / line_bytes, 1)),
            }
        }
        lines
    }
}

/// Bytes and lines: an index of 63 bits times an element size fits.
type Count = u128;

/// Lines of a set of bytes in address order; sets that follow each other can be added.
#[derive(Debug, Clone, Copy, Default)]
struct Summary {
    touched: Count,
    bytes: Count,
    full: Count,
    /// First and last line, each with its bytes used; equal when there is one.
    first: (Count, Count),
    last: (Count, Count),
}

impl Summary {
    fn run(start: Count, len: Count, line: Count) -> Self {
        let (a, b) = (start / line, (start + len - 1) / line);
        if a == b {
            return Self {
                touched: 1,
                bytes: len,
                full: Count::from(len == line),
                first: (a, len),
                last: (a, len),
            };
        }
        let (head, tail) = ((a + 1) * line - start, start + len - b * line);
        let full = b - a - 1 + Count::from(head == line) + Count::from(tail == line);
        Self { touched: b - a + 1, bytes: len, full, first: (a, head), last: (b, tail) }
    }

    /// This set and one that starts at or after its end, without common bytes.
    fn then(self, next: Self, line: Count) -> Self {
        if self.touched == 0 || next.touched == 0 {
            return if self.touched == 0 { next } else { self };
        }
        let mut sum = Self {
            touched: self.touched + next.touched,
            bytes: self.bytes + next.bytes,
            full: self.full + next.full,
            first: self.first,
            last: next.last,
        };
        if self.last.0 == next.first.0 {
            sum.touched -= 1;
            let joined = self.last.1 + next.first.1;
            // Neither part was full: they share no byte.
            sum.full += Count::from(joined == line);
            if self.touched == 1 {
                sum.first.1 = joined;
            }
            if next.touched == 1 {
                sum.last.1 = joined;
            }
        }
        sum
    }

    fn shifted(self, lines: Count) -> Self {
        let (first, last) = ((self.first.0 + lines, self.first.1), (self.last.0 + lines, self.last.1));
        Self { first, last, ..self }
    }
}

/// Bytes as nested repetitions of a run: innermost first, strides positive and growing.
struct Nest {
    start: Count,
    /// (count, stride in bytes); the first is the run itself, with stride 1.
    axes: Vec<(Count, Count)>,
}

impl Nest {
    fn new(layout: &Layout, element_size: usize) -> Self {
        let (low, _) = layout.reachable_range().unwrap_or((0, 0));
        let size = element_size as Count;
        let mut axes: Vec<(Count, Count)> = layout
            .shape()
            .iter()
            .zip(layout.strides())
            .filter(|&(&extent, &stride)| extent > 1 && stride != 0)
            .map(|(&extent, &stride)| (extent as Count, stride.unsigned_abs() as Count * size))
            .collect();
        axes.push((size, 1));
        axes.sort_unstable_by_key(|&(count, stride)| (stride, count));
        if let Some(run) = axes.iter().position(|&axis| axis == (size, 1)) {
            let run = axes.remove(run);
            axes.insert(0, run);
        }
        let mut joined: Vec<(Count, Count)> = Vec::new();
        for (count, stride) in axes {
            match joined.last_mut() {
                // An arithmetic progression repeated within itself is a longer one.
                Some((n, s)) if stride % *s == 0 && stride / *s <= *n => {
                    *n += (stride / *s) * (count - 1);
                }
                _ => joined.push((count, stride)),
            }
        }
        Self { start: low as Count * size, axes: joined }
    }

    /// Distance from the first to past the last byte of the inner `depth` axes.
    fn span(&self, depth: usize) -> Count {
        self.axes[..depth].iter().fold(1, |span, &(n, s)| span + (n - 1) * s)
    }

    /// Whether each repetition starts at or after the end of the one before.
    fn is_nested(&self) -> bool {
        (1..self.axes.len()).all(|depth| self.axes[depth].1 >= self.span(depth))
    }

    fn summarise(&self, line: Count) -> Summary {
        let mut memo = HashMap::new();
        let whole = self.block(self.axes.len(), self.start % line, line, &mut memo);
        whole.shifted(self.start / line)
    }

    /// The inner `depth` axes, starting `phase` bytes into line 0.
    fn block(
        &self,
        depth: usize,
        phase: Count,
        line: Count,
        memo: &mut HashMap<(usize, Count), Summary>,
    ) -> Summary {
        if depth == 1 {
            return Summary::run(phase, self.axes[0].0, line);
        }
        if let Some(&known) = memo.get(&(depth, phase)) {
            return known;
        }
        let (count, stride) = self.axes[depth - 1];
        let period = line / gcd(stride, line);
        let one = |k: Count, memo: &mut HashMap<_, _>| {
            let at = phase + k * stride;
            self.block(depth - 1, at % line, line, memo).shifted(at / line)
        };
        // `period` repetitions advance by whole lines, so that their summary can be shifted and doubled.
        let mut sum = Summary::default();
        let (cycles, rest) = (count / period, count % period);
        if cycles > 0 {
            for k in 0..period {
                sum = sum.then(one(k, memo), line);
            }
            let (mut power, mut left, mut done) = (sum, cycles - 1, 1);
            let mut power_cycles = 1;
            let advance = period * stride / line;
            while left > 0 {
                if left & 1 == 1 {
                    sum = sum.then(power.shifted(done * advance), line);
                    done += power_cycles;
                }
                power = power.then(power.shifted(power_cycles * advance), line);
                power_cycles *= 2;
                left >>= 1;
            }
        }
        for k in count - rest..count {
            sum = sum.then(one(k, memo), line);
        }
        memo.insert((depth, phase), sum);
        sum
    }

    /// Sets the bits of the bytes in `window`.
    fn mark(&self, window: &Range<Count>, bits: &mut [u64]) {
        self.mark_block(self.axes.len(), self.start, window, bits);
    }

    fn mark_block(&self, depth: usize, at: Count, window: &Range<Count>, bits: &mut [u64]) {
        let end = at + self.span(depth);
        if end <= window.start || at >= window.end {
            return;
        }
        if depth == 1 {
            for byte in at.max(window.start)..end.min(window.end) {
                let bit = byte - window.start;
                bits[(bit / 64) as usize] |= 1 << (bit % 64);
            }
            return;
        }
        let (count, stride) = self.axes[depth - 1];
        let inner = self.span(depth - 1);
        // Skip the repetitions that end before the window.
        let skipped = window.start.saturating_sub(at + inner - 1).div_ceil(stride);
        for k in skipped..count {
            if at + k * stride >= window.end {
                break;
            }
            self.mark_block(depth - 1, at + k * stride, window, bits);
        }
    }
}

fn by_bitmap(nests: &[Nest], line: Count) -> Summary {
    let low = nests.iter().map(|nest| nest.start).min().unwrap_or(0) / line * line;
    let high = nests.iter().map(|nest| nest.start + nest.span(nest.axes.len())).max();
    let high = high.unwrap_or(0);
    let step = ((1 as Count) << 23).div_ceil(line) * line;
    let mut bits = vec![0u64; step.min(high - low).div_ceil(64) as usize + 1];
    let mut sum = Summary::default();
    let mut at = low;
    while at < high {
        let window = at..(at + step).min(high);
        bits.fill(0);
        for nest in nests {
            nest.mark(&window, &mut bits);
        }
        let mut line_start = window.start;
        while line_start < window.end {
            let from = line_start - window.start;
            let used = count_bits(&bits, from, (from + line).min(window.end - window.start));
            sum.touched += Count::from(used > 0);
            sum.bytes += used;
            sum.full += Count::from(used == line);
            line_start += line;
        }
        at += step;
    }
    sum
}

fn count_bits(bits: &[u64], from: Count, to: Count) -> Count {
    let mut at = from;
    let mut count = 0;
    while at < to {
        let (word, bit) = ((at / 64) as usize, at % 64);
        let width = (64 - bit).min(to - at);
        let mask = if width == 64 { u64::MAX } else { ((1 << width) - 1) << bit };
        count += Count::from((bits[word] & mask).count_ones());
        at += width;
    }
    count
}

fn gcd(a: Count, b: Count) -> Count {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(layout: &Layout, size: usize, line: usize) {
        let each = layout.bytes_per_line(size, line);
        let expected = Lines {
            line_bytes: line,
            touched: each.len() as u64,
            bytes_used: each.iter().map(|&(_, used)| used as u64).sum(),
            used_in_full: each.iter().filter(|&&(_, used)| used == line).count() as u64,
        };
        assert_eq!(layout.lines(size, line), expected, "{layout:?} x {size}, lines of {line}");
    }

    #[test]
    fn counts_agree_with_looking_at_every_byte() {
        let exprs = [
            "",
            ".T",
            "[::2]",
            "[:, ::3]",
            "[1:, 1:-1]",
            "[::-1, ::-2]",
            "[0].broadcast_to(5, 23)",
            ".unfold(0, 3, 2)",
            ".unfold(1, 5, 1)",
            "[:, ::2].unfold(1, 3, 2)",
            ".diagonal(2)",
            ".pad((1, 2), (3, 0))",
            ".pad((1, 1), (1, 1)).unfold(0, 3, 1).unfold(1, 3, 2)",
            ".as_strided((4, 5, 6), (7, 3, 2), 1)",
            ".as_strided((6, 7), (5, 7), 3)",
        ];
        let base = Layout::row_major(&[17, 23]).unwrap();
        for expr in exprs {
            let layout = base.apply(expr).unwrap();
            for size in [1, 2, 3, 4, 7, 8, 12, 16, 24] {
                for line in [64, 32, 128, 48] {
                    check(&layout, size, line);
                }
            }
        }
    }

    #[test]
    fn huge_views_are_counted_at_once() {
        let layout = Layout::row_major(&[1 << 20, 1 << 20]).unwrap().apply("[:, :-3]").unwrap();
        let lines = layout.lines(4, 64);
        assert_eq!(lines.bytes_used, (1 << 20) * ((1 << 20) - 3) * 4);
        assert_eq!(lines.touched, 1 << 36);
        assert_eq!(lines.used_in_full, (1 << 20) * ((1 << 16) - 1));
    }
}

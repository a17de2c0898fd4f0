//! Which lines a walk touches, and how many of them it uses to the last byte.

use std::collections::BTreeSet;

/// Elements that a walk uses, as a set of element indices.
///
/// Elements tile memory, so a line is used in full exactly when every element that has a byte in it
/// is used.
pub(super) struct Used {
    element_bytes: u64,
    low: u64,
    store: Store,
}

enum Store {
    /// One bit an element, from `low` on.
    Bits(Vec<u64>),
    /// A few elements far apart.
    Few(BTreeSet<u64>),
}

impl Used {
    /// Room for elements `low..high` of `element_bytes` bytes, of which at most `count` are used.
    pub fn new(element_bytes: u64, low: u64, high: u64, count: u64) -> Self {
        let range = high - low;
        // A bit an element as long as that is no more than a set of the elements would take.
        let bits = range / 64 <= count.saturating_mul(2).max(1 << 20);
        let store = if bits {
            Store::Bits(vec![0; range.div_ceil(64) as usize])
        } else {
            Store::Few(BTreeSet::new())
        };
        Self { element_bytes, low, store }
    }

    /// Marks `count` elements from `first` on, `step` apart.
    pub fn mark(&mut self, first: u64, step: i64, count: u64) {
        let count = if step == 0 { count.min(1) } else { count };
        match &mut self.store {
            Store::Bits(words) if step.unsigned_abs() == 1 => {
                let from = first.min(first.wrapping_add_signed(step * (count as i64 - 1))) - self.low;
                set_range(words, from, from + count);
            }
            Store::Bits(words) => {
                let mut at = first - self.low;
                for _ in 0..count {
                    words[(at / 64) as usize] |= 1 << (at % 64);
                    at = at.wrapping_add_signed(step);
                }
            }
            Store::Few(set) => {
                let mut at = first;
                for _ in 0..count {
                    set.insert(at);
                    at = at.wrapping_add_signed(step);
                }
            }
        }
    }

    /// Distinct lines of `line_bytes` that hold a used byte, and those of which every byte is used.
    pub fn lines(&self, line_bytes: u64) -> (u64, u64) {
        let mut tally = Tally { line_bytes, current: None, used: 0, touched: 0, full: 0 };
        let size = self.element_bytes;
        match &self.store {
            Store::Bits(words) => {
                for (k, &word) in words.iter().enumerate() {
                    let mut rest = word;
                    while rest != 0 {
                        let from = rest.trailing_zeros();
                        let len = (!(rest >> from)).trailing_zeros().min(64 - from);
                        let first = self.low + 64 * k as u64 + from as u64;
                        tally.bytes(first * size, (first + len as u64) * size);
                        rest = if from + len == 64 { 0 } else { rest & (u64::MAX << (from + len)) };
                    }
                }
            }
            Store::Few(set) => set.iter().for_each(|&at| tally.bytes(at * size, (at + 1) * size)),
        }
        tally.finish()
    }
}

fn set_range(words: &mut [u64], from: u64, to: u64) {
    let (first, last) = ((from / 64) as usize, ((to - 1) / 64) as usize);
    let (head, tail) = (u64::MAX << (from % 64), u64::MAX >> (63 - (to - 1) % 64));
    if first == last {
        words[first] |= head & tail;
        return;
    }
    words[first] |= head;
    words[first + 1..last].fill(u64::MAX);
    words[last] |= tail;
}

/// Counts lines of ascending, disjoint byte ranges.
struct Tally {
    line_bytes: u64,
    current: Option<u64>,
    used: u64,
    touched: u64,
    full: u64,
}

impl Tally {
    fn bytes(&mut self, mut from: u64, to: u64) {
        while from < to {
            let line = from / self.line_bytes;
            let end = to.min((line + 1) * self.line_bytes);
            if self.current != Some(line) {
                self.close();
                self.current = Some(line);
                self.touched += 1;
            }
            self.used += end - from;
            from = end;
            // Lines that lie whole inside the range need no visit each.
            let whole = (to - from) / self.line_bytes;
            if from.is_multiple_of(self.line_bytes) && whole > 1 {
                self.close();
                self.current = None;
                self.touched += whole - 1;
                self.full += whole - 1;
                from += (whole - 1) * self.line_bytes;
            }
        }
    }

    fn close(&mut self) {
        self.full += (self.used == self.line_bytes) as u64;
        self.used = 0;
    }

    fn finish(mut self) -> (u64, u64) {
        self.close();
        (self.touched, self.full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By definition, byte by byte.
    fn slowly(elements: &BTreeSet<u64>, size: u64, line: u64) -> (u64, u64) {
        let bytes: BTreeSet<u64> = elements.iter().flat_map(|&e| e * size..(e + 1) * size).collect();
        let lines: BTreeSet<u64> = bytes.iter().map(|b| b / line).collect();
        let full = lines.iter().filter(|&&l| (l * line..(l + 1) * line).all(|b| bytes.contains(&b))).count();
        (lines.len() as u64, full as u64)
    }

    #[test]
    fn agrees_with_the_definition() {
        let runs: [&[(u64, i64, u64)]; 6] = [
            &[(0, 1, 200)],
            &[(3, 1, 61), (64, 1, 128), (300, -1, 10)],
            &[(5, 7, 40), (6, 7, 40)],
            &[(900, -13, 60), (12, 0, 5), (13, 1, 1)],
            &[(63, 1, 2), (127, 1, 1), (128, 1, 64)],
            &[],
        ];
        for marks in runs {
            for size in [1, 2, 3, 4, 8, 12, 16] {
                let mut used = Used::new(size, 0, 1000, 1000);
                let mut few = Used { element_bytes: size, low: 0, store: Store::Few(BTreeSet::new()) };
                let mut elements = BTreeSet::new();
                for &(first, step, count) in marks {
                    used.mark(first, step, count);
                    few.mark(first, step, count);
                    elements.extend((0..count).map(|i| first.wrapping_add_signed(step * i as i64)));
                }
                for line in [8, 24, 32, 64, 128] {
                    assert_eq!(used.lines(line), slowly(&elements, size, line), "{marks:?} {size} {line}");
                    assert_eq!(few.lines(line), used.lines(line), "{marks:?} {size} {line}");
                }
            }
        }
    }

    #[test]
    fn elements_far_apart_need_no_bitmap() {
        let mut used = Used::new(4, 0, 1 << 60, 3);
        used.mark(1 << 50, 1 << 49, 3);
        assert!(matches!(used.store, Store::Few(_)));
        assert_eq!(used.lines(64), (3, 0));
    }
}

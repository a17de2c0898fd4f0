//! The three classes of misses: compulsory, capacity, conflict.

use serde::Serialize;
use std::collections::HashMap;

/// Misses of one level by their cause; the three add up to its misses.
///
/// *Compulsory*: the line was never in this level before. *Capacity*: a fully associative LRU
/// cache of the same size, fed with the same accesses, misses as well. *Conflict*: it would have
/// hit. A straddling access counts once, under the first of these causes that one of its missing
/// lines has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Classes {
    /// First touch of a line.
    pub compulsory: u64,
    /// More lines in use than the level holds.
    pub capacity: u64,
    /// Too many lines in use in one set.
    pub conflict: u64,
}

/// Why one line missed, the strongest cause first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    Compulsory,
    Capacity,
    Conflict,
}

impl Classes {
    pub(super) fn count(&mut self, cause: Cause) {
        match cause {
            Cause::Compulsory => self.compulsory += 1,
            Cause::Capacity => self.capacity += 1,
            Cause::Conflict => self.conflict += 1,
        }
    }
}

const NONE: u32 = u32::MAX;

/// A fully associative LRU cache with a memory of every line it ever saw.
pub(super) struct Shadow {
    capacity: u64,
    held: u64,
    /// Every line ever seen, and its node.
    nodes: HashMap<u64, u32>,
    lines: Vec<u64>,
    /// Doubly linked list in order of use; a node that was dropped is in no list.
    older: Vec<u32>,
    newer: Vec<u32>,
    inside: Vec<bool>,
    newest: u32,
    oldest: u32,
}

impl Shadow {
    /// Holds `capacity` lines, at least one.
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            held: 0,
            nodes: HashMap::new(),
            lines: Vec::new(),
            older: Vec::new(),
            newer: Vec::new(),
            inside: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    /// Uses a line and says what a miss of it would be called.
    pub fn touch(&mut self, line: u64) -> Cause {
        let fresh = self.lines.len() as u32;
        let node = *self.nodes.entry(line).or_insert(fresh);
        let cause = if node == fresh {
            self.lines.push(line);
            self.older.push(NONE);
            self.newer.push(NONE);
            self.inside.push(false);
            Cause::Compulsory
        } else if self.inside[node as usize] {
            self.unlink(node);
            self.held -= 1;
            Cause::Conflict
        } else {
            Cause::Capacity
        };
        if self.held == self.capacity {
            let oldest = self.oldest;
            self.unlink(oldest);
            self.inside[oldest as usize] = false;
            self.held -= 1;
        }
        self.older[node as usize] = self.newest;
        self.newer[node as usize] = NONE;
        match self.newest {
            NONE => self.oldest = node,
            newest => self.newer[newest as usize] = node,
        }
        self.newest = node;
        self.inside[node as usize] = true;
        self.held += 1;
        cause
    }

    fn unlink(&mut self, node: u32) {
        let (older, newer) = (self.older[node as usize], self.newer[node as usize]);
        match older {
            NONE => self.oldest = newer,
            older => self.newer[older as usize] = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.older[newer as usize] = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cache_forgets_the_least_recently_used() {
        let mut shadow = Shadow::new(2);
        let causes: Vec<_> = [1, 2, 1, 3, 1, 2, 2, 3].into_iter().map(|line| shadow.touch(line)).collect();
        use Cause::*;
        assert_eq!(
            causes,
            [Compulsory, Compulsory, Conflict, Compulsory, Conflict, Capacity, Conflict, Capacity]
        );
    }

    #[test]
    fn one_line() {
        let mut shadow = Shadow::new(1);
        let causes: Vec<_> = [1, 1, 2, 1].into_iter().map(|line| shadow.touch(line)).collect();
        assert_eq!(causes, [Cause::Compulsory, Cause::Conflict, Cause::Compulsory, Cause::Capacity]);
    }
}

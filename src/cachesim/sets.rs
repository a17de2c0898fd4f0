//! The sets of one level: which lines they hold, in which order they leave.
//!
//! A set keeps its lines in order of use, the latest first: the position is the age, so one array
//! holds everything and a miss moves it by one. An entry is `2 * (line + 1) + dirty`; 0 is an empty
//! way, so that fresh sets are zero pages that the system hands out only when they are touched.

/// What a look-up found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    pub hit: bool,
    /// Entry of the line that had to leave; 0 where none did.
    pub victim: u64,
}

impl Touch {
    const HIT: Touch = Touch { hit: true, victim: 0 };
}

/// The line of a victim entry and whether it is dirty.
pub(super) fn unpack(entry: u64) -> (u64, bool) {
    ((entry >> 1) - 1, entry & 1 == 1)
}

/// The sets of one level.
pub(super) trait Sets {
    /// Looks `line` up in `set`, brings it in where it is missing, and makes it the latest.
    fn touch(&mut self, set: usize, line: u64, dirty: bool) -> Touch;
    /// Marks `line` dirty where the set holds it, and says whether it does. Its age stays.
    fn mark_dirty(&mut self, set: usize, line: u64) -> bool;
}

/// An integer that holds entries: `u32` where the addresses allow it, which halves the work.
pub(super) trait Entry: Copy + Default + Eq {
    /// The clean entry of a line.
    fn clean(line: u64) -> Self;
    fn without_dirt(self) -> Self;
    fn or_dirty(self, dirty: bool) -> Self;
    fn widened(self) -> u64;
}

impl Entry for u32 {
    fn clean(line: u64) -> Self {
        (line as u32 + 1) << 1
    }
    fn without_dirt(self) -> Self {
        self & !1
    }
    fn or_dirty(self, dirty: bool) -> Self {
        self | dirty as u32
    }
    fn widened(self) -> u64 {
        self as u64
    }
}

impl Entry for u64 {
    fn clean(line: u64) -> Self {
        (line + 1) << 1
    }
    fn without_dirt(self) -> Self {
        self & !1
    }
    fn or_dirty(self, dirty: bool) -> Self {
        self | dirty as u64
    }
    fn widened(self) -> u64 {
        self
    }
}

/// Least-recently-used sets of a number of ways known at compile time.
pub(super) struct Lru<E, const W: usize> {
    sets: Vec<[E; W]>,
}

impl<E: Entry, const W: usize> Lru<E, W> {
    pub fn new(sets: usize) -> Self {
        Self { sets: vec![[E::default(); W]; sets] }
    }
}

impl<E: Entry, const W: usize> Sets for Lru<E, W> {
    #[inline(always)]
    fn touch(&mut self, set: usize, line: u64, dirty: bool) -> Touch {
        touch_lru(&mut self.sets[set], E::clean(line), dirty)
    }

    fn mark_dirty(&mut self, set: usize, line: u64) -> bool {
        mark(&mut self.sets[set], E::clean(line))
    }
}

#[inline(always)]
fn touch_lru<E: Entry, const W: usize>(ways: &mut [E; W], key: E, dirty: bool) -> Touch {
    let old = *ways;
    if old[0].without_dirt() == key {
        ways[0] = old[0].or_dirty(dirty);
        return Touch::HIT;
    }
    // Every way is compared, found or not: that is a few vector instructions and no branch.
    let found = old.iter().fold(false, |found, way| found | (way.without_dirt() == key));
    if found {
        let at = old.iter().position(|way| way.without_dirt() == key).unwrap_or(0);
        let entry = old[at].or_dirty(dirty);
        ways.copy_within(0..at, 1);
        ways[0] = entry;
        return Touch::HIT;
    }
    let mut new = old;
    new[1..].copy_from_slice(&old[..W - 1]);
    new[0] = key.or_dirty(dirty);
    *ways = new;
    Touch { hit: false, victim: old[W - 1].widened() }
}

fn mark<E: Entry>(ways: &mut [E], key: E) -> bool {
    match ways.iter_mut().find(|way| way.without_dirt() == key) {
        Some(way) => {
            *way = way.or_dirty(true);
            true
        }
        None => false,
    }
}

/// Least-recently-used sets of any number of ways.
pub(super) struct LruAny<E> {
    ways: usize,
    entries: Vec<E>,
}

impl<E: Entry> LruAny<E> {
    pub fn new(sets: usize, ways: usize) -> Self {
        Self { ways, entries: vec![E::default(); sets * ways] }
    }
}

impl<E: Entry> Sets for LruAny<E> {
    fn touch(&mut self, set: usize, line: u64, dirty: bool) -> Touch {
        let ways = &mut self.entries[set * self.ways..][..self.ways];
        let key = E::clean(line);
        let at = ways.iter().position(|way| way.without_dirt() == key);
        let last = at.unwrap_or(self.ways - 1);
        let old = ways[last];
        ways.copy_within(0..last, 1);
        match at {
            Some(_) => {
                ways[0] = old.or_dirty(dirty);
                Touch::HIT
            }
            None => {
                ways[0] = key.or_dirty(dirty);
                Touch { hit: false, victim: old.widened() }
            }
        }
    }

    fn mark_dirty(&mut self, set: usize, line: u64) -> bool {
        mark(&mut self.entries[set * self.ways..][..self.ways], E::clean(line))
    }
}

/// Tree-PLRU sets: one bit per inner node of a binary tree over the ways points to the older half.
///
/// Ways fill up in ascending order; a use of a way turns every bit on its path away from it.
pub(super) struct TreePlru {
    ways: usize,
    entries: Vec<u64>,
    /// `ways` nodes a set, of which node 0 is unused and node 1 is the root.
    older_right: Vec<bool>,
}

impl TreePlru {
    /// `ways` is a power of two.
    pub fn new(sets: usize, ways: usize) -> Self {
        debug_assert!(ways.is_power_of_two());
        Self { ways, entries: vec![0; sets * ways], older_right: vec![false; sets * ways] }
    }

    fn oldest(&self, set: usize) -> usize {
        let nodes = &self.older_right[set * self.ways..][..self.ways];
        let mut node = 1;
        while node < self.ways {
            node = 2 * node + nodes[node] as usize;
        }
        node - self.ways
    }

    fn used(&mut self, set: usize, way: usize) {
        let nodes = &mut self.older_right[set * self.ways..][..self.ways];
        let mut node = way + self.ways;
        while node > 1 {
            nodes[node / 2] = node % 2 == 0;
            node /= 2;
        }
    }
}

impl Sets for TreePlru {
    fn touch(&mut self, set: usize, line: u64, dirty: bool) -> Touch {
        let ways = &mut self.entries[set * self.ways..][..self.ways];
        let key = u64::clean(line);
        if let Some(at) = ways.iter().position(|way| way.without_dirt() == key) {
            ways[at] = ways[at].or_dirty(dirty);
            self.used(set, at);
            return Touch::HIT;
        }
        let at = ways.iter().position(|&way| way == 0).unwrap_or_else(|| self.oldest(set));
        let way = &mut self.entries[set * self.ways + at];
        let victim = std::mem::replace(way, key.or_dirty(dirty));
        self.used(set, at);
        Touch { hit: false, victim }
    }

    fn mark_dirty(&mut self, set: usize, line: u64) -> bool {
        mark(&mut self.entries[set * self.ways..][..self.ways], u64::clean(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miss(victim: Option<(u64, bool)>) -> Touch {
        Touch { hit: false, victim: victim.map_or(0, |(line, dirty)| u64::clean(line).or_dirty(dirty)) }
    }

    fn least_recently_used_leaves(mut sets: impl Sets) {
        for line in [0, 3, 6] {
            assert_eq!(sets.touch(0, line, line == 3), miss(None));
        }
        assert_eq!(sets.touch(0, 0, false), Touch::HIT);
        assert_eq!(sets.touch(0, 9, false), miss(Some((3, true))));
        assert_eq!(sets.touch(0, 0, false), Touch::HIT);
        assert!(sets.mark_dirty(0, 6));
        assert!(!sets.mark_dirty(0, 3));
        // 6 was marked, which is no use: it is still the oldest.
        assert_eq!(sets.touch(0, 12, false), miss(Some((6, true))));
        assert_eq!(sets.touch(1, 0, false), miss(None));
    }

    #[test]
    fn lru() {
        least_recently_used_leaves(Lru::<u32, 3>::new(2));
        least_recently_used_leaves(Lru::<u64, 3>::new(2));
        least_recently_used_leaves(LruAny::<u32>::new(2, 3));
        least_recently_used_leaves(LruAny::<u64>::new(2, 3));
    }

    #[test]
    fn one_way_holds_one_line() {
        let mut sets = Lru::<u32, 1>::new(1);
        assert_eq!(sets.touch(0, 5, true), miss(None));
        assert_eq!(sets.touch(0, 5, false), Touch::HIT);
        assert_eq!(sets.touch(0, 6, false), miss(Some((5, true))));
        assert_eq!(unpack(u64::clean(5).or_dirty(true)), (5, true));
    }

    #[test]
    fn tree_plru_points_away_from_recent_use() {
        let mut sets = TreePlru::new(1, 4);
        for line in 0..4 {
            assert_eq!(sets.touch(0, line, false), miss(None));
        }
        // After 0 1 2 3 the root points left and the left node points to way 0.
        assert_eq!(sets.touch(0, 0, false), Touch::HIT);
        // Root now points right, the right node to way 2.
        assert_eq!(sets.touch(0, 4, false), miss(Some((2, false))));
        // Root left, left node to way 1, where true LRU would have taken 1 as well.
        assert_eq!(sets.touch(0, 5, false), miss(Some((1, false))));
        // True LRU would now drop 3; the tree points right and to way 3.
        assert_eq!(sets.touch(0, 6, false), miss(Some((3, false))));
        // True LRU would drop 0 (oldest); so does the tree.
        assert_eq!(sets.touch(0, 7, false), miss(Some((0, false))));
    }
}

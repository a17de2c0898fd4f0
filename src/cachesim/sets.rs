//! The sets of one level: which lines they hold, in which order they leave.
//!
//! Inside a set a line is known by its tag, the line number divided by the number of sets. An entry
//! holds the tag plus 1 and one bit more for dirt; 0 is an empty way, so that fresh sets are zero pages
//! that the system hands out only when they are touched.

/// What a look-up found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Touch {
    pub hit: bool,
    /// The tag plus 1 of the line that had to leave; 0 where none did.
    pub victim: u64,
    /// Whether that line was dirty.
    pub dirty: bool,
}

impl Touch {
    const HIT: Touch = Touch { hit: true, victim: 0, dirty: false };
}

/// The sets of one level.
pub(super) trait Sets {
    /// Looks `tag` up in `set`, brings it in where it is missing, and makes it the latest.
    fn touch(&mut self, set: usize, tag: u64, dirty: bool) -> Touch;
    /// Marks `tag` dirty where the set holds it, and says whether it does. Its age stays.
    fn mark_dirty(&mut self, set: usize, tag: u64) -> bool;
}

/// Least-recently-used sets of few ways: entries of `BITS` bits (16 or 32), packed into `N` words.
///
/// The entries stand in order of use, the latest in the lowest bits, so that the position is the age:
/// a miss shifts the words by one entry, a hit those up to its place. The dirty bit is the highest of an
/// entry. All ways of a word are compared at once: adding the largest tag to the difference of tags
/// carries into the dirty bit unless the difference is 0. Words are read and written whole, so that a
/// look-up never waits for a part of the store of the one before it, as a walk along one set would.
pub(super) struct Packed<const BITS: u32, const N: usize> {
    /// Bits of the last word that belong to no way.
    spare: u32,
    sets: Vec<[u64; N]>,
}

impl<const BITS: u32, const N: usize> Packed<BITS, N> {
    /// The lowest bit of each entry of a word.
    const ONES: u64 = u64::MAX / ((1 << BITS) - 1);
    /// The dirty bit of each.
    const DIRT: u64 = Self::ONES << (BITS - 1);
    /// All bits of the first.
    const FIRST: u64 = (1 << BITS) - 1;
    /// Its dirty bit.
    const FIRST_DIRT: u64 = 1 << (BITS - 1);

    /// Whether entries of tags below `tags` fit.
    pub fn holds(tags: u64) -> bool {
        tags < Self::FIRST_DIRT
    }

    /// `ways` fill all but the last of the `N` words.
    pub fn new(sets: usize, ways: usize) -> Self {
        debug_assert_eq!(N, (ways * BITS as usize).div_ceil(64));
        Self { spare: N as u32 * 64 - ways as u32 * BITS, sets: vec![[0; N]; sets] }
    }

    /// The dirty bit of every entry of `word` that differs from `keys`; other bits have no meaning.
    #[inline(always)]
    fn differs(word: u64, keys: u64) -> u64 {
        ((word ^ keys) & !Self::DIRT) + !Self::DIRT
    }

    /// Puts `entering` first: the new word, and the entry that falls off its end.
    #[inline(always)]
    fn push(word: u64, entering: u64) -> (u64, u64) {
        let turned = word.rotate_left(BITS);
        (turned & !Self::FIRST | entering, turned & Self::FIRST)
    }

    /// Makes an entry that the set holds the latest.
    #[inline(always)]
    fn rotate(words: &mut [u64; N], keys: u64, dirty: u64) {
        let mut entering = keys & Self::FIRST;
        for at in 0..N {
            let old = words[at];
            let equal = !Self::differs(old, keys) & Self::DIRT;
            let (moved, leaving) = Self::push(old, entering);
            if equal == 0 {
                words[at] = moved;
                entering = leaving;
                continue;
            }
            let top = equal.trailing_zeros();
            let upto = u64::MAX >> (63 - top);
            words[at] = moved & upto | old & !upto;
            // The dirt that the line had stays with it.
            words[0] |= (old >> top & 1) << (BITS - 1) | dirty;
            return;
        }
    }
}

impl<const BITS: u32, const N: usize> Sets for Packed<BITS, N> {
    #[inline(always)]
    fn touch(&mut self, set: usize, tag: u64, dirty: bool) -> Touch {
        let words = &mut self.sets[set];
        let key = tag + 1;
        let dirty = (dirty as u64) << (BITS - 1);
        if words[0] & (Self::FIRST >> 1) == key {
            words[0] |= dirty;
            return Touch::HIT;
        }
        let keys = key.wrapping_mul(Self::ONES);
        let differ = words.iter().fold(u64::MAX, |all, &word| all & Self::differs(word, keys));
        if differ & Self::DIRT != Self::DIRT {
            Self::rotate(words, keys, dirty);
            return Touch::HIT;
        }
        let mut entering = key | dirty;
        for word in words.iter_mut() {
            (*word, entering) = Self::push(*word, entering);
        }
        if self.spare > 0 {
            // The victim moved into the first entry that belongs to no way.
            let last = &mut words[N - 1];
            entering = *last >> (64 - self.spare) & Self::FIRST;
            *last &= u64::MAX >> self.spare;
        }
        Touch { hit: false, victim: entering & (Self::FIRST >> 1), dirty: entering >> (BITS - 1) == 1 }
    }

    fn mark_dirty(&mut self, set: usize, tag: u64) -> bool {
        for word in &mut self.sets[set] {
            let equal = !Self::differs(*word, (tag + 1).wrapping_mul(Self::ONES)) & Self::DIRT;
            if equal != 0 {
                *word |= 1 << equal.trailing_zeros();
                return true;
            }
        }
        false
    }
}

/// The entry of a tag in the forms below: dirt is the lowest bit.
fn entry(tag: u64) -> u64 {
    (tag + 1) << 1
}

fn evicting(victim: u64) -> Touch {
    Touch { hit: false, victim: victim >> 1, dirty: victim & 1 == 1 }
}

/// Least-recently-used sets of any number of ways and any tags, the latest entry first.
pub(super) struct Plain {
    ways: usize,
    entries: Vec<u64>,
}

impl Plain {
    pub fn new(sets: usize, ways: usize) -> Self {
        Self { ways, entries: vec![0; sets * ways] }
    }
}

impl Sets for Plain {
    fn touch(&mut self, set: usize, tag: u64, dirty: bool) -> Touch {
        let ways = &mut self.entries[set * self.ways..][..self.ways];
        let key = entry(tag);
        let at = ways.iter().position(|way| way & !1 == key);
        let last = at.unwrap_or(self.ways - 1);
        let old = ways[last];
        ways.copy_within(0..last, 1);
        match at {
            Some(_) => {
                ways[0] = old | dirty as u64;
                Touch::HIT
            }
            None => {
                ways[0] = key | dirty as u64;
                evicting(old)
            }
        }
    }

    fn mark_dirty(&mut self, set: usize, tag: u64) -> bool {
        mark(&mut self.entries[set * self.ways..][..self.ways], tag)
    }
}

fn mark(ways: &mut [u64], tag: u64) -> bool {
    match ways.iter_mut().find(|way| **way & !1 == entry(tag)) {
        Some(way) => {
            *way |= 1;
            true
        }
        None => false,
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
            nodes[node / 2] = node.is_multiple_of(2);
            node /= 2;
        }
    }
}

impl Sets for TreePlru {
    fn touch(&mut self, set: usize, tag: u64, dirty: bool) -> Touch {
        let ways = &mut self.entries[set * self.ways..][..self.ways];
        let key = entry(tag);
        if let Some(at) = ways.iter().position(|way| way & !1 == key) {
            ways[at] |= dirty as u64;
            self.used(set, at);
            return Touch::HIT;
        }
        let at = ways.iter().position(|&way| way == 0).unwrap_or_else(|| self.oldest(set));
        let way = &mut self.entries[set * self.ways + at];
        let victim = std::mem::replace(way, key | dirty as u64);
        self.used(set, at);
        evicting(victim)
    }

    fn mark_dirty(&mut self, set: usize, tag: u64) -> bool {
        mark(&mut self.entries[set * self.ways..][..self.ways], tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn miss(victim: Option<(u64, bool)>) -> Touch {
        let (victim, dirty) = victim.map_or((0, false), |(tag, dirty)| (tag + 1, dirty));
        Touch { hit: false, victim, dirty }
    }

    fn least_recently_used_leaves(mut sets: impl Sets) {
        for tag in [0, 3, 6] {
            assert_eq!(sets.touch(0, tag, tag == 3), miss(None));
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
        least_recently_used_leaves(Packed::<16, 1>::new(2, 3));
        least_recently_used_leaves(Packed::<32, 2>::new(2, 3));
        least_recently_used_leaves(Plain::new(2, 3));
    }

    #[test]
    fn one_way_holds_one_line() {
        let mut sets = Packed::<16, 1>::new(1, 1);
        assert_eq!(sets.touch(0, 5, true), miss(None));
        assert_eq!(sets.touch(0, 5, false), Touch::HIT);
        assert_eq!(sets.touch(0, 6, false), miss(Some((5, true))));
    }

    /// Every number of ways, with tags up to the largest that fit, against the plain form.
    #[test]
    fn packed_sets_are_plain_sets() {
        fn agree<const BITS: u32, const N: usize>() {
            let per_word = 64 / BITS as usize;
            for ways in (N - 1) * per_word + 1..=N * per_word {
                let (mut packed, mut plain) = (Packed::<BITS, N>::new(3, ways), Plain::new(3, ways));
                let most = (1 << (BITS - 1)) - 2;
                let mut state = 1u64;
                for step in 0..4000 {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let (set, near) = ((state >> 33) as usize % 3, (state >> 40) % (2 * ways as u64 + 1));
                    let tag = if state >> 63 == 1 { most - near } else { near };
                    if step % 5 == 4 {
                        assert_eq!(packed.mark_dirty(set, tag), plain.mark_dirty(set, tag), "{BITS} {ways}");
                    } else {
                        let dirty = state >> 62 & 1 == 1;
                        assert_eq!(
                            packed.touch(set, tag, dirty),
                            plain.touch(set, tag, dirty),
                            "{BITS} {ways}"
                        );
                    }
                }
                assert!(Packed::<BITS, N>::holds(most + 1) && !Packed::<BITS, N>::holds(most + 2));
            }
        }
        agree::<16, 1>();
        agree::<16, 2>();
        agree::<16, 3>();
        agree::<16, 6>();
        agree::<32, 1>();
        agree::<32, 2>();
        agree::<32, 6>();
        agree::<32, 10>();
    }

    #[test]
    fn tree_plru_points_away_from_recent_use() {
        let mut sets = TreePlru::new(1, 4);
        for tag in 0..4 {
            assert_eq!(sets.touch(0, tag, false), miss(None));
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

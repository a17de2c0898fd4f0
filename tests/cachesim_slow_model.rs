//! The cache model against a slow one that is obviously right, on random streams.
#![cfg(feature = "instruments")]

use proptest::prelude::*;
use restride::cachesim::{Access, CacheSpec, Hierarchy, Options, Replacement, Run, TlbSpec};
use std::collections::BTreeMap;

/// One line in a slow cache.
#[derive(Clone, Debug)]
struct Line {
    number: u64,
    dirty: bool,
    last_use: u64,
    way: u64,
}

/// A level by the book: a list of lines, a clock, one access at a time, each followed to the end.
#[derive(Default)]
struct Slow {
    specs: Vec<CacheSpec>,
    plru: bool,
    prefetch: bool,
    /// Per level: the lines it holds, in no order.
    lines: Vec<Vec<Line>>,
    /// Per level and set: for each inner node (depth, index) of the tree whether the right half is older.
    trees: Vec<BTreeMap<(u64, u64, u64), bool>>,
    /// Per level: when each line was last used, for misses by cause.
    uses: Vec<BTreeMap<u64, u64>>,
    counts: Vec<[u64; 8]>,
    clock: u64,
}

const ACCESSES: usize = 0;
const MISSES: usize = 1;
const EVICTIONS: usize = 2;
const WRITE_BACKS: usize = 3;
const PREFETCHES: usize = 4;
const COMPULSORY: usize = 5;
const CAPACITY: usize = 6;
const CONFLICT: usize = 7;

impl Slow {
    fn new(specs: &[CacheSpec], plru: bool, prefetch: bool) -> Self {
        let n = specs.len();
        Self {
            specs: specs.to_vec(),
            plru,
            prefetch,
            lines: vec![Vec::new(); n],
            trees: vec![BTreeMap::new(); n],
            uses: vec![BTreeMap::new(); n],
            counts: vec![[0; 8]; n],
            clock: 0,
        }
    }

    fn set_of(&self, k: usize, number: u64) -> u64 {
        let spec = &self.specs[k];
        number % (spec.bytes / spec.ways / spec.line)
    }

    /// Distinct lines used since `number` was, itself included; `None` where it never was.
    fn distance(&self, k: usize, number: u64) -> Option<u64> {
        let then = *self.uses[k].get(&number)?;
        Some(self.uses[k].values().filter(|&&use_| use_ >= then).count() as u64)
    }

    /// Looks a line up and brings it in: whether it was there, and the cause of the miss if not.
    fn look_up(&mut self, k: usize, number: u64, dirty: bool) -> Option<usize> {
        self.clock += 1;
        let (set, ways) = (self.set_of(k, number), self.specs[k].ways);
        let total = self.specs[k].bytes / self.specs[k].line;
        let cause = match self.distance(k, number) {
            None => COMPULSORY,
            Some(d) if d > total => CAPACITY,
            Some(_) => CONFLICT,
        };
        self.uses[k].insert(number, self.clock);
        let clock = self.clock;
        if let Some(line) = self.lines[k].iter_mut().find(|line| line.number == number) {
            line.last_use = clock;
            line.dirty |= dirty;
            let way = line.way;
            self.point_away(k, set, way);
            return None;
        }
        let same: Vec<Line> =
            self.lines[k].iter().filter(|l| self.set_of(k, l.number) == set).cloned().collect();
        let way = if (same.len() as u64) < ways {
            (0..ways).find(|way| same.iter().all(|l| l.way != *way)).unwrap()
        } else {
            let victim = if self.plru {
                let way = self.follow(k, set);
                same.iter().find(|l| l.way == way).unwrap().clone()
            } else {
                same.iter().min_by_key(|l| l.last_use).unwrap().clone()
            };
            self.lines[k].retain(|l| l.number != victim.number);
            self.counts[k][EVICTIONS] += 1;
            if victim.dirty {
                self.counts[k][WRITE_BACKS] += 1;
                let bytes = self.specs[k].line;
                self.write_back(k + 1, victim.number * bytes, bytes);
            }
            victim.way
        };
        self.lines[k].push(Line { number, dirty, last_use: clock, way });
        self.point_away(k, set, way);
        Some(cause)
    }

    /// The way that the bits of the tree lead to, from the root down.
    fn follow(&self, k: usize, set: u64) -> u64 {
        let (mut depth, mut index, mut half) = (0, 0, self.specs[k].ways);
        while half > 1 {
            let right = *self.trees[k].get(&(set, depth, index)).unwrap_or(&false);
            index = 2 * index + right as u64;
            depth += 1;
            half /= 2;
        }
        index
    }

    fn point_away(&mut self, k: usize, set: u64, way: u64) {
        if !self.plru {
            return;
        }
        let levels = self.specs[k].ways.trailing_zeros() as u64;
        for depth in 0..levels {
            let went_right = way >> (levels - 1 - depth) & 1 == 1;
            self.trees[k].insert((set, depth, way >> (levels - depth)), !went_right);
        }
    }

    fn write_back(&mut self, k: usize, addr: u64, len: u64) {
        if k == self.specs.len() {
            return;
        }
        let bytes = self.specs[k].line;
        for number in addr / bytes..=(addr + len - 1) / bytes {
            match self.lines[k].iter_mut().find(|line| line.number == number) {
                Some(line) => line.dirty = true,
                None => {
                    let from = addr.max(number * bytes);
                    let to = (addr + len).min((number + 1) * bytes);
                    self.write_back(k + 1, from, to - from);
                }
            }
        }
    }

    fn prefetch(&mut self, k: usize, addr: u64, len: u64) {
        if k == self.specs.len() {
            return;
        }
        let bytes = self.specs[k].line;
        for number in addr / bytes..=(addr + len - 1) / bytes {
            if self.look_up(k, number, false).is_some() {
                self.counts[k][PREFETCHES] += 1;
                self.prefetch(k + 1, number * bytes, bytes);
            }
        }
    }

    fn access(&mut self, k: usize, addr: u64, len: u64, write: bool) {
        if k == self.specs.len() {
            return;
        }
        let bytes = self.specs[k].line;
        self.counts[k][ACCESSES] += 1;
        let numbers = addr / bytes..=(addr + len - 1) / bytes;
        let last = *numbers.end();
        let causes: Vec<usize> = numbers.filter_map(|number| self.look_up(k, number, write)).collect();
        if let Some(&cause) = causes.iter().min() {
            self.counts[k][MISSES] += 1;
            self.counts[k][cause] += 1;
            self.access(k + 1, addr, len, false);
            if k == 0 && self.prefetch {
                self.prefetch(0, (last + 1) * bytes, bytes);
            }
        }
    }
}

fn spec(name: &'static str) -> impl Strategy<Value = CacheSpec> {
    (1u64..7, 1u64..6, prop_oneof![Just(8u64), Just(16), Just(24), Just(32)])
        .prop_map(move |(sets, ways, line)| CacheSpec::new(name, sets * ways * line, ways, line))
}

fn power_of_two_spec(name: &'static str) -> impl Strategy<Value = CacheSpec> {
    (1u64..5, 0u32..4, prop_oneof![Just(8u64), Just(16), Just(32)])
        .prop_map(move |(sets, ways, line)| CacheSpec::new(name, (sets << ways) * line, 1 << ways, line))
}

/// Start, stride, count, kind: strides below, at and beyond a line, of both signs.
fn runs() -> impl Strategy<Value = Vec<(u64, i64, u64, Access)>> {
    let access =
        prop_oneof![4 => Just(Access::Read), 3 => Just(Access::Write), 1 => Just(Access::StreamingWrite)];
    let stride = prop_oneof![Just(0i64), -40i64..40, Just(48), Just(-64)];
    prop::collection::vec((0u64..3000, stride, 1u64..40, access), 1..30)
}

fn compare(specs: &[CacheSpec], options: &Options, runs: &[(u64, i64, u64, Access)], len: u64) {
    let base = 4096;
    let mut fast = Hierarchy::new(specs, options, 1 << 14).unwrap();
    let plru = options.replacement == Replacement::TreePlru;
    let mut slow = Slow::new(specs, plru, options.prefetch_next_line);
    let tlb = options.tlb.map(|t| CacheSpec::new("TLB", t.entries * t.page_bytes, t.ways, t.page_bytes));
    let mut slow_tlb = Slow::new(tlb.as_slice(), plru, false);
    let mut streaming = 0;
    for &(start, stride, count, access) in runs {
        fast.run(Run { start: base + start, stride, count }, len as u32, access);
        for i in 0..count {
            let addr = (base + start).wrapping_add_signed(stride * i as i64);
            slow_tlb.access(0, addr, len, false);
            match access {
                Access::StreamingWrite => streaming += 1,
                _ => slow.access(0, addr, len, access == Access::Write),
            }
        }
    }
    assert_eq!(fast.streaming(), (streaming, streaming * len));
    for (k, (counts, slow)) in fast.counts().iter().zip(&slow.counts).enumerate() {
        let fast = [counts.accesses, counts.misses, counts.evictions, counts.write_backs, counts.prefetches];
        assert_eq!(fast, slow[..5], "level {k} of {specs:?}, {options:?}, {runs:?}");
        assert_eq!(counts.hits() + counts.misses, counts.accesses);
        if let Some(classes) = counts.classes {
            assert_eq!(
                [classes.compulsory, classes.capacity, classes.conflict],
                slow[5..],
                "level {k} of {specs:?}"
            );
        }
    }
    if let Some(counts) = fast.tlb() {
        assert_eq!([counts.accesses, counts.misses], slow_tlb.counts[0][..2]);
    }
}

proptest! {
    #[test]
    fn lru_levels(
        specs in (spec("L1d"), spec("L2"), spec("L3")),
        levels in 1usize..4,
        runs in runs(),
        len in prop_oneof![Just(1u64), Just(3), Just(4), Just(8), Just(12), Just(40)],
        classes: bool,
        prefetch_next_line: bool,
        tlb: bool,
    ) {
        let specs = [specs.0, specs.1, specs.2];
        let mut options = Options::default();
        options.classes = classes;
        options.prefetch_next_line = prefetch_next_line;
        options.tlb = tlb.then(|| TlbSpec::new(6, 3, 128));
        compare(&specs[..levels], &options, &runs, len);
    }

    #[test]
    fn tree_plru_levels(
        specs in (power_of_two_spec("L1d"), power_of_two_spec("L2")),
        runs in runs(),
        len in prop_oneof![Just(1u64), Just(4), Just(12)],
        prefetch_next_line: bool,
    ) {
        let mut options = Options::default();
        options.replacement = Replacement::TreePlru;
        options.prefetch_next_line = prefetch_next_line;
        compare(&[specs.0, specs.1], &options, &runs, len);
    }

    #[test]
    fn every_number_of_ways_that_is_compiled_in(
        ways in 1u64..26,
        addresses in prop::collection::vec(0u64..512, 1..400),
    ) {
        let specs = [CacheSpec::new("L1d", 2 * ways * 8, ways, 8), CacheSpec::new("L2", 300 * 8, 100, 8)];
        let runs: Vec<_> = addresses.iter().map(|&a| (a, 0, 1, if a % 3 == 0 { Access::Write } else { Access::Read })).collect();
        compare(&specs, &Options::default(), &runs, 4);
    }
}

#[test]
fn what_cannot_be_modelled_is_refused() {
    let l1 = CacheSpec::new("L1d", 48 << 10, 12, 64);
    let mut plru = Options::default();
    plru.replacement = Replacement::TreePlru;
    let refused = |caches: &[CacheSpec], options: &Options, reach: u64| {
        let error = Hierarchy::new(caches, options, reach).err().expect("refused");
        assert_eq!(error.kind(), "caches");
        error.to_string()
    };
    assert!(refused(&[], &Options::default(), 1).contains("at least one"));
    assert!(refused(&[l1.clone(), l1.clone()], &Options::default(), 1).contains("twice"));
    assert!(refused(&[l1], &plru, 1).contains("power-of-two"));
    let huge = CacheSpec::new("L4", 1 << 60, 16, 64);
    assert!(refused(std::slice::from_ref(&huge), &Options::default(), i64::MAX as u64).contains("too large"));
    // The same cache costs a small walk nothing.
    assert!(Hierarchy::new(&[huge], &Options::default(), 1 << 20).is_ok());
}

#[test]
fn wide_addresses_take_the_wide_entries() {
    let specs = [CacheSpec::new("L1d", 48 << 10, 12, 64), CacheSpec::new("L2", 2 << 20, 16, 64)];
    let walk = |base: u64, reach: u64| {
        let mut model = Hierarchy::new(&specs, &Options::default(), reach).unwrap();
        for start in (0..8192).step_by(8) {
            model.run(Run { start: base + start, stride: 8192, count: 1024 }, 8, Access::Write);
        }
        model.counts()
    };
    let low = walk(0, 1 << 23);
    assert_eq!((low[0].misses, low[1].misses), (1 << 20, 1 << 20));
    assert_eq!(walk(1 << 45, 1 << 46), low);
}

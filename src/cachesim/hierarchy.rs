//! The levels one behind the other.

use super::level::{Kind, LevelCounts, Request, Stage, stage};
use super::runs::Run;
use super::spec::{CacheSpec, Options};
use crate::Error;

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads.
    Read,
    /// Writes through the caches: allocates on a miss, writes back on eviction.
    Write,
    /// Writes past the caches.
    StreamingWrite,
}

/// Misses that are collected before the next level serves them.
const BATCH: usize = 2048;

/// Caches of a given size, and what they counted so far.
///
/// As nothing flows from a level back to the one before it, each level serves a batch of requests
/// at a time: its code and its sets stay hot, and the result is the same.
///
/// ```
/// use restride::cachesim::{Access, CacheSpec, Hierarchy, Options, Run};
///
/// let caches = [CacheSpec::new("L1d", 48 << 10, 12, 64), CacheSpec::new("L2", 2 << 20, 16, 64)];
/// let mut model = Hierarchy::new(&caches, &Options::default(), 1 << 20)?;
/// // 1000 elements of 8 bytes, one after the other.
/// model.run(Run { start: 0, stride: 8, count: 1000 }, 8, Access::Read);
/// let counts = model.counts();
/// assert_eq!((counts[0].accesses, counts[0].misses), (1000, 125));
/// assert_eq!((counts[1].accesses, counts[1].misses), (125, 125));
/// # Ok::<(), restride::Error>(())
/// ```
pub struct Hierarchy {
    levels: Vec<Box<dyn Stage>>,
    tlb: Option<Box<dyn Stage>>,
    /// Requests that wait for the level of the same number.
    waiting: Vec<Vec<Request>>,
    streaming_writes: u64,
    streaming_bytes: u64,
}

impl Hierarchy {
    /// Cold caches, the level next to the core first, for byte addresses below `reach`.
    ///
    /// # Errors
    ///
    /// `Caches` where the list is empty, names a level twice, or holds a level that cannot be cut
    /// into sets, that is too large to be modelled, or that tree-PLRU cannot serve.
    pub fn new(caches: &[CacheSpec], options: &Options, reach: u64) -> Result<Self, Error> {
        if caches.is_empty() {
            return Err(Error::Caches {
                reason: "the model has no cache: name at least one, as in L1d=48K/12/64".into(),
            });
        }
        for (k, cache) in caches.iter().enumerate() {
            if caches[..k].iter().any(|other| other.level == cache.level) {
                return Err(Error::Caches {
                    reason: format!("cache {} is named twice: name each level once", cache.level),
                });
            }
        }
        let levels = caches
            .iter()
            .enumerate()
            .map(|(k, cache)| stage(cache, options, reach, k == 0))
            .collect::<Result<Vec<_>, _>>()?;
        let tlb = match &options.tlb {
            Some(tlb) => Some(stage(
                &tlb.as_cache()?,
                &Options { prefetch_next_line: false, ..options.clone() },
                reach,
                true,
            )?),
            None => None,
        };
        let waiting = (0..=levels.len()).map(|_| Vec::with_capacity(2 * BATCH)).collect();
        Ok(Self { levels, tlb, waiting, streaming_writes: 0, streaming_bytes: 0 })
    }

    /// Makes the accesses of a run, `len` bytes each.
    pub fn run(&mut self, run: Run, len: u32, access: Access) {
        let kind = match access {
            Access::Read => Kind::Read,
            Access::Write => Kind::Write,
            Access::StreamingWrite => Kind::Write,
        };
        if run.count == 0 || len == 0 {
            return;
        }
        if let Some(tlb) = &mut self.tlb {
            let rest = &mut self.waiting[0];
            tlb.run(run, len, Kind::Read, rest);
            rest.clear();
        }
        if access == Access::StreamingWrite {
            self.streaming_writes += run.count;
            self.streaming_bytes += run.count * len as u64;
            return;
        }
        // Parts of a batch each, so that the requests of a long run stay in this machine's caches.
        let mut from = 0;
        while from < run.count {
            let count = (run.count - from).min(2 * BATCH as u64);
            self.levels[0].run(run.part(from, count), len, kind, &mut self.waiting[1]);
            from += count;
            if self.waiting[1].len() >= BATCH {
                self.settle();
            }
        }
    }

    /// Lets every level serve what waits for it.
    fn settle(&mut self) {
        for k in 1..self.levels.len() {
            let (before, after) = self.waiting.split_at_mut(k + 1);
            self.levels[k].serve(&before[k], &mut after[0]);
            before[k].clear();
        }
        if let Some(memory) = self.waiting.last_mut() {
            memory.clear();
        }
    }

    /// What each level counted, the level next to the core first.
    pub fn counts(&mut self) -> Vec<LevelCounts> {
        self.settle();
        self.levels.iter().map(|level| level.counts()).collect()
    }

    /// What the TLB counted, where there is one.
    pub fn tlb(&self) -> Option<LevelCounts> {
        self.tlb.as_ref().map(|tlb| tlb.counts())
    }

    /// Streaming stores and the bytes they wrote.
    pub fn streaming(&self) -> (u64, u64) {
        (self.streaming_writes, self.streaming_bytes)
    }
}

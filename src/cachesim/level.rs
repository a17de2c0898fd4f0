//! One level: look-ups, counts, and what it asks of the level behind it.

use super::classes::{Cause, Classes, Shadow};
use super::runs::Run;
use super::sets::{Packed, Plain, Sets, TreePlru};
use super::spec::{CacheSpec, Options, Replacement};
use crate::Error;

/// What one level counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LevelCounts {
    /// Reads and writes that reached this level; prefetches and write-backs are none.
    pub accesses: u64,
    /// Accesses of which a line was missing.
    pub misses: u64,
    /// Lines that left for another line.
    pub evictions: u64,
    /// Dirty lines that left.
    pub write_backs: u64,
    /// Lines that a prefetch brought in.
    pub prefetches: u64,
    /// Misses by cause, where [`Options::classes`] asks for them.
    pub classes: Option<Classes>,
}

impl LevelCounts {
    /// Accesses that found all their lines.
    pub fn hits(&self) -> u64 {
        self.accesses - self.misses
    }
}

/// Why a level is asked for something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Prefetch,
    WriteBack,
}

/// One request to a level: `len` bytes from `addr` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub addr: u64,
    pub len: u32,
    pub kind: Kind,
}

/// A level as a stage: requests come in, those that it cannot serve go out, in order.
pub(super) trait Stage {
    /// Serves a run of equal accesses of `len` bytes.
    fn run(&mut self, run: Run, len: u32, kind: Kind, out: &mut Vec<Request>);
    /// Serves requests one by one.
    fn serve(&mut self, requests: &[Request], out: &mut Vec<Request>);
    fn counts(&self) -> LevelCounts;
}

/// Division by a number that rarely is anything but a power of two.
#[derive(Debug, Clone, Copy)]
enum Divisor {
    Shift(u32),
    /// `2^64 / by`, rounded up: exact for numerators and divisors below 2^32.
    Reciprocal(u64, u64),
    Any(u64),
}

impl Divisor {
    /// Divides numbers up to `most`.
    fn new(by: u64, most: u64) -> Self {
        match by {
            _ if by.is_power_of_two() => Self::Shift(by.trailing_zeros()),
            _ if by.max(most) >> 32 == 0 => Self::Reciprocal(u64::MAX / by + 1, by),
            _ => Self::Any(by),
        }
    }

    /// Quotient and remainder.
    #[inline(always)]
    fn divide(self, n: u64) -> (u64, u64) {
        match self {
            Self::Shift(bits) => (n >> bits, n & ((1 << bits) - 1)),
            Self::Reciprocal(inverse, by) => {
                let quotient = ((inverse as u128 * n as u128) >> 64) as u64;
                (quotient, n - quotient * by)
            }
            Self::Any(by) => (n / by, n % by),
        }
    }
}

struct Level<S> {
    line_bytes: u64,
    line: Divisor,
    /// Number of sets.
    count: u64,
    set: Divisor,
    sets: S,
    counts: LevelCounts,
    shadow: Option<Shadow>,
    prefetch_next: bool,
    /// Whether an access is more than one look-up.
    special: bool,
}

/// Lines that a modelled level may hold at most: 16 GiB of this machine's memory.
const MOST_LINES: u64 = 1 << 32;

/// Builds the stage of a level for addresses below `reach` bytes; `first` is the level next to the core.
pub(super) fn stage(
    spec: &CacheSpec,
    options: &Options,
    reach: u64,
    first: bool,
) -> Result<Box<dyn Stage>, Error> {
    let sets = spec.sets()?;
    let too_large = || Error::Caches {
        reason: format!(
            "cache {} of {} bytes is too large to be modelled: give a smaller one",
            spec.level, spec.bytes
        ),
    };
    // One more line than the walk reaches: the prefetcher asks for the next one. Sets behind the last
    // line are never looked at, so that a large cache costs a small walk nothing.
    let lines = reach / spec.line + 2;
    let (count, ways) = (sets.min(lines), spec.ways);
    if lines >= 1 << 62
        || spec.line > u32::MAX as u64
        || count.checked_mul(ways).is_none_or(|n| n > MOST_LINES)
    {
        return Err(too_large());
    }
    let parts = Parts { spec, sets, lines, options, first };
    let (count, ways) = (count as usize, ways as usize);
    Ok(match options.replacement {
        Replacement::TreePlru if !ways.is_power_of_two() => {
            return Err(Error::Caches {
                reason: format!(
                    "tree-PLRU needs a power-of-two number of ways, and cache {} has {ways}: use LRU",
                    spec.level
                ),
            });
        }
        Replacement::TreePlru => parts.with(TreePlru::new(count, ways)),
        Replacement::Lru => parts.lru(count, ways),
    })
}

struct Parts<'a> {
    spec: &'a CacheSpec,
    sets: u64,
    /// One past the largest line number.
    lines: u64,
    options: &'a Options,
    first: bool,
}

impl Parts<'_> {
    /// Few ways are packed into words as narrow as the tags allow.
    fn lru(&self, sets: usize, ways: usize) -> Box<dyn Stage> {
        let tags = self.lines.div_ceil(self.sets);
        match (ways.div_ceil(4), ways.div_ceil(2)) {
            (1, _) if Packed::<16, 1>::holds(tags) => self.with(Packed::<16, 1>::new(sets, ways)),
            (2, _) if Packed::<16, 2>::holds(tags) => self.with(Packed::<16, 2>::new(sets, ways)),
            (3, _) if Packed::<16, 3>::holds(tags) => self.with(Packed::<16, 3>::new(sets, ways)),
            (4, _) if Packed::<16, 4>::holds(tags) => self.with(Packed::<16, 4>::new(sets, ways)),
            (5, _) if Packed::<16, 5>::holds(tags) => self.with(Packed::<16, 5>::new(sets, ways)),
            (6, _) if Packed::<16, 6>::holds(tags) => self.with(Packed::<16, 6>::new(sets, ways)),
            (_, 2) if Packed::<32, 2>::holds(tags) => self.with(Packed::<32, 2>::new(sets, ways)),
            (_, 4) if Packed::<32, 4>::holds(tags) => self.with(Packed::<32, 4>::new(sets, ways)),
            (_, 6) if Packed::<32, 6>::holds(tags) => self.with(Packed::<32, 6>::new(sets, ways)),
            (_, 8) if Packed::<32, 8>::holds(tags) => self.with(Packed::<32, 8>::new(sets, ways)),
            _ => self.with(Plain::new(sets, ways)),
        }
    }

    fn with<S: Sets + 'static>(&self, sets: S) -> Box<dyn Stage> {
        let shadow = self.options.classes.then(|| Shadow::new(self.sets * self.spec.ways));
        let prefetch_next = self.first && self.options.prefetch_next_line;
        Box::new(Level {
            special: shadow.is_some() || prefetch_next,
            line_bytes: self.spec.line,
            line: Divisor::new(self.spec.line, self.lines.saturating_mul(self.spec.line)),
            count: self.sets,
            set: Divisor::new(self.sets, self.lines),
            sets,
            counts: LevelCounts {
                classes: shadow.is_some().then(Classes::default),
                ..LevelCounts::default()
            },
            shadow,
            prefetch_next,
        })
    }
}

impl<S: Sets> Level<S> {
    /// Looks one line up; a line that has to leave goes out first when it is dirty.
    #[inline(always)]
    fn look_up(&mut self, line: u64, dirty: bool, out: &mut Vec<Request>) -> bool {
        let (tag, set) = self.set.divide(line);
        let touch = self.sets.touch(set as usize, tag, dirty);
        self.counts.evictions += (touch.victim != 0) as u64;
        if touch.dirty {
            self.counts.write_backs += 1;
            let addr = ((touch.victim - 1) * self.count + set) * self.line_bytes;
            out.push(Request { addr, len: self.line_bytes as u32, kind: Kind::WriteBack });
        }
        touch.hit
    }

    /// One read or write.
    #[inline(always)]
    fn access(&mut self, addr: u64, len: u32, kind: Kind, out: &mut Vec<Request>) {
        let dirty = kind == Kind::Write;
        let first = self.line.divide(addr).0;
        let last = self.line.divide(addr + (len as u64 - 1)).0;
        self.counts.accesses += 1;
        if first != last || self.special {
            self.access_in_general(addr, len, first, last, dirty, out);
        } else if !self.look_up(first, dirty, out) {
            self.counts.misses += 1;
            out.push(Request { addr, len, kind: Kind::Read });
        }
    }

    /// One access of several lines, or one that classes or the prefetcher want to know of.
    #[cold]
    #[inline(never)]
    fn access_in_general(
        &mut self,
        addr: u64,
        len: u32,
        first: u64,
        last: u64,
        dirty: bool,
        out: &mut Vec<Request>,
    ) {
        let mut hit = true;
        let mut cause: Option<Cause> = None;
        for line in first..=last {
            let found = self.look_up(line, dirty, out);
            hit &= found;
            if let Some(shadow) = &mut self.shadow {
                let why = shadow.touch(line);
                if !found {
                    cause = Some(cause.map_or(why, |other| other.min(why)));
                }
            }
        }
        if hit {
            return;
        }
        self.counts.misses += 1;
        if let (Some(classes), Some(cause)) = (&mut self.counts.classes, cause) {
            classes.count(cause);
        }
        out.push(Request { addr, len, kind: Kind::Read });
        if self.prefetch_next {
            self.prefetch(last + 1, out);
        }
    }

    fn prefetch(&mut self, line: u64, out: &mut Vec<Request>) {
        let found = self.look_up(line, false, out);
        if let Some(shadow) = &mut self.shadow {
            shadow.touch(line);
        }
        if !found {
            self.counts.prefetches += 1;
            out.push(Request {
                addr: line * self.line_bytes,
                len: self.line_bytes as u32,
                kind: Kind::Prefetch,
            });
        }
    }

    /// A dirty line of the level before: marked where it is held, handed on where it is not.
    fn write_back(&mut self, request: Request, out: &mut Vec<Request>) {
        let first = self.line.divide(request.addr).0;
        let last = self.line.divide(request.addr + (request.len as u64 - 1)).0;
        for line in first..=last {
            let (tag, set) = self.set.divide(line);
            if self.sets.mark_dirty(set as usize, tag) {
                continue;
            }
            let from = request.addr.max(line * self.line_bytes);
            let to = (request.addr + request.len as u64).min((line + 1) * self.line_bytes);
            out.push(Request { addr: from, len: (to - from) as u32, kind: Kind::WriteBack });
        }
    }

    /// How many accesses of a run, from `addr` on, stay inside the line of the first one.
    #[inline(always)]
    fn same_line(&self, addr: u64, len: u32, stride: i64, count: u64) -> u64 {
        let within = self.line.divide(addr).1;
        if within + len as u64 > self.line_bytes {
            return 1;
        }
        let room = match stride {
            0 => return count,
            1.. => self.line_bytes - within - len as u64,
            _ => within,
        };
        count.min(1 + room / stride.unsigned_abs())
    }
}

impl<S: Sets> Stage for Level<S> {
    fn run(&mut self, run: Run, len: u32, kind: Kind, out: &mut Vec<Request>) {
        let mut addr = run.start;
        if run.stride.unsigned_abs() >= self.line_bytes || self.prefetch_next {
            for _ in 0..run.count {
                self.access(addr, len, kind, out);
                addr = addr.wrapping_add_signed(run.stride);
            }
            return;
        }
        let mut left = run.count;
        while left > 0 {
            // The accesses after the first in a line hit the latest line of its set: no state moves.
            let n = self.same_line(addr, len, run.stride, left);
            self.access(addr, len, kind, out);
            self.counts.accesses += n - 1;
            addr = addr.wrapping_add_signed(run.stride.wrapping_mul(n as i64));
            left -= n;
        }
    }

    fn serve(&mut self, requests: &[Request], out: &mut Vec<Request>) {
        for &request in requests {
            match request.kind {
                Kind::Read | Kind::Write => self.access(request.addr, request.len, request.kind, out),
                Kind::WriteBack => self.write_back(request, out),
                Kind::Prefetch => {
                    let first = self.line.divide(request.addr).0;
                    let last = self.line.divide(request.addr + (request.len as u64 - 1)).0;
                    for line in first..=last {
                        self.prefetch(line, out);
                    }
                }
            }
        }
    }

    fn counts(&self) -> LevelCounts {
        self.counts
    }
}

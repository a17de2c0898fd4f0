//! The values that plans are made with, and where each came from.
//!
//! An untuned machine gets its values from a small model of its caches (bytes, `l1d`, `l2`, `l3`) and of
//! the element size `s`; a profile replaces single values by what a search on the machine found.
//!
//! * Streaming stores cost the destination its place in the caches and save reading it before it is
//!   written. They pay as soon as source and destination together exceed what a core holds for itself:
//!   `1.5 * l2`, at least 1 MiB, where the last level is shared with strangers. Where it is the machine's
//!   own they pay from half of `l3` on for transposes (9/16 of it for elements of 4 and 8 bytes), and
//!   from `l3` on for rows.
//! * A direct transpose tile walks along `tile_src` bytes of each source row, a page, so that the
//!   hardware prefetcher runs and each row costs one TLB entry, and writes `tile_dst` bytes of each
//!   destination row, four lines, because lines are fetched in pairs (two for elements of 8 bytes and more, whose
//!   squares take few source rows at once). Its rows and columns together hold
//!   `2 * tile_src * tile_dst / s` bytes, which must fit L2: where they do not (narrow elements, a small
//!   L2), `tile_src` is halved until they do, down to four lines.
//! * A staged tile turns the long side to the destination: runs of `staged_dst` bytes, long enough that
//!   the masked stores at both ends hardly count, of `staged_src` bytes, two lines, of each source row.
//! * The tiles of a transpose may be taken in two levels: blocks of `block_dst` bytes of each destination row,
//!   all source rows of a block before the next. That pays where the pages of a whole destination row of
//!   source rows do not fit the TLB and base pages are all there is; 0, the default, is one level.
//! * Destination rows that do not start on lines slide onto them in registers (where the level can) from
//!   `slide_from` bytes on, 6 lines: two of seven lines are then written in part. Shorter rows are put together
//!   in staging memory. Rows that are dense on both sides, or put together in registers, leave without
//!   staging from `unstaged_rows_from` bytes on, 4 lines.
//! * The source is asked for ahead of its use: `row_ahead` bytes along rows, a page, which is as far as the
//!   hardware's own prefetchers look; `tile_ahead` bytes along each source row of a transpose, four lines, which
//!   with the 64 rows of a square of bytes is `4 * 64 * 64` bytes, a third of L1d.
//! * Threads deal out parts of `part` destination bytes at least, 256 KiB: moving it takes some 20
//!   microseconds, ten times what handing it out does, and eight parts a thread even out who was held up.
//! * Short rows are gathered until a tile moves `row_tile` bytes, half of L1d at most, so that the call is
//!   paid for and the lines of neighbouring rows are still there.
//! * Threads share the work from `parallel_from` destination bytes on: below it, waking them costs more
//!   than they save.

use crate::Error;
use crate::machine::topology::{self, CacheBytes, Topology};
use std::ops::RangeInclusive;
use std::sync::OnceLock;

const LINE: usize = 64;

/// Element sizes in bytes that have values of their own; other sizes use those of the next one below.
pub const ELEMENT_SIZES: [usize; 5] = [1, 2, 4, 8, 16];

/// Where a tuning value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// Chosen by measurements on other machines.
    Default,
    /// Made from cache sizes that this machine does not tell.
    Assumed,
    /// Made from this machine's cache sizes.
    Machine,
    /// Found by a search on this machine.
    Profile,
    /// Set by the caller.
    Caller,
}

impl Origin {
    /// A word for reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Assumed => "assumed",
            Self::Machine => "machine",
            Self::Profile => "profile",
            Self::Caller => "caller",
        }
    }
}

/// A tuning value and where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value {
    /// The value, in the unit that its field names.
    pub value: usize,
    /// Where it came from.
    pub origin: Origin,
}

impl Value {
    /// A value with its origin.
    pub fn new(value: usize, origin: Origin) -> Self {
        Self { value, origin }
    }
}

const fn preset(value: usize) -> Value {
    Value { value, origin: Origin::Default }
}

/// A value for each of [`ELEMENT_SIZES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BySize([Value; 5]);

impl BySize {
    fn made(value: impl Fn(usize) -> Value) -> Self {
        Self(ELEMENT_SIZES.map(value))
    }

    fn place(element: usize) -> usize {
        element.clamp(1, 16).ilog2() as usize
    }

    /// The value for elements of that many bytes, with its origin.
    pub fn at(&self, element: usize) -> Value {
        self.0[Self::place(element)]
    }

    /// The value for elements of that many bytes.
    pub fn of(&self, element: usize) -> usize {
        self.at(element).value
    }
}

/// The values that a [`Plan`](crate::Plan) is made with.
///
/// ```
/// use restride::Tuning;
/// let tuning = Tuning::default();
/// assert!(tuning.l1d_bytes.value > 0 && tuning.l2_bytes.value > tuning.l1d_bytes.value);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Tuning {
    /// First-level data cache of one core.
    pub l1d_bytes: Value,
    /// Second-level cache of one core.
    pub l2_bytes: Value,
    /// Last-level cache, shared.
    pub l3_bytes: Value,
    /// Transposes store past the caches from this many bytes on, source and destination together.
    pub streaming_from_bytes: BySize,
    /// As `streaming_from_bytes`, for everything that is no transpose: rows written whole into a last-level
    /// cache that is this machine's own are faster than memory.
    pub stream_rows_from_bytes: Value,
    /// Several threads share the work from this many destination bytes on.
    pub parallel_from_bytes: Value,
    /// How far a direct transpose tile walks along each source row.
    pub tile_src_bytes: BySize,
    /// How much a direct transpose tile writes of each destination row.
    pub tile_dst_bytes: BySize,
    /// How far a staged transpose tile walks along each source row.
    pub staged_src_bytes: BySize,
    /// How much a staged transpose tile writes of each destination row.
    pub staged_dst_bytes: BySize,
    /// Tiles of a streaming transpose are taken in blocks of so much of each destination row; 0: in one level.
    pub block_dst_bytes: BySize,
    /// Destination rows of a transpose that do not start on lines slide onto them in registers from this length
    /// on, where the level can; shorter ones go through staging memory.
    pub slide_from_bytes: BySize,
    /// Rows of anything else that do not start on lines stream without staging from this length on.
    pub unstaged_rows_from_bytes: Value,
    /// How far ahead of its use a source row of a transpose is asked for.
    pub tile_ahead_bytes: BySize,
    /// How far ahead of its use the source is asked for along rows.
    pub row_ahead_bytes: BySize,
    /// Rows shorter than this are gathered until a tile moves so much.
    pub row_tile_bytes: BySize,
    /// Destination bytes that one of several threads takes at a time, at least.
    pub part_bytes: Value,
}

impl Tuning {
    /// Values for a machine with these caches (bytes); 0 where a size is unknown.
    pub fn for_caches(l1d: usize, l2: usize, l3: usize) -> Self {
        let known = |bytes: usize, assumed: usize| match bytes {
            0 => CacheBytes { bytes: assumed, assumed: true },
            bytes => CacheBytes { bytes, assumed: false },
        };
        Self::for_known(
            known(l1d, topology::DEFAULT_L1D_BYTES),
            known(l2, topology::DEFAULT_L2_BYTES),
            known(l3, topology::DEFAULT_L3_BYTES),
            false,
        )
    }

    fn for_known(l1d: CacheBytes, l2: CacheBytes, l3: CacheBytes, own_l3: bool) -> Self {
        let from = |cache: CacheBytes, value: usize| {
            Value::new(value, if cache.assumed { Origin::Assumed } else { Origin::Machine })
        };
        // A value that no cache cut down is the default.
        let cut = |cache: CacheBytes, value: usize, whole: usize| match value == whole {
            true => preset(value),
            false => from(cache, value),
        };
        let (tile_src, tile_dst) = (4 << 10, 4 * LINE);
        let (staged_src, staged_dst) = (2 * LINE, 1 << 10);
        Self {
            l1d_bytes: from(l1d, l1d.bytes),
            l2_bytes: from(l2, l2.bytes),
            l3_bytes: from(l3, l3.bytes),
            streaming_from_bytes: BySize::made(|s| match own_l3 {
                // Narrow elements write single lines far apart, which memory likes least.
                true => from(l3, if matches!(s, 4 | 8) { l3.bytes / 16 * 9 } else { l3.bytes / 2 }),
                false => from(l2, (l2.bytes.saturating_add(l2.bytes / 2)).max(1 << 20)),
            }),
            stream_rows_from_bytes: match own_l3 {
                true => from(l3, l3.bytes),
                false => from(l2, (l2.bytes.saturating_add(l2.bytes / 2)).max(1 << 20)),
            },
            parallel_from_bytes: preset(8 << 20),
            tile_src_bytes: BySize::made(|s| {
                let mut src = tile_src;
                while src > 4 * LINE && 2 * src * tile_dst / s > l2.bytes {
                    src /= 2;
                }
                cut(l2, src, tile_src)
            }),
            tile_dst_bytes: BySize::made(|s| preset(if s >= 8 { tile_dst / 2 } else { tile_dst })),
            staged_src_bytes: BySize::made(|_| preset(staged_src)),
            staged_dst_bytes: BySize::made(|_| preset(staged_dst)),
            block_dst_bytes: BySize::made(|_| preset(0)),
            slide_from_bytes: BySize::made(|_| preset(6 * LINE)),
            unstaged_rows_from_bytes: preset(4 * LINE),
            tile_ahead_bytes: BySize::made(|_| preset(4 * LINE)),
            row_ahead_bytes: BySize::made(|_| preset(4 << 10)),
            part_bytes: preset(256 << 10),
            row_tile_bytes: BySize::made(|_| {
                cut(l1d, (16 << 10).min((l1d.bytes / 2).max(4 << 10)), 16 << 10)
            }),
        }
    }

    /// The values that plans on this machine are made with unless their options say otherwise: those of
    /// [`Self::unprofiled`] unless the program put others in their place before the first plan.
    pub fn machine() -> &'static Self {
        MACHINE.get_or_init(|| *Self::unprofiled())
    }

    /// The values that follow from this machine's caches, read once.
    pub fn unprofiled() -> &'static Self {
        static UNPROFILED: OnceLock<Tuning> = OnceLock::new();
        UNPROFILED.get_or_init(|| {
            let host = Topology::host();
            let own_l3 = host.last_private_level().is_some_and(|cache| cache.level >= 3);
            Self::for_known(host.l1d(), host.l2(), host.l3(), own_l3)
        })
    }

    /// Makes these the values of [`Self::machine`]; says whether it was in time, before the first plan.
    pub fn install(self) -> bool {
        MACHINE.set(self).is_ok()
    }

    /// A value by its knob, for elements of that many bytes.
    pub fn get(&self, knob: Knob, element: usize) -> Value {
        let mut copy = *self;
        *copy.place(knob, element)
    }

    /// Sets a value by its knob: for one of [`ELEMENT_SIZES`], or for all of them.
    ///
    /// # Errors
    /// `Tuning`: an element size that has no values of its own, one for a knob that does not depend on it,
    /// and a value outside [`Knob::range`].
    pub fn set(&mut self, knob: Knob, element: Option<usize>, value: Value) -> Result<(), Error> {
        let (name, range) = (knob.name(), knob.range());
        let refuse = |reason| Err(Error::Tuning { reason });
        if !range.contains(&value.value) {
            let (low, high) = (range.start(), range.end());
            return refuse(format!("{name} is {}, which is not between {low} and {high}", value.value));
        }
        match element {
            Some(size) if !knob.by_size() => {
                return refuse(format!("{name} does not depend on the element size {size}"));
            }
            Some(size) if !ELEMENT_SIZES.contains(&size) => {
                return refuse(format!("{name} has no value for elements of {size} bytes"));
            }
            Some(size) => *self.place(knob, size) = value,
            None => ELEMENT_SIZES.iter().for_each(|&size| *self.place(knob, size) = value),
        }
        Ok(())
    }

    fn place(&mut self, knob: Knob, element: usize) -> &mut Value {
        let by_size = match knob {
            Knob::ParallelFrom => return &mut self.parallel_from_bytes,
            Knob::StreamRowsFrom => return &mut self.stream_rows_from_bytes,
            Knob::UnstagedRowsFrom => return &mut self.unstaged_rows_from_bytes,
            Knob::Part => return &mut self.part_bytes,
            Knob::StreamingFrom => &mut self.streaming_from_bytes,
            Knob::TileSrc => &mut self.tile_src_bytes,
            Knob::TileDst => &mut self.tile_dst_bytes,
            Knob::StagedSrc => &mut self.staged_src_bytes,
            Knob::StagedDst => &mut self.staged_dst_bytes,
            Knob::BlockDst => &mut self.block_dst_bytes,
            Knob::SlideFrom => &mut self.slide_from_bytes,
            Knob::TileAhead => &mut self.tile_ahead_bytes,
            Knob::RowAhead => &mut self.row_ahead_bytes,
            Knob::RowTile => &mut self.row_tile_bytes,
        };
        &mut by_size.0[BySize::place(element)]
    }
}

static MACHINE: OnceLock<Tuning> = OnceLock::new();

impl Default for Tuning {
    fn default() -> Self {
        *Self::machine()
    }
}

/// A value that a search may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Knob {
    /// [`Tuning::streaming_from_bytes`].
    StreamingFrom,
    /// [`Tuning::stream_rows_from_bytes`].
    StreamRowsFrom,
    /// [`Tuning::parallel_from_bytes`].
    ParallelFrom,
    /// [`Tuning::tile_src_bytes`].
    TileSrc,
    /// [`Tuning::tile_dst_bytes`].
    TileDst,
    /// [`Tuning::staged_src_bytes`].
    StagedSrc,
    /// [`Tuning::staged_dst_bytes`].
    StagedDst,
    /// [`Tuning::row_tile_bytes`].
    RowTile,
    /// [`Tuning::block_dst_bytes`].
    BlockDst,
    /// [`Tuning::slide_from_bytes`].
    SlideFrom,
    /// [`Tuning::unstaged_rows_from_bytes`].
    UnstagedRowsFrom,
    /// [`Tuning::tile_ahead_bytes`].
    TileAhead,
    /// [`Tuning::row_ahead_bytes`].
    RowAhead,
    /// [`Tuning::part_bytes`].
    Part,
}

impl Knob {
    /// Every knob.
    pub const ALL: [Self; 14] = [
        Self::StreamingFrom,
        Self::StreamRowsFrom,
        Self::ParallelFrom,
        Self::TileSrc,
        Self::TileDst,
        Self::StagedSrc,
        Self::StagedDst,
        Self::RowTile,
        Self::BlockDst,
        Self::SlideFrom,
        Self::UnstagedRowsFrom,
        Self::TileAhead,
        Self::RowAhead,
        Self::Part,
    ];

    /// The name of its field, which ends in the unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::StreamingFrom => "streaming_from_bytes",
            Self::StreamRowsFrom => "stream_rows_from_bytes",
            Self::ParallelFrom => "parallel_from_bytes",
            Self::TileSrc => "tile_src_bytes",
            Self::TileDst => "tile_dst_bytes",
            Self::StagedSrc => "staged_src_bytes",
            Self::StagedDst => "staged_dst_bytes",
            Self::RowTile => "row_tile_bytes",
            Self::BlockDst => "block_dst_bytes",
            Self::SlideFrom => "slide_from_bytes",
            Self::UnstagedRowsFrom => "unstaged_rows_from_bytes",
            Self::TileAhead => "tile_ahead_bytes",
            Self::RowAhead => "row_ahead_bytes",
            Self::Part => "part_bytes",
        }
    }

    /// The knob of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|knob| knob.name() == name)
    }

    /// Whether it has a value for each element size.
    pub fn by_size(self) -> bool {
        !matches!(self, Self::ParallelFrom | Self::StreamRowsFrom | Self::UnstagedRowsFrom | Self::Part)
    }

    /// Values that make sense, in bytes.
    pub fn range(self) -> RangeInclusive<usize> {
        match self {
            Self::StreamingFrom | Self::StreamRowsFrom | Self::ParallelFrom => 64 << 10..=usize::MAX >> 1,
            Self::TileSrc => LINE..=64 << 10,
            Self::TileDst | Self::StagedSrc | Self::StagedDst => LINE..=8 << 10,
            Self::RowTile => 1 << 10..=1 << 20,
            // 0 is one level; 0 ahead asks for what is read anyway.
            Self::BlockDst | Self::TileAhead | Self::RowAhead => 0..=64 << 10,
            Self::SlideFrom | Self::UnstagedRowsFrom => LINE..=usize::MAX >> 1,
            Self::Part => 4 << 10..=1 << 30,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_caches_are_assumed_and_known_ones_are_the_machine() {
        let t = Tuning::for_caches(48 << 10, 0, 0);
        assert_eq!(t.l1d_bytes, Value::new(48 << 10, Origin::Machine));
        assert_eq!(t.l2_bytes.origin, Origin::Assumed);
        assert_eq!(t.streaming_from_bytes.at(4).origin, Origin::Assumed);
        assert_eq!(t.tile_dst_bytes.at(4).origin, Origin::Default);
    }

    #[test]
    fn a_small_l2_makes_tiles_of_narrow_elements_shorter() {
        let t = Tuning::for_caches(32 << 10, 256 << 10, 8 << 20);
        assert_eq!(t.tile_src_bytes.at(16), preset(4096));
        assert_eq!(t.tile_src_bytes.at(1), Value::new(512, Origin::Machine));
        assert_eq!(Tuning::for_caches(48 << 10, 2 << 20, 0).tile_src_bytes.of(1), 4096);
    }

    #[test]
    fn odd_sizes_use_the_next_size_below() {
        let mut t = Tuning::for_caches(0, 0, 0);
        let caller = Value::new(256, Origin::Caller);
        t.set(Knob::TileDst, Some(2), caller).unwrap();
        assert_eq!((t.tile_dst_bytes.at(3), t.get(Knob::TileDst, 2)), (caller, caller));
        assert_eq!(t.tile_dst_bytes.of(4), 256);
        assert_ne!(t.tile_dst_bytes.at(4), caller);
        assert_eq!(t.tile_dst_bytes.at(100), t.tile_dst_bytes.at(16));
        t.set(Knob::TileDst, None, caller).unwrap();
        assert!(ELEMENT_SIZES.iter().all(|&size| t.get(Knob::TileDst, size) == caller));
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        let mut t = Tuning::for_caches(0, 0, 0);
        for knob in Knob::ALL {
            assert_eq!(Knob::from_name(knob.name()), Some(knob));
            let (low, high) = (*knob.range().start(), *knob.range().end());
            assert!(t.set(knob, None, Value::new(high + 1, Origin::Caller)).is_err());
            if let Some(less) = low.checked_sub(1) {
                assert!(t.set(knob, None, Value::new(less, Origin::Caller)).is_err());
            }
            assert!(t.set(knob, Some(3), Value::new(*knob.range().start(), Origin::Caller)).is_err());
            assert!(knob.range().contains(&t.get(knob, 4).value), "{knob:?}");
        }
        assert_eq!(t, Tuning::for_caches(0, 0, 0));
    }
}

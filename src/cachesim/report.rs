//! The model of a view, ready to be printed.

use super::classes::Classes;
use super::hierarchy::{Access, Hierarchy};
use super::level::LevelCounts;
use super::runs::{Order, Run};
use super::spec::{CacheSpec, Options};
use super::trace::planned;
use crate::copy::plan::Plan;
use crate::{Error, Layout};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Look-ups after which a walk is refused: some minutes.
const MOST_LOOKUPS: u128 = 1 << 34;

/// What the model says of one view, and of the plan that materializes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ModelReport {
    /// The caches that were modelled, the level next to the core first.
    pub caches: Vec<CacheSpec>,
    /// What the model takes into account beyond plain LRU levels, where that is anything.
    #[serde(skip_serializing_if = "Options::is_default")]
    pub options: Options,
    /// The walk over the view in logical order: reads only.
    pub naive: WalkReport,
    /// The copy as its plan makes it: reads and writes.
    pub plan: PlanReport,
}

/// What a walk over a view costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WalkReport {
    /// Accesses and misses of each level.
    pub levels: Levels<LevelReport>,
    /// Misses of each level divided by the valid elements of the view; 0 where it has none.
    pub misses_per_element: Levels<f64>,
    /// Distinct lines of the first level's size that the walk touches.
    pub lines_touched: u64,
    /// Those of which every byte is used.
    pub lines_used_in_full: u64,
    /// The TLB, where one is modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlb: Option<LevelReport>,
}

/// What a copy costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlanReport {
    /// Accesses, misses and write-backs of each level; streaming stores reach none.
    pub levels: Levels<PlanLevelReport>,
    /// Misses of each level divided by the valid elements of the source view; 0 where it has none.
    pub misses_per_element: Levels<f64>,
    /// Distinct lines of the first level's size that the copy reads or writes.
    pub lines_touched: u64,
    /// Those of which every byte is read or written.
    pub lines_used_in_full: u64,
    /// Stores past the caches.
    pub streaming: StreamingReport,
    /// The copy's own memory.
    pub own: OwnReport,
    /// The TLB, where one is modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tlb: Option<LevelReport>,
}

/// Stores that bypass every level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StreamingReport {
    /// Stores, each as wide as the kernel makes it.
    pub stores: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What the levels see of memory that belongs to neither buffer: staging rows, packed lines, fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OwnReport {
    /// Loads and stores of the copy's own memory, which are among the first level's accesses.
    pub accesses: u64,
    /// Distinct lines of the first level's size that they touch.
    pub lines: u64,
}

/// A value for each level, by name, the level next to the core first.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels<T>(pub Vec<(String, T)>);

impl<T> Levels<T> {
    pub(super) fn of(
        caches: &[CacheSpec],
        counts: &[LevelCounts],
        value: impl Fn(&LevelCounts) -> T,
    ) -> Self {
        Self(caches.iter().zip(counts).map(|(cache, counts)| (cache.level.clone(), value(counts))).collect())
    }

    /// The value of the level of that name.
    pub fn get(&self, level: &str) -> Option<&T> {
        self.0.iter().find(|(name, _)| name == level).map(|(_, value)| value)
    }
}

impl<T: Serialize> Serialize for Levels<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// What one level counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LevelReport {
    /// Reads and writes that reached the level.
    pub accesses: u64,
    /// Those of which a line was missing.
    pub misses: u64,
    /// Misses by cause, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Classes>,
}

impl From<LevelCounts> for LevelReport {
    fn from(counts: LevelCounts) -> Self {
        Self { accesses: counts.accesses, misses: counts.misses, classes: counts.classes }
    }
}

/// What one level counted during a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlanLevelReport {
    /// Reads and writes that reached the level.
    pub accesses: u64,
    /// Those of which a line was missing.
    pub misses: u64,
    /// Lines that left for another line.
    pub evictions: u64,
    /// Dirty lines that left. Lines that are still dirty at the end are not among them.
    pub write_backs: u64,
    /// Misses by cause, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Classes>,
}

impl From<LevelCounts> for PlanLevelReport {
    fn from(counts: LevelCounts) -> Self {
        let LevelCounts { accesses, misses, evictions, write_backs, classes, .. } = counts;
        Self { accesses, misses, evictions, write_backs, classes }
    }
}

/// Misses over elements.
pub(super) fn per_element(misses: u64, elements: u64) -> f64 {
    if elements == 0 { 0.0 } else { misses as f64 / elements as f64 }
}

/// Models the naive walk over a view: one read per valid element in row-major logical order.
///
/// Elements are `element_size` bytes wide. Sizes are in bytes; element `i` of the buffer lies at
/// byte `i * element_size`.
///
/// ```
/// use restride::cachesim::{CacheSpec, Options, naive};
/// use restride::Layout;
///
/// let caches = [CacheSpec::new("L1d", 48 << 10, 12, 64), CacheSpec::new("L2", 2 << 20, 16, 64)];
/// let rows = Layout::row_major(&[1024, 1024])?;
/// let columns = Layout::column_major(&[1024, 1024])?;
/// let misses = |layout| Ok::<_, restride::Error>(naive(layout, 8, &caches, &Options::default())?.levels.get("L1d").unwrap().misses);
/// assert_eq!(misses(&rows)?, 131_072);
/// assert_eq!(misses(&columns)?, 1_048_576);
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
///
/// `Caches` where the caches cannot be modelled (see [`Hierarchy::new`]) or the walk is too long;
/// `Overflow` where byte addresses do not fit.
pub fn naive(
    layout: &Layout,
    element_size: usize,
    caches: &[CacheSpec],
    options: &Options,
) -> Result<WalkReport, Error> {
    let order = Order::logical(layout);
    let size = element_size as u64;
    refuse_endless(&order, size, caches.first().map_or(1, |cache| cache.line.max(1)))?;
    let span = order.span();
    let reach = span.reach.checked_mul(size).filter(|&bytes| bytes <= i64::MAX as u64);
    let reach = reach.ok_or(Error::Overflow { what: "the byte address of an element" })?;
    let mut hierarchy = Hierarchy::new(caches, options, reach)?;
    let len = u32::try_from(element_size).map_err(|_| Error::Overflow { what: "the size of an element" })?;
    order.for_each(|first, step, count| {
        let run = Run { start: first * size, stride: step as i64 * size as i64, count };
        hierarchy.run(run, len, Access::Read);
    });
    let lines = layout.lines(element_size, caches[0].line as usize);
    let counts = hierarchy.counts();
    Ok(WalkReport {
        levels: Levels::of(caches, &counts, |counts| (*counts).into()),
        misses_per_element: Levels::of(caches, &counts, |counts| per_element(counts.misses, span.elements)),
        lines_touched: lines.touched,
        lines_used_in_full: lines.used_in_full,
        tlb: hierarchy.tlb().map(Into::into),
    })
}

/// Models a view and the copy of it into `dst` as `plan` makes it.
///
/// # Errors
///
/// As [`naive`] and [`planned`].
pub fn model(
    src: &Layout,
    dst: &Layout,
    plan: &Plan,
    caches: &[CacheSpec],
    options: &Options,
) -> Result<ModelReport, Error> {
    Ok(ModelReport {
        caches: caches.to_vec(),
        options: options.clone(),
        naive: naive(src, plan.element_size(), caches, options)?,
        plan: planned(src, dst, plan, caches, options)?,
    })
}

/// Refuses walks that would take hours, such as a broadcast view of 2^62 elements.
fn refuse_endless(order: &Order, size: u64, line: u64) -> Result<(), Error> {
    let (rows, inner) = order.rows();
    let span = (inner.stride.unsigned_abs() as u128)
        .saturating_mul(size as u128)
        .saturating_mul(inner.extent as u128);
    let lookups = rows.saturating_mul((inner.extent as u128).min(1 + span / line as u128));
    if lookups > MOST_LOOKUPS {
        return Err(Error::Caches {
            reason: format!(
                "the model would make about {lookups} look-ups for this view: model a smaller shape"
            ),
        });
    }
    Ok(())
}

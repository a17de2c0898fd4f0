//! The model of a view, ready to be printed.

use super::classes::Classes;
use super::hierarchy::{Access, Hierarchy};
use super::level::LevelCounts;
use super::runs::{Order, Run};
use super::spec::{CacheSpec, Options};
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
    /// The walk over the view in logical order: reads only.
    pub naive: WalkReport,
}

/// What one walk costs.
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

/// A value for each level, by name, the level next to the core first.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels<T>(pub Vec<(String, T)>);

impl<T> Levels<T> {
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
    let reach = order.reach().checked_mul(size).filter(|&bytes| bytes <= i64::MAX as u64);
    let reach = reach.ok_or(Error::Overflow { what: "the byte address of an element" })?;
    let mut hierarchy = Hierarchy::new(caches, options, reach)?;
    let len = u32::try_from(element_size).map_err(|_| Error::Overflow { what: "the size of an element" })?;
    let mut elements = 0;
    order.for_each(|first, step, count| {
        elements += count;
        hierarchy.run(
            Run { start: first * size, stride: step as i64 * size as i64, count },
            len,
            Access::Read,
        );
    });
    let lines = layout.lines(element_size, caches[0].line as usize);
    Ok(report(&mut hierarchy, caches, elements, (lines.touched, lines.used_in_full)))
}

/// Models a view on the given caches.
///
/// # Errors
///
/// As [`naive`].
pub fn model(
    layout: &Layout,
    element_size: usize,
    caches: &[CacheSpec],
    options: &Options,
) -> Result<ModelReport, Error> {
    Ok(ModelReport { caches: caches.to_vec(), naive: naive(layout, element_size, caches, options)? })
}

fn report(hierarchy: &mut Hierarchy, caches: &[CacheSpec], elements: u64, lines: (u64, u64)) -> WalkReport {
    let counts = hierarchy.counts();
    let named = || caches.iter().map(|cache| cache.level.clone()).zip(&counts);
    let per_element = |misses: u64| if elements == 0 { 0.0 } else { misses as f64 / elements as f64 };
    WalkReport {
        levels: Levels(named().map(|(name, &counts)| (name, counts.into())).collect()),
        misses_per_element: Levels(
            named().map(|(name, counts)| (name, per_element(counts.misses))).collect(),
        ),
        lines_touched: lines.0,
        lines_used_in_full: lines.1,
        tlb: hierarchy.tlb().map(LevelReport::from),
    }
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

//! A walk's reads as the cache model wants them.

use super::{Pattern, Walk, kernel, memory};
use crate::Error;
use crate::cachesim::{Access, CacheSpec, Hierarchy, Options, Run};
use serde_json::{Map, Value, json};

/// Reads above which a walk is not modelled: a second or two.
pub const MAX_READS: usize = 1 << 26;

/// Accesses and misses of each level over one pass of a walk, from cold caches.
#[derive(Debug, Clone, PartialEq)]
pub struct Misses {
    /// Name, accesses and misses, the level next to the core first.
    pub levels: Vec<(String, u64, u64)>,
    /// Elements that the pass reads.
    pub elements: u64,
}

impl Misses {
    /// Misses per element of each level, by name.
    pub fn per_element(&self) -> Vec<(&str, f64)> {
        let elements = self.elements.max(1) as f64;
        self.levels.iter().map(|(name, _, misses)| (name.as_str(), *misses as f64 / elements)).collect()
    }

    /// As records and `--json` hold it: `levels` and `misses_per_element`, by name.
    pub fn to_json(&self) -> Map<String, Value> {
        let levels: Map<String, Value> = self
            .levels
            .iter()
            .map(|(name, accesses, misses)| (name.clone(), json!({"accesses": accesses, "misses": misses})))
            .collect();
        let per_element: Map<String, Value> =
            self.per_element().into_iter().map(|(name, misses)| (name.to_owned(), misses.into())).collect();
        let mut map = Map::new();
        map.insert("levels".to_owned(), levels.into());
        map.insert("misses_per_element".to_owned(), per_element.into());
        map
    }
}

/// Models one pass of a walk: reads of the array only, in the walk's own order.
///
/// # Errors
/// Caches, where they cannot be modelled.
pub fn misses(walk: &Walk, caches: &[CacheSpec]) -> Result<Misses, Error> {
    let width = walk.element_bytes();
    let reach = (walk.len() * walk.number.bytes()).max(walk.elements() * width) as u64;
    let mut hierarchy = Hierarchy::new(caches, &Options::default(), reach)?;
    for_runs(walk, &mut |run| hierarchy.run(run, width as u32, Access::Read))?;
    let levels = caches
        .iter()
        .zip(hierarchy.counts())
        .map(|(cache, counts)| (cache.level.clone(), counts.accesses, counts.misses))
        .collect();
    Ok(Misses { levels, elements: walk.elements() as u64 })
}

/// Calls `each` for every run of equal steps of a walk, in order; in bytes.
fn for_runs(walk: &Walk, each: &mut dyn FnMut(Run)) -> Result<(), Error> {
    let Walk { rows, cols, pitch, stride, .. } = *walk;
    let width = walk.element_bytes() as u64;
    let mut run = |start: usize, step: usize, count: usize| {
        each(Run { start: start as u64 * width, stride: (step as u64 * width) as i64, count: count as u64 });
    };
    match walk.pattern {
        _ if walk.is_empty() => {}
        Pattern::Row => (0..rows).for_each(|row| run(row * pitch, 1, cols)),
        Pattern::Column => (0..cols).for_each(|col| run(col, pitch, rows)),
        Pattern::Tiled => kernel::for_tiles(rows, cols, walk.tile, |top, left, height, width| {
            (left..left + width).for_each(|col| run(top * pitch + col, pitch, height));
        }),
        Pattern::Strided => run(0, stride, walk.elements()),
        Pattern::Random => memory::order(walk).indices.iter().for_each(|&index| run(index as usize, 0, 1)),
        Pattern::Chase => {
            let next = memory::links(walk)?;
            let mut at = 0;
            for _ in 0..next.len() {
                run(at as usize * (walk.line_bytes / 8), 0, 1);
                at = next[at as usize];
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Number;
    use super::*;
    use crate::cachesim::naive;

    fn caches() -> Vec<CacheSpec> {
        vec![CacheSpec::new("L1d", 4 << 10, 4, 64), CacheSpec::new("L2", 48 << 10, 12, 64)]
    }

    fn walk(pattern: Pattern, number: Number, rows: usize, cols: usize) -> Walk {
        Walk::new(pattern, number, rows, cols).unwrap()
    }

    #[test]
    fn straight_walks_are_the_naive_walks_of_their_layout() {
        for number in Number::ALL {
            for pattern in [Pattern::Row, Pattern::Column, Pattern::Strided] {
                let walk = walk(pattern, number, 61, 130).with_pitch(136).unwrap().with_stride(3);
                let naive =
                    naive(&walk.layout().unwrap(), number.bytes(), &caches(), &Options::default()).unwrap();
                for (name, accesses, misses) in misses(&walk, &caches()).unwrap().levels {
                    let level = naive.levels.get(&name).unwrap();
                    assert_eq!((accesses, misses), (level.accesses, level.misses), "{walk:?} {name}");
                }
            }
        }
    }

    #[test]
    fn the_cliff_is_in_the_model() {
        let l1_misses = |pitch| {
            let walk = walk(Pattern::Column, Number::F64, 48, 64).with_pitch(pitch).unwrap();
            misses(&walk, &caches()).unwrap().levels[0].2
        };
        // 48 rows at a pitch of 1 KiB fall into one set of 4 ways: every read misses. 72 elements apart
        // they spread over all sets, and each line is fetched once.
        assert_eq!(l1_misses(128), 48 * 64);
        assert_eq!(l1_misses(72), 48 * 8);
    }

    #[test]
    fn tiles_use_every_line_while_they_have_it() {
        let tiled = walk(Pattern::Tiled, Number::F64, 256, 256).with_pitch(264).unwrap().with_tile(8);
        let model = misses(&tiled, &caches()).unwrap();
        assert_eq!(model.levels[0], ("L1d".to_owned(), 256 * 256, 256 * 32));
        assert_eq!(model.per_element()[0], ("L1d", 0.125));
    }

    #[test]
    fn a_chase_beyond_the_cache_misses_with_almost_every_load() {
        let chase = walk(Pattern::Chase, Number::F64, 64, 1024);
        let model = misses(&chase, &caches()).unwrap();
        assert_eq!(model.levels[0].1, 8192);
        // One lap over 512 KiB from cold caches: each line is new.
        assert_eq!((model.levels[0].2, model.levels[1].2), (8192, 8192));
        let empty = misses(&walk(Pattern::Random, Number::U8, 0, 3), &caches()).unwrap();
        assert_eq!(empty.per_element()[0], ("L1d", 0.0));
    }
}

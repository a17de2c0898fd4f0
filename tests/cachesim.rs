//! The cache model of views: known values, closed forms, and the definition followed by hand.
#![cfg(feature = "instruments")]

use proptest::prelude::*;
use restride::cachesim::{
    Access, CacheSpec, Hierarchy, Options, PlanReport, Run, TlbSpec, WalkReport, model, naive, planned,
};
use restride::copy::replay::{Side, replay};
use restride::{CopyOptions, Isa, Layout, Plan};

const MIB: u64 = 1 << 20;

fn l1() -> CacheSpec {
    CacheSpec::new("L1d", 48 << 10, 12, 64)
}

fn l1_and_l2() -> [CacheSpec; 2] {
    [l1(), CacheSpec::new("L2", 2 * MIB, 16, 64)]
}

fn walk(shape: &[usize], expression: &str, element_size: usize, caches: &[CacheSpec]) -> WalkReport {
    let layout = Layout::row_major(shape).unwrap().apply(expression).unwrap();
    naive(&layout, element_size, caches, &Options::default()).unwrap()
}

fn misses(report: &WalkReport, level: &str) -> u64 {
    report.levels.get(level).unwrap().misses
}

#[test]
fn known_values() {
    let rows = walk(&[1024, 1024], "", 8, &l1_and_l2());
    assert_eq!(misses(&rows, "L1d"), 131_072);
    let columns = walk(&[1024, 1024], ".T", 8, &l1_and_l2());
    assert_eq!((misses(&columns, "L1d"), misses(&columns, "L2")), (1_048_576, 1_048_576));
    let padded = walk(&[1024, 1032], "[:, :1024].T", 8, &l1_and_l2());
    assert_eq!(misses(&padded, "L2"), 131_072);
    assert_eq!(*columns.misses_per_element.get("L1d").unwrap(), 1.0);
    assert_eq!((columns.lines_touched, columns.lines_used_in_full), (131_072, 131_072));
}

#[test]
fn the_json_has_the_fixed_keys() {
    let layout = Layout::row_major(&[4, 4]).unwrap();
    let options = CopyOptions::default().streaming(false).isa(Isa::Scalar);
    let plan = Plan::new(&layout, &layout, 4, &options).unwrap();
    let report = model(&layout, &layout, &plan, &l1_and_l2(), &Options::default()).unwrap();
    let json = serde_json::to_value(&report).unwrap();
    // 64 bytes move in two steps of two registers each: two loads or stores of each side, twice; the row's
    // entry of the table is written and read.
    let plan_level = |accesses: u64| serde_json::json!({"accesses": accesses, "misses": 3, "evictions": 0, "write_backs": 0});
    let expected = serde_json::json!({
        "caches": [
            {"level": "L1d", "bytes": 49152, "ways": 12, "line": 64},
            {"level": "L2", "bytes": 2097152, "ways": 16, "line": 64},
        ],
        "naive": {
            "levels": {"L1d": {"accesses": 16, "misses": 1}, "L2": {"accesses": 1, "misses": 1}},
            "misses_per_element": {"L1d": 0.0625, "L2": 0.0625},
            "lines_touched": 1,
            "lines_used_in_full": 1,
        },
        "plan": {
            "levels": {"L1d": plan_level(10), "L2": plan_level(3)},
            "misses_per_element": {"L1d": 0.1875, "L2": 0.1875},
            "lines_touched": 2,
            "lines_used_in_full": 2,
            "streaming": {"stores": 0, "bytes": 0},
            "own": {"accesses": 2, "lines": 1},
        },
    });
    assert_eq!(json, expected);
}

/// What a plan costs on one machine, whatever the tests run on.
fn planned_copy(
    shape: &[usize],
    expression: &str,
    size: usize,
    isa: Isa,
    streaming: bool,
    caches: &[CacheSpec],
) -> PlanReport {
    let src = Layout::row_major(shape).unwrap().apply(expression).unwrap();
    let dst = Layout::row_major(src.shape()).unwrap();
    let options = CopyOptions::default().streaming(streaming).isa(isa).threads(1);
    let plan = Plan::new(&src, &dst, size, &options).unwrap();
    planned(&src, &dst, &plan, caches, &Options::default()).unwrap()
}

/// The plan of a power-of-two transpose uses every line whole in one visit: reads and writes miss once a
/// line where a walk by columns misses on every element. Beside them come the copy's own lines, its tables;
/// they share sets with rows that lie a page apart, and come in again now and then.
#[test]
fn the_plan_of_a_transpose_misses_once_a_line() {
    let n = 1024u64;
    for isa in Isa::available() {
        let report = planned_copy(&[1024, 1024], ".T", 8, isa, false, &l1_and_l2());
        let (l1, l2) = (report.levels.get("L1d").unwrap(), report.levels.get("L2").unwrap());
        let lines = 2 * n * n / 8;
        assert!((lines..lines + lines / 50).contains(&l1.misses), "{isa} {l1:?}");
        assert_eq!(l2.accesses, l1.misses, "{isa}");
        assert!((lines..lines + lines / 200).contains(&l2.misses), "{isa} {l2:?}");
        assert_eq!((report.lines_touched, report.lines_used_in_full), (lines, lines));
        // The tables of a tile's rows and columns.
        assert!((64..1024).contains(&report.own.lines), "{isa} {:?}", report.own);
        // All written lines leave L1 but those that it still holds, and 2 MiB of 16 stay in L2.
        assert!(l1.write_backs > lines / 2 - 768 && l1.write_backs <= lines / 2 + lines / 50, "{isa} {l1:?}");
        assert!(l2.write_backs >= lines / 2 - 32_768 && l2.write_backs <= lines / 2 + 1024, "{isa} {l2:?}");
        assert!(l1.evictions >= l1.write_backs && l2.evictions >= l2.write_backs);
    }
}

/// A copy of one element a row at the portable level: what it loads and stores can be counted by hand.
#[test]
fn the_accesses_of_a_plan_are_its_loads_and_stores() {
    let report = planned_copy(&[64, 48], ".T", 8, Isa::Scalar, false, &[l1()]);
    // For each element a load of the source, of the column's entry and of the row's, and a store; before
    // that, every entry of both tables is written.
    assert_eq!(report.levels.get("L1d").unwrap().accesses, 4 * 64 * 48 + 64 + 48);
    assert_eq!(report.own.accesses, 2 * 64 * 48 + 64 + 48);
}

/// Streaming stores reach no level: what is left are the reads, once a line. The portable level has none.
#[test]
fn streaming_stores_are_shown_apart() {
    let n = 1024u64;
    for isa in Isa::available() {
        let report = planned_copy(&[1024, 1024], ".T", 8, isa, true, &l1_and_l2());
        let register = match isa {
            Isa::Avx512 => 64,
            Isa::Avx2 => 32,
            Isa::Sse2 => 16,
            _ => {
                assert_eq!((report.streaming.stores, report.streaming.bytes), (0, 0));
                continue;
            }
        };
        let streaming = (report.streaming.stores, report.streaming.bytes);
        assert_eq!(streaming, (8 * n * n / register, 8 * n * n), "{isa}");
        let l2 = report.levels.get("L2").unwrap();
        // Tables that are read seldom leave; nothing else is written through the caches.
        assert!(l2.write_backs <= report.own.lines, "{isa} {l2:?}");
        assert!((n * n / 8..n * n / 8 + 2 * report.own.lines).contains(&l2.misses), "{isa} {l2:?}");
        // An eighth, and the tables, whose lines the source's push out: once a tile of 16 columns.
        assert!(*report.misses_per_element.get("L1d").unwrap() < 0.145, "{isa} {report:?}");
    }
}

/// Padding is written, and read from the one fill value.
#[test]
fn the_plan_of_a_padded_view_reads_what_is_valid() {
    let report = planned_copy(&[10, 10], ".pad((3, 3), (3, 3), value=1)", 4, Isa::Scalar, false, &[l1()]);
    // 400 bytes of source are 7 lines, 1024 of destination 16; the fill is a few lines of the copy's own.
    assert_eq!(report.lines_touched, 7 + 16);
    let (misses, all) = (report.levels.get("L1d").unwrap().misses, 7 + 16 + report.own.lines);
    assert!((all - 2..=all).contains(&misses), "a move may bring in two lines: {misses} of {all}");
    assert!((1..16).contains(&report.own.lines), "{:?}", report.own);
    let nothing = planned_copy(&[0, 7], ".T", 4, Isa::Scalar, false, &[l1()]);
    assert_eq!((nothing.levels.get("L1d").unwrap().accesses, nothing.lines_touched), (0, 0));
}

/// A row walk misses once a line at every level, whatever the cache.
#[test]
fn a_row_walk_misses_once_a_line() {
    for (rows, columns, size) in [(1, 1, 1), (7, 100, 4), (64, 64, 8), (333, 77, 2), (100, 1000, 16)] {
        let bytes = (rows * columns * size) as u64;
        let report = walk(&[rows, columns], "", size, &l1_and_l2());
        let elements = (rows * columns) as u64;
        let l1 = report.levels.get("L1d").unwrap();
        assert_eq!((l1.accesses, l1.misses), (elements, bytes.div_ceil(64)));
        assert_eq!(misses(&report, "L2"), bytes.div_ceil(64));
        assert_eq!((report.lines_touched, report.lines_used_in_full), (bytes.div_ceil(64), bytes / 64));
    }
}

/// A column walk over rows of whole lines: with `r` rows, the lines of one column of lines are read
/// again for each of the `e` elements in a line. Their sets repeat every `sets / gcd(pitch, sets)` rows;
/// where that puts no more than `ways` lines into a set all but the first read hit, and otherwise, under
/// LRU and in cyclic order, none does in an overfull set.
#[test]
fn a_column_walk_has_a_closed_form() {
    fn gcd(a: u64, b: u64) -> u64 {
        if b == 0 { a } else { gcd(b, a % b) }
    }
    let cache = |sets: u64, ways: u64| CacheSpec::new("L1d", sets * ways * 64, ways, 64);
    for (sets, ways) in [(64, 12), (64, 8), (48, 10), (1, 20), (2048, 16), (100, 3)] {
        for pitch in [16u64, 17, 24, 64, 65, 100, 128, 129] {
            for rows in [4u64, 12, 63, 64, 65, 200, 500] {
                let (columns, per_line) = (16u64, 8);
                let shape = [rows as usize, (pitch * per_line) as usize];
                let report = walk(&shape, &format!("[:, :{columns}].T"), 8, &[cache(sets, ways)]);
                let period = sets / gcd(pitch, sets);
                let overfull: u64 = (0..period)
                    .map(|k| rows / period + u64::from(k < rows % period))
                    .filter(|&lines| lines > ways)
                    .sum();
                let column_lines = columns / per_line;
                let expected = column_lines * (rows + (per_line - 1) * overfull);
                assert_eq!(misses(&report, "L1d"), expected, "{sets} {ways} {pitch} {rows}");
            }
        }
    }
}

/// A tiled transpose misses once a line although its pitch is a power of two, because each tile uses up
/// its lines at once; a walk by columns misses on every element.
#[test]
fn tiles_of_one_line_square_miss_once_a_line() {
    let n = 512u64;
    let mut model = Hierarchy::new(&l1_and_l2(), &Options::default(), 8 * n * n).unwrap();
    for tile_row in (0..n).step_by(8) {
        for tile_column in (0..n).step_by(8) {
            for column in tile_column..tile_column + 8 {
                let start = (tile_row * n + column) * 8;
                model.run(Run { start, stride: 8 * n as i64, count: 8 }, 8, Access::Read);
            }
        }
    }
    let counts = model.counts();
    assert_eq!((counts[0].accesses, counts[0].misses, counts[1].misses), (n * n, n * n / 8, n * n / 8));
    let columns = walk(&[512, 512], ".T", 8, &[l1()]);
    assert_eq!(misses(&columns, "L1d"), n * n);
}

#[test]
fn repeated_and_missing_elements() {
    let broadcast = walk(&[1, 16], ".broadcast_to(1000, 16)", 4, &[l1()]);
    assert_eq!(broadcast.levels.get("L1d").unwrap().accesses, 16_000);
    assert_eq!((misses(&broadcast, "L1d"), broadcast.lines_touched), (1, 1));
    // Only the valid elements are read, and only they count.
    let padded = walk(&[16], ".pad((8, 8))", 4, &[l1()]);
    assert_eq!(padded.levels.get("L1d").unwrap().accesses, 16);
    assert_eq!(*padded.misses_per_element.get("L1d").unwrap(), 1.0 / 16.0);
    let empty = walk(&[0, 5], "", 4, &[l1()]);
    assert_eq!(empty.levels.get("L1d").unwrap().accesses, 0);
    assert_eq!((*empty.misses_per_element.get("L1d").unwrap(), empty.lines_touched), (0.0, 0));
    assert_eq!(walk(&[], "", 4, &[l1()]).levels.get("L1d").unwrap().misses, 1);
    let all_padding = walk(&[2], ".pad((3, 0))[:2]", 4, &[l1()]);
    assert_eq!((all_padding.levels.get("L1d").unwrap().accesses, all_padding.lines_touched), (0, 0));
}

/// A straddling element is one access, at every level that it reaches.
#[test]
fn straddling_elements() {
    // 12-byte elements: every third of a line's boundaries falls between elements.
    let report = walk(&[16], "", 12, &[l1()]);
    assert_eq!((report.levels.get("L1d").unwrap().accesses, misses(&report, "L1d")), (16, 3));
    // A line of 16 bytes under elements of 64: each misses once, not four times.
    let small = CacheSpec::new("L1d", 1024, 2, 16);
    let report = walk(&[10], "", 64, &[small]);
    assert_eq!((misses(&report, "L1d"), report.lines_touched), (10, 40));
}

#[test]
fn walks_without_an_end_are_refused() {
    let layout =
        Layout::row_major(&[1, 1, 2]).unwrap().apply(".broadcast_to(1099511627776, 1048576, 2)").unwrap();
    let error = naive(&layout, 4, &l1_and_l2(), &Options::default()).unwrap_err();
    assert_eq!(error.kind(), "caches");
    // Repetition of one element is one look-up, however long.
    let layout = Layout::row_major(&[1]).unwrap().apply(".broadcast_to(1099511627776)").unwrap();
    let report = naive(&layout, 4, &l1_and_l2(), &Options::default()).unwrap();
    assert_eq!((report.levels.get("L1d").unwrap().accesses, misses(&report, "L1d")), (1 << 40, 1));
}

#[test]
fn options_reach_the_report() {
    let layout = Layout::column_major(&[256, 256]).unwrap();
    let mut options = Options::default();
    options.classes = true;
    options.tlb = Some(TlbSpec::new(64, 4, 4096));
    let report = naive(&layout, 8, &[l1()], &options).unwrap();
    let level = report.levels.get("L1d").unwrap();
    let classes = level.classes.unwrap();
    assert_eq!(level.misses, 65_536);
    // 256 lines are in use at a time, which 768 would hold: all but the first touches are conflicts.
    assert_eq!((classes.compulsory, classes.capacity, classes.conflict), (8192, 0, 65_536 - 8192));
    // 128 pages in turn do not fit 64 entries; two rows share a page.
    assert_eq!(report.tlb.unwrap().misses, 256 * 128);
}

/// Section 7 of the design followed element by element, with lists.
fn by_hand(layout: &Layout, size: u64, caches: &[CacheSpec]) -> Vec<(u64, u64)> {
    let mut held: Vec<Vec<Vec<u64>>> =
        caches.iter().map(|c| vec![Vec::new(); (c.bytes / (c.ways * c.line)) as usize]).collect();
    let mut counts = vec![(0, 0); caches.len()];
    for k in 0..layout.numel() {
        let Some(index) = layout.view_at(k).unwrap() else { continue };
        let (from, to) = (index as u64 * size, index as u64 * size + size - 1);
        for (k, cache) in caches.iter().enumerate() {
            counts[k].0 += 1;
            let mut hit = true;
            for line in from / cache.line..=to / cache.line {
                let sets = held[k].len() as u64;
                let set = &mut held[k][(line % sets) as usize];
                match set.iter().position(|&other| other == line) {
                    Some(at) => _ = set.remove(at),
                    None => {
                        hit = false;
                        if set.len() as u64 == cache.ways {
                            set.remove(0);
                        }
                    }
                }
                set.push(line);
            }
            if hit {
                break;
            }
            counts[k].1 += 1;
        }
    }
    counts
}

proptest! {
    #[test]
    fn any_view_agrees_with_the_definition(
        shape in prop::collection::vec(1usize..9, 1..5),
        pieces in prop::collection::vec(0usize..11, 0..4),
        size in prop_oneof![Just(1usize), Just(2), Just(3), Just(4), Just(8), Just(12), Just(16)],
        l1 in (1u64..9, 1u64..5, prop_oneof![Just(8u64), Just(16), Just(64)]),
        l2 in (1u64..30, 1u64..9, prop_oneof![Just(16u64), Just(64), Just(128)]),
    ) {
        let mut layout = Layout::row_major(&shape).unwrap();
        let all = [
            ".T", ".flip()", "[::2]", "[..., ::-2]", ".pad((1, 2))", ".unfold(0, 2, 1)", ".unsqueeze(0).expand(3)",
            "[..., 1:]", ".diagonal()", ".flatten()", "[None, ..., 0]",
        ];
        for piece in pieces {
            // A piece that this shape refuses is left out.
            let widths = vec!["(1, 2)"; layout.ndim()].join(", ");
            let piece = match all[piece] {
                ".pad((1, 2))" => format!(".pad({widths})"),
                ".unsqueeze(0).expand(3)" => format!(".unsqueeze(0).expand(3{})", ", -1".repeat(layout.ndim())),
                other => other.to_owned(),
            };
            layout = layout.apply(&piece).unwrap_or(layout);
        }
        prop_assume!(layout.numel() < 20_000);
        let caches = [
            CacheSpec::new("L1d", l1.0 * l1.1 * l1.2, l1.1, l1.2),
            CacheSpec::new("L2", l2.0 * l2.1 * l2.2, l2.1, l2.2),
        ];
        let report = naive(&layout, size, &caches, &Options::default()).unwrap();
        let expected = by_hand(&layout, size as u64, &caches);
        let got: Vec<_> = report.levels.0.iter().map(|(_, level)| (level.accesses, level.misses)).collect();
        prop_assert_eq!(got, expected);
        // A copy touches the lines of its elements; levels with byte masks read whole windows between them.
        let dst = Layout::row_major(layout.shape()).unwrap();
        for isa in Isa::available() {
            let options = CopyOptions::default().streaming(false).threads(1).isa(isa);
            let plan = Plan::new(&layout, &dst, size, &options).unwrap();
            let mut lines = std::collections::BTreeSet::new();
            replay(&plan, &mut |accesses| {
                for access in accesses.iter().filter(|access| access.side != Side::Own) {
                    let line = l1.2 as isize;
                    let last = (access.offset + access.bytes as isize - 1) / line;
                    lines.extend((access.offset / line..=last).map(|line| (access.side == Side::Dst, line)));
                }
            })
            .unwrap();
            let copy = planned(&layout, &dst, &plan, &caches, &Options::default()).unwrap();
            let touched = lines.len() as u64;
            prop_assert!(touched == copy.lines_touched || isa == Isa::Avx512 && touched > copy.lines_touched);
        }
    }
}

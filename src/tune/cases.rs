//! The copies that a search times, and others that confirm what it found.

use super::target::{Group, Target};
use crate::copy::tuning::Tuning;

/// One copy that is timed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Name, unique among the cases of a target.
    pub name: String,
    /// Bytes of an element.
    pub element_bytes: usize,
    /// Extents of the row-major input.
    pub shape: Vec<usize>,
    /// The view that is made contiguous.
    pub expr: String,
    /// Threads, 0 for the default.
    pub threads: usize,
}

fn case(size: usize, shape: &[usize], expr: &str) -> Case {
    let extents = shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    Case {
        name: format!("{extents}{expr}/{size}"),
        element_bytes: size,
        shape: shape.to_vec(),
        expr: expr.into(),
        threads: 1,
    }
}

/// Rows of a square matrix whose elements of `size` bytes take about `bytes`.
fn side(bytes: usize, size: usize) -> usize {
    (bytes / size).isqrt()
}

/// The cases of a target: those that the search times, and others that confirm its winner.
///
/// In L2 and beyond, power-of-two and odd pitches, and more axes than two, as far as the knob has a say.
pub fn cases(target: &Target, tuning: &Tuning) -> (Vec<Case>, Vec<Case>) {
    let size = target.element_bytes.unwrap_or(4);
    let l2 = tuning.l2_bytes.value.clamp(256 << 10, 4 << 20);
    // Rows of whole lines.
    let even = |bytes: usize| side(bytes, size).next_multiple_of((64 / size).max(8));
    let power = |bytes: usize| 1 << side(bytes, size).ilog2();
    let odd = |bytes: usize| side(bytes, size) | 1;
    let square = |n: usize| case(size, &[n, n], ".T");
    // Elements between this size and the next; of single bytes there are none.
    let wide = size + size / 2;
    let between = |n: usize| {
        let n = (n * size / wide) | 1;
        case(wide, &[n, n], ".T")
    };
    let between_power = |bytes: usize| case(wide, &[1 << side(bytes, wide).ilog2(); 2], ".T");
    // Inputs of transposes that store past the caches, which is where destination tiles have a say.
    let stream = tuning.streaming_from_bytes.of(size).clamp(8 << 20, 48 << 20);
    let (large, larger) = ((3 * stream / 4).max(8 << 20), stream.max(16 << 20));
    let (search, confirm) = match target.group {
        // Destinations around the caches, so that each threshold has a case on either side.
        Group::Streaming => {
            let ladder =
                |quarters: &[usize]| quarters.iter().map(|&q| square(even(q * l2 / 4))).collect::<Vec<_>>();
            let half = tuning.l3_bytes.value.clamp(l2, 64 << 20) / 2;
            let mut search = ladder(&[2, 4, 6, 10, 16, 24, 32]);
            search.push(square(even(half)));
            // Each between the same thresholds as its neighbour above.
            let mut confirm = ladder(&[3, 5, 8, 12, 18, 28, 40]);
            confirm.push(case(size, &[4, even(l2 / 2), even(l2 / 2)], ".mT"));
            (search, confirm)
        }
        // One threshold for rows, steps, short axes and every element size.
        Group::StreamRows => {
            let half = tuning.l3_bytes.value.clamp(l2, 64 << 20) / 2;
            let pixels = |bytes: usize, size: usize| (bytes / 3 / size).isqrt().next_multiple_of(8);
            let planes = |bytes, size| {
                let n = pixels(bytes, size);
                case(size, &[n, n, 3], ".permute(2, 0, 1)")
            };
            let back = |bytes, size| {
                let n = pixels(bytes, size);
                case(size, &[3, n, n], ".permute(1, 2, 0)")
            };
            let rows = |bytes: usize, expr: &str| case(4, &[even(bytes), even(bytes)], expr);
            let search = vec![
                planes(3 * l2 / 2, 1),
                back(3 * l2, 1),
                planes(3 * l2, 4),
                rows(l2, "[:, 1:]"),
                rows(half, "[:, 1:]"),
                rows(2 * l2, "[:, ::2]"),
            ];
            let confirm = vec![
                back(3 * l2 / 2, 1),
                planes(6 * l2, 1),
                back(4 * l2, 4),
                rows(3 * l2 / 2, "[:, 1:]"),
                rows(2 * half / 3, "[::-1]"),
                rows(3 * l2, "[:, ::2]"),
            ];
            (search, confirm)
        }
        Group::Tile => (
            vec![
                square(even(l2 / 4)),
                square(power(8 << 20)),
                square(even(6 << 20)),
                square(even(large)),
                case(size, &[8, even(1 << 20), even(1 << 20)], ".permute(2, 0, 1)"),
            ],
            vec![
                square(even(l2 / 3)),
                square(power(16 << 20)),
                square(even(9 << 20)),
                square(even(larger)),
                case(size, &[even(2 << 20), 4, even(2 << 20)], ".T"),
            ],
        ),
        Group::TileAhead => (
            vec![
                square(power(8 << 20)),
                square(even(large)),
                square(odd(large)),
                case(size, &[8, even(1 << 20), even(1 << 20)], ".permute(2, 0, 1)"),
            ],
            vec![
                square(power(16 << 20)),
                square(even(larger)),
                square(odd(larger)),
                case(size, &[even(2 << 20), 4, even(2 << 20)], ".T"),
            ],
        ),
        // Destination rows of these lengths, off the lines.
        Group::Slide => {
            let rows = |bytes: usize, row: usize| {
                let n = (row / size) | 1;
                case(size, &[n, bytes / (n * size)], ".T")
            };
            let twice = |bytes: usize| (2 * bytes).min(64 << 20);
            (
                vec![rows(large, 150), rows(twice(large), 330), rows(large, 700), rows(twice(large), 1400)],
                vec![
                    rows(larger, 180),
                    rows(twice(larger), 420),
                    rows(larger, 900),
                    rows(twice(larger), 900),
                    rows(larger, 2700),
                ],
            )
        }
        // Where elements slide as they are, only those of other sizes are staged.
        Group::Staged => (
            vec![
                between(odd(4 << 20)),
                between(odd(large)),
                between_power(16 << 20),
                square(odd(4 << 20)),
                square(odd(large)),
                case(size, &[31, odd(200 << 10), odd(200 << 10)], ".permute(0, 2, 1)"),
                case(size, &[5, 7, odd(120 << 10), odd(120 << 10)], ".T"),
            ],
            vec![
                between(odd(6 << 20)),
                between(odd(larger)),
                between_power(72 << 20),
                square(odd(6 << 20)),
                square(odd(larger)),
                case(size, &[17, odd(400 << 10), odd(400 << 10)], ".permute(0, 2, 1)"),
                case(size, &[7, 3, odd(160 << 10), odd(160 << 10)], ".T"),
            ],
        ),
        // Rows that are dense on both sides move as bytes, whatever the element; those of other sizes are
        // reversed or taken with a step.
        Group::Rows if size == 1 => {
            let rows = |bytes: usize, row: usize, expr: &str| case(1, &[bytes / row, row], expr);
            (
                vec![
                    rows(l2 / 4, 192, "[:, 1:]"),
                    rows(6 << 20, 200, "[:, 1:]"),
                    rows(6 << 20, 1000, "[:, 2:]"),
                    case(1, &[32, 64, 128, 160], ".permute(1, 0, 2, 3)"),
                ],
                vec![
                    rows(l2 / 3, 256, "[:, 1:]"),
                    rows(8 << 20, 330, "[:, 1:]"),
                    rows(5 << 20, 700, "[:, 3:]"),
                    case(1, &[48, 32, 128, 256], ".permute(2, 1, 0, 3)"),
                ],
            )
        }
        Group::Rows => {
            let rows = |bytes: usize, row: usize, expr: &str| {
                let width = row / size;
                case(size, &[bytes / (width * size), width], expr)
            };
            (
                vec![
                    rows(l2 / 4, 192, "[:, ::-1]"),
                    rows(6 << 20, 256, "[:, ::-1]"),
                    rows(6 << 20, 960, "[:, ::-1]"),
                    rows(6 << 20, 640, "[:, ::2]"),
                ],
                vec![
                    rows(l2 / 3, 256, "[:, ::-1]"),
                    rows(8 << 20, 320, "[:, ::-1]"),
                    rows(5 << 20, 704, "[:, ::-1]"),
                    rows(8 << 20, 512, "[:, ::2]"),
                ],
            )
        }
        Group::RowAhead => {
            // Rows of other elements than bytes are put together from a step or a few planes.
            let n = |bytes: usize| (bytes / 3 / size).isqrt().next_multiple_of(8) | 1;
            let planes = |bytes| case(size, &[n(bytes), n(bytes), 3], ".permute(2, 0, 1)");
            let back = |bytes| case(size, &[3, n(bytes), n(bytes)], ".permute(1, 2, 0)");
            let rows = |bytes: usize, expr: &str| case(size, &[even(bytes), even(bytes)], expr);
            let step = if size == 1 { "[:, 1:]" } else { "[:, ::2]" };
            let long = (5 * (tuning.stream_rows_from_bytes.value / 8)).clamp(4 << 20, 48 << 20);
            (
                vec![rows(long, step), planes(long), back(long), rows(2 * l2, step)],
                vec![rows(5 * long / 4, step), planes(5 * long / 4), back(5 * long / 4), rows(3 * l2, step)],
            )
        }
        Group::Unstaged => {
            let long = (5 * (tuning.stream_rows_from_bytes.value / 8)).clamp(4 << 20, 48 << 20);
            let rows = |bytes: usize, row: usize, expr: &str| case(4, &[bytes / row, row / 4], expr);
            let longer = 5 * long / 4;
            (
                vec![rows(long, 420, "[:, 1:]"), rows(long, 900, "[:, 1:]"), rows(long, 1700, "[:, 1:]")],
                vec![
                    rows(longer, 560, "[:, 1:]"),
                    rows(longer, 1200, "[:, 1:]"),
                    rows(longer, 3000, "[:, 1:]"),
                ],
            )
        }
        Group::Parts => {
            let copy = |bytes: usize, expr: &str| case(size, &[even(bytes), even(bytes)], expr);
            (
                vec![
                    copy(9 << 20, ".T"),
                    copy(16 << 20, ".T"),
                    copy(32 << 20, ".T"),
                    copy(24 << 20, "[:, 1:]"),
                ],
                vec![
                    copy(12 << 20, ".T"),
                    copy(20 << 20, ".T"),
                    copy(40 << 20, ".T"),
                    copy(30 << 20, "[:, 1:]"),
                ],
            )
        }
        Group::Threads => {
            let copy = |bytes: usize| case(size, &[even(bytes), even(bytes)], ".T");
            (
                [200 << 10, 400 << 10, 800 << 10, 1600 << 10, 3 << 20, 6 << 20].map(copy).to_vec(),
                [300 << 10, 600 << 10, 1200 << 10, 2400 << 10, 5 << 20].map(copy).to_vec(),
            )
        }
    };
    let threads = if target.group.shares() { 0 } else { 1 };
    let fix = |cases: Vec<Case>| {
        let mut seen: Vec<Case> = Vec::new();
        for case in cases {
            let case = Case { threads, ..case };
            if !seen.contains(&case) {
                seen.push(case);
            }
        }
        seen
    };
    let search = fix(search);
    let mut confirm = fix(confirm);
    confirm.retain(|case| !search.contains(case));
    (search, confirm)
}

#[cfg(test)]
mod tests {
    use super::super::target::targets;
    use super::*;
    use crate::Layout;

    #[test]
    fn cases_are_views_of_moderate_size_and_confirmed_on_others() {
        for caches in [(0, 0, 0), (48 << 10, 2 << 20, 300 << 20), (32 << 10, 256 << 10, 0)] {
            let tuning = Tuning::for_caches(caches.0, caches.1, caches.2);
            for target in targets(2) {
                let (search, confirm) = cases(&target, &tuning);
                assert!(search.len() >= 3 && confirm.len() >= 3, "{target}: {search:?} {confirm:?}");
                for case in search.iter().chain(&confirm) {
                    let layout = Layout::row_major(&case.shape).unwrap();
                    let bytes = layout.numel() * case.element_bytes;
                    assert!(
                        (10 << 10..=80 << 20).contains(&bytes),
                        "{target}: {} is {bytes} bytes",
                        case.name
                    );
                    layout.apply(&case.expr).unwrap();
                }
                assert!(confirm.iter().all(|case| !search.contains(case)));
            }
        }
    }
}

//! The loops of the walks.
//!
//! Every element goes into one of a few independent sums, so that additions do not wait for each other
//! and the reads are what is timed. The sum is returned: whoever hides it from the optimiser has made
//! sure that every read happens.

use super::{Pattern, Walk};

/// Independent sums: enough to hide an addition's latency.
const LANES: usize = 8;

/// What is read and summed.
pub trait Sum: Copy + Send + Sync + 'static {
    /// The sum of nothing.
    const ZERO: Self;
    /// One sum and one element.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// The element of an array at an index: small, so that no sum of floats is rounded.
    fn element(index: usize) -> Self;
    /// For comparing sums.
    fn as_f64(self) -> f64;
    /// [`row`] with as many sums as fill two cache lines.
    fn row(data: &[Self], rows: usize, cols: usize, pitch: usize) -> Self {
        row::<Self, 16>(data, rows, cols, pitch)
    }
}

macro_rules! sum {
    ($kind:ty, $plus:expr) => {
        impl Sum for $kind {
            const ZERO: Self = 0 as $kind;

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }

            fn element(index: usize) -> Self {
                (((index >> 3) ^ index) & 1) as $kind
            }

            fn as_f64(self) -> f64 {
                self as f64
            }

            fn row(data: &[Self], rows: usize, cols: usize, pitch: usize) -> Self {
                row::<Self, { 128 / size_of::<$kind>() }>(data, rows, cols, pitch)
            }
        }
    };
}

sum!(f32, |a: f32, b: f32| a + b);
sum!(f64, |a: f64, b: f64| a + b);
sum!(u8, u8::wrapping_add);
sum!(i64, i64::wrapping_add);

/// The tables that an order needs beside the array.
#[derive(Debug, Default)]
pub struct Order {
    /// Indices of a random walk.
    pub indices: Vec<u32>,
}

/// Sums the elements of a matrix row by row, into `N` sums.
pub fn row<T: Sum, const N: usize>(data: &[T], rows: usize, cols: usize, pitch: usize) -> T {
    let mut sums = [T::ZERO; N];
    for row in data.chunks(pitch.max(1)).take(rows) {
        let row = &row[..cols];
        let (blocks, rest) = row.as_chunks::<N>();
        for block in blocks {
            for (sum, &element) in sums.iter_mut().zip(block) {
                *sum = sum.plus(element);
            }
        }
        for (sum, &element) in sums.iter_mut().zip(rest) {
            *sum = sum.plus(element);
        }
    }
    total(&sums)
}

/// Sums `count` elements from `first` on, `step` elements apart, into sums that go on from call to call.
#[inline(always)]
fn every<T: Sum>(sums: &mut [T; LANES], data: &[T], first: usize, step: usize, count: usize) {
    let mut at = first;
    for _ in 0..count / LANES {
        for sum in sums.iter_mut() {
            *sum = sum.plus(data[at]);
            at += step;
        }
    }
    for sum in sums.iter_mut().take(count % LANES) {
        *sum = sum.plus(data[at]);
        at += step;
    }
}

/// Sums the elements of a matrix column by column.
pub fn column<T: Sum>(data: &[T], rows: usize, cols: usize, pitch: usize) -> T {
    let mut sums = [T::ZERO; LANES];
    for col in 0..cols {
        every(&mut sums, data, col, pitch, rows);
    }
    total(&sums)
}

/// Sums the elements of a matrix tile by tile, down the columns of the tiles and of each tile.
pub fn tiled<T: Sum>(data: &[T], rows: usize, cols: usize, pitch: usize, tile: usize) -> T {
    let mut sums = [T::ZERO; LANES];
    for_tiles(rows, cols, tile, |top, left, height, width| {
        for col in left..left + width {
            every(&mut sums, data, top * pitch + col, pitch, height);
        }
    });
    total(&sums)
}

/// Calls `each(top, left, height, width)` for every tile, in the order of a tiled walk.
pub(super) fn for_tiles(
    rows: usize,
    cols: usize,
    tile: usize,
    mut each: impl FnMut(usize, usize, usize, usize),
) {
    for left in (0..cols).step_by(tile.max(1)) {
        for top in (0..rows).step_by(tile.max(1)) {
            each(top, left, tile.min(rows - top), tile.min(cols - left));
        }
    }
}

/// Sums every `stride`-th element.
pub fn strided<T: Sum>(data: &[T], stride: usize) -> T {
    let mut sums = [T::ZERO; LANES];
    every(&mut sums, data, 0, stride, data.len().div_ceil(stride.max(1)));
    total(&sums)
}

/// Sums the elements at the given indices, in their order.
pub fn gather<T: Sum>(data: &[T], indices: &[u32]) -> T {
    let mut sums = [T::ZERO; LANES];
    let (blocks, rest) = indices.as_chunks::<LANES>();
    for block in blocks {
        for (sum, &index) in sums.iter_mut().zip(block) {
            *sum = sum.plus(data[index as usize]);
        }
    }
    for (sum, &index) in sums.iter_mut().zip(rest) {
        *sum = sum.plus(data[index as usize]);
    }
    total(&sums)
}

/// Follows `hops` links: each element read is the index of the next.
pub fn chase(links: &[u64], hops: usize) -> u64 {
    let mut at = 0_u64;
    for _ in 0..hops {
        at = links[at as usize];
    }
    at
}

/// One pass of a walk over its array.
pub fn run<T: Sum>(walk: &Walk, data: &[T], order: &Order) -> T {
    let Walk { rows, cols, pitch, .. } = *walk;
    match walk.pattern {
        _ if walk.is_empty() => T::ZERO,
        Pattern::Row => T::row(data, rows, cols, pitch),
        Pattern::Column => column(data, rows, cols, pitch),
        Pattern::Tiled => tiled(data, rows, cols, pitch, walk.tile),
        Pattern::Strided => strided(data, walk.stride),
        Pattern::Random => gather(data, &order.indices),
        // A chase has its own array, see `memory::Links`.
        Pattern::Chase => T::ZERO,
    }
}

fn total<T: Sum>(sums: &[T]) -> T {
    sums.iter().fold(T::ZERO, |sum, &other| sum.plus(other))
}

#[cfg(test)]
mod tests {
    use super::super::{Number, memory};
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static READ: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    /// An element that writes down when it is read.
    #[derive(Clone, Copy)]
    struct Spy(Option<usize>);

    impl Sum for Spy {
        const ZERO: Self = Self(None);

        fn plus(self, other: Self) -> Self {
            if let Some(index) = other.0 {
                READ.with_borrow_mut(|read| read.push(index));
            }
            Self(None)
        }

        fn element(index: usize) -> Self {
            Self(Some(index))
        }

        fn as_f64(self) -> f64 {
            0.0
        }
    }

    fn order_of(walk: &Walk) -> Vec<usize> {
        let data: Vec<Spy> = (0..walk.len()).map(Spy::element).collect();
        READ.take();
        run(walk, &data, &memory::order(walk));
        READ.take()
    }

    fn walk(pattern: Pattern, rows: usize, cols: usize, pitch: usize) -> Walk {
        Walk::new(pattern, Number::F64, rows, cols).unwrap().with_pitch(pitch).unwrap()
    }

    #[test]
    fn loops_read_in_the_order_of_their_layout() {
        for (rows, cols, pitch) in [(1, 1, 1), (3, 5, 5), (8, 16, 16), (17, 33, 40), (40, 9, 11), (0, 3, 3)] {
            for pattern in [Pattern::Row, Pattern::Column, Pattern::Strided] {
                for stride in [1, 2, 7, 4096] {
                    let walk = walk(pattern, rows, cols, pitch).with_stride(stride);
                    let layout = walk.layout().unwrap();
                    let expected: Vec<usize> =
                        (0..layout.numel()).map(|k| layout.view_at(k).unwrap().unwrap()).collect();
                    assert_eq!(order_of(&walk), expected, "{walk:?}");
                }
            }
        }
    }

    #[test]
    fn tiles_and_random_orders_read_everything_once() {
        for (rows, cols, pitch, tile) in [(1, 1, 1, 1), (16, 16, 16, 8), (17, 33, 40, 8), (5, 9, 9, 64)] {
            for pattern in [Pattern::Tiled, Pattern::Random] {
                let walk = walk(pattern, rows, cols, pitch).with_tile(tile);
                let mut read = order_of(&walk);
                let straight = match pattern {
                    Pattern::Tiled => order_of(&Walk { pattern: Pattern::Row, ..walk }),
                    _ => (0..rows * cols).collect(),
                };
                if rows * cols > 64 {
                    assert_ne!(read, straight, "{walk:?}");
                }
                read.sort_unstable();
                assert_eq!(read, straight, "{walk:?}");
            }
        }
    }

    #[test]
    fn a_tile_is_finished_before_the_next_begins() {
        // 4 x 4 in tiles of 2: down the left tiles, then down the right ones.
        let read = order_of(&walk(Pattern::Tiled, 4, 4, 4).with_tile(2));
        assert_eq!(read, [0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15]);
    }

    #[test]
    fn sums_agree_between_orders() {
        fn check<T: Sum>(number: Number) {
            let sum = |pattern| {
                let walk = Walk::new(pattern, number, 100, 77).unwrap();
                let data: Vec<T> = (0..walk.len()).map(T::element).collect();
                run(&walk, &data, &memory::order(&walk)).as_f64()
            };
            let expected = sum(Pattern::Row);
            assert!(expected > 0.0);
            for pattern in [Pattern::Column, Pattern::Tiled, Pattern::Strided, Pattern::Random] {
                assert_eq!(sum(pattern), expected, "{pattern:?} {number:?}");
            }
        }
        check::<f32>(Number::F32);
        check::<f64>(Number::F64);
        check::<u8>(Number::U8);
        check::<i64>(Number::I64);
    }
}

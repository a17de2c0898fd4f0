//! What is worked out once a tile and not once a row: which bytes of the vectors read make a vector written.

use super::super::level;
use super::pick::Pick;
use super::slide::low;

/// See [`level::Recipe`].
#[expect(clippy::large_enum_variant, reason = "one at a time, on the stack, for as long as a tile takes")]
pub(super) enum Recipe {
    /// Element by element.
    OneByOne,
    /// The element repeated.
    Splat(Pick),
    /// Elements a fixed distance apart.
    Gather(Gather),
    /// Elements of a few rows in turn: a vector of each row makes as many vectors.
    Interleave([Pick; 4]),
}

/// How rows of elements a fixed distance apart are gathered.
pub(super) struct Gather {
    /// As many elements as fit a line span at most so many vectors.
    pub(super) windows: usize,
    pub(super) pick: Pick,
    /// Elements of a row.
    pub(super) n: usize,
    /// Groups of a line of elements whose window lies inside such a row.
    pub(super) whole: usize,
    /// Bytes of the windows that belong to a whole group, and to what is left of such a row after its groups.
    pub(super) full: [u64; 4],
    pub(super) rest: [u64; 4],
}

impl Gather {
    /// Groups whose window of `windows` vectors lies inside a row of `n` elements.
    #[inline(always)]
    pub(super) fn whole(windows: usize, n: usize, gap: usize, size: usize) -> usize {
        let each = 64 / size;
        let room = ((n - 1) * gap + size).checked_sub(64 * windows);
        room.map_or(0, |room| room / (each * gap).max(1) + 1).min(n / each)
    }

    /// Bytes of `windows` vectors that belong to a group of `count` elements, at least one.
    #[inline(always)]
    pub(super) fn masks(windows: usize, count: usize, gap: usize, size: usize, down: bool) -> [u64; 4] {
        let reach = (count - 1) * gap + size;
        let mut masks = [0; 4];
        for (k, mask) in masks.iter_mut().enumerate().take(windows) {
            *mask = if down {
                !low((64 * windows - reach).saturating_sub(64 * k))
            } else {
                low(reach.saturating_sub(64 * k))
            };
        }
        masks
    }
}

impl level::Recipe for Recipe {
    #[inline(always)]
    unsafe fn splat(size: usize) -> Self {
        // SAFETY: the caller's promise.
        let evenly = unsafe { Pick::of_size(size, 0, 0) };
        Self::Splat(evenly)
    }

    #[inline(always)]
    unsafe fn gather(n: usize, stride: isize, size: usize, stream: bool) -> Self {
        let gap = stride.unsigned_abs();
        let Some(span) = (64 / size).checked_sub(1).map(|more| more.saturating_mul(gap).saturating_add(size))
        else {
            return Self::OneByOne;
        };
        // Few elements a load, or few elements: one by one is as good, and starts at once.
        let wide = !stream && size >= 8 && (gap > size || n * size <= 256);
        if n < 4 || wide || span > 256 {
            return Self::OneByOne;
        }
        let windows = span.div_ceil(64);
        // Going up a window starts at the group's lowest byte, going down it ends at its highest.
        let (first, step) =
            if stride < 0 { (64 * windows - size, -(gap as isize)) } else { (0, gap as isize) };
        // SAFETY: the caller's promise.
        let pick = unsafe { Pick::of_size(size, first as isize, step) };
        let masks = |count: usize| Gather::masks(windows, count, gap, size, stride < 0);
        let each = 64 / size;
        let left = n % each;
        let rest = if left > 0 { masks(left) } else { [0; 4] };
        Self::Gather(Gather {
            windows,
            pick,
            n,
            whole: Gather::whole(windows, n, gap, size),
            full: masks(each),
            rest,
        })
    }

    #[inline(always)]
    unsafe fn interleave(channels: usize, size: usize) -> Self {
        if !matches!(channels, 2..=4) || channels * size > 64 {
            return Self::OneByOne;
        }
        // SAFETY: the caller's promise.
        Self::Interleave(unsafe { interleaved(channels, size) })
    }

    #[inline(always)]
    fn gathers(&self) -> bool {
        matches!(self, Self::Gather(_))
    }
}

/// Which bytes of a vector of each of `channels` rows make the result's first, second, ... vector; of elements
/// that do not fill a vector, as many groups as fit the first.
///
/// # Safety
/// See [`Pick::evenly`].
#[inline(always)]
unsafe fn interleaved(channels: usize, size: usize) -> [Pick; 4] {
    let groups = if 64 % size == 0 { 64 / size } else { 64 / (channels * size) };
    let (mut index, mut b) = ([[0u8; 64]; 4], 0);
    for k in 0..groups {
        for c in 0..channels {
            for e in 0..size {
                index[b / 64][b % 64] = (c * 64 + k * size + e) as u8;
                b += 1;
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { [Pick::of(&index[0]), Pick::of(&index[1]), Pick::of(&index[2]), Pick::of(&index[3])] }
}

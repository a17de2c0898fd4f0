//! Several threads for one copy: the iterations of one loop are dealt out in contiguous parts.

use std::ops::Range;

/// Threads used when the caller does not say: the physical cores allowed to the process, at most as
/// many as the global pool has.
#[cfg(feature = "parallel")]
pub(crate) fn default_threads() -> usize {
    rayon::current_num_threads()
}

/// Threads used when the caller does not say.
#[cfg(not(feature = "parallel"))]
pub(crate) fn default_threads() -> usize {
    1
}

/// The part of `count` iterations that thread `k` of `threads` takes.
fn part(k: usize, threads: usize, count: usize) -> Range<usize> {
    let cut = |k: usize| (k as u128 * count as u128 / threads as u128) as usize;
    cut(k)..cut(k + 1)
}

/// Runs `work` over all of `0..count` in at most `threads` parts, each on its own thread.
#[cfg(feature = "parallel")]
pub(crate) fn share(threads: usize, count: usize, work: impl Fn(Range<usize>) + Sync) {
    let threads = threads.min(count);
    if threads <= 1 {
        return work(0..count);
    }
    let work = &work;
    rayon::scope(|scope| {
        for k in 1..threads {
            scope.spawn(move |_| work(part(k, threads, count)));
        }
        work(part(0, threads, count));
    });
}

/// Runs `work` over all of `0..count`.
#[cfg(not(feature = "parallel"))]
pub(crate) fn share(threads: usize, count: usize, work: impl Fn(Range<usize>) + Sync) {
    let _ = (threads, part(0, 1, count));
    work(0..count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn parts_cover_every_iteration_once() {
        for (threads, count) in [(1, 7), (2, 7), (3, 3), (5, 3), (4, 1024), (7, 1)] {
            let seen = Mutex::new(vec![0; count]);
            share(threads, count, |range| range.for_each(|k| seen.lock().unwrap()[k] += 1));
            assert!(seen.into_inner().unwrap().iter().all(|&n| n == 1), "{threads} threads, {count}");
        }
    }
}

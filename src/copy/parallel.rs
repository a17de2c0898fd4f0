//! Several threads for one copy: the iterations of one loop are dealt out in contiguous parts,
//! to whoever is free.

use std::ops::Range;

/// Threads used when the caller does not say: the physical cores allowed to the process, at most as
/// many as the global pool has.
#[cfg(feature = "parallel")]
pub(crate) fn default_threads() -> usize {
    if has_pool() { rayon::current_num_threads() } else { 1 }
}

/// Whether there are threads to share with: where the system starts none, the global pool cannot be had, and asking
/// rayon for it would panic.
#[cfg(feature = "parallel")]
fn has_pool() -> bool {
    use std::error::Error;
    use std::sync::OnceLock;
    static GLOBAL: OnceLock<bool> = OnceLock::new();
    // Inside somebody's pool there is one. An error without a cause says that the global pool is there already.
    rayon::current_thread_index().is_some()
        || *GLOBAL.get_or_init(|| match rayon::ThreadPoolBuilder::new().build_global() {
            Ok(()) => true,
            Err(error) => error.source().is_none(),
        })
}

/// Makes the threads of the global pool exist, where they can.
#[cfg(feature = "cli")]
pub(crate) fn wake() {
    if has_pool() {
        rayon::broadcast(|_| ());
    }
}

/// Threads used when the caller does not say.
#[cfg(not(feature = "parallel"))]
pub(crate) fn default_threads() -> usize {
    1
}

/// Part `k` of `parts` of `count` iterations.
fn part(k: usize, parts: usize, count: usize) -> Range<usize> {
    let cut = |k: usize| (k as u128 * count as u128 / parts as u128) as usize;
    cut(k)..cut(k + 1)
}

/// Parts are dealt out one by one, so that a thread that is late or held up takes fewer: so many for each thread
/// at most.
#[cfg(feature = "parallel")]
const PARTS_PER_THREAD: usize = 8;

/// Runs `work` over all of `0..count` on at most `threads` threads, the calling one among them, in parts of at
/// least `least` iterations.
#[cfg(feature = "parallel")]
pub(crate) fn share(threads: usize, count: usize, least: usize, work: impl Fn(Range<usize>) + Sync) {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let threads = threads.min(count);
    if threads <= 1 || !has_pool() {
        return work(0..count);
    }
    let parts = (count / least.max(1)).clamp(threads, threads.saturating_mul(PARTS_PER_THREAD)).min(count);
    let next = AtomicUsize::new(0);
    let body = || {
        loop {
            let k = next.fetch_add(1, Ordering::Relaxed);
            if k >= parts {
                return;
            }
            work(part(k, parts, count));
        }
    };
    let body = &body;
    rayon::in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(move |_| body());
        }
        body();
    });
}

/// Runs `work` over all of `0..count`.
#[cfg(not(feature = "parallel"))]
pub(crate) fn share(threads: usize, count: usize, least: usize, work: impl Fn(Range<usize>) + Sync) {
    let _ = (threads, least, part(0, 1, count));
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
            share(threads, count, 1, |range| range.for_each(|k| seen.lock().unwrap()[k] += 1));
            assert!(seen.into_inner().unwrap().iter().all(|&n| n == 1), "{threads} threads, {count}");
        }
    }
}

//! Times walks: warm or cold, on one thread or on several, and counts events in a pass of its own.

use super::kernel::{self, Sum};
use super::memory::Prepared;
use super::{Number, Pattern, Traffic, Walk};
use crate::Error;
use crate::bench::timing::{Effort, PageMode};
use crate::machine::counters::{self, Count, Probe};
use crate::machine::flush;
use rayon::ThreadPool;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// How walks are timed.
pub struct Setup<'a> {
    /// Pages of the arrays.
    pub pages: PageMode,
    /// Whether the arrays are thrown out of the caches before every pass.
    pub cold: bool,
    /// How long and how often.
    pub effort: Effort,
    /// Threads that walk at once, each over its share; `None` is the calling thread alone.
    pub pool: Option<&'a ThreadPool>,
    /// Events to count afterwards; none where empty.
    pub probes: &'a [Probe],
    /// Set from outside to stop early, with the samples so far.
    pub stop: &'a AtomicBool,
}

/// One walk, measured.
#[derive(Debug, Clone)]
pub struct Point {
    /// The walk.
    pub walk: Walk,
    /// What one pass touches, all threads together.
    pub traffic: Traffic,
    /// Nanoseconds of one pass, a sample each; the slowest thread's.
    pub samples_ns: Vec<f64>,
    /// Threads that walked.
    pub threads: usize,
    /// The share (0 to 1) of the array that huge pages back; `None` is unknown.
    pub huge_share: Option<f64>,
    /// Events of one pass, all threads together.
    pub counts: Vec<Count>,
    /// Whether the sum is that of the elements that the walk should read.
    pub verified: bool,
}

/// Shortest sample, in nanoseconds: well above what the clock resolves.
const SAMPLE_NS: f64 = 100_000.0;
/// Most passes in one sample.
const MAX_REPEATS: u32 = 1 << 20;

/// Measures one walk.
///
/// # Errors
/// Alloc, where the arrays cannot be had; Overflow, where the walk is too large for its tables.
pub fn measure(walk: &Walk, setup: &Setup<'_>) -> Result<Point, Error> {
    match walk.number {
        Number::F32 => measure_as::<f32>(walk, setup),
        Number::F64 => measure_as::<f64>(walk, setup),
        Number::U8 => measure_as::<u8>(walk, setup),
        Number::I64 => measure_as::<i64>(walk, setup),
    }
}

fn measure_as<T: Sum>(walk: &Walk, setup: &Setup<'_>) -> Result<Point, Error> {
    let traffic = walk.traffic()?;
    let (samples_ns, huge_share, counts, verified) = match setup.pool {
        None => {
            let job = Job::<T>::new(*walk, setup.pages)?;
            let verified = job.verify();
            let samples = sample(setup, |repeats| job.timed(repeats, setup.cold));
            let counts = count(setup, |probes| counters::count(counters::system(), probes, || job.pass()));
            (samples, job.prepared.huge_share(), counts, verified)
        }
        Some(pool) => {
            let threads = pool.current_num_threads();
            // Each thread writes its own share first, so that its pages lie near it.
            let jobs = pool
                .broadcast(|thread| Job::<T>::new(walk.share(thread.index(), threads), setup.pages))
                .into_iter()
                .collect::<Result<Vec<_>, _>>()?;
            let verified = jobs.iter().all(Job::verify);
            let barrier = Barrier::new(threads);
            let samples = sample(setup, |repeats| {
                let spans =
                    pool.broadcast(|thread| jobs[thread.index()].span(repeats, setup.cold, Some(&barrier)));
                // From the first that begins to the last that ends: threads that take turns on a CPU share its time.
                let begun = spans.iter().map(|span| span.0).min();
                let done = spans.iter().map(|span| span.1).max();
                let all = begun.zip(done).map(|(begun, done)| done - begun).unwrap_or_default();
                all.as_nanos() as f64 / f64::from(repeats)
            });
            let counts = count(setup, |probes| {
                counters::count_in_pool(counters::system(), probes, pool, |thread| jobs[thread].pass())
            });
            (samples, mean_share(&jobs), counts, verified)
        }
    };
    let threads = setup.pool.map_or(1, ThreadPool::current_num_threads);
    Ok(Point { walk: *walk, traffic, samples_ns, threads, huge_share, counts, verified })
}

fn count(setup: &Setup<'_>, run: impl FnOnce(&[Probe]) -> Vec<Count>) -> Vec<Count> {
    if setup.probes.is_empty() || setup.stop.load(Ordering::Relaxed) {
        return Vec::new();
    }
    run(setup.probes)
}

/// Share of huge pages over all threads, by the bytes of each.
fn mean_share<T: Sum>(jobs: &[Job<T>]) -> Option<f64> {
    let total: usize = jobs.iter().map(|job| job.walk.bytes()).sum();
    jobs.iter()
        .filter(|job| job.walk.bytes() > 0)
        .map(|job| job.prepared.huge_share().map(|share| share * job.walk.bytes() as f64 / total as f64))
        .sum()
}

/// Takes samples of `timed(repeats)`, which gives nanoseconds of one pass, until the effort is spent.
fn sample(setup: &Setup<'_>, timed: impl Fn(u32) -> f64) -> Vec<f64> {
    let effort = setup.effort;
    let start = Instant::now();
    let stopped = || setup.stop.load(Ordering::Relaxed);
    let mut samples = Vec::new();
    // The first pass warms caches, TLB and branch predictors; the second says how many fill a sample.
    timed(1);
    let repeats = if setup.cold { 1 } else { repeats(timed(1)) };
    while samples.len() < effort.max_samples && !stopped() {
        if samples.len() >= effort.min_samples && start.elapsed() >= effort.budget {
            break;
        }
        samples.push(timed(repeats));
    }
    samples
}

fn repeats(once_ns: f64) -> u32 {
    (SAMPLE_NS / once_ns.max(1.0)).ceil().clamp(1.0, f64::from(MAX_REPEATS)) as u32
}

/// One thread's walk and its array.
struct Job<T> {
    walk: Walk,
    prepared: Prepared<T>,
}

impl<T: Sum> Job<T> {
    fn new(walk: Walk, pages: PageMode) -> Result<Self, Error> {
        Ok(Self { walk, prepared: Prepared::new(&walk, pages)? })
    }

    /// One pass; its result is used as far as the optimiser can see.
    fn pass(&self) {
        match &self.prepared {
            Prepared::Elements(array, order) => {
                black_box(kernel::run(&self.walk, black_box(array.as_slice()), order));
            }
            Prepared::Links(links) => {
                black_box(kernel::chase(black_box(links.as_slice()), self.walk.elements()));
            }
        }
    }

    /// Nanoseconds of one pass, the mean of `repeats`.
    fn timed(&self, repeats: u32, cold: bool) -> f64 {
        let (begun, done) = self.span(repeats, cold, None);
        (done - begun).as_nanos() as f64 / f64::from(repeats)
    }

    /// When `repeats` passes began and ended; threads begin together.
    fn span(&self, repeats: u32, cold: bool, barrier: Option<&Barrier>) -> (Instant, Instant) {
        if cold {
            match &self.prepared {
                Prepared::Elements(array, _) => flush::flush(array.as_slice()),
                Prepared::Links(links) => flush::flush(links.as_slice()),
            }
        }
        if let Some(barrier) = barrier {
            barrier.wait();
        }
        let start = Instant::now();
        for _ in 0..repeats {
            self.pass();
        }
        (start, Instant::now())
    }

    /// Whether the walk's sum is that of its elements, taken one after the other.
    fn verify(&self) -> bool {
        let elements = self.walk.elements();
        match &self.prepared {
            // After as many hops as nodes a cycle is back where it began, and no earlier.
            Prepared::Links(links) => {
                let at = |hops| kernel::chase(links.as_slice(), hops);
                at(elements) == 0 && (elements < 2 || at(elements - 1) != 0)
            }
            Prepared::Elements(array, order) => {
                let data = array.as_slice();
                let walk = &self.walk;
                let step = if walk.pattern == Pattern::Strided { walk.stride } else { 1 };
                let straight = match walk.pattern {
                    Pattern::Row | Pattern::Column | Pattern::Tiled => data
                        .chunks(walk.pitch.max(1))
                        .take(walk.rows)
                        .flat_map(|row| &row[..walk.cols])
                        .fold(T::ZERO, |sum, &element| sum.plus(element)),
                    _ => data.iter().step_by(step).fold(T::ZERO, |sum, &element| sum.plus(element)),
                };
                // Sums of small whole floats are exact in any order up to 2^24 ones.
                let exact = elements < 1 << 24 || walk.number != Number::F32;
                !exact || kernel::run(walk, data, order).as_f64() == straight.as_f64()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn setup(stop: &AtomicBool) -> Setup<'_> {
        Setup {
            pages: PageMode::Small,
            cold: false,
            effort: Effort { budget: Duration::ZERO, min_samples: 3, max_samples: 5 },
            pool: None,
            probes: &[],
            stop,
        }
    }

    #[test]
    fn every_pattern_and_type_is_measured_and_verified() {
        let stop = AtomicBool::new(false);
        for pattern in Pattern::ALL {
            for number in Number::ALL {
                let walk = Walk::new(pattern, number, 33, 70).unwrap().with_stride(5);
                let point = measure(&walk, &setup(&stop)).unwrap();
                assert!(point.verified, "{walk:?}");
                assert_eq!((point.samples_ns.len(), point.threads), (3, 1), "{walk:?}");
                assert!(point.samples_ns.iter().all(|ns| ns.is_finite() && *ns >= 0.0), "{walk:?}");
            }
        }
    }

    #[test]
    fn cold_walks_and_threads() {
        let stop = AtomicBool::new(false);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for pattern in Pattern::ALL {
            // Fewer rows than threads: one thread has nothing to do, and all the same arrives.
            let walk = Walk::new(pattern, Number::F64, 2, 64).unwrap();
            let cold = Setup { cold: true, pool: Some(&pool), ..setup(&stop) };
            let point = measure(&walk, &cold).unwrap();
            assert!(point.verified && point.threads == 3 && point.samples_ns.len() == 3, "{walk:?}");
        }
    }

    #[test]
    fn events_are_counted_apart() {
        let stop = AtomicBool::new(false);
        let probes = counters::host_probes();
        let walk = Walk::new(Pattern::Row, Number::F64, 8, 8).unwrap();
        let point = measure(&walk, &Setup { probes, ..setup(&stop) }).unwrap();
        assert_eq!(point.counts.len(), probes.len());
        for count in &point.counts {
            assert_eq!(count.value.is_some(), count.state.usable(), "{count:?}");
        }
    }

    #[test]
    fn a_stop_keeps_what_is_there() {
        let stop = AtomicBool::new(true);
        let walk = Walk::new(Pattern::Row, Number::F64, 8, 8).unwrap();
        assert!(measure(&walk, &setup(&stop)).unwrap().samples_ns.is_empty());
    }

    #[test]
    fn repeats_are_bounded() {
        assert_eq!((repeats(0.0), repeats(f64::NAN)), (100_000, 100_000));
        assert_eq!((repeats(1e12), repeats(50_000.0)), (1, 2));
    }
}

//! How many accesses a second does the cache model serve?
//!
//! The naive streams of an f64 matrix of 1024 x 1024 and of its transpose on three levels, misses
//! not sorted by cause. The throughput that criterion prints is accesses a second on one core.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use restride::cachesim::{Access, CacheSpec, Hierarchy, Options, Run};
use std::time::Duration;

const N: u64 = 1024;

fn walk(caches: &[CacheSpec], runs: impl Iterator<Item = Run>) -> u64 {
    let mut model =
        Hierarchy::new(caches, &Options::default(), 8 * N * N).expect("caches that can be modelled");
    for run in runs {
        model.run(run, 8, Access::Read);
    }
    model.counts().iter().map(|level| level.misses).sum()
}

fn cachesim(c: &mut Criterion) {
    let machines = [
        [("L1d", 48 << 10, 12), ("L2", 2 << 20, 16), ("L3", 300 << 20, 20)],
        [("L1d", 32 << 10, 8), ("L2", 512 << 10, 8), ("L3", 32 << 20, 16)],
    ];
    let mut group = c.benchmark_group("cachesim");
    group.throughput(Throughput::Elements(N * N));
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    for levels in machines {
        let caches: Vec<_> =
            levels.iter().map(|&(level, bytes, ways)| CacheSpec::new(level, bytes, ways, 64)).collect();
        let name = levels.map(|(level, bytes, ways)| format!("{level}={}K/{ways}", bytes >> 10)).join(",");
        group.bench_function(BenchmarkId::new("row-major", &name), |b| {
            b.iter(|| walk(&caches, std::iter::once(Run { start: 0, stride: 8, count: N * N })));
        });
        group.bench_function(BenchmarkId::new("transposed", &name), |b| {
            b.iter(|| walk(&caches, (0..N).map(|i| Run { start: 8 * i, stride: 8 * N as i64, count: N })));
        });
    }
    group.finish();
}

criterion_group!(benches, cachesim);
criterion_main!(benches);

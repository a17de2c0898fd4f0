//! What does the order of reading cost?
//!
//! `walks`: row-major against transposed against tiled, f64, one size per level of this machine's caches
//! and one beyond them. `cliff`: the transposed walk with rows a power of two apart, and just beside it.
//! The throughput is elements a second; with `RESTRIDE_EVENT` it is events per element.

mod support;

use criterion::{BenchmarkId, Criterion, Throughput};
use restride::bench::timing::PageMode;
use restride::bench::walks::memory::Prepared;
use restride::bench::walks::{Number, Pattern, Walk, kernel, ladder};
use restride::machine::caches::short_bytes;
use restride::machine::topology::Topology;
use std::hint::black_box;
use support::Meter;

/// A size inside each level, and one beyond the last that is not shared with other machines.
fn sizes(topology: &Topology) -> Vec<(String, usize)> {
    let mut sizes: Vec<(String, usize)> = Vec::new();
    let last = topology.last_private_level().map_or(2, |cache| cache.level);
    for cache in topology.caches.iter().filter(|cache| cache.holds_data() && cache.level <= last) {
        if let Some(bytes) = cache.bytes {
            sizes.push((cache.name(), bytes / 2));
        }
    }
    if sizes.is_empty() {
        sizes =
            vec![("L1d".to_owned(), topology.l1d().bytes / 2), ("L2".to_owned(), topology.l2().bytes / 2)];
    }
    let beyond = sizes.iter().map(|(_, bytes)| bytes * 4).max().unwrap_or(0);
    sizes.push(("beyond".to_owned(), beyond));
    sizes
}

fn bench(c: &mut Criterion<Meter>, group: &str, name: BenchmarkId, walk: &Walk) {
    let Ok(prepared) = Prepared::<f64>::new(walk, PageMode::Small) else {
        eprintln!("{group}: no memory for {} bytes, left out", walk.bytes());
        return;
    };
    let Prepared::Elements(array, order) = &prepared else { return };
    let mut group = c.benchmark_group(support::group_name(group));
    group.throughput(Throughput::Elements(walk.elements() as u64));
    group.bench_function(name, |b| {
        b.iter(|| kernel::run(walk, black_box(array.as_slice()), order));
    });
    group.finish();
}

fn main() {
    let mut c = support::criterion();
    let topology = Topology::host();
    let line = topology.line_bytes().bytes;
    for (level, bytes) in sizes(topology) {
        for pattern in [Pattern::Row, Pattern::Column, Pattern::Tiled] {
            let walk =
                ladder::square(pattern, Number::F64, bytes, line).expect("a size that this machine has");
            let name = BenchmarkId::new(pattern.name(), format!("{level} {}", short_bytes(bytes)));
            bench(&mut c, "walks", name, &walk);
        }
    }
    for pitch in [1008, 1016, 1024, 1032, 1040] {
        let walk = Walk::new(Pattern::Column, Number::F64, 1024, 960)
            .and_then(|walk| walk.with_pitch(pitch))
            .expect("a matrix of 8 MiB");
        bench(&mut c, "cliff", BenchmarkId::new("column 1024x960", pitch), &walk);
    }
    c.final_summary();
}

//! How fast is each view made contiguous?
//!
//! `materialize`: every case of the table, and of the public set of tensor transposes, on one thread into
//! memory that was written before. The throughput counts the distinct bytes read and the bytes written.
//! `map`: elements changed on the way, in one pass and as a copy followed by a conversion.
//! `fresh`: the same copy into touched and into new memory, and what touching new memory costs.
//! `memcpy`: a plain copy once per size. Ratios between the two are quoted from `restride bench` only,
//! which takes them in turn.

#[path = "support/fresh.rs"]
mod fresh;
#[path = "support/maps.rs"]
mod maps;
mod support;

use criterion::{BenchmarkId, Throughput};
use restride::bench::cases::{self, Case};
use restride::dtype::Dtype;
use restride::{BytesView, BytesViewMut, CopyOptions, Layout, copy_bytes};
use std::collections::BTreeSet;

fn main() {
    let mut c = support::criterion();
    let mut sizes = BTreeSet::new();
    let mut group = c.benchmark_group(support::group_name("materialize"));
    for case in [cases::all(), cases::transposes()].concat() {
        let Case { id, shape, dtype, expr, .. } = &case;
        let size = dtype.parse::<Dtype>().expect("the table names known types").size_bytes();
        let whole = Layout::row_major(shape).expect("the table's shapes are legal");
        let layout = whole.apply(expr).expect("the table's expressions are views");
        let target = Layout::row_major(layout.shape()).expect("a copy of a legal view");
        let bytes = target.numel() * size;
        sizes.insert(bytes);
        group.throughput(Throughput::Bytes(layout.lines(size, 64).bytes_used + bytes as u64));
        let options = CopyOptions::default().threads(1);
        // The memory is had when the case's turn comes, and only if it is asked for.
        let mut memory = None;
        group.bench_function(BenchmarkId::from_parameter(id), |b| {
            let (from, to) =
                memory.get_or_insert_with(|| (vec![1u8; whole.numel() * size], vec![2u8; bytes]));
            let src = BytesView::new(from, layout.clone(), size).expect("the buffer fits the view");
            let mut dst = BytesViewMut::new(to, target.clone(), size).expect("a contiguous target");
            b.iter(|| copy_bytes(&src, &mut dst, &options).expect("a plain copy"));
        });
    }
    group.finish();
    let mut group = c.benchmark_group(support::group_name("memcpy"));
    for bytes in sizes {
        group.throughput(Throughput::Bytes(2 * bytes as u64));
        let mut memory = None;
        group.bench_function(BenchmarkId::from_parameter(bytes), |b| {
            let (from, to) = memory.get_or_insert_with(|| (vec![1u8; bytes], vec![2u8; bytes]));
            b.iter(|| to.copy_from_slice(std::hint::black_box(from)));
        });
    }
    group.finish();
    for (name, make) in maps::rows() {
        let mut group = c.benchmark_group(support::group_name("map"));
        let mut row: Option<maps::Row> = None;
        group.bench_function(BenchmarkId::new(name, "one pass"), |b| {
            let row = row.get_or_insert_with(make);
            b.iter(|| (row.fused)());
        });
        group.bench_function(BenchmarkId::new(name, "copy, then convert"), |b| {
            let row = row.get_or_insert_with(make);
            b.iter(|| (row.apart)());
        });
        group.finish();
    }
    for expr in ["", ".T"] {
        let mut group = c.benchmark_group(support::group_name("fresh"));
        for (name, mut run) in fresh::rows(expr) {
            let name = format!("{name}, 4096{expr}");
            group.bench_function(name, |b| b.iter(&mut run));
        }
        group.finish();
    }
    c.final_summary();
}

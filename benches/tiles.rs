//! Which tile is the best for a transpose?
//!
//! `tiles`: f32 2048 x 2048 `.T` on one thread with several tiles, named by the bytes along a source row
//! and along a destination row. The throughput counts the bytes read and written.

mod support;

use criterion::{BenchmarkId, Throughput};
use restride::copy::tuning::{Knob, Origin, Value};
use restride::{CopyOptions, Layout, Tensor, Tuning, View};

const SIDE: usize = 2048;

fn main() {
    let mut c = support::criterion();
    let data: Vec<f32> = (0..SIDE * SIDE).map(|index| index as f32).collect();
    let layout = Layout::column_major(&[SIDE, SIDE]).expect("a small matrix");
    let view = View::new(&data, layout).expect("the matrix fills its data");
    let mut output: Tensor<f32> = view.materialize().expect("a matrix of 16 MiB");
    let mut group = c.benchmark_group(support::group_name("tiles"));
    group.throughput(Throughput::Bytes((2 * 4 * SIDE * SIDE) as u64));
    for src_bytes in [128, 512, 1024, 4096] {
        for dst_bytes in [64, 128, 512] {
            let mut tuning = Tuning::default();
            for (knob, bytes) in [(Knob::TileSrc, src_bytes), (Knob::TileDst, dst_bytes)] {
                tuning.set(knob, Some(4), Value::new(bytes, Origin::Caller)).expect("a tile of this range");
            }
            let options = CopyOptions::default().threads(1).tuning(tuning);
            group.bench_function(BenchmarkId::new("f32 2048 .T", format!("{src_bytes}x{dst_bytes}")), |b| {
                b.iter(|| view.materialize_into_with(output.as_mut_slice(), &options).expect("a plain copy"));
            });
        }
    }
    group.finish();
    let right = (0..SIDE * SIDE).all(|k| output.as_slice()[k] == data[k % SIDE * SIDE + k / SIDE]);
    assert!(right, "a tile gave a wrong transpose");
    c.final_summary();
}

//! What do views and plans cost, before anything is moved?
//!
//! `views`: making layouts by expression and by method. `plans`: one plan. `calls`: whole small copies
//! into a given slice, plan included.

mod support;

use restride::{CopyOptions, Layout, Plan, Tensor};
use std::hint::black_box;

fn main() {
    let mut c = support::criterion();
    let image = Layout::row_major(&[32, 224, 224, 3]).expect("a small shape");
    let mut group = c.benchmark_group(support::group_name("views"));
    group.bench_function("permute", |b| b.iter(|| black_box(&image).permute(&[0, 3, 1, 2])));
    group.bench_function("expression", |b| {
        b.iter(|| black_box(&image).apply(".permute(0, 3, 1, 2)[:, ::-1]"))
    });
    group.bench_function("row_major", |b| b.iter(|| Layout::row_major(black_box(&[32, 3, 224, 224]))));
    group.finish();

    let mut group = c.benchmark_group(support::group_name("plans"));
    let options = CopyOptions::default();
    for (name, shape, expr) in [
        ("run", &[64, 64][..], ""),
        ("transpose", &[640, 480], ".T"),
        ("pixels", &[32, 224, 224, 3], ".permute(0, 3, 1, 2)"),
        ("six axes", &[15, 15, 32, 15, 32, 16], ".permute(4, 1, 0, 3, 2, 5)"),
        ("padded", &[56, 56, 64], ".pad((1, 1), (1, 1), (0, 0))"),
    ] {
        let src = Layout::row_major(shape).and_then(|l| l.apply(expr)).expect("a legal view");
        let dst = Layout::row_major(src.shape()).expect("a legal shape");
        group.bench_function(name, |b| b.iter(|| Plan::new(black_box(&src), &dst, 4, &options)));
    }
    group.finish();

    let mut group = c.benchmark_group(support::group_name("calls"));
    for side in [4, 16, 64] {
        let x = Tensor::from_fn(&[side, side], |k| k as f32).expect("a small tensor");
        let view = x.view().t().expect("a matrix");
        let mut out = vec![0f32; side * side];
        group.bench_function(format!("f32 {side}x{side} .T"), |b| {
            b.iter(|| view.materialize_into(black_box(&mut out)).expect("a plain copy"));
        });
    }
    group.finish();
    c.final_summary();
}

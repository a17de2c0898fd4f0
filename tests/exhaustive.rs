//! Small worlds looked at whole: every shape, permutation and step; every reshape of every stride.

mod model;

use model::{Model, each_index, strides_exist};
use restride::layout::Index;
use restride::{Layout, View};

/// All lists of `n` of the given values.
fn lists<T: Copy>(values: &[T], n: usize) -> Vec<Vec<T>> {
    let mut all = vec![vec![]];
    for _ in 0..n {
        all = all.iter().flat_map(|head| values.iter().map(|&v| [&head[..], &[v]].concat())).collect();
    }
    all
}

fn permutations(n: usize) -> Vec<Vec<isize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for rest in permutations(n - 1) {
        for at in 0..n {
            let mut axes = rest.clone();
            axes.insert(at, n as isize - 1);
            all.push(axes);
        }
    }
    all
}

#[test]
fn every_small_permuted_and_stepped_view_is_materialized() {
    let data: Vec<u8> = (1..=81).collect();
    let mut checked = 0u64;
    let mut out = [0u8; 81];
    for ndim in 0..=4 {
        let steps = lists(&[-2isize, -1, 1, 2], ndim);
        let orders = permutations(ndim);
        for shape in lists(&[0usize, 1, 2, 3], ndim) {
            let n: usize = shape.iter().product();
            let base = Layout::row_major(&shape).unwrap();
            for steps in &steps {
                // An axis of extent 3 and step -2 names 2, 0; one of extent 2 names 1.
                let named: Vec<Vec<usize>> = shape
                    .iter()
                    .zip(steps)
                    .map(|(&extent, &step)| {
                        let forward = (0..extent).step_by(step.unsigned_abs());
                        if step > 0 { forward.collect() } else { forward.map(|i| extent - 1 - i).collect() }
                    })
                    .collect();
                let items: Vec<Index> =
                    steps.iter().map(|&step| Index::Slice { start: None, stop: None, step }).collect();
                let sliced = base.slice(&items).unwrap();
                for order in &orders {
                    let layout = sliced.permute(order).unwrap();
                    let view = View::new(&data[..n], layout).unwrap();
                    let out = &mut out[..view.layout().numel()];
                    out.fill(0);
                    view.materialize_into(out).unwrap();
                    let mut position = 0;
                    let extents: Vec<usize> = order.iter().map(|&a| named[a as usize].len()).collect();
                    assert_eq!(view.shape(), extents);
                    if !out.is_empty() {
                        let mut index = [0usize; 4];
                        'all: loop {
                            let mut old = [0usize; 4];
                            for (k, &a) in order.iter().enumerate() {
                                old[a as usize] = named[a as usize][index[k]];
                            }
                            let at = (0..ndim).fold(0, |k, a| k * shape[a] + old[a]);
                            assert_eq!(out[position], data[at], "{shape:?} {steps:?} {order:?}");
                            position += 1;
                            for k in (0..ndim).rev() {
                                index[k] += 1;
                                if index[k] < extents[k] {
                                    continue 'all;
                                }
                                index[k] = 0;
                            }
                            break;
                        }
                    }
                    assert_eq!(position, out.len());
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, 1 + 4 * 4 + 16 * 16 * 2 + 64 * 64 * 6 + 256 * 256 * 24);
}

#[test]
fn every_small_reshape_is_a_view_exactly_when_strides_exist() {
    let shapes: Vec<Vec<usize>> = (0..=3).flat_map(|n| lists(&[1usize, 2, 3, 4], n)).collect();
    let (mut views, mut copies) = (0, 0);
    for shape in &shapes {
        let n: usize = shape.iter().product();
        for strides in lists(&[-2isize, -1, 0, 1, 2, 3, 4, 6], shape.len()) {
            let low: isize = shape.iter().zip(&strides).map(|(&n, &s)| (s * (n as isize - 1)).min(0)).sum();
            let layout = Layout::new(shape, &strides, -low).unwrap();
            let cells: Vec<Option<usize>> = (0..n).map(|k| layout.view_at(k).unwrap()).collect();
            for target in shapes.iter().filter(|t| t.iter().product::<usize>() == n) {
                let sizes: Vec<isize> = target.iter().map(|&extent| extent as isize).collect();
                match layout.reshape(&sizes) {
                    Ok(view) => {
                        let reads: Vec<_> = (0..n).map(|k| view.view_at(k).unwrap()).collect();
                        assert_eq!(reads, cells, "{layout:?} as {target:?}");
                        views += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), "needs_copy");
                        assert!(!strides_exist(target, &cells), "{layout:?} as {target:?}: {error}");
                        copies += 1;
                    }
                }
            }
        }
    }
    assert!(views > 10_000 && copies > 10_000, "{views} views, {copies} copies");
}

#[test]
fn every_small_padded_reshape_follows_the_box_rule() {
    let shapes: Vec<Vec<usize>> = (1..=3).flat_map(|n| lists(&[1usize, 2, 3, 4, 6, 8], n)).collect();
    let (mut views, mut copies) = (0, 0);
    for base in (1..=2).flat_map(|n| lists(&[1usize, 2, 3], n)) {
        for widths in lists(&[(0usize, 0usize), (1, 0), (0, 1), (1, 1), (2, 0)], base.len()) {
            for turned in [false, true] {
                let mut layout = Layout::row_major(&base).unwrap();
                if turned {
                    layout = layout.t().unwrap().flip(&[0]).unwrap();
                }
                let layout = layout.pad(&widths).unwrap();
                let n = layout.numel();
                let cells: Vec<Option<usize>> = (0..n).map(|k| layout.view_at(k).unwrap()).collect();
                for target in shapes.iter().filter(|t| t.iter().product::<usize>() == n) {
                    let sizes: Vec<isize> = target.iter().map(|&extent| extent as isize).collect();
                    let exist = strides_exist(target, &cells);
                    match layout.reshape(&sizes) {
                        Ok(view) => {
                            let reads: Vec<_> = (0..n).map(|k| view.view_at(k).unwrap()).collect();
                            assert_eq!(reads, cells, "{layout:?} as {target:?}");
                            views += 1;
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), "needs_copy");
                            assert!(!exist, "{layout:?} as {target:?}: {error}");
                            copies += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(views > 500 && copies > 500, "{views} views, {copies} copies");
}

#[test]
fn the_model_lists_indices_in_row_major_order() {
    let indices = |shape: &[usize]| {
        let mut all = Vec::new();
        each_index(shape, |index| all.push(index.to_vec()));
        all
    };
    assert_eq!(indices(&[2, 2]), [[0, 0], [0, 1], [1, 0], [1, 1]]);
    assert_eq!(indices(&[]), [[0usize; 0]; 1]);
    assert!(indices(&[3, 0]).is_empty());
    assert_eq!(Model::row_major(&[2, 3]).cells.len(), 6);
}

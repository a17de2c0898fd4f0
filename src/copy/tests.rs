//! Every level equals the oracle on the covering set.

use super::cover::{Bench, Case, row_major};
use super::kernels::{Isa, Place};
use super::options::CopyOptions;

const FRONT: Place = Place::Front(0);
const BACK: Place = Place::Back(0);

/// The levels to test: all that this CPU has. `RESTRIDE_REQUIRE_ISA` names one that must be among them.
fn levels() -> Vec<Isa> {
    let levels = Isa::available();
    if let Ok(name) = std::env::var("RESTRIDE_REQUIRE_ISA") {
        let required = Isa::from_name(&name).unwrap();
        assert!(levels.contains(&required), "this CPU does not run {required}");
    }
    levels
}

/// Runs the case with every level, ordinary and streaming stores.
fn check(bench: &mut Bench, case: &Case) {
    for isa in levels() {
        for streaming in [false, true] {
            let options = CopyOptions::default().isa(isa).streaming(streaming).threads(1);
            if let Some(wrong) = bench.check(case, &options).unwrap() {
                panic!("{isa}, streaming {streaming}: {wrong}");
            }
        }
    }
}

#[test]
fn all_small_extent_pairs() {
    let mut bench = Bench::new(131 * 131 * 16 + 4096).unwrap();
    for size in [1, 2, 4, 8, 16] {
        for rows in 0..=130 {
            for columns in 0..=130 {
                let place = [(BACK, BACK), (FRONT, FRONT), (Place::Back(size), Place::Front(3 * size))]
                    [(rows + columns) % 3];
                check(&mut bench, &Case::permuted(&[rows, columns], &[1, 0], size, place));
            }
        }
    }
}

#[test]
fn general_strides() {
    let mut bench = Bench::new(1 << 20).unwrap();
    let dense = |shape: &[usize]| row_major(shape);
    for size in [1, 2, 3, 4, 6, 8, 12, 16, 24, 100] {
        let cases: Vec<(Vec<usize>, Vec<isize>, Vec<isize>)> = vec![
            (vec![5, 7], vec![0, 0], dense(&[5, 7])),
            (vec![5, 700], vec![0, 1], dense(&[5, 700])),
            (vec![50, 70], vec![1, 0], dense(&[50, 70])),
            (vec![5, 300], vec![600, 2], dense(&[5, 300])),
            (vec![5, 300], vec![-1200, -3], dense(&[5, 300])),
            (vec![40, 41], vec![41, -1], dense(&[40, 41])),
            (vec![40, 3], vec![3, -1], dense(&[40, 3])),
            (vec![3, 200], vec![1, 3], dense(&[3, 200])),
            (vec![200, 3], vec![1, 200], dense(&[200, 3])),
            (vec![200, 4], vec![-1, 200], dense(&[200, 4])),
            (vec![20, 30], vec![2, 47], dense(&[20, 30])),
            (vec![20, 30], vec![30, 1], vec![70, 2]),
            (vec![20, 30], vec![1, 20], vec![-70, -2]),
            (vec![4, 5, 6, 7], vec![1, 4, 20, 120], dense(&[4, 5, 6, 7])),
            (vec![4, 5, 6, 7], vec![-1, 4, -20, 120], dense(&[4, 5, 6, 7])),
            (vec![15, 15, 15, 2], vec![1, 15, 225, 3375], dense(&[15, 15, 15, 2])),
            (vec![2; 10], vec![1, 2, 4, 8, 16, 32, 64, 128, 256, 512], dense(&[2; 10])),
            (vec![3, 3, 3, 3], vec![1, 1, 9, 9], dense(&[3, 3, 3, 3])),
        ];
        for (shape, src, dst) in cases {
            let reach: usize =
                shape.iter().zip(&src).map(|(n, s)| (n - 1) * s.unsigned_abs()).sum::<usize>() + 1;
            if reach * size > 1 << 20 {
                continue;
            }
            for place in [(BACK, BACK), (FRONT, FRONT), (Place::Front(1), Place::Back(7))] {
                let case = Case { shape: shape.clone(), src: src.clone(), dst: dst.clone(), size, place };
                check(&mut bench, &case);
            }
        }
    }
}

#[test]
fn padded_views_and_arbitrary_destinations_equal_the_reference() {
    use crate::{Layout, Tensor, View, ViewMut};
    let x = Tensor::from_fn(&[5, 6, 7], |k| k as u32 + 1).unwrap();
    for expr in [
        ".pad((1, 2), (0, 3), (4, 0))",
        ".pad((1, 1), (1, 1), (1, 1)).T[::-1]",
        ".pad((0, 0), (2, 2), (2, 2)).unfold(1, 3).unfold(2, 3, 2)",
        ".pad((3, 3), (0, 0), (0, 0)).permute(2, 0, 1)[::2, 1:-1]",
        "[:, 0:1, 0:1].pad((9, 9), (0, 0), (0, 0))",
        ".flip().permute(1, 2, 0)",
        "[..., None].broadcast_to(5, 6, 7, 3)",
    ] {
        let view = x.apply(expr).unwrap();
        let expected: Vec<u32> = view.iter().collect();
        assert_eq!(view.materialize().unwrap().as_slice(), expected, "{expr}");
        let reversed: Vec<usize> = view.shape().iter().rev().copied().collect();
        let layout = Layout::row_major(&reversed).unwrap().t().unwrap().flip(&[]).unwrap();
        let mut out = vec![0; expected.len()];
        let mut naive = vec![0u8; expected.len() * 4];
        let fill = view.fill_value();
        super::reference::copy(
            (view.layout(), bytemuck::cast_slice(view.data())),
            (&layout, &mut naive),
            4,
            bytemuck::bytes_of(&fill),
        )
        .unwrap();
        super::copy(&view, &mut ViewMut::new(&mut out, layout).unwrap()).unwrap();
        assert_eq!(bytemuck::cast_slice::<u32, u8>(&out), naive, "{expr}");
    }
    let empty: [u32; 0] = [];
    let view = View::new(&empty, Layout::row_major(&[0, 4]).unwrap()).unwrap();
    assert!(view.materialize().unwrap().as_slice().is_empty());
    let huge = x.apply("[0, 0, 0].broadcast_to(1073741824, 1048576)").unwrap();
    assert_eq!(huge.materialize().unwrap_err().kind(), "alloc");
}

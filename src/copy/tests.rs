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

/// Every pair of extents from 0 to 130, transposed, at three placements.
fn small_extent_pairs(size: usize) {
    let mut bench = Bench::new(131 * 131 * 16 + 4096).unwrap();
    for rows in 0..=130 {
        for columns in 0..=130 {
            let place = [(BACK, BACK), (FRONT, FRONT), (Place::Back(size), Place::Front(3 * size))]
                [(rows + columns) % 3];
            check(&mut bench, &Case::permuted(&[rows, columns], &[1, 0], size, place));
        }
    }
}

#[test]
fn small_extent_pairs_of_1_byte() {
    small_extent_pairs(1);
}

#[test]
fn small_extent_pairs_of_2_bytes() {
    small_extent_pairs(2);
}

#[test]
fn small_extent_pairs_of_4_bytes() {
    small_extent_pairs(4);
}

#[test]
fn small_extent_pairs_of_8_bytes() {
    small_extent_pairs(8);
}

#[test]
fn small_extent_pairs_of_16_bytes() {
    small_extent_pairs(16);
}

/// Matrices large enough that squares go abreast, and rows at pitches that crowd the first-level cache.
#[test]
fn large_matrices() {
    let mut bench = Bench::new(8 << 20).unwrap();
    let places = [(BACK, BACK), (FRONT, FRONT), (Place::Back(3), Place::Front(5)), (FRONT, Place::Back(32))];
    let shapes: [(&[usize], &[usize]); 12] = [
        (&[517, 300], &[1, 0]),
        (&[301, 1000], &[1, 0]),
        (&[1000, 131], &[1, 0]),
        (&[1023, 129], &[1, 0]),
        (&[1025, 130], &[1, 0]),
        (&[512, 257], &[1, 0]),
        (&[4095, 65], &[1, 0]),
        (&[33, 4099], &[1, 0]),
        (&[5, 160, 170], &[0, 2, 1]),
        (&[40, 48, 96], &[2, 1, 0]),
        (&[16, 7, 32, 48], &[3, 1, 2, 0]),
        (&[64, 9, 256], &[2, 0, 1]),
    ];
    for (k, (shape, order)) in shapes.into_iter().enumerate() {
        for size in [1, 2, 4, 8, 16] {
            for place in [places[k % 4], places[(k + 1) % 4]] {
                check(&mut bench, &Case::permuted(shape, order, size, place));
            }
        }
    }
}

#[test]
fn all_alignments() {
    let mut bench = Bench::new(1 << 20).unwrap();
    for (k, (rows, columns)) in [
        (1, 1),
        (3, 3),
        (5, 64),
        (64, 5),
        (16, 16),
        (17, 33),
        (64, 64),
        (65, 130),
        (130, 65),
        (31, 200),
        (200, 31),
        (96, 160),
    ]
    .into_iter()
    .enumerate()
    {
        let size = [1, 2, 4, 8, 16, 4][k % 6];
        for src in 0..64 {
            for dst in 0..64 {
                let place = (Place::Front(src), Place::Front(dst));
                check(&mut bench, &Case::permuted(&[rows, columns], &[1, 0], size, place));
            }
        }
    }
}

#[test]
fn many_axes_at_every_destination_offset() {
    let mut bench = Bench::new(1 << 20).unwrap();
    let shapes: [&[usize]; 8] = [
        &[2; 13],
        &[3; 8],
        &[2, 3, 2, 5, 2, 7, 2],
        &[5, 64, 7, 3],
        &[15, 15, 15, 4],
        &[16, 8, 4, 16, 2],
        &[700, 6, 3],
        &[3, 6, 700],
    ];
    for shape in shapes {
        let reversed: Vec<usize> = (0..shape.len()).rev().collect();
        let rotated: Vec<usize> = (0..shape.len()).map(|a| (a + shape.len() / 2) % shape.len()).collect();
        let mut swapped: Vec<usize> = (0..shape.len()).collect();
        swapped.swap(shape.len() - 1, shape.len() - 2);
        for size in [1, 2, 4, 8, 12, 16] {
            for axes in [&reversed, &rotated, &swapped] {
                for offset in 0..64 {
                    let place = (Place::Back(offset % 3), Place::Front(offset));
                    check(&mut bench, &Case::permuted(shape, axes, size, place));
                }
            }
        }
    }
}

#[test]
fn long_tiles_of_many_axes_fit_their_tables() {
    let mut bench = Bench::new(5 << 20).unwrap();
    for shape in [&[2; 17][..], &[3; 10], &[7, 2, 64, 2, 3, 2, 2, 2], &[2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 41]] {
        let reversed: Vec<usize> = (0..shape.len()).rev().collect();
        for size in [1, 2, 4, 8, 12, 16, 24] {
            for offset in [0, 1, 8, 16, 32, 63] {
                let place = (BACK, Place::Front(offset));
                check(&mut bench, &Case::permuted(shape, &reversed, size, place));
            }
        }
    }
}

#[test]
fn rows_longer_than_a_table_are_cut_into_unequal_tiles() {
    let mut bench = Bench::new(20 << 20).unwrap();
    for columns in [1025, 1040, 1087, 1100, 1151, 1300, 1537, 2049, 2060, 3075, 8197, 9300] {
        for (rows, size) in
            [(600, 1), (1030, 1), (600, 2), (1030, 2), (300, 4), (140, 8), (80, 16), (70, 3), (70, 12)]
        {
            check(&mut bench, &Case::permuted(&[columns, rows], &[1, 0], size, (BACK, Place::Front(size))));
        }
    }
}

/// Rows that touch leave as one run where they are streamed: whatever their length, wherever they start, and
/// also where tiles begin and where rows stop touching.
#[test]
fn rows_that_touch_at_every_offset() {
    let mut bench = Bench::new(1 << 20).unwrap();
    for (k, bytes) in [256, 260, 264, 312, 328, 333, 400, 504, 600, 1032, 2084].into_iter().enumerate() {
        let rows = if bytes < 600 { 40 } else { 9 };
        for size in [1, 2, 4, 8, 16].into_iter().filter(|size| bytes % size == 0) {
            let n = bytes / size;
            let wide = n as isize;
            let sources: [(Vec<usize>, Vec<isize>); 6] = [
                (vec![rows, n], vec![wide, -1]),
                (vec![rows, n], vec![-3 * wide, 3]),
                (vec![rows, n], vec![wide + 1, 1]),
                (vec![rows, n], vec![1, 0]),
                (vec![rows, n / 2, 2], vec![2 * wide, 1, wide]),
                (vec![rows, n / 8, 2, 2, 2], vec![2 * wide, 8, 2, 4, 1]),
            ];
            for (shape, src) in sources {
                let mut apart = row_major(&shape);
                apart[0] += 5;
                for (dst, skews) in [(row_major(&shape), 0..64), (apart, k..k + 1)] {
                    for skew in skews {
                        let place =
                            (BACK, if skew % 2 == 0 { Place::Front(skew) } else { Place::Back(skew) });
                        let (shape, src, dst) = (shape.clone(), src.clone(), dst.clone());
                        check(&mut bench, &Case { shape, src, dst, size, place });
                    }
                }
            }
        }
    }
}

#[test]
fn all_element_sizes() {
    let mut bench = Bench::new(1 << 20).unwrap();
    for size in 1..=24 {
        for (rows, columns) in [
            (1, 2),
            (2, 1),
            (2, 2),
            (3, 2),
            (2, 3),
            (3, 3),
            (4, 4),
            (5, 3),
            (3, 5),
            (7, 7),
            (8, 8),
            (9, 4),
            (4, 9),
            (13, 17),
            (16, 16),
            (17, 13),
            (20, 3),
            (3, 20),
            (31, 33),
            (33, 31),
            (40, 64),
            (64, 40),
            (65, 65),
            (2, 300),
            (300, 2),
            (3, 400),
            (400, 3),
            (4, 500),
            (500, 4),
            (101, 99),
        ] {
            for place in [(BACK, BACK), (FRONT, Place::Front(size))] {
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

/// Cells of every small form: up to three axes in any order, forwards and backwards, with gaps.
#[test]
fn cells_of_close_elements() {
    let mut bench = Bench::new(1 << 20).unwrap();
    let cells: [(&[usize], &[isize]); 12] = [
        (&[3], &[-1]),
        (&[4], &[-1]),
        (&[4], &[3]),
        (&[2], &[5]),
        (&[5], &[0]),
        (&[3, 3], &[1, 3]),
        (&[2, 2], &[1, 2]),
        (&[4, 4], &[1, 4]),
        (&[2, 3], &[-1, 2]),
        (&[2, 3, 2], &[1, 4, 2]),
        (&[7], &[-2]),
        (&[3, 5], &[5, -1]),
    ];
    for size in [1, 2, 3, 4, 5, 8, 12, 16] {
        for (extents, strides) in cells {
            let reach: isize = extents.iter().zip(strides).map(|(&n, s)| (n as isize - 1) * s.abs()).sum();
            for count in [1, 2, 3, 5, 21, 22, 64, 65, 130] {
                for step in [reach + 1, -(reach + 1), reach + 4, 1, 0, 40] {
                    let mut shape = vec![2, count];
                    shape.extend_from_slice(extents);
                    let mut src = vec![count as isize * step.abs().max(1) + reach + 3, step];
                    src.extend_from_slice(strides);
                    let dst = row_major(&shape);
                    for place in [(BACK, BACK), (FRONT, Place::Front(size)), (Place::Back(1), Place::Back(3))]
                    {
                        let case =
                            Case { shape: shape.clone(), src: src.clone(), dst: dst.clone(), size, place };
                        check(&mut bench, &case);
                    }
                }
            }
        }
    }
}

/// Rows of wide elements of every short length, forwards and backwards, near and far, on lines and off.
#[test]
fn rows_of_wide_elements_that_lie_apart() {
    let mut bench = Bench::new(1 << 20).unwrap();
    for size in [8, 16] {
        for columns in (1..=40).chain([63, 64, 67, 130]) {
            for step in [2, -2, 5, -7, 32] {
                for rows in [1, 3] {
                    let (shape, pitch) = (vec![rows, columns], columns as isize * 40 + 1);
                    let dst = row_major(&shape);
                    for place in [(BACK, BACK), (FRONT, Place::Front(size)), (Place::Back(1), Place::Back(3))]
                    {
                        let (shape, src, dst) = (shape.clone(), vec![pitch, step], dst.clone());
                        check(&mut bench, &Case { shape, src, dst, size, place });
                    }
                }
            }
        }
    }
}

/// Padded views at every level, past the caches and not, whole or in parts, at any alignment.
#[test]
fn padded_rows_at_every_level() {
    use super::kernels::Guarded;
    use crate::{BytesView, BytesViewMut, Layout};
    let mut tuning = super::tuning::Tuning::default();
    let low = super::tuning::Value::new(64 << 10, super::tuning::Origin::Caller);
    tuning.set(super::tuning::Knob::ParallelFrom, None, low).unwrap();
    let mut target = Guarded::new(1 << 20).unwrap();
    let fill: Vec<u8> = (1..=24).collect();
    for (shape, expr) in [
        (&[5, 60][..], ".pad((1, 1), (1, 2))"),
        (&[3, 4, 9, 16], ".pad((0, 0), (1, 2), (1, 1), (0, 0))"),
        (&[2, 3, 7, 33], ".pad((1, 0), (0, 2), (3, 1), (1, 1))"),
        (&[2, 2, 2, 40], ".pad((1, 1), (1, 1), (1, 1), (1, 1))"),
        (&[1, 200], ".pad((2, 2), (400, 0))"),
        (&[4, 1, 70], ".pad((0, 0), (1, 1), (0, 0))"),
        (&[300, 3], ".pad((0, 0), (0, 1))"),
        (&[2, 1100], ".pad((0, 0), (64, 64))"),
        (&[20, 30], ".T.pad((1, 1), (1, 1))"),
        (&[20, 90], "[::2, :77].pad((0, 0), (2, 1))"),
    ] {
        for size in [1, 2, 3, 4, 8, 12, 16, 24] {
            let source = Layout::row_major(shape).unwrap();
            let data: Vec<u8> = (0..source.numel() * size).map(|k| (k * 7 + k / 251) as u8).collect();
            let view = source.apply(expr).unwrap();
            let dst = Layout::row_major(view.shape()).unwrap();
            let mut expected = vec![0; dst.numel() * size];
            super::reference::copy((&view, &data), (&dst, &mut expected), size, &fill[..size]).unwrap();
            for isa in levels() {
                for (streaming, threads, place) in [
                    (false, 1, BACK),
                    (true, 1, BACK),
                    (true, 3, Place::Front(5)),
                    (false, 2, Place::Front(64)),
                ] {
                    let start = target.start(place, expected.len());
                    let out = &mut target.bytes_mut()[start..start + expected.len()];
                    out.fill(0xEE);
                    let options =
                        CopyOptions::default().isa(isa).streaming(streaming).threads(threads).tuning(tuning);
                    let src =
                        BytesView::new(&data, view.clone(), size).unwrap().with_fill(&fill[..size]).unwrap();
                    let mut to = BytesViewMut::new(out, dst.clone(), size).unwrap();
                    super::copy_bytes(&src, &mut to, &options).unwrap();
                    assert!(
                        out == expected,
                        "{shape:?} {expr} of {size} bytes, {isa}, streaming {streaming}"
                    );
                }
            }
        }
    }
}

#[test]
fn random_layouts() {
    let mut bench = Bench::new(super::cover::MOST_BYTES + 4096).unwrap();
    for case in super::cover::Cases::new(20_26).take(4000) {
        check(&mut bench, &case);
    }
}

#[test]
fn every_thread_count_writes_the_same_bytes() {
    let mut bench = Bench::new(8 << 20).unwrap();
    let mut tuning = super::tuning::Tuning::default();
    let low = super::tuning::Value::new(64 << 10, super::tuning::Origin::Caller);
    tuning.set(super::tuning::Knob::ParallelFrom, None, low).unwrap();
    for (shape, axes) in [
        (&[700, 500][..], &[1, 0][..]),
        (&[500, 300, 3], &[2, 0, 1]),
        (&[3, 500, 300], &[1, 2, 0]),
        (&[7, 300, 200], &[0, 2, 1]),
        (&[1 << 20], &[0]),
    ] {
        for threads in [1, 2, 3, 5, 16] {
            for streaming in [false, true] {
                let case = Case::permuted(shape, axes, 4, (FRONT, Place::Front(4)));
                let options = CopyOptions::default().threads(threads).tuning(tuning).streaming(streaming);
                assert_eq!(bench.check(&case, &options).unwrap(), None, "{threads} threads");
            }
        }
    }
}

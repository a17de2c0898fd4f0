//! Faults that were reported of other libraries, each as a case of its own kind (`tests/data/reports.jsonl`).
//!
//! Reports on files are tested in `npy_*.rs`, on machines, counters and pinning beside `src/machine`, on
//! statistics and pages beside `src/bench` and `src/report`, on speed in the benches.

use restride::layout::{CopyPolicy, Index};
use restride::{
    BytesView, BytesViewMut, CopyOptions, Error, Layout, Tensor, View, ViewMut, copy, copy_bytes,
    share_memory,
};

fn row_major(shape: &[usize]) -> Layout {
    Layout::row_major(shape).unwrap()
}

fn arange<T: TryFrom<usize> + Copy>(len: usize) -> Vec<T> {
    (0..len).map(|k| T::try_from(k).ok().unwrap()).collect()
}

fn view<'a, T: restride::Element>(data: &'a [T], shape: &[usize]) -> View<'a, T> {
    View::new(data, row_major(shape)).unwrap()
}

fn values<T: restride::Element>(view: &View<'_, T>) -> Vec<T> {
    let tensor = view.materialize().unwrap();
    assert_eq!(tensor.shape(), view.shape());
    tensor.as_slice().to_vec()
}

fn kind<T>(result: Result<T, Error>) -> &'static str {
    result.err().expect("this must be refused").kind()
}

#[test]
fn huge_strides_are_refused_before_they_can_wrap() {
    // numpy/numpy#32219
    let data = [0i8; 1024];
    let x = view(&data, &[1024]);
    assert!(["bounds", "overflow"].contains(&kind(x.as_strided(&[5], &[1 << 62], 0))));
    assert!(["bounds", "overflow"].contains(&kind(x.as_strided(&[4, 4], &[1 << 62, 1], 0))));
    // Metadata alone: the largest stride that fits, sliced so that it would wrap.
    let layout = Layout::new(&[2], &[1 << 62], 0).unwrap();
    let stepped = layout.slice(&[Index::Slice { start: None, stop: None, step: 3 }]).unwrap();
    assert_eq!((stepped.shape(), stepped.view_at(0).unwrap()), (&[1][..], Some(0)));
}

#[test]
fn offsets_times_item_size_cannot_pass_the_check() {
    // pytorch/pytorch#PR147398
    let data = arange::<i64>(10);
    for offset in [8170450533120000000, isize::MAX - 9999] {
        let refused = view(&data, &[10]).as_strided(&[5], &[2], offset);
        assert!(["bounds", "overflow"].contains(&kind(refused)));
    }
}

#[test]
fn products_of_extents_do_not_wrap_to_the_right_answer() {
    // rust-ndarray/ndarray#PR64
    let data = [0f32; 5];
    let shape = [3, 7, 29, 36760123, 823996703];
    let signed = shape.map(|extent| extent as isize);
    assert_eq!(kind(view(&data, &[5]).reshape(&signed)), "overflow");
    assert_eq!(kind(Layout::row_major(&shape)), "overflow");
    assert_eq!(kind(Layout::new(&shape, &[0; 5], 0)), "overflow");
}

#[test]
fn one_extent_of_zero_beside_a_huge_one() {
    // numpy/numpy#7813
    let nothing: [f64; 0] = [];
    let x = View::new(&nothing, row_major(&[0, 1 << 59])).unwrap();
    let turned = x.t().unwrap();
    assert_eq!(turned.shape(), [1 << 59, 0]);
    assert_eq!(values(&x.reshape(&[1 << 59, 0]).unwrap()).len(), 0);
    assert_eq!(kind(View::new(&nothing, row_major(&[0, 1 << 60]))), "overflow");
    assert_eq!(kind(View::new(&nothing, row_major(&[0, 1 << 62]))), "overflow");
}

#[test]
fn broadcast_destinations_are_refused_and_readable() {
    // pytorch/pytorch#15358
    let mut data = arange::<i64>(4);
    let layout = row_major(&[4]).broadcast_to(&[5, 4]).unwrap();
    match ViewMut::new(&mut data, layout.clone()).unwrap_err() {
        Error::Overlap { axis: Some(0), .. } => {}
        other => panic!("{other}"),
    }
    let one = row_major(&[1]).broadcast_to(&[4, 5]).unwrap();
    assert_eq!(kind(ViewMut::new(&mut data, one)), "overlap");
    let base = View::new(&data, layout).unwrap();
    let mut sum = base.materialize().unwrap();
    sum.as_mut_slice().iter_mut().zip(0..).for_each(|(x, k)| *x += k);
    assert_eq!(sum[..8], [0, 2, 4, 6, 4, 6, 8, 10]);
    assert_eq!(sum[16..], [16, 18, 20, 22]);
}

#[test]
fn unit_axes_of_stride_zero_are_written() {
    // pytorch/pytorch#33812
    let mut data = vec![-1f64; 128 * 128 * 3];
    let layout = row_major(&[128, 128, 3]).apply(".permute(2, 0, 1)[None]").unwrap();
    let source: Vec<f64> = (0..49152).map(f64::from).collect();
    copy(&view(&source, &[1, 3, 128, 128]), &mut ViewMut::new(&mut data, layout).unwrap()).unwrap();
    let mut sorted = data.clone();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(sorted, source);
    assert_eq!((data[0], data[1], data[3]), (0.0, 16384.0, 1.0));
}

#[test]
fn sharing_memory_is_decided_with_signs_and_exactly() {
    // cupy/cupy#6221
    let a = row_major(&[3, 3]).apply("[:2, 1::-1]").unwrap();
    let b = row_major(&[3, 3]).apply("[1:, 1:]").unwrap();
    assert_eq!((a.strides(), a.offset()), (&[3, -1][..], 1));
    assert!(share_memory(&a, &b));
    assert_eq!(a.reachable_range(), Some((0, 4)));
    let even = row_major(&[20]).apply("[::2]").unwrap();
    let odd = row_major(&[20]).apply("[1::2]").unwrap();
    assert!(!share_memory(&even, &odd));
}

#[test]
fn as_strided_checks_both_ends() {
    // numpy/numpy#PR8315, pytorch/pytorch#39224
    let data = arange::<i64>(16);
    let x = view(&data, &[16]);
    assert_eq!(values(&x.as_strided(&[4], &[-1], 3).unwrap()), [3, 2, 1, 0]);
    assert_eq!(kind(x.as_strided(&[4], &[-1], 2)), "bounds");
    assert_eq!(kind(x.as_strided(&[4], &[-42], 8)), "bounds");
    assert_eq!(values(&x.as_strided(&[0], &[-42], 0).unwrap()).len(), 0);
}

#[test]
fn broadcasting_with_an_extent_of_zero() {
    // numpy/numpy#19425
    let layout = row_major(&[1, 0]);
    assert_eq!(kind(layout.broadcast_to(&[2, 1])), "broadcast");
    assert_eq!(layout.broadcast_to(&[2, 0]).unwrap().numel(), 0);
    assert_eq!(row_major(&[2, 1]).broadcast_to(&[2, 0]).unwrap().shape(), [2, 0]);
    assert_eq!(row_major(&[2, 2, 1]).broadcast_to(&[2, 2, 0]).unwrap().shape(), [2, 2, 0]);
    assert_eq!(row_major(&[0]).broadcast_to(&[2, 2, 0]).unwrap().shape(), [2, 2, 0]);
    assert_eq!(kind(row_major(&[0]).broadcast_to(&[2, 1, 2])), "broadcast");
}

#[test]
fn axes_of_an_empty_view_never_leave_the_buffer() {
    // rust-ndarray/ndarray#PR543
    let data = [7i32];
    let x = View::new(&data, Layout::new(&[0, 3], &[3, 1], 0).unwrap()).unwrap();
    for expr in ["[:, 2]", "[..., 2]", "[:, 1:]", ".T[2]"] {
        let column = x.apply(expr).unwrap();
        assert_eq!((column.layout().offset(), values(&column).len()), (0, 0), "{expr}");
    }
}

#[test]
fn unit_axes_may_carry_any_stride() {
    // numpy/numpy#12172
    let data: Vec<f64> = (0..9).map(f64::from).collect();
    let layout = Layout::new(&[3, 1, 3], &[3, isize::MAX, 1], 0).unwrap();
    assert!(layout.is_contiguous() && layout.strides()[1] == 0);
    assert_eq!(values(&View::new(&data, layout).unwrap()), data);
    assert!(Layout::new(&[1; 4], &[isize::MAX; 4], 0).unwrap().is_contiguous());
    let sliced = row_major(&[9]).apply("[::3][0:1]").unwrap();
    assert!(sliced.is_contiguous());
}

#[test]
fn negative_steps_follow_python() {
    // rust-ndarray/ndarray#312
    let data = arange::<i64>(10);
    for (expr, expected) in [
        ("[2:5:-1]", vec![]),
        ("[5:2:-1]", vec![5, 4, 3]),
        ("[:7:-1]", vec![9, 8]),
        ("[7::-1]", vec![7, 6, 5, 4, 3, 2, 1, 0]),
        ("[::-4]", vec![9, 5, 1]),
        ("[-1:-11:-1]", vec![9, 8, 7, 6, 5, 4, 3, 2, 1, 0]),
        ("[20:3:-2]", vec![9, 7, 5]),
        ("[8:-20:-3]", vec![8, 5, 2]),
        ("[0:0:-1]", vec![]),
    ] {
        assert_eq!(values(&view(&data, &[10]).apply(expr).unwrap()), expected, "{expr}");
    }
}

#[test]
fn reversed_arrays_are_views() {
    // PyO3/rust-numpy#151
    let data = [1f32, 2.0];
    let x = View::new(&data, Layout::new(&[2], &[-1], 1).unwrap()).unwrap();
    assert_eq!(values(&x), [2.0, 1.0]);
}

#[test]
fn reshape_follows_logical_order() {
    // rust-ndarray/ndarray#643
    let data: Vec<f64> = (0..8).map(f64::from).collect();
    let x = View::new(&data, Layout::new(&[2, 2, 2], &[1, 2, 4], 0).unwrap()).unwrap();
    assert_eq!(kind(x.reshape(&[8])), "needs_copy");
    let flat = x.reshape_or_copy(&[8]).unwrap();
    assert!(flat.copied());
    assert_eq!(values(&flat.view()), [0.0, 4.0, 2.0, 6.0, 1.0, 5.0, 3.0, 7.0]);
}

#[test]
fn a_refused_view_names_its_axes() {
    // pytorch/pytorch#136327
    let x = row_major(&[23, 20, 34, 15]).apply("[:, :17, :32]").unwrap();
    assert_eq!(x.strides(), [10200, 510, 15, 1]);
    match x.reshape(&[32, 15, 23, 17]).unwrap_err() {
        Error::NeedsCopy { axes, reason } => assert!(!axes.is_empty() && reason.contains("axes"), "{reason}"),
        other => panic!("{other}"),
    }
    assert_eq!(x.reshape(&[23, 17, 480]).unwrap().strides(), [10200, 510, 1]);
}

#[test]
fn a_full_slice_is_the_identity() {
    // tracel-ai/burn#3629
    let data: Vec<f32> = (0..192u8).map(f32::from).collect();
    let x = view(&data, &[1, 3, 8, 8]);
    let permuted = x.apply(".reshape(1, 3, 2, 4, 2, 4).permute(0, 1, 2, 4, 3, 5)").unwrap();
    let sliced = permuted.apply("[0:1, 0:3, 0:2, 0:2, 0:4, 0:4]").unwrap();
    assert_eq!(permuted.layout(), sliced.layout());
    assert_eq!(values(&permuted), values(&sliced));
    assert_eq!(values(&sliced)[4..9], [8.0, 9.0, 10.0, 11.0, 16.0]);
}

#[test]
fn free_reshapes_keep_the_pointer() {
    // tracel-ai/burn#PR5067
    let x = Tensor::from_fn(&[1024, 1024], |k| k as f32).unwrap();
    for expr in [".reshape(1048576)", "[:, None]", "[None].squeeze()", ".reshape(1048576, 1).T"] {
        let free = x.apply(expr).unwrap();
        let contiguous = free.to_contiguous().unwrap();
        assert_eq!(contiguous.as_ptr(), x.as_slice().as_ptr(), "{expr}");
    }
    let kept = x.view().reshape_with(&[1 << 20], CopyPolicy::IfNeeded, &CopyOptions::default()).unwrap();
    assert!(!kept.copied());
    let forced = x.view().reshape_with(&[1 << 20], CopyPolicy::Always, &CopyOptions::default()).unwrap();
    assert!(forced.copied());
}

#[test]
fn masks_survive_splitting_and_merging() {
    // tinygrad/tinygrad#2844
    let data = arange::<i64>(50);
    let padded = view(&data, &[2, 5, 5]).apply(".pad((2, 0), (0, 0), (0, 0))").unwrap();
    let merged = padded.apply(".reshape(2, 2, 5, 5).reshape(4, 5, 5)").unwrap();
    assert_eq!(values(&merged), values(&padded));
    assert_eq!(merged.apply("[2:4]").unwrap().layout(), &row_major(&[2, 5, 5]));
    let data = arange::<i64>(40);
    let x = view(&data, &[4, 2, 5]).apply(".pad((0, 0), (2, 2), (0, 0)).reshape(4, 6, 5, 1)").unwrap();
    let x = x.apply(".pad((1, 2), (0, 0), (0, 0), (0, 0))").unwrap();
    let first = values(&x);
    let chain =
        ".reshape(7, 3, 2, 5, 1).reshape(7, 6, 5, 1).reshape(7, 6, 1, 5, 1).reshape(7, 1, 6, 1, 5, 1)";
    assert_eq!(values(&x.apply(chain).unwrap()), first);
}

#[test]
fn padded_elements_can_be_read_one_by_one() {
    // tinygrad/tinygrad#2177
    let data = [5f32, 6.0];
    assert_eq!(view(&data, &[2]).pad(&[(1, 0)], 0.0).unwrap().get(&[0]).unwrap(), 0.0);
    let data = arange::<i64>(6);
    let x = view(&data, &[2, 3]).pad(&[(1, 1), (0, 2)], 0).unwrap();
    for i in 0..4 {
        for j in 0..5 {
            let inside = (1..3).contains(&i) && j < 3;
            let expected = if inside { ((i - 1) * 3 + j) as i64 } else { 0 };
            assert_eq!(x.get(&[i, j]).unwrap(), expected);
        }
    }
}

#[test]
fn a_view_of_nothing_but_padding() {
    // tinygrad/tinygrad#PR2529
    let data = [1f32, 2.0];
    let x = view(&data, &[2]).apply(".pad((3, 0))[0:2]").unwrap();
    assert!(x.layout().mask().unwrap().is_nothing());
    assert_eq!(x.layout().reachable_range(), None);
    assert_eq!(values(&x), [0.0, 0.0]);
    assert_eq!(values(&x.apply(".reshape(2, 1).pad((1, 0), (0, 1))").unwrap()), [0.0; 6]);
    assert_eq!(values(&x.apply("[0:0]").unwrap()).len(), 0);
}

#[test]
fn padded_axes_that_can_merge_do() {
    // tinygrad/tinygrad#PR2218
    let x = row_major(&[1, 3, 1, 5, 3, 1]);
    let x = x.pad(&[(0, 0), (2, 2), (0, 0), (0, 0), (0, 0), (0, 0)]).unwrap();
    let merged = x.reshape(&[1, 1, 1, 105, 1, 1]).unwrap();
    let reads: Vec<_> = [29, 30, 74, 75].map(|k| merged.view_at(k).unwrap()).to_vec();
    assert_eq!(reads, [None, Some(0), Some(44), None]);
    assert_eq!((merged.strides()[3], merged.offset()), (1, -30));
}

#[test]
fn pads_never_crop() {
    // pytorch/pytorch#194558
    for expr in [".pad((0, 0), (0, -3))", ".pad((0, 0), (-1, 2))", ".pad((-1, 2), (-3, 4))"] {
        assert_eq!(kind(row_major(&[2, 3]).apply(expr)), "pad");
    }
}

#[test]
fn destinations_keep_what_is_between() {
    // ggml-org/ggml#1497
    let source = [1f32, 2.0, 3.0, 4.0];
    let mut slots = [-1f32; 32];
    let column = row_major(&[4, 8]).apply("[:, 2:3]").unwrap();
    let src = view(&source, &[1, 4]).t().unwrap();
    copy(&src, &mut ViewMut::new(&mut slots, column).unwrap()).unwrap();
    for (index, value) in slots.iter().enumerate() {
        let expected = if index % 8 == 2 { source[index / 8] } else { -1.0 };
        assert_eq!(*value, expected, "{index}");
    }
}

#[test]
fn unaligned_fields_of_records_are_moved_as_bytes() {
    // numpy/numpy#16660: a stride that is no multiple of the element is a column of a byte matrix.
    let mut records = Vec::new();
    for k in 0..6 {
        records.push(b'!');
        records.extend(f64::from(k).to_le_bytes());
    }
    let field = row_major(&[6, 9]).apply("[:, 1:]").unwrap();
    let view = BytesView::new(&records, field, 1).unwrap();
    let mut out = [0u8; 48];
    copy_bytes(
        &view,
        &mut BytesViewMut::new(&mut out, row_major(&[6, 8]), 1).unwrap(),
        &CopyOptions::default(),
    )
    .unwrap();
    let numbers: Vec<f64> =
        out.chunks(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(numbers, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn many_axes_of_two() {
    // tensorflow/tensorflow#27383
    let data = arange::<i64>(1 << 12);
    let x = view(&data, &[2; 12]);
    let reversed = values(&x.t().unwrap());
    for (k, &value) in reversed.iter().enumerate() {
        assert_eq!(value as usize, k.reverse_bits() >> (usize::BITS - 12));
    }
    let one = [1u8];
    let wide = View::new(&one, row_major(&[1; 64])).unwrap();
    assert_eq!(values(&wide.t().unwrap()), [1]);
    assert_eq!(kind(wide.unsqueeze(0)), "rank");
}

#[test]
fn windows_have_a_fixed_policy() {
    // numpy/numpy#PR25942: a window is at least 1 and at most the extent; steps are allowed.
    let x = row_major(&[5]);
    assert_eq!(x.unfold(0, 5, 1).unwrap().shape(), [1, 5]);
    assert_eq!(kind(x.unfold(0, 6, 1)), "window");
    assert_eq!(kind(x.unfold(0, 7, 1)), "window");
    assert_eq!(kind(row_major(&[1]).unfold(0, 2, 1)), "window");
    assert_eq!(x.unfold(0, 2, 2).unwrap().shape(), [2, 2]);
    let twice = row_major(&[6]).apply(".unfold(0, 4, 1).unfold(-1, 2, 1)").unwrap();
    assert_eq!(twice.shape(), [3, 3, 2]);
}

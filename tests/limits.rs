//! The edges: 64 axes, strides and offsets near the ends of `isize`, more than 2^31 elements.

use restride::{BytesView, CopyOptions, Error, Layout, Plan, Tensor, View, ViewMut, share_memory};

const MAX: isize = isize::MAX;
const MIN: isize = isize::MIN;

#[test]
fn sixty_four_axes_and_no_more() {
    let mut shape = vec![1; 64];
    for axis in [0, 7, 31, 63] {
        shape[axis] = 3;
    }
    let x = Tensor::from_fn(&shape, |k| k as u16).unwrap();
    let y = x.apply(".T").unwrap();
    let expected: Vec<u16> = y.iter().collect();
    assert_eq!(y.materialize().unwrap().as_slice(), expected);
    assert_eq!(y.layout().unsqueeze(0).unwrap_err().kind(), "rank");
    assert_eq!(y.layout().unfold(0, 1, 1).unwrap_err().kind(), "rank");
    let error = Layout::row_major(&[1; 65]).unwrap_err();
    assert_eq!((error.kind(), &*error.to_string()), ("rank", "axes: got 65, expected at most 64"));
    assert_eq!(x.view().reshape(&[1; 65]).unwrap_err().kind(), "rank");
    // Sixteen axes of 2 with all orders of strides, 48 of extent 1 between them.
    let mut shape = vec![1usize; 64];
    (0..16).for_each(|k| shape[4 * k + 1] = 2);
    let x = Tensor::from_fn(&shape, |k| k as u16).unwrap();
    let order: Vec<isize> = (0..64).map(|axis| axis * 29 % 64).collect();
    let y = x.view().permute(&order).unwrap().flip(&[1, 3, 5]).unwrap();
    assert!(y.materialize().unwrap().as_slice().iter().copied().eq(y.iter()));
    assert!(!y.layout().self_overlaps());
}

#[test]
fn a_small_stack_is_enough_for_64_axes() {
    let run = || {
        let shape: Vec<usize> = [1; 48].into_iter().chain([2; 16]).collect();
        let x = Tensor::from_fn(&shape, |k| k as u32).unwrap();
        let y = x.apply(".T").unwrap();
        y.materialize().unwrap().as_slice().iter().copied().eq(y.iter())
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap();
    assert!(thread.join().unwrap());
}

#[test]
fn strides_and_offsets_near_the_ends() {
    // Legal as layouts, refused as views of any slice that exists.
    let far = Layout::new(&[2], &[MAX], 0).unwrap();
    assert_eq!(far.reachable_range(), Some((0, MAX as usize)));
    assert_eq!(View::new(&[0u8; 4], far.clone()).unwrap_err().kind(), "bounds");
    let back = Layout::new(&[2], &[-MAX], MAX).unwrap();
    assert_eq!(back.reachable_range(), Some((0, MAX as usize)));
    assert!(share_memory(&far, &back));
    assert!(!share_memory(&far, &Layout::new(&[2], &[MAX - 2], 1).unwrap()));
    assert!(!back.self_overlaps());
    assert!(Layout::new(&[2, 2], &[MAX / 2, MAX / 2], 0).unwrap().self_overlaps());
    assert!(!Layout::new(&[2, 2], &[MAX / 2, MAX / 2 - 1], 0).unwrap().self_overlaps());

    // Sums that leave the range are refused, whatever their order.
    for (shape, strides, offset) in [
        (&[2usize][..], &[MAX][..], 1),
        (&[3], &[MAX], 0),
        (&[2, 2], &[MAX, 1], 0),
        (&[2, 2], &[MAX, MAX], 0),
        (&[MAX as usize], &[2], 0),
        (&[2], &[1], MAX),
    ] {
        assert_eq!(
            Layout::new(shape, strides, offset).unwrap_err().kind(),
            "overflow",
            "{shape:?} {strides:?}"
        );
    }
    for (shape, strides, offset) in [
        (&[2usize][..], &[MIN][..], 0),
        (&[2], &[MIN], MAX),
        (&[2, 2], &[MIN, MAX], 0),
        (&[3], &[-MAX], MAX),
        (&[1], &[0], -1),
        (&[1], &[5], MIN),
    ] {
        assert_eq!(
            Layout::new(shape, strides, offset).unwrap_err().kind(),
            "bounds",
            "{shape:?} {strides:?}"
        );
    }
}

#[test]
fn every_operation_takes_the_largest_numbers() {
    let x = Layout::row_major(&[3, 4]).unwrap();
    let kind = |result: Result<Layout, Error>| result.err().map_or("ok", |error| error.kind());
    for big in [MAX, MAX - 1, MIN, MIN + 1] {
        assert_eq!(kind(x.permute(&[big, 0])), "axis");
        assert_eq!(kind(x.transpose(0, big)), "axis");
        assert_eq!(kind(x.flip(&[big])), "axis");
        assert_eq!(kind(x.unsqueeze(big)), "axis");
        assert_eq!(kind(x.squeeze(Some(&[big]))), "axis");
        assert_eq!(kind(x.diagonal(big, 0, 1)), "ok");
        assert_eq!(kind(x.unfold(0, big, 1)), "window");
        assert_eq!(kind(x.unfold(0, 1, big)), if big > 0 { "ok" } else { "window" });
        assert_eq!(kind(x.as_strided(&[2], &[big], 0, 12)), "bounds");
        assert_eq!(kind(x.as_strided(&[1], &[big], 0, 12)), "ok");
        assert_eq!(kind(x.as_strided(&[], &[], big, 12)), "bounds");
        assert_eq!(kind(x.apply(&format!("[{big}:, :{big}, None]"))), "ok");
        assert_eq!(kind(x.apply(&format!("[::{big}]"))), "ok");
        assert_eq!(kind(x.apply(&format!("[{big}]"))), "index");
    }
    let most = MAX as usize;
    assert_eq!(kind(x.pad(&[(most, 0), (0, 0)])), "overflow");
    assert_eq!(kind(x.pad(&[(0, 0), (usize::MAX, usize::MAX)])), "overflow");
    assert_eq!(kind(x.pad(&[(1 << 31, 0), (1 << 30, 0)])), "ok");
    assert_eq!(kind(x.broadcast_to(&[most, 3, 4])), "overflow");
    assert_eq!(kind(x.broadcast_to(&[most / 12, 3, 4])), "ok");
    assert_eq!(kind(x.reshape(&[MAX, 2])), "overflow");
    assert_eq!(kind(x.shrink(&[(0, most), (0, 1)])), "shrink");
}

#[test]
fn strides_of_empty_views_have_no_say_in_what_is_padded_around_them() {
    let empty = Layout::row_major(&[1, 6]).unwrap().apply("[1:, ::-9223372036854775808][:, 1:]").unwrap();
    assert_eq!(empty.shape(), [0, 0]);
    for strides in [[6, MIN], [MIN, MIN], [MAX, MIN], [1, 1]] {
        let empty = Layout::new(&[0, 0], &strides, 0).unwrap();
        for expr in
            [".pad((1, 1), (2, 1))", ".T.pad((3, 0), (0, 5))", ".pad((2, 2), (2, 2))[::-1, 1:].unfold(0, 2)"]
        {
            let padded = empty.apply(expr).unwrap();
            assert_eq!(padded.reachable_range(), None, "{strides:?} {expr}");
            assert!(padded.numel() > 0 && (0..padded.numel()).all(|k| padded.view_at(k).unwrap().is_none()));
        }
    }
}

#[test]
fn what_cannot_be_materialized_is_refused_before_anything_happens() {
    let one = [7u32];
    let view = View::new(&one, Layout::row_major(&[1]).unwrap()).unwrap();
    let endless = view.broadcast_to(&[1 << 62]).unwrap();
    assert_eq!(endless.materialize().unwrap_err().kind(), "overflow");
    assert_eq!(view.broadcast_to(&[1 << 58]).unwrap().materialize().unwrap_err().kind(), "alloc");
    assert_eq!(endless.materialize_into(&mut [0; 3]).unwrap_err().kind(), "length_mismatch");
    let dst = Layout::row_major(&[1 << 62]).unwrap();
    assert_eq!(Plan::new(endless.layout(), &dst, 4, &CopyOptions::default()).unwrap_err().kind(), "overflow");
    let bytes = [0u8; 8];
    let layout = Layout::row_major(&[2]).unwrap();
    assert_eq!(BytesView::new(&bytes, layout.clone(), usize::MAX).unwrap_err().kind(), "bounds");
    assert_eq!(BytesView::new(&bytes, layout, 0).unwrap_err().kind(), "length_mismatch");
}

/// More than 2^32 elements behind a view; only the pages that are touched need memory.
#[test]
fn elements_beyond_two_to_the_32_are_read_and_written_where_they_are() {
    let (rows, pitch) = (65, (1usize << 26) + 1);
    assert!(rows * pitch > 1 << 32);
    let mut data = vec![0u8; rows * pitch];
    let value = |row: usize, column: usize| (row * 7 + column * 3 + 1) as u8;
    let columns = 40;
    for row in 0..rows {
        for column in 0..columns {
            data[row * pitch + column * 5] = value(row, column);
        }
    }
    // 65 by 40 elements, spread over all of it; backwards, from its far end.
    let layout = Layout::row_major(&[rows, pitch]).unwrap().apply("[::-1, :200:5]").unwrap();
    let expected: Vec<u8> =
        (0..rows).flat_map(|i| (0..columns).map(move |j| value(rows - 1 - i, j))).collect();
    for isa in restride::Isa::available() {
        for streaming in [false, true] {
            let options = CopyOptions::default().isa(isa).streaming(streaming);
            let view = View::new(&data, layout.clone()).unwrap();
            assert_eq!(view.materialize_with(&options).unwrap().as_slice(), expected, "{isa} {streaming}");
            let turned = view.t().unwrap().materialize_with(&options).unwrap();
            assert!((0..rows * columns).all(|k| turned[k % columns * rows + k / columns] == expected[k]));
        }
    }
    // And the other way: from dense memory to those places, which nothing else is written beside.
    let from: Vec<u8> = expected.iter().map(|x| x ^ 0x80).collect();
    let src = View::new(&from, Layout::row_major(&[rows, columns]).unwrap()).unwrap();
    restride::copy(&src, &mut ViewMut::new(&mut data, layout).unwrap()).unwrap();
    for row in 0..rows {
        let written = &data[row * pitch..][..5 * columns];
        for (k, &got) in written.iter().enumerate() {
            let wanted = if k % 5 == 0 { value(row, k / 5) ^ 0x80 } else { 0 };
            assert_eq!(got, wanted, "row {row}, byte {k}");
        }
    }
}

/// 2.2 GiB twice: asked for by `RESTRIDE_LARGE=1`, said loudly otherwise.
#[test]
fn more_than_two_to_the_31_elements() {
    if std::env::var_os("RESTRIDE_LARGE").is_none() {
        eprintln!("NOT RUN: 2^31 elements and more need 5 GiB of memory; RESTRIDE_LARGE=1 runs them");
        // The arithmetic of such a copy is checked without its memory: rows of a broadcast view.
        let row: Vec<u8> = (0..=255).collect();
        let layout = Layout::row_major(&[256]).unwrap().broadcast_to(&[1 << 24, 256]).unwrap();
        assert_eq!(layout.numel(), 1 << 32);
        let view = View::new(&row, layout).unwrap();
        let last = view.apply("[-1:, ::-1]").unwrap().materialize().unwrap();
        assert!(last.as_slice().iter().rev().eq(&row));
        return;
    }
    // (2^16 + 1) x (2^15 + 1) bytes, transposed there: each element is a hash of its position.
    let (rows, columns) = ((1usize << 16) + 1, (1usize << 15) + 1);
    assert!(rows * columns > 1 << 31);
    let value = |i: usize, j: usize| (i.wrapping_mul(31) ^ j.wrapping_mul(17) ^ (i >> 8)) as u8;
    let x = Tensor::from_fn(&[rows, columns], |k| value(k / columns, k % columns)).unwrap();
    let mut out = vec![0u8; rows * columns];
    let mut dst = ViewMut::new(&mut out, Layout::row_major(&[columns, rows]).unwrap()).unwrap();
    restride::copy(&x.view().t().unwrap(), &mut dst).unwrap();
    for (j, row) in out.chunks_exact(rows).enumerate() {
        assert!(row.iter().enumerate().all(|(i, &got)| got == value(i, j)), "column {j}");
    }
}

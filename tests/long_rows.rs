//! Destination rows that are cut into tiles of which the last is shorter, down to a part of a line: staging
//! memory holds all of a tile's rows whatever their length.

use restride::{BytesView, BytesViewMut, CopyOptions, Isa, Layout, copy_bytes};

/// Makes the view contiguous at every level, past the caches, and compares it with plain index arithmetic.
fn check(shape: &[usize], expression: &str, size: usize) {
    let base = Layout::row_major(shape).unwrap();
    let view = base.apply(expression).unwrap();
    let data: Vec<u8> = (0..base.numel() * size).map(|i| (i * 31 + i / 251) as u8).collect();
    let dst = Layout::row_major(view.shape()).unwrap();
    let bytes = dst.numel() * size;
    let expected: Vec<u8> = (0..view.numel())
        .flat_map(|k| {
            let index = view.view_at(k).unwrap().unwrap();
            data[index * size..][..size].iter().copied()
        })
        .collect();
    for isa in Isa::available() {
        let mut out = vec![0xA5; bytes + size];
        let src = BytesView::new(&data, view.clone(), size).unwrap();
        let mut to = BytesViewMut::new(&mut out[size..], dst.clone(), size).unwrap();
        let options = CopyOptions::default().isa(isa).streaming(true).threads(1);
        copy_bytes(&src, &mut to, &options).unwrap();
        assert!(out[size..] == expected, "{shape:?} {expression} of {size} bytes, {isa}");
        assert!(out[..size].iter().all(|&byte| byte == 0xA5));
    }
}

#[test]
fn rows_of_two_axes_end_in_a_short_tile() {
    for size in [1, 2, 4] {
        check(&[500, 3, 1100], ".T", size);
    }
}

#[test]
fn rows_of_one_axis_end_in_a_short_tile() {
    for size in [1, 2, 8] {
        check(&[1025, 1100], ".T", size);
    }
    check(&[1100, 1040], ".T", 3);
}

#[test]
fn rows_end_in_a_part_of_a_line() {
    check(&[16385, 600], ".T", 1);
}

//! Views to and from `ndarray`.
#![cfg(feature = "ndarray")]

use ndarray::{Array3, s};
use restride::interop::standard_layout;
use restride::{View, ViewMut, copy};

fn cube() -> Array3<u32> {
    Array3::from_shape_fn((4, 5, 6), |(i, j, k)| (i * 30 + j * 6 + k) as u32)
}

#[test]
fn every_array_view_gets_its_standard_order() {
    let cube = cube();
    let column = cube.slice(s![.., 0..1, 0..1]);
    let views = [
        cube.view().into_dyn(),
        cube.view().permuted_axes([2, 0, 1]).into_dyn(),
        cube.view().reversed_axes().into_dyn(),
        cube.slice(s![..;-1, .., ..;-1]).into_dyn(),
        cube.slice(s![.., ..;2, 1..]).into_dyn(),
        cube.slice(s![1..1, .., ..]).reversed_axes().into_dyn(),
        cube.slice(s![0, .., ..]).into_dyn(),
        cube.slice(s![0..1, .., ..]).permuted_axes([2, 1, 0]).into_dyn(),
    ];
    for view in &views {
        assert_eq!(standard_layout(view).unwrap(), view.as_standard_layout());
    }
    let repeated = cube.broadcast((3, 4, 5, 6)).unwrap();
    assert_eq!(standard_layout(&repeated).unwrap(), repeated);
    assert_eq!(standard_layout(&column).unwrap(), column);
}

#[test]
fn views_go_there_and_back() {
    let cube = cube();
    let view = View::try_from(cube.view()).unwrap();
    for expr in ["", ".T", "[::-1, 1:, ::-2]", "[0, 2]", "[1:1]", "[0, 0, 0]", "[:, 0:1].expand(4, 7, 6)"] {
        let ours = view.apply(expr).unwrap();
        let theirs = ours.to_ndarray().unwrap();
        assert_eq!(theirs.shape(), ours.shape());
        assert!(theirs.iter().copied().eq(ours.iter()), "{expr}");
    }
    assert_eq!(
        view.apply(".pad((1, 0), (0, 0), (0, 0))").unwrap().to_ndarray().unwrap_err().kind(),
        "needs_copy"
    );
    let gaps = View::try_from(cube.slice(s![.., ..;2, ..])).unwrap_err();
    assert_eq!(gaps.kind(), "needs_copy");
}

#[test]
fn writing_goes_to_the_same_memory() {
    let mut cube = cube();
    let expected = cube.view().reversed_axes().as_standard_layout().into_owned();
    let mut out = Array3::<u32>::zeros((6, 5, 4));
    {
        let mut dst = ViewMut::try_from(out.view_mut()).unwrap();
        copy(&View::try_from(cube.view().reversed_axes()).unwrap(), &mut dst).unwrap();
    }
    assert_eq!(out, expected);
    let mut view = ViewMut::try_from(cube.view_mut().reversed_axes()).unwrap();
    view.as_ndarray_mut().unwrap()[[5, 0, 1]] = 7;
    assert_eq!(cube[[1, 0, 5]], 7);
}

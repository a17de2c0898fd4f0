//! Elements of other crates: half floats and complex numbers.

#[cfg(feature = "half")]
#[test]
fn half_floats_are_moved_and_made() {
    use half::{bf16, f16};
    use restride::{Layout, Tensor, View, ViewMut, map_copy};
    let x = Tensor::from_fn(&[33, 65], |k| f16::from_f32(k as f32 / 8.0)).unwrap();
    let y = x.apply(".T[::-1]").unwrap();
    assert!(y.materialize().unwrap().as_slice().iter().copied().eq(y.iter()));
    let padded = y.pad(&[(1, 0), (0, 2)], f16::NEG_INFINITY).unwrap();
    let made = padded.materialize().unwrap();
    assert_eq!(made.as_slice()[0], f16::NEG_INFINITY);
    // f32 to f16 and bf16 inside the copy.
    let floats: Vec<f32> = (0..33 * 65).map(|k| k as f32 / 3.0).collect();
    let src = View::new(&floats, Layout::row_major(&[33, 65]).unwrap()).unwrap().t().unwrap();
    let mut halves = vec![f16::ZERO; floats.len()];
    let mut brains = vec![bf16::ZERO; floats.len()];
    let dst = Layout::row_major(&[65, 33]).unwrap();
    map_copy(&src, &mut ViewMut::new(&mut halves, dst.clone()).unwrap(), f16::from_f32).unwrap();
    map_copy(&src, &mut ViewMut::new(&mut brains, dst).unwrap(), bf16::from_f32).unwrap();
    assert!(halves.iter().copied().eq(src.iter().map(f16::from_f32)));
    assert!(brains.iter().copied().eq(src.iter().map(bf16::from_f32)));
}

#[cfg(feature = "num-complex")]
#[test]
fn complex_numbers_are_moved_and_conjugated() {
    use num_complex::Complex;
    use restride::{Tensor, map_copy};
    let x = Tensor::from_fn(&[40, 50], |k| Complex::new(k as f64, -(k as f64))).unwrap();
    let y = x.apply(".T").unwrap();
    assert!(y.materialize().unwrap().as_slice().iter().copied().eq(y.iter()));
    let small = Tensor::from_fn(&[7, 9], |k| Complex::new(k as f32, 1.0)).unwrap();
    let mut adjoint = Tensor::from_fn(&[9, 7], |_| Complex::new(0f32, 0.0)).unwrap();
    map_copy(&small.apply(".T").unwrap(), &mut adjoint.view_mut(), |z| z.conj()).unwrap();
    assert_eq!(adjoint.view().get(&[8, 6]).unwrap(), Complex::new(62.0, -1.0));
}

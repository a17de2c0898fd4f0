//! Copies that change their elements: in one pass, and as a copy followed by a conversion.

use std::rc::Rc;

use restride::{CopyOptions, Element, Layout, Tensor, View, ViewMut, map_copy_with, update_with};

/// One way of doing it, run again and again over memory that was written before.
pub type Run = Box<dyn FnMut()>;

/// Makes a row when its turn comes.
pub type Make = fn() -> Row;

/// A conversion both ways.
pub struct Row {
    pub fused: Run,
    pub apart: Run,
}

fn written<T: Element>(n: usize) -> Tensor<T> {
    Tensor::from_fn(&[n], |_| bytemuck::Zeroable::zeroed()).expect("memory for the result")
}

fn twice<T>(value: T) -> (Rc<T>, Rc<T>) {
    let value = Rc::new(value);
    (Rc::clone(&value), value)
}

fn one_thread() -> CopyOptions {
    CopyOptions::default().threads(1)
}

fn of<S: Element, D: Element>(
    shape: &[usize],
    expr: &'static str,
    value: impl Fn(usize) -> S,
    f: impl Fn(S) -> D + Sync + Copy + 'static,
) -> Row {
    let from = Tensor::from_fn(shape, value).expect("memory for the source");
    let layout = Layout::row_major(shape).and_then(|l| l.apply(expr)).expect("a legal view");
    let target = Layout::row_major(layout.shape()).expect("a copy of a legal view");
    let n = target.numel();
    let (mut to, mut later) = (written::<D>(n), written::<D>(n));
    let mut between = written::<S>(n);
    let (from, source) = twice(from);
    let view = layout.clone();
    Row {
        fused: Box::new(move || {
            let src = View::new(from.as_slice(), layout.clone()).expect("the buffer fits the view");
            let mut dst = ViewMut::new(to.as_mut_slice(), target.clone()).expect("a contiguous target");
            map_copy_with(&src, &mut dst, f, &one_thread()).expect("a plain copy");
        }),
        apart: Box::new(move || {
            let src = View::new(source.as_slice(), view.clone()).expect("the buffer fits the view");
            src.materialize_into_with(between.as_mut_slice(), &one_thread()).expect("a plain copy");
            for (d, &s) in later.as_mut_slice().iter_mut().zip(between.as_slice()) {
                *d = f(s);
            }
        }),
    }
}

fn updating(shape: &[usize], expr: &'static str) -> Row {
    let from = Tensor::from_fn(shape, |k| k as f32).expect("memory for the source");
    let layout = Layout::row_major(shape).and_then(|l| l.apply(expr)).expect("a legal view");
    let target = Layout::row_major(layout.shape()).expect("a copy of a legal view");
    let n = target.numel();
    let (mut to, mut later, mut between) = (written::<f32>(n), written::<f32>(n), written::<f32>(n));
    let (from, source) = twice(from);
    let view = layout.clone();
    let f = |x: f32, y: f32| 2.0 * x + 0.5 * y;
    Row {
        fused: Box::new(move || {
            let src = View::new(from.as_slice(), layout.clone()).expect("the buffer fits the view");
            let mut dst = ViewMut::new(to.as_mut_slice(), target.clone()).expect("a contiguous target");
            update_with(&src, &mut dst, f, &one_thread()).expect("a plain copy");
        }),
        apart: Box::new(move || {
            let src = View::new(source.as_slice(), view.clone()).expect("the buffer fits the view");
            src.materialize_into_with(between.as_mut_slice(), &one_thread()).expect("a plain copy");
            for (d, &s) in later.as_mut_slice().iter_mut().zip(between.as_slice()) {
                *d = f(s, *d);
            }
        }),
    }
}

/// Every row, each made when its turn comes.
pub fn rows() -> Vec<(&'static str, Make)> {
    fn byte(k: usize) -> u8 {
        k as u8
    }
    vec![
        ("u8 HWC to f32 CHW, 24 Mpx", || of(&[4000, 6000, 3], ".permute(2, 0, 1)", byte, normalised)),
        ("u8 HWC to f32 CHW, 1080p", || of(&[1080, 1920, 3], ".permute(2, 0, 1)", byte, normalised)),
        ("u8 HWC to f32 CHW, 32 of 224", || of(&[32, 224, 224, 3], ".permute(0, 3, 1, 2)", byte, normalised)),
        ("big-endian u32 to native, 4096", || of(&[4096, 4096], "", |k| k as u32, u32::swap_bytes)),
        ("big-endian u32 to native, transposed, 4096", || {
            of(&[4096, 4096], ".T", |k| k as u32, u32::swap_bytes)
        }),
        #[cfg(feature = "half")]
        ("f32 to bf16, transposed, 4096", || of(&[4096, 4096], ".T", |k| k as f32, half::bf16::from_f32)),
        #[cfg(feature = "half")]
        ("f32 to f16, transposed, 4096", || of(&[4096, 4096], ".T", |k| k as f32, half::f16::from_f32)),
        ("2 x + y / 2, 4096", || updating(&[4096, 4096], "")),
        ("2 x + y / 2, transposed, 4096", || updating(&[4096, 4096], ".T")),
    ]
}

fn normalised(x: u8) -> f32 {
    f32::from(x) * (1.0 / 127.5) - 1.0
}

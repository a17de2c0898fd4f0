//! What new memory costs: a copy into memory that was written before, the first touch of as much new memory
//! with huge pages where there are some, and both at once, which is what `materialize()` does.

use restride::machine::pages::advise_huge;
use restride::{CopyOptions, Tensor};

const BYTES: usize = 64 << 20;
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// A name, and what is run under it again and again.
pub type Row = (&'static str, Box<dyn FnMut()>);

/// The three rows, for `expr` of a 4096 x 4096 matrix of f32.
pub fn rows(expr: &'static str) -> Vec<Row> {
    let options = CopyOptions::default().threads(1);
    let source = || Tensor::from_fn(&[4096, 4096], |k| k as f32).expect("memory for the source");
    let (from, again) = (source(), source());
    let mut to = Tensor::from_fn(&[4096, 4096], |_| 0.0f32).expect("memory for the result");
    let into = options.clone();
    vec![
        (
            "copy into touched memory",
            Box::new(move || {
                let view = from.apply(expr).expect("a legal view");
                view.materialize_into_with(to.as_mut_slice(), &into).expect("a plain copy");
            }),
        ),
        ("first touch", Box::new(first_touch)),
        (
            "materialize",
            Box::new(move || {
                let view = again.apply(expr).expect("a legal view");
                std::hint::black_box(view.materialize_with(&options).expect("memory for the result"));
            }),
        ),
    ]
}

/// One byte of each page of new memory; pages that are huge come whole with their first byte.
fn first_touch() {
    let mut memory: Vec<u8> = Vec::with_capacity(BYTES + HUGE);
    let spare = memory.spare_capacity_mut();
    let start = spare.as_ptr().align_offset(HUGE);
    let huge = &mut spare[start..start + BYTES];
    advise_huge(huge.as_ptr().cast(), BYTES);
    for page in huge.chunks_mut(PAGE) {
        page[0].write(1);
    }
    std::hint::black_box(&memory);
}

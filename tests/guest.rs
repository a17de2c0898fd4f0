//! Manners of a guest: someone else's thread pool, many threads at once, no state that surprises.

use restride::{
    BytesView, BytesViewMut, CopyOptions, Error, Expr, Layout, Plan, Tensor, Tuning, View, ViewMut,
    copy_with, fill,
};

fn is_send_and_sync<T: Send + Sync>() {}

#[test]
fn everything_that_holds_data_goes_between_threads() {
    is_send_and_sync::<Layout>();
    is_send_and_sync::<Expr>();
    is_send_and_sync::<Error>();
    is_send_and_sync::<View<'static, f64>>();
    is_send_and_sync::<ViewMut<'static, f64>>();
    is_send_and_sync::<BytesView<'static>>();
    is_send_and_sync::<BytesViewMut<'static>>();
    is_send_and_sync::<Tensor<u8>>();
    is_send_and_sync::<Plan>();
    is_send_and_sync::<Tuning>();
    is_send_and_sync::<CopyOptions>();
    is_send_and_sync::<restride::Contiguous<'static, u16>>();
    #[cfg(feature = "npy")]
    is_send_and_sync::<restride::npy::Input>();
    #[cfg(feature = "instruments")]
    is_send_and_sync::<restride::bench::record::Record>();
}

/// A view of about 4 MiB, enough for several threads, and what it reads.
fn work(seed: u32) -> (Tensor<u32>, Vec<u32>) {
    let x = Tensor::from_fn(&[64, 128, 131], |k| k as u32 ^ seed).unwrap();
    let expected = x.apply(".permute(2, 0, 1)").unwrap().iter().collect();
    (x, expected)
}

#[test]
fn many_threads_copy_at_once() {
    std::thread::scope(|scope| {
        for seed in 0..8 {
            scope.spawn(move || {
                let (x, expected) = work(seed);
                for threads in [0, 1, 3, 8] {
                    let options = CopyOptions::default().threads(threads);
                    let y = x.apply(".permute(2, 0, 1)").unwrap().materialize_with(&options).unwrap();
                    assert!(y.as_slice() == expected, "seed {seed}, {threads} threads");
                }
            });
        }
    });
}

#[test]
fn threads_share_one_source_and_write_disjoint_parts() {
    let (x, expected) = work(0);
    let view = x.apply(".permute(2, 0, 1)").unwrap();
    let mut out = vec![0u32; expected.len()];
    let rows = 131 / 4;
    std::thread::scope(|scope| {
        for (k, part) in out.chunks_mut(rows * 64 * 128).enumerate() {
            let part_view =
                view.shrink(&[(k * rows, (k * rows + rows).min(131)), (0, 64), (0, 128)]).unwrap();
            scope.spawn(move || part_view.materialize_into(part).unwrap());
        }
    });
    assert!(out == expected);
}

#[cfg(feature = "parallel")]
#[test]
fn copies_run_inside_someone_elses_pool() {
    use rayon::prelude::*;
    for size in [1, 2, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(size).build().unwrap();
        pool.install(|| {
            // Every task of a full pool copies on several threads: nobody waits for a thread that never comes.
            (0..12u32).into_par_iter().for_each(|seed| {
                let (x, expected) = work(seed);
                let options = CopyOptions::default().threads(4);
                let y = x.apply(".permute(2, 0, 1)").unwrap().materialize_with(&options).unwrap();
                assert!(y.as_slice() == expected, "seed {seed} in a pool of {size}");
            });
        });
    }
}

#[test]
fn options_are_those_of_the_call_alone() {
    let (x, expected) = work(1);
    let view = x.apply(".permute(2, 0, 1)").unwrap();
    let before = Tuning::default();
    let odd = CopyOptions::default().isa(restride::Isa::Scalar).threads(1).streaming(true);
    assert!(view.materialize_with(&odd).unwrap().as_slice() == expected);
    assert_eq!(Tuning::default(), before);
    let mut out = vec![0u32; expected.len()];
    let layout = Layout::row_major(view.shape()).unwrap();
    let mut dst = ViewMut::new(&mut out, layout.clone()).unwrap();
    copy_with(&view, &mut dst, &CopyOptions::default()).unwrap();
    fill(&mut dst.shrink(&[(0, 1), (0, 64), (0, 128)]).unwrap(), 9).unwrap();
    assert!(out[..64 * 128].iter().all(|&x| x == 9) && out[64 * 128..] == expected[64 * 128..]);
    let plan = |options: &CopyOptions| Plan::new(view.layout(), &layout, 4, options).unwrap();
    assert_eq!(plan(&CopyOptions::default()), plan(&CopyOptions::default()));
}

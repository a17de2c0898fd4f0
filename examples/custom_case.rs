//! A benchmark case of one's own: a 4-D permutation beside `memcpy`, with the counters that this machine has,
//! the exact lines and the cache model.
//!
//!     cargo run --release --example custom_case --features instruments

use restride::machine::counters::{count, host_probes, system};
use restride::{CopyOptions, Error, Layout, Plan, Tensor, View};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// The median of `n` runs.
fn median(n: usize, mut body: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..n)
        .map(|_| {
            let start = Instant::now();
            body();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[n / 2]
}

fn main() -> Result<(), Error> {
    let shape = [16, 32, 48, 24];
    let x = Tensor::from_fn(&shape, |k| k as f32)?;
    let view: View<'_, f32> = x.view().permute(&[3, 1, 0, 2])?;
    let options = CopyOptions::default().threads(1);
    let mut out = Tensor::from_fn(view.shape(), |_| 0f32)?;

    let dst = Layout::row_major(view.shape())?;
    println!("{}", Plan::new(view.layout(), &dst, size_of::<f32>(), &options)?);
    let lines = view.layout().lines(size_of::<f32>(), 64);
    println!("lines of 64 bytes: {} touched, {} bytes used", lines.touched, lines.bytes_used);

    // Timed in turn with a plain copy of as many bytes, then checked against the definition.
    view.materialize_into_with(out.as_mut_slice(), &options)?;
    let mut plain = x.as_slice().to_vec();
    let copy = median(21, || black_box(&mut plain).copy_from_slice(black_box(x.as_slice())));
    let ours = median(21, || {
        black_box(&view)
            .materialize_into_with(black_box(out.as_mut_slice()), &options)
            .expect("it ran before")
    });
    assert!(view.iter().eq(out.as_slice().iter().copied()));
    let bytes = 2 * size_of_val(x.as_slice());
    let rate = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e9;
    println!("this case {:.1} GB/s, memcpy {:.1} GB/s, verified", rate(ours), rate(copy));

    // Counters run in a pass of their own. What cannot be had says why; it is never shown as 0.
    let counts = count(system(), host_probes(), || {
        view.materialize_into_with(black_box(out.as_mut_slice()), &options).expect("it ran before");
    });
    for count in &counts {
        match count.value {
            Some(value) => println!("{:>18}  {value}", count.event.name()),
            None => println!("{:>18}  {}", count.event.name(), count.state.name()),
        }
    }
    Ok(())
}

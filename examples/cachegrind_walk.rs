//! A walk small enough to be counted: reads a matrix of f64 once, or does everything but that.
//!
//! `scripts/check_cachegrind.sh` runs it under cachegrind with `walk` and with `rest` (the difference is
//! the walk alone) and compares with what `model` prints. Before and after it, other memory is read until
//! the caches hold nothing else: the walk starts cold, and what follows finds the same caches either way.
//!
//! ```text
//! cargo run --release --example cachegrind_walk -- walk 1024 1024 1 1024
//! cargo run --release --example cachegrind_walk -- model 1024 1024 1 1024 L1d=48K/12/64,L2=2M/16/64
//! ```

use restride::cachesim::{CacheSpec, Options, naive};
use restride::{Layout, machine};
use std::error::Error;

/// Elements in front of the first row, so that the buffer can begin at any line.
const LINE: usize = 64 / size_of::<f64>();

/// Bytes of the other memory, more than the caches of the comparison hold.
const OTHER: usize = 8 << 20;

/// Reads the other memory, one element in each 32 bytes.
#[inline(never)]
fn flush(other: &[f64]) -> f64 {
    other.iter().step_by(4).sum()
}

/// Reads every element once, row by row, and sums them up in that order.
#[inline(never)]
fn walk(data: &[f64], shape: [usize; 2], strides: [usize; 2]) -> f64 {
    let mut sum = 0.0;
    for i in 0..shape[0] {
        let mut at = i * strides[0];
        for _ in 0..shape[1] {
            sum += data[at];
            at += strides[1];
        }
    }
    sum
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: cachegrind_walk walk|rest|model ROWS COLUMNS ROW_STRIDE COLUMN_STRIDE [CACHES]";
    let [mode, numbers @ ..] = &arguments[..] else { return Err(usage.into()) };
    if numbers.len() < 4 {
        return Err(usage.into());
    }
    let numbers: Vec<usize> = numbers[..4].iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    let (shape, strides) = ([numbers[0], numbers[1]], [numbers[2], numbers[3]]);
    if mode == "model" {
        let caches = machine::caches::parse(arguments.get(5).map_or("", String::as_str))?;
        let caches: Vec<CacheSpec> = caches.iter().map(CacheSpec::from).collect();
        let layout = Layout::new(&shape, &strides.map(|s| s as isize), 0)?;
        let report = naive(&layout, size_of::<f64>(), &caches, &Options::default())?;
        let counts: Vec<_> = report.levels.0.iter().map(|(_, level)| level.misses.to_string()).collect();
        println!("{} {}", report.levels.0[0].1.accesses, counts.join(" "));
        return Ok(());
    }
    let len = (shape[0].max(1) - 1) * strides[0] + (shape[1].max(1) - 1) * strides[1] + 1 + LINE;
    let data = vec![0.0f64; len];
    let first = data.as_ptr().align_offset(64);
    let data = std::hint::black_box(&data[first..]);
    let other = vec![0.0f64; OTHER / size_of::<f64>()];
    std::hint::black_box(flush(&other));
    if mode == "walk" {
        std::hint::black_box(walk(data, shape, strides));
    }
    std::hint::black_box(flush(&other));
    Ok(())
}

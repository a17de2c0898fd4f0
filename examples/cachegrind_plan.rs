//! A copy small enough to be counted: materializes one view once, or makes only the plan of that.
//!
//! `scripts/check_cachegrind.sh` runs it under cachegrind with `copy` and with `rest` (the difference is the
//! copy alone) and compares with what `model` prints. The two buffers lie as the model has them, and other
//! memory is read before and after the copy, so that it starts cold. Stores past the caches count as ordinary
//! ones, because cachegrind takes them for such.
//!
//! ```text
//! RESTRIDE_ISA=avx2 cargo run --release --example cachegrind_plan -- copy 512,512 8 .T
//! RESTRIDE_ISA=avx2 cargo run --release --example cachegrind_plan -- model 512,512 8 .T L1d=48K/12/64,L2=2M/16/64
//! ```

use restride::cachesim::{Access, CacheSpec, Hierarchy, Options, Run};
use restride::copy::replay::{AccessKind, Side, own_bytes, replay};
use restride::{BytesView, BytesViewMut, CopyOptions, Layout, Plan, copy_bytes, machine};
use std::error::Error;

/// The buffers start at a multiple of this, and are so far apart as whole pages allow.
const START: usize = 1 << 20;
const PAGE: usize = 4096;

/// Bytes of the other memory, more than the caches of the comparison hold.
const OTHER: usize = 8 << 20;

/// Reads the other memory, 8 bytes in each 32.
#[inline(never)]
fn flush(other: &[u64]) -> u64 {
    other.iter().step_by(4).sum()
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: cachegrind_plan copy|rest|model SHAPE ELEMENT_BYTES EXPRESSION [CACHES] [stream]";
    let [mode, shape, size, expression, more @ ..] = &arguments[..] else { return Err(usage.into()) };
    let shape: Vec<usize> = shape.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let size: usize = size.parse()?;
    let whole = Layout::row_major(&shape)?;
    let src = whole.apply(expression)?;
    let dst = Layout::row_major(src.shape())?;
    let streaming = more.iter().any(|word| word == "stream");
    let options = CopyOptions::default().threads(1).streaming(streaming);
    let from_bytes = whole.numel() * size;
    let apart = from_bytes.next_multiple_of(PAGE);
    if mode == "model" {
        let caches = machine::caches::parse(more.first().map_or("", String::as_str))?;
        let caches: Vec<CacheSpec> = caches.iter().map(CacheSpec::from).collect();
        let plan = Plan::new(&src, &dst, size, &options)?;
        let own = (apart + dst.numel() * size).next_multiple_of(PAGE);
        let mut model = Hierarchy::new(&caches, &Options::default(), (own + own_bytes(&plan)) as u64)?;
        let (mut loads, mut stores) = (0, 0);
        replay(&plan, &mut |accesses| {
            for access in accesses {
                let base = match access.side {
                    Side::Src => 0,
                    Side::Dst => apart,
                    Side::Own => own,
                };
                let kind = match access.kind {
                    AccessKind::Read => {
                        loads += 1;
                        Access::Read
                    }
                    AccessKind::Write | AccessKind::StreamWrite => {
                        stores += 1;
                        Access::Write
                    }
                };
                let run = Run { start: (base as isize + access.offset) as u64, stride: 0, count: 1 };
                model.run(run, access.bytes as u32, kind);
            }
        })?;
        let counts = model.counts();
        println!("{loads} {stores} {} {}", counts[0].misses, counts[1].misses);
        return Ok(());
    }
    let mut memory = vec![0u8; START + apart + dst.numel() * size];
    let first = memory.as_ptr().align_offset(START);
    let (from, to) = memory[first..].split_at_mut(apart);
    let (from, to) = (std::hint::black_box(&from[..from_bytes]), &mut to[..dst.numel() * size]);
    let other = vec![0u64; OTHER / size_of::<u64>()];
    // What the first copy of a process finds out (the level, the machine) is found out before.
    copy_bytes(
        &BytesView::new(&[1, 2], Layout::row_major(&[2])?, 1)?,
        &mut BytesViewMut::new(&mut [0; 2], Layout::row_major(&[2])?, 1)?,
        &options,
    )?;
    let view = BytesView::new(from, src, size)?;
    let mut out = BytesViewMut::new(to, dst, size)?;
    std::hint::black_box(flush(&other));
    match mode.as_str() {
        "copy" => copy_bytes(&view, &mut out, &options)?,
        _ => drop(std::hint::black_box(Plan::new(view.layout(), out.layout(), size, &options)?)),
    }
    std::hint::black_box(flush(&other));
    Ok(())
}

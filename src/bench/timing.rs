//! Times one copy interleaved with libc `memcpy`, on buffers written before the first sample.

use crate::copy::{CopyOptions, Isa, reference};
use crate::layout::Layout;
use crate::machine::pages;
use crate::tensor::{Tensor, Uninit};
use crate::view::BytesView;
use crate::{Error, Plan};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Which pages the timed buffers ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageMode {
    /// No huge pages.
    Small,
    /// Huge pages wherever the system gives them.
    Huge,
}

impl PageMode {
    /// `4k` or `huge`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "4k",
            Self::Huge => "huge",
        }
    }
}

/// One pass of a case: a view of the previous pass's result (of the input, for the first).
#[derive(Debug, Clone)]
pub struct Pass {
    /// How the previous buffer is read.
    pub src: Layout,
    /// One element that padded positions read; zero bytes when `None`.
    pub fill: Option<Vec<u8>>,
}

/// What is to be timed.
#[derive(Debug, Clone)]
pub struct Job {
    /// Elements of the input buffer.
    pub input_len: usize,
    /// Bytes of one element.
    pub element_size: usize,
    /// The copies, in order.
    pub passes: Vec<Pass>,
    /// Options of every copy.
    pub options: CopyOptions,
    /// Pages of all buffers.
    pub pages: PageMode,
}

/// Samples of a job and of `memcpy`, taken in turn.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Nanoseconds of the job, one per sample.
    pub samples_ns: Vec<f64>,
    /// Nanoseconds of one `memcpy` of as many bytes as the last destination holds.
    pub memcpy_samples_ns: Vec<f64>,
    /// Distinct source bytes read plus destination bytes written, over all passes.
    pub bytes_moved: u64,
    /// Strategy of the last pass.
    pub strategy: &'static str,
    /// Level in use.
    pub isa: Isa,
    /// Threads of the last pass.
    pub threads: usize,
    /// Whether the result equals the reference, element by element.
    pub verified: bool,
}

/// How long and how often to sample.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Stop after this long, once there are `min_samples`.
    pub budget: Duration,
    /// At least so many samples.
    pub min_samples: usize,
    /// At most so many samples.
    pub max_samples: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { budget: Duration::from_millis(1500), min_samples: 7, max_samples: 101 }
    }
}

/// Bytes in pages of the asked kind, all written.
pub(crate) fn buffer(bytes: usize, mode: PageMode, seed: u64) -> Result<Tensor<u8>, Error> {
    let mut memory = Uninit::<u8>::new(&[bytes])?;
    let spare = memory.spare();
    if mode == PageMode::Small {
        pages::advise_no_huge(spare.as_ptr().cast(), bytes);
    }
    let mut state = seed | 1;
    Ok(memory.write_with(|k| {
        if k % 8 == 0 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        state.to_le_bytes()[k % 8]
    }))
}

struct Run {
    buffers: Vec<Tensor<u8>>,
    targets: Vec<Layout>,
}

impl Run {
    /// Nanoseconds of the passes in order, one of `repeat` runs; the views are there before.
    fn repeat(&mut self, job: &Job, repeat: u32) -> Result<f64, Error> {
        // With several passes each result is the next one's source: no view of it is kept while it is written.
        let rounds = if job.passes.len() == 1 { 1 } else { repeat };
        let mut total_ns = 0;
        for _ in 0..rounds {
            for (k, pass) in job.passes.iter().enumerate() {
                let (before, after) = self.buffers.split_at_mut(k + 1);
                let mut src = BytesView::new(&before[k], pass.src.clone(), job.element_size)?;
                if let Some(fill) = &pass.fill {
                    src = src.with_fill(fill)?;
                }
                let to = after[0].as_mut_slice();
                let start = Instant::now();
                for _ in 0..repeat / rounds {
                    src.materialize_into_with(to, &job.options)?;
                }
                total_ns += start.elapsed().as_nanos();
            }
        }
        Ok(total_ns as f64 / f64::from(repeat))
    }

    fn verify(&self, job: &Job) -> Result<bool, Error> {
        let mut from = self.buffers[0].as_slice().to_vec();
        for (pass, dst) in job.passes.iter().zip(&self.targets) {
            let mut to = vec![0; dst.numel() * job.element_size];
            let zeros = vec![0; job.element_size];
            let fill = pass.fill.as_ref().unwrap_or(&zeros);
            reference::copy((&pass.src, &from), (dst, &mut to), job.element_size, fill)?;
            from = to;
        }
        Ok(self.buffers.last().is_some_and(|last| last.as_slice() == from))
    }
}

/// Nanoseconds of one run in a sample of `body`, which runs `repeat` times in it.
fn sample(repeat: u32, mut body: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
    let start = Instant::now();
    for _ in 0..repeat {
        body()?;
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(repeat))
}

/// Runs in one sample, so that it lasts long enough for the clock.
fn repeats(once_ns: f64) -> u32 {
    const SAMPLE_NS: f64 = 100_000.0;
    (SAMPLE_NS / once_ns.max(1.0)).ceil().clamp(1.0, 100_000.0) as u32
}

/// Times a job, its passes in order, in turn with `memcpy`, then checks the result.
///
/// # Errors
/// What the copies refuse; `Alloc` when the buffers cannot be had.
pub fn time(job: &Job, effort: Effort) -> Result<Timing, Error> {
    let size = job.element_size;
    let mut run = Run { buffers: vec![buffer(job.input_len * size, job.pages, 1)?], targets: Vec::new() };
    let mut bytes_moved = 0;
    let mut last = None;
    for pass in &job.passes {
        let dst = Layout::row_major(pass.src.shape())?;
        let bytes = dst.numel() * size;
        bytes_moved += pass.src.lines(size, 64).bytes_used + bytes as u64;
        last = Some(Plan::new(&pass.src, &dst, size, &job.options)?);
        run.buffers.push(buffer(bytes, job.pages, 2)?);
        run.targets.push(dst);
    }
    let bytes = run.buffers[run.buffers.len() - 1].len();
    let from = buffer(bytes, job.pages, 3)?;
    let mut to = buffer(bytes, job.pages, 4)?;
    let mut memcpy = || {
        black_box(&mut *to.as_mut_slice()).copy_from_slice(black_box(from.as_slice()));
        Ok(())
    };
    run.repeat(job, 1)?;
    let job_repeats = repeats(run.repeat(job, 1)?);
    memcpy()?;
    let memcpy_repeats = repeats(sample(1, &mut memcpy)?);
    let (mut samples_ns, mut memcpy_samples_ns) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while samples_ns.len() < effort.max_samples
        && (samples_ns.len() < effort.min_samples || start.elapsed() < effort.budget)
    {
        samples_ns.push(run.repeat(job, job_repeats)?);
        memcpy_samples_ns.push(sample(memcpy_repeats, &mut memcpy)?);
    }
    let verified = run.verify(job)?;
    let (strategy, isa, threads) =
        last.map_or(("nothing", Isa::active()?, 1), |p| (p.strategy(), p.isa(), p.threads()));
    Ok(Timing { samples_ns, memcpy_samples_ns, bytes_moved, strategy, isa, threads, verified })
}

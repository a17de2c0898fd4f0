//! The real stopwatch: copies on buffers of its own, checked against the reference.

use super::{Case, Stopwatch};
use crate::bench::timing::{self, PageMode};
use crate::copy::tuning::Tuning;
use crate::copy::{CopyOptions, copy_bytes, reference};
use crate::view::{BytesView, BytesViewMut};
use crate::{Error, Layout, Plan, Tensor};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A sample lasts at least so long, by as many copies as it takes.
const SAMPLE_NS: f64 = 200_000.0;

/// Times copies with the clock of this machine.
pub struct Real<'a> {
    start: Instant,
    stop: Option<&'a AtomicBool>,
    pages: PageMode,
    runs: HashMap<String, Run>,
    /// Memory that is held so that the next buffers do not get the pages of the last ones.
    spacer: Option<Tensor<u8>>,
    moves: usize,
}

/// The buffers of one case, written before the first sample.
struct Run {
    src: Layout,
    dst: Layout,
    from: Tensor<u8>,
    to: Tensor<u8>,
    /// What the reference makes of it, once asked for.
    expected: Option<Vec<u8>>,
    repeats: u32,
}

impl<'a> Real<'a> {
    /// Starts the clock; stops when the flag is set.
    pub fn start(pages: PageMode, stop: Option<&'a AtomicBool>) -> Self {
        Self { start: Instant::now(), stop, pages, runs: HashMap::new(), spacer: None, moves: 0 }
    }

    fn run(&mut self, case: &Case) -> Result<&mut Run, Error> {
        if !self.runs.contains_key(&case.name) {
            self.runs.insert(case.name.clone(), Run::new(case, self.pages)?);
        }
        self.runs.get_mut(&case.name).ok_or(Error::Alloc { bytes: 0 })
    }
}

fn options(case: &Case, tuning: &Tuning) -> CopyOptions {
    CopyOptions::default().threads(case.threads).tuning(*tuning)
}

fn layouts(case: &Case) -> Result<(Layout, Layout), Error> {
    let src = Layout::row_major(&case.shape)?.apply(&case.expr)?;
    let dst = Layout::row_major(src.shape())?;
    Ok((src, dst))
}

impl Run {
    fn new(case: &Case, pages: PageMode) -> Result<Self, Error> {
        let (src, dst) = layouts(case)?;
        let size = case.element_bytes;
        let elements: usize = case.shape.iter().product();
        let mut run = Self {
            from: timing::buffer(elements * size, pages, 1)?,
            to: timing::buffer(dst.numel() * size, pages, 2)?,
            src,
            dst,
            expected: None,
            repeats: 1,
        };
        let warm = CopyOptions::default().threads(case.threads);
        run.copy(case, &warm)?;
        let start = Instant::now();
        run.copy(case, &warm)?;
        let once = start.elapsed().as_nanos().max(1) as f64;
        run.repeats = (SAMPLE_NS / once).ceil().clamp(1.0, 10_000.0) as u32;
        Ok(run)
    }

    fn copy(&mut self, case: &Case, options: &CopyOptions) -> Result<(), Error> {
        let src = BytesView::new(self.from.as_slice(), self.src.clone(), case.element_bytes)?;
        let mut dst = BytesViewMut::new(self.to.as_mut_slice(), self.dst.clone(), case.element_bytes)?;
        copy_bytes(&src, &mut dst, options)
    }
}

impl Stopwatch for Real<'_> {
    fn sample(&mut self, case: &Case, tuning: &Tuning) -> Result<f64, Error> {
        let options = options(case, tuning);
        let run = self.run(case)?;
        let start = Instant::now();
        for _ in 0..run.repeats {
            run.copy(case, &options)?;
        }
        Ok(start.elapsed().as_nanos() as f64 / f64::from(run.repeats))
    }

    fn right(&mut self, case: &Case, tuning: &Tuning) -> Result<bool, Error> {
        let options = options(case, tuning);
        let run = self.run(case)?;
        if run.expected.is_none() {
            let mut expected = vec![0; run.to.as_slice().len()];
            let zeros = vec![0; case.element_bytes];
            let from = (&run.src, run.from.as_slice());
            reference::copy(from, (&run.dst, &mut expected), case.element_bytes, &zeros)?;
            run.expected = Some(expected);
        }
        // What an earlier copy left must not pass for this one's work.
        run.to.as_mut_slice().fill(0xA5);
        run.copy(case, &options)?;
        Ok(run.expected.as_deref() == Some(run.to.as_slice()))
    }

    fn same_plan(&mut self, case: &Case, a: &Tuning, b: &Tuning) -> Result<bool, Error> {
        let (src, dst) = layouts(case)?;
        let plan = |tuning| Plan::new(&src, &dst, case.element_bytes, &options(case, tuning));
        Ok(plan(a)? == plan(b)?)
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    fn forget(&mut self) {
        self.runs.clear();
        // Freed pages are handed out again, the last ones first: a piece of them is taken away, each time
        // another.
        self.moves += 1;
        let megabytes = 1 + self.moves * 5 % 17;
        self.spacer = timing::buffer(megabytes << 20, self.pages, 3).ok();
    }
}

//! The reads and writes of a plan, in the order in which it makes them.

use super::hierarchy::{Access, Hierarchy};
use super::report::{Levels, OwnReport, PlanReport, StreamingReport, per_element};
use super::runs::{Order, Run, Span};
use super::spec::{CacheSpec, Options};
use crate::copy::plan::Plan;
use crate::copy::replay::{AccessKind, Side, own_bytes, replay};
use crate::{Error, Layout};

/// Elements after which a plan is not modelled: some minutes.
const MOST_ELEMENTS: u64 = 1 << 33;

/// Bytes that both buffers are aligned to at least: a page.
const PAGE: u64 = 4096;

/// Accesses of the same kind, length and step, gathered into runs.
struct Gatherer<'h> {
    hierarchy: &'h mut Hierarchy,
    run: Run,
    len: u32,
    access: Access,
}

impl Gatherer<'_> {
    fn push(&mut self, addr: u64, len: u32, access: Access) {
        if access == self.access && len == self.len && self.run.count > 0 {
            let step = addr.wrapping_sub(self.run.start) as i64;
            if self.run.count == 1 {
                self.run.stride = step;
            }
            if self.run.stride.wrapping_mul(self.run.count as i64) == step {
                self.run.count += 1;
                return;
            }
        }
        self.flush();
        (self.run, self.len, self.access) = (Run { start: addr, stride: 0, count: 1 }, len, access);
    }

    fn flush(&mut self) {
        self.hierarchy.run(self.run, self.len, self.access);
        self.run.count = 0;
    }
}

/// Models the copy of `src` into `dst` as `plan` makes it: the loads and stores of its kernels, as wide as
/// they are and in their order, on one thread (see [`replay`]).
///
/// The source buffer starts at byte 0; the destination buffer starts on the first page behind it (the
/// first common multiple of 4096 and of all line sizes), and the copy's own memory on the first behind that:
/// staging rows, packed lines, the fill value of a padded view. It takes its room in the caches as the
/// buffers do, and [`PlanReport::own`] says how much.
///
/// ```
/// use restride::cachesim::{CacheSpec, Options, planned};
/// use restride::{CopyOptions, Layout, Plan};
///
/// let caches = [CacheSpec::new("L1d", 48 << 10, 12, 64), CacheSpec::new("L2", 2 << 20, 16, 64)];
/// let src = Layout::row_major(&[512, 512])?.apply(".T")?;
/// let dst = Layout::row_major(&[512, 512])?;
/// let plan = Plan::new(&src, &dst, 8, &CopyOptions::default().streaming(false))?;
/// let walk = planned(&src, &dst, &plan, &caches, &Options::default())?;
/// // Every line of both sides comes in once, where the walk by columns misses on every element; the tables
/// // of offsets come in beside them.
/// let (l1, lines) = (walk.levels.get("L1d").unwrap(), 2 * 512 * 512 / 8);
/// assert!(l1.misses >= lines && l1.misses < lines + lines / 50);
/// # Ok::<(), restride::Error>(())
/// ```
///
/// # Errors
///
/// `Caches` where the caches cannot be modelled (see [`Hierarchy::new`]) or the copy is too long;
/// `Overflow` where byte addresses do not fit.
pub fn planned(
    src: &Layout,
    dst: &Layout,
    plan: &Plan,
    caches: &[CacheSpec],
    options: &Options,
) -> Result<PlanReport, Error> {
    let size = plan.element_size() as u64;
    if dst.numel() as u64 > MOST_ELEMENTS {
        return Err(Error::Caches {
            reason: format!(
                "the model would follow {} elements of this copy: model a smaller shape",
                dst.numel()
            ),
        });
    }
    let overflow = || Error::Overflow { what: "the byte address of an element" };
    let bytes = |span: Span| span.reach.checked_mul(size).ok_or_else(overflow);
    let read = Order::logical(src).span();
    let page =
        caches.iter().try_fold(PAGE, |page, cache| lcm(page, cache.line.max(1))).ok_or_else(overflow)?;
    let base = bytes(read)?.checked_next_multiple_of(page).ok_or_else(overflow)?;
    let end = base
        .checked_add(bytes(Order::logical(dst).span())?)
        .filter(|&end| end <= i64::MAX as u64)
        .ok_or_else(overflow)?;
    let own_bytes = own_bytes(plan) as u64;
    let own_base = end.checked_next_multiple_of(page).ok_or_else(overflow)?;
    let end = own_base.checked_add(own_bytes).ok_or_else(overflow)?;
    let mut hierarchy = Hierarchy::new(caches, options, end)?;
    let mut gatherer = Gatherer {
        hierarchy: &mut hierarchy,
        run: Run { start: 0, stride: 0, count: 0 },
        len: 0,
        access: Access::Read,
    };
    let mut own = Lines::new(own_bytes, caches[0].line);
    replay(plan, &mut |accesses| {
        for access in accesses {
            let start = match access.side {
                Side::Src => 0,
                Side::Dst => base,
                Side::Own => own_base,
            };
            let kind = match access.kind {
                AccessKind::Read => Access::Read,
                AccessKind::Write => Access::Write,
                AccessKind::StreamWrite => Access::StreamingWrite,
            };
            if access.side == Side::Own {
                own.touch(access.offset as u64, access.bytes as u64);
            }
            let addr = start.wrapping_add_signed(access.offset as i64);
            gatherer.push(addr, access.bytes as u32, kind);
        }
    })?;
    gatherer.flush();
    let line = caches[0].line as usize;
    let (from, to) = (src.lines(plan.element_size(), line), dst.lines(plan.element_size(), line));
    let counts = hierarchy.counts();
    let (stores, bytes) = hierarchy.streaming();
    Ok(PlanReport {
        levels: Levels::of(caches, &counts, |counts| (*counts).into()),
        misses_per_element: Levels::of(caches, &counts, |counts| per_element(counts.misses, read.elements)),
        lines_touched: from.touched + to.touched,
        lines_used_in_full: from.used_in_full + to.used_in_full,
        streaming: StreamingReport { stores, bytes },
        own: own.report(),
        tlb: hierarchy.tlb().map(Into::into),
    })
}

/// Distinct lines of the copy's own memory, and what touched them.
struct Lines {
    line: u64,
    touched: Vec<bool>,
    report: OwnReport,
}

impl Lines {
    fn new(bytes: u64, line: u64) -> Self {
        Self {
            line,
            touched: vec![false; (bytes / line) as usize + 1],
            report: OwnReport { accesses: 0, lines: 0 },
        }
    }

    fn touch(&mut self, offset: u64, bytes: u64) {
        self.report.accesses += 1;
        for line in offset / self.line..=(offset + bytes - 1) / self.line {
            let touched = &mut self.touched[line as usize];
            self.report.lines += u64::from(!std::mem::replace(touched, true));
        }
    }

    fn report(&self) -> OwnReport {
        self.report
    }
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b)
}

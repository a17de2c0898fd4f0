//! `restride bench`: one case, or the suite.

use super::failure::{check_bytes, page_mode, read_dtype, read_expr, read_shape, read_threads};
use super::{Failure, bench_suite, text};
use crate::bench::stats::Summary;
use crate::bench::timing::{self, Effort, Job, PageMode, Pass, Timing};
use crate::dtype::{ByteOrder, Dtype};
use crate::error::words::counted;
use crate::eval::evaluate;
use crate::{CopyOptions, Layout};
use serde_json::json;

/// Times one copy against memcpy, or runs the whole suite and writes its record.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  restride bench --shape 8,16,1024,64 '.permute(0, 2, 1, 3)'\n  \
                        restride bench --preset quick -o record.json\n  \
                        restride bench --from-criterion target/criterion -o record.json\n\n\
                        With --shape it is one case: the copy and libc memcpy of as many bytes as the destination \
                        holds, taken in turn. GB/s counts the distinct bytes read and the bytes written.")]
pub(crate) struct Args {
    /// The view expression of one case.
    #[arg(value_name = "EXPR", requires = "shape")]
    expr: Option<String>,
    /// Extents of a row-major input, as in 3,4; makes it one case.
    #[arg(long, allow_hyphen_values = true)]
    shape: Option<String>,
    /// Element type of one case [default: f32].
    #[arg(long, requires = "shape")]
    dtype: Option<String>,
    /// Threads of one case, or all for every core [default: 1].
    #[arg(long, requires = "shape", value_name = "N|all", value_parser = read_threads)]
    threads: Option<usize>,
    /// Pages of one case's buffers: 4k or huge [default: 4k].
    #[arg(long, requires = "shape", value_name = "4k|huge")]
    pages: Option<String>,
    #[command(flatten)]
    suite: bench_suite::SuiteArgs,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    match &args.shape {
        Some(shape) if args.suite.named() => Err(Failure::usage(
            "usage",
            format!(
                "--shape {shape} is one case, which keeps no record: leave --preset, -o and --from-criterion out, \
                 and take --json for its figures"
            ),
        )),
        Some(shape) => one_case(shape, &args),
        None => bench_suite::run(&args.suite, args.json),
    }
}

fn one_case(shape: &str, args: &Args) -> Result<(), Failure> {
    let shape = read_shape(shape)?;
    let dtype = args.dtype.as_deref().map_or(Ok(Dtype::F32), read_dtype)?;
    let pages = page_mode(args.pages.as_deref().unwrap_or("4k"))?;
    let text = args.expr.as_deref().unwrap_or_default();
    let expr = read_expr(text)?;
    let layout = Layout::row_major(&shape)?;
    check_bytes(&layout, dtype.size_bytes())?;
    let encode = |value: &str| dtype.encode(value, ByteOrder::Little);
    let evaluation = evaluate(&layout, layout.numel(), &expr, &encode)
        .map_err(|refusal| Failure::refused(text, &refusal))?;
    for pass in &evaluation.passes {
        check_bytes(&pass.src, dtype.size_bytes())?;
    }
    let job = Job {
        input_len: layout.numel(),
        element_size: dtype.size_bytes(),
        passes: evaluation
            .passes
            .into_iter()
            .map(|pass| Pass { src: pass.src, fill: pass.fill.map(|fill| fill.to_vec()) })
            .collect(),
        options: CopyOptions::default().threads(args.threads.unwrap_or(1)),
        pages,
    };
    check_memory(&job)?;
    let timed = timing::time(&job, Effort::default())?;
    let shown = Shown::new(&timed, pages)?;
    text::print(&if args.json { text::json_text(&shown.json()) } else { shown.text(text) })?;
    match timed.verified {
        true => Ok(()),
        false => Err(Failure::after_result(
            "verify",
            "the copy differs from the reference: do not use these figures, and report this",
        )),
    }
}

/// Refuses a case whose buffers do not fit the memory at hand, before any of it is touched.
fn check_memory(job: &Job) -> Result<(), Failure> {
    let elements = job.passes.iter().fold(job.input_len, |sum, pass| sum.saturating_add(pass.src.numel()));
    // The last destination three times: the case's own and memcpy's two.
    let last = job.passes.last().map_or(0, |pass| pass.src.numel());
    let need = elements.saturating_add(last.saturating_mul(2)).saturating_mul(job.element_size) as u64;
    match crate::machine::pages::available_bytes() {
        Some(free) if need > free / 10 * 9 => Err(Failure::new(
            "alloc",
            format!(
                "the buffers of this case need {} and {} are free: time a smaller shape",
                text::bytes(need),
                text::bytes(free)
            ),
        )),
        _ => Ok(()),
    }
}

struct Shown<'a> {
    timed: &'a Timing,
    pages: PageMode,
    case: Summary,
    memcpy: Summary,
}

impl<'a> Shown<'a> {
    fn new(timed: &'a Timing, pages: PageMode) -> Result<Self, Failure> {
        match (Summary::of(&timed.samples_ns), Summary::of(&timed.memcpy_samples_ns)) {
            (Some(case), Some(memcpy)) => Ok(Self { timed, pages, case, memcpy }),
            _ => Err(Failure::new("samples", "no sample could be taken: try again")),
        }
    }

    /// `memcpy` time over case time; `None` where the clock saw no time or there was nothing to copy.
    fn ratio(&self) -> Option<f64> {
        (self.case.median > 0.0 && self.timed.bytes_moved > 0).then(|| self.memcpy.median / self.case.median)
    }

    fn gb_per_s(&self) -> Option<f64> {
        (self.case.median > 0.0 && self.timed.bytes_moved > 0)
            .then(|| self.timed.bytes_moved as f64 / self.case.median)
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "median_ns": self.case.median,
            "ci_low_ns": self.case.low,
            "ci_high_ns": self.case.high,
            "memcpy_median_ns": self.memcpy.median,
            "ratio": self.ratio(),
            "bytes_moved": self.timed.bytes_moved,
            "gb_per_s": self.gb_per_s(),
            "threads": self.timed.threads,
            "pages": self.pages.name(),
            "isa": self.timed.isa.name(),
            "strategy": self.timed.strategy,
            "verified": self.timed.verified,
            "samples": self.case.samples,
        })
    }

    fn text(&self, expr: &str) -> String {
        let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), text::figure);
        format!(
            "{}: {} ({} to {}), {} GB/s read and written\n\
             memcpy of as many bytes on one thread: {}, ratio {}\n\
             strategy {}, {}, {}, {} pages, {}, {}\n",
            if expr.is_empty() { "plain copy" } else { expr },
            text::time(self.case.median),
            text::time(self.case.low),
            text::time(self.case.high),
            show(self.gb_per_s()),
            text::time(self.memcpy.median),
            show(self.ratio()),
            self.timed.strategy,
            self.timed.isa.name(),
            counted(self.timed.threads, "thread"),
            self.pages.name(),
            counted(self.case.samples, "sample"),
            if self.timed.verified { "verified" } else { "NOT VERIFIED" }
        )
    }
}

//! `restride materialize`: makes a view of a `.npy` file contiguous, in a new file.

use super::failure::{read_expr, read_threads, tuple};
use super::{Failure, memory, text};
use crate::dtype::ElementBytes;
use crate::error::words::counted;
use crate::eval::{Evaluation, Pass, evaluate};
use crate::layout::Layout;
use crate::machine::topology::Topology;
use crate::npy::{self, Between, Header, Input, Job, Limits, Output, Sink, Source};
use crate::{BytesView, BytesViewMut, CopyOptions, Error, Plan, copy_bytes};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Less than this is not worth counting: the process itself takes as much.
const LEAST_MEMORY_BYTES: usize = 32 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    /// Row-major: the last axis is the fastest one in memory
    #[value(name = "C", alias = "c")]
    C,
    /// Column-major, as Fortran: the first axis is the fastest one
    #[value(name = "F", alias = "f")]
    F,
}

#[derive(clap::Args)]
#[command(after_help = "Example:\n  restride materialize photo.npy \".permute(2, 0, 1)\" -o planes.npy\n\n\
    OUT.npy appears only when it is complete; it may be IN.npy. The printed time is that of the copies; GB/s counts \
    the distinct source bytes that the view reads plus the bytes written (decimal).")]
pub(crate) struct Args {
    /// The file to read.
    #[arg(value_name = "IN.npy")]
    input: PathBuf,
    /// The view, as one would write it after the array in Python; "" is the array itself.
    #[arg(value_name = "EXPR", default_value = "", hide_default_value = true, allow_hyphen_values = true)]
    expr: String,
    /// The file to write.
    #[arg(short, long, value_name = "OUT.npy")]
    output: PathBuf,
    /// Memory order of the output.
    #[arg(long, value_enum, default_value_t = Order::C)]
    order: Order,
    /// Threads that copy [default: the physical cores that this process may use].
    #[arg(long, value_name = "N|all", value_parser = read_threads)]
    threads: Option<usize>,
    /// Memory to keep resident at most, beside 256M for the program itself [default: a quarter of all].
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Compares the result, element by element, with the view before it gets its name.
    #[arg(long)]
    verify: bool,
    /// Prints the summary as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    npy::install_signal_handlers();
    let expr = read_expr(&args.expr)?;
    let limit = match &args.memory {
        Some(text) => memory::read_size("--memory", text)?,
        None => memory::all_bytes() / 4,
    };
    let input = Input::open(&args.input)?;
    let header = input.header();
    if header.trailing_bytes > 0 {
        let trailing = counted(header.trailing_bytes, "byte");
        text::warn(&format!("{}: {trailing} after the elements ignored", args.input.display()));
    }
    let layout = header.layout()?;
    let evaluation = evaluate(&layout, layout.numel(), &expr, &|text| header.element.encode(text))
        .map_err(|refusal| Failure::refused(&args.expr, &refusal))?;
    let steps = Steps::new(&evaluation, header.element_size(), args.order)?;

    let shape = evaluation.layout.shape();
    let head = Header::render(&header.descr, steps.column_major, shape, header.version_to_write());
    let mut file = Output::create(&args.output, &head, steps.output_bytes())?;
    let options = CopyOptions::default().threads(start_threads(args.threads));
    let strategy = steps.strategy(&options)?;
    let work = Work { input: &input, steps: &steps, options: &options, limit, verify: args.verify };
    let progress = Progress::new(steps.list.iter().map(|step| step.bytes as u64).sum());
    let done = work.run(&mut file, &progress)?;
    progress.clear();
    let start = Instant::now();
    file.commit()?;
    let summary = Summary {
        args: &args,
        shape,
        strategy,
        bytes_moved: steps.bytes_moved(),
        done,
        sync: start.elapsed(),
    };
    text::print(&summary.text())
}

/// Starts the threads that copy; a system that has none to give leaves one.
fn start_threads(asked: Option<usize>) -> usize {
    // Beyond a few a CPU, threads only cost their start.
    let most = std::thread::available_parallelism().map_or(1, usize::from) * 4;
    let threads = asked.map_or_else(|| Topology::host().default_threads(), |asked| asked.min(most));
    if threads > 1
        && let Err(error) = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()
    {
        text::warn(&format!("cannot start {threads} threads, copying with one: {error}"));
        return 1;
    }
    threads
}

/// One copy, the last of which writes the file.
struct Step {
    src: Layout,
    fill: Option<ElementBytes>,
    column_major: bool,
    /// Bytes that it writes.
    bytes: usize,
}

/// The copies that make the file.
struct Steps {
    list: Vec<Step>,
    element_size: usize,
    /// What the header says: asked for, and not row-major at the same time.
    column_major: bool,
}

impl Steps {
    fn new(evaluation: &Evaluation, element_size: usize, order: Order) -> Result<Self, Error> {
        let result = &evaluation.layout;
        let column_major = order == Order::F && !Layout::column_major(result.shape())?.is_contiguous();
        let mut passes: Vec<Pass> = evaluation.passes.clone();
        if column_major && passes.last().is_some_and(|pass| pass.piece.is_some()) {
            // The last copy of the expression made its own shape row-major; the file wants another order.
            passes.push(Pass { src: result.clone(), fill: evaluation.fill.clone(), piece: None });
        }
        let last = passes.len() - 1;
        let step = |(i, pass): (usize, Pass)| {
            let bytes = pass.src.numel().checked_mul(element_size).filter(|&b| isize::try_from(b).is_ok());
            let bytes = bytes.ok_or(Error::Overflow { what: "the size of the result in bytes" })?;
            Ok(Step { src: pass.src, fill: pass.fill, column_major: column_major && i == last, bytes })
        };
        let list = passes.into_iter().enumerate().map(step).collect::<Result<_, Error>>()?;
        Ok(Steps { list, element_size, column_major })
    }

    fn output_bytes(&self) -> usize {
        self.list.last().map_or(0, |step| step.bytes)
    }

    /// The strategies of all copies, in order.
    fn strategy(&self, options: &CopyOptions) -> Result<String, Error> {
        let mut names = Vec::new();
        for step in self.list.iter().filter(|_| self.element_size > 0) {
            let shape = step.src.shape();
            let dst =
                if step.column_major { Layout::column_major(shape)? } else { Layout::row_major(shape)? };
            names.push(Plan::new(&step.src, &dst, self.element_size, options)?.strategy());
        }
        Ok(if names.is_empty() { "nothing".into() } else { names.join(" + ") })
    }

    /// Distinct source bytes that each copy reads plus the bytes that it writes.
    fn bytes_moved(&self) -> u64 {
        self.list
            .iter()
            .map(|step| step.src.lines(self.element_size, 64).bytes_used + step.bytes as u64)
            .sum()
    }
}

/// What a run needs.
struct Work<'a> {
    input: &'a Input,
    steps: &'a Steps,
    options: &'a CopyOptions,
    limit: usize,
    verify: bool,
}

/// How it went.
struct Done {
    /// Time of the copies.
    copying: Duration,
    /// Whether some copy went through a temporary file.
    staged: bool,
}

impl Work<'_> {
    fn run(&self, file: &mut Output, progress: &Progress) -> Result<Done, Failure> {
        let folder = file.folder().to_path_buf();
        let limit = self.limit.max(LEAST_MEMORY_BYTES);
        // Intermediate results take their share of the limit.
        let between = if self.steps.list.len() > 1 { limit / 4 } else { 0 };
        let limits = Limits {
            bytes: limit - 2 * between,
            read_bytes: if self.input.data().len() > memory::all_bytes() / 2 { 64 << 10 } else { 4 << 10 },
            around_bytes: 64 << 10,
        };
        let room = Room { limits, folder: &folder };
        let mut done = Done { copying: Duration::ZERO, staged: false };
        let mut earlier: Option<Between> = None;
        let last = self.steps.list.len() - 1;
        for (i, step) in self.steps.list.iter().enumerate() {
            let source = earlier.as_ref().map_or(Source::File(self.input), Source::Between);
            if i == last {
                self.step(step, source, Sink::File(file), &room, progress, &mut done)?;
                break;
            }
            let mut next = Between::new(step.bytes, between, &folder)?;
            self.step(step, source, Sink::Between(&mut next), &room, progress, &mut done)?;
            earlier = Some(next);
        }
        Ok(done)
    }

    fn step(
        &self,
        step: &Step,
        source: Source<'_>,
        mut sink: Sink<'_>,
        room: &Room<'_>,
        progress: &Progress,
        done: &mut Done,
    ) -> Result<(), Failure> {
        let job = Job {
            layout: &step.src,
            element_size: self.steps.element_size,
            fill: step.fill.as_deref(),
            column_major: step.column_major,
        };
        let copy = |from: &BytesView<'_>, to: &mut BytesViewMut<'_>| copy_bytes(from, to, self.options);
        let mut report = |bytes| progress.add(bytes);
        let start = Instant::now();
        let ran = npy::run(job, source, sink.reborrow(), &room.limits, room.folder, &copy, &mut report)?;
        done.copying += start.elapsed();
        done.staged |= ran.staged;
        if self.verify
            && let Some(index) = npy::verify(job, source, sink, &room.limits)?
        {
            let what = "the copy differs from the view at index";
            let help = "nothing was written: please report it with this command";
            return Err(Failure::new("verify", format!("{what} {}, {help}", tuple(&index))));
        }
        Ok(())
    }
}

/// Memory and disk that a copy may use beside its two sides.
struct Room<'a> {
    limits: Limits,
    folder: &'a Path,
}

/// A bar on a terminal, once the work takes longer than a second.
struct Progress {
    bar: ProgressBar,
    start: Instant,
    total: u64,
}

impl Progress {
    fn new(total: u64) -> Self {
        Progress { bar: ProgressBar::hidden(), start: Instant::now(), total }
    }

    fn add(&self, bytes: usize) {
        self.bar.inc(bytes as u64);
        if self.bar.is_hidden()
            && self.start.elapsed() > Duration::from_secs(1)
            && std::io::stderr().is_terminal()
        {
            self.bar.set_length(self.total);
            if let Ok(style) =
                ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
            {
                self.bar.set_style(style);
            }
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// What is printed at the end.
struct Summary<'a> {
    args: &'a Args,
    shape: &'a [usize],
    strategy: String,
    bytes_moved: u64,
    done: Done,
    sync: Duration,
}

impl Summary<'_> {
    fn text(&self) -> String {
        let copying = self.done.copying;
        let gb_per_s = self.bytes_moved as f64 / copying.as_secs_f64().max(1e-9) / 1e9;
        if self.args.json {
            let value = json!({
                "output": self.args.output.display().to_string(),
                "shape": self.shape,
                "strategy": self.strategy,
                "staged": self.done.staged,
                "bytes_moved": self.bytes_moved,
                "copy_ns": copying.as_nanos() as u64,
                "sync_ns": self.sync.as_nanos() as u64,
                "gb_per_s": gb_per_s,
                "peak_resident_bytes": memory::peak_resident_bytes(),
                "verified": self.args.verify,
            });
            return text::json_text(&value);
        }
        format!(
            "{}: shape {}, {}{}, {} moved in {:.3} s, {gb_per_s:.2} GB/s; {:.3} s to disk{}\n",
            self.args.output.display(),
            tuple(self.shape),
            self.strategy,
            if self.done.staged { " through a temporary file" } else { "" },
            counted(self.bytes_moved, "byte"),
            copying.as_secs_f64(),
            self.sync.as_secs_f64(),
            if self.args.verify { ", verified" } else { "" },
        )
    }
}

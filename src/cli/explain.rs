//! `restride explain`: what a view is, which pieces copy and why, and what the copy costs.

use super::failure::{check_bytes, read_caches, read_dtype, read_expr, read_shape, tuple};
use super::model::ModelArgs;
use super::{Failure, draw, text, tune_profile};
use crate::cachesim;
use crate::dtype::{ByteOrder, Dtype, ElementBytes};
use crate::error::words::counted;
use crate::eval::{Evaluation, Pass, evaluate};
use crate::machine::caches::CacheSpec;
use crate::machine::topology::Topology;
use crate::npy::Input;
use crate::{CopyOptions, Layout, Plan, Tuning};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Shows what a view is, which pieces copy and why, and what the copy costs.
#[derive(clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  restride explain --shape 3,4 '.T.reshape(12)'\n  \
                  restride explain photo.npy '.permute(2, 0, 1)' --model --json"
)]
pub(crate) struct Args {
    /// The `.npy` file; with --shape the expression
    #[arg(value_name = "FILE.npy")]
    first: Option<String>,
    /// The view expression, as in '.T[:, ::2]'; empty for the array as it is
    #[arg(value_name = "EXPR")]
    second: Option<String>,
    /// Extents of a row-major buffer instead of a file, as in 3,4; "" is rank 0
    #[arg(long, allow_hyphen_values = true)]
    shape: Option<String>,
    /// Element type with --shape: bool, i8 ... f64, c64, c128, bytesN [default: f32]
    #[arg(long, requires = "shape")]
    dtype: Option<String>,
    /// Model the cache misses of reading in order and of the plan
    #[arg(long)]
    model: bool,
    /// Caches for --model and the plan instead of this machine's, as in L1d=48K/12/64,L2=2M/16/64
    #[arg(long)]
    caches: Option<String>,
    #[command(flatten)]
    model_args: ModelArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Turns a pad value, as written, into the bytes of one element.
type Encode = dyn Fn(&str) -> Result<ElementBytes, crate::Error>;

/// What the expression is applied to.
struct Subject {
    layout: Layout,
    len: usize,
    element_size: usize,
    dtype: String,
    encode: Box<Encode>,
}

fn subject(args: &Args) -> Result<(Subject, String), Failure> {
    if let Some(shape) = &args.shape {
        if args.second.is_some() {
            return Err(Failure::usage(
                "usage",
                "with --shape give only the expression, no file: write extents with commas, as in --shape 3,4, and an expression with spaces in quotes",
            ));
        }
        let shape = read_shape(shape)?;
        let dtype = args.dtype.as_deref().map_or(Ok(Dtype::F32), read_dtype)?;
        let layout = Layout::row_major(&shape)?;
        check_bytes(&layout, dtype.size_bytes())?;
        let subject = Subject {
            len: layout.numel(),
            layout,
            element_size: dtype.size_bytes(),
            dtype: dtype.to_string(),
            encode: Box::new(move |text| dtype.encode(text, ByteOrder::Little)),
        };
        return Ok((subject, args.first.clone().unwrap_or_default()));
    }
    let Some(path) = &args.first else {
        return Err(Failure::usage("usage", "name a .npy file, or give --shape (see --help)"));
    };
    let input = Input::open(Path::new(path))?;
    let header = input.header();
    let element = header.element;
    let layout = match header.fortran_order {
        true => Layout::column_major(&header.shape)?,
        false => Layout::row_major(&header.shape)?,
    };
    let subject = Subject {
        len: layout.numel(),
        layout,
        element_size: header.element_size(),
        dtype: String::from_utf8_lossy(&header.descr).into_owned(),
        encode: Box::new(move |text| element.dtype.encode(text, element.order)),
    };
    Ok((subject, args.second.clone().unwrap_or_default()))
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let caches = args.caches.as_deref().map(read_caches).transpose()?;
    let (subject, expression) = subject(&args)?;
    let expr = read_expr(&expression)?;
    let evaluation = evaluate(&subject.layout, subject.len, &expr, &*subject.encode)
        .map_err(|refusal| Failure::refused(&expression, &refusal))?;
    let model = args.model.then(|| args.model_args.options()).transpose()?;
    let explained = Explained::new(&evaluation, &subject, caches.as_deref(), model.as_ref())?;
    text::print(&match args.json {
        true => text::json_text(&explained.json(&subject)),
        false => explained.text(&subject, &expression, &expr),
    })
}

/// A pass with what is known of its copy.
struct ExplainedPass<'a> {
    pass: &'a Pass,
    plan: Plan,
    tuning: Tuning,
    lines: crate::layout::Lines,
    model: Option<Value>,
}

struct Explained<'a> {
    evaluation: &'a Evaluation,
    passes: Vec<ExplainedPass<'a>>,
    line_bytes: usize,
}

impl<'a> Explained<'a> {
    fn new(
        evaluation: &'a Evaluation,
        subject: &Subject,
        caches: Option<&[CacheSpec]>,
        model: Option<&cachesim::Options>,
    ) -> Result<Self, Failure> {
        let topology = Topology::host();
        let line_bytes = caches.and_then(<[_]>::first).map_or(topology.line_bytes().bytes, |c| c.line_bytes);
        // Values found on this machine say nothing about a machine with other caches.
        let tuning = match caches {
            Some(caches) => {
                let level = |n| caches.iter().find(|c| c.level == n).map_or(0, |c| c.bytes);
                Tuning::for_caches(level(1), level(2), level(3))
            }
            None => *Tuning::machine(),
        };
        let options = CopyOptions::default().tuning(tuning);
        let modelled: Vec<cachesim::CacheSpec> = match caches {
            Some(caches) => caches.iter().map(Into::into).collect(),
            None => topology.cache_specs().iter().map(Into::into).collect(),
        };
        let mut passes = Vec::new();
        for pass in &evaluation.passes {
            let dst = Layout::row_major(pass.src.shape())?;
            check_bytes(&dst, subject.element_size)?;
            let plan = Plan::new(&pass.src, &dst, subject.element_size, &options)?;
            let lines = pass.src.lines(subject.element_size, line_bytes);
            let model = match model {
                Some(options) => Some(model_json(&pass.src, &dst, &plan, &modelled, options)?),
                None => None,
            };
            passes.push(ExplainedPass { pass, plan, tuning, lines, model });
        }
        Ok(Self { evaluation, passes, line_bytes })
    }

    fn json(&self, subject: &Subject) -> Value {
        let view = &self.evaluation.layout;
        let passes: Vec<Value> = self.passes.iter().map(ExplainedPass::json).collect();
        let steps: Vec<Value> = self.evaluation.steps.iter().map(step_json).collect();
        let mut value = json!({
            "shape": view.shape(),
            "strides": view.strides(),
            "offset": offset(view),
            "numel": view.numel(),
            "contiguous": view.is_contiguous(),
            "writable": view.is_writable(),
            "padded": view.is_padded(),
            "dtype": subject.dtype,
            "element_size": subject.element_size,
            "copies": self.evaluation.copies,
            "steps": steps,
            "plan": passes[0]["plan"],
            "lines": passes[0]["lines"],
        });
        if let Some(model) = &self.passes[0].model {
            value["model"] = model.clone();
        }
        value["passes"] = Value::Array(passes);
        value
    }

    fn text(&self, subject: &Subject, text: &str, expr: &crate::Expr) -> String {
        let mut out = String::new();
        let view = &self.evaluation.layout;
        let bytes = view.numel() as u128 * subject.element_size as u128;
        let name = if text.trim().is_empty() { "the view as it is" } else { text.trim() };
        let _ = writeln!(out, "{name}");
        let _ = writeln!(out, "  {}", describe(view));
        let _ = writeln!(
            out,
            "  {} of {}, {}",
            counted(view.numel(), "element"),
            subject.dtype,
            counted(bytes, "byte")
        );
        let yes = |yes: bool, what: &str| format!("{}{what}", if yes { "" } else { "not " });
        let mut facts = vec![yes(view.is_contiguous(), "contiguous")];
        facts.push(match (view.is_padded(), view.self_overlap()) {
            (true, _) => "not writable (padded positions have no memory)".to_owned(),
            (_, Some(Some(axis))) => format!("not writable (axis {axis} repeats the same memory)"),
            (_, Some(None)) => "not writable (positions share memory)".to_owned(),
            _ => "writable".to_owned(),
        });
        facts.push(match self.evaluation.copies {
            0 => "a view: the expression copies nothing".to_owned(),
            n => format!("the expression needs {}", counted(n, "copy")),
        });
        let _ = writeln!(out, "  {}", facts.join(", "));
        if !expr.pieces().is_empty() {
            let _ = writeln!(out, "\nstep by step");
            let width = expr.pieces().iter().map(|p| expr.piece_text(p).chars().count()).max().unwrap_or(0);
            let _ = writeln!(out, "  {:width$}  {}", "", describe(&subject.layout));
            for (step, piece) in self.evaluation.steps.iter().zip(expr.pieces()) {
                let what = match &step.copied {
                    None => "view".to_owned(),
                    Some(crate::Error::NeedsCopy { reason, .. }) => format!("COPY: {reason}"),
                    Some(error) => format!("COPY: {error}"),
                };
                let _ =
                    writeln!(out, "  {:width$}  {}  {what}", expr.piece_text(piece), describe(&step.layout));
            }
        }
        let count = self.passes.len();
        let mut len = subject.len;
        for (number, explained) in self.passes.iter().enumerate() {
            let why = match explained.pass.piece {
                Some(piece) => format!("for `{}`", expr.piece_text(&expr.pieces()[piece])),
                None => "to make the result contiguous".to_owned(),
            };
            let _ = writeln!(out, "\npass {} of {count}, {why}", number + 1);
            out.push_str(&explained.text(subject, len, self.line_bytes));
            len = explained.pass.src.numel();
        }
        out
    }
}

impl ExplainedPass<'_> {
    fn json(&self) -> Value {
        let src = &self.pass.src;
        let mut value = json!({
            "shape": src.shape(),
            "strides": src.strides(),
            "offset": offset(src),
            "padded": src.is_padded(),
            "plan": plan_json(&self.plan),
            "lines": {
                "line_bytes": self.lines.line_bytes,
                "touched": self.lines.touched,
                "bytes_used": self.lines.bytes_used,
                "used_in_full": self.lines.used_in_full,
            },
        });
        if let Some(element) = self.element() {
            value["plan"]["tuning"] = tune_profile::values_json(&self.tuning, element);
        }
        if let Some(model) = &self.model {
            value["model"] = model.clone();
        }
        value
    }

    /// Bytes of the elements that the first piece of the plan moves; `None` where there is none.
    fn element(&self) -> Option<usize> {
        self.plan.pieces().first().map(|piece| piece.element)
    }

    fn text(&self, subject: &Subject, len: usize, line_bytes: usize) -> String {
        let mut out = String::new();
        let lines = &self.lines;
        let held = lines.touched as u128 * lines.line_bytes as u128;
        let share = if held == 0 { 100.0 } else { lines.bytes_used as f64 / held as f64 * 100.0 };
        let _ = writeln!(out, "  reads   {}", describe(&self.pass.src));
        let _ = writeln!(
            out,
            "  lines   {} of {}, {} of their {} used ({share:.0} %)",
            lines.touched,
            counted(lines.line_bytes, "byte"),
            lines.bytes_used,
            counted(held, "byte")
        );
        for (number, line) in self.plan.to_string().lines().enumerate() {
            let _ = writeln!(out, "  {}{line}", if number == 0 { "plan    " } else { "        " });
        }
        let _ = writeln!(out, "  why     {}", why(self.plan.strategy()));
        if let Some(element) = self.element() {
            for (number, line) in tune_profile::values_text(&self.tuning, element).lines().enumerate() {
                let _ = writeln!(out, "  {}{line}", if number == 0 { "values" } else { "      " });
            }
        }
        if let Some(model) = &self.model {
            out.push_str(&model_text(model));
        }
        let grid = draw::positions(&self.pass.src, "p");
        let buffer = draw::buffer(&self.pass.src, len, subject.element_size, line_bytes);
        if let Some(grid) = grid {
            let padded = if self.pass.src.is_padded() { ", p is padding" } else { "" };
            let _ = writeln!(out, "\n  buffer cell that each position reads{padded}");
            for line in grid.lines() {
                let _ = writeln!(out, "    {line}");
            }
        }
        if let Some(buffer) = buffer {
            let _ = writeln!(out, "\n  buffer, one row a cache line; · is never read, xn is read n times");
            for line in buffer.lines() {
                let _ = writeln!(out, "    {line}");
            }
        }
        out
    }
}

/// The model's report of the naive walk and of the plan.
fn model_json(
    src: &Layout,
    dst: &Layout,
    plan: &Plan,
    caches: &[cachesim::CacheSpec],
    options: &cachesim::Options,
) -> Result<Value, Failure> {
    let report = cachesim::model(src, dst, plan, caches, options)?;
    serde_json::to_value(report).map_err(|error| Failure::new("json", format!("cannot write JSON: {error}")))
}

fn model_text(model: &Value) -> String {
    let mut out = String::new();
    let of = |count: &Value, noun: &str| counted(count.as_u64().unwrap_or(0), noun);
    for walk in ["naive", "plan"] {
        let Some(levels) = model[walk]["levels"].as_object() else { continue };
        for (level, counts) in levels {
            let per_element = model[walk]["misses_per_element"][level].as_f64().unwrap_or(0.0);
            let _ = writeln!(
                out,
                "  model   {walk:5} {level:3}  {}, {} ({per_element:.3} per element)",
                of(&counts["accesses"], "access"),
                of(&counts["misses"], "miss")
            );
            if let Some(classes) = counts["classes"].as_object() {
                let classes: Vec<_> = classes.iter().map(|(name, count)| format!("{count} {name}")).collect();
                let _ = writeln!(out, "                     {}", classes.join(", "));
            }
            if let Some(write_backs) = counts["write_backs"].as_u64() {
                let _ = writeln!(out, "                     {} written back", counted(write_backs, "line"));
            }
        }
        if let Some(tlb) = model[walk]["tlb"].as_object() {
            let (accesses, misses) = (of(&tlb["accesses"], "access"), of(&tlb["misses"], "miss"));
            let _ = writeln!(out, "  model   {walk:5} TLB  {accesses}, {misses}");
        }
        if let Some(stores) = model[walk]["streaming"]["stores"].as_u64().filter(|&stores| stores > 0) {
            let (elements, bytes) =
                (counted(stores, "element"), of(&model[walk]["streaming"]["bytes"], "byte"));
            let _ = writeln!(out, "  model   {walk:5} streaming stores of {elements}, {bytes}");
        }
    }
    out
}

/// A plan for programs.
pub(super) fn plan_json(plan: &Plan) -> Value {
    let pieces: Vec<Value> = plan
        .pieces()
        .iter()
        .map(|piece| {
            json!({
                "strategy": piece.strategy.name(),
                "fill": piece.fill,
                "element_bytes": piece.element,
                "tile": [piece.rows.full(), piece.columns.full()],
                "streaming": piece.streaming,
                "staged": piece.staged,
                "slides": piece.slides,
                "bytes": piece.size(),
            })
        })
        .collect();
    json!({
        "strategy": plan.strategy(),
        "isa": plan.isa().name(),
        "threads": plan.threads(),
        "bytes": plan.bytes(),
        "pieces": pieces,
    })
}

fn step_json(step: &crate::eval::Step) -> Value {
    json!({
        "piece": step.piece,
        "shape": step.layout.shape(),
        "strides": step.layout.strides(),
        "offset": offset(&step.layout),
        "copied": step.copied.is_some(),
        "reason": step.copied.as_ref().map(ToString::to_string),
    })
}

/// The offset of an unpadded layout: that of a padded one may lie outside the buffer.
fn offset(layout: &Layout) -> Option<isize> {
    (!layout.is_padded()).then_some(layout.offset())
}

fn describe(layout: &Layout) -> String {
    let mut text = format!("shape {}  strides {}", tuple(layout.shape()), tuple(layout.strides()));
    match layout.mask() {
        None => {
            let _ = write!(text, "  offset {}", layout.offset());
        }
        Some(mask) if mask.is_nothing() => text.push_str("  all padding"),
        Some(mask) => match mask.as_box(layout.shape()) {
            Some(ranges) => {
                let ranges: Vec<String> = ranges.iter().map(|r| format!("{}:{}", r.start, r.end)).collect();
                let _ = write!(text, "  padded, memory behind [{}]", ranges.join(", "));
            }
            None => text.push_str("  padded, memory behind some windows"),
        },
    }
    text
}

/// Why a plan has its strategy, in one sentence.
fn why(strategy: &str) -> &'static str {
    match strategy {
        "nothing" => "the view has no elements",
        "run" => "both sides are one dense run of bytes, so it is a plain copy",
        "rows" => "both sides hold dense rows, so that each row is one plain copy",
        "bordered" => "dense rows of memory and the fill around them are written front to back, in one go",
        "splat" => {
            "along the destination's rows the source stays on one element, which is stored again and again"
        }
        "reverse" => "the source rows are dense but backwards, so that vectors are turned round in registers",
        "gather" => "the source's elements lie a fixed step apart, and are picked out of each line",
        "gather_tiled" => {
            "no source axis is dense; tiles use up the lines that neighbouring rows share before they leave the cache"
        }
        "deinterleave" => "a short dense source axis becomes planes, taken apart in registers",
        "interleave" => "a few source planes become a short dense axis, woven together in registers",
        "shuffle" => "small blocks of close elements are put together by byte permutes, several at once",
        "transpose" => {
            "source and destination are dense along different axes, so whole lines are turned in square blocks"
        }
        "scatter" => "the destination has no dense axis, so that each element is stored by itself",
        _ => "it fits the strides of both sides",
    }
}

//! `restride explain`: what a view is, which pieces copy and why, and what the copy costs.

mod show;

use super::failure::{check_bytes, read_caches, read_dtype, read_expr, read_shape};
use super::model::ModelArgs;
use super::{Failure, text, tune_profile};
use crate::cachesim;
use crate::dtype::{ByteOrder, Dtype, ElementBytes};
use crate::eval::{Evaluation, Pass, evaluate};
use crate::machine::caches::CacheSpec;
use crate::machine::topology::Topology;
use crate::npy::Input;
use crate::{CopyOptions, Layout, Plan, Tuning};
use serde_json::{Value, json};
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
    if path.starts_with(['.', '[']) && !Path::new(path).exists() && read_expr(path).is_ok() {
        return Err(Failure::usage(
            "usage",
            format!(
                "there is no file {path}: put a .npy file before the expression, or --shape as in --shape 3,4"
            ),
        ));
    }
    let input = Input::open(Path::new(path))?;
    let header = input.header();
    let element = header.element;
    let layout = header.layout()?;
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
                "ahead_bytes": piece.ahead,
                "squares_abreast": piece.abreast,
                "bytes": piece.size(),
            })
        })
        .collect();
    json!({
        "strategy": plan.strategy(),
        "isa": plan.isa().name(),
        "threads": plan.threads(),
        "part_bytes": plan.part_bytes(),
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

//! What `restride explain` says to people.

use super::{Explained, ExplainedPass, Subject};
use crate::cli::failure::tuple;
use crate::cli::{draw, tune_profile};
use crate::error::words::counted;
use crate::{Error, Expr, Layout};
use serde_json::Value;
use std::fmt::Write as _;

impl Explained<'_> {
    pub(super) fn text(&self, subject: &Subject, text: &str, expr: &Expr) -> String {
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
                    Some(Error::NeedsCopy { reason, .. }) => format!("COPY: {reason}"),
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
            let (stores, bytes) = (counted(stores, "store"), of(&model[walk]["streaming"]["bytes"], "byte"));
            let _ = writeln!(out, "  model   {walk:5} {stores} past the caches, of {bytes}");
        }
        if let Some(accesses) = model[walk]["own"]["accesses"].as_u64().filter(|&accesses| accesses > 0) {
            let (accesses, lines) = (counted(accesses, "access"), of(&model[walk]["own"]["lines"], "line"));
            let _ = writeln!(
                out,
                "  model   {walk:5} of these {accesses} to {lines} of tables and buffers of its own"
            );
        }
    }
    out
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

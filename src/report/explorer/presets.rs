//! The default set of views, fitted to the shape.

use super::{View, Views};
use crate::dtype::Dtype;
use crate::expr::Refusal;
use crate::layout::Layout;

/// Name, what to see, and expressions of which the first that fits the shape is taken.
type Preset = (&'static str, &'static str, Vec<String>);

fn presets(shape: &[usize]) -> Vec<Preset> {
    let s = |list: &[&str]| list.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>();
    let per_axis = |f: &dyn Fn(usize) -> String| shape.iter().map(|n| f(*n)).collect::<Vec<_>>().join(", ");
    let ndim = shape.len();
    let last = ndim.saturating_sub(1);
    let halves = shape.iter().rev().find(|n| **n % 2 == 0 && **n > 2).map(|n| n / 2);
    let numel: usize = shape.iter().product();
    let permute3 = if ndim >= 3 {
        let mut axes: Vec<String> = (0..ndim).map(|a| a.to_string()).collect();
        axes.rotate_right(1);
        vec![format!(".permute({})", axes.join(", "))]
    } else {
        halves.map(|h| format!(".reshape({}, 2, {h}).permute(2, 0, 1)", numel / 2 / h)).into_iter().collect()
    };
    let shrink = per_axis(&|n| match n {
        0 | 1 => format!("(0, {n})"),
        2 | 3 => format!("(1, {n})"),
        _ => format!("(1, {})", n - 1),
    });
    vec![
        (
            "contiguous",
            "The array as it lies in memory: reading along the rows walks through each line once, from its start to its end.",
            s(&[""]),
        ),
        (
            "reshape",
            "Another shape over the same order of elements: only the strides change.",
            s(&[".reshape(2, -1)", ".reshape(3, -1)", ".reshape(-1)"]),
        ),
        (
            "transpose",
            "The axes trade places, the memory does not: neighbours in a row now come from different lines, so each line is visited again and again.",
            if ndim >= 2 { s(&[".T"]) } else { vec![] },
        ),
        (
            "slice with step",
            "Every second element: the lines still come in whole, half of what they bring is not used.",
            s(&["[..., ::2]"]),
        ),
        (
            "shrink",
            "A box cut out of the middle: the offset moves to its first element, the strides stay.",
            if ndim > 0 { vec![format!(".shrink({shrink})")] } else { vec![] },
        ),
        (
            "broadcast",
            "One row (or element) read again and again: a stride of 0 does not move.",
            if ndim >= 2 {
                vec![format!(
                    "[0].broadcast_to({})",
                    shape.iter().map(|n| n.to_string()).collect::<Vec<_>>().join(", ")
                )]
            } else if ndim == 1 {
                vec![format!("[:1].broadcast_to({})", shape[0])]
            } else {
                s(&[".broadcast_to(4)"])
            },
        ),
        (
            "pad",
            "A border of fill values: those positions have no memory behind them and touch no line.",
            if ndim > 0 {
                vec![format!(".pad({}, value=0)", per_axis(&|_| "(1, 1)".into()))]
            } else {
                vec![]
            },
        ),
        (
            "reverse",
            "All axes backwards: it starts at the last element and walks with negative strides.",
            s(&[".flip()"]),
        ),
        (
            "sliding window",
            "Overlapping windows of the flat buffer: inner elements are read several times, without a copy.",
            s(&[".reshape(-1).unfold(0, 4, 2)", ".reshape(-1).unfold(0, 2, 1)"]),
        ),
        (
            "diagonal",
            "One step along two axes at once: the stride is their sum.",
            if last >= 1 { s(&[".diagonal()"]) } else { vec![] },
        ),
        (
            "3-D permute",
            "Three axes in another order: each panel is one slice along the first axis.",
            permute3,
        ),
    ]
}

/// The views of a buffer made with `shape`: those of `exprs`, or the default set when there are none.
///
/// `line_bytes` is chosen to suit the buffer when it is not given.
///
/// # Errors
///
/// The text of the refused expression (empty for the shape itself) and the reason.
///
/// ```
/// use restride::dtype::Dtype;
/// let views = restride::report::views_of(&[3, 4], &[".T".into()], Dtype::F32, None).unwrap();
/// assert_eq!(views.views[0].layout.view_at(1).unwrap(), Some(4));
/// ```
pub fn views_of(
    shape: &[usize],
    exprs: &[String],
    dtype: Dtype,
    line_bytes: Option<usize>,
) -> Result<Views, (String, Box<Refusal>)> {
    let element_size = dtype.size_bytes();
    let base = Layout::row_major(shape).map_err(|e| (String::new(), Box::new(Refusal::unread(e, (0, 0)))))?;
    let fitting = Views::fitting_line(base.numel() as u128 * element_size as u128);
    let line_bytes = line_bytes.unwrap_or(fitting).max(element_size).max(1);
    let mut views = Vec::new();
    let mut left_out = Vec::new();
    for expr in exprs {
        let name = if expr.is_empty() { "contiguous" } else { expr };
        views.extend(View::stages(name, "", &base, expr, dtype).map_err(|e| (expr.clone(), Box::new(e)))?);
    }
    if exprs.is_empty() {
        for (name, about, tries) in presets(shape) {
            let stages = tries
                .iter()
                .find_map(|e| View::stages(name, about, &base, e, dtype).ok().filter(|s| s.len() == 1));
            match stages {
                Some(v) => views.extend(v),
                None => left_out.push(format!("Left out for this shape: {name}.")),
            }
        }
    }
    Ok(Views { base, dtype, line_bytes, views, left_out })
}

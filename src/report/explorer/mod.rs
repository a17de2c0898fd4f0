//! One buffer, many views: what a view reads, position by position. Every number comes from [`Layout`];
//! the script of the page only highlights what is already there.

mod draw;
mod presets;

use super::page;
use crate::dtype::{ByteOrder, Dtype};
use crate::error::words::counted;
use crate::eval::evaluate;
use crate::expr::{Expr, Op, Refusal};
use crate::layout::Layout;
use maud::{Markup, html};

pub use presets::views_of;

/// Most positions of a view, and most buffer cells, that are drawn.
pub const MAX_CELLS: usize = 4096;
/// A cache line of every CPU that this tool meets often.
pub const LINE_BYTES: usize = 64;
/// A line for small drawings: buffers with fewer than four real lines show nothing of lines otherwise.
pub const SMALL_LINE_BYTES: usize = 16;

/// The buffer that all views read, and the views.
pub struct Views {
    /// The whole buffer as it lies in memory.
    pub base: Layout,
    /// The element type.
    pub dtype: Dtype,
    /// Bytes of one line.
    pub line_bytes: usize,
    /// What is drawn, in order.
    pub views: Vec<View>,
    /// Default views that this shape cannot show, a sentence each.
    pub left_out: Vec<String>,
}

/// One view.
pub struct View {
    /// Its name, such as "transpose".
    pub name: String,
    /// What to see in it.
    pub about: String,
    /// The expression.
    pub expr: String,
    /// What it is.
    pub layout: Layout,
    /// What padded positions read, as written.
    pub fill: String,
    /// Length of the buffer that it reads.
    pub buffer_len: usize,
}

/// One logical position.
pub(crate) struct Cell {
    /// Indices.
    pub at: Vec<usize>,
    /// Buffer index; `None` where padded.
    pub index: Option<usize>,
    /// Line of that element.
    pub line: Option<u128>,
}

impl View {
    /// What an expression reads from `base`: one view, or one for each copy that it needs and one of the result.
    ///
    /// # Errors
    ///
    /// What the expression refuses, and where.
    pub fn stages(
        name: &str,
        about: &str,
        base: &Layout,
        expr: &str,
        dtype: Dtype,
    ) -> Result<Vec<Self>, Refusal> {
        let parsed = Expr::parse_placed(expr)?;
        let encode = |value: &str| dtype.encode(value, ByteOrder::Little);
        let done = evaluate(base, base.numel(), &parsed, &encode)?;
        // The fill of a stage is the last pad before it, as it was written.
        let fill_before = |piece: usize| {
            let pads = parsed.pieces()[..piece].iter().rev().find_map(|p| match &p.op {
                Op::Pad { value, .. } => Some(value.clone()),
                _ => None,
            });
            pads.unwrap_or_else(|| "0".into())
        };
        let mut out = Vec::new();
        let mut buffer_len = base.numel();
        for (i, pass) in done.passes.iter().take(done.copies).enumerate() {
            let piece = pass.piece.unwrap_or(parsed.pieces().len());
            let from = parsed.pieces().get(piece).map_or(expr.len(), |p| p.span.start);
            out.push(Self {
                name: format!("{name}: copy {}", i + 1),
                about: format!(
                    "`{}` is no view of this memory, so what stands before it is copied to fresh memory in this order.",
                    parsed.pieces().get(piece).map_or("", |p| parsed.piece_text(p))
                ),
                expr: expr[..from].to_owned(),
                layout: pass.src.clone(),
                fill: fill_before(piece),
                buffer_len,
            });
            buffer_len = pass.src.numel();
        }
        let copied = done.copies > 0;
        out.push(Self {
            name: if copied { format!("{name}: result") } else { name.to_owned() },
            about: if copied {
                "The rest of the expression, over the fresh copy.".into()
            } else {
                about.to_owned()
            },
            expr: expr.to_owned(),
            layout: done.layout,
            fill: fill_before(parsed.pieces().len()),
            buffer_len,
        });
        Ok(out)
    }

    /// Why this view is not drawn; `None` when it is small enough.
    pub fn too_large(&self, element_size: usize, line_bytes: usize) -> Option<String> {
        let n = self.layout.numel();
        if n > MAX_CELLS {
            return Some(format!(
                "{} has {}, too many to draw (at most {MAX_CELLS}): use a smaller --shape of the same kind, or slice it, for example [:16, :16]",
                self.title(),
                counted(n, "position")
            ));
        }
        let per_line = (line_bytes / element_size.max(1)).max(1);
        let lines = self.layout.lines(element_size, line_bytes).touched as usize;
        (self.buffer_len > MAX_CELLS && lines * per_line > MAX_CELLS).then(|| {
            format!(
                "{} reads {} of a buffer of {}, too many to draw (at most {MAX_CELLS} cells): use a smaller --shape",
                self.title(),
                counted(lines, "line"),
                counted(self.buffer_len, "cell")
            )
        })
    }

    /// The expression as a person writes it, `x` in front.
    pub(crate) fn title(&self) -> String {
        format!("x{}", self.expr)
    }

    /// All positions in logical order.
    pub(crate) fn cells(&self, views: &Views) -> Vec<Cell> {
        let shape = self.layout.shape();
        let mut at = vec![0; shape.len()];
        let mut out = Vec::with_capacity(self.layout.numel());
        for k in 0..self.layout.numel() {
            let index = self.layout.view_at(k).ok().flatten();
            out.push(Cell { at: at.clone(), index, line: index.map(|m| views.line_of(m)) });
            for axis in (0..shape.len()).rev() {
                at[axis] += 1;
                if at[axis] < shape[axis] {
                    break;
                }
                at[axis] = 0;
            }
        }
        out
    }

    /// The address formula with names: `offset + i·stride`.
    pub(crate) fn formula(&self) -> String {
        let mut out = format!("buffer index = {}", self.layout.offset());
        for (axis, s) in self.layout.strides().iter().enumerate() {
            out.push_str(&format!(
                " {} i{}·{}",
                if *s < 0 { "−" } else { "+" },
                subscript(axis),
                s.unsigned_abs()
            ));
        }
        out
    }

    /// The formula of one position with all numbers filled in.
    pub(crate) fn filled(&self, cell: &Cell, views: &Views) -> String {
        let at = list(&cell.at);
        let Some(m) = cell.index else {
            return format!("{at} is padding: it reads the fill value {} and touches no memory", self.fill);
        };
        let mut out = format!("{at} → {}", self.layout.offset());
        for (i, s) in cell.at.iter().zip(self.layout.strides()) {
            out.push_str(&format!(" {} {i}·{}", if *s < 0 { "−" } else { "+" }, s.unsigned_abs()));
        }
        let byte = m as u128 * views.element_size() as u128;
        out.push_str(&format!(" = {m} · buffer[{m}] at byte {byte}, line {}", views.line_of(m)));
        out
    }
}

impl Views {
    /// Bytes of one element.
    pub fn element_size(&self) -> usize {
        self.dtype.size_bytes()
    }

    /// The line of a buffer index.
    pub(crate) fn line_of(&self, m: usize) -> u128 {
        m as u128 * self.element_size() as u128 / self.line_bytes as u128
    }

    /// The line size that makes a buffer of this many bytes worth drawing.
    pub fn fitting_line(buffer_bytes: u128) -> usize {
        if buffer_bytes >= 4 * LINE_BYTES as u128 { LINE_BYTES } else { SMALL_LINE_BYTES }
    }
}

/// `[1, 2]`.
pub(crate) fn list<T: std::fmt::Display>(values: &[T]) -> String {
    format!("[{}]", values.iter().map(T::to_string).collect::<Vec<_>>().join(", "))
}

fn subscript(n: usize) -> String {
    n.to_string().chars().filter_map(|c| char::from_u32(0x2080 + c.to_digit(10)?)).collect()
}

/// The section of a page: a guide, then one card a view.
pub(crate) fn section(views: &Views) -> Markup {
    let base = views.base.shape();
    html! {
        div.guide {
            p {
                "Every view below reads the same buffer: " (views.base.numel()) " elements of " (views.dtype.to_string()) " (" (views.element_size())
                " bytes each), made as an array of shape " (list(base)) ". Point at a cell, tap it, or step with the arrow keys: the memory "
                "cell that it reads lights up, and the cache line around it."
            }
            @if views.line_bytes != LINE_BYTES {
                p { "Lines are drawn with " (views.line_bytes) " bytes, so that a small buffer has several; real ones have " (LINE_BYTES) "." }
            }
            ul.swatches {
                li { svg viewBox="0 0 20 20" aria-hidden="true" { g.c.t1 { rect x="1" y="1" width="18" height="18" rx="3" {} } } "colour: the line that it lies in" }
                li { svg viewBox="0 0 20 20" aria-hidden="true" { g.c.never { rect x="1" y="1" width="18" height="18" rx="3" {} } } "never read" }
                li { svg viewBox="0 0 20 20" aria-hidden="true" { g.c.pad { rect x="1" y="1" width="18" height="18" rx="3" {} } } "padding: no memory behind it" }
                li { span.times { "×3" } "read three times" }
            }
            @for s in &views.left_out { p.note { (s) } }
        }
        div.views { @for (i, v) in views.views.iter().enumerate() { (draw::card(views, v, i)) } }
    }
}

/// The explorer as a page of its own.
pub fn explore(views: &Views, command: &str) -> String {
    let nav = html! { ul { @for (i, v) in views.views.iter().enumerate() { li { a href={ "#view-" (i) } { (v.name) } } } } };
    let body = html! {
        div.title {
            h1 { "One buffer, many views" }
            p { "A view is a way to read a buffer: shape, strides, offset. Changing the way to read costs nothing; the reading itself costs what the cache lines cost." }
        }
        section #views.views-page aria-label="Views" { (section(views)) }
        section aria-label="Made by" { h3 { "Made by" } p { code.block { (command) } } }
    };
    page::frame("One buffer, many views", nav, body, html! {})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn views(shape: &[usize], exprs: &[&str]) -> Views {
        let exprs: Vec<String> = exprs.iter().map(|e| (*e).to_owned()).collect();
        views_of(shape, &exprs, Dtype::F32, None).unwrap()
    }

    #[test]
    fn cell_one_two_reads_buffer_cell_six() {
        let v = views(&[3, 4], &[""]);
        let cells = v.views[0].cells(&v);
        let cell = cells.iter().find(|c| c.at == [1, 2]).unwrap();
        assert_eq!((cell.index, cell.line), (Some(6), Some(1)));
        assert_eq!(v.views[0].filled(cell, &v), "[1, 2] → 0 + 1·4 + 2·1 = 6 · buffer[6] at byte 24, line 1");
    }

    #[test]
    fn formulas_with_reversed_axes_and_padding() {
        let v = views(&[3, 4], &["[:, ::-1]", ".pad((1, 1), (0, 0), value=7)"]);
        let cells = v.views[0].cells(&v);
        assert_eq!(v.views[0].formula(), "buffer index = 3 + i₀·4 − i₁·1");
        assert!(v.views[0].filled(&cells[5], &v).starts_with("[1, 1] → 3 + 1·4 − 1·1 = 6 "));
        let cells = v.views[1].cells(&v);
        assert!(v.views[1].filled(&cells[0], &v).contains("fill value 7"));
        assert!(v.views[1].filled(&cells[4], &v).contains("= 0 "));
    }

    #[test]
    fn refuses_what_is_too_large_with_advice() {
        let base = Layout::row_major(&[5000]).unwrap();
        let view = |expr| View::stages("v", "", &base, expr, Dtype::F32).unwrap().remove(0);
        assert!(view("").too_large(4, 64).unwrap().contains("use a smaller --shape"));
        assert_eq!(view("[:16]").too_large(4, 64), None);
    }

    #[test]
    fn an_expression_that_copies_shows_both_sides_of_the_copy() {
        let v = views(&[3, 4], &[".T.reshape(12)[::5]"]);
        assert_eq!(
            v.views.iter().map(|v| v.expr.as_str()).collect::<Vec<_>>(),
            [".T", ".T.reshape(12)[::5]"]
        );
        assert_eq!(v.views[0].layout.view_at(1).unwrap(), Some(4));
        assert_eq!(v.views[1].layout.view_at(1).unwrap(), Some(5));
    }

    #[test]
    fn empty_and_scalar_views_are_drawn() {
        let v = views(&[0, 4], &["", ".T"]);
        assert!(explore(&v, "c").contains("reads nothing"));
        let v = views(&[], &[""]);
        assert!(explore(&v, "c").contains("buffer[0]"));
    }

    #[test]
    fn default_views_all_apply_to_three_by_four() {
        let v = views(&[3, 4], &[]);
        let names: Vec<&str> = v.views.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "contiguous",
                "reshape",
                "transpose",
                "slice with step",
                "shrink",
                "broadcast",
                "pad",
                "reverse",
                "sliding window",
                "diagonal",
                "3-D permute"
            ]
        );
        assert!(v.left_out.is_empty());
    }
}

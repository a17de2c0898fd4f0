//! Runs a view expression: which pieces are views, which copy, and what the copies are.
//!
//! A piece that is no view of the memory at hand (a reshape that merges what does not continue, a pad with
//! a second value) makes a pass: the view so far is copied to fresh contiguous memory, and the piece goes
//! on from there. The last pass makes the result contiguous; where the last copy of the expression did that
//! already, it is that copy.

use crate::dtype::ElementBytes;
use crate::expr::{Expr, Op, Refusal, second_fill};
use crate::layout::Layout;
use crate::view::BytesView;
use crate::{CopyOptions, Error, Tensor};

/// What one piece of an expression did.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// Which piece.
    pub piece: usize,
    /// The view after it, over its own buffer.
    pub layout: Layout,
    /// Why the view before it had to be copied first; `None` when the piece is a view.
    pub copied: Option<Error>,
}

/// One copy to fresh contiguous memory.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Pass {
    /// The view that is copied.
    pub src: Layout,
    /// The element that its padded positions read.
    pub fill: Option<ElementBytes>,
    /// The piece that needs the copy; `None` for the last pass that only makes the result contiguous.
    pub piece: Option<usize>,
}

/// An expression applied to a layout.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Evaluation {
    /// One entry per piece.
    pub steps: Vec<Step>,
    /// The copies in order; at least one. Each but the first reads the memory that the one before wrote.
    pub passes: Vec<Pass>,
    /// The resulting view over its own buffer (the source's, or the memory of the last copy).
    pub layout: Layout,
    /// The element that padded positions of the result read.
    pub fill: Option<ElementBytes>,
    /// Copies that the expression itself needed, without the last one that makes the result contiguous.
    pub copies: usize,
}

/// The state of a chain of pieces.
struct Chain {
    layout: Layout,
    buffer_len: usize,
    fill: Option<ElementBytes>,
}

impl Chain {
    /// One piece as a view.
    fn step(&self, op: &Op, encode: &dyn Fn(&str) -> Result<ElementBytes, Error>) -> Result<Chain, Error> {
        let layout = op.apply(&self.layout, self.buffer_len)?;
        let mut fill = self.fill.clone().filter(|_| self.layout.is_padded());
        if let Op::Pad { value, .. } = op {
            let value = encode(value)?;
            if op.new_fill(&layout, &self.layout).is_some() {
                match &fill {
                    Some(old) if *old != value => return Err(second_fill()),
                    _ => fill = Some(value),
                }
            }
        }
        Ok(Chain { fill: fill.filter(|_| layout.is_padded()), layout, buffer_len: self.buffer_len })
    }
}

/// Applies `expr` to `layout` over a buffer of `buffer_len` elements; `encode` turns a pad value, as written,
/// into the bytes of one element. Moves no data.
///
/// # Errors
/// The first refused piece with its place and the shape that it met.
pub fn evaluate(
    layout: &Layout,
    buffer_len: usize,
    expr: &Expr,
    encode: &dyn Fn(&str) -> Result<ElementBytes, Error>,
) -> Result<Evaluation, Refusal> {
    let mut chain = Chain { layout: layout.clone(), buffer_len, fill: None };
    let mut steps = Vec::with_capacity(expr.pieces().len());
    let mut passes = Vec::new();
    for (number, piece) in expr.pieces().iter().enumerate() {
        let refuse = |chain: &Chain, error| Refusal {
            error,
            span: (piece.span.start, piece.span.end),
            shape: Some(chain.layout.shape().to_vec()),
        };
        let mut copied = None;
        let next = match chain.step(&piece.op, encode) {
            Err(reason @ Error::NeedsCopy { .. }) if piece.op.may_copy() => {
                let fresh = Layout::row_major(chain.layout.shape()).map_err(|error| refuse(&chain, error))?;
                passes.push(Pass { src: chain.layout, fill: chain.fill, piece: Some(number) });
                chain = Chain { buffer_len: fresh.numel(), layout: fresh, fill: None };
                copied = Some(reason);
                chain.step(&piece.op, encode)
            }
            other => other,
        };
        chain = next.map_err(|error| refuse(&chain, error))?;
        steps.push(Step { piece: number, layout: chain.layout.clone(), copied });
    }
    let copies = passes.len();
    let finished = copies > 0 && chain.layout.is_contiguous() && chain.layout.numel() == chain.buffer_len;
    if !finished {
        passes.push(Pass { src: chain.layout.clone(), fill: chain.fill.clone(), piece: None });
    }
    Ok(Evaluation { steps, passes, layout: chain.layout, fill: chain.fill, copies })
}

/// Carries an evaluation out in memory: pass after pass, `data` first. The bytes of the result, contiguous.
///
/// # Errors
/// `Bounds` when the first pass leaves `data`; `Overflow`, `Alloc` or `Isa` when a copy cannot be made.
///
/// ```
/// use restride::dtype::{ByteOrder, Dtype};
/// use restride::{CopyOptions, Expr, Layout, eval};
/// let layout = Layout::row_major(&[2, 2])?;
/// let encode = |text: &str| Dtype::U8.encode(text, ByteOrder::Little);
/// let evaluation = eval::evaluate(&layout, 4, &Expr::parse(".T.reshape(4)")?, &encode).unwrap();
/// let result = eval::run(&evaluation, &[1, 2, 3, 4], 1, &CopyOptions::default())?;
/// assert_eq!(result.as_slice(), [1, 3, 2, 4]);
/// # Ok::<(), restride::Error>(())
/// ```
pub fn run(
    evaluation: &Evaluation,
    data: &[u8],
    element_size: usize,
    options: &CopyOptions,
) -> Result<Tensor<u8>, Error> {
    let mut memory: Option<Tensor<u8>> = None;
    for pass in &evaluation.passes {
        let from = memory.as_ref().map_or(data, Tensor::as_slice);
        let mut src = BytesView::new(from, pass.src.clone(), element_size)?;
        if let Some(fill) = &pass.fill {
            src = src.with_fill(fill)?;
        }
        memory = Some(src.materialize_with(options)?);
    }
    match memory {
        Some(tensor) => Ok(tensor),
        None => Tensor::from_slice(&[data.len()], data), // no evaluation is without a pass
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{ByteOrder, Dtype};

    fn eval(shape: &[usize], text: &str) -> Evaluation {
        let layout = Layout::row_major(shape).unwrap();
        let expr = Expr::parse(text).unwrap();
        evaluate(&layout, layout.numel(), &expr, &|v| Dtype::I16.encode(v, ByteOrder::Little)).unwrap()
    }

    #[test]
    fn the_last_copy_goes_straight_to_the_output() {
        for (text, copies, passes) in [
            ("", 0, 1),
            (".T", 0, 1),
            (".T.reshape(12)", 1, 1),
            (".T.reshape(12)[2:5]", 1, 2),
            (".T.flatten().reshape(3, 4)", 1, 1),
            (".T.contiguous().T", 1, 2),
            (".pad((1, 0), (0, 0), value=1).pad((1, 0), (0, 0), value=2)", 1, 2),
            (".pad((1, 0), (0, 0), value=1).pad((1, 0), (0, 0), value=1.0)", 0, 1),
            (".pad((1, 0), (0, 0)).as_strided((3,), (2,), 1)", 1, 2),
            (".reshape(12)", 0, 1),
        ] {
            let e = eval(&[3, 4], text);
            assert_eq!((e.copies, e.passes.len()), (copies, passes), "{text}");
        }
    }

    #[test]
    fn refusals_carry_the_shape_that_was_met() {
        let layout = Layout::row_major(&[3, 4]).unwrap();
        let expr = Expr::parse(".T.view(12)").unwrap();
        let refusal = evaluate(&layout, 12, &expr, &|v| Dtype::U8.encode(v, ByteOrder::Little)).unwrap_err();
        assert_eq!((refusal.span, refusal.error.kind()), ((2, 11), "needs_copy"));
        assert_eq!(refusal.shape, Some(vec![4, 3]));
        let expr = Expr::parse(".pad((1, 1), (0, 0), value=300)").unwrap();
        let refusal = evaluate(&layout, 12, &expr, &|v| Dtype::U8.encode(v, ByteOrder::Little)).unwrap_err();
        assert_eq!(refusal.error.kind(), "pad");
    }
}

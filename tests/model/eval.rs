//! Values under a chain of operations that may copy, on the model's side and on the library's.

use super::{Model, Refused};
use restride::Layout;
use restride::dtype::{ByteOrder, Dtype, ElementBytes};
use restride::eval::evaluate;
use restride::expr::{Expr, Op, Refusal};

/// The values of a view over a buffer that held 0, 1, 2, ... at the start.
pub struct Chain {
    pub model: Model,
    /// Copies so far.
    pub copies: usize,
    buffer: Vec<i64>,
    /// What padded positions read.
    fill: Option<i64>,
}

/// The element of a pad value, if it is one.
fn encode(text: &str) -> Result<ElementBytes, restride::Error> {
    Dtype::I64.encode(text, ByteOrder::Little)
}

fn decode(bytes: &ElementBytes) -> i64 {
    i64::from_le_bytes(bytes[..].try_into().unwrap())
}

impl Chain {
    pub fn new(shape: &[usize]) -> Self {
        let model = Model::row_major(shape);
        Self { buffer: (0..model.buffer_len as i64).collect(), model, copies: 0, fill: None }
    }

    pub fn values(&self) -> Vec<i64> {
        let fill = self.fill.unwrap_or(0);
        self.model.cells.iter().map(|cell| cell.map_or(fill, |i| self.buffer[i])).collect()
    }

    /// One operation; a refused one leaves everything as it was.
    pub fn apply(&mut self, op: &Op) -> Result<(), Refused> {
        let value = match op {
            Op::Pad { value, .. } => Some(value),
            _ => None,
        };
        let mut next = self.model.apply(op);
        let value = match (&next, value) {
            (Ok(_), Some(text)) => Some(decode(&encode(text).map_err(|error| error.kind())?)),
            _ => None,
        };
        // A second value needs a copy, where there are padded positions still.
        let adds = |next: &Model| value.is_some() && next.shape != self.model.shape;
        if next.as_ref().is_ok_and(|next| adds(next) && self.model.is_padded() && self.fill != value) {
            next = Err("needs_copy");
        }
        if next == Err("needs_copy") && !matches!(op, Op::View(_)) {
            let n = self.model.cells.len();
            let fresh = Model { buffer_len: n, ..Model::row_major(&self.model.shape) };
            next = Ok(fresh.apply(op)?);
            self.buffer = self.values();
            (self.model, self.fill, self.copies) = (fresh, None, self.copies + 1);
        }
        let next = next?;
        if value.is_some() && next.shape != self.model.shape {
            self.fill = value;
        }
        self.model = next;
        Ok(())
    }
}

/// What the library makes of an expression.
#[derive(Debug)]
pub struct Ran {
    pub shape: Vec<usize>,
    pub copies: usize,
    pub values: Vec<i64>,
}

/// Evaluates and runs the passes one position at a time.
pub fn run(shape: &[usize], expr: &Expr) -> Result<Ran, Refusal> {
    let layout = Layout::row_major(shape).unwrap();
    let evaluation = evaluate(&layout, layout.numel(), expr, &encode)?;
    let mut values: Vec<i64> = (0..layout.numel() as i64).collect();
    for pass in &evaluation.passes {
        let fill = pass.fill.as_ref().map_or(0, decode);
        let read = |k| pass.src.view_at(k).unwrap().map_or(fill, |i: usize| values[i]);
        values = (0..pass.src.numel()).map(read).collect();
    }
    Ok(Ran { shape: evaluation.layout.shape().to_vec(), copies: evaluation.copies, values })
}

//! A failed command: what it says, and the code it ends with.

use crate::bench::timing::PageMode;
use crate::expr::{Expr, Refusal};
use crate::machine::caches::{self, CacheSpec};
use crate::machine::topology::Topology;
use crate::{Error, Layout};
use serde_json::json;
use std::process::ExitCode;

/// One sentence for stderr, a kind for `--json`, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What happened, where, and what to do.
    pub message: String,
    /// Short stable name of the reason.
    pub kind: &'static str,
    /// 2 for a wrong command line, shape, dtype, cache list or expression syntax; 1 for the rest.
    pub code: u8,
    /// The refused piece of the expression and its byte range, where there is one.
    pub piece: Option<(String, (usize, usize))>,
    /// The shape that the piece met.
    pub shape: Option<Vec<usize>>,
    /// Further lines for people, such as the expression with a caret.
    pub details: Option<String>,
    /// Whether the command has printed its result all the same: then `--json` prints no second object.
    pub after_result: bool,
}

impl Failure {
    /// Anything that is not the command line's fault: exit code 1.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            kind,
            code: 1,
            piece: None,
            shape: None,
            details: None,
            after_result: false,
        }
    }

    /// A wrong command line, shape, dtype or cache list: exit code 2.
    pub fn usage(kind: &'static str, message: impl Into<String>) -> Self {
        Self { code: 2, ..Self::new(kind, message) }
    }

    /// A result that was printed and is bad news: exit code 1.
    pub fn after_result(kind: &'static str, message: impl Into<String>) -> Self {
        Self { after_result: true, ..Self::new(kind, message) }
    }

    /// A refused expression, with a caret under the piece.
    pub fn refused(text: &str, refusal: &Refusal) -> Self {
        let (from, to) = refusal.span;
        let piece = text.get(from..to).unwrap_or_default();
        let kind = refusal.error.kind();
        let met = match &refusal.shape {
            Some(shape) => format!(" (it met shape {})", tuple(shape)),
            None => String::new(),
        };
        let message = match &refusal.error {
            Error::Syntax { reason, .. } => {
                format!("cannot read the expression at column {}: {reason}", from + 1)
            }
            error => format!("`{piece}` is refused: {error}{met}"),
        };
        Self {
            message,
            kind,
            code: if kind == "syntax" { 2 } else { 1 },
            piece: Some((piece.to_owned(), refusal.span)),
            shape: refusal.shape.clone(),
            details: Some(refusal.caret(text)),
            after_result: false,
        }
    }

    /// Prints the failure: a sentence on stderr, with `--json` an object on stdout too.
    pub fn report(&self, json: bool) -> ExitCode {
        super::text::say(&format!("restride: {}", self.message));
        if let Some(details) = &self.details {
            super::text::say(&indent(details));
        }
        if json && !self.after_result {
            let (piece, span) = match &self.piece {
                Some((piece, (from, to))) => (json!(piece), json!([from, to])),
                None => (json!(null), json!(null)),
            };
            let error = json!({
                "kind": self.kind, "piece": piece, "span": span, "shape": self.shape, "message": self.message,
            });
            // A closed pipe loses nothing that stderr has not said.
            let _ = super::text::print(&super::text::json_text(&json!({ "error": error })));
        }
        ExitCode::from(self.code)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = if error.kind() == "syntax" { 2 } else { 1 };
        Self { code, ..Self::new(error.kind(), error.to_string()) }
    }
}

impl From<crate::npy::NpyError> for Failure {
    fn from(error: crate::npy::NpyError) -> Self {
        Self::new(error.kind(), error.to_string())
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// A shape as Python writes it: `(3, 4)`, `(3,)`, `()`.
pub(crate) fn tuple<T: std::fmt::Display>(items: &[T]) -> String {
    match items {
        [one] => format!("({one},)"),
        items => format!("({})", items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Reads an expression, a refusal shown with its caret.
pub(crate) fn read_expr(text: &str) -> Result<Expr, Failure> {
    Expr::parse_placed(text).map_err(|refusal| Failure::refused(text, &refusal))
}

/// Reads `--shape 3,4`; the empty text is rank 0.
pub(crate) fn read_shape(text: &str) -> Result<Vec<usize>, Failure> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let extent = |item: &str| {
        item.trim().parse::<usize>().map_err(|_| {
            Failure::usage(
                "shape",
                format!("--shape {text:?}: {item:?} is no extent: list extents as in 3,4"),
            )
        })
    };
    text.split(',').map(extent).collect()
}

/// Most threads that are started: more are a slip.
const MAX_THREADS: usize = 1024;

/// Reads `--threads 4` or `--threads all`, the physical cores allowed to the process; the same rule for
/// every command.
pub(crate) fn read_threads(text: &str) -> Result<usize, String> {
    match (text, text.parse::<usize>()) {
        ("all", _) => Ok(Topology::host().default_threads()),
        (_, Ok(threads @ 1..=MAX_THREADS)) => Ok(threads),
        _ => Err(format!("write a number from 1 to {MAX_THREADS}, or all for every core")),
    }
}

/// Reads a count of which none makes no sense.
pub(crate) fn read_positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "write a whole number of at least 1".to_owned())
}

/// Reads `--dtype f32`.
pub(crate) fn read_dtype(text: &str) -> Result<crate::dtype::Dtype, Failure> {
    text.parse()
        .map_err(|error: crate::dtype::UnknownDtype| Failure::usage("dtype", format!("--dtype: {error}")))
}

/// Reads `--pages 4k` or `--pages huge`.
pub(crate) fn page_mode(text: &str) -> Result<PageMode, Failure> {
    match text {
        "4k" => Ok(PageMode::Small),
        "huge" => Ok(PageMode::Huge),
        _ => Err(Failure::usage("pages", format!("--pages {text}: write 4k or huge"))),
    }
}

/// Reads `--caches L1d=48K/12/64,...`.
pub(crate) fn read_caches(text: &str) -> Result<Vec<CacheSpec>, Failure> {
    caches::parse(text).map_err(|error| Failure::usage("caches", format!("--caches: {error}")))
}

/// Refuses a view whose elements, all together, pass the address space (rules L1 and L10).
pub(crate) fn check_bytes(layout: &Layout, element_size: usize) -> Result<(), Failure> {
    let nonzero = layout.shape().iter().filter(|&&extent| extent != 0);
    let bytes = nonzero.copied().try_fold(element_size, usize::checked_mul);
    match bytes {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(()),
        _ => Err(Error::Overflow { what: "the size in bytes" }.into()),
    }
}

//! View expressions: what one would write after `x` in Python, as operations on a layout.
//!
//! ```
//! use restride::{Expr, Layout};
//! let expr = Expr::parse(".T[:, ::2].reshape(2, -1)")?;
//! assert_eq!(expr.pieces().len(), 3);
//! assert_eq!(Layout::row_major(&[3, 4])?.apply(".T[:, ::2]")?.strides(), [1, 8]);
//! # Ok::<(), restride::Error>(())
//! ```

mod lower;
mod parse;

use crate::Error;
use crate::layout::{Index, Layout};
use std::ops::Range;

/// One operation of an expression, its arguments as written (axes still Python's, widths unchecked).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Op {
    /// `[...]`
    Index(Vec<Index>),
    /// `.T`
    T,
    /// `.mT`
    Mt,
    /// `.permute(...)`
    Permute(Vec<isize>),
    /// `.transpose(a, b)`, `.swapaxes(a, b)`
    Transpose(isize, isize),
    /// `.moveaxis(source, destination)`
    Moveaxis(Vec<isize>, Vec<isize>),
    /// `.reshape(...)`: copies where no view expresses it
    Reshape(Vec<isize>),
    /// `.view(...)`: refuses where no view expresses it
    View(Vec<isize>),
    /// `.flatten()`
    Flatten,
    /// `.contiguous()`
    Contiguous,
    /// `.broadcast_to(...)`
    BroadcastTo(Vec<isize>),
    /// `.expand(...)`
    Expand(Vec<isize>),
    /// `.unsqueeze(axis)`
    Unsqueeze(isize),
    /// `.squeeze()`, `.squeeze(axes)`
    Squeeze(Option<Vec<isize>>),
    /// `.flip()`, `.flip(axes)`
    Flip(Option<Vec<isize>>),
    /// `.pad((before, after), ..., value=0)`
    Pad {
        /// One pair per axis.
        widths: Vec<(isize, isize)>,
        /// The value as written, to be encoded for the element type.
        value: String,
    },
    /// `.shrink((from, to), ...)`
    Shrink(Vec<(isize, isize)>),
    /// `.unfold(axis, size, step)`
    Unfold(isize, isize, isize),
    /// `.diagonal(offset, axis1, axis2)`
    Diagonal(isize, isize, isize),
    /// `.as_strided(shape, strides, offset)`
    AsStrided {
        /// Extents.
        shape: Vec<isize>,
        /// Strides in elements.
        strides: Vec<isize>,
        /// Absolute offset in elements.
        offset: isize,
    },
    /// What can be read but is refused whatever it meets: an index list, a number beyond 64 bits.
    Refused(Error),
}

/// An operation with its place in the text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Piece {
    /// What it does.
    pub op: Op,
    /// Its byte range in the expression.
    pub span: Range<usize>,
}

/// A view expression, read.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    text: String,
    pieces: Vec<Piece>,
}

/// What padded positions read before an expression is applied.
#[derive(Debug, Clone, Copy)]
pub enum Fill<'a> {
    /// Nothing is padded, or nobody asked.
    None,
    /// The bytes of one element.
    Bytes(&'a [u8]),
}

/// A refused expression: which piece, what shape it met, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Why.
    pub error: Error,
    /// Byte range of the refused piece.
    pub span: (usize, usize),
    /// The shape that the piece met; `None` when the text could not be read.
    pub shape: Option<Vec<usize>>,
}

impl Refusal {
    /// A refusal of text that could not be read; `error` names the place itself where it is `Syntax`.
    pub fn unread(error: Error, span: (usize, usize)) -> Self {
        let span = if let Error::Syntax { span, .. } = &error { *span } else { span };
        Self { error, span, shape: None }
    }

    /// The expression with a caret line under the refused piece: two lines.
    pub fn caret(&self, text: &str) -> String {
        // A tab keeps its width under the text, everything else is one column.
        let (from, to) = (self.span.0.min(text.len()), self.span.1.min(text.len()));
        let pad =
            |part: &str| -> String { part.chars().map(|c| if c == '\t' { '\t' } else { ' ' }).collect() };
        let marks = text[from..to].chars().count().max(1);
        format!("{text}\n{}{}", pad(&text[..from]), "^".repeat(marks))
    }
}

/// The error of a pad with a second fill value.
pub(crate) fn second_fill() -> Error {
    Error::NeedsCopy {
        axes: [].into(),
        reason: "the view is already padded with another value, and a view has one fill value".into(),
    }
}

/// Checked pairs of a pad or shrink.
fn pairs(
    given: &[(isize, isize)],
    refuse: impl Fn((isize, isize), usize) -> Error,
) -> Result<Vec<(usize, usize)>, Error> {
    let convert =
        |(axis, &pair): (usize, &(isize, isize))| match (usize::try_from(pair.0), usize::try_from(pair.1)) {
            (Ok(a), Ok(b)) => Ok((a, b)),
            _ => Err(refuse(pair, axis)),
        };
    given.iter().enumerate().map(convert).collect()
}

impl Op {
    /// The layout that this operation makes of `layout`, over a buffer of `buffer_len` elements; the fill
    /// value of a pad is the caller's to keep.
    ///
    /// # Errors
    /// What the operation refuses; `NeedsCopy` where the result is no view.
    pub fn apply(&self, layout: &Layout, buffer_len: usize) -> Result<Layout, Error> {
        match self {
            Self::Refused(error) => Err(error.clone()),
            Self::Index(items) => layout.slice(items),
            Self::T => layout.t(),
            Self::Mt => layout.mt(),
            Self::Permute(axes) => layout.permute(axes),
            Self::Transpose(a, b) => layout.transpose(*a, *b),
            Self::Moveaxis(from, to) => layout.moveaxis(from, to),
            Self::Reshape(sizes) | Self::View(sizes) => layout.reshape(sizes),
            Self::Flatten => layout.flatten(),
            Self::Contiguous if layout.is_contiguous() => Ok(layout.clone()),
            Self::Contiguous => {
                let reason = "the view is not contiguous".into();
                Err(Error::NeedsCopy { axes: [].into(), reason })
            }
            Self::BroadcastTo(sizes) => {
                let shape = extents(sizes, |reason| Error::Broadcast {
                    from: layout.shape().into(),
                    to: sizes.as_slice().into(),
                    reason,
                })?;
                layout.broadcast_to(&shape)
            }
            Self::Expand(sizes) => layout.expand(sizes),
            Self::Unsqueeze(axis) => layout.unsqueeze(*axis),
            Self::Squeeze(axes) => layout.squeeze(axes.as_deref()),
            // An empty list of axes, as opposed to none, flips nothing.
            Self::Flip(Some(axes)) if axes.is_empty() => Ok(layout.clone()),
            Self::Flip(axes) => layout.flip(axes.as_deref().unwrap_or_default()),
            Self::Pad { widths, .. } => {
                let widths = pairs(widths, |pair, axis| Error::Pad {
                    reason: format!(
                        "pad width {pair:?} of axis {axis} is negative: use .shrink or a slice to crop"
                    ),
                })?;
                layout.pad(&widths)
            }
            Self::Shrink(ranges) => {
                let ranges = pairs(ranges, |pair, axis| Error::Shrink {
                    reason: format!("range {pair:?} of axis {axis} is negative: count from the front"),
                })?;
                layout.shrink(&ranges)
            }
            Self::Unfold(axis, size, step) => layout.unfold(*axis, *size, *step),
            Self::Diagonal(offset, a, b) => layout.diagonal(*offset, *a, *b),
            Self::AsStrided { shape, strides, offset } => {
                let shape = extents(shape, |reason| Error::Shape {
                    from: layout.shape().into(),
                    to: shape[..].into(),
                    reason,
                })?;
                layout.as_strided(&shape, strides, *offset, buffer_len)
            }
        }
    }

    /// Whether a copy may take the place of a refusal with `NeedsCopy`: everything but `view`.
    pub(crate) fn may_copy(&self) -> bool {
        !matches!(self, Self::View(_))
    }

    /// The value of a pad that adds positions to `layout`.
    pub(crate) fn new_fill(&self, padded: &Layout, before: &Layout) -> Option<&str> {
        match self {
            Self::Pad { value, .. } if padded.shape() != before.shape() => Some(value),
            _ => None,
        }
    }
}

fn extents(sizes: &[isize], refuse: impl Fn(String) -> Error) -> Result<Vec<usize>, Error> {
    let convert = |&size: &isize| {
        usize::try_from(size).map_err(|_| refuse(format!("{size} is no extent: extents are 0 or more")))
    };
    sizes.iter().map(convert).collect()
}

impl Expr {
    /// Reads an expression; the empty text is the view as it is.
    ///
    /// # Errors
    /// `Syntax` with the place where reading stopped and what was expected there. Index lists, boolean masks
    /// and numbers beyond 64 bits are read, and refused when applied.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::parse_placed(text).map_err(|refusal| refusal.error)
    }

    /// As [`Expr::parse`], with the place of every refusal.
    ///
    /// # Errors
    /// As [`Expr::parse`].
    pub fn parse_placed(text: &str) -> Result<Self, Refusal> {
        let forms = parse::pieces(text).map_err(|error| Refusal::unread(error, (0, text.len())))?;
        let lowered = forms.into_iter().map(|form| {
            let span = form.span.clone();
            match lower::lower(&form.value, &span) {
                Ok(op) => Ok(Piece { op, span }),
                Err(error @ Error::Syntax { .. }) => Err(Refusal::unread(error, (span.start, span.end))),
                Err(error) => Ok(Piece { op: Op::Refused(error), span }),
            }
        });
        Ok(Self { text: text.to_owned(), pieces: lowered.collect::<Result<_, _>>()? })
    }

    /// The text as given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The operations in order.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The text of one piece.
    pub fn piece_text(&self, piece: &Piece) -> &str {
        &self.text[piece.span.clone()]
    }

    /// The layout that the whole expression names, as a view: nothing is copied.
    ///
    /// `fill` is what padded positions of `layout` read; pads must agree with it and with each other.
    ///
    /// # Errors
    /// What the first refused piece says; `NeedsCopy` where the result is no view of the buffer.
    pub fn apply(&self, layout: &Layout, buffer_len: usize, fill: Fill) -> Result<Layout, Error> {
        let zero = match fill {
            Fill::Bytes(bytes) => bytes.iter().all(|&byte| byte == 0),
            Fill::None => true,
        };
        let mut current = layout.clone();
        // Known only as text here, so values are compared as numbers; `None` is a value with no text.
        let mut filled: Option<Option<&str>> = layout.is_padded().then_some(zero.then_some("0"));
        for piece in &self.pieces {
            let next = piece.op.apply(&current, buffer_len)?;
            if let Some(value) = piece.op.new_fill(&next, &current) {
                match filled.filter(|_| current.is_padded()) {
                    Some(Some(old)) if same_number(old, value) => {}
                    Some(_) => return Err(second_fill()),
                    None => filled = Some(Some(value)),
                }
            }
            current = next;
        }
        if let (Fill::Bytes(_), Some(Some(value))) = (fill, filled)
            && current.is_padded()
            && !(same_number(value, "0") && zero)
        {
            let reason = "a typed view pads with its own value: use `View::pad` or a fill of zero bytes";
            return Err(Error::Pad { reason: reason.into() });
        }
        Ok(current)
    }
}

/// Whether two number literals name one value.
pub(crate) fn same_number(a: &str, b: &str) -> bool {
    let read = |text: &str| match text {
        "True" => Ok(1.0),
        "False" => Ok(0.0),
        _ => text.parse::<f64>(),
    };
    a == b || matches!((read(a), read(b)), (Ok(a), Ok(b)) if a.to_bits() == b.to_bits() && a.abs() < 9e15)
}

impl Layout {
    /// The view that an expression names, over the buffer that this layout reaches (see [`Expr`]).
    ///
    /// # Errors
    /// `Syntax` for text that cannot be read, `NeedsCopy` where a copy would be needed, else what the first
    /// refused piece says.
    pub fn apply(&self, expr: &str) -> Result<Self, Error> {
        let len = self.reachable_range().map_or(0, |(_, high)| high + 1);
        Expr::parse(expr)?.apply(self, len, Fill::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str) -> Vec<&str> {
        Expr::parse(text).unwrap().pieces().iter().map(|p| &text[p.span.clone()]).collect()
    }

    #[test]
    fn pieces_keep_their_text() {
        assert_eq!(
            spans(" .T [ : , ::2 ] .reshape( 2,\n -1, ) "),
            [".T", "[ : , ::2 ]", ".reshape( 2,\n -1, )"]
        );
        assert_eq!(spans(""), [""; 0]);
        assert_eq!(spans("  "), [""; 0]);
    }

    #[test]
    fn tuples_keywords_and_trailing_commas_as_in_python() {
        for (a, b) in [
            (".permute((2, 0, 1))", ".permute(2, 0, 1,)"),
            (".permute(dims=(2, 0, 1))", ".permute([2, 0, 1])"),
            (".unfold(axis=0, size=3, step=1)", ".unfold(0, 3)"),
            (".transpose(dim0=1, dim1=2)", ".swapaxes(axis1=1, axis2=2)"),
            (".pad(((1, 1), (0, 2)), value=0)", ".pad((1, 1), (0, 2))"),
            (".pad((1, 1),)", ".pad(pad_width=((1, 1),))"),
            (".moveaxis(source=0, destination=-1)", ".moveaxis((0,), (-1,))"),
            (".diagonal(axis2=1, offset=0)", ".diagonal()"),
            ("[(1, 2)]", "[1, 2]"),
            ("[None:None, +1, --2]", "[:, 1, 2]"),
            ("[1_000:]", "[1000:,]"),
            (".squeeze(axis=(0, 1))", ".squeeze(0, 1)"),
            (".flatten( )", ".flatten()"),
        ] {
            let ops = |text| Expr::parse(text).unwrap().pieces.into_iter().map(|p| p.op).collect::<Vec<_>>();
            assert_eq!(ops(a), ops(b), "{a} against {b}");
        }
    }

    #[test]
    fn refusals_say_where() {
        for (text, span, kind) in [
            ("T", (0, 1), "syntax"),
            (".T.reshap(2)", (2, 12), "syntax"),
            (".reshape(2, 'a')", (12, 15), "syntax"),
            ("[1:2", (4, 4), "syntax"),
            ("[]", (1, 2), "syntax"),
            (".unfold(0, 3, window=2)", (21, 22), "syntax"),
            (".transpose(0)", (0, 13), "syntax"),
            (".pad(1)", (5, 6), "syntax"),
            (".T.T()", (2, 6), "syntax"),
            (".é", (1, 3), "syntax"),
        ] {
            let refusal = Expr::parse_placed(text).unwrap_err();
            assert_eq!((refusal.span, refusal.error.kind()), (span, kind), "{text}: {}", refusal.error);
        }
        for text in [".shrink((0, 1), value=3)", ".T.flatten(order=1)"] {
            let message = Expr::parse(text).unwrap_err().to_string();
            assert!(message.ends_with("it takes none here"), "{message}");
        }
        let deep = format!("[{}1{}]", "(".repeat(5000), ")".repeat(5000));
        assert_eq!(Expr::parse(&deep).unwrap_err().kind(), "syntax");
    }

    #[test]
    fn index_lists_and_huge_numbers_are_refused_where_they_stand() {
        let x = Layout::row_major(&[3, 4]).unwrap();
        for (text, kind) in [
            ("[[0, 1]]", "index"),
            (".T[[True, False]]", "index"),
            ("[True]", "index"),
            ("[(0, 1),]", "index"),
            (".reshape(99999999999999999999)", "overflow"),
        ] {
            assert!(Expr::parse(text).is_ok(), "{text}");
            assert_eq!(x.apply(text).unwrap_err().kind(), kind, "{text}");
        }
    }

    #[test]
    fn carets_stand_under_the_piece() {
        let refusal = Refusal { error: Error::Step { axis: 0 }, span: (2, 7), shape: None };
        assert_eq!(refusal.caret(".T[::0].T"), ".T[::0].T\n  ^^^^^");
    }

    #[test]
    fn huge_slice_bounds_clamp_as_in_python() {
        let x = Layout::row_major(&[4]).unwrap();
        let huge = "1000000000000000000000000000000000000000000000000";
        assert_eq!(x.apply(&format!("[:{huge}]")).unwrap(), x);
        assert_eq!(x.apply(&format!("[-{huge}::{huge}]")).unwrap().shape(), [1]);
        assert_eq!(x.apply(&format!("[{huge}]")).unwrap_err().kind(), "index");
    }

    #[test]
    fn fills_must_agree() {
        let x = Layout::row_major(&[4]).unwrap();
        assert!(x.apply(".pad((1, 0), value=1).pad((0, 1), value=1.0)").is_ok());
        assert_eq!(x.apply(".pad((1, 0), value=1).pad((0, 1))").unwrap_err().kind(), "needs_copy");
        assert!(x.apply(".pad((1, 0), value=1)[1:].pad((0, 1))").is_ok());
        assert!(x.apply(".pad((1, 0), value=1).pad((0, 0))").is_ok());
    }

    #[test]
    fn refusals_show_the_numbers_as_given() {
        let x = Layout::row_major(&[3, 4]).unwrap();
        for (text, words) in [
            (".expand(-1, -1, -1)", "cannot be broadcast to [-1, -1, -1]"),
            (".expand(-2, 3)", "cannot be broadcast to [-2, 3]"),
            (".broadcast_to(-1, 3, 4)", "cannot be broadcast to [-1, 3, 4]"),
            (".flip(99999999999999999999)", "axis 9223372036854775807 or more is"),
            (".flip(-99999999999999999999)", "axis -9223372036854775808 or less is"),
            ("[99999999999999999999]", "index 9223372036854775807 or more is"),
            (".unfold(0, 99999999999999999999)", "a window of 9223372036854775807 or more with step 1"),
        ] {
            let message = x.apply(text).unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}

//! View expressions as text. Input: up to five extents in the first bytes, then the text.
//!
//! Oracle: the naive model applies the pieces one by one: shape, values, number of copies and the kind of
//! the first refusal must agree; every span lies on the text.

use crate::model::TOO_LARGE;
use crate::model::eval::{Chain, run};
use restride::Expr;

/// Runs one input; says whether it is worth keeping.
pub fn check(data: &[u8]) -> bool {
    let Some((&first, rest)) = data.split_first() else { return false };
    let ndim = usize::from(first % 6).min(rest.len());
    let (extents, text) = rest.split_at(ndim);
    let shape: Vec<usize> = extents.iter().map(|&b| usize::from(b % 6)).collect();
    let Ok(text) = std::str::from_utf8(text) else { return false };
    let expr = match Expr::parse_placed(text) {
        Ok(expr) => expr,
        Err(refusal) => {
            let (from, to) = refusal.span;
            assert!(from <= to && text.is_char_boundary(from) && text.is_char_boundary(to), "{refusal:?}");
            assert!(!refusal.error.to_string().is_empty() && refusal.caret(text).contains('^'));
            return true;
        }
    };
    assert_eq!(Expr::parse(expr.text()).unwrap(), expr);
    let mut chain = Chain::new(&shape);
    let mut refused = None;
    for piece in expr.pieces() {
        assert_eq!(expr.piece_text(piece), &text[piece.span.clone()]);
        match chain.apply(&piece.op) {
            Ok(()) => {}
            Err(TOO_LARGE) => return true,
            Err(kind) => {
                refused = Some((kind, piece.span.clone()));
                break;
            }
        }
    }
    match (run(&shape, &expr), refused) {
        (Ok(got), None) => {
            assert_eq!(got.shape, chain.model.shape, "{shape:?} {text}");
            assert_eq!(got.copies, chain.copies, "{shape:?} {text}");
            assert_eq!(got.values, chain.values(), "{shape:?} {text}");
        }
        (Err(refusal), Some((kind, span))) => {
            assert_eq!(refusal.error.kind(), kind, "{shape:?} {text}: {}", refusal.error);
            assert_eq!(refusal.span, (span.start, span.end), "{shape:?} {text}");
        }
        (got, refused) => panic!("{shape:?} {text}: {got:?}, the model says {refused:?}"),
    }
    true
}

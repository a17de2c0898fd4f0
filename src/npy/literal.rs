//! The part of Python's literal syntax that a `.npy` header is written in.
//!
//! Nothing is copied out of the header: strings are slices of it, and the number of nodes and the depth
//! of nesting are limited, so that a hostile header costs bounded memory and stack.

use std::ops::Range;
use winnow::combinator::{cut_err, dispatch, fail, opt, peek, preceded, repeat, terminated};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::stream::{LocatingSlice, Stateful};
use winnow::token::{any, none_of, one_of, take_while};

/// Most values in one header: a record of a hundred thousand fields still fits.
const MAX_NODES: usize = 1 << 20;
/// Most brackets inside each other.
const MAX_DEPTH: usize = 64;

/// One value and the bytes of the header that it was read from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node<'h> {
    pub value: Value<'h>,
    pub span: Range<usize>,
}

/// A Python literal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'h> {
    /// The bytes between the quotes, escapes as they stand.
    Text(&'h [u8]),
    /// An integer; `None` when it does not fit.
    Int(Option<i128>),
    Bool(bool),
    None,
    Tuple(Vec<Node<'h>>),
    List(Vec<Node<'h>>),
    Dict(Vec<(Node<'h>, Node<'h>)>),
}

/// Where and why a header cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadLiteral {
    pub at: usize,
    pub expected: String,
}

#[derive(Debug, Clone, Copy, Default)]
struct Limits {
    nodes: usize,
    depth: usize,
}

type Input<'h> = Stateful<LocatingSlice<&'h [u8]>, Limits>;

/// Reads one literal that fills `text`, white space around it aside.
pub(super) fn parse(text: &[u8]) -> Result<Node<'_>, BadLiteral> {
    let input = Stateful { input: LocatingSlice::new(text), state: Limits::default() };
    preceded(space, terminated(value, space)).parse(input).map_err(|error| {
        // The innermost comes first; the values around it expected nothing else.
        let expected = error.inner().context().find_map(|c| match c {
            StrContext::Expected(e) => Some(e.to_string()),
            _ => None,
        });
        let expected = expected.unwrap_or_else(|| "the end of the header".to_string());
        BadLiteral { at: error.offset(), expected }
    })
}

fn expected(what: &'static str) -> StrContext {
    StrContext::Expected(StrContextValue::Description(what))
}

fn refuse<'h, O>(input: &mut Input<'h>, what: &'static str) -> ModalResult<O> {
    cut_err(fail.context(expected(what))).parse_next(input)
}

fn space(input: &mut Input<'_>) -> ModalResult<()> {
    take_while(0.., (b' ', b'\t', b'\r', b'\n', b'\x0c')).void().parse_next(input)
}

fn value<'h>(input: &mut Input<'h>) -> ModalResult<Node<'h>> {
    if input.state.nodes == MAX_NODES {
        return refuse(input, "at most a million values");
    }
    if input.state.depth == MAX_DEPTH {
        return refuse(input, "at most 64 brackets inside each other");
    }
    input.state.nodes += 1;
    input.state.depth += 1;
    let node = dispatch! { peek(any);
        b'{' => dict,
        b'[' => items(b'[', b']').map(|(list, _)| Value::List(list)),
        b'(' => items(b'(', b')').map(|(mut list, comma)| match list.len() {
            // Round brackets around one value without a comma mean the value itself.
            1 if !comma => list.swap_remove(0).value,
            _ => Value::Tuple(list),
        }),
        b'\'' | b'"' => text,
        b'u' | b'U' | b'b' | b'B' => preceded(any, cut_err(text)),
        b'0'..=b'9' | b'-' | b'+' => integer,
        b'T' => word(b"True", Value::Bool(true)),
        b'F' => word(b"False", Value::Bool(false)),
        b'N' => word(b"None", Value::None),
        _ => fail,
    }
    .with_span()
    .context(expected("a Python literal"))
    .parse_next(input);
    input.state.depth -= 1;
    node.map(|(value, span)| Node { value, span })
}

fn word<'h>(
    word: &'static [u8],
    value: Value<'h>,
) -> impl Parser<Input<'h>, Value<'h>, ErrMode<ContextError>> {
    move |input: &mut Input<'h>| word.value(value.clone()).parse_next(input)
}

/// What is between the quotes; a backslash keeps the next byte from ending the text.
fn text<'h>(input: &mut Input<'h>) -> ModalResult<Value<'h>> {
    let quote = one_of((b'\'', b'"')).context(expected("a quote")).parse_next(input)?;
    let piece = |input: &mut Input<'h>| {
        dispatch! { peek(any);
            b'\\' => (any, any).void(),
            b'\n' => fail,
            _ => none_of(quote).void(),
        }
        .parse_next(input)
    };
    let inside = repeat::<_, _, (), _, _>(0.., piece).take().parse_next(input)?;
    cut_err(one_of(quote).context(expected("a closing quote"))).parse_next(input)?;
    Ok(Value::Text(inside))
}

/// A decimal integer, with the `L` that Python 2 wrote.
fn integer<'h>(input: &mut Input<'h>) -> ModalResult<Value<'h>> {
    let (sign, digits) =
        (opt(one_of((b'-', b'+'))), take_while(1.., b'0'..=b'9').context(expected("a digit")))
            .parse_next(input)?;
    opt(one_of((b'L', b'l'))).parse_next(input)?;
    let magnitude = digits.iter().try_fold(0i128, |sum, digit| {
        sum.checked_mul(10).and_then(|s| s.checked_add(i128::from(digit - b'0')))
    });
    Ok(Value::Int(if sign == Some(b'-') { magnitude.map(|m| -m) } else { magnitude }))
}

/// Values between brackets, and whether a comma follows any of them.
fn items<'h>(open: u8, close: u8) -> impl Parser<Input<'h>, (Vec<Node<'h>>, bool), ErrMode<ContextError>> {
    move |input: &mut Input<'h>| {
        let mut list = Vec::new();
        let mut comma = false;
        one_of(open).parse_next(input)?;
        loop {
            space.parse_next(input)?;
            if opt(one_of(close)).parse_next(input)?.is_some() {
                return Ok((list, comma));
            }
            list.push(cut_err(value).parse_next(input)?);
            if !separator(input, close)? {
                return Ok((list, comma));
            }
            comma = true;
        }
    }
}

fn dict<'h>(input: &mut Input<'h>) -> ModalResult<Value<'h>> {
    let mut pairs = Vec::new();
    one_of(b'{').parse_next(input)?;
    loop {
        space.parse_next(input)?;
        if opt(one_of(b'}')).parse_next(input)?.is_some() {
            return Ok(Value::Dict(pairs));
        }
        let key = cut_err(value).parse_next(input)?;
        (space, cut_err(one_of(b':').context(expected("':'"))), space).parse_next(input)?;
        pairs.push((key, cut_err(value).parse_next(input)?));
        if !separator(input, b'}')? {
            return Ok(Value::Dict(pairs));
        }
    }
}

/// Reads a comma (true) or the closing bracket (false).
fn separator(input: &mut Input<'_>, close: u8) -> ModalResult<bool> {
    let what = match close {
        b']' => "',' or ']'",
        b')' => "',' or ')'",
        _ => "',' or '}'",
    };
    space.parse_next(input)?;
    let byte = cut_err(one_of([b',', close]).context(expected(what))).parse_next(input)?;
    Ok(byte == b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value<'_> {
        parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e:?}")).value
    }

    fn ints(node: Value<'_>) -> Vec<i128> {
        let (Value::Tuple(list) | Value::List(list)) = node else { panic!("{node:?}") };
        list.into_iter()
            .map(|n| match n.value {
                Value::Int(Some(i)) => i,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn scalars() {
        assert_eq!(value(" True\n"), Value::Bool(true));
        assert_eq!(value("False"), Value::Bool(false));
        assert_eq!(value("None"), Value::None);
        assert_eq!(value("10L"), Value::Int(Some(10)));
        assert_eq!(value("-7"), Value::Int(Some(-7)));
        assert_eq!(value(&"9".repeat(50)), Value::Int(None));
        assert_eq!(value("'<f8'"), Value::Text(b"<f8"));
        assert_eq!(value("u\"a'b\""), Value::Text(b"a'b"));
        assert_eq!(value(r"'a\'b\\'"), Value::Text(br"a\'b\\"));
        assert_eq!(value("('x')"), Value::Text(b"x"));
    }

    #[test]
    fn sequences_take_trailing_commas_and_any_space() {
        assert_eq!(ints(value("( )")), [0i128; 0]);
        assert_eq!(ints(value("(3,)")), [3]);
        assert_eq!(ints(value("[ 1 ,2L,\t3\n, ]")), [1, 2, 3]);
        assert_eq!(value("(3)"), Value::Int(Some(3)));
    }

    #[test]
    fn spans_are_the_bytes_read() {
        let text = b" {'a' : [ (1,) ] , }  ";
        let Value::Dict(pairs) = parse(text).unwrap().value else { panic!() };
        assert_eq!(&text[pairs[0].1.span.clone()], b"[ (1,) ]");
        assert_eq!(&text[pairs[0].0.span.clone()], b"'a'");
        let wrapped = parse(b" ( 'x' ) ").unwrap();
        assert_eq!(wrapped.span, 1..8);
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, at, what) in [
            ("", 0, "a Python literal"),
            ("{'a' 1}", 5, "':'"),
            ("{'a': 1", 7, "',' or '}'"),
            ("(1 2)", 3, "',' or ')'"),
            ("(,)", 1, "a Python literal"),
            ("'abc", 4, "a closing quote"),
            ("'a\nb'", 2, "a closing quote"),
            ("'abc\\", 4, "a closing quote"),
            ("-", 1, "a digit"),
            ("1 x", 2, "the end of the header"),
            ("1\0", 1, "the end of the header"),
            ("Tru", 0, "a Python literal"),
            ("f()", 0, "a Python literal"),
            ("[1, Nope]", 4, "a Python literal"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!(error.at, at, "{text}: {error:?}");
            assert_eq!(error.expected, what, "{text}: {error:?}");
        }
    }

    #[test]
    fn nesting_and_size_are_bounded() {
        let deep = "(".repeat(1_000_000);
        assert!(parse(deep.as_bytes()).unwrap_err().expected.contains("64 brackets"));
        let wide = format!("({})", "1,".repeat(MAX_NODES + 1));
        assert!(parse(wide.as_bytes()).unwrap_err().expected.contains("million"));
        let fine = format!("{}1{}", "[".repeat(60), "]".repeat(60));
        parse(fine.as_bytes()).unwrap();
    }
}

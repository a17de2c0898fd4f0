//! The grammar of view expressions: text to pieces with their place in the text.
//!
//! Reads what Python would after a variable, into values that have no meaning yet; `lower` gives each
//! call its meaning.

use crate::Error;
use std::ops::Range;
use winnow::ascii::{digit1, multispace0};
use winnow::combinator::{alt, cut_err, delimited, fail, opt, preceded, separated, terminated};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::stream::LocatingSlice;
use winnow::token::{one_of, take_while};

type Input<'a> = LocatingSlice<&'a str>;
type Parsed<T> = Result<T, ErrMode<ContextError>>;

/// A value with its place in the text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spanned<T> {
    pub value: T,
    pub span: Range<usize>,
}

/// A Python literal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Saturates beyond 127 bits: every use refuses or clamps such numbers anyway.
    Int(i128),
    /// A float, complex, `inf` or `nan`, without white space.
    Number(String),
    Bool(bool),
    None,
    Tuple(Vec<Spanned<Value>>),
    Text,
}

/// One item between square brackets.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    At(i128),
    Slice(Option<i128>, Option<i128>, Option<i128>),
    NewAxis,
    Ellipsis,
    /// A list or mask: an index that is no view.
    Advanced,
    /// A tuple, which means its items when it stands alone.
    Tuple(Vec<Item>),
}

/// A call's argument, with its keyword when it has one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arg {
    pub keyword: Option<String>,
    pub value: Spanned<Value>,
}

/// One piece as written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Index(Vec<Item>),
    Attribute(String),
    Call(String, Vec<Arg>),
}

/// How deep parentheses may nest: deeper text is refused before it can exhaust the stack.
const MAX_DEPTH: usize = 16;

fn expected(what: &'static str) -> StrContext {
    StrContext::Expected(StrContextValue::Description(what))
}

fn token<'a, O>(
    inner: impl Parser<Input<'a>, O, ErrMode<ContextError>>,
) -> impl Parser<Input<'a>, O, ErrMode<ContextError>> {
    terminated(inner, multispace0)
}

fn symbol<'a>(c: char) -> impl Parser<Input<'a>, char, ErrMode<ContextError>> {
    token(c)
}

fn name<'a>(input: &mut Input<'a>) -> Parsed<&'a str> {
    token(
        (
            one_of(|c: char| c.is_ascii_alphabetic() || c == '_'),
            take_while(0.., |c: char| c.is_ascii_alphanumeric() || c == '_'),
        )
            .take(),
    )
    .parse_next(input)
}

/// Decimal digits with Python's single underscores between them.
fn digits<'a>(input: &mut Input<'a>) -> Parsed<&'a str> {
    separated::<_, _, Vec<&str>, _, _, _, _>(1.., digit1, '_').take().parse_next(input)
}

fn sign(input: &mut Input<'_>) -> Parsed<bool> {
    // Any number of signs, as Python's unary operators.
    let signs: String = take_while(0.., |c: char| matches!(c, '+' | '-') || c.is_ascii_whitespace())
        .parse_next(input)?
        .into();
    Ok(signs.matches('-').count() % 2 == 1)
}

fn to_int(negative: bool, digits: &str) -> i128 {
    let clean = digits.replace('_', "");
    // Digits only, so that the one possible failure is too many of them.
    let magnitude = clean.parse::<i128>().unwrap_or(i128::MAX);
    if negative { -magnitude } else { magnitude }
}

fn int(input: &mut Input<'_>) -> Parsed<i128> {
    token((sign, digits).map(|(negative, digits)| to_int(negative, digits))).parse_next(input)
}

/// One real or imaginary number, as text.
fn real(input: &mut Input<'_>) -> Parsed<(bool, String)> {
    let negative = sign.parse_next(input)?;
    let unsigned = alt((
        (
            (opt(digits), '.', opt(digits)).verify(|(a, _, b)| a.is_some() || b.is_some()).void(),
            opt(exponent),
        )
            .take(),
        (digits, opt(exponent)).take(),
        "infinity",
        "inf",
        "nan",
    ));
    let text: &str = terminated(
        unsigned,
        winnow::combinator::not(one_of(|c: char| {
            c.is_ascii_alphanumeric() && c != 'j' && c != 'J' || c == '_'
        })),
    )
    .parse_next(input)?;
    let suffix = opt(one_of(['j', 'J'])).parse_next(input)?;
    multispace0.parse_next(input)?;
    let j = if suffix.is_some() { "j" } else { "" };
    Ok((negative, format!("{}{j}", text.replace('_', ""))))
}

fn exponent(input: &mut Input<'_>) -> Parsed<()> {
    (one_of(['e', 'E']), opt(one_of(['+', '-'])), digits).void().parse_next(input)
}

fn number(input: &mut Input<'_>) -> Parsed<Value> {
    let (negative, first) = real.parse_next(input)?;
    let minus = if negative { "-" } else { "" };
    // The imaginary part of a complex literal such as 1+2j.
    let start = *input;
    let rest = winnow::combinator::peek(opt(one_of(['+', '-']))).parse_next(input)?;
    if rest.is_some() {
        if let Ok((negative, second)) = real.parse_next(input)
            && second.ends_with('j')
        {
            let sign = if negative { '-' } else { '+' };
            return Ok(Value::Number(format!("{minus}{first}{sign}{second}")));
        }
        *input = start;
    }
    if first.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(Value::Int(to_int(negative, &first)));
    }
    Ok(Value::Number(format!("{minus}{first}")))
}

fn text(input: &mut Input<'_>) -> Parsed<Value> {
    let quote = one_of(['"', '\'']).parse_next(input)?;
    (take_while(0.., move |c| c != quote), quote, multispace0).value(Value::Text).parse_next(input)
}

fn value<'a>(depth: usize) -> impl Parser<Input<'a>, Spanned<Value>, ErrMode<ContextError>> {
    move |input: &mut Input<'a>| {
        let inner = alt((|input: &mut Input<'a>| group(depth, input), text, word, number));
        let (value, span) =
            inner.with_span().context(expected("a number, a tuple or a keyword")).parse_next(input)?;
        Ok(Spanned { value, span })
    }
}

fn word(input: &mut Input<'_>) -> Parsed<Value> {
    let value = match name.parse_next(input)? {
        "None" => Value::None,
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        _ => return fail.parse_next(input),
    };
    Ok(value)
}

/// Parentheses or brackets: a tuple, or one value in parentheses without a comma.
fn group(depth: usize, input: &mut Input<'_>) -> Parsed<Value> {
    let open =
        symbol('(').parse_next(input).or_else(|_: ErrMode<ContextError>| symbol('[').parse_next(input))?;
    if depth == MAX_DEPTH {
        return cut_err(fail.context(expected("less deeply nested parentheses"))).parse_next(input);
    }
    let close = if open == '(' { ')' } else { ']' };
    let values: Vec<Spanned<Value>> = separated(0.., value(depth + 1), symbol(',')).parse_next(input)?;
    let comma = if values.is_empty() { None } else { opt(symbol(',')).parse_next(input)? };
    cut_err(symbol(close))
        .context(expected(if open == '(' { "`,` or `)`" } else { "`,` or `]`" }))
        .parse_next(input)?;
    match <[_; 1]>::try_from(values) {
        Ok([single]) if open == '(' && comma.is_none() => Ok(single.value),
        Ok(single) => Ok(Value::Tuple(single.into())),
        Err(values) => Ok(Value::Tuple(values)),
    }
}

fn arg(input: &mut Input<'_>) -> Parsed<Arg> {
    let keyword = opt(terminated(name, symbol('='))).parse_next(input)?.map(str::to_owned);
    let value = value(0).parse_next(input)?;
    Ok(Arg { keyword, value })
}

fn slice_or_index(input: &mut Input<'_>) -> Parsed<Item> {
    let bound = || opt(alt((int.map(Some), name.verify(|n: &str| n == "None").value(None))));
    let start = bound().parse_next(input)?;
    if opt(symbol(':')).parse_next(input)?.is_none() {
        return match start {
            Some(Some(index)) => Ok(Item::At(index)),
            Some(None) => Ok(Item::NewAxis),
            None => fail.parse_next(input),
        };
    }
    let stop = bound().parse_next(input)?.flatten();
    let step = opt(preceded(symbol(':'), bound())).parse_next(input)?;
    Ok(Item::Slice(start.flatten(), stop, step.flatten().flatten()))
}

fn item<'a>(depth: usize) -> impl Parser<Input<'a>, Item, ErrMode<ContextError>> {
    move |input: &mut Input<'a>| {
        alt((
            token("...").value(Item::Ellipsis),
            name.verify(|n: &str| n == "Ellipsis").value(Item::Ellipsis),
            name.verify(|n: &str| n == "newaxis").value(Item::NewAxis),
            name.verify(|n: &str| matches!(n, "True" | "False")).value(Item::Advanced),
            |input: &mut Input<'a>| tuple_item(depth, input),
            |input: &mut Input<'a>| {
                winnow::combinator::peek('[').parse_next(input)?;
                group(depth, input).map(|_| Item::Advanced)
            },
            slice_or_index,
        ))
        .context(expected("an index, a slice, `...` or `None`"))
        .parse_next(input)
    }
}

fn tuple_item(depth: usize, input: &mut Input<'_>) -> Parsed<Item> {
    symbol('(').parse_next(input)?;
    if depth == MAX_DEPTH {
        return cut_err(fail.context(expected("less deeply nested parentheses"))).parse_next(input);
    }
    let items: Vec<Item> = separated(0.., item(depth + 1), symbol(',')).parse_next(input)?;
    let comma = if items.is_empty() { None } else { opt(symbol(',')).parse_next(input)? };
    cut_err(symbol(')')).context(expected("`,` or `)`")).parse_next(input)?;
    match <[_; 1]>::try_from(items) {
        Ok([single]) if comma.is_none() => Ok(single),
        Ok(single) => Ok(Item::Tuple(single.into())),
        Err(items) => Ok(Item::Tuple(items)),
    }
}

fn form(input: &mut Input<'_>) -> Parsed<Form> {
    if opt(symbol('[')).parse_next(input)?.is_some() {
        let mut items: Vec<Item> = cut_err(separated(1.., item(0), symbol(','))).parse_next(input)?;
        let comma = opt(symbol(',')).parse_next(input)?;
        cut_err(symbol(']')).context(expected("`,` or `]`")).parse_next(input)?;
        if comma.is_none()
            && let [Item::Tuple(inner)] = &mut items[..]
        {
            items = std::mem::take(inner);
        }
        return Ok(Form::Index(items));
    }
    symbol('.').context(expected("`.` or `[`")).parse_next(input)?;
    let name = cut_err(name).context(expected("the name of an operation")).parse_next(input)?.to_owned();
    if opt(symbol('(')).parse_next(input)?.is_none() {
        return Ok(Form::Attribute(name));
    }
    let args: Vec<Arg> = cut_err(separated(0.., arg, symbol(','))).parse_next(input)?;
    if !args.is_empty() {
        opt(symbol(',')).parse_next(input)?;
    }
    cut_err(symbol(')')).context(expected("an argument, `,` or `)`")).parse_next(input)?;
    Ok(Form::Call(name, args))
}

/// All pieces of an expression, each with its byte range (trailing white space left out).
pub(super) fn pieces(text: &str) -> Result<Vec<Spanned<Form>>, Error> {
    let input = LocatingSlice::new(text);
    let one = form.with_span().map(|(value, span): (Form, Range<usize>)| Spanned { value, span });
    let all = delimited(
        multispace0,
        winnow::combinator::repeat(0.., one),
        winnow::combinator::eof.context(expected("`.` or `[`")),
    );
    let mut all = all;
    let mut parsed: Vec<Spanned<Form>> = all.parse(input).map_err(|error| {
        let offset = error.offset().min(text.len());
        let end = text[offset..].chars().next().map_or(offset, |c| offset + c.len_utf8());
        let mut wanted: Vec<String> = Vec::new();
        for context in error.inner().context() {
            if let StrContext::Expected(what) = context {
                wanted.push(what.to_string());
            }
        }
        let wanted = wanted.first().cloned().unwrap_or_else(|| "another character".into());
        let found = match text[offset..].chars().next() {
            Some(c) => format!("`{c}`"),
            None => "the end of the expression".into(),
        };
        Error::Syntax { reason: format!("expected {wanted}, found {found}"), span: (offset, end) }
    })?;
    for piece in &mut parsed {
        piece.span.end = piece.span.start + text[piece.span.clone()].trim_end().len();
    }
    Ok(parsed)
}

//! From what was written to operations: which arguments a call takes, and what they mean.

use super::Op;
use super::parse::{Arg, Form, Item, Spanned, Value};
use crate::Error;
use crate::layout::Index;
use std::ops::Range;

/// Every operation with a call's parentheses.
const NAMES: [&str; 18] = [
    "permute",
    "transpose",
    "swapaxes",
    "moveaxis",
    "reshape",
    "view",
    "flatten",
    "contiguous",
    "broadcast_to",
    "expand",
    "unsqueeze",
    "squeeze",
    "flip",
    "pad",
    "shrink",
    "unfold",
    "diagonal",
    "as_strided",
];

/// What somebody who wrote an unknown name most likely means, as it is written here.
fn meant(name: &str) -> Option<String> {
    let call = |name: &str| format!(".{name}(...)");
    let known = match name {
        "t" => ".T".to_owned(),
        "mt" | "MT" | "Mt" => ".mT".to_owned(),
        "ravel" => ".flatten()".to_owned(),
        "copy" | "clone" | "ascontiguousarray" => ".contiguous()".to_owned(),
        "expand_dims" => call("unsqueeze"),
        "swapdims" => call("swapaxes"),
        "flipud" => "[::-1]".to_owned(),
        "fliplr" => "[:, ::-1]".to_owned(),
        "sliding_window_view" => call("unfold"),
        _ => {
            let near = NAMES.iter().map(|known| (distance(&name.to_lowercase(), known), known));
            let (steps, known) = near.min()?;
            return (steps <= 2 && name.len() > 3).then(|| call(known));
        }
    };
    Some(known)
}

/// How many letters are added, left out or replaced between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut before = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = before + usize::from(x != *y);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

fn syntax<T>(reason: impl Into<String>, span: &Range<usize>) -> Result<T, Error> {
    Err(Error::Syntax { reason: reason.into(), span: (span.start, span.end) })
}

/// Beyond the range of `isize` every index and slice bound behaves as the largest one does.
fn clamp(x: i128) -> isize {
    x.clamp(isize::MIN as i128, isize::MAX as i128) as isize
}

pub(super) fn lower(form: &Form, span: &Range<usize>) -> Result<Op, Error> {
    match form {
        Form::Index(items) => index(items).map(Op::Index),
        Form::Attribute(name) => match name.as_str() {
            "T" => Ok(Op::T),
            "mT" => Ok(Op::Mt),
            _ if NAMES.contains(&name.as_str()) => {
                let bare = matches!(name.as_str(), "contiguous" | "flatten" | "squeeze" | "flip");
                let arguments = if bare { "()" } else { "(...)" };
                syntax(format!("`.{name}` needs parentheses: write `.{name}{arguments}`"), span)
            }
            _ => match meant(name) {
                Some(meant) => syntax(format!("unknown attribute `.{name}`: write `{meant}`"), span),
                None => syntax(
                    format!(
                        "unknown attribute `.{name}`: use `.T`, `.mT` or a call such as `.permute(1, 0)`"
                    ),
                    span,
                ),
            },
        },
        Form::Call(name, args) => call(name, args, span),
    }
}

fn index(items: &[Item]) -> Result<Vec<Index>, Error> {
    let mut lowered = Vec::with_capacity(items.len());
    for item in items {
        lowered.push(match item {
            Item::At(index) => Index::At(clamp(*index)),
            Item::Slice(start, stop, step) => {
                Index::Slice { start: start.map(clamp), stop: stop.map(clamp), step: step.map_or(1, clamp) }
            }
            Item::NewAxis => Index::NewAxis,
            Item::Ellipsis => Index::Ellipsis,
            Item::Advanced | Item::Tuple(_) => {
                let reason = "index lists and boolean masks always copy and are no view: use integers, \
                              slices, `None` and `...`";
                return Err(Error::Indices { reason: reason.into() });
            }
        });
    }
    Ok(lowered)
}

/// The arguments of one call while they are matched with parameters.
struct Call<'a> {
    name: &'a str,
    args: &'a [Arg],
    span: &'a Range<usize>,
}

type Bound<'a> = Option<&'a Spanned<Value>>;
/// Pairs of integers, and the arguments after them.
type Pairs<'a> = (Vec<(isize, isize)>, &'a [Arg]);

impl<'a> Call<'a> {
    /// Python's binding of arguments to `params`, each of which may have several names.
    fn bind<const N: usize>(&self, params: [&[&str]; N]) -> Result<[Bound<'a>; N], Error> {
        let mut bound: [Bound<'a>; N] = [None; N];
        let mut keywords = false;
        for (position, arg) in self.args.iter().enumerate() {
            let place = match &arg.keyword {
                None if keywords => {
                    return syntax("a positional argument follows a keyword", &arg.value.span);
                }
                None if position >= N => {
                    let most = format!(
                        "`.{}` takes at most {N} argument{}",
                        self.name,
                        if N == 1 { "" } else { "s" }
                    );
                    return syntax(most, &arg.value.span);
                }
                None => position,
                Some(keyword) => {
                    keywords = true;
                    match params.iter().position(|names| names.contains(&keyword.as_str())) {
                        Some(place) => place,
                        None => {
                            let known: Vec<&str> = params.iter().map(|names| names[0]).collect();
                            let known = if N == 0 { "none here".to_owned() } else { known.join(", ") };
                            let reason =
                                format!("`.{}` has no keyword `{keyword}`: it takes {known}", self.name);
                            return syntax(reason, &arg.value.span);
                        }
                    }
                }
            };
            if bound[place].is_some() {
                return syntax(format!("`{}` is given twice", params[place][0]), &arg.value.span);
            }
            bound[place] = Some(&arg.value);
        }
        Ok(bound)
    }

    fn need(&self, bound: Bound<'a>, what: &str) -> Result<&'a Spanned<Value>, Error> {
        match bound {
            Some(value) => Ok(value),
            None => syntax(format!("`.{}` needs {what}", self.name), self.span),
        }
    }

    fn none(&self) -> Result<(), Error> {
        self.bind([]).map(|_: [Bound; 0]| ())
    }

    /// A list of integers: spread over the arguments, or one tuple, or one keyword. `None` when absent.
    fn list(&self, names: &[&str]) -> Result<Option<Vec<i128>>, Error> {
        match self.args {
            [] => Ok(None),
            [Arg { keyword: Some(_), .. }] | [Arg { value: Spanned { value: Value::Tuple(_), .. }, .. }] => {
                let [value] = self.bind([names])?;
                value.map(ints).transpose()
            }
            args => {
                let mut list = Vec::with_capacity(args.len());
                for arg in args {
                    if arg.keyword.is_some() {
                        return syntax(
                            format!("`.{}` takes its {} as integers or as one tuple", self.name, names[0]),
                            &arg.value.span,
                        );
                    }
                    list.push(int(&arg.value)?);
                }
                Ok(Some(list))
            }
        }
    }

    /// Pairs, one an argument or all in one tuple, and what is left of the keywords.
    fn pairs(&self, names: &[&str]) -> Result<Pairs<'a>, Error> {
        let positional = self.args.iter().take_while(|arg| arg.keyword.is_none()).count();
        let (mut first, mut rest) = self.args.split_at(positional);
        if first.is_empty()
            && rest.first().is_some_and(|arg| arg.keyword.as_deref().is_some_and(|k| names.contains(&k)))
        {
            (first, rest) = rest.split_at(1);
        }
        let nested = |value: &'a Value| match value {
            Value::Tuple(values) if values.iter().all(|v| matches!(v.value, Value::Tuple(_))) => Some(values),
            _ => None,
        };
        let pairs: Vec<&Spanned<Value>> = match first {
            [arg] if nested(&arg.value.value).is_some() => {
                nested(&arg.value.value).into_iter().flatten().collect()
            }
            args => args.iter().map(|arg| &arg.value).collect(),
        };
        let mut lowered = Vec::with_capacity(pairs.len());
        for pair in pairs {
            match &pair.value {
                Value::Tuple(values) if values.len() == 2 => {
                    lowered.push((clamp(int(&values[0])?), clamp(int(&values[1])?)));
                }
                _ => {
                    return syntax(
                        format!("`.{}` takes one pair per axis, as in (1, 2)", self.name),
                        &pair.span,
                    );
                }
            }
        }
        Ok((lowered, rest))
    }
}

fn int(value: &Spanned<Value>) -> Result<i128, Error> {
    match value.value {
        Value::Int(x) => Ok(x),
        Value::Bool(b) => Ok(b.into()),
        _ => syntax("expected an integer", &value.span),
    }
}

/// One integer or a tuple of them.
fn ints(value: &Spanned<Value>) -> Result<Vec<i128>, Error> {
    match &value.value {
        Value::Tuple(values) => values.iter().map(int).collect(),
        _ => Ok(vec![int(value)?]),
    }
}

fn axis(value: &Spanned<Value>) -> Result<isize, Error> {
    int(value).map(clamp)
}

fn axes(list: Vec<i128>) -> Vec<isize> {
    list.into_iter().map(clamp).collect()
}

/// Extents and strides do not saturate: a number that does not fit is an overflow.
fn sizes(list: Vec<i128>) -> Result<Vec<isize>, Error> {
    list.into_iter()
        .map(|x| isize::try_from(x).map_err(|_| Error::Overflow { what: "a number in the expression" }))
        .collect()
}

fn call(name: &str, args: &[Arg], span: &Range<usize>) -> Result<Op, Error> {
    let call = Call { name, args, span };
    const SHAPE: [&str; 4] = ["shape", "size", "sizes", "newshape"];
    const AXIS: [&str; 2] = ["axis", "dim"];
    const AXES: [&str; 4] = ["axes", "dims", "axis", "dim"];
    const FIRST: [&str; 3] = ["axis0", "axis1", "dim0"];
    const SECOND: [&str; 3] = ["axis1", "axis2", "dim1"];
    Ok(match name {
        "permute" => Op::Permute(axes(call.list(&AXES)?.unwrap_or_default())),
        "transpose" | "swapaxes" => {
            // NumPy names them axis1 and axis2, PyTorch axis0 and axis1.
            let numpy = args.iter().any(|arg| arg.keyword.as_deref() == Some("axis2"));
            let (first, second): (&[&str], &[&str]) =
                if numpy { (&FIRST[1..2], &SECOND[1..2]) } else { (&["axis0", "dim0"], &["axis1", "dim1"]) };
            let both = "exactly two axes, as in (0, 1)";
            let order: Vec<String> = match args {
                [one] => match &one.value.value {
                    Value::Tuple(values) => values.iter().filter_map(|v| int(v).ok()).collect(),
                    _ => Vec::new(),
                },
                args => args.iter().filter_map(|arg| int(&arg.value).ok()).collect(),
            }
            .iter()
            .map(i128::to_string)
            .collect();
            if args.is_empty() {
                return syntax(format!("`.{name}` needs {both}: to reverse all axes write `.T`"), span);
            }
            if order.len() > 2 || args.len() == 1 && !order.is_empty() {
                let order = order.join(", ");
                let reason = format!("`.{name}` swaps {both}: an order of all axes is `.permute({order})`");
                return syntax(reason, span);
            }
            let [a, b] = call.bind([first, second])?;
            Op::Transpose(axis(call.need(a, both)?)?, axis(call.need(b, both)?)?)
        }
        "moveaxis" | "movedim" => {
            let [from, to] = call.bind([&["source"], &["destination"]])?;
            let both = "a source and a destination axis";
            Op::Moveaxis(axes(ints(call.need(from, both)?)?), axes(ints(call.need(to, both)?)?))
        }
        "reshape" => Op::Reshape(sizes(call.list(&SHAPE)?.unwrap_or_default())?),
        "view" => Op::View(sizes(call.list(&SHAPE)?.unwrap_or_default())?),
        "flatten" => {
            call.none()?;
            Op::Flatten
        }
        "contiguous" => {
            call.none()?;
            Op::Contiguous
        }
        "broadcast_to" => Op::BroadcastTo(sizes(call.list(&SHAPE)?.unwrap_or_default())?),
        "expand" => Op::Expand(sizes(call.list(&SHAPE)?.unwrap_or_default())?),
        "unsqueeze" => {
            let [at] = call.bind([&AXIS])?;
            Op::Unsqueeze(axis(call.need(at, "an axis")?)?)
        }
        "squeeze" => Op::Squeeze(call.list(&AXES)?.map(axes)),
        "flip" => Op::Flip(call.list(&AXES)?.map(axes)),
        "pad" => {
            let (widths, rest) = call.pairs(&["pad_width", "widths", "pad"])?;
            let [value] = Call { name, args: rest, span }.bind([&["value", "constant_values"]])?;
            let value = match value {
                None => "0".to_owned(),
                Some(Spanned { value: Value::Int(x), .. }) => x.to_string(),
                Some(Spanned { value: Value::Number(text), .. }) => text.clone(),
                Some(Spanned { value: Value::Bool(b), .. }) => if *b { "True" } else { "False" }.to_owned(),
                Some(other) => return syntax("expected a number to pad with", &other.span),
            };
            Op::Pad { widths, value }
        }
        "shrink" => {
            let (ranges, rest) = call.pairs(&["ranges", "arg"])?;
            Call { name, args: rest, span }.none()?;
            Op::Shrink(ranges)
        }
        "unfold" => {
            let [at, size, step] = call.bind([&["axis", "dim", "dimension"], &["size"], &["step"]])?;
            let step = step.map_or(Ok(1), axis)?;
            Op::Unfold(axis(call.need(at, "an axis")?)?, axis(call.need(size, "a window size")?)?, step)
        }
        "diagonal" => {
            let [offset, a, b] = call.bind([&["offset"], &["axis1", "dim1"], &["axis2", "dim2"]])?;
            Op::Diagonal(offset.map_or(Ok(0), axis)?, a.map_or(Ok(0), axis)?, b.map_or(Ok(1), axis)?)
        }
        "as_strided" => {
            let params: [&[&str]; 3] = [&SHAPE, &["strides", "stride"], &["offset", "storage_offset"]];
            let [shape, strides, offset] = call.bind(params)?;
            let shape = sizes(ints(call.need(shape, "a shape")?)?)?;
            let strides = sizes(ints(call.need(strides, "strides")?)?)?;
            let offset = match offset {
                Some(value) => sizes(vec![int(value)?])?[0],
                None => 0,
            };
            Op::AsStrided { shape, strides, offset }
        }
        "T" | "mT" => return syntax(format!("`.{name}` takes no parentheses: write `.{name}`"), span),
        _ => match meant(name) {
            Some(meant) => return syntax(format!("unknown operation `.{name}`: write `{meant}`"), span),
            None => {
                let known = NAMES.join(", ");
                return syntax(format!("unknown operation `.{name}`: known are {known}, T, mT"), span);
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use crate::expr::Expr;

    fn said(text: &str) -> String {
        Expr::parse_placed(text).unwrap_err().error.to_string()
    }

    #[test]
    fn a_name_that_means_another_is_answered_with_that() {
        for (text, meant) in [
            (".t()", "`.T`"),
            (".t", "`.T`"),
            (".T()", "`.T`"),
            (".mT()", "`.mT`"),
            (".contiguous", "`.contiguous()`"),
            (".flatten", "`.flatten()`"),
            (".permute", "`.permute(...)`"),
            (".reshap(3)", "`.reshape(...)`"),
            (".Permute(0)", "`.permute(...)`"),
            (".ravel()", "`.flatten()`"),
            (".expand_dims(0)", "`.unsqueeze(...)`"),
            (".transpose()", "`.T`"),
            (".transpose(1, 0, 2)", "`.permute(1, 0, 2)`"),
            (".transpose((1, 0, -2))", "`.permute(1, 0, -2)`"),
            (".swapaxes(2, 1, 0, 3)", "`.permute(2, 1, 0, 3)`"),
        ] {
            assert!(said(text).contains(meant), "{text}: {}", said(text));
        }
        assert!(said(".warp(1)").contains("known are permute"), "{}", said(".warp(1)"));
        assert!(Expr::parse_placed(".transpose(0, 1).swapaxes(axis1=0, axis2=-1)").is_ok());
    }

    #[test]
    fn letters_apart() {
        for (a, b, steps) in [("", "", 0), ("flip", "flip", 0), ("reshap", "reshape", 1), ("abc", "", 3)] {
            assert_eq!(super::distance(a, b), steps, "{a} {b}");
            assert_eq!(super::distance(b, a), steps, "{b} {a}");
        }
    }
}

//! What one element is, from the `descr` of a header: its size, and its number type where it has one.

use super::literal::{Node, Value};
use crate::Error;
use crate::dtype::{ByteOrder, Dtype, ElementBytes};

/// The element type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Element {
    /// Number type, or `Bytes(n)` for strings, dates, records and number types that have no name here.
    /// `n` is 0 for empty strings and records without fields.
    pub dtype: Dtype,
    /// Order of the bytes inside one number; elements are moved as they are, never converted.
    pub order: ByteOrder,
}

impl Element {
    /// Bytes of one element.
    pub fn size_bytes(&self) -> usize {
        self.dtype.size_bytes()
    }

    /// The bytes of one element that holds the number written as `text`, in the file's byte order.
    ///
    /// # Errors
    ///
    /// [`Error::Pad`] when the value does not fit (see [`Dtype::encode`]).
    pub fn encode(&self, text: &str) -> Result<ElementBytes, Error> {
        self.dtype.encode(text, self.order)
    }

    fn opaque(size_bytes: usize) -> Self {
        Element { dtype: Dtype::Bytes(size_bytes), order: ByteOrder::Little }
    }
}

/// Reads a `descr`; the error is the reason alone.
pub(super) fn element(node: &Node<'_>) -> Result<Element, String> {
    match &node.value {
        Value::Text(text) => simple(text),
        Value::List(_) | Value::Dict(_) => size(node).map(Element::opaque),
        Value::Tuple(_) => Err("is a sub-array, which can only be a field of a record".to_string()),
        _ => Err("is neither a type text nor a list of fields".to_string()),
    }
}

/// A number type text such as `<f8`, `|S5` or `<M8[ns]`.
fn simple(text: &[u8]) -> Result<Element, String> {
    let shown = || String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
    let unknown = || {
        format!(
            "'{}' is no type of a fixed size that is known here: convert the array first, for example with astype",
            shown()
        )
    };
    let (order, rest) = match text {
        [b'<' | b'|' | b'=', rest @ ..] => (ByteOrder::Little, rest),
        [b'>', rest @ ..] => (ByteOrder::Big, rest),
        // A text without an order means that of the machine that reads it, as in NumPy.
        rest => (if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little }, rest),
    };
    let (&kind, rest) = rest.split_first().ok_or_else(unknown)?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (digits, unit) = rest.split_at(digits);
    let count = digits.iter().try_fold(0usize, |n, d| n.checked_mul(10)?.checked_add(usize::from(d - b'0')));
    let count = count.ok_or_else(|| format!("'{}' does not fit the address space", shown()))?;
    let dated = matches!(unit, [b'[', .., b']']) || unit.is_empty();
    let number = match (kind, count) {
        (b'b', 1) => Some(Dtype::Bool),
        (b'i', 1) => Some(Dtype::I8),
        (b'i', 2) => Some(Dtype::I16),
        (b'i', 4) => Some(Dtype::I32),
        (b'i', 8) => Some(Dtype::I64),
        (b'u', 1) => Some(Dtype::U8),
        (b'u', 2) => Some(Dtype::U16),
        (b'u', 4) => Some(Dtype::U32),
        (b'u', 8) => Some(Dtype::U64),
        (b'f', 2) => Some(Dtype::F16),
        (b'f', 4) => Some(Dtype::F32),
        (b'f', 8) => Some(Dtype::F64),
        (b'c', 8) => Some(Dtype::C64),
        (b'c', 16) => Some(Dtype::C128),
        _ => None,
    };
    match (kind, number) {
        (b'O', _) => Err(format!(
            "'{}' means Python objects, which are pickled and have no bytes to move: convert them to a type of fixed \
             size first",
            shown()
        )),
        (_, Some(dtype)) if unit.is_empty() => Ok(Element { dtype, order }),
        // Extended precision as C compilers lay it out.
        (b'f', None) if matches!(count, 12 | 16) && unit.is_empty() => Ok(Element::opaque(count)),
        (b'c', None) if matches!(count, 24 | 32) && unit.is_empty() => Ok(Element::opaque(count)),
        (b'm' | b'M', _) if count == 8 && dated => Ok(Element::opaque(8)),
        (b'S' | b'a' | b'V', _) if unit.is_empty() => Ok(Element::opaque(count)),
        (b'U', _) if unit.is_empty() => {
            let bytes = count
                .checked_mul(4)
                .ok_or_else(|| format!("'{}' does not fit the address space", shown()))?;
            Ok(Element::opaque(bytes))
        }
        _ => Err(unknown()),
    }
}

/// Size in bytes of any part of a `descr`.
fn size(node: &Node<'_>) -> Result<usize, String> {
    match &node.value {
        Value::Text(text) => simple(text).map(|e| e.dtype.size_bytes()),
        Value::List(fields) => fields.iter().try_fold(0usize, |sum, field| {
            sum.checked_add(field_size(field)?).ok_or_else(|| "does not fit the address space".to_string())
        }),
        // A sub-array: (type, shape).
        Value::Tuple(parts) => match parts.as_slice() {
            [base, shape] => times(size(base)?, shape),
            _ => Err("has a type that is no (type, shape) pair".to_string()),
        },
        Value::Dict(entries) => dict_size(entries),
        _ => Err("has a field type that is neither a text nor a list".to_string()),
    }
}

/// `(name, type)` or `(name, type, shape)`, where the name may be a `(title, name)` pair.
fn field_size(field: &Node<'_>) -> Result<usize, String> {
    let Value::Tuple(parts) = &field.value else {
        return Err("has a field that is no (name, type) pair".to_string());
    };
    let name = match &parts.first().map(|n| &n.value) {
        Some(Value::Text(name)) => *name,
        Some(Value::Tuple(pair)) => match pair.as_slice() {
            [_, Node { value: Value::Text(name), .. }] => *name,
            _ => return Err("has a field whose name is no (title, name) pair".to_string()),
        },
        _ => return Err("has a field whose name is no text".to_string()),
    };
    let inside = |reason: String| {
        format!("field '{}': {reason}", String::from_utf8_lossy(&name[..name.len().min(40)]))
    };
    match parts.as_slice() {
        [_, base] => size(base).map_err(inside),
        [_, base, shape] => size(base).and_then(|bytes| times(bytes, shape)).map_err(inside),
        _ => Err("has a field that is no (name, type) or (name, type, shape)".to_string()),
    }
}

/// Bytes of a sub-array of elements of `bytes`.
fn times(bytes: usize, shape: &Node<'_>) -> Result<usize, String> {
    let extents: &[Node<'_>] = match &shape.value {
        Value::Int(_) => std::slice::from_ref(shape),
        Value::Tuple(extents) => extents,
        _ => return Err("has a sub-array shape that is neither a number nor a tuple".to_string()),
    };
    extents.iter().try_fold(bytes, |product, extent| match extent.value {
        Value::Int(Some(n)) if n >= 0 => usize::try_from(n)
            .ok()
            .and_then(|n| product.checked_mul(n))
            .ok_or_else(|| "does not fit the address space".to_string()),
        Value::Int(None) => Err("does not fit the address space".to_string()),
        _ => Err("has a sub-array shape with something else than numbers from 0".to_string()),
    })
}

/// The form with explicit offsets: `{'names': .., 'formats': .., 'offsets': .., 'itemsize': ..}`.
fn dict_size(entries: &[(Node<'_>, Node<'_>)]) -> Result<usize, String> {
    let get = |key: &[u8]| entries.iter().find(|(k, _)| k.value == Value::Text(key)).map(|(_, v)| &v.value);
    let number = |value: &Value<'_>, what: &str| match value {
        Value::Int(Some(n)) => {
            usize::try_from(*n).map_err(|_| format!("has {what} outside the address space"))
        }
        _ => Err(format!("has {what} that is no number")),
    };
    let (Some(Value::List(names) | Value::Tuple(names)), Some(Value::List(formats) | Value::Tuple(formats))) =
        (get(b"names"), get(b"formats"))
    else {
        return Err("is a dictionary without 'names' and 'formats'".to_string());
    };
    let offsets = match get(b"offsets") {
        None => None,
        Some(Value::List(offsets) | Value::Tuple(offsets)) => Some(offsets),
        Some(_) => return Err("has 'offsets' that are no list".to_string()),
    };
    if names.len() != formats.len() || offsets.is_some_and(|o| o.len() != names.len()) {
        return Err("has lists of different length in its dictionary".to_string());
    }
    let mut end = 0usize;
    for (i, format) in formats.iter().enumerate() {
        let named = |reason: String| match &names[i].value {
            Value::Text(name) => format!("field '{}': {reason}", String::from_utf8_lossy(name)),
            _ => reason,
        };
        let bytes = size(format).map_err(named)?;
        let start = match offsets {
            Some(offsets) => number(&offsets[i].value, "an offset")?,
            None => end,
        };
        end = end.max(start.checked_add(bytes).ok_or_else(|| "does not fit the address space".to_string())?);
    }
    match get(b"itemsize") {
        Some(value) => {
            let whole = number(value, "an 'itemsize'")?;
            if whole < end {
                return Err(format!("has an 'itemsize' of {whole}, but its fields take {end} bytes"));
            }
            Ok(whole)
        }
        None if matches!(get(b"aligned").or(get(b"align")), Some(Value::Bool(true))) => {
            Err("asks for alignment without an 'itemsize'".to_string())
        }
        None => Ok(end),
    }
}

#[cfg(test)]
mod tests {
    use super::super::literal::parse;
    use super::*;

    fn read(text: &str) -> Result<Element, String> {
        element(&parse(text.as_bytes()).unwrap())
    }

    fn bytes(text: &str) -> usize {
        read(text).unwrap_or_else(|e| panic!("{text}: {e}")).dtype.size_bytes()
    }

    #[test]
    fn numbers_keep_their_type_and_order() {
        for (text, dtype, order) in [
            ("'<f8'", Dtype::F64, ByteOrder::Little),
            ("'>f8'", Dtype::F64, ByteOrder::Big),
            ("'|b1'", Dtype::Bool, ByteOrder::Little),
            ("'|u1'", Dtype::U8, ByteOrder::Little),
            ("'=i4'", Dtype::I32, ByteOrder::Little),
            ("'>c16'", Dtype::C128, ByteOrder::Big),
            ("'<f2'", Dtype::F16, ByteOrder::Little),
            (
                "'i2'",
                Dtype::I16,
                if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little },
            ),
        ] {
            assert_eq!(read(text).unwrap(), Element { dtype, order }, "{text}");
        }
    }

    #[test]
    fn everything_of_fixed_size_has_its_size() {
        for (text, size) in [
            ("'|S5'", 5),
            ("'|a5'", 5),
            ("'|S0'", 0),
            ("'|S'", 0),
            ("'<U8'", 32),
            ("'|V56'", 56),
            ("'<M8[ns]'", 8),
            ("'>m8[25s]'", 8),
            ("'<m8'", 8),
            ("'<f16'", 16),
            ("'<c32'", 32),
            ("[]", 0),
            ("[('a', '<i4'), ('b', '<f4'), ('c', '<i8')]", 16),
            ("[('a', '|i1'), ('', '|V3'), ('b', '<f4')]", 8),
            ("[(('title', 'a'), '<i4')]", 4),
            ("[('a', '<i4', (2, 3))]", 24),
            ("[('a', '<i4', 3)]", 12),
            ("[('a', '<i4', ())]", 4),
            ("[('a', ('<i4', (2,)), (3,))]", 24),
            ("[('p', [('x', '<f8'), ('y', '<f8')], (2,)), ('q', '|u1')]", 33),
            ("{'names': ['a', 'b'], 'formats': ['|i1', '<f8'], 'offsets': [0, 8], 'itemsize': 24}", 24),
            ("{'names': ['b', 'a'], 'formats': ['<f8', '|i1'], 'offsets': [8, 0]}", 16),
            ("{'names': ['a'], 'formats': ['<f8']}", 8),
        ] {
            assert_eq!(bytes(text), size, "{text}");
        }
    }

    #[test]
    fn the_rest_is_refused_with_the_reason() {
        for (text, reason) in [
            ("'|O'", "Python objects"),
            ("'O'", "Python objects"),
            ("'|O8'", "Python objects"),
            ("[('a', '<i4'), ('b', '|O')]", "field 'b': '|O' means Python objects"),
            ("[('p', [('q', '|O', (2,))])]", "field 'p': field 'q': '|O'"),
            ("{'names': ['z'], 'formats': ['|O']}", "field 'z'"),
            ("''", "no type"),
            ("'<'", "no type"),
            ("'<f3'", "no type"),
            ("'float64'", "no type"),
            ("'<f8x'", "no type"),
            ("'<M4[s]'", "no type"),
            ("'<M8s'", "no type"),
            ("'|T16'", "no type"),
            ("'|S99999999999999999999'", "address space"),
            ("'<U9223372036854775807'", "address space"),
            ("[('a', '<f8', (4294967296, 4294967296))]", "address space"),
            (
                "[('a', '|S9223372036854775807'), ('b', '|S9223372036854775807'), ('c', '|S2')]",
                "address space",
            ),
            ("[('a', '<f8', (-1,))]", "numbers from 0"),
            ("['a']", "(name, type)"),
            ("[('a',)]", "(name, type)"),
            ("[(1, '<f8')]", "name"),
            ("[('a', 5)]", "field 'a'"),
            ("('<f8', (3,))", "sub-array"),
            ("5", "neither a type text"),
            ("{'names': ['a'], 'formats': ['<f8'], 'offsets': [0, 1]}", "different length"),
            ("{'names': ['a'], 'formats': ['<f8'], 'itemsize': 4}", "'itemsize' of 4"),
            ("{'names': ['a'], 'formats': ['<f8'], 'aligned': True}", "alignment"),
            ("{'formats': ['<f8']}", "'names'"),
        ] {
            let got = read(text).unwrap_err();
            assert!(got.contains(reason), "{text}: {got}");
        }
    }
}

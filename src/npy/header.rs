//! The header of a `.npy` file: read with every length checked first, written as NumPy writes it.

use super::descr::{self, Element};
use super::literal::{self, Node, Value};
use crate::Error;
use crate::layout::{Layout, MAX_NDIM};
use std::ops::Range;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// The whole header of what we write is a multiple of this, so that mapped data starts on a cache line.
const ALIGN: usize = 64;

/// What a `.npy` header says.
///
/// ```
/// use restride::npy::Header;
/// let bytes = Header::render(b"'<i2'", false, &[1, 2], (1, 0));
/// let header = Header::parse(&[&bytes[..], &[1, 0, 2, 0]].concat()).unwrap();
/// assert_eq!(header.shape, [1, 2]);
/// assert_eq!(header.element_size(), 2);
/// assert_eq!(header.data, 128..132);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Version of the format: (1, 0), (2, 0) or (3, 0).
    pub version: (u8, u8),
    /// The text of the element type, byte for byte as in the file.
    pub descr: Vec<u8>,
    /// What `descr` means.
    pub element: Element,
    /// Whether the first axis is the fastest one in memory.
    pub fortran_order: bool,
    /// Extents, one per axis.
    pub shape: Vec<usize>,
    /// Bytes of the file that hold the elements.
    pub data: Range<usize>,
    /// Bytes of the file after the elements.
    pub trailing_bytes: usize,
}

/// What is wrong with a header: the field and the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("field '{field}' {reason}")]
#[non_exhaustive]
pub struct HeaderError {
    /// The field: `magic`, `version`, `header length`, `header`, `descr`, `fortran_order`, `shape` or `data`.
    pub field: &'static str,
    /// What is wrong with it and what would be right.
    pub reason: String,
}

fn bad(field: &'static str, reason: impl Into<String>) -> HeaderError {
    HeaderError { field, reason: reason.into() }
}

/// What is damaged, or was written by something that does not know the format.
fn damaged(field: &'static str, reason: impl std::fmt::Display) -> HeaderError {
    bad(field, format!("{reason}: save the array again, for example with numpy.save"))
}

impl Header {
    /// Reads the header at the start of `file`, which holds the whole file.
    ///
    /// Nothing larger than a small multiple of the header text is allocated, whatever the header says.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] naming the field: what is no `.npy` file, an unknown version, a header length that
    /// exceeds the file, keys other than the three, Python objects, a size that overflows, truncated data.
    pub fn parse(file: &[u8]) -> Result<Self, HeaderError> {
        let (version, text, start) = split(file)?;
        let (descr, order, shape) = fields(text)?;

        let element = descr::element(&descr).map_err(|reason| bad("descr", reason))?;
        let fortran_order = match order.value {
            Value::Bool(flag) => flag,
            _ => {
                return Err(damaged(
                    "fortran_order",
                    format!("is {}, expected True or False", shown(text, &order)),
                ));
            }
        };
        let shape = extents(text, &shape)?;
        let bytes = data_bytes(&shape, element.dtype.size_bytes())?;

        let present = file.len() - start;
        if present < bytes {
            return Err(damaged(
                "data",
                format!(
                    "is truncated, for shape {shape:?} with elements of {} bytes needs {bytes} bytes, but {present} are \
                     present",
                    element.dtype.size_bytes()
                ),
            ));
        }
        Ok(Header {
            version,
            descr: text[descr.span.clone()].to_vec(),
            element,
            fortran_order,
            shape,
            data: start..start + bytes,
            trailing_bytes: present - bytes,
        })
    }

    /// Size of one element in bytes; 0 for empty strings and records without fields.
    pub fn element_size(&self) -> usize {
        self.element.dtype.size_bytes()
    }

    /// How the file's elements are read: row-major, or column-major for a Fortran file.
    ///
    /// # Errors
    ///
    /// As [`Layout::row_major`].
    pub fn layout(&self) -> Result<Layout, Error> {
        if self.fortran_order { Layout::column_major(&self.shape) } else { Layout::row_major(&self.shape) }
    }

    /// The version to write this file's `descr` with: 3.0 where its names are UTF-8, otherwise the lowest
    /// that fits.
    pub fn version_to_write(&self) -> (u8, u8) {
        if self.version == (3, 0) && !self.descr.is_ascii() { (3, 0) } else { (1, 0) }
    }

    /// The bytes of a header, magic included, padded to a multiple of 64 and ending in a newline.
    ///
    /// `version` is the lowest one to use; a header too long for 1.0 is written as 2.0.
    pub fn render(descr: &[u8], fortran_order: bool, shape: &[usize], version: (u8, u8)) -> Vec<u8> {
        let mut text = b"{'descr': ".to_vec();
        text.extend_from_slice(descr);
        text.extend_from_slice(if fortran_order {
            b", 'fortran_order': True"
        } else {
            b", 'fortran_order': False"
        });
        text.extend_from_slice(b", 'shape': (");
        for (axis, extent) in shape.iter().enumerate() {
            if axis > 0 {
                text.extend_from_slice(b", ");
            }
            text.extend_from_slice(extent.to_string().as_bytes());
        }
        text.extend_from_slice(if shape.len() == 1 { b",), }" } else { b"), }" });

        let padded = |length_bytes: usize| {
            let fixed = MAGIC.len() + 2 + length_bytes;
            (fixed + text.len() + 1).next_multiple_of(ALIGN) - fixed
        };
        let version = if version == (1, 0) && padded(2) > usize::from(u16::MAX) { (2, 0) } else { version };
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&[version.0, version.1]);
        let length = if version == (1, 0) {
            out.extend_from_slice(&(padded(2) as u16).to_le_bytes());
            padded(2)
        } else {
            out.extend_from_slice(&(padded(4) as u32).to_le_bytes());
            padded(4)
        };
        out.extend_from_slice(&text);
        out.resize(out.len() + length - text.len() - 1, b' ');
        out.push(b'\n');
        out
    }
}

/// The parts of a file before the data: version, header text, start of the data.
type Parts<'f> = ((u8, u8), &'f [u8], usize);

fn split(file: &[u8]) -> Result<Parts<'_>, HeaderError> {
    if file.len() < 8 || !file.starts_with(MAGIC) {
        let what = match file {
            [b'P', b'K', 3, 4, ..] => {
                "this is a zip archive (.npz?): unpack it and name one of its .npy files"
            }
            [] => "the file is empty",
            _ => "this is no .npy file",
        };
        return Err(bad("magic", format!("is not \\x93NUMPY: {what}")));
    }
    let version = (file[6], file[7]);
    let width = match version {
        (1, 0) => 2,
        (2, 0) | (3, 0) => 4,
        (major, minor) => {
            return Err(bad("version", format!("is {major}.{minor}: versions 1.0, 2.0 and 3.0 can be read")));
        }
    };
    let start = 8 + width;
    if file.len() < start {
        return Err(damaged(
            "header length",
            format!("is cut off, for the file ends after {} bytes", file.len()),
        ));
    }
    let mut length = [0; 4];
    length[..width].copy_from_slice(&file[8..start]);
    let length = u32::from_le_bytes(length) as usize;
    if length > file.len() - start {
        return Err(damaged(
            "header length",
            format!("says {length} bytes, but the file holds only {} after it", file.len() - start),
        ));
    }
    let text = &file[start..start + length];
    if version == (3, 0) && std::str::from_utf8(text).is_err() {
        return Err(damaged("header", "is not UTF-8, which version 3.0 prescribes"));
    }
    Ok((version, text, start + length))
}

/// The values of the three keys: descr, fortran_order, shape.
fn fields(text: &[u8]) -> Result<(Node<'_>, Node<'_>, Node<'_>), HeaderError> {
    let node = literal::parse(text).map_err(|e| {
        damaged("header", format!("cannot be read at byte {}, where {} is expected", e.at, e.expected))
    })?;
    let Value::Dict(pairs) = node.value else {
        return Err(damaged("header", "is no dictionary with descr, fortran_order and shape"));
    };
    let mut found: [Option<Node<'_>>; 3] = [None, None, None];
    const KEYS: [&str; 3] = ["descr", "fortran_order", "shape"];
    for (key, value) in pairs {
        let name = match key.value {
            Value::Text(name) => name,
            _ => {
                return Err(damaged(
                    "header",
                    format!("has the key {}, which is no text", shown(text, &key)),
                ));
            }
        };
        match KEYS.iter().position(|k| k.as_bytes() == name) {
            Some(i) if found[i].is_some() => return Err(damaged(KEYS[i], "is given twice")),
            Some(i) => found[i] = Some(value),
            None => {
                let name = shown(text, &key);
                return Err(damaged(
                    "header",
                    format!("has the unknown key {name} beside descr, fortran_order and shape"),
                ));
            }
        }
    }
    match found {
        [Some(descr), Some(order), Some(shape)] => Ok((descr, order, shape)),
        [None, ..] => Err(damaged("descr", "is missing")),
        [_, None, _] => Err(damaged("fortran_order", "is missing")),
        _ => Err(damaged("shape", "is missing")),
    }
}

/// The text of a node, cut to a length that fits a message.
fn shown(text: &[u8], node: &Node<'_>) -> String {
    let span = node.span.start..node.span.end.min(node.span.start + 60);
    String::from_utf8_lossy(&text[span]).into_owned()
}

fn extents(text: &[u8], node: &Node<'_>) -> Result<Vec<usize>, HeaderError> {
    let list = match &node.value {
        Value::Tuple(list) => list,
        Value::Int(Some(n)) => {
            return Err(damaged("shape", format!("is the number {n}, expected the tuple ({n},)")));
        }
        _ => return Err(damaged("shape", format!("is {}, expected a tuple of numbers", shown(text, node)))),
    };
    if list.len() > MAX_NDIM {
        return Err(bad("shape", format!("has {} axes, at most {MAX_NDIM} are allowed", list.len())));
    }
    list.iter()
        .map(|extent| match extent.value {
            Value::Int(Some(n)) if n < 0 => Err(damaged("shape", format!("has the negative extent {n}"))),
            Value::Int(n) => n.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| {
                bad(
                    "shape",
                    format!("has the extent {}, which does not fit the address space", shown(text, extent)),
                )
            }),
            _ => Err(damaged("shape", format!("has the extent {}, which is no number", shown(text, extent)))),
        })
        .collect()
}

/// Bytes of all elements; extents of 0 must not hide an overflow of the others (rule L10).
fn data_bytes(shape: &[usize], element_size: usize) -> Result<usize, HeaderError> {
    let bytes = shape
        .iter()
        .filter(|&&n| n > 0)
        .try_fold(element_size.max(1), |product, &n| product.checked_mul(n))
        .filter(|&bytes| isize::try_from(bytes).is_ok())
        .ok_or_else(|| {
            bad(
                "shape",
                format!(
                    "is {shape:?} with elements of {element_size} bytes: too large for the address space"
                ),
            )
        })?;
    Ok(if shape.contains(&0) || element_size == 0 { 0 } else { bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A version 1.0 file with this header text and this many zero bytes of data.
    fn file(text: &str, data: usize) -> Vec<u8> {
        let mut out = b"\x93NUMPY\x01\x00".to_vec();
        out.extend_from_slice(&(text.len() as u16).to_le_bytes());
        out.extend_from_slice(text.as_bytes());
        out.resize(out.len() + data, 0);
        out
    }

    fn refused(file: &[u8]) -> String {
        Header::parse(file).unwrap_err().to_string()
    }

    #[test]
    fn any_order_of_keys_quotes_and_space() {
        let texts = [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }      \n",
            "{'shape':(2,3),'fortran_order':False,'descr':'<f8'}",
            "{ \"shape\" : ( 2 , 3 , ) ,\n \"descr\" : \"<f8\" , \"fortran_order\" : False }",
            "{'descr': u'<f8', 'fortran_order': False, 'shape': (2L, 3L)}",
            "({'descr': ('<f8'), 'fortran_order': False, 'shape': (2, 3)})",
        ];
        for text in texts {
            let header = Header::parse(&file(text, 48)).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(header.shape, [2, 3]);
            assert_eq!(header.element_size(), 8);
            assert!(!header.fortran_order);
            assert_eq!(header.data.len(), 48);
        }
    }

    #[test]
    fn rank_zero_one_and_empty() {
        let parse = |shape: &str, data| {
            Header::parse(&file(&format!("{{'descr':'<i4','fortran_order':True,'shape':{shape}}}"), data))
                .unwrap()
        };
        assert_eq!(parse("()", 4).shape, [0usize; 0]);
        assert_eq!(parse("()", 4).data.len(), 4);
        assert_eq!(parse("(3,)", 12).shape, [3]);
        assert_eq!(parse("(0, 4611686018427387)", 0).data.len(), 0);
        let trailing = parse("(3,)", 17);
        assert_eq!((trailing.data.len(), trailing.trailing_bytes), (12, 5));
    }

    #[test]
    fn what_cannot_be_read_is_one_sentence_with_advice() {
        let again = "save the array again, for example with numpy.save";
        assert_eq!(
            refused(&file("{'descr': '<f8', 'fortran_order': [[Flase]], 'shape': (2, 3)}", 48)),
            format!("field 'header' cannot be read at byte 36, where a Python literal is expected: {again}")
        );
        for text in
            ["", "{'descr': '<f8'}", "{'descr': '<f8', 'fortran_order': 0, 'shape': ()}", "(1, 2)", "{1: 2}"]
        {
            let message = refused(&file(text, 48));
            assert!(message.ends_with(again) && message.matches(": ").count() == 1, "{message}");
        }
    }

    #[test]
    fn every_lie_names_its_field() {
        let dict = |descr: &str, order: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}}}")
        };
        let cases: Vec<(Vec<u8>, &str, &str)> = vec![
            (vec![], "magic", "empty"),
            (b"\x93NUMPY".to_vec(), "magic", "no .npy"),
            (b"hello world, this is text".to_vec(), "magic", "no .npy"),
            (b"PK\x03\x04aaaaaaaaaaaaa".to_vec(), "magic", "zip"),
            (b"\x93NUMPY\x04\x00\x10\x00".to_vec(), "version", "4.0"),
            (b"\x93NUMPY\x01\x01\x10\x00".to_vec(), "version", "1.1"),
            (b"\x93NUMPY\x01\x00\x10".to_vec(), "header length", "cut off"),
            (b"\x93NUMPY\x02\x00\xf0\xff\xff\xff".to_vec(), "header length", "4294967280"),
            (b"\x93NUMPY\x01\x00\xf8\xff{'a'".to_vec(), "header length", "only 4"),
            (file("", 0), "header", "byte 0"),
            (file("{'descr': '<f8'", 0), "header", "'}'"),
            (file("[1]", 0), "header", "dictionary"),
            (file("{1: 2}", 0), "header", "key"),
            (
                file("{'descr': '<f8', 'fortran_order': False, 'shape': (), 'extra': 1}", 8),
                "header",
                "'extra'",
            ),
            (file("{'fortran_order': False, 'shape': ()}", 8), "descr", "missing"),
            (file("{'descr': '<f8', 'shape': ()}", 8), "fortran_order", "missing"),
            (file("{'descr': '<f8', 'fortran_order': False}", 8), "shape", "missing"),
            (file("{'shape': (), 'descr': '<f8', 'fortran_order': False, 'shape': ()}", 8), "shape", "twice"),
            (file(&dict("'|O'", "False", "()"), 8), "descr", "objects"),
            (file(&dict("'<f8'", "0", "()"), 8), "fortran_order", "True or False"),
            (file(&dict("'<f8'", "False", "(6)"), 48), "shape", "(6,)"),
            (file(&dict("'<f8'", "False", "[6]"), 48), "shape", "tuple"),
            (file(&dict("'<f8'", "False", "(-1,)"), 48), "shape", "negative"),
            (file(&dict("'<f8'", "False", "('a',)"), 48), "shape", "no number"),
            (file(&dict("'<f8'", "False", "(99999999999999999999999999,)"), 48), "shape", "address space"),
            (file(&dict("'<f8'", "False", "(4294967296, 4294967296)"), 48), "shape", "too large"),
            (file(&dict("'<f8'", "False", "(0, 4294967296, 4294967296)"), 48), "shape", "too large"),
            (file(&dict("'|S0'", "False", "(4294967296, 4294967296)"), 48), "shape", "too large"),
            (file(&dict("'<f8'", "False", &format!("({})", "1,".repeat(65))), 8), "shape", "65 axes"),
            (file(&dict("'<f8'", "False", "(7,)"), 48), "data", "56 bytes, but 48"),
        ];
        for (bytes, field, reason) in cases {
            let error = Header::parse(&bytes).unwrap_err();
            assert_eq!(error.field, field, "{error}");
            assert!(error.reason.contains(reason), "{error}");
        }
    }

    #[test]
    fn names_are_latin1_before_and_utf8_in_version_3() {
        let mut v1 = file("{'descr': [('caf_', '<i4')], 'fortran_order': False, 'shape': (1,)}", 4);
        let at = v1.iter().position(|&b| b == b'_').unwrap();
        v1[at] = 0xe9;
        let header = Header::parse(&v1).unwrap();
        assert_eq!(header.descr, b"[('caf\xe9', '<i4')]");
        assert_eq!(header.version_to_write(), (1, 0));

        let text = "{'descr': [('größe', '<i4')], 'fortran_order': False, 'shape': (1,)}";
        let mut v3 = b"\x93NUMPY\x03\x00".to_vec();
        v3.extend_from_slice(&(text.len() as u32).to_le_bytes());
        v3.extend_from_slice(text.as_bytes());
        v3.extend_from_slice(&[0; 4]);
        let header = Header::parse(&v3).unwrap();
        assert_eq!(header.version_to_write(), (3, 0));
        assert_eq!(header.descr, "[('größe', '<i4')]".as_bytes());
        let broken = v3.iter().position(|&b| b == 0xc3).unwrap();
        v3[broken] = 0xff;
        assert!(refused(&v3).contains("UTF-8"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for shape in [&[][..], &[184], &[3, 4], &[0, 5, 1]] {
            for fortran in [false, true] {
                let mut out = Header::render(b"'>u2'", fortran, shape, (1, 0));
                assert_eq!(out.len() % 64, 0);
                assert_eq!(out.last(), Some(&b'\n'));
                out.resize(out.len() + shape.iter().product::<usize>() * 2, 0);
                let back = Header::parse(&out).unwrap();
                assert_eq!((back.shape.as_slice(), back.fortran_order), (shape, fortran));
                assert_eq!(back.descr, b"'>u2'");
            }
        }
        let text = String::from_utf8(Header::render(b"'<f8'", false, &[184], (1, 0))[10..].to_vec()).unwrap();
        assert!(text.starts_with("{'descr': '<f8', 'fortran_order': False, 'shape': (184,), }"), "{text}");
    }

    #[test]
    fn a_long_header_becomes_version_2() {
        let fields: String = (0..4000).map(|i| format!("('field_{i}', '<f4'), ")).collect();
        let descr = format!("[{fields}]");
        let mut out = Header::render(descr.as_bytes(), false, &[1], (1, 0));
        assert_eq!(&out[6..8], [2, 0]);
        assert_eq!(out.len() % 64, 0);
        out.resize(out.len() + 16_000, 0);
        let back = Header::parse(&out).unwrap();
        assert_eq!(back.element_size(), 16_000);
        assert_eq!(back.descr, descr.as_bytes());
        assert_eq!(back.version_to_write(), (1, 0));
    }
}

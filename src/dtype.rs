//! Element types known at run time: names, sizes, and how a pad value becomes bytes.

use crate::Error;
use smallvec::SmallVec;
use std::fmt;
use std::str::FromStr;

/// The bytes of one element, in the order the file or buffer holds them.
pub type ElementBytes = SmallVec<[u8; 16]>;

/// Order of the bytes inside one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ByteOrder {
    /// Least significant byte first.
    #[default]
    Little,
    /// Most significant byte first.
    Big,
}

/// An element type known at run time.
///
/// ```
/// use restride::dtype::{ByteOrder, Dtype};
/// let dtype: Dtype = "i16".parse().unwrap();
/// assert_eq!(dtype.size_bytes(), 2);
/// assert_eq!(dtype.encode("-2", ByteOrder::Big).unwrap().as_slice(), [0xff, 0xfe]);
/// assert!(dtype.encode("40000", ByteOrder::Big).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dtype {
    /// One byte, 0 or 1.
    Bool,
    /// Signed integer of 1 byte.
    I8,
    /// Unsigned integer of 1 byte.
    U8,
    /// Signed integer of 2 bytes.
    I16,
    /// Unsigned integer of 2 bytes.
    U16,
    /// IEEE float of 2 bytes.
    F16,
    /// Float of 2 bytes with the exponent of `f32`.
    Bf16,
    /// Signed integer of 4 bytes.
    I32,
    /// Unsigned integer of 4 bytes.
    U32,
    /// IEEE float of 4 bytes.
    F32,
    /// Signed integer of 8 bytes.
    I64,
    /// Unsigned integer of 8 bytes.
    U64,
    /// IEEE float of 8 bytes.
    F64,
    /// Complex number of two `f32`.
    C64,
    /// Complex number of two `f64`.
    C128,
    /// Opaque bytes: strings, dates, records.
    Bytes(usize),
}

const NAMED: [(&str, Dtype); 15] = [
    ("bool", Dtype::Bool),
    ("i8", Dtype::I8),
    ("u8", Dtype::U8),
    ("i16", Dtype::I16),
    ("u16", Dtype::U16),
    ("f16", Dtype::F16),
    ("bf16", Dtype::Bf16),
    ("i32", Dtype::I32),
    ("u32", Dtype::U32),
    ("f32", Dtype::F32),
    ("i64", Dtype::I64),
    ("u64", Dtype::U64),
    ("f64", Dtype::F64),
    ("c64", Dtype::C64),
    ("c128", Dtype::C128),
];

/// NumPy's and PyTorch's names.
const NUMPY: [(&str, Dtype); 16] = [
    ("bool_", Dtype::Bool),
    ("int8", Dtype::I8),
    ("uint8", Dtype::U8),
    ("int16", Dtype::I16),
    ("uint16", Dtype::U16),
    ("float16", Dtype::F16),
    ("bfloat16", Dtype::Bf16),
    ("int32", Dtype::I32),
    ("uint32", Dtype::U32),
    ("float32", Dtype::F32),
    ("int64", Dtype::I64),
    ("uint64", Dtype::U64),
    ("float64", Dtype::F64),
    ("complex64", Dtype::C64),
    ("complex128", Dtype::C128),
    ("half", Dtype::F16),
];

/// A code of NumPy's array interface without its byte order: `f4`, `i8`, `V12`.
fn numpy_code(code: &str) -> Option<Dtype> {
    let (kind, digits) = code.split_at_checked(1)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let bytes: usize = digits.parse().ok()?;
    Some(match (kind, bytes) {
        ("b", 1) => Dtype::Bool,
        ("i", 1) => Dtype::I8,
        ("u", 1) => Dtype::U8,
        ("i", 2) => Dtype::I16,
        ("u", 2) => Dtype::U16,
        ("f", 2) => Dtype::F16,
        ("i", 4) => Dtype::I32,
        ("u", 4) => Dtype::U32,
        ("f", 4) => Dtype::F32,
        ("i", 8) => Dtype::I64,
        ("u", 8) => Dtype::U64,
        ("f", 8) => Dtype::F64,
        ("c", 8) => Dtype::C64,
        ("c", 16) => Dtype::C128,
        ("V" | "S", 1..=0x7fff_ffff) => Dtype::Bytes(bytes),
        ("U", 1..=0x1fff_ffff) => Dtype::Bytes(4 * bytes),
        _ => return None,
    })
}

/// A text that names no element type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown dtype '{0}': use bool, i8, u8, i16, u16, f16, bf16, i32, u32, f32, i64, u64, f64, c64, c128 \
     or bytesN with N of 1 or more"
)]
pub struct UnknownDtype(pub String);

impl FromStr for Dtype {
    type Err = UnknownDtype;

    fn from_str(text: &str) -> Result<Self, UnknownDtype> {
        if let Some(&(_, dtype)) = NAMED.iter().chain(&NUMPY).find(|(name, _)| *name == text) {
            return Ok(dtype);
        }
        // A mark of the byte order tells NumPy's codes, whose digits are bytes, from the names above.
        if let Some(dtype) = text.strip_prefix(['<', '|', '=']).and_then(numpy_code) {
            return Ok(dtype);
        }
        text.strip_prefix("bytes")
            .filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|digits| digits.parse::<usize>().ok())
            .filter(|&n| n > 0 && n <= isize::MAX as usize)
            .map(Dtype::Bytes)
            .ok_or_else(|| UnknownDtype(text.to_string()))
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dtype::Bytes(n) => write!(f, "bytes{n}"),
            named => {
                let (name, _) = NAMED.iter().find(|(_, d)| d == named).unwrap_or(&("bytes", Dtype::Bool));
                f.pad(name)
            }
        }
    }
}

impl Dtype {
    /// Size of one element in bytes.
    pub fn size_bytes(self) -> usize {
        match self {
            Dtype::Bool | Dtype::I8 | Dtype::U8 => 1,
            Dtype::I16 | Dtype::U16 | Dtype::F16 | Dtype::Bf16 => 2,
            Dtype::I32 | Dtype::U32 | Dtype::F32 => 4,
            Dtype::I64 | Dtype::U64 | Dtype::F64 | Dtype::C64 => 8,
            Dtype::C128 => 16,
            Dtype::Bytes(n) => n,
        }
    }

    /// The bytes of one element that holds the number written as `text`.
    ///
    /// `text` is a Python number: `0`, `-3`, `1_000`, `1.5`, `1e-3`, `True`, `inf`, `-inf` or `nan`.
    /// Integers must fit exactly, floats are rounded to nearest. Complex numbers may be written as `1+2j` and
    /// otherwise get a zero imaginary part.
    ///
    /// # Errors
    ///
    /// [`Error::Pad`] when the value does not fit: 300 into `u8`, 1.5 into an integer, −1 into an
    /// unsigned type, a finite number that would become infinite, 2 into `bool`, anything but 0 into
    /// opaque bytes.
    pub fn encode(self, text: &str, order: ByteOrder) -> Result<ElementBytes, Error> {
        let (value, imaginary) = read_complex(text)?;
        let refuse =
            |why: &str| Error::Pad { reason: format!("the pad value {text} does not fit {self}: {why}") };
        let too_large = || refuse("it is finite but too large; write inf where infinity is meant");
        if imaginary.is_some() && !matches!(self, Dtype::C64 | Dtype::C128) {
            return Err(refuse("the type holds real numbers only"));
        }
        let mut bytes: ElementBytes = match self {
            Dtype::Bool => match value.integer() {
                Some(v @ (0 | 1)) => return Ok(SmallVec::from_slice(&[v as u8])),
                _ => return Err(refuse("use 0 or 1")),
            },
            Dtype::Bytes(n) => {
                if !value.is_positive_zero() {
                    return Err(refuse("opaque elements can only be padded with 0, which means zero bytes"));
                }
                return Ok(SmallVec::from_elem(0, n));
            }
            Dtype::I8 | Dtype::I16 | Dtype::I32 | Dtype::I64 => {
                integer(&value, self.size_bytes(), true).map_err(|e| refuse(&e))?
            }
            Dtype::U8 | Dtype::U16 | Dtype::U32 | Dtype::U64 => {
                integer(&value, self.size_bytes(), false).map_err(|e| refuse(&e))?
            }
            Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64 | Dtype::C64 | Dtype::C128 => {
                self.float(&value).ok_or_else(too_large)?
            }
        };
        // `bytes` is one little-endian number here.
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        if let Some(imaginary) = imaginary {
            let mut second = self.float(&imaginary).ok_or_else(too_large)?;
            if order == ByteOrder::Big {
                second.reverse();
            }
            bytes.extend(second);
        }
        bytes.resize(self.size_bytes(), 0);
        Ok(bytes)
    }

    /// One little-endian float; `None` when a finite value would become infinite.
    fn float(self, value: &Number) -> Option<ElementBytes> {
        Some(match self {
            Dtype::F16 => SmallVec::from_slice(&(round_float(value.as_f64(), 5, 10)? as u16).to_le_bytes()),
            Dtype::Bf16 => SmallVec::from_slice(&(round_float(value.as_f64(), 8, 7)? as u16).to_le_bytes()),
            Dtype::F32 | Dtype::C64 => {
                let rounded = value.as_f32();
                if rounded.is_infinite() && !value.is_infinite() {
                    return None;
                }
                SmallVec::from_slice(&rounded.to_le_bytes())
            }
            _ => {
                let rounded = value.as_f64();
                if rounded.is_infinite() && !value.is_infinite() {
                    return None;
                }
                SmallVec::from_slice(&rounded.to_le_bytes())
            }
        })
    }
}

/// Real and imaginary part of a number such as `1`, `2j` or `1-2j`.
fn read_complex(text: &str) -> Result<(Number, Option<Number>), Error> {
    let trimmed = text.trim();
    let Some(body) = trimmed.strip_suffix(['j', 'J']) else { return Ok((Number::read(trimmed)?, None)) };
    // The sign between the parts: not the first character, not that of an exponent.
    let sign = body
        .char_indices()
        .rev()
        .find(|&(i, c)| matches!(c, '+' | '-') && i > 0 && !body[..i].ends_with(['e', 'E']))
        .map(|(i, _)| i);
    let (real, imaginary) = sign.map_or(("0", body), |i| body.split_at(i));
    match (Number::read(real), Number::read(imaginary)) {
        (Ok(real), Ok(imaginary)) => Ok((real, Some(imaginary))),
        _ => Err(unreadable(text)),
    }
}

fn unreadable(text: &str) -> Error {
    Error::Pad {
        reason: format!(
            "the pad value {text} is not a number: use one like 0, -3, 1.5, 1e-3, 1+2j, True, inf or nan"
        ),
    }
}

/// A number as it was written, without having lost anything yet.
struct Number {
    /// Digits without underscores, or `inf`, `nan`.
    text: String,
    /// The value where it is an integer literal of less than 128 bits.
    whole: Option<i128>,
}

impl Number {
    fn read(text: &str) -> Result<Self, Error> {
        let trimmed = text.trim();
        match trimmed {
            "True" | "true" => return Ok(Number { text: "1".into(), whole: Some(1) }),
            "False" | "false" => return Ok(Number { text: "0".into(), whole: Some(0) }),
            _ => {}
        }
        let between_digits = |i: usize| {
            let bytes = trimmed.as_bytes();
            i > 0 && bytes[i - 1].is_ascii_digit() && bytes.get(i + 1).is_some_and(|b| b.is_ascii_digit())
        };
        if trimmed.match_indices('_').any(|(i, _)| !between_digits(i)) {
            return Err(unreadable(text));
        }
        let text = trimmed.replace('_', "");
        text.parse::<f64>().map_err(|_| unreadable(trimmed))?;
        Ok(Number { whole: text.parse().ok(), text })
    }

    fn as_f64(&self) -> f64 {
        // `read` has seen that the text is a float.
        self.text.parse().unwrap_or(f64::NAN)
    }

    fn as_f32(&self) -> f32 {
        self.text.parse().unwrap_or(f32::NAN)
    }

    /// Whether infinity itself was written, not a number that is too large.
    fn is_infinite(&self) -> bool {
        self.text.trim_start_matches(['+', '-']).starts_with(['i', 'I'])
    }

    fn is_positive_zero(&self) -> bool {
        self.whole == Some(0) || self.as_f64().to_bits() == 0
    }

    /// The exact integer, where the text denotes one (`2.0` and `1e3` do).
    fn integer(&self) -> Option<i128> {
        if self.whole.is_some() {
            return self.whole;
        }
        let value = self.as_f64();
        // 2^127 and more fit no element type.
        (value.is_finite() && value.fract() == 0.0 && value.abs() < 1.7e38).then_some(value as i128)
    }
}

/// One little-endian integer of `size` bytes, or why the value does not fit.
fn integer(value: &Number, size: usize, signed: bool) -> Result<ElementBytes, String> {
    let whole = value.integer().ok_or_else(|| "the type holds whole numbers only".to_string())?;
    let values = 1i128 << (8 * size);
    let (low, high) = if signed { (-values / 2, values / 2 - 1) } else { (0, values - 1) };
    if !(low..=high).contains(&whole) {
        return Err(format!("the type holds {low} to {high}"));
    }
    Ok(SmallVec::from_slice(&whole.to_le_bytes()[..size]))
}

/// Rounds to the nearest float of `exponent_bits` and `mantissa_bits`, ties to even; gives its bits, or
/// `None` when a finite value would become infinite.
fn round_float(value: f64, exponent_bits: u32, mantissa_bits: u32) -> Option<u64> {
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    let sign = u64::from(value.is_sign_negative()) << (exponent_bits + mantissa_bits);
    let infinity = ((1u64 << exponent_bits) - 1) << mantissa_bits;
    if value.is_nan() {
        return Some(sign | infinity | 1 << (mantissa_bits - 1));
    }
    if value.is_infinite() {
        return Some(sign | infinity);
    }
    let bits = value.abs().to_bits();
    if bits == 0 {
        return Some(sign);
    }
    let exponent = (bits >> 52) as i32 - 1023;
    if exponent < -1022 {
        return Some(sign); // a subnormal f64 is far below half of the smallest step
    }
    let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
    // Bits of the mantissa to drop: more of them below the smallest normal exponent.
    let drop = 52 - mantissa_bits as i32 + (1 - bias - exponent).max(0);
    if drop > 54 {
        return Some(sign);
    }
    let half = 1u64 << (drop - 1);
    let kept = mantissa >> drop;
    let rest = mantissa & ((1 << drop) - 1);
    let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
    // The implicit leading one adds 1 to the exponent field, and so does a carry out of the mantissa.
    let field = ((exponent.max(1 - bias) + bias - 1) as u64) << mantissa_bits;
    let result = field + rounded;
    (result < infinity).then_some(sign | result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(dtype: &str, text: &str) -> Result<Vec<u8>, String> {
        let dtype: Dtype = dtype.parse().unwrap();
        dtype.encode(text, ByteOrder::Little).map(|b| b.to_vec()).map_err(|e| {
            assert_eq!(e.kind(), "pad");
            e.to_string()
        })
    }

    #[test]
    fn names_of_numpy_are_understood() {
        for (name, ours) in [
            ("float32", "f32"),
            ("uint8", "u8"),
            ("int64", "i64"),
            ("bfloat16", "bf16"),
            ("complex64", "c64"),
            ("<f4", "f32"),
            ("=f8", "f64"),
            ("<i8", "i64"),
            ("|i1", "i8"),
            ("|u1", "u8"),
            ("|b1", "bool"),
            ("<c16", "c128"),
            ("|V12", "bytes12"),
            ("|S5", "bytes5"),
            ("<U3", "bytes12"),
            // Without a mark of the byte order a name is ours.
            ("i8", "i8"),
            ("u8", "u8"),
        ] {
            assert_eq!(name.parse::<Dtype>().unwrap().to_string(), ours, "{name}");
        }
        for name in [">f4", "<f3", "<f", "|V0", "<M8[ns]", "f4", "float", "<", "|\u{1f600}4"] {
            assert!(name.parse::<Dtype>().is_err(), "{name}");
        }
    }

    #[test]
    fn names_go_both_ways() {
        for (name, dtype) in NAMED {
            assert_eq!(name.parse::<Dtype>().unwrap(), dtype);
            assert_eq!(dtype.to_string(), name);
        }
        assert_eq!("bytes7".parse::<Dtype>().unwrap(), Dtype::Bytes(7));
        assert_eq!(Dtype::Bytes(7).to_string(), "bytes7");
        for wrong in [
            "",
            "float",
            "F32",
            "bytes",
            "bytes0",
            "bytes-1",
            "bytes+1",
            "i128",
            " i8",
            "bytes99999999999999999999",
        ] {
            assert!(wrong.parse::<Dtype>().unwrap_err().to_string().contains("unknown dtype"), "{wrong}");
        }
    }

    #[test]
    fn integers_must_fit_exactly() {
        assert_eq!(encode("u8", "255").unwrap(), [255]);
        assert_eq!(encode("i8", "-128").unwrap(), [128]);
        assert_eq!(encode("i32", "1e3").unwrap(), 1000i32.to_le_bytes());
        assert_eq!(encode("u64", "18446744073709551615").unwrap(), [255; 8]);
        assert_eq!(encode("i64", "-9223372036854775808").unwrap(), i64::MIN.to_le_bytes());
        assert_eq!(encode("i16", "2.0").unwrap(), [2, 0]);
        assert_eq!(encode("i16", "1_000").unwrap(), 1000i16.to_le_bytes());
        assert_eq!(encode("i8", "True").unwrap(), [1]);
        for (dtype, text) in [
            ("u8", "300"),
            ("u8", "-1"),
            ("i8", "128"),
            ("i32", "1.5"),
            ("i64", "9223372036854775808"),
            ("u64", "-1"),
            ("u64", "18446744073709551616"),
            ("u64", "1e30"),
            ("i32", "nan"),
            ("i32", "inf"),
            ("bool", "2"),
            ("bool", "0.5"),
            ("bytes3", "1"),
            ("bytes3", "-0.0"),
            ("u8", "99999999999999999999999999999999999999999999"),
        ] {
            let message = encode(dtype, text).unwrap_err();
            assert!(message.contains(text) && message.contains(dtype), "{message}");
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in ["", "x", "1_", "_1", "1__0", "1._5", "0x10", "--1", "1+2i", "j", "1+j", "'a'"] {
            assert!(encode("f64", text).unwrap_err().contains("not a number"), "{text}");
        }
    }

    #[test]
    fn opaque_elements_take_zero_only() {
        assert_eq!(encode("bytes5", "0").unwrap(), [0; 5]);
        assert_eq!(encode("bytes5", "0.0").unwrap(), [0; 5]);
    }

    #[test]
    fn floats_round_once_and_never_to_infinity() {
        assert_eq!(encode("f32", "0.1").unwrap(), 0.1f32.to_le_bytes());
        assert_eq!(encode("f64", "-0.0").unwrap(), (-0.0f64).to_le_bytes());
        assert_eq!(encode("f64", "inf").unwrap(), f64::INFINITY.to_le_bytes());
        assert_eq!(encode("f16", "-inf").unwrap(), 0xfc00u16.to_le_bytes());
        assert_eq!(encode("f16", "65504").unwrap(), 0x7bffu16.to_le_bytes());
        assert_eq!(encode("f16", "65519.99").unwrap(), 0x7bffu16.to_le_bytes());
        assert_eq!(encode("bf16", "1").unwrap(), 0x3f80u16.to_le_bytes());
        assert_eq!(encode("c64", "1").unwrap(), [0, 0, 0x80, 0x3f, 0, 0, 0, 0]);
        for (dtype, text) in
            [("f16", "65520"), ("bf16", "3.4e38"), ("f32", "3.5e38"), ("f64", "1e309"), ("c64", "-1e39")]
        {
            assert!(encode(dtype, text).unwrap_err().contains("finite but too large"), "{dtype} {text}");
        }
    }

    #[test]
    fn byte_order_turns_each_number_around() {
        let big = |dtype: Dtype, text| dtype.encode(text, ByteOrder::Big).unwrap().to_vec();
        assert_eq!(big(Dtype::I32, "1"), [0, 0, 0, 1]);
        assert_eq!(big(Dtype::C128, "1"), [0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(big(Dtype::Bool, "1"), [1]);
    }

    #[test]
    fn complex_numbers_have_two_parts() {
        let pair = |re: f32, im: f32| [re.to_le_bytes(), im.to_le_bytes()].concat();
        assert_eq!(encode("c64", "1+2j").unwrap(), pair(1.0, 2.0));
        assert_eq!(encode("c64", "-1e-3-2.5e+2j").unwrap(), pair(-1e-3, -250.0));
        assert_eq!(encode("c64", "3j").unwrap(), pair(0.0, 3.0));
        assert_eq!(encode("c64", "-3j").unwrap(), pair(0.0, -3.0));
        assert_eq!(encode("c64", "1").unwrap(), pair(1.0, 0.0));
        assert_eq!(
            Dtype::C64.encode("1+2j", ByteOrder::Big).unwrap().to_vec(),
            [0x3f, 0x80, 0, 0, 0x40, 0, 0, 0]
        );
        assert!(encode("c64", "1+1e39j").unwrap_err().contains("finite"));
        assert!(encode("f64", "1+2j").unwrap_err().contains("real numbers only"));
        assert!(encode("bytes8", "0j").unwrap_err().contains("real numbers only"));
    }

    #[test]
    fn half_rounds_to_nearest_even() {
        let f16 = |v: f64| round_float(v, 5, 10).unwrap();
        assert_eq!(f16(1.0), 0x3c00);
        assert_eq!(f16(1.0 + 1.0 / 2048.0), 0x3c00); // a tie, to even
        assert_eq!(f16(1.0 + 3.0 / 2048.0), 0x3c02);
        assert_eq!(f16(2f64.powi(-24)), 1); // smallest subnormal
        assert_eq!(f16(2f64.powi(-25)), 0); // a tie, to even
        assert_eq!(f16(2f64.powi(-25) * 1.001), 1);
        assert_eq!(f16(2f64.powi(-14)), 0x0400); // smallest normal
        assert_eq!(f16(2f64.powi(-14) - 2f64.powi(-26)), 0x0400); // rounds up into it
        assert_eq!(f16(-0.0), 0x8000);
        assert_eq!(f16(1e-300), 0);
    }
}

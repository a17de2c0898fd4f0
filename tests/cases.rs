//! The handed cases, through the library: shapes, strides, offsets, copies and values computed by NumPy.

use restride::dtype::{ByteOrder, Dtype, ElementBytes};
use restride::eval::{Evaluation, evaluate};
use restride::{CopyOptions, Expr, Layout, View};
use serde_json::Value;

fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers<T: TryFrom<i64>>(value: &Value) -> Vec<T> {
    let as_number = |n: &Value| T::try_from(n.as_i64().unwrap()).ok().unwrap();
    value.as_array().unwrap().iter().map(as_number).collect()
}

fn encode(text: &str) -> Result<ElementBytes, restride::Error> {
    Dtype::I64.encode(text, ByteOrder::Little)
}

/// The result of an evaluation over an arange buffer, pass after pass: by the engine, and again element
/// by element.
fn run(evaluation: &Evaluation, len: usize) -> Vec<i64> {
    let arange: Vec<i64> = (0..len as i64).collect();
    let mut buffer = arange.clone();
    for pass in &evaluation.passes {
        let fill = pass.fill.as_ref().map_or(0, |bytes| i64::from_le_bytes(bytes[..].try_into().unwrap()));
        let view = View::with_fill(&buffer, pass.src.clone(), fill).unwrap();
        let read: Vec<i64> = view.iter().collect();
        assert_eq!(view.materialize().unwrap().as_slice(), read);
        buffer = read;
    }
    let bytes: Vec<u8> = arange.iter().flat_map(|v| v.to_le_bytes()).collect();
    let engine = restride::eval::run(evaluation, &bytes, 8, &CopyOptions::default()).unwrap();
    let expected: Vec<u8> = buffer.iter().flat_map(|v| v.to_le_bytes()).collect();
    assert_eq!(engine.as_slice(), expected);
    buffer
}

fn check(case: &Value) -> Result<(), String> {
    let shape: Vec<usize> = numbers(&case["shape"]);
    let layout = Layout::row_major(&shape).unwrap();
    let expect = &case["expect"];
    let text = case["expr"].as_str().unwrap();
    let evaluation = Expr::parse_placed(text).and_then(|e| evaluate(&layout, layout.numel(), &e, &encode));
    let evaluation = match (evaluation, expect["error"].as_str()) {
        (Err(refusal), Some(kind)) if refusal.error.kind() == kind => return Ok(()),
        (Err(refusal), expected) => return Err(format!("{} instead of {expected:?}", refusal.error)),
        (Ok(_), Some(kind)) => return Err(format!("accepted instead of {kind}")),
        (Ok(evaluation), None) => evaluation,
    };
    let view = &evaluation.layout;
    let differs = |what: &str, got: String| Err(format!("{what}: {got}"));
    if view.shape() != numbers::<usize>(&expect["shape"]) {
        return differs("shape", format!("{:?}", view.shape()));
    }
    // NumPy pads into fresh memory: cases with a pad give no copies, and strides that mean nothing here.
    let padded = expect["copies"].is_null();
    if !padded && expect["copies"] != evaluation.copies {
        return differs("copies", evaluation.copies.to_string());
    }
    if !padded && expect["contiguous"].as_bool().is_some_and(|c| c != view.is_contiguous()) {
        return differs("contiguous", view.is_contiguous().to_string());
    }
    if !padded && expect["offset"].as_i64().is_some_and(|offset| offset != view.offset() as i64) {
        return differs("offset", view.offset().to_string());
    }
    if !padded && expect["strides"].is_array() {
        let strides: Vec<isize> = numbers(&expect["strides"]);
        let agree = |axis: usize| view.shape()[axis] == 1 || view.strides()[axis] == strides[axis];
        if strides.len() != view.ndim() || !(0..view.ndim()).all(agree) {
            return differs("strides", format!("{:?}", view.strides()));
        }
    }
    let values = run(&evaluation, layout.numel());
    if expect["values"].is_array() && values != numbers::<i64>(&expect["values"]) {
        return differs("values", format!("{values:?}"));
    }
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let crc = u64::from(crc32fast::hash(&bytes));
    if expect["crc32_i64"].as_u64().unwrap() != crc {
        return differs("crc32", crc.to_string());
    }
    Ok(())
}

fn check_file(file: &str, count: usize) {
    let cases = cases(file);
    assert_eq!(cases.len(), count);
    let wrong: Vec<String> =
        cases.iter().filter_map(|case| check(case).err().map(|e| format!("{case}\n  {e}"))).collect();
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn seeds() {
    check_file("seeds.jsonl", 71);
}

#[test]
fn views() {
    check_file("views.jsonl", 400);
}

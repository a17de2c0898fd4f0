//! The handed cases through `restride materialize`: files of both memory orders, written in both.
#![cfg(feature = "cli")]

use restride::npy::Header;
use serde_json::Value;
use std::fs;
use std::process::Command;

/// A file of shape `shape` whose elements are 0, 1, 2 ... in row-major order, however they are stored.
fn arange(shape: &[usize], fortran_order: bool) -> Vec<u8> {
    let mut file = Header::render(b"'<i8'", fortran_order, shape, (1, 0));
    let start = file.len();
    let count: usize = shape.iter().product();
    file.resize(start + count * 8, 0);
    let header = Header::parse(&file).unwrap();
    let layout = header.layout().unwrap();
    for k in 0..count {
        let at = start + layout.view_at(k).unwrap().unwrap() * 8;
        file[at..at + 8].copy_from_slice(&(k as i64).to_le_bytes());
    }
    file
}

/// Values of a file in row-major order.
fn values(file: &[u8]) -> (Vec<usize>, Vec<u8>) {
    let header = Header::parse(file).unwrap();
    let layout = header.layout().unwrap();
    let data = &file[header.data.clone()];
    let element = |k| &data[layout.view_at(k).unwrap().unwrap() * 8..][..8];
    let bytes = (0..layout.numel()).flat_map(|k| element(k).to_vec()).collect();
    (header.shape, bytes)
}

fn check(file: &str, count: usize) {
    let text = fs::read_to_string(format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in.npy"), folder.path().join("out.npy"));
    let mut ran = 0;
    for (number, line) in text.lines().enumerate() {
        let case: Value = serde_json::from_str(line).unwrap();
        let shape: Vec<usize> = serde_json::from_value(case["shape"].clone()).unwrap();
        let expr = case["expr"].as_str().unwrap();
        let (expect, fortran_order) = (&case["expect"], number % 2 == 1);
        if expr.contains("as_strided") && fortran_order && shape.len() > 1 {
            // It counts in elements of the memory, which lie in another order here.
            fs::write(&input, arange(&shape, false)).unwrap();
        } else {
            fs::write(&input, arange(&shape, fortran_order)).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_restride"));
        command.arg("materialize").args([
            input.as_os_str(),
            expr.as_ref(),
            "-o".as_ref(),
            output.as_os_str(),
        ]);
        command.args(["--order", if number % 3 == 0 { "F" } else { "C" }, "--json"]);
        let result = command.output().unwrap();
        let summary: Value = serde_json::from_slice(&result.stdout).unwrap();
        if let Some(kind) = expect["error"].as_str() {
            // A view of a row-major file may be none of a column-major one, and the other way round.
            if !fortran_order || kind != "needs_copy" {
                assert_eq!(summary["error"]["kind"], kind, "{line}");
                assert_eq!(result.status.code(), Some(if kind == "syntax" { 2 } else { 1 }), "{line}");
                assert!(!output.exists());
            }
        } else if fortran_order && summary["error"]["kind"] == "needs_copy" {
            assert!(expr.contains(".view("), "{line}");
        } else {
            assert!(result.status.success(), "{line}\n{}", String::from_utf8_lossy(&result.stderr));
            let (shape, bytes) = values(&fs::read(&output).unwrap());
            assert_eq!(serde_json::to_value(shape).unwrap(), expect["shape"], "{line}");
            assert_eq!(expect["crc32_i64"].as_u64(), Some(u64::from(crc32fast::hash(&bytes))), "{line}");
        }
        let _ = fs::remove_file(&output);
        ran += 1;
    }
    assert_eq!(ran, count);
}

#[test]
fn seeds() {
    check("seeds.jsonl", 71);
}

#[test]
fn views() {
    check("views.jsonl", 400);
}

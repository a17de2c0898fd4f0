//! `restride materialize` on real files: what it writes is what NumPy makes of the same view.
#![cfg(feature = "cli")]

use restride::npy::{Header, Input};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/npy")
}

fn materialize(input: &Path, expr: &str, output: &Path, more: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_restride"))
        .arg("materialize")
        .args([input.as_os_str(), expr.as_ref(), "-o".as_ref(), output.as_os_str()])
        .args(more)
        .output()
        .unwrap()
}

/// Runs the command and reads what it wrote.
fn made(input: &Path, expr: &str, output: &Path, more: &[&str]) -> (Header, Vec<u8>) {
    let ran = materialize(input, expr, output, more);
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{input:?} {expr} {more:?}: {stderr}");
    let file = fs::read(output).unwrap();
    let header = Header::parse(&file).unwrap();
    assert_eq!(header.trailing_bytes, 0);
    assert_eq!(header.data.start % 64, 0);
    let data = file[header.data.clone()].to_vec();
    (header, data)
}

/// Runs the command, which must fail with exit code 1 or 2, one sentence, and no file.
fn refused(input: &Path, expr: &str, more: &[&str], code: i32) -> String {
    let folder = tempfile::tempdir().unwrap();
    let ran = materialize(input, expr, &folder.path().join("out.npy"), more);
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(code), "{expr}: {stderr}");
    assert!(stderr.starts_with("restride: ") || code == 2, "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{stderr}");
    stderr
}

/// Reorders the elements of a column-major file into row-major order.
fn row_major(header: &Header, data: &[u8]) -> Vec<u8> {
    let layout = header.layout().unwrap();
    let size = header.element_size();
    (0..layout.numel())
        .flat_map(|k| data[layout.view_at(k).unwrap().unwrap() * size..][..size].to_vec())
        .collect()
}

#[test]
fn every_file_in_both_orders_and_directions() {
    let text = fs::read_to_string(data().join("expected.json")).unwrap();
    let expected: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.npy");
    for (name, want) in expected.iter().filter(|(_, want)| want.get("refused").is_none()) {
        let path = data().join(name);
        let input = Input::open(&path).unwrap();
        let source = input.header();
        for (expr, key) in [("", "crc32"), (".T", "crc32_transposed"), ("[..., ::-1]", "crc32_reversed")] {
            if expr.starts_with('[') && source.shape.is_empty() {
                continue;
            }
            let mut shape = source.shape.clone();
            if expr == ".T" {
                shape.reverse();
            }
            let (header, bytes) = made(&path, expr, &output, &["--verify"]);
            assert!(!header.fortran_order, "{name}");
            assert_eq!(header.shape, shape, "{name} {expr}");
            assert_eq!(header.descr, source.descr, "{name}");
            assert_eq!(u64::from(crc32fast::hash(&bytes)), want[key], "{name} {expr}");
        }
        let (header, bytes) = made(&path, ".T", &output, &["--order", "F"]);
        let both_ways = header.shape.iter().filter(|&&n| n != 1).count() < 2 || header.shape.contains(&0);
        assert_eq!(header.fortran_order, !both_ways, "{name}");
        assert_eq!(
            u64::from(crc32fast::hash(&row_major(&header, &bytes))),
            want["crc32_transposed"],
            "{name} in F order"
        );
    }
}

#[test]
fn a_row_major_file_comes_back_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.npy");
    for name in
        ["npyz/structured.npy", "made/le-f8-c.npy", "made/rank-1.npy", "scipy/jf_skew_t_gamlss_pdf_data.npy"]
    {
        let (header, bytes) = made(&data().join(name), "", &output, &[]);
        let input = Input::open(&data().join(name)).unwrap();
        assert_eq!(bytes, input.data(), "{name}");
        assert_eq!(header.version, (1, 0));
    }
    let (header, _) = made(&data().join("made/version-3.npy"), "", &output, &[]);
    assert_eq!(header.version, (1, 0), "3.0 is for names that need it");
    let (header, _) = made(&data().join("made/record-utf8.npy"), "", &output, &[]);
    assert_eq!(header.version, (3, 0));
    let (header, _) = made(&data().join("made/record-many.npy"), "", &output, &[]);
    assert_eq!(header.version, (2, 0), "too long for 1.0");
}

#[test]
fn copies_in_the_middle_and_the_order_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.npy");
    let input = data().join("made/le-i4-f.npy"); // (2, 3, 4), 0..24
    let values = |expr: &str, order: &str| {
        let (header, bytes) = made(&input, expr, &output, &["--order", order, "--verify"]);
        let bytes = row_major(&header, &bytes);
        let values: Vec<i32> = bytes.chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())).collect();
        (header.shape, header.fortran_order, values)
    };
    let transposed: Vec<i32> =
        (0..4).flat_map(|k| (0..3).flat_map(move |j| (0..2).map(move |i| i * 12 + j * 4 + k))).collect();
    for order in ["C", "F"] {
        let (shape, fortran, got) = values(".T.reshape(6, 4)", order);
        assert_eq!((shape, fortran, got), (vec![6, 4], order == "F", transposed.clone()));
        let (shape, _, got) = values(".reshape(24).reshape(4, 6).T.reshape(-1)[::-1][:3]", order);
        assert_eq!((shape, got), (vec![3], vec![23, 17, 11]));
        let (shape, fortran, got) =
            values("[0].pad((1, 0), (0, 0), value=7).pad((0, 0), (0, 1), value=-7)", order);
        assert_eq!((shape, fortran), (vec![4, 5], order == "F"));
        assert_eq!(got, [7, 7, 7, 7, -7, 0, 1, 2, 3, -7, 4, 5, 6, 7, -7, 8, 9, 10, 11, -7]);
    }
}

#[test]
fn elements_of_no_bytes_have_a_shape_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.npy");
    for descr in ["'|S0'", "'<U0'", "'|V0'", "[]"] {
        fs::write(&input, Header::render(descr.as_bytes(), false, &[3, 4], (1, 0))).unwrap();
        let (header, bytes) = made(&input, ".T.reshape(2, 6)", &folder.path().join("out.npy"), &["--verify"]);
        assert_eq!((header.shape, header.descr, bytes), (vec![2, 6], descr.as_bytes().to_vec(), vec![]));
    }
}

#[test]
fn pad_values_follow_the_byte_order_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.npy");
    let (_, bytes) =
        made(&data().join("made/be-i4-c.npy"), "[0, 0, :1].pad((1, 1), value=258)", &output, &[]);
    assert_eq!(bytes, [0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 2]);
    let (_, bytes) = made(&data().join("made/record-odd.npy"), "[0, 0].reshape(1).pad((1, 0))", &output, &[]);
    assert_eq!(bytes, [0; 26]);
    assert!(
        refused(&data().join("made/u1-c.npy"), ".pad((1, 1), (0, 0), (0, 0), value=300)", &[], 1)
            .contains("300")
    );
    assert!(
        refused(&data().join("made/datetime.npy"), ".pad((1, 1), (0, 0), (0, 0), value=1)", &[], 1)
            .contains("only")
    );
}

#[test]
fn the_output_may_be_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let both = folder.path().join("both.npy");
    fs::copy(data().join("npyz/f-order.npy"), &both).unwrap();
    let (header, bytes) = made(&both, ".T", &both, &[]);
    assert_eq!(header.shape, [4, 3, 2]);
    let first: Vec<i64> = bytes.chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
    let input = Input::open(&data().join("npyz/f-order.npy")).unwrap();
    let twin: Vec<i64> = input.data().chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(first, twin, "the transpose of a Fortran file has its bytes");
    made(&both, ".T", &both, &[]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn trailing_bytes_warn_and_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.npy");
    let ran = materialize(&data().join("made/trailing.npy"), "", &output, &[]);
    assert!(ran.status.success());
    let stderr = String::from_utf8(ran.stderr).unwrap();
    assert!(stderr.contains("warning") && stderr.contains("5 bytes"), "{stderr}");
    let stdout = String::from_utf8(ran.stdout).unwrap();
    assert!(
        stdout.contains("shape (2,)") && stdout.contains("16 bytes moved") && stdout.contains("GB/s"),
        "{stdout}"
    );
    assert_eq!(stdout.lines().count(), 1);
}

#[test]
fn the_summary_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let ran = materialize(&data().join("npyz/c-order.npy"), ".T", &folder.path().join("o.npy"), &["--json"]);
    let value: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(value["shape"], serde_json::json!([4, 3, 2]));
    assert_eq!(value["bytes_moved"], 24 * 8 * 2);
    assert!(!value["strategy"].as_str().unwrap().is_empty());
    let ran = materialize(
        &data().join("npyz/c-order.npy"),
        ".T.view(24)",
        &folder.path().join("p.npy"),
        &["--json"],
    );
    let value: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(value["error"]["kind"], "needs_copy");
    assert_eq!(value["error"]["span"], serde_json::json!([2, 11]));
}

#[test]
fn bad_files_name_themselves_and_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let header = |text: &str| {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend_from_slice(&(text.len() as u16).to_le_bytes());
        file.extend_from_slice(text.as_bytes());
        file
    };
    let whole = fs::read(data().join("npyz/c-order.npy")).unwrap();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("magic", b"not a numpy file at all".to_vec()),
        ("magic", vec![]),
        ("version", b"\x93NUMPY\x09\x00\x10\x00{}".to_vec()),
        ("header length", b"\x93NUMPY\x02\x00\xf0\xff\xff\xff".to_vec()),
        ("header length", b"\x93NUMPY\x01\x00\xf8\xff{'de".to_vec()),
        ("shape", header("{'descr':'<f8','fortran_order':False,'shape':(4294967296,4294967296)}")),
        ("shape", header("{'descr':'<f8','fortran_order':False,'shape':(6)}")),
        ("descr", header("{'descr':'|O','fortran_order':False,'shape':(6,)}")),
        ("descr", header("{'descr':[('a','<i4'),('b','|O')],'fortran_order':False,'shape':(6,)}")),
        ("fortran_order", header("{'descr':'<f8','fortran_order':1,'shape':(6,)}")),
        ("data", whole[..whole.len() - 1].to_vec()),
        ("data", header("{'descr':'|u1','fortran_order':False,'shape':(1099511627776,)}")),
    ];
    for (field, bytes) in cases {
        let path = folder.path().join("bad.npy");
        fs::write(&path, bytes).unwrap();
        let stderr = refused(&path, ".T", &[], 1);
        assert!(stderr.contains("bad.npy") && stderr.contains(&format!("'{field}'")), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    assert!(refused(folder.path(), "", &[], 1).contains("folder"));
    assert!(refused(&folder.path().join("none.npy"), "", &[], 1).contains("none.npy"));
}

#[test]
fn a_wrong_command_line_ends_with_2_and_a_refused_view_with_1() {
    let input = data().join("npyz/c-order.npy");
    assert!(refused(&input, ".T[", &[], 2).contains('^'));
    refused(&input, "", &["--memory", "much"], 2);
    refused(&input, "", &["--order", "Z"], 2);
    refused(&input, "", &["--threads", "0"], 2);
    let view = refused(&input, ".T.view(24)", &[], 1);
    assert!(view.contains("(4, 3, 2)") && view.contains("^^^^^^^^^"), "{view}");
    assert!(refused(&input, ".expand(4611686018427387904, -1, -1, -1)", &[], 1).contains("address space"));
    // Legal to have, impossible to write: an error, quickly, and the disk is not filled first.
    let huge = refused(&input, ".expand(4611686018427, -1, -1, -1)", &[], 1);
    assert!(huge.contains("cannot reserve"), "{huge}");
}

#[test]
fn threads_make_no_difference_to_the_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.npy");
    let mut file = Header::render(b"'|V3'", false, &[1000, 1100], (1, 0));
    file.extend((0..3_300_000u32).map(|i| (i % 251) as u8));
    fs::write(&path, file).unwrap();
    let one = made(&path, ".T[::-1]", &folder.path().join("one.npy"), &["--threads", "1"]);
    for threads in ["2", "7"] {
        assert_eq!(
            made(&path, ".T[::-1]", &folder.path().join("n.npy"), &["--threads", threads, "--verify"]),
            one
        );
    }
}

/// A file much larger than `--memory`, by all routes: the peak stays below the limit and 256 MiB.
#[cfg(target_os = "linux")]
#[test]
fn resident_memory_stays_below_the_limit() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("in.npy");
    let output = folder.path().join("out.npy");
    let (rows, columns) = (8_000usize, 6_000usize);
    let mut file = std::io::BufWriter::new(fs::File::create(&path).unwrap());
    use std::io::Write;
    file.write_all(&Header::render(b"'<u4'", false, &[rows, columns], (1, 0))).unwrap();
    for i in 0..rows as u32 {
        let row: Vec<u8> = (0..columns as u32).flat_map(|j| (i * columns as u32 + j).to_le_bytes()).collect();
        file.write_all(&row).unwrap();
    }
    file.flush().unwrap();
    drop(file);
    let total = (rows * columns * 4) as u64;
    let limit = 16u64 << 20;
    for (expr, staged) in [(".T", true), ("[::-1, ::-1]", false), (".T.reshape(-1)[::-1]", true)] {
        let ran = materialize(&path, expr, &output, &["--memory", "16M", "--json"]);
        assert!(ran.status.success(), "{expr}: {}", String::from_utf8_lossy(&ran.stderr));
        let summary: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
        let peak_bytes = summary["peak_resident_bytes"].as_u64().unwrap();
        assert_eq!(summary["staged"], staged, "{expr}");
        assert!(peak_bytes < limit + (256 << 20), "{expr}: {peak_bytes} bytes resident");
        assert!(peak_bytes < total, "{expr}: the bound must mean something");
        let out = Input::open(&output).unwrap();
        let at = |k: usize| u32::from_le_bytes(out.data()[k * 4..k * 4 + 4].try_into().unwrap()) as usize;
        for k in (0..rows * columns).step_by(99_991) {
            let transposed = (k % rows) * columns + k / rows;
            let want = match expr {
                ".T" => transposed,
                "[::-1, ::-1]" => rows * columns - 1 - k,
                _ => {
                    let k = rows * columns - 1 - k;
                    (k % rows) * columns + k / rows
                }
            };
            assert_eq!(at(k), want, "{expr} {k}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

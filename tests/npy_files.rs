//! Real `.npy` files of several writers, and files that lie: what we read is what NumPy reads.
#![cfg(feature = "npy")]

use proptest::prelude::*;
use restride::npy::{Header, Input};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/npy")
}

fn expected() -> serde_json::Map<String, serde_json::Value> {
    let text = std::fs::read_to_string(folder().join("expected.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The elements' bytes in row-major order of a view of the file.
fn bytes(input: &Input, expr: &str) -> Vec<u8> {
    let header = input.header();
    let view = header.layout().unwrap().apply(expr).unwrap();
    let size = header.element_size();
    (0..view.numel())
        .flat_map(|k| {
            let i = view.view_at(k).unwrap().unwrap();
            input.data()[i * size..][..size].to_vec()
        })
        .collect()
}

#[test]
fn every_file_reads_as_numpy_reads_it() {
    let expected = expected();
    assert!(expected.len() > 80, "the list of files was cut short");
    for (name, want) in &expected {
        let opened = Input::open(&folder().join(name));
        if want.get("refused").is_some() {
            let error = opened.unwrap_err().to_string();
            assert!(error.contains("'descr'") && error.contains("'|O"), "{name}: {error}");
            continue;
        }
        let input = opened.unwrap_or_else(|e| panic!("{name}: {e}"));
        let header = input.header();
        let shape: Vec<u64> = header.shape.iter().map(|&n| n as u64).collect();
        assert_eq!(serde_json::json!(shape), want["shape"], "{name}");
        assert_eq!(header.element_size() as u64, want["item_bytes"], "{name}");
        assert_eq!(serde_json::json!([header.version.0, header.version.1]), want["version"], "{name}");
        // NumPy calls an array that is contiguous both ways row-major.
        if want["fortran_order"] == true {
            assert!(header.fortran_order, "{name}");
        }
        assert_eq!(u64::from(crc32fast::hash(&bytes(&input, ""))), want["crc32"], "{name}");
        assert_eq!(u64::from(crc32fast::hash(&bytes(&input, ".T"))), want["crc32_transposed"], "{name}");
        if !header.shape.is_empty() {
            assert_eq!(
                u64::from(crc32fast::hash(&bytes(&input, "[..., ::-1]"))),
                want["crc32_reversed"],
                "{name}"
            );
        }
    }
}

#[test]
fn twins_in_both_orders_hold_the_same_values() {
    let pairs = [
        (
            "ndarray-npy/example_f64_little_endian_standard.npy",
            "ndarray-npy/example_f64_little_endian_fortran.npy",
        ),
        ("ndarray-npy/example_f64_big_endian_standard.npy", "ndarray-npy/example_f64_big_endian_fortran.npy"),
        ("ndarray-npy/example_c64_big_endian_standard.npy", "ndarray-npy/example_c64_big_endian_fortran.npy"),
        ("npyz/c-order.npy", "npyz/f-order.npy"),
        ("made/le-i2-c.npy", "made/le-i2-f.npy"),
        ("made/unaligned-c.npy", "made/le-f8-c.npy"),
    ];
    for (c, f) in pairs {
        let open = |name: &str| Input::open(&folder().join(name)).unwrap();
        assert_eq!(bytes(&open(c), ""), bytes(&open(f), ""), "{c} {f}");
    }
    let f = Input::open(&folder().join("npyz/f-order.npy")).unwrap();
    assert!(f.header().fortran_order);
    assert_eq!(f.header().layout().unwrap().strides(), [1, 2, 6]);
    let values: Vec<i64> =
        bytes(&f, "").chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
    let c = Input::open(&folder().join("npyz/c-order.npy")).unwrap();
    let twin: Vec<i64> =
        c.data().chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect();
    assert_eq!(values, twin);
}

#[test]
fn descr_is_kept_byte_for_byte() {
    for (name, descr) in [
        ("npyz/structured.npy", "[('a', '<i4'), ('b', '<f4'), ('c', '<i8')]"),
        ("npyz/unicode-ok.npy", "'<U8'"),
        ("made/keys-reversed.npy", "\">i2\""),
        ("made/datetime.npy", "'<M8[ns]'"),
        ("made/record-titled.npy", "[(('a title', 'name'), '<i4'), ('other', '<f4')]"),
    ] {
        let input = Input::open(&folder().join(name)).unwrap();
        assert_eq!(String::from_utf8_lossy(&input.header().descr), descr, "{name}");
    }
    let latin = Input::open(&folder().join("made/record-latin1.npy")).unwrap();
    assert_eq!(latin.header().descr, b"[('caf\xe9', '<i4')]");
}

#[test]
fn trailing_bytes_are_counted_and_missing_ones_refused() {
    let input = Input::open(&folder().join("made/trailing.npy")).unwrap();
    assert_eq!(input.header().trailing_bytes, 5);
    let whole = std::fs::read(folder().join("npyz/c-order.npy")).unwrap();
    let start = whole.len() - 24 * 8;
    for cut in [start, start + 1, whole.len() - 1] {
        let error = Header::parse(&whole[..cut]).unwrap_err().to_string();
        assert!(
            error.contains("needs 192 bytes") && error.contains(&format!("{} are present", cut - start)),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_file_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |path: &Path| {
        let error = Input::open(path).unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
        error
    };
    assert!(refused(folder.path()).contains("is a folder"));
    assert!(refused(&folder.path().join("none.npy")).contains("check the path"));
    let empty = folder.path().join("empty.npy");
    std::fs::write(&empty, "").unwrap();
    assert!(refused(&empty).contains("magic"));
    #[cfg(unix)]
    {
        assert!(refused(Path::new("/dev/zero")).contains("no regular file"));
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(refused(&pipe).contains("no regular file"));
    }
}

/// Headers of the real files, to be damaged.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = expected()
        .keys()
        .map(|name| std::fs::read(folder().join(name)).unwrap())
        .map(|file| file[..file.len().min(400)].to_vec())
        .collect();
    seeds.sort();
    seeds.dedup();
    seeds
}

/// One damage to a file.
#[derive(Debug, Clone)]
enum Damage {
    Set(usize, u8),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    Repeat(usize, usize),
    Cut(usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let words: Vec<&[u8]> = vec![
        b"(",
        b")",
        b"[",
        b"]",
        b"{",
        b"}",
        b"'",
        b"\"",
        b",",
        b":",
        b"-",
        b"9",
        b"99999999999999999999",
        b"\\",
        b"|O",
        b"True",
        b"None",
        b"\xff\xff\xff\xff",
        b"'shape': ",
        b"(1,)",
        b"\0",
        b"\n",
    ];
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (any::<usize>(), 0usize..20).prop_map(|(at, n)| Damage::Remove(at, n)),
        (any::<usize>(), prop::sample::select(words)).prop_map(|(at, w)| Damage::Insert(at, w.to_vec())),
        (any::<usize>(), 0usize..60).prop_map(|(at, n)| Damage::Repeat(at, n)),
        any::<usize>().prop_map(Damage::Cut),
    ]
}

fn apply(file: &mut Vec<u8>, damage: &Damage) {
    let place = |at: usize| at % (file.len() + 1);
    match damage {
        Damage::Set(at, byte) => {
            let at = place(*at);
            if at < file.len() {
                file[at] = *byte;
            }
        }
        Damage::Remove(at, n) => {
            let at = place(*at);
            file.drain(at..(at + n).min(file.len()));
        }
        Damage::Insert(at, word) => {
            let at = place(*at);
            file.splice(at..at, word.iter().copied());
        }
        Damage::Repeat(at, n) => {
            let at = place(*at);
            let piece = file[at..(at + n).min(file.len())].to_vec();
            file.splice(at..at, piece);
        }
        Damage::Cut(at) => file.truncate(place(*at)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A damaged header never panics, and what is accepted lies inside the file.
    #[test]
    fn damaged_headers_are_read_or_refused(
        seed in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        thread_local!(static SEEDS: Vec<Vec<u8>> = seeds());
        let mut file = SEEDS.with(|seeds| seed.get(seeds).clone());
        damages.iter().for_each(|d| apply(&mut file, d));
        match Header::parse(&file) {
            Ok(header) => {
                let count: usize = header.shape.iter().product();
                prop_assert_eq!(header.data.len(), count * header.element_size());
                prop_assert_eq!(header.data.end + header.trailing_bytes, file.len());
                // What was read can be written and read again.
                let mut again =
                    Header::render(&header.descr, header.fortran_order, &header.shape, header.version_to_write());
                again.extend_from_slice(&file[header.data.clone()]);
                let back = Header::parse(&again).unwrap();
                prop_assert_eq!(&back.descr, &header.descr);
                prop_assert_eq!(&back.shape, &header.shape);
                prop_assert_eq!(back.element, header.element);
                prop_assert_eq!(&again[back.data], &file[header.data]);
            }
            Err(error) => prop_assert!(!error.reason.is_empty()),
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(tail in prop::collection::vec(any::<u8>(), 0..200), major in 0u8..5) {
        let mut file = b"\x93NUMPY".to_vec();
        file.push(major);
        file.extend(tail);
        // A header of random bytes is no dictionary with the three keys.
        let error = Header::parse(&file).unwrap_err();
        prop_assert!(["magic", "version", "header length", "header"].contains(&error.field), "{}", error);
    }
}

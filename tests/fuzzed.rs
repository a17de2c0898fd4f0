//! The oracles of the fuzz targets on inputs that are the same in every run: seeds, and seeds changed at random.
//!
//! `RESTRIDE_FUZZ_CASES=1000000` asks for more inputs than the few thousand of a usual run, `RESTRIDE_FUZZ_START=7` for
//! others; `RESTRIDE_FUZZ_SEEDS=FOLDER` writes the seeds to `FOLDER/<target>`, where `scripts/fuzz.sh` starts from them.
#![cfg(feature = "cli")]

mod model;
mod oracles;

use model::check::render;
use model::choices::Choices;
use oracles::{expressions, layouts, npy, plans, profiles, records};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// How inputs of one target are made.
struct Target {
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    /// Pieces that random text hardly ever holds.
    words: &'static [&'static str],
    /// Inputs made from nothing, one in two; the others are seeds changed.
    fresh: fn(&mut SmallRng) -> Vec<u8>,
    longest: usize,
}

impl Target {
    /// Runs the seeds, and `cases` inputs made of them; the input that fails is shown.
    fn run(&self, cases: usize, check: impl Fn(&[u8])) {
        if let Some(folder) = std::env::var_os("RESTRIDE_FUZZ_SEEDS") {
            let folder = Path::new(&folder).join(self.name);
            fs::create_dir_all(&folder).unwrap();
            for (k, seed) in self.seeds.iter().enumerate() {
                fs::write(folder.join(format!("seed-{k}")), seed).unwrap();
            }
        }
        let asked = |name: &str| std::env::var(name).ok().map(|n| n.parse().unwrap());
        let mut rng = SmallRng::seed_from_u64(asked("RESTRIDE_FUZZ_START").unwrap_or(0));
        let cases = asked("RESTRIDE_FUZZ_CASES").map_or(cases, |n| n as usize);
        for number in 0..self.seeds.len() + cases {
            let input = match self.seeds.get(number) {
                Some(seed) => seed.clone(),
                None if rng.random_range(0..2) == 0 => (self.fresh)(&mut rng),
                None => self.changed(&mut rng),
            };
            let ran = catch_unwind(AssertUnwindSafe(|| check(&input)));
            assert!(ran.is_ok(), "{}, input {number}: b\"{}\"", self.name, input.escape_ascii());
        }
        println!("{}: {} inputs", self.name, self.seeds.len() + cases);
    }

    fn any_seed(&self, rng: &mut SmallRng) -> &[u8] {
        &self.seeds[rng.random_range(0..self.seeds.len())]
    }

    /// A seed after a few small changes.
    fn changed(&self, rng: &mut SmallRng) -> Vec<u8> {
        let mut input = self.any_seed(rng).to_vec();
        for _ in 0..rng.random_range(1..8) {
            let at = rng.random_range(0..=input.len());
            let end = (at + rng.random_range(0..16)).min(input.len());
            match rng.random_range(0..8) {
                0 if at < input.len() => input[at] ^= 1 << rng.random_range(0..8),
                1 if at < input.len() => input[at] = rng.random(),
                2 => drop(input.drain(at..end)),
                3 => {
                    let again = input[at..end].to_vec();
                    input.splice(at..at, again);
                }
                4 => {
                    let other = self.any_seed(rng);
                    let from = rng.random_range(0..=other.len());
                    let to = (from + rng.random_range(0..64)).min(other.len());
                    let part = other[from..to].to_vec();
                    input.splice(at..end, part);
                }
                5 => input.insert(at, rng.random_range(b' '..=b'~')),
                _ if !self.words.is_empty() => {
                    let word = self.words[rng.random_range(0..self.words.len())];
                    let end = if rng.random_range(0..2) == 0 { at } else { end };
                    input.splice(at..end, word.bytes());
                }
                _ => {}
            }
        }
        input.truncate(self.longest);
        input
    }
}

/// Bytes of one of a few kinds: any, small ones, mostly zero.
fn bytes(rng: &mut SmallRng) -> Vec<u8> {
    let mask = [0xFF, 0xFF, 0x3F, 0x0F][rng.random_range(0..4)];
    let sparse = rng.random_range(0..4) == 0;
    let zero = |rng: &mut SmallRng| sparse && rng.random_range(0..3) > 0;
    (0..rng.random_range(1..320)).map(|_| if zero(rng) { 0 } else { rng.random::<u8>() & mask }).collect()
}

/// A chain of operations as one would write it, most of which fit.
fn expression(rng: &mut SmallRng) -> Vec<u8> {
    let stream: Vec<u8> = (0..200).map(|_| rng.random()).collect();
    let mut choices = Choices::new(&stream);
    let start = choices.shape(5, 5);
    let mut input = vec![start.len() as u8];
    input.extend(start.iter().map(|&extent| extent as u8));
    let mut chain = model::eval::Chain::new(&start);
    for _ in 0..rng.random_range(1..6) {
        let op = choices.op(&chain.model.shape, chain.model.buffer_len);
        let fits = chain.apply(&op).is_ok();
        if fits || rng.random_range(0..8) == 0 {
            input.extend(render(&op).bytes());
        }
    }
    input
}

/// A header with anything in its places, and some data.
fn file(rng: &mut SmallRng) -> Vec<u8> {
    const DESCR: [&str; 9] = [
        "'<f4'",
        "'>i2'",
        "'|u1'",
        "'<U3'",
        "'|S0'",
        "[('a', '<i4'), ('b', '|u1', (2,))]",
        "'<f16'",
        "'|O'",
        "'<M8[ns]'",
    ];
    let descr = DESCR[rng.random_range(0..DESCR.len())];
    let extents: Vec<String> = (0..rng.random_range(0..4))
        .map(|_| match rng.random_range(0..12) {
            0 => "9223372036854775807".into(),
            1 => "-1".into(),
            _ => rng.random_range(0..6).to_string(),
        })
        .collect();
    let order = ["True", "False", "1"][rng.random_range(0..3)];
    let comma = if extents.len() == 1 { "," } else { "" };
    let shape = extents.join(", ");
    let text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': ({shape}{comma}), }}\n");
    let mut file = b"\x93NUMPY".to_vec();
    match rng.random_range(0..4) {
        0 => file.extend([2, 0].into_iter().chain((text.len() as u32).to_le_bytes())),
        1 => file.extend([3, 0].into_iter().chain((text.len() as u32).to_le_bytes())),
        2 => return [text.as_bytes(), &bytes(rng)].concat(),
        _ => file.extend([1, 0].into_iter().chain((text.len() as u16).to_le_bytes())),
    }
    file.extend(text.bytes());
    file.extend((0..rng.random_range(0..200)).map(|k| k as u8));
    file
}

/// A JSON value of any kind, `depth` deep at most.
fn value(rng: &mut SmallRng, depth: usize) -> Value {
    match rng.random_range(0..if depth == 0 { 6 } else { 8 }) {
        0 => Value::Null,
        1 => json!(rng.random::<bool>()),
        2 => json!(rng.random_range(-3..70)),
        3 => [json!(1e308), json!(u64::MAX), json!(i64::MIN), json!(0.1), json!(-0.0)]
            [rng.random_range(0..5)]
        .clone(),
        4 => json!(["", "f32", "tile_src_bytes", "<zq>", "\u{0}\u{7f}é", "copy"][rng.random_range(0..6)]),
        5 => json!("x".repeat(rng.random_range(0..40))),
        6 => (0..rng.random_range(0..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => {
            let names = ["id", "kind", "params", "samples", "value", "key", "unknown"];
            (0..rng.random_range(0..4))
                .map(|_| (names[rng.random_range(0..names.len())].to_owned(), value(rng, depth - 1)))
                .collect()
        }
    }
}

/// Puts other values into some places of a document.
fn disturb(document: &mut Value, rng: &mut SmallRng, one_in: u32) {
    if rng.random_range(0..one_in) == 0 {
        *document = value(rng, 2);
        return;
    }
    match document {
        Value::Array(items) => {
            items.iter_mut().for_each(|item| disturb(item, rng, one_in));
            if !items.is_empty() && rng.random_range(0..one_in) == 0 {
                items.push(items[0].clone());
            }
        }
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            for name in names {
                match rng.random_range(0..one_in) {
                    0 => drop(fields.shift_remove(&name)),
                    _ => disturb(&mut fields[&name], rng, one_in),
                }
            }
        }
        _ => {}
    }
}

fn disturbed(mut document: Value, rng: &mut SmallRng) -> Vec<u8> {
    let one_in = [20, 60, 200][rng.random_range(0..3)];
    disturb(&mut document, rng, one_in);
    document.to_string().into_bytes()
}

fn record() -> Value {
    let case = |kind: &str| {
        json!({
            "id": format!("{kind} x"), "kind": kind, "unit": "ns", "samples": [3, 4, 5.5], "memcpy_samples": [2, 3],
            "params": {"dtype": "f32", "shape": [3, 4], "group": "2-D", "name": "x", "pattern": "column", "peer": "y"},
            "bytes_moved": 96, "model": {"L1d": {"accesses": 1, "misses": 1}},
            "counters": [{"event": "cycles", "state": "NoPmu", "value": null}],
        })
    };
    let cases: Vec<Value> = ["copy", "walk", "tile", "peer", "chase"].map(case).into();
    json!({
        "schema": "restride.record/1", "created": "2026-01-01T00:00:00Z", "command": "restride bench", "git": null,
        "machine": {"cpu": "<zq>"}, "environment": {"load": 0.5, "noise": ["<zq>"]}, "cases": cases, "unknown": [1, 2.5],
    })
}

fn profile() -> Value {
    let key = json!({
        "version": "0.1.0", "arch": "x86_64", "vendor": "V", "family": 6, "model": 1, "stepping": null,
        "hypervisor": null, "isa": "avx2", "page_bytes": 4096, "huge_pages": "madvise",
        "caches": [{"level": "L1d", "bytes": 49152, "ways": 12, "line_bytes": 64, "shared_by": 1}],
    });
    let knobs =
        [("tile_src_bytes", 4), ("tile_dst_bytes", 3), ("warp_factor", 16), ("parallel_from_bytes", 1)];
    let mut winners: Vec<Value> = Vec::new();
    for (knob, size) in knobs {
        winners.push(json!({"knob": knob, "value": 4096, "replaces": 2048, "gain": 1.25, "noise": 1.02}));
        winners.push(json!({
            "knob": knob, "element_bytes": size, "value": 4096, "replaces": 2048, "gain": 1.25, "noise": 1.02,
        }));
    }
    let entry = json!({
        "key": key, "created": "2026-01-01T00:00:00Z", "command": "restride tune", "winners": winners,
        "measurements": [{
            "knob": "tile_src_bytes", "values": [4096], "case": "x", "confirms": true, "samples_ns": [1.5],
            "current_samples_ns": [2],
        }],
    });
    let mut other = entry.clone();
    other["key"]["isa"] = "sse2".into();
    json!({
        "schema": "restride.profile/1", "unknown": {"a": [1, 2.5]},
        "entries": [entry, other, entry, 17, {"key": entry["key"]}],
    })
}

fn streams() -> Vec<Vec<u8>> {
    let mut rng = SmallRng::seed_from_u64(7);
    (0..64).map(|_| bytes(&mut rng)).collect()
}

/// Files below a folder whose name ends so, the small ones.
fn small_files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(ending) && path.metadata().unwrap().len() < 64 << 10 {
                found.push(fs::read(path).unwrap());
            }
        }
    }
    assert!(!found.is_empty());
    found
}

#[test]
fn view_expressions() {
    let mut seeds = Vec::new();
    for name in ["seeds", "views", "reports"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.jsonl"));
        for line in fs::read_to_string(path).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let (Some(text), Some(shape)) = (case["expr"].as_str(), case["shape"].as_array()) else {
                continue;
            };
            let shape: Vec<u8> = shape.iter().filter_map(Value::as_u64).map(|n| (n % 6) as u8).collect();
            if shape.len() <= 5 {
                seeds.push([&[shape.len() as u8], &shape[..], text.as_bytes()].concat());
            }
        }
    }
    assert!(seeds.len() > 100);
    // Too many axes, before the sizes are looked at.
    seeds.push([b"\x01\x05.view(1", ", 0".repeat(64).as_bytes(), b")"].concat());
    let words = &[
        ".T",
        ".mT",
        "[::-1]",
        "[1:, None, ..., -1]",
        ".permute(1, 0)",
        ".reshape(-1)",
        ".view(2, -1)",
        ".flatten()",
        ".contiguous()",
        ".expand(2, -1)",
        ".squeeze()",
        ".unsqueeze(0)",
        ".flip(0)",
        ".pad((1, 1), value=7)",
        ".shrink((0, 1))",
        ".unfold(0, 2, 1)",
        ".diagonal(1)",
        ".as_strided((2, 2), (1, 1), 1)",
        ".moveaxis(0, -1)",
        "9223372036854775807",
        "-9223372036854775808",
        "99999999999999999999",
        "axis=",
        "(",
        ")",
        "[",
        "]",
        ",",
        ":",
        "é",
    ];
    let target = Target { name: "expressions", seeds, words, fresh: expression, longest: 4096 };
    target.run(4000, |data| {
        expressions::check(data);
    });
}

#[test]
fn chains_of_operations_and_copies() {
    let target = Target { name: "layouts", seeds: streams(), words: &[], fresh: bytes, longest: 400 };
    target.run(1500, layouts::check);
}

#[test]
fn plans_of_any_pair_of_layouts() {
    let target = Target { name: "plans", seeds: streams(), words: &[], fresh: bytes, longest: 400 };
    target.run(4000, plans::check);
}

#[test]
fn npy_files() {
    let words = &[
        "'descr'",
        "'fortran_order'",
        "'shape'",
        "()",
        "(1,)",
        "True",
        "{",
        "}",
        "'",
        "\\x41",
        "L",
        "9999999999999999999",
    ];
    let target = Target {
        name: "npy",
        seeds: small_files("tests/data/npy", ".npy"),
        words,
        fresh: file,
        longest: 16 << 10,
    };
    target.run(8000, npy::check);
}

#[test]
fn benchmark_records() {
    let mut seeds = small_files("tests/data/records", ".json");
    seeds.push(record().to_string().into_bytes());
    let words = &[
        "null",
        "1e308",
        "-1",
        "18446744073709551616",
        "[]",
        "{}",
        "\"\"",
        "<zq",
        "\"restride.record/0\"",
        "0.1",
    ];
    let target =
        Target { name: "records", seeds, words, fresh: |rng| disturbed(record(), rng), longest: 64 << 10 };
    target.run(600, |data| {
        records::check(data);
    });
}

#[test]
fn tuning_profiles() {
    let words =
        &["null", "1e308", "-1", "18446744073709551616", "[]", "{}", "\"\"", "4096", "\"avx2\"", "0.1"];
    let target = Target {
        name: "profiles",
        seeds: vec![profile().to_string().into_bytes()],
        words,
        fresh: |rng| disturbed(profile(), rng),
        longest: 16 << 10,
    };
    target.run(4000, |data| {
        profiles::check(data);
    });
}

//! The results of `cargo bench`, taken into a record.
//!
//! Criterion keeps for each benchmark a directory `new` with `benchmark.json` (its names) and
//! `sample.json` (iterations and total times of each sample). Names are read from the file, never from
//! the directory, whose name has lost the characters that file systems refuse.

use super::record::{Case, Kind, MAX_SAMPLES};
use crate::error::words::with_remedy;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Depth at which the search ends: group, function, value, `new`, and a little more.
const MAX_DEPTH: usize = 8;

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
    #[serde(default)]
    group_id: String,
    #[serde(default)]
    function_id: Option<String>,
    #[serde(default)]
    value_str: Option<String>,
    #[serde(default)]
    throughput: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Samples {
    iters: Vec<f64>,
    times: Vec<f64>,
}

/// Reads every benchmark below a directory such as `target/criterion`, by name.
///
/// A group whose name ends in an event in square brackets, as in `walks [l1d-misses]`, was measured in
/// that event; all others in ns.
///
/// # Errors
/// A sentence where the directory cannot be read, holds no results, or holds damaged ones.
pub fn read(dir: &Path) -> Result<Vec<Case>, String> {
    let mut found = Vec::new();
    search(dir, 0, &mut found)
        .map_err(|error| format!("cannot read {}: {}", dir.display(), with_remedy(error)))?;
    let mut cases = found.iter().map(|path| case(path)).collect::<Result<Vec<_>, _>>()?;
    if cases.is_empty() {
        return Err(format!(
            "{} holds no results of criterion: run cargo bench first, then name target/criterion",
            dir.display()
        ));
    }
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    cases.dedup_by(|a, b| a.id == b.id);
    Ok(cases)
}

fn search(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if !path.is_dir() || path.is_symlink() {
            continue;
        }
        if path.file_name().is_some_and(|name| name == "new") && path.join("sample.json").is_file() {
            found.push(path);
        } else if depth < MAX_DEPTH {
            search(&path, depth + 1, found)?;
        }
    }
    Ok(())
}

fn case(dir: &Path) -> Result<Case, String> {
    fn parse<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {}", path.display(), with_remedy(error)))?;
        serde_json::from_str(&text)
            .map_err(|error| format!("{} is no result of criterion: {error}", path.display()))
    }
    let names: Benchmark = parse(&dir.join("benchmark.json"))?;
    let samples: Samples = parse(&dir.join("sample.json"))?;
    let (group, unit) = unit(&names.group_id);
    let kind = match group.split([' ', '/']).next().unwrap_or_default() {
        "walks" | "cliff" => Kind::Walk,
        "chase" => Kind::Chase,
        "tiles" => Kind::Tile,
        "peers" => Kind::Peer,
        _ => Kind::Copy,
    };
    let mut case = Case::new(format!("criterion/{}", names.full_id), kind)
        .param("group", group)
        .param(
            "name",
            [names.function_id, names.value_str].into_iter().flatten().collect::<Vec<_>>().join("/"),
        )
        .param("sweep", "criterion")
        .param("source", "criterion");
    case.unit = unit.to_owned();
    let one = |(iters, time): (&f64, &f64)| time / iters;
    case.samples = samples
        .iters
        .iter()
        .zip(&samples.times)
        .map(one)
        .filter(|sample| sample.is_finite() && *sample >= 0.0)
        .take(MAX_SAMPLES)
        .collect();
    let throughput = names.throughput.as_ref();
    let amount =
        |name: &str| throughput.and_then(|value| value.get(name)).and_then(serde_json::Value::as_u64);
    case.bytes_moved = amount("Bytes").or_else(|| amount("BytesDecimal"));
    if let Some(elements) = amount("Elements") {
        case.params.insert("elements".to_owned(), elements.into());
    }
    Ok(case)
}

/// `walks [l1d-misses]` is the group `walks` in l1d-misses.
fn unit(group: &str) -> (&str, &str) {
    match group.strip_suffix(']').and_then(|text| text.split_once(" [")) {
        Some((name, event)) => (name, event),
        None => (group, "ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, place: &str, benchmark: &str, sample: &str) {
        let dir = dir.join(place);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("benchmark.json"), benchmark).unwrap();
        std::fs::write(dir.join("sample.json"), sample).unwrap();
    }

    #[test]
    fn results_become_cases() {
        let dir = tempfile::tempdir().unwrap();
        write(
            dir.path(),
            "walks/row/1M/new",
            r#"{"group_id":"walks","function_id":"row","value_str":"1 MiB","throughput":{"Elements":131072},
                "full_id":"walks/row/1 MiB","directory_name":"walks/row/1 MiB","title":"walks/row/1 MiB"}"#,
            r#"{"sampling_mode":"Linear","iters":[1.0,2.0,4.0],"times":[100.0,220.0,400.0]}"#,
        );
        // Any characters in a name; zero iterations are no sample.
        write(
            dir.path(),
            "odd/new",
            r#"{"group_id":"tiles [l1d-misses]","full_id":"tiles [l1d-misses]/ä\"<b>\n☃","throughput":{"Bytes":64}}"#,
            r#"{"iters":[0.0,1.0],"times":[5.0,7.0]}"#,
        );
        std::fs::create_dir_all(dir.path().join("report")).unwrap();
        let cases = read(dir.path()).unwrap();
        assert_eq!(cases.len(), 2);
        let walk = cases.iter().find(|case| case.kind == Kind::Walk).unwrap();
        assert_eq!((walk.id.as_str(), walk.unit.as_str()), ("criterion/walks/row/1 MiB", "ns"));
        assert_eq!(walk.samples, [100.0, 110.0, 100.0]);
        assert_eq!(walk.params["elements"], 131_072);
        let tile = cases.iter().find(|case| case.kind == Kind::Tile).unwrap();
        assert_eq!(
            (tile.unit.as_str(), &tile.samples[..], tile.bytes_moved),
            ("l1d-misses", &[7.0][..], Some(64))
        );
        assert!(tile.id.contains('☃'));
    }

    #[test]
    fn nothing_and_nonsense_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().contains("cargo bench"));
        assert!(read(&dir.path().join("missing")).unwrap_err().contains("missing"));
        write(dir.path(), "a/new", "{}", "{\"iters\":[],\"times\":[]}");
        assert!(read(dir.path()).unwrap_err().contains("benchmark.json"));
        write(dir.path(), "a/new", r#"{"full_id":"a"}"#, "[");
        assert!(read(dir.path()).unwrap_err().contains("sample.json"));
    }
}

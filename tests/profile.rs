//! Profiles on disk: damaged, foreign and old ones, and several writers at once.
#![cfg(feature = "profile")]

use restride::Tuning;
use restride::copy::tuning::{Knob, Origin};
use restride::profile::{Entry, Key, Profile, SCHEMA, Winner};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn winner(knob: Knob, element_bytes: Option<usize>, value: usize) -> Winner {
    Winner { knob: knob.name().into(), element_bytes, value, replaces: 1, gain: 1.2, noise: 1.01 }
}

fn entry(key: Key, winners: Vec<Winner>) -> Entry {
    Entry {
        key,
        created: "2026-11-30T20:46:36Z".into(),
        command: "restride tune".into(),
        winners,
        measurements: Vec::new(),
    }
}

fn host() -> Key {
    Key::host().unwrap()
}

fn base() -> Tuning {
    Tuning::for_caches(48 << 10, 2 << 20, 0)
}

/// A profile of these entries as text.
fn text(entries: &[Value]) -> String {
    json!({ "schema": SCHEMA, "entries": entries }).to_string()
}

fn read(folder: &Path, text: &[u8]) -> Result<Profile, String> {
    let path = folder.join("profile.json");
    fs::write(&path, text).unwrap();
    Profile::read(&path).map_err(|error| error.to_string())
}

#[test]
fn what_was_written_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep").join("profile.json");
    let winners = vec![winner(Knob::TileSrc, Some(4), 2048), winner(Knob::ParallelFrom, None, 1 << 22)];
    Profile::update(&path, |profile| profile.insert(&entry(host(), winners))).unwrap();
    let loaded = Profile::read(&path).unwrap().over(base(), &host());
    assert_eq!((loaded.values, loaded.ignored.len()), (2, 0));
    let value = loaded.tuning.get(Knob::TileSrc, 4);
    assert_eq!((value.value, value.origin), (2048, Origin::Profile));
    assert_eq!(loaded.tuning.get(Knob::TileSrc, 8), base().get(Knob::TileSrc, 8));
    assert_eq!(loaded.tuning.parallel_from_bytes.value, 1 << 22);
}

#[test]
fn no_file_is_an_empty_profile() {
    let folder = tempfile::tempdir().unwrap();
    let profile = Profile::read(&folder.path().join("none.json")).unwrap();
    assert_eq!(profile.entries().count(), 0);
    assert_eq!(profile.over(base(), &host()).tuning, base());
}

#[test]
fn a_second_tuning_replaces_the_first_and_leaves_other_machines() {
    let mut profile = Profile::default();
    let other = Key { stepping: Some(99), ..host() };
    profile.insert(&entry(other.clone(), vec![winner(Knob::TileSrc, Some(4), 512)]));
    profile.insert(&entry(host(), vec![winner(Knob::TileSrc, Some(4), 2048)]));
    profile.insert(&entry(host(), vec![winner(Knob::TileDst, Some(4), 512)]));
    assert_eq!(profile.entries().count(), 2);
    let loaded = profile.over(base(), &host());
    assert_eq!(loaded.tuning.get(Knob::TileSrc, 4), base().get(Knob::TileSrc, 4));
    assert_eq!(loaded.tuning.tile_dst_bytes.of(4), 512);
    assert_eq!(profile.over(base(), &other).tuning.tile_src_bytes.of(4), 512);
}

#[test]
fn foreign_and_old_entries_are_left_out_one_by_one() {
    let mut other_caches = host();
    other_caches.caches.pop();
    let foreign = [
        (Key { version: "0.0.1".into(), ..host() }, "version"),
        (Key { arch: "z80".into(), ..host() }, "architecture"),
        (Key { vendor: Some("Nobody".into()), ..host() }, "vendor"),
        (Key { family: Some(1234), ..host() }, "family"),
        (Key { model: Some(1234), ..host() }, "model"),
        (Key { stepping: Some(1234), ..host() }, "stepping"),
        (Key { hypervisor: Some("bhyve-like".into()), ..host() }, "hypervisor"),
        (other_caches, "caches"),
        (Key { isa: "mmx".into(), ..host() }, "SIMD"),
        (Key { page_bytes: 12, ..host() }, "page bytes"),
        (Key { huge_pages: Some("sometimes".into()), ..host() }, "huge pages"),
    ];
    for (key, word) in foreign {
        if key == host() {
            continue; // a machine without known caches has nothing to take away
        }
        let mut profile = Profile::default();
        profile.insert(&entry(key, vec![winner(Knob::TileSrc, Some(4), 512)]));
        profile.insert(&entry(host(), vec![winner(Knob::TileDst, Some(4), 512)]));
        let loaded = profile.over(base(), &host());
        assert_eq!((loaded.values, loaded.ignored.len()), (1, 1), "{word}");
        assert!(loaded.ignored[0].reason.contains(word), "{}", loaded.ignored[0].reason);
        assert_eq!(loaded.tuning.get(Knob::TileSrc, 4), base().get(Knob::TileSrc, 4), "{word}");
    }
}

#[test]
fn values_that_make_no_sense_are_left_out_one_by_one() {
    let mut unknown = winner(Knob::TileSrc, Some(4), 512);
    unknown.knob = "warp_factor".into();
    let winners = vec![
        unknown,
        winner(Knob::TileSrc, Some(4), 0),
        winner(Knob::TileSrc, Some(3), 512),
        winner(Knob::TileDst, Some(4), usize::MAX),
        winner(Knob::ParallelFrom, Some(4), 1 << 20),
        winner(Knob::StagedDst, Some(4), 2048),
    ];
    let mut profile = Profile::default();
    profile.insert(&entry(host(), winners));
    let loaded = profile.over(base(), &host());
    assert_eq!((loaded.values, loaded.ignored.len()), (1, 5));
    assert_eq!(loaded.tuning.staged_dst_bytes.of(4), 2048);
    assert_eq!(loaded.tuning.tile_src_bytes, base().tile_src_bytes);
}

#[test]
fn damaged_files_are_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let good = text(&[json!(entry(host(), vec![winner(Knob::TileSrc, Some(4), 512)]))]);
    for cut in [1, good.len() / 3, good.len() - 1] {
        assert!(read(folder.path(), &good.as_bytes()[..cut]).unwrap_err().contains("is no profile"));
    }
    let cases: [(&[u8], &str); 8] = [
        (b"", "no JSON"),
        (b"[]", "no JSON object"),
        (b"null", "no JSON object"),
        (b"{}", "no schema"),
        (br#"{"schema": 1, "entries": []}"#, "schema"),
        (br#"{"schema": "restride.profile/2", "entries": []}"#, "restride.profile/2"),
        (br#"{"schema": "restride.profile/1", "entries": {}}"#, "no list"),
        (b"\xff\xfe\x00", "UTF-8"),
    ];
    for (bytes, word) in cases {
        let error = read(folder.path(), bytes).unwrap_err();
        assert!(error.contains(word) && error.contains("--reset"), "{error}");
    }
}

#[test]
fn damaged_entries_leave_the_others_in_use_and_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let good = json!(entry(host(), vec![winner(Knob::TileSrc, Some(4), 512)]));
    let mut no_key = good.clone();
    no_key.as_object_mut().unwrap().remove("key");
    let mut wrong_type = good.clone();
    wrong_type["winners"] = json!("many");
    let mut negative = good.clone();
    negative["winners"][0]["value"] = json!(-5);
    let entries = [no_key, wrong_type, negative, json!(17), good];
    let profile = read(folder.path(), text(&entries).as_bytes()).unwrap();
    let loaded = profile.over(base(), &host());
    assert_eq!((loaded.values, loaded.ignored.len()), (1, 4));
    let path = folder.path().join("profile.json");
    Profile::update(&path, |_| ()).unwrap();
    let kept: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(kept["entries"], json!(entries));
}

#[test]
fn a_broken_file_is_not_written_over_and_can_be_reset() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    fs::write(&path, "{ half").unwrap();
    assert!(Profile::update(&path, |profile| profile.insert(&entry(host(), Vec::new()))).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "{ half");
    assert!(Profile::reset(&path).unwrap());
    assert!(!Profile::reset(&path).unwrap());
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let path = &path;
            scope.spawn(move || {
                for round in 0..5 {
                    let key = Key { stepping: Some(1000 + writer * 10 + round), ..host() };
                    Profile::update(path, |profile| profile.insert(&entry(key, Vec::new()))).unwrap();
                    // Whoever reads sees a whole file at any moment.
                    Profile::read(path).unwrap();
                }
            });
        }
    });
    assert_eq!(Profile::read(&path).unwrap().entries().filter(Result::is_ok).count(), 40);
}

#[test]
fn imports_take_what_can_be_read() {
    let mut profile = Profile::default();
    profile.insert(&entry(host(), Vec::new()));
    let mut other = Profile::default();
    other.insert(&entry(host(), vec![winner(Knob::TileSrc, Some(4), 512)]));
    other.insert(&entry(Key { stepping: Some(99), ..host() }, Vec::new()));
    assert_eq!(profile.merge(&other).taken.len(), 2);
    assert_eq!(profile.entries().count(), 2);
    assert_eq!(profile.over(base(), &host()).values, 1);
}

#[test]
fn unknown_fields_keep_their_order_however_often_a_file_is_written() {
    let fields = r#""a": {"x": 1}, "b": [2.5, {"y": null}], "c": "text""#;
    let text = format!(r#"{{{fields}, "schema": "{SCHEMA}", "entries": [17], "d": 4, "e": 5, "f": 6}}"#);
    let parse = |text: &str| Profile::parse(text, Path::new("input")).unwrap();
    let once = parse(&text).text();
    assert_eq!(parse(&once).text(), once);
    let places: Vec<usize> =
        ["a", "b", "c", "d", "e", "f"].map(|f| once.find(&format!("\"{f}\":")).unwrap()).into();
    assert!(places.is_sorted(), "{once}");
}

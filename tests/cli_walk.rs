//! `restride walk` as a person or a script runs it; times are never judged, only what goes with them.
#![cfg(feature = "cli")]

use assert_cmd::Command;
use serde_json::Value;

fn walk(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("restride").unwrap();
    command.env_remove("RESTRIDE_CACHES").env_remove("RESTRIDE_ISA");
    command.args(["walk", "--budget-ms", "1"]).args(args);
    command
}

fn json(args: &[&str]) -> Value {
    let output = walk(args).arg("--json").assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

#[test]
fn every_pattern_gives_a_point_with_exact_lines() {
    let found = json(&["--pattern", "row,column,tiled,random,chase", "--shape", "64,100"]);
    let points = found["points"].as_array().unwrap();
    assert_eq!(points.len(), 5);
    for point in points {
        assert_eq!(point["verified"], true);
        assert!(point["median_ns_per_element"].as_f64().unwrap() >= 0.0, "{point}");
        let (low, high) = (&point["ci_low_ns_per_element"], &point["ci_high_ns_per_element"]);
        assert!(low.as_f64() <= high.as_f64());
        assert!(!point["samples_ns"].as_array().unwrap().is_empty());
        let expected = if point["pattern"] == "chase" { 1.0 } else { 0.125 };
        assert_eq!(point["lines_per_element"].as_f64(), Some(expected), "{point}");
    }
    assert!(["pinned", "not honoured", "unsupported"].contains(&found["pinning"].as_str().unwrap()));
}

#[test]
fn counters_are_values_or_states_and_never_a_made_up_zero() {
    let found = json(&["--pattern", "row", "--shape", "8,8"]);
    let counters = found["points"][0]["counters"].as_array().unwrap();
    assert!(!counters.is_empty());
    for counter in counters {
        let usable = ["Ok", "Multiplexed"].contains(&counter["state"].as_str().unwrap());
        assert_eq!(counter["value"].is_number(), usable, "{counter}");
    }
}

#[test]
fn the_model_knows_the_documented_walks() {
    let caches = "L1d=48K/12/64,L2=2M/16/64";
    let args = ["--shape", "1024,1024", "--pattern", "row,column", "--model", "--caches", caches];
    let found = json(&args);
    let misses =
        |point: usize, level: &str| found["points"][point]["model"]["levels"][level]["misses"].as_u64();
    assert_eq!((misses(0, "L1d"), misses(1, "L1d")), (Some(131_072), Some(1_048_576)));
    assert_eq!(misses(1, "L2"), Some(1_048_576));
    let pitched = json(&[
        "--shape",
        "1024,1024",
        "--pitch",
        "1024,1032",
        "--pattern",
        "column",
        "--model",
        "--caches",
        caches,
    ]);
    let l2 = |point: usize| pitched["points"][point]["model"]["levels"]["L2"]["misses"].as_u64();
    assert_eq!((l2(0), l2(1)), (Some(1_048_576), Some(131_072)), "the cliff, and how to avoid it");
}

#[test]
fn a_strided_walk_has_the_steps_asked_for_or_all_of_them() {
    let steps = |args: &[&str]| -> Vec<u64> {
        let found = json(&[&["--pattern", "strided", "--size", "64K"], args].concat());
        found["points"].as_array().unwrap().iter().map(|point| point["stride"].as_u64().unwrap()).collect()
    };
    assert_eq!(steps(&["--stride", "3"]), [3]);
    assert_eq!(steps(&[]), (0..=12).map(|power| 1 << power).collect::<Vec<u64>>());
}

#[test]
fn a_ladder_spans_its_range_and_names_levels() {
    let found = json(&["--pattern", "row,chase", "--size", "16K..128K", "--dtype", "f32"]);
    let sizes: Vec<u64> =
        found["points"].as_array().unwrap().iter().map(|point| point["bytes"].as_u64().unwrap()).collect();
    assert_eq!(sizes.len(), 14);
    // Near-square matrices of whole lines come close to the sizes of the ladder, never above.
    for (size, ladder) in [(sizes[0], 16 << 10), (sizes[13], 128 << 10)] {
        assert!(size <= ladder && size * 10 > ladder * 9, "{sizes:?}");
    }
    assert!(found["levels"].is_array() && found["edges"].is_array());
}

#[test]
fn threads_pages_and_cold_caches_are_said() {
    let found =
        json(&["--pattern", "column", "--shape", "32,32", "--threads", "2", "--cold", "--pages", "huge"]);
    let point = &found["points"][0];
    assert_eq!(
        (point["threads"].as_u64(), &point["cold"], &point["pages"]),
        (Some(2), &true.into(), &"huge".into())
    );
    let share = &point["huge_share"];
    assert!(share.is_null() || (0.0..=1.0).contains(&share.as_f64().unwrap()), "{share}");
}

#[test]
fn text_has_a_row_for_each_point() {
    let output = walk(&["--pattern", "row,column", "--shape", "50,50", "--model", "--caches", "L1d=4K/4/64"])
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let text = String::from_utf8(output).unwrap();
    assert!(text.contains("model L1d misses/el."), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("50x50")).count(), 2, "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    for args in [
        &["--pattern", "diagonal"][..],
        &["--dtype", "c64"],
        &["--shape", "3,4,5"],
        &["--shape", "0,4"],
        &["--shape", "64"],
        &["--shape", "4,4", "--size", "1M"],
        &["--shape", "8,8", "--pitch", "7"],
        &["--size", "0"],
        &["--size", "64M..32K"],
        &["--size", "lots"],
        &["--size", "1K.."],
        &["--pattern", "strided", "--stride", "0"],
        &["--pattern", "tiled", "--tile", "0"],
        &["--threads", "5000"],
        &["--threads", "0"],
        &["--pages", "1g"],
        &["--model", "--caches", "L1d=0"],
        &["--budget-ms", "0"],
    ] {
        let output = walk(args).arg("--json").assert().code(2).get_output().clone();
        let error: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(error["error"]["message"].as_str().is_some_and(|text| text.len() > 10), "{args:?}: {error}");
    }
    // Well-formed, and more than any machine holds: as with every other command.
    for args in
        [&["--shape", "99999999999,99999999999"][..], &["--shape", "8,8", "--pitch", "999999999999999"]]
    {
        let output = walk(args).arg("--json").assert().code(1).get_output().clone();
        let error: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(error["error"]["kind"], "overflow", "{args:?}: {error}");
    }
    // Well-formed, and more than this machine holds.
    let output = walk(&["--shape", "1000000,1000000", "--dtype", "u8"]).assert().code(1).get_output().clone();
    assert!(String::from_utf8(output.stderr).unwrap().contains("free"));
}

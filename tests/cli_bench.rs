//! `restride bench` and `restride compare` as a person or a script runs them; times are never judged.
#![cfg(feature = "cli")]

use assert_cmd::Command;
use restride::bench::record::{Case, Kind, Record};
use serde_json::{Value, json};
use std::path::Path;

fn restride(args: &[&str]) -> Command {
    let mut command = Command::cargo_bin("restride").unwrap();
    command.env_remove("RESTRIDE_CACHES").env_remove("RESTRIDE_ISA").args(args);
    command
}

fn json(args: &[&str]) -> Value {
    let output = restride(args).assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

fn error_of(args: &[&str], code: i32) -> String {
    let output = restride(args).assert().code(code).get_output().clone();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.starts_with("restride: "), "{args:?}: {text}");
    text
}

#[test]
fn one_case_has_the_documented_keys() {
    for (shape, expr) in
        [("64,48", ".T"), ("8", ".broadcast_to(4, 8)"), ("5,5", ""), ("", ""), ("3,4", ".T.reshape(12)")]
    {
        let case = json(&["bench", "--shape", shape, expr, "--json"]);
        for key in [
            "median_ns",
            "ci_low_ns",
            "ci_high_ns",
            "memcpy_median_ns",
            "ratio",
            "bytes_moved",
            "gb_per_s",
            "threads",
            "pages",
            "isa",
            "strategy",
            "verified",
        ] {
            assert!(case.get(key).is_some(), "{key} of {shape} {expr}");
        }
        assert_eq!((&case["verified"], &case["pages"]), (&json!(true), &json!("4k")));
        assert!(case["ci_low_ns"].as_f64() <= case["ci_high_ns"].as_f64());
    }
    let moved =
        |args: &[&str]| json(&[&["bench", "--json", "--shape"], args].concat())["bytes_moved"].as_u64();
    // Distinct bytes read, and bytes written.
    assert_eq!(moved(&["8", ".broadcast_to(4, 8)"]), Some(32 + 128));
    assert_eq!(moved(&["8", ".pad((2, 2))", "--dtype", "f64"]), Some(64 + 96));
    assert_eq!(moved(&["4,4", "[:, ::2]", "--dtype", "u8", "--pages", "huge", "--threads", "all"]), Some(16));
}

#[test]
fn wrong_cases_are_refused() {
    error_of(&["bench", "--shape", "3,x", ".T"], 2);
    error_of(&["bench", "--shape", "3,4", ".T", "--dtype", "f7"], 2);
    error_of(&["bench", "--shape", "3,4", ".T", "--pages", "2m"], 2);
    error_of(&["bench", "--shape", "3,4", ".T("], 2);
    error_of(&["bench", "--shape", "3,4", ".T", "--preset", "quick"], 2);
    error_of(&["bench", "--preset", "slow"], 2);
    for threads in ["0", "-1", "1.5", "1025", "", "ALL", "99999999999999999999"] {
        let threads = format!("--threads={threads}");
        let text = error_of(&["bench", "--shape", "3,4", ".T", &threads], 2);
        assert!(text.contains("from 1 to 1024, or all for every core"), "{threads}: {text}");
        assert_eq!(error_of(&["walk", "--shape", "8,8", &threads], 2), text);
        assert_eq!(error_of(&["materialize", "in.npy", "-o", "out.npy", &threads], 2), text);
    }
    error_of(&["bench", "--filter", "no such case"], 2);
    error_of(&["bench", "--shape", "3,4", ".permute(0, 0)"], 1);
    error_of(&["bench", "--shape", "4611686018427387904", ".T"], 1);
    error_of(&["bench", "--shape", "1", ".broadcast_to(1099511627776)"], 1);
}

/// The smallest walk of the suite, for its name's sake the strided one of step 4096.
fn suite(dir: &Path, name: &str) -> Record {
    let path = dir.join(name);
    let filter = "walk/pitch/column/f64/1024x960/1032";
    restride(&["bench", "--preset", "quick", "--filter", filter, "-o", path.to_str().unwrap()])
        .assert()
        .success();
    Record::read(&path).unwrap()
}

#[test]
fn the_suite_writes_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let record = suite(dir.path(), "a.json");
    assert_eq!(record.cases.len(), 1);
    let case = &record.cases[0];
    assert_eq!((&case.kind, case.unit.as_str()), (&Kind::Walk, "ns"));
    assert!(!case.samples.is_empty() && case.samples.len() <= 101);
    assert_eq!(case.params["row_pitch"], 1032);
    assert_eq!(case.bytes_moved, Some(1024 * 960 * 8));
    for counter in &case.counters {
        assert_eq!(
            counter.value.is_some(),
            ["Ok", "Multiplexed"].contains(&counter.state.as_str()),
            "{counter:?}"
        );
    }
    assert!(record.command.starts_with("restride bench"), "{}", record.command);
    assert!(record.environment.pinning.is_some() && !record.environment.interrupted);
    assert!(!record.machine.cpu.is_empty() && !record.machine.counters.is_empty());
    // Only the record is left in the folder.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_record_that_cannot_be_written_is_said_before_measuring() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("no/record.json");
    assert!(error_of(&["bench", "-o", missing.to_str().unwrap()], 1).contains("folder"));
    assert!(error_of(&["bench", "-o", dir.path().to_str().unwrap()], 1).contains("directory"));
}

#[test]
fn results_of_cargo_bench_become_a_record() {
    let dir = tempfile::tempdir().unwrap();
    let new = dir.path().join("criterion/walks/row/L1d/new");
    std::fs::create_dir_all(&new).unwrap();
    std::fs::write(
        new.join("benchmark.json"),
        r#"{"group_id":"walks","full_id":"walks/row/L1d","throughput":{"Elements":100}}"#,
    )
    .unwrap();
    std::fs::write(new.join("sample.json"), r#"{"iters":[1,2,3],"times":[10,20,33]}"#).unwrap();
    let (from, to) = (dir.path().join("criterion"), dir.path().join("r.json"));
    restride(&["bench", "--from-criterion", from.to_str().unwrap(), "-o", to.to_str().unwrap()])
        .assert()
        .success();
    let record = Record::read(&to).unwrap();
    assert_eq!(record.cases[0].samples, [10.0, 10.0, 11.0]);
    assert_eq!(record.environment.extra["profile"], "none");
    assert!(error_of(&["bench", "--from-criterion", "/does/not/exist"], 1).contains("/does/not/exist"));
}

fn record(dir: &Path, name: &str, cpu: &str, cases: &[(&str, &[f64])]) -> String {
    let mut record = Record::new("test");
    record.machine.cpu = cpu.to_owned();
    for (id, samples) in cases {
        let mut case = Case::new(*id, Kind::Walk);
        case.samples = samples.to_vec();
        record.cases.push(case);
    }
    let path = dir.join(name);
    record.write(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn compare_lists_what_changed_beyond_noise() {
    let dir = tempfile::tempdir().unwrap();
    let odd = "walk \"ä\" <b>☃</b>\n";
    let base =
        record(dir.path(), "a.json", "X", &[("same", &[10.0; 5]), (odd, &[10.0; 5]), ("gone", &[1.0])]);
    let new = record(dir.path(), "b.json", "X", &[("same", &[10.0; 5]), (odd, &[15.0; 5]), ("zero", &[0.0])]);
    let found = json(&["compare", &base, &new, "--json"]);
    assert_eq!(
        (&found["cases"][0]["verdict"], &found["cases"][1]["verdict"]),
        (&json!("same"), &json!("slower"))
    );
    assert_eq!(found["cases"][1]["ratio"], 1.5);
    assert_eq!((&found["only_base"], &found["only_new"]), (&json!(["gone"]), &json!(["zero"])));
    let text = restride(&["compare", &base, &new]).assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(text).unwrap().contains("+50.0 %"));
    assert!(error_of(&["compare", &base, &new, "--fail-on", "10%"], 1).contains("slower by more than 10"));
    let judged = restride(&["compare", &base, &new, "--fail-on", "10%", "--json"])
        .assert()
        .code(1)
        .get_output()
        .stdout
        .clone();
    let judged: Value = serde_json::from_slice(&judged).unwrap();
    assert_eq!(judged["cases"][1]["fails"], true);
    // Nothing is slow enough, but a case is gone: it may be any slower.
    let gone = error_of(&["compare", &base, &new, "--fail-on", "60%"], 1);
    assert!(gone.contains("1 case of the base cannot be judged, gone first"), "{gone}");
    restride(&["compare", &base, &new, "--fail-on", "60%", "--allow-missing"]).assert().success();
    restride(&["compare", &base, &new]).assert().success();
    error_of(&["compare", &base, &new, "--allow-missing"], 2);
    assert!(error_of(&["compare", &new, &base, "--fail-on", "0%"], 1).contains("zero first"));
    restride(&["compare", &new, &base, "--fail-on", "0%", "--allow-missing"]).assert().success();
    assert_eq!(found["lost"], json!(["gone"]));
}

#[test]
fn compare_refuses_what_makes_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let one = record(dir.path(), "a.json", "X", &[("a", &[1.0; 5])]);
    let other = record(dir.path(), "b.json", "Y", &[("a", &[9.0; 5])]);
    let nothing = record(dir.path(), "c.json", "X", &[]);
    // Another machine: a warning, a refusal to judge, and judged all the same where asked for.
    let warned = restride(&["compare", &one, &other]).assert().success().get_output().stderr.clone();
    assert!(String::from_utf8(warned).unwrap().contains("different machines"));
    assert!(error_of(&["compare", &one, &other, "--fail-on", "10%"], 1).contains("different machines"));
    let judged = restride(&["compare", &one, &other, "--fail-on", "10%", "--across-machines"])
        .assert()
        .code(1)
        .get_output()
        .stderr
        .clone();
    assert!(String::from_utf8(judged).unwrap().contains("slower"));
    assert!(error_of(&["compare", &one, &nothing], 1).contains("no case in common"));
    error_of(&["compare", &one, "/does/not/exist"], 1);
    error_of(&["compare", &one, &one, "--fail-on", "ten"], 2);
    let damaged = dir.path().join("d.json");
    std::fs::write(&damaged, "{\"schema\":\"restride.record/9\",\"cases\":[]}").unwrap();
    assert!(error_of(&["compare", &one, damaged.to_str().unwrap()], 1).contains("newer"));
}

/// Whether a process has installed a handler for the interrupt from the terminal.
#[cfg(target_os = "linux")]
fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
    u64::from_str_radix(caught.trim(), 16).unwrap_or(0) >> 1 & 1 == 1
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_keeps_what_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("restride"))
        .args(["bench", "--preset", "quick", "--json", "-o", path.to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while !catches_interrupts(child.id()) {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be interrupted");
        std::thread::yield_now();
    }
    let interrupt =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let record = Record::read(&path).unwrap();
    assert!(record.environment.interrupted);
    // One JSON document, the record, though the exit code says that it is not the whole suite.
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["environment"]["interrupted"], true);
    assert!(String::from_utf8(output.stderr).unwrap().contains("interrupted"));
}

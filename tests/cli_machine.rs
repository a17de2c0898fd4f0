//! `restride machine` as a person or a script runs it.
#![cfg(feature = "cli")]

use assert_cmd::Command;
use serde_json::Value;

fn restride() -> Command {
    let mut command = Command::cargo_bin("restride").unwrap();
    command.env_remove("RESTRIDE_CACHES").env_remove("RESTRIDE_ISA");
    command
}

fn json(command: &mut Command) -> Value {
    let output = command.assert().success().get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

#[test]
fn json_has_the_documented_keys() {
    let machine = json(restride().args(["machine", "--json"]));
    for key in ["cpu", "isa", "caches", "pages", "counters", "profile"] {
        assert!(machine.get(key).is_some(), "{key}");
    }
    let isa = &machine["isa"];
    assert!(isa["available"].as_array().unwrap().contains(&isa["used"]));
    for cache in machine["caches"].as_array().unwrap() {
        for key in ["level", "type", "bytes", "ways", "line_bytes", "sets", "shared_by", "source"] {
            assert!(cache.get(key).is_some(), "{key}");
        }
    }
}

#[test]
fn every_counter_has_a_state_and_absent_ones_a_reason_and_a_remedy() {
    let machine = json(restride().args(["machine", "--json"]));
    let counters = machine["counters"].as_array().unwrap();
    let names: Vec<&str> = counters.iter().map(|counter| counter["event"].as_str().unwrap()).collect();
    for name in ["cycles", "instructions", "l1d-reads", "l1d-misses", "llc-references", "llc-misses"] {
        assert!(names.contains(&name), "{name}");
    }
    for name in ["dtlb-misses", "branch-misses", "page-faults", "context-switches", "migrations"] {
        assert!(names.contains(&name), "{name}");
    }
    for counter in counters {
        let fine = counter["state"] == "Ok";
        assert_eq!(counter["reason"].is_null(), fine, "{counter}");
        assert_eq!(counter["remedy"].is_null(), fine, "{counter}");
        assert!(counter.get("value").is_none(), "a state is no count");
    }
}

#[test]
fn text_shows_the_same_events() {
    let output = restride().arg("machine").assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    for word in ["CPU", "SIMD", "cache", "counter", "page-faults", "L1d"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn the_environment_replaces_caches() {
    let machine = json(
        restride()
            .args(["machine", "--json"])
            .env("RESTRIDE_CACHES", "L1d=40K/10/64,L2=3M/12/128,L3=300M/20/64"),
    );
    let caches = machine["caches"].as_array().unwrap();
    let l2 = caches.iter().find(|cache| cache["level"] == 2).unwrap();
    assert_eq!(
        (l2["bytes"].as_u64(), l2["ways"].as_u64(), l2["line_bytes"].as_u64()),
        (Some(3 << 20), Some(12), Some(128))
    );
    assert_eq!(l2["source"], "override");
}

#[test]
fn wrong_cache_sizes_are_a_wrong_command_line() {
    for bad in ["L1d=0/8/64", "L1d", "L1d=48K/12/63", "L7=1K/1/1", "L1d=99999999999999G/12/64"] {
        let output =
            restride().arg("machine").env("RESTRIDE_CACHES", bad).assert().code(2).get_output().clone();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
        assert!(message.contains("RESTRIDE_CACHES") && output.stdout.is_empty(), "{message}");
    }
}

//! Records: what is written is read back, old ones are read, newer ones refused, nothing is lost.
#![cfg(feature = "instruments")]

use restride::bench::record::{
    Case, CounterState, CounterValue, Environment, Kind, Machine, Record, RecordError, SCHEMA, SCHEMA_JSON,
};
use restride::machine::fingerprint::Fingerprint;
use serde_json::{Value, json};

/// A record with every field in use.
fn full() -> Record {
    let mut record = Record::new("restride bench --preset quick");
    record.git = Some("0123abc".to_owned());
    record.machine = {
        let mut machine = Machine::default();
        machine.fingerprint = Fingerprint::host();
        machine.cpu = machine.fingerprint.cpu();
        machine.ram_bytes = Some(1 << 34);
        machine.counters = vec![CounterState::new("page-faults", "Ok"), {
            let mut state = CounterState::new("cycles", "NoPmu");
            state.reason = Some("no counters in this virtual machine".to_owned());
            state.remedy = Some("run on the host".to_owned());
            state
        }];
        machine
    };
    record.environment = {
        let mut environment = Environment::default();
        environment.governor = Some("performance".to_owned());
        environment.load = Some(0.5);
        environment.pinning = Some("pinned".to_owned());
        environment.cpu = Some(1);
        environment.steal_share = Some(0.01);
        environment.migrations = Some(0);
        environment.noise = vec!["1.0 % of the time went to other machines".to_owned()];
        environment
    };
    let mut walk = Case::new("walk row \"f64\" 1 MiB, naïve → ☃\n<b>&amp;", Kind::Walk)
        .param("pattern", "row")
        .param("elements", 131_072);
    walk.samples = vec![1.0, 2.5, 0.0];
    walk.bytes_moved = Some(1 << 20);
    walk.model.insert("L1d".to_owned(), json!({"accesses": 10, "misses": 1}));
    walk.counters =
        vec![CounterValue::new("page-faults", "Ok", Some(0.0)), CounterValue::new("cycles", "NoPmu", None)];
    let mut copy = Case::new("", Kind::Copy);
    copy.samples = vec![7.0];
    copy.memcpy_samples = vec![6.0];
    record.cases = vec![walk, copy, Case::new("chase", Kind::Chase)];
    record
}

fn text(value: &Value) -> String {
    serde_json::to_string(value).unwrap()
}

#[test]
fn a_record_survives_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("record.json");
    let record = full();
    record.write(&path).unwrap();
    assert_eq!(Record::read(&path).unwrap(), record);
    // Written over itself, nothing else remains beside it.
    Record::read(&path).unwrap().write(&path).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(Record::read(&path).unwrap(), record);
}

#[test]
fn what_is_written_obeys_the_schema() {
    let schema: Value = serde_json::from_str(SCHEMA_JSON).unwrap();
    for record in [full(), Record::new("")] {
        let value = serde_json::to_value(record).unwrap();
        let errors = violations(&schema, &schema, &value, "record");
        assert!(errors.is_empty(), "{errors:#?}");
    }
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let schema: Value = serde_json::from_str(SCHEMA_JSON).unwrap();
    let good = serde_json::to_value(full()).unwrap();
    let broken: [(&str, Value); 8] = [
        ("/schema", json!("restride.record/2")),
        ("/created", json!("yesterday")),
        ("/cases", json!({})),
        ("/cases/0/samples", json!([-1.0])),
        ("/cases/0/samples", json!(vec![1.0; 102])),
        ("/cases/0/counters/1/state", json!("Fine")),
        ("/cases/0/counters/1/value", json!(0.0)),
        ("/environment/steal_share", json!(1.5)),
    ];
    for (place, value) in broken {
        let mut bad = good.clone();
        *bad.pointer_mut(place).unwrap() = value;
        assert!(!violations(&schema, &schema, &bad, "record").is_empty(), "{place}");
    }
    let mut bad = good.clone();
    bad["cases"][0].as_object_mut().unwrap().remove("unit");
    assert!(!violations(&schema, &schema, &bad, "record").is_empty());
}

#[test]
fn unknown_fields_pass_through() {
    let mut value = serde_json::to_value(full()).unwrap();
    for place in [
        "",
        "/machine",
        "/machine/fingerprint",
        "/machine/counters/0",
        "/environment",
        "/cases/0",
        "/cases/0/params",
        "/cases/0/model",
        "/cases/0/counters/0",
    ] {
        let object = value.pointer_mut(place).unwrap().as_object_mut().unwrap();
        object.insert("from the future".to_owned(), json!({"a": [1, null, "x"]}));
    }
    for cache in value["machine"]["fingerprint"]["caches"].as_array_mut().unwrap() {
        cache["latency_ns"] = json!(1.5);
    }
    value["cases"][1]["kind"] = json!("gather");
    let record = Record::parse(&text(&value), "test").unwrap();
    assert_eq!(record.cases[1].kind, Kind::Other("gather".to_owned()));
    assert_eq!(serde_json::to_value(&record).unwrap(), value);
}

#[test]
fn old_and_lean_records_are_read() {
    let old = json!({
        "schema": "restride.record/0",
        "cases": [{"id": "a", "kind": "walk", "samples_ns": [1, 2, 3]}],
    });
    let record = Record::parse(&text(&old), "old").unwrap();
    assert_eq!(record.schema, SCHEMA);
    assert_eq!((record.cases[0].samples.len(), record.cases[0].unit.as_str()), (3, "ns"));
    let lean = json!({"schema": SCHEMA, "cases": []});
    assert!(Record::parse(&text(&lean), "lean").unwrap().machine.cpu.is_empty());
}

#[test]
fn what_is_no_record_is_refused_in_one_sentence() {
    let newer = Record::parse("{\"schema\": \"restride.record/2\", \"cases\": []}", "x.json").unwrap_err();
    assert!(matches!(newer, RecordError::Newer { .. }), "{newer}");
    for bad in [
        "",
        "[]",
        "{",
        "{}",
        "{\"schema\": 1}",
        "{\"schema\": \"criterion/1\", \"cases\": []}",
        "{\"schema\": \"restride.record/x\", \"cases\": []}",
        "{\"schema\": \"restride.record/1\"}",
        "{\"schema\": \"restride.record/1\", \"cases\": [{\"id\": \"a\"}]}",
        "{\"schema\": \"restride.record/1\", \"cases\": [{\"id\":\"a\",\"kind\":\"walk\",\"unit\":\"ns\",\"samples\":[-1]}]}",
        "{\"schema\": \"restride.record/1\", \"cases\": [{\"id\":\"a\",\"kind\":\"walk\",\"unit\":\"ns\",\"samples\":[1e999]}]}",
        "{\"schema\": \"restride.record/1\", \"cases\": [\
          {\"id\":\"a\",\"kind\":\"walk\",\"unit\":\"ns\",\"samples\":[]},\
          {\"id\":\"a\",\"kind\":\"walk\",\"unit\":\"ns\",\"samples\":[]}]}",
    ] {
        let error = Record::parse(bad, "x.json").expect_err(bad).to_string();
        assert!(error.contains("x.json") && !error.contains('\n'), "{error}");
    }
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("no/such/record.json");
    assert!(full().write(&missing).is_err());
    assert!(full().write(dir.path()).is_err(), "a directory is no file");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert!(Record::read(&missing).unwrap_err().to_string().contains("no/such/record.json"));
    assert!(Record::read(dir.path()).is_err());
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let (real, link) = (dir.path().join("real.json"), dir.path().join("link.json"));
    std::fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let record = full();
    record.write(&link).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(Record::read(&real).unwrap(), record);
}

/// Checks a value against the part of JSON Schema that the shipped schema uses; panics on a keyword that
/// it does not know, so that nothing in the schema goes unchecked.
fn violations(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        let ok = match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let target =
                    root.pointer(rule.as_str().unwrap().strip_prefix('#').unwrap()).expect("a target");
                found.extend(violations(root, target, value, at));
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|kind| is_type(kind, value)),
                kind => is_type(kind, value),
            },
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|list| list.len() as u64 <= rule.as_u64().unwrap()),
            "pattern" => {
                assert!(rule.as_str().unwrap().starts_with("^[0-9]{4}-"), "the only pattern is a moment's");
                let digits = |c: char| if c.is_ascii_digit() { '0' } else { c };
                let shape = value.as_str().map(|text| text.chars().map(digits).collect::<String>());
                shape.is_none_or(|shape| shape == "0000-00-00T00:00:00Z")
            }
            "required" => value.as_object().is_none_or(|object| {
                rule.as_array().unwrap().iter().all(|name| object.contains_key(name.as_str().unwrap()))
            }),
            "properties" => {
                for (name, schema) in rule.as_object().unwrap() {
                    if let Some(value) = value.get(name) {
                        found.extend(violations(root, schema, value, &format!("{at}.{name}")));
                    }
                }
                true
            }
            "items" => {
                for (index, value) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(violations(root, rule, value, &format!("{at}[{index}]")));
                }
                true
            }
            "if" => {
                if !violations(root, rule, value, at).is_empty() {
                    found.extend(violations(root, &schema["else"], value, at));
                }
                true
            }
            "else" => schema.get("if").is_some(),
            other => panic!("the schema uses \"{other}\", which this check does not know"),
        };
        if !ok {
            found.push(format!("{at} breaks {keyword}: {rule}"));
        }
    }
    found
}

fn is_type(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    }
}

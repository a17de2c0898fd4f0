//! The handed cases through the commands: `explain --json` for what a view is, `materialize` for its values.

#![cfg(feature = "cli")]

use assert_cmd::Command;
use restride::npy::Header;
use serde_json::Value;
use std::path::Path;

fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/tests/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn restride() -> Command {
    Command::cargo_bin("restride").unwrap()
}

/// Runs a command; its exit code, what it printed as JSON, and stderr.
fn run(command: &mut Command) -> (i32, Value, String) {
    let output = command.output().unwrap();
    let json = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap(), json, String::from_utf8(output.stderr).unwrap())
}

fn shape_of(case: &Value) -> Vec<usize> {
    case["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect()
}

fn listed(shape: &[usize]) -> String {
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}

fn explained(case: &Value) -> Result<(), String> {
    let (text, expect) = (case["expr"].as_str().unwrap(), &case["expect"]);
    let shape = listed(&shape_of(case));
    let (code, json, stderr) =
        run(restride().args(["explain", "--shape", &shape, "--dtype", "i64", text, "--json"]));
    if let Some(kind) = expect["error"].as_str() {
        let error = &json["error"];
        let from = error["span"][0].as_u64().unwrap_or(u64::MAX) as usize;
        let to = error["span"][1].as_u64().unwrap_or(u64::MAX) as usize;
        let one_piece = text.get(from..to) == error["piece"].as_str();
        let right = code == 1 && error["kind"] == kind && one_piece && error["shape"].is_array();
        return if right && stderr.contains('^') { Ok(()) } else { Err(format!("{code} {json} {stderr}")) };
    }
    if code != 0 || json["shape"] != expect["shape"] {
        return Err(format!("{code} {json} {stderr}"));
    }
    let passes = json["passes"].as_array().unwrap();
    let copies = json["copies"].as_u64().unwrap() as usize;
    let consistent = passes.len() >= copies.max(1)
        && passes.len() <= copies + 1
        && json["plan"] == passes[0]["plan"]
        && json["lines"] == passes[0]["lines"]
        && json["plan"]["strategy"].is_string()
        && json["plan"]["isa"].is_string();
    if !consistent {
        return Err(format!("passes: {json}"));
    }
    if expect["copies"].is_null() {
        return Ok(()); // a pad: NumPy's strides mean nothing here
    }
    let axes = expect["shape"].as_array().unwrap();
    let same_strides = (0..axes.len()).all(|a| axes[a] == 1 || json["strides"][a] == expect["strides"][a]);
    let same_offset = expect["offset"].is_null() || json["offset"] == expect["offset"];
    let same = json["copies"] == expect["copies"] && json["contiguous"] == expect["contiguous"];
    if same_strides && same_offset && same { Ok(()) } else { Err(json.to_string()) }
}

fn materialized(case: &Value, dir: &Path) -> Result<(), String> {
    let shape = shape_of(case);
    let count: usize = shape.iter().product();
    let (input, output) = (dir.join("in.npy"), dir.join("out.npy"));
    let mut bytes = Header::render(b"'<i8'", false, &shape, (1, 0));
    bytes.extend((0..count as i64).flat_map(i64::to_le_bytes));
    std::fs::write(&input, bytes).unwrap();
    let text = case["expr"].as_str().unwrap();
    let (code, _, stderr) =
        run(restride().args(["materialize", "--verify"]).arg(&input).arg(text).arg("-o").arg(&output));
    if case["expect"]["error"].is_string() {
        let right = code == 1 && stderr.contains('^') && !output.exists();
        return if right { Ok(()) } else { Err(format!("{code} {stderr}")) };
    }
    if code != 0 {
        return Err(format!("{code} {stderr}"));
    }
    let file = std::fs::read(&output).unwrap();
    std::fs::remove_file(&output).unwrap();
    let header = Header::parse(&file).unwrap();
    let right = header.version == (1, 0)
        && !header.fortran_order
        && header.descr == b"'<i8'"
        && header.shape == shape_of(&case["expect"])
        && u64::from(crc32fast::hash(&file[header.data.clone()])) == case["expect"]["crc32_i64"];
    if right { Ok(()) } else { Err(format!("{header:?}")) }
}

fn check(count: usize, file: &str, one: impl Fn(&Value) -> Result<(), String>) {
    let cases = cases(file);
    assert_eq!(cases.len(), count);
    let wrong: Vec<String> =
        cases.iter().filter_map(|case| one(case).err().map(|e| format!("{case}\n  {e}"))).collect();
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn explain_knows_the_seeds() {
    check(71, "seeds.jsonl", explained);
}

#[test]
fn explain_knows_the_views() {
    check(400, "views.jsonl", explained);
}

#[test]
fn materialize_writes_the_seeds() {
    let dir = tempfile::tempdir().unwrap();
    check(71, "seeds.jsonl", |case| materialized(case, dir.path()));
}

#[test]
fn materialize_writes_the_views() {
    let dir = tempfile::tempdir().unwrap();
    check(400, "views.jsonl", |case| materialized(case, dir.path()));
}

#[test]
fn explain_plans_the_public_transposes() {
    for case in cases("../../src/bench/transposes.jsonl") {
        let shape = listed(&shape_of(&case));
        let expr = case["expr"].as_str().unwrap();
        let (code, json, stderr) = run(restride().args(["explain", "--shape", &shape, expr, "--json"]));
        assert_eq!(code, 0, "{stderr}");
        let bytes = shape_of(&case).iter().product::<usize>() * 4;
        assert_eq!(json["plan"]["bytes"], bytes);
        assert_eq!(json["lines"]["bytes_used"], bytes);
        assert_eq!(json["lines"]["touched"], bytes / 64);
    }
}

#[test]
fn wrong_command_lines_end_with_two() {
    for args in [
        &["explain"][..],
        &["explain", "--shape", "3,x", ""],
        &["explain", "--shape", "3,-1", ""],
        &["explain", "--shape", "3,4", "--dtype", "f31", ""],
        &["explain", "--shape", "3,4", ".T["],
        &["explain", "--shape", "3,4", ".T", "--caches", "L1d=0/1/64"],
        &["explain", "--shape", "3,4", ".T", "--caches", "tiny"],
        &["explain", "--shape", "3,4", "a.npy", ".T"],
        &["materialize"],
        &["nonsense"],
    ] {
        let (code, _, stderr) = run(restride().args(args));
        assert_eq!(code, 2, "{args:?}: {stderr}");
        let (code, json, _) = run(restride().args(args).arg("--json"));
        assert_eq!(code, 2, "{args:?}");
        if args[0] == "explain" && args.len() > 1 {
            assert!(
                json["error"]["message"].is_string() && json["error"]["kind"].is_string(),
                "{args:?} {json}"
            );
        }
    }
}

#[test]
fn sizes_beyond_the_address_space_are_refused() {
    for (shape, dtype) in
        [("4294967296,4294967296", "u8"), ("4611686018427387904", "f32"), ("0,4611686018427387904", "f64")]
    {
        let (code, json, _) =
            run(restride().args(["explain", "--shape", shape, "--dtype", dtype, "", "--json"]));
        assert_eq!((code, &json["error"]["kind"]), (1, &Value::from("overflow")), "{shape} {dtype}");
    }
    let (code, json, stderr) = run(restride().args([
        "explain",
        "--shape",
        "1",
        "--dtype",
        "u8",
        ".broadcast_to(4611686018427387904)",
        "--json",
    ]));
    assert_eq!((code, &json["writable"]), (0, &Value::from(false)), "{stderr}");
}

#[test]
fn the_model_is_in_the_json() {
    let caches = "L1d=48K/12/64,L2=2M/16/64";
    for (expr, misses) in [("", 131_072), (".T", 1_048_576)] {
        let (code, json, stderr) = run(restride().args([
            "explain",
            "--shape",
            "1024,1024",
            "--dtype",
            "f64",
            expr,
            "--model",
            "--caches",
            caches,
            "--json",
        ]));
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(json["model"]["naive"]["levels"]["L1d"]["misses"], misses);
        assert_eq!(json["model"], json["passes"][0]["model"]);
        assert!(json["model"]["plan"]["levels"]["L1d"]["accesses"].is_u64());
    }
}

#[test]
fn explain_for_people_shows_view_steps_plan_and_buffer() {
    let output = restride().args(["explain", "--shape", "3,4", ".T.reshape(12)"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["shape (12,)", "COPY: axes 0 (extent 4), 1 (extent 3)", "pass 1 of 1", "plan", "line   0"] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn slips_on_the_command_line_are_answered_with_what_was_meant() {
    for (args, code, word) in [
        (&["bench", "--shape", "3", "4", ".T"][..], 2, "--shape 3,4"),
        (&["explain", ".T"], 2, "--shape"),
        (&["explain", "--shape", "3,4", ".flip(7)"], 1, "-2 to 1"),
        (&["explain", "--shape", "", ".flip(0)"], 1, "no axis"),
        (&["explain", "--shape", "3,4", "--dtype", ">f4", ".T"], 2, "f32"),
        (&["report", "nowhere.json"], 1, "check the path"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_restride")).args(args).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
        assert!(message.lines().next().unwrap().contains(word), "{args:?}: {message}");
    }
    let bench = ["bench", "--shape", "0,3", ".T", "--json"];
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_restride")).args(bench).output().unwrap();
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(value["ratio"].is_null() && value["gb_per_s"].is_null() && value["bytes_moved"] == 0, "{value}");
}

//! `restride tune` from outside: profiles in a folder of the test's own, measured or not.
#![cfg(feature = "cli")]

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;

fn restride(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_restride"));
    command.env_clear().env("HOME", home).env("XDG_CONFIG_HOME", home.join("config"));
    command
}

fn json(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_str(&text).unwrap()
}

/// A profile of this machine with one value, made by the program's own key.
fn planted(home: &Path) -> Value {
    let shown = json(restride(home).args(["tune", "--show", "--json"]));
    let entry = serde_json::json!({
        "key": shown["key"], "created": "2026-11-30T20:46:36Z", "command": "restride tune",
        "winners": [{
            "knob": "tile_src_bytes", "element_bytes": 4, "value": 1024, "replaces": 4096, "gain": 1.1, "noise": 1.01
        }],
        "measurements": [],
    });
    serde_json::json!({ "schema": "restride.profile/1", "entries": [entry] })
}

#[test]
fn a_dry_run_measures_and_writes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let value = json(restride(home.path()).args(["tune", "--dry-run", "--json"]));
    let targets = value["targets"].as_array().unwrap();
    assert!(targets.len() >= 20);
    assert!(targets.iter().all(|target| target["proposals"].as_array().unwrap().len() <= 12));
    assert!(!home.path().join("config").exists());
}

#[test]
fn no_time_means_nothing_confirmed() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("p.json");
    let mut command = restride(home.path());
    command.args(["tune", "--budget", "0s", "--json", "--profile"]).arg(&path);
    let value = json(&mut command);
    assert_eq!(value["winners"].as_array().unwrap().len(), 0);
    assert!(value["targets"].as_array().unwrap().iter().all(|t| t["verdict"] != "better"));
    // The run is kept all the same: it says what was measured.
    assert!(path.exists());
}

#[test]
fn exported_profiles_are_imported_shown_used_and_reset() {
    let home = tempfile::tempdir().unwrap();
    let (file, out) = (home.path().join("in.json"), home.path().join("out.json"));
    std::fs::write(&file, planted(home.path()).to_string()).unwrap();
    let value = json(restride(home.path()).args(["tune", "--json", "--import"]).arg(&file));
    assert_eq!(value["entries"], 1);
    let shown = json(restride(home.path()).args(["tune", "--show", "--json"]));
    assert_eq!((&shown["values"], &shown["entries"][0]["winners"][0]["value"]), (&1.into(), &1024.into()));
    assert_eq!(shown["tuning"]["tile_src_bytes"]["4"]["origin"], "profile");

    let explain = ["explain", "--shape", "512,512", ".T", "--json"];
    let used = json(restride(home.path()).args(explain));
    assert_eq!(used["plan"]["tuning"]["tile_src_bytes"]["origin"], "profile");
    assert_eq!(used["plan"]["tuning"]["tile_src_bytes"]["value"], 1024);
    let off = json(restride(home.path()).args(explain).args(["--profile", "none"]));
    assert_ne!(off["plan"]["tuning"]["tile_src_bytes"]["origin"], "profile");
    // Another machine's caches, asked for by either way, never take this machine's values.
    let other = json(restride(home.path()).args(explain).args(["--caches", "L1d=32K/8/64,L2=256K/8/64"]));
    assert_ne!(other["plan"]["tuning"]["tile_src_bytes"]["origin"], "profile");
    let mut elsewhere = restride(home.path());
    elsewhere.env("RESTRIDE_CACHES", "L1d=32K/8/64,L2=256K/8/64").args(explain);
    let output = elsewhere.output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_ne!(value["plan"]["tuning"]["tile_src_bytes"]["origin"], "profile");
    assert!(String::from_utf8_lossy(&output.stderr).contains("caches"));

    json(restride(home.path()).args(["tune", "--json", "--export"]).arg(&out));
    assert!(std::fs::read_to_string(&out).unwrap().contains("tile_src_bytes"));
    let reset = json(restride(home.path()).args(["tune", "--reset", "--json"]));
    assert_eq!(reset["removed"], true);
    assert_eq!(json(restride(home.path()).args(["tune", "--show", "--json"]))["values"], 0);
    restride(home.path()).args(["tune", "--export"]).arg(&out).assert().code(1);
}

#[test]
fn a_broken_profile_is_an_error_in_tune_and_a_warning_elsewhere() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("p.json");
    std::fs::write(&path, "{ half").unwrap();
    let before = std::fs::read(&path).unwrap();
    for mode in [&["--show"][..], &["--check"], &["--budget", "0s"], &["--import"]] {
        let mut command = restride(home.path());
        command.arg("tune").args(mode);
        if mode == ["--import"] {
            command.arg(&path);
        }
        let output = command.arg("--profile").arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{mode:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("is no profile"), "{mode:?}");
    }
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let output = restride(home.path())
        .args(["explain", "--shape", "3,4", ".T", "--profile"])
        .arg(&path)
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("warning"));
    restride(home.path()).args(["tune", "--reset", "--profile"]).arg(&path).assert().success();
    assert!(!path.exists());
}

#[test]
fn a_record_says_which_profile_was_in_force_and_which_tile_it_chose() {
    let home = tempfile::tempdir().unwrap();
    let (profile, out) = (home.path().join("mine.json"), home.path().join("r.json"));
    std::fs::write(&profile, planted(home.path()).to_string()).unwrap();
    // The tile of the profile, beside those of the sweep.
    let mut command = restride(home.path());
    command.args(["bench", "--preset", "quick", "--filter", "tile/f32/2048/1024x256", "-o"]).arg(&out);
    command.arg("--profile").arg(&profile).assert().success();
    let record: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let used = &record["environment"]["profile"];
    assert_eq!((&used["name"], &used["values"]), (&"mine.json".into(), &1.into()));
    assert_eq!(used["created"], "2026-11-30T20:46:36Z");
    assert!(!used.to_string().contains(&*home.path().to_string_lossy()), "{used}");
    let params = &record["cases"][0]["params"];
    assert_eq!((&params["default"], &params["tuned"]), (&false.into(), &true.into()), "{params}");
}

#[test]
fn entries_that_no_machine_can_use_are_named_and_not_taken() {
    let home = tempfile::tempdir().unwrap();
    let good = planted(home.path())["entries"][0].clone();
    let winner = |knob: &str, size: Value, value: Value| serde_json::json!({"knob": knob, "element_bytes": size, "value": value, "replaces": 1, "gain": 1.2, "noise": 1.01});
    let with = |change: &dyn Fn(&mut Value)| {
        let mut entry = good.clone();
        change(&mut entry);
        entry
    };
    let import = |entries: Vec<Value>| {
        let file = home.path().join("in.json");
        let text = serde_json::json!({"schema": "restride.profile/1", "entries": entries}).to_string();
        std::fs::write(&file, text).unwrap();
        let output = restride(home.path()).args(["tune", "--json", "--import"]).arg(&file).output().unwrap();
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), value, String::from_utf8(output.stderr).unwrap())
    };
    for (bad, word) in [
        (with(&|e| e["key"]["isa"] = "avx1024".into()), "avx1024"),
        (with(&|e| e["key"]["page_bytes"] = 0.into()), "pages of 0 bytes"),
        (with(&|e| e["winners"] = vec![winner("warp_bytes", 4.into(), 64.into())].into()), "warp_bytes"),
        (with(&|e| e["winners"] = vec![winner("tile_src_bytes", 5.into(), 1024.into())].into()), "5 bytes"),
        (
            with(&|e| e["winners"] = vec![winner("tile_src_bytes", 4.into(), 3.into())].into()),
            "tile_src_bytes is 3",
        ),
        (with(&|e| e["winners"] = "none".into()), "cannot be read"),
    ] {
        let (code, value, say) = import(vec![bad.clone()]);
        assert_eq!((code, &value["entries"]), (Some(1), &0.into()), "{word}: {value}");
        assert!(say.contains(word) && say.trim().lines().count() == 1, "{word}: {say}");
        // Beside a good one it is named, and the good one is taken.
        let (code, value, _) = import(vec![bad, good.clone()]);
        assert_eq!((code, &value["entries"]), (Some(0), &1.into()), "{word}: {value}");
        let reason = value["left_out"][0]["reason"].as_str().unwrap();
        assert!(
            reason.contains(word) && value["left_out"][0]["entry"].as_str().unwrap().starts_with("entry 1")
        );
    }
    // One bad value among good ones is a warning; of another version it may mean something.
    let mixed = with(&|e| {
        let list = e["winners"].as_array_mut().unwrap();
        list.push(winner("warp_bytes", 4.into(), 64.into()));
    });
    let (code, value, _) = import(vec![mixed.clone()]);
    assert_eq!(
        (code, &value["entries"], value["not_used"].as_array().unwrap().len()),
        (Some(0), &1.into(), 1)
    );
    let mut newer = mixed;
    newer["key"]["version"] = "99.0.0".into();
    let (code, value, _) = import(vec![newer]);
    assert_eq!((code, value["not_used"].as_array().unwrap().len()), (Some(0), 0));
    assert!(value["elsewhere"][0].as_str().unwrap().contains("99.0.0"));
}

#[test]
fn a_check_without_values_to_check_says_so() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("p.json");
    let check = || restride(home.path()).args(["tune", "--check", "--profile"]).arg(&path).output().unwrap();
    let said = |output: &std::process::Output, word: &str| {
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains(word) && message.contains("tune first"), "{message}");
    };
    said(&check(), "is not there");
    std::fs::write(&path, r#"{"schema": "restride.profile/1", "entries": []}"#).unwrap();
    said(&check(), "holds no entry");
    let mut foreign = planted(home.path());
    foreign["entries"][0]["key"]["model"] = 9999.into();
    std::fs::write(&path, foreign.to_string()).unwrap();
    said(&check(), "CPU model 9999");
    // A tuning that found the defaults best compares nothing, which is no fault.
    let mut nothing = planted(home.path());
    nothing["entries"][0]["winners"] = serde_json::json!([]);
    std::fs::write(&path, nothing.to_string()).unwrap();
    let output = check();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("nothing to compare"));
}

#[test]
fn a_profile_of_before_a_knob_existed_is_used_and_one_of_after_is_named() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("p.json");
    let mut profile = planted(home.path());
    let winners = profile["entries"][0]["winners"].as_array_mut().unwrap();
    winners.push(serde_json::json!({
        "knob": "warp_ahead_bytes", "element_bytes": 4, "value": 64, "replaces": 1, "gain": 1.2, "noise": 1.01
    }));
    winners.push(serde_json::json!({
        "knob": "row_ahead_bytes", "element_bytes": 4, "value": 1 << 30, "replaces": 1, "gain": 1.2, "noise": 1.01
    }));
    std::fs::write(&path, profile.to_string()).unwrap();
    let shown = json(restride(home.path()).args(["tune", "--show", "--json", "--profile"]).arg(&path));
    assert_eq!(shown["values"], 1);
    assert_eq!(shown["tuning"]["tile_src_bytes"]["4"]["origin"], "profile");
    assert_eq!(shown["tuning"]["tile_ahead_bytes"]["4"]["origin"], "default");
    let reasons: Vec<_> =
        shown["ignored"].as_array().unwrap().iter().map(|i| i["reason"].to_string()).collect();
    assert!(reasons.len() == 2 && reasons[0].contains("warp_ahead_bytes"), "{reasons:?}");
    assert!(reasons[1].contains("row_ahead_bytes is 1073741824, which is not between"), "{reasons:?}");
}

#[test]
fn two_processes_that_write_at_once_lose_nothing() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("shared.json");
    let mut files = Vec::new();
    for k in 0..6 {
        let mut profile = planted(home.path());
        profile["entries"][0]["key"]["stepping"] = (1000 + k).into();
        let file = home.path().join(format!("{k}.json"));
        std::fs::write(&file, profile.to_string()).unwrap();
        files.push(file);
    }
    let children: Vec<_> = files
        .iter()
        .map(|file| {
            std::process::Command::new(env!("CARGO_BIN_EXE_restride"))
                .args(["tune", "--json", "--import"])
                .arg(file)
                .arg("--profile")
                .arg(&path)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert!(!home.path().join("shared.json.lock").exists());
    let shown = json(restride(home.path()).args(["tune", "--show", "--json", "--profile"]).arg(&path));
    assert_eq!(shown["entries"].as_array().unwrap().len(), 6);
    assert_eq!(shown["ignored"].as_array().unwrap().len(), 6);
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    let home = tempfile::tempdir().unwrap();
    for arguments in [
        &["tune", "--budget", "soon"][..],
        &["tune", "--check", "--show"],
        &["tune", "--profile", "none"],
        &["tune", "--import"],
    ] {
        restride(home.path()).args(arguments).assert().code(2);
    }
    restride(home.path()).args(["tune", "--import", "/nowhere.json"]).assert().code(1);
    restride(home.path()).args(["tune", "--help"]).assert().success();
}

/// What a profile that cannot be kept says: one sentence that names the file and what to do.
fn refused(output: &std::process::Output, path: &Path) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains(path.to_str().unwrap()) && message.contains("--profile"), "{message}");
    assert!(output.stdout.is_empty(), "nothing was measured for nothing");
}

#[test]
fn a_profile_that_cannot_be_written_is_said_before_anything_is_measured() {
    let home = tempfile::tempdir().unwrap();
    let good = home.path().join("good.json");
    std::fs::write(&good, planted(home.path()).to_string()).unwrap();
    std::fs::write(home.path().join("file"), "text").unwrap();
    std::fs::create_dir(home.path().join("folder")).unwrap();
    // Through a file, and in place of a folder: not even root can write there.
    for place in ["file/profile.json", "file/deeper/profile.json", "folder"] {
        let path = home.path().join(place);
        for mode in [&["--budget", "3600s"][..], &["--import", good.to_str().unwrap()]] {
            let output = restride(home.path()).arg("tune").args(mode).arg("--profile").arg(&path).output();
            refused(&output.unwrap(), &path);
        }
        // Whoever only uses profiles goes on without.
        let mut explain = restride(home.path());
        let output =
            explain.args(["explain", "--shape", "3,4", ".T", "--profile"]).arg(&path).output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty());
        assert!(String::from_utf8_lossy(&output.stderr).contains("the defaults are used"));
    }
    assert_eq!(std::fs::read_to_string(home.path().join("file")).unwrap(), "text");
    assert_eq!(std::fs::read_dir(home.path().join("folder")).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_without_permission_or_space_leaves_the_old_profile() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = home.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let path = place.join("profile.json");
    let old = planted(home.path()).to_string();
    std::fs::write(&path, &old).unwrap();
    std::fs::write(place.join("profile.json.lock"), "").unwrap();
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o555)).unwrap();
    // Root may write anywhere: the program runs as nobody then, out of a copy that nobody can reach.
    // SAFETY: geteuid has no arguments and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let program = home.path().join("restride");
    // Copied by another process: one that this process writes may still be open in a child of another test.
    let copied = std::process::Command::new("cp").arg(env!("CARGO_BIN_EXE_restride")).arg(&program).status();
    assert!(copied.unwrap().success());
    let run = |mode: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.env_clear().arg("tune").args(mode).arg("--profile").arg(&path);
        if root {
            command.uid(65534).gid(65534);
        }
        command.output().unwrap()
    };
    refused(&run(&["--budget", "3600s"]), &path);
    refused(&run(&["--reset"]), &path);
    assert!(run(&["--show"]).status.success());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), old);
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(&place).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["profile.json", "profile.json.lock"]);

    // A limit on the size of files is what a full disk is: the write stops in the middle.
    let mut command = std::process::Command::new("sh");
    command.args(["-c", r#"ulimit -f 0; exec "$1" tune --import "$2" --profile "$2""#, "sh"]);
    let output = command.arg(&program).arg(&path).output().unwrap();
    refused(&output, &path);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), old);
    // The lock goes with who held it.
    let names: Vec<_> = std::fs::read_dir(&place).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["profile.json"]);
}

#[test]
fn no_home_means_no_profile_and_says_what_to_set() {
    let bare = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_restride"));
        command.env_clear();
        command
    };
    // A system may know the home folder without the variable; where it does not, the message says so.
    let output = bare().args(["tune", "--show"]).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || message.contains("set HOME"), "{message}");
    let output = bare().args(["explain", "--shape", "3,4", ".T"]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
}

//! What goes wrong around a run, of `restride materialize` above all: nothing is lost, nothing is half-written, and
//! the message says what to do.
#![cfg(all(feature = "cli", target_os = "linux"))]

use restride::npy::Header;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const RESTRIDE: &str = env!("CARGO_BIN_EXE_restride");

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A small file of 0, 1, 2 ... and the path of a target beside it.
fn small(folder: &Path) -> (PathBuf, PathBuf) {
    let input = folder.join("in.npy");
    let mut file = Header::render(b"'<i4'", false, &[100, 200], (1, 0));
    file.extend((0..20_000i32).flat_map(i32::to_le_bytes));
    fs::write(&input, file).unwrap();
    (input, folder.join("out.npy"))
}

/// A file that takes a while: mostly holes, of which a run touches every page.
fn slow(folder: &Path) -> (PathBuf, PathBuf) {
    let input = folder.join("in.npy");
    let header = Header::render(b"'|u1'", false, &[3 << 30], (1, 0));
    fs::write(&input, &header).unwrap();
    fs::File::options().write(true).open(&input).unwrap().set_len(header.len() as u64 + (3 << 30)).unwrap();
    (input, folder.join("out.npy"))
}

/// Starts a slow run and waits until it copies: until both files are mapped.
fn copying(input: &Path, output: &Path, hidden: bool) -> Child {
    let mut command = Command::new(RESTRIDE);
    command.arg("materialize").args([
        input.as_os_str(),
        "[::4096]".as_ref(),
        "-o".as_ref(),
        output.as_os_str(),
    ]);
    command.args(["--threads", "1", "--memory", "32M"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    if hidden {
        command.env("RESTRIDE_NAMED_TEMPORARY", "1");
    }
    // Whoever runs the tests in the background may have them ignore the interrupt, and so would the child.
    // SAFETY: signal() may be called between fork and exec.
    unsafe {
        command.pre_exec(|| {
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
    let mut child = command.spawn().unwrap();
    let here = input.parent().unwrap().to_str().unwrap().to_owned();
    let start = Instant::now();
    loop {
        let maps = fs::read_to_string(format!("/proc/{}/maps", child.id())).unwrap_or_default();
        let mapped: std::collections::HashSet<&str> = maps
            .lines()
            .filter(|line| line.contains(&here))
            .filter_map(|line| line.split_whitespace().nth(4))
            .collect();
        if mapped.len() == 2 {
            return child;
        }
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it could be disturbed");
        assert!(start.elapsed() < Duration::from_secs(60), "the run never mapped its files");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn stderr(ran: &Output) -> String {
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

/// Runs a shell script with the paths as `$1` (restride), `$2` (input) and `$3` (output).
fn shell(script: &str, input: &Path, output: &Path) -> Output {
    Command::new("sh").args(["-c", script, "sh", RESTRIDE]).args([input, output]).output().unwrap()
}

/// Runs a shell script with mounts of its own, which end with it. `None` where that is not allowed.
fn with_mounts(script: &str, input: &Path, place: &Path) -> Option<Output> {
    // SAFETY: geteuid has no arguments and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    let flags: &[&str] = if root { &["-m"] } else { &["-r", "-m"] };
    let allowed = Command::new("unshare").args(flags).arg("true").output().is_ok_and(|o| o.status.success());
    if !allowed {
        let what = "NOT TESTED: this system does not let the test mount a small file system";
        assert!(std::env::var_os("CI").is_none(), "{what}; run CI with that right");
        eprintln!("{what}");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(flags).args(["sh", "-ec", script, "sh", RESTRIDE]).args([input, place]);
    Some(command.output().unwrap())
}

#[test]
fn a_full_disk_is_an_error_and_leaves_nothing() {
    let folder = folder();
    let (input, _) = small(folder.path());
    let place = folder.path().join("disk");
    fs::create_dir(&place).unwrap();
    let script = r#"mount -t tmpfs -o size=64k none "$3"; echo old > "$3/out.npy"
        code=0; "$1" materialize "$2" .T -o "$3/out.npy" || code=$?
        echo "code $code"; cat "$3/out.npy"; ls -A "$3""#;
    let Some(ran) = with_mounts(script, &input, &place) else { return };
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "code 1\nold\nout.npy\n", "{}", stderr(&ran));
    let message = stderr(&ran);
    assert!(message.contains("cannot reserve") && message.contains("free some space"), "{message}");
    assert_eq!(message.lines().count(), 1);
}

#[test]
fn no_command_leaves_anything_on_a_full_disk() {
    let folder = folder();
    let (input, _) = small(folder.path());
    let key = r#"{"version": "1", "arch": "x86_64", "vendor": "V", "family": 6, "model": 1, "stepping": null,
        "hypervisor": null, "caches": [], "isa": "avx2", "page_bytes": 4096, "huge_pages": "madvise"}"#;
    let entry =
        format!(r#"{{"key": {key}, "created": "", "command": "", "winners": [], "measurements": []}}"#);
    let profile = format!(r#"{{"schema": "restride.profile/1", "entries": [{entry}]}}"#);
    fs::write(folder.path().join("profile.json"), profile).unwrap();
    let record = r#"{"schema": "restride.record/1", "created": "2026-01-01T00:00:00Z", "cases": []}"#;
    fs::write(folder.path().join("record.json"), record).unwrap();
    let place = folder.path().join("disk");
    fs::create_dir(&place).unwrap();
    for (line, target) in [
        ("explore --shape 3,4 .T -o disk/t", "t"),
        ("report record.json -o disk/t", "t/report.html"),
        ("tune --import profile.json --profile disk/t", "t"),
        ("tune --export disk/t --profile profile.json", "t"),
        ("materialize in.npy .T -o disk/t", "t"),
    ] {
        // A profile is read before it is written.
        for old in ["", r#"{"schema": "restride.profile/1", "entries": []}"#] {
            let script = format!(
                r#"mount -t tmpfs -o size=16k none "$3"; cd "$3/.."; mkdir -p $(dirname disk/{target})
                [ -z '{old}' ] || echo '{old}' > disk/{target}; cat /dev/zero > disk/zeros 2>/dev/null || true
                code=0; "$1" {line} || code=$?; echo "code $code"
                find disk -type f ! -name zeros ! -name '*.lock' -exec cat {{}} +"#
            );
            let Some(ran) = with_mounts(&script, &input, &place) else { return };
            let wanted = format!("code 1\n{old}{}", if old.is_empty() { "" } else { "\n" });
            assert_eq!(String::from_utf8_lossy(&ran.stdout), wanted, "{line}: {}", stderr(&ran));
            let message = stderr(&ran);
            assert!(message.contains("No space left") && message.contains("name a"), "{line}: {message}");
            assert!(!message.contains("tmp") && !message.contains(".restride-"), "{line}: {message}");
            assert_eq!(message.lines().count(), 1, "{line}: {message}");
        }
    }
}

#[test]
fn a_disk_too_small_for_the_temporary_file_is_an_error_too() {
    let folder = folder();
    let input = folder.path().join("in.npy");
    let mut file = Header::render(b"'<u2'", false, &[5000, 4500], (1, 0));
    file.extend((0..22_500_000u32).flat_map(|i| (i as u16).to_le_bytes()));
    fs::write(&input, file).unwrap();
    let place = folder.path().join("disk");
    fs::create_dir(&place).unwrap();
    // Room for the output of 45 MB, not for as much again between the passes.
    let script = r#"mount -t tmpfs -o size=60m none "$3"; code=0
        "$1" materialize "$2" .T -o "$3/out.npy" --memory 32M || code=$?; echo "code $code"; ls -A "$3""#;
    let Some(ran) = with_mounts(script, &input, &place) else { return };
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "code 1\n", "{}", stderr(&ran));
    assert!(
        stderr(&ran).contains("intermediate result") && stderr(&ran).contains("free some space"),
        "{}",
        stderr(&ran)
    );
}

#[test]
fn a_read_only_file_system_is_an_error() {
    let folder = folder();
    let (input, _) = small(folder.path());
    let place = folder.path().join("disk");
    fs::create_dir(&place).unwrap();
    let script = r#"mount -t tmpfs -o size=1m none "$3"; mount -o remount,ro "$3"
        code=0; "$1" materialize "$2" .T -o "$3/out.npy" || code=$?; echo "code $code""#;
    let Some(ran) = with_mounts(script, &input, &place) else { return };
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "code 1\n", "{}", stderr(&ran));
    assert!(stderr(&ran).contains("a disk that can be written"), "{}", stderr(&ran));
}

#[test]
fn a_read_only_target_stays_as_it_is() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let (input, output) = small(folder.path());
    fs::write(&output, "old").unwrap();
    fs::set_permissions(&output, fs::Permissions::from_mode(0o444)).unwrap();
    let ran = shell(r#"exec "$1" materialize "$2" .T -o "$3""#, &input, &output);
    assert_eq!(ran.status.code(), Some(1));
    assert!(stderr(&ran).contains("read-only"), "{}", stderr(&ran));
    assert_eq!(fs::read(&output).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["in.npy", "out.npy"]);
}

#[test]
fn a_file_size_limit_is_an_error_and_no_signal() {
    let folder = folder();
    let (input, output) = small(folder.path());
    for hidden in ["", "RESTRIDE_NAMED_TEMPORARY=1 "] {
        let ran =
            shell(&format!(r#"ulimit -f 8; {hidden}"$1" materialize "$2" .T -o "$3""#), &input, &output);
        assert_eq!(ran.status.code(), Some(1), "{}", stderr(&ran));
        assert!(stderr(&ran).contains("file size limit"), "{}", stderr(&ran));
        assert_eq!(names(folder.path()), ["in.npy"]);
    }
}

#[test]
fn an_input_cut_short_while_mapped_ends_with_one_sentence() {
    for hidden in [false, true] {
        let folder = folder();
        let (input, output) = slow(folder.path());
        let child = copying(&input, &output, hidden);
        fs::File::options().write(true).open(&input).unwrap().set_len(4096).unwrap();
        let ran = child.wait_with_output().unwrap();
        let message = stderr(&ran);
        assert_eq!(ran.status.code(), Some(1), "{message}");
        assert!(
            message.starts_with("restride: ") && message.contains("in.npy: the file was cut short"),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
        assert_eq!(names(folder.path()), ["in.npy"]);
    }
}

#[test]
fn a_signal_ends_the_run_and_leaves_the_old_file_whole() {
    for (signal, hidden) in [
        (libc::SIGINT, false),
        (libc::SIGINT, true),
        (libc::SIGTERM, true),
        (libc::SIGHUP, true),
        (libc::SIGKILL, false),
    ] {
        let folder = folder();
        let (input, output) = slow(folder.path());
        fs::write(&output, "old").unwrap();
        let child = copying(&input, &output, hidden);
        let there = names(folder.path());
        assert_eq!(there.iter().any(|name| name.starts_with(".out.npy.restride-")), hidden, "{there:?}");
        // SAFETY: the child is ours and not yet waited for, so its id is still its own.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
        let ran = child.wait_with_output().unwrap();
        assert_eq!(ran.status.signal(), Some(signal), "a shell shows 128 + {signal}");
        assert_eq!(fs::read(&output).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["in.npy", "out.npy"]);
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = folder();
    let (input, output) = small(folder.path());
    let ran = shell(
        r#"trap '' INT TERM; "$1" materialize "$2" .T -o "$3" & kill -INT $!; wait $!"#,
        &input,
        &output,
    );
    assert!(ran.status.success(), "{}", stderr(&ran));
    assert_eq!(names(folder.path()), ["in.npy", "out.npy"]);
}

#[test]
fn a_closed_pipe_loses_nothing() {
    let folder = folder();
    let (input, output) = small(folder.path());
    for more in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = Command::new(RESTRIDE);
        command.arg("materialize").args([
            input.as_os_str(),
            ".T".as_ref(),
            "-o".as_ref(),
            output.as_os_str(),
        ]);
        let ran = command.args(more).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert!(ran.status.success(), "{}", stderr(&ran));
        assert_eq!(stderr(&ran), "");
        assert_eq!(fs::metadata(&output).unwrap().len(), 128 + 80_000);
        fs::remove_file(&output).unwrap();
    }
}

/// A pipe that nobody reads.
fn closed() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

#[test]
fn every_command_ends_as_it_would_when_nobody_reads_what_it_says() {
    let folder = folder();
    small(folder.path());
    // Records that make `compare` and `report` warn: of another machine, with noise.
    for (name, cpu) in [("a.json", "one"), ("b.json", "another")] {
        let record = serde_json::json!({
            "schema": "restride.record/1", "created": "2026-01-01T00:00:00Z", "command": "restride bench",
            "machine": {"cpu": cpu}, "environment": {"noise": ["the load was 9"]},
            "cases": [{"id": "x", "kind": "copy", "unit": "ns", "samples": [1, 2, 3], "bytes_moved": 8}],
        });
        fs::write(folder.path().join(name), record.to_string()).unwrap();
    }
    let all: &[(&str, i32)] = &[
        ("--help", 0),
        ("bench --help", 0),
        ("--version", 0),
        ("", 2),
        ("nonsense", 2),
        ("machine --json", 0),
        ("explain --shape 3,4 .T", 0),
        ("explain --shape 3,4 .T.view(12)", 1),
        ("explain --shape 3,4 .T.view(12) --json", 1),
        ("materialize in.npy .T -o out.npy", 0),
        ("materialize missing.npy .T -o out.npy --json", 1),
        ("bench --shape 8,8 .T", 0),
        ("walk --shape 8,8", 0),
        ("tune --show", 0),
        ("tune --show --profile missing.json --json", 0),
        ("compare a.json b.json", 0),
        ("compare a.json b.json --fail-on 1%", 1),
        ("report a.json b.json -o report", 0),
        ("report missing.json", 1),
        ("explore --shape 3,4 .T -o page.html", 0),
        ("explore --shape 3,4 .T.view(12) -o page.html", 1),
        ("verify", 0),
    ];
    for (line, code) in all {
        let run = |out: Stdio, err: Stdio| {
            let mut command = Command::new(RESTRIDE);
            command
                .args(line.split_whitespace())
                .current_dir(folder.path())
                .env("RESTRIDE_PROFILE", "profile.json");
            command.stdout(out).stderr(err).output().unwrap()
        };
        let with = run(Stdio::piped(), Stdio::piped());
        assert_eq!(with.status.code(), Some(*code), "{line}: {}", stderr(&with));
        for ran in [run(closed().into(), Stdio::piped()), run(closed().into(), closed().into())] {
            assert_eq!(ran.status.code(), Some(*code), "{line}: {}", stderr(&ran));
        }
        // A full disk behind standard output is a failure with a reason, whatever the command.
        if !with.stdout.is_empty() {
            let full = fs::File::options().write(true).open("/dev/full").unwrap();
            let ran = run(full.into(), Stdio::piped());
            assert_eq!(ran.status.code(), Some((*code).max(1)), "{line}: {}", stderr(&ran));
            let told = stderr(&ran).contains("standard output: No space left on device");
            assert!(*code > 0 || told, "{line}: {}", stderr(&ran));
        }
    }
}

#[test]
fn too_little_address_space_is_an_error_at_any_size() {
    let folder = folder();
    let (input, output) = small(folder.path());
    let mut refused = 0;
    for mebibytes in [24, 32, 48, 64, 100, 160, 250, 400, 600] {
        let script = format!(
            r#"ulimit -v {}; exec "$1" materialize "$2" ".expand(2000, -1, -1).permute(0, 2, 1)" -o "$3" --threads 2"#,
            mebibytes * 1024
        );
        let ran = shell(&script, &input, &output);
        let message = stderr(&ran);
        match ran.status.code() {
            Some(0) => fs::remove_file(&output).unwrap(),
            Some(1) => {
                refused += 1;
                assert!(message.starts_with("restride: "), "{mebibytes} MiB: {message}");
                assert!(message.contains("address space limit"), "{mebibytes} MiB: {message}");
            }
            _ => panic!("{mebibytes} MiB: {:?} {message}", ran.status),
        }
        assert_eq!(names(folder.path()), ["in.npy"], "{mebibytes} MiB");
    }
    assert!(refused > 3, "160 MB of output do not fit");
}

#[test]
fn two_runs_on_one_target_leave_one_whole_result() {
    let folder = folder();
    let (input, output) = small(folder.path());
    let alone = |expr: &str| {
        let path = folder.path().join("alone.npy");
        let ran = Command::new(RESTRIDE)
            .arg("materialize")
            .args([input.as_os_str(), expr.as_ref(), "-o".as_ref(), path.as_os_str()])
            .output();
        assert!(ran.unwrap().status.success());
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        bytes
    };
    let wanted = [alone(".T"), alone("[::-1]")];
    for _ in 0..10 {
        let both: Vec<Child> = [".T", "[::-1]"]
            .iter()
            .map(|expr| {
                let mut command = Command::new(RESTRIDE);
                command.arg("materialize").args([
                    input.as_os_str(),
                    expr.as_ref(),
                    "-o".as_ref(),
                    output.as_os_str(),
                ]);
                command.stdout(Stdio::null()).spawn().unwrap()
            })
            .collect();
        for mut child in both {
            assert!(child.wait().unwrap().success());
        }
        assert!(wanted.contains(&fs::read(&output).unwrap()));
        assert_eq!(names(folder.path()), ["in.npy", "out.npy"]);
    }
}

#[test]
fn sixty_four_axes_fit_a_small_stack_and_an_empty_environment() {
    let folder = folder();
    let input = folder.path().join("in.npy");
    let output = folder.path().join("out.npy");
    let shape: Vec<usize> = (0..64).map(|axis| if axis % 8 == 3 { 3 } else { 1 }).collect();
    let mut file = Header::render(b"'|u1'", true, &shape, (1, 0));
    file.extend((0..6561u32).map(|i| i as u8));
    fs::write(&input, file).unwrap();
    let ran =
        shell(r#"ulimit -s 256; exec env -i "$1" materialize "$2" .flip -o "$3" --verify"#, &input, &output);
    assert_eq!(ran.status.code(), Some(2), "{}", stderr(&ran));
    let ran = shell(
        r#"ulimit -s 256; exec env -i "$1" materialize "$2" ".flip()" -o "$3" --verify"#,
        &input,
        &output,
    );
    assert!(ran.status.success(), "{}", stderr(&ran));
    assert_eq!(fs::metadata(&output).unwrap().len() % 64, 6561 % 64);
}

/// Small records and pages, by every command that writes one.
fn writers(folder: &Path, place: &Path) -> Vec<(Command, PathBuf)> {
    let record = folder.join("in.json");
    let text = r#"{"schema": "restride.record/1", "created": "2026-01-01T00:00:00Z", "cases": []}"#;
    fs::write(&record, text).unwrap();
    let command = |args: &[&str], target: PathBuf| {
        let mut command = Command::new("sh");
        command.args(["-c", r#"ulimit -f "$LIMIT"; exec "$0" "$@""#, RESTRIDE]).args(args);
        command.args(["-o".as_ref(), target.as_os_str()]).current_dir(folder).env("LIMIT", "unlimited");
        (command, target)
    };
    vec![
        command(&["explore", "--shape", "3,4", ".T"], place.join("page.html")),
        command(&["report", "in.json"], place.join("report")),
        command(&["bench", "--preset", "quick"], place.join("record.json")),
    ]
}

#[test]
fn records_and_pages_are_written_whole_or_not_at_all() {
    let folder = folder();
    fs::write(folder.path().join("file"), "text").unwrap();
    let place = folder.path().join("place");
    let said = |ran: &Output| {
        let message = stderr(ran);
        assert_eq!(ran.status.code(), Some(1), "{message}");
        let last = message.lines().last().unwrap();
        assert!(last.starts_with("restride: ") && !last.contains(".restride-"), "{message}");
        last.to_owned()
    };
    // Through a file, where not even root can write.
    for (mut command, _) in writers(folder.path(), &folder.path().join("file")) {
        let message = said(&command.output().unwrap());
        assert!(message.contains("no folder") || message.contains("its folder does not exist"), "{message}");
    }
    // No room for a single byte; what is there stays. (The suite would measure for minutes first.)
    for (mut command, target) in writers(folder.path(), &place).into_iter().take(2) {
        fs::create_dir(&place).unwrap();
        if target.extension().is_some() {
            fs::write(&target, "old").unwrap();
        }
        let message = said(&command.env("LIMIT", "0").output().unwrap());
        assert!(message.contains("file size limit"), "{message}");
        if target.extension().is_some() {
            assert_eq!(fs::read_to_string(&target).unwrap(), "old");
            assert_eq!(names(&place).len(), 1);
        } else {
            assert_eq!(names(&target), [""; 0]);
        }
        fs::remove_dir_all(&place).unwrap();
    }
    assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), "text");
}

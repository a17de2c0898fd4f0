//! Reports and the explorer as files: what stands in them, and what the commands do with bad input.
#![cfg(feature = "cli")]

use assert_cmd::Command;
use restride::Layout;
use restride::dtype::Dtype;
use restride::report::{Data, Options, explore, html, views_of};
use serde_json::Value;
use std::path::{Path, PathBuf};

const RECORDS: [&str; 4] = ["counters", "no-counters", "baseline", "hostile"];
const SECTIONS: [&str; 10] =
    ["summary", "machine", "walks", "mountain", "copies", "tiles", "peers", "change", "views", "raw"];

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/records/{name}.json"))
}

fn record(name: &str) -> Data {
    Data::parse(std::fs::read_to_string(path(name)).unwrap(), name).unwrap()
}

fn page(records: &[Data], baseline: Option<&Data>) -> String {
    let views = views_of(&[3, 4], &[], Dtype::F32, None).unwrap();
    html(records, &Options { command: "restride report x.json", baseline, views: Some(&views) })
}

/// The text of the page without scripts, styles and tags.
fn visible(page: &str) -> String {
    let mut rest = page;
    let mut out = String::new();
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        let close = if rest[at..].starts_with("<script") {
            "</script>"
        } else if rest[at..].starts_with("<style") {
            "</style>"
        } else {
            ">"
        };
        rest = rest[at..].find(close).map_or("", |end| &rest[at + end + close.len()..]);
        out.push(' ');
    }
    out + rest
}

fn restride() -> Command {
    let mut command = Command::cargo_bin("restride").unwrap();
    command.env_remove("RESTRIDE_CACHES").env_remove("RESTRIDE_ISA");
    command
}

fn stderr(command: &mut Command) -> String {
    String::from_utf8(command.assert().get_output().stderr.clone()).unwrap()
}

#[test]
fn every_record_gives_a_whole_page_without_nan() {
    for name in RECORDS {
        let page = page(&[record(name)], None);
        for id in SECTIONS {
            assert_eq!(page.matches(&format!("<section id=\"{id}\"")).count(), 1, "{name} {id}");
        }
        let text = visible(&page);
        for bad in ["NaN", "inf ", "Infinity", "-nan"] {
            assert!(!text.contains(bad), "{name} shows {bad}");
        }
        // Coordinates and widths are numbers too.
        for bad in ["NaN", "\"inf\"", "\"-inf\"", "inf%", "Minf", "Linf"] {
            assert!(!page.split("<script").next().unwrap().contains(bad), "{name} draws {bad}");
        }
        assert!(page.len() < 2_000_000, "{name}: {} bytes", page.len());
    }
}

#[test]
fn the_page_carries_the_record_and_nothing_is_loaded() {
    for name in RECORDS {
        let page = page(&[record(name)], None);
        let start = page.find("id=\"record-0\">").unwrap() + "id=\"record-0\">".len();
        let end = start + page[start..].find("</script>").unwrap();
        let inside: Value = serde_json::from_str(&page[start..end]).unwrap();
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path(name)).unwrap()).unwrap();
        assert_eq!(inside, file, "{name}");
        for outside in [" src=", "url(", "@import", "http:", "https:"] {
            // As text between tags it may stand there; the hostile record has one.
            let page = page.replace("img src=x", "");
            assert!(!page.contains(outside), "{name} holds {outside}");
        }
    }
}

#[test]
fn hostile_names_stay_text() {
    let page = page(&[record("hostile")], None);
    let scripts = page.matches("<script").count();
    assert_eq!(scripts, page.matches("</script>").count());
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("<img"));
    assert!(visible(&page).contains("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn several_records_of_one_machine_get_labels_of_their_own() {
    let mut all = [record("counters"), record("baseline"), record("no-counters")];
    Data::tell_apart(&mut all);
    assert_eq!(all.iter().map(|d| &d.label).collect::<std::collections::HashSet<_>>().len(), 3);
    let page = page(&all, None);
    for d in &all {
        assert!(page.matches(&d.label).count() > 5, "{}", d.label);
    }
    // The earliest record of the same machine serves as the baseline.
    assert!(visible(&page).contains("faster beyond the noise"));
}

#[test]
fn only_what_exceeds_the_noise_is_a_change() {
    let (new, same) = (record("counters"), record("counters"));
    let text = visible(&page(&[new], Some(&same)));
    assert!(text.contains("Nothing changed beyond the noise"));
}

#[test]
fn the_folder_holds_page_record_tables_and_command() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("a b");
    restride().arg("report").arg(path("counters")).arg("-o").arg(&out).assert().success();
    let mut names: Vec<String> =
        std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["cases.csv", "command.txt", "record.json", "report.html", "tables.md"]);
    let read = |name: &str| std::fs::read(out.join(name)).unwrap();
    assert_eq!(read("record.json"), std::fs::read(path("counters")).unwrap());
    let command = String::from_utf8(read("command.txt")).unwrap();
    assert!(command.starts_with("restride report ") && command.contains("-o '"), "{command}");
    assert_eq!(
        String::from_utf8(read("cases.csv")).unwrap().lines().count(),
        1 + record("counters").cases.len()
    );
    let tables = String::from_utf8(read("tables.md")).unwrap();
    assert!(tables.contains("| attention heads | images and attention |"));
}

#[test]
fn without_an_output_the_folder_is_named_after_date_and_machine() {
    let dir = tempfile::tempdir().unwrap();
    restride().current_dir(dir.path()).arg("report").arg(path("no-counters")).assert().success();
    let folder = dir.path().join("reports/2026-11-21-synthetic-server-2-1-ghz-2-cores-of-a-virtual-machine");
    assert!(
        folder.join("report.html").exists(),
        "{:?}",
        std::fs::read_dir(dir.path().join("reports")).unwrap().next()
    );
}

#[test]
fn without_a_record_this_machine_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    // One case of the suite; its time does not matter here.
    let mut command = restride();
    command.args(["report", "--preset", "quick", "--filter", "tile/f32/2048/4096x512", "-o"]).arg(&out);
    command.env("RESTRIDE_PROFILE", "none").assert().success();
    let made = std::fs::read_to_string(out.join("record.json")).unwrap();
    let record = restride::bench::record::Record::parse(&made, "record.json").unwrap();
    assert_eq!(record.cases.len(), 1);
    assert_eq!(record.environment.extra["profile"], "none");
    assert!(record.command.starts_with("restride report --preset quick"), "{}", record.command);
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    let text = visible(&page);
    assert!(
        text.contains("none in force: the defaults were used") && text.contains("No tuned tile is marked")
    );
    // What was measured is what the page carries.
    assert_eq!(Data::parse(made, "record.json").unwrap().cases.len(), 1);
    for (args, word) in [
        (&["report", "--filter", "no such case"][..], "no such case"),
        (&["report", "--preset", "slow"], "quick or full"),
    ] {
        let say = stderr(
            restride().args(args).arg("-o").arg(dir.path().join("none")).env("RESTRIDE_PROFILE", "none"),
        );
        assert!(say.contains(word), "{say}");
    }
    restride().arg("report").arg(path("counters")).args(["--preset", "quick"]).assert().code(2);
}

#[test]
fn the_profile_in_force_is_named_for_every_record() {
    for (name, said) in [
        (
            "counters",
            "profile.json, 5 values in place of defaults, tuned 2026-11-19 20:15, for Synthetic 6/1/1 avx512",
        ),
        ("no-counters", "none in force: the defaults were used"),
        ("baseline", "not recorded"),
    ] {
        let text = visible(&page(&[record(name)], None));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(&format!("tuning profile {said}")), "{name}");
    }
    let page = page(&[record("counters"), record("no-counters")], None);
    assert_eq!(page.matches("<dt>tuning profile</dt>").count(), 2);
}

#[test]
fn the_tile_map_marks_the_default_and_the_tuned_choice() {
    let tiles = |data: Data| {
        let page = page(&[data], None);
        let start = page.find("<section id=\"tiles\"").unwrap();
        page[start..start + page[start..].find("</section>").unwrap()].to_owned()
    };
    let both = tiles(record("counters"));
    // A frame in either form of the chart and in the legend, different in their dashes; words in legend and table.
    for mark in ["default", "tuned"] {
        assert_eq!(both.matches(&format!("class=\"mark {mark}\"")).count(), 3, "{mark}");
        assert!(
            both.contains(&format!("<span>{mark}</span>")) && both.contains(&format!("· {mark}")),
            "{mark}"
        );
    }
    let default = tiles(record("no-counters"));
    assert!(default.contains("mark default") && !default.contains("mark tuned"));
    assert!(default.contains("No tuned tile is marked"));
    // The profile may keep the default: both frames on one tile.
    let text = std::fs::read_to_string(path("counters")).unwrap();
    let one = text
        .replace("\"tuned\":true", "\"tuned\":false")
        .replace("\"default\":true,\"tuned\":false", "\"default\":true,\"tuned\":true");
    let one = tiles(Data::parse(one, "one").unwrap());
    assert!(
        one.contains("The tuned tile is the default")
            && one.contains("mark tuned")
            && one.contains("mark default")
    );
}

#[test]
fn places_that_cannot_be_written_are_said_in_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.npy");
    std::fs::write(&file, "x").unwrap();
    for mut command in [restride(), restride()] {
        let say = stderr(command.arg("report").arg(path("counters")).arg("-o").arg(&file));
        assert!(say.contains("a.npy is a file") && say.contains("name a folder"), "{say}");
    }
    // Said before anything is measured.
    let say = stderr(restride().args(["report", "-o"]).arg(&file));
    assert!(say.contains("a.npy is a file"), "{say}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x");
    let refused = dir.path().join("refused");
    let say = stderr(restride().args(["report", "--filter", "no such case", "-o"]).arg(&refused));
    assert!(!say.is_empty() && !refused.exists(), "{say}");
    let missing = dir.path().join("missing");
    let say = stderr(restride().args(["explore", "-o"]).arg(missing.join("x.html")));
    assert!(say.contains("missing does not exist: make it first") && !say.contains(".restride-"), "{say}");
    assert_eq!(say.trim().lines().count(), 1);
    let say = stderr(restride().args(["explore", "-o"]).arg(dir.path()));
    assert!(say.contains("name a file"), "{say}");
}

#[test]
fn bad_records_are_one_sentence_and_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    for (name, text, word) in [
        ("empty.json", "", "JSON"),
        ("other.json", "{\"a\": 1}", "schema"),
        ("new.json", r#"{"schema": "restride.record/99", "cases": []}"#, "newer"),
        ("list.json", "[]", "object"),
    ] {
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        let mut command = restride();
        let say = stderr(command.arg("report").arg(&file).arg("-o").arg(&out));
        assert!(say.contains(word) && say.contains(name) && say.trim().lines().count() == 1, "{say}");
        restride().arg("report").arg(&file).arg("-o").arg(&out).assert().code(1);
        assert!(!out.exists());
    }
    let say = stderr(restride().arg("report").arg(dir.path().join("missing.json")).arg("-o").arg(&out));
    assert!(say.contains("missing.json"), "{say}");
}

#[test]
fn the_explorer_carries_what_the_library_says() {
    let exprs = [
        "",
        ".T",
        "[:, ::2]",
        "[::-1, ::-1]",
        ".pad((1, 1), (2, 0), value=9)",
        ".reshape(12).unfold(0, 4, 2)",
    ];
    let views = views_of(&[3, 4], &exprs.map(String::from), Dtype::F32, None).unwrap();
    let page = explore(&views, "restride explore");
    let base = Layout::row_major(&[3, 4]).unwrap();
    for (part, expr) in page.split("class=\"view-data\"").skip(1).zip(exprs) {
        let start = part.find('>').unwrap() + 1;
        let data: Value = serde_json::from_str(&part[start..part.find("</script>").unwrap()]).unwrap();
        let layout = base.apply(expr).unwrap();
        let expected: Vec<Option<usize>> = (0..layout.numel()).map(|k| layout.view_at(k).unwrap()).collect();
        assert_eq!(data["index"], serde_json::json!(expected), "{expr}");
    }
    assert_eq!(page.matches("class=\"view-data\"").count(), exprs.len());
}

#[test]
fn the_explorer_refuses_with_advice_and_the_right_code() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.html");
    for (shape, expr, code, word) in [
        ("300,400", ".T", 1, "smaller --shape"),
        ("3,4", ".T.view(12)", 1, "needs a copy"),
        ("3,4", "[", 2, "expected"),
        ("3,x", "", 2, "--shape"),
        ("3,4", "[7]", 1, "out of range"),
    ] {
        let mut command = restride();
        command.args(["explore", "--shape", shape, "-o"]).arg(&out).arg(expr);
        let say = stderr(&mut command);
        assert!(say.contains(word), "{shape} {expr}: {say}");
        command.assert().code(code);
        assert!(!out.exists(), "{shape} {expr}");
    }
    restride().args(["explore", "-o"]).arg(&out).assert().success();
    assert!(std::fs::read_to_string(&out).unwrap().contains("3-D permute"));
}

#[test]
fn shapes_that_no_default_view_fits_are_drawn_as_far_as_they_go() {
    for shape in [&[][..], &[0], &[1], &[7], &[5, 7], &[2, 3, 4], &[1, 1, 1, 1], &[0, 3], &[2, 2, 2, 2, 2]] {
        let views = views_of(shape, &[], Dtype::C128, None).unwrap();
        assert!(!views.views.is_empty(), "{shape:?}");
        let page = explore(&views, "c");
        let text = visible(&page);
        assert!(!text.contains("NaN") && text.contains("contiguous"), "{shape:?}");
    }
}

//! The house as a test: which module may name which, where `unsafe` may live, how long a file may be.
//!
//! The table below is the arrows of `DESIGN.md` section 3. A new edge is a decision: it is written here
//! with the change that needs it, and it must leave the table free of circles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Room -> the rooms whose items it may name. A file belongs to the longest room that is a prefix of its
/// module path; a room may always name itself.
const ALLOWED: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("layout", &["error"]),
    ("expr", &["error", "layout"]),
    ("view", &["error", "layout", "expr"]),
    ("machine", &["error", "machine::topology", "machine::fingerprint", "machine::pages"]),
    ("machine::topology", &["error"]),
    ("machine::pages", &["error"]),
    ("machine::fingerprint", &["error", "machine::topology", "machine::pages"]),
    ("tensor", &["error", "layout", "view", "machine::pages"]),
    ("copy::kernels", &["error"]),
    ("copy::options", &["copy::kernels", "copy::tuning"]),
    ("copy::tuning", &["error", "machine::topology", "machine::fingerprint"]),
    ("copy::parallel", &[]),
    ("copy::plan", &["error", "layout", "copy::kernels", "copy::options", "copy::parallel", "copy::tuning"]),
    (
        "copy",
        &[
            "error",
            "layout",
            "view",
            "tensor",
            "copy::kernels",
            "copy::options",
            "copy::parallel",
            "copy::plan",
            "copy::tuning",
        ],
    ),
    ("interop", &["error", "layout", "view", "tensor", "copy", "copy::options"]),
    ("dtype", &["error"]),
    ("eval", &["error", "layout", "expr", "view", "tensor", "copy", "copy::options", "dtype", "npy"]),
    ("npy", &["error", "layout", "view", "copy", "copy::options", "copy::plan", "dtype"]),
    (
        "profile",
        &[
            "error",
            "copy::kernels",
            "copy::options",
            "copy::tuning",
            "machine",
            "machine::topology",
            "machine::fingerprint",
        ],
    ),
    ("copy::replay", &["error", "layout", "copy", "copy::kernels", "copy::options", "copy::plan"]),
    (
        "cachesim",
        &["error", "layout", "copy::plan", "copy::replay", "copy::options", "machine", "machine::topology"],
    ),
    ("bench::record", &["error", "machine::fingerprint"]),
    ("bench::stats", &[]),
    (
        "bench",
        &[
            "error",
            "layout",
            "expr",
            "view",
            "tensor",
            "dtype",
            "copy",
            "copy::kernels",
            "copy::options",
            "copy::plan",
            "copy::tuning",
            "machine",
            "machine::topology",
            "machine::fingerprint",
            "machine::pages",
            "cachesim",
            "profile",
            "bench::record",
            "bench::stats",
        ],
    ),
    (
        "tune",
        &[
            "error",
            "layout",
            "view",
            "tensor",
            "copy",
            "copy::kernels",
            "copy::options",
            "copy::plan",
            "copy::tuning",
            "machine",
            "machine::topology",
            "machine::fingerprint",
            "machine::pages",
            "profile",
            "bench",
            "bench::record",
            "bench::stats",
        ],
    ),
    ("report", &["error", "layout", "expr", "dtype", "eval", "bench", "bench::record", "bench::stats"]),
    ("cli", &["*"]),
    ("main", &["cli"]),
];

/// Modules of `machine` that belong to the room `machine::topology`: what it reads and what it is made of.
const TOPOLOGY: &[&str] = &["caches", "cpulist", "cpuid", "sysfs"];

/// Where `unsafe` may stand (DESIGN section 10), with the reason.
const UNSAFE_ROOMS: &[(&str, &str)] = &[
    ("copy/kernels/", "intrinsics and raw-pointer loops"),
    ("copy/nest.rs", "walks a plan over raw pointers"),
    ("copy/replay", "the same over pointers to nothing, and its test over pages that fault"),
    ("copy/parallel.rs", "hands disjoint parts of one destination to threads"),
    ("copy/entry.rs", "turns checked layouts into pointers"),
    ("copy/map", "the same for copies that change the elements on their way"),
    ("copy/cover.rs", "calls the engine between guard pages"),
    ("tensor.rs", "memory that nobody has written yet"),
    ("interop.rs", "an array of `ndarray` that nobody has written yet"),
    ("npy/input.rs", "maps a file"),
    ("npy/output.rs", "maps a file"),
    ("npy/guard.rs", "the signal handler of mapped input"),
    ("machine/", "system calls"),
];

/// Longest file, its tests not counted.
const MAX_LINES: usize = 600;

struct Source {
    /// Path below `src`, with slashes.
    path: String,
    /// Module path, as in `copy::plan::walk`; empty for the root.
    module: Vec<String>,
    /// The text without comments, strings and the trailing test module.
    code: String,
    /// Lines before the trailing test module.
    lines: usize,
}

fn src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn rust_files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<Source> {
    let root = src();
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    files.sort();
    let read = |file: PathBuf| {
        let path = file.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
        let text = fs::read_to_string(&file).unwrap();
        let mut module: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if module.last().is_some_and(|name| name == "mod") || module == ["lib"] {
            module.pop();
        }
        // Test modules close a file; what follows them is test code.
        let end = text.find("\n#[cfg(test)]\nmod tests {").unwrap_or(text.len());
        Source { path, module, code: strip(&text[..end]), lines: text[..end].lines().count() }
    };
    // Files of tests alone (`#[cfg(test)] mod tests;`) may name what they test.
    files.into_iter().filter(|f| f.file_name().is_some_and(|n| n != "tests.rs")).map(read).collect()
}

/// Blanks out comments, string and character literals.
fn strip(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut comment_depth = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if comment_depth > 0 {
            let step = match rest {
                [b'*', b'/', ..] => {
                    comment_depth -= 1;
                    2
                }
                [b'/', b'*', ..] => {
                    comment_depth += 1;
                    2
                }
                _ => 1,
            };
            at += step;
        } else if rest.starts_with(b"//") {
            at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len());
        } else if rest.starts_with(b"/*") {
            comment_depth = 1;
            at += 2;
        } else if let Some(hashes) = raw_string(rest, out.last().copied()) {
            let mut close = vec![b'"'];
            close.resize(hashes + 1, b'#');
            let body = 2 + hashes;
            let end = rest[body..].windows(close.len()).position(|w| w == close).unwrap();
            at += body + end + close.len();
            out.push(b' ');
        } else if rest[0] == b'"' {
            let mut end = 1;
            while rest[end] != b'"' {
                end += if rest[end] == b'\\' { 2 } else { 1 };
            }
            at += end + 1;
            out.push(b' ');
        } else if rest[0] == b'\'' && (rest.get(1) == Some(&b'\\') || rest.get(2) == Some(&b'\'')) {
            let from = if rest.get(1) == Some(&b'\\') { 3 } else { 2 };
            at += from + rest[from..].iter().position(|&b| b == b'\'').unwrap() + 1;
            out.push(b' ');
        } else {
            out.push(rest[0]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Number of hashes when a raw string starts here.
fn raw_string(rest: &[u8], before: Option<u8>) -> Option<usize> {
    if rest[0] != b'r' || before.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
    (rest.get(1 + hashes) == Some(&b'"')).then_some(hashes)
}

/// Identifiers and the punctuation that paths are made of.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let bytes = code.as_bytes();
    let mut at = 0;
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    while at < bytes.len() {
        let start = at;
        if is_word(bytes[at]) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
            tokens.push(&code[start..at]);
        } else if bytes[at..].starts_with(b"::") {
            at += 2;
            tokens.push("::");
        } else {
            at += 1;
            if !bytes[start].is_ascii_whitespace() {
                tokens.push(&code[start..at]);
            }
        }
    }
    tokens
}

/// All paths from `at` on, groups in braces multiplied out; `at` moves past them.
fn tree(tokens: &[&str], at: &mut usize, prefix: &[String], found: &mut Vec<Vec<String>>) {
    let mut path = prefix.to_vec();
    while let Some(&token) = tokens.get(*at) {
        if token == "{" {
            *at += 1;
            while tokens.get(*at).is_some_and(|&t| t != "}") {
                tree(tokens, at, &path, found);
                while tokens.get(*at).is_some_and(|&t| t != "," && t != "}") {
                    *at += 1; // `as name`
                }
                if tokens.get(*at) == Some(&",") {
                    *at += 1;
                }
            }
            *at += 1;
            return;
        }
        if token != "self" {
            path.push(token.to_owned());
        }
        *at += 1;
        if tokens.get(*at) != Some(&"::") {
            break;
        }
        *at += 1;
        if !tokens
            .get(*at)
            .is_some_and(|t| *t == "{" || t.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        {
            break; // a glob or a turbofish: the path so far is what is named
        }
    }
    found.push(path);
}

/// Every path of the crate that a file names, from the crate's root.
fn named_paths(source: &Source, roots: &BTreeMap<String, Vec<String>>) -> BTreeSet<Vec<String>> {
    let tokens = tokens(&source.code);
    let mut paths = BTreeSet::new();
    let mut at = 0;
    // Modules written inside the file: (name, depth of its braces).
    let (mut inside, mut depth) = (Vec::<(String, usize)>::new(), 0);
    while at < tokens.len() {
        match tokens[at] {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                inside.retain(|(_, opened)| *opened <= depth);
            }
            "mod" if tokens.get(at + 2) == Some(&"{") => {
                inside.push((tokens[at + 1].to_owned(), depth + 1));
            }
            _ => {}
        }
        let starts = matches!(tokens[at], "crate" | "super")
            && tokens.get(at + 1) == Some(&"::")
            && (at == 0 || tokens[at - 1] != "::");
        if !starts {
            at += 1;
            continue;
        }
        let mut found = Vec::new();
        tree(&tokens, &mut at, &[], &mut found);
        for path in found {
            let mut base = source.module.clone();
            base.extend(inside.iter().map(|(name, _)| name.clone()));
            let mut rest = &path[..];
            if path[0] == "crate" {
                base.clear();
                rest = &path[1..];
            } else {
                while rest.first().is_some_and(|p| p == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            base.extend(rest.iter().cloned());
            // `crate::Layout` is an item of `layout`.
            if let Some(home) = base.first().and_then(|first| roots.get(first)) {
                base.splice(0..1, home.iter().cloned());
            }
            paths.insert(base);
        }
    }
    paths
}

/// Root re-exports: name -> path of the item.
fn root_names(sources: &[Source]) -> BTreeMap<String, Vec<String>> {
    let lib = sources.iter().find(|s| s.path == "lib.rs").unwrap();
    let tokens = tokens(&lib.code);
    let mut names = BTreeMap::new();
    for at in 0..tokens.len() {
        if tokens[at] == "use" {
            let mut found = Vec::new();
            tree(&tokens, &mut (at + 1), &[], &mut found);
            for path in found {
                names.insert(path.last().unwrap().clone(), path);
            }
        }
    }
    // A module of the same name wins in type position: `crate::copy::..` is the module.
    names.retain(|_, path| path.len() > 1);
    let modules: BTreeSet<&String> = sources.iter().filter_map(|s| s.module.first()).collect();
    names.retain(|name, _| !modules.contains(name));
    names
}

fn room(path: &[String]) -> Option<&'static str> {
    if path.len() > 1 && path[0] == "machine" && TOPOLOGY.contains(&path[1].as_str()) {
        return Some("machine::topology");
    }
    (1..=path.len()).rev().find_map(|n| {
        let name = path[..n].join("::");
        ALLOWED.iter().find(|(room, _)| *room == name).map(|(room, _)| *room)
    })
}

#[test]
fn arrows_point_one_way() {
    let sources = sources();
    let roots = root_names(&sources);
    let mut wrong = Vec::new();
    let mut edges = 0;
    for source in sources.iter().filter(|s| !s.module.is_empty()) {
        let Some(from) = room(&source.module) else {
            wrong.push(format!("src/{}: no room in the table", source.path));
            continue;
        };
        let allowed = ALLOWED.iter().find(|(room, _)| *room == from).unwrap().1;
        for path in named_paths(source, &roots) {
            let Some(to) = room(&path) else {
                // Names of the parent room itself, such as a macro or the crate root.
                if !path.is_empty() {
                    wrong.push(format!("src/{} names {}, which is in no room", source.path, path.join("::")));
                }
                continue;
            };
            edges += 1;
            // A room's own parent module is where its siblings' shared names live.
            let own = to == from || (from.starts_with(to) && path.len() <= source.module.len());
            if !own && !allowed.contains(&to) && allowed != ["*"] {
                wrong.push(format!("src/{} ({from}) names {}: {from} -> {to}", source.path, path.join("::")));
            }
        }
    }
    assert!(edges > 50, "only {edges} edges found: the scanner is broken");
    assert!(wrong.is_empty(), "edges that the table does not allow:\n{}", wrong.join("\n"));
}

#[test]
fn the_table_has_no_circle() {
    let mut left: BTreeMap<&str, BTreeSet<&str>> = ALLOWED
        .iter()
        .map(|&(room, to)| (room, to.iter().copied().filter(|&t| t != "*").collect()))
        .collect();
    for to in left.values() {
        for room in to {
            assert!(left.contains_key(room), "{room} is in no row of its own");
        }
    }
    while let Some(leaf) = left.iter().find(|(_, to)| to.is_empty()).map(|(&room, _)| room) {
        left.remove(leaf);
        left.values_mut().for_each(|to| {
            to.remove(leaf);
        });
    }
    assert!(left.is_empty(), "a circle among {:?}", left.keys());
}

#[test]
fn unsafe_stays_in_its_rooms() {
    let mut found = BTreeSet::new();
    for source in sources() {
        if tokens(&source.code).contains(&"unsafe") {
            let room = UNSAFE_ROOMS.iter().find(|(room, _)| source.path.starts_with(room));
            assert!(room.is_some(), "src/{} holds `unsafe`, and is no room for it", source.path);
            found.insert(room.unwrap().0);
        }
    }
    assert!(found.contains("copy/kernels/") && found.contains("tensor.rs"), "{found:?}");
    for file in ["layout/mod.rs", "copy/plan/mod.rs"] {
        let text = fs::read_to_string(src().join(file)).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "src/{file}");
    }
}

/// These panic when nobody reads what they write; commands write through `cli/text.rs`, which does not.
#[test]
fn nothing_prints_by_macro() {
    for source in sources() {
        let tokens = tokens(&source.code);
        for pair in tokens.windows(2).filter(|pair| pair[1] == "!") {
            let prints = ["print", "println", "eprint", "eprintln", "dbg"].contains(&pair[0]);
            assert!(!prints, "src/{}: {}! panics when its reader has gone away", source.path, pair[0]);
        }
    }
    assert!(tokens("let x = eprintln!(1);").windows(2).any(|pair| pair == ["eprintln", "!"]));
}

#[test]
fn files_stay_short() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|s| s.lines > MAX_LINES)
        .map(|s| format!("src/{}: {} lines", s.path, s.lines))
        .collect();
    assert!(long.is_empty(), "split what holds two ideas (at most {MAX_LINES} lines a file): {long:?}");
}

#[test]
fn the_scanner_sees_what_it_should() {
    let code = strip(
        "use crate::{Error, layout::{self, Index as I}}; // crate::cli\nlet x = \"crate::npy\";\n\
         let c = '\"'; fn f() -> super::plan::Plan<'_> { crate::copy::run::<3>() } r#\"crate::x\"#; /* crate::y */",
    );
    let module = vec!["copy".to_owned(), "entry".to_owned()];
    let source = Source { path: String::new(), module, code, lines: 0 };
    let roots = BTreeMap::from([("Error".to_owned(), vec!["error".to_owned(), "Error".to_owned()])]);
    let found: Vec<String> = named_paths(&source, &roots).iter().map(|p| p.join("::")).collect();
    assert_eq!(found, ["copy::plan::Plan", "copy::run", "error::Error", "layout", "layout::Index"]);
}

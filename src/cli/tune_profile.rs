//! `restride tune --show`, `--export`, `--import` and `--reset`, and the profile of every other command.

use super::{Failure, text};
use crate::copy::tuning::{ELEMENT_SIZES, Knob, Tuning};
use crate::error::words::counted;
use crate::profile::{self, Ignored, Key, Loaded, Location, Merged, Profile};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What `--profile` named, for those that show what is used.
static ASKED: OnceLock<Option<PathBuf>> = OnceLock::new();

/// The profile in force, as records name it; unset where the defaults are used.
static IN_FORCE: OnceLock<Value> = OnceLock::new();

/// Puts the profile's values in place before the first plan. A profile that cannot be used is a warning:
/// the defaults copy right as well.
pub(crate) fn install(path: Option<&Path>) {
    let _ = ASKED.set(path.map(Path::to_path_buf));
    if let Some(path) = path.filter(|path| *path != Path::new("none") && !path.exists()) {
        text::warn(&format!("there is no profile {}; the defaults are used", path.display()));
    }
    match profile::load(path) {
        Ok(loaded) => {
            if let (Some(created), Ok(key)) = (&loaded.created, Key::host()) {
                loaded.tuning.install();
                let _ = IN_FORCE.set(named(path, created, &key, loaded.values));
            }
            if loaded.values == 0 && !loaded.ignored.is_empty() {
                let (count, first) = (loaded.ignored.len(), &loaded.ignored[0]);
                text::say(&format!(
                    "restride: the profile holds nothing for this machine ({count} left out, {}: {}): see \
                     `restride tune --show`",
                    first.entry, first.reason
                ));
            }
        }
        // There is none where no folder could hold one.
        Err(profile::ProfileError::NoFolder) => {}
        // A level that this CPU lacks is the command's own error.
        Err(profile::ProfileError::Machine(_)) => {}
        Err(error) => text::warn(&format!("{error}; the defaults are used")),
    }
}

/// What a record says of a profile: no folder of this user's, and enough to tell two profiles apart.
fn named(path: Option<&Path>, created: &str, key: &Key, values: usize) -> Value {
    let name = match Location::find(path) {
        Ok(Location::File(path)) => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        _ => None,
    };
    json!({ "name": name.unwrap_or_default(), "created": created, "key": key.to_string(), "values": values })
}

/// The profile in force for the record of a run: an object, or the word `none`.
pub(crate) fn in_force() -> Value {
    IN_FORCE.get().cloned().unwrap_or_else(|| "none".into())
}

/// The profile that `--profile` named, where it did.
pub(crate) fn asked() -> Option<&'static Path> {
    ASKED.get().and_then(Option::as_deref)
}

fn listed(list: &[Ignored]) -> Vec<Value> {
    list.iter().map(|i| json!({ "entry": i.entry, "reason": i.reason })).collect()
}

pub(crate) fn reset(path: &Path, json: bool) -> Result<(), Failure> {
    let removed = Profile::reset(path)?;
    let out = match removed {
        true => format!("removed {}\n", path.display()),
        false => format!("there is no profile {}\n", path.display()),
    };
    text::print(&if json { text::json_text(&json!({ "profile": path, "removed": removed })) } else { out })
}

pub(crate) fn export(path: &Path, to: &Path, json: bool) -> Result<(), Failure> {
    let profile = Profile::read(path)?;
    let count = profile.entries().count();
    if count == 0 {
        let message = format!("there is nothing to export: {} holds no entry, tune first", path.display());
        return Err(Failure::new("profile", message));
    }
    profile.write(to)?;
    let out = format!("{} of {} written to {}\n", counted(count, "entry"), path.display(), to.display());
    let value = json!({ "profile": path, "exported": to, "entries": count });
    text::print(&if json { text::json_text(&value) } else { out })
}

pub(crate) fn import(path: &Path, from: &Path, json: bool) -> Result<(), Failure> {
    if !from.exists() {
        return Err(Failure::new("profile", format!("there is no file {} to import", from.display())));
    }
    let other = Profile::read(from)?;
    let key = Key::host()?;
    let mut merged = Merged::default();
    // Nothing is written where there is nothing to take.
    if other.entries().flatten().any(|entry| entry.check().is_ok()) {
        Profile::update(path, |profile| merged = profile.merge(&other))?;
    } else {
        merged = Profile::default().merge(&other);
    }
    let count = merged.taken.len();
    let mut out =
        format!("{} of {} taken into {}\n", counted(count, "entry"), from.display(), path.display());
    let elsewhere: Vec<String> = (merged.taken.iter())
        .filter(|taken| !key.differences(taken).is_empty())
        .map(|taken| format!("{taken}: {}", key.differences(taken).join("; ")))
        .collect();
    for (what, list) in [("left out", &merged.left_out), ("not used", &merged.faults)] {
        for Ignored { entry, reason } in list {
            let _ = writeln!(out, "{what}: {entry}: {reason}");
        }
    }
    for entry in &elsewhere {
        let _ = writeln!(out, "kept for another machine or version: {entry}");
    }
    let value = json!({
        "profile": path, "imported": from, "entries": count, "left_out": listed(&merged.left_out),
        "not_used": listed(&merged.faults), "elsewhere": elsewhere,
    });
    text::print(&if json { text::json_text(&value) } else { out })?;
    match merged.left_out.first() {
        Some(first) if count == 0 => Err(Failure::after_result(
            "profile",
            format!("nothing of {} can be used: {}: {}", from.display(), first.entry, first.reason),
        )),
        _ => Ok(()),
    }
}

/// The values that plans for elements of that many bytes are made with, each with its origin.
pub(crate) fn values_json(tuning: &Tuning, element: usize) -> Value {
    let one = |knob: Knob| {
        let value = tuning.get(knob, element);
        (knob.name().to_owned(), json!({ "value": value.value, "origin": value.origin.name() }))
    };
    Value::Object(Knob::ALL.into_iter().map(one).collect())
}

/// The same for people, by origin.
pub(crate) fn values_text(tuning: &Tuning, element: usize) -> String {
    let mut by_origin: Vec<(&str, Vec<String>)> = Vec::new();
    for knob in Knob::ALL {
        let value = tuning.get(knob, element);
        let (text, origin) = (format!("{} {}", knob.name(), value.value), value.origin.name());
        match by_origin.iter_mut().find(|(name, _)| *name == origin) {
            Some((_, list)) => list.push(text),
            None => by_origin.push((origin, vec![text])),
        }
    }
    let lines = by_origin.iter().map(|(origin, list)| format!("  {origin:7} {}\n", list.join(", ")));
    lines.collect()
}

/// Every value of a tuning with its origin.
pub(crate) fn tuning_json(tuning: &Tuning) -> Value {
    let mut fields = serde_json::Map::new();
    for (name, value) in
        [("l1d_bytes", tuning.l1d_bytes), ("l2_bytes", tuning.l2_bytes), ("l3_bytes", tuning.l3_bytes)]
    {
        fields.insert(name.to_owned(), json!({ "value": value.value, "origin": value.origin.name() }));
    }
    for knob in Knob::ALL {
        let one = |size| {
            let value = tuning.get(knob, size);
            json!({ "value": value.value, "origin": value.origin.name() })
        };
        let value = match knob.by_size() {
            true => ELEMENT_SIZES
                .iter()
                .map(|&size| (size.to_string(), one(size)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            false => one(1),
        };
        fields.insert(knob.name().to_owned(), value);
    }
    Value::Object(fields)
}

fn tuning_rows(tuning: &Tuning) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (name, value) in
        [("l1d_bytes", tuning.l1d_bytes), ("l2_bytes", tuning.l2_bytes), ("l3_bytes", tuning.l3_bytes)]
    {
        rows.push(vec![name.to_owned(), "all".into(), value.value.to_string(), value.origin.name().into()]);
    }
    for knob in Knob::ALL {
        let values: Vec<_> = ELEMENT_SIZES.iter().map(|&size| tuning.get(knob, size)).collect();
        if values.iter().all(|value| *value == values[0]) {
            let (value, origin) = (values[0].value.to_string(), values[0].origin.name().to_owned());
            rows.push(vec![knob.name().to_owned(), "all".into(), value, origin]);
            continue;
        }
        for (size, value) in ELEMENT_SIZES.iter().zip(values) {
            rows.push(vec![
                knob.name().to_owned(),
                size.to_string(),
                value.value.to_string(),
                value.origin.name().to_owned(),
            ]);
        }
    }
    rows
}

pub(crate) fn show(
    path: &Path,
    stored: &Profile,
    key: &Key,
    loaded: &Loaded,
    json: bool,
) -> Result<(), Failure> {
    let exists = path.exists();
    if json {
        let entries: Vec<Value> = stored
            .entries()
            .map(|entry| match entry {
                Ok(entry) => json!({
                    "key": entry.key, "created": entry.created, "command": entry.command,
                    "winners": entry.winners, "measurements": entry.measurements.len(),
                }),
                Err(reason) => json!({ "error": reason }),
            })
            .collect();
        return text::print(&text::json_text(&json!({
            "profile": path, "exists": exists, "key": key, "values": loaded.values,
            "ignored": listed(&loaded.ignored), "entries": entries, "tuning": tuning_json(&loaded.tuning),
        })));
    }
    let mut out = match exists {
        true => format!("profile  {}\n", path.display()),
        false => format!("profile  {} (not there yet: `restride tune` makes it)\n", path.display()),
    };
    let _ = writeln!(out, "machine  {key}, version {}\n", key.version);
    for entry in stored.entries().filter_map(Result::ok) {
        let _ = writeln!(
            out,
            "entry    {}, {}: {}, {}",
            entry.key,
            entry.created,
            counted(entry.winners.len(), "value"),
            counted(entry.measurements.len(), "measurement")
        );
        for winner in &entry.winners {
            let size =
                winner.element_bytes.map_or_else(String::new, |size| format!(" for {size}-byte elements"));
            let _ = writeln!(
                out,
                "         {}{size}: {} instead of {}, {:.3} times as fast (noise {:.3})",
                winner.knob, winner.value, winner.replaces, winner.gain, winner.noise
            );
        }
    }
    for i in &loaded.ignored {
        let _ = writeln!(out, "not used {}: {}", i.entry, i.reason);
    }
    out += "\nvalues of this machine\n\n";
    out += &text::table(&["value", "element bytes", "bytes", "from"], &[1, 2], &tuning_rows(&loaded.tuning));
    text::print(&out)
}

//! The file of a profile: where it is, reading it, and changing it safely.

use super::entry::Entry;
use super::{Ignored, Key};
use crate::Error;
use crate::error::words::plain;
use serde_json::{Map, Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The schema that this version writes and reads.
pub const SCHEMA: &str = "restride.profile/1";

/// Environment variable that names the profile; `none` switches profiles off.
pub const PROFILE_VARIABLE: &str = "RESTRIDE_PROFILE";

/// Why a profile cannot be used or written: one sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file cannot be read or written.
    #[error(
        "cannot {what} the profile {path}: {source}: name another file with --profile or {PROFILE_VARIABLE}"
    )]
    Io {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is no profile of a known schema.
    #[error(
        "{path} is no profile: it {reason}: name a file that `restride tune --export` wrote, or drop a damaged profile of this machine with `restride tune --reset`"
    )]
    Broken {
        /// The file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no folder to keep a profile in.
    #[error("no folder for the profile: set HOME, or name a file with --profile or {PROFILE_VARIABLE}")]
    NoFolder,
    /// This machine's level cannot be told.
    #[error(transparent)]
    Machine(#[from] Error),
}

/// Where the profile is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// Profiles are switched off.
    Off,
    /// In this file, which need not exist.
    File(PathBuf),
}

impl Location {
    /// The path given, else the environment's, else `restride/profile.json` in the configuration folder.
    /// The word `none` switches profiles off.
    ///
    /// # Errors
    ///
    /// `NoFolder` where no path is given and the system has no configuration folder.
    pub fn find(path: Option<&Path>) -> Result<Self, ProfileError> {
        use etcetera::BaseStrategy;
        let named = path.map(Path::to_path_buf).or_else(|| {
            std::env::var_os(PROFILE_VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from)
        });
        match named {
            Some(path) if path.as_os_str() == "none" => Ok(Self::Off),
            Some(path) => Ok(Self::File(path)),
            None => {
                let folders = etcetera::choose_base_strategy().map_err(|_| ProfileError::NoFolder)?;
                Ok(Self::File(folders.config_dir().join("restride").join("profile.json")))
            }
        }
    }
}

/// What [`Profile::merge`] did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Merged {
    /// What the entries that were taken hold for.
    pub taken: Vec<Key>,
    /// Entries that no machine can use, which were not taken.
    pub left_out: Vec<Ignored>,
    /// Values that no machine can use, of entries that were taken.
    pub faults: Vec<Ignored>,
}

/// The entries of a profile, those of other machines and versions kept as they are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    entries: Vec<Value>,
    /// Fields beside `schema` and `entries`, kept.
    rest: Map<String, Value>,
}

impl Profile {
    /// Reads a file; a file that does not exist is an empty profile.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is no JSON, or has another schema.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(ProfileError::Broken {
                path: path.display().to_string(),
                reason: "is no UTF-8 text".into(),
            }),
            Err(source) => Err(io("read", path)(source)),
        }
    }

    /// Reads a profile from the text of the file at `path`.
    ///
    /// # Errors
    ///
    /// Text that is no JSON or has another schema.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ProfileError> {
        let broken = |reason: String| ProfileError::Broken { path: path.display().to_string(), reason };
        let mut rest = match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => fields,
            Ok(_) => return Err(broken("is no JSON object".into())),
            Err(error) => return Err(broken(format!("is no JSON ({error})"))),
        };
        match rest.shift_remove("schema") {
            Some(Value::String(schema)) if schema == SCHEMA => {}
            Some(other) => {
                return Err(broken(format!("has schema {other}, and this version reads {SCHEMA:?}")));
            }
            None => return Err(broken("has no schema".into())),
        }
        match rest.shift_remove("entries") {
            Some(Value::Array(entries)) => Ok(Self { entries, rest }),
            Some(_) => Err(broken("has entries that are no list".into())),
            None => Err(broken("has no entries".into())),
        }
    }

    /// The entries in order; one that cannot be read is the reason.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry, String>> + '_ {
        self.entries.iter().map(|entry| {
            serde_json::from_value(entry.clone()).map_err(|error| format!("cannot be read: {error}"))
        })
    }

    /// Adds an entry in the place of the one with the same key, if there is one.
    pub fn insert(&mut self, entry: &Entry) {
        let same = |other: &Value| {
            serde_json::from_value::<Entry>(other.clone()).is_ok_and(|other| other.key == entry.key)
        };
        self.entries.retain(|other| !same(other));
        self.entries.push(json!(entry));
    }

    /// Adds those entries of another profile that some machine can use.
    pub fn merge(&mut self, other: &Self) -> Merged {
        let mut merged = Merged::default();
        for (place, entry) in other.entries().enumerate() {
            let named = |key: String| format!("entry {} ({key})", place + 1);
            match entry {
                Err(reason) => {
                    merged.left_out.push(Ignored { entry: format!("entry {}", place + 1), reason });
                }
                Ok(entry) => match entry.check() {
                    Err(reason) => {
                        merged.left_out.push(Ignored { entry: named(entry.key.to_string()), reason });
                    }
                    Ok(faults) => {
                        merged.taken.push(entry.key.clone());
                        merged.faults.extend(
                            faults
                                .into_iter()
                                .map(|reason| Ignored { entry: named(entry.key.to_string()), reason }),
                        );
                        self.insert(&entry);
                    }
                },
            }
        }
        merged
    }

    /// The profile as the text of a file.
    pub fn text(&self) -> String {
        let mut fields = Map::new();
        fields.insert("schema".into(), json!(SCHEMA));
        fields.extend(self.rest.clone());
        fields.insert("entries".into(), Value::Array(self.entries.clone()));
        let mut text = pretty(&Value::Object(fields), 0);
        text.push('\n');
        text
    }

    /// Writes the profile to a file that appears whole or not at all.
    ///
    /// # Errors
    ///
    /// A folder that cannot be made or written, a full disk; the old file is then untouched.
    pub fn write(&self, path: &Path) -> Result<(), ProfileError> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(broken(path, "is no regular file"));
        }
        let folder = folder(path)?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(io("write", path))?;
        file.write_all(self.text().as_bytes()).map_err(io("write", path))?;
        file.as_file().sync_all().map_err(io("write", path))?;
        file.persist(path).map_err(|error| io("write", path)(error.error))?;
        Ok(())
    }

    /// Whether the profile could be written, found out before there is something to lose.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    pub fn check_writable(path: &Path) -> Result<(), ProfileError> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(broken(path, "is no regular file"));
        }
        let _alone = lock(path)?;
        tempfile::NamedTempFile::new_in(folder(path)?).map_err(io("write", path))?;
        Ok(())
    }

    /// Reads the file, changes it and writes it, alone: other writers wait.
    ///
    /// # Errors
    ///
    /// As [`Self::read`] and [`Self::write`]; the file is then untouched.
    pub fn update(path: &Path, change: impl FnOnce(&mut Self)) -> Result<(), ProfileError> {
        let _alone = lock(path)?;
        let mut profile = Self::read(path)?;
        change(&mut profile);
        profile.write(path)
    }

    /// Removes the file, also a damaged one, and says whether there was one. What is clearly something else
    /// than a profile stays.
    ///
    /// # Errors
    ///
    /// A file that cannot be removed.
    pub fn reset(path: &Path) -> Result<bool, ProfileError> {
        if !path.exists() {
            return Ok(false);
        }
        if !may_be_profile(path) {
            return Err(broken(path, "is something else, so it is not removed"));
        }
        let _alone = lock(path)?;
        match fs::remove_file(path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(io("remove", path)(source)),
        }
    }
}

fn broken(path: &Path, reason: &str) -> ProfileError {
    ProfileError::Broken { path: path.display().to_string(), reason: reason.to_owned() }
}

/// Whether a file is a profile or what may be left of one: an object of the schema, or text that starts as
/// one and cannot be read.
fn may_be_profile(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else { return false };
    let Ok(text) = String::from_utf8(bytes) else { return false };
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => value["schema"].as_str().is_some_and(|schema| schema.starts_with("restride.profile")),
        Err(_) => text.trim().is_empty() || text.trim_start().starts_with('{'),
    }
}

fn io(what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> ProfileError {
    let path = path.display().to_string();
    move |source| ProfileError::Io { what, path: path.clone(), source: plain(source) }
}

/// The folder of a file, made where it is missing.
fn folder(path: &Path) -> Result<&Path, ProfileError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(io("make a folder for", path))?;
    Ok(folder)
}

/// The lock of a profile, a file beside it; given back, and the file removed, when dropped.
struct Lock {
    _file: File,
    path: PathBuf,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is held: whoever waits for it looks again which file it got.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Waits for the lock of a profile.
fn lock(path: &Path) -> Result<Lock, ProfileError> {
    folder(path)?;
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    loop {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&name);
        let file = file.map_err(io("lock", path))?;
        file.lock().map_err(io("lock", path))?;
        if is_at(&file, Path::new(&name)) {
            return Ok(Lock { _file: file, path: name.into() });
        }
        // The one who held it has removed it meanwhile.
    }
}

/// Whether an open file is still the one of that name.
#[cfg(unix)]
fn is_at(file: &File, name: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(name)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

/// Whether an open file is still the one of that name: it is not removed here.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// JSON with short lists on one line, so that samples do not fill the screen.
fn pretty(value: &Value, depth: usize) -> String {
    let indent = |depth: usize| "  ".repeat(depth);
    match value {
        Value::Array(items) if items.iter().any(|item| item.is_array() || item.is_object()) => {
            let items: Vec<_> = items
                .iter()
                .map(|item| format!("{}{}", indent(depth + 1), pretty(item, depth + 1)))
                .collect();
            format!("[\n{}\n{}]", items.join(",\n"), indent(depth))
        }
        Value::Object(fields) if fields.values().any(|item| item.is_array() || item.is_object()) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, item)| {
                    format!("{}{}: {}", indent(depth + 1), json!(name), pretty(item, depth + 1))
                })
                .collect();
            format!("{{\n{}\n{}}}", fields.join(",\n"), indent(depth))
        }
        Value::Object(fields) => {
            let fields: Vec<_> =
                fields.iter().map(|(name, item)| format!("{}: {item}", json!(name))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        }
        value => value.to_string(),
    }
}

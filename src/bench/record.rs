//! The record: every figure raw, with the machine and the command that made it.
//!
//! A record is one JSON file, described by the JSON Schema in [`SCHEMA_JSON`]. Whatever a reader does
//! not know it keeps and writes back, so records pass through older programs unharmed.

use crate::error::words::with_remedy;
use crate::machine::fingerprint::Fingerprint;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{Read, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// What [`Record::schema`] says.
pub const SCHEMA: &str = "restride.record/1";
/// The JSON Schema of this version.
pub const SCHEMA_JSON: &str = include_str!("record.schema.json");
/// Most samples that are kept of one case.
pub const MAX_SAMPLES: usize = 101;
/// Largest file that is read.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Why a record could not be read or written; one sentence.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file system refused.
    #[error("record {path}: cannot {what} it: {source}")]
    Io {
        /// The file.
        path: String,
        /// `read` or `write`.
        what: &'static str,
        /// The reason.
        source: std::io::Error,
    },
    /// The text is no record.
    #[error("record {path}: {reason}")]
    Malformed {
        /// The file, or where the text came from.
        path: String,
        /// What is wrong and where.
        reason: String,
    },
    /// A record of a newer program.
    #[error("record {path} is \"{schema}\", newer than this program reads ({SCHEMA}): update restride")]
    Newer {
        /// The file.
        path: String,
        /// Its version.
        schema: String,
    },
}

/// One run of a benchmark: where, how, and every sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: String,
    /// When it was made, RFC 3339 in UTC.
    #[serde(default)]
    pub created: String,
    /// The command that made it.
    #[serde(default)]
    pub command: String,
    /// Commit of the program, where it was run inside its checkout.
    #[serde(default)]
    pub git: Option<String>,
    /// The machine.
    #[serde(default)]
    pub machine: Machine,
    /// The state it was in.
    #[serde(default)]
    pub environment: Environment,
    /// What was measured.
    pub cases: Vec<Case>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The machine of a record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Machine {
    /// The CPU's name.
    pub cpu: String,
    /// What makes it the same machine.
    pub fingerprint: Fingerprint,
    /// Physical memory in bytes.
    pub ram_bytes: Option<u64>,
    /// Each counter and what can be had of it.
    pub counters: Vec<CounterState>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Whether a counter can be had on a machine, and why not.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CounterState {
    /// Name of the event.
    pub event: String,
    /// Name of its state.
    pub state: String,
    /// Why it is in that state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What would change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The state a machine was in while a record was made; `None` is unknown.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Environment {
    /// Frequency governor.
    pub governor: Option<String>,
    /// Load average over one minute when it began.
    pub load: Option<f64>,
    /// Kernel and its version.
    pub kernel: Option<String>,
    /// Whether the timing thread was `pinned`, `not honoured` or `unsupported`.
    pub pinning: Option<String>,
    /// The CPU it was pinned to.
    pub cpu: Option<usize>,
    /// Share (0 to 1) of the CPUs' time that the hypervisor gave to others.
    pub steal_share: Option<f64>,
    /// Times the timing thread was moved to another CPU.
    pub migrations: Option<u64>,
    /// SIMD level in use.
    pub isa: Option<String>,
    /// Threads that the cases with several threads used.
    pub threads: Option<usize>,
    /// Seconds that the run took.
    pub seconds: Option<f64>,
    /// Whether the run was stopped before its last case.
    pub interrupted: bool,
    /// What makes the figures doubtful, a sentence each.
    pub noise: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// What a case measures.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Reads of an array in some order.
    Walk,
    /// Copies of a view.
    Copy,
    /// Copies of one view with several tiles.
    Tile,
    /// Copies by another library.
    Peer,
    /// Dependent loads.
    Chase,
    /// A kind of another version.
    #[serde(untagged)]
    Other(String),
}

/// One case: what was run, and the time of every run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Case {
    /// Name of the case, unique in its record.
    pub id: String,
    /// What it measures.
    pub kind: Kind,
    /// What it was run with: `elements` counts the elements (for a chase the loads) of one run.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Unit of the samples: `ns`, or the name of a counter.
    pub unit: String,
    /// One run each, at most [`MAX_SAMPLES`].
    pub samples: Vec<f64>,
    /// `memcpy` of as many bytes, interleaved with the samples; empty where there is no such thing.
    #[serde(default)]
    pub memcpy_samples: Vec<f64>,
    /// Distinct bytes read and bytes written by one run.
    #[serde(default)]
    pub bytes_moved: Option<u64>,
    /// What the cache model says; never mixed with what was measured.
    #[serde(default)]
    pub model: Map<String, Value>,
    /// What the counters say, from a run of their own.
    #[serde(default)]
    pub counters: Vec<CounterValue>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// One counter over one run of a case.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CounterValue {
    /// Name of the event.
    pub event: String,
    /// Name of its state; the value counts only in `Ok` and `Multiplexed`.
    pub state: String,
    /// Events of one run, scaled where the counter was multiplexed; `None` where there is none.
    pub value: Option<f64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Record {
    /// An empty record of this moment.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            created: rfc3339(SystemTime::now()),
            command: command.into(),
            git: None,
            machine: Machine::default(),
            environment: Environment::default(),
            cases: Vec::new(),
            extra: Map::new(),
        }
    }

    /// The case of a name.
    pub fn case(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }

    /// Reads a record from a file.
    ///
    /// # Errors
    /// A file that cannot be read, is no record, or is a record of a newer program.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let name = path.display().to_string();
        let io = |source| RecordError::Io { path: name.clone(), what: "read", source: with_remedy(source) };
        let file = std::fs::File::open(path).map_err(io)?;
        let mut text = String::new();
        let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(io)?;
        if read as u64 > MAX_FILE_BYTES {
            return Err(RecordError::Malformed { path: name, reason: "is larger than 256 MiB".to_owned() });
        }
        Self::parse(&text, &name)
    }

    /// Reads a record from text; `origin` names it in errors.
    ///
    /// # Errors
    /// As [`Record::read`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, RecordError> {
        let malformed = |reason: String| RecordError::Malformed { path: origin.to_owned(), reason };
        let mut value: Value =
            serde_json::from_str(text).map_err(|error| malformed(format!("is no JSON: {error}")))?;
        upgrade(&mut value, origin)?;
        let record: Self =
            serde_json::from_value(value).map_err(|error| malformed(format!("is no record: {error}")))?;
        record.check().map_err(malformed)?;
        Ok(record)
    }

    /// Writes the record beside the file and renames it into place.
    ///
    /// # Errors
    /// A directory that cannot be written, or a full disk; the old file is then untouched.
    pub fn write(&self, path: &Path) -> Result<(), RecordError> {
        let mut text = serde_json::to_string_pretty(self).map_err(|error| RecordError::Malformed {
            path: path.display().to_string(),
            reason: format!("cannot be written as JSON: {error}"),
        })?;
        text.push('\n');
        write_beside(path, text.as_bytes()).map_err(|source| RecordError::Io {
            path: path.display().to_string(),
            what: "write",
            source,
        })
    }

    /// What the types do not say: samples are finite and not negative, names are unique.
    fn check(&self) -> Result<(), String> {
        let mut seen = std::collections::HashSet::new();
        for case in &self.cases {
            if !seen.insert(case.id.as_str()) {
                return Err(format!("names two cases \"{}\"", case.id));
            }
            for sample in case.samples.iter().chain(&case.memcpy_samples) {
                if !sample.is_finite() || *sample < 0.0 {
                    return Err(format!("has the sample {sample} in case \"{}\"", case.id));
                }
            }
        }
        Ok(())
    }
}

impl Case {
    /// A case without samples; times are in ns.
    pub fn new(id: impl Into<String>, kind: Kind) -> Self {
        Self {
            id: id.into(),
            kind,
            params: Map::new(),
            unit: "ns".to_owned(),
            samples: Vec::new(),
            memcpy_samples: Vec::new(),
            bytes_moved: None,
            model: Map::new(),
            counters: Vec::new(),
            extra: Map::new(),
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }
}

impl CounterValue {
    /// One counter of one run.
    pub fn new(event: impl Into<String>, state: impl Into<String>, value: Option<f64>) -> Self {
        Self { event: event.into(), state: state.into(), value, extra: Map::new() }
    }
}

impl CounterState {
    /// What can be had of one counter.
    pub fn new(event: impl Into<String>, state: impl Into<String>) -> Self {
        Self { event: event.into(), state: state.into(), ..Self::default() }
    }
}

/// Writes a file beside its place and renames it there; a link is followed.
pub(crate) fn write_beside(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    // A link that leads nowhere yet is followed too: its target is made.
    let followed = || path.read_link().map(|to| path.parent().unwrap_or(Path::new("")).join(to));
    let target = path.canonicalize().or_else(|_| followed()).unwrap_or_else(|_| path.to_owned());
    if let Ok(found) = target.metadata()
        && !found.is_file()
    {
        let what = if found.is_dir() { "a directory" } else { "no regular file" };
        let reason =
            format!("it is {what}: the result is written beside its place and renamed, so name a file");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, reason));
    }
    let dir = match target.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    if dir.metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        let reason = format!("the folder {} does not exist: make it first", dir.display());
        return Err(std::io::Error::new(std::io::ErrorKind::NotFound, reason));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".restride-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let write = || {
        let mut file = builder.tempfile_in(dir)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(&target).map_err(|error| error.error).map(drop)
    };
    write().map_err(with_remedy)
}

/// Brings an older record up to this version; refuses what is none or newer.
fn upgrade(value: &mut Value, origin: &str) -> Result<(), RecordError> {
    let malformed = |reason: String| RecordError::Malformed { path: origin.to_owned(), reason };
    let Value::Object(record) = value else {
        return Err(malformed("is no record: expected a JSON object".to_owned()));
    };
    let Some(schema) = record.get("schema").and_then(Value::as_str).map(str::to_owned) else {
        return Err(malformed(format!("is no record: it has no \"schema\", expected \"{SCHEMA}\"")));
    };
    let version = schema.strip_prefix("restride.record/").and_then(|version| version.parse::<u64>().ok());
    match version {
        Some(1) => {}
        Some(0) => upgrade_0(record),
        Some(_) => return Err(RecordError::Newer { path: origin.to_owned(), schema }),
        None => return Err(malformed(format!("is \"{schema}\", expected \"{SCHEMA}\""))),
    }
    record.insert("schema".to_owned(), Value::from(SCHEMA));
    Ok(())
}

/// Version 0 held times only, under `samples_ns`, and named no unit.
fn upgrade_0(record: &mut Map<String, Value>) {
    for case in record.get_mut("cases").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(case) = case.as_object_mut() else { continue };
        if let Some(samples) = case.shift_remove("samples_ns") {
            case.insert("samples".to_owned(), samples);
        }
        case.entry("unit").or_insert_with(|| Value::from("ns"));
    }
}

/// A moment as `2026-11-30T20:46:36Z`.
pub fn rfc3339(moment: SystemTime) -> String {
    let seconds = moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 1970 to a date, counted in eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_written() {
        let at = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(at(1_796_071_596), "2026-11-30T20:46:36Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00Z");
    }
}

//! What a tuning run found on a machine, on disk.
//!
//! A profile is one JSON file with an entry per machine and SIMD level. An entry says in its key what it
//! was measured on, which values won, and every measurement behind them. Nothing in it is believed
//! blindly: an entry whose key differs from this machine, or whose values make no sense, is left out with
//! the reason, and the others are used. Whoever writes takes the file's lock, reads it again, and renames
//! a complete new file into place, so that writers at the same time lose nothing and readers see a whole
//! file.

mod entry;
mod file;
mod key;

pub use entry::{Entry, Measurement, Winner};
pub use file::{Location, Merged, PROFILE_VARIABLE, Profile, ProfileError, SCHEMA};
pub use key::{Key, KeyCache};

use crate::copy::tuning::Tuning;

/// An entry or a value that was not used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// Which entry, by its machine and level, or by its place.
    pub entry: String,
    /// Why.
    pub reason: String,
}

/// The values for this machine, and what of the profile was not used.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Defaults of this machine with the profile's winners in their place.
    pub tuning: Tuning,
    /// How many values came from the profile.
    pub values: usize,
    /// When the entry for this machine was found; `None` where the profile has none.
    pub created: Option<String>,
    /// What was left out.
    pub ignored: Vec<Ignored>,
}

impl Loaded {
    fn none(base: Tuning) -> Self {
        Self { tuning: base, values: 0, created: None, ignored: Vec::new() }
    }
}

impl Profile {
    /// The values of the entry that fits `key`, put over `base`.
    pub fn over(&self, base: Tuning, key: &Key) -> Loaded {
        let mut loaded = Loaded::none(base);
        for (place, entry) in self.entries().enumerate() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(reason) => {
                    loaded.ignored.push(Ignored { entry: format!("entry {}", place + 1), reason });
                    continue;
                }
            };
            let differences = key.differences(&entry.key);
            if !differences.is_empty() {
                loaded.ignored.push(Ignored { entry: entry.key.to_string(), reason: differences.join("; ") });
                continue;
            }
            loaded.created = Some(entry.created.clone());
            for winner in &entry.winners {
                match winner.put(&mut loaded.tuning) {
                    Ok(()) => loaded.values += 1,
                    Err(reason) => loaded.ignored.push(Ignored { entry: entry.key.to_string(), reason }),
                }
            }
        }
        loaded
    }
}

impl Tuning {
    /// This machine's values with those of its profile in their place.
    ///
    /// Reads the file that [`PROFILE_VARIABLE`] names, or the one under the configuration folder; no file
    /// is no profile. Reads the disk on every call: keep the result and hand it to
    /// [`CopyOptions::tuning`](crate::CopyOptions::tuning).
    ///
    /// ```
    /// use restride::{CopyOptions, Tuning};
    /// let tuning = Tuning::load().unwrap_or_default();
    /// let options = CopyOptions::default().tuning(tuning);
    /// # let _ = options;
    /// ```
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is no profile, and an instruction-set level that the environment
    /// asks for and this CPU lacks.
    pub fn load() -> Result<Self, ProfileError> {
        Ok(load(None)?.tuning)
    }
}

/// As [`Tuning::load`], from `path` where one is given, with what was left out.
///
/// # Errors
///
/// As [`Tuning::load`].
pub fn load(path: Option<&std::path::Path>) -> Result<Loaded, ProfileError> {
    let base = *Tuning::unprofiled();
    match Location::find(path)? {
        Location::Off => Ok(Loaded::none(base)),
        Location::File(path) => Ok(Profile::read(&path)?.over(base, &Key::host()?)),
    }
}

//! What a profile entry holds for: version, CPU, caches, SIMD level, pages.

use super::ProfileError;
use crate::copy::kernels::Isa;
use crate::machine::fingerprint::Fingerprint;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The machine, level and version that values were found for. Unknown differs from known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Version of this crate.
    pub version: String,
    /// Architecture of the CPU.
    pub arch: String,
    /// Who made it.
    pub vendor: Option<String>,
    /// Its family.
    pub family: Option<u32>,
    /// Its model.
    pub model: Option<u32>,
    /// Its stepping.
    pub stepping: Option<u32>,
    /// The hypervisor it runs under.
    pub hypervisor: Option<String>,
    /// Its data caches, by level.
    pub caches: Vec<KeyCache>,
    /// The SIMD level that was used.
    pub isa: String,
    /// Bytes of a base page.
    pub page_bytes: usize,
    /// When the system uses huge pages.
    pub huge_pages: Option<String>,
}

/// One data cache of a [`Key`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyCache {
    /// `L1d`, `L2` and so on.
    pub level: String,
    /// Capacity in bytes.
    pub bytes: Option<usize>,
    /// Lines per set.
    pub ways: Option<usize>,
    /// Bytes per line.
    pub line_bytes: Option<usize>,
    /// Logical CPUs that share it.
    pub shared_by: Option<usize>,
}

impl Key {
    /// This machine at the level in use.
    ///
    /// # Errors
    ///
    /// A level that the environment asks for and this CPU lacks.
    pub fn host() -> Result<Self, ProfileError> {
        Ok(Self::of(&Fingerprint::host(), Isa::active()?))
    }

    /// A machine at a level.
    pub fn of(machine: &Fingerprint, isa: Isa) -> Self {
        let caches = machine.caches.iter().filter(|cache| cache.holds_data()).map(|cache| KeyCache {
            level: cache.name(),
            bytes: cache.bytes,
            ways: cache.ways,
            line_bytes: cache.line_bytes,
            shared_by: cache.shared_by,
        });
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            arch: machine.arch.clone(),
            vendor: machine.vendor.clone(),
            family: machine.family,
            model: machine.model,
            stepping: machine.stepping,
            hypervisor: machine.hypervisor.clone(),
            caches: caches.collect(),
            isa: isa.name().to_owned(),
            page_bytes: machine.page_bytes,
            huge_pages: machine.huge_mode.map(|mode| format!("{mode:?}").to_lowercase()),
        }
    }

    /// What differs between this key and that of an entry, a short sentence each.
    pub fn differences(&self, entry: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, here: String, there: String| {
            if here != there {
                found.push(format!("{what} {there}, not {here}"));
            }
        };
        compare("version", self.version.clone(), entry.version.clone());
        compare("architecture", self.arch.clone(), entry.arch.clone());
        compare("CPU vendor", show(&self.vendor), show(&entry.vendor));
        compare("CPU family", show(&self.family), show(&entry.family));
        compare("CPU model", show(&self.model), show(&entry.model));
        compare("CPU stepping", show(&self.stepping), show(&entry.stepping));
        compare("hypervisor", show(&self.hypervisor), show(&entry.hypervisor));
        compare("caches", caches(&self.caches), caches(&entry.caches));
        compare("SIMD level", self.isa.clone(), entry.isa.clone());
        compare("page bytes", self.page_bytes.to_string(), entry.page_bytes.to_string());
        compare("huge pages", show(&self.huge_pages), show(&entry.huge_pages));
        found
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |value: &Option<u32>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
        write!(
            f,
            "{} {}/{}/{} {}",
            self.vendor.as_deref().unwrap_or(&self.arch),
            part(&self.family),
            part(&self.model),
            part(&self.stepping),
            self.isa
        )
    }
}

fn show<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn caches(caches: &[KeyCache]) -> String {
    let one = |cache: &KeyCache| {
        format!(
            "{}={}/{}/{} by {}",
            cache.level,
            show(&cache.bytes),
            show(&cache.ways),
            show(&cache.line_bytes),
            show(&cache.shared_by)
        )
    };
    match caches {
        [] => "unknown".to_owned(),
        caches => caches.iter().map(one).collect::<Vec<_>>().join(","),
    }
}

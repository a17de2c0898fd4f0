//! Which machine a figure or a profile belongs to.

use super::cpuid;
use super::pages::{HugeMode, Pages};
use super::topology::{CacheLevel, Topology};
use std::path::Path;

/// What makes two machines the same for measurements and tuning.
///
/// Names are as the machine gives them; `None` is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(
    any(feature = "instruments", feature = "profile"),
    derive(serde::Serialize, serde::Deserialize),
    serde(default)
)]
#[non_exhaustive]
pub struct Fingerprint {
    /// Operating system.
    pub os: String,
    /// Architecture of the CPU.
    pub arch: String,
    /// Who made the CPU.
    pub vendor: Option<String>,
    /// Its family.
    pub family: Option<u32>,
    /// Its model.
    pub model: Option<u32>,
    /// Its stepping.
    pub stepping: Option<u32>,
    /// Its name.
    pub brand: Option<String>,
    /// The hypervisor it runs under.
    pub hypervisor: Option<String>,
    /// Its caches, by level.
    pub caches: Vec<CacheLevel>,
    /// SIMD levels it has, from the lowest.
    pub isa: Vec<String>,
    /// Bytes of a base page.
    pub page_bytes: usize,
    /// When transparent huge pages are used.
    pub huge_mode: Option<HugeMode>,
    /// Online logical CPUs.
    pub cpus: Option<usize>,
    /// Online physical cores.
    pub cores: Option<usize>,
    /// Fields of another version, kept and not compared.
    #[cfg(any(feature = "instruments", feature = "profile"))]
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl Fingerprint {
    /// This machine.
    ///
    /// # Examples
    /// ```
    /// use restride::machine::fingerprint::Fingerprint;
    /// assert!(Fingerprint::host().differences(&Fingerprint::host()).is_empty());
    /// ```
    pub fn host() -> Self {
        let topology = Topology::host();
        let identity = cpuid::identity();
        let mut cores: Vec<usize> = topology.cpus.iter().map(|cpu| cpu.core).collect();
        cores.sort_unstable();
        cores.dedup();
        let known = |count: usize| (count > 0).then_some(count);
        Self {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            vendor: identity.vendor,
            family: identity.family,
            model: identity.model,
            stepping: identity.stepping,
            brand: identity.brand.or_else(|| device_name(Path::new("/"))),
            hypervisor: topology.hypervisor.clone(),
            caches: topology.caches.clone(),
            isa: simd_levels().iter().map(|level| (*level).to_owned()).collect(),
            page_bytes: Pages::host().page_bytes,
            huge_mode: Pages::host().huge_mode,
            cpus: known(topology.cpus.len()),
            cores: known(cores.len()),
            #[cfg(any(feature = "instruments", feature = "profile"))]
            extra: serde_json::Map::new(),
        }
    }

    /// One line for people: the CPU's name, or what is known instead.
    pub fn cpu(&self) -> String {
        match (&self.brand, &self.vendor) {
            (Some(brand), _) => brand.clone(),
            (None, Some(vendor)) => format!("{vendor} {}", self.arch),
            (None, None) => format!("unknown {} CPU", self.arch),
        }
    }

    /// What differs, a short sentence each; empty when figures of one hold for the other.
    ///
    /// The number of CPUs counts, page mode and sharing too. Unknown differs from known.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, a: String, b: String| {
            if a != b {
                found.push(format!("{what}: {a} and {b}"));
            }
        };
        compare("operating system", self.os.clone(), other.os.clone());
        compare("architecture", self.arch.clone(), other.arch.clone());
        compare("CPU", self.cpu(), other.cpu());
        compare("CPU vendor", show(&self.vendor), show(&other.vendor));
        compare("CPU family", show(&self.family), show(&other.family));
        compare("CPU model", show(&self.model), show(&other.model));
        compare("CPU stepping", show(&self.stepping), show(&other.stepping));
        compare("hypervisor", show(&self.hypervisor), show(&other.hypervisor));
        compare("caches", cache_list(&self.caches), cache_list(&other.caches));
        compare("SIMD levels", self.isa.join(" "), other.isa.join(" "));
        compare("page bytes", self.page_bytes.to_string(), other.page_bytes.to_string());
        let huge = |mode: Option<HugeMode>| show(&mode.map(|mode| format!("{mode:?}").to_lowercase()));
        compare("huge pages", huge(self.huge_mode), huge(other.huge_mode));
        compare("logical CPUs", show(&self.cpus), show(&other.cpus));
        compare("physical cores", show(&self.cores), show(&other.cores));
        found
    }
}

fn show<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string)
}

fn cache_list(caches: &[CacheLevel]) -> String {
    let list: Vec<String> = caches
        .iter()
        .map(|cache| {
            format!(
                "{}={}/{}/{}",
                cache.name(),
                show(&cache.bytes.map(super::caches::short_bytes)),
                show(&cache.ways),
                show(&cache.line_bytes)
            )
        })
        .collect();
    if list.is_empty() { "unknown".to_owned() } else { list.join(",") }
}

/// The name that boards without CPUID give themselves.
fn device_name(root: &Path) -> Option<String> {
    let text = std::fs::read_to_string(root.join("proc/device-tree/model")).ok()?;
    let name = text.trim_matches(['\0', '\n', ' ']);
    (!name.is_empty()).then(|| name.to_owned())
}

/// SIMD levels of this CPU from the lowest, by the names of the engine's levels.
fn simd_levels() -> Vec<&'static str> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut levels = vec!["scalar", "sse2"];
        if std::is_x86_feature_detected!("avx2") {
            levels.push("avx2");
        }
        if std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512bw")
            && std::is_x86_feature_detected!("avx512vl")
        {
            levels.push("avx512");
        }
        levels
    }
    #[cfg(target_arch = "aarch64")]
    return vec!["scalar", "neon"];
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    vec!["scalar"]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_both_sides() {
        let host = Fingerprint::host();
        let mut other = host.clone();
        other.brand = Some("Another CPU".to_owned());
        other.caches.clear();
        let differences = host.differences(&other);
        assert_eq!(differences.len(), 1 + usize::from(!host.caches.is_empty()), "{differences:?}");
        assert!(differences[0].contains("Another CPU"), "{differences:?}");
    }

    #[test]
    fn nothing_known_is_still_printed() {
        assert!(Fingerprint::default().cpu().starts_with("unknown"));
    }

    #[cfg(any(feature = "instruments", feature = "profile"))]
    #[test]
    fn it_survives_json() {
        let host = Fingerprint::host();
        let text = serde_json::to_string(&host).unwrap();
        assert_eq!(serde_json::from_str::<Fingerprint>(&text).unwrap(), host);
        // A machine described by an older program lacks fields: they are unknown.
        assert_eq!(serde_json::from_str::<Fingerprint>("{}").unwrap(), Fingerprint::default());
    }
}

//! Caches, cores and nodes of this machine.
//!
//! The kernel's tables under `/sys` and `/proc` come first, CPUID second; where the two disagree about
//! a cache the kernel's geometry is used and the other one is kept beside it. The tables are read from
//! a root directory, so that recorded machines can be read like the host.

use super::caches::{self, CacheSpec};
use super::cpuid;
use super::cpulist::parse_list;
use super::sysfs::{Tables, set_classes};
use std::path::Path;
use std::sync::OnceLock;

/// L1 data-cache bytes taken where the machine does not say.
pub const DEFAULT_L1D_BYTES: usize = 32 << 10;
/// L2 bytes taken where the machine does not say.
pub const DEFAULT_L2_BYTES: usize = 512 << 10;
/// L3 bytes taken where the machine does not say.
pub const DEFAULT_L3_BYTES: usize = 8 << 20;
/// Cache-line bytes taken where the machine does not say.
pub const DEFAULT_LINE_BYTES: usize = 64;
/// Last-level bytes per visible core above which the level is probably shared with other machines.
pub const SHARED_BYTES_PER_CORE: usize = 32 << 20;

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(any(feature = "instruments", feature = "profile"), derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// Where a figure came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(
    any(feature = "instruments", feature = "profile"),
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum Source {
    /// The kernel's tables.
    Sysfs,
    /// The CPUID instruction.
    Cpuid,
    /// `--caches` or the environment variable.
    Override,
}

/// One cache as one core sees it; `None` is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(any(feature = "instruments", feature = "profile"), derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CacheLevel {
    /// 1, 2, 3 or 4.
    pub level: u8,
    /// What it holds.
    #[cfg_attr(any(feature = "instruments", feature = "profile"), serde(rename = "type"))]
    pub kind: CacheKind,
    /// Capacity in bytes.
    pub bytes: Option<usize>,
    /// Lines per set.
    pub ways: Option<usize>,
    /// Bytes per line.
    pub line_bytes: Option<usize>,
    /// Number of sets.
    pub sets: Option<usize>,
    /// Logical CPUs that share it.
    pub shared_by: Option<usize>,
    /// Which ones, as `0-3,8`.
    #[cfg_attr(
        any(feature = "instruments", feature = "profile"),
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub shared_cpus: Option<String>,
    /// Where the figures came from.
    pub source: Source,
    /// What the second source says, where it disagrees.
    #[cfg_attr(
        any(feature = "instruments", feature = "profile"),
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub disagrees: Option<Box<CacheLevel>>,
    /// Whether it is the last level and so large per visible core that others probably use it too.
    #[cfg_attr(any(feature = "instruments", feature = "profile"), serde(default))]
    pub probably_shared: bool,
    /// Fields of another version, kept.
    #[cfg(any(feature = "instruments", feature = "profile"))]
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

impl CacheLevel {
    pub(crate) fn unknown(level: u8, kind: CacheKind, source: Source) -> Self {
        Self {
            level,
            kind,
            bytes: None,
            ways: None,
            line_bytes: None,
            sets: None,
            shared_by: None,
            shared_cpus: None,
            source,
            disagrees: None,
            probably_shared: false,
            #[cfg(any(feature = "instruments", feature = "profile"))]
            extra: serde_json::Map::new(),
        }
    }

    /// Whether data goes through it.
    pub fn holds_data(&self) -> bool {
        self.kind != CacheKind::Instruction
    }

    /// `L1d`, `L1i`, `L2` and so on.
    pub fn name(&self) -> String {
        let suffix = match (self.level, self.kind) {
            (1, CacheKind::Data) => "d",
            (_, CacheKind::Instruction) => "i",
            _ => "",
        };
        format!("L{}{suffix}", self.level)
    }

    fn from_spec(spec: &CacheSpec) -> Self {
        let kind = if spec.level == 1 { CacheKind::Data } else { CacheKind::Unified };
        Self {
            bytes: Some(spec.bytes),
            ways: Some(spec.ways),
            line_bytes: Some(spec.line_bytes),
            sets: Some(spec.sets()),
            ..Self::unknown(spec.level, kind, Source::Override)
        }
    }
}

/// A size and whether it is known or assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheBytes {
    /// Bytes.
    pub bytes: usize,
    /// Whether the machine did not say and a default was taken.
    pub assumed: bool,
}

/// One logical CPU that is online.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cpu {
    /// Number of the logical CPU.
    pub id: usize,
    /// Smallest logical CPU of the same physical core.
    pub core: usize,
    /// Socket.
    pub package: Option<usize>,
    /// NUMA node.
    pub node: Option<usize>,
    /// Maximum frequency in kHz.
    pub max_khz: Option<u64>,
    /// Relative capacity, 1024 for the fastest.
    pub capacity: Option<u64>,
    /// Class of the core: 0 is the fastest.
    pub class: usize,
    /// Whether this process may run on it.
    pub allowed: bool,
}

/// Caches, cores, nodes and pages of one machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Topology {
    /// Caches of one core of the fastest class that the process may use, by level, data first.
    pub caches: Vec<CacheLevel>,
    /// Logical CPUs that are online, ascending.
    pub cpus: Vec<Cpu>,
    /// Hypervisor under which the machine runs, by name where it says one; `None` is none or unknown.
    pub hypervisor: Option<String>,
    /// Frequency governor of the first allowed CPU.
    pub governor: Option<String>,
    /// Threads that the standard library would start, a CPU quota included; only known of the host, and
    /// read before any thread is pinned.
    pub parallelism: Option<usize>,
    /// Why [`caches::CACHES_VARIABLE`] was not used, where it could not be read.
    pub override_error: Option<String>,
}

impl Topology {
    /// This machine, read once and kept; the caches named by [`caches::CACHES_VARIABLE`] replace its own.
    ///
    /// # Examples
    /// ```
    /// let host = restride::machine::topology::Topology::host();
    /// assert!(host.l1d().bytes > 0);
    /// assert!(host.physical_cores() >= 1);
    /// ```
    pub fn host() -> &'static Self {
        static HOST: OnceLock<Topology> = OnceLock::new();
        HOST.get_or_init(|| {
            let mut host = Self::from_root(Path::new("/"));
            host.parallelism = std::thread::available_parallelism().ok().map(usize::from);
            host.hypervisor = cpuid::hypervisor().or(host.hypervisor.take());
            // The instruction describes the core that happens to run this: on a hybrid part that may be
            // one of another class, so there it only fills a void.
            if host.core_classes() == 1 || host.caches.is_empty() {
                host.add_second_source(&cpuid::caches());
            }
            match caches::from_env() {
                Ok(Some(specs)) => host.override_caches(&specs),
                Ok(None) => {}
                Err(error) => host.override_error = Some(error.reason),
            }
            host
        })
    }

    /// Reads `sys` and `proc` below a root directory; what is missing there stays unknown.
    pub fn from_root(root: &Path) -> Self {
        let tables = Tables::new(root);
        let mut topology = Self { cpus: tables.cpus(), ..Self::default() };
        set_classes(&mut topology.cpus, &tables);
        let reference = topology
            .cpus
            .iter()
            .filter(|cpu| cpu.allowed)
            .min_by_key(|cpu| (cpu.class, cpu.id))
            .map_or(0, |cpu| cpu.id);
        topology.caches = tables.caches(reference);
        topology.governor = tables.governor(reference);
        topology.hypervisor = tables.hypervisor();
        topology.flag_shared();
        topology
    }

    /// Replaces the data caches by those given; levels that are not given stay.
    pub fn override_caches(&mut self, specs: &[CacheSpec]) {
        for spec in specs {
            let level = CacheLevel::from_spec(spec);
            match self.caches.iter_mut().find(|cache| cache.level == spec.level && cache.holds_data()) {
                Some(cache) => *cache = level,
                None => self.caches.push(level),
            }
        }
        self.caches.sort_by_key(|cache| (cache.level, cache.kind == CacheKind::Instruction));
        self.flag_shared();
    }

    /// The data cache of a level.
    pub fn data_cache(&self, level: u8) -> Option<&CacheLevel> {
        self.caches.iter().find(|cache| cache.level == level && cache.holds_data())
    }

    /// The last data-cache level whose size is known.
    pub fn last_level(&self) -> Option<&CacheLevel> {
        self.caches.iter().rfind(|cache| cache.holds_data() && cache.bytes.is_some())
    }

    /// The last data-cache level of known size that is not flagged as shared with others.
    pub fn last_private_level(&self) -> Option<&CacheLevel> {
        self.caches
            .iter()
            .rfind(|cache| cache.holds_data() && cache.bytes.is_some() && !cache.probably_shared)
    }

    /// L1 data-cache bytes, [`DEFAULT_L1D_BYTES`] where unknown.
    pub fn l1d(&self) -> CacheBytes {
        self.bytes_or(1, DEFAULT_L1D_BYTES)
    }

    /// L2 bytes, [`DEFAULT_L2_BYTES`] where unknown.
    pub fn l2(&self) -> CacheBytes {
        self.bytes_or(2, DEFAULT_L2_BYTES)
    }

    /// L3 bytes; those of the L2 where the machine has an L2 and lists no L3; otherwise, where unknown,
    /// [`DEFAULT_L3_BYTES`].
    pub fn l3(&self) -> CacheBytes {
        match (self.data_cache(3), self.data_cache(2)) {
            (None, Some(CacheLevel { bytes: Some(bytes), .. })) => {
                CacheBytes { bytes: *bytes, assumed: false }
            }
            _ => self.bytes_or(3, DEFAULT_L3_BYTES),
        }
    }

    /// Cache-line bytes of the first data cache, [`DEFAULT_LINE_BYTES`] where unknown.
    pub fn line_bytes(&self) -> CacheBytes {
        match self.caches.iter().filter(|cache| cache.holds_data()).find_map(|cache| cache.line_bytes) {
            Some(bytes) => CacheBytes { bytes, assumed: false },
            None => CacheBytes { bytes: DEFAULT_LINE_BYTES, assumed: true },
        }
    }

    /// The data caches whose geometry is known in full, by level, as the cache model wants them.
    pub fn cache_specs(&self) -> Vec<CacheSpec> {
        self.caches
            .iter()
            .filter(|cache| cache.holds_data())
            .filter_map(|cache| {
                let (bytes, ways, line_bytes) = (cache.bytes?, cache.ways?, cache.line_bytes?);
                let set = ways.checked_mul(line_bytes)?;
                (line_bytes.is_power_of_two() && bytes >= set && bytes.is_multiple_of(set))
                    .then_some(CacheSpec { level: cache.level, bytes, ways, line_bytes })
            })
            .collect()
    }

    /// Logical CPUs that this process may use, ascending.
    pub fn allowed_cpus(&self) -> Vec<usize> {
        self.cpus.iter().filter(|cpu| cpu.allowed).map(|cpu| cpu.id).collect()
    }

    /// Physical cores that this process may use, at least 1.
    ///
    /// Where the machine lists no CPUs, [`Topology::parallelism`].
    pub fn physical_cores(&self) -> usize {
        let mut cores: Vec<usize> = self.cpus.iter().filter(|cpu| cpu.allowed).map(|cpu| cpu.core).collect();
        cores.sort_unstable();
        cores.dedup();
        match cores.len() {
            0 => self.parallelism.unwrap_or(1),
            count => count,
        }
    }

    /// Threads that a copy uses by default: the physical cores allowed, fewer under a CPU quota.
    pub fn default_threads(&self) -> usize {
        self.physical_cores().min(self.parallelism.unwrap_or(usize::MAX)).max(1)
    }

    /// Number of NUMA nodes that hold CPUs; `None` where the machine does not say.
    pub fn numa_nodes(&self) -> Option<usize> {
        let mut nodes: Vec<usize> = self.cpus.iter().filter_map(|cpu| cpu.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        (!nodes.is_empty()).then_some(nodes.len())
    }

    /// Number of core classes: more than one on a hybrid part.
    pub fn core_classes(&self) -> usize {
        self.cpus.iter().map(|cpu| cpu.class + 1).max().unwrap_or(1)
    }

    /// Whether several online logical CPUs share a physical core.
    pub fn smt(&self) -> bool {
        self.cpus.iter().any(|cpu| cpu.core != cpu.id)
    }

    /// Keeps a second source's caches: whole levels that the first lacks are added, unknown figures are
    /// filled, and a different geometry is kept beside the first.
    pub(crate) fn add_second_source(&mut self, second: &[CacheLevel]) {
        for other in second {
            let found =
                self.caches.iter_mut().find(|mine| mine.level == other.level && mine.kind == other.kind);
            let Some(mine) = found else {
                self.caches.push(other.clone());
                continue;
            };
            if mine.bytes.is_none() && mine.ways.is_none() && mine.sets.is_none() {
                let sharing = (mine.shared_by, mine.shared_cpus.take());
                *mine = other.clone();
                (mine.shared_by, mine.shared_cpus) = (sharing.0.or(mine.shared_by), sharing.1);
                continue;
            }
            let differs = |a: Option<usize>, b: Option<usize>| matches!((a, b), (Some(a), Some(b)) if a != b);
            if differs(mine.bytes, other.bytes)
                || differs(mine.ways, other.ways)
                || differs(mine.line_bytes, other.line_bytes)
                || differs(mine.sets, other.sets)
            {
                mine.disagrees = Some(Box::new(other.clone()));
            } else {
                mine.bytes = mine.bytes.or(other.bytes);
                mine.ways = mine.ways.or(other.ways);
                mine.line_bytes = mine.line_bytes.or(other.line_bytes);
                mine.sets = mine.sets.or(other.sets);
            }
        }
        self.caches.sort_by_key(|cache| (cache.level, cache.kind == CacheKind::Instruction));
        self.flag_shared();
    }

    fn bytes_or(&self, level: u8, default: usize) -> CacheBytes {
        match self.data_cache(level).and_then(|cache| cache.bytes) {
            Some(bytes) => CacheBytes { bytes, assumed: false },
            None => CacheBytes { bytes: default, assumed: true },
        }
    }

    fn flag_shared(&mut self) {
        self.caches.iter_mut().for_each(|cache| cache.probably_shared = false);
        let cores_of = |shared: Option<Vec<usize>>| {
            let mut cores: Vec<usize> = self
                .cpus
                .iter()
                .filter(|cpu| shared.as_ref().is_none_or(|cpus| cpus.contains(&cpu.id)))
                .map(|cpu| cpu.core)
                .collect();
            cores.sort_unstable();
            cores.dedup();
            cores.len().max(1)
        };
        let last = self.caches.iter().rposition(|cache| cache.holds_data() && cache.bytes.is_some());
        if let Some(last) = last {
            let cores = cores_of(self.caches[last].shared_cpus.as_deref().and_then(parse_list));
            let bytes = self.caches[last].bytes.unwrap_or(0);
            self.caches[last].probably_shared = bytes / cores > SHARED_BYTES_PER_CORE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(bytes: Option<usize>, ways: Option<usize>, source: Source) -> CacheLevel {
        CacheLevel { bytes, ways, ..CacheLevel::unknown(2, CacheKind::Unified, source) }
    }

    #[test]
    fn two_sources_that_disagree_are_both_kept() {
        let mut machine =
            Topology { caches: vec![level(Some(1 << 20), Some(16), Source::Sysfs)], ..Topology::default() };
        machine.add_second_source(&[level(Some(2 << 20), Some(16), Source::Cpuid)]);
        assert_eq!((machine.caches[0].bytes, machine.caches[0].source), (Some(1 << 20), Source::Sysfs));
        assert_eq!(machine.caches[0].disagrees.as_ref().unwrap().bytes, Some(2 << 20));
    }

    #[test]
    fn a_second_source_fills_what_is_unknown() {
        let mut machine =
            Topology { caches: vec![level(Some(1 << 20), None, Source::Sysfs)], ..Topology::default() };
        let l3 =
            CacheLevel { bytes: Some(8 << 20), ..CacheLevel::unknown(3, CacheKind::Unified, Source::Cpuid) };
        machine.add_second_source(&[l3, level(Some(1 << 20), Some(8), Source::Cpuid)]);
        assert_eq!((machine.caches[0].ways, machine.caches[0].source), (Some(8), Source::Sysfs));
        assert_eq!((machine.caches[0].disagrees.is_none(), machine.caches[1].level), (true, 3));
        let mut blank = Topology { caches: vec![level(None, None, Source::Sysfs)], ..Topology::default() };
        blank.caches[0].shared_by = Some(4);
        blank.add_second_source(&[level(Some(1 << 20), Some(8), Source::Cpuid)]);
        assert_eq!((blank.caches[0].source, blank.caches[0].shared_by), (Source::Cpuid, Some(4)));
    }

    #[test]
    fn a_large_level_for_few_cores_is_flagged() {
        let mut machine = Topology {
            caches: vec![CacheLevel {
                bytes: Some(300 << 20),
                ..CacheLevel::unknown(3, CacheKind::Unified, Source::Sysfs)
            }],
            ..Topology::default()
        };
        machine.flag_shared();
        assert!(machine.caches[0].probably_shared && machine.last_private_level().is_none());
        assert_eq!(machine.l3().bytes, 300 << 20);
    }
}

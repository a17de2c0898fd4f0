//! The kernel's tables of CPUs and caches, read below a root directory.

use super::caches;
use super::cpulist::{format_list, parse_list, parse_mask};
use super::topology::{CacheKind, CacheLevel, Cpu, Source};
use std::path::{Path, PathBuf};

/// Cores whose speed is within this share of the fastest of a class belong to that class: favoured
/// cores of one kind differ by a few percent, kinds of cores by a quarter and more.
const CLASS_TOLERANCE: f64 = 0.15;

const CPU: &str = "sys/devices/system/cpu";

/// The kernel's tables below a root directory.
pub(super) struct Tables<'a> {
    root: &'a Path,
}

impl<'a> Tables<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root }
    }

    pub(super) fn governor(&self, cpu: usize) -> Option<String> {
        self.text(&format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor"))
    }

    /// A short text file, trimmed; `None` where it is missing, unreadable or empty.
    fn text(&self, path: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.root.join(path)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    fn list(&self, path: &str) -> Option<Vec<usize>> {
        parse_list(&self.text(path)?)
    }

    /// The value of `name: value` in a file such as `proc/cpuinfo`.
    fn field(&self, path: &str, name: &str) -> Option<String> {
        self.text(path)?.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        })
    }

    fn numbered_dirs(&self, dir: &str, prefix: &str) -> Vec<(usize, PathBuf)> {
        let entries = std::fs::read_dir(self.root.join(dir)).into_iter().flatten().flatten();
        let mut found: Vec<(usize, PathBuf)> = entries
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
                Some((number, entry.path()))
            })
            .collect();
        found.sort();
        found
    }

    pub(super) fn cpus(&self) -> Vec<Cpu> {
        let online = self.list(&format!("{CPU}/online"));
        let allowed = self.field("proc/self/status", "Cpus_allowed_list").and_then(|list| parse_list(&list));
        let nodes: Vec<(usize, Vec<usize>)> = self
            .numbered_dirs("sys/devices/system/node", "node")
            .into_iter()
            .filter_map(|(node, _)| {
                Some((node, self.list(&format!("sys/devices/system/node/node{node}/cpulist"))?))
            })
            .collect();
        self.numbered_dirs(CPU, "cpu")
            .into_iter()
            .filter(|(id, _)| match &online {
                Some(online) => online.contains(id),
                None => self.number(&format!("{CPU}/cpu{id}/online")) != Some(0),
            })
            .map(|(id, _)| {
                let at = |name: &str| format!("{CPU}/cpu{id}/{name}");
                let siblings = self
                    .list(&at("topology/thread_siblings_list"))
                    .or_else(|| parse_mask(&self.text(&at("topology/thread_siblings"))?));
                Cpu {
                    id,
                    core: siblings.and_then(|cpus| cpus.first().copied()).unwrap_or(id),
                    package: self.number(&at("topology/physical_package_id")).map(|id| id as usize),
                    node: nodes.iter().find(|(_, cpus)| cpus.contains(&id)).map(|(node, _)| *node),
                    max_khz: self.number(&at("cpufreq/cpuinfo_max_freq")).filter(|&khz| khz > 0),
                    capacity: self.number(&at("cpu_capacity")).filter(|&capacity| capacity > 0),
                    class: 0,
                    allowed: allowed.as_ref().is_none_or(|allowed| allowed.contains(&id)),
                }
            })
            .collect()
    }

    pub(super) fn caches(&self, cpu: usize) -> Vec<CacheLevel> {
        let dir = format!("{CPU}/cpu{cpu}/cache");
        let mut caches: Vec<CacheLevel> = self
            .numbered_dirs(&dir, "index")
            .into_iter()
            .filter_map(|(index, _)| {
                let at = |name: &str| format!("{dir}/index{index}/{name}");
                let level = u8::try_from(self.number(&at("level"))?).ok().filter(|level| *level > 0)?;
                let kind = match self.text(&at("type"))?.as_str() {
                    "Data" => CacheKind::Data,
                    "Instruction" => CacheKind::Instruction,
                    "Unified" => CacheKind::Unified,
                    _ => return None,
                };
                let positive = |name: &str| {
                    self.number(&at(name)).and_then(|n| usize::try_from(n).ok()).filter(|&n| n > 0)
                };
                let shared = self
                    .list(&at("shared_cpu_list"))
                    .or_else(|| parse_mask(&self.text(&at("shared_cpu_map"))?))
                    .filter(|cpus| !cpus.is_empty());
                let mut cache = CacheLevel::unknown(level, kind, Source::Sysfs);
                cache.bytes = self.size(&at("size"));
                cache.ways = positive("ways_of_associativity");
                cache.line_bytes = positive("coherency_line_size");
                cache.sets = positive("number_of_sets");
                cache.shared_by = shared.as_ref().map(Vec::len);
                cache.shared_cpus = shared.as_deref().map(format_list);
                complete(&mut cache);
                Some(cache)
            })
            .collect();
        caches.sort_by_key(|cache| (cache.level, cache.kind == CacheKind::Instruction));
        caches
    }

    /// A cache size such as `48K`; zero is unknown.
    fn size(&self, path: &str) -> Option<usize> {
        let bytes = caches::parse_bytes(&self.text(path)?).ok()?;
        usize::try_from(bytes).ok().filter(|&bytes| bytes > 0)
    }

    pub(super) fn hypervisor(&self) -> Option<String> {
        let flags = self.field("proc/cpuinfo", "flags")?;
        if !flags.split_whitespace().any(|flag| flag == "hypervisor") {
            return None;
        }
        Some(self.text("sys/hypervisor/type").unwrap_or_else(|| "unnamed".to_owned()))
    }
}

/// Fills the one figure of `bytes = ways * line * sets` that is missing where the other three say it.
///
/// A fully associative cache is written by some kernels as 0 ways; it then has one set.
fn complete(cache: &mut CacheLevel) {
    let product = |a: usize, b: usize| a.checked_mul(b);
    match (cache.bytes, cache.ways, cache.line_bytes, cache.sets) {
        (None, Some(ways), Some(line), Some(sets)) => {
            cache.bytes = product(ways, line).and_then(|set| set.checked_mul(sets));
        }
        (Some(bytes), None, Some(line), Some(sets)) => {
            cache.ways = product(line, sets).filter(|way| bytes.is_multiple_of(*way)).map(|way| bytes / way);
        }
        (Some(bytes), Some(ways), Some(line), None) => {
            cache.sets = product(line, ways).filter(|set| bytes.is_multiple_of(*set)).map(|set| bytes / set);
        }
        _ => {}
    }
}

/// Sorts the cores into classes by what tells them apart: the kernel's lists of performance and
/// efficiency cores, else the relative capacity, else the maximum frequency.
pub(super) fn set_classes(cpus: &mut [Cpu], tables: &Tables<'_>) {
    if let Some(fast) = tables.list("sys/devices/cpu_core/cpus")
        && cpus.iter().any(|cpu| fast.contains(&cpu.id))
    {
        cpus.iter_mut().for_each(|cpu| cpu.class = usize::from(!fast.contains(&cpu.id)));
        return;
    }
    let all = |speed: fn(&Cpu) -> Option<u64>| cpus.iter().map(speed).collect::<Option<Vec<u64>>>();
    let Some(speeds) = all(|cpu| cpu.capacity).or_else(|| all(|cpu| cpu.max_khz)) else { return };
    let mut order = speeds.clone();
    order.sort_unstable_by(|a, b| b.cmp(a));
    order.dedup();
    let mut tops: Vec<u64> = Vec::new();
    for speed in order {
        if tops.last().is_none_or(|&top| (speed as f64) < top as f64 * (1.0 - CLASS_TOLERANCE)) {
            tops.push(speed);
        }
    }
    for (cpu, speed) in cpus.iter_mut().zip(speeds) {
        cpu.class = tops.iter().rposition(|&top| speed <= top).unwrap_or(0);
    }
}

//! Recorded and made-up machines, read as the host is read.

use restride::machine::caches;
use restride::machine::pages::{HugeMode, Pages};
use restride::machine::topology::{CacheKind, Source, Topology};
use std::path::Path;

/// Unpacks `path=value` lines (`cpu{0-3,8}` stands for each CPU) and reads the tree.
fn unpack(text: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (path, value) = line.split_once('=').expect("path=value");
        for path in expand(path) {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            let mut text = std::fs::read_to_string(&file).unwrap_or_default();
            text.push_str(value);
            text.push('\n');
            std::fs::write(file, text).unwrap();
        }
    }
    root
}

fn expand(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let (list, after) = rest.split_once('}').unwrap();
    list.split(',')
        .flat_map(|part| {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            low.parse::<usize>().unwrap()..=high.parse::<usize>().unwrap()
        })
        .map(|cpu| format!("{before}{cpu}{after}"))
        .collect()
}

fn recorded(name: &str) -> (Topology, tempfile::TempDir) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/topology").join(name);
    let root = unpack(&std::fs::read_to_string(path).unwrap());
    (Topology::from_root(root.path()), root)
}

fn made_up(text: &str) -> Topology {
    Topology::from_root(unpack(text).path())
}

/// `L1d 48K/12/64 x2` for each cache: name, bytes, ways, line, sharing CPUs.
fn summary(topology: &Topology) -> Vec<String> {
    let show = |value: Option<usize>| value.map_or("?".to_owned(), |value| value.to_string());
    topology
        .caches
        .iter()
        .map(|cache| {
            format!(
                "{} {}/{}/{} x{}",
                cache.name(),
                cache.bytes.map_or("?".to_owned(), caches::short_bytes),
                show(cache.ways),
                show(cache.line_bytes),
                show(cache.shared_by)
            )
        })
        .collect()
}

#[test]
fn a_virtual_machine() {
    let (machine, root) = recorded("vm-2cpu.txt");
    assert_eq!(
        summary(&machine),
        ["L1d 48K/12/64 x1", "L1i 32K/8/64 x1", "L2 1M/16/64 x1", "L3 32M/16/64 x2"]
    );
    assert!(machine.caches.iter().all(|cache| cache.source == Source::Sysfs));
    assert_eq!(machine.hypervisor.as_deref(), Some("unnamed"));
    assert_eq!((machine.physical_cores(), machine.smt(), machine.core_classes()), (2, false, 1));
    assert_eq!((machine.numa_nodes(), machine.governor.as_deref()), (Some(1), None));
    assert!(!machine.last_level().unwrap().probably_shared);
    let pages = Pages::from_root(root.path(), 4096);
    assert_eq!(pages.huge_page_bytes, Some(2 << 20));
    assert_eq!(pages.huge_mode, Some(HugeMode::Madvise));
    assert_eq!(pages.reserved, [(2 << 20, 0), (1 << 30, 0)]);
    assert_eq!(pages.ram_bytes, Some(24_684_092 * 1024));
    assert!(pages.huge_possible());
}

#[test]
fn a_server_of_many_dies() {
    let (machine, _root) = recorded("opteron-6276-64cpu.txt");
    assert_eq!(machine.cpus.len(), 64);
    assert_eq!(machine.numa_nodes(), Some(8));
    let l3 = machine.data_cache(3).unwrap();
    assert_eq!((l3.bytes, l3.shared_by), (Some(6 << 20), Some(8)));
    // 6 MiB in 64 ways of 2 KiB sets: not a power of two of sets, and no problem.
    assert_eq!(machine.cache_specs().len(), 3);
    let packages: std::collections::BTreeSet<_> = machine.cpus.iter().map(|cpu| cpu.package).collect();
    assert_eq!(packages.len(), 4);
}

#[test]
fn a_hybrid_laptop_answers_for_its_fast_cores() {
    let (machine, _root) = recorded("hybrid-i7-1370p.txt");
    assert_eq!(machine.core_classes(), 2, "5.0 and 5.2 GHz are one class, 3.9 GHz another");
    assert_eq!(machine.cpus.iter().filter(|cpu| cpu.class == 0).count(), 12);
    assert_eq!(machine.physical_cores(), 14);
    assert!(machine.smt());
    assert_eq!(machine.l1d().bytes, 48 << 10, "the slow cores have 32K");
    assert_eq!(machine.data_cache(2).unwrap().ways, Some(10));
    assert_eq!(machine.governor.as_deref(), Some("powersave"));
}

#[test]
fn a_hybrid_arm_by_capacity() {
    let (machine, _root) = recorded("hybrid-arm-gb10.txt");
    assert_eq!(machine.core_classes(), 2);
    let fast: Vec<usize> = machine.cpus.iter().filter(|cpu| cpu.class == 0).map(|cpu| cpu.id).collect();
    assert_eq!(fast, [5, 6, 7, 8, 9, 15, 16, 17, 18, 19]);
    assert_eq!(machine.physical_cores(), 20);
}

#[test]
fn a_board_without_cache_tables_gets_assumed_sizes() {
    let (machine, _root) = recorded("arm-2cpu-no-caches.txt");
    assert!(machine.caches.is_empty());
    assert_eq!(machine.physical_cores(), 2);
    for cache in [machine.l1d(), machine.l2(), machine.l3(), machine.line_bytes()] {
        assert!(cache.assumed && cache.bytes > 0);
    }
    assert!(machine.last_level().is_none() && machine.cache_specs().is_empty());
}

#[test]
fn offline_cpus_are_not_counted() {
    let (machine, _root) = recorded("xeon-16cpu-offline.txt");
    assert_eq!(machine.cpus.len(), 12);
    assert!(machine.physical_cores() <= machine.cpus.len());
}

#[test]
fn cpus_may_differ_in_what_they_list() {
    let (machine, _root) = recorded("xeon-8cpu-uneven.txt");
    assert_eq!(machine.cpus.len(), 8);
    assert!(machine.data_cache(1).is_some());
}

const FOUR_LEVELS: &str = "\
sys/devices/system/cpu/online=0-3
sys/devices/system/cpu/cpu{0-3}/topology/physical_package_id=0
sys/devices/system/cpu/cpu{0-1}/topology/thread_siblings_list=0-1
sys/devices/system/cpu/cpu{2-3}/topology/thread_siblings_list=2-3
sys/devices/system/cpu/cpu{0-3}/cache/index0/level=1
sys/devices/system/cpu/cpu{0-3}/cache/index0/type=Data
sys/devices/system/cpu/cpu{0-3}/cache/index0/size=32K
sys/devices/system/cpu/cpu{0-3}/cache/index0/ways_of_associativity=8
sys/devices/system/cpu/cpu{0-3}/cache/index0/coherency_line_size=64
sys/devices/system/cpu/cpu{0-3}/cache/index1/level=3
sys/devices/system/cpu/cpu{0-3}/cache/index1/type=Unified
sys/devices/system/cpu/cpu{0-3}/cache/index1/size=6144K
sys/devices/system/cpu/cpu{0-3}/cache/index1/shared_cpu_list=0-3
sys/devices/system/cpu/cpu{0-3}/cache/index2/level=4
sys/devices/system/cpu/cpu{0-3}/cache/index2/type=Unified
sys/devices/system/cpu/cpu{0-3}/cache/index2/size=128M
sys/devices/system/cpu/cpu{0-3}/cache/index2/ways_of_associativity=16
sys/devices/system/cpu/cpu{0-3}/cache/index2/coherency_line_size=64
sys/devices/system/cpu/cpu{0-3}/cache/index2/shared_cpu_map=f
";

#[test]
fn a_fourth_level_and_a_gap() {
    let machine = made_up(FOUR_LEVELS);
    assert_eq!(summary(&machine), ["L1d 32K/8/64 x?", "L3 6M/?/? x4", "L4 128M/16/64 x4"]);
    assert_eq!(machine.caches[0].sets, Some(64), "follows from the other three");
    let last = machine.last_level().unwrap();
    assert_eq!((last.level, last.sets), (4, Some(131_072)));
    assert!(last.probably_shared, "64 MiB for each of two cores");
    assert_eq!(machine.last_private_level().unwrap().level, 3);
    assert!(machine.l2().assumed && !machine.l3().assumed);
    // A level without ways cannot be modelled and is left out, not made up.
    assert_eq!(machine.cache_specs().iter().map(|spec| spec.level).collect::<Vec<_>>(), [1, 4]);
    assert_eq!((machine.physical_cores(), machine.allowed_cpus().len()), (2, 4));
}

#[test]
fn zeros_and_nonsense_are_unknown() {
    let machine = made_up(
        "\
sys/devices/system/cpu/online=0
sys/devices/system/cpu/cpu0/cache/index0/level=1
sys/devices/system/cpu/cpu0/cache/index0/type=Data
sys/devices/system/cpu/cpu0/cache/index0/size=0K
sys/devices/system/cpu/cpu0/cache/index0/ways_of_associativity=0
sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size=0
sys/devices/system/cpu/cpu0/cache/index0/number_of_sets=0
sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list=
sys/devices/system/cpu/cpu0/cache/index1/level=2
sys/devices/system/cpu/cpu0/cache/index1/type=Unified
sys/devices/system/cpu/cpu0/cache/index1/size=99999999999999999999K
sys/devices/system/cpu/cpu0/cache/index1/ways_of_associativity=eight
sys/devices/system/cpu/cpu0/cache/index2/level=0
sys/devices/system/cpu/cpu0/cache/index2/type=Unified
sys/devices/system/cpu/cpu0/cache/index3/level=300
sys/devices/system/cpu/cpu0/cache/index3/type=Unified
sys/devices/system/cpu/cpu0/cache/index4/level=3
sys/devices/system/cpu/cpu0/cache/index4/type=Strange
sys/devices/system/cpu/cpu0/cache/index5/type=Unified
sys/devices/system/cpu/cpu0/cpu_capacity=0
sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq=0
sys/devices/system/cpu/cpufreq/policy0/x=0
",
    );
    assert_eq!(summary(&machine), ["L1d ?/?/? x?", "L2 ?/?/? x?"]);
    assert!(machine.l1d().assumed && machine.l2().assumed && machine.l3().assumed);
    assert_eq!((machine.physical_cores(), machine.core_classes()), (1, 1));
    assert_eq!((machine.cpus[0].capacity, machine.cpus[0].max_khz), (None, None));
}

#[test]
fn a_fully_associative_cache_has_one_set() {
    let machine = made_up(
        "\
sys/devices/system/cpu/cpu0/cache/index0/level=1
sys/devices/system/cpu/cpu0/cache/index0/type=Data
sys/devices/system/cpu/cpu0/cache/index0/size=4K
sys/devices/system/cpu/cpu0/cache/index0/ways_of_associativity=0
sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size=64
sys/devices/system/cpu/cpu0/cache/index0/number_of_sets=1
",
    );
    assert_eq!(machine.caches[0].ways, Some(64));
}

#[test]
fn a_cpuset_limits_what_is_used() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/topology/hybrid-i7-1370p.txt");
    let mut text = std::fs::read_to_string(path).unwrap();
    text.push_str("proc/self/status=Cpus_allowed_list: 2-3,12-13\n");
    let machine = made_up(&text);
    assert_eq!(machine.cpus.len(), 20);
    assert_eq!(machine.allowed_cpus(), [2, 3, 12, 13]);
    assert_eq!(machine.physical_cores(), 3);
    assert_eq!(machine.l1d().bytes, 48 << 10);
    // Only slow cores allowed: the caches are theirs.
    let slow = made_up(&text.replace("2-3,12-13", "12-13"));
    assert_eq!((slow.l1d().bytes, slow.l2().bytes), (32 << 10, 2 << 20));
}

#[test]
fn nothing_at_all_is_read_without_a_complaint() {
    let machine = made_up("nothing=1\n");
    assert_eq!(machine, Topology::default());
    assert!(machine.physical_cores() >= 1 && machine.default_threads() >= 1);
    assert!(machine.l3().assumed);
    assert_eq!(Topology::from_root(Path::new("/does/not/exist")), Topology::default());
}

#[test]
fn an_override_replaces_levels_and_adds_missing_ones() {
    let mut machine = made_up(FOUR_LEVELS);
    machine.override_caches(&caches::parse("L2=2M/16/64,L1d=48K/12/64").unwrap());
    assert_eq!(summary(&machine), ["L1d 48K/12/64 x?", "L2 2M/16/64 x?", "L3 6M/?/? x4", "L4 128M/16/64 x4"]);
    assert_eq!(machine.caches[1].source, Source::Override);
    assert_eq!(machine.caches[1].kind, CacheKind::Unified);
    assert!(!machine.l2().assumed);
}

#[test]
fn the_host_is_read() {
    let host = Topology::host();
    assert!(host.physical_cores() >= 1);
    assert!(host.l1d().bytes >= 4 << 10 && host.line_bytes().bytes.is_power_of_two());
    for cache in &host.caches {
        assert!(cache.level >= 1 && cache.bytes != Some(0) && cache.ways != Some(0), "{cache:?}");
    }
}

//! Threads pinned to cores, and whether that was honoured.
//!
//! `core_affinity` does the pinning. It sees only the CPUs that are still allowed once a thread is
//! pinned, and aborts on numbers of 1024 and more: the allowed CPUs are collected once, before the first
//! pinning, numbers are checked, and the mask and the current CPU are read back afterwards.

use super::topology::Topology;
use core_affinity::CoreId;
use std::sync::OnceLock;

/// CPU numbers from here on cannot be named to the system's fixed-size mask.
const MAX_CPUS: usize = 1024;

/// What became of a wish to be pinned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Pinning {
    /// The thread runs on this CPU and on no other.
    Pinned {
        /// The logical CPU.
        cpu: usize,
    },
    /// The system accepted or refused it and the thread may run elsewhere.
    NotHonoured {
        /// The logical CPU that was asked for.
        cpu: usize,
        /// What was seen instead.
        reason: String,
    },
    /// It cannot be asked for.
    Unsupported {
        /// Why.
        reason: String,
    },
}

impl Pinning {
    /// `pinned`, `not honoured` or `unsupported`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pinned { .. } => "pinned",
            Self::NotHonoured { .. } => "not honoured",
            Self::Unsupported { .. } => "unsupported",
        }
    }

    /// The CPU, where the thread is pinned.
    pub fn cpu(&self) -> Option<usize> {
        match self {
            Self::Pinned { cpu } => Some(*cpu),
            _ => None,
        }
    }
}

/// The logical CPUs that the process was allowed when this was first asked, ascending.
pub fn allowed() -> &'static [usize] {
    static ALLOWED: OnceLock<Vec<usize>> = OnceLock::new();
    ALLOWED.get_or_init(|| {
        let listed = Topology::host().allowed_cpus();
        if !listed.is_empty() {
            return listed;
        }
        core_affinity::get_core_ids().into_iter().flatten().map(|core| core.id).collect()
    })
}

/// CPUs for `threads` workers: one on each core of the fastest class first, then the slower cores, then
/// the cores' other hardware threads. The first CPU of the machine, which serves interrupts, comes last
/// among its equals.
pub fn order(topology: &Topology) -> Vec<usize> {
    let mut cpus: Vec<_> = topology.cpus.iter().filter(|cpu| cpu.allowed).collect();
    let first_of_core = |id: usize, core: usize| {
        topology.cpus.iter().filter(|cpu| cpu.allowed && cpu.core == core).map(|cpu| cpu.id).min() == Some(id)
    };
    cpus.sort_by_key(|cpu| (!first_of_core(cpu.id, cpu.core), cpu.class, cpu.id == 0, cpu.id));
    cpus.into_iter().map(|cpu| cpu.id).collect()
}

/// Pins the calling thread to a logical CPU and reads back whether it holds.
pub fn pin(cpu: usize) -> Pinning {
    let allowed = allowed();
    if cpu >= MAX_CPUS {
        return Pinning::Unsupported {
            reason: format!("CPU numbers of {MAX_CPUS} and more cannot be named"),
        };
    }
    if !allowed.is_empty() && !allowed.contains(&cpu) {
        return Pinning::NotHonoured { cpu, reason: "the process may not run on that CPU".to_owned() };
    }
    if !core_affinity::set_for_current(CoreId { id: cpu }) {
        return Pinning::NotHonoured { cpu, reason: "the system refused".to_owned() };
    }
    verify(cpu, current_mask().as_deref(), current_cpu())
}

/// Pins the calling thread to the best CPU that it may use.
pub fn pin_best() -> Pinning {
    match order(Topology::host()).first().or(allowed().first()) {
        Some(&cpu) => pin(cpu),
        None => Pinning::Unsupported { reason: "the system lists no CPUs".to_owned() },
    }
}

/// Whether mask and current CPU are those that were asked for.
fn verify(cpu: usize, mask: Option<&[usize]>, current: Option<usize>) -> Pinning {
    match (mask, current) {
        (Some(&[only]), Some(now)) if only == cpu && now == cpu => Pinning::Pinned { cpu },
        (Some(mask), _) if mask != [cpu] => {
            Pinning::NotHonoured { cpu, reason: format!("the mask read back names {} CPUs", mask.len()) }
        }
        (Some(_), Some(now)) => {
            Pinning::NotHonoured { cpu, reason: format!("the thread still runs on CPU {now}") }
        }
        _ => Pinning::NotHonoured { cpu, reason: "this system cannot say where a thread runs".to_owned() },
    }
}

/// Pins the calling thread and lets it go again when dropped.
#[derive(Debug)]
pub struct Pinned {
    /// What became of it.
    pub pinning: Pinning,
    before: Option<Vec<usize>>,
}

impl Pinned {
    /// Pins to the best CPU.
    pub fn best() -> Self {
        let before = current_mask();
        Self { pinning: pin_best(), before }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            set_mask(before);
        }
    }
}

/// A pool of threads, one pinned to each of the best CPUs, and what became of each.
///
/// More threads than CPUs share them in turn.
///
/// # Errors
/// The system gives no more threads.
pub fn pinned_pool(threads: usize) -> Result<(rayon::ThreadPool, Vec<Pinning>), rayon::ThreadPoolBuildError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.max(1)).build()?;
    let cpus = order(Topology::host());
    let pinnings = pool.broadcast(|thread| match cpus.get(thread.index() % cpus.len().max(1)) {
        Some(&cpu) => pin(cpu),
        None => Pinning::Unsupported { reason: "the system lists no CPUs".to_owned() },
    });
    Ok((pool, pinnings))
}

/// Runs the calling thread on every allowed CPU in turn and lets it go; returns how many it was seen on.
pub(crate) fn tour() -> u64 {
    let Some(before) = current_mask() else { return 0 };
    let mut visited = 0;
    for &cpu in allowed().iter().filter(|&&cpu| cpu < MAX_CPUS).take(8) {
        visited += u64::from(set_mask(&[cpu]) && current_cpu() == Some(cpu));
    }
    set_mask(&before);
    visited
}

#[cfg(target_os = "linux")]
mod system {
    /// Words of a mask for 65536 CPUs, more than a kernel can be built for.
    const WORDS: usize = 1024;

    pub(super) fn current_mask() -> Option<Vec<usize>> {
        let mut words = vec![0_u64; WORDS];
        let bytes = size_of_val(words.as_slice());
        // SAFETY: the system call writes at most `bytes` bytes, which `words` has; 0 is this thread.
        let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, bytes, words.as_mut_ptr()) };
        if written < 0 {
            return None;
        }
        let set = |(place, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| place * 64 + bit)
        };
        Some(words.iter().enumerate().flat_map(set).collect())
    }

    pub(super) fn set_mask(cpus: &[usize]) -> bool {
        let mut words = vec![0_u64; WORDS];
        for &cpu in cpus {
            if let Some(word) = words.get_mut(cpu / 64) {
                *word |= 1 << (cpu % 64);
            }
        }
        // SAFETY: the system call reads `size_of_val(words)` bytes of `words`; 0 is this thread.
        let result = unsafe {
            libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(words.as_slice()), words.as_ptr())
        };
        result == 0
    }

    pub(super) fn current_cpu() -> Option<usize> {
        // SAFETY: sched_getcpu has no arguments and touches no memory of ours.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn current_mask() -> Option<Vec<usize>> {
        None
    }

    pub(super) fn set_mask(_: &[usize]) -> bool {
        false
    }

    pub(super) fn current_cpu() -> Option<usize> {
        None
    }
}

use system::{current_cpu, current_mask, set_mask};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_back_decides() {
        assert_eq!(verify(3, Some(&[3]), Some(3)), Pinning::Pinned { cpu: 3 });
        for (mask, current) in [
            (Some(&[3_usize, 4][..]), Some(3)),
            (Some(&[4][..]), Some(3)),
            (Some(&[][..]), Some(3)),
            (Some(&[3][..]), Some(4)),
            (Some(&[3][..]), None),
            (None, Some(3)),
        ] {
            assert_eq!(verify(3, mask, current).name(), "not honoured", "{mask:?} {current:?}");
        }
    }

    #[test]
    fn numbers_that_do_not_fit_the_mask_are_refused_before_they_abort() {
        for cpu in [1024, 5000, usize::MAX] {
            assert_eq!(pin(cpu).name(), "unsupported");
        }
        assert_eq!(pin(1023).name(), "not honoured", "no test machine allows CPU 1023");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_guard_pins_and_lets_go() {
        // A thread of its own: the test's own thread keeps its mask.
        std::thread::spawn(|| {
            let before = current_mask();
            let guard = Pinned::best();
            let cpu = guard.pinning.cpu().expect("Linux pins a thread to a CPU that it may use");
            assert_eq!(current_mask(), Some(vec![cpu]));
            // The allowed CPUs are those from before the pinning.
            assert!(allowed().len() >= before.as_ref().map_or(0, |mask| mask.len().min(1)));
            drop(guard);
            assert_eq!(current_mask(), before);
        })
        .join()
        .unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn workers_get_a_core_each() {
        let (pool, pinnings) = pinned_pool(allowed().len()).unwrap();
        let mut cpus: Vec<usize> = pinnings.iter().filter_map(Pinning::cpu).collect();
        cpus.sort_unstable();
        assert_eq!(cpus, allowed());
        assert_eq!(pool.current_num_threads(), cpus.len());
    }

    #[test]
    fn fast_cores_come_first_then_slow_ones_then_siblings() {
        let mut topology = Topology::default();
        // Two fast cores of two threads each (0-1, 2-3) and two slow cores (4, 5); 3 is not allowed.
        for (id, core, class, allowed) in [
            (0, 0, 0, true),
            (1, 0, 0, true),
            (2, 2, 0, true),
            (3, 2, 0, false),
            (4, 4, 1, true),
            (5, 5, 1, true),
        ] {
            topology.cpus.push(super::super::topology::Cpu {
                id,
                core,
                package: None,
                node: None,
                max_khz: None,
                capacity: None,
                class,
                allowed,
            });
        }
        assert_eq!(order(&topology), [2, 0, 4, 5, 1]);
    }
}

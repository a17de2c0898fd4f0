//! Counters of the Linux kernel, through the crate `perf-event`.
//!
//! A group is read counter by counter after it has been stopped as a whole: reading it in one call would
//! panic inside the crate where a member failed to open, and a counter that the kernel could not place
//! would look like a count of zero.

use super::{Backend, Event, Reading, Session};
use perf_event::events::{Cache, CacheOp, CacheResult, Event as PerfEvent, Hardware, Software, WhichCache};
use perf_event::{Builder, Counter, Group};
use std::io;
use std::os::fd::AsRawFd;

pub(super) struct Kernel;

impl Backend for Kernel {
    fn open(&self, events: &[Event]) -> io::Result<Box<dyn Session>> {
        // The group's leader is a software event, which no CPU can lack; kernels that are told to refuse
        // all events to this process refuse it too.
        let mut group = Group::new()?;
        let mut counters = Vec::with_capacity(events.len());
        for &event in events {
            let mut builder = Builder::new().group(&mut group).kind(perf_kind(event));
            if event.in_kernel() {
                // The switch itself happens in the kernel: counting user mode alone would read 0.
                builder.include_kernel();
            }
            counters.push(builder.build()?);
        }
        Ok(Box::new(Counters { group, counters }))
    }

    fn paranoid(&self) -> Option<i32> {
        std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
    }
}

struct Counters {
    group: Group,
    counters: Vec<Counter>,
}

impl Session for Counters {
    fn start(&mut self) -> io::Result<()> {
        self.group.disable()?;
        self.group.reset()?;
        self.group.enable()
    }

    fn stop(&mut self) -> io::Result<Vec<Reading>> {
        self.group.disable()?;
        self.counters.iter().map(read).collect()
    }
}

/// Value, time enabled, time running. What is shorter is a counter in an error state: it reads nothing.
fn read(counter: &Counter) -> io::Result<Reading> {
    let mut words = [0_u64; 3];
    let bytes = size_of_val(&words);
    // SAFETY: the descriptor is open as long as `counter` lives, and `words` has room for `bytes` bytes,
    // of which any pattern is a valid u64.
    let got = unsafe { libc::read(counter.as_raw_fd(), words.as_mut_ptr().cast(), bytes) };
    match usize::try_from(got) {
        Err(_) => Err(io::Error::last_os_error()),
        Ok(got) if got == bytes => {
            Ok(Reading { value: words[0], enabled_ns: words[1], running_ns: words[2] })
        }
        Ok(_) => Ok(Reading::default()),
    }
}

fn perf_kind(event: Event) -> PerfEvent {
    let cache = |which, result| PerfEvent::Cache(Cache { which, operation: CacheOp::READ, result });
    match event {
        Event::Cycles => Hardware::CPU_CYCLES.into(),
        Event::Instructions => Hardware::INSTRUCTIONS.into(),
        Event::L1dReads => cache(WhichCache::L1D, CacheResult::ACCESS),
        Event::L1dMisses => cache(WhichCache::L1D, CacheResult::MISS),
        Event::LlcReferences => Hardware::CACHE_REFERENCES.into(),
        Event::LlcMisses => Hardware::CACHE_MISSES.into(),
        Event::DtlbMisses => cache(WhichCache::DTLB, CacheResult::MISS),
        Event::BranchMisses => Hardware::BRANCH_MISSES.into(),
        Event::PageFaults => Software::PAGE_FAULTS.into(),
        Event::ContextSwitches => Software::CONTEXT_SWITCHES.into(),
        Event::Migrations => Software::CPU_MIGRATIONS.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{State, probe};
    use super::*;

    /// Whether this kernel lets the process open any counter at all.
    fn allowed() -> bool {
        Kernel.open(&[Event::PageFaults]).is_ok()
    }

    #[test]
    fn page_faults_count_their_control_or_say_why_not() {
        let state = probe(&Kernel, Event::PageFaults).state;
        if allowed() {
            assert_eq!(state, State::Ok);
        } else {
            assert!(state.reason().is_some(), "{state:?}");
        }
    }

    #[test]
    fn a_session_starts_from_zero_each_time() {
        if !allowed() {
            // Refused as a whole: then starting cannot be tried, and the probe has to say so.
            assert!(!probe(&Kernel, Event::PageFaults).state.usable());
            return;
        }
        let mut session = Kernel.open(&[Event::PageFaults]).unwrap();
        let touch = || {
            let mut control = super::super::control::Control::new(Event::PageFaults);
            control.run()
        };
        let mut counts = Vec::new();
        for _ in 0..2 {
            session.start().unwrap();
            let expected = touch();
            let reading = session.stop().unwrap()[0];
            assert!(reading.value >= expected, "{reading:?}");
            counts.push(reading.value);
        }
        assert!(counts[1] < counts[0] * 2, "the second did not add to the first: {counts:?}");
    }
}

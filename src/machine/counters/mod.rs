//! Hardware and software counters: which can be had, why the others cannot, and what would help.
//!
//! Every event is first probed alone ([`probe`]) around a piece of work whose count is known
//! (`control`), and ends in one [`State`]. Only events that passed are then counted around real work
//! ([`count()`]), in groups of at most [`GROUP`]. What is absent has no value; it is never shown as 0.
//!
//! The system calls are behind [`Backend`], so that every state is tested without hardware.

mod control;
mod count;
#[cfg(test)]
pub(crate) mod fake;
#[cfg(target_os = "linux")]
mod kernel;

pub use count::{Count, count, count_in_pool};

use std::fmt;
use std::io;
use std::sync::OnceLock;

/// Most events counted at once: what every CPU's counters can hold together.
pub const GROUP: usize = 4;

/// Share of the time that a counter must have run to count as not multiplexed; switching it on and off
/// takes a little.
const FULL_COVERAGE: f64 = 0.99;

/// What can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Event {
    /// Core clock cycles.
    Cycles,
    /// Retired instructions.
    Instructions,
    /// Reads that went to the L1 data cache.
    L1dReads,
    /// Reads that missed it.
    L1dMisses,
    /// Accesses to the last-level cache.
    LlcReferences,
    /// Accesses that missed it.
    LlcMisses,
    /// Reads whose page was in no first-level TLB.
    DtlbMisses,
    /// Mispredicted branches.
    BranchMisses,
    /// Pages that the kernel had to provide.
    PageFaults,
    /// Times the thread gave up its CPU or lost it.
    ContextSwitches,
    /// Times the thread moved to another CPU.
    Migrations,
}

impl Event {
    /// All events, in the order in which they are listed.
    pub const ALL: [Self; 11] = [
        Self::Cycles,
        Self::Instructions,
        Self::L1dReads,
        Self::L1dMisses,
        Self::LlcReferences,
        Self::LlcMisses,
        Self::DtlbMisses,
        Self::BranchMisses,
        Self::PageFaults,
        Self::ContextSwitches,
        Self::Migrations,
    ];

    /// Its name, as `machine --json`, records and `RESTRIDE_EVENT` write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::L1dReads => "l1d-reads",
            Self::L1dMisses => "l1d-misses",
            Self::LlcReferences => "llc-references",
            Self::LlcMisses => "llc-misses",
            Self::DtlbMisses => "dtlb-misses",
            Self::BranchMisses => "branch-misses",
            Self::PageFaults => "page-faults",
            Self::ContextSwitches => "context-switches",
            Self::Migrations => "migrations",
        }
    }

    /// The event of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Whether the kernel counts it, without a hardware counter.
    pub fn is_software(self) -> bool {
        matches!(self, Self::PageFaults | Self::ContextSwitches | Self::Migrations)
    }

    /// Whether it happens while the kernel runs, so that counting user mode alone would read 0.
    pub(crate) fn in_kernel(self) -> bool {
        matches!(self, Self::ContextSwitches | Self::Migrations)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether an event can be counted here.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum State {
    /// It counts what it should.
    Ok,
    /// It had to share its counter and ran only part of the time; values are scaled up.
    Multiplexed {
        /// Share (0 to 1) of the time that it ran.
        coverage: f64,
    },
    /// It was accepted and never ran.
    NotScheduled,
    /// It ran and counted next to nothing where much was to be counted.
    SuspectZero {
        /// The least that the control makes.
        expected: u64,
        /// What was counted.
        got: u64,
    },
    /// The kernel has no such counter here.
    NoPmu {
        /// Error number of the refusal.
        errno: i32,
    },
    /// The kernel does not let this process have it.
    Forbidden {
        /// Error number of the refusal.
        errno: i32,
        /// `perf_event_paranoid`, where it can be read.
        paranoid: Option<i32>,
    },
    /// This system has no such interface.
    UnsupportedOs,
}

impl State {
    /// Its name, as JSON writes it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ok => "Ok",
            Self::Multiplexed { .. } => "Multiplexed",
            Self::NotScheduled => "NotScheduled",
            Self::SuspectZero { .. } => "SuspectZero",
            Self::NoPmu { .. } => "NoPmu",
            Self::Forbidden { .. } => "Forbidden",
            Self::UnsupportedOs => "UnsupportedOs",
        }
    }

    /// Whether values of it mean something.
    pub fn usable(&self) -> bool {
        matches!(self, Self::Ok | Self::Multiplexed { .. })
    }

    /// Why it is so, in a sentence; `None` where all is well.
    pub fn reason(&self) -> Option<String> {
        match *self {
            Self::Ok => None,
            Self::Multiplexed { coverage } => Some(format!(
                "it shared its counter and ran {:.0} % of the time, values are scaled",
                coverage * 100.0
            )),
            Self::NotScheduled => Some("the kernel accepted it and never ran it".to_owned()),
            Self::SuspectZero { expected, got } => {
                Some(format!("it counted {got} where the control makes at least {expected}"))
            }
            Self::NoPmu { errno } => {
                let under = super::topology::Topology::host().hypervisor.as_deref();
                Some(match under {
                    Some(name) if name != "unnamed" => {
                        format!("this virtual machine ({name}) has no such counter ({})", error_text(errno))
                    }
                    Some(_) => format!("this virtual machine has no such counter ({})", error_text(errno)),
                    None => format!("the kernel has no such counter on this machine ({})", error_text(errno)),
                })
            }
            Self::Forbidden { errno, paranoid } => Some(match paranoid {
                Some(level) => {
                    format!(
                        "the kernel refuses it to this process (perf_event_paranoid is {level}; {})",
                        error_text(errno)
                    )
                }
                None => format!("the kernel refuses it to this process ({})", error_text(errno)),
            }),
            Self::UnsupportedOs => Some(format!("{} has no perf events", std::env::consts::OS)),
        }
    }

    /// What would make it count, in a sentence; `None` where nothing is to be done.
    pub fn remedy(&self, event: Event) -> Option<String> {
        let model = "the cache model (restride explain --model) needs no counters";
        match *self {
            Self::Ok => None,
            Self::Multiplexed { .. } => Some("count fewer events at once, or repeat for longer".to_owned()),
            Self::NotScheduled => Some(
                "another program holds the counters: stop it, or free one with sysctl kernel.nmi_watchdog=0"
                    .to_owned(),
            ),
            Self::SuspectZero { .. } => Some(format!("do not trust it on this machine; {model}")),
            Self::NoPmu { .. } if super::topology::Topology::host().hypervisor.is_some() => Some(format!(
                "let the host give this virtual machine a performance monitoring unit, or run on bare metal; {model}"
            )),
            Self::NoPmu { .. } => Some(format!("a newer kernel may know this CPU; {model}")),
            Self::Forbidden { paranoid, .. } => {
                let allowed = if event.in_kernel() { 1 } else { 2 };
                Some(match paranoid {
                    Some(level) if level > allowed => format!(
                        "run sysctl kernel.perf_event_paranoid={allowed} as root, or give the program CAP_PERFMON"
                    ),
                    _ => "in a container, start it with CAP_PERFMON and a seccomp profile that allows perf_event_open"
                        .to_owned(),
                })
            }
            Self::UnsupportedOs => Some(format!("run on Linux; {model}")),
        }
    }

    /// The state that an error of opening or reading means.
    pub(crate) fn of_error(error: &io::Error, backend: &dyn Backend) -> Self {
        let errno = error.raw_os_error().unwrap_or(0);
        match error.kind() {
            io::ErrorKind::Unsupported if errno == 0 => Self::UnsupportedOs,
            io::ErrorKind::PermissionDenied => Self::Forbidden { errno, paranoid: backend.paranoid() },
            io::ErrorKind::ResourceBusy => Self::NotScheduled,
            _ => Self::NoPmu { errno },
        }
    }
}

/// An error number by its name where it is one of the usual refusals: the system's own text for the most
/// usual one, "no such file", would mislead.
fn error_text(errno: i32) -> String {
    let name = match errno {
        1 => "EPERM",
        2 => "ENOENT",
        13 => "EACCES",
        16 => "EBUSY",
        19 => "ENODEV",
        22 => "EINVAL",
        24 => "EMFILE",
        38 => "ENOSYS",
        95 => "EOPNOTSUPP",
        _ => return io::Error::from_raw_os_error(errno).to_string(),
    };
    format!("{name}, error {errno}")
}

/// What one counter read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Events counted while it ran.
    pub value: u64,
    /// Nanoseconds between start and stop.
    pub enabled_ns: u64,
    /// Nanoseconds of those that it ran.
    pub running_ns: u64,
}

impl Reading {
    /// Share (0 to 1) of the time that it ran.
    pub fn coverage(&self) -> f64 {
        match self.enabled_ns {
            0 => 0.0,
            enabled => (self.running_ns as f64 / enabled as f64).min(1.0),
        }
    }

    /// The value for the whole time; `None` where it never ran.
    pub fn scaled(&self) -> Option<f64> {
        match self.running_ns {
            0 => None,
            running if running >= self.enabled_ns => Some(self.value as f64),
            running => Some(self.value as f64 * (self.enabled_ns as f64 / running as f64)),
        }
    }

    /// The state that its times mean.
    pub(crate) fn state(&self) -> State {
        match self.coverage() {
            _ if self.running_ns == 0 => State::NotScheduled,
            coverage if coverage < FULL_COVERAGE => State::Multiplexed { coverage },
            _ => State::Ok,
        }
    }
}

/// Opens counters of the calling thread.
pub trait Backend: Sync {
    /// Opens events as one group, stopped and at zero.
    ///
    /// # Errors
    /// The kernel's refusal of the first event that it refuses.
    fn open(&self, events: &[Event]) -> io::Result<Box<dyn Session>>;

    /// `perf_event_paranoid`, where it can be read.
    fn paranoid(&self) -> Option<i32>;
}

/// Open counters of one thread.
pub trait Session {
    /// Sets the counters to zero and starts them.
    ///
    /// # Errors
    /// The kernel's.
    fn start(&mut self) -> io::Result<()>;

    /// Stops them and reads each, in the order in which they were opened.
    ///
    /// # Errors
    /// The kernel's.
    fn stop(&mut self) -> io::Result<Vec<Reading>>;
}

/// Counters of this system.
pub fn system() -> &'static dyn Backend {
    #[cfg(target_os = "linux")]
    return &kernel::Kernel;
    #[cfg(not(target_os = "linux"))]
    &NoKernel
}

#[cfg(not(target_os = "linux"))]
struct NoKernel;

#[cfg(not(target_os = "linux"))]
impl Backend for NoKernel {
    fn open(&self, _: &[Event]) -> io::Result<Box<dyn Session>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn paranoid(&self) -> Option<i32> {
        None
    }
}

/// An event and whether it can be counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// The event.
    pub event: Event,
    /// Its state.
    pub state: State,
}

/// Probes one event alone, around work that makes it happen a known number of times.
pub fn probe(backend: &dyn Backend, event: Event) -> Probe {
    let state = match run_control(backend, event) {
        Err(error) => State::of_error(&error, backend),
        Ok((reading, expected)) => match (reading.state(), reading.scaled()) {
            (state, Some(value)) if state.usable() && value < expected as f64 => {
                State::SuspectZero { expected, got: value as u64 }
            }
            (state, _) => state,
        },
    };
    Probe { event, state }
}

fn run_control(backend: &dyn Backend, event: Event) -> io::Result<(Reading, u64)> {
    let mut session = backend.open(&[event])?;
    let mut work = control::Control::new(event);
    session.start()?;
    let expected = work.run();
    let readings = session.stop()?;
    Ok((readings.first().copied().unwrap_or_default(), expected))
}

/// Opens the one event of that name, probed first.
///
/// # Errors
/// One sentence: a name that is no event, or the state that the event is in, why, and what would help.
pub fn open_named(backend: &dyn Backend, name: &str) -> Result<(Event, Box<dyn Session>), String> {
    let Some(event) = Event::from_name(name) else {
        let known: Vec<&str> = Event::ALL.iter().map(|event| event.name()).collect();
        return Err(format!("{name} is no event: use {}", known.join(", ")));
    };
    let state = probe(backend, event).state;
    if !state.usable() {
        let parts = [state.reason(), state.remedy(event)].into_iter().flatten().collect::<Vec<_>>();
        return Err(format!("{name} is {}: {}", state.name(), parts.join("; ")));
    }
    match backend.open(&[event]) {
        Ok(session) => Ok((event, session)),
        Err(error) => Err(format!("{name} was {} and cannot be opened any more: {error}", state.name())),
    }
}

/// The state of every event on this system, probed once and kept.
pub fn host_probes() -> &'static [Probe] {
    static PROBES: OnceLock<Vec<Probe>> = OnceLock::new();
    PROBES.get_or_init(|| Event::ALL.into_iter().map(|event| probe(system(), event)).collect())
}

#[cfg(test)]
mod tests {
    use super::fake::{Fake, Script};
    use super::*;

    fn state_of(script: Script) -> State {
        probe(&Fake::new(Some(2)).script(Event::Cycles, script), Event::Cycles).state
    }

    fn reading(value: u64, enabled_ns: u64, running_ns: u64) -> Script {
        Script::Reads(Reading { value, enabled_ns, running_ns })
    }

    #[test]
    fn every_state_is_reached() {
        assert_eq!(state_of(reading(u64::MAX, 1000, 1000)), State::Ok);
        assert_eq!(state_of(reading(u64::MAX, 1000, 250)), State::Multiplexed { coverage: 0.25 });
        assert_eq!(state_of(reading(0, 1000, 0)), State::NotScheduled);
        assert_eq!(state_of(reading(0, 0, 0)), State::NotScheduled);
        assert!(matches!(state_of(reading(0, 1000, 1000)), State::SuspectZero { got: 0, .. }));
        assert!(matches!(state_of(reading(3, 1000, 500)), State::SuspectZero { got: 6, .. }));
        for errno in [2, 19, 95, 22, 38, 24] {
            assert_eq!(state_of(Script::Refuses(errno)), State::NoPmu { errno }, "{errno}");
        }
        for errno in [1, 13] {
            assert_eq!(state_of(Script::Refuses(errno)), State::Forbidden { errno, paranoid: Some(2) });
        }
        assert_eq!(state_of(Script::Refuses(16)), State::NotScheduled, "EBUSY: someone else has it");
        assert_eq!(state_of(Script::Unsupported), State::UnsupportedOs);
        assert_eq!(state_of(Script::FailsToRead(5)), State::NoPmu { errno: 5 });
        assert_eq!(state_of(Script::ReadsNothing), State::NotScheduled);
    }

    #[test]
    fn whatever_cannot_be_counted_says_why_and_what_to_do() {
        let states = [
            State::Multiplexed { coverage: 0.5 },
            State::NotScheduled,
            State::SuspectZero { expected: 100, got: 0 },
            State::NoPmu { errno: 2 },
            State::Forbidden { errno: 13, paranoid: Some(3) },
            State::Forbidden { errno: 1, paranoid: None },
            State::UnsupportedOs,
        ];
        for state in states {
            assert!(state.reason().is_some_and(|text| !text.contains('\n')), "{state:?}");
            assert!(state.remedy(Event::Cycles).is_some(), "{state:?}");
        }
        assert_eq!((State::Ok.reason(), State::Ok.remedy(Event::Cycles)), (None, None));
        let remedy = |event, paranoid| State::Forbidden { errno: 13, paranoid }.remedy(event).unwrap();
        assert!(remedy(Event::Cycles, Some(3)).contains("perf_event_paranoid=2"));
        assert!(remedy(Event::Migrations, Some(2)).contains("perf_event_paranoid=1"));
        // The level would allow it: something else refuses.
        assert!(remedy(Event::Cycles, Some(1)).contains("seccomp"));
    }

    #[test]
    fn an_event_that_is_asked_for_by_name_opens_or_says_why_not() {
        let opened = |script| {
            let fake = Fake::new(Some(2)).script(Event::Cycles, script);
            open_named(&fake, "cycles").map(|(event, _)| event)
        };
        let many = u64::MAX >> 1;
        assert_eq!(opened(reading(many, 1000, 1000)), Ok(Event::Cycles));
        assert_eq!(opened(reading(many, 1000, 500)), Ok(Event::Cycles));
        for (script, state) in [
            (Script::Refuses(2), "NoPmu"),
            (Script::Refuses(13), "Forbidden"),
            (Script::Unsupported, "UnsupportedOs"),
            (Script::ReadsNothing, "NotScheduled"),
            (reading(0, 1000, 1000), "SuspectZero"),
        ] {
            let why = opened(script).unwrap_err();
            assert!(why.starts_with(&format!("cycles is {state}: ")) && why.contains("; "), "{why}");
        }
        let why = open_named(&Fake::new(None), "l1d").map(|(event, _)| event).unwrap_err();
        assert!(why.starts_with("l1d is no event: use cycles, ") && why.contains("l1d-misses"), "{why}");
    }

    #[test]
    fn scaling_is_exact_where_nothing_is_to_scale() {
        let big = (1_u64 << 53) - 1;
        assert_eq!(Reading { value: big, enabled_ns: 7, running_ns: 7 }.scaled(), Some(big as f64));
        assert_eq!(Reading { value: 3, enabled_ns: 7, running_ns: 0 }.scaled(), None);
        assert_eq!(Reading { value: 3, enabled_ns: 8, running_ns: 2 }.scaled(), Some(12.0));
        // A kernel that claims to have run longer than it was enabled is believed no further.
        assert_eq!(Reading { value: 3, enabled_ns: 7, running_ns: 9 }.scaled(), Some(3.0));
        assert_eq!(Reading { value: 3, enabled_ns: 7, running_ns: 9 }.coverage(), 1.0);
    }

    #[test]
    fn names_are_unique_and_read_back() {
        for event in Event::ALL {
            assert_eq!(Event::from_name(event.name()), Some(event));
        }
        assert_eq!(Event::from_name("Cycles"), None);
    }

    #[test]
    fn the_host_answers_for_every_event() {
        let probes = host_probes();
        assert_eq!(probes.len(), Event::ALL.len());
        for probe in probes {
            assert_eq!(probe.state.reason().is_none(), probe.state == State::Ok, "{probe:?}");
        }
    }
}

//! The state a machine is in while something is measured, and what makes the figures doubtful.

use super::record::{Case, Environment};
use super::stats::Summary;
use crate::error::words::counted;
use crate::machine::affinity::Pinning;
use crate::machine::counters::{self, Event, Session};
use crate::machine::topology::Topology;
use std::time::Instant;

/// An interval wider than this share of its median, to either side, is noisy.
const WIDE: f64 = 0.05;
/// More of the cases than this share with a wide interval is worth saying.
const MANY: f64 = 0.1;
/// More stolen time than this share is worth saying.
const STEAL: f64 = 0.01;
/// More load than this share of the cores before the start is worth saying.
const LOAD: f64 = 0.5;

/// Watches the machine from its creation on.
pub struct Watch {
    start: Instant,
    load: Option<f64>,
    times: Option<Times>,
    migrations: Option<Box<dyn Session>>,
}

impl Watch {
    /// Begins; migrations are counted for the calling thread.
    pub fn start() -> Self {
        let migrations = counters::system()
            .open(&[Event::Migrations])
            .and_then(|mut session| session.start().map(|()| session));
        Self {
            start: Instant::now(),
            load: read("/proc/loadavg").as_deref().and_then(load),
            times: read("/proc/stat").as_deref().and_then(Times::read),
            migrations: migrations.ok(),
        }
    }

    /// Ends: the environment of everything measured since.
    pub fn finish(mut self, pinning: &Pinning, cases: &[Case]) -> Environment {
        let topology = Topology::host();
        let mut environment = Environment::default();
        environment.governor = topology.governor.clone();
        environment.load = self.load;
        environment.kernel = read("/proc/sys/kernel/osrelease").map(|text| text.trim().to_owned());
        environment.pinning = Some(pinning.name().to_owned());
        environment.cpu = pinning.cpu();
        let after = read("/proc/stat").as_deref().and_then(Times::read);
        environment.steal_share = self.times.zip(after).and_then(|(before, after)| after.steal_since(before));
        environment.migrations = self
            .migrations
            .take()
            .and_then(|mut session| session.stop().ok()?.first()?.scaled())
            .map(|count| count as u64);
        environment.isa = crate::Isa::active().ok().map(|isa| isa.name().to_owned());
        environment.threads = Some(topology.default_threads());
        environment.seconds = Some(self.start.elapsed().as_secs_f64());
        environment.noise = noise(&environment, topology.physical_cores(), cases);
        environment
    }
}

/// What makes figures doubtful, a sentence each.
fn noise(environment: &Environment, cores: usize, cases: &[Case]) -> Vec<String> {
    let mut found = Vec::new();
    let summaries: Vec<Summary> = cases.iter().filter_map(|case| Summary::of(&case.samples)).collect();
    let wide = summaries.iter().filter(|summary| summary.relative_half_width() > WIDE).count();
    if wide as f64 > summaries.len() as f64 * MANY {
        found.push(format!(
            "{wide} of {} {} an interval wider than {:.0} % of their median to either side",
            counted(summaries.len(), "case"),
            if wide == 1 { "has" } else { "have" },
            WIDE * 100.0
        ));
    }
    if let Some(steal) = environment.steal_share.filter(|&share| share > STEAL) {
        found.push(format!("the hypervisor gave {:.1} % of the CPUs' time to other machines", steal * 100.0));
    }
    if let Some(load) = environment.load.filter(|&load| load > cores as f64 * LOAD) {
        found.push(format!("the load was {load:.1} on {} before the start", counted(cores, "core")));
    }
    match (environment.pinning.as_deref(), environment.migrations) {
        (Some("pinned"), Some(moves)) if moves > 1 => {
            found.push(format!("the pinned thread was moved {}", counted(moves, "time")));
        }
        (Some("pinned"), _) => {}
        (Some(state), moves) => found.push(match moves {
            Some(moves) => format!("pinning was {state}, the thread moved {}", counted(moves, "time")),
            None => format!("pinning was {state}"),
        }),
        (None, _) => {}
    }
    if let Some(governor) =
        environment.governor.as_deref().filter(|name| *name == "powersave" || *name == "ondemand")
    {
        found.push(format!("the governor {governor} changes the frequency with the load"));
    }
    found
}

/// Total and stolen time of all CPUs, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    total: u64,
    steal: u64,
}

impl Times {
    /// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal; guest
    /// times after these are part of the first two.
    fn read(text: &str) -> Option<Self> {
        let mut words = text.lines().next()?.split_whitespace();
        if words.next() != Some("cpu") {
            return None;
        }
        let times: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
        let total = times.iter().try_fold(0_u64, |sum, &time| sum.checked_add(time))?;
        Some(Self { total, steal: *times.get(7)? })
    }

    /// The share (0 to 1) stolen since an earlier reading; `None` where no time has passed.
    fn steal_since(self, before: Self) -> Option<f64> {
        let total = self.total.checked_sub(before.total).filter(|&ticks| ticks > 0)?;
        let steal = self.steal.checked_sub(before.steal)?;
        Some((steal as f64 / total as f64).min(1.0))
    }
}

fn load(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite() && *load >= 0.0)
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use super::super::record::Kind;
    use super::*;

    #[test]
    fn stolen_time_is_a_share() {
        let times = |text: &str| Times::read(text).unwrap();
        let before = times("cpu  100 0 50 800 20 5 5 20 7 0\ncpu0 1 2 3");
        let after = times("cpu  150 0 60 900 20 5 5 60 9 0\n");
        assert_eq!(before, Times { total: 1000, steal: 20 });
        assert_eq!(after.steal_since(before), Some(0.2));
        assert_eq!(before.steal_since(before), None);
        assert_eq!(before.steal_since(after), None, "a clock that runs backwards says nothing");
        for bad in ["", "cpu", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"] {
            assert_eq!(Times::read(bad), None, "{bad}");
        }
        assert_eq!((load("0.57 0.48 0.23 3/99 11222"), load("x"), load("")), (Some(0.57), None, None));
    }

    fn case(samples: &[f64]) -> Case {
        let mut case = Case::new("a", Kind::Walk);
        case.samples = samples.to_vec();
        case
    }

    #[test]
    fn noise_is_said_and_quiet_is_not() {
        let mut environment = Environment::default();
        environment.pinning = Some("pinned".to_owned());
        environment.migrations = Some(1);
        environment.steal_share = Some(0.001);
        environment.load = Some(0.2);
        let quiet = [case(&[100.0, 101.0, 99.0]), case(&[0.0, 0.0]), case(&[])];
        assert_eq!(noise(&environment, 2, &quiet), Vec::<String>::new());
        environment.pinning = Some("not honoured".to_owned());
        environment.steal_share = Some(0.2);
        environment.load = Some(3.0);
        environment.governor = Some("powersave".to_owned());
        let said = noise(&environment, 2, &[case(&[100.0, 200.0, 300.0])]);
        assert_eq!(said.len(), 5, "{said:#?}");
        assert!(said[1].contains("20.0 %"), "{said:?}");
    }

    #[test]
    fn a_watch_ends_with_what_it_saw() {
        let environment = Watch::start().finish(&Pinning::Pinned { cpu: 0 }, &[]);
        assert_eq!(environment.pinning.as_deref(), Some("pinned"));
        assert!(environment.seconds.is_some_and(|seconds| seconds >= 0.0));
        assert!(environment.steal_share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }
}

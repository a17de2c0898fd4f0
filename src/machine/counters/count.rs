//! Counting around real work, on one thread or on all threads of a pool.

use super::{Backend, Event, GROUP, Probe, Reading, State};
use std::io;

/// What one event counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Count {
    /// The event.
    pub event: Event,
    /// Its state during this count.
    pub state: State,
    /// Events over the whole work, scaled where the counter was multiplexed; `None` where there is none.
    pub value: Option<f64>,
}

/// Counts around work on the calling thread; the work is run once for every group of events.
///
/// Events that did not pass their probe are not opened: they keep their state and have no value.
pub fn count(backend: &dyn Backend, probes: &[Probe], mut work: impl FnMut()) -> Vec<Count> {
    assemble(backend, probes, |events| {
        let mut session = backend.open(events)?;
        session.start()?;
        work();
        Ok(vec![session.stop()?])
    })
}

/// Counts around work on every thread of a pool, each thread counting itself, and adds them up.
///
/// `work` is given the number of its thread; it is run once on every thread for every group of events.
pub fn count_in_pool(
    backend: &dyn Backend,
    probes: &[Probe],
    pool: &rayon::ThreadPool,
    work: impl Fn(usize) + Sync,
) -> Vec<Count> {
    assemble(backend, probes, |events| {
        pool.broadcast(|thread| {
            let mut session = backend.open(events)?;
            session.start()?;
            work(thread.index());
            session.stop()
        })
        .into_iter()
        .collect()
    })
}

/// Runs the usable events group by group and puts all events back in order.
fn assemble(
    backend: &dyn Backend,
    probes: &[Probe],
    mut run: impl FnMut(&[Event]) -> io::Result<Vec<Vec<Reading>>>,
) -> Vec<Count> {
    let mut counts: Vec<Count> =
        probes.iter().map(|probe| Count { event: probe.event, state: probe.state, value: None }).collect();
    let usable: Vec<usize> = (0..counts.len()).filter(|&at| counts[at].state.usable()).collect();
    for group in usable.chunks(GROUP) {
        let events: Vec<Event> = group.iter().map(|&at| counts[at].event).collect();
        match run(&events) {
            Ok(threads) => {
                for (place, &at) in group.iter().enumerate() {
                    let readings =
                        threads.iter().map(|thread| thread.get(place).copied().unwrap_or_default());
                    (counts[at].state, counts[at].value) = sum(readings);
                }
            }
            Err(error) => {
                let state = State::of_error(&error, backend);
                group.iter().for_each(|&at| counts[at].state = state);
            }
        }
    }
    counts
}

/// Adds up the threads; one thread without a value leaves the sum without one, the least covered thread
/// says how much is scaled.
fn sum(readings: impl Iterator<Item = Reading>) -> (State, Option<f64>) {
    let (mut total, mut state) = (0.0, State::Ok);
    let mut any = false;
    for reading in readings {
        any = true;
        let Some(value) = reading.scaled() else { return (State::NotScheduled, None) };
        total += value;
        state = match (state, reading.state()) {
            (State::Multiplexed { coverage: a }, State::Multiplexed { coverage: b }) => {
                State::Multiplexed { coverage: a.min(b) }
            }
            (State::Ok, other) => other,
            (worse, _) => worse,
        };
    }
    if any { (state, Some(total)) } else { (State::NotScheduled, None) }
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, Script};
    use super::*;

    fn ok(value: u64) -> Script {
        Script::Reads(Reading { value, enabled_ns: 100, running_ns: 100 })
    }

    fn probes(states: &[(Event, State)]) -> Vec<Probe> {
        states.iter().map(|&(event, state)| Probe { event, state }).collect()
    }

    #[test]
    fn groups_hold_four_and_skip_what_failed() {
        let mut fake = Fake::new(None);
        let mut states = Vec::new();
        for (number, event) in Event::ALL.into_iter().enumerate() {
            fake = fake.script(event, ok(number as u64));
            let state = if event == Event::LlcMisses { State::NoPmu { errno: 2 } } else { State::Ok };
            states.push((event, state));
        }
        let mut runs = 0;
        let counts = count(&fake, &probes(&states), || runs += 1);
        assert_eq!(runs, 3);
        let opened = fake.opened.lock().unwrap();
        assert_eq!(opened.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
        assert!(!opened.iter().flatten().any(|event| *event == Event::LlcMisses));
        for (number, count) in counts.iter().enumerate() {
            let value = (count.event != Event::LlcMisses).then_some(number as f64);
            assert_eq!((count.event, count.value), (Event::ALL[number], value));
        }
    }

    #[test]
    fn a_group_that_fails_later_has_no_values() {
        let fake =
            Fake::new(Some(4)).script(Event::Cycles, ok(5)).script(Event::L1dReads, Script::Refuses(13));
        let states = [(Event::Cycles, State::Ok), (Event::L1dReads, State::Ok)];
        for count in count(&fake, &probes(&states), || {}) {
            assert_eq!(count.value, None);
            assert_eq!(count.state, State::Forbidden { errno: 13, paranoid: Some(4) });
        }
        // Too short an answer is an event that did not run.
        let fake = Fake::new(None).script(Event::Cycles, Script::ReadsNothing);
        let counted = count(&fake, &probes(&[(Event::Cycles, State::Ok)]), || {});
        assert_eq!((counted[0].state, counted[0].value), (State::NotScheduled, None));
    }

    #[test]
    fn zero_is_a_value_once_the_probe_has_passed() {
        let fake = Fake::new(None).script(Event::PageFaults, ok(0));
        let counted = count(&fake, &probes(&[(Event::PageFaults, State::Ok)]), || {});
        assert_eq!((counted[0].state, counted[0].value), (State::Ok, Some(0.0)));
    }

    #[test]
    fn threads_are_added_and_the_worst_coverage_is_kept() {
        let half = Reading { value: 10, enabled_ns: 100, running_ns: 50 };
        let quarter = Reading { value: 10, enabled_ns: 100, running_ns: 25 };
        let full = Reading { value: 10, enabled_ns: 100, running_ns: 100 };
        let never = Reading { value: 0, enabled_ns: 100, running_ns: 0 };
        assert_eq!(sum([full, full].into_iter()), (State::Ok, Some(20.0)));
        assert_eq!(
            sum([half, quarter, full].into_iter()),
            (State::Multiplexed { coverage: 0.25 }, Some(70.0))
        );
        assert_eq!(sum([full, never].into_iter()), (State::NotScheduled, None));
        assert_eq!(sum(std::iter::empty()), (State::NotScheduled, None));
    }

    #[test]
    fn every_worker_of_a_pool_counts_itself() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let fake = Fake::new(None).script(Event::Cycles, ok(7));
        let ran = std::sync::Mutex::new(Vec::new());
        let counted = count_in_pool(&fake, &probes(&[(Event::Cycles, State::Ok)]), &pool, |thread| {
            ran.lock().unwrap().push(thread);
        });
        let mut ran = ran.into_inner().unwrap();
        ran.sort_unstable();
        assert_eq!((ran, counted[0].value), (vec![0, 1, 2], Some(21.0)));
    }
}

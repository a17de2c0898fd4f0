//! What the benches share: how long they take, and what they measure.
//!
//! `RESTRIDE_BENCH=quick` or `full` changes how long, `RESTRIDE_EVENT=l1d-misses` (any event that
//! `restride machine` lists) measures that counter instead of time.

use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use restride::machine::counters::{self, Event, Session};
use std::cell::RefCell;
use std::time::Duration;

/// Criterion with the effort that the environment asks for; ends the program where it asks for
/// something that cannot be had.
pub fn criterion() -> criterion::Criterion<Meter> {
    // Resamples decide how long the analysis takes, which in a quick run would be most of the time.
    let (samples, warm_up_ms, measure_ms, resamples) = match std::env::var("RESTRIDE_BENCH").as_deref() {
        Ok("quick") => (10, 50, 150, 2_000),
        Ok("full") => (50, 1000, 4000, 100_000),
        Ok("") | Err(_) => (12, 200, 600, 10_000),
        Ok(other) => stop(&format!("RESTRIDE_BENCH={other}: write quick or full")),
    };
    criterion::Criterion::default()
        .with_measurement(Meter::from_env())
        .sample_size(samples)
        .nresamples(resamples)
        .warm_up_time(Duration::from_millis(warm_up_ms))
        .measurement_time(Duration::from_millis(measure_ms))
        .configure_from_args()
}

/// A group's name: an event that is measured instead of time stands behind it in brackets, where
/// `restride bench --from-criterion` finds it.
pub fn group_name(name: &str) -> String {
    match std::env::var("RESTRIDE_EVENT") {
        Ok(event) if !event.is_empty() => format!("{name} [{event}]"),
        _ => name.to_owned(),
    }
}

fn stop(message: &str) -> ! {
    eprintln!("restride: {message}");
    std::process::exit(1)
}

/// Time, or one counter of the calling thread.
pub enum Meter {
    Time(WallTime),
    Event { session: RefCell<Box<dyn Session>>, format: EventFormat },
}

impl Meter {
    fn from_env() -> Self {
        let name = match std::env::var("RESTRIDE_EVENT") {
            Ok(name) if !name.is_empty() => name,
            _ => return Self::Time(WallTime),
        };
        match counters::open_named(counters::system(), &name) {
            Ok((event, session)) => {
                Self::Event { session: RefCell::new(session), format: EventFormat { event } }
            }
            Err(why) => stop(&format!("RESTRIDE_EVENT={why}")),
        }
    }
}

impl Measurement for Meter {
    type Intermediate = Option<std::time::Instant>;
    type Value = f64;

    fn start(&self) -> Self::Intermediate {
        match self {
            Self::Time(time) => Some(time.start()),
            Self::Event { session, .. } => {
                if let Err(error) = session.borrow_mut().start() {
                    stop(&format!("the counter cannot be started: {error}"));
                }
                None
            }
        }
    }

    fn end(&self, started: Self::Intermediate) -> f64 {
        match self {
            Self::Time(time) => started.map_or(0.0, |started| time.to_f64(&time.end(started))),
            Self::Event { session, .. } => match session.borrow_mut().stop() {
                Ok(readings) => match readings.first().and_then(counters::Reading::scaled) {
                    Some(value) => value,
                    None => stop("the counter was not scheduled: another program holds it"),
                },
                Err(error) => stop(&format!("the counter cannot be read: {error}")),
            },
        }
    }

    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        match self {
            Self::Time(time) => time.formatter(),
            Self::Event { format, .. } => format,
        }
    }
}

/// Events, and events per element or per byte.
pub struct EventFormat {
    event: Event,
}

impl ValueFormatter for EventFormat {
    fn scale_values(&self, _typical: f64, _values: &mut [f64]) -> &'static str {
        self.event.name()
    }

    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let (amount, unit) = match throughput {
            Throughput::Elements(count) => (*count, "events/element"),
            Throughput::Bytes(count) | Throughput::BytesDecimal(count) => (*count, "events/byte"),
            _ => (1, "events"),
        };
        values.iter_mut().for_each(|value| *value /= amount.max(1) as f64);
        unit
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        self.event.name()
    }
}

//! Scripted counters, for tests of every state without hardware.

use super::{Backend, Event, Reading, Session};
use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

/// What happens with one event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Script {
    /// It opens and reads this.
    Reads(Reading),
    /// Opening fails with this error number.
    Refuses(i32),
    /// Opening fails because the system has no such thing.
    Unsupported,
    /// It opens, and reading fails with this error number.
    FailsToRead(i32),
    /// It opens, and reading gives nothing.
    ReadsNothing,
}

/// A system of scripted counters; events without a script are refused as unknown.
#[derive(Debug, Default)]
pub(crate) struct Fake {
    scripts: HashMap<Event, Script>,
    paranoid: Option<i32>,
    /// The groups that were opened, in order.
    pub opened: Mutex<Vec<Vec<Event>>>,
}

impl Fake {
    pub(crate) fn new(paranoid: Option<i32>) -> Self {
        Self { paranoid, ..Self::default() }
    }

    pub(crate) fn script(mut self, event: Event, script: Script) -> Self {
        self.scripts.insert(event, script);
        self
    }
}

impl Backend for Fake {
    fn open(&self, events: &[Event]) -> io::Result<Box<dyn Session>> {
        self.opened.lock().unwrap().push(events.to_vec());
        let mut session = FakeSession { readings: Vec::new(), error: None };
        for event in events {
            match self.scripts.get(event).copied().unwrap_or(Script::Refuses(2)) {
                Script::Reads(reading) => session.readings.push(reading),
                Script::Refuses(errno) => return Err(io::Error::from_raw_os_error(errno)),
                Script::Unsupported => return Err(io::ErrorKind::Unsupported.into()),
                Script::FailsToRead(errno) => session.error = Some(errno),
                Script::ReadsNothing => {}
            }
        }
        Ok(Box::new(session))
    }

    fn paranoid(&self) -> Option<i32> {
        self.paranoid
    }
}

struct FakeSession {
    readings: Vec<Reading>,
    error: Option<i32>,
}

impl Session for FakeSession {
    fn start(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn stop(&mut self) -> io::Result<Vec<Reading>> {
        match self.error {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => Ok(self.readings.clone()),
        }
    }
}

//! A progress bar on a terminal, and Ctrl-C as a wish to stop.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Steps done of a known number, with the time that remains; shown only on a terminal, and only once a
/// second has passed.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    done: Cell<u64>,
}

impl Progress {
    pub(crate) fn new(steps: u64) -> Self {
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}, {eta} left") {
            bar.set_style(style);
        }
        Self { bar, start: Instant::now(), done: Cell::new(0) }
    }

    /// Says what comes next; what was said before is done.
    pub(crate) fn step(&self, what: &str) {
        if self.bar.is_hidden() && self.start.elapsed().as_secs() >= 1 {
            // Standard error; it stays hidden where that is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_message(what.to_owned());
        self.bar.set_position(self.done.replace(self.done.get() + 1));
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

static STOP: AtomicBool = AtomicBool::new(false);

/// From now on the first Ctrl-C sets the flag that is returned; a second one ends the program.
pub(crate) fn on_interrupt() -> &'static AtomicBool {
    #[cfg(unix)]
    crate::machine::interrupt::catch(&STOP);
    &STOP
}

/// Whether it was set.
pub(crate) fn interrupted(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

//! What a record says of the machine and the program that made it, and what the machine cannot run.

use super::Job;
use crate::bench::record::{CounterState, Machine};
use crate::error::words::counted;
use crate::machine::counters;
use crate::machine::fingerprint::Fingerprint;
use crate::machine::pages::{self, Pages};

/// Why a job is left out on this machine; `None` where it can be run.
pub fn left_out(job: &Job) -> Option<String> {
    let free = pages::available_bytes()?;
    let need = job.bytes();
    (need > free / 10 * 8).then(|| format!("{}: needs {}, {free} are free", job.id(), counted(need, "byte")))
}

/// This machine, as a record names it.
pub fn machine() -> Machine {
    let mut machine = Machine::default();
    machine.fingerprint = Fingerprint::host();
    machine.cpu = machine.fingerprint.cpu();
    machine.ram_bytes = Pages::host().ram_bytes;
    machine.counters = counters::host_probes()
        .iter()
        .map(|probe| {
            let mut state = CounterState::new(probe.event.name(), probe.state.name());
            state.reason = probe.state.reason();
            state.remedy = probe.state.remedy(probe.event);
            state
        })
        .collect();
    machine
}

/// Commit of the program, where it runs inside its own checkout and git is there.
pub fn git() -> Option<String> {
    let program = std::env::current_exe().ok()?;
    let root = program.ancestors().skip(1).find(|dir| dir.join(".git").exists())?;
    let manifest = std::fs::read_to_string(root.join("Cargo.toml")).ok()?;
    if !manifest.lines().any(|line| line.trim() == "name = \"restride\"") {
        return None;
    }
    let describe = ["describe", "--always", "--dirty", "--abbrev=12"];
    let output = std::process::Command::new("git").arg("-C").arg(root).args(describe).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let name = text.trim();
    (output.status.success() && !name.is_empty()).then(|| name.to_owned())
}

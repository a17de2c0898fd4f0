//! `restride machine`: what this machine is and what can be measured on it.

use super::{Failure, text};
use crate::Isa;
use crate::error::words::counted;
use crate::machine::counters::{self, Probe};
use crate::machine::fingerprint::Fingerprint;
use crate::machine::pages::Pages;
use crate::machine::topology::{CacheLevel, Topology};
use crate::profile::{self, Location};
use serde_json::{Value, json};

/// Shows this machine: CPU, SIMD levels, caches, pages, counters.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  restride machine --json\n\nRESTRIDE_CACHES=L1d=48K/12/64,L2=2M/16/64 replaces \
                        what the machine says of its data caches."
)]
pub(crate) struct Args {
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let facts = Facts {
        fingerprint: Fingerprint::host(),
        isa: Isa::active()?,
        topology: checked_topology()?,
        pages: Pages::host(),
    };
    text::print(&if args.json { text::json_text(&facts.json()) } else { facts.text() })
}

/// This machine, unless the environment variable that replaces its caches cannot be read.
pub(crate) fn checked_topology() -> Result<&'static Topology, Failure> {
    let topology = Topology::host();
    match &topology.override_error {
        Some(reason) => Err(Failure::usage("caches", reason.clone())),
        None => Ok(topology),
    }
}

struct Facts {
    fingerprint: Fingerprint,
    isa: Isa,
    topology: &'static Topology,
    pages: &'static Pages,
}

impl Facts {
    fn json(&self) -> Value {
        let (topology, pages) = (self.topology, self.pages);
        let available: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
        json!({
            "cpu": self.fingerprint.cpu(),
            "isa": {"available": available, "used": self.isa.name()},
            "caches": topology.caches,
            "pages": pages,
            "cores": {
                "logical": topology.cpus.len(),
                "allowed": topology.allowed_cpus(),
                "physical_allowed": topology.physical_cores(),
                "classes": topology.core_classes(),
                "smt": topology.smt(),
                "numa_nodes": topology.numa_nodes(),
                "default_threads": topology.default_threads(),
            },
            "hypervisor": topology.hypervisor,
            "governor": topology.governor,
            "counters": counters::host_probes().iter().map(counter_json).collect::<Vec<_>>(),
            "profile": profile_json(),
        })
    }

    fn text(&self) -> String {
        let (topology, pages) = (self.topology, self.pages);
        let unknown = || "unknown".to_owned();
        let mut facts = vec![
            ("CPU", self.fingerprint.cpu()),
            ("SIMD", {
                let available: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
                format!("{} in use; available: {}", self.isa, available.join(", "))
            }),
            ("cores", self.cores()),
            ("hypervisor", topology.hypervisor.clone().unwrap_or_else(|| "none seen".to_owned())),
            ("governor", topology.governor.clone().unwrap_or_else(unknown)),
            ("memory", pages.ram_bytes.map_or_else(unknown, text::bytes)),
            ("pages", self.page_sizes()),
        ];
        for (name, size) in [("L1d", topology.l1d()), ("L2", topology.l2()), ("L3", topology.l3())] {
            if size.assumed {
                facts.push((name, format!("unknown, {} assumed", text::bytes(size.bytes as u64))));
            }
        }
        facts.push(("profile", profile_text()));
        let mut out = String::new();
        for (name, value) in facts {
            out.push_str(&format!("{name:<11} {value}\n"));
        }
        out.push('\n');
        out.push_str(&text::table(
            &["cache", "size", "ways", "line", "sets", "shared by", "source"],
            &[1, 2, 3, 4, 5],
            &topology.caches.iter().map(cache_row).collect::<Vec<_>>(),
        ));
        for cache in &topology.caches {
            out.push_str(&cache_notes(cache));
        }
        let probes = counters::host_probes();
        out.push('\n');
        out.push_str(&text::table(
            &["counter", "state", "reason"],
            &[],
            &probes
                .iter()
                .map(|probe| {
                    let reason = probe.state.reason().unwrap_or_default();
                    vec![probe.event.to_string(), probe.state.name().to_owned(), reason]
                })
                .collect::<Vec<_>>(),
        ));
        let mut remedies: Vec<String> =
            probes.iter().filter_map(|probe| probe.state.remedy(probe.event)).collect();
        remedies.dedup();
        for remedy in remedies {
            out.push_str(&format!("to do: {remedy}\n"));
        }
        out
    }

    fn cores(&self) -> String {
        let topology = self.topology;
        let mut out = format!(
            "{} physical allowed, {} logical online",
            topology.physical_cores(),
            topology.cpus.len().max(topology.allowed_cpus().len())
        );
        if topology.core_classes() > 1 {
            let sizes: Vec<String> = (0..topology.core_classes())
                .map(|class| topology.cpus.iter().filter(|cpu| cpu.class == class).count().to_string())
                .collect();
            out.push_str(&format!(", classes of {} logical CPUs from the fastest", sizes.join(" and ")));
        }
        match topology.numa_nodes() {
            Some(1) => out.push_str(", 1 NUMA node"),
            Some(nodes) => out.push_str(&format!(", {nodes} NUMA nodes")),
            None => out.push_str(", NUMA nodes unknown"),
        }
        out
    }

    fn page_sizes(&self) -> String {
        let pages = self.pages;
        let mode = match pages.huge_mode {
            Some(mode) => format!("{mode:?}").to_lowercase(),
            None => "unknown".to_owned(),
        };
        let huge = pages.huge_page_bytes.map_or_else(|| "unknown".to_owned(), |b| text::bytes(b as u64));
        format!("{}, huge {huge} (mode {mode})", text::bytes(pages.page_bytes as u64))
    }
}

fn cache_row(cache: &CacheLevel) -> Vec<String> {
    let show = |value: Option<usize>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
    let shared = match (cache.shared_by, &cache.shared_cpus) {
        (Some(1), _) => "1 CPU".to_owned(),
        (Some(count), Some(cpus)) => format!("{count} CPUs ({cpus})"),
        (Some(count), None) => format!("{count} CPUs"),
        (None, _) => "unknown".to_owned(),
    };
    vec![
        cache.name(),
        cache.bytes.map_or_else(|| "unknown".to_owned(), |bytes| text::bytes(bytes as u64)),
        show(cache.ways),
        show(cache.line_bytes),
        show(cache.sets),
        shared,
        format!("{:?}", cache.source).to_lowercase(),
    ]
}

fn cache_notes(cache: &CacheLevel) -> String {
    let mut out = String::new();
    if cache.probably_shared {
        out.push_str(&format!(
            "{}: more than 32 MiB for each visible core, probably shared with other machines\n",
            cache.name()
        ));
    }
    if let Some(other) = &cache.disagrees {
        let row = cache_row(other);
        out.push_str(&format!(
            "{}: {} says {}, {} ways, {} byte lines, {} sets\n",
            cache.name(),
            row[6],
            row[1],
            row[2],
            row[3],
            row[4]
        ));
    }
    out
}

fn counter_json(probe: &Probe) -> Value {
    json!({
        "event": probe.event.name(),
        "state": probe.state.name(),
        "reason": probe.state.reason(),
        "remedy": probe.state.remedy(probe.event),
    })
}

/// The tuning profile that copies of this machine would use; null where profiles are switched off.
fn profile_json() -> Value {
    let asked = super::tune_profile::asked();
    let path = match Location::find(asked) {
        Ok(Location::File(path)) => path,
        Ok(Location::Off) => return Value::Null,
        Err(error) => return json!({"path": null, "exists": false, "error": error.to_string()}),
    };
    let exists = path.exists();
    let path = path.display().to_string();
    match profile::load(asked) {
        Ok(loaded) => json!({
            "path": path,
            "exists": exists,
            "values": loaded.values,
            "ignored": loaded.ignored.iter().map(|ignored| json!({
                "entry": ignored.entry,
                "reason": ignored.reason,
            })).collect::<Vec<_>>(),
            "error": null,
        }),
        Err(error) => json!({"path": path, "exists": exists, "error": error.to_string()}),
    }
}

fn profile_text() -> String {
    let profile = profile_json();
    match (&profile["path"], &profile["error"]) {
        (_, Value::String(error)) => format!("not used: {error}"),
        (Value::String(path), _) if profile["exists"] == true => {
            format!(
                "{} for this machine in {path}",
                counted(profile["values"].as_u64().unwrap_or(0), "value")
            )
        }
        (Value::String(_), _) => "none yet: restride tune makes one".to_owned(),
        _ => "switched off".to_owned(),
    }
}

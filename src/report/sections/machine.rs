//! What the numbers were measured on.

use crate::error::words::counted;
use crate::report::data::{Data, number, text};
use crate::report::facts;
use crate::report::num::{bytes, count, counts, percent, sig3};
use maud::{Markup, html};
use serde_json::Value;

/// The section.
pub(crate) fn section(records: &[&Data]) -> Markup {
    html! { @for d in records { (super::which(records, d)) (one(d)) } }
}

fn one(d: &Data) -> Markup {
    html! {
        div.columns {
            dl.facts { @for (k, v) in facts(d) { div { dt { (k) } dd { (v) } } } }
            (caches(d))
        }
        (counters(d))
        @for n in d.environment()["noise"].as_array().into_iter().flatten().filter_map(text) {
            p.note { "Noted while measuring: " (n.trim_end_matches('.')) "." }
        }
    }
}

/// Any value in words: objects as `key value` pairs.
fn words(v: &Value) -> Option<String> {
    match v {
        Value::Array(a) => {
            Some(a.iter().filter_map(words).collect::<Vec<_>>().join(", ")).filter(|s| !s.is_empty())
        }
        Value::Object(o) => {
            let parts: Vec<String> = o
                .iter()
                .filter_map(|(k, v)| Some(format!("{} {}", k.replace('_', " "), words(v)?)))
                .collect();
            Some(parts.join(", ")).filter(|s| !s.is_empty())
        }
        other => text(other).filter(|s| !s.is_empty()),
    }
}

fn facts(d: &Data) -> Vec<(&'static str, String)> {
    let (m, f, env) = (d.machine(), d.fingerprint(), d.environment());
    let unknown = || "unknown".to_owned();
    let mut out = vec![("CPU", d.cpu())];
    let used = words(&env["isa"]).map(|u| format!("{u} in use"));
    let all = words(&f["isa"]).map(|a| format!("available: {a}"));
    let isa: Vec<String> = used.into_iter().chain(all).collect();
    out.push(("SIMD", if isa.is_empty() { unknown() } else { isa.join("; ") }));
    let cores = [("cores", "core"), ("cpus", "logical CPU")];
    let cores: Vec<String> = cores.iter().filter_map(|(k, n)| Some(counts(number(&f[*k])?, n))).collect();
    out.push(("cores", if cores.is_empty() { unknown() } else { cores.join(", ") }));
    if let Some(r) = number(&m["ram_bytes"]) {
        out.push(("memory", bytes(r)));
    }
    let page = number(&f["page_bytes"]).filter(|b| *b > 0.0).map_or_else(unknown, bytes);
    out.push((
        "pages",
        format!("{page}, transparent huge pages: {}", words(&f["huge_mode"]).unwrap_or_else(unknown)),
    ));
    let pinned = words(&env["pinning"]).unwrap_or_else(unknown);
    out.push((
        "pinning",
        number(&env["cpu"]).map_or_else(|| pinned.clone(), |c| format!("{pinned} (CPU {})", count(c))),
    ));
    out.push(("governor", words(&env["governor"]).unwrap_or_else(unknown)));
    let none = f.get("hypervisor").is_some_and(Value::is_null) && f["brand"].is_string();
    out.push((
        "hypervisor",
        words(&f["hypervisor"]).unwrap_or_else(|| if none { "none seen".into() } else { unknown() }),
    ));
    if let Some(k) = words(&env["kernel"]) {
        out.push(("kernel", k));
    }
    if let Some(l) = number(&env["load"]) {
        out.push(("load, 1 min", sig3(l)));
    }
    if let Some(s) = number(&env["steal_share"]) {
        out.push(("steal time", percent(s)));
    }
    if let Some(s) = number(&env["seconds"]) {
        out.push(("run took", format!("{} s", sig3(s))));
    }
    out.push(("tuning profile", profile(&env["profile"], &m["profile"])));
    out
}

/// The profile in force, from what the run or else the machine says of it.
fn profile(run: &Value, machine: &Value) -> String {
    let said = |v: &Value, key: &str| text(&v[key]).filter(|s| !s.is_empty());
    match run {
        Value::String(word) if word == "none" => "none in force: the defaults were used".into(),
        Value::Object(_) => {
            let name = said(run, "name").unwrap_or_else(|| "unnamed".into());
            let mut parts = vec![match number(&run["values"]) {
                Some(0.0) => format!("{name}, which keeps every default"),
                Some(n) => format!("{name}, {} in place of defaults", counts(n, "value")),
                None => name,
            }];
            parts
                .extend(said(run, "created").map(|day| format!("tuned {}", crate::report::page::date(&day))));
            parts.extend(said(run, "key").map(|key| format!("for {key}")));
            parts.join(", ")
        }
        other => [other, machine].into_iter().find_map(words).unwrap_or_else(|| "not recorded".into()),
    }
}

fn caches(d: &Data) -> Markup {
    let all: Vec<&Value> = d.fingerprint()["caches"].as_array().into_iter().flatten().collect();
    let cell = |v: &Value| number(v).map_or_else(|| words(v).unwrap_or_else(|| "unknown".into()), count);
    html! {
        @if all.is_empty() { p.missing { "The record knows no caches; levels on this page are unknown." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Caches" {
                table.compact {
                    caption { "Caches" }
                    thead { tr { @for h in ["level", "type", "size", "ways", "line", "sets", "shared by"] { th.text[h == "type"] scope="col" { (h) } } } }
                    tbody { @for c in &all { tr {
                        th scope="row" { "L" (cell(&c["level"]).trim_start_matches('L')) }
                        td.text { (text(&c["type"]).unwrap_or_else(|| "unknown".into()).to_lowercase()) }
                        td { (number(&c["bytes"]).map_or_else(|| "unknown".into(), bytes)) }
                        td { (cell(&c["ways"])) }
                        td { (number(&c["line_bytes"]).map_or_else(|| "unknown".into(), bytes)) }
                        td { (cell(&c["sets"])) }
                        td { (shared(c)) }
                    } } }
                }
            }
        }
    }
}

fn shared(c: &Value) -> String {
    let by = match &c["shared_by"] {
        Value::Array(a) => Some(counted(a.len(), "CPU")),
        v => number(v).map(|n| counts(n, "CPU")),
    };
    let by = by.or_else(|| text(&c["shared_by"])).unwrap_or_else(|| "unknown".into());
    if c["probably_shared"].as_bool() == Some(true) { format!("{by}, probably more") } else { by }
}

/// Events in one row when state, reason and remedy are the same.
fn counters(d: &Data) -> Markup {
    let mut rows: Vec<(Vec<String>, facts::Counter)> = Vec::new();
    for c in facts::counters(d) {
        let same = |r: &(Vec<String>, facts::Counter)| {
            r.1.state == c.state
                && r.1.reason == c.reason
                && r.1.remedy == c.remedy
                && r.1.coverage == c.coverage
        };
        match rows.iter_mut().find(|r| same(r)) {
            Some(row) => row.0.push(c.event.clone()),
            None => rows.push((vec![c.event.clone()], c)),
        }
    }
    html! {
        @if rows.is_empty() { p.missing { "The record lists no hardware counters." } }
        @else {
            div.scroll tabindex="0" role="region" aria-label="Hardware counters" {
                table.compact.counters {
                    caption { "Hardware counters" }
                    thead { tr { @for h in ["events", "state", "reason", "what to do"] { th.text scope="col" { (h) } } } }
                    tbody { @for (events, c) in &rows { tr {
                        th scope="row" { (events.join(", ")) }
                        td.text { span class={ "state " (if c.works() { "ok" } else { "no" }) } { (c.state) }
                            @if let Some(p) = c.coverage { " " span.dim { "counted " (percent(p)) " of the time" } } }
                        td.text { (if c.reason.is_empty() { "–" } else { &c.reason }) }
                        td.text { (if c.remedy.is_empty() { "–" } else { &c.remedy }) }
                    } } }
                }
            }
        }
    }
}

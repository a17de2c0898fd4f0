//! The first thing one reads: what a transposed walk costs here, in words with numbers.

use crate::error::words::counted;
use crate::report::data::{Case, Data, number, text};
use crate::report::facts;
use crate::report::num::{self, bytes, percent, ratio, sig3, times};
use maud::{Markup, html};

/// How a finding is marked.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Tone {
    Good,
    Watch,
    Note,
}

/// One sentence or two, and what to do about it.
pub(crate) struct Finding {
    pub tone: Tone,
    pub title: String,
    pub text: String,
    pub advice: String,
}

fn finding(tone: Tone, title: &str, text: String, advice: impl Into<String>) -> Finding {
    Finding { tone, title: title.into(), text, advice: advice.into() }
}

/// The sentence that opens the page.
pub(crate) fn headline(d: &Data) -> String {
    let costs = facts::level_costs(d);
    let Some(far) = costs.last() else {
        return "This record holds no pair of row-major and transposed walks to compare.".into();
    };
    let dtype = facts::main_dtype(d).unwrap_or_else(|| "data".into());
    let place = if far.level == "memory" { "Out of cache".into() } else { format!("In {}", far.level) };
    let times_as_much = match far.factor() {
        f if f < 1.15 => "costs about the same as reading along them".to_owned(),
        f => format!("costs {} as much as reading along them", times(f)),
    };
    let mut out = format!(
        "{place}, reading a matrix of {dtype} against its rows (a transposed walk) {times_as_much}: {} instead of {} per element.",
        num::time(far.column),
        num::time(far.row)
    );
    if let Some(near) = costs.first().filter(|_| costs.len() > 1) {
        out.push_str(&match near.factor() {
            f if f < 1.15 => {
                format!(" While the data fits {}, the order hardly matters ({}).", near.level, times(f))
            }
            f => format!(" While it fits {}, the factor is {}.", near.level, times(f)),
        });
    }
    out
}

/// All findings, the important ones first.
pub(crate) fn findings(d: &Data) -> Vec<Finding> {
    let mut out = Vec::new();
    validity(d, &mut out);
    if let Some(facts::CopyRatio { mean, cases: n, slowest: slow, fastest: fast }) = facts::copy_ratio(d) {
        let tone = if mean >= 0.7 { Tone::Good } else { Tone::Note };
        out.push(finding(
            tone,
            "Copies against memcpy",
            format!(
                "Making views contiguous runs at {} of memcpy's speed (geometric mean of {}): \
                 slowest {} at {}, fastest {} at {}.",
                ratio(mean),
                counted(n, "case"),
                slow.0,
                ratio(slow.1),
                fast.0,
                ratio(fast.1)
            ),
            "",
        ));
    }
    if let Some((reads, copy, saved)) = facts::break_even(d) {
        let text = format!(
            "A large transpose is copied in {} per element; each later read along rows then saves {}.",
            num::time(copy),
            num::time(saved)
        );
        let advice = if reads <= 1.0 {
            "Materialize a large transposed view even if it is read only once.".into()
        } else {
            format!(
                "Materialize a large transposed view that is read {} or more.",
                num::counts(reads.ceil(), "time")
            )
        };
        out.push(finding(Tone::Note, "When a copy pays", text, advice));
    }
    cliff(d, &mut out);
    tiles(d, &mut out);
    counters(d, &mut out);
    noise(d, &mut out);
    out
}

/// What puts the figures themselves in doubt.
fn validity(d: &Data, out: &mut Vec<Finding>) {
    if d.environment()["interrupted"] == true {
        out.push(finding(
            Tone::Watch,
            "Stopped early",
            "The run was interrupted: cases are missing.".into(),
            "Run it again to the end.",
        ));
    }
    let left_out = d.environment()["left_out"].as_array().map_or(&[][..], Vec::as_slice);
    let late = left_out.iter().filter(|job| job.as_str().is_some_and(|job| job.ends_with("the time was up")));
    match late.count() {
        0 => {}
        n => out.push(finding(
            Tone::Watch,
            "The time was up",
            format!("{} of this run had no time left, so that sections below lack cases.", counted(n, "job")),
            "Run it again while the machine does nothing else, or give it longer with --preset default.",
        )),
    }
    let failed: Vec<String> =
        d.cases.iter().filter(|c| c.params["verified"] == false).map(Case::name).collect();
    if !failed.is_empty() {
        out.push(finding(
            Tone::Watch,
            "Wrong results",
            format!(
                "{} did not pass the check against the reference, {} among them.",
                counted(failed.len(), "case"),
                failed[0]
            ),
            "Their times mean nothing: run restride verify and report what it prints.",
        ));
    }
}

fn cliff(d: &Data, out: &mut Vec<Finding>) {
    let cliffs = facts::cliffs(d);
    let Some(worst) = cliffs.first() else { return };
    let factor = worst.at / worst.beside;
    out.push(if factor >= 1.2 {
        finding(
            Tone::Watch,
            "A cliff at powers of two",
            format!(
                "With a row pitch of {} a transposed read takes {} per element, {} its neighbours' {}: \
                 all rows fall into the same few cache sets.",
                num::counts(worst.pitch, "element"),
                num::time(worst.at),
                times(factor),
                num::time(worst.beside)
            ),
            "Pad each row by one cache line (64 bytes) where you choose the pitch.",
        )
    } else {
        finding(
            Tone::Good,
            "No cliff at powers of two",
            format!(
                "The worst power-of-two row pitch ({}) costs {} its neighbours.",
                num::count(worst.pitch),
                times(factor)
            ),
            "",
        )
    });
}

fn tiles(d: &Data, out: &mut Vec<Finding>) {
    let time = |key: &str| d.of_kind("tile").find(|c| c.flag(key)).and_then(|c| Some((c, c.time_ns?.median)));
    if let (Some((_, default)), Some((c, tuned))) = (time("default"), time("tuned")) {
        let tile: Vec<String> = c.list("tile").iter().map(|v| num::count(*v)).collect();
        if tuned > 0.0 && default / tuned > 1.02 {
            out.push(finding(
                Tone::Good,
                "Tuned tiles",
                format!(
                    "The tuned tile {} is {} faster than the default on this sweep.",
                    tile.join(" × "),
                    percent(default / tuned - 1.0)
                ),
                "",
            ));
        }
    }
}

fn counters(d: &Data, out: &mut Vec<Finding>) {
    let all = facts::counters(d);
    let missing: Vec<&facts::Counter> = all.iter().filter(|c| !c.works()).collect();
    if all.is_empty() {
        out.push(finding(
            Tone::Note,
            "Counters not recorded",
            "The record does not say which hardware counters there are; misses on this page are the model's."
                .into(),
            "",
        ));
    } else if missing.len() == all.len() {
        let c = missing[0];
        let reason = if c.reason.is_empty() { String::new() } else { format!(": {}", c.reason) };
        out.push(finding(
            Tone::Note,
            "No hardware counters",
            format!("None of the {} can be counted ({}{reason}). Misses on this page are the cache model's and say so.", counted(all.len(), "event"), c.state),
            sentence(&c.remedy),
        ));
    } else if let Some(c) = missing.first() {
        out.push(finding(
            Tone::Note,
            "Some counters are missing",
            format!(
                "{} of {} cannot be used, {} among them ({}).",
                missing.len(),
                counted(all.len(), "event"),
                c.event,
                c.state
            ),
            sentence(&c.remedy),
        ));
    }
    let partly: Vec<f64> = all.iter().filter_map(|c| c.coverage).filter(|c| *c < 0.995).collect();
    if let Some(least) = partly.iter().copied().reduce(f64::min) {
        out.push(finding(
            Tone::Note,
            "Counters took turns",
            format!(
                "Some events were counted only part of the time (the least: {}) and are scaled up: {} of {}.",
                percent(least),
                partly.len(),
                all.len()
            ),
            "",
        ));
    }
}

fn noise(d: &Data, out: &mut Vec<Finding>) {
    let env = d.environment();
    let mut reasons = Vec::new();
    if let Some(s) = number(&env["steal_share"]).filter(|s| *s >= 0.01) {
        reasons.push(format!("the hypervisor gave {} of the time to others", percent(s)));
    }
    if let Some(l) = number(&env["load"]).filter(|l| *l >= 1.5) {
        reasons.push(format!("the load was {}", sig3(l)));
    }
    if let Some(p) = text(&env["pinning"]).filter(|p| p != "pinned") {
        reasons.push(format!("pinning to one CPU was {p}"));
    }
    if let Some(m) = number(&env["migrations"]).filter(|m| *m >= 1.0) {
        reasons.push(format!("the thread was moved to another CPU {}", num::counts(m, "time")));
    }
    let noisy = facts::noisy(d);
    let measured = d.cases.iter().filter(|c| c.time_ns.is_some()).count();
    if let Some((c, spread)) = noisy.first() {
        let why = if reasons.is_empty() {
            String::new()
        } else {
            format!(" Known causes: {}.", reasons.join("; "))
        };
        out.push(finding(
            if noisy.len() * 5 > measured { Tone::Watch } else { Tone::Note },
            "Noise",
            format!(
                "{} of {} {} less certain than ±10 %, {} most of all (±{}).{why}",
                noisy.len(),
                counted(measured, "case"),
                if noisy.len() == 1 { "is" } else { "are" },
                c.name(),
                percent(*spread)
            ),
            "Close other programs, or measure longer (restride bench with preset full).",
        ));
    } else if !reasons.is_empty() {
        out.push(finding(Tone::Note, "Conditions", format!("{}.", capital(&reasons.join("; "))), ""));
    } else if measured > 0 {
        out.push(finding(
            Tone::Good,
            "A quiet run",
            match measured {
                1 => "The one case is certain to within ±10 %.".to_owned(),
                n => format!("Every one of {n} cases is certain to within ±10 %."),
            },
            "",
        ));
    }
}

fn capital(s: &str) -> String {
    let mut c = s.chars();
    c.next().map_or_else(String::new, |f| f.to_uppercase().chain(c).collect())
}

fn sentence(s: &str) -> String {
    if s.is_empty() || s.ends_with('.') { capital(s) } else { format!("{}.", capital(s)) }
}

/// The section.
pub(crate) fn section(records: &[&Data]) -> Markup {
    html! {
        @if records.len() > 1 { (side_by_side(records)) }
        @for d in records {
            div.summary {
                @if records.len() > 1 { h3.which { (d.label) } }
                p.lead { (headline(d)) }
                (cards(d))
                ul.findings {
                    @for f in findings(d) {
                        @let (class, mark, say) = match f.tone {
                            Tone::Good => ("good", "✓", "good: "),
                            Tone::Watch => ("watch", "!", "watch out: "),
                            Tone::Note => ("info", "i", "note: "),
                        };
                        li class=(class) {
                            span.mark aria-hidden="true" { (mark) }
                            div {
                                strong { span.sr { (say) } (f.title) }
                                p { (f.text) @if !f.advice.is_empty() { " " span.advice { (f.advice) } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The figures of all records in one table: what a transposed walk costs at each level, and the copies.
fn side_by_side(records: &[&Data]) -> Markup {
    let costs: Vec<Vec<facts::LevelCost>> = records.iter().map(|d| facts::level_costs(d)).collect();
    let mut levels: Vec<&str> = Vec::new();
    for c in costs.iter().flatten() {
        if !levels.contains(&c.level.as_str()) {
            levels.push(&c.level);
        }
    }
    levels.sort_by_key(|l| (*l == "memory", *l));
    html! {
        div.plot {
            p { "What a transposed walk costs as a multiple of a row-major one, at each level, and how close copies come to memcpy." }
            div.scroll tabindex="0" role="region" aria-label="Records side by side" {
                table {
                    thead { tr { th scope="col" { "record" } @for l in &levels { th scope="col" { (l) } } th scope="col" { "copies of memcpy" } } }
                    tbody { @for (d, costs) in records.iter().zip(&costs) { tr {
                        th scope="row" { (d.label) }
                        @for l in &levels { td { (costs.iter().find(|c| c.level == *l).map_or_else(|| "–".into(), |c| times(c.factor()))) } }
                        td { (facts::copy_ratio(d).map_or_else(|| "–".into(), |r| ratio(r.mean))) }
                    } } }
                }
            }
        }
    }
}

/// One card a level: the factor, and the two times as bars.
fn cards(d: &Data) -> Markup {
    let costs = facts::level_costs(d);
    let top = costs.iter().map(|c| c.column.max(c.row)).fold(0.0, f64::max);
    html! {
        @if !costs.is_empty() {
            ul.cards aria-label="What a transposed walk costs at each level" {
                @for c in &costs {
                    li.card {
                        h4 { (c.level) span.dim { (bytes(c.working_set_bytes)) } }
                        p.big { (times(c.factor())) }
                        p.sub { "transposed against row-major" }
                        dl.pair {
                            div { dt { "row-major" } dd { (bar(c.row, top, 0)) span { (num::time(c.row)) } } }
                            div { dt { "transposed" } dd { (bar(c.column, top, 1)) span { (num::time(c.column)) } } }
                        }
                    }
                }
            }
            p.note { "Time per element, medians of warm walks on one thread. Level sizes are those of this machine's caches." }
        }
    }
}

fn bar(v: f64, top: f64, style: usize) -> Markup {
    let w = format!("{:.1}%", if top > 0.0 { (v / top * 100.0).clamp(1.5, 100.0) } else { 0.0 });
    html! { svg class={ "s" (style) } width="100%" height="8" aria-hidden="true" {
        rect.track x="0" y="0" width="100%" height="8" rx="2" {}
        rect.fill x="0" y="0" width=(w) height="8" rx="2" {}
    } }
}

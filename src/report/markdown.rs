//! The tables of the page as Markdown, for issues and mails.

use super::data::Data;
use super::facts;
use super::num::{bytes, ratio, sig3, time, times};
use super::sections::{change, copies, summary, walks};
use crate::bench::compare::Comparison;

/// Text inside a table cell: no line breaks, no column ends, no markup.
fn esc(s: &str) -> String {
    let mut out = String::new();
    for c in s.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '~' | '&' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut out = format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(head.len()));
    for r in rows {
        out.push_str(&format!("| {} |\n", r.join(" | ")));
    }
    out.push('\n');
    out
}

/// The summary and the tables of all records.
pub fn tables(records: &[Data], baseline: Option<&Data>, command: &str) -> String {
    let mut out = String::from("# What a walk costs\n\n");
    for d in records {
        one(d, &mut out);
    }
    if let (Some(b), Some(new)) = (baseline, records.last()) {
        let comparison = Comparison::new(&b.record, &new.record);
        let rows: Vec<Vec<String>> = (comparison.beyond_noise().into_iter())
            .map(|c| {
                let shown = c.ratio.map_or_else(|| "–".into(), ratio);
                let (before, now) =
                    (change::amount(c.base.median, &c.unit), change::amount(c.new.median, &c.unit));
                vec![esc(&c.id), before, now, shown, change::verdict(c).into()]
            })
            .collect();
        out.push_str(&format!("## Change against {}\n\n", esc(&b.label)));
        out.push_str(&if rows.is_empty() {
            "Nothing changed beyond the noise.\n\n".into()
        } else {
            table(&["case", "before", "now", "time ratio", "verdict"], &rows)
        });
    }
    out.push_str(&format!("Made by `{}`.\n", command.replace(['`', '\n', '\r'], " ")));
    out
}

fn one(d: &Data, out: &mut String) {
    out.push_str(&format!("## {}\n\n{}\n\n", esc(&d.label), esc(&summary::headline(d))));
    for f in summary::findings(d) {
        out.push_str(format!("- **{}.** {} {}", f.title, esc(&f.text), esc(&f.advice)).trim_end());
        out.push('\n');
    }
    out.push('\n');
    let costs: Vec<Vec<String>> = (facts::level_costs(d).iter())
        .map(|c| {
            vec![esc(&c.level), bytes(c.working_set_bytes), time(c.row), time(c.column), times(c.factor())]
        })
        .collect();
    if !costs.is_empty() {
        out.push_str("### Row-major against transposed, time per element\n\n");
        out.push_str(&table(&["level", "working set", "row-major", "transposed", "factor"], &costs));
    }
    let walks: Vec<Vec<String>> = (d.sweep("ladder"))
        .filter_map(|c| {
            let pattern = walks::pattern_name(&c.str("pattern").unwrap_or_else(|| c.kind.clone())).0;
            let s = c.ns_per_element()?;
            Some(vec![
                esc(&pattern),
                bytes(c.working_set_bytes()?),
                sig3(s.median),
                format!("{} to {}", sig3(s.low), sig3(s.high)),
            ])
        })
        .collect();
    if !walks.is_empty() {
        out.push_str("### Walks\n\n");
        out.push_str(&table(&["pattern", "working set", "ns per element", "95 % interval"], &walks));
    }
    let mut rows = Vec::new();
    for g in copies::groups(d) {
        for c in facts::copies(d).filter(|c| copies::group(c) == g) {
            let dash = || "–".to_owned();
            rows.push(vec![
                esc(&c.name()),
                esc(&g),
                esc(&c.str("expr").unwrap_or_default()),
                c.gb_per_s().map_or_else(dash, |s| sig3(s.median)),
                c.ratio().map_or_else(dash, |s| ratio(s.median)),
                c.ratio().map_or_else(dash, |s| format!("{} to {}", ratio(s.low), ratio(s.high))),
                esc(&c.str("strategy").unwrap_or_else(dash)),
                esc(&c.str("isa").unwrap_or_else(dash)),
                c.threads(),
            ]);
        }
    }
    if !rows.is_empty() {
        out.push_str("### Copies\n\n");
        out.push_str(&table(
            &["case", "group", "view", "GB/s", "of memcpy", "95 % interval", "strategy", "SIMD", "threads"],
            &rows,
        ));
    }
}

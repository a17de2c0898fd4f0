//! Records as CSV: one line a case.

use super::data::{Case, Data, Stat, number, text};
use serde_json::Value;

/// A cell: quoted where needed; text that a spreadsheet would run as a formula gets an apostrophe.
fn cell(s: &str) -> String {
    let formula = s.starts_with(['=', '+', '-', '@', '\t', '\r']) && s.parse::<f64>().is_err();
    let s = if formula { format!("'{s}") } else { s.to_owned() };
    if s.contains([',', '"', '\n', '\r', ';']) { format!("\"{}\"", s.replace('"', "\"\"")) } else { s }
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    let mut out = cells.into_iter().map(|c| cell(&c)).collect::<Vec<_>>().join(",");
    out.push('\n');
    out
}

fn value(v: &Value) -> String {
    match v {
        Value::Null => String::new(),
        Value::Array(a) => a.iter().map(value).collect::<Vec<_>>().join("x"),
        // As it was written: not every whole number of 64 bits is a floating-point number.
        Value::Object(_) | Value::Number(_) => v.to_string(),
        other => text(other).unwrap_or_default(),
    }
}

/// All cases, one line each: what identifies them, their parameters, and what follows from the samples.
pub fn cases(d: &Data) -> String {
    let mut keys: Vec<&str> = Vec::new();
    for c in &d.cases {
        for k in c.params.as_object().into_iter().flat_map(|o| o.keys()) {
            if !keys.contains(&k.as_str()) {
                keys.push(k);
            }
        }
    }
    let mut levels: Vec<String> = d.caches().into_iter().map(|c| c.name).collect();
    levels.retain(|l| d.cases.iter().any(|c| c.model_misses(l).is_some()));
    let mut events: Vec<String> = Vec::new();
    for e in d.cases.iter().flat_map(|c| &c.counters).filter_map(|c| text(&c["event"])) {
        if !events.contains(&e) {
            events.push(e);
        }
    }
    let fixed = [
        "id",
        "kind",
        "median_ns",
        "ci_low_ns",
        "ci_high_ns",
        "samples",
        "memcpy_median_ns",
        "ratio",
        "bytes_moved",
        "gb_per_s",
        "ns_per_element",
    ];
    let mut out = line(
        (fixed.map(String::from).into_iter())
            .chain(keys.iter().map(|k| format!("param_{k}")))
            .chain(levels.iter().map(|l| format!("model_{l}_misses_per_element")))
            .chain(events.iter().map(|e| format!("measured_{e}"))),
    );
    let num = |v: Option<f64>| v.map_or_else(String::new, |v| v.to_string());
    for (c, written) in d.cases.iter().zip(&d.record.cases) {
        let mid = |s: Option<Stat>| num(s.map(|s| s.median));
        let row = [
            c.id.clone(),
            c.kind.clone(),
            mid(c.time_ns),
            num(c.time_ns.map(|t| t.low)),
            num(c.time_ns.map(|t| t.high)),
            c.time_ns.map_or(0, |t| t.samples).to_string(),
            mid(c.memcpy_ns),
            mid(c.ratio()),
            written.bytes_moved.map_or_else(String::new, |bytes| bytes.to_string()),
            mid(c.gb_per_s()),
            mid(c.ns_per_element()),
        ];
        out.push_str(&line(
            row.into_iter()
                .chain(keys.iter().map(|k| value(&c.params[*k])))
                .chain(levels.iter().map(|l| num(c.model_misses(l))))
                .chain(events.iter().map(|e| counter(c, e))),
        ));
    }
    out
}

/// The value, or the state where there is none: absent is never 0.
fn counter(c: &Case, event: &str) -> String {
    let Some(v) = c.counters.iter().find(|v| text(&v["event"]).as_deref() == Some(event)) else {
        return String::new();
    };
    number(&v["value"]).map_or_else(|| text(&v["state"]).unwrap_or_default(), |n| n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_needs_it() {
        assert_eq!(cell("a,b"), "\"a,b\"");
        assert_eq!(cell("say \"x\"\n"), "\"say \"\"x\"\"\n\"");
        assert_eq!(cell("=SUM(A1)"), "'=SUM(A1)");
        assert_eq!(cell("-3.5"), "-3.5");
    }

    #[test]
    fn whole_numbers_keep_every_digit() {
        let text = format!(
            r#"{{"schema":"restride.record/1","cases":[{{"id":"a","kind":"copy","unit":"ns",
                "params":{{"seed":{}}},"samples":[],"bytes_moved":{}}}]}}"#,
            u64::MAX,
            u64::MAX - 1
        );
        let text = cases(&Data::parse(text, "test").unwrap());
        assert!(text.contains("18446744073709551615") && text.contains("18446744073709551614"), "{text}");
    }

    #[test]
    fn every_line_has_as_many_cells() {
        let d = Data::parse(
            r#"{"schema":"restride.record/1","cases":[{"id":"a","kind":"copy","unit":"ns","params":{"shape":[2,3]},"samples":[5]},
                {"id":"b","kind":"x","unit":"ns","samples":[],"params":{"x":null}}]}"#
                .into(),
            "test",
        )
        .unwrap();
        let text = cases(&d);
        let counts: Vec<usize> = text.lines().map(|l| l.split(',').count()).collect();
        assert_eq!(counts, [13, 13, 13]);
        assert!(text.contains("2x3"));
    }
}

//! The whole page: head, navigation, sections, the records and the script, in one file.

use super::data::Data;
use super::{charts, csv, explorer, num, sections};
use crate::error::words::counted;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const CSS: &str = include_str!("assets/page.css");
const JS: &str = include_str!("assets/page.js");

/// A page larger than this says its size.
const LARGE_BYTES: usize = 2_000_000;

/// What the page needs besides the records.
pub struct Options<'a> {
    /// The command that makes the page again.
    pub command: &'a str,
    /// A record to compare with.
    pub baseline: Option<&'a Data>,
    /// Views for the explorer section; none leaves the section out.
    pub views: Option<&'a explorer::Views>,
}

struct Section {
    id: &'static str,
    nav: &'static str,
    title: &'static str,
    about: &'static str,
    body: Markup,
}

/// JSON without the white space between its parts: the same values, written the same way.
pub(crate) fn compact(json: &str) -> String {
    let (mut out, mut inside, mut escaped) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        if inside {
            inside = escaped || c != '"';
            escaped = c == '\\' && !escaped;
        } else if c == '"' {
            inside = true;
        } else if matches!(c, ' ' | '\n' | '\r' | '\t') {
            continue;
        }
        out.push(c);
    }
    out
}

/// JSON that may stand inside a `<script>`: `<` can occur only inside strings, where an escape says the same.
pub(crate) fn embed(json: &str) -> PreEscaped<String> {
    PreEscaped(json.replace('<', "\\u003c"))
}

/// The frame around sections: used by the report and by the explorer.
pub(crate) fn frame(title: &str, nav: Markup, body: Markup, data: Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content={ "restride " (env!("CARGO_PKG_VERSION")) };
                // Nothing is ever fetched, and the browser is told so.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(CSS)) }
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                div.top {
                    a.brand href="#" { "re" i { "stride" } }
                    nav aria-label="Sections" { (nav) }
                    button #theme.btn.js type="button" aria-label="Switch between light and dark" { "Dark" }
                }
                (charts::definitions())
                main #main { (body) }
                footer { "restride " (env!("CARGO_PKG_VERSION")) " · one self-contained file, nothing is loaded from anywhere" }
                div #tip role="status" aria-live="polite" hidden {}
                (data)
                script { (PreEscaped(JS)) }
            }
        }
    }
    .into_string()
}

/// The page of one or several records.
///
/// # Examples
///
/// ```
/// use restride::report::{Data, Options, html};
/// let record = Data::parse(r#"{"schema": "restride.record/1", "cases": []}"#.into(), "r.json").unwrap();
/// let page = html(&[record], &Options { command: "restride report r.json", baseline: None, views: None });
/// assert!(page.starts_with("<!DOCTYPE html>"));
/// ```
pub fn html(records: &[Data], options: &Options<'_>) -> String {
    let page = render(records, options, None);
    if page.len() > LARGE_BYTES { render(records, options, Some(page.len())) } else { page }
}

fn render(records: &[Data], options: &Options<'_>, size: Option<usize>) -> String {
    let all = list(records, options);
    let title = match records {
        [one] => format!("What a walk costs on {}", one.cpu()),
        _ => format!("What a walk costs: {}", counted(records.len(), "record")),
    };
    let nav = html! { ul { @for s in &all { li { a href={ "#" (s.id) } { (s.nav) } } } } };
    let body = html! {
        div.title {
            h1 { (title) }
            p {
                @for (i, d) in records.iter().enumerate() {
                    @if i > 0 { "; " }
                    @if records.len() > 1 { (d.label) ", " }
                    (date(&d.created())) ", " (counted(d.cases.len(), "case"))
                }
                "."
                @if let Some(s) = size { " This page is large: " (num::bytes(s as f64)) "." }
            }
        }
        @for s in &all {
            section id=(s.id) class=(s.id) aria-labelledby={ (s.id) "-h" } {
                header { h2 id={ (s.id) "-h" } { (s.title) } @if !s.about.is_empty() { p { (s.about) } } }
                (s.body)
            }
        }
    };
    let data = html! { @for (i, d) in records.iter().enumerate() {
        script type="application/json" id={ "record-" (i) } { (embed(&compact(&d.text))) }
        script type="application/json" id={ "cases-" (i) } { (embed(&serde_json::Value::from(csv::cases(d)).to_string())) }
    } };
    frame(&title, nav, body, data)
}

/// A date as people write it; anything else as it is.
pub(crate) fn date(created: &str) -> String {
    match created.get(..16).map(|s| s.split_once('T')) {
        Some(Some((day, time))) => format!("{day} {time}"),
        _ if created.is_empty() => "date unknown".into(),
        _ => created.to_owned(),
    }
}

fn list(all: &[Data], options: &Options<'_>) -> Vec<Section> {
    let section = |id, nav, title, about, body| Section { id, nav, title, about, body };
    let all: Vec<&Data> = all.iter().collect();
    // A record of the peers program adds its own section and stands nowhere else.
    let mut records: Vec<&Data> = all.iter().copied().filter(|d| !d.only_peers()).collect();
    if records.is_empty() {
        records = all.clone();
    }
    let (conditions, orders) =
        ("What was measured on, and under which conditions.", "The same elements, read in different orders.");
    let distance = "How far apart the reads are matters as much as how many bytes there are.";
    let (written, shapes) =
        ("Views written out as contiguous memory.", "The same transpose with different tile shapes.");
    let mut out = vec![
        section("summary", "Summary", "In short", "", sections::summary::section(&records)),
        section("machine", "Machine", "Machine", conditions, sections::machine::section(&records)),
        section("walks", "Walks", "Walks", orders, sections::walks::section(&records)),
        section(
            "mountain",
            "Mountain",
            "Memory mountain and cliff",
            distance,
            sections::mountain::section(&records),
        ),
        section("copies", "Copies", "Materialization", written, sections::copies::section(&records)),
        section("tiles", "Tiles", "Tiles", shapes, sections::tiles::section(&records)),
        section(
            "peers",
            "Peers",
            "Peers",
            "Other libraries on the same work.",
            sections::peers::section(&all),
        ),
        section(
            "change",
            "Change",
            "Change against a baseline",
            "",
            sections::change::section(&records, options.baseline),
        ),
    ];
    if let Some(views) = options.views {
        out.push(section(
            "views",
            "Views",
            "One buffer, many views",
            "A view is a way to read: the same memory, other shape and strides.",
            explorer::section(views),
        ));
    }
    out.push(section(
        "raw",
        "Data",
        "Data, method, conventions",
        "",
        sections::raw::section(&all, options.command),
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_keeps_strings_and_figures() {
        let text = "{ \"a b\" : [ 1.0, 0.12493827160493827 ],\n\t\"c\\\\\" : \"say \\\" x \\\" \" }";
        assert_eq!(compact(text), r#"{"a b":[1.0,0.12493827160493827],"c\\":"say \" x \" "}"#);
        let back: serde_json::Value = serde_json::from_str(&compact(text)).unwrap();
        assert_eq!(back, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
}

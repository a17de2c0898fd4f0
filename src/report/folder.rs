//! The folder of a report: page, records, tables and the command, written whole or not at all.

use super::data::Data;
use super::explorer::Views;
use super::{csv, markdown, page};
use crate::bench::record::write_beside;
use crate::error::words::with_remedy;
use std::path::{Path, PathBuf};

/// What was written.
#[derive(Debug)]
pub struct Written {
    /// The folder.
    pub folder: PathBuf,
    /// Names of the files in it.
    pub files: Vec<String>,
    /// Size of the page.
    pub page_bytes: usize,
}

/// `<date>-<machine>`: letters, digits and dashes only, at most 64 characters.
///
/// ```
/// let text = r#"{"schema":"restride.record/1","created":"2026-11-30T08:00:00Z","cases":[],"machine":{"cpu":"Intel(R) Xeon(R) @ 2.1GHz"}}"#;
/// let data = restride::report::Data::parse(text.into(), "r.json").unwrap();
/// assert_eq!(restride::report::folder_name(&data), "2026-11-30-intel-xeon-2-1ghz");
/// ```
pub fn folder_name(d: &Data) -> String {
    let cpu = d.cpu().to_lowercase().replace("(r)", "").replace("(tm)", "");
    let date = d
        .created()
        .get(..10)
        .filter(|s| s.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
        .map(str::to_owned);
    let words = cpu.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let mut name = date.unwrap_or_else(|| "undated".into());
    for w in words {
        if name.len() + 1 + w.len() > 64 {
            break;
        }
        name.push('-');
        name.push_str(w);
    }
    name
}

/// Names for the files of each record: no number when there is only one.
fn numbered(i: usize, of: usize, stem: &str, ext: &str) -> String {
    if of == 1 { format!("{stem}.{ext}") } else { format!("{stem}-{}.{ext}", i + 1) }
}

/// Says that a report is a folder where something else has that name.
///
/// # Errors
///
/// One sentence with the name.
pub fn check_place(folder: &Path) -> Result<(), String> {
    match folder.metadata() {
        Ok(found) if !found.is_dir() => {
            let why = "a report is a folder of several files, so name a folder that is new or holds a report";
            Err(format!("{} is a file: {why}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Writes everything into `folder`, which is made when it is missing.
///
/// # Errors
///
/// One sentence with the file and the reason.
pub fn write(
    folder: &Path,
    records: &[Data],
    baseline: Option<&Data>,
    command: &str,
    views: Option<&Views>,
) -> Result<Written, String> {
    let fail = |path: &Path, e: std::io::Error| format!("cannot write {}: {e}", path.display());
    check_place(folder)?;
    std::fs::create_dir_all(folder).map_err(|e| fail(folder, with_remedy(e)))?;
    let html = page::html(records, &page::Options { command, baseline, views });
    let page_bytes = html.len();
    let mut files = Vec::new();
    let n = records.len();
    for (i, d) in records.iter().enumerate() {
        files.push((numbered(i, n, "record", "json"), d.text.clone()));
        files.push((numbered(i, n, "cases", "csv"), csv::cases(d)));
    }
    if let Some(b) = baseline {
        files.push(("baseline.json".into(), b.text.clone()));
    }
    files.push(("tables.md".into(), markdown::tables(records, baseline, command)));
    files.push(("command.txt".into(), format!("{command}\n")));
    // The page comes last: where it lies, everything beside it is there too.
    files.push(("report.html".into(), html));
    let mut names = Vec::new();
    for (name, content) in files {
        let path = folder.join(&name);
        write_beside(&path, content.as_bytes()).map_err(|e| fail(&path, e))?;
        names.push(name);
    }
    Ok(Written { folder: folder.to_owned(), files: names, page_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_cannot_leave_the_folder() {
        let cpu = "../../etc/</script> 🧊 ".repeat(9);
        let text = serde_json::json!({"schema": "restride.record/1", "created": "../../../x", "cases": [], "machine": {"cpu": cpu}});
        let name = folder_name(&Data::parse(text.to_string(), "x").unwrap());
        assert!(name.starts_with("undated-etc-script") && name.len() <= 64, "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
    }
}

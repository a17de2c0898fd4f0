//! Text for people: tables with aligned columns, figures of a readable size.

use super::Failure;
use crate::error::words::with_remedy;
use std::io::Write;

/// Writes text to standard output; a reader that has gone away ends the program quietly.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    printed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What became of writing to standard output.
pub(crate) fn printed(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            Err(Failure::new("io", format!("cannot write to standard output: {}", with_remedy(error))))
        }
        Ok(()) => Ok(()),
    }
}

/// Writes a line for people to standard error. Where nobody can read it (a closed pipe, a full disk) the command
/// goes on and ends as it would have.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Says what is odd, though no failure.
pub(crate) fn warn(message: &str) {
    say(&format!("restride: warning: {message}"));
}

/// A JSON value as indented text with a final newline.
pub(crate) fn json_text(value: &serde_json::Value) -> String {
    // The alternate form of a value is its indented JSON.
    format!("{value:#}\n")
}

/// Rows under a header, columns padded to their widest cell; columns named in `right` end flush.
pub(crate) fn table(header: &[&str], right: &[usize], rows: &[Vec<String>]) -> String {
    let width = |text: &str| text.chars().count();
    let widths: Vec<usize> = (0..header.len())
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell));
            cells.chain([width(header[column])]).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    let mut line = |cells: &[String]| {
        let mut text = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let gap = " ".repeat(widths[column].saturating_sub(width(cell)));
            let padded =
                if right.contains(&column) { format!("{gap}{cell}") } else { format!("{cell}{gap}") };
            text.push_str(if column == 0 { "" } else { "  " });
            text.push_str(&padded);
        }
        out.push_str(text.trim_end());
        out.push('\n');
    };
    line(&header.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
    rows.iter().for_each(|row| line(row));
    out
}

/// Bytes for people: `48 KiB`, `1.5 GiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

/// Three significant digits: `0.25`, `12.3`, `1230`.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.001 => format!("{value:.1e}"),
        size if size < 1.0 => format!("{value:.3}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Nanoseconds for people: `123 ns`, `1.23 ms`.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        _ if ns < 1e3 => format!("{} ns", figure(ns)),
        _ if ns < 1e6 => format!("{} us", figure(ns / 1e3)),
        _ if ns < 1e9 => format!("{} ms", figure(ns / 1e6)),
        _ => format!("{} s", figure(ns / 1e9)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [vec!["a".to_owned(), "1".to_owned()], vec!["naïve".to_owned(), "100".to_owned()]];
        assert_eq!(table(&["name", "ns"], &[1], &rows), "name    ns\na        1\nnaïve  100\n");
        assert_eq!(table(&["only"], &[], &[]), "only\n");
    }

    #[test]
    fn figures_are_short() {
        assert_eq!([0.0, 0.25, 1.5, 12.34, 123.4].map(figure), ["0", "0.250", "1.50", "12.3", "123"]);
        assert_eq!([0, 1023, 48 << 10, 1536 << 20].map(bytes), ["0 B", "1023 B", "48 KiB", "1.5 GiB"]);
    }
}

//! `restride report`: one page of this machine, or of given records.

use super::Failure;
use crate::dtype::Dtype;
use crate::error::words::{counted, plain, with_remedy};
use crate::report::{self, Data, folder_name, views_of, write};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  restride report\n  restride report record.json -o out\n  restride report new.json --baseline old.json\n  restride report server.json laptop.json peers.json"
)]
pub(crate) struct Args {
    /// Records made by `restride bench` or the peers program, several are compared; none measures this
    /// machine (preset quick, under 2 minutes, unless --preset says otherwise).
    #[arg(value_name = "RECORD.json")]
    records: Vec<PathBuf>,
    /// How much is measured where no record is given.
    #[arg(long, value_name = "quick|full", conflicts_with = "records")]
    preset: Option<String>,
    /// Measures only the cases whose name contains this, where no record is given.
    #[arg(long, value_name = "WORD", conflicts_with = "records")]
    filter: Option<String>,
    /// A record to compare the last one with.
    #[arg(long, value_name = "BASE.json")]
    baseline: Option<PathBuf>,
    /// Folder to write to [default: reports/`DATE-MACHINE`, with a number where that holds a report].
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// The command as one would type it: the program's name without its folder, arguments quoted where needed.
pub(crate) fn command_line(args: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:@%+".contains(c);
    let quote = |a: String| match a {
        a if !a.is_empty() && a.chars().all(plain) => a,
        a => format!("'{}'", a.replace('\'', "'\\''")),
    };
    std::iter::once("restride".to_owned()).chain(args.skip(1).map(quote)).collect::<Vec<_>>().join(" ")
}

fn read(path: &Path) -> Result<Data, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::new("io", format!("cannot read {}: {}", path.display(), with_remedy(e))))?;
    Data::parse(text, &path.display().to_string()).map_err(|e| Failure::new("record", e))
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let preset = super::bench_suite::read_preset(args.preset.as_deref())?;
    let mut records = args.records.iter().map(|p| read(p)).collect::<Result<Vec<_>, _>>()?;
    let baseline = args.baseline.as_deref().map(read).transpose()?;
    let (mut stopped, mut shortfalls) = (None, String::new());
    if records.is_empty() {
        if let Some(folder) = &args.output {
            check_folder(folder)?;
        }
        let (record, total) = super::bench_suite::measure(preset, args.filter.as_deref())?;
        if record.cases.is_empty() {
            return Err(Failure::new(
                "interrupted",
                "interrupted before the first case: nothing was written",
            ));
        }
        stopped =
            record.environment.interrupted.then(|| (record.environment.extra["jobs_done"].clone(), total));
        shortfalls = super::bench_suite::shortfalls(&record);
        records.push(Data::fresh(record).map_err(|e| Failure::new("record", e))?);
    }
    Data::tell_apart(&mut records);
    let views = views_of(&[3, 4], &[], Dtype::F32, None).map_err(|(expr, r)| Failure::refused(&expr, &r))?;
    let folder = args.output.unwrap_or_else(|| unused(Path::new("reports").join(folder_name(&records[0]))));
    let command = command_line(std::env::args());
    let done = write(&folder, &records, baseline.as_ref(), &command, Some(&views))
        .map_err(|e| Failure::new("io", e))?;
    super::text::print(&shortfalls)?;
    super::text::print(&format!(
        "{}: {} KiB, beside it {}\n",
        done.folder.join("report.html").display(),
        done.page_bytes.div_ceil(1024),
        done.files[..done.files.len() - 1].join(", ")
    ))?;
    match stopped {
        Some((done, total)) => Err(Failure::new(
            "interrupted",
            format!("interrupted: {done} of {} done and in the report", counted(total, "job")),
        )),
        None => Ok(()),
    }
}

/// The folder, or the first of that name with a number in which there is no report yet: one of the same day stays.
fn unused(folder: PathBuf) -> PathBuf {
    let taken = |folder: &Path| folder.join("report.html").exists();
    let numbered =
        |k: u32| folder.with_file_name(format!("{}-{k}", folder.file_name().unwrap_or_default().display()));
    match taken(&folder) {
        false => folder,
        true => (2..).map(numbered).find(|folder| !taken(folder)).unwrap_or(folder),
    }
}

/// Says now what would otherwise be found out after minutes of measuring.
fn check_folder(folder: &Path) -> Result<(), Failure> {
    let fail = |e: std::io::Error| {
        Failure::new(
            "io",
            format!("cannot write into {}: {}: name another folder", folder.display(), plain(e)),
        )
    };
    report::check_place(folder).map_err(|why| Failure::new("io", why))?;
    // Nothing is made yet: a run that is refused or stopped leaves no empty folder.
    let mut there = std::path::absolute(folder).map_err(fail)?;
    while !there.exists() {
        if !there.pop() {
            break;
        }
    }
    tempfile::tempfile_in(there).map(drop).map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::{command_line, unused};

    #[test]
    fn a_report_of_the_same_day_stays() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("2026-12-01-cpu");
        assert_eq!(unused(folder.clone()), folder);
        for taken in ["2026-12-01-cpu", "2026-12-01-cpu-2"] {
            std::fs::create_dir_all(home.path().join(taken)).unwrap();
            std::fs::write(home.path().join(taken).join("report.html"), "").unwrap();
        }
        assert_eq!(unused(folder), home.path().join("2026-12-01-cpu-3"));
    }

    #[test]
    fn the_command_can_be_typed_again() {
        let args =
            ["/somewhere/target/release/restride", "explore", "--shape", "3,4", ".T[:, ::2]", "it's", ""];
        assert_eq!(
            command_line(args.into_iter().map(String::from)),
            "restride explore --shape 3,4 '.T[:, ::2]' 'it'\\''s' ''"
        );
    }
}

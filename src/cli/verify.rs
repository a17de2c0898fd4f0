//! `restride verify`: every kernel level of this CPU against the oracle.

use super::{Failure, text};
use crate::CopyOptions;
use crate::copy::Isa;
use crate::copy::cover::{Bench, Cases, MOST_BYTES};
use crate::error::words::counted;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

/// Checks every kernel level that this CPU runs against the slow reference, byte by byte.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  restride verify\n\n\
                        A seeded sample of copies of every kind, their buffers between pages that fault on touch. \
                        Prints one line per level; takes less than 20 seconds.")]
pub(crate) struct Args {
    /// Seed of the sample
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Cases of a level, unless time runs out first.
const CASES: usize = 2000;

/// Time of all levels together.
const BUDGET: Duration = Duration::from_secs(12);

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    // All levels are checked whatever it names, but a name that is none is told.
    Isa::active()?;
    let mut bench = Bench::new(MOST_BYTES + 4096)?;
    let levels = Isa::available();
    let mut wrong = None;
    for (number, &isa) in levels.iter().enumerate() {
        let start = Instant::now();
        let budget = BUDGET / levels.len() as u32;
        let (mut checked, mut failed) = (0, 0);
        for case in Cases::new(args.seed).take(CASES) {
            if start.elapsed() > budget {
                break;
            }
            for streaming in [false, true] {
                let options = CopyOptions::default().isa(isa).streaming(streaming).threads(1);
                checked += 1;
                if let Some(why) = bench.check(&case, &options)? {
                    failed += 1;
                    wrong.get_or_insert(format!("{isa} differs from the reference: {why}"));
                }
            }
        }
        let mut line = format!("{isa:<8} {}, ", counted(checked, "copy"));
        let _ = match failed {
            0 => write!(line, "all equal the reference"),
            n => write!(line, "{n} WRONG"),
        };
        let used = if number == 0 { " (best)" } else { "" };
        text::print(&format!("{line}, {:.1} s{used}\n", start.elapsed().as_secs_f64()))?;
    }
    match wrong {
        None => Ok(()),
        Some(why) => Err(Failure::new("verify", why)),
    }
}

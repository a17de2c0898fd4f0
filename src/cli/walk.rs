//! `restride walk`: what reading an array in some order costs on this machine.

mod show;

use super::failure::{page_mode, read_caches, read_positive, read_shape, read_threads};
use super::progress::{self, Progress};
use super::{Failure, text};
use crate::bench::timing::{Effort, PageMode};
use crate::bench::walks::ladder::{self, Rung};
use crate::bench::walks::measure::{self, Point, Setup};
use crate::bench::walks::model::{self, Misses};
use crate::bench::walks::{Number, Pattern, Walk};
use crate::cachesim;
use crate::error::words::counted;
use crate::machine::affinity::{self, Pinned, Pinning};
use crate::machine::caches::parse_bytes;
use crate::machine::counters;
use crate::machine::topology::Topology;
use std::time::Duration;

/// Most points of one run: a list that multiplies beyond this is a slip.
const MAX_POINTS: usize = 2000;

/// Measures reads of an array in several orders: time, cache lines, and what the cache model says.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  restride walk --pattern row,column --shape 1024,1024 --model\n  \
                        restride walk --pattern chase --size 32K..64M --json\n  \
                        restride walk --pattern column --shape 1000,1000 --pitch 1000,1016,1024,1032\n\n\
                        Without --shape and --size a ladder of sizes is walked, from half of the L1 to four \
                        times the last level that is not shared with other machines.")]
pub(crate) struct Args {
    /// Orders: row, column, tiled, strided, random, chase.
    #[arg(long, value_delimiter = ',', default_values_t = ["row".to_owned(), "column".to_owned(), "chase".to_owned()])]
    pattern: Vec<String>,
    /// Rows and columns of the matrix, as in 1024,1024.
    #[arg(long, value_name = "R,C", conflicts_with = "size")]
    shape: Option<String>,
    /// Size of the array, or a range of sizes of which a ladder is walked, as in 32K..64M.
    #[arg(long, value_name = "SIZE[..SIZE]")]
    size: Option<String>,
    /// Element type: f32, f64, u8 or i64.
    #[arg(long, default_value = "f64")]
    dtype: String,
    /// Step in elements of strided walks; without it 1, 2, 4 ... 4096 are walked.
    #[arg(long, value_name = "N", value_parser = read_positive)]
    stride: Option<usize>,
    /// Elements from one row to the next, one point each (with --shape).
    #[arg(long, value_name = "N,N...", value_delimiter = ',', requires = "shape")]
    pitch: Vec<usize>,
    /// Side in elements of the tiles of tiled walks; without it one cache line.
    #[arg(long, value_name = "N", value_parser = read_positive)]
    tile: Option<usize>,
    /// Seed of random orders.
    #[arg(long, default_value_t = crate::bench::walks::DEFAULT_SEED)]
    seed: u64,
    /// Threads that walk at once, each over its share, or all for every core.
    #[arg(long, default_value = "1", value_name = "N|all", value_parser = read_threads)]
    threads: usize,
    /// Throws the array out of all caches before every pass.
    #[arg(long)]
    cold: bool,
    /// Pages of the array: 4k or huge.
    #[arg(long, default_value = "4k")]
    pages: String,
    /// Shows what the cache model says beside what was measured.
    #[arg(long)]
    model: bool,
    /// Caches of the model, instead of this machine's.
    #[arg(long, value_name = "L1d=48K/12/64,...")]
    caches: Option<String>,
    /// Milliseconds to spend on each point.
    #[arg(long, default_value_t = 150, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    budget_ms: u64,
    /// Prints JSON.
    #[arg(long)]
    json: bool,
}

/// A point, its model, and the page mode that was asked for.
struct Shown {
    point: Point,
    model: Option<Misses>,
}

/// Everything that one run found.
struct Found {
    points: Vec<Shown>,
    pinning: Pinning,
    pages: PageMode,
    cold: bool,
    interrupted: bool,
    counting: bool,
    caches: Vec<cachesim::CacheSpec>,
}

pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let topology = super::machine::checked_topology()?;
    let walks = walks(&args, topology)?;
    let pages = page_mode(&args.pages)?;
    if args.cold && !crate::machine::flush::available() {
        return Err(Failure::new(
            "cold",
            "--cold: this CPU has no instruction that flushes a line, leave it out",
        ));
    }
    let caches = match &args.caches {
        Some(text) => read_caches(text)?,
        None => topology.cache_specs(),
    };
    let caches: Vec<cachesim::CacheSpec> = caches.iter().map(Into::into).collect();
    if args.model && caches.is_empty() {
        return Err(Failure::new(
            "caches",
            "--model: this machine does not say what its caches are, give --caches",
        ));
    }
    let threads = args.threads;
    check_memory(&walks)?;
    let stop = progress::on_interrupt();
    let probes: Vec<_> =
        counters::host_probes().iter().filter(|probe| probe.state.usable()).copied().collect();
    let pinned = Pinned::best();
    let (pool, pinning) = match threads {
        1 => (None, pinned.pinning.clone()),
        _ => {
            let (pool, pinnings) = affinity::pinned_pool(threads)
                .map_err(|error| Failure::new("threads", format!("--threads {threads}: {error}")))?;
            let worst = pinnings.into_iter().find(|pinning| pinning.cpu().is_none());
            (Some(pool), worst.unwrap_or_else(|| pinned.pinning.clone()))
        }
    };
    let setup = Setup {
        pages,
        cold: args.cold,
        effort: Effort {
            budget: Duration::from_millis(args.budget_ms),
            min_samples: 5,
            max_samples: crate::bench::record::MAX_SAMPLES,
        },
        pool: pool.as_ref(),
        probes: &probes,
        stop,
    };
    let progress = Progress::new(walks.len() as u64);
    let mut points = Vec::new();
    for walk in &walks {
        progress.step(&format!("{} {}", walk.pattern.name(), text::bytes(walk.bytes() as u64)));
        let point = measure::measure(walk, &setup)?;
        if point.samples_ns.is_empty() {
            break;
        }
        if !point.verified {
            let name = walk.pattern.name();
            return Err(Failure::new(
                "verify",
                format!("the {name} walk summed other elements than it should: report this"),
            ));
        }
        let model = match args.model && walk.elements() <= model::MAX_READS {
            true => Some(model::misses(walk, &caches)?),
            false => None,
        };
        points.push(Shown { point, model });
        if progress::interrupted(stop) {
            break;
        }
    }
    progress.finish();
    let interrupted = progress::interrupted(stop);
    let found = Found {
        points,
        pinning,
        pages,
        cold: args.cold,
        interrupted,
        counting: probes.iter().any(|probe| !probe.event.is_software()),
        caches,
    };
    text::print(&if args.json {
        text::json_text(&found.json(topology))
    } else {
        found.text(topology, args.model)
    })?;
    match interrupted {
        true => Err(Failure::after_result(
            "interrupted",
            "interrupted: the points above are complete, the others were not walked",
        )),
        false => Ok(()),
    }
}

impl Found {
    /// The ladder of one pattern: times per element, by size.
    fn rungs(&self, pattern: Pattern) -> Vec<Rung> {
        self.points
            .iter()
            .filter(|shown| shown.point.walk.pattern == pattern)
            .filter_map(|shown| {
                let ns = show::per_element(&shown.point)?.median;
                Some(Rung { bytes: shown.point.walk.bytes(), ns })
            })
            .collect()
    }
}

/// The walks that the arguments name, pattern by pattern.
fn walks(args: &Args, topology: &Topology) -> Result<Vec<Walk>, Failure> {
    let number = Number::from_name(&args.dtype).ok_or_else(|| {
        Failure::usage("dtype", format!("--dtype {}: walks read f32, f64, u8 or i64", args.dtype))
    })?;
    let line = topology.line_bytes().bytes;
    let sizes = match (&args.shape, &args.size) {
        (Some(_), _) => Vec::new(),
        (None, Some(text)) => read_sizes(text)?,
        (None, None) => ladder::sizes(topology),
    };
    let shape = args.shape.as_deref().map(read_matrix).transpose()?;
    let mut walks = Vec::new();
    for name in &args.pattern {
        let pattern = Pattern::from_name(name.trim()).ok_or_else(|| {
            let known: Vec<&str> = Pattern::ALL.iter().map(|pattern| pattern.name()).collect();
            Failure::usage("pattern", format!("--pattern {name}: use {}", known.join(", ")))
        })?;
        let strides: Vec<usize> = match (pattern, args.stride) {
            (_, Some(0)) => return Err(Failure::usage("stride", "--stride 0: give a step of at least 1")),
            (Pattern::Strided, Some(stride)) => vec![stride],
            (Pattern::Strided, None) => (0..=12).map(|power| 1 << power).collect(),
            _ => vec![1],
        };
        let mut add = |walk: Walk| {
            let tile = args.tile.unwrap_or((line / number.bytes()).max(1));
            let walk = walk.with_tile(tile).with_seed(args.seed).with_line_bytes(line);
            walks.extend(strides.iter().map(|&stride| walk.with_stride(stride)));
        };
        match shape {
            Some((rows, cols)) => {
                let walk = Walk::new(pattern, number, rows, cols)
                    .map_err(|error| refuse("shape", args.shape.as_deref().unwrap_or_default(), &error))?;
                if args.pitch.is_empty() {
                    add(walk);
                }
                for &pitch in &args.pitch {
                    add(walk
                        .with_pitch(pitch)
                        .map_err(|error| refuse("pitch", &pitch.to_string(), &error))?);
                }
            }
            None => {
                for &bytes in &sizes {
                    add(ladder::square(pattern, number, bytes, line)?);
                }
            }
        }
    }
    if let Some(empty) = walks.iter().find(|walk| walk.is_empty()) {
        return Err(Failure::usage(
            "shape",
            format!(
                "a {} walk over {} reads nothing: give a larger --shape or --size",
                empty.pattern.name(),
                counted(empty.len(), "element")
            ),
        ));
    }
    if walks.len() > MAX_POINTS {
        return Err(Failure::usage(
            "size",
            format!("{} asked for, at most {MAX_POINTS} are walked at once", counted(walks.len(), "point")),
        ));
    }
    Ok(walks)
}

/// A number that can be read and is too large is no matter of the command line.
fn refuse(option: &'static str, text: &str, error: &crate::Error) -> Failure {
    match error.kind() {
        "overflow" => {
            Failure::new("overflow", format!("--{option} {text}: {error}, at most 1 TiB is walked"))
        }
        _ => Failure::usage(option, format!("--{option} {text}: {error}")),
    }
}

fn read_matrix(text: &str) -> Result<(usize, usize), Failure> {
    match read_shape(text)?.as_slice() {
        &[rows, cols] => Ok((rows, cols)),
        other => Err(Failure::usage(
            "shape",
            format!(
                "--shape {text}: a walk takes rows and columns, as in 1024,1024, got {}",
                counted(other.len(), "extent")
            ),
        )),
    }
}

/// `4M` is one size, `32K..64M` a ladder.
fn read_sizes(text: &str) -> Result<Vec<usize>, Failure> {
    let size = |part: &str| {
        parse_bytes(part.trim())
            .ok()
            .and_then(|bytes| usize::try_from(bytes).ok())
            .filter(|&bytes| (1..=crate::bench::walks::MAX_BYTES).contains(&bytes))
            .ok_or_else(|| {
                Failure::usage(
                    "size",
                    format!("--size {text}: \"{part}\" is no size from 1 to 1T, write 64K, 32M or 32K..64M"),
                )
            })
    };
    match text.split_once("..") {
        None => Ok(vec![size(text)?]),
        Some((low, high)) => {
            let (low, high) = (size(low)?, size(high)?);
            if low > high {
                return Err(Failure::usage("size", format!("--size {text}: the range begins above its end")));
            }
            Ok(ladder::between(low, high))
        }
    }
}

/// Refuses walks for which there is not enough memory, before any of it is touched.
fn check_memory(walks: &[Walk]) -> Result<(), Failure> {
    let need = |walk: &Walk| match walk.pattern {
        // The order of a random walk is kept beside the array.
        Pattern::Random => walk.bytes() + walk.elements() * 4,
        _ => walk.bytes(),
    };
    let most = walks.iter().map(need).max().unwrap_or(0) as u64;
    match crate::machine::pages::available_bytes() {
        Some(free) if most > free / 10 * 9 => Err(Failure::new(
            "alloc",
            format!(
                "the largest array needs {} and {} are free: walk smaller ones",
                text::bytes(most),
                text::bytes(free)
            ),
        )),
        _ => Ok(()),
    }
}

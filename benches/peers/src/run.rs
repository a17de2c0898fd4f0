//! Runs one case through every library, in turn with `memcpy`.

use crate::peers::{self, Peer, Prepared};
use crate::subject::Subject;
use restride::copy::reference;
use restride::machine::pages;
use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

/// How long and how often to sample.
#[derive(Clone, Copy)]
pub struct Effort {
    /// Stop a case after this long, once there are `least` samples.
    pub budget: Duration,
    /// At least so many samples of each library.
    pub least: usize,
    /// At most so many.
    pub most: usize,
    /// Ask for huge pages.
    pub huge: bool,
}

/// What one library did.
pub struct Outcome {
    /// Its name.
    pub peer: &'static str,
    /// Nanoseconds of one copy, one a sample; empty where it has no such operation.
    pub samples_ns: Vec<f64>,
    /// Whether the result equals the reference.
    pub verified: bool,
    /// Threads that it may have used.
    pub threads: usize,
}

/// One case through all libraries.
pub struct Results {
    /// Nanoseconds of `memcpy` of as many bytes as the result holds, one a sample, on one thread.
    pub memcpy_ns: Vec<f64>,
    /// One a library, in the order that they are shown.
    pub outcomes: Vec<Outcome>,
}

/// Bytes that start on a page, all written before anything is timed.
struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    fn new(len: usize, huge: bool) -> Self {
        const ALIGN: usize = 2 << 20;
        // Zeroed memory has no pages yet, so that the advice still counts.
        let memory = vec![0u8; len + ALIGN];
        let start = memory.as_ptr().align_offset(ALIGN).min(ALIGN);
        let place = memory[start..].as_ptr();
        match huge {
            true => pages::advise_huge(place, len),
            false => pages::advise_no_huge(place, len),
        };
        let mut buffer = Self { memory, start, len };
        buffer.fill(0xA5);
        buffer
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// Numbers of the case's type: floats are whole numbers, since a library may compute with them.
fn write_values(dtype: &str, bytes: &mut [u8]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    match dtype {
        "f32" => {
            bytes.chunks_exact_mut(4).for_each(|c| c.copy_from_slice(&((next() >> 41) as f32).to_ne_bytes()))
        }
        "f64" | "c128" => {
            bytes.chunks_exact_mut(8).for_each(|c| c.copy_from_slice(&((next() >> 12) as f64).to_ne_bytes()));
        }
        _ => bytes.chunks_mut(8).for_each(|c| c.copy_from_slice(&next().to_ne_bytes()[..c.len()])),
    }
}

/// Nanoseconds of one of `repeat` runs of `body`.
fn sample(repeat: u32, mut body: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..repeat).for_each(|_| body());
    start.elapsed().as_nanos() as f64 / f64::from(repeat)
}

/// Runs in one sample, so that it lasts long enough for the clock.
fn repeats(once_ns: f64) -> u32 {
    (100_000.0 / once_ns.max(1.0)).ceil().clamp(1.0, 100_000.0) as u32
}

struct Runner<'s> {
    prepared: Option<Prepared<'s>>,
    repeat: u32,
    outcome: Outcome,
}

/// Runs a case through the libraries that `wanted` holds.
///
/// # Errors
/// A sentence when the reference cannot read the view.
pub fn run(
    subject: &Subject,
    wanted: &[Box<dyn Peer>],
    threads: usize,
    effort: Effort,
) -> Result<Results, String> {
    let size = subject.element_size;
    let mut from = Buffer::new(subject.src_len * size, effort.huge);
    write_values(subject.case.dtype, &mut from);
    let mut to = Buffer::new(subject.dst_bytes(), effort.huge);
    let (copy_from, mut copy_to) =
        (Buffer::new(subject.dst_bytes(), effort.huge), Buffer::new(subject.dst_bytes(), effort.huge));
    let mut expect = vec![0u8; subject.dst_bytes()];
    reference::copy((&subject.src, &from), (&subject.dst, &mut expect), size, &vec![0; size])
        .map_err(|error| format!("case {}: {error}", subject.case.id))?;

    let mut runners: Vec<Runner> = Vec::new();
    for peer in wanted {
        let mut prepared = peer.prepare(subject, threads);
        let mut outcome = Outcome {
            peer: peer.name(),
            samples_ns: Vec::new(),
            verified: false,
            threads: prepared.as_ref().map_or(0, |p| p.threads),
        };
        let mut repeat = 1;
        if let Some(prepared) = &mut prepared {
            to.fill(0x5A);
            (prepared.run)(&from, &mut to);
            outcome.verified = *to == *expect;
            repeat = repeats(sample(1, || (prepared.run)(&from, &mut to)));
        }
        runners.push(Runner { prepared, repeat, outcome });
    }
    let mut memcpy = || {
        std::hint::black_box(&mut *copy_to).copy_from_slice(std::hint::black_box(&copy_from));
    };
    memcpy();
    let memcpy_repeat = repeats(sample(1, &mut memcpy));
    let mut memcpy_ns = Vec::new();
    let start = Instant::now();
    while memcpy_ns.len() < effort.most && (memcpy_ns.len() < effort.least || start.elapsed() < effort.budget)
    {
        memcpy_ns.push(sample(memcpy_repeat, &mut memcpy));
        for runner in &mut runners {
            if let Some(prepared) = &mut runner.prepared {
                runner.outcome.samples_ns.push(sample(runner.repeat, || (prepared.run)(&from, &mut to)));
            }
        }
    }
    Ok(Results { memcpy_ns, outcomes: runners.into_iter().map(|runner| runner.outcome).collect() })
}

/// The libraries of this build whose names hold one of `names`; all when there are none.
pub fn chosen(names: &[String]) -> Vec<Box<dyn Peer>> {
    let all = peers::all().into_iter();
    all.filter(|peer| names.is_empty() || names.iter().any(|name| peer.name().contains(name.as_str())))
        .collect()
}

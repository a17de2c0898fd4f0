//! Positive controls: work that makes an event happen at least a known number of times.
//!
//! The bounds are loose on purpose (a quarter of what is done, or less): they tell a counter that counts
//! from one that does not, and never a good CPU from a better one.

use super::Event;
use crate::machine::pages;
use std::hint::black_box;

const STEPS: u64 = 1 << 16;
const LINE: usize = 64;
const LINES: usize = 1 << 15;
const PAGES: usize = 1 << 12;
#[cfg(target_os = "linux")]
const FAULTS: usize = 256;
const SWITCHES: u64 = 8;

/// Work for one event, its memory prepared beforehand.
pub(super) struct Control {
    event: Event,
    memory: Vec<u8>,
}

impl Control {
    pub(super) fn new(event: Event) -> Self {
        let page = pages::Pages::host().page_bytes;
        let bytes = match event {
            Event::L1dMisses | Event::LlcReferences | Event::LlcMisses => LINES * LINE,
            Event::DtlbMisses => PAGES * page,
            Event::PageFaults => 0,
            _ => 1 << 12,
        };
        // Reserved and told its page size before the first touch: huge pages would spare the misses.
        let mut memory = Vec::with_capacity(bytes);
        if event == Event::DtlbMisses {
            pages::advise_no_huge(memory.as_ptr(), bytes);
        }
        memory.resize(bytes, 1_u8);
        Self { event, memory }
    }

    /// Does the work and returns the least that a working counter must show.
    pub(super) fn run(&mut self) -> u64 {
        match self.event {
            Event::Cycles => {
                black_box(chain(STEPS));
                STEPS / 8
            }
            Event::Instructions => {
                black_box(chain(STEPS));
                STEPS
            }
            Event::L1dReads => {
                for step in 0..STEPS as usize {
                    black_box(self.memory[black_box(step % self.memory.len())]);
                }
                STEPS / 2
            }
            Event::L1dMisses | Event::LlcReferences | Event::LlcMisses => self.cold_lines(),
            Event::DtlbMisses => {
                self.touch_scattered(pages::Pages::host().page_bytes);
                PAGES as u64 / 8
            }
            Event::BranchMisses => {
                black_box(coin_flips(STEPS));
                STEPS / 16
            }
            Event::PageFaults => fault(),
            Event::ContextSwitches => {
                for _ in 0..SWITCHES {
                    std::thread::sleep(std::time::Duration::from_micros(50));
                }
                SWITCHES / 2
            }
            Event::Migrations => migrate(),
        }
    }

    /// Reads lines that were flushed from every cache: each read must go to memory.
    #[cfg(target_arch = "x86_64")]
    fn cold_lines(&mut self) -> u64 {
        crate::machine::flush::flush(&self.memory);
        self.touch_scattered(LINE);
        LINES as u64 / 8
    }

    /// Without an instruction that flushes, only the first level is surely missed.
    #[cfg(not(target_arch = "x86_64"))]
    fn cold_lines(&mut self) -> u64 {
        self.touch_scattered(LINE);
        if self.event == Event::L1dMisses { LINES as u64 / 8 } else { 0 }
    }

    /// Reads one byte of every block in an order that no prefetcher follows: a full-period generator
    /// modulo a power of two visits each block once.
    fn touch_scattered(&self, block: usize) {
        let blocks = self.memory.len() / block;
        debug_assert!(blocks.is_power_of_two());
        let mut at = 1_usize;
        for _ in 0..blocks {
            at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) & (blocks - 1);
            black_box(self.memory[at * block]);
        }
    }
}

/// `steps` multiplications, each waiting for the one before.
fn chain(steps: u64) -> u64 {
    let mut x = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..steps {
        x = black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    x
}

/// Branches that go either way as a generator's high bit says.
fn coin_flips(flips: u64) -> u64 {
    let mut x = black_box(88_172_645_463_325_252_u64);
    let mut heads = 0;
    for _ in 0..flips {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if x >> 63 == 1 {
            // Opaque, so that the compiler cannot turn the branch into arithmetic.
            heads = black_box(heads) + 1;
        } else {
            heads = black_box(heads);
        }
    }
    heads
}

/// Touches freshly mapped pages: exactly one fault each, as base pages come one by one.
#[cfg(target_os = "linux")]
fn fault() -> u64 {
    let page = pages::Pages::host().page_bytes;
    let bytes = FAULTS * page;
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory of ours.
    let fresh = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    if fresh == libc::MAP_FAILED {
        return 0;
    }
    pages::advise_no_huge(fresh.cast(), bytes);
    for number in 0..FAULTS {
        // SAFETY: `number * page` lies inside the mapping of `bytes` writable bytes made above.
        unsafe { fresh.cast::<u8>().add(number * page).write_volatile(1) };
    }
    // SAFETY: the mapping was made above, is as long, and no reference to it exists.
    unsafe { libc::munmap(fresh, bytes) };
    FAULTS as u64
}

/// Elsewhere nothing counts faults, so nothing is promised.
#[cfg(not(target_os = "linux"))]
fn fault() -> u64 {
    0
}

/// Moves the thread to every allowed CPU and back; with a single CPU there is nothing to count.
fn migrate() -> u64 {
    crate::machine::affinity::tour().saturating_sub(1)
}

//! An exact model of set-associative caches, fed with the addresses of a walk.
//!
//! The model answers what a walk would cost on caches of a given size, also where the CPU has no
//! counters to read. It is exact in the sense that every number follows from these rules, and any
//! other program that follows them gets the same numbers:
//!
//! * A *naive* walk makes one read per valid logical element in row-major logical order. Padded
//!   positions make no read, and the destination is not modelled. The address of an element is its
//!   buffer index times the element size; the buffer starts at byte 0.
//! * A level holds `bytes / (ways * line)` sets; the set of a line is its number modulo the number
//!   of sets, which need not be a power of two. Sets are cold at the start and replace the least
//!   recently used line.
//! * Levels are neither inclusive nor exclusive: a level is accessed only on a miss of the level
//!   before it, and nothing that happens there comes back.
//! * An element that straddles lines is one access. All its lines are looked up in ascending order
//!   and brought in; the access misses if any of them was missing. The next level is then accessed
//!   once, with the whole element, by the same rule on its own lines.
//!
//! A *plan* walk makes the loads and stores of the plan's kernels in their order, each as wide as it is,
//! those of the copy's own memory (staging rows, tables of offsets) among them; see
//! [`crate::copy::replay`]. It adds writes: levels allocate on a write miss (the next level sees a read)
//! and write back on eviction. The victim is handed on before the new line is fetched; a write-back
//! marks the line in the next level that holds it, without touching its age and without counting
//! as an access, or goes on to memory. Streaming stores bypass every level and are counted apart.
//!
//! [`Options`] adds tree-PLRU replacement, a next-line prefetcher, a TLB and the three classes of
//! misses. None of them is on by default.

mod classes;
mod hierarchy;
mod level;
mod report;
mod runs;
mod sets;
mod spec;
mod trace;

pub use classes::Classes;
pub use hierarchy::{Access, Hierarchy};
pub use level::LevelCounts;
pub use report::{
    LevelReport, Levels, ModelReport, OwnReport, PlanLevelReport, PlanReport, StreamingReport, WalkReport,
    model, naive,
};
pub use runs::Run;
pub use spec::{CacheSpec, Options, Replacement, TlbSpec};
pub use trace::planned;

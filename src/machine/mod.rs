//! What the program knows of the machine it runs on.
//!
//! [`topology`], [`caches`], [`pages`] and [`fingerprint`] are read by the copy engine and are always
//! compiled; everything else is part of the instruments. Unknown stays unknown (`None`): whoever has
//! to decide all the same takes a documented default and says "assumed".

#[cfg(feature = "instruments")]
pub mod affinity;
pub mod caches;
#[cfg(feature = "instruments")]
pub mod counters;
mod cpuid;
mod cpulist;
pub mod fingerprint;
#[cfg(feature = "instruments")]
pub mod flush;
#[cfg(all(feature = "instruments", unix))]
pub mod interrupt;
pub mod pages;
mod sysfs;
pub mod topology;

//! The x86-64 levels.

pub(super) mod avx2;
pub(super) mod avx512;
mod lanes;
mod odd;
mod pick;
mod recipe;
mod rows;
mod run;
mod slide;
pub(super) mod sse2;
mod weave;

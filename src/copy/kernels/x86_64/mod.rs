//! The x86-64 levels.

pub(super) mod avx512;

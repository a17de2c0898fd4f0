//! The AArch64 level.

pub(super) mod neon;

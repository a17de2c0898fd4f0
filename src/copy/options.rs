//! What a caller may choose about a copy.

use super::kernels::Isa;
use super::tuning::Tuning;

/// How a copy is to run; everything is chosen for you unless set.
///
/// ```
/// use restride::{CopyOptions, Isa};
/// let options = CopyOptions::default().threads(2).isa(Isa::Scalar).streaming(false);
/// assert_eq!(options.thread_count(), Some(2));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct CopyOptions {
    pub(crate) threads: Option<usize>,
    pub(crate) isa: Option<Isa>,
    pub(crate) tuning: Option<Box<Tuning>>,
    pub(crate) streaming: Option<bool>,
}

impl CopyOptions {
    /// At most this many threads; 0 is the default, the physical cores allowed to the process.
    #[must_use]
    pub fn threads(mut self, n: usize) -> Self {
        self.threads = (n > 0).then_some(n);
        self
    }

    /// This instruction-set level instead of the best one; refused where the CPU lacks it.
    #[must_use]
    pub fn isa(mut self, isa: Isa) -> Self {
        self.isa = Some(isa);
        self
    }

    /// These tuning values instead of the machine's.
    #[must_use]
    pub fn tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = Some(Box::new(tuning));
        self
    }

    /// Stores that bypass the caches always or never, instead of by size.
    #[must_use]
    pub fn streaming(mut self, yes: bool) -> Self {
        self.streaming = Some(yes);
        self
    }

    /// The number of threads asked for, if any.
    pub fn thread_count(&self) -> Option<usize> {
        self.threads
    }
}

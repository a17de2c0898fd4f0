//! The libraries that are compared: one small file each.

mod fast_transpose;
#[cfg(feature = "hptt")]
mod hptt;
mod ndarray;
mod restride;
mod strided_perm;
mod transpose;

use crate::subject::Subject;

/// One library.
pub trait Peer {
    /// Name of its package.
    fn name(&self) -> &'static str;

    /// The copy of a view into a new row-major array, as this library does it; `None` where it has no such
    /// operation.
    fn prepare<'s>(&self, subject: &'s Subject, threads: usize) -> Option<Prepared<'s>>;
}

/// A copy that is ready to run.
pub struct Prepared<'s> {
    /// Threads that it may use.
    pub threads: usize,
    /// From the view's buffer into the result.
    pub run: Box<dyn FnMut(&[u8], &mut [u8]) + 's>,
}

impl<'s> Prepared<'s> {
    /// A copy of a library that knows one thread.
    fn serial(run: impl FnMut(&[u8], &mut [u8]) + 's) -> Option<Self> {
        Some(Self { threads: 1, run: Box::new(run) })
    }
}

/// All libraries of this build, restride first.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(restride::Restride),
        Box::new(strided_perm::StridedPerm),
        Box::new(ndarray::Ndarray),
        Box::new(transpose::Transpose),
        Box::new(fast_transpose::FastTranspose),
        #[cfg(feature = "hptt")]
        Box::new(hptt::Hptt),
    ]
}

/// Version of a package in this build.
pub fn version(name: &str) -> Option<&'static str> {
    if name == "restride" {
        return Some(env!("CARGO_PKG_VERSION"));
    }
    let lock = include_str!("../../Cargo.lock");
    let entry = lock.split("[[package]]").find(|entry| entry.contains(&format!("name = \"{name}\"")))?;
    entry.split("version = \"").nth(1)?.split('"').next()
}

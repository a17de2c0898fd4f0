//! A `.npy` file as mapped memory.

use super::error::NpyError;
use super::guard::Watch;
use super::header::Header;
use memmap2::Mmap;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A `.npy` file that is mapped, not read: its bytes come in as they are touched.
///
/// Replacing or unlinking the file while it is mapped is harmless. Cutting it short is not: with
/// [`install_signal_handlers`](super::install_signal_handlers) the process ends with one sentence when it touches what is missing,
/// without it with SIGBUS.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    header: Header,
    // Dropped before the mapping that it announces.
    _watch: Watch,
    map: Mmap,
}

impl Input {
    /// Maps `path` and reads its header.
    ///
    /// # Errors
    ///
    /// [`NpyError`] when there is no such file, it is a folder or a pipe, it cannot be mapped, or its header
    /// is refused.
    pub fn open(path: &Path) -> Result<Self, NpyError> {
        let fail = |doing: &str, error| NpyError::io(path, doing, error);
        // Asked before opening: opening a pipe would wait for its writer.
        let metadata = fs::metadata(path).map_err(|e| fail("cannot open the file", e))?;
        if metadata.is_dir() {
            return Err(NpyError::Unfit { path: path.into(), reason: "is a folder: name a .npy file in it" });
        }
        if !metadata.is_file() {
            return Err(NpyError::Unfit {
                path: path.into(),
                reason: "is no regular file and cannot be mapped: write its content to a file first",
            });
        }
        let file = File::open(path).map_err(|e| fail("cannot open the file", e))?;
        let length = file.metadata().map_err(|e| fail("cannot read the size of the file", e))?.len();
        if length == 0 {
            let source = Header::parse(&[]).err();
            return Err(match source {
                Some(source) => NpyError::Header { path: path.into(), source },
                None => fail("cannot map the file", io::ErrorKind::UnexpectedEof.into()),
            });
        }
        // SAFETY: the mapping is private to this process and only read. Another process may change or cut
        // the file: elements are plain bytes for which any value is valid, and a missing page ends the process
        // (see `guard`).
        let map = unsafe { Mmap::map(&file) }.map_err(|e| fail(&format!("cannot map {length} bytes"), e))?;
        let watch = Watch::new(
            &map,
            &format!(
                "restride: {}: the file was cut short while it was being read, nothing was written; run again when it \
                 is complete\n",
                path.display()
            ),
        );
        let header = Header::parse(&map).map_err(|source| NpyError::Header { path: path.into(), source })?;
        Ok(Input { path: path.into(), header, _watch: watch, map })
    }

    /// The file's name as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The bytes of the elements, in the file's own byte and memory order, at any alignment.
    pub fn data(&self) -> &[u8] {
        &self.map[self.header.data.clone()]
    }

    /// Tells the system whether the data will be read in jumps or from front to back.
    pub(super) fn expect_jumps(&self, jumps: bool) {
        expect_jumps(&self.map, jumps);
    }

    /// Gives the pages of this byte range of [`data`](Self::data) back; touching them again reads them again.
    pub(super) fn release(&self, range: Range<usize>) {
        let start = self.header.data.start;
        release(&self.map, start + range.start..start + range.end);
    }
}

/// Advice that is not taken changes the speed only.
#[cfg(unix)]
fn expect_jumps(map: &Mmap, jumps: bool) {
    let _ = map.advise(if jumps { memmap2::Advice::Random } else { memmap2::Advice::Sequential });
}

#[cfg(not(unix))]
fn expect_jumps(_map: &Mmap, _jumps: bool) {}

/// Drops the page table entries of a range of a file mapping.
#[cfg(unix)]
fn release(map: &Mmap, range: Range<usize>) {
    if range.is_empty() {
        return;
    }
    // SAFETY: the mapping is shared with its file and read-only, so that a dropped page comes back with the
    // same bytes.
    let _ =
        unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len()) };
}

#[cfg(not(unix))]
fn release(_map: &Mmap, _range: Range<usize>) {}

//! The two sides of a pass: mapped files and results between two passes.

use super::error::NpyError;
use super::input::Input;
use super::output::{Output, Scratch};
use crate::Error;
use memmap2::MmapMut;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Where the elements come from.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Source<'a> {
    /// A mapped file.
    File(&'a Input),
    /// The result of an earlier pass.
    Between(&'a Between),
}

impl Source<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::File(input) => input.data(),
            Self::Between(between) => between.bytes(),
        }
    }

    pub(super) fn release(&self, range: Range<usize>) {
        match self {
            Self::File(input) => input.release(range),
            Self::Between(between) => between.release(range),
        }
    }
}

/// Where they go.
#[derive(Debug)]
#[non_exhaustive]
pub enum Sink<'a> {
    /// The file to be written.
    File(&'a mut Output),
    /// The source of a later pass.
    Between(&'a mut Between),
}

impl Sink<'_> {
    /// The same sink for a shorter time.
    pub fn reborrow(&mut self) -> Sink<'_> {
        match self {
            Self::File(output) => Sink::File(output),
            Self::Between(between) => Sink::Between(between),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::File(output) => output.data_mut(),
            Self::Between(between) => between.bytes_mut(),
        }
    }

    pub(super) fn release(&mut self, range: Range<usize>) {
        match self {
            Self::File(output) => output.release(range),
            Self::Between(between) => between.release(range),
        }
    }
}

/// A result between two passes: in memory where it is small, otherwise in a temporary file.
#[derive(Debug)]
pub struct Between(Kept);

#[derive(Debug)]
enum Kept {
    Nothing,
    Memory(MmapMut),
    File(Scratch),
}

impl Between {
    /// Room for `bytes`, of which at most `in_memory` may be kept in memory; otherwise in `folder`.
    ///
    /// # Errors
    ///
    /// [`NpyError`] when there is neither memory nor disk space for it.
    pub fn new(bytes: usize, in_memory: usize, folder: &Path) -> Result<Self, NpyError> {
        if bytes == 0 {
            return Ok(Between(Kept::Nothing));
        }
        if bytes <= in_memory {
            return Ok(Between(Kept::Memory(buffer(bytes)?)));
        }
        let mut scratch = Scratch::create(folder, bytes)?;
        scratch.map(bytes)?;
        Ok(Between(Kept::File(scratch)))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match &self.0 {
            Kept::Nothing => &[],
            Kept::Memory(map) => map,
            Kept::File(scratch) => scratch.bytes(),
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Kept::Nothing => &mut [],
            Kept::Memory(map) => map,
            Kept::File(scratch) => scratch.bytes_mut(),
        }
    }

    pub(super) fn release(&self, range: Range<usize>) {
        if let Kept::File(scratch) = &self.0 {
            scratch.release(range);
        }
    }
}

/// Zeroed memory that starts on a page; refused, not aborted, when there is none.
pub(super) fn buffer(bytes: usize) -> Result<MmapMut, NpyError> {
    MmapMut::map_anon(bytes).map_err(|_: io::Error| NpyError::Copy(Error::Alloc { bytes }))
}

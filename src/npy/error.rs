//! What can go wrong with a file: one sentence that names the file, the field and what to do.

use super::header::HeaderError;
use crate::error::words::remedy;
use std::io;
use std::path::{Path, PathBuf};

/// A file that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// The file is no `.npy` file that can be read.
    #[error("{}: {source}", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// The field and what is wrong with it.
        source: HeaderError,
    },
    /// The operating system refused something.
    #[error("{}: {doing}: {source}; {remedy}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was being done.
        doing: String,
        /// The reason of the operating system.
        source: io::Error,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A copy was refused, for example because a size does not fit the address space.
    #[error(transparent)]
    Copy(#[from] crate::Error),
    /// The path names something that is no regular file, or may not be written.
    #[error("{}: {reason}", path.display())]
    Unfit {
        /// The path.
        path: PathBuf,
        /// What it is and what to do.
        reason: &'static str,
    },
}

impl NpyError {
    /// A short stable name of the reason: `header`, `io`, `file` or that of the refused copy.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Header { .. } => "header",
            Self::Copy(error) => error.kind(),
            Self::Io { .. } => "io",
            Self::Unfit { .. } => "file",
        }
    }

    /// An error of the operating system, with the remedy that fits it.
    pub(super) fn io(path: &Path, doing: impl Into<String>, source: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), doing: doing.into(), remedy: remedy(source.kind()), source }
    }
}

//! Words of messages: numbers beside their nouns (`1 case`, `3 entries`), and what the system says.

use std::fmt::Display;
#[cfg(any(test, feature = "npy", feature = "instruments", feature = "profile"))]
use std::io;

/// A number and its noun, in the plural unless the number is 1.
pub(crate) fn counted<T: Display + PartialEq + From<u8>>(n: T, noun: &str) -> String {
    if n == T::from(1) { format!("{n} {noun}") } else { format!("{n} {}", plural(noun)) }
}

/// An error of the system in its own words: one of a temporary file names that file, which nobody asked for.
#[cfg(any(test, feature = "instruments", feature = "profile"))]
pub(crate) fn plain(error: io::Error) -> io::Error {
    let text = error.to_string();
    match (error.raw_os_error(), text.split_once(" at path \"")) {
        (None, Some((told, _))) => io::Error::new(error.kind(), told.to_owned()),
        _ => error,
    }
}

/// What helps against an error of the operating system.
#[cfg(any(feature = "npy", feature = "instruments"))]
pub(crate) fn remedy(kind: io::ErrorKind) -> &'static str {
    use io::ErrorKind;
    match kind {
        ErrorKind::NotFound => "check the path",
        ErrorKind::PermissionDenied => "check the permissions of the file and its folder",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            "free some space or name a target on another disk"
        }
        ErrorKind::FileTooLarge => "raise the file size limit (ulimit -f) or name a target on another disk",
        ErrorKind::ReadOnlyFilesystem => "name a target on a disk that can be written",
        ErrorKind::OutOfMemory => "raise the address space limit (ulimit -v) or work on a smaller view",
        ErrorKind::NotADirectory => "check the path: a part of it is no folder",
        _ => "check the file and its disk",
    }
}

/// As [`plain`], with what helps against it.
#[cfg(feature = "instruments")]
pub(crate) fn with_remedy(error: io::Error) -> io::Error {
    let error = plain(error);
    let kind = error.kind();
    io::Error::new(kind, format!("{error}; {}", remedy(kind)))
}

/// The plural of a regular noun.
pub(crate) fn plural(noun: &str) -> String {
    match noun.as_bytes() {
        [.., b'x'] if noun.ends_with("index") => format!("{}ices", &noun[..noun.len() - 2]),
        [.., b'i', b's'] => format!("{}es", &noun[..noun.len() - 2]),
        [.., b's' | b'x'] | [.., b'c' | b's', b'h'] => format!("{noun}es"),
        [stem @ .., before, b'y'] if !b"aeiou".contains(before) => {
            format!("{}ies", &noun[..stem.len() + 1])
        }
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_temporary_file_is_not_told() {
        let error = tempfile::Builder::new().tempfile_in("/no/such/folder").unwrap_err();
        assert!(error.to_string().contains("/no/such"), "{error}");
        let told = plain(error);
        assert_eq!(told.kind(), io::ErrorKind::NotFound);
        assert!(!told.to_string().contains("/no/such"), "{told}");
        assert_eq!(plain(io::Error::other("as it is")).to_string(), "as it is");
    }

    #[test]
    fn one_stands_alone_and_everything_else_is_many() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "case")), ["0 cases", "1 case", "2 cases"]);
        assert_eq!([1, 2].map(|n| counted(n, "entry")), ["1 entry", "2 entries"]);
        assert_eq!([1, 2].map(|n| counted(n, "array")), ["1 array", "2 arrays"]);
        assert_eq!([1, 2].map(|n| counted(n, "cache miss")), ["1 cache miss", "2 cache misses"]);
        assert_eq!(["axis", "index", "match", "copy"].map(plural), ["axes", "indices", "matches", "copies"]);
        assert_eq!(
            (counted(1.0, "time"), counted(1.5, "time")),
            ("1 time".to_owned(), "1.5 times".to_owned())
        );
    }
}

//! The file that appears whole or not at all.
//!
//! Space is reserved first, so that a full disk is an error here and not a signal in the middle of a copy.
//! Then the data is written through a mapping of a file without a name (or, where the file system knows no
//! such thing, of a hidden file beside the target), and only [`Output::commit`] gives it the target's name.

use super::error::NpyError;
use super::guard::{Doomed, Watch};
use memmap2::{MmapMut, MmapOptions};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tempfile::TempPath;

/// A file being written; dropping it before [`commit`](Self::commit) leaves nothing behind.
#[derive(Debug)]
pub struct Output {
    place: Place,
    header_bytes: usize,
    // Dropped before the mapping that it announces.
    _watch: Watch,
    map: MmapMut,
    // Dropped before the signal handler forgets its name.
    name: Option<TempPath>,
    doomed: Option<Doomed>,
    file: File,
}

impl Output {
    /// Reserves room for `header` and `data_bytes` beside `target`, and maps it.
    ///
    /// `target` may exist: it stays as it is until the commit, which keeps its permissions. A symbolic link
    /// is followed.
    ///
    /// # Errors
    ///
    /// [`NpyError`] when the target is a folder, no regular file or read-only, when its folder cannot be
    /// written, and when there is not enough space.
    pub fn create(target: &Path, header: &[u8], data_bytes: usize) -> Result<Self, NpyError> {
        let place = Place::find(target)?;
        // The variable is there for tests of the second way and for file systems that only claim the first.
        let hidden = std::env::var_os("RESTRIDE_NAMED_TEMPORARY").is_some();
        Self::create_at(place, header, data_bytes, hidden)
    }

    fn create_at(place: Place, header: &[u8], data_bytes: usize, hidden: bool) -> Result<Self, NpyError> {
        let (file, name, doomed) = place.open_beside(hidden)?;
        let total = (header.len() as u64).checked_add(data_bytes as u64).filter(|&t| t <= i64::MAX as u64);
        let total = total.ok_or_else(|| {
            place.fail("cannot reserve space", io::Error::from(io::ErrorKind::FileTooLarge))
        })?;
        reserve(&file, total).map_err(|e| place.fail(format!("cannot reserve {total} bytes"), e))?;
        let map = map_whole(&file, total).map_err(|e| place.fail(format!("cannot map {total} bytes"), e))?;
        let watch = Watch::new(
            &map,
            &format!(
                "restride: {}: the disk lost the space that was reserved, nothing was written; free some space and run \
                 again\n",
                place.shown.display()
            ),
        );
        let mut output = Output { place, header_bytes: header.len(), _watch: watch, map, name, doomed, file };
        output.map[..header.len()].copy_from_slice(header);
        Ok(output)
    }

    /// The bytes of the elements; their content is 0 until written.
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.map[self.header_bytes..]
    }

    /// The folder of the target, where temporary files belong.
    pub fn folder(&self) -> &Path {
        &self.place.folder
    }

    /// Starts writing a finished range of [`data_mut`](Self::data_mut) to disk and gives its memory back.
    pub(super) fn release(&mut self, range: Range<usize>) {
        write_back(&self.file, &self.map, self.header_bytes + range.start..self.header_bytes + range.end);
    }

    /// Writes everything to disk and gives the file the target's name.
    ///
    /// # Errors
    ///
    /// [`NpyError`] when the disk fails or the target cannot be replaced; the target is then what it was.
    pub fn commit(self) -> Result<(), NpyError> {
        let Output { place, _watch, map, name, doomed, file, .. } = self;
        drop(_watch);
        drop(map);
        file.sync_all().map_err(|e| place.fail("cannot write the data to disk", e))?;
        keep_mode(&place.path, &file);
        let (name, _doomed) = match name {
            Some(name) => (name, doomed),
            None => place.give_name(&file)?,
        };
        name.persist(&place.path).map_err(|e| place.fail("cannot replace the file", e.error))?;
        if let Ok(folder) = File::open(&place.folder) {
            // The file is whole already; some file systems cannot sync a folder.
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// A file without a name beside the output, for intermediate results that are larger than memory allows.
#[derive(Debug)]
pub(super) struct Scratch {
    file: File,
    folder: PathBuf,
    _watch: Option<Watch>,
    map: Option<MmapMut>,
}

impl Scratch {
    /// Reserves `bytes` in `folder`.
    pub(super) fn create(folder: &Path, bytes: usize) -> Result<Self, NpyError> {
        let fail = |doing: String, e| NpyError::io(folder, doing, e);
        let file = tempfile::tempfile_in(folder)
            .map_err(|e| fail("cannot create a temporary file beside the output".into(), e))?;
        reserve(&file, bytes as u64)
            .map_err(|e| fail(format!("cannot reserve {bytes} bytes for an intermediate result"), e))?;
        Ok(Scratch { file, folder: folder.into(), _watch: None, map: None })
    }

    /// Maps the whole file, which must not be empty.
    pub(super) fn map(&mut self, bytes: usize) -> Result<(), NpyError> {
        let map = map_whole(&self.file, bytes as u64).map_err(|e| {
            NpyError::io(&self.folder, format!("cannot map {bytes} bytes of an intermediate result"), e)
        })?;
        let message = format!(
            "restride: {}: the disk lost the space reserved for an intermediate result, nothing was written; free some \
             space and run again\n",
            self.folder.display()
        );
        self._watch = Some(Watch::new(&map, &message));
        self.map = Some(map);
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.map.as_deref().unwrap_or(&[])
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.map.as_deref_mut().unwrap_or(&mut [])
    }

    pub(super) fn release(&self, range: Range<usize>) {
        if let Some(map) = &self.map {
            write_back(&self.file, map, range);
        }
    }

    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), NpyError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.write_all(bytes))
            .map_err(|e| NpyError::io(&self.folder, "cannot write an intermediate result", e))
    }

    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), NpyError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))
            .and_then(|_| file.read_exact(bytes))
            .map_err(|e| NpyError::io(&self.folder, "cannot read an intermediate result", e))
    }
}

/// Where the file goes.
#[derive(Debug)]
struct Place {
    /// As it was given, for messages.
    shown: PathBuf,
    /// With links followed.
    path: PathBuf,
    folder: PathBuf,
    file_name: OsString,
}

impl Place {
    fn find(target: &Path) -> Result<Self, NpyError> {
        let unfit = |reason| NpyError::Unfit { path: target.into(), reason };
        match fs::metadata(target) {
            Ok(m) if m.is_dir() => return Err(unfit("is a folder: name a file in it")),
            Ok(m) if !m.is_file() => {
                return Err(unfit(
                    "is no regular file: the result is written beside its target and renamed, so name a file",
                ));
            }
            Ok(m) if m.permissions().readonly() || !may_write(target) => {
                return Err(unfit("is read-only: make it writable or name another file"));
            }
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(NpyError::io(target, "cannot write there", e)),
        }
        let path = follow(target).map_err(|e| NpyError::io(target, "cannot follow the link", e))?;
        let file_name = match path.file_name() {
            // `file_name` overlooks a final slash.
            Some(name) if !target.as_os_str().as_encoded_bytes().ends_with(b"/") => name.to_os_string(),
            _ => return Err(unfit("names no file: give the name of the file to write")),
        };
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        Ok(Place { shown: target.into(), path, folder, file_name })
    }

    fn fail(&self, doing: impl Into<String>, error: io::Error) -> NpyError {
        NpyError::io(&self.shown, doing, error)
    }

    /// How names of temporary files start; cut so that the whole name stays below 255 bytes.
    fn prefix(&self) -> OsString {
        let mut prefix = OsString::from(".");
        if self.file_name.len() <= 200 {
            prefix.push(&self.file_name);
            prefix.push(".");
        }
        prefix.push("restride-");
        prefix
    }

    fn builder<T>(&self, build: impl FnOnce(&mut tempfile::Builder<'_, '_>) -> T) -> T {
        build(tempfile::Builder::new().prefix(&self.prefix() as &OsStr))
    }

    /// A new file in the target's folder: without a name where the file system can, hidden where not.
    fn open_beside(&self, hidden: bool) -> Result<(File, Option<TempPath>, Option<Doomed>), NpyError> {
        if !hidden && let Some(file) = open_nameless(&self.folder) {
            return Ok((file, None, None));
        }
        let mut doomed = None;
        let made = self.builder(|b| {
            b.make_in(&self.folder, |path| {
                // Announced before it exists, so that no signal falls in between.
                let announced = Doomed::new(path);
                let file = File::options().read(true).write(true).create_new(true).open(path)?;
                doomed = Some(announced);
                Ok(file)
            })
        });
        let (file, name) =
            made.map_err(|e| self.fail("cannot create a file beside the target", e))?.into_parts();
        Ok((file, Some(name), doomed))
    }

    /// Gives a file without a name a hidden one beside the target.
    fn give_name(&self, file: &File) -> Result<(TempPath, Option<Doomed>), NpyError> {
        let mut doomed = None;
        let made = self.builder(|b| {
            b.make_in(&self.folder, |path| {
                let announced = Doomed::new(path);
                link(file, path)?;
                doomed = Some(announced);
                Ok(())
            })
        });
        let named = made.map_err(|e| self.fail("cannot name the finished file", e))?;
        Ok((named.into_temp_path(), doomed))
    }
}

/// The path with every symbolic link at its end followed, also one that leads nowhere yet.
fn follow(target: &Path) -> io::Result<PathBuf> {
    let mut path = target.to_path_buf();
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(next) => path = path.parent().unwrap_or(Path::new("")).join(next),
            // No link, or nothing there.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many links"))
}

#[cfg(unix)]
fn may_write(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn may_write(_path: &Path) -> bool {
    true
}

#[cfg(target_os = "linux")]
fn open_nameless(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    let file = File::from(open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode).ok()?);
    // It gets its name through /proc at the end; better to know now when that is not there.
    fs::metadata(proc_path(&file)).ok()?;
    Some(file)
}

#[cfg(target_os = "linux")]
fn proc_path(file: &File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

#[cfg(target_os = "linux")]
fn link(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    Ok(linkat(CWD, proc_path(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn open_nameless(_folder: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn link(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes sure that every byte of the file has room on the disk.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
        use rustix::io::Errno;
        // Some file systems take all that is left before they refuse.
        if let Ok(disk) = fstatvfs(file)
            && disk.f_blocks > 0
            && bytes / disk.f_frsize.max(1) > disk.f_bfree
        {
            return Err(Errno::NOSPC.into());
        }
        loop {
            match fallocate(file, FallocateFlags::empty(), 0, bytes) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => break,
                Err(e) => return Err(e.into()),
            }
        }
    }
    write_zeros(file, bytes)
}

/// Fills a file with zeros where space cannot be reserved in another way.
fn write_zeros(mut file: &File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0u8; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let now = left.min(zeros.len() as u64);
        file.write_all(&zeros[..now as usize])?;
        left -= now;
    }
    Ok(())
}

fn map_whole(file: &File, bytes: u64) -> io::Result<MmapMut> {
    let bytes = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    // SAFETY: the file is ours alone: it has no name, or one that nobody was told. Should somebody cut it
    // short nevertheless, the process ends (see `guard`).
    unsafe { MmapOptions::new().len(bytes).map_mut(file) }
}

/// Starts writing whole pages of a range to disk and drops them from this process's memory.
#[cfg(unix)]
fn write_back(file: &File, map: &MmapMut, range: Range<usize>) {
    if range.is_empty() {
        return;
    }
    // Asynchronous, advice only: the final sync reports what goes wrong.
    start_writing(file, range.clone());
    // SAFETY: the mapping is shared with its file, so that a dropped page comes back with what was
    // written to it.
    let _ =
        unsafe { map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.start, range.len()) };
}

#[cfg(not(unix))]
fn write_back(_file: &File, _map: &MmapMut, _range: Range<usize>) {}

#[cfg(target_os = "linux")]
fn start_writing(file: &File, range: Range<usize>) {
    use std::os::fd::AsRawFd;
    // SAFETY: the call takes numbers only; the descriptor is open as long as `file` is borrowed.
    unsafe {
        libc::sync_file_range(
            file.as_raw_fd(),
            range.start as libc::off64_t,
            range.len() as libc::off64_t,
            libc::SYNC_FILE_RANGE_WRITE,
        );
    }
}

#[cfg(all(unix, not(target_os = "linux")))]
fn start_writing(_file: &File, _range: Range<usize>) {}

/// Gives the new file the owner and permissions of the one it replaces, as far as that is allowed.
#[cfg(unix)]
fn keep_mode(target: &Path, file: &File) {
    use std::os::unix::fs::MetadataExt;
    if let Ok(old) = fs::metadata(target) {
        let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
        let _ = file.set_permissions(old.permissions());
    }
}

#[cfg(not(unix))]
fn keep_mode(_target: &Path, _file: &File) {}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn nothing_is_there_before_the_commit_and_nothing_else_after() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.npy");
        fs::write(&target, "old").unwrap();
        let mut output = Output::create(&target, b"head", 3).unwrap();
        output.data_mut().copy_from_slice(b"abc");
        output.release(0..3);
        assert_eq!(output.data_mut(), b"abc");
        assert_eq!(fs::read(&target).unwrap(), b"old");
        drop(output);
        assert_eq!(names(folder.path()), ["out.npy"]);
        let mut output = Output::create(&target, b"head", 3).unwrap();
        output.data_mut().copy_from_slice(b"abc");
        output.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"headabc");
        assert_eq!(names(folder.path()), ["out.npy"]);
    }

    #[test]
    fn a_hidden_file_does_the_same_where_there_are_none_without_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.npy");
        let create = || {
            let mut output = Output::create_at(Place::find(&target).unwrap(), b"head", 3, true).unwrap();
            output.data_mut().copy_from_slice(b"abc");
            let there = names(folder.path());
            assert!(there[0].starts_with(".out.npy.restride-"), "{there:?}");
            output
        };
        drop(create());
        assert!(names(folder.path()).is_empty());
        create().commit().unwrap();
        assert_eq!(names(folder.path()), ["out.npy"]);
        assert_eq!(fs::read(&target).unwrap(), b"headabc");
    }

    #[test]
    fn a_target_with_the_longest_name_works() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("x".repeat(255));
        for hidden in [false, true] {
            let output = Output::create_at(Place::find(&target).unwrap(), b"head", 0, hidden).unwrap();
            output.commit().unwrap();
        }
        assert_eq!(names(folder.path()), ["x".repeat(255)]);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_of_the_old_file_stay() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out.npy");
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
        Output::create(&target, b"head", 0).unwrap().commit().unwrap();
        assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
        fs::set_permissions(&target, fs::Permissions::from_mode(0o444)).unwrap();
        let error = Output::create(&target, b"head", 0).unwrap_err().to_string();
        assert!(error.contains("read-only"), "{error}");
        assert_eq!(fs::read(&target).unwrap(), b"head");
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_also_to_what_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        let link = folder.path().join("link.npy");
        std::os::unix::fs::symlink("sub/real.npy", &link).unwrap();
        Output::create(&link, b"one", 0).unwrap().commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(folder.path().join("sub/real.npy")).unwrap(), b"one");
        Output::create(&link, b"two", 0).unwrap().commit().unwrap();
        assert_eq!(fs::read(&link).unwrap(), b"two");
        let round = folder.path().join("round");
        std::os::unix::fs::symlink("round", &round).unwrap();
        assert!(Output::create(&round, b"x", 0).is_err());
    }

    #[test]
    fn what_cannot_be_a_target_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Output::create(path, b"head", 1).unwrap_err().to_string();
        assert!(refused(folder.path()).contains("is a folder"));
        assert!(refused(&folder.path().join("no/such/out.npy")).contains("check the path"));
        assert!(refused(&folder.path().join("slash/")).contains("names no file"));
        fs::write(folder.path().join("file"), "x").unwrap();
        assert!(refused(&folder.path().join("file/out.npy")).contains("no folder"));
        #[cfg(unix)]
        assert!(refused(Path::new("/dev/null")).contains("no regular file"));
        let enormous = Output::create(&folder.path().join("big.npy"), b"head", 1 << 60).unwrap_err();
        assert!(enormous.to_string().contains("cannot reserve"), "{enormous}");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn zeros_reserve_space_where_nothing_else_does() {
        let file = tempfile::tempfile().unwrap();
        write_zeros(&file, (1 << 20) + 5).unwrap();
        assert_eq!(file.metadata().unwrap().len(), (1 << 20) + 5);
    }
}

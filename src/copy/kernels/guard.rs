//! Buffers between pages that fault on touch: a kernel that reads or writes outside dies at once.

use crate::Error;

/// Where a range lies inside a guarded buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// This many bytes past the first page's start.
    Front(usize),
    /// This many bytes before the last page's end: `Back(0)` ends where the guard page begins.
    Back(usize),
}

/// A zeroed buffer of whole pages with a page on each side that faults on touch.
///
/// Where the system has no page protection the pages on each side are just more memory.
pub struct Guarded {
    map: *mut u8,
    mapped: usize,
    page: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Guarded {}

impl Guarded {
    /// A buffer that holds at least `bytes` bytes.
    ///
    /// # Errors
    /// `Alloc` when the pages cannot be had.
    #[cfg(unix)]
    pub fn new(bytes: usize) -> Result<Self, Error> {
        // SAFETY: sysconf has no preconditions.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let mapped = bytes.next_multiple_of(page) + 2 * page;
        let failed = Error::Alloc { bytes: mapped };
        // SAFETY: a new private mapping; the two protected pages lie inside it.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
            let map =
                libc::mmap(std::ptr::null_mut(), mapped, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
            if map == libc::MAP_FAILED {
                return Err(failed);
            }
            let guard = Self { map: map.cast(), mapped, page };
            let rear = guard.map.add(mapped - page);
            for side in [guard.map, rear] {
                if libc::mprotect(side.cast(), page, libc::PROT_NONE) != 0 {
                    return Err(failed);
                }
            }
            Ok(guard)
        }
    }

    /// A buffer that holds at least `bytes` bytes.
    ///
    /// # Errors
    /// `Alloc` when the memory cannot be had.
    #[cfg(not(unix))]
    pub fn new(bytes: usize) -> Result<Self, Error> {
        let page = 4096;
        let mapped = bytes.next_multiple_of(page) + 2 * page;
        let map = Vec::leak(vec![0u8; mapped]).as_mut_ptr();
        Ok(Self { map, mapped, page })
    }

    /// Bytes between the guard pages; never 0.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.mapped - 2 * self.page
    }

    /// Where a range of `bytes` bytes starts that lies at `place`.
    pub fn start(&self, place: Place, bytes: usize) -> usize {
        match place {
            Place::Front(skew) => skew,
            Place::Back(skew) => self.len() - bytes - skew,
        }
    }

    /// The bytes between the guard pages.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: these pages are mapped, initialised and readable for as long as `self` lives.
        unsafe { std::slice::from_raw_parts(self.map.add(self.page), self.len()) }
    }

    /// The bytes between the guard pages.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, and writable; `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.map.add(self.page), self.len()) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping was made in `new` and nothing borrows from it any more.
        #[cfg(unix)]
        unsafe {
            libc::munmap(self.map.cast(), self.mapped);
        }
    }
}

//! Addresses without memory: somewhere for the pointers of a copy to point that is not made.

use crate::Error;

/// Address space of so many bytes that can be neither read nor written: whatever touches it dies at once.
///
/// Where the system cannot reserve addresses alone it is memory that nobody looks at.
pub(crate) struct Room {
    start: *mut u8,
    bytes: usize,
}

/// Rooms start on a page.
#[cfg(not(unix))]
const PAGE: usize = 4096;

impl Room {
    /// Reserves `bytes` bytes.
    ///
    /// # Errors
    /// `Alloc` where there are not as many addresses.
    #[cfg(unix)]
    pub(crate) fn new(bytes: usize) -> Result<Self, Error> {
        let bytes = bytes.max(1);
        // SAFETY: a new private mapping of no particular address.
        let start = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return Err(Error::Alloc { bytes });
        }
        Ok(Self { start: start.cast(), bytes })
    }

    /// Reserves `bytes` bytes.
    ///
    /// # Errors
    /// `Alloc` where there is not as much memory.
    #[cfg(not(unix))]
    pub(crate) fn new(bytes: usize) -> Result<Self, Error> {
        let bytes = bytes.max(1);
        let layout = std::alloc::Layout::from_size_align(bytes, PAGE);
        let layout = layout.map_err(|_| Error::Alloc { bytes })?;
        // SAFETY: the size is not 0.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        if start.is_null() {
            return Err(Error::Alloc { bytes });
        }
        Ok(Self { start, bytes })
    }

    /// The first address; a multiple of the page size.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: `new` made the mapping, and nothing of it is in use any more.
        #[cfg(unix)]
        unsafe {
            libc::munmap(self.start.cast(), self.bytes);
        }
        // SAFETY: `new` allocated it with this layout, which was valid then.
        #[cfg(not(unix))]
        unsafe {
            std::alloc::dealloc(self.start, std::alloc::Layout::from_size_align_unchecked(self.bytes, PAGE));
        }
    }
}

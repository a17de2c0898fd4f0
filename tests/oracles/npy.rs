//! `.npy` files. Input: the bytes of a file; when they are none, a header is put before them.
//!
//! Oracle: what is parsed, rendered and parsed again is the same; the data lies inside the file; nothing
//! much larger than the file is ever allocated, whatever the header says.

use restride::npy::Header;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Largest;

thread_local! {
    /// This thread's largest allocation since it was last set to 0.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn note(size: usize) {
    LARGEST.set(LARGEST.get().max(size));
}

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Largest {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Largest = Largest;

/// One file.
fn file(file: &[u8]) {
    LARGEST.set(0);
    let parsed = Header::parse(file);
    let largest = LARGEST.get();
    assert!(largest <= 64 * file.len() + 4096, "{largest} bytes for a file of {}", file.len());
    let header = match parsed {
        Ok(header) => header,
        Err(error) => {
            assert!(!error.field.is_empty() && !error.reason.is_empty());
            return;
        }
    };
    assert!(header.data.start <= header.data.end && header.data.end <= file.len());
    assert_eq!(file.len() - header.data.end, header.trailing_bytes);
    let layout = header.layout().unwrap();
    assert_eq!(layout.shape(), header.shape);
    assert_eq!(layout.numel() * header.element_size(), header.data.len());
    assert!(layout.reachable_range().is_none_or(|(low, high)| low == 0 && high + 1 == layout.numel()));

    let version = header.version_to_write();
    let mut again = Header::render(&header.descr, header.fortran_order, &header.shape, version);
    assert_eq!(again.len() % 64, 0);
    again.extend_from_slice(&file[header.data.clone()]);
    let back = Header::parse(&again).unwrap();
    assert_eq!((back.shape, back.descr), (header.shape, header.descr));
    assert_eq!((back.element, back.fortran_order), (header.element, header.fortran_order));
    assert_eq!(&again[back.data], &file[header.data]);
    assert_eq!(back.trailing_bytes, 0);
}

/// Runs one input.
pub fn check(data: &[u8]) {
    file(data);
    if !data.starts_with(b"\x93NUMPY") && data.len() < 1 << 16 {
        // The bytes as the header's text, a line at most, and the rest as data.
        let end = data.iter().position(|&b| b == b'\n').map_or(data.len(), |at| at + 1);
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend_from_slice(&(end as u16).to_le_bytes());
        file.extend_from_slice(data);
        self::file(&file);
    }
}

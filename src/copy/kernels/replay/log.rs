//! Where loads and stores are written down.
//!
//! Kernels are functions without a receiver, so the log is the thread's: [`record`] lends it for one call.

use std::cell::Cell;
use std::ops::Range;

/// Which memory an access touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The source.
    Src,
    /// The destination.
    Dst,
    /// Memory of the copy's own: staging rows, packed lines, one fill value and its pattern.
    Own,
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// Reads.
    Read,
    /// Writes through the caches.
    Write,
    /// Writes past the caches.
    StreamWrite,
}

/// One load or store: `bytes` bytes at byte `offset` of a side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// Which memory.
    pub side: Side,
    /// What it does.
    pub kind: AccessKind,
    /// Byte offset from the side's start.
    pub offset: isize,
    /// Bytes touched.
    pub bytes: usize,
}

/// Accesses that are handed on at once.
const BATCH: usize = 4096;

/// Room for objects on the stack, on both sides of the first one that is met.
const STACK_BYTES: usize = 512 << 10;

/// A part of the address space, and the side and offset that its start stands for.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) addresses: Range<usize>,
    pub(crate) side: Side,
    pub(crate) offset: isize,
}

/// A log over a few places; everything else is on the stack, and the copy's own.
pub(crate) struct Log<'e> {
    places: [Place; 4],
    /// Offset of the slot where a vector is put together or taken apart; the stack is behind it.
    slot: isize,
    /// The first address on the stack that was touched.
    stack: Option<usize>,
    entries: Vec<Access>,
    each: &'e mut dyn FnMut(&[Access]),
}

impl<'e> Log<'e> {
    /// Own memory that a log adds to its places: a slot of a page, and the stack.
    pub(crate) const OWN_BYTES: usize = 4096 + 2 * STACK_BYTES;

    /// A log that hands batches to `each`; `slot` is where [`Log::OWN_BYTES`] bytes of own memory begin.
    pub(crate) fn new(places: [Place; 4], slot: isize, each: &'e mut dyn FnMut(&[Access])) -> Self {
        Self { places, slot, stack: None, entries: Vec::with_capacity(BATCH), each }
    }

    #[inline(always)]
    fn push(&mut self, addr: usize, bytes: usize, kind: AccessKind) {
        let (side, offset) = self.locate(addr);
        self.put(Access { side, kind, offset, bytes });
    }

    #[inline(always)]
    fn put(&mut self, access: Access) {
        self.entries.push(access);
        if self.entries.len() >= BATCH {
            self.flush();
        }
    }

    #[inline(always)]
    fn locate(&mut self, addr: usize) -> (Side, isize) {
        for place in &self.places {
            if addr.wrapping_sub(place.addresses.start) < place.addresses.len() {
                return (place.side, place.offset + (addr - place.addresses.start) as isize);
            }
        }
        let first = *self.stack.get_or_insert(addr);
        let within =
            (addr.wrapping_sub(first) as isize + STACK_BYTES as isize).rem_euclid(2 * STACK_BYTES as isize);
        (Side::Own, self.slot + 4096 + within)
    }

    fn flush(&mut self) {
        (self.each)(&self.entries);
        self.entries.clear();
    }
}

thread_local! {
    static LOG: Cell<*mut Log<'static>> = const { Cell::new(std::ptr::null_mut()) };
}

/// Lends the log to the thread while `run` runs, and hands on what is left in it.
pub(crate) fn record(log: &mut Log<'_>, run: impl FnOnce()) {
    /// Gives the thread its former log back, also when `run` unwinds.
    struct Lent(*mut Log<'static>);
    impl Drop for Lent {
        fn drop(&mut self) {
            LOG.set(self.0);
        }
    }
    {
        let _former = Lent(LOG.replace(std::ptr::from_mut(log).cast()));
        run();
    }
    log.flush();
}

#[inline(always)]
fn with(each: impl FnOnce(&mut Log<'static>)) {
    let log = LOG.get();
    if !log.is_null() {
        // SAFETY: `record` set the pointer to a log that it borrows for as long as that stands, and nothing
        // that a log calls comes back here with the same one: `each` of a nested `record` has its own.
        each(unsafe { &mut *log });
    }
}

/// A load.
#[inline(always)]
pub(super) fn read(at: *const u8, bytes: usize) {
    note(at, bytes, AccessKind::Read);
}

/// An ordinary store.
#[inline(always)]
pub(super) fn write(at: *const u8, bytes: usize) {
    note(at, bytes, AccessKind::Write);
}

/// A load of an entry of a table.
#[inline(always)]
pub(super) fn look<T: Copy>(entry: &T) -> T {
    read(std::ptr::from_ref(entry).cast(), size_of::<T>());
    *entry
}

/// The stores that fill a table.
pub(crate) fn filled<T>(table: *const T, len: usize) {
    for k in 0..len {
        write(table.wrapping_add(k).cast(), size_of::<T>());
    }
}

/// An access; none of no bytes.
#[inline(always)]
pub(super) fn note(at: *const u8, bytes: usize, kind: AccessKind) {
    if bytes > 0 {
        with(|log| log.push(at.addr(), bytes, kind));
    }
}

/// An access to the slot where a vector is put together or taken apart.
#[inline(always)]
pub(super) fn slot(at: usize, bytes: usize, kind: AccessKind) {
    with(|log| {
        let offset = log.slot + at as isize;
        log.put(Access { side: Side::Own, kind, offset, bytes });
    });
}

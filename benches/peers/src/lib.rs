//! restride behind a C interface, for programs that call it in-process (`scripts/restride_c.py`).
//!
//! A handle is a checked view with its element size and options; running it copies from a buffer of the
//! right length into another. Every function that can fail returns null or a negative number, and
//! [`restride_error`] gives the sentence.

use restride::{BytesView, CopyOptions, Layout, Plan};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::time::Instant;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// A view of a row-major buffer, ready to be copied.
pub struct Copier {
    src: Layout,
    dst: Layout,
    src_bytes: usize,
    element_size: usize,
    fill: Vec<u8>,
    options: CopyOptions,
    strategy: CString,
}

impl Copier {
    /// The view `expr` of a row-major buffer of `shape`; padded positions read `fill`, zero bytes when empty.
    ///
    /// # Errors
    /// The sentence of whatever restride refuses.
    pub fn new(
        shape: &[usize],
        expr: &str,
        element_size: usize,
        fill: &[u8],
        threads: usize,
    ) -> Result<Self, String> {
        let text = |error: restride::Error| error.to_string();
        let whole = Layout::row_major(shape).map_err(text)?;
        let src = whole.apply(expr).map_err(text)?;
        let dst = Layout::row_major(src.shape()).map_err(text)?;
        let options = CopyOptions::default().threads(threads);
        let plan = Plan::new(&src, &dst, element_size, &options).map_err(text)?;
        let strategy = CString::new(plan.strategy()).unwrap_or_default();
        let fill = if fill.is_empty() { vec![0; element_size] } else { fill.to_vec() };
        Ok(Self { src_bytes: whole.numel() * element_size, src, dst, element_size, fill, options, strategy })
    }

    /// Bytes that the buffer holds.
    pub fn src_bytes(&self) -> usize {
        self.src_bytes
    }

    /// Bytes that the result holds.
    pub fn dst_bytes(&self) -> usize {
        self.dst.numel() * self.element_size
    }

    /// One copy of the view into `to`, planned anew as any call of the library is.
    ///
    /// # Errors
    /// Slices of the wrong length.
    pub fn run(&self, from: &[u8], to: &mut [u8]) -> Result<(), restride::Error> {
        let src = BytesView::new(from, self.src.clone(), self.element_size)?.with_fill(&self.fill)?;
        src.materialize_into_with(to, &self.options)
    }
}

fn fail(message: impl Into<Vec<u8>>) {
    ERROR.with(|error| *error.borrow_mut() = CString::new(message).unwrap_or_default());
}

/// Why the last call of this thread failed; valid until the next one.
#[unsafe(no_mangle)]
pub extern "C" fn restride_error() -> *const c_char {
    ERROR.with(|error| error.borrow().as_ptr())
}

/// A handle for `expr` over a row-major buffer; null on failure. `threads` 0 is the default.
///
/// # Safety
/// `shape` points to `ndim` extents, `expr` to a text that ends with 0, `fill` to `fill_len` bytes; the
/// last two may be null when their length is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_new(
    shape: *const usize,
    ndim: usize,
    expr: *const c_char,
    element_size: usize,
    fill: *const u8,
    fill_len: usize,
    threads: usize,
) -> *mut Copier {
    // SAFETY: the caller promises `ndim` extents; none are read when there are none.
    let shape = if ndim == 0 { &[] } else { unsafe { std::slice::from_raw_parts(shape, ndim) } };
    // SAFETY: the caller promises `fill_len` bytes; none are read when there are none.
    let fill = if fill_len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(fill, fill_len) } };
    // SAFETY: the caller promises a text that ends with 0.
    let expr = unsafe { CStr::from_ptr(expr) }.to_string_lossy();
    match Copier::new(shape, &expr, element_size, fill, threads) {
        Ok(copier) => Box::into_raw(Box::new(copier)),
        Err(message) => {
            fail(message);
            std::ptr::null_mut()
        }
    }
}

/// Copies `repeat` times; the nanoseconds of all of it, or -1 on failure.
///
/// # Safety
/// `copier` is a live handle; `src` and `dst` are buffers of [`restride_src_bytes`] and
/// [`restride_dst_bytes`] bytes that do not overlap, and nobody else uses `dst` meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_run(
    copier: *const Copier,
    src: *const u8,
    dst: *mut u8,
    repeat: usize,
) -> i64 {
    // SAFETY: the caller promises a live handle.
    let copier = unsafe { &*copier };
    // SAFETY: the caller promises so many readable bytes.
    let from = unsafe { std::slice::from_raw_parts(src, copier.src_bytes) };
    // SAFETY: the caller promises so many writable bytes that nobody else uses.
    let to = unsafe { std::slice::from_raw_parts_mut(dst, copier.dst_bytes()) };
    let start = Instant::now();
    for _ in 0..repeat {
        if let Err(error) = copier.run(from, to) {
            fail(error.to_string());
            return -1;
        }
    }
    i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX)
}

/// Copies `bytes` bytes with the C library `repeat` times; the nanoseconds of all of it.
///
/// # Safety
/// `src` and `dst` are buffers of `bytes` bytes that do not overlap, and nobody else uses `dst` meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_memcpy(src: *const u8, dst: *mut u8, bytes: usize, repeat: usize) -> i64 {
    let start = Instant::now();
    for _ in 0..repeat {
        // SAFETY: the caller promises both buffers.
        unsafe { std::ptr::copy_nonoverlapping(std::hint::black_box(src), std::hint::black_box(dst), bytes) };
    }
    i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX)
}

/// Bytes of the buffer that the view reads from.
///
/// # Safety
/// `copier` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_src_bytes(copier: *const Copier) -> usize {
    // SAFETY: the caller promises a live handle.
    unsafe { &*copier }.src_bytes()
}

/// Bytes of the result.
///
/// # Safety
/// `copier` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_dst_bytes(copier: *const Copier) -> usize {
    // SAFETY: the caller promises a live handle.
    unsafe { &*copier }.dst_bytes()
}

/// Name of the plan's strategy; valid as long as the handle.
///
/// # Safety
/// `copier` is a live handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_strategy(copier: *const Copier) -> *const c_char {
    // SAFETY: the caller promises a live handle.
    unsafe { &*copier }.strategy.as_ptr()
}

/// Gives a handle back.
///
/// # Safety
/// `copier` is null or a live handle that nobody uses any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn restride_free(copier: *mut Copier) {
    if !copier.is_null() {
        // SAFETY: it came from `restride_new`, and the caller gives it up.
        drop(unsafe { Box::from_raw(copier) });
    }
}

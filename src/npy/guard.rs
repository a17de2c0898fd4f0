//! Signals while files are mapped: a mapped file that somebody cuts short, Ctrl-C, a polite kill.
//!
//! Reading a page that a file no longer has raises SIGBUS, at any instruction of a copy. The handler
//! looks whether the address lies in a mapping that was announced here, and if so ends the process
//! with the one sentence rendered beforehand. SIGINT, SIGTERM and SIGHUP remove the named temporary files
//! and then end the process as they always do, so that a shell sees 130 and 143.
//!
//! Handlers do nothing that is not async-signal-safe: atomics, `write`, `unlink`, `sigaction`, `_exit`.
//! Only a program calls [`install_signal_handlers`]; a library user's signals are left alone.

use std::ffi::CString;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, Once};

/// A mapping and the sentence for the day it is cut short.
struct Region {
    start: AtomicUsize,
    end: AtomicUsize,
    message: AtomicPtr<CString>,
}

impl Region {
    const fn free() -> Self {
        Region { start: AtomicUsize::new(0), end: AtomicUsize::new(0), message: AtomicPtr::new(null_mut()) }
    }
}

static REGIONS: [Region; 32] = [const { Region::free() }; 32];
static TEMPORARIES: [AtomicPtr<CString>; 32] = [const { AtomicPtr::new(null_mut()) }; 32];
/// Held while a slot is taken or given back; handlers never take it.
static SLOTS: Mutex<()> = Mutex::new(());
static INSTALLED: AtomicBool = AtomicBool::new(false);
/// Set by the first thread that ends the process.
static ENDING: AtomicBool = AtomicBool::new(false);
static PREVIOUS_BUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(null_mut());

/// A mapping that is announced to the handler until this is dropped.
///
/// Declare it before the mapping in a struct, so that it goes first.
#[derive(Debug)]
pub(super) struct Watch(Option<usize>);

impl Watch {
    /// Announces `bytes`; `message` is printed when reading or writing them raises SIGBUS.
    pub(super) fn new(bytes: &[u8], message: &str) -> Self {
        if !INSTALLED.load(Ordering::Acquire) || bytes.is_empty() {
            return Watch(None);
        }
        let Ok(message) = CString::new(message.replace('\0', "?")) else { return Watch(None) };
        let _slots = SLOTS.lock().unwrap_or_else(|e| e.into_inner());
        let free = REGIONS.iter().position(|r| r.start.load(Ordering::Acquire) == 0);
        if let Some(region) = free.map(|i| &REGIONS[i]) {
            region.message.store(Box::into_raw(Box::new(message)), Ordering::Release);
            region.end.store(bytes.as_ptr() as usize + bytes.len(), Ordering::Release);
            // Published last: a region with a start is complete.
            region.start.store(bytes.as_ptr() as usize, Ordering::Release);
        }
        Watch(free)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(region) = self.0.map(|i| &REGIONS[i]) else { return };
        let _slots = SLOTS.lock().unwrap_or_else(|e| e.into_inner());
        region.start.store(0, Ordering::Release);
        let message = region.message.swap(null_mut(), Ordering::AcqRel);
        if !message.is_null() {
            // SAFETY: the pointer came from Box::into_raw in `Watch::new` and was taken out by the swap. The
            // handler reads the message of the region that holds the faulting address only, and nobody
            // accesses this mapping any more while its watch is dropped.
            drop(unsafe { Box::from_raw(message) });
        }
    }
}

/// A named temporary file that a signal removes until this is dropped.
#[derive(Debug)]
pub(super) struct Doomed(Option<usize>);

impl Doomed {
    /// Announces `path`, which should be absolute or relative to a folder that will not change.
    pub(super) fn new(path: &Path) -> Self {
        if !INSTALLED.load(Ordering::Acquire) {
            return Doomed(None);
        }
        let Ok(path) = CString::new(path.as_os_str().as_encoded_bytes()) else { return Doomed(None) };
        let _slots = SLOTS.lock().unwrap_or_else(|e| e.into_inner());
        let free = TEMPORARIES.iter().position(|t| t.load(Ordering::Acquire).is_null());
        if let Some(i) = free {
            TEMPORARIES[i].store(Box::into_raw(Box::new(path)), Ordering::Release);
        }
        Doomed(free)
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        let Some(i) = self.0 else { return };
        // The text itself is never freed: a handler on another thread may be reading it. A program writes
        // few files, and a library user has no handler and no text.
        TEMPORARIES[i].store(null_mut(), Ordering::Release);
    }
}

/// Installs the handlers, once per process.
///
/// SIGBUS outside the announced mappings goes to the handler that was there before. A signal that was
/// ignored (as under `nohup`) stays ignored. SIGXFSZ is ignored, so that a file size limit becomes an
/// error of the write that met it.
pub fn install_signal_handlers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: both pointers are valid for the call, the handlers have the signature that their flags
        // promise and do only async-signal-safe things; the previous SIGBUS action is leaked, so that the
        // handler may read it at any time.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut old) == 0 {
                PREVIOUS_BUS.store(Box::into_raw(Box::new(old)), Ordering::Release);
                let handler = on_bus as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                set(libc::SIGBUS, handler as libc::sighandler_t, libc::SA_SIGINFO | libc::SA_ONSTACK);
            }
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                if libc::sigaction(signal, std::ptr::null(), &mut old) == 0
                    && old.sa_sigaction == libc::SIG_DFL
                {
                    let handler = on_end as extern "C" fn(libc::c_int);
                    set(signal, handler as libc::sighandler_t, 0);
                }
            }
            set(libc::SIGXFSZ, libc::SIG_IGN, 0);
        }
        INSTALLED.store(true, Ordering::Release);
    });
}

/// Sets one signal action.
///
/// # Safety
///
/// `handler` must be `SIG_IGN`, `SIG_DFL` or a function of the signature that `flags` promise.
unsafe fn set(signal: libc::c_int, handler: libc::sighandler_t, flags: libc::c_int) {
    // SAFETY: an all-zero sigaction is a valid value; the pointers are valid for the call; the handler is
    // as promised by the caller.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaction(signal, &action, null_mut());
    }
}

fn remove_temporaries() {
    for slot in &TEMPORARIES {
        let path = slot.load(Ordering::Acquire);
        if !path.is_null() {
            // SAFETY: a non-null entry came from Box::into_raw and is never freed (see `Doomed`).
            unsafe { libc::unlink((*path).as_ptr()) };
        }
    }
}

extern "C" fn on_end(signal: libc::c_int) {
    remove_temporaries();
    // SAFETY: the default action is always valid; the raised signal is blocked while this handler runs and
    // ends the process when it returns.
    unsafe {
        set(signal, libc::SIG_DFL, 0);
        libc::raise(signal);
    }
}

extern "C" fn on_bus(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO, and SIGBUS fills in si_addr.
    let address = unsafe { (*info).si_addr() } as usize;
    let region = REGIONS.iter().find(|r| {
        let start = r.start.load(Ordering::Acquire);
        start != 0 && (start..r.end.load(Ordering::Acquire)).contains(&address)
    });
    if let Some(region) = region {
        if ENDING.swap(true, Ordering::AcqRel) {
            // Another thread met the same end first and has the last word.
            loop {
                // SAFETY: pause has no arguments and only waits.
                unsafe { libc::pause() };
            }
        }
        let message = region.message.load(Ordering::Acquire);
        remove_temporaries();
        // SAFETY: the region is active, so its message is alive (see `Watch`): this thread accesses the
        // mapping right now, hence nobody has dropped it.
        unsafe {
            if !message.is_null() {
                let text = (*message).as_bytes();
                libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
            }
            libc::_exit(1);
        }
    }
    let previous = PREVIOUS_BUS.load(Ordering::Acquire);
    // SAFETY: `previous` is null or a leaked sigaction; what it holds is called with the signature that its
    // flags promise, and anything but a function is put back, so that the fault happens again under it.
    unsafe {
        match (*previous).sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => set(libc::SIGBUS, libc::SIG_DFL, 0),
            handler if (*previous).sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

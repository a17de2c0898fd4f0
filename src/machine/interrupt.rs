//! Ctrl-C as a flag, and the file size limit as an error.

use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

static FLAG: AtomicPtr<AtomicBool> = AtomicPtr::new(std::ptr::null_mut());

/// Sets `flag` at the first interrupt from the terminal; the second one ends the program as usual.
pub fn catch(flag: &'static AtomicBool) {
    FLAG.store(std::ptr::from_ref(flag).cast_mut(), Ordering::Release);
    // SAFETY: an all-zero sigaction is a valid one: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = on_interrupt as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // After one delivery the default action is back: a second Ctrl-C ends the program.
    action.sa_flags = libc::SA_RESETHAND | libc::SA_RESTART;
    // SAFETY: the handler only loads and stores atomics, which is allowed in a signal handler, and
    // `action` lives until the call returns.
    unsafe { libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut()) };
}

/// Makes a file size limit (`ulimit -f`) an error of the write that meets it instead of the program's end.
pub fn ignore_file_size_signal() {
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

extern "C" fn on_interrupt(_: libc::c_int) {
    let flag = FLAG.load(Ordering::Acquire);
    // SAFETY: the pointer is null or came from a `&'static AtomicBool` in `catch`.
    if let Some(flag) = unsafe { flag.as_ref() } {
        flag.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_sets_the_flag() {
        static STOP: AtomicBool = AtomicBool::new(false);
        catch(&STOP);
        // SAFETY: raises a signal whose handler was installed above and only stores an atomic.
        unsafe { libc::raise(libc::SIGINT) };
        assert!(STOP.load(Ordering::Relaxed));
    }
}

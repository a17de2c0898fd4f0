//! The replay against reality: copies whose buffers fault on every touch, one instruction at a time.
//!
//! The pages of both buffers can be neither read nor written. An instruction that touches them faults; the
//! handler notes the address and whether it was a store, opens the pages, and lets the processor run this
//! one instruction, after which they are closed again. What is noted is what the compiled kernel does, at
//! any level that this processor has.

use super::{Access, AccessKind, Side, replay};
use crate::copy::nest::{self, Buffers};
use crate::copy::plan::Plan;
use crate::{CopyOptions, Isa, Layout};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

const PAGE: usize = 4096;

/// Touches that a copy may make.
const MOST: usize = 1 << 16;

/// Trap after the next instruction: a bit of the processor's flags.
const STEP: i64 = 0x100;

/// The watched pages, and what was noted: an address, doubled, and 1 for a store.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static NOTED: [AtomicUsize; MOST] = [const { AtomicUsize::new(0) }; MOST];

/// Opens or closes the watched pages.
fn protect(protection: c_int) -> bool {
    // SAFETY: the pages of `Pages`, or none.
    unsafe { libc::mprotect(FIRST.load(SeqCst) as *mut c_void, BYTES.load(SeqCst), protection) == 0 }
}

extern "C" fn on_fault(_: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system hands a handler with SA_SIGINFO valid pointers; nothing here allocates or locks.
    unsafe {
        let addr = (*info).si_addr().addr();
        if addr.wrapping_sub(FIRST.load(SeqCst)) >= BYTES.load(SeqCst) {
            // Not ours: let it come again and end the process as it would have.
            libc::signal(libc::SIGSEGV, libc::SIG_DFL);
            return;
        }
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let store = usize::from(registers[libc::REG_ERR as usize] & 2 != 0);
        let k = COUNT.fetch_add(1, SeqCst);
        if let Some(noted) = NOTED.get(k) {
            noted.store(addr << 1 | store, SeqCst);
        }
        protect(libc::PROT_READ | libc::PROT_WRITE);
        registers[libc::REG_EFL as usize] |= STEP;
    }
}

extern "C" fn on_step(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: as in `on_fault`.
    unsafe {
        (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_EFL as usize] &= !STEP;
    }
    protect(libc::PROT_NONE);
}

/// Handlers of the two signals, given back at the end.
struct Handlers([(c_int, libc::sigaction); 2]);

impl Handlers {
    fn new() -> Self {
        type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
        let install = |signal: c_int, handler: Handler| {
            // SAFETY: all-zero is a valid action; the handler has the signature that SA_SIGINFO asks for.
            unsafe {
                let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
                let mut former: libc::sigaction = MaybeUninit::zeroed().assume_init();
                action.sa_sigaction = handler as usize;
                action.sa_flags = libc::SA_SIGINFO;
                assert_eq!(libc::sigaction(signal, &action, &mut former), 0);
                (signal, former)
            }
        };
        Self([install(libc::SIGSEGV, on_fault), install(libc::SIGTRAP, on_step)])
    }
}

impl Drop for Handlers {
    fn drop(&mut self) {
        for (signal, former) in &self.0 {
            // SAFETY: what `sigaction` gave.
            unsafe { libc::sigaction(*signal, former, std::ptr::null_mut()) };
        }
    }
}

/// Side, store, offset.
type Touch = (Side, bool, isize);

/// What a copy really touches, in order.
fn really(plan: &Plan, src_bytes: usize, dst_bytes: usize) -> Vec<Touch> {
    let apart = src_bytes.next_multiple_of(PAGE);
    let bytes = apart + dst_bytes.next_multiple_of(PAGE);
    // SAFETY: a new private mapping, which nothing else knows of; the plan's layouts reach the first
    // `src_bytes` bytes of it and `dst_bytes` bytes behind `apart`. It is unmapped after the copy.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        let pages = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_ne!(pages, libc::MAP_FAILED);
        FIRST.store(pages.addr(), SeqCst);
        BYTES.store(bytes, SeqCst);
        COUNT.store(0, SeqCst);
        assert!(protect(libc::PROT_NONE));
        let buffers =
            Buffers { src: pages.cast(), dst: pages.cast::<u8>().add(apart), fill: std::ptr::null() };
        nest::execute(plan, buffers);
        BYTES.store(0, SeqCst);
        libc::munmap(pages, bytes);
        let count = COUNT.load(SeqCst);
        assert!(count <= MOST, "{count} touches are too many to note");
        let touch = |noted: &AtomicUsize| {
            let noted = noted.load(SeqCst);
            let offset = (noted >> 1) - pages.addr();
            match offset.checked_sub(apart) {
                None => (Side::Src, noted & 1 == 1, offset as isize),
                Some(offset) => (Side::Dst, noted & 1 == 1, offset as isize),
            }
        };
        NOTED[..count].iter().map(touch).collect()
    }
}

/// What the replay says of it.
fn replayed(plan: &Plan) -> Vec<Touch> {
    let mut touched = Vec::new();
    replay(plan, &mut |accesses: &[Access]| {
        let buffers = accesses.iter().filter(|access| access.side != Side::Own);
        touched.extend(buffers.map(|a| (a.side, a.kind != AccessKind::Read, a.offset)));
    })
    .unwrap();
    touched
}

/// Touches so close to each other may change places, and a line that is touched again so soon counts once: a
/// compiler moves loads past each other, loads again what it has no register for, and splits and joins moves.
const NEAR: usize = 64;

/// The lines touched, without those that were touched shortly before.
fn distinct(touches: &[Touch]) -> Vec<Touch> {
    let lines: Vec<Touch> =
        touches.iter().map(|&(side, store, at)| (side, store, at.div_euclid(64))).collect();
    let fresh = |at: &usize| !lines[at.saturating_sub(NEAR)..*at].contains(&lines[*at]);
    (0..lines.len()).filter(fresh).map(|at| lines[at]).collect()
}

/// Whether two orders are the same but for what a compiler does to them.
fn nearly_equal(a: &[Touch], b: &[Touch]) -> bool {
    let (a, b) = (distinct(a), distinct(b));
    let mut taken = vec![false; a.len()];
    let mut first = 0;
    a.len() == b.len()
        && b.iter().all(|touch| {
            while first < taken.len() && taken[first] {
                first += 1;
            }
            let near = first..a.len().min(first + NEAR);
            let Some(at) = near.into_iter().find(|&at| !taken[at] && a[at] == *touch) else { return false };
            taken[at] = true;
            true
        })
}

/// Shape, expression, element size. Rows that the C library moves and elements that the compiler repeats are
/// not among them: it is not known how they do it.
const CASES: &[(&[usize], &str, usize)] = &[
    (&[64, 64], ".T", 4),
    (&[61, 67], ".T", 4),
    (&[64, 64], ".T", 1),
    (&[130, 77], ".T", 1),
    (&[70, 66], ".T", 2),
    (&[33, 47], ".T", 8),
    (&[30, 40], ".T", 3),
    (&[30, 40], ".T", 12),
    (&[40, 50], "[:, ::2]", 4),
    (&[40, 50], "[:, ::-1]", 4),
    (&[40, 50], "[:, ::-3]", 2),
    (&[64, 48, 3], ".permute(2, 0, 1)", 1),
    (&[3, 64, 48], ".permute(1, 2, 0)", 1),
    (&[2, 20, 30], ".permute(1, 2, 0)", 3),
    (&[64, 48, 3], "[:, :, ::-1]", 1),
    (&[40, 3, 3], ".mT", 4),
    (&[8, 30, 20], ".mT", 8),
    (&[6, 7, 8, 9], ".permute(2, 0, 3, 1)", 4),
    (&[20, 12], "[::2]", 4),
];

#[test]
#[cfg_attr(sanitized, ignore = "a sanitizer's checks change how the compiler makes the loads and stores")]
#[cfg_attr(
    not(debug_assertions),
    ignore = "fully optimised, short copies are other loads and stores than those that were written"
)]
fn kernels_touch_what_the_replay_says() {
    let _handlers = Handlers::new();
    let mut wrong = Vec::new();
    for isa in Isa::available() {
        for &(shape, expr, size) in CASES {
            for streaming in [false, true] {
                let whole = Layout::row_major(shape).unwrap();
                if isa == Isa::Scalar && whole.numel() > 3000 {
                    continue; // its touches are many, and all alike
                }
                let src = whole.apply(expr).unwrap();
                let dst = Layout::row_major(src.shape()).unwrap();
                let options = CopyOptions::default().isa(isa).threads(1).streaming(streaming);
                let plan = Plan::new(&src, &dst, size, &options).unwrap();
                let real = really(&plan, whole.numel() * size, dst.numel() * size);
                let model = replayed(&plan);
                if !nearly_equal(&real, &model) {
                    let at = real.iter().zip(&model).position(|(a, b)| a != b).unwrap_or(0);
                    let some =
                        |t: &[Touch]| t[at.saturating_sub(2).min(t.len())..t.len().min(at + 6)].to_vec();
                    wrong.push(format!(
                        "{isa} {shape:?} {expr} of {size} bytes, streaming {streaming}: {} touches, {} in the \
                         replay; from {at} on {:?}, in the replay {:?}\n{plan}",
                        real.len(),
                        model.len(),
                        some(&real),
                        some(&model)
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} copies differ:\n{}", wrong.len(), wrong.join("\n"));
}

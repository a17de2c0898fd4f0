//! Runs of elements that change on their way: a caller's function over slices, compiled once for each
//! instruction-set level so that it vectorises with the widest registers there are.

use super::LevelEntry;
use super::isa::Isa;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use std::mem::MaybeUninit;

/// What happens to a run of elements.
///
/// # Safety
/// `run` may read `n` elements at `src` and must write `n` elements at `dst`, and reads `dst` only when
/// [`RunOp::READS_DST`] says so.
pub(crate) unsafe trait RunOp<S, D>: Sync {
    /// Whether the old elements of the destination are read.
    const READS_DST: bool;

    /// Moves one run.
    ///
    /// # Safety
    /// `src` is readable and `dst` writable for `n` elements, both aligned for their types; they do not
    /// overlap; `dst` holds elements where `READS_DST`.
    unsafe fn run(&self, src: *const S, dst: *mut D, n: usize);
}

/// `f` for each element.
pub(crate) struct Each<F>(pub F);

// SAFETY: writes every element, reads the source only.
unsafe impl<S: Copy, D, F: Fn(S) -> D + Sync> RunOp<S, D> for Each<F> {
    const READS_DST: bool = false;

    #[inline(always)]
    unsafe fn run(&self, src: *const S, dst: *mut D, n: usize) {
        for i in 0..n {
            // SAFETY: i < n, and the caller vouches for n elements on both sides.
            unsafe { dst.add(i).write((self.0)(src.add(i).read())) }
        }
    }
}

/// `f` for each element and the one that the destination holds.
pub(crate) struct Update<F>(pub F);

// SAFETY: writes every element, and reads the destination as `READS_DST` says.
unsafe impl<S: Copy, D: Copy, F: Fn(S, D) -> D + Sync> RunOp<S, D> for Update<F> {
    const READS_DST: bool = true;

    #[inline(always)]
    unsafe fn run(&self, src: *const S, dst: *mut D, n: usize) {
        for i in 0..n {
            // SAFETY: i < n, and the caller vouches for n elements on both sides.
            unsafe { dst.add(i).write((self.0)(src.add(i).read(), dst.add(i).read())) }
        }
    }
}

/// `f` for slices, which writes all of its second argument's elements over values of its own.
pub(crate) struct Slices<F>(pub F);

// SAFETY: the destination is borrowed as initialised elements, which `READS_DST` asks for.
unsafe impl<S, D, F: Fn(&[S], &mut [D]) + Sync> RunOp<S, D> for Slices<F> {
    const READS_DST: bool = true;

    #[inline(always)]
    unsafe fn run(&self, src: *const S, dst: *mut D, n: usize) {
        // SAFETY: the caller vouches for n elements on both sides, the destination's initialised, and for
        // there being no overlap.
        unsafe { (self.0)(std::slice::from_raw_parts(src, n), std::slice::from_raw_parts_mut(dst, n)) }
    }
}

/// Moves one run at a level.
///
/// # Safety
/// As [`RunOp::run`]; the CPU runs the level.
pub(crate) unsafe fn run<S, D, O: RunOp<S, D>>(isa: Isa, op: &O, src: *const S, dst: *mut D, n: usize) {
    // SAFETY: the caller's promise, the CPU's features included.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => run_avx512(op, src, dst, n),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => run_avx2(op, src, dst, n),
            _ => op.run(src, dst, n),
        }
    }
}

/// # Safety
/// As [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,bmi2")]
unsafe fn run_avx512<S, D, O: RunOp<S, D>>(op: &O, src: *const S, dst: *mut D, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { op.run(src, dst, n) }
}

/// # Safety
/// As [`run`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
unsafe fn run_avx2<S, D, O: RunOp<S, D>>(op: &O, src: *const S, dst: *mut D, n: usize) {
    // SAFETY: the caller's promise.
    unsafe { op.run(src, dst, n) }
}

/// Moves one run of whole lines at a level, past the caches where it can.
///
/// # Safety
/// As [`run`]; `dst` starts on a line, and `n` elements are whole lines; `spare` is as large as the run and as
/// aligned.
pub(crate) unsafe fn run_past<S, D, O: RunOp<S, D>>(
    level: &LevelEntry,
    op: &O,
    src: *const S,
    dst: *mut D,
    n: usize,
    spare: *mut D,
) {
    // SAFETY: the caller's promise, the CPU's features included.
    unsafe {
        match level.isa {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Isa::Avx512 => past_avx512(op, src, dst, n),
            _ => {
                run(level.isa, op, src, spare, n);
                (level.stream)(dst.cast(), spare.cast(), n * size_of::<D>());
            }
        }
    }
}

/// # Safety
/// As [`run_past`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,bmi2")]
unsafe fn past_avx512<S, D, O: RunOp<S, D>>(op: &O, src: *const S, dst: *mut D, n: usize) {
    use std::arch::x86_64::{_mm512_load_si512, _mm512_stream_si512};
    /// Lines that are changed at once: a register each.
    const AT_ONCE: usize = 4;
    #[repr(align(64))]
    struct Lines([MaybeUninit<u8>; 64 * AT_ONCE]);
    let mut lines = Lines([MaybeUninit::uninit(); 64 * AT_ONCE]);
    let many = 64 * AT_ONCE / size_of::<D>();
    let mut done = 0;
    // SAFETY: whole lines of the run on both sides, `many` of them or those that are left, which are fewer.
    unsafe {
        while done + many <= n {
            op.run(src.add(done), lines.0.as_mut_ptr().cast(), many);
            for k in 0..AT_ONCE {
                let line = _mm512_load_si512(lines.0.as_ptr().add(64 * k).cast());
                _mm512_stream_si512(dst.add(done).cast::<u8>().add(64 * k).cast(), line);
            }
            done += many;
        }
        if done < n {
            op.run(src.add(done), lines.0.as_mut_ptr().cast(), n - done);
            for k in 0..(n - done) * size_of::<D>() / 64 {
                let line = _mm512_load_si512(lines.0.as_ptr().add(64 * k).cast());
                _mm512_stream_si512(dst.add(done).cast::<u8>().add(64 * k).cast(), line);
            }
        }
    }
}

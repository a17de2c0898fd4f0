//! Rows that touch, written as one run: the line that one row ends in and the next one starts in is put together
//! in registers like every other, so that only the ends of the run are written in part. A store that writes
//! part of a line must wait for the line to be read, which all lines that pass the caches by are there to avoid.

use super::super::level;
use super::pick::Out;
use super::slide::{Slide, low};
use std::arch::x86_64::*;

/// The row that was written last, if any: what it leaves of a line waits for the row that follows.
pub(super) struct Run(Option<Slide>);

impl Run {
    /// What writes a row that starts at `dst`.
    ///
    /// # Safety
    /// The CPU has the level, here and below; what was pushed so far is writable where it belongs.
    #[inline(always)]
    pub(super) unsafe fn seek(&mut self, dst: *mut u8) -> Row {
        match self.0.take() {
            Some(slide) if slide.next() == dst => Row(slide),
            // SAFETY: the caller's promise.
            Some(slide) => unsafe {
                slide.close();
                Row(Slide::new(dst))
            },
            // SAFETY: the caller's promise.
            None => unsafe { Row(Slide::new(dst)) },
        }
    }

    /// Takes a row back that is complete.
    #[inline(always)]
    pub(super) fn keep(&mut self, row: Row) {
        self.0 = Some(row.0);
    }
}

impl level::Run for Run {
    #[inline(always)]
    fn open() -> Self {
        Self(None)
    }

    #[inline(always)]
    unsafe fn close(&mut self) {
        if let Some(slide) = self.0.take() {
            // SAFETY: the caller's promise.
            unsafe { slide.close() }
        }
    }
}

/// A row of a run. A value and not a reference, so that it stays in registers.
#[derive(Clone, Copy)]
pub(super) struct Row(Slide);

impl Out for Row {
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn push(&mut self, v: __m512i) {
        // SAFETY: the caller's promise.
        unsafe { self.0.push(v) }
    }

    #[inline(always)]
    unsafe fn finish(&mut self, v: __m512i, bytes: usize) {
        if bytes > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.0.join(v, bytes) }
        }
    }
}

/// Moves a row of `bytes` bytes, followed by one at `next`; asks for the source `ahead` bytes early, in the order
/// in which it will be read.
///
/// # Safety
/// Both sides hold `bytes` bytes and do not overlap; see [`Run::seek`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,bmi1,bmi2,lzcnt,popcnt")]
pub(super) unsafe fn copy(
    run: &mut Run,
    dst: *mut u8,
    src: *const u8,
    bytes: usize,
    (next, ahead): (*const u8, usize),
) {
    let head = dst.align_offset(64).min(bytes);
    let (here, far) = (bytes.saturating_sub(ahead), src.wrapping_add(ahead));
    // SAFETY: head + lines * 64 + tail == bytes, and masks let through only the row's bytes; hints fault on no
    // address. After the head the row is on a line.
    unsafe {
        let Row(mut out) = run.seek(dst);
        if head > 0 {
            out.join(_mm512_maskz_loadu_epi8(low(head), src.cast()), head);
        }
        let mut at = head;
        while at + 64 <= bytes {
            let from = if at < here { far.wrapping_add(at) } else { next.wrapping_add(at - here) };
            _mm_prefetch::<_MM_HINT_T0>(from.cast());
            out.line(_mm512_loadu_si512(src.add(at).cast()));
            at += 64;
        }
        if at < bytes {
            out.join(_mm512_maskz_loadu_epi8(low(bytes - at), src.add(at).cast()), bytes - at);
        }
        run.keep(Row(out));
    }
}

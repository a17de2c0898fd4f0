//! Runs a plan: walks its tiles and hands each to the level's kernel.
//!
//! This is where byte offsets become pointers. Facts that the unsafe code below rests on:
//! the plan was made for layouts that were checked against the buffers behind `src` and `dst`
//! (rules L2, L5), so every offset that a tile forms lies inside them.

use super::kernels::{self, Border, Kind, MAX_STEPS, STAGING_BYTES, Step, Tile};
use super::plan::{At, Group, Piece, Plan};
use std::mem::MaybeUninit;
use std::ops::Range;

/// The buffers of a copy.
#[derive(Clone, Copy)]
pub(crate) struct Buffers {
    pub(crate) src: *const u8,
    pub(crate) dst: *mut u8,
    /// One element that padded positions read.
    pub(crate) fill: *const u8,
}

// SAFETY: `execute` demands that the two sides do not overlap, and hands each thread a part of one
// loop, whose destination elements no other part reaches (rule L5).
unsafe impl Sync for Buffers {}

/// Runs `plan` over the buffers that start at `src` and `dst`.
///
/// # Safety
/// The plan's layouts reach only readable elements from `src` and writable elements from `dst`; the
/// destination layout reaches no element twice; the two sides do not overlap; `fill` holds one
/// element where the source is padded.
pub(crate) unsafe fn execute(plan: &Plan, buffers: Buffers) {
    // SAFETY: the caller's promise.
    unsafe { pieces::<true>(plan, buffers) }
}

/// [`execute`] of a part of a larger copy, whose caller makes streamed lines visible at its end.
///
/// # Safety
/// As [`execute`].
pub(crate) unsafe fn execute_unfenced(plan: &Plan, buffers: Buffers) {
    // SAFETY: the caller's promise.
    unsafe { pieces::<false>(plan, buffers) }
}

/// # Safety
/// As [`execute`].
#[inline(always)]
unsafe fn pieces<const FENCED: bool>(plan: &Plan, buffers: Buffers) {
    for piece in plan.pieces() {
        let share = (plan.threads > 1).then(|| piece.shared_loop(plan.threads)).flatten();
        match share {
            Some((split, count)) => {
                let least = plan.part_bytes / (piece.size() / count).max(1);
                super::parallel::share(plan.threads, count, least, |range| {
                    // SAFETY: parts of one loop reach different destination elements (rule L5).
                    unsafe { run(plan, piece, split, range, buffers) }
                    fence(FENCED, plan, piece);
                });
            }
            None => {
                // SAFETY: the caller's promise.
                unsafe { run(plan, piece, usize::MAX, 0..0, buffers) }
                fence(FENCED, plan, piece);
            }
        }
    }
}

/// Makes what the calling thread streamed visible in order.
#[inline(always)]
fn fence(wanted: bool, plan: &Plan, piece: &Piece) {
    if wanted && piece.streaming {
        (kernels::entry(plan.isa).fence)();
    }
}

/// Memory for staged rows.
#[repr(align(64))]
struct Staging {
    _bytes: [u8; STAGING_BYTES],
}

/// # Safety
/// As [`execute`], for the part `range` of loop `split`.
unsafe fn run(plan: &Plan, piece: &Piece, split: usize, range: Range<usize>, buffers: Buffers) {
    // SAFETY: the caller's promise; the tables hold as many steps as the groups have.
    unsafe {
        if piece.staged {
            run_staged(plan, piece, split, range, buffers);
        } else if few(piece) {
            tables::<64>(plan, piece, split, range, buffers, std::ptr::null_mut());
        } else {
            tables::<MAX_STEPS>(plan, piece, split, range, buffers, std::ptr::null_mut());
        }
    }
}

/// Whether short tables hold the steps of a piece.
fn few(piece: &Piece) -> bool {
    piece.rows.full() <= 64 && piece.columns.full() <= 64
}

/// # Safety
/// As [`run`].
#[inline(never)]
unsafe fn run_staged(plan: &Plan, piece: &Piece, split: usize, range: Range<usize>, buffers: Buffers) {
    let mut staging = MaybeUninit::<Staging>::uninit();
    // SAFETY: the caller's promise; `staging` is as large and as aligned as tiles need.
    unsafe { tables::<MAX_STEPS>(plan, piece, split, range, buffers, staging.as_mut_ptr().cast()) }
}

/// # Safety
/// As [`run`]; `N` is at least the number of rows, and of columns where the kind has a table of them.
#[inline(always)]
unsafe fn tables<const N: usize>(
    plan: &Plan,
    piece: &Piece,
    split: usize,
    range: Range<usize>,
    buffers: Buffers,
    staging: *mut u8,
) {
    let entry = kernels::entry(plan.isa);
    // SAFETY: a tile reaches what the plan reaches; `entry` is a level that this CPU has, which `Plan`
    // checked; staging is there when the piece is staged.
    unsafe { tiles::<N>(plan, piece, split, range, buffers, staging, |tile| (entry.tile)(tile)) }
}

/// Calls `each` for every tile of a piece, with tables as [`run`] has them and staging memory at `staging`.
///
/// # Safety
/// Offsets that the piece reaches lie inside the buffers.
#[cfg(any(test, feature = "instruments"))]
pub(super) unsafe fn tiles_of(
    plan: &Plan,
    piece: &Piece,
    buffers: Buffers,
    staging: *mut u8,
    each: impl FnMut(&Tile<'_>),
) {
    // SAFETY: the caller's promise; the tables hold as many steps as the groups have.
    unsafe {
        if !piece.staged && few(piece) {
            tiles::<64>(plan, piece, usize::MAX, 0..0, buffers, staging, each);
        } else {
            tiles::<MAX_STEPS>(plan, piece, usize::MAX, 0..0, buffers, staging, each);
        }
    }
}

/// Calls `each` for every tile of a part, in order.
///
/// # Safety
/// Offsets that the piece reaches lie inside the buffers; `N` as in [`tables`].
#[inline(always)]
unsafe fn tiles<const N: usize>(
    plan: &Plan,
    piece: &Piece,
    split: usize,
    range: Range<usize>,
    buffers: Buffers,
    staging: *mut u8,
    mut each: impl FnMut(&Tile<'_>),
) {
    let kind = piece.strategy.kind();
    let mut rows = [MaybeUninit::uninit(); N];
    let mut columns = [MaybeUninit::uninit(); N];
    let rows = fill(&mut rows, &piece.rows);
    let columns = match kind {
        Kind::Transpose | Kind::Scatter => fill(&mut columns, &piece.columns),
        Kind::Shuffle => fill(&mut columns, &piece.cell),
        _ => &[],
    };
    let pitch = if kind == Kind::Transpose { pitch(piece) } else { None };
    let border = piece.borders.last().copied().unwrap_or_default();
    let src = if piece.fill { buffers.fill } else { buffers.src };
    let mut visit = |at: At| {
        // SAFETY: offsets lie inside the buffers (the caller's promise).
        let (src, dst) = unsafe { (src.offset(at.src), buffers.dst.offset(at.dst)) };
        each(&Tile {
            kind,
            src,
            dst,
            a: &rows[..at.rows],
            b: if kind == Kind::Shuffle { columns } else { &columns[..at.columns.min(columns.len())] },
            pitch,
            abreast: piece.abreast,
            nb: at.columns,
            b_src: piece.columns.axes().first().map_or(0, |axis| axis.src),
            element: piece.element,
            next: piece.loops.last().map_or(0, |l| l.src),
            ahead: piece.ahead,
            channels: piece.channels,
            channel_src: piece.channel_src,
            stream: piece.streaming,
            staged: piece.staged,
            slides: piece.slides,
            staging,
            border: Border { before: border.before, after: border.after, lead: at.lead, trail: at.trail },
            fill: buffers.fill,
            fill_size: plan.element_size(),
        });
    };
    piece.walk_part(split, range, &mut visit);
}

/// How far apart the columns of each square of a transpose are read and its rows written, where squares do not
/// reach across axes.
fn pitch(piece: &Piece) -> Option<Step> {
    let edge = kernels::square_edge(piece.element);
    let inner = |group: &Group| match group.axes() {
        [axis] => Some(*axis),
        [axis, ..] if axis.extent.is_multiple_of(edge) => Some(*axis),
        _ => None,
    };
    Some(Step { src: inner(&piece.columns)?.src, dst: inner(&piece.rows)?.dst })
}

/// Writes the steps of a group into a table.
fn fill<'t, const N: usize>(table: &'t mut [MaybeUninit<Step>; N], group: &Group) -> &'t [Step] {
    let mut n = 0;
    if let [axis] = group.axes() {
        n = group.full();
        let mut step = Step::default();
        for slot in &mut table[..n] {
            slot.write(step);
            step = Step { src: step.src.wrapping_add(axis.src), dst: step.dst.wrapping_add(axis.dst) };
        }
    } else {
        group.steps(|src, dst| {
            table[n].write(Step { src, dst });
            n += 1;
        });
    }
    // SAFETY: the first `n` slots were written.
    unsafe { std::slice::from_raw_parts(table.as_ptr().cast(), n) }
}

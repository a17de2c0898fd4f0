//! Rows and odd elements of the level of 512-bit vectors, in what its masked loads and stores touch: those
//! of `x86_64::{avx512, rows, weave, odd}`, function by function and under their names.

use super::super::cells::Cells;
use super::super::tile::{Step, Tile};
use super::log::{look, read, write};
use super::portable;
use super::slide::{Run, Slide};

pub(super) fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    if bytes >= 2048 {
        return portable::long(dst, src, bytes);
    }
    let mut at = 0;
    if bytes >= 512 {
        read(src, 64);
        write(dst, 64);
        at = 64 - dst.addr() % 64;
        while at + 256 <= bytes {
            (0..4).for_each(|k| read(src.wrapping_add(at + 64 * k), 64));
            (0..4).for_each(|k| write(dst.wrapping_add(at + 64 * k), 64));
            at += 256;
        }
    }
    for at in (at..bytes).step_by(64) {
        let some = 64.min(bytes - at);
        read(src.wrapping_add(at), some);
        write(dst.wrapping_add(at), some);
    }
}

/// A row past the caches.
pub(super) fn stream(run: &mut Run, dst: *mut u8, src: *const u8, bytes: usize) {
    let head = dst.align_offset(64).min(bytes);
    let mut out = run.seek(dst);
    let mut part = |at: usize, some: usize| {
        if some > 0 {
            read(src.wrapping_add(at), some);
            out.join(some);
        }
    };
    part(0, head);
    let whole = (bytes - head) / 64 * 64;
    (head..head + whole).step_by(64).for_each(|at| part(at, 64));
    part(head + whole, bytes - head - whole);
    run.keep(out);
}

/// Where the vectors of a row go.
enum Out {
    Store(*mut u8),
    Slide(Slide),
    /// A row of a run.
    Row(Slide),
}

impl Out {
    fn new(dst: *mut u8, slides: bool) -> Self {
        if slides { Self::Slide(Slide::new(dst)) } else { Self::Store(dst) }
    }

    /// Into a run, if there is one.
    fn of(dst: *mut u8, run: Option<&mut Run>) -> Self {
        run.map_or(Self::Store(dst), |run| Self::Row(run.seek(dst)))
    }

    /// What a run needs to go on.
    fn kept(self, run: Option<&mut Run>) {
        if let (Self::Row(slide), Some(run)) = (self, run) {
            run.keep(slide);
        }
    }

    fn push(&mut self) {
        match self {
            Self::Store(to) => {
                write(*to, 64);
                *to = to.wrapping_add(64);
            }
            Self::Slide(slide) | Self::Row(slide) => slide.push(),
        }
    }

    fn finish(&mut self, bytes: usize) {
        match self {
            Self::Store(to) => write(*to, bytes),
            Self::Slide(slide) => slide.finish(bytes),
            Self::Row(slide) => slide.join(bytes),
        }
    }
}

/// Vectors that hold as many elements as fit a line.
fn windows(stride: isize, size: usize) -> Option<usize> {
    let more = (64 / size).checked_sub(1)?;
    let span = more.saturating_mul(stride.unsigned_abs()).saturating_add(size);
    (span <= 256).then(|| span.div_ceil(64))
}

/// Whether rows of `n` elements are gathered by vectors.
pub(super) fn gathers(n: usize, stride: isize, size: usize, stream: bool) -> bool {
    if windows(stride, size).is_none() {
        return false;
    }
    let few = size >= 8 && (stride.unsigned_abs() > size || n * size <= 256);
    n >= 4 && (stream || !few)
}

pub(super) fn gather(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    stride: isize,
    size: usize,
    mut run: Option<&mut Run>,
) {
    let (each, gap) = (64 / size, stride.unsigned_abs());
    let all = 64 * windows(stride, size).unwrap_or(0);
    // The window of the group that starts at element `j`: whole while it lies inside the row.
    let group = |j: usize, whole: bool| {
        let first = src.wrapping_offset(j as isize * stride);
        let base = if stride < 0 { first.wrapping_add(size).wrapping_sub(all) } else { first };
        let whole = whole && (n - j - 1) * gap + size >= all && n - j >= each;
        let reach = if whole { all } else { ((n - j).min(each) - 1) * gap + size };
        for k in (0..all).step_by(64) {
            if stride < 0 {
                let skipped = (all - reach).saturating_sub(k).min(64);
                read(base.wrapping_add(k + skipped), 64 - skipped);
            } else {
                read(base.wrapping_add(k), reach.saturating_sub(k).min(64));
            }
        }
    };
    if 64 % size != 0 {
        for j in (0..n).step_by(each) {
            group(j, false);
            let some = if (n - j) * size >= 64 { 64 } else { (n - j).min(each) * size };
            write(dst.wrapping_add(j * size), some);
        }
        return;
    }
    let mut out = Out::of(dst, run.as_deref_mut());
    for j in (0..n / each * each).step_by(each) {
        group(j, true);
        out.push();
    }
    if !n.is_multiple_of(each) {
        group(n / each * each, false);
    }
    out.finish(n % each * size);
    out.kept(run);
}

/// Elements of 8 or 16 bytes.
pub(super) fn row_of(dst: *mut u8, src: *const u8, n: usize, stride: isize, size: usize) {
    let long = size == 16 && n >= 64 && dst.addr().is_multiple_of(16);
    let head = if long { dst.addr().wrapping_neg() % 64 / 16 } else { 0 };
    let mut j = 0;
    while j < n {
        let some = match n - j {
            _ if j < head => 1,
            left if left >= 64 / size => 64 / size,
            4.. if size == 8 => 4,
            _ => 1,
        };
        (j..j + some).for_each(|j| read(src.wrapping_offset(j as isize * stride), size));
        write(dst.wrapping_add(j * size), some * size);
        j += some;
    }
}

/// Says whether it did it.
pub(super) fn planes(t: &Tile<'_>, size: usize) -> bool {
    let rows = t.a.len();
    if !matches!(size, 1 | 2 | 4 | 8 | 16) || t.nb * size < 128 || !matches!(rows, 2..=4) {
        return false;
    }
    let (each, step) = (64 / size, rows * size);
    let mut out: Vec<Out> =
        t.a.iter().map(|a| Out::new(t.dst.wrapping_offset(look(&a.dst)), t.stream)).collect();
    let mut from = t.src;
    for _ in 0..t.nb / each {
        for k in 0..rows {
            read(from.wrapping_add(64 * k), 64);
        }
        out.iter_mut().for_each(Out::push);
        from = from.wrapping_add(64 * rows);
    }
    let left = t.nb % each;
    for k in 0..rows {
        read(from.wrapping_add(64 * k), (left * step).saturating_sub(64 * k).min(64));
    }
    out.iter_mut().for_each(|out| out.finish(left * size));
    true
}

pub(super) fn splat(dst: *mut u8, src: *const u8, n: usize, size: usize, run: Option<&mut Run>) {
    let bytes = n * size;
    read(src, size.min(64));
    if let Some(run) = run
        && 64 % size == 0
    {
        let mut out = run.seek(dst);
        for _ in 0..bytes / 64 {
            out.push();
        }
        out.join(bytes % 64);
        return run.keep(out);
    }
    let step = 64 / size * size;
    let mut at = 0;
    while at + 64 <= bytes {
        write(dst.wrapping_add(at), 64);
        at += step;
    }
    while at < bytes {
        let left = (bytes - at).min(step);
        write(dst.wrapping_add(at), left);
        at += left;
    }
}

pub(super) fn cells(cells: &Cells<'_>, dst: *mut u8, src: *const u8, n: usize, run: Option<&mut Run>) {
    let mut run = run.filter(|_| cells.each * cells.bytes == 64);
    let mut out = run.as_deref_mut().map(|run| run.seek(dst));
    let end = n * cells.bytes;
    let mut at = 0;
    let mut from = src.wrapping_offset(cells.below);
    let mut one = |from: *const u8, first: usize, last: usize, bytes: usize| {
        for k in (0..64 * cells.reach(cells.each).div_ceil(64)).step_by(64) {
            let (first, last) = (first.saturating_sub(k).min(64), last.saturating_sub(k).min(64));
            read(from.wrapping_add(k + first), last.saturating_sub(first));
        }
        match &mut out {
            Some(out) if bytes == 64 => out.push(),
            Some(out) => out.join(bytes),
            None => write(dst.wrapping_add(at), if at + 64 <= end { 64 } else { bytes }),
        }
        at += bytes;
    };
    for _ in 0..n / cells.each {
        one(from, 0, cells.reach(cells.each), cells.each * cells.bytes);
        from = from.wrapping_offset(cells.each as isize * cells.step());
    }
    let left = n % cells.each;
    if left > 0 {
        let missing = cells.missing(left);
        one(from, missing, missing + cells.reach(left), left * cells.bytes);
    }
    if let (Some(run), Some(out)) = (run, out) {
        run.keep(out);
    }
}

pub(super) fn interleave(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    (channels, channel): (usize, isize),
    size: usize,
    mut run: Option<&mut Run>,
) {
    let unit = channels * size;
    let rows = |j: usize, bytes: usize| {
        for c in 0..channels {
            read(src.wrapping_offset(c as isize * channel).wrapping_add(j * size), bytes);
        }
    };
    if 64 % size != 0 {
        let each = 64 / unit;
        for j in (0..n).step_by(each) {
            let left = n - j;
            rows(j, (left * size).min(64));
            let some = if left * unit >= 64 { 64 } else { left.min(each) * unit };
            write(dst.wrapping_add(j * unit), some);
        }
        return;
    }
    let each = 64 / size;
    let mut out = Out::of(dst, run.as_deref_mut());
    let whole = n / each * each;
    for j in (0..whole).step_by(each) {
        rows(j, 64);
        for _ in 0..channels {
            out.push();
        }
    }
    rows(whole, (n - whole) * size);
    let mut left = (n - whole) * unit;
    while left >= 64 {
        out.push();
        left -= 64;
    }
    out.finish(left);
    out.kept(run);
}

/// Elements of sizes that are no powers of two, at most 64 bytes.
pub(super) fn transpose(
    src: *const u8,
    dst: *mut u8,
    na: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    size: usize,
) {
    /// Squares of a source row that are moved one after the other.
    const SQUARES: usize = 4;
    if size < 16 {
        let edge = 64 / size.next_power_of_two();
        for from in (0..na).step_by(SQUARES * edge) {
            let to = na.min(from + SQUARES * edge);
            for (block, columns) in b.chunks(edge).enumerate() {
                for i in (from..to).step_by(edge) {
                    let row_bytes = (b.len() - block * edge) * size;
                    let to_block = dst.wrapping_add(block * edge * size);
                    let n = edge.min(to - i);
                    odd_square(
                        src.wrapping_add(i * size),
                        to_block,
                        n,
                        |k| rows(i + k),
                        columns,
                        size,
                        row_bytes,
                    );
                }
            }
        }
        return;
    }
    let bytes = b.len() * size;
    for i in 0..na {
        for (j, step) in b.iter().enumerate() {
            read(src.wrapping_add(i * size).wrapping_offset(look(&step.src)), size.min(64));
            let some = if j * size + 64 <= bytes { 64 } else { size };
            write(dst.wrapping_offset(rows(i)).wrapping_add(j * size), some);
        }
    }
}

/// `n` elements of each row `b`; `row_bytes` of each destination row go on from here.
fn odd_square(
    src: *const u8,
    dst: *mut u8,
    n: usize,
    rows: impl Fn(usize) -> isize,
    b: &[Step],
    size: usize,
    row_bytes: usize,
) {
    let group = 16 / size.next_power_of_two();
    for k in 0..group {
        for lane in 0..4 {
            let row = (lane * group + k).min(b.len() - 1);
            read(src.wrapping_offset(look(&b[row].src)), n * size);
        }
    }
    let bytes = if row_bytes >= 64 { 64 } else { b.len() * size };
    for k in 0..n {
        write(dst.wrapping_offset(rows(k)), bytes);
    }
}

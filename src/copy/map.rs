//! Copies that change their elements on the way, in one pass.
//!
//! The index space is cut into tiles that fit the first-level cache and are long on both sides. Where a
//! tile's source is not dense along the destination's rows, an ordinary plan first gathers it into a small
//! buffer; then the function runs over whole rows, which vectorises, and large destinations get their lines
//! past the caches from a second small buffer. So source and destination each cross the memory bus once,
//! where copy-then-convert has the intermediate cross it twice more.

use super::kernels::{self, Isa, map as ops, map::RunOp};
use super::nest::{self, Buffers};
use super::options::CopyOptions;
use super::plan::Plan;
use super::tuning::Tuning;
use crate::layout::fuse::{Axis, Fused, fuse_raw};
use crate::layout::{Layout, Region};
use crate::view::{Element, View, ViewMut};
use crate::{Error, Index};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use std::ops::{ControlFlow, Range};

/// Bytes of gathered source elements, and of changed elements on their way past the caches.
const GATHER_BYTES: usize = 64 << 10;
const CHANGED_BYTES: usize = 4 << 10;
/// Rows of the destination shorter than this do not go past the caches.
const SHORTEST_STREAMED: usize = 256;

type Extents = SmallVec<[usize; 6]>;

/// Writes `f` of each source element to the destination: mapping the materialized view, padding included,
/// in one pass.
///
/// # Errors
/// `ShapeMismatch` (a copy never broadcasts); `Overflow`; `Isa` when `RESTRIDE_ISA` names a level that this
/// CPU lacks.
///
/// ```
/// use restride::{Layout, View, ViewMut, map_copy};
/// // One row of two RGB pixels becomes three planes of normalised floats.
/// let pixels = [255u8, 0, 51, 102, 153, 204];
/// let mut planes = [0f32; 6];
/// let src = View::new(&pixels, Layout::row_major(&[1, 2, 3])?)?.permute(&[2, 0, 1])?;
/// let mut dst = ViewMut::new(&mut planes, Layout::row_major(&[3, 1, 2])?)?;
/// map_copy(&src, &mut dst, |byte| f32::from(byte) / 255.0)?;
/// assert_eq!(planes, [1.0, 0.4, 0.0, 0.6, 0.2, 0.8]);
/// # Ok::<(), restride::Error>(())
/// ```
pub fn map_copy<S: Element, D: Element>(
    src: &View<'_, S>,
    dst: &mut ViewMut<'_, D>,
    f: impl Fn(S) -> D + Sync,
) -> Result<(), Error> {
    map_copy_with(src, dst, f, &CopyOptions::default())
}

/// [`map_copy`] with options.
///
/// # Errors
/// As [`map_copy`].
pub fn map_copy_with<S: Element, D: Element>(
    src: &View<'_, S>,
    dst: &mut ViewMut<'_, D>,
    f: impl Fn(S) -> D + Sync,
    options: &CopyOptions,
) -> Result<(), Error> {
    run(src, dst, &ops::Each(f), options)
}

/// Replaces each destination element by `f` of the source element and of itself, in one pass:
/// `alpha * x + beta * dst` and the like.
///
/// # Errors
/// As [`map_copy`].
///
/// ```
/// use restride::{Layout, View, ViewMut, update};
/// let x = [1f32, 2.0, 3.0, 4.0];
/// let mut y = [10f32; 4];
/// let src = View::new(&x, Layout::row_major(&[2, 2])?)?.t()?;
/// update(&src, &mut ViewMut::new(&mut y, Layout::row_major(&[2, 2])?)?, |x, y| 2.0 * x + 0.5 * y)?;
/// assert_eq!(y, [7.0, 11.0, 9.0, 13.0]);
/// # Ok::<(), restride::Error>(())
/// ```
pub fn update<S: Element, D: Element>(
    src: &View<'_, S>,
    dst: &mut ViewMut<'_, D>,
    f: impl Fn(S, D) -> D + Sync,
) -> Result<(), Error> {
    update_with(src, dst, f, &CopyOptions::default())
}

/// [`update`] with options.
///
/// # Errors
/// As [`map_copy`].
pub fn update_with<S: Element, D: Element>(
    src: &View<'_, S>,
    dst: &mut ViewMut<'_, D>,
    f: impl Fn(S, D) -> D + Sync,
    options: &CopyOptions,
) -> Result<(), Error> {
    run(src, dst, &ops::Update(f), options)
}

/// As [`map_copy`], with a function over runs of elements, such as a library's vectorised conversion:
/// it gets as many source as destination elements and overwrites the latter.
///
/// # Errors
/// As [`map_copy`].
///
/// ```
/// use restride::{CopyOptions, Layout, View, ViewMut, map_runs};
/// let x = [1u16, 2, 3, 4];
/// let mut y = [0u32; 4];
/// let src = View::new(&x, Layout::row_major(&[2, 2])?)?.t()?;
/// let mut dst = ViewMut::new(&mut y, Layout::row_major(&[2, 2])?)?;
/// let widen = |from: &[u16], to: &mut [u32]| to.iter_mut().zip(from).for_each(|(to, &from)| *to = from.into());
/// map_runs(&src, &mut dst, widen, &CopyOptions::default())?;
/// assert_eq!(y, [1, 3, 2, 4]);
/// # Ok::<(), restride::Error>(())
/// ```
pub fn map_runs<S: Element, D: Element>(
    src: &View<'_, S>,
    dst: &mut ViewMut<'_, D>,
    f: impl Fn(&[S], &mut [D]) + Sync,
    options: &CopyOptions,
) -> Result<(), Error> {
    run(src, dst, &ops::Slices(f), options)
}

fn run<S: Element, D: Element, O: RunOp<S, D>>(
    src: &View<'_, S>,
    dst: &mut ViewMut<'_, D>,
    op: &O,
    options: &CopyOptions,
) -> Result<(), Error> {
    if src.shape() != dst.shape() {
        return Err(Error::ShapeMismatch { src: src.shape().into(), dst: dst.shape().into() });
    }
    let isa = match options.isa {
        None => Isa::active()?,
        Some(isa) => isa.require("the caller asks for")?,
    };
    let to = dst.layout().clone();
    let pointers = Pointers { src: src.data().as_ptr(), dst: dst.data_mut().as_mut_ptr() };
    let Some(mask) = src.layout().mask() else {
        let job = Job::new(src.layout(), &to, isa, options, size_of::<S>(), size_of::<D>(), O::READS_DST)?;
        // SAFETY: a `View` reaches only its slice (L2), a `ViewMut` its own and nothing twice (L5), and the
        // two slices do not overlap, for one is borrowed mutably.
        return unsafe { job.run(pointers, op) };
    };
    let fill = [src.fill_value()];
    let mut result = Ok(());
    let _ = mask.regions(src.shape(), &mut |ranges, region| {
        let part = |src: Result<Layout, Error>, data| -> Result<(), Error> {
            let (from, to) = (src?, part_of(&to, ranges)?);
            let job = Job::new(&from, &to, isa, options, size_of::<S>(), size_of::<D>(), O::READS_DST)?;
            // SAFETY: as above; the parts are boxes of the two layouts, the fill a single element.
            unsafe { job.run(Pointers { src: data, ..pointers }, op) }
        };
        result = match region {
            Region::Valid => part(part_of(src.layout(), ranges), pointers.src),
            Region::Fill => {
                let extents: Extents = ranges.iter().map(ExactSizeIterator::len).collect();
                let one = Layout::new(&[], &[], 0).and_then(|one| one.broadcast_to(&extents));
                part(one, fill.as_ptr())
            }
        };
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    result
}

fn part_of(layout: &Layout, ranges: &[Range<usize>]) -> Result<Layout, Error> {
    let bounds = |range: &Range<usize>| Index::Slice {
        start: Some(range.start as isize),
        stop: Some(range.end as isize),
        step: 1,
    };
    layout.slice(&ranges.iter().map(bounds).collect::<Vec<_>>())
}

struct Pointers<S, D> {
    src: *const S,
    dst: *mut D,
}

impl<S, D> Clone for Pointers<S, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S, D> Copy for Pointers<S, D> {}

// SAFETY: each thread gets tiles of its own, whose destination elements no other tile reaches (L5); the
// source is only read.
unsafe impl<S: Sync, D: Send> Sync for Pointers<S, D> {}

/// One box to be mapped: axes in elements, outermost in the destination first, cut into tiles.
struct Job {
    axes: SmallVec<[Axis; 6]>,
    tile: Extents,
    src_offset: isize,
    dst_offset: isize,
    /// The innermost axis is dense in the source too (or has one step): no gathering.
    direct: bool,
    streaming: bool,
    threads: usize,
    isa: Isa,
    tuning: Tuning,
}

impl Job {
    fn new(
        src: &Layout,
        dst: &Layout,
        isa: Isa,
        options: &CopyOptions,
        src_size: usize,
        dst_size: usize,
        reads_dst: bool,
    ) -> Result<Self, Error> {
        let tuning = options.tuning.as_deref().copied().unwrap_or_else(|| *Tuning::machine());
        // Strides in elements: sizes differ on the two sides.
        let mut fused = Fused::default();
        let (from, to) = ((src.strides(), src.offset()), (dst.strides(), dst.offset()));
        fuse_raw(&mut fused, dst.shape(), from, to, 1)?;
        let Fused { mut axes, element, src_offset, dst_offset, elements } = fused;
        if elements > 0 && (element > 1 || axes.is_empty()) {
            axes.push(Axis { extent: element, src: 1, dst: 1 });
        }
        if elements == 0 {
            axes.clear();
            axes.push(Axis { extent: 0, src: 1, dst: 1 });
        }
        let count = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.extent));
        let bytes = count.and_then(|n| n.checked_mul(src_size + dst_size));
        let bytes = bytes.ok_or(Error::Overflow { what: "the size of the copy" })?;
        let direct = axes.last().is_some_and(|axis| axis.src == 1);
        let per_tile = (GATHER_BYTES / src_size.max(1)).clamp(1, 1 << 14);
        let tile = tile_extents(&axes, per_tile, 256 / src_size.clamp(1, 256));
        let large = bytes >= tuning.streaming_from_bytes.of(dst_size);
        let streaming = !reads_dst && dst_size > 0 && options.streaming.unwrap_or(large);
        let threads = match options.threads {
            _ if bytes < tuning.parallel_from_bytes.value => 1,
            Some(n) => n,
            None => super::parallel::default_threads(),
        };
        Ok(Self { axes, tile, src_offset, dst_offset, direct, streaming, threads, isa, tuning })
    }

    /// # Safety
    /// The layouts that the job was made of reach only readable source and writable destination elements,
    /// none of the latter twice, and the two sides do not overlap.
    unsafe fn run<S: Element, D: Element, O: RunOp<S, D>>(
        &self,
        pointers: Pointers<S, D>,
        op: &O,
    ) -> Result<(), Error> {
        if self.axes.iter().any(|axis| axis.extent == 0) || size_of::<D>() == 0 {
            return Ok(());
        }
        let counts: Extents =
            self.axes.iter().zip(&self.tile).map(|(axis, &t)| axis.extent.div_ceil(t)).collect();
        let plans = if self.direct { Vec::new() } else { self.plans(size_of::<S>())? };
        let tiles: usize = counts.iter().product();
        let pointers = &pointers;
        super::parallel::share(self.threads, tiles, 1, |range| {
            let mut buffers = Box::<Staging>::new_uninit();
            let mut changed = Changed([0; CHANGED_BYTES]);
            for number in range {
                let tile = self.locate(number, &counts);
                // SAFETY: the caller's promise; each tile is visited by one thread.
                unsafe { self.one(pointers, &tile, &plans, op, &mut buffers, &mut changed) };
            }
            if self.streaming {
                (kernels::entry(self.isa).fence)();
            }
        });
        Ok(())
    }

    /// How to gather each shape of tile: whole ones and those at the far edges.
    fn plans(&self, size: usize) -> Result<Vec<(Extents, Plan)>, Error> {
        let mut shapes: Vec<Extents> = vec![Extents::new()];
        for (axis, &t) in self.axes.iter().zip(&self.tile) {
            let edge = axis.extent % t;
            let mut longer = Vec::with_capacity(shapes.len() * 2);
            for shape in shapes {
                for extent in [t, edge] {
                    if extent > 0 && (extent == t || edge > 0) && extent <= axis.extent {
                        let mut next = shape.clone();
                        next.push(extent);
                        longer.push(next);
                    }
                }
            }
            shapes = longer;
        }
        let options = CopyOptions::default().threads(1).isa(self.isa).streaming(false).tuning(self.tuning);
        let strides: SmallVec<[isize; 6]> = self.axes.iter().map(|axis| axis.src).collect();
        let plan = |shape: Extents| {
            let dense = crate::layout::row_major_strides(&shape);
            let mut fused = Fused::default();
            fuse_raw(&mut fused, &shape, (&strides, 0), (&dense, 0), size)?;
            Ok((shape, Plan::of_fused(&mut fused, size, 0, &options)?))
        };
        shapes.into_iter().map(plan).collect()
    }

    fn locate(&self, mut number: usize, counts: &[usize]) -> TileAt {
        let mut at = TileAt { src: self.src_offset, dst: self.dst_offset, extents: Extents::new() };
        at.extents.resize(self.axes.len(), 0);
        for k in (0..self.axes.len()).rev() {
            let first = number % counts[k] * self.tile[k];
            number /= counts[k];
            at.src += first as isize * self.axes[k].src;
            at.dst += first as isize * self.axes[k].dst;
            at.extents[k] = self.tile[k].min(self.axes[k].extent - first);
        }
        at
    }

    /// # Safety
    /// As [`Job::run`], for one tile.
    unsafe fn one<S: Element, D: Element, O: RunOp<S, D>>(
        &self,
        pointers: &Pointers<S, D>,
        tile: &TileAt,
        plans: &[(Extents, Plan)],
        op: &O,
        gathered: &mut MaybeUninit<Staging>,
        changed: &mut Changed,
    ) {
        // Source of the tile's rows: in place, or gathered in the destination's order.
        let mut strides: SmallVec<[isize; 6]> = self.axes.iter().map(|axis| axis.src).collect();
        // SAFETY: offsets of a tile lie inside the slice (L2).
        let mut from = unsafe { pointers.src.offset(tile.src) };
        if !self.direct
            && let Some((_, plan)) = plans.iter().find(|(shape, _)| *shape == tile.extents)
        {
            let buffers = Buffers { src: from.cast(), dst: gathered.as_mut_ptr().cast(), fill: from.cast() };
            // SAFETY: the plan reaches the tile's source elements, and as many in the buffer, which holds
            // `GATHER_BYTES` and is aligned for every element type (64).
            unsafe { nest::execute(plan, buffers) };
            from = gathered.as_ptr().cast();
            strides = crate::layout::row_major_strides(&tile.extents);
        }
        // Rows: the innermost axes that both sides walk as one.
        let (mut row, mut outer) = (1usize, self.axes.len());
        while outer > 0
            && (tile.extents[outer - 1] == 1
                || (strides[outer - 1] == row as isize && self.axes[outer - 1].dst == row as isize))
        {
            outer -= 1;
            row *= tile.extents[outer];
        }
        let stream = self.streaming && row * size_of::<D>() >= SHORTEST_STREAMED;
        let mut index: Extents = SmallVec::from_elem(0, outer);
        // SAFETY: as for `from`.
        let mut to = unsafe { pointers.dst.offset(tile.dst) };
        loop {
            // SAFETY: the row lies in the tile on both sides, and the levels' features are there.
            unsafe {
                if stream {
                    self.streamed(op, from, to, row, changed);
                } else {
                    ops::run(self.isa, op, from, to, row);
                }
            }
            let Some(axis) = (0..outer).rev().find(|&k| index[k] + 1 < tile.extents[k]) else { return };
            let mut step = (strides[axis], self.axes[axis].dst);
            index[axis] += 1;
            for k in axis + 1..outer {
                let back = index[k] as isize;
                step = (step.0 - back * strides[k], step.1 - back * self.axes[k].dst);
                index[k] = 0;
            }
            // SAFETY: still inside the tile; the last step out of it was taken by `return`.
            unsafe {
                from = from.offset(step.0);
                to = to.offset(step.1);
            }
        }
    }

    /// # Safety
    /// As [`RunOp::run`], at a level that the CPU has.
    unsafe fn streamed<S: Element, D: Element, O: RunOp<S, D>>(
        &self,
        op: &O,
        from: *const S,
        to: *mut D,
        row: usize,
        changed: &mut Changed,
    ) {
        let level = kernels::entry(self.isa);
        // A multiple of the line, so that after the first part each part starts on a line if elements do.
        let per_part = (CHANGED_BYTES / size_of::<D>()).max(1);
        let mut done = 0;
        while done < row {
            let line = to.wrapping_add(done).addr() % 64 / size_of::<D>();
            let n = (row - done).min(per_part.saturating_sub(line).max(1));
            // SAFETY: `done + n <= row`; the buffer is aligned for every element type and holds
            // `CHANGED_BYTES`, of which n elements are written and read back.
            unsafe {
                ops::run(self.isa, op, from.add(done), changed.0.as_mut_ptr().cast::<D>(), n);
                let (to, bytes) = (to.add(done).cast(), n * size_of::<D>());
                (level.stream)(to, changed.0.as_ptr(), bytes);
            }
            done += n;
        }
    }
}

struct TileAt {
    src: isize,
    dst: isize,
    extents: Extents,
}

#[repr(align(64))]
struct Staging {
    _bytes: [u8; GATHER_BYTES],
}

#[repr(align(64))]
struct Changed([u8; CHANGED_BYTES]);

/// Extents of a tile of at most `most` elements: first along the source's dense axes for a few lines, then
/// along the destination's, innermost first.
fn tile_extents(axes: &[Axis], most: usize, along_src: usize) -> Extents {
    let mut tile: Extents = SmallVec::from_elem(1, axes.len());
    let mut size = 1usize;
    let mut order: SmallVec<[usize; 6]> = (0..axes.len()).filter(|&k| axes[k].src != 0).collect();
    order.sort_by_key(|&k| axes[k].src.unsigned_abs());
    for k in order {
        if size >= along_src {
            break;
        }
        tile[k] = axes[k].extent.min(along_src.div_ceil(size)).min(most / size).max(1);
        size *= tile[k];
    }
    for k in (0..axes.len()).rev() {
        let others = size / tile[k];
        tile[k] = axes[k].extent.min((most / others).max(1)).max(tile[k]);
        size = others * tile[k];
        if tile[k] < axes[k].extent {
            break;
        }
    }
    tile
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<S: Element, D: Element + PartialEq + std::fmt::Debug>(
        shape: &[usize],
        expr: &str,
        make: impl Fn(usize) -> S,
        f: impl Fn(S) -> D + Sync + Copy,
    ) {
        let numel = shape.iter().product();
        let data: Vec<S> = (0..numel).map(make).collect();
        let src = View::new(&data, Layout::row_major(shape).unwrap()).unwrap().apply(expr).unwrap();
        let expected: Vec<D> = src.iter().map(f).collect();
        for isa in Isa::available() {
            for threads in [1, 3] {
                for streaming in [false, true] {
                    let options = CopyOptions::default().threads(threads).streaming(streaming).isa(isa);
                    let mut out = vec![D::zeroed(); expected.len() + 1];
                    let layout = Layout::row_major(src.shape()).unwrap();
                    // One element in, so that lines and elements do not coincide.
                    let at = Layout::new(layout.shape(), layout.strides(), 1).unwrap();
                    let mut dst =
                        ViewMut::new(&mut out, if expected.is_empty() { layout } else { at }).unwrap();
                    map_copy_with(&src, &mut dst, f, &options).unwrap();
                    assert_eq!(out[1..], expected[..], "{shape:?} {expr} {isa} {threads} {streaming}");
                }
            }
        }
    }

    #[test]
    fn mapping_equals_mapping_the_materialized_view() {
        let exprs = [
            "",
            ".permute(2, 0, 1)",
            ".permute(1, 2, 0)",
            ".T",
            "[::2, ::-1]",
            "[:, :, ::-1]",
            ".pad((1, 2), (0, 1), (2, 0))",
            ".pad((1, 1), (1, 1), (0, 0)).unfold(0, 3, 1).unfold(1, 3, 1)",
            "[:, :, 1]",
            "[:, 1:1]",
            "[0:1].broadcast_to(5, 70, 3)",
            ".diagonal(0, 0, 1)",
        ];
        for expr in exprs {
            check(&[40, 70, 3], expr, |k| k as u8, |x| f32::from(x) * 0.5 + 1.0);
            check(&[40, 70, 3], expr, |k| k as f32, |x| x as u16);
            check(&[40, 70, 3], expr, |k| [k as u8, 1, 2], |x| [x[2], x[0]]);
            check(&[40, 70, 3], expr, |k| k as u32, u32::swap_bytes);
        }
        check(&[], "", |_| 7u8, u64::from);
        check(&[300, 300], ".T", |k| k as u64, |x| x as u8);
        check(&[3, 100_000], ".T", |k| k as u8, f64::from);
    }

    #[test]
    fn updating_reads_the_destination() {
        let x: Vec<f32> = (0..6000u16).map(f32::from).collect();
        let src = View::new(&x, Layout::row_major(&[60, 100]).unwrap()).unwrap().t().unwrap();
        let mut y: Vec<f32> = vec![10.0; 12000];
        let every_second = Layout::row_major(&[100, 120]).unwrap().apply("[:, ::2]").unwrap();
        let mut dst = ViewMut::new(&mut y, every_second).unwrap();
        update(&src, &mut dst, |x, y| 2.0 * x + 0.5 * y).unwrap();
        for i in 0..100 {
            for j in 0..120 {
                let expected = if j % 2 == 0 { 2.0 * x[j / 2 * 100 + i] + 5.0 } else { 10.0 };
                assert_eq!(y[i * 120 + j], expected);
            }
        }
    }

    #[test]
    fn a_padded_source_maps_its_fill_value() {
        let data = [1u8, 2];
        let src = View::new(&data, Layout::row_major(&[2]).unwrap()).unwrap().pad(&[(1, 1)], 9).unwrap();
        let mut out = [0u16; 4];
        let mut dst = ViewMut::new(&mut out, Layout::row_major(&[4]).unwrap()).unwrap();
        map_copy(&src, &mut dst, |x| u16::from(x) * 100).unwrap();
        let short = View::new(&data, Layout::row_major(&[2]).unwrap()).unwrap();
        assert_eq!(map_copy(&short, &mut dst, u16::from).unwrap_err().kind(), "shape_mismatch");
        assert_eq!(out, [900, 100, 200, 900]);
    }

    #[test]
    fn tiles_are_long_on_both_sides() {
        let hwc_to_chw = [Axis { extent: 3, src: 1, dst: 10_000 }, Axis { extent: 10_000, src: 3, dst: 1 }];
        assert_eq!(tile_extents(&hwc_to_chw, 16384, 256)[..], [3, 5461]);
        let transpose = [Axis { extent: 900, src: 1, dst: 800 }, Axis { extent: 800, src: 900, dst: 1 }];
        assert_eq!(tile_extents(&transpose, 4096, 64)[..], [64, 64]);
        assert_eq!(tile_extents(&[Axis { extent: 1 << 30, src: 1, dst: 1 }], 4096, 64)[..], [4096]);
    }
}

//! Copies that change their elements on the way, in one pass.
//!
//! The index space is cut into tiles that fit the first-level cache and are long on both sides. Where a
//! tile's source is not dense along the destination's rows, an ordinary plan first gathers it into a small
//! buffer; then the function runs over whole rows, which vectorises, and large destinations get their lines
//! past the caches from a second small buffer. So source and destination each cross the memory bus once,
//! where copy-then-convert has the intermediate cross it twice more.

mod ahead;
mod job;
mod tiles;

use super::kernels::{Isa, map as ops, map::RunOp};
use super::nest::{self, Buffers};
use super::options::CopyOptions;
use super::plan::Plan;
use crate::layout::{Layout, Region};
use crate::view::{Element, View, ViewMut};
use crate::{Error, Index};
use job::{Elements, Job};
use std::mem::MaybeUninit;
use std::ops::{ControlFlow, Range};
use tiles::Extents;

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
    if src.layout().numel().checked_mul(size_of::<S>()).is_some_and(|bytes| bytes <= SMALL_BYTES)
        && size_of::<S>() > 0
        && !src.layout().is_padded()
        && dst.layout().is_contiguous()
    {
        return small(src, dst, op, isa, options);
    }
    let to = dst.layout().clone();
    let pointers = Pointers { src: src.data().as_ptr(), dst: dst.data_mut().as_mut_ptr() };
    let elements = Elements {
        src_size: size_of::<S>(),
        dst_size: size_of::<D>(),
        reads_dst: O::READS_DST,
        address: pointers.dst.addr(),
    };
    let Some(mask) = src.layout().mask() else {
        let job = Job::new(src.layout(), &to, isa, options, &elements)?;
        // SAFETY: a `View` reaches only its slice (L2), a `ViewMut` its own and nothing twice (L5), and the
        // two slices do not overlap, for one is borrowed mutably.
        return unsafe { job.run(pointers, op) };
    };
    let fill = [src.fill_value()];
    let mut result = Ok(());
    let _ = mask.regions(src.shape(), &mut |ranges, region| {
        let part = |src: Result<Layout, Error>, data| -> Result<(), Error> {
            let (from, to) = (src?, part_of(&to, ranges)?);
            let job = Job::new(&from, &to, isa, options, &elements)?;
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

/// [`run`] of a view that fits a small buffer into dense memory: moved there and changed from there, or changed
/// where it is, without a job made for it.
fn small<S: Element, D: Element, O: RunOp<S, D>>(
    src: &View<'_, S>,
    dst: &mut ViewMut<'_, D>,
    op: &O,
    isa: Isa,
    options: &CopyOptions,
) -> Result<(), Error> {
    let n = src.layout().numel();
    if n == 0 {
        return Ok(());
    }
    let mut buffer = MaybeUninit::<Small>::uninit();
    // SAFETY: views of at least one element start inside their slices (L2).
    let (mut from, to) = unsafe {
        let from = src.data().as_ptr().offset(src.layout().offset());
        let at = dst.layout().offset();
        (from, dst.data_mut().as_mut_ptr().offset(at))
    };
    if !src.layout().is_contiguous() {
        let (threads, streaming, tuning) = (Some(1), Some(false), options.tuning.clone());
        let plan = CopyOptions { threads, streaming, tuning, isa: Some(isa) };
        let plan = Plan::contiguous(src.layout(), size_of::<S>(), 0, &plan)?;
        let data = src.data().as_ptr().cast();
        // SAFETY: the plan reaches the view's elements (L2) and as many in the buffer, which the caller found large
        // enough and which is aligned for every element type (64).
        unsafe { nest::execute(&plan, Buffers { src: data, dst: buffer.as_mut_ptr().cast(), fill: data }) };
        from = buffer.as_ptr().cast();
    }
    // SAFETY: `n` elements on both sides, dense; `dst` is borrowed mutably, so that they do not overlap; the CPU
    // runs the level.
    unsafe { ops::run(isa, op, from, to, n) };
    Ok(())
}

/// Views of no more than this are moved and changed at once.
const SMALL_BYTES: usize = 16 << 10;

#[repr(align(64))]
struct Small {
    _bytes: [u8; SMALL_BYTES],
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
        let layout = Layout::row_major(src.shape()).unwrap();
        let mut out = vec![D::zeroed(); expected.len() + 64];
        for isa in Isa::available() {
            for (threads, streaming) in [(1, false), (1, true), (3, true)] {
                let options = CopyOptions::default().threads(threads).streaming(streaming).isa(isa);
                for after in [0, 1, 13] {
                    // On a line, and off.
                    let start = if expected.is_empty() { 0 } else { on_line(&out) + after };
                    let at = Layout::new(layout.shape(), layout.strides(), start as isize).unwrap();
                    out.fill(D::zeroed());
                    let mut dst = ViewMut::new(&mut out, at).unwrap();
                    map_copy_with(&src, &mut dst, f, &options).unwrap();
                    let (before, rest) = out.split_at(start);
                    let (got, behind) = rest.split_at(expected.len());
                    assert!(got == expected, "{shape:?} {expr} {isa} {threads} {streaming} {after}");
                    assert!(before.iter().chain(behind).all(|d| *d == D::zeroed()), "{shape:?} {expr} {isa}");
                }
            }
        }
    }

    /// The first element, roughly, that starts a line.
    fn on_line<T>(of: &[T]) -> usize {
        of.as_ptr().addr().wrapping_neg() % 64 / size_of::<T>().max(1)
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
        // Sides off lines, tiles in several orders, slices and ends of every kind.
        for expr in [".T", "[::-1].T", "[:, ::-1].T", "[:, ::-1]", "[:, ::2].T", ""] {
            check(&[257, 1011], expr, |k| k as u8, f32::from);
            check(&[1024, 192], expr, |k| k as f32, |x| x as u16);
            check(&[191, 1025], expr, |k| k as u16, |x| [x as u8, 1, 2]);
        }
        for expr in [".permute(2, 0, 1)", ".permute(0, 2, 1)", ".permute(2, 1, 0)", ".permute(1, 0, 2)"] {
            check(&[9, 130, 70], expr, |k| k as u16, u64::from);
            check(&[4, 3, 9001], expr, |k| k as u32, |x| x as u8);
            check(&[9001, 3, 4], expr, |k| k as u8, |x| [f32::from(x), 1.0]);
        }
        check(&[], "", |_| 7u8, u64::from);
        check(&[300, 300], ".T", |k| k as u64, |x| x as u8);
        check(&[3, 100_000], ".T", |k| k as u8, f64::from);
    }

    #[test]
    fn updating_reads_the_destination() {
        // What the caches hold, and what they do not.
        let mut far = *crate::Tuning::machine();
        far.l3_bytes.value = 1;
        let tunings = [*crate::Tuning::machine(), far];
        for (shape, expr) in [
            ([60, 100], ".T"),
            ([333, 1201], ".T"),
            ([1024, 512], ".T"),
            ([1203, 331], "[::-1].T"),
            ([331, 1203], "[:, ::-1].T"),
            ([331, 1203], "[:, ::-1]"),
            ([331, 1203], ""),
            ([20_001, 3], ".T"),
            ([3, 20_001], ".T"),
        ] {
            let numel = shape.iter().product::<usize>();
            let x: Vec<f32> = (0..numel).map(|k| k as f32).collect();
            let src = View::new(&x, Layout::row_major(&shape).unwrap()).unwrap().apply(expr).unwrap();
            let plain: Vec<f32> = src.iter().collect();
            let [rows, columns] = [src.shape()[0], src.shape()[1]];
            for tuning in &tunings {
                for isa in Isa::available() {
                    for (step, threads) in [(1, 1), (1, 3), (2, 1)] {
                        let options = CopyOptions::default().isa(isa).threads(threads).tuning(*tuning);
                        let mut y: Vec<f32> = vec![10.0; numel * step];
                        let every = Layout::row_major(&[rows, columns * step]).unwrap();
                        let every = every.apply(&format!("[:, ::{step}]")).unwrap();
                        let mut dst = ViewMut::new(&mut y, every).unwrap();
                        update_with(&src, &mut dst, |x, y| 2.0 * x + 0.5 * y, &options).unwrap();
                        for (k, &y) in y.iter().enumerate() {
                            let expected = if k % step == 0 { 2.0 * plain[k / step] + 5.0 } else { 10.0 };
                            assert_eq!(y, expected, "{shape:?} {expr} {isa} {step} {threads} at {k}");
                        }
                    }
                }
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
}

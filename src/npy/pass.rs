//! One copy from a view of mapped memory into a dense file, in bounded memory.
//!
//! Three routes, chosen from sizes and strides alone:
//! - everything fits: the destination is written from front to back;
//! - box by box: each band of the destination is filled from boxes of the view that follow the source's
//!   memory, and both sides are given back behind the copy;
//! - staged, when the bands would read the same source pages more than a few times: the first pass reads
//!   the source in its own order and sorts boxes by destination band into a temporary file, the second
//!   pass reads that file from front to back. Every page is then read and written at most twice.

use super::bands::{self, Bands, Cut};
use super::error::NpyError;
use super::output::Scratch;
use super::sides::{Sink, Source, buffer};
use crate::Error;
use crate::layout::Layout;
use crate::view::{BytesView, BytesViewMut};
use smallvec::SmallVec;
use std::ops::Range;
use std::path::Path;

/// How often the same source page may be read before a temporary file is worth it.
const MOST_READS: u128 = 2;
/// Most bytes between two progress reports.
const REPORT_BYTES: usize = 128 << 20;

/// The copy that does the work, such as `copy_bytes` with its options.
pub type CopyBytes<'a> = dyn Fn(&BytesView<'_>, &mut BytesViewMut<'_>) -> Result<(), Error> + 'a;

/// A view to be made dense.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The view over the source's elements.
    pub layout: &'a Layout,
    /// Bytes of one element, at least 1.
    pub element_size: usize,
    /// The element that padded positions read; `None` for zero bytes.
    pub fill: Option<&'a [u8]>,
    /// Whether the first axis is the fastest one in the destination.
    pub column_major: bool,
}

/// How much memory a pass may keep resident, roughly.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of both sides together.
    pub bytes: usize,
    /// Bytes that one read from the source brings in: a page where the file is cached, more where every
    /// jump costs a disk access.
    pub read_bytes: usize,
    /// Bytes that a file mapping brings in around a touched address.
    pub around_bytes: usize,
}

/// How a pass goes about it: pure data.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Route {
    /// Destination bands, each filled from boxes of at most `inner` positions in source order.
    Boxes { bands: Bands, inner: usize, release_source: bool, release_sink: bool },
    /// Source bands, sorted by destination band into a temporary file.
    Staged { source: Bands, sink: Bands },
}

/// The fixed facts of a pass.
struct Pass<'a> {
    job: Job<'a>,
    /// Axes of the destination's memory, slowest first.
    sink_order: SmallVec<[usize; 6]>,
    /// Axes of the source's memory, slowest first.
    source_order: SmallVec<[usize; 6]>,
    /// Strides of the whole destination, in elements.
    sink_strides: SmallVec<[isize; 6]>,
}

impl<'a> Pass<'a> {
    fn new(job: Job<'a>) -> Self {
        let ndim = job.layout.ndim();
        let sink_order: SmallVec<[usize; 6]> =
            if job.column_major { (0..ndim).rev().collect() } else { (0..ndim).collect() };
        let sink_strides = dense_strides(job.layout.shape(), &sink_order);
        let source_order = bands::memory_order(job.layout.strides());
        Pass { job, sink_order, source_order, sink_strides }
    }

    fn footprint(&self, cut: &[(usize, usize)], grain: usize) -> u128 {
        bands::footprint(&bands::extents(cut), self.job.layout.strides(), self.job.element_size, grain)
    }

    /// Boxes of `shape` in source order, none of which holds more than `elements` positions or touches
    /// more than `bytes` of the source (unless a single position does).
    fn boxes(&self, shape: &[usize], mut elements: usize, bytes: usize, around: usize) -> Bands {
        loop {
            let boxes = Bands::new(shape, &self.source_order, elements);
            let largest = boxes.largest();
            let size = bands::size(&largest);
            if size == 1 || self.footprint(&largest, around) <= bytes as u128 {
                return boxes;
            }
            elements = size / 2;
        }
    }

    fn route(&self, limits: &Limits) -> Route {
        let Job { layout, element_size, .. } = self.job;
        let shape = layout.shape();
        let total = layout.numel() * element_size;
        let elements = |bytes: usize| (bytes / element_size).max(1);
        let half = (limits.bytes / 2).max(1);
        let report = elements(REPORT_BYTES);
        let whole: Cut = shape.iter().map(|&n| (0, n)).collect();
        let reach = reach_bytes(layout, element_size).len() as u128;
        let around = limits.around_bytes;
        let source = self.footprint(&whole, around).min(reach + 2 * around as u128);

        if total as u128 + source <= limits.bytes as u128 {
            let bands = Bands::new(shape, &self.sink_order, report);
            return Route::Boxes { bands, inner: usize::MAX, release_source: false, release_sink: false };
        }
        if source <= half as u128 {
            let bands = Bands::new(shape, &self.sink_order, elements(half).min(report));
            return Route::Boxes { bands, inner: usize::MAX, release_source: false, release_sink: true };
        }
        let bands = Bands::new(shape, &self.sink_order, elements(half));
        let band = bands::extents(&bands.largest());
        let boxes = self.boxes(&band, bands::size(&bands.largest()).min(report), half, around);
        let once = |cut: &[(usize, usize)]| self.footprint(cut, limits.read_bytes);
        let reads = bands.count() as u128 * boxes.count() as u128 * once(&boxes.largest());
        if reads <= MOST_READS * once(&whole).min(reach + 2 * limits.read_bytes as u128) {
            let inner = bands::size(&boxes.largest());
            return Route::Boxes { bands, inner, release_source: true, release_sink: true };
        }
        let quarter = (half / 2).max(1);
        Route::Staged {
            source: self.boxes(shape, elements(quarter).min(report), half, around),
            sink: Bands::new(shape, &self.sink_order, elements(quarter)),
        }
    }

    /// The view of a box and the bytes of the source that it reads.
    fn view(&self, cut: &[(usize, usize)]) -> Result<(Layout, Range<usize>), NpyError> {
        let part = self.job.layout.shrink(cut)?;
        let range = reach_bytes(&part, self.job.element_size);
        Ok((part, range))
    }

    /// Place of a box's first position in the whole destination, in elements.
    fn place(&self, cut: &[(usize, usize)]) -> usize {
        cut.iter().zip(&self.sink_strides).map(|(&(from, _), &stride)| from * stride as usize).sum()
    }

    /// Bytes of the destination that a band of it fills.
    fn window(&self, band: &[(usize, usize)]) -> Range<usize> {
        let start = self.place(band) * self.job.element_size;
        start..start + bands::size(band) * self.job.element_size
    }

    fn read<'d>(&self, data: &'d [u8], layout: Layout) -> Result<BytesView<'d>, Error>
    where
        'a: 'd,
    {
        let view = BytesView::new(data, layout, self.job.element_size)?;
        match self.job.fill {
            Some(fill) => view.with_fill(fill),
            None => Ok(view),
        }
    }

    /// A box inside the window of its band.
    fn write<'d>(
        &self,
        window: &'d mut [u8],
        band: &[(usize, usize)],
        cut: &[(usize, usize)],
    ) -> Result<BytesViewMut<'d>, Error> {
        let offset = (self.place(cut) - self.place(band)) as isize;
        let layout = Layout::new(&bands::extents(cut), &self.sink_strides, offset)?;
        BytesViewMut::new(window, layout, self.job.element_size)
    }

    /// Boxes of at most `inner` positions inside a band, in source order.
    fn boxes_of(&self, band: &[(usize, usize)], inner: usize) -> Vec<Cut> {
        let boxes = Bands::new(&bands::extents(band), &self.source_order, inner);
        let shift = |cut: Cut| cut.iter().zip(band).map(|(c, b)| (c.0 + b.0, c.1 + b.0)).collect();
        boxes.iter().map(shift).collect()
    }

    /// Whether the source is read in pieces too short for reading ahead.
    fn jumps(&self, route: &Route) -> bool {
        let Route::Boxes { bands, inner, .. } = route else { return false };
        let cuts = self.boxes_of(&bands.largest(), *inner);
        let Some(Ok((_, range))) = cuts.first().map(|cut| self.view(cut)) else { return false };
        self.footprint(&cuts[0], 4096) * 4 < range.len() as u128
    }

    /// A box on its own, dense in the destination's order of axes.
    fn dense(&self, cut: &[(usize, usize)]) -> Result<Layout, Error> {
        let extents = bands::extents(cut);
        Layout::new(&extents, &dense_strides(&extents, &self.sink_order), 0)
    }
}

/// Bytes of the source between the first and the last that a view reads.
fn reach_bytes(layout: &Layout, element_size: usize) -> Range<usize> {
    layout.reachable_range().map_or(0..0, |(low, high)| low * element_size..(high + 1) * element_size)
}

fn dense_strides(shape: &[usize], order: &[usize]) -> SmallVec<[isize; 6]> {
    let mut strides = SmallVec::from_elem(0, shape.len());
    let mut stride = 1;
    for &axis in order.iter().rev() {
        strides[axis] = stride;
        stride *= shape[axis] as isize;
    }
    strides
}

/// How a pass went about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ran {
    /// Parts in which the destination was written.
    pub bands: usize,
    /// Whether the data went through a temporary file.
    pub staged: bool,
}

/// Makes a view dense in `sink`; tells `progress` after each part how many bytes were written.
///
/// `folder` is where a temporary file may be put. The sink must hold exactly the view's elements.
///
/// # Errors
///
/// [`NpyError`] when a copy is refused or the temporary file cannot be had.
pub fn run(
    job: Job<'_>,
    source: Source<'_>,
    sink: Sink<'_>,
    limits: &Limits,
    folder: &Path,
    copy: &CopyBytes<'_>,
    progress: &mut dyn FnMut(usize),
) -> Result<Ran, NpyError> {
    if job.layout.numel() == 0 || job.element_size == 0 {
        return Ok(Ran { bands: 0, staged: false });
    }
    let pass = Pass::new(job);
    let route = pass.route(limits);
    if let Source::File(input) = source {
        input.expect_jumps(pass.jumps(&route));
    }
    let mut work = Work { pass, source, sink, copy, progress };
    match route {
        Route::Boxes { bands, inner, release_source, release_sink } => {
            work.by_boxes(&bands, inner, release_source, release_sink)?;
            Ok(Ran { bands: bands.count(), staged: false })
        }
        Route::Staged { source, sink } => {
            work.staged(&source, &sink, folder)?;
            Ok(Ran { bands: sink.count(), staged: true })
        }
    }
}

/// A pass with everything it works on.
struct Work<'a> {
    pass: Pass<'a>,
    source: Source<'a>,
    sink: Sink<'a>,
    copy: &'a CopyBytes<'a>,
    progress: &'a mut dyn FnMut(usize),
}

impl Work<'_> {
    fn by_boxes(
        &mut self,
        bands: &Bands,
        inner: usize,
        release_source: bool,
        release_sink: bool,
    ) -> Result<(), NpyError> {
        for band in bands.iter() {
            let window = self.pass.window(&band);
            for cut in self.pass.boxes_of(&band, inner) {
                let (view, range) = self.pass.view(&cut)?;
                let mut to = self.pass.write(&mut self.sink.bytes_mut()[window.clone()], &band, &cut)?;
                (self.copy)(&self.pass.read(self.source.bytes(), view)?, &mut to)?;
                if release_source {
                    self.source.release(range);
                }
                (self.progress)(bands::size(&cut) * self.pass.job.element_size);
            }
            if release_sink {
                self.sink.release(window);
            }
        }
        Ok(())
    }

    fn staged(&mut self, first: &Bands, second: &Bands, folder: &Path) -> Result<(), NpyError> {
        let element_size = self.pass.job.element_size;
        let scratch = Scratch::create(folder, self.pass.job.layout.numel() * element_size)?;
        let windows: Vec<(Cut, Range<usize>)> =
            second.iter().map(|band| (band.clone(), self.pass.window(&band))).collect();

        // First pass: the boxes of one destination band lie one after another, in the order in which the
        // source has them.
        let mut cursors: Vec<usize> = windows.iter().map(|(_, window)| window.start).collect();
        let largest = bands::size(&first.largest()).min(bands::size(&second.largest())) * element_size;
        let mut chunk = buffer(largest)?;
        for part in first.iter() {
            for ((band, _), cursor) in windows.iter().zip(&mut cursors) {
                let Some(cut) = bands::common(&part, band) else { continue };
                let (view, _) = self.pass.view(&cut)?;
                let bytes = bands::size(&cut) * element_size;
                let mut to = BytesViewMut::new(&mut chunk[..bytes], self.pass.dense(&cut)?, element_size)?;
                (self.copy)(&self.pass.read(self.source.bytes(), view)?, &mut to)?;
                scratch.write_at(&chunk[..bytes], *cursor as u64)?;
                *cursor += bytes;
            }
            let (_, range) = self.pass.view(&part)?;
            self.source.release(range);
            (self.progress)(bands::size(&part) * element_size / 2);
        }
        drop(chunk);

        // Second pass: each band is one range of the temporary file.
        let mut group = buffer(bands::size(&second.largest()) * element_size)?;
        for (band, window) in windows {
            scratch.read_at(&mut group[..window.len()], window.start as u64)?;
            let mut at = 0;
            for part in first.iter() {
                let Some(cut) = bands::common(&part, &band) else { continue };
                let bytes = bands::size(&cut) * element_size;
                let from = BytesView::new(&group[at..at + bytes], self.pass.dense(&cut)?, element_size)?;
                let mut to = self.pass.write(&mut self.sink.bytes_mut()[window.clone()], &band, &cut)?;
                (self.copy)(&from, &mut to)?;
                at += bytes;
            }
            let half = window.len().div_ceil(2);
            self.sink.release(window);
            (self.progress)(half);
        }
        Ok(())
    }
}

/// Compares what a pass wrote with the view, one element after another in the plainest way; gives the
/// index of the first element that differs.
///
/// # Errors
///
/// [`NpyError`] when the view cannot be read.
pub fn verify(
    job: Job<'_>,
    source: Source<'_>,
    mut sink: Sink<'_>,
    limits: &Limits,
) -> Result<Option<Vec<usize>>, NpyError> {
    if job.layout.numel() == 0 || job.element_size == 0 {
        return Ok(None);
    }
    let pass = Pass::new(job);
    let half = (limits.bytes / 2).max(1);
    let bands = Bands::new(job.layout.shape(), &pass.sink_order, half / job.element_size);
    let zeros = vec![0; job.element_size];
    let fill = job.fill.unwrap_or(&zeros);
    for band in bands.iter() {
        let window = pass.window(&band);
        let inner = pass.boxes(&bands::extents(&band), usize::MAX, half, limits.around_bytes);
        for cut in pass.boxes_of(&band, bands::size(&inner.largest())) {
            let (_, range) = pass.view(&cut)?;
            let mut index: Vec<usize> = cut.iter().map(|c| c.0).collect();
            loop {
                let expected = match job.layout.index_of(&index)? {
                    Some(i) => &source.bytes()[i * job.element_size..][..job.element_size],
                    None => fill,
                };
                let place: usize = index.iter().zip(&pass.sink_strides).map(|(&i, &s)| i * s as usize).sum();
                if &sink.bytes_mut()[place * job.element_size..][..job.element_size] != expected {
                    return Ok(Some(index));
                }
                // The next index of the box, last axis fastest.
                let Some(axis) = (0..index.len()).rev().find(|&a| index[a] + 1 < cut[a].1) else { break };
                index[axis] += 1;
                for later in axis + 1..index.len() {
                    index[later] = cut[later].0;
                }
            }
            source.release(range);
        }
        sink.release(window);
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::{Header, Input, Output};
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn naive(from: &BytesView<'_>, to: &mut BytesViewMut<'_>) -> Result<(), Error> {
        let size = from.element_size();
        assert_eq!(from.layout().shape(), to.layout().shape());
        for k in 0..from.layout().numel() {
            let at = to.layout().view_at(k)?.unwrap() * size;
            let element = match from.layout().view_at(k)? {
                Some(i) => from.data()[i * size..][..size].to_vec(),
                None => from.fill_bytes().map_or(vec![0; size], |f| f.to_vec()),
            };
            to.data_mut()[at..at + size].copy_from_slice(&element);
        }
        Ok(())
    }

    /// Runs a pass over a file of `shape` (elements numbered) and compares every byte.
    fn check(shape: &[usize], expr: &str, element_size: usize, limit: usize, column_major: bool) -> Route {
        let folder = tempfile::tempdir().unwrap();
        let count: usize = shape.iter().product();
        let data: Vec<u8> = (0..count * element_size).map(|i| (i * 7 + i / 251) as u8).collect();
        let descr = format!("'|V{element_size}'");
        let mut file = Header::render(descr.as_bytes(), false, shape, (1, 0));
        file.extend_from_slice(&data);
        let path = folder.path().join("in.npy");
        fs::write(&path, file).unwrap();
        let input = Input::open(&path).unwrap();

        let layout = Layout::row_major(shape).unwrap().apply(expr).unwrap();
        let fill = vec![0xee; element_size];
        let job = Job { layout: &layout, element_size, fill: Some(&fill), column_major };
        let limits = Limits { bytes: limit, read_bytes: 64, around_bytes: 64 };
        let mut output =
            Output::create(&folder.path().join("out.npy"), b"", layout.numel() * element_size).unwrap();
        let mut done = 0;
        run(job, Source::File(&input), Sink::File(&mut output), &limits, folder.path(), &naive, &mut |n| {
            done += n
        })
        .unwrap();

        let strides = Pass::new(job).sink_strides;
        for k in 0..layout.numel() {
            let index = layout_index(layout.shape(), k);
            let at: usize =
                index.iter().zip(&strides).map(|(&i, &s)| i * s as usize).sum::<usize>() * element_size;
            let expected = match layout.view_at(k).unwrap() {
                Some(i) => &data[i * element_size..][..element_size],
                None => &fill[..],
            };
            assert_eq!(&output.data_mut()[at..at + element_size], expected, "{shape:?} {expr} {k}");
        }
        assert_eq!(verify(job, Source::File(&input), Sink::File(&mut output), &limits).unwrap(), None);
        if layout.numel() > 0 {
            let last = output.data_mut().len() - 1;
            output.data_mut()[last] ^= 1;
            let wrong = verify(job, Source::File(&input), Sink::File(&mut output), &limits).unwrap();
            let end: Vec<usize> = layout.shape().iter().map(|n| n - 1).collect();
            assert_eq!(wrong, Some(end));
        }
        let total = layout.numel() * element_size;
        assert!(done <= total + 64 && done + 2 * 4096 >= total, "{done} of {total}");
        Pass::new(job).route(&limits)
    }

    fn layout_index(shape: &[usize], mut k: usize) -> Vec<usize> {
        let mut index = vec![0; shape.len()];
        for (axis, &n) in shape.iter().enumerate().rev() {
            index[axis] = k % n;
            k /= n;
        }
        index
    }

    #[test]
    fn what_fits_goes_from_front_to_back() {
        for expr in ["", ".T", "[::-1, ::2]", ".pad((1, 0), (0, 2), value=1)"] {
            let route = check(&[20, 30], expr, 4, 1 << 20, false);
            assert!(
                matches!(route, Route::Boxes { release_source: false, release_sink: false, .. }),
                "{route:?}"
            );
        }
    }

    #[test]
    fn a_small_source_stays_while_bands_are_released() {
        let route = check(&[8], "[:, None].expand(8, 500)", 4, 1000, false);
        let Route::Boxes { bands, release_source: false, release_sink: true, .. } = route else {
            panic!("{route:?}")
        };
        assert!(bands.count() > 20);
    }

    #[test]
    fn a_copy_in_order_goes_band_by_band() {
        for (expr, column_major) in [("", false), ("[::-1]", false), (".T", true), ("[1:, 3:20]", false)] {
            let route = check(&[300, 50], expr, 3, 4000, column_major);
            assert!(matches!(route, Route::Boxes { release_source: true, .. }), "{expr} {route:?}");
        }
    }

    #[test]
    fn a_transpose_goes_through_a_temporary_file() {
        for expr in [".T", ".T[::-1]", ".T.pad((2, 1), (0, 3), value=1)", ".unfold(0, 3).permute(2, 1, 0)"] {
            let route = check(&[150, 140], expr, 2, 2000, false);
            assert!(matches!(route, Route::Staged { .. }), "{expr} {route:?}");
        }
        let route = check(&[150, 140], "", 2, 2000, true);
        assert!(matches!(route, Route::Staged { .. }), "{route:?}");
    }

    #[test]
    fn a_limit_below_one_element_still_works() {
        check(&[5, 4, 3], ".permute(2, 0, 1)", 7, 1, false);
        check(&[], "", 16, 1, false);
        check(&[3, 0], ".T", 4, 1, false);
    }

    #[test]
    fn no_box_is_larger_than_the_limit_allows() {
        // A file of 10 GiB, transposed within 64 MiB.
        let layout = Layout::row_major(&[51200, 51200]).unwrap().apply(".T").unwrap();
        let job = Job { layout: &layout, element_size: 4, fill: None, column_major: false };
        let pass = Pass::new(job);
        let Route::Staged { source, sink } =
            pass.route(&Limits { bytes: 64 << 20, read_bytes: 4096, around_bytes: 64 << 10 })
        else {
            panic!()
        };
        assert!(bands::size(&source.largest()) * 4 <= 16 << 20);
        assert!(bands::size(&sink.largest()) * 4 <= 16 << 20);
        assert!(pass.footprint(&source.largest(), 64 << 10) <= 32 << 20);
        assert!(source.count() < 1500 && sink.count() < 1500);
        // With a quarter of 24 GiB the source is read three or four times at most, without a temporary file.
        let roomy = pass.route(&Limits { bytes: 6 << 30, read_bytes: 4096, around_bytes: 64 << 10 });
        assert!(matches!(roomy, Route::Boxes { .. }), "{roomy:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_view_under_any_limit(
            shape in prop::collection::vec(1usize..7, 1..4),
            ops in prop::collection::vec(0usize..7, 0..4),
            element_size in prop::sample::select(vec![1usize, 2, 3, 8]),
            limit in 1usize..600,
            column_major in any::<bool>(),
        ) {
            let mut layout = Layout::row_major(&shape).unwrap();
            let mut expr = String::new();
            for op in ops {
                let piece = match op {
                    0 => ".T".to_string(),
                    1 => "[::-1]".to_string(),
                    2 => "[..., ::2]".to_string(),
                    3 => "[None]".to_string(),
                    4 => ".unfold(0, 1)".to_string(),
                    5 => format!(".pad({} value=1)", "(1, 2), ".repeat(layout.ndim())),
                    _ => format!(".expand(3, {})[0:2]", "-1, ".repeat(layout.ndim())),
                };
                if let Ok(next) = layout.apply(&piece) {
                    layout = next;
                    expr += &piece;
                }
            }
            check(&shape, &expr, element_size, limit, column_major);
        }
    }
}

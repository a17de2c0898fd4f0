//! Plans over arbitrary pairs of layouts, made with arbitrary tuning values.
//!
//! Oracle: the element-by-element reference for every byte; the plan's own trace writes each destination
//! element exactly once; planning again gives the same plan.

use crate::model::choices::Choices;
use restride::copy::plan::{Side, trace};
use restride::copy::reference;
use restride::copy::tuning::{Knob, Origin, Value};
use restride::{BytesView, BytesViewMut, CopyOptions, Isa, Layout, Plan, Tuning, copy_bytes};
use std::sync::OnceLock;

/// Any source: strides of any sign, zero and overlap included, padded now and then.
fn source(choices: &mut Choices, shape: &[usize]) -> Layout {
    let pads: Vec<(usize, usize)> = shape
        .iter()
        .map(|&extent| match choices.below(8) {
            7 if extent > 2 => (choices.below(extent / 2), choices.below(extent / 2)),
            _ => (0, 0),
        })
        .collect();
    let inner: Vec<usize> = shape.iter().zip(&pads).map(|(&n, &(a, b))| n - a - b).collect();
    // A dense permuted layout with single strides bent.
    let mut strides = vec![0isize; inner.len()];
    let mut span = 1;
    let mut axes: Vec<usize> = (0..inner.len()).collect();
    while !axes.is_empty() {
        let axis = axes.remove(choices.below(axes.len()));
        strides[axis] = match choices.below(12) {
            0..7 => span,
            7 => -span,
            8 => 0,
            9 => span + choices.below(4) as isize,
            10 => span * 2,
            _ => choices.below(9) as isize - 4,
        };
        span = span.max(strides[axis].abs() * inner[axis] as isize);
    }
    let low: isize = inner.iter().zip(&strides).map(|(&n, &s)| (s * (n.max(1) as isize - 1)).min(0)).sum();
    let offset = choices.below(4) as isize - low;
    Layout::new(&inner, &strides, offset).unwrap().pad(&pads).unwrap()
}

/// Larger buffers are not tried.
const MAX_BYTES: usize = 1 << 18;

/// Bytes that differ from their neighbours and from what the destination holds.
fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| (0..MAX_BYTES + 70).map(|k| (k * 7 + k / 251) as u8 & 0x7f).collect())
}

/// Runs one input.
pub fn check(data: &[u8]) {
    let mut choices = Choices::new(data);
    let size = [1, 2, 4, 8, 16, 3, 6, 12, 24, 5][choices.below(10)];
    // Small copies many times over: the thresholds are as small, so every strategy is met all the same. One in four
    // is larger, for squares of whole lines of bytes.
    let mut room = if choices.below(4) == 3 { 1 << 12 } else { 1 << 9 };
    let mut shape = Vec::new();
    for _ in 0..1 + choices.below(5) {
        let extent = match choices.below(8) {
            0 => choices.below(256).min(200),
            1 => [63, 64, 65, 128][choices.below(4)],
            _ => 1 + choices.below(9),
        };
        let extent = extent.min(room);
        shape.push(extent);
        room /= extent.max(1);
    }
    let src = source(&mut choices, &shape);
    let (dst, dst_len) = choices.destination(&shape);
    let src_len = src.reachable_range().map_or(0, |(_, high)| high + 1);
    if src_len.max(dst_len) * size > MAX_BYTES {
        return;
    }
    let mut tuning = Tuning::default();
    if choices.below(2) == 1 {
        let mut any = |least: usize| Value::new(least << choices.below(12), Origin::Caller);
        tuning.l1d_bytes = any(64);
        tuning.l2_bytes = any(64);
        tuning.parallel_from_bytes = any(1);
        tuning.stream_rows_from_bytes = any(1);
        for knob in Knob::ALL.into_iter().filter(|knob| knob.by_size()) {
            let range = knob.range();
            let value = (range.start() << choices.below(12)) + choices.below(3);
            let value = Value::new(value.min(*range.end()), Origin::Caller);
            tuning.set(knob, None, value).unwrap();
        }
    }
    let levels = Isa::available();
    let mut options = CopyOptions::default().tuning(tuning).isa(levels[choices.below(levels.len())]);
    // A thread that has to be woken costs as much as a hundred small copies.
    options = options.threads(choices.below(8).saturating_sub(4).max(1));
    match choices.below(3) {
        0 => {}
        n => options = options.streaming(n == 1),
    }
    let (src_skew, dst_skew) = (choices.below(70), choices.below(70));

    // Of exactly the length that the view needs: what reads past it is found.
    let from = pattern()[..src_skew + src_len * size].to_vec();
    let fill: Vec<u8> = (0..size).map(|k| 0x60 + k as u8).collect();
    let mut expected = vec![0xA5u8; dst_skew + dst_len * size + 64];
    let mut to = expected.clone();
    let window = dst_skew..dst_skew + dst_len * size;
    reference::copy((&src, &from[src_skew..]), (&dst, &mut expected[window.clone()]), size, &fill).unwrap();

    let plan = Plan::new(&src, &dst, size, &options).unwrap();
    assert_eq!(plan, Plan::new(&src, &dst, size, &options).unwrap());
    assert!(!plan.to_string().is_empty());
    let mut writes = vec![0u8; dst_len * size];
    let mut read = src_len * size;
    trace(&plan, &mut |access| {
        let bytes = usize::try_from(access.offset).unwrap()..access.offset as usize + access.bytes;
        match access.side {
            Side::Src => read = read.max(bytes.end),
            Side::Dst => writes[bytes].iter_mut().for_each(|n| *n += 1),
        }
    });
    assert_eq!(read, src_len * size, "the plan reads past its source: {src:?} -> {dst:?}\n{plan}");
    // A source of ones, copied element by element, marks what must be written.
    let mut once = vec![0u8; dst_len * size];
    let ones = Layout::row_major(&[1]).unwrap().broadcast_to(&shape).unwrap();
    reference::copy((&ones, &vec![1; size]), (&dst, &mut once), size, &fill).unwrap();
    assert!(writes == once, "{src:?} -> {dst:?} x {size}\n{plan}");

    let view = BytesView::new(&from[src_skew..], src.clone(), size).unwrap().with_fill(&fill).unwrap();
    copy_bytes(&view, &mut BytesViewMut::new(&mut to[window], dst.clone(), size).unwrap(), &options).unwrap();
    assert!(to == expected, "{src:?} -> {dst:?} x {size}, {options:?}\n{plan}");
}

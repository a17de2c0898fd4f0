//! The library against the model: the same assertions under proptest and under a fuzzer.

use super::choices::Choices;
use super::{Model, TOO_LARGE, each_index};
use restride::expr::Op;
use restride::layout::Index;
use restride::{BytesView, BytesViewMut, CopyOptions, Isa, Layout, copy_bytes};

/// Everything that a layout says about itself against the list of what it reads.
pub fn same(layout: &Layout, model: &Model) {
    assert_eq!(layout.shape(), &model.shape[..]);
    assert_eq!(layout.numel(), model.cells.len());
    let reads: Vec<Option<usize>> = (0..layout.numel()).map(|k| layout.view_at(k).unwrap()).collect();
    assert_eq!(reads, model.cells, "{layout:?}");
    let mut by_index = Vec::with_capacity(reads.len());
    each_index(&model.shape, |index| by_index.push(layout.index_of(index).unwrap()));
    assert_eq!(by_index, reads);
    assert!(layout.view_at(layout.numel()).is_err());
    assert_eq!(layout.is_padded(), model.is_padded(), "{layout:?}");
    assert_eq!(layout.is_contiguous(), model.is_contiguous(), "{layout:?}");
    let indices = model.reads();
    let overlaps = indices.len() < model.cells.iter().flatten().count();
    assert_eq!(layout.self_overlaps(), overlaps, "{layout:?}");
    assert_eq!(layout.is_writable(), !model.is_padded() && !overlaps);
    let range = indices.first().map(|&low| (low, *indices.last().unwrap()));
    assert_eq!(layout.reachable_range(), range);
}

/// One operation on both sides; `None` where both refuse or the model gives no verdict.
pub fn step(layout: &Layout, model: &Model, op: &Op) -> Option<(Layout, Model)> {
    match (op.apply(layout, model.buffer_len), model.apply(op)) {
        (_, Err(TOO_LARGE)) => None,
        (Err(error), Err(kind)) => {
            assert_eq!(error.kind(), kind, "{op:?} on {layout:?}: {error}");
            None
        }
        (Ok(next), Ok(expected)) => {
            same(&next, &expected);
            Some((next, expected))
        }
        (got, expected) => panic!("{op:?} on {layout:?}: {got:?} instead of {expected:?}"),
    }
}

/// A start and a chain of operations on both sides, compared after each.
pub fn chain(choices: &mut Choices, start: &[usize], ops: usize) -> (Layout, Model) {
    let mut now = (Layout::row_major(start).unwrap(), Model::row_major(start));
    for _ in 0..ops {
        let op = choices.op(now.0.shape(), now.1.buffer_len);
        now = step(&now.0, &now.1, &op).unwrap_or(now);
    }
    now
}

/// The levels that this CPU has, and the options that change how a copy runs.
pub fn all_options(choices: &mut Choices) -> Vec<CopyOptions> {
    let mut all = vec![CopyOptions::default()];
    for isa in Isa::available() {
        let threads = 1 + choices.below(3);
        for streaming in [false, true] {
            all.push(CopyOptions::default().isa(isa).threads(threads).streaming(streaming));
        }
    }
    all
}

/// Copies `src` into random destinations of the same shape, elements of a random size at a random alignment:
/// every byte of the destination's elements is right, and no other byte is touched.
pub fn copy_equals_the_model(choices: &mut Choices, src: &Layout, model: &Model) {
    let size = 1 + choices.below(24);
    let (dst, dst_len) = choices.destination(src.shape());
    let skew = choices.below(size + 8);
    // Bytes that differ from their neighbours and from the canary.
    let from: Vec<u8> = (0..skew + model.buffer_len * size).map(|k| (k * 7 + k / 251) as u8 & 0x7f).collect();
    let fill: Vec<u8> = (0..size).map(|k| 0x60 + k as u8).collect();
    let view = BytesView::new(&from[skew..], src.clone(), size).unwrap().with_fill(&fill).unwrap();

    let mut expected = vec![0xA5u8; skew + dst_len * size + 64];
    for (k, cell) in model.cells.iter().enumerate() {
        let at = skew + dst.view_at(k).unwrap().unwrap() * size;
        let element = cell.map_or(&fill[..], |i| &from[skew + i * size..][..size]);
        expected[at..at + size].copy_from_slice(element);
    }
    for options in all_options(choices) {
        let mut to = vec![0xA5u8; expected.len()];
        let window = &mut to[skew..skew + dst_len * size];
        copy_bytes(&view, &mut BytesViewMut::new(window, dst.clone(), size).unwrap(), &options).unwrap();
        assert_eq!(to, expected, "{src:?} -> {dst:?}, size {size}, {options:?}");
    }
}

fn tuple(list: &[isize]) -> String {
    let items: Vec<String> = list.iter().map(isize::to_string).collect();
    format!("({},)", items.join(", ")).replace("(,)", "()")
}

/// The text of an operation, as one would write it in Python.
pub fn render(op: &Op) -> String {
    let pairs = |list: &[(isize, isize)]| list.iter().map(|p| format!("{p:?}, ")).collect::<String>();
    match op {
        Op::Index(items) => {
            let text = |i: Option<isize>| i.map_or(String::new(), |i| i.to_string());
            let item = |item: &Index| match *item {
                Index::At(i) => i.to_string(),
                Index::Slice { start, stop, step } => format!("{}:{}:{step}", text(start), text(stop)),
                Index::NewAxis => "None".into(),
                Index::Ellipsis => "...".into(),
                other => panic!("no text for {other:?}"),
            };
            match items.is_empty() {
                true => "[...]".into(),
                false => format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(", ")),
            }
        }
        Op::T => ".T".into(),
        Op::Mt => ".mT".into(),
        Op::Permute(axes) => format!(".permute({})", tuple(axes)),
        Op::Transpose(a, b) => format!(".transpose({a}, {b})"),
        Op::Moveaxis(from, to) => format!(".moveaxis({}, {})", tuple(from), tuple(to)),
        Op::Reshape(sizes) => format!(".reshape({})", tuple(sizes)),
        Op::View(sizes) => format!(".view({})", tuple(sizes)),
        Op::Flatten => ".flatten()".into(),
        Op::Contiguous => ".contiguous()".into(),
        Op::BroadcastTo(sizes) => format!(".broadcast_to({})", tuple(sizes)),
        Op::Expand(sizes) => format!(".expand({})", tuple(sizes)),
        Op::Unsqueeze(axis) => format!(".unsqueeze({axis})"),
        Op::Squeeze(None) => ".squeeze()".into(),
        Op::Squeeze(Some(axes)) => format!(".squeeze({})", tuple(axes)),
        Op::Flip(None) => ".flip()".into(),
        Op::Flip(Some(axes)) => format!(".flip({})", tuple(axes)),
        Op::Pad { widths, value } => format!(".pad({}value={value})", pairs(widths)),
        Op::Shrink(ranges) => format!(".shrink({})", pairs(ranges)),
        Op::Unfold(axis, size, step) => format!(".unfold({axis}, {size}, {step})"),
        Op::Diagonal(offset, a, b) => format!(".diagonal({offset}, {a}, {b})"),
        Op::AsStrided { shape, strides, offset } => {
            format!(".as_strided({}, {}, {offset})", tuple(shape), tuple(strides))
        }
        other => panic!("no text for {other:?}"),
    }
}

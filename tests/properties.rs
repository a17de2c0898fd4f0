//! Random views and random chains of every operation against the naive model of `tests/model`.
//!
//! The inputs are the same in every run; `PROPTEST_CASES` asks for more of them.

mod model;

use model::choices::Choices;
use model::{Model, TOO_LARGE, indices};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use restride::dtype::{ByteOrder, Dtype, ElementBytes};
use restride::eval::evaluate;
use restride::expr::{Expr, Op};
use restride::layout::Index;
use restride::{BytesView, BytesViewMut, CopyOptions, Isa, Layout, ViewMut, copy_bytes, share_memory};

/// Runs `test` on streams of choices; a failure is shrunk to a short one.
fn on_choices(cases: u32, length: usize, test: impl Fn(&[u8]) -> TestCaseResult) {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok());
    let config = Config { cases: asked.unwrap_or(cases), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let result = runner.run(&vec(any::<u8>(), 0..length), |bytes| test(&bytes));
    if let Err(error) = result {
        panic!("{error}");
    }
}

/// Everything that a layout says about itself against the list of what it reads.
fn same(layout: &Layout, model: &Model) -> TestCaseResult {
    prop_assert_eq!(layout.shape(), &model.shape[..]);
    prop_assert_eq!(layout.numel(), model.cells.len());
    let reads: Vec<Option<usize>> = (0..layout.numel()).map(|k| layout.view_at(k).unwrap()).collect();
    prop_assert_eq!(&reads, &model.cells, "{:?}", layout);
    let by_index: Vec<Option<usize>> =
        indices(&model.shape).iter().map(|index| layout.index_of(index).unwrap()).collect();
    prop_assert_eq!(by_index, reads);
    prop_assert!(layout.view_at(layout.numel()).is_err());
    prop_assert_eq!(layout.is_padded(), model.is_padded(), "{:?}", layout);
    prop_assert_eq!(layout.is_contiguous(), model.is_contiguous(), "{:?}", layout);
    prop_assert_eq!(layout.self_overlaps(), model.self_overlaps(), "{:?}", layout);
    prop_assert_eq!(layout.is_writable(), !model.is_padded() && !model.self_overlaps());
    let indices = model.reads();
    let range = indices.first().map(|&low| (low, *indices.last().unwrap()));
    prop_assert_eq!(layout.reachable_range(), range);
    Ok(())
}

/// A start and a chain of operations on both sides, compared after each.
fn chain(choices: &mut Choices, start: &[usize], ops: usize) -> Result<(Layout, Model), TestCaseError> {
    let (mut layout, mut model) = (Layout::row_major(start).unwrap(), Model::row_major(start));
    let mut trail = Vec::new();
    for _ in 0..ops {
        let op = choices.op(layout.shape(), model.buffer_len);
        trail.push(op.clone());
        match (op.apply(&layout, model.buffer_len), model.apply(&op)) {
            (_, Err(TOO_LARGE)) => break,
            (Err(error), Err(kind)) => {
                prop_assert_eq!(error.kind(), kind, "{:?} {:?}: {}", start, trail, error);
                trail.pop();
            }
            (Ok(next), Ok(expected)) => {
                same(&next, &expected)
                    .map_err(|e| TestCaseError::fail(format!("{start:?} {trail:?}: {e}")))?;
                (layout, model) = (next, expected);
            }
            (Ok(next), Err(kind)) => {
                let message = format!("{start:?} {trail:?}: {next:?} instead of {kind} on {layout:?}");
                return Err(TestCaseError::fail(message));
            }
            (Err(error), Ok(expected)) => {
                let message = format!("{start:?} {trail:?}: {error} instead of {expected:?} on {layout:?}");
                return Err(TestCaseError::fail(message));
            }
        }
    }
    Ok((layout, model))
}

#[test]
fn chains_of_operations_read_what_the_model_reads() {
    on_choices(6000, 160, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(4, 5);
        let length = 1 + choices.below(7);
        chain(&mut choices, &start, length).map(drop)
    });
}

#[test]
fn padding_then_anything() {
    on_choices(4000, 160, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(3, 4);
        let widths: Vec<(isize, isize)> =
            start.iter().map(|_| (choices.below(3) as isize, choices.below(3) as isize)).collect();
        let pad = Op::Pad { widths, value: "0".into() };
        let layout = pad.apply(&Layout::row_major(&start).unwrap(), 0).unwrap();
        let model = Model::row_major(&start).apply(&pad).unwrap();
        same(&layout, &model)?;
        // A reshape that is a view exactly when the model finds strides (L7), on top of one more operation.
        let op = choices.op(&model.shape, model.buffer_len);
        let (layout, model) = match (op.apply(&layout, model.buffer_len), model.apply(&op)) {
            (Ok(layout), Ok(model)) => (layout, model),
            (_, Err(TOO_LARGE)) => return Ok(()),
            (Err(error), Err(kind)) => {
                prop_assert_eq!(error.kind(), kind);
                (layout, model)
            }
            (got, expected) => {
                return Err(TestCaseError::fail(format!("{op:?}: {got:?} instead of {expected:?}")));
            }
        };
        same(&layout, &model)?;
        for _ in 0..4 {
            let op = Op::Reshape(choices.reshaped(&model.shape));
            match (op.apply(&layout, 0), model.apply(&op)) {
                (Ok(next), Ok(expected)) => same(&next, &expected)?,
                (Err(error), Err(kind)) => prop_assert_eq!(error.kind(), kind, "{:?}", op),
                (_, Err(TOO_LARGE)) => {}
                (got, expected) => {
                    let message = format!("{op:?} on {layout:?}: {got:?} instead of {expected:?}");
                    return Err(TestCaseError::fail(message));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn shared_memory_is_exact() {
    on_choices(4000, 200, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(4, 5);
        let (lengths, others) = (1 + choices.below(4), 1 + choices.below(4));
        let (a, a_model) = chain(&mut choices, &start, lengths)?;
        let (b, b_model) = chain(&mut choices, &start, others)?;
        prop_assert_eq!(share_memory(&a, &b), a_model.shares_memory(&b_model), "{:?} {:?}", a, b);
        prop_assert_eq!(share_memory(&b, &a), a_model.shares_memory(&b_model), "{:?} {:?}", b, a);
        Ok(())
    });
}

#[test]
fn lines_are_counted_exactly() {
    on_choices(2000, 140, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(4, 5);
        let length = 1 + choices.below(5);
        let (layout, model) = chain(&mut choices, &start, length)?;
        for (size, line) in [(1, 16), (4, 64), (3, 64), (12, 32), (24, 48), (16, 16)] {
            let lines = layout.lines(size, line);
            let expected = model.bytes_per_line(size, line);
            prop_assert_eq!(lines.touched, expected.len() as u64, "{:?} {} {}", layout, size, line);
            prop_assert_eq!(lines.bytes_used, expected.values().map(|&used| used as u64).sum::<u64>());
            let full = expected.values().filter(|&&used| used == line).count();
            prop_assert_eq!(lines.used_in_full, full as u64, "{:?} {} {}", layout, size, line);
        }
        Ok(())
    });
}

/// The levels that this CPU has, and the options that change how a copy runs.
fn all_options(choices: &mut Choices) -> Vec<CopyOptions> {
    let mut all = vec![CopyOptions::default()];
    for isa in Isa::available() {
        let threads = 1 + choices.below(3);
        for streaming in [false, true] {
            all.push(CopyOptions::default().isa(isa).threads(threads).streaming(streaming));
        }
    }
    all
}

#[test]
fn copies_touch_exactly_the_destination() {
    on_choices(3000, 200, |bytes| {
        let mut choices = Choices::new(bytes);
        let size = 1 + choices.below(24);
        let start = choices.shape(4, 7);
        let length = choices.below(5);
        let (src, model) = chain(&mut choices, &start, length)?;
        let (dst, dst_len) = choices.destination(src.shape());
        // Bytes that differ from their neighbours and from the canary, off the allocation's alignment.
        let skew = choices.below(size + 8);
        let from: Vec<u8> =
            (0..skew + model.buffer_len * size).map(|k| (k * 7 + k / 251) as u8 & 0x7f).collect();
        let fill: Vec<u8> = (0..size).map(|k| 0x60 + k as u8).collect();
        let view = BytesView::new(&from[skew..], src.clone(), size).unwrap().with_fill(&fill).unwrap();

        let mut expected = vec![0xA5u8; skew + dst_len * size + 64];
        for (k, cell) in model.cells.iter().enumerate() {
            let at = skew + dst.view_at(k).unwrap().unwrap() * size;
            let element = cell.map_or(&fill[..], |i| &from[skew + i * size..][..size]);
            expected[at..at + size].copy_from_slice(element);
        }
        for options in all_options(&mut choices) {
            let mut to = vec![0xA5u8; expected.len()];
            let window = &mut to[skew..skew + dst_len * size];
            copy_bytes(&view, &mut BytesViewMut::new(window, dst.clone(), size).unwrap(), &options).unwrap();
            prop_assert_eq!(&to, &expected, "{:?} -> {:?}, size {}, {:?}", src, dst, size, options);
        }
        Ok(())
    });
}

#[test]
fn writable_views_are_those_without_overlap() {
    on_choices(1500, 100, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(4, 4);
        let length = 1 + choices.below(4);
        let (layout, model) = chain(&mut choices, &start, length)?;
        let mut data = vec![0u16; model.buffer_len];
        let refused = ViewMut::new(&mut data, layout).err().map(|e| e.kind());
        let expected = match () {
            _ if model.is_padded() => Some("pad"),
            _ if model.self_overlaps() => Some("overlap"),
            _ => None,
        };
        prop_assert_eq!(refused, expected);
        Ok(())
    });
}

fn tuple(list: &[isize]) -> String {
    let items: Vec<String> = list.iter().map(isize::to_string).collect();
    format!("({},)", items.join(", ")).replace("(,)", "()")
}

/// The text of an operation, as one would write it in Python.
fn render(op: &Op) -> String {
    let pairs = |list: &[(isize, isize)]| list.iter().map(|p| format!("{p:?}, ")).collect::<String>();
    match op {
        Op::Index(items) => {
            let text = |i: Option<isize>| i.map_or(String::new(), |i| i.to_string());
            let item = |item: &Index| match *item {
                Index::At(i) => i.to_string(),
                Index::Slice { start, stop, step } => format!("{}:{}:{step}", text(start), text(stop)),
                Index::NewAxis => "None".into(),
                Index::Ellipsis => "...".into(),
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

#[test]
fn what_is_written_is_read_back() {
    on_choices(3000, 100, |bytes| {
        let mut choices = Choices::new(bytes);
        let shape = choices.shape(4, 5);
        let op = choices.op(&shape, 64);
        let text = render(&op);
        let expr = Expr::parse(&text).map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        let expected = match op {
            Op::Index(items) if items.is_empty() => Op::Index(vec![Index::Ellipsis]),
            op => op,
        };
        prop_assert_eq!(&expr.pieces()[0].op, &expected, "{}", text);
        Ok(())
    });
}

fn encode(text: &str) -> Result<ElementBytes, restride::Error> {
    Dtype::I64.encode(text, ByteOrder::Little)
}

#[test]
fn expressions_copy_only_where_they_must() {
    on_choices(4000, 160, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(4, 4);
        let mut model = Model::row_major(&start);
        // What the model's buffer holds, what its padded positions read, and the copies so far.
        let mut buffer: Vec<i64> = (0..model.buffer_len as i64).collect();
        let mut fill: Option<i64> = None;
        let mut copies = 0;
        let mut text = String::new();
        for _ in 0..1 + choices.below(6) {
            let op = choices.op(&model.shape, model.buffer_len);
            let mut next = model.apply(&op);
            let value: Option<i64> = match &op {
                Op::Pad { value, .. } => value.parse().ok(),
                _ => None,
            };
            let adds = |next: &Model| value.is_some() && next.shape != model.shape;
            // A second value needs a copy, where there are padded positions still.
            if next.as_ref().is_ok_and(|next| adds(next) && model.is_padded() && fill != value) {
                next = Err("needs_copy");
            }
            let may_copy = !matches!(op, Op::View(_));
            if next == Err("needs_copy") && may_copy {
                let n = model.cells.len();
                let fresh = Model { buffer_len: n, ..Model::row_major(&model.shape) };
                // A refused operation ends an expression: leave it out, and its copy with it.
                next = fresh.apply(&op);
                if next.is_ok() {
                    buffer = model.cells.iter().map(|c| c.map_or(fill.unwrap_or(0), |i| buffer[i])).collect();
                    (model, fill, copies) = (fresh, None, copies + 1);
                }
            }
            let Ok(next) = next else { continue };
            if value.is_some() && next.shape != model.shape {
                fill = value;
            }
            model = next;
            text.push_str(&render(&op));
        }
        let layout = Layout::row_major(&start).unwrap();
        let expr = Expr::parse(&text).unwrap();
        let evaluation = evaluate(&layout, layout.numel(), &expr, &encode)
            .map_err(|r| TestCaseError::fail(format!("{start:?} {text}: {}", r.error)))?;
        prop_assert_eq!(evaluation.copies, copies, "{:?} {}", start, text);
        let mut values: Vec<i64> = (0..layout.numel() as i64).collect();
        for pass in &evaluation.passes {
            let fill = pass.fill.as_ref().map_or(0, |b| i64::from_le_bytes(b[..].try_into().unwrap()));
            values = (0..pass.src.numel())
                .map(|k| pass.src.view_at(k).unwrap().map_or(fill, |i| values[i]))
                .collect();
        }
        let expected: Vec<i64> =
            model.cells.iter().map(|c| c.map_or(fill.unwrap_or(0), |i| buffer[i])).collect();
        prop_assert_eq!(values, expected, "{:?} {}", start, text);
        prop_assert_eq!(evaluation.layout.shape(), &model.shape[..]);
        Ok(())
    });
}

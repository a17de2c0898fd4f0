//! Random views and random chains of every operation against the naive model of `tests/model`.
//!
//! The inputs are the same in every run; `PROPTEST_CASES` asks for more of them.

#![cfg(feature = "npy")]

mod model;

use model::check::{chain, copy_equals_the_model, render, same};
use model::choices::Choices;
use model::eval::Chain;
use model::{Model, TOO_LARGE};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use restride::expr::{Expr, Op};
use restride::layout::Index;
use restride::{Layout, ViewMut, share_memory};

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

#[test]
fn chains_of_operations_read_what_the_model_reads() {
    on_choices(6000, 160, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(4, 5);
        let length = 1 + choices.below(7);
        chain(&mut choices, &start, length);
        Ok(())
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
        same(&layout, &model);
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
        same(&layout, &model);
        for _ in 0..4 {
            let op = Op::Reshape(choices.reshaped(&model.shape));
            match (op.apply(&layout, 0), model.apply(&op)) {
                (Ok(next), Ok(expected)) => same(&next, &expected),
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
        let (a, a_model) = chain(&mut choices, &start, lengths);
        let (b, b_model) = chain(&mut choices, &start, others);
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
        let (layout, model) = chain(&mut choices, &start, length);
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

#[test]
fn copies_touch_exactly_the_destination() {
    on_choices(3000, 200, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(4, 7);
        let length = choices.below(5);
        let (src, model) = chain(&mut choices, &start, length);
        copy_equals_the_model(&mut choices, &src, &model);
        Ok(())
    });
}

#[test]
fn writable_views_are_those_without_overlap() {
    on_choices(1500, 100, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(4, 4);
        let length = 1 + choices.below(4);
        let (layout, model) = chain(&mut choices, &start, length);
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

#[test]
fn expressions_copy_only_where_they_must() {
    on_choices(4000, 160, |bytes| {
        let mut choices = Choices::new(bytes);
        let start = choices.shape(4, 4);
        let mut chain = Chain::new(&start);
        let mut text = String::new();
        for _ in 0..1 + choices.below(6) {
            let op = choices.op(&chain.model.shape, chain.model.buffer_len);
            // A refused operation ends an expression: leave it out.
            if chain.apply(&op).is_ok() {
                text.push_str(&render(&op));
            }
        }
        let expr = Expr::parse(&text).unwrap();
        let got =
            model::eval::run(&start, &expr).map_err(|r| TestCaseError::fail(format!("{text}: {r:?}")))?;
        prop_assert_eq!(got.copies, chain.copies, "{:?} {}", start, text);
        prop_assert_eq!(got.values, chain.values(), "{:?} {}", start, text);
        prop_assert_eq!(got.shape, chain.model.shape);
        Ok(())
    });
}

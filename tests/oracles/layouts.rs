//! Chains of layout operations, and copies of what they make into arbitrary destinations.
//!
//! Oracle: the naive model, for everything that a layout says about itself, for shared memory and for every
//! byte of the destination and around it.

use crate::model::check::{chain, copy_equals_the_model};
use crate::model::choices::Choices;
use restride::share_memory;

/// Runs one input.
pub fn check(data: &[u8]) {
    let mut choices = Choices::new(data);
    let start = choices.shape(5, 5);
    let lengths = (choices.below(7), choices.below(4));
    let (layout, model) = chain(&mut choices, &start, lengths.0);
    let (other, other_model) = chain(&mut choices, &start, lengths.1);
    assert_eq!(share_memory(&layout, &other), model.shares_memory(&other_model), "{layout:?} {other:?}");
    let (size, line) = [(1, 16), (4, 64), (3, 64), (12, 32), (24, 48)][choices.below(5)];
    let (lines, expected) = (layout.lines(size, line), model.bytes_per_line(size, line));
    assert_eq!(lines.touched, expected.len() as u64, "{layout:?} {size} {line}");
    assert_eq!(lines.bytes_used, expected.values().map(|&used| used as u64).sum::<u64>());
    copy_equals_the_model(&mut choices, &layout, &model);
}

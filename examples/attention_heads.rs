//! Joins the heads of an attention layer: (batch, head, token, channel) becomes (batch, token, head * channel).
//!
//!     cargo run --release --example attention_heads

use restride::{Error, Plan, Tensor};

fn main() -> Result<(), Error> {
    let (batch, heads, tokens, channels) = (2, 4, 6, 8);
    let per_head = Tensor::from_fn(&[batch, heads, tokens, channels], |k| k as f32)?;

    // The permutation is free; the reshape after it is no view, and says so.
    let view = per_head.view().permute(&[0, 2, 1, 3])?;
    let joined = [batch as isize, tokens as isize, (heads * channels) as isize];
    let refused = view.reshape(&joined).unwrap_err();
    println!("as a view: {refused}");

    // One copy makes it; `reshape_or_copy` says that it did.
    let result = view.reshape_or_copy(&joined)?;
    assert!(result.copied());
    let result = result.view();
    println!("copied to {:?}", result.shape());

    // Token 3 of batch 1: the channels of all heads side by side.
    for head in 0..heads {
        let expected = per_head.view().get(&[1, head, 3, 5])?;
        assert_eq!(result.get(&[1, 3, head * channels + 5])?, expected);
    }

    // How the copy ran.
    let dst = restride::Layout::row_major(view.shape())?;
    println!("{}", Plan::new(view.layout(), &dst, size_of::<f32>(), &Default::default())?);
    Ok(())
}

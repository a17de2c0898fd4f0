//! transpose: matrices of any element.

use super::{Peer, Prepared};
use crate::subject::{Matrices, Subject, Visit};
use bytemuck::Pod;

pub struct Transpose;

impl Peer for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn prepare<'s>(&self, subject: &'s Subject, _threads: usize) -> Option<Prepared<'s>> {
        let matrices = subject.matrices().filter(|m| m.pitch == m.width)?;
        subject.visit(Each(matrices))
    }
}

struct Each(Matrices);

impl<'s> Visit<'s> for Each {
    fn elements<T: Pod + Send + Sync>(self) -> Option<Prepared<'s>> {
        let Matrices { width, height, .. } = self.0;
        Prepared::serial(move |from, to| {
            let from = bytemuck::cast_slice::<u8, T>(from).chunks_exact(width * height);
            let to = bytemuck::cast_slice_mut::<u8, T>(to).chunks_exact_mut(width * height);
            for (from, to) in from.zip(to) {
                transpose::transpose(from, to, width, height);
            }
        })
    }
}

//! fast_transpose: image planes, with kernels of their own for `u8`, `u16` and `f32`.

use super::{Peer, Prepared};
use crate::subject::{Matrices, Subject, Visit};
use bytemuck::Pod;
use fast_transpose::{FlipMode, FlopMode, TransposeError};

pub struct FastTranspose;

impl Peer for FastTranspose {
    fn name(&self) -> &'static str {
        "fast_transpose"
    }

    fn prepare<'s>(&self, subject: &'s Subject, _threads: usize) -> Option<Prepared<'s>> {
        let matrices = subject.matrices()?;
        match subject.case.dtype {
            "u8" => planes::<u8>(matrices, fast_transpose::transpose_plane),
            "u16" => planes::<u16>(matrices, fast_transpose::transpose_plane16),
            "f32" => planes::<f32>(matrices, fast_transpose::transpose_plane_f32),
            _ => subject.visit(Any(matrices)),
        }
    }
}

struct Any(Matrices);

impl<'s> Visit<'s> for Any {
    fn elements<T: Pod + Send + Sync>(self) -> Option<Prepared<'s>> {
        planes::<T>(self.0, fast_transpose::transpose_arbitrary)
    }
}

type Plane<T> =
    fn(&[T], usize, &mut [T], usize, usize, usize, FlipMode, FlopMode) -> Result<(), TransposeError>;

fn planes<'s, T: Pod>(matrices: Matrices, transpose: Plane<T>) -> Option<Prepared<'s>> {
    let Matrices { width, height, pitch, .. } = matrices;
    Prepared::serial(move |from, to| {
        let from = bytemuck::cast_slice::<u8, T>(from).chunks(pitch * height);
        let to = bytemuck::cast_slice_mut::<u8, T>(to).chunks_exact_mut(width * height);
        for (from, to) in from.zip(to) {
            // Its plain call turns the image by 90 degrees; mirrored, that is a transpose.
            let (flip, flop) = (FlipMode::NoFlip, FlopMode::Flop);
            transpose(from, pitch, to, height, width, height, flip, flop)
                .unwrap_or_else(|error| panic!("fast_transpose: {width} x {height}: {error:?}"));
        }
    })
}

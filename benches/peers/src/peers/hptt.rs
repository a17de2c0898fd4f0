//! HPTT: permutations of dense tensors of floats, planned by its estimate in every call.

use super::{Peer, Prepared};
use crate::subject::Subject;
use hptt::{Complex64, MemoryOrder};

pub struct Hptt;

impl Peer for Hptt {
    fn name(&self) -> &'static str {
        "hptt"
    }

    fn prepare<'s>(&self, subject: &'s Subject, threads: usize) -> Option<Prepared<'s>> {
        let (shape, axes) = subject.permutation()?;
        let order = MemoryOrder::RowMajor;
        let id = &subject.case.id;
        let checked = move |result: hptt::Result<()>| result.unwrap_or_else(|e| panic!("hptt: {id}: {e}"));
        let run: Box<dyn FnMut(&[u8], &mut [u8])> = match subject.case.dtype {
            "f32" => Box::new(move |from, to| {
                let (from, to) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
                checked(hptt::transpose_f32(&axes, 1.0, from, &shape, 0.0, to, threads, order));
            }),
            "f64" => Box::new(move |from, to| {
                let (from, to) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
                checked(hptt::transpose_f64(&axes, 1.0, from, &shape, 0.0, to, threads, order));
            }),
            "c128" => Box::new(move |from, to| {
                let (one, zero) = (Complex64::new(1.0, 0.0), Complex64::new(0.0, 0.0));
                // SAFETY: a complex number is two floats, and any bytes are floats; the buffers of a subject
                // start on a page, so that they are aligned.
                let (_, from, _) = unsafe { from.align_to::<Complex64>() };
                // SAFETY: as above.
                let (_, to, _) = unsafe { to.align_to_mut::<Complex64>() };
                checked(hptt::transpose_c64(&axes, one, from, &shape, zero, to, threads, false, order));
            }),
            _ => return None,
        };
        Some(Prepared { threads, run })
    }
}

//! strided-perm: copies between strided views.

use super::{Peer, Prepared};
use crate::subject::{Subject, Visit};
use bytemuck::Pod;
use strided_view::{StridedView, StridedViewMut};
use threadteam::{Exec, Pool};

pub struct StridedPerm;

impl Peer for StridedPerm {
    fn name(&self) -> &'static str {
        "strided-perm"
    }

    fn prepare<'s>(&self, subject: &'s Subject, threads: usize) -> Option<Prepared<'s>> {
        if subject.src.is_padded() {
            return None;
        }
        let pool = match threads {
            1 => None,
            n => Some(Pool::builder().threads(n).build().ok()?),
        };
        subject.visit(Copy { subject, pool, threads })
    }
}

struct Copy<'s> {
    subject: &'s Subject,
    pool: Option<Pool>,
    threads: usize,
}

impl<'s> Visit<'s> for Copy<'s> {
    fn elements<T: Pod + Send + Sync>(self) -> Option<Prepared<'s>> {
        let (src, dst) = (&self.subject.src, &self.subject.dst);
        let run = move |from: &[u8], to: &mut [u8]| {
            let from = bytemuck::cast_slice::<u8, T>(from);
            let to = bytemuck::cast_slice_mut::<u8, T>(to);
            let exec = match &self.pool {
                Some(pool) => Exec::new(pool, self.threads).unwrap_or_else(|_| Exec::serial()),
                None => Exec::serial(),
            };
            let view = StridedView::new(from, src.shape(), src.strides(), src.offset());
            let target = StridedViewMut::new(to, dst.shape(), dst.strides(), 0);
            match (view, target) {
                (Ok(view), Ok(mut target)) => strided_perm::copy_into(&mut target, &view, exec),
                (Err(error), _) | (_, Err(error)) => Err(error),
            }
            .unwrap_or_else(|error| panic!("strided-perm: {}: {error}", self.subject.case.id));
        };
        Some(Prepared { threads: self.threads, run: Box::new(run) })
    }
}

//! This library, through the same calls as everybody's.

use super::{Peer, Prepared};
use crate::subject::Subject;
use restride_peers::Copier;

pub struct Restride;

impl Peer for Restride {
    fn name(&self) -> &'static str {
        "restride"
    }

    fn prepare<'s>(&self, subject: &'s Subject, threads: usize) -> Option<Prepared<'s>> {
        let case = &subject.case;
        let copier = Copier::new(&case.shape, &case.expr, subject.element_size, &[], threads).ok()?;
        let run = move |from: &[u8], to: &mut [u8]| {
            copier.run(from, to).unwrap_or_else(|error| panic!("{}: {error}", subject.case.id));
        };
        Some(Prepared { threads, run: Box::new(run) })
    }
}

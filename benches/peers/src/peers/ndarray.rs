//! ndarray: `assign` from a view.

use super::{Peer, Prepared};
use crate::subject::{Subject, Visit};
use bytemuck::Pod;
use ndarray::{ArrayView, ArrayViewMut, Axis, Dimension, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn, ShapeBuilder};

pub struct Ndarray;

impl Peer for Ndarray {
    fn name(&self) -> &'static str {
        "ndarray"
    }

    fn prepare<'s>(&self, subject: &'s Subject, _threads: usize) -> Option<Prepared<'s>> {
        if subject.src.is_padded() { None } else { subject.visit(Assign(subject)) }
    }
}

struct Assign<'s>(&'s Subject);

impl<'s> Visit<'s> for Assign<'s> {
    fn elements<T: Pod + Send + Sync>(self) -> Option<Prepared<'s>> {
        // A fixed rank is what its users write, and faster than a dynamic one.
        match self.0.src.ndim() {
            1 => of_rank::<T, Ix1>(self.0),
            2 => of_rank::<T, Ix2>(self.0),
            3 => of_rank::<T, Ix3>(self.0),
            4 => of_rank::<T, Ix4>(self.0),
            5 => of_rank::<T, Ix5>(self.0),
            6 => of_rank::<T, Ix6>(self.0),
            _ => of_rank::<T, IxDyn>(self.0),
        }
    }
}

fn of_rank<T: Pod, D: Dimension>(subject: &Subject) -> Option<Prepared<'_>> {
    let (src, dst) = (&subject.src, &subject.dst);
    // Strides forward from the lowest element; the axes that go backwards are turned round afterwards.
    let forward: Vec<usize> = src.strides().iter().map(|stride| stride.unsigned_abs()).collect();
    let backward: Vec<usize> = (0..src.ndim()).filter(|&axis| src.strides()[axis] < 0).collect();
    let (low, _) = src.reachable_range()?;
    Prepared::serial(move |from, to| {
        let from = &bytemuck::cast_slice::<u8, T>(from)[low..];
        let to = bytemuck::cast_slice_mut::<u8, T>(to);
        let shape = IxDyn(src.shape()).strides(IxDyn(&forward));
        let view = ArrayView::from_shape(shape, from).and_then(|view| view.into_dimensionality::<D>());
        let target =
            ArrayViewMut::from_shape(IxDyn(dst.shape()), to).and_then(|view| view.into_dimensionality::<D>());
        match (view, target) {
            (Ok(mut view), Ok(mut target)) => {
                backward.iter().for_each(|&axis| view.invert_axis(Axis(axis)));
                target.assign(&view);
            }
            (Err(error), _) | (_, Err(error)) => panic!("ndarray: {}: {error}", subject.case.id),
        }
    })
}

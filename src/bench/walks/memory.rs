//! The arrays of the walks: aligned to huge pages, in pages of the asked kind, written before they are
//! read.

use super::kernel::{Order, Sum};
use super::{Pattern, Walk};
use crate::Error;
use crate::bench::timing::PageMode;
use crate::machine::pages;
use aligned_vec::{AVec, ConstAlign};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

/// Alignment of the arrays: a huge page.
const ALIGN: usize = 2 << 20;

/// An array in pages of one kind.
pub struct Array<T> {
    data: AVec<T, ConstAlign<ALIGN>>,
}

impl<T: Copy> Array<T> {
    /// Reserves the array, says which pages it should have, then writes it.
    ///
    /// # Errors
    /// Alloc, where the memory cannot be had.
    pub fn new(len: usize, mode: PageMode, element: impl Fn(usize) -> T) -> Result<Self, Error> {
        let bytes =
            len.checked_mul(size_of::<T>()).ok_or(Error::Overflow { what: "the size of the array" })?;
        // `aligned-vec` checks the length and not the length rounded up to the alignment.
        if bytes > isize::MAX as usize - 2 * ALIGN {
            return Err(Error::Alloc { bytes });
        }
        // Whole huge pages, so that the last one can be had too.
        let capacity = match mode {
            PageMode::Huge => bytes.next_multiple_of(ALIGN) / size_of::<T>().max(1),
            _ => len,
        };
        let mut data: AVec<T, ConstAlign<ALIGN>> = AVec::new(ALIGN);
        data.try_reserve_exact(capacity).map_err(|_| Error::Alloc { bytes })?;
        let room = data.capacity() * size_of::<T>();
        match mode {
            PageMode::Huge => pages::advise_huge(data.as_ptr().cast(), room),
            _ => pages::advise_no_huge(data.as_ptr().cast(), room),
        };
        (0..len).for_each(|index| data.push(element(index)));
        Ok(Self { data })
    }

    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        &self.data
    }

    /// The share (0 to 1) of the array that huge pages back; `None` where the system does not say.
    pub fn huge_share(&self) -> Option<f64> {
        pages::huge_share(self.data.as_ptr().cast(), self.data.len() * size_of::<T>())
    }
}

/// An array and the order in which a walk reads it.
pub enum Prepared<T> {
    /// Elements to be summed.
    Elements(Array<T>, Order),
    /// Links to be followed.
    Links(Array<u64>),
}

impl<T: Sum> Prepared<T> {
    /// Makes the array of a walk.
    ///
    /// # Errors
    /// Alloc, where the memory cannot be had; Overflow for a random walk of 2^32 elements and more.
    pub fn new(walk: &Walk, mode: PageMode) -> Result<Self, Error> {
        if walk.pattern == Pattern::Chase {
            let next = links(walk)?;
            let step = walk.line_bytes / 8;
            let link = |index: usize| match index % step {
                0 => u64::from(next[index / step]) * step as u64,
                _ => 0,
            };
            return Ok(Self::Links(Array::new(walk.elements() * step, mode, link)?));
        }
        if walk.pattern == Pattern::Random && u32::try_from(walk.elements()).is_err() {
            return Err(Error::Overflow { what: "the number of elements of a random walk" });
        }
        Ok(Self::Elements(Array::new(walk.len(), mode, T::element)?, order(walk)))
    }

    /// The share of the array that huge pages back.
    pub fn huge_share(&self) -> Option<f64> {
        match self {
            Self::Elements(array, _) => array.huge_share(),
            Self::Links(array) => array.huge_share(),
        }
    }
}

/// The tables of a walk's order.
pub fn order(walk: &Walk) -> Order {
    if walk.pattern != Pattern::Random {
        return Order::default();
    }
    let mut indices: Vec<u32> = (0..walk.elements() as u32).collect();
    indices.shuffle(&mut SmallRng::seed_from_u64(walk.seed));
    Order { indices }
}

/// For each node of a chase the one after it: a random cycle through all nodes.
pub fn links(walk: &Walk) -> Result<Vec<u32>, Error> {
    let nodes = u32::try_from(walk.elements())
        .map_err(|_| Error::Overflow { what: "the number of nodes of a chase" })?;
    let mut rng = SmallRng::seed_from_u64(walk.seed);
    let mut next: Vec<u32> = (0..nodes).collect();
    // Swapping each place with an earlier one, never with itself, leaves a single cycle.
    for place in (1..next.len()).rev() {
        next.swap(place, rng.random_range(0..place));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::super::Number;
    use super::*;

    #[test]
    fn a_chase_is_one_cycle_through_all_nodes() {
        for bytes in [0, 64, 128, 4096, 1 << 16] {
            let walk = Walk::new(Pattern::Chase, Number::U8, 1, bytes).unwrap();
            let next = links(&walk).unwrap();
            assert_eq!(next.len(), bytes / 64);
            let (mut at, mut hops) = (0, 0);
            while hops < next.len() {
                at = next[at as usize];
                hops += 1;
                assert!(at != 0 || hops == next.len(), "back at the start after {hops}");
            }
            let Prepared::<f64>::Links(array) = Prepared::new(&walk, PageMode::Small).unwrap() else {
                panic!("a chase has links");
            };
            assert_eq!(super::super::kernel::chase(array.as_slice(), next.len()), 0);
        }
    }

    #[test]
    fn orders_depend_on_the_seed_alone() {
        let walk = Walk::new(Pattern::Random, Number::U8, 10, 100).unwrap();
        assert_eq!(order(&walk).indices, order(&walk).indices);
        assert_ne!(order(&walk).indices, order(&walk.with_seed(1)).indices);
    }

    #[test]
    fn arrays_are_aligned_and_written() {
        for mode in [PageMode::Small, PageMode::Huge] {
            let array = Array::new(3 << 20, mode, |index| index as u8).unwrap();
            assert_eq!(array.as_slice().as_ptr().addr() % ALIGN, 0);
            assert!(array.as_slice().iter().enumerate().all(|(index, &byte)| byte == index as u8));
            if mode == PageMode::Small {
                assert!(array.huge_share().is_none_or(|share| share == 0.0), "{:?}", array.huge_share());
            }
        }
        assert!(matches!(Array::new(usize::MAX / 16, PageMode::Small, |_| 0_u64), Err(Error::Alloc { .. })));
    }
}

//! What is tuned together, and which values are worth trying.
//!
//! A new knob is a variant of [`Knob`] with its field, name and range. Here it joins the knobs of a group that
//! decides the same thing, with values for it in the proposals, or gets a group of its own: a variant, its
//! knobs, name and proposals, a place in [`targets`], and in `cases` the copies that it decides, which may be
//! those of another group. The compiler names each place.

use crate::copy::tuning::{ELEMENT_SIZES, Knob, Origin, Tuning, Value};
use std::fmt;

/// Knobs that decide one thing together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// When the stores of transposes bypass the caches.
    Streaming,
    /// When stores of whole rows, that is of everything but transposes, bypass them.
    StreamRows,
    /// Shape of a direct transpose tile, and whether tiles are taken in one level or two.
    Tile,
    /// How far ahead transposes ask for their source.
    TileAhead,
    /// From which length on destination rows off the lines slide onto them instead of being staged.
    Slide,
    /// Shape of a staged transpose tile: the length of the runs that leave the staging rows.
    Staged,
    /// How many short rows one tile gathers.
    Rows,
    /// How far ahead rows ask for their source.
    RowAhead,
    /// From which length on rows off the lines stream without staging.
    Unstaged,
    /// When threads share the work.
    Threads,
    /// How much of it they take at a time.
    Parts,
}

impl Group {
    /// Its knobs, in the order of a [`Choice`].
    pub fn knobs(self) -> &'static [Knob] {
        match self {
            Self::Streaming => &[Knob::StreamingFrom],
            Self::StreamRows => &[Knob::StreamRowsFrom],
            Self::Tile => &[Knob::TileSrc, Knob::TileDst, Knob::BlockDst],
            Self::TileAhead => &[Knob::TileAhead],
            Self::Slide => &[Knob::SlideFrom],
            Self::Staged => &[Knob::StagedSrc, Knob::StagedDst],
            Self::Rows => &[Knob::RowTile],
            Self::RowAhead => &[Knob::RowAhead],
            Self::Unstaged => &[Knob::UnstagedRowsFrom],
            Self::Threads => &[Knob::ParallelFrom],
            Self::Parts => &[Knob::Part],
        }
    }

    /// Whether it takes several threads to tell.
    pub fn shares(self) -> bool {
        matches!(self, Self::Threads | Self::Parts)
    }

    /// A word for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Streaming => "streaming",
            Self::StreamRows => "streaming of rows",
            Self::Tile => "tile",
            Self::TileAhead => "prefetch of tiles",
            Self::Slide => "sliding",
            Self::Staged => "staged",
            Self::Rows => "rows",
            Self::RowAhead => "prefetch of rows",
            Self::Unstaged => "unstaged rows",
            Self::Threads => "threads",
            Self::Parts => "parts of threads",
        }
    }
}

/// A group for one element size, or for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Target {
    /// What is tuned.
    pub group: Group,
    /// Bytes of an element; `None` where the group does not depend on it.
    pub element_bytes: Option<usize>,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element_bytes {
            Some(size) => write!(f, "{} of {size}-byte elements", self.group.name()),
            None => f.write_str(self.group.name()),
        }
    }
}

/// One value for each knob of a group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Choice(pub Vec<usize>);

/// What a search goes through, the most telling first; threads only where there are several.
pub fn targets(threads: usize) -> Vec<Target> {
    // The common sizes first: a short budget serves them.
    let sizes = [4, 8, 1, 2, 16];
    debug_assert!(sizes.iter().all(|size| ELEMENT_SIZES.contains(size)));
    let every = |groups: &[Group]| -> Vec<Target> {
        let sized = |&group| sizes.map(|size| Target { group, element_bytes: Some(size) });
        groups.iter().flat_map(sized).collect()
    };
    let one = |group| vec![Target { group, element_bytes: None }];
    [
        every(&[Group::Streaming]),
        one(Group::StreamRows),
        every(&[Group::Tile, Group::Slide, Group::Staged, Group::TileAhead, Group::Rows]),
        one(Group::Unstaged),
        every(&[Group::RowAhead]),
        if threads > 1 { [one(Group::Threads), one(Group::Parts)].concat() } else { Vec::new() },
    ]
    .concat()
}

/// At most this many choices are tried for a target.
const MOST: usize = 12;

impl Target {
    /// The choice that a tuning makes.
    pub fn current(&self, tuning: &Tuning) -> Choice {
        let size = self.element_bytes.unwrap_or(1);
        Choice(self.group.knobs().iter().map(|&knob| tuning.get(knob, size).value).collect())
    }

    /// A tuning with that choice in its place.
    ///
    /// # Errors
    ///
    /// A value outside the range of its knob.
    pub fn with(&self, tuning: &Tuning, choice: &Choice) -> Result<Tuning, crate::Error> {
        let mut tuning = *tuning;
        for (&knob, &value) in self.group.knobs().iter().zip(&choice.0) {
            tuning.set(knob, self.element_bytes, Value::new(value, Origin::Caller))?;
        }
        Ok(tuning)
    }

    /// Choices worth trying, the current one not among them.
    ///
    /// Thresholds are tried around the sizes of the caches, where a copy stops fitting; tiles around what
    /// a page, a line pair and the caches suggest, by factors of two.
    pub fn proposals(&self, tuning: &Tuning) -> Vec<Choice> {
        let (l1d, l2, l3) = (tuning.l1d_bytes.value, tuning.l2_bytes.value, tuning.l3_bytes.value);
        let one = |values: &[usize]| values.iter().map(|&value| Choice(vec![value])).collect::<Vec<_>>();
        let two = |values: &[(usize, usize)]| values.iter().map(|&(a, b)| Choice(vec![a, b])).collect();
        let three = |values: &[[usize; 3]]| values.iter().map(|value| Choice(value.to_vec())).collect();
        let all: Vec<Choice> = match self.group {
            // The last one is never, for any size that a test here would have.
            Group::Streaming | Group::StreamRows => one(&[
                l2,
                3 * l2 / 2,
                2 * l2,
                3 * l2,
                4 * l2,
                6 * l2,
                l3 / 4,
                l3 / 2,
                3 * (l3 / 4),
                l3,
                3 * l3 / 2,
                1 << 40,
            ]),
            Group::Tile => three(&[
                [4096, 128, 0],
                [4096, 256, 0],
                [4096, 512, 0],
                [4096, 1024, 0],
                [2048, 128, 0],
                [2048, 256, 0],
                [2048, 512, 0],
                [2048, 1024, 0],
                [1024, 512, 0],
                [4096, 256, 2048],
                [2048, 256, 2048],
                [2048, 512, 4096],
                [8192, 256, 0],
            ]),
            // None, the square after the next few, and as far as a page.
            Group::TileAhead => one(&[0, 64, 128, 256, 512, 1024, 2048, 4096]),
            // The last one stages all, the first none.
            Group::Slide => one(&[64, 128, 256, 320, 384, 512, 1024, 2048, 1 << 40]),
            Group::Unstaged => one(&[256, 512, 1024, 2048, 4096, 8192, 1 << 40]),
            Group::RowAhead => one(&[0, 256, 512, 1024, 2048, 4096, 8192, 16384]),
            Group::Staged => two(&[
                (64, 512),
                (64, 1024),
                (64, 2048),
                (128, 512),
                (128, 1024),
                (128, 2048),
                (128, 4096),
                (256, 512),
                (256, 1024),
                (256, 2048),
                (512, 512),
                (512, 1024),
            ]),
            Group::Rows => one(&[l1d / 16, l1d / 8, l1d / 4, l1d / 3, l1d / 2, l1d, 2 * l1d, 4 * l1d]),
            Group::Threads => one(&[256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20]),
            Group::Parts => one(&[64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20]),
        };
        let current = self.current(tuning);
        let fits = |choice: &Choice| {
            self.group.knobs().iter().zip(&choice.0).all(|(knob, value)| knob.range().contains(value))
        };
        let mut proposals: Vec<Choice> = Vec::new();
        for choice in all {
            if choice != current && fits(&choice) && !proposals.contains(&choice) {
                proposals.push(choice);
            }
        }
        proposals.truncate(MOST);
        proposals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposals_are_few_new_and_possible() {
        for caches in [(0, 0, 0), (48 << 10, 2 << 20, 300 << 20), (32 << 10, 256 << 10, 0), (1 << 10, 1, 1)] {
            let tuning = Tuning::for_caches(caches.0, caches.1, caches.2);
            for target in targets(2) {
                let proposals = target.proposals(&tuning);
                assert!(!proposals.is_empty() && proposals.len() <= MOST, "{target}");
                for choice in &proposals {
                    assert_ne!(*choice, target.current(&tuning), "{target}");
                    let with = target.with(&tuning, choice).unwrap();
                    assert_eq!(target.current(&with), *choice, "{target}");
                }
            }
        }
    }

    #[test]
    fn one_thread_tunes_no_threads() {
        assert!(targets(1).iter().all(|target| target.group != Group::Threads));
        assert!(targets(2).iter().any(|target| target.group == Group::Threads));
    }
}

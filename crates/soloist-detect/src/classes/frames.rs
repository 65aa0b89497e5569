//! Conflict classes of frames where no function explains which lines conflict.
//!
//! That is so in a guest whose memory the host keeps in 4 KiB pages, and where
//! channels are chosen by a division. Two frames share banks exactly when some
//! line of one conflicts with some line of the other, and that can be measured.
//! A class is all frames that are linked so, directly or by others: frames of
//! different classes share no bank. Nothing is assumed about how a bank is
//! chosen, but that where one pair of lines conflicts, a part of the pairs that
//! lie likewise in the same two frames does too; what conflicts alone is an
//! accident.
//!
//! Every frame begins as a group of its own. The smallest group is compared
//! with all others, random line by random line, until it is joined to one or
//! has been compared so often that a link would have been seen. What never saw
//! enough frames of its class to be sure is left out.

use rand::Rng;

use crate::classes::proof::{prove, Sorted};
use crate::classes::{ClassedPage, Classes};
use crate::meter::{Meter, Stop};
use soloist_machine::RamRange;

/// log2 of a frame.
pub const FRAME_SHIFT: u32 = 12;
/// Odds against a pair of lines that only seems to conflict.
const ODDS: f64 = 20_000.0;
/// Pairs that lie likewise.
const LIKEWISE: u32 = 16;
/// How many of them must conflict.
const LIKEWISE_HOLD: u32 = 5;
/// Random pairs from which the rate of conflicts is taken, in conflicts.
const RATE_CONFLICTS: u32 = 24;
/// A group is alone after so many times the pairs that hold one conflict.
const PATIENCE: f64 = 10.0;
/// Frames of the smallest class that is believed.
const SMALLEST: usize = 4;

/// Frames by number that are linked.
#[derive(Debug, Default)]
struct Group {
    frames: Vec<usize>,
    /// Compared with all others for long enough.
    alone: bool,
}

/// Sorts up to `limit` frames of `pool` into classes. At the deadline, groups
/// that are not sure are left out.
///
/// # Errors
/// When conflicts can't be seen in the pool at all.
pub fn classify(
    meter: &mut Meter<'_>,
    pool: &[RamRange],
    limit: usize,
    progress: &mut dyn FnMut(f64),
) -> Result<Classes, Stop> {
    let frames = frames_of(pool, limit);
    let (Some(first), Some(last)) = (frames.first(), frames.last()) else {
        return Err(Stop::NoMemory);
    };
    let whole = RamRange {
        end: last.end,
        ..*first
    };
    meter.calibrate(&whole)?;
    let groups = (0..frames.len()).map(|frame| Group {
        frames: vec![frame],
        alone: false,
    });
    let mut sorter = Sorter {
        groups: groups.collect(),
        meter,
        frames: &frames,
    };
    // Stopped at the deadline, what is not sure by then stays out.
    let _ = sorter.sort(progress);
    sorter
        .groups
        .retain(|group| group.alone && group.frames.len() >= SMALLEST);
    let groups = sorter.groups;
    let class_of = |frame: usize| {
        let class = groups
            .iter()
            .position(|group| group.frames.contains(&frame));
        class.map(|class| class as u32)
    };
    let pages: Vec<ClassedPage> = frames
        .iter()
        .enumerate()
        .map(|(i, frame)| ClassedPage {
            page: frame.start,
            guest: meter.source().guest_address(frame.start),
            class: class_of(i),
        })
        .collect();
    let sorted = Sorted {
        pages: pages
            .iter()
            .filter_map(|page| Some((page.page, page.class?)))
            .collect(),
        page_shift: FRAME_SHIFT,
        functions: &[],
    };
    let proof = prove(meter, &sorted);
    Ok(Classes {
        page_shift: FRAME_SHIFT,
        functions: Vec::new(),
        classes: groups.len(),
        pages,
        proof,
    })
}

/// The first `limit` frames of the pool's pages.
fn frames_of(pool: &[RamRange], limit: usize) -> Vec<RamRange> {
    let size = 1u64 << FRAME_SHIFT;
    let starts = pool.iter().flat_map(|page| {
        (page.start..page.end)
            .step_by(size as usize)
            .map(|start| (start, page.node))
    });
    starts
        .take(limit)
        .map(|(start, node)| RamRange {
            start,
            end: start + size,
            node,
        })
        .collect()
}

struct Sorter<'a, 'b> {
    meter: &'a mut Meter<'b>,
    frames: &'a [RamRange],
    groups: Vec<Group>,
}

impl Sorter<'_, '_> {
    fn sort(&mut self, progress: &mut dyn FnMut(f64)) -> Result<(), Stop> {
        let patience = (self.pairs_a_conflict()? * PATIENCE) as u64;
        let all = self.groups.len();
        loop {
            let waiting = self.groups.iter().enumerate();
            let Some((group, _)) = waiting
                .filter(|(_, group)| !group.alone)
                .min_by_key(|(_, group)| group.frames.len())
            else {
                break;
            };
            match self.find_link(group, patience)? {
                Some(other) => self.join(group, other),
                None => self.groups[group].alone = true,
            }
            progress(1.0 - self.groups.len() as f64 / all as f64);
        }
        // In the order of their first frames.
        for group in &mut self.groups {
            group.frames.sort_unstable();
        }
        self.groups.sort_by_key(|group| group.frames[0]);
        Ok(())
    }

    /// Random pairs of lines that hold one conflict, on average.
    fn pairs_a_conflict(&mut self) -> Result<f64, Stop> {
        let (mut conflicts, mut pairs) = (0, 0.0);
        while conflicts < RATE_CONFLICTS && pairs < 1e6 {
            let (a, b) = (self.random_line(None), self.random_line(None));
            pairs += 1.0;
            conflicts += u32::from(self.conflict(a, b)?);
        }
        Ok(pairs / f64::from(conflicts.max(1)))
    }

    /// A group that shares banks with `group`, if one is met in `patience`
    /// random pairs of lines.
    fn find_link(&mut self, group: usize, patience: u64) -> Result<Option<usize>, Stop> {
        let mut group_of = vec![0; self.frames.len()];
        for (i, group) in self.groups.iter().enumerate() {
            for &frame in &group.frames {
                group_of[frame] = i;
            }
        }
        for _ in 0..patience {
            let a = self.random_line(Some(group));
            let b = self.random_line(None);
            let other = group_of[self.number_of(b)];
            if other != group && self.conflict(a, b)? && self.likewise(a, b)? {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }

    fn join(&mut self, one: usize, other: usize) {
        let (low, high) = (one.min(other), one.max(other));
        let moved = self.groups.swap_remove(high);
        let joined = &mut self.groups[low];
        joined.frames.extend(moved.frames);
        joined.alone = false;
    }

    fn conflict(&mut self, a: u64, b: u64) -> Result<bool, Stop> {
        Ok(self.meter.source().is_fair(a, b) && self.meter.is_conflict_among_many(a, b, ODDS)?)
    }

    /// Whether enough of the pairs that lie as `a` and `b` in the same frames
    /// conflict too.
    fn likewise(&mut self, a: u64, b: u64) -> Result<bool, Stop> {
        let mut hold = 0;
        for _ in 0..LIKEWISE {
            let by = self.random_offset();
            hold += u32::from(self.meter.is_conflict(a ^ by, b ^ by, 100.0)?);
            if hold == LIKEWISE_HOLD {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A random line of a group, or of all frames.
    fn random_line(&mut self, group: Option<usize>) -> u64 {
        let frame = match group {
            Some(group) => {
                let frames = &self.groups[group].frames;
                frames[self.meter.rng.gen_range(0..frames.len())]
            }
            None => self.meter.rng.gen_range(0..self.frames.len()),
        };
        self.frames[frame].start + self.random_offset()
    }

    fn random_offset(&mut self) -> u64 {
        let line = self.meter.source().line_shift();
        self.meter.rng.gen_range(0..1u64 << (FRAME_SHIFT - line)) << line
    }

    /// The number of the frame that holds a line.
    fn number_of(&self, line: u64) -> usize {
        self.frames.partition_point(|frame| frame.end <= line)
    }
}

//! Where the pages of recorded programs lie: as recorded, or placed anew.

use std::fmt;
use std::str::FromStr;

use soloist_core::{AddrMap, ColorSet, NumList, FRAME_SHIFT};
use soloist_record::Page;

use super::{Part, Replay, ReplayError};
use crate::policy::{Policy, UnknownPolicy};
use crate::stage::Touches;

/// The source of the places of pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Where they lay when the program was recorded.
    Recorded,
    /// Placed anew.
    Policy(&'static dyn Policy),
}

impl Placement {
    /// The name that commands and reports use.
    pub fn name(self) -> String {
        match self {
            Self::Recorded => "recorded".to_owned(),
            Self::Policy(policy) => policy.name().to_owned(),
        }
    }

    /// Whether it holds programs back, too.
    pub fn is_regulated(self) -> bool {
        matches!(self, Self::Policy(policy) if policy.is_regulated())
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl FromStr for Placement {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        match name {
            "recorded" => Ok(Self::Recorded),
            other => other.parse().map(Self::Policy),
        }
    }
}

/// What a recording of another machine can't do here.
fn elsewhere() -> ReplayError {
    ReplayError::Misfit(
        "recorded on another machine: its pages lie where this one has no memory; \
         place them anew with --recolor"
            .to_owned(),
    )
}

/// Page by page of each part, the frame where it stays. As recorded all stay. Placed anew
/// it is what the kernel alone touched: no policy moves that, and on the machine that it
/// was recorded on it stays where it was. Of several recordings each has a kernel of its
/// own, and an imported trace does not say where a page was: none.
pub(super) fn stay(
    replay: &Replay,
    placement: Placement,
) -> Result<Vec<Vec<Option<u32>>>, ReplayError> {
    let memory = &replay.platform.memory;
    let is_there = |page: &Page| {
        let at = page.phys << FRAME_SHIFT;
        let mut ranges = memory.map.ranges();
        ranges.any(|range| (range.start..range.end).contains(&at))
    };
    let of_kernel = together(replay) && replay.parts[0].machine == memory.name;
    let frame = |page: &Page| match placement {
        Placement::Recorded if is_there(page) => Ok(Some(page.phys as u32)),
        Placement::Recorded => Err(elsewhere()),
        Placement::Policy(_) => {
            let stays = of_kernel && !page.user && is_there(page);
            Ok(stays.then_some(page.phys as u32))
        }
    };
    let of_part = |part: &Part| part.program.pages.iter().map(frame).collect();
    replay.parts.iter().map(of_part).collect()
}

/// Pages of user space whose frames lie out of the colours: those that the program
/// had before it was coloured or shares with others, and those for which its colours
/// had no frame left.
pub(super) fn out_of(colors: &ColorSet, map: &AddrMap, part: &Part, frames: &[u32]) -> u64 {
    let lies_out = |&(page, &frame): &(&Page, &u32)| {
        let color = map.color_of_frame(u64::from(frame));
        page.user && !color.is_some_and(|c| colors.holds(c.bank_set, c.llc))
    };
    let pages = part.program.pages.iter().zip(frames);
    pages.filter(lies_out).count() as u64
}

/// The colours that the module was asked for when the parts were recorded.
pub(super) fn asked_for(replay: &Replay) -> Result<Vec<Option<ColorSet>>, ReplayError> {
    let map = &replay.platform.memory.map;
    let of_part = |part: &Part| {
        let mut colors = None;
        for setting in &part.settings {
            let list = |limit: u32, value: &str| {
                let wrong = |e| ReplayError::Misfit(format!("`{}`: {setting}: {e}", part.name));
                NumList::parse(value, limit).map_err(wrong)
            };
            let before = || colors.clone().unwrap_or_else(|| ColorSet::any(map));
            let with = match setting.split_once('=') {
                Some(("bank_set", value)) => {
                    before().with_sets(list(map.n_bank_sets(), value)?.iter())
                }
                Some(("llc_color", value)) => before().with_llc(list(map.n_llc(), value)?.iter()),
                _ => continue,
            };
            colors = Some(with);
        }
        Ok(colors)
    };
    replay.parts.iter().map(of_part).collect()
}

/// Whether all were recorded together.
fn together(replay: &Replay) -> bool {
    let first = &replay.parts[0].recording;
    replay.parts.iter().all(|part| part.recording == *first)
}

/// The order of first touches: as it was where all were recorded together, else turns
/// that are drawn. `first` has the first seat of each part.
pub(super) fn touches(replay: &Replay, first: &[usize]) -> Touches {
    if !together(replay) {
        return Touches::Drawn;
    }
    let parts = replay.parts.iter().zip(first);
    let pages = parts.flat_map(|(part, &seat)| {
        let numbered = part.program.pages.iter().zip(0..);
        numbered.map(move |(page, number)| (page.order, (seat, number)))
    });
    let mut pages: Vec<(u64, (usize, u64))> = pages.collect();
    pages.sort_by_key(|&(order, _)| order);
    Touches::Recorded(pages.into_iter().map(|(_, touch)| touch).collect())
}

//! Where a policy puts the pages of all programs on a machine that is cut to a slice.

use std::sync::LazyLock;

use soloist_core::FRAME_SIZE;
use soloist_play::placement::buddy::History;
use soloist_play::placement::memory::Exhaust;
use soloist_play::placement::FreeMemory;
use soloist_play::policy::{all, Policy};
use soloist_play::programs::step::{Program, Step};
use soloist_play::stage::{Seat, SeatResult, Stage};

use crate::cut::Cut;
use crate::error::SiliconError;

/// Names of the policies that a slice can show.
pub static POLICIES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let fit = all().filter(|policy| policy.fits_slice());
    fit.map(|policy| policy.name()).collect()
});

/// The pages of a program: for each whether it takes colours.
#[derive(Debug, Clone)]
pub struct Pages(pub Vec<bool>);

/// It is there and does nothing.
impl Program for Pages {
    fn step(&mut self) -> Step {
        Step::Done
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64 * FRAME_SIZE
    }

    fn colored(&self, page: u64) -> bool {
        self.0.get(page as usize).copied().unwrap_or(true)
    }
}

/// Who gets how many banks, and what was in memory before.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Bank sets of the first program, of policies that give private ones; the others share
    /// the rest.
    pub sets: u32,
    /// The state of free memory before the programs begin.
    pub history: History,
    /// Of what placement leaves to chance.
    pub seed: u64,
}

impl Terms {
    /// Bank sets of program number `number` of so many.
    fn sets_of(self, number: usize, programs: usize, cut: &Cut, policy: &dyn Policy) -> u32 {
        let rest = (cut.banks as u32).saturating_sub(self.sets);
        match number {
            0 => self.sets,
            // The others have them together.
            _ if policy.shares_rest() => rest.max(1),
            _ => (rest / (programs as u32 - 1).max(1)).max(1),
        }
    }
}

/// The frames of each program's pages.
///
/// # Errors
/// When there are not enough banks or cores.
pub fn place(
    cut: &Cut,
    policy: &dyn Policy,
    programs: &[Pages],
    terms: Terms,
) -> Result<Vec<SeatResult>, SiliconError> {
    let cores = cut.platform.node_of_core.len();
    if programs.len() > cores {
        return Err(SiliconError::Misfit(format!(
            "{} programs, and {} has {cores} cores",
            programs.len(),
            cut.platform.memory.name
        )));
    }
    let seat = |(number, pages): (usize, &Pages)| Seat {
        owner: number,
        sets: terms.sets_of(number, programs.len(), cut, policy),
        ..Seat::new(Box::new(pages.clone()), number)
    };
    let seats = programs.iter().enumerate().map(seat).collect();
    let stage = Stage {
        memory: memory(terms),
        ..Stage::new(&cut.platform, policy, seats, terms.seed)
    };
    let played = stage.play();
    let refused = |source| SiliconError::Refused(policy.name().to_owned(), source);
    Ok(played.map_err(refused)?.seats)
}

/// As the module hands pages out; who runs out of colours gets any.
pub(crate) fn memory(terms: Terms) -> FreeMemory {
    FreeMemory {
        history: terms.history,
        exhaust: Exhaust::Spill,
        as_the_module: true,
    }
}

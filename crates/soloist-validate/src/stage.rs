//! A recorded program and its neighbours: placed by each policy, then played on lines of a
//! slice and in the model.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde::Serialize;
use soloist_bench::banks::Banks;
use soloist_bench::cores::{Attack, Cores};
use soloist_bench::recorded::{measure, Access, Placed, Row, LEAST_MOVES};
use soloist_bench::slices::Plan;
use soloist_play::policy::Policy;
use soloist_play::replay::Part;
use soloist_record::Lane;

use crate::cut::Cut;
use crate::error::SiliconError;
use crate::model::{self, Modelled};
use crate::place::{place, Pages, Terms, POLICIES};
use crate::script::{of_loop, of_recording, Op, Script};

/// Pages of a neighbour that only loads memory, and lines until it repeats.
const LOOP_PAGES: u32 = 512;
const LOOP_LINES: usize = 32_768;

/// One of the programs.
#[derive(Clone)]
pub enum Player {
    /// A recording; of its threads the one that asks for most lines plays.
    Recorded(Part),
    /// A loop that loads memory.
    Loop(Attack),
}

impl Player {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Recorded(part) => part.name.clone(),
            Self::Loop(attack) => attack.neighbours(1),
        }
    }

    /// Its threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self {
            Self::Recorded(part) => part.program.lanes().len(),
            Self::Loop(_) => 1,
        }
    }

    fn pages(&self) -> Pages {
        Pages(match self {
            Self::Recorded(part) => part.program.pages.iter().map(|page| page.user).collect(),
            Self::Loop(_) => vec![true; LOOP_PAGES as usize],
        })
    }

    fn script(&self, number: usize, frames: &[u32], cut: &Cut) -> Script {
        match self {
            Self::Recorded(part) => match busiest(part) {
                Some(lane) => of_recording(&part.program, &lane, frames, cut),
                None => Script::default(),
            },
            Self::Loop(attack) => of_loop(*attack, LOOP_PAGES, LOOP_LINES, number as u64),
        }
    }
}

/// The thread that asks for most lines.
fn busiest(part: &Part) -> Option<Lane> {
    let lanes = part.program.lanes().into_iter();
    lanes.max_by_key(|lane| part.program.steps(lane).count())
}

/// Programs placed by a policy.
struct Scene {
    policy: &'static dyn Policy,
    programs: Vec<(Arc<Script>, Vec<u32>)>,
    spilled: u64,
}

/// What came of a policy.
#[derive(Debug, Clone, Serialize)]
pub struct Both {
    /// The policy's name.
    pub placement: String,
    /// On the machine; `None`: a neighbour hardly ran.
    pub silicon: Option<Row>,
    /// In the model.
    pub model: Modelled,
    /// Lines that the modelled last level had, of all that the program asked for, per cent.
    pub hits_percent: f64,
    /// Lines that were played of.
    pub lines: usize,
    /// Its pages that came out of its colours.
    pub spilled: u64,
}

/// Programs on a slice; the first is what is waited for.
pub struct Silicon {
    /// The modelled slice.
    pub cut: Cut,
    /// The programs.
    pub players: Vec<Player>,
    /// Banks for each, and chance.
    pub terms: Terms,
}

impl Silicon {
    /// Pages of all programs.
    #[must_use]
    pub fn pages(players: &[Player]) -> u64 {
        players
            .iter()
            .map(|player| player.pages().0.len() as u64)
            .sum()
    }

    /// Plays all `policies` on lines of `banks`, and in the model.
    ///
    /// # Errors
    /// When a policy does not fit a slice, the model refuses, or the program asks memory for
    /// next to nothing.
    pub fn play(
        &self,
        policies: &[&'static dyn Policy],
        cores: &mut dyn Cores,
        banks: &Banks,
        plan: Plan,
        progress: &mut dyn FnMut(&str, f64),
    ) -> Result<Vec<Both>, SiliconError> {
        if cores.most_neighbours() + 1 < self.players.len() {
            return Err(SiliconError::Misfit(format!(
                "{} co-runners, and there are {} CPUs for them",
                self.players.len() - 1,
                cores.most_neighbours()
            )));
        }
        progress("placing pages", 0.0);
        let scenes: Vec<Scene> = self.scenes(policies)?;
        let placed: Vec<Placed> = scenes.iter().map(|scene| self.placed(scene)).collect();
        let mut tell = |share| progress("playing on this machine", share);
        let mut rows: HashMap<String, Row> =
            measure(cores, banks, self.cut.banks, &placed, plan, &mut tell)
                .into_iter()
                .map(|row| (row.placement.clone(), row))
                .collect();
        drop(placed);
        progress("playing in the model", 0.0);
        let modelled: Result<Vec<Modelled>, SiliconError> = scenes
            .par_iter()
            .map(|scene| model::play(&self.cut, scene.policy, &scene.programs, self.terms))
            .collect();
        let both = scenes.iter().zip(modelled?).map(|(scene, model)| {
            let own = &scene.programs[0].0;
            let asked = own.ops.len() as u64 + own.hits;
            Both {
                placement: scene.policy.name().to_owned(),
                silicon: rows.remove(scene.policy.name()),
                model,
                hits_percent: 100.0 * own.hits as f64 / asked.max(1) as f64,
                lines: own.ops.len(),
                spilled: scene.spilled,
            }
        });
        Ok(both.collect())
    }

    fn scenes(&self, policies: &[&'static dyn Policy]) -> Result<Vec<Scene>, SiliconError> {
        for policy in policies {
            if !POLICIES.contains(&policy.name()) {
                return Err(SiliconError::Misfit(format!(
                    "`{}` is more than a choice of banks, and a slice has nothing else; there are: {}",
                    policy.name(),
                    POLICIES.join(", ")
                )));
            }
        }
        policies
            .par_iter()
            .map(|policy| self.scene(*policy))
            .collect()
    }

    /// Places all pages, and finds what the programs ask memory for.
    fn scene(&self, policy: &'static dyn Policy) -> Result<Scene, SiliconError> {
        let pages: Vec<Pages> = self.players.iter().map(Player::pages).collect();
        let seats = place(&self.cut, policy, &pages, self.terms)?;
        let spilled = seats.first().map_or(0, |seat| seat.spilled);
        let both = self.players.iter().zip(seats).enumerate();
        let programs: Vec<(Arc<Script>, Vec<u32>)> = both
            .map(|(number, (player, seat))| {
                let script = player.script(number, &seat.frames, &self.cut);
                (Arc::new(script), seat.frames)
            })
            .collect();
        for ((script, _), player) in programs.iter().zip(&self.players) {
            if script.ops.len() < LEAST_MOVES {
                return Err(SiliconError::Misfit(format!(
                    "`{}` asks memory for {} lines (the modelled last level has {} others); at least {LEAST_MOVES} \
                     are needed",
                    player.name(),
                    script.ops.len(),
                    script.hits
                )));
            }
        }
        Ok(Scene {
            policy,
            programs,
            spilled,
        })
    }

    /// The same, bank by bank: a page's lines side by side.
    fn placed(&self, scene: &Scene) -> Placed {
        let program = |(script, frames): &(Arc<Script>, Vec<u32>)| -> Vec<Access> {
            let access = |op: &Op| {
                let frame = frames[op.page as usize];
                Access {
                    bank: self.cut.bank(frame) as u16,
                    index: self.cut.slot(frame) as u32 * 64 + u32::from(op.line),
                    kind: op.kind,
                    waits: op.waits,
                    gap_ps: op.gap_ps,
                }
            };
            script.ops.iter().map(access).collect()
        };
        Placed {
            name: scene.policy.name().to_owned(),
            programs: scene.programs.iter().map(program).collect(),
        }
    }
}

//! Plays programs on lines of a memory: this machine's own, or a simulated one.

use std::time::Duration;

use soloist_bench::banks::Banks;
use soloist_bench::cores::real::RealCores;
use soloist_bench::cores::sim::{SimCores, Truth};
use soloist_bench::slices::Plan;
use soloist_detect::timing::hardware::{Hardware, HardwareOptions};
use soloist_detect::timing::noise::Noise;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::timing::TimingSource;
use soloist_machine::Machine;
use soloist_play::policy::Policy;

use crate::error::SiliconError;
use crate::stage::{Both, Silicon};

/// Huge pages that a simulated machine gives.
const SIM_PAGES: u64 = 64;

/// How long is looked and played, under which policies.
pub struct Effort<'a> {
    /// The policies.
    pub policies: &'a [&'static dyn Policy],
    /// Looking for lines ends with it.
    pub deadline: Duration,
    /// What is played.
    pub plan: Plan,
}

/// What was found and played.
pub struct Outcome {
    /// The lines.
    pub banks: Banks,
    /// Policy by policy.
    pub rows: Vec<Both>,
}

/// Told what is done, and which share of it, 0 to 1.
pub type Progress<'a> = &'a mut dyn FnMut(&str, f64);

impl Silicon {
    /// Plays on the memory of `machine`, simulated: a neighbour in the same bank adds
    /// `same_bank_ns` to an access.
    ///
    /// # Errors
    /// When too few banks are found, or a policy can't be played.
    pub fn play_simulated(
        &self,
        machine: &Machine,
        same_bank_ns: f64,
        effort: &Effort<'_>,
        progress: Progress<'_>,
    ) -> Result<Outcome, SiliconError> {
        let noise = Noise::LOW;
        let seed = effort.plan.seed;
        let pool = SimPool::unprivileged(21, SIM_PAGES);
        let mut memory = SimSource::new(machine, pool, noise, seed);
        let banks = self.find(&mut memory, effort, progress)?;
        let truth = Truth {
            same_bank_ns,
            same_channel_ns: 0.0,
            others_ns: 20.0,
            taken: 0.01,
            noise,
        };
        let mut cores = SimCores::new(&memory, truth, seed);
        let rows = self.play(effort.policies, &mut cores, &banks, effort.plan, progress)?;
        Ok(Outcome { banks, rows })
    }

    /// Plays on `bytes` of this machine's memory, of the node that the caller is bound to: the
    /// first program on the first of `cpus`, of which there is one for each program.
    ///
    /// # Errors
    /// When memory or processors can't be had, too few banks are found, or a policy can't be
    /// played.
    pub fn play_here(
        &self,
        cpus: &[usize],
        bytes: u64,
        effort: &Effort<'_>,
        progress: Progress<'_>,
    ) -> Result<Outcome, SiliconError> {
        let mut memory = Hardware::new(&HardwareOptions {
            memory: Some(bytes),
            unprivileged: true,
            ..HardwareOptions::default()
        })?;
        let banks = self.find(&mut memory, effort, progress)?;
        let mut cores = RealCores::new(&memory, cpus[0], &cpus[1..])?;
        let rows = self.play(effort.policies, &mut cores, &banks, effort.plan, progress)?;
        Ok(Outcome { banks, rows })
    }

    /// Lines by bank, of as many banks as the slice has.
    fn find(
        &self,
        memory: &mut dyn TimingSource,
        effort: &Effort<'_>,
        progress: Progress<'_>,
    ) -> Result<Banks, SiliconError> {
        let neighbours = self.players.len() - 1;
        let seed = effort.plan.seed;
        let banks = Banks::find(memory, neighbours, effort.deadline, seed, progress)?;
        let there = banks.slice(usize::MAX).len();
        match there < self.cut.banks {
            true => Err(SiliconError::FewBanks {
                wanted: self.cut.banks,
                there,
            }),
            false => Ok(banks),
        }
    }
}

//! A task set on a machine, analysed and played.

use soloist_core::time::Time;
use soloist_core::ColorSet;
use soloist_memory::Platform;
use soloist_rt::analysis::interference::{
    surroundings, Conditions, Costs, Shared, Sharing, Surroundings,
};
use soloist_rt::analysis::response::{analyse, Answer};
use soloist_rt::analysis::ProfiledSet;
use soloist_rt::model::cores::{play, seed_of, PageSource, Played, Setup};
use soloist_rt::model::in_colors::{in_colors, Jobs};
use soloist_rt::model::profile::{profiles, Profile};
use soloist_rt::tasks::TaskSet;
use soloist_trace::timeline::{End, Job};

/// Banks of a core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Banks {
    /// The first two of a node.
    Shared,
    /// Two that no other core has.
    Own,
}

/// Tasks on four cores, where memory of each core is of one node.
pub struct Case {
    /// The machine.
    pub platform: Platform,
    /// The tasks, each on a core.
    pub set: TaskSet,
    /// Node of each core's memory.
    pub homes: [u32; 4],
    /// The banks there.
    pub banks: Banks,
    /// Of two cores that use a last level each has half of its colours.
    pub cache_colors: bool,
    /// Bytes a second that each core may read.
    pub limits: Vec<Option<u64>>,
    /// Length of the play, ps.
    pub length_ps: u64,
    /// Draws programs, pages and jitter.
    pub seed: u64,
}

impl Case {
    fn place(&self, core: u32) -> PageSource {
        let map = &self.platform.memory.map;
        let sets: Vec<u32> = map.sets_of_node(self.homes[core as usize]).collect();
        let own = match self.banks {
            Banks::Shared => sets[..2].to_vec(),
            Banks::Own => [2 * core, 2 * core + 1]
                .map(|at| sets[at as usize * sets.len() / 8])
                .to_vec(),
        };
        let banks = ColorSet::any(map).with_sets(own);
        // Two cores use a last level.
        let half = map.n_llc() / 2;
        let first = core % 2 * half;
        PageSource {
            colors: Some(match self.cache_colors {
                true => banks.with_llc(first..first + half),
                false => banks,
            }),
            node: None,
        }
    }

    fn shared(&self, a: u32, b: u32) -> Shared {
        let [a, b] = [a, b].map(|core| core as usize);
        let apart = self.homes[a] != self.homes[b];
        let llc_of = &self.platform.llc_of_core;
        Shared {
            memory: match self.banks {
                _ if apart => Sharing::Nothing,
                Banks::Shared => Sharing::Banks,
                Banks::Own => Sharing::Controller,
            },
            llc: llc_of[a] == llc_of[b] && !self.cache_colors,
            elsewhere: apart,
        }
    }

    /// Plays it. As a plan has it, `wcet` is the longest of the jobs that are played, alone in
    /// the colours given. Another job of a program, or another draw, may be longer.
    pub fn run(mut self) -> Ran {
        // The model stops a core at once.
        self.set.stop = Time(0);
        let (makers, mut profiles) = profiles(&self.platform, &self.set, 1).unwrap();
        let cores = self.set.tasks.iter().map(|t| t.core.unwrap());
        let places: Vec<PageSource> = cores.map(|core| self.place(core)).collect();
        for (i, place) in places.iter().enumerate() {
            let Some(release) = self.set.tasks[i].release else {
                continue;
            };
            let jobs = Jobs {
                least: self.length_ps.div_ceil(release.period.0),
                seed: seed_of(self.seed, i),
                in_flight: Costs::of(&self.platform).in_flight,
            };
            let (task, maker) = (&self.set.tasks[i], &makers[i]);
            let alone = in_colors(&self.platform, task, maker, &profiles[i], place, jobs).unwrap();
            self.set.tasks[i].wcet = alone.longest.max(task.wcet);
            profiles[i] = alone.profile;
        }
        let accesses: Vec<u64> = profiles.iter().map(|p| p.accesses).collect();
        let played = play(&Setup {
            platform: &self.platform,
            set: &self.set,
            makers: &makers,
            accesses: &accesses,
            places: &places,
            limits: &self.limits,
            scale: 1,
            length_ps: self.length_ps,
            seed: self.seed,
        });
        Ran {
            played: played.unwrap(),
            profiles,
            case: self,
        }
    }
}

/// What came of it.
pub struct Ran {
    /// The case; each `wcet` is as its jobs are alone.
    pub case: Case,
    /// The play.
    pub played: Played,
    /// What a job of each task asks of memory, alone.
    pub profiles: Vec<Profile>,
}

impl Ran {
    /// Who is beside a core.
    pub fn around(&self, core: u32) -> Surroundings {
        let conditions = Conditions {
            platform: &self.case.platform,
            limits: &self.case.limits,
            shared: &|a, b| self.case.shared(a, b),
        };
        surroundings(
            ProfiledSet::new(&self.case.set, &self.profiles),
            core,
            conditions,
        )
    }

    /// What is proved of the tasks of a core, had its jobs no deadline.
    pub fn answers(&self, core: u32) -> Vec<Answer> {
        let mut patient = self.case.set.clone();
        for release in patient.tasks.iter_mut().filter_map(|t| t.release.as_mut()) {
            release.deadline = Time(release.period.0 * 1000);
        }
        let tasks = ProfiledSet::new(&patient, &self.profiles);
        analyse(tasks, core, &self.around(core))
    }

    /// The longest response of a task that was played, ps; that of a missed job is at least its
    /// deadline, that of one that had not ended at least what was played of it. `None`: it had
    /// no job.
    pub fn longest(&self, task: usize) -> Option<u64> {
        let timeline = &self.played.timeline;
        let end = |job: &Job| match job.end {
            End::Completed(at) => at,
            End::Missed => job.deadline_ps.unwrap_or(timeline.end_ps),
            End::Open => timeline.end_ps,
        };
        let jobs = timeline.jobs.iter().filter(|j| j.task == task);
        jobs.map(|job| end(job) - job.release_ps).max()
    }
}

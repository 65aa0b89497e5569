//! A stage: programs seated on the cores of a machine, their pages placed by a policy,
//! their bandwidth regulated. Playing it runs the memory system, and nothing else does.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use soloist_core::{ColorSet, Refusal, Regulation, Reservation};
use soloist_memory::core::{CoreStats, Stream};
use soloist_memory::system::{Governor, RunError};
use soloist_memory::{Platform, System};

use crate::governor::{Counts, Guard, Regulated};
use crate::place::{colors, place, Placed, Touches};
use crate::placement::memory::Exhausted;
use crate::placement::FreeMemory;
use crate::policy::Policy;
use crate::programs::Program;
use crate::regulation::{Governing, Watch};
use crate::thread::{Pages, Thread, PAGE_SHIFT};

/// A play: who does what where, by which rules.
pub struct Stage<'a> {
    /// The machine.
    pub platform: &'a Platform,
    /// Who plays. Threads of a program follow each other.
    pub seats: Vec<Seat>,
    /// Where pages come from, and what each core may have.
    pub policy: &'a dyn Policy,
    /// What holds cores back.
    pub regulator: Regulator,
    /// Free memory before it begins.
    pub memory: FreeMemory,
    /// Who touches a new page when.
    pub touches: Touches,
    /// Every wait gets a cause and a culprit; halves the speed.
    pub account: bool,
    /// Draws what is left to chance of the placement.
    pub seed: u64,
}

/// A program, or a thread of one, on its core.
pub struct Seat {
    /// What it does.
    pub program: Box<dyn Program>,
    /// The core that it plays on.
    pub core: usize,
    /// Its number among the threads of its program.
    pub thread: usize,
    /// Whose colours it has: owners are numbered in the order of their first seats.
    pub owner: usize,
    /// Seats of one group meet at barriers.
    pub group: usize,
    /// It plays for as long as the others do.
    pub background: bool,
    /// If not, only its pages are there.
    pub plays: bool,
    /// The cpu that touches its memory first.
    pub first_touch: u32,
    /// Its pages come from this node only.
    pub node: Option<u32>,
    /// Bank sets that a policy of private ones gives it.
    pub sets: u32,
    /// Page by page, the frame where it stays whatever the policy; shorter than its
    /// memory: the rest has none.
    pub stay: Vec<Option<u32>>,
}

/// What holds cores back.
#[derive(Debug, Clone)]
pub enum Regulator {
    /// What the policy says.
    ByPolicy,
    /// Nobody is held; it is counted what each core does.
    Counting {
        /// Length of a period, microseconds.
        period_us: u32,
    },
    /// MemGuard, by core.
    Reserving {
        /// The settings.
        settings: Regulation,
        /// What each core reserves; `None`: it is not regulated.
        reservations: Vec<Option<Reservation>>,
        /// Only cores that share banks are charged to each other.
        per_bank: bool,
    },
}

/// What came of it.
pub struct Played {
    /// What each core did.
    pub cores: Vec<CoreStats>,
    /// What came of each seat, in their order.
    pub seats: Vec<SeatResult>,
    /// What was counted of each core, where a regulator counts.
    pub regulated: Option<Vec<Regulated>>,
}

/// What came of a seat.
pub struct SeatResult {
    /// Loads and stores from its first mark on.
    pub accesses: u64,
    /// Instructions from its first mark on.
    pub instructions: u64,
    /// Of its own pages, those that came out of its colours.
    pub spilled: u64,
    /// Share of its pages that lie on another node than its core, per cent.
    pub remote: f64,
    /// The frame of each of its pages.
    pub frames: Vec<u32>,
}

/// Why a stage can't be played.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The machine has not enough colours for the policy.
    #[error(transparent)]
    Colors(Refusal),
    /// A seat's colours or node ran out of pages.
    #[error("{source}")]
    Memory {
        /// The seat.
        seat: usize,
        /// Bytes that its program wants.
        bytes: u64,
        /// How far it came.
        source: Exhausted,
    },
    /// The regulator refused a reservation or a setting.
    #[error(transparent)]
    Regulator(Refusal),
    /// The model refused.
    #[error(transparent)]
    Model(#[from] RunError),
}

/// The programs that share a core.
pub struct Cast {
    /// The core.
    pub core: usize,
    /// Seat, program and pages of each.
    pub programs: Vec<(usize, Box<dyn Program>, Pages)>,
    /// What the regulator sees of the core.
    pub counts: Arc<Counts>,
}

/// When each core was held back: since when and until when, picoseconds.
pub type Stops = Vec<Vec<(u64, u64)>>;

/// What is put on a core.
struct OnCore {
    core: usize,
    stream: Box<dyn Stream + Send>,
    group: usize,
    background: bool,
}

impl Seat {
    /// A program that is waited for, on `core`, with pages of its own; the only one.
    #[must_use]
    pub fn new(program: Box<dyn Program>, core: usize) -> Self {
        Self {
            program,
            core,
            thread: 0,
            owner: 0,
            group: 0,
            background: false,
            plays: true,
            first_touch: core as u32,
            node: None,
            sets: 1,
            stay: Vec::new(),
        }
    }

    pub(crate) fn stays(&self, page: u64) -> Option<u32> {
        self.stay.get(page as usize).copied().flatten()
    }
}

impl<'a> Stage<'a> {
    /// Seats on a machine that has just booted, regulated by the policy alone; pages are
    /// touched in an order that is drawn.
    #[must_use]
    pub fn new(
        platform: &'a Platform,
        policy: &'a dyn Policy,
        seats: Vec<Seat>,
        seed: u64,
    ) -> Self {
        Self {
            platform,
            seats,
            policy,
            regulator: Regulator::ByPolicy,
            memory: FreeMemory::FRESH,
            touches: Touches::Drawn,
            account: false,
            seed,
        }
    }

    /// Plays it, each seat alone on its core.
    ///
    /// # Errors
    /// As [`StageError`].
    pub fn play(self) -> Result<Played, StageError> {
        let ready = Ready::new(&self)?;
        let (mut governor, partition) = (ready.governor(&self)?, ready.ways(&self));
        let mut seats = Vec::new();
        let mut streams = Vec::new();
        for (seat, placed) in self.seats.into_iter().zip(ready.placed) {
            let counts = ready.counts[seat.core].clone().unwrap_or_default();
            seats.push((seat.core, Arc::clone(&counts), placed.clone()));
            if seat.plays {
                let pages = Pages::new(placed.frames);
                streams.push(OnCore {
                    core: seat.core,
                    stream: Box::new(Thread::new(seat.program, pages, counts)),
                    group: seat.group,
                    background: seat.background,
                });
            }
        }
        let cores = run(
            self.platform,
            streams,
            self.account,
            partition,
            &mut governor,
        )?;
        let ends: Vec<u64> = cores.iter().map(|s| s.finished_ps).collect();
        Ok(Played {
            seats: seats
                .into_iter()
                .map(|(core, counts, placed)| result(self.platform, core, &counts, placed))
                .collect(),
            regulated: governor.counts(&ends),
            cores,
        })
    }

    /// Plays it where several seats may share a core: `share` makes of the programs of a
    /// core what it runs. `moved` is told of each line that a core moves.
    ///
    /// # Errors
    /// As [`StageError`].
    pub fn play_shared(
        self,
        moved: &Arc<Vec<AtomicU64>>,
        mut share: impl FnMut(Cast) -> Box<dyn Stream + Send>,
    ) -> Result<(Vec<CoreStats>, Stops), StageError> {
        let ready = Ready::new(&self)?;
        let (governor, partition) = (ready.governor(&self)?, ready.ways(&self));
        let mut casts: Vec<Cast> = Vec::new();
        let placed = self.seats.into_iter().zip(ready.placed).enumerate();
        for (i, (seat, placed)) in placed {
            let program = (i, seat.program, Pages::new(placed.frames));
            match casts.iter_mut().find(|cast| cast.core == seat.core) {
                Some(cast) => cast.programs.push(program),
                None => casts.push(Cast {
                    core: seat.core,
                    programs: vec![program],
                    counts: ready.counts[seat.core].clone().unwrap_or_default(),
                }),
            }
        }
        casts.sort_by_key(|cast| cast.core);
        let stream = |cast: Cast| OnCore {
            core: cast.core,
            stream: share(cast),
            group: 0,
            background: false,
        };
        let streams = casts.into_iter().map(stream).collect();
        let mut watch = Watch::new(governor, Arc::clone(moved));
        let cores = run(self.platform, streams, self.account, partition, &mut watch)?;
        Ok((cores, watch.stops()))
    }
}

/// What is settled before the memory system begins.
struct Ready {
    /// By seat.
    colors: Vec<Option<ColorSet>>,
    placed: Vec<Placed>,
    /// What the regulator sees of each core; `None`: nobody plays there.
    counts: Vec<Option<Arc<Counts>>>,
}

impl Ready {
    fn new(stage: &Stage) -> Result<Self, StageError> {
        let colors = colors(stage)?;
        let mut counts = vec![None; stage.platform.node_of_core.len()];
        for seat in stage.seats.iter().filter(|seat| seat.plays) {
            counts[seat.core] = Some(Arc::default());
        }
        Ok(Self {
            placed: place(stage, &colors)?,
            colors,
            counts,
        })
    }

    fn ways(&self, stage: &Stage) -> Option<Vec<usize>> {
        let busy: Vec<usize> = stage.seats.iter().map(|seat| seat.core).collect();
        stage.policy.ways(stage.platform, &busy)
    }

    fn governor(&self, stage: &Stage) -> Result<Governing, StageError> {
        let governing = match &stage.regulator {
            Regulator::ByPolicy => {
                let cores = |background: bool| -> Vec<usize> {
                    let plays = stage.seats.iter().filter(|seat| seat.plays);
                    let some = plays.filter(|seat| seat.background == background);
                    some.map(|seat| seat.core).collect()
                };
                let (front, back) = (cores(false), cores(true));
                let governor = stage.policy.governor(stage.platform, &front, &back);
                governor.map(|governor| governor.map_or(Governing::Free, Governing::Policy))
            }
            Regulator::Counting { period_us } => {
                let guard = Guard::counting(*period_us, self.counts.clone());
                Ok(Governing::Regulator(guard))
            }
            Regulator::Reserving {
                settings,
                reservations,
                per_bank,
            } => {
                let pools = per_bank.then(|| self.pools(stage));
                let counts = self.counts.clone();
                let guard = Guard::regulating(settings, reservations, pools.as_deref(), counts);
                guard.map(Governing::Regulator)
            }
        };
        governing.map_err(StageError::Regulator)
    }

    /// Which cores share banks.
    fn pools(&self, stage: &Stage) -> Vec<u64> {
        let of_seat: Vec<_> = self.colors.iter().map(Option::as_ref).collect();
        let of_seat = soloist_core::pools(&stage.platform.memory.map, &of_seat);
        // A core without a program must be somewhere, and joins nobody.
        let somewhere = of_seat.first().map_or(1, |p| p & p.wrapping_neg());
        let mut pools = vec![somewhere; stage.platform.node_of_core.len()];
        for (seat, of_seat) in stage.seats.iter().zip(of_seat) {
            pools[seat.core] = of_seat;
        }
        pools
    }
}

/// Runs the memory system; here alone.
fn run<G: Governor>(
    platform: &Platform,
    streams: Vec<OnCore>,
    account: bool,
    partition: Option<Vec<usize>>,
    governor: &mut G,
) -> Result<Vec<CoreStats>, RunError> {
    let mut system = System::new(platform);
    for on in streams {
        system.put(on.core, on.stream, on.group, on.background);
    }
    if account {
        system.account();
    }
    if let Some(ways) = &partition {
        system.partition(ways);
    }
    system.run(governor)
}

fn result(platform: &Platform, core: usize, counts: &Counts, placed: Placed) -> SeatResult {
    let home = platform.node_of_core[core] as u32;
    let away = placed.frames.iter();
    let away = away.filter(|&&frame| node_of(platform, frame) != Some(home));
    SeatResult {
        accesses: counts.accesses.load(Ordering::Relaxed),
        instructions: counts.instructions.load(Ordering::Relaxed),
        spilled: placed.spilled,
        remote: 100.0 * away.count() as f64 / placed.frames.len().max(1) as f64,
        frames: placed.frames,
    }
}

fn node_of(platform: &Platform, frame: u32) -> Option<u32> {
    let at = u64::from(frame) << PAGE_SHIFT;
    let mut ranges = platform.memory.map.ranges();
    let range = ranges.find(|range| (range.start..range.end).contains(&at));
    range.map(|range| range.node)
}

//! The one player: a stage's pages are placed, its programs put on their cores, and the
//! memory system runs. Nothing else calls it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use soloist_core::{ColorSet, FRAME_SHIFT};
use soloist_memory::core::{CoreStats, Stream};
use soloist_memory::system::{Guard, RunError};
use soloist_memory::{Platform, System};

use crate::guard::{Counts, ModelGuard};
use crate::place::{colors, place, Placed};
use crate::programs::Program;
use crate::regulation::{StageGuard, Watch};
use crate::stage::{Played, Regulator, SeatResult, Stage, StageError};
use crate::thread::{Pages, Thread};

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

impl Stage<'_> {
    fn kept(&self) -> Kept {
        Kept {
            account: self.account,
            latencies: self.latencies,
        }
    }

    /// Plays it, each seat alone on its core.
    ///
    /// # Errors
    /// As [`StageError`].
    pub fn play(self) -> Result<Played, StageError> {
        let (ready, kept) = (Ready::new(&self)?, self.kept());
        let (mut guard, partition) = (ready.guard(&self)?, ready.ways(&self));
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
        let cores = run(self.platform, streams, kept, partition, &mut guard)?;
        let ends: Vec<u64> = cores.iter().map(|s| s.finished_ps).collect();
        Ok(Played {
            seats: seats
                .into_iter()
                .zip(ready.colors)
                .map(|((core, counts, placed), colors)| SeatResult {
                    accesses: counts.accesses.load(Ordering::Relaxed),
                    instructions: counts.instructions.load(Ordering::Relaxed),
                    spilled: placed.spilled,
                    remote: remote(self.platform, core, &placed.frames),
                    frames: placed.frames,
                    colors,
                })
                .collect(),
            regulated: guard.counts(&ends),
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
        let (ready, kept) = (Ready::new(&self)?, self.kept());
        let (guard, partition) = (ready.guard(&self)?, ready.ways(&self));
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
        let mut watch = Watch::new(guard, Arc::clone(moved));
        let cores = run(self.platform, streams, kept, partition, &mut watch)?;
        Ok((cores, watch.stops()))
    }
}

/// What is kept of each line, as [`Stage`] has it.
struct Kept {
    account: bool,
    latencies: bool,
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

    fn guard(&self, stage: &Stage) -> Result<StageGuard, StageError> {
        let cores = |background: bool| -> Vec<usize> {
            let plays = stage.seats.iter().filter(|seat| seat.plays);
            let some = plays.filter(|seat| seat.background == background);
            some.map(|seat| seat.core).collect()
        };
        let guard = match &stage.regulator {
            Regulator::ByPolicy => {
                let (front, back) = (cores(false), cores(true));
                let guard = stage.policy.guard(stage.platform, &front, &back);
                guard.map(|guard| guard.map_or(StageGuard::Free, StageGuard::Policy))
            }
            Regulator::Limiting(limit) => {
                let guard = ModelGuard::limiting(stage.platform, &cores(true), *limit);
                guard.map(|guard| StageGuard::Policy(Box::new(guard)))
            }
            Regulator::Counting { period_us } => {
                let guard = ModelGuard::counting(*period_us, self.counts.clone());
                Ok(StageGuard::Regulator(guard))
            }
            Regulator::Reserving {
                settings,
                reservations,
                per_bank,
            } => {
                let pools = per_bank.then(|| self.pools(stage));
                let counts = self.counts.clone();
                let guard =
                    ModelGuard::regulating(settings, reservations, pools.as_deref(), counts);
                guard.map(StageGuard::Regulator)
            }
        };
        guard.map_err(StageError::Regulator)
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
fn run<G: Guard>(
    platform: &Platform,
    streams: Vec<OnCore>,
    kept: Kept,
    partition: Option<Vec<usize>>,
    guard: &mut G,
) -> Result<Vec<CoreStats>, RunError> {
    let mut system = System::new(platform);
    for on in streams {
        system.put(on.core, on.stream, on.group, on.background);
    }
    if kept.account {
        system.account();
    }
    if kept.latencies {
        system.latencies();
    }
    if let Some(ways) = &partition {
        system.partition(ways);
    }
    system.run(guard)
}

/// Share of pages that lie on another node than the core, per cent.
fn remote(platform: &Platform, core: usize, frames: &[u32]) -> f64 {
    let home = platform.node_of_core[core] as u32;
    let away = frames.iter();
    let away = away.filter(|&&frame| node_of(platform, frame) != Some(home));
    100.0 * away.count() as f64 / frames.len().max(1) as f64
}

fn node_of(platform: &Platform, frame: u32) -> Option<u32> {
    let at = u64::from(frame) << FRAME_SHIFT;
    let mut ranges = platform.memory.map.ranges();
    let range = ranges.find(|range| (range.start..range.end).contains(&at));
    range.map(|range| range.node)
}

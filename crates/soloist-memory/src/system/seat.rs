//! Cores and what runs on them: who runs, and who waits at a barrier.

use super::flow::{Event, Flow};
use crate::core::{CoreModel, CoreStats, Stream, WindowCore};
use crate::latency::Latencies;
use crate::platform::Platform;

/// Does a core run, and with whom does it meet at barriers?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    AtBarrier,
    /// Or nothing was put on it.
    Finished,
}

/// A core's place in the machine.
pub(super) struct Seat {
    pub core: Box<dyn CoreModel>,
    pub node: usize,
    pub llc: usize,
    /// Fills that the guard holds back.
    pub held: Vec<u32>,
    /// Lines that it gave up while the guard held it back: they keep their room.
    pub given_up: u32,
    state: State,
    group: usize,
    background: bool,
}

/// All cores.
pub(super) struct Seats {
    seats: Vec<Seat>,
    /// Streams that have not ended, but for those in the background.
    running: usize,
}

impl Seats {
    pub fn new(platform: &Platform) -> Self {
        let seat = |core: usize| Seat {
            core: Box::new(WindowCore::new(platform, core)),
            node: platform.node_of_core[core],
            llc: platform.llc_of_core[core],
            held: Vec::new(),
            given_up: 0,
            state: State::Finished,
            group: 0,
            background: false,
        };
        Self {
            seats: (0..platform.node_of_core.len()).map(seat).collect(),
            running: 0,
        }
    }

    /// All cores keep the latencies of their lines.
    pub fn keep_latencies(&mut self) {
        for seat in &mut self.seats {
            seat.core.stats().account.latencies = Some(Latencies::default());
        }
    }

    /// Puts a stream on a core.
    pub fn put(
        &mut self,
        core: usize,
        stream: Box<dyn Stream + Send>,
        group: usize,
        background: bool,
    ) {
        let seat = &mut self.seats[core];
        seat.core.start(stream);
        seat.group = group;
        seat.background = background;
        seat.state = State::Running;
        self.running += usize::from(!background);
    }

    /// Has a stream not ended that is not in the background?
    #[inline]
    pub fn are_running(&self) -> bool {
        self.running > 0
    }

    #[inline]
    pub fn get(&mut self, core: usize) -> &mut Seat {
        &mut self.seats[core]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Seat> {
        self.seats.iter()
    }

    /// The core's stream has ended.
    pub fn finish(&mut self, core: usize, flow: &mut Flow) {
        let seat = &mut self.seats[core];
        flow.now_ps = flow.now_ps.max(seat.core.now_ps());
        seat.state = State::Finished;
        self.running -= usize::from(!seat.background);
        let group = seat.group;
        self.try_barrier(group, flow);
    }

    /// The core has reached its barrier.
    pub fn reach_barrier(&mut self, core: usize, flow: &mut Flow) {
        let seat = &mut self.seats[core];
        seat.state = State::AtBarrier;
        let group = seat.group;
        self.try_barrier(group, flow);
    }

    /// Lets a group pass its barrier once all that still run have reached it.
    fn try_barrier(&mut self, group: usize, flow: &mut Flow) {
        let members = |s: &&Seat| s.group == group && s.state != State::Finished;
        let mut waiting = self.seats.iter().filter(members);
        if waiting.any(|s| s.state == State::Running) {
            return;
        }
        let times = self.seats.iter().filter(members).map(|s| s.core.now_ps());
        let Some(at) = times.max() else { return };
        for (i, seat) in self.seats.iter_mut().enumerate() {
            if seat.group == group && seat.state == State::AtBarrier {
                seat.core.pass_barrier(at);
                seat.state = State::Running;
                flow.events.push(at, Event::Core(i as u32));
            }
        }
    }

    /// What each core did; one that was cut off, up to `now_ps`.
    pub fn stats(&mut self, now_ps: u64) -> Vec<CoreStats> {
        let stats = |seat: &mut Seat| {
            let mut stats = seat.core.stats().clone();
            if seat.state != State::Finished {
                stats.finished_ps = now_ps;
            }
            stats
        };
        self.seats.iter_mut().map(stats).collect()
    }
}

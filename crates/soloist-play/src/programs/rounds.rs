//! Rounds with barriers, as threads of an OpenMP loop have them.

use super::step::{Program, Step};

/// Accesses of a program from its start to its end.
pub fn accesses(program: &mut dyn Program) -> u64 {
    let mut n = 0;
    loop {
        match program.step() {
            Step::Access(_) | Step::Fetch(_) => n += 1,
            Step::Done => return n,
            Step::WriteBack(_) | Step::Until(_) | Step::Barrier | Step::Mark => {}
        }
    }
}

/// A thread's share of a parallel loop: its accesses in even rounds, a barrier
/// behind each (TintMalloc Algorithm 3 measures the idle time there). A round
/// goes on in memory where the one before stopped.
pub struct Rounds {
    body: Box<dyn Program>,
    /// Accesses in all, and made so far.
    total: u64,
    done: u64,
    rounds: u64,
    round: u64,
}

impl Rounds {
    /// Of `body`; `counted`, its like, is used up to see how long it is.
    pub fn new(rounds: u32, mut counted: Box<dyn Program>, body: Box<dyn Program>) -> Self {
        Self {
            total: accesses(counted.as_mut()),
            body,
            done: 0,
            rounds: u64::from(rounds),
            round: 0,
        }
    }
}

impl Program for Rounds {
    fn step(&mut self) -> Step {
        if self.round < self.rounds && self.done >= self.total * (self.round + 1) / self.rounds {
            self.round += 1;
            return Step::Barrier;
        }
        let step = self.body.step();
        self.done += u64::from(matches!(step, Step::Access(_) | Step::Fetch(_)));
        step
    }

    fn bytes(&self) -> u64 {
        self.body.bytes()
    }

    fn moves_on(&self) -> bool {
        self.body.moves_on()
    }

    fn defeats_prefetch(&self) -> bool {
        self.body.defeats_prefetch()
    }

    fn behind_caches(&self) -> bool {
        self.body.behind_caches()
    }

    fn colored(&self, page: u64) -> bool {
        self.body.colored(page)
    }

    fn idle_work(&self) -> u32 {
        self.body.idle_work()
    }
}

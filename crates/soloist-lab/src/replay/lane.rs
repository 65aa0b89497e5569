//! A lane of a recorded program, as a core plays it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use soloist_memory::core::{Access, Step, Stream};
use soloist_record::{Cursor, Kind, Lane, Program, Step as Recorded};

/// How often a lane that waits for another looks whether it may go on, ps.
const LOOK_PS: u64 = 200_000;

/// When each wake of a program took place, ps: once a round.
pub(super) type Wakes = Arc<Mutex<HashMap<u32, Vec<u64>>>>;

/// Plays a lane at the pages' new places.
pub(super) struct Player {
    program: Arc<Program>,
    lane: Lane,
    cursor: Cursor,
    /// Physical address of each page.
    frames: Arc<[u64]>,
    /// Begins again at its end.
    endless: bool,
    /// The step before was a fetch: what follows waits for it.
    fetched: bool,
    /// Of all lanes of the program.
    wakes: Wakes,
    /// A wake that it waits for.
    waits: Option<u32>,
    /// How often it has begun again.
    round: usize,
}

impl Player {
    pub(super) fn new(
        program: &Arc<Program>,
        lane: Lane,
        frames: &Arc<[u64]>,
        endless: bool,
        wakes: &Wakes,
    ) -> Self {
        Self {
            program: Arc::clone(program),
            lane,
            cursor: Cursor::default(),
            frames: Arc::clone(frames),
            endless,
            fetched: false,
            wakes: Arc::clone(wakes),
            waits: None,
            round: 0,
        }
    }

    fn wakes(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Vec<u64>>> {
        self.wakes.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Until when it sleeps since its wake has not come, or came later than now.
    fn held(&mut self, now_ps: u64) -> Option<u64> {
        let id = self.waits?;
        let came = self
            .wakes()
            .get(&id)
            .and_then(|at| at.get(self.round))
            .copied();
        let until = came.unwrap_or(now_ps + LOOK_PS);
        if came.is_some() {
            self.waits = None;
        }
        (until > now_ps).then_some(until)
    }

    fn next(&mut self) -> Option<Recorded> {
        let step = self.program.next(&self.lane, &mut self.cursor);
        if step.is_none() && self.endless {
            self.cursor = Cursor::default();
            self.round += 1;
            return self.program.next(&self.lane, &mut self.cursor);
        }
        step
    }
}

impl Stream for Player {
    fn step(&mut self) -> Step {
        self.step_at(0)
    }

    fn step_at(&mut self, now_ps: u64) -> Step {
        loop {
            if let Some(until) = self.held(now_ps) {
                return Step::Until(until);
            }
            let access = match self.next() {
                None => return Step::Done,
                Some(Recorded::Mark(_)) => continue,
                Some(Recorded::Wake(id)) => {
                    self.wakes().entry(id).or_default().push(now_ps);
                    continue;
                }
                Some(Recorded::Wait(id)) => {
                    self.waits = Some(id);
                    continue;
                }
                Some(Recorded::Access(access)) => access,
            };
            let addr = self.frames[access.page as usize] + (u64::from(access.line) << 6);
            if access.kind == Kind::WriteBack {
                return Step::WriteBack(addr);
            }
            let dependent = access.dependent || self.fetched;
            self.fetched = access.kind == Kind::Fetch;
            return Step::Access(Access {
                work: access.work.saturating_sub(1),
                addr,
                write: access.kind == Kind::Write,
                dependent,
            });
        }
    }

    fn behind_caches(&self) -> bool {
        true
    }
}

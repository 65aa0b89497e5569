//! A lane of a recorded program, as a core plays it.

use std::sync::Arc;

use soloist_memory::core::{Access, Step, Stream};
use soloist_record::{Cursor, Kind, Lane, Program, Step as Recorded};

use crate::programs::order::{Turn, Wakes};

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
    /// Among the lanes of the program.
    turn: Turn,
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
            turn: Turn::new(wakes),
        }
    }

    fn next(&mut self) -> Option<Recorded> {
        let step = self.program.next(&self.lane, &mut self.cursor);
        if step.is_none() && self.endless {
            self.cursor = Cursor::default();
            self.turn.again();
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
            if let Some(until) = self.turn.held(now_ps) {
                return Step::Until(until);
            }
            let access = match self.next() {
                None => return Step::Done,
                Some(Recorded::Mark(_)) => continue,
                Some(Recorded::Wake(id)) => {
                    self.turn.wake(id, now_ps);
                    continue;
                }
                Some(Recorded::Wait(id)) => {
                    self.turn.wait(id);
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

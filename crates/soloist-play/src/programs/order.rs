//! Threads of a recorded program wait for each other: one that went to sleep on a
//! futex goes on after the wake that ended its sleep, in the order of the recording.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// How often a thread that waits looks whether it may go on, ps.
const LOOK_PS: u64 = 200_000;

/// When each wake of a program took place, ps: once a round.
#[derive(Clone, Default)]
pub struct Wakes(Arc<Mutex<HashMap<u32, Vec<u64>>>>);

impl Wakes {
    fn all(&self) -> MutexGuard<'_, HashMap<u32, Vec<u64>>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A thread's part in it.
pub struct Turn {
    /// Of all threads of the program.
    wakes: Wakes,
    /// A wake that it waits for.
    waits: Option<u32>,
    /// How often it has begun again.
    round: usize,
}

impl Turn {
    /// A thread that waits for nobody yet.
    pub fn new(wakes: &Wakes) -> Self {
        Self {
            wakes: wakes.clone(),
            waits: None,
            round: 0,
        }
    }

    /// It ends another's wait.
    pub fn wake(&self, id: u32, now_ps: u64) {
        self.wakes.all().entry(id).or_default().push(now_ps);
    }

    /// It goes on only after this wake.
    pub fn wait(&mut self, id: u32) {
        self.waits = Some(id);
    }

    /// It begins again.
    pub fn again(&mut self) {
        self.round += 1;
    }

    /// Until when it sleeps since its wake has not come, or came later than now.
    pub fn held(&mut self, now_ps: u64) -> Option<u64> {
        let id = self.waits?;
        let came = self
            .wakes
            .all()
            .get(&id)
            .and_then(|at| at.get(self.round))
            .copied();
        let until = came.unwrap_or(now_ps + LOOK_PS);
        if came.is_some() {
            self.waits = None;
        }
        (until > now_ps).then_some(until)
    }
}

//! What the timing model says of the same scripts on the same slice.

use std::sync::Arc;

use serde::Serialize;
use soloist_bench::cores::moves::Kind;
use soloist_core::FRAME_SIZE;
use soloist_play::policy::Policy;
use soloist_play::programs::step::{Access, Program, Step};
use soloist_play::stage::{Seat, Stage};

use crate::cut::Cut;
use crate::error::SiliconError;
use crate::place::{memory, Terms};
use crate::script::{Op, Script};

/// What the model says of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Modelled {
    /// ns of a line alone, what is computed included.
    pub alone_ns: f64,
    /// The same beside the neighbours.
    pub beside_ns: f64,
    /// Time beside over time alone.
    pub slowdown: f64,
    /// 99th percentile of a read alone, ns.
    pub p99_alone_ns: f64,
    /// The same beside the neighbours.
    pub p99_beside_ns: f64,
}

/// A script, played step by step.
struct Player {
    script: Arc<Script>,
    pages: u64,
    next: usize,
    endless: bool,
    instruction_fs: u64,
    /// Computed, and not yet told, ps.
    gap_ps: u64,
    /// A changed line that leaves the caches.
    changed: Option<u64>,
}

impl Player {
    fn at(op: &Op) -> u64 {
        u64::from(op.page) * FRAME_SIZE + (u64::from(op.line) << 6)
    }
}

impl Program for Player {
    fn step(&mut self) -> Step {
        if let Some(at) = self.changed.take() {
            return Step::WriteBack(at);
        }
        if self.next == self.script.ops.len() && self.endless {
            self.next = 0;
        }
        let Some(op) = self.script.ops.get(self.next) else {
            return Step::Done;
        };
        self.next += 1;
        self.gap_ps += u64::from(op.gap_ps);
        let at = Self::at(op);
        if op.kind == Kind::Write {
            return Step::WriteBack(at);
        }
        let work = self.gap_ps * 1000 / self.instruction_fs.max(1);
        self.gap_ps = 0;
        self.changed = (op.kind == Kind::Change).then_some(at);
        Step::Access(Access {
            work: u32::try_from(work).unwrap_or(u32::MAX),
            at,
            write: op.kind == Kind::Change,
            dependent: op.dependent,
        })
    }

    fn bytes(&self) -> u64 {
        self.pages * FRAME_SIZE
    }

    fn moves_on(&self) -> bool {
        true
    }

    fn behind_caches(&self) -> bool {
        true
    }
}

/// Plays the first script alone, then beside the others, which repeat; pages lie in `frames`.
///
/// # Errors
/// When the model refuses.
pub fn play(
    cut: &Cut,
    policy: &dyn Policy,
    programs: &[(Arc<Script>, Vec<u32>)],
    terms: Terms,
) -> Result<Modelled, SiliconError> {
    let platform = cut.without_cache();
    let lines = programs[0].0.ops.len().max(1) as f64;
    let run = |alone: bool| {
        let seats = programs
            .iter()
            .enumerate()
            .map(|(number, (script, frames))| Seat {
                owner: number,
                background: number > 0,
                plays: number == 0 || !alone,
                stay: frames.iter().map(|&frame| Some(frame)).collect(),
                ..Seat::new(
                    Box::new(Player {
                        script: Arc::clone(script),
                        pages: frames.len() as u64,
                        next: 0,
                        endless: number > 0,
                        instruction_fs: platform.instruction_fs,
                        gap_ps: 0,
                        changed: None,
                    }),
                    number,
                )
            });
        let stage = Stage {
            memory: memory(terms),
            latencies: true,
            ..Stage::new(&platform, policy, seats.collect(), terms.seed)
        };
        let refused = |source| SiliconError::Refused(policy.name().to_owned(), source);
        let played = stage.play().map_err(refused)?;
        let own = &played.cores[0];
        let p99 = own.account.latency_ns().p99;
        Ok::<_, SiliconError>((own.finished_ps as f64 / 1000.0 / lines, p99))
    };
    let (alone_ns, p99_alone_ns) = run(true)?;
    let (beside_ns, p99_beside_ns) = run(false)?;
    Ok(Modelled {
        alone_ns,
        beside_ns,
        slowdown: beside_ns / alone_ns,
        p99_alone_ns,
        p99_beside_ns,
    })
}

//! From a task of a scenario to the generator of its accesses.
//!
//! Only shapes are chosen here, from bytes and work; the generators are in
//! [`soloist_play::programs`].

use soloist_play::programs::chase::PointerChase;
use soloist_play::programs::cluster::StreamCluster;
use soloist_play::programs::counted::Counted;
use soloist_play::programs::counters::Pace;
use soloist_play::programs::images::Images;
use soloist_play::programs::matrix::MatMult;
use soloist_play::programs::order::Wakes;
use soloist_play::programs::recorded::{Playback, Recorded};
use soloist_play::programs::rounds::Rounds;
use soloist_play::programs::slower::Slower;
use soloist_play::programs::sort::IntegerSort;
use soloist_play::programs::stride::{AlternatingStride, Bandwidth};
use soloist_play::programs::swaps::RandomSwaps;
use soloist_play::programs::triad::Triad;
use soloist_play::programs::video::BlockWalk;
use soloist_play::programs::Program;
use soloist_play::programs::ProgramKind;

use crate::cases::CaseTask;

/// Neighbours of an element of the canneal-like net.
const NEIGHBOURS: u32 = 4;
/// Bytes of a row of the video-like frame.
const WIDTH: u64 = 2048;
/// Rows and columns of a block of the blocked multiplication.
const BLOCK: u64 = 32;

/// The generator of `task`; one that runs in the background never ends. `pace`
/// is for programs that are made from counters, `wakes` what threads of a recorded one
/// have in common.
pub fn generator(
    task: &CaseTask,
    pace: Pace,
    line: u64,
    seed: u64,
    wakes: &Wakes,
) -> Box<dyn Program> {
    if let Some(recorded) = task.recorded.as_ref().filter(|_| task.rounds == 0) {
        let lines = if task.background { u64::MAX } else { task.work };
        let thread = task.thread as usize;
        let much = (lines, task.background);
        return Box::new(Playback::of_thread(recorded, thread, much, wakes));
    }
    if task.background {
        return one(task, pace, line, u64::MAX, seed);
    }
    let make = || one(task, pace, line, task.work, seed);
    if task.rounds == 0 {
        return make();
    }
    Box::new(Rounds::new(task.rounds, make(), make()))
}

/// One that no counters make does its work in `instructions` times as many.
fn one(task: &CaseTask, pace: Pace, line: u64, work: u64, seed: u64) -> Box<dyn Program> {
    let program = shaped(task, pace, line, work, seed);
    match task.instructions {
        1.0 => program,
        times => Box::new(Slower::new(program, times)),
    }
}

fn shaped(task: &CaseTask, pace: Pace, line: u64, work: u64, seed: u64) -> Box<dyn Program> {
    if let Some(counters) = task.counters {
        return Box::new(Counted::new(
            (counters, pace),
            (task.bytes, line),
            work,
            seed,
        ));
    }
    if let Some(recorded) = &task.recorded {
        return Box::new(Playback::new(recorded, work, task.background));
    }
    let bytes = task.bytes;
    let stride = if task.stride == 0 { line } else { task.stride };
    let lines = |bytes: u64| (bytes / line).max(1) * line;
    match task.kind {
        ProgramKind::AlternatingStride => {
            Box::new(AlternatingStride::new(bytes.max(4 * stride), stride, work))
        }
        ProgramKind::Latency => Box::new(PointerChase::new(bytes, line, work, seed)),
        ProgramKind::BandwidthRead => {
            Box::new(Bandwidth::new(bytes.max(stride), stride, false, work))
        }
        ProgramKind::BandwidthWrite => {
            Box::new(Bandwidth::new(bytes.max(stride), stride, true, work))
        }
        ProgramKind::Stream => Box::new(Triad::new(lines(bytes / 3), line, work)),
        ProgramKind::Is => Box::new(IntegerSort::new(
            lines(bytes / 2),
            lines(bytes / 2),
            line,
            work,
            seed,
        )),
        ProgramKind::Matmult => Box::new(MatMult::new(side(bytes), line, 0, work)),
        ProgramKind::MatmultBlocked => Box::new(MatMult::new(side(bytes), line, BLOCK, work)),
        ProgramKind::Canneal => Box::new(RandomSwaps::new(lines(bytes), NEIGHBOURS, work, seed)),
        ProgramKind::Streamcluster => Box::new(StreamCluster::new(bytes, line, work, seed)),
        ProgramKind::Fps => Box::new(Images::new(bytes, line, work)),
        // `cases` gives every task of these kinds counters, or a recording.
        ProgramKind::Spec | ProgramKind::Program | ProgramKind::Recorded => {
            unreachable!("has counters or a recording")
        }
        ProgramKind::Video => {
            let height = (bytes / 3 / WIDTH / 16).max(1) * 16;
            Box::new(BlockWalk::new(WIDTH, height, work, seed))
        }
    }
}

/// Share of a task's lines that lie dirty in the caches while it runs.
pub fn dirty(task: &CaseTask) -> f64 {
    match task.kind {
        ProgramKind::AlternatingStride | ProgramKind::BandwidthWrite | ProgramKind::Fps => 1.0,
        ProgramKind::Spec | ProgramKind::Program => task.counters.map_or(0.0, |c| c.writes),
        ProgramKind::Recorded => task.recorded.as_ref().map_or(0.0, Recorded::writes),
        ProgramKind::Is => 0.5,
        ProgramKind::Stream | ProgramKind::Video => 1.0 / 3.0,
        ProgramKind::Canneal => 1.0 / 6.0,
        ProgramKind::Latency
        | ProgramKind::BandwidthRead
        | ProgramKind::Matmult
        | ProgramKind::MatmultBlocked
        | ProgramKind::Streamcluster => 0.0,
    }
}

/// Rows of three square matrices of doubles in `bytes`, a multiple of 8.
fn side(bytes: u64) -> u64 {
    ((bytes / 24).isqrt() / 8).max(1) * 8
}

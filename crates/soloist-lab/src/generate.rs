//! From a task of a scenario to the generator of its accesses.
//!
//! Only shapes are chosen here, from bytes and work; the generators are in
//! [`crate::task`].

use crate::images::Images;
use crate::profile::Profiled;
use crate::scenario::{CaseTask, Kind};
use crate::task::{
    AlternatingStride, Bandwidth, BlockWalk, Counted, IntegerSort, MatMult, ParallelLoop,
    PointerChase, RandomSwaps, StreamCluster, Task, Triad,
};

/// Neighbours of an element of the canneal-like net.
const NEIGHBOURS: u32 = 4;
/// Bytes of a row of the video-like frame.
const WIDTH: u64 = 2048;
/// Rows and columns of a block of the blocked multiplication.
const BLOCK: u64 = 32;

/// The generator of `task`; one that runs in the background never ends.
pub fn generator(task: &CaseTask, line: u64, seed: u64) -> Box<dyn Task> {
    if task.background {
        return one(task, line, u64::MAX, seed);
    }
    if task.rounds == 0 {
        return one(task, line, task.work, seed);
    }
    let work = (task.work / u64::from(task.rounds)).max(1);
    let task = task.clone();
    let rounds = task.rounds;
    Box::new(ParallelLoop::new(rounds, move |i| {
        one(&task, line, work, seed.wrapping_add(u64::from(i)))
    }))
}

fn one(task: &CaseTask, line: u64, work: u64, seed: u64) -> Box<dyn Task> {
    let bytes = task.bytes;
    let stride = if task.stride == 0 { line } else { task.stride };
    let lines = |bytes: u64| (bytes / line).max(1) * line;
    match task.kind {
        Kind::AlternatingStride => {
            Box::new(AlternatingStride::new(bytes.max(4 * stride), stride, work))
        }
        Kind::Latency => Box::new(PointerChase::new(bytes, line, work, seed)),
        Kind::BandwidthRead => Box::new(Bandwidth::new(bytes.max(stride), stride, false, work)),
        Kind::BandwidthWrite => Box::new(Bandwidth::new(bytes.max(stride), stride, true, work)),
        Kind::Stream => Box::new(Triad::new(lines(bytes / 3), line, work)),
        Kind::Is => Box::new(IntegerSort::new(
            lines(bytes / 2),
            lines(bytes / 2),
            line,
            work,
            seed,
        )),
        Kind::Matmult => Box::new(MatMult::new(side(bytes), line, 0, work)),
        Kind::MatmultBlocked => Box::new(MatMult::new(side(bytes), line, BLOCK, work)),
        Kind::Canneal => Box::new(RandomSwaps::new(lines(bytes), NEIGHBOURS, work, seed)),
        Kind::Streamcluster => {
            // Points, and 8 bytes of assignment for each line of them.
            let points = lines(bytes * line / (line + 8));
            Box::new(StreamCluster::new(points, line, work))
        }
        // `scenario` gives every task of this kind a profile.
        Kind::Spec => {
            let profile = task.profile.unwrap_or(crate::profile::TABLE_1[0]);
            Box::new(Profiled::new(profile, bytes, profile.misses(work), seed))
        }
        Kind::Fps => Box::new(Images::new(bytes, line, work)),
        Kind::Program => {
            let c = task.counters;
            Box::new(Counted::new(
                (lines(bytes), line),
                (c.ipc, c.mpki),
                c.writes,
                work,
                seed,
            ))
        }
        Kind::Video => {
            let height = (bytes / 3 / WIDTH / 16).max(1) * 16;
            Box::new(BlockWalk::new(WIDTH, height, work, seed))
        }
    }
}

/// Share of a task's lines that lie dirty in the caches while it runs.
pub fn dirty(task: &CaseTask) -> f64 {
    match task.kind {
        // The last two were measured with caches as their initialisation leaves them.
        Kind::AlternatingStride | Kind::BandwidthWrite | Kind::Spec | Kind::Fps => 1.0,
        Kind::Is => 0.5,
        Kind::Stream | Kind::Video => 1.0 / 3.0,
        Kind::Canneal => 1.0 / 6.0,
        Kind::Program => task.counters.writes,
        Kind::Latency
        | Kind::BandwidthRead
        | Kind::Matmult
        | Kind::MatmultBlocked
        | Kind::Streamcluster => 0.0,
    }
}

/// Rows of three square matrices of doubles in `bytes`, a multiple of 8.
fn side(bytes: u64) -> u64 {
    ((bytes / 24).isqrt() / 8).max(1) * 8
}

//! From what a file says of a program to the generator of its accesses.
//!
//! Only shapes are chosen here, from bytes and work; the generators are this file's
//! neighbours.

use super::chase::{PointerChase, Scattered};
use super::cluster::StreamCluster;
use super::counted::Counted;
use super::counters::{Counters, Pace};
use super::images::Images;
use super::kind::ProgramKind;
use super::matrix::MatMult;
use super::order::Wakes;
use super::recorded::{Playback, Recorded, Span};
use super::rounds::Rounds;
use super::slower::Slower;
use super::sort::IntegerSort;
use super::step::Program;
use super::stride::{AlternatingStride, Bandwidth};
use super::swaps::RandomSwaps;
use super::triad::Triad;
use super::video::BlockWalk;

/// Neighbours of an element of the canneal-like net.
const NEIGHBOURS: u32 = 4;
/// Bytes of a row of the video-like frame.
const WIDTH: u64 = 2048;
/// Rows and columns of a block of the blocked multiplication.
const BLOCK: u64 = 32;

/// What a program is made from.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramSpec {
    /// What it does.
    pub kind: ProgramKind,
    /// Bytes of memory.
    pub bytes: u64,
    /// Steps of work; what a step is depends on the kind.
    pub work: u64,
    /// It never ends, whatever its work.
    pub endless: bool,
    /// Bytes from one access to the next; 0: a line.
    pub stride: u64,
    /// Even parts of its work that end with a barrier; 0: none.
    pub rounds: u32,
    /// So many times as many instructions between accesses.
    pub instructions: f64,
    /// What its counters say, of kinds that are made from them.
    pub counters: Option<Counters>,
    /// What it plays, of kind `recorded`.
    pub recorded: Option<Recorded>,
    /// Which of the recorded program's threads it is.
    pub thread: u32,
}

impl ProgramSpec {
    /// A program of this kind: endless, without memory.
    #[must_use]
    pub fn endless(kind: ProgramKind) -> Self {
        Self {
            kind,
            bytes: 0,
            work: 0,
            endless: true,
            stride: 0,
            rounds: 0,
            instructions: 1.0,
            counters: None,
            recorded: None,
            thread: 0,
        }
    }

    /// The generator of its accesses. `pace` is for programs that are made from
    /// counters, `wakes` what the threads of a recorded one have in common; `line` is
    /// the bytes of a line.
    #[must_use]
    pub fn generator(&self, pace: Pace, line: u64, seed: u64, wakes: &Wakes) -> Box<dyn Program> {
        if let Some(recorded) = self.recorded.as_ref().filter(|_| self.rounds == 0) {
            let thread = self.thread as usize;
            return Box::new(Playback::new(recorded, thread, self.span(recorded), wakes));
        }
        if self.endless {
            return self.paced(pace, line, u64::MAX, seed);
        }
        let make = || self.paced(pace, line, self.work, seed);
        if self.rounds == 0 {
            return make();
        }
        Box::new(Rounds::new(self.rounds, make(), make()))
    }

    /// A program of several threads begins with its start, so that all begin together.
    fn span(&self, recorded: &Recorded) -> Span {
        match (self.endless, recorded.threads()) {
            (false, _) => Span::Middle(self.work),
            (true, 1) => Span::EndlessFromMiddle,
            (true, _) => Span::Endless,
        }
    }

    /// Share of its lines that lie dirty in the caches while it runs.
    #[must_use]
    pub fn dirty(&self) -> f64 {
        match self.kind {
            ProgramKind::AlternatingStride
            | ProgramKind::BandwidthWrite
            | ProgramKind::RandomWrite
            | ProgramKind::Fps => 1.0,
            ProgramKind::Spec | ProgramKind::Program => self.counters.map_or(0.0, |c| c.writes),
            ProgramKind::Recorded => self.recorded.as_ref().map_or(0.0, Recorded::writes),
            ProgramKind::Is => 0.5,
            ProgramKind::Stream | ProgramKind::Video => 1.0 / 3.0,
            ProgramKind::Canneal => 1.0 / 6.0,
            ProgramKind::Latency
            | ProgramKind::BandwidthRead
            | ProgramKind::RandomRead
            | ProgramKind::Matmult
            | ProgramKind::MatmultBlocked
            | ProgramKind::Streamcluster => 0.0,
        }
    }

    /// One that no counters make does its work in `instructions` times as many.
    fn paced(&self, pace: Pace, line: u64, work: u64, seed: u64) -> Box<dyn Program> {
        let program = self.shaped(pace, line, work, seed);
        match self.instructions {
            1.0 => program,
            times => Box::new(Slower::new(program, times)),
        }
    }

    fn shaped(&self, pace: Pace, line: u64, work: u64, seed: u64) -> Box<dyn Program> {
        if let Some(counters) = self.counters {
            return Box::new(Counted::new(counters, pace, self.bytes, line, work, seed));
        }
        if let Some(recorded) = &self.recorded {
            let span = match self.endless {
                true => Span::EndlessFromMiddle,
                false => Span::Middle(work),
            };
            return Box::new(Playback::new(recorded, 0, span, &Wakes::default()));
        }
        let bytes = self.bytes;
        let stride = if self.stride == 0 { line } else { self.stride };
        let lines = |bytes: u64| (bytes / line).max(1) * line;
        match self.kind {
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
            ProgramKind::RandomRead => Box::new(Scattered::new(bytes, line, false, work, seed)),
            ProgramKind::RandomWrite => Box::new(Scattered::new(bytes, line, true, work, seed)),
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
            ProgramKind::Canneal => {
                Box::new(RandomSwaps::new(lines(bytes), NEIGHBOURS, work, seed))
            }
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
}

/// Rows of three square matrices of doubles in `bytes`, a multiple of 8.
fn side(bytes: u64) -> u64 {
    ((bytes / 24).isqrt() / 8).max(1) * 8
}

//! The kinds of programs, as files name them.

use serde::{Deserialize, Serialize};

/// What a kind of task does; parameters are beside it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ProgramKind {
    /// [`super::stride::AlternatingStride`].
    AlternatingStride,
    /// [`super::chase::PointerChase`].
    Latency,
    /// [`super::stride::Bandwidth`], loads.
    BandwidthRead,
    /// [`super::stride::Bandwidth`], stores.
    BandwidthWrite,
    /// [`super::chase::Scattered`], loads.
    RandomRead,
    /// [`super::chase::Scattered`], stores.
    RandomWrite,
    /// [`super::triad::Triad`].
    Stream,
    /// [`super::sort::IntegerSort`].
    Is,
    /// [`super::matrix::MatMult`], naive.
    Matmult,
    /// [`super::matrix::MatMult`] in blocks of 32.
    MatmultBlocked,
    /// [`super::swaps::RandomSwaps`].
    Canneal,
    /// [`super::cluster::StreamCluster`].
    Streamcluster,
    /// [`super::video::BlockWalk`].
    Video,
    /// [`super::counted::Counted`], a benchmark of MemGuard's Table 1;
    /// `work` is microseconds alone.
    Spec,
    /// [`super::images::Images`]; `work` is lines.
    Fps,
    /// [`super::counted::Counted`]: a program known by its counters;
    /// `work` is lines from memory.
    Program,
    /// [`super::recorded::Playback`]: a recorded program; `work` is
    /// lines that left its private caches, at most (default: all).
    Recorded,
}

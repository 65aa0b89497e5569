//! Paths between nodes: latency, bandwidth, credits.

use std::collections::VecDeque;

use crate::platform::HopConfig;

/// Bytes of a message without data.
pub(crate) const HEADER: u64 = 8;

/// One direction of the path between two nodes.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    latency_ps: u64,
    fs_per_byte: u64,
    free_ps: u64,
    credits: u32,
    /// Requests that wait for a credit.
    waiting: VecDeque<u32>,
}

impl Path {
    pub fn new(hop: &HopConfig) -> Self {
        Self {
            latency_ps: hop.latency_ps,
            fs_per_byte: 1_000_000_000 / hop.bytes_per_us,
            free_ps: 0,
            credits: hop.credits,
            waiting: VecDeque::new(),
        }
    }

    /// A wire with bandwidth but neither latency nor credits.
    pub fn wire(bytes_per_us: u64) -> Self {
        Self::new(&HopConfig {
            latency_ps: 0,
            bytes_per_us,
            credits: u32::MAX,
        })
    }

    /// Sends `bytes` at `now`; returns when the last of them arrives.
    pub fn send(&mut self, now: u64, bytes: u64) -> u64 {
        self.free_ps = self.free_ps.max(now) + bytes * self.fs_per_byte / 1000;
        self.free_ps + self.latency_ps
    }

    /// Takes a credit for `request`, or lets it wait for one.
    pub fn admit(&mut self, request: u32) -> bool {
        if self.credits == 0 {
            self.waiting.push_back(request);
            return false;
        }
        self.credits -= 1;
        true
    }

    /// Gives a credit back; returns the request that takes it, if one waits.
    pub fn release(&mut self) -> Option<u32> {
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.credits += 1;
        }
        next
    }
}

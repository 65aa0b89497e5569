//! Where timings come from: real memory or a simulated one.

pub mod cpu;
pub mod hardware;
pub mod noise;
pub mod one_bank;
pub mod pool;
pub mod sim;
pub mod streams;

use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use soloist_machine::RamRange;

use crate::timing::pool::Pool;
use soloist_map::sources::bridge::Lifted;

/// What the addresses of a source mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addresses {
    /// Physical addresses.
    Physical,
    /// Only the bits below `page_shift` are the physical ones; the bits above
    /// number the pages that the source holds.
    InsidePages {
        /// log2 of the page size.
        page_shift: u32,
    },
}

/// Times pairs of accesses. Nothing else in the detector touches memory.
pub trait TimingSource {
    /// The memory to look at.
    fn ranges(&self) -> Vec<RamRange>;

    /// What its addresses mean.
    fn addresses(&self) -> Addresses;

    /// Memory that, as the host says, lies elsewhere than its address says; measurements must
    /// agree.
    fn lifted(&self) -> Option<Lifted> {
        None
    }

    /// The pages that can be measured.
    fn pool(&self) -> &Pool;

    /// The clock that deadlines are of.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Takes more pages of `range` into the pool, where there are some.
    fn fetch(&mut self, _range: &RamRange) {}

    /// A random line of the pool inside `range`; `None` when it holds none
    /// there.
    fn random(&self, range: &RamRange, rng: &mut ChaCha8Rng) -> Option<u64> {
        self.pool().random(range, rng)
    }

    /// Whether the pool holds the line at `address`.
    fn has(&self, address: u64) -> bool {
        self.pool().has(address)
    }

    /// Time of accessing `a` and `b` in turn, both from memory, in the
    /// source's unit. Larger when they lie in different rows of one bank.
    fn sample(&mut self, a: u64, b: u64) -> u32;

    /// Time in which several streams at once read all these lines from memory,
    /// in a unit of its own; `None` where that can't be had.
    fn stream(&mut self, _lines: &[u64]) -> Option<f64> {
        None
    }

    /// Whether nothing but memory can make `a` and `b` slow together. Pairs
    /// that another part of the hardware slows are left out everywhere.
    fn is_fair(&self, _a: u64, _b: u64) -> bool {
        true
    }

    /// The address of a page of the source as the running kernel numbers it,
    /// where [`Addresses::InsidePages`] is no more than that because the
    /// kernel runs in a virtual machine.
    fn guest_address(&self, _page: u64) -> Option<u64> {
        None
    }

    /// log2 of a page as the kernel has it: what can be coloured apart.
    fn frame_shift(&self) -> u32 {
        12
    }

    /// log2 of the cache line.
    fn line_shift(&self) -> u32 {
        6
    }
}

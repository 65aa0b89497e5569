//! Reads beside a loop that writes lines and gives each back at once, as a store and a flush do.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

use soloist_memory::cache::Shape;
use soloist_memory::core::{Access, CoreStats, Step, Stream};
use soloist_memory::system::Free;
use soloist_memory::{Platform, System};

const READS: u64 = 300;

/// Goes to random lines, behind all caches.
struct Jump {
    writes: bool,
    at: u64,
    left: u64,
    changed: Option<u64>,
}

impl Jump {
    fn new(writes: bool, left: u64) -> Self {
        Self {
            writes,
            at: u64::from(writes) << 32,
            left,
            changed: None,
        }
    }
}

impl Stream for Jump {
    fn step(&mut self) -> Step {
        if let Some(addr) = self.changed.take() {
            return Step::WriteBack(addr);
        }
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        self.at += 1;
        let addr = self.at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40 << 6;
        self.changed = self.writes.then_some(addr);
        Step::Access(Access {
            work: 0,
            addr,
            write: self.writes,
            dependent: !self.writes,
        })
    }

    fn behind_caches(&self) -> bool {
        true
    }
}

/// What the first of `streams` did; the others repeat for as long as it runs.
fn play(machine: &str, streams: Vec<Jump>) -> CoreStats {
    let mut platform = Platform::find(machine).unwrap();
    platform.llc.shape = Shape::NONE;
    let mut system = System::new(&platform);
    for (core, stream) in streams.into_iter().enumerate() {
        system.put(core, Box::new(stream), core, core > 0);
    }
    system.run(&mut Free).unwrap().swap_remove(0)
}

/// Memory has to give the line first, though it is given back before it is there.
#[test]
fn a_line_that_is_given_up_on_its_way_is_read_all_the_same() {
    let read = play("skylake", vec![Jump::new(false, 1)]);
    let written = play("skylake", vec![Jump::new(true, 1)]);
    let [read, took] = [&read, &written].map(|stats| stats.finished_ps);
    assert!(took >= read, "{took} ps; a read takes {read}");
    assert_eq!((written.llc_misses, written.write_backs), (1, 1));
}

/// Else its reads came from the write buffer, so nothing held up its writes, and a drain did not
/// end before they did.
#[test]
fn a_loop_that_writes_starves_no_reads() {
    for machine in ["skylake", "zen2"] {
        let alone = play(machine, vec![Jump::new(false, READS)]).finished_ps;
        let reads = Jump::new(false, READS);
        let beside = play(machine, vec![reads, Jump::new(true, u64::MAX)]).finished_ps;
        let slowdown = beside as f64 / alone as f64;
        assert!(slowdown < 4.0, "{machine}: {slowdown}");
    }
}

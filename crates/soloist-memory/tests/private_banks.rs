//! A pointer chase beside three that read: on silicon private banks were never worse than shared
//! ones. Where a stream starves the other rank, they are.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

use soloist_memory::core::{Access, Step, Stream};
use soloist_memory::system::Free;
use soloist_memory::{Platform, System};

/// Goes over its frames: in order, or from one to any other, as data say.
struct Walk {
    frames: Vec<u64>,
    chases: bool,
    at: u64,
    left: u64,
}

impl Stream for Walk {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        self.at += 1;
        let lines = self.frames.len() as u64 * 64;
        let line = match self.chases {
            true => (self.at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % lines,
            false => self.at % lines,
        };
        Step::Access(Access {
            work: if self.chases { 0 } else { 8 },
            addr: self.frames[(line / 64) as usize] << 12 | line % 64 << 6,
            write: false,
            dependent: self.chases,
        })
    }
}

/// Nanoseconds of an access of the chase.
fn latency(platform: &Platform, is_private: bool) -> f64 {
    let map = &platform.memory.map;
    let mut system = System::new(platform);
    for core in 0..4 {
        let set = |frame: u64| map.color_of_frame(frame).unwrap().bank_set;
        let first = (core as u64) << 16;
        let own = |frame: &u64| {
            !is_private || set(*frame) as usize * 4 / map.n_bank_sets() as usize == core
        };
        let frames = (first..).filter(own).take(12_000).collect();
        let walk = Walk {
            frames,
            chases: core == 0,
            at: 0,
            left: if core == 0 { 1500 } else { u64::MAX },
        };
        system.put(core, Box::new(walk), core, core > 0);
    }
    let stats = system.run(&mut Free).unwrap();
    stats[0].finished_ps as f64 / 1.5e6
}

#[test]
fn private_banks_beside_readers_are_no_worse() {
    let of = |machine: &str, rank_cap: u32| {
        let changes = format!("controller.rank_cap = {rank_cap}");
        let platform = Platform::find_changed(machine, &changes.parse().unwrap()).unwrap();
        [false, true].map(|is_private| latency(&platform, is_private))
    };
    for (machine, rank_cap) in [("haswell", 15), ("skylake", 15)] {
        let [linux, private] = of(machine, rank_cap);
        assert!(private < 1.1 * linux, "{machine}: {linux} {private}");
        let [linux, starved] = of(machine, 0);
        assert!(starved > 1.2 * linux, "{machine}: {linux} {starved}");
        assert!(starved > 1.5 * private, "{machine}: {private} {starved}");
    }
}

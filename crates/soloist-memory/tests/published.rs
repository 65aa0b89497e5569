//! Machines of after 2011 against what was measured on them and published.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

use soloist_memory::core::{Access, CoreStats, Step, Stream};
use soloist_memory::system::Free;
use soloist_memory::{Platform, System};

/// Accesses that somebody computes.
struct Program<F>(F, u64);

impl<F: FnMut(u64) -> Access> Stream for Program<F> {
    fn step(&mut self) -> Step {
        if self.1 == 0 {
            return Step::Done;
        }
        self.1 -= 1;
        Step::Access((self.0)(self.1))
    }
}

fn run(p: &Platform, cores: usize, n: u64, access: fn(u64, u64) -> Access) -> Vec<CoreStats> {
    let mut system = System::new(p);
    for core in 0..cores {
        let program = move |i| access(core as u64, i);
        system.put(core, Box::new(Program(program, n)), core, false);
    }
    system.run(&mut Free).unwrap()
}

/// Nanoseconds of a load that depends on the one before, at random in 2 GiB.
fn latency(p: &Platform) -> f64 {
    let chase = |_: u64, i: u64| Access {
        work: 0,
        addr: i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33 & !63,
        write: false,
        dependent: true,
    };
    run(p, 1, 20_000, chase)[0].finished_ps as f64 / 20_000.0 / 1000.0
}

/// GB/s of what all cores read one line after the other, each in memory of its
/// own (that of the ninth and later above 4 GiB: there may be a hole below).
fn bandwidth(p: &Platform, cores: usize) -> f64 {
    let walk = |core: u64, i: u64| Access {
        work: 8,
        addr: (core + core / 8 * 8 << 28) + (i << 6),
        write: false,
        dependent: false,
    };
    let n = 100_000;
    let stats = run(p, cores, n, walk);
    let last = stats.iter().map(|s| s.finished_ps).max().unwrap();
    let lines: u64 = stats.iter().map(|s| s.llc_misses).sum();
    lines as f64 * 64.0 / (last as f64 / 1000.0)
}

#[test]
fn latencies_are_what_was_measured() {
    for (name, published) in [
        ("haswell", 67.6),
        ("skylake", 61.5),
        ("zen2", 76.6),
        ("raspberry-pi-4", 136.0),
        ("sapphire-rapids", 114.0),
    ] {
        let p = Platform::find(name).unwrap();
        let ratio = latency(&p) / published;
        assert!(
            (0.97..1.03).contains(&ratio),
            "{name}: {ratio:.3} of {published} ns"
        );
    }
}

/// STREAM on such machines reaches 75 to 90 % of what the channels could carry;
/// reads alone a little more. Of one machine it was published what all cores read.
#[test]
fn all_cores_reach_the_channels_share() {
    for (name, cores, peak) in [
        ("haswell", 4, 25.6),
        ("skylake", 4, 38.4),
        ("zen2", 4, 25.6),
        ("raspberry-pi-4", 4, 12.8),
        ("sapphire-rapids", 32, 307.2),
    ] {
        let p = Platform::find(name).unwrap();
        let (one, all) = (bandwidth(&p, 1), bandwidth(&p, cores));
        let share = all / peak;
        assert!(
            (0.7..1.0).contains(&share),
            "{name}: {all:.1} GB/s of {peak}"
        );
        if name == "sapphire-rapids" {
            let ratio = all / 218.0;
            assert!((0.85..1.15).contains(&ratio), "{ratio:.3} of 218 GB/s");
        }
        assert!(one <= all, "{name}: {one:.1} GB/s alone, {all:.1} together");
    }
}

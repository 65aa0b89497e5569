//! Cores, caches and prefetchers: what a machine's file says of them shows, in
//! the direction that it must.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

use soloist_memory::core::{Access, CoreStats, Step, Stream};
use soloist_memory::system::Free;
use soloist_memory::{Platform, System};

const MACHINE: &str = "opteron-6128";

/// Accesses that somebody computes.
struct Program<F>(F, u64);

impl<F: FnMut(u64) -> Access> Stream for Program<F> {
    fn step(&mut self) -> Step {
        if self.1 == 0 {
            return Step::Done;
        }
        self.1 -= 1;
        Step::Access(self.0(self.1))
    }
}

/// The machine with some of its model changed, as `[memory]` would say it.
fn platform(changes: &str) -> Platform {
    Platform::find_changed(MACHINE, &changes.parse().unwrap()).unwrap()
}

fn load(addr: u64) -> Access {
    Access {
        work: 2,
        addr,
        write: false,
        dependent: false,
    }
}

/// What core 0 does with `n` accesses.
fn alone(
    platform: &Platform,
    n: u64,
    program: impl FnMut(u64) -> Access + Send + 'static,
) -> CoreStats {
    let mut system = System::new(platform);
    system.put(0, Box::new(Program(program, n)), 0, false);
    system.run(&mut Free).unwrap().swap_remove(0)
}

/// A line in memory that nothing has touched, another page each time.
fn scattered(i: u64) -> u64 {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33 & !63
}

#[test]
fn the_prefetcher_hastens_a_walk_and_nothing_else() {
    let (without, with) = (
        platform("core.prefetch = false"),
        platform("core.prefetch = true"),
    );
    let walk = |i: u64| Access {
        dependent: true,
        ..load((10_000 - i) * 64)
    };
    let (slow, quick) = (alone(&without, 10_000, walk), alone(&with, 10_000, walk));
    assert_eq!(slow.prefetches, 0);
    assert!(quick.prefetches > 9000, "{}", quick.prefetches);
    let gain = slow.finished_ps as f64 / quick.finished_ps as f64;
    assert!(gain > 2.0, "{gain}");
    let chase = |i: u64| Access {
        dependent: true,
        ..load(scattered(i))
    };
    assert_eq!(alone(&without, 3000, chase), alone(&with, 3000, chase));
}

#[test]
fn a_prefetched_line_is_fetched_once() {
    let stats = alone(&platform("core.prefetch = true"), 6400, |i| {
        load((6400 - i) * 64)
    });
    assert_eq!(stats.llc_misses, 6400);
}

/// Work beyond the window does not hide a load, and work within it does.
#[test]
fn the_window_bounds_what_hides_a_load() {
    let p = platform("core.window = 72");
    let at = |work| {
        let program = move |i: u64| Access {
            work,
            ..load(scattered(i))
        };
        alone(&p, 2000, program).finished_ps as f64 / 2000.0
    };
    // 0.25 ns an instruction; what one load costs with nothing beside it.
    let chase = |i: u64| Access {
        work: 0,
        dependent: true,
        ..load(scattered(i))
    };
    let latency = alone(&p, 2000, chase).finished_ps as f64 / 2000.0;
    let hidden = 72.0 * 250.0;
    for work in [100, 400, 2000] {
        let expected = f64::from(work + 1) * 250.0 + latency - hidden;
        let ratio = at(work) / expected;
        assert!((0.97..1.03).contains(&ratio), "work {work}: {ratio}");
    }
    // Two loads fit into the window together.
    assert!(at(30) < 0.75 * (31.0 * 250.0 + latency));
}

#[test]
fn every_figure_of_the_core_and_its_node_counts() {
    let stream = |i: u64| load((1 << 28) - i * 64);
    let stores = |i: u64| Access {
        write: true,
        ..load((1 << 28) - i * 64)
    };
    let chase = |i: u64| Access {
        dependent: true,
        ..load(scattered(i))
    };
    let walk = |i: u64| Access {
        dependent: true,
        ..load((1 << 28) - i * 64)
    };
    type Accesses = fn(u64) -> Access;
    let cases: [(&str, &str, Accesses); 14] = [
        ("core.cpi = 0.5", "core.cpi = 20.0", stream),
        ("core.outstanding = 8", "core.outstanding = 2", stream),
        ("core.window = 72", "core.window = 4", stream),
        ("core.store_buffer = 6", "core.store_buffer = 1", stores),
        ("core.prefetch = true", "core.prefetch = false", stream),
        (
            "northbridge.request_ps = 10000",
            "northbridge.request_ps = 30000",
            chase,
        ),
        (
            "northbridge.response_ps = 10000",
            "northbridge.response_ps = 30000",
            chase,
        ),
        (
            "northbridge.bytes_per_us = 14400",
            "northbridge.bytes_per_us = 2000",
            stream,
        ),
        (
            "northbridge.victims = 32",
            "northbridge.victims = 1",
            stores,
        ),
        (
            "controller.page = \"open\"",
            "controller.page = \"closed\"",
            stream,
        ),
        (
            "core = { prefetch = true, prefetch_slots = 8 }",
            "core = { prefetch = true, prefetch_slots = 1 }",
            walk,
        ),
        (
            "core = { prefetch = true, prefetch_distance = 8 }",
            "core = { prefetch = true, prefetch_distance = 1 }",
            walk,
        ),
        (
            "core = { tlb = 0, walk = 0 }",
            "core = { tlb = 1024, walk = 40 }",
            chase,
        ),
        (
            "northbridge = { bytes_per_us = 4000, shared = false }",
            "northbridge = { bytes_per_us = 4000, shared = true }",
            stores,
        ),
    ];
    for (quick, slow, program) in cases {
        // Dirty lines leave the last level once it is full.
        let n = if program(0).write { 120_000 } else { 10_000 };
        let time = |changes| alone(&platform(changes), n, program).finished_ps;
        let (quick_ps, slow_ps) = (time(quick), time(slow));
        assert!(
            slow_ps as f64 > 1.02 * quick_ps as f64,
            "{quick}: {quick_ps} ps, {slow}: {slow_ps} ps"
        );
    }
}

/// Cores of a node share its last level, however the kernel numbers them.
#[test]
fn a_last_level_serves_the_cores_of_its_node() {
    let text = include_str!("../../../machines/opteron-6128.toml").replace(
        "cpus = [\"0-3\", \"4-7\", \"8-11\", \"12-15\"]",
        "cpus = [\"0,4,8,12\", \"1,5,9,13\", \"2,6,10,14\", \"3,7,11,15\"]",
    );
    let file =
        std::env::temp_dir().join(format!("soloist-interleaved-{}.toml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let p = Platform::find(file.to_str().unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    for (core, &llc) in p.llc_of_core.iter().enumerate() {
        assert_eq!(llc, p.node_of_core[core], "core {core}");
    }
    // 4 MiB each: both fit into two last levels, not into one.
    let misses = |second: usize| {
        let mut system = System::new(&p);
        for (core, base) in [(0, 0_u64), (second, 1 << 26)] {
            let walk = move |i: u64| load(base + i % 65_536 * 64);
            system.put(core, Box::new(Program(walk, 4 * 65_536)), core, false);
        }
        let stats = system.run(&mut Free).unwrap();
        stats[0].llc_misses + stats[second].llc_misses
    };
    let (same_node, other_node) = (misses(4), misses(1));
    assert_eq!(other_node, 2 * 65_536);
    assert!(same_node > 2 * other_node, "{same_node} {other_node}");
}

#[test]
fn a_core_sleeps_until_it_is_time() {
    struct Nap(u32);
    impl Stream for Nap {
        fn step(&mut self) -> Step {
            self.0 += 1;
            match self.0 {
                1 => Step::Until(5_000_000),
                2 => Step::Mark,
                3 => Step::Until(1),
                4 => Step::Access(load(64)),
                _ => Step::Done,
            }
        }
    }
    let mut system = System::new(&platform(""));
    system.put(3, Box::new(Nap(0)), 0, false);
    let stats = system.run(&mut Free).unwrap();
    assert_eq!(stats[3].marks_ps, [5_000_000]);
    assert!((5_000_000..5_200_000).contains(&stats[3].finished_ps));
}

/// A list of steps.
struct Steps(std::vec::IntoIter<Step>);

impl Stream for Steps {
    fn step(&mut self) -> Step {
        self.0.next().unwrap_or(Step::Done)
    }
}

fn steps(steps: Vec<Step>) -> CoreStats {
    let mut system = System::new(&platform(""));
    system.put(0, Box::new(Steps(steps.into_iter())), 0, false);
    system.run(&mut Free).unwrap().swap_remove(0)
}

#[test]
fn nothing_goes_on_before_a_fetch_is_here() {
    let run = |step: fn(Access) -> Step| {
        let each = (0..100).map(|i| step(load(scattered(i))));
        steps(each.collect()).finished_ps
    };
    assert!(run(Step::Fetch) > 4 * run(Step::Access));
}

#[test]
fn pages_at_hand_need_no_walk() {
    let p = platform("core = { tlb = 1024, walk = 40 }");
    let pages = |n: u64| move |i: u64| load((i % n) << 12);
    assert_eq!(alone(&p, 10_000, pages(1000)).page_walks, 1000);
    assert!(alone(&p, 10_000, pages(2000)).page_walks > 9000);
    let all = platform("core = { tlb = 0, walk = 0 }");
    assert_eq!(alone(&all, 1000, pages(2000)).page_walks, 0);
    let error = Platform::find_changed(MACHINE, &"core = { tlb = 8, walk = 0 }".parse().unwrap());
    assert!(error.unwrap_err().to_string().contains("walk"));
}

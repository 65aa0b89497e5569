//! Streams that were recorded behind the private caches.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

use soloist_memory::core::{Access, CoreStats, Step, Stream};
use soloist_memory::system::Free;
use soloist_memory::{Platform, System};

struct Steps {
    steps: std::vec::IntoIter<Step>,
    behind: bool,
}

impl Stream for Steps {
    fn step(&mut self) -> Step {
        self.steps.next().unwrap_or(Step::Done)
    }

    fn behind_caches(&self) -> bool {
        self.behind
    }
}

fn run(steps: Vec<Step>, behind: bool) -> CoreStats {
    let platform = Platform::find("opteron-6128").unwrap();
    let mut system = System::new(&platform);
    let steps = Steps {
        steps: steps.into_iter(),
        behind,
    };
    system.put(0, Box::new(steps), 0, false);
    system.run(&mut Free).unwrap().swap_remove(0)
}

fn read(addr: u64) -> Step {
    Step::Access(Access {
        work: 1000,
        addr,
        write: false,
        dependent: true,
    })
}

#[test]
fn the_cores_own_caches_hold_nothing() {
    let twice = vec![read(0), read(64), read(0), read(64)];
    let own = run(twice.clone(), false);
    assert_eq!((own.llc_misses, own.llc_hits), (2, 0));
    assert_eq!(own.private_hits, [2, 0]);
    let behind = run(twice, true);
    assert_eq!((behind.llc_misses, behind.llc_hits), (2, 2));
    assert_eq!(behind.private_hits, [0, 0]);
}

#[test]
fn lines_written_back_fill_the_last_level_and_go_on() {
    let platform = Platform::find("opteron-6128").unwrap();
    let lines = platform.llc.shape.sets * platform.llc.shape.ways as u64;
    // A run ends with its last access, not with its last write-back; it takes the
    // place that is left in the last set.
    let last = (1 << 30) + (platform.llc.shape.sets - 1) * 64;
    let out = |n: u64| {
        let lines = (0..n).map(|i| Step::WriteBack(i * 64));
        lines.chain([read(last)]).collect()
    };
    assert_eq!(run(out(lines - 1), true).write_backs, 0);
    assert_eq!(run(out(lines + 499), true).write_backs, 500);
}

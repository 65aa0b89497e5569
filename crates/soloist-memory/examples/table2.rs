//! CAMC Table 2: one core writes with alternating strides to memory of its own
//! node, one hop away and two hops away. Prints nanoseconds per write.
//!
//! This is the one table on which machine files are calibrated.

use soloist_memory::core::{Access, Step, Stream};
use soloist_memory::system::Free;
use soloist_memory::{Platform, System};

/// Writes to lines at growing distances on alternating sides of a start.
struct AlternatingStride {
    start: u64,
    line: u64,
    next: u64,
    marks: u64,
}

/// Writes per measurement (CAMC 4.2).
const WRITES: u64 = 512 * 1024;

impl Stream for AlternatingStride {
    fn step(&mut self) -> Step {
        let i = self.next;
        if i > 0 && i % WRITES == 0 && self.marks < i / WRITES {
            self.marks += 1;
            return Step::Mark;
        }
        if i == 4 * WRITES {
            return Step::Done;
        }
        self.next += 1;
        let distance = i.div_ceil(2) * self.line;
        Step::Access(Access {
            work: 5,
            addr: if i % 2 == 1 {
                self.start + distance
            } else {
                self.start - distance
            },
            write: true,
            dependent: false,
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let platform = Platform::find("opteron-6128")?;
    let middle = |node: usize| {
        let range = platform
            .memory
            .map
            .ranges()
            .filter(|r| r.node as usize == node);
        range
            .map(|r| r.start + (r.end - r.start) / 2)
            .last()
            .unwrap_or(0)
    };
    let run = |placed: &[(usize, u64)]| {
        let mut system = System::new(&platform);
        for &(core, start) in placed {
            let stream = AlternatingStride {
                start,
                line: 64,
                next: 0,
                marks: 0,
            };
            system.put(core, Box::new(stream), core, false);
        }
        system.run(&mut Free)
    };
    for (what, node) in [("local", 0), ("1 hop", 1), ("2 hops", 2)] {
        let began = std::time::Instant::now();
        let stats = run(&[(1, middle(node))])?;
        let s = &stats[1];
        // Cold caches cause no write-backs: leave out the first quarter.
        let writes = (3 * WRITES) as f64;
        println!(
            "{what}: {:.2} ns a write; fills take {:.1} ns; {} write-backs; {:.1} M writes/s of wall time",
            (s.marks_ps[3] - s.marks_ps[0]) as f64 / 1000.0 / writes,
            s.fill_ps as f64 / 1000.0 / (s.llc_misses as f64),
            s.write_backs,
            4.0 * WRITES as f64 / began.elapsed().as_secs_f64() / 1e6,
        );
    }
    // Four cores of the node, each in banks of its own (by the row bits above
    // the banks, starts are 512 MiB apart, and by core).
    let base = middle(0);
    let placed: Vec<_> = (0..4).map(|c| (c, base + ((c as u64) << 29))).collect();
    let stats = run(&placed)?;
    for s in &stats[..4] {
        println!(
            "4 cores on node 0: {:.2} ns a write",
            (s.marks_ps[3] - s.marks_ps[0]) as f64 / 1000.0 / (3 * WRITES) as f64
        );
    }
    Ok(())
}

//! How many requests a second the model serves, on one core: controllers alone
//! (a stream, random rows, and a new row of one bank every time, on DDR3-1600K),
//! and a whole machine (16 cores of the Opteron that stream; with the latency of
//! each line; and with accounts of who waited for whom, too).
//!
//! `cargo run --release -p soloist-memory --example speed [REQUESTS [NAME]]`:
//! fewer requests, and one of the six alone, for tools that count instructions.

use soloist_memory::core::{Access, Step, Stream};
use soloist_memory::replay::{Replay, Source};
use soloist_memory::system::Free;
use soloist_memory::trace::{Format, Reader};
use soloist_memory::{Machine, Platform, System};

/// Processor time of this thread so far, seconds: other load on the machine
/// does not count.
fn cpu_seconds() -> std::io::Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.map(|ns| ns / 1e9)
        .ok_or_else(|| std::io::Error::other("schedstat has no figure"))
}

/// Loads of one line after the other.
struct Walk {
    at: u64,
    left: u64,
}

impl Stream for Walk {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        self.at += 64;
        Step::Access(Access {
            work: 4,
            addr: self.at,
            write: self.left % 3 == 0,
            dependent: false,
        })
    }
}

/// 16 cores stream through memory of their own node; requests are what the
/// controllers served.
fn whole(name: &str, requests: u64) -> Result<(), Box<dyn std::error::Error>> {
    let platform = Platform::find("opteron-6128")?;
    let mut system = System::new(&platform);
    if name != WHOLE {
        system.latencies();
    }
    if name == ACCOUNTS {
        system.account();
    }
    let firsts = [0, 0x2_2800_0000, 0x4_2800_0000, 0x6_2800_0000];
    for core in 0..16 {
        let walk = Walk {
            at: firsts[core / 4] + ((core as u64 % 4) << 28),
            left: requests / 8,
        };
        system.put(core, Box::new(walk), core, false);
    }
    let start = cpu_seconds()?;
    let stats = system.run(&mut Free)?;
    let requests: u64 = stats.iter().map(|s| s.llc_misses + s.write_backs).sum();
    let rate = requests as f64 / (cpu_seconds()? - start) / 1e6;
    println!(
        "{name:9} {rate:6.2} million requests a second of processor time, {requests} requests"
    );
    Ok(())
}

const WHOLE: &str = "16 cores";
const LATENCIES: &str = "16 cores with latencies";
const ACCOUNTS: &str = "16 cores with accounts";

/// Address of the n-th request.
type Pattern = Box<dyn FnMut(u64) -> u64>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let requests: u64 = args.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let only = args.next();
    let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
    let machine = Machine::find("ddr3-1600k")?;
    let mut x = 1_u64;
    let mut random = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x & 0xffff_ffc0
    };
    let mut patterns: [(&str, Pattern); 3] = [
        ("stream", Box::new(|i| i * 64)),
        ("random", Box::new(move |_| random())),
        ("conflict", Box::new(|i| (i << 16) & 0xffff_ffff)),
    ];
    for (name, address) in patterns.iter_mut().filter(|(name, _)| wanted(name)) {
        let mut text = String::new();
        for i in 0..requests {
            text += &format!("{:#x} READ 0\n", address(i));
        }
        let source = Source {
            reader: Reader::new(text.as_bytes(), name, Format::Dramsim3),
            outstanding: None,
        };
        let start = cpu_seconds()?;
        let report = Replay::new(&machine, vec![source]).run(|_, _| {}, None)?;
        let rate = report.all.requests as f64 / (cpu_seconds()? - start) / 1e6;
        println!("{name:9} {rate:6.2} million requests a second of processor time, trace parsing included");
    }
    for name in [WHOLE, LATENCIES, ACCOUNTS]
        .into_iter()
        .filter(|name| wanted(name))
    {
        whole(name, requests)?;
    }
    Ok(())
}

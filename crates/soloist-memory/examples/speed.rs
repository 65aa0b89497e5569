//! How many requests a second the controller model serves, on one core: a
//! stream, random rows, and a new row of one bank every time, on DDR3-1600K.
//!
//! `cargo run --release -p soloist-memory --example speed`

use soloist_memory::replay::{Replay, Source};
use soloist_memory::trace::{Format, Reader};
use soloist_memory::Machine;

const REQUESTS: u64 = 1_000_000;

/// Processor time of this thread so far, seconds: other load on the machine
/// does not count.
fn cpu_seconds() -> std::io::Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok());
    ns.map(|ns| ns / 1e9)
        .ok_or_else(|| std::io::Error::other("schedstat has no figure"))
}

/// Address of the n-th request.
type Pattern = Box<dyn FnMut(u64) -> u64>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
    for (name, address) in &mut patterns {
        let mut text = String::new();
        for i in 0..REQUESTS {
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
    Ok(())
}

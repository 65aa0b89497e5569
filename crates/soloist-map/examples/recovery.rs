//! Runs the detector on simulated memory many times and counts how often it
//! recovers the map exactly: `recovery [RUNS [NOISE [MACHINE...]]]`, machines by
//! name or by file. The word `invented` for a machine makes a new map for every
//! run instead: 4 to 1024 banks in each layout, XORs of up to eight bits, a DDR5
//! sub-channel over all row bits, two layouts in one range, two nodes with a hole.

use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_map::detect::sim::{Noise, SimPool, SimSource};
use soloist_map::detect::{detect, Options};
use soloist_map::{compare, known, Machine};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let runs: u64 = match args.first() {
        Some(runs) => runs.parse().map_err(|e| format!("RUNS `{runs}`: {e}"))?,
        None => 10,
    };
    let noise: Noise = args.get(1).map_or(Ok(Noise::HIGH), |n| n.parse())?;
    let names: Vec<String> = match args.get(2..) {
        Some(names) if !names.is_empty() => names.to_vec(),
        _ => known::names().map(str::to_owned).collect(),
    };
    for name in names {
        let (mut good, mut slowest, mut samples) = (0, Duration::ZERO, 0);
        for seed in 0..runs {
            let machine = match name.as_str() {
                "invented" => invented(seed),
                file if file.ends_with(".toml") => {
                    let text = std::fs::read_to_string(file)?;
                    Machine::parse(&text, file)?
                }
                name => known::find(name)?,
            };
            let started = Instant::now();
            let mut source = SimSource::new(&machine, SimPool::Everything, noise, seed);
            let options = Options {
                seed,
                // Not to be ended by what else the machine does.
                deadline: Duration::from_secs(600),
                ..Options::default()
            };
            let found = detect(&mut source, &options, &mut |_, _| {});
            slowest = slowest.max(started.elapsed());
            samples += found.samples;
            let verdict = match found.map() {
                Some(map) => compare::differences(&machine.map, &map),
                None => vec!["nothing found".to_owned()],
            };
            if verdict.is_empty() {
                good += 1;
            } else {
                println!("{name} seed {seed}: {}", verdict.join("; "));
                if name == "invented" {
                    println!("{}", machine.map_text());
                }
            }
        }
        println!(
            "{name}: {good} of {runs} exact, slowest {:.2} s, {} samples a run",
            slowest.as_secs_f64(),
            samples / runs.max(1)
        );
    }
    Ok(())
}

/// A machine that nobody built.
fn invented(seed: u64) -> Machine {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x001d_ea00);
    let top = rng.gen_range(31..37);
    let first_row = rng.gen_range(17..20);
    let kind = seed % 4;
    // Two layouts: four banks in the one that has less.
    let count = rng.gen_range(2..=10).max(if kind == 2 { 3 } else { 2 });
    let mut low: Vec<u32> = (if kind == 1 { 7 } else { 6 }..first_row).collect();
    low.shuffle(&mut rng);
    // Every function has a low bit of its own, so that all is invertible.
    let own = low.split_off(low.len() - count.min(low.len() - 2));
    let mut functions: Vec<String> = own
        .iter()
        .map(|own| {
            let width = [0, 1, 1, 2, 3, 7][rng.gen_range(0..6)];
            let mut others: Vec<u32> = low.iter().copied().chain(first_row..top).collect();
            others.shuffle(&mut rng);
            others.truncate(width);
            others.push(*own);
            others.sort_unstable();
            others.dedup();
            join(&others, "^")
        })
        .collect();
    if kind == 1 {
        let rows: Vec<u32> = (first_row..top).collect();
        functions.push(format!("6^{}", join(&rows, "^")));
    }
    low.sort_unstable();
    let layout = |functions: &[String], more: Option<u32>| {
        let mut columns: Vec<u32> = low.iter().copied().chain(more).collect();
        columns.sort_unstable();
        let quoted = |list: Vec<String>| format!("[\"{}\"]", list.join("\", \""));
        let columns = columns.iter().map(u32::to_string).collect();
        format!(
            "bank = {}\nrow = [\"{first_row}-{}\"]\ncolumn = {}\n",
            quoted(functions.to_vec()),
            top - 1,
            quoted(columns)
        )
    };
    let all = layout(&functions, None);
    let size = 1u64 << top;
    let range = |start: u64, end: u64, node: u32, base: u64, more: &str| {
        format!("[[map.range]]\nstart = {start:#x}\nend = {end:#x}\nnode = {node}\nbase = {base:#x}\n{more}\n")
    };
    let (gib3, gib4) = (3 << 30, 4u64 << 30);
    let map = match kind {
        // A bank bit less in the upper half: its own bit is a column there.
        2 => {
            let (half, fewer) = (size / 2, functions.len() - 1);
            let upper = layout(&functions[..fewer], Some(own[fewer]));
            let ranges = range(0, half, 0, 0, "layout = \"a\"")
                + &range(half, size, 0, half, "layout = \"b\"");
            format!("[map.layouts.a]\n{all}\n[map.layouts.b]\n{upper}\n{ranges}")
        }
        3 if size > gib4 => {
            let ranges = range(0, gib3, 0, 0, "")
                + &range(gib4, size + gib4 - gib3, 0, gib3, "")
                + &range(size + gib4 - gib3, 2 * size + gib4 - gib3, 1, 0, "");
            format!("[map]\n{all}\n{ranges}")
        }
        _ => format!("[map]\n{all}\n{}", range(0, size, 0, 0, "")),
    };
    let text = format!(
        "[machine]\nname = \"invented\"\ndescription = \"seed {seed}\"\ntrust = \"synthetic\"\n\n\
         [topology]\nsockets = 1\ncpus = [\"0\", \"1\"]\n\n{map}"
    );
    Machine::parse(&text, "invented.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn join(bits: &[u32], by: &str) -> String {
    let words: Vec<String> = bits.iter().map(u32::to_string).collect();
    words.join(by)
}

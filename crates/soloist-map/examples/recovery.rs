//! Runs the detector on simulated memory, thousands of times, and counts how
//! often it is right, says that it isn't sure, or is wrong and sure.
//!
//! `recovery [RUNS [KEY=VALUE...]]` takes RUNS runs, each with a map, a layout
//! of memory, a pool of pages and a noise of its own, and prints a table by
//! each of them and how often what is said to be certain is so. `map=`,
//! `layout=`, `pool=` and `noise=` keep one of them fixed, `seed=` is the first
//! run, `show=1` prints every run that was wrong.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_machine::{known, Machine};
use soloist_map::compare;
use soloist_map::detect::noise::{Noise, KINDS};
use soloist_map::detect::pool::Limits;
use soloist_map::detect::sim::{SimPool, SimSource};
use soloist_map::detect::{detect, Detected, Options};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How memory lies: as firmware leaves it.
const LAYOUTS: [&str; 6] = ["plain", "gaps", "hole", "hole+gaps", "nodes", "high"];
/// Which pages the kernel gives.
const POOLS: [&str; 5] = ["2M", "2M one piece", "2M of 512M", "1G", "4K"];
/// What the functions are.
const MAPS: [&str; 5] = ["low bits", "wide", "top bits", "sub-channel", "published"];

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let runs: u64 = match args.next() {
        Some(runs) => runs.parse().map_err(|e| format!("RUNS `{runs}`: {e}"))?,
        None => 100,
    };
    let mut fixed = BTreeMap::new();
    for arg in args {
        let (key, value) = arg.split_once('=').ok_or(format!("`{arg}`: KEY=VALUE"))?;
        fixed.insert(key.to_owned(), value.to_owned());
    }
    let first: u64 = fixed.get("seed").map_or(Ok(0), |seed| seed.parse())?;
    let show = fixed.contains_key("show");
    let next = std::sync::atomic::AtomicU64::new(first);
    let table = std::sync::Mutex::new(Table::default());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if seed >= first + runs {
                    return;
                }
                let run = match Run::new(seed, &fixed) {
                    Ok(run) => run,
                    Err(wrong) => {
                        eprintln!("{wrong}");
                        std::process::exit(2);
                    }
                };
                let result = run.go();
                if show && (result.is_wrong() || fixed.get("show").is_some_and(|v| v == "2")) {
                    println!("seed {seed}: {run:?}\n{}", result.story);
                }
                if let Ok(mut table) = table.lock() {
                    table.add(&run, &result);
                    // So that a run that is stopped has told something.
                    if table.runs % 100 == 0 {
                        eprintln!("{table}");
                    }
                }
            });
        }
    });
    if let Ok(table) = table.lock() {
        print!("{table}");
    }
    Ok(())
}

#[derive(Debug)]
struct Run {
    seed: u64,
    map: &'static str,
    layout: &'static str,
    pool: &'static str,
    noise: &'static str,
}

/// What came of it.
struct Came {
    right: bool,
    complete: bool,
    confidence: f64,
    seconds: f64,
    samples: u64,
    story: String,
}

impl Came {
    /// Wrong, and nothing said so.
    fn is_wrong(&self) -> bool {
        self.complete && !self.right
    }
}

impl Run {
    fn new(seed: u64, fixed: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x00c0_ffee);
        let mut pick = |key: &str, all: &[&'static str]| -> Result<&'static str, String> {
            let any = all[rng.gen_range(0..all.len())];
            match fixed.get(key) {
                None => Ok(any),
                Some(name) => all
                    .iter()
                    .find(|known| *known == name)
                    .copied()
                    .ok_or(format!("{key}={name}: expected one of {}", all.join(", "))),
            }
        };
        let kinds: Vec<&'static str> = KINDS.iter().map(|(name, _)| *name).collect();
        Ok(Self {
            seed,
            map: pick("map", &MAPS)?,
            layout: pick("layout", &LAYOUTS)?,
            pool: pick("pool", &POOLS)?,
            noise: pick("noise", &kinds)?,
        })
    }

    fn go(&self) -> Came {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ 0x001d_ea00);
        let machine = self.machine(&mut rng);
        let noise: Noise = self.noise.parse().unwrap_or(Noise::LOW);
        let started = Instant::now();
        let mut source = SimSource::new(&machine, self.sim_pool(), noise, self.seed);
        let options = Options {
            seed: self.seed,
            // Not to be ended by what else the machine does.
            deadline: Duration::from_secs(600),
            ..Options::default()
        };
        let found = detect(&mut source, &options, &mut |_, _| {});
        let wrong = match found.map() {
            Some(map) => compare::differences(&machine.map, &map),
            None => vec!["nothing found".to_owned()],
        };
        Came {
            right: wrong.is_empty(),
            complete: found.is_complete(),
            confidence: found.confidence(),
            seconds: started.elapsed().as_secs_f64(),
            samples: found.samples,
            story: story(&machine, &found, &wrong),
        }
    }

    fn sim_pool(&self) -> SimPool {
        let everywhere = SimPool::everywhere();
        match self.pool {
            "2M one piece" => SimPool {
                scattered: false,
                ..everywhere
            },
            "2M of 512M" => SimPool::one_piece(512 * MIB),
            "1G" => SimPool {
                page_shift: 30,
                limits: Limits {
                    keep: 64 * GIB,
                    most: 64 * GIB,
                },
                ..everywhere
            },
            "4K" => SimPool {
                page_shift: 12,
                limits: Limits {
                    keep: 512 * MIB,
                    most: 2 * GIB,
                },
                ..everywhere
            },
            _ => everywhere,
        }
    }

    fn machine(&self, rng: &mut ChaCha8Rng) -> Machine {
        let top = rng.gen_range(32..37);
        let functions = if self.map == "published" {
            let names = [
                "haswell",
                "ivy-bridge",
                "skylake",
                "zen2",
                "raspberry-pi-4",
                "e3-1230",
            ];
            let name = names[rng.gen_range(0..names.len())];
            let machine = known::find(name).expect("built in");
            let layout = &machine.map.layouts[0];
            let show = |f: u64| soloist_machine::gf2::show(f);
            let banks = layout.bank_functions().into_iter().map(show).collect();
            let rows = layout.row_masks().into_iter().map(show).collect();
            (banks, rows, machine.map.offset_bits(0))
        } else {
            let (banks, rows) = self.functions(rng, top);
            (banks, rows, top)
        };
        let (banks, rows, top) = functions;
        let size = 1u64 << top;
        let mut text = format!(
            "[machine]\nname = \"invented\"\ndescription = \"seed {}\"\ntrust = \"synthetic\"\n\n\
             [topology]\nsockets = 1\ncpus = [\"0\", \"1\"]\n\n[map]\nbank = {}\nrow = {}\ncolumn = {}\n",
            self.seed,
            quoted(&banks),
            quoted(&rows),
            quoted(&columns(&banks, &rows, top)),
        );
        for (start, end, node, base) in self.ranges(size, rng) {
            text += &format!(
                "[[map.range]]\nstart = {start:#x}\nend = {end:#x}\nnode = {node}\nbase = {base:#x}\n"
            );
        }
        Machine::parse(&text, "invented.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    /// Bank and row functions over `top` bits.
    fn functions(&self, rng: &mut ChaCha8Rng, top: u32) -> (Vec<String>, Vec<String>) {
        let count = rng.gen_range(3..=9);
        let first_row = rng.gen_range(17..20);
        let mut low: Vec<u32> = (6..first_row).collect();
        low.shuffle(rng);
        let own: Vec<u32> = low.drain(..count.min(low.len() - 3)).collect();
        let rows: Vec<u32> = (first_row..top).collect();
        let mut row_bits = rows.clone();
        let mut banks: Vec<String> = own
            .iter()
            .map(|own| {
                let mut bits = vec![*own];
                let more = match self.map {
                    "low bits" => rng.gen_range(0..2),
                    "wide" | "sub-channel" => rng.gen_range(1..6),
                    _ => rng.gen_range(0..3),
                };
                let reach = if self.map == "low bits" {
                    first_row + 8
                } else {
                    top
                };
                bits.extend((0..more).map(|_| rng.gen_range(first_row..reach)));
                bits.sort_unstable();
                bits.dedup();
                join(&bits)
            })
            .collect();
        if self.map == "sub-channel" && low.contains(&6) {
            banks.push(join(
                &std::iter::once(6)
                    .chain(rows.iter().copied())
                    .collect::<Vec<_>>(),
            ));
        }
        if self.map == "top bits" {
            // One or two plain bits at the top instead of row bits.
            for _ in 0..rng.gen_range(1..3) {
                if let Some(bit) = row_bits.pop() {
                    banks.push(bit.to_string());
                }
            }
        }
        (banks, row_bits.iter().map(u32::to_string).collect())
    }

    /// Start, end, node, base of each range; `size` is a node's.
    fn ranges(&self, size: u64, rng: &mut ChaCha8Rng) -> Vec<(u64, u64, u32, u64)> {
        let hole = [3 * GIB, 0xd800_0000, 2 * GIB, 0xc000_0000, 0xe000_0000][rng.gen_range(0..5)];
        let with_hole = size > hole && size >= 4 * GIB;
        let holes = |node: u32| {
            let behind = size - hole;
            vec![(0, hole, node, 0), (4 * GIB, 4 * GIB + behind, node, hole)]
        };
        match self.layout {
            "gaps" => gaps(vec![(0, size, 0, 0)], rng),
            "hole" if with_hole => holes(0),
            "hole+gaps" if with_hole => gaps(holes(0), rng),
            "nodes" if with_hole => {
                let mut all = holes(0);
                let end = 4 * GIB + size - hole;
                all.push((end, end + size, 1, 0));
                gaps(all, rng)
            }
            // As on arm64 boards: no memory at address 0.
            "high" => {
                let start = [GIB, 2 * GIB, 32 * GIB][rng.gen_range(0..3)];
                gaps(vec![(start, start + size, 0, 0)], rng)
            }
            _ => vec![(0, size, 0, 0)],
        }
    }
}

/// What firmware keeps for itself: the first MiB, and some MiB here and there,
/// below 4 GiB above all.
fn gaps(ranges: Vec<(u64, u64, u32, u64)>, rng: &mut ChaCha8Rng) -> Vec<(u64, u64, u32, u64)> {
    let mut out = Vec::new();
    for (start, end, node, base) in ranges {
        let mut at = start + if start == 0 { MIB } else { 0 };
        for _ in 0..rng.gen_range(0..4) {
            let room = (end - at).min(4 * GIB);
            let gap = at + rng.gen_range(0..room / MIB) * MIB;
            let size = [64 << 10, MIB, 16 * MIB, 33 * MIB][rng.gen_range(0..4)];
            if gap > at && gap + size < end {
                out.push((at, gap, node, base + (at - start)));
                at = gap + size;
            }
        }
        let kept = rng.gen_range(0..3) * 17 * MIB;
        let last = end - kept.min((end - at) / 2);
        out.push((at, last, node, base + (at - start)));
    }
    out
}

fn columns(banks: &[String], rows: &[String], top: u32) -> Vec<String> {
    use soloist_machine::gf2::Basis;
    let mask = |text: &String| -> u64 {
        let bits = text.split('^').filter_map(|bit| bit.parse::<u32>().ok());
        bits.fold(0, |all, bit| all | 1 << bit)
    };
    let mut known = Basis::of(banks.iter().chain(rows).map(mask));
    (6..top)
        .filter(|&bit| known.insert(1 << bit))
        .map(|bit| bit.to_string())
        .collect()
}

fn quoted(list: &[String]) -> String {
    format!("[\"{}\"]", list.join("\", \""))
}

fn join(bits: &[u32]) -> String {
    let words: Vec<String> = bits.iter().map(u32::to_string).collect();
    words.join("^")
}

fn story(machine: &Machine, found: &Detected, wrong: &[String]) -> String {
    let map = found
        .map()
        .map_or_else(String::new, |map| map.to_text("found"));
    format!(
        "{}\nconfidence {:.3}, complete {}\n{}\nknown:\n{}\nfound:\n{map}",
        wrong.join("\n"),
        found.confidence(),
        found.is_complete(),
        found.notes().join("\n"),
        machine.map_text()
    )
}

/// What came of the runs with one choice.
#[derive(Default, Clone)]
struct Row {
    runs: u32,
    right: u32,
    unsure: u32,
    wrong: u32,
    seconds: Vec<f64>,
    samples: u64,
}

#[derive(Default)]
struct Table {
    runs: u32,
    rows: BTreeMap<(usize, String), Row>,
    /// Runs and right ones, by what was said.
    said: BTreeMap<usize, (u32, u32)>,
}

/// Lower ends of the classes of confidence.
const SAID: [f64; 6] = [0.0, 0.5, 0.9, 0.95, 0.98, 0.99];

impl Table {
    fn add(&mut self, run: &Run, result: &Came) {
        self.runs += 1;
        let keys = [
            ("all", ""),
            ("layout", run.layout),
            ("pool", run.pool),
            ("noise", run.noise),
            ("map", run.map),
        ];
        for (i, (kind, value)) in keys.iter().enumerate() {
            let row = self.rows.entry((i, format!("{kind} {value}"))).or_default();
            row.runs += 1;
            row.right += u32::from(result.right && result.complete);
            row.unsure += u32::from(!result.complete);
            row.wrong += u32::from(result.is_wrong());
            row.seconds.push(result.seconds);
            row.samples += result.samples;
        }
        // What could not be seen is said beside the confidence.
        if result.complete {
            let class = SAID.iter().rposition(|&least| result.confidence >= least);
            let said = self.said.entry(class.unwrap_or(0)).or_default();
            said.0 += 1;
            said.1 += u32::from(result.right);
        }
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "| | runs | right and sure | unsure | wrong and sure | median s | slowest s | samples |")?;
        writeln!(f, "|---|---|---|---|---|---|---|---|")?;
        for ((_, name), row) in &self.rows {
            let mut seconds = row.seconds.clone();
            seconds.sort_unstable_by(f64::total_cmp);
            let last = seconds.len() - 1;
            writeln!(
                f,
                "| {} | {} | {:.1} % | {:.1} % | {} | {:.2} | {:.2} | {} |",
                name.trim(),
                row.runs,
                100.0 * f64::from(row.right) / f64::from(row.runs),
                100.0 * f64::from(row.unsure) / f64::from(row.runs),
                row.wrong,
                seconds[last / 2],
                seconds[last],
                row.samples / u64::from(row.runs)
            )?;
        }
        writeln!(f, "\n| confidence said | runs | right |\n|---|---|---|")?;
        for (class, (runs, right)) in &self.said {
            writeln!(f, "| {:.2} and more | {runs} | {right} |", SAID[*class])?;
        }
        Ok(())
    }
}

//! One run: a random map, layout of memory, pool and noise, and what the
//! detector says of it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_detect::layout::region::Region;
use soloist_detect::timing::noise::{Noise, KINDS};
use soloist_detect::timing::pool::Limits;
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::{detect, Detected, Options};
use soloist_machine::{known, Machine};
use soloist_map::compare;

use super::record::Record;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// How memory lies: as firmware leaves it.
const LAYOUTS: [&str; 8] = [
    "plain",
    "gaps",
    "hole",
    "hole+gaps",
    "nodes",
    "high",
    "remap",
    "remap+gaps",
];
/// First bytes behind the memory of Intel clients of 8, 16 and 32 GiB, as their owners
/// published them.
const TOPS: [u64; 4] = [0x2_1e60_0000, 0x4_1e60_0000, 0x4_4fe0_0000, 0x8_6ff0_0000];
/// Which pages the kernel gives.
const POOLS: [&str; 5] = ["2M", "2M one piece", "2M of 512M", "1G", "4K"];
/// What the functions are.
const MAPS: [&str; 6] = [
    "low bits",
    "wide",
    "top bits",
    "sub-channel",
    "published",
    "division",
];

/// What is run.
#[derive(Debug)]
pub struct Run {
    pub seed: u64,
    pub map: &'static str,
    pub layout: &'static str,
    pub pool: &'static str,
    pub noise: &'static str,
}

impl Run {
    /// The run of a seed, but for what is `fixed`.
    pub fn new(seed: u64, fixed: &BTreeMap<String, String>) -> Result<Self, String> {
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

    /// Runs it: what came of it, and the whole story.
    pub fn go(&self) -> (Record, String) {
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
        let record = Record {
            seed: self.seed,
            map: self.map.into(),
            layout: self.layout.into(),
            pool: self.pool.into(),
            noise: self.noise.into(),
            complete: found.is_complete(),
            right: wrong.is_empty(),
            confidence: found.confidence(),
            seconds: started.elapsed().as_secs_f64(),
            samples: found.samples,
            named: is_division_named(&machine, &found, &mut rng),
        };
        (record, story(&machine, &found, &wrong))
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
        // Channels whose number is no power of two, and what each has.
        let ways = match self.map {
            "division" => [3, 5, 6, 7, 12][rng.gen_range(0..5)],
            _ => 1,
        };
        let granule = 128u64 << rng.gen_range(0..6);
        let top = if ways > 1 { top - 3 } else { top };
        let functions = if self.map == "published" {
            let names = [
                "haswell",
                "ivy-bridge",
                "skylake",
                "zen2",
                "raspberry-pi-4",
                "e3-1230",
                "i7-6700k",
                "core-12th-ddr4",
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
        let size = ways << top;
        let interleave = match ways {
            1 => String::new(),
            _ => format!("interleave = {{ ways = {ways}, granule = {granule} }}\n"),
        };
        let mut text = format!(
            "[machine]\nname = \"invented\"\ndescription = \"seed {}\"\ntrust = \"synthetic\"\n\n\
             [topology]\nsockets = 1\ncpus = [\"0\", \"1\"]\n\n[map]\n{interleave}bank = {}\nrow = {}\ncolumn = {}\n",
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
            "remap" if size >= 4 * GIB => remapped(size, rng),
            "remap+gaps" if size >= 4 * GIB => gaps(remapped(size, rng), rng),
            // As on arm64 boards: no memory at address 0.
            "high" => {
                let start = [GIB, 2 * GIB, 32 * GIB][rng.gen_range(0..3)];
                gaps(vec![(start, start + size, 0, 0)], rng)
            }
            _ => vec![(0, size, 0, 0)],
        }
    }
}

/// Intel's clients: memory lies straight up to REMAPBASE, and what devices hide below
/// 4 GiB lies behind it, all in steps of a MiB. The engine beside the processor has
/// the last of it, graphics the last below the devices.
fn remapped(size: u64, rng: &mut ChaCha8Rng) -> Vec<(u64, u64, u32, u64)> {
    let engine = [0, 1, 8, 16, 23, 32, 64][rng.gen_range(0..7)] * MIB;
    let border = (size - engine).max(4 * GIB);
    let fits = |top: &&u64| (GIB..7 * GIB / 2).contains(&(border + 4 * GIB).wrapping_sub(**top));
    let published: Vec<u64> = TOPS.iter().filter(fits).copied().collect();
    let low = match published.as_slice() {
        tops @ [_, ..] if rng.gen() => border + 4 * GIB - tops[rng.gen_range(0..tops.len())],
        _ => rng.gen_range(GIB / MIB..7 * GIB / 2 / MIB) * MIB,
    };
    let graphics = [0, 8, 41, 136, 264][rng.gen_range(0..5)] * MIB;
    let behind = low.max(4 * GIB).min(size - engine) - low;
    let mut all = vec![(0, low - graphics, 0, 0)];
    if border > 4 * GIB {
        all.push((4 * GIB, border, 0, 4 * GIB));
    }
    all.push((border, border + behind, 0, low));
    all
}

/// What firmware keeps for itself: the first MiB, and some MiB here and there,
/// below 4 GiB above all.
fn gaps(ranges: Vec<(u64, u64, u32, u64)>, rng: &mut ChaCha8Rng) -> Vec<(u64, u64, u32, u64)> {
    let mut out = Vec::new();
    for (start, end, node, base) in ranges {
        let mut at = start + if start == 0 { MIB } else { 0 };
        for _ in 0..rng.gen_range(0..4) {
            let room = (end - at).min(4 * GIB);
            if room < MIB {
                break;
            }
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

/// Whether all of memory was said to have a division, and all lines of a bank
/// are of one way by it; `None` where the map has none. Decoded by core.
fn is_division_named(machine: &Machine, found: &Detected, rng: &mut ChaCha8Rng) -> Option<bool> {
    machine.map.layouts[0].interleave?;
    let map = machine.addr_map();
    let mut holds = |region: &Region| {
        let Some(division) = region.division else {
            return false;
        };
        let mut way_of = BTreeMap::new();
        (0..20_000).all(|_| {
            let range = region.ranges[rng.gen_range(0..region.ranges.len())];
            let line = rng.gen_range(range.start..range.end);
            map.decode(line).map_or(true, |dram| {
                let (way, _) = division.split(line);
                *way_of.entry(dram.color).or_insert(way) == way
            })
        })
    };
    let named = found.regions.iter().all(&mut holds);
    Some(named && !found.regions.is_empty() && found.unsolved.is_empty())
}

fn story(machine: &Machine, found: &Detected, wrong: &[String]) -> String {
    let map = found
        .map()
        .map_or_else(String::new, |map| map.to_text("found"));
    let proofs: Vec<String> = found
        .regions
        .iter()
        .map(|region| format!("{:?} {:?}", region.proof, region.levels))
        .collect();
    format!(
        "{}\nconfidence {:.3}, complete {}\n{}\n{}\nknown:\n{}\nfound:\n{map}",
        wrong.join("\n"),
        found.confidence(),
        found.is_complete(),
        found.notes().join("\n"),
        proofs.join("\n"),
        machine.map_text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The room behind a gap may be less than a MiB, or none.
    #[test]
    fn gaps_leave_ranges_in_order_however_they_fall() {
        for seed in 0..2_000 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let whole = (0, 64 * MIB, 0, 0);
            let ranges = gaps(vec![whole], &mut rng);
            assert!(ranges.iter().all(|(start, end, ..)| start < end), "{seed}");
            assert!(ranges.windows(2).all(|two| two[0].1 < two[1].0), "{seed}");
        }
    }
}

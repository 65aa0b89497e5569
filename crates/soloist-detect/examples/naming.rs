//! Which function is which, on simulated memory, hundreds of times: how often
//! channel, rank and bank group are named, and how often wrongly.
//!
//! `naming [FIRST..END] [show=wrong]` takes a run a seed, each with functions, DRAM,
//! noise and processors of its own.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::iter::{ParallelBridge, ParallelIterator};
use soloist_detect::layout::names::Names;
use soloist_detect::timing::noise::KINDS;
use soloist_detect::timing::sim::{SimPool, SimSource, SimStreams};
use soloist_detect::{detect, Options};
use soloist_machine::dram::Device;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::{Layout, Machine};
use soloist_map::compare;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let (mut seeds, mut show) = (0..100, false);
    for arg in std::env::args().skip(1) {
        match arg.split_once("..") {
            Some((first, end)) => seeds = first.parse()?..end.parse()?,
            None if arg == "show=wrong" => show = true,
            None => return Err(format!("`{arg}`: expected FIRST..END or show=wrong").into()),
        }
    }
    let table: Mutex<BTreeMap<(usize, String), Row>> = Mutex::default();
    seeds.par_bridge().try_for_each(|seed| {
        let (rows, story) = run(seed)?;
        if show && rows.iter().any(|row| row.2 == Told::Wrong) {
            println!("{story}");
        }
        let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
        for (order, name, told) in rows {
            table.entry((order, name)).or_default().add(told);
        }
        Ok::<(), Failure>(())
    })?;
    println!("| | maps with it | said | right | wrong | said of maps without it |");
    println!("|---|---|---|---|---|---|");
    let table = table.into_inner().unwrap_or_else(PoisonError::into_inner);
    for ((_, name), row) in &table {
        println!(
            "| {name} | {} | {} | {} | {} | {} |",
            row.there,
            row.right + row.wrong,
            row.right,
            row.wrong,
            row.invented
        );
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Right,
    Wrong,
    Nothing,
    /// There is none, and none was said.
    Absent,
    Invented,
}

#[derive(Default)]
struct Row {
    there: u32,
    right: u32,
    wrong: u32,
    invented: u32,
}

impl Row {
    fn add(&mut self, told: Told) {
        self.there += u32::from(!matches!(told, Told::Absent | Told::Invented));
        self.right += u32::from(told == Told::Right);
        self.wrong += u32::from(told == Told::Wrong || told == Told::Invented);
        self.invented += u32::from(told == Told::Invented);
    }
}

type Rows = Vec<(usize, String, Told)>;

fn run(seed: u64) -> Result<(Rows, String), Failure> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x0a3e_5000);
    let (machine, device) = machine(seed, &mut rng)?;
    let (kind, mut noise) = KINDS[rng.gen_range(0..KINDS.len())];
    let some = |rng: &mut ChaCha8Rng, most: f64| match rng.gen_bool(0.2) {
        true => 0.0,
        false => rng.gen_range(4.0..most),
    };
    noise.group = some(&mut rng, 20.0);
    noise.rank = some(&mut rng, 14.0);
    let burst = f64::from(Device::find(device, "")?.tccd_s);
    let streams = (!rng.gen_bool(0.1)).then(|| -> Result<SimStreams, Failure> {
        Ok(SimStreams {
            device: Device::find(device, "")?,
            // From plenty for all channels to too little for one.
            least: burst * 2f64.powf(rng.gen_range(-5.0..0.5)),
            sigma: rng.gen_range(0.01..0.08),
        })
    });
    let streams = streams.transpose()?;
    let told = format!(
        "seed {seed}, {device}, {kind}, group {:.1}, rank {:.1}, streams {:?}",
        noise.group,
        noise.rank,
        streams.as_ref().map(|s| (s.least, s.sigma))
    );
    let mut source = SimSource::with_streams(&machine, SimPool::everywhere(), noise, seed, streams);
    let options = Options {
        seed,
        deadline: std::time::Duration::from_secs(600),
        ..Options::default()
    };
    let found = detect(&mut source, &options, &mut |_, _| {});
    let none = Names::default();
    let names = found.regions.first().map_or(&none, |region| &region.names);
    let truth = &machine.map.layouts[0];
    let right = found
        .map()
        .is_some_and(|map| compare::differences(&machine.map, &map).is_empty());
    let mut rows = Rows::new();
    for (order, (kind, told)) in judge(truth, names).into_iter().enumerate() {
        rows.push((order, kind.to_owned(), told));
        rows.push((10 + order, format!("{kind}, {device}"), told));
    }
    let story = format!(
        "{told}\n map right: {right}\n truth: {}\n found: {names:?}",
        show(truth)
    );
    Ok((rows, story))
}

/// Each name: the spaces that it and those before it make must be the truth's.
fn judge(truth: &Layout, names: &Names) -> [(&'static str, Told); 3] {
    let group: Vec<u64> = (truth.bank_group.iter())
        .map(|&bit| truth.bank[usize::from(bit)])
        .collect();
    let parts = [
        ("channel", &truth.channel, &names.channel),
        ("rank", &truth.rank, &names.rank),
        ("bank group", &group, &names.group),
    ];
    let (mut is, mut said) = (Basis::new(), Basis::new());
    parts.map(|(kind, there, name)| {
        let sure = Names::sure(name);
        is.extend(there.iter().copied());
        said.extend(sure.iter().copied());
        let told = match (there.is_empty(), sure.is_empty()) {
            (true, true) => Told::Absent,
            (true, false) => Told::Invented,
            (false, true) => Told::Nothing,
            (false, false) if is == said => Told::Right,
            (false, false) => Told::Wrong,
        };
        (kind, told)
    })
}

fn show(layout: &Layout) -> String {
    let list = |masks: &[u64]| -> Vec<String> { masks.iter().map(|&m| gf2::show(m)).collect() };
    format!(
        "channel {:?} rank {:?} bank {:?} group {:?}",
        list(&layout.channel),
        list(&layout.rank),
        list(&layout.bank),
        layout.bank_group
    )
}

/// A machine of random functions, and its DRAM.
fn machine(seed: u64, rng: &mut ChaCha8Rng) -> Result<(Machine, &'static str), Failure> {
    let (device, groups, banks) = [
        ("ddr3-1600k", 0, 3),
        ("ddr4-2400r", 2, 2),
        ("ddr4-3200aa", 2, 2),
        // Two groups only, as on wide devices.
        ("ddr4-3200aa", 1, 2),
        ("ddr5-4800b", 3, 2),
    ][rng.gen_range(0..5)];
    let channels = rng.gen_range(0..=3usize);
    let ranks = rng.gen_range(0..=1usize);
    let top = rng.gen_range(33..36u32);
    let first_row = rng.gen_range(18..20u32);
    let mut own: Vec<u32> = (6..first_row).collect();
    own.shuffle(rng);
    let mut function = || {
        let mut bits = vec![own.pop().unwrap_or(6)];
        bits.extend((0..rng.gen_range(0..4)).map(|_| rng.gen_range(first_row..top)));
        bits.sort_unstable();
        bits.dedup();
        bits.iter().fold(0u64, |mask, bit| mask | 1 << bit)
    };
    let mut list = |count: usize| -> Vec<u64> { (0..count).map(|_| function()).collect() };
    let layout = Layout {
        channel: list(channels),
        rank: list(ranks),
        bank: list(groups + banks),
        bank_group: (0..groups as u8).collect(),
        row: soloist_machine::function::terms_of(
            &(first_row..top).map(|bit| 1 << bit).collect::<Vec<_>>(),
        ),
        ..Layout::default()
    };
    let mut spec = soloist_machine::MapSpec::single(layout, 1 << top);
    spec.complete(first_row);
    let text = |masks: &[u64]| -> String {
        let all: Vec<String> = masks
            .iter()
            .map(|&m| format!("\"{}\"", gf2::show(m)))
            .collect();
        format!("[{}]", all.join(", "))
    };
    let layout = &spec.layouts[0];
    let columns: Vec<String> = layout
        .column
        .iter()
        .map(|term| format!("\"{}\"", gf2::show(term.mask)))
        .collect();
    let file = format!(
        "[machine]\nname = \"invented\"\ndescription = \"seed {seed}\"\ntrust = \"synthetic\"\n\n\
         [topology]\nsockets = 1\ncpus = [\"0\"]\n\n[map]\nchannel = {}\nrank = {}\nbank = {}\n\
         bank_group = {:?}\nrow = [\"{first_row}-{}\"]\ncolumn = [{}]\n\n[[map.range]]\nstart = 0\nend = {:#x}\n",
        text(&layout.channel),
        text(&layout.rank),
        text(&layout.bank),
        layout.bank_group,
        top - 1,
        columns.join(", "),
        1u64 << top
    );
    Ok((Machine::parse(&file, "invented.toml")?, device))
}

//! Maps from the machine's own firmware: exact, and without timing.
//!
//! Firmware that can say where in DRAM an address lies ([`adxl`]) is asked for
//! a few hundred addresses of every node, the map is solved from the answers
//! ([`crate::solve`]), and then asked for thousands of fresh ones: the map must
//! say the same of each. Answers that it gets wrong are added to those it is
//! solved from, and it is proved anew. Nodes that can't be solved are named,
//! and the others keep their map. What knows the way back only, from a channel
//! to addresses ([`zen`]), is asked for as many.

pub mod adxl;
pub mod channel;
pub mod umc;
pub mod zen;

use std::collections::{BTreeMap, BTreeSet};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::AddrMap;
use soloist_machine::ram::RamRange;
use soloist_machine::MapSpec;

use crate::solve::{solve, Row, Solved};
pub use adxl::{Reader, Values};

/// Addresses of each range to solve from, and to prove by.
const ASKED: usize = 384;
/// Fresh addresses for the proof, at least; of each range as many.
const FRESH: usize = 4096;
/// How often wrong answers are learnt from.
const ROUNDS: usize = 3;

/// What knows of addresses where they lie in DRAM.
pub trait Firmware {
    /// Names of what an address translates to.
    fn components(&self) -> &[String];

    /// Components that it must have.
    fn needed(&self) -> &'static [&'static str];

    /// Whether it was ever seen on such a machine: else no map of it is exact.
    fn is_seen(&self) -> bool {
        true
    }

    /// Lines of memory, about `each` of every range, from anywhere and near ends
    /// at every scale, and what they translate to; `None`: not translated.
    ///
    /// # Errors
    /// In words.
    fn sample(
        &mut self,
        memory: &[RamRange],
        each: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Answers, String>;
}

/// What translates addresses.
pub trait Decoder {
    /// Names of what an address translates to.
    fn components(&self) -> &[String];

    /// What each address translates to; `None`: not translated.
    ///
    /// # Errors
    /// In words.
    fn decode(&mut self, addresses: &[u64]) -> Result<Vec<Option<Values>>, String>;
}

impl<T: Decoder> Firmware for T {
    fn components(&self) -> &[String] {
        Decoder::components(self)
    }

    fn needed(&self) -> &'static [&'static str] {
        &adxl::NEEDED
    }

    fn sample(
        &mut self,
        memory: &[RamRange],
        each: usize,
        rng: &mut ChaCha8Rng,
    ) -> Result<Answers, String> {
        let addresses = lines(memory, each, rng);
        let answers = self.decode(&addresses)?;
        Ok(addresses.into_iter().zip(answers).collect())
    }
}

/// Why firmware gives no map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FirmwareError {
    /// It can't be asked.
    #[error("{0}")]
    Asking(String),
    /// A component is missing.
    #[error("the firmware gives no {0} (it gives {1})")]
    Component(&'static str, String),
    /// No ranges.
    #[error("where memory lies is not known: run as root")]
    NoMemory,
    /// Nothing was translated.
    #[error("the firmware translates none of {0} addresses")]
    Nothing(usize),
    /// A node's memory lies on several sockets.
    #[error(
        "node {0}: its memory lies on sockets {1} by turns; nodes are ranges of one socket here"
    )]
    Sockets(u8, String),
    /// None of the nodes was solved.
    #[error("{0}")]
    Unsolved(String),
}

/// What the firmware shows of one node.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NodeProof {
    /// Node.
    pub node: u8,
    /// Fresh addresses of which map and firmware say the same, and all.
    pub held: (usize, usize),
    /// Addresses that the firmware does not translate.
    pub untranslated: usize,
    /// Why the node has no map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsolved: Option<String>,
}

/// A map from firmware, and how far it is shown.
#[derive(Debug, Clone)]
pub struct Found {
    /// The map.
    pub map: MapSpec,
    /// Addresses that it was solved from.
    pub asked: usize,
    /// Each node's proof.
    pub nodes: Vec<NodeProof>,
    /// All of memory is in the map, every bit of it shown, and all fresh
    /// addresses hold.
    pub exact: bool,
    /// What was assumed, and what is open, in words.
    pub notes: Vec<String>,
}

/// Solves the map of `memory` from what the firmware says, and proves it.
///
/// # Errors
/// Where it can't be asked, or no node can be solved.
pub fn find(
    firmware: &mut dyn Firmware,
    memory: &[RamRange],
    seed: u64,
) -> Result<Found, FirmwareError> {
    if memory.is_empty() {
        return Err(FirmwareError::NoMemory);
    }
    let mut reader = Reader::new(firmware.components(), firmware.needed())?;
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut known = ask(firmware, memory, ASKED, &mut rng)?;
    let mut found = None;
    for _ in 0..ROUNDS {
        one_socket(&reader, memory, &known)?;
        reader.learn(&translated(&known));
        let mut part = solve_nodes(&reader, memory, &known)?;
        part.map = rebase(part.map, reader.seen());
        let fresh = ask(firmware, memory, FRESH.div_ceil(memory.len()), &mut rng)?;
        let (nodes, wrong) = prove(&part, &reader, memory, &fresh);
        let exact = part.complete
            && reader.has_banks()
            && firmware.is_seen()
            && nodes.iter().all(|node| {
                node.unsolved.is_none() && node.untranslated == 0 && node.held.0 == node.held.1
            });
        found = Some(Found {
            map: part.map,
            asked: known.len(),
            nodes,
            exact,
            notes: part.notes,
        });
        if wrong.is_empty() {
            break;
        }
        known.extend(wrong);
    }
    found.ok_or(FirmwareError::Nothing(known.len()))
}

/// Lines by address, and what they translate to.
pub type Answers = BTreeMap<u64, Option<Values>>;

fn ask(
    firmware: &mut dyn Firmware,
    memory: &[RamRange],
    each: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Answers, FirmwareError> {
    let answers = firmware
        .sample(memory, each, rng)
        .map_err(FirmwareError::Asking)?;
    match answers.values().all(Option::is_none) {
        true => Err(FirmwareError::Nothing(answers.len())),
        false => Ok(answers),
    }
}

/// Lines of each range: from anywhere, and near its ends and middle at every
/// scale, where bases and carries show.
fn lines(memory: &[RamRange], each: usize, rng: &mut ChaCha8Rng) -> Vec<u64> {
    let mut all = BTreeSet::new();
    for range in memory {
        for i in 0..each {
            all.insert(range.start + line_of(range.end - range.start, i, rng) & !63);
        }
    }
    all.into_iter()
        .filter(|at| node_of(memory, *at).is_some())
        .collect()
}

/// The `i`-th of such lines in `size` bytes.
fn line_of(size: u64, i: usize, rng: &mut ChaCha8Rng) -> u64 {
    let reach = match i % 4 {
        3 => 1u64 << rng.gen_range(6..64 - size.leading_zeros()),
        _ => size,
    };
    let far = rng.gen_range(0..reach.min(size));
    match i % 8 {
        7 => size - 1 - far,
        _ => far,
    }
}

fn node_of(memory: &[RamRange], address: u64) -> Option<u8> {
    let holds = |range: &&RamRange| (range.start..range.end).contains(&address);
    memory.iter().find(holds).map(|range| range.node)
}

fn translated(answers: &Answers) -> Vec<&Values> {
    answers.values().flatten().collect()
}

/// Refuses nodes whose memory is dealt out over sockets.
fn one_socket(reader: &Reader, memory: &[RamRange], known: &Answers) -> Result<(), FirmwareError> {
    let mut sockets: BTreeMap<u8, BTreeSet<u64>> = BTreeMap::new();
    for (&address, values) in known {
        let socket = values.as_ref().and_then(|values| reader.socket(values));
        if let (Some(node), Some(socket)) = (node_of(memory, address), socket) {
            sockets.entry(node).or_default().insert(socket);
        }
    }
    match sockets.into_iter().find(|(_, all)| all.len() > 1) {
        None => Ok(()),
        Some((node, all)) => {
            let list: Vec<String> = all.iter().map(ToString::to_string).collect();
            Err(FirmwareError::Sockets(node, list.join(", ")))
        }
    }
}

/// A map of the nodes that could be solved.
struct Part {
    map: MapSpec,
    complete: bool,
    notes: Vec<String>,
    unsolved: BTreeMap<u8, String>,
    /// For each layout, which channel of the map each of the firmware's is.
    channels: Vec<BTreeMap<u32, u32>>,
}

/// Solves all nodes by one layout, or else each by its own.
fn solve_nodes(
    reader: &Reader,
    memory: &[RamRange],
    known: &Answers,
) -> Result<Part, FirmwareError> {
    let rows: Vec<Row> = known
        .iter()
        .filter_map(|(&address, values)| {
            Some(Row {
                line: 0,
                address,
                node: node_of(memory, address)?,
                values: reader.fields(values.as_ref()?),
            })
        })
        .collect();
    if let Ok(solved) = solve_tidy(&rows) {
        return Ok(part(vec![solved], BTreeMap::new(), memory));
    }
    let nodes: BTreeSet<u8> = rows.iter().map(|row| row.node).collect();
    let (mut all, mut unsolved) = (Vec::new(), BTreeMap::new());
    for node in nodes {
        let own: Vec<Row> = rows.iter().filter(|r| r.node == node).cloned().collect();
        let ranges = memory.iter().filter(|range| range.node == node);
        let start = ranges.map(|range| range.start).min().unwrap_or(0);
        match solve_from(start, &own) {
            Ok(solved) => all.push(solved),
            Err(why) => {
                unsolved.insert(node, why);
            }
        }
    }
    if all.is_empty() {
        let why: Vec<String> = unsolved
            .iter()
            .map(|(node, why)| format!("node {node}: {why}"))
            .collect();
        return Err(FirmwareError::Unsolved(why.join("; ")));
    }
    Ok(part(all, unsolved, memory))
}

/// Solves a node whose memory begins at `start`, and by most firmware counts from
/// there: a base of 0 is tried before all others, which could fit as well.
fn solve_from(start: u64, rows: &[Row]) -> Result<Solved, String> {
    let mut moved = rows.to_vec();
    moved.iter_mut().for_each(|row| row.address -= start);
    match solve_tidy(&moved) {
        Ok(mut solved) if solved.complete => {
            for range in &mut solved.map.ranges {
                range.start += start;
                range.end += start;
            }
            Ok(solved)
        }
        _ => solve_tidy(rows),
    }
}

/// Solves rows that firmware gave: none of them may be left out.
fn solve_tidy(rows: &[Row]) -> Result<Solved, String> {
    let solved = solve(rows).map_err(|error| error.message)?;
    match solved.left_out.len() {
        0 => Ok(solved),
        n => Err(format!(
            "{n} of {} translations contradict the others",
            rows.len()
        )),
    }
}

/// Puts layouts together, and cuts ranges down to what memory there is.
fn part(all: Vec<Solved>, unsolved: BTreeMap<u8, String>, memory: &[RamRange]) -> Part {
    let mut whole = Part {
        complete: unsolved.is_empty() && all.iter().all(|solved| solved.complete),
        map: MapSpec {
            line: 64,
            llc: Vec::new(),
            layouts: Vec::new(),
            ranges: Vec::new(),
        },
        notes: Vec::new(),
        unsolved,
        channels: Vec::new(),
    };
    for (layout, solved) in all.into_iter().enumerate() {
        whole.notes.push(solved.shown());
        whole.channels.push(solved.channels);
        // Where memory ends is known here.
        let is_worth_telling = |note: &String| !note.starts_with("the end of memory");
        whole
            .notes
            .extend(solved.notes.into_iter().filter(is_worth_telling));
        whole.map.layouts.extend(solved.map.layouts);
        whole
            .map
            .ranges
            .extend(solved.map.ranges.into_iter().map(|mut range| {
                range.layout = layout;
                range
            }));
    }
    if whole.map.layouts.len() > 1 {
        for (i, layout) in whole.map.layouts.iter_mut().enumerate() {
            layout.name = format!("layout-{i}");
        }
    }
    whole.map.ranges.retain_mut(|range| {
        let own = memory
            .iter()
            .filter(|ram| ram.node == range.node && ram.start < range.end && range.start < ram.end);
        let end = own.map(|ram| ram.end.min(range.end)).max();
        range.end = end.unwrap_or(range.start);
        range.end > range.start
    });
    whole.map.ranges.sort_by_key(|range| range.start);
    whole
}

/// Counts each node's offsets from its own start where the solver counted from
/// address 0: then the highest offset bit was filled in as a column, for no
/// translation shows it, and it is constant over each node.
fn rebase(mut map: MapSpec, seen: [u64; 2]) -> MapSpec {
    for index in 0..map.layouts.len() {
        loop {
            let mut trial = map.clone();
            let top = map.offset_bits(index).saturating_sub(1);
            let layout = &mut trial.layouts[index];
            let ways = layout.interleave.map_or(1, |i| u64::from(i.ways));
            layout
                .column
                .retain(|term| term.mask != 1 << top || seen[1] >> term.at & 1 == 1);
            layout
                .row
                .retain(|term| term.mask != 1 << top || seen[0] >> term.at & 1 == 1);
            if *layout == map.layouts[index] {
                break;
            }
            for range in trial.ranges.iter_mut().filter(|r| r.layout == index) {
                range.base %= ways << top;
            }
            if AddrMap::parse(&trial.to_text("rebased")).is_err() {
                break;
            }
            map = trial;
        }
    }
    map
}

/// Holds the map against fresh translations: each node's proof, and the
/// translations that it gets wrong.
fn prove(
    part: &Part,
    reader: &Reader,
    memory: &[RamRange],
    fresh: &Answers,
) -> (Vec<NodeProof>, Answers) {
    let mut wrong = Answers::new();
    let mut nodes: BTreeMap<u8, NodeProof> = BTreeMap::new();
    let map = AddrMap::parse(&part.map.to_text("firmware")).ok();
    for (&address, values) in fresh {
        let Some(node) = node_of(memory, address) else {
            continue;
        };
        let proof = nodes.entry(node).or_insert_with(|| NodeProof {
            node,
            held: (0, 0),
            untranslated: 0,
            unsolved: part.unsolved.get(&node).cloned(),
        });
        let Some(values) = values else {
            proof.untranslated += 1;
            continue;
        };
        if proof.unsolved.is_some() {
            continue;
        }
        proof.held.1 += 1;
        let says = map.as_ref().and_then(|map| map.decode(address).ok());
        let holds = says.is_some_and(|d| {
            let mut channel = d.channel;
            let mut fields = reader.fields(values);
            let range = part.map.ranges.iter().find(|r| address < r.end);
            let channels = range.and_then(|range| part.channels.get(range.layout));
            if let Some(channels) = channels.filter(|all| !all.is_empty()) {
                fields[0] = channels.get(&fields[0]).copied().unwrap_or(u32::MAX);
                // Other layouts may have more channels in a way.
                let of_way = map.as_ref().map_or(1, AddrMap::channels_per_way);
                let own = range.map_or(0, |r| part.map.layouts[r.layout].channel.len());
                channel = (d.channel / of_way) << own | d.channel % of_way;
            }
            let shown = reader.shown([channel, d.rank, d.bank, d.row, d.column]);
            d.node == u32::from(node) && shown == fields
        });
        match holds {
            true => proof.held.0 += 1,
            false => {
                wrong.insert(address, Some(values.clone()));
            }
        }
    }
    (nodes.into_values().collect(), wrong)
}

//! What a map's colours are: how many, what each holds, which pairs can't be, in sentences.

use std::collections::BTreeMap;

use soloist_core::{format_size, AddrMap, Interleave, Left, PageSize};
use soloist_machine::gf2::bits;
use soloist_machine::spec::Layout;
use soloist_machine::Machine;

/// How many colours, what each holds, which pairs cannot exist.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Summary {
    /// Nodes.
    pub nodes: u32,
    /// Bank colours bc.
    pub colors: u32,
    /// Disjoint bank sets.
    pub bank_sets: u32,
    /// Banks that one bank set holds.
    pub banks_per_set: u32,
    /// LLC colours.
    pub llc_colors: u32,
    /// Smallest and largest bank set, bytes.
    pub set_bytes: (u64, u64),
    /// Smallest and largest (bank set, LLC colour) pair that exists, bytes.
    pub cell_bytes: (u64, u64),
    /// Pairs that can hold a page.
    pub cells: u32,
    /// All pairs.
    pub pairs: u32,
    /// The first node with memory.
    pub first_node: u32,
    /// For that node: bank sets with the same LLC colours, and these.
    pub pairing: Vec<(Vec<u32>, Vec<u32>)>,
    /// Address bits below the page that choose banks: they can't be coloured.
    pub below_page: Vec<u32>,
    /// Address bits that choose both a bank and an LLC colour.
    pub shared_bits: Vec<u32>,
    /// Layouts whose channels come from a division.
    pub interleave: Vec<Dealt>,
    /// The pages that have these colours.
    pub page_bytes: PageSize,
    /// The colours that pages larger than 4 KiB leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// Two addresses that the map puts into one place of DRAM, where there are such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twice: Option<(u64, u64)>,
}

/// Two addresses that are one place: layouts of a node whose rows are not apart. Looked
/// for at the ends and in the middle of each range.
fn twice(map: &AddrMap) -> Option<(u64, u64)> {
    let line = u64::from(map.line_size());
    let looks = |range: soloist_core::Range| {
        let middle = range.start + (range.end - range.start) / 2;
        [range.start, middle & !(line - 1), range.end - line]
    };
    let other = |address: u64| {
        let place = map.decode(address).ok()?;
        let first = map.encode(&place).ok()?;
        let is_same = map.decode(first).ok()? == place;
        (first != address && is_same).then_some((first, address))
    };
    map.ranges().flat_map(looks).find_map(other)
}

/// Over what a layout deals its offsets.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Dealt {
    /// The layout's name; empty when there is only one.
    pub layout: String,
    /// Ways.
    pub ways: u32,
    /// Bytes in a row of one way.
    pub granule: u64,
    /// Numbers of the channels, in turn.
    pub on: Vec<u32>,
}

impl Dealt {
    fn new(layout: &Layout) -> Option<Self> {
        let Interleave { ways, granule } = layout.interleave?;
        let named = layout.ways.iter().map(|&way| way.into());
        let on = if layout.ways.is_empty() {
            (0..ways).collect()
        } else {
            named.collect()
        };
        Some(Self {
            layout: layout.name.clone(),
            ways,
            granule,
            on,
        })
    }

    fn sentence(&self, pages: PageSize) -> String {
        let Self { ways, granule, .. } = self;
        let layout = match self.layout.as_str() {
            "" => String::new(),
            name => format!(" of layout {name}"),
        };
        let on = if self.on.iter().copied().eq(0..*ways) {
            String::new()
        } else {
            format!(" of channels {}", join(&self.on))
        };
        let blurred = if *granule < pages.bytes() {
            ": a page lies in several, which colouring cannot tell apart"
        } else {
            ""
        };
        format!("the channel{layout} is (offset / {granule}) modulo {ways}{on}, beside the functions, which are over what is left of the offset{blurred}")
    }
}

impl Summary {
    /// Counts over the whole map.
    #[must_use]
    pub fn new(machine: &Machine, map: &AddrMap) -> Self {
        let frame = map.page_size().bytes();
        let (mut sets, mut cells) = ((u64::MAX, 0), (u64::MAX, 0));
        let (mut exist, mut bank_sets, mut colors, mut banks_per_set) = (0, 0, 0, 0);
        let nodes = map.memory_nodes();
        let first_node = nodes.first().copied().unwrap_or(0);
        let mut pairing: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        for set in 0..map.n_bank_sets() {
            let frames: Vec<u64> = (0..map.n_llc()).map(|c| map.cell_frames(set, c)).collect();
            let total: u64 = frames.iter().sum();
            if total == 0 {
                continue;
            }
            sets = (sets.0.min(total * frame), sets.1.max(total * frame));
            let banks = map.colors_of_set(set).len() as u32;
            bank_sets += 1;
            colors += banks;
            banks_per_set = banks_per_set.max(banks);
            for &count in frames.iter().filter(|&&count| count > 0) {
                exist += 1;
                cells = (cells.0.min(count * frame), cells.1.max(count * frame));
            }
            if map.node_of_set(set) == first_node {
                let colors = (0..map.n_llc())
                    .filter(|&c| frames[c as usize] > 0)
                    .collect();
                pairing.entry(colors).or_default().push(set);
            }
        }
        let banks = machine
            .map
            .layouts
            .iter()
            .flat_map(Layout::bank_functions)
            .fold(0, |all, mask| all | mask);
        let llc = machine.map.llc.iter().fold(0, |all, mask| all | mask);
        Self {
            nodes: nodes.len() as u32,
            first_node,
            colors,
            bank_sets,
            banks_per_set,
            llc_colors: map.n_llc(),
            set_bytes: (sets.0.min(sets.1), sets.1),
            cell_bytes: (cells.0.min(cells.1), cells.1),
            cells: exist,
            pairs: bank_sets * map.n_llc(),
            pairing: pairing.into_iter().map(|(llc, sets)| (sets, llc)).collect(),
            below_page: bits(banks & (frame - 1)).collect(),
            shared_bits: bits(banks & llc & !(frame - 1)).collect(),
            interleave: machine.map.layouts.iter().filter_map(Dealt::new).collect(),
            page_bytes: map.page_size(),
            left: Left::of(map),
            twice: twice(map),
        }
    }

    /// The summary in sentences.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut say = vec![self.of_banks()];
        let dealt = self.interleave.iter();
        say.extend(dealt.map(|dealt| dealt.sentence(self.page_bytes)));
        if self.llc_colors > 1 {
            say.push(format!(
                "{} LLC colours; {} of {} (bank set, LLC colour) pairs can hold pages, {} each",
                self.llc_colors,
                self.cells,
                self.pairs,
                size_span(self.cell_bytes.0, self.cell_bytes.1),
            ));
        } else {
            say.push("no LLC colours: the last level is hashed or not known".into());
        }
        if self.cells < self.pairs {
            say.push(format!(
                "pairs are missing because bit{} {} choose both bank and LLC colour",
                if self.shared_bits.len() == 1 { "" } else { "s" },
                join(&self.shared_bits)
            ));
        }
        if !self.below_page.is_empty() {
            say.push(format!(
                "bit{} {} lie{} within a page: a page touches {} bank{}, which colouring cannot tell apart",
                if self.below_page.len() == 1 { "" } else { "s" },
                join(&self.below_page),
                if self.below_page.len() == 1 { "s" } else { "" },
                self.banks_per_set,
                if self.banks_per_set == 1 { "" } else { "s" },
            ));
        }
        say.extend(self.left.as_ref().map(ToString::to_string));
        if let Some((one, other)) = self.twice {
            say.push(format!(
                "{one:#x} and {other:#x} are one place in DRAM by this map, which no machine has: rows of \
                 the layouts of a node must differ; `encode` knows the first only"
            ));
        }
        say
    }

    /// The sentence about bank colours.
    fn of_banks(&self) -> String {
        let s = |number: u32| if number == 1 { "" } else { "s" };
        match (self.bank_sets <= self.nodes, self.colors <= self.nodes) {
            (true, true) => "no bank colours: no function of the map chooses a bank".to_owned(),
            (true, false) => format!(
                "no bank colours: each page lies in all {} banks of its node",
                self.banks_per_set
            ),
            (false, _) => format!(
                "{} bank colours on {} node{}, {} disjoint bank sets of {} bank{}; one bank set holds {}",
                self.colors,
                self.nodes,
                s(self.nodes),
                self.bank_sets,
                self.banks_per_set,
                s(self.banks_per_set),
                size_span(self.set_bytes.0, self.set_bytes.1),
            ),
        }
    }
}

fn join(list: &[u32]) -> String {
    list.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// `512.0 MiB` or `512.0 to 640.0 MiB`.
fn size_span(low: u64, high: u64) -> String {
    if low == high {
        format_size(low)
    } else {
        format!("{} to {}", format_size(low), format_size(high))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::{PageSize, Summary};
    use soloist_machine::{known, Machine};

    /// A client of modules of two sizes: what lies in one channel alone has rows of its
    /// own, or those of both channels once more.
    #[test]
    fn places_that_have_two_addresses_are_told() {
        for machine in known::all() {
            let machine = machine.unwrap();
            let summary = Summary::new(&machine, &machine.addr_map());
            assert_eq!(summary.twice, None, "{}", machine.about.name);
        }
        let flex = |rows: &str, base: u64| {
            let text = format!(
                "[machine]\nname = \"flex\"\ndescription = \"x\"\ntrust = \"assumed\"\n\
                 [topology]\nsockets = 1\ncpus = [\"0\"]\n[map.layouts.both]\n\
                 channel = [\"8^18\"]\nbank = [\"7^14\", \"15^19\"]\nrow = [\"18-32\"]\n\
                 column = [\"@3:6-7\", \"9-13\", \"16-17\"]\n[map.layouts.one]\n\
                 channel = [\"34\"]\nbank = [\"7^14\", \"15^19\"]\nrow = [{rows}]\n\
                 column = [\"@3:6-13\", \"16\"]\n[[map.range]]\nstart = 0x0\nend = 0x200000000\n\
                 layout = \"both\"\n[[map.range]]\nstart = 0x200000000\nend = 0x300000000\n\
                 base = {base:#x}\nlayout = \"one\"\n"
            );
            let machine = Machine::parse(&text, "flex").unwrap();
            let summary = Summary::new(&machine, &machine.addr_map());
            let sentences = summary.sentences().join("\n");
            assert_eq!(
                sentences.contains("one place in DRAM"),
                summary.twice.is_some()
            );
            summary.twice
        };
        assert!(flex("\"17-33\"", 0x4_0000_0000).is_some());
        // Behind the 32768 rows of the other.
        assert_eq!(flex("\"17-33\"", 0x5_0000_0000), None);
    }

    /// One set that holds all pages divides nothing, however many banks are in it.
    #[test]
    fn one_bank_set_is_no_colour() {
        let first = |name: &str, kib: u64| {
            let machine = known::find(name).unwrap();
            let pages = PageSize::from_bytes(kib << 10).unwrap();
            let map = machine.addr_map().for_pages(pages).unwrap();
            Summary::new(&machine, &map).sentences().swap_remove(0)
        };
        let said = first("rk3588", 4);
        assert_eq!(
            said,
            "no bank colours: no function of the map chooses a bank"
        );
        let said = first("raspberry-pi-4", 64);
        assert_eq!(
            said,
            "no bank colours: each page lies in all 8 banks of its node"
        );
        let said = first("raspberry-pi-4", 16);
        assert!(
            said.starts_with("8 bank colours on 1 node, 2 disjoint"),
            "{said}"
        );
    }

    #[test]
    fn the_channels_that_a_layout_deals_over_are_told() {
        let machine = soloist_machine::known::find("server-uneven-channels").unwrap();
        let summary = Summary::new(&machine, &machine.addr_map());
        let on: Vec<_> = summary.interleave.iter().map(|d| d.on.clone()).collect();
        assert_eq!(on, [vec![0, 1, 2], vec![1, 2]]);
        let sentences = summary.sentences().join("\n");
        assert!(sentences
            .contains("the channel of layout two is (offset / 4096) modulo 2 of channels 1, 2"));
    }
}

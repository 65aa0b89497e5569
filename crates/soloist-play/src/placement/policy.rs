//! The papers' allocation policies: which colours each task of a set gets.
//!
//! A policy only *names* colours; core's palette assigns and checks them, and
//! core's frame lists hand out the pages (see [`super::memory`]).

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use soloist_core::{AddrMap, ColorSet, Palette, Refusal, Want};

/// Who gets which colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Linux: any page, the local node first.
    Buddy,
    /// Linux, each task bound to a node of its own (`numactl --membind`).
    Membind,
    /// Linux, pages from all nodes in turn (`numactl --interleave`).
    Interleave,
    /// Linux, an even share of the last-level cache's ways each (Intel CAT,
    /// AMD L3 QoS, resctrl).
    Cat,
    /// Linux, tasks in the background held to a fixed rate of lines (Intel
    /// MBA, resctrl).
    Throttle,
    /// Linux, bandwidth reserved: five sixths of what is guaranteed to the
    /// tasks in front, the rest to those in the background, more in proportion
    /// (MemGuard).
    MemGuard,
    /// All tasks on one bank set of the first task's node (CAMC 4.4.1).
    SameBank,
    /// A private bank set each, all on the first task's node (CAMC 4.4.1).
    DiffBank,
    /// A private bank set each, on a controller of its own (CAMC 4.4.1): a node, or
    /// on a machine of one node a channel, where pages lie in one.
    DiffController,
    /// CAMC's automatic assignment: private, on the node of the task's core.
    Auto,
    /// All banks of a controller of its own (the report).
    Controller,
    /// Banks of the same numbers on every node: PALLOC knows no nodes.
    Palloc,
    /// The same and LLC colours: BPM knows no controllers.
    Bpm,
    /// TintMalloc: private banks of the local node.
    Mem,
    /// TintMalloc: private LLC colours, any bank.
    Llc,
    /// TintMalloc: both private.
    MemLlc,
    /// TintMalloc: private banks, LLC colours shared by a group of threads.
    MemLlcPart,
    /// TintMalloc: private LLC colours, banks shared by a group of threads.
    LlcMemPart,
}

impl Policy {
    /// All, in the order of the papers.
    pub const ALL: [Self; 18] = [
        Self::Buddy,
        Self::Membind,
        Self::Interleave,
        Self::Cat,
        Self::Throttle,
        Self::MemGuard,
        Self::SameBank,
        Self::DiffBank,
        Self::DiffController,
        Self::Auto,
        Self::Controller,
        Self::Palloc,
        Self::Bpm,
        Self::Mem,
        Self::Llc,
        Self::MemLlc,
        Self::MemLlcPart,
        Self::LlcMemPart,
    ];

    /// The name that experiment files and reports use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Buddy => "buddy",
            Self::Membind => "membind",
            Self::Interleave => "interleave",
            Self::Cat => "cat",
            Self::Throttle => "throttle",
            Self::MemGuard => "memguard",
            Self::SameBank => "same_bank",
            Self::DiffBank => "diff_bank",
            Self::DiffController => "diff_controller",
            Self::Auto => "camc",
            Self::Controller => "controller",
            Self::Palloc => "palloc",
            Self::Bpm => "bpm",
            Self::Mem => "mem",
            Self::Llc => "llc",
            Self::MemLlc => "mem+llc",
            Self::MemLlcPart => "mem+llc(part)",
            Self::LlcMemPart => "llc+mem(part)",
        }
    }

    /// What it is, for people.
    pub fn plain(self) -> &'static str {
        match self {
            Self::Buddy => "Linux",
            Self::Membind => "Linux, a node each",
            Self::Interleave => "Linux, nodes in turn",
            Self::Cat => "Linux, cache ways each",
            Self::Throttle => "Linux, others throttled",
            Self::MemGuard => "Linux, MemGuard",
            Self::SameBank => "all in one bank",
            Self::DiffBank => "own banks, one node",
            Self::DiffController => "own banks, own node",
            Self::Auto => "CAMC's assignment",
            Self::Controller => "own node, all banks",
            Self::Palloc => "PALLOC: own banks",
            Self::Bpm => "BPM: own banks, cache",
            Self::Mem => "own banks",
            Self::Llc => "own cache colours",
            Self::MemLlc => "own banks and cache",
            Self::MemLlcPart => "own banks, cache by node",
            Self::LlcMemPart => "own cache, banks by node",
        }
    }

    /// Pages come from Linux: nobody has colours.
    pub fn uncolored(self) -> bool {
        matches!(
            self,
            Self::Buddy
                | Self::Membind
                | Self::Interleave
                | Self::Cat
                | Self::Throttle
                | Self::MemGuard
        )
    }

    /// Whether its allocator takes pages from all nodes alike.
    pub fn ignores_nodes(self) -> bool {
        matches!(self, Self::Palloc | Self::Bpm)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no policy of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no policy `{0}`; there are: {names}", names = Policy::ALL.map(Policy::name).join(", "))]
pub struct UnknownPolicy(pub String);

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        Self::ALL
            .into_iter()
            .find(|p| p.name() == name)
            .ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// A task that wants colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seat {
    /// Node of the core that it is pinned to; it has memory.
    pub node: u32,
    /// Bank sets that it needs.
    pub sets: u32,
}

/// Colours for each seat (`None`: uncoloured), owned in a fresh palette by the
/// seat's index. Refused where the machine has not enough.
pub fn assign(
    policy: Policy,
    map: &AddrMap,
    seats: &[Seat],
) -> Result<Vec<Option<ColorSet>>, Refusal> {
    let mut palette = Palette::new(map);
    let mut given = Vec::with_capacity(seats.len());
    for (index, seat) in seats.iter().enumerate() {
        let colors = choose(policy, map, &palette, seats, index, *seat)?;
        if let Some(colors) = &colors {
            palette.change(index as u32, Some(colors.clone()))?;
        }
        given.push(colors);
    }
    Ok(given)
}

fn choose(
    policy: Policy,
    map: &AddrMap,
    palette: &Palette,
    seats: &[Seat],
    index: usize,
    seat: Seat,
) -> Result<Option<ColorSet>, Refusal> {
    let any = ColorSet::any(map);
    let private = |node: u32| {
        palette.assign(&Want {
            sets: seat.sets,
            near: 1 << node,
            strict: true,
            ..Want::default()
        })
    };
    let home = seats[0].node;
    let has_one_node = map.memory_nodes().len() == 1;
    Ok(Some(match policy {
        Policy::Buddy
        | Policy::Membind
        | Policy::Interleave
        | Policy::Cat
        | Policy::Throttle
        | Policy::MemGuard => return Ok(None),
        Policy::SameBank => any.with_sets(map.sets_of_node(home).take(seats[0].sets as usize)),
        Policy::DiffBank => private(home)?,
        Policy::DiffController if !has_one_node => private(map.node_in_turn(home, index))?,
        Policy::DiffController => {
            let own = own_channel(map, index);
            let want = Want {
                sets: seat.sets,
                ..Want::default()
            };
            palette.assign_with(&want, &|set| u64::from(!own.contains(&set)))?
        }
        Policy::Auto | Policy::Mem => private(seat.node)?,
        Policy::Controller if has_one_node => any.with_sets(own_channel(map, index)),
        Policy::Controller => any.with_sets(map.sets_of_node(map.node_in_turn(home, index))),
        Policy::Palloc => any.with_sets(on_every_node(map, seats.len(), index)),
        Policy::Bpm => any
            .with_sets(on_every_node(map, seats.len(), index))
            .with_llc(own_llc(map, seats.len(), index)),
        Policy::Llc => any.with_llc(share(map.n_llc(), seats.len(), index)),
        Policy::MemLlc => own_pairs(map, seats, index, Part::Own, Part::Own),
        Policy::MemLlcPart => own_pairs(map, seats, index, Part::Own, Part::Group),
        Policy::LlcMemPart => own_pairs(map, seats, index, Part::Group, Part::Own),
    }))
}

/// Bank sets of the seat's own channel, on a machine of one node.
fn own_channel(map: &AddrMap, index: usize) -> Vec<u32> {
    let mut controllers = map.controllers();
    let at = index % controllers.len().max(1);
    match controllers.is_empty() {
        true => Vec::new(),
        false => controllers.swap_remove(at),
    }
}

/// The `index`th of `n` even shares of 0..`total`.
fn share(total: u32, n: usize, index: usize) -> impl Iterator<Item = u32> {
    let n = n as u32;
    let index = index as u32;
    (total * index / n)..(total * (index + 1) / n)
}

/// A share of a node's bank sets, the same on every node, as an allocator has
/// it that knows bank bits only.
fn on_every_node(map: &AddrMap, n: usize, index: usize) -> Vec<u32> {
    (0..map.n_nodes())
        .flat_map(|node| {
            let sets: Vec<u32> = map.sets_of_node(node).collect();
            share(sets.len() as u32, n, index)
                .map(|i| sets[i as usize])
                .collect::<Vec<u32>>()
        })
        .collect()
}

/// LLC colours for the seat with the bank sets of [`on_every_node`]: those that
/// these can have (LLC bits may be bank bits too) are shared out to all seats
/// that could have them.
fn own_llc(map: &AddrMap, n: usize, index: usize) -> Vec<u32> {
    let possible = |seat: usize| -> Vec<u32> {
        let sets = on_every_node(map, n, seat);
        let holds = |llc: &u32| sets.iter().any(|&set| map.cell_frames(set, *llc) > 0);
        (0..map.n_llc()).filter(holds).collect()
    };
    let mine = possible(index);
    let alike = |seat: &usize| possible(*seat) == mine;
    let rank = (0..index).filter(alike).count();
    let peers = rank + (index..n).filter(alike).count();
    share(mine.len() as u32, peers, rank)
        .map(|i| mine[i as usize])
        .collect()
}

/// Private to the seat, or shared by the seats of its node.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Own,
    Group,
}

/// Shares of the node's bank sets and of the LLC's colours such that every
/// seat has pairs that can hold a page (LLC bits may be bank bits too).
fn own_pairs(map: &AddrMap, seats: &[Seat], index: usize, bank: Part, llc: Part) -> ColorSet {
    let node = seats[index].node;
    let mates = seats.iter().filter(|s| s.node == node).count();
    let rank = seats[..index].iter().filter(|s| s.node == node).count();
    let sets: Vec<u32> = map.sets_of_node(node).collect();
    let sets = match bank {
        Part::Group => sets,
        Part::Own => share(sets.len() as u32, mates, rank)
            .map(|i| sets[i as usize])
            .collect(),
    };
    // Bank sets are shared out in contiguous runs: their low bits, which are
    // LLC bits too on some maps, take every value in each share.
    let groups: Vec<u32> = {
        let mut nodes: Vec<u32> = seats.iter().map(|s| s.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    let llc: Vec<u32> = match llc {
        Part::Group => {
            let at = groups.iter().position(|&n| n == node).unwrap_or(0);
            interleaved(map.n_llc(), groups.len(), at)
        }
        Part::Own => interleaved(map.n_llc(), seats.len(), index),
    };
    ColorSet::any(map).with_sets(sets).with_llc(llc)
}

/// Every `n`th LLC colour, beginning with `index`: such a share meets every
/// value of the high bits, where LLC and bank bits coincide.
fn interleaved(total: u32, n: usize, index: usize) -> Vec<u32> {
    (index as u32..total).step_by(n).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const MAP: &str = "soloist-map 1\nname small\nline 64\nllc 12 13 14 15 16\nlayout\n\
        channel 6^16^17^18^19^20\nrank 17\nbank 15 16 18\n\
        row 20 21 22 23 24 25 26 19\ncol 3 4 5 7 8 9 10 11 12 13 14\n\
        range 0x0 0x8000000 node 0\nrange 0x8000000 0x10000000 node 1\n";

    /// A map as detection writes it: channel functions that have a name, above a
    /// page. The same functions without it are banks, and nobody can know.
    #[test]
    fn an_own_controller_is_the_channel_that_has_a_name() {
        let named = "soloist-map 1\nlayout\nchannel 13^17 14^18\nbank 12 15^19\n\
            row 17 18 19 20 21 22\ncol 6 7 8 9 10 11 16\nrange 0 0x800000\n";
        let plain = named.replace("channel 13^17 14^18\nbank", "bank 13^17 14^18");
        let channels = |text: &str, policy| -> Vec<Vec<u32>> {
            let map = AddrMap::parse(text).unwrap();
            let seats = [Seat { node: 0, sets: 2 }; 4];
            let given = assign(policy, &map, &seats).unwrap();
            let sets = |c: &Option<ColorSet>| -> Vec<u32> {
                let c = c.as_ref().unwrap();
                (0..map.n_bank_sets())
                    .filter(|&set| c.holds(set, 0))
                    .collect()
            };
            given.iter().map(sets).collect()
        };
        let own = channels(named, Policy::DiffController);
        assert_eq!(own, [[0, 1], [4, 5], [8, 9], [12, 13]]);
        let whole = channels(named, Policy::Controller);
        assert!((0..4).all(|i| whole[i] == (4 * i as u32..4 * i as u32 + 4).collect::<Vec<_>>()));
        let banks = channels(&plain, Policy::DiffController);
        assert_eq!(banks, [[0, 1], [2, 3], [4, 5], [6, 7]]);
    }

    #[test]
    fn what_a_seat_gets_does_not_hang_on_the_order_of_cpus() {
        let map = AddrMap::parse(MAP).unwrap();
        let cells = |nodes: [u32; 4], policy| {
            let seats = nodes.map(|node| Seat { node, sets: 1 });
            let given = assign(policy, &map, &seats).unwrap();
            let mut sizes: Vec<usize> = given
                .iter()
                .map(|c| c.as_ref().unwrap().cells(&map).len())
                .collect();
            sizes.sort_unstable();
            sizes
        };
        for policy in Policy::ALL.into_iter().filter(|p| !p.uncolored()) {
            assert_eq!(
                cells([0, 0, 1, 1], policy),
                cells([0, 1, 0, 1], policy),
                "{policy}"
            );
        }
    }
}

//! Channels that a division deals out: (offset / granule) mod n.
//!
//! Their number is no power of two: an odd number of ways, times a power of
//! two that XOR functions choose from. For the right granule all rows of one
//! channel are of one way; for a wrong one they are so once in n. A shift that
//! is a multiple of the granule turns the ways round and changes nothing else,
//! so that this is asked of addresses, before any shift is known; and then the
//! turns must agree, which leaves one shift in n.

use std::collections::{BTreeMap, BTreeSet};

use soloist_core::Interleave;

use super::group::{choices, Group, STEP, SURE_BITS};
use super::Row;

/// Granules that are tried, log2: a line up to the grain of shifts.
const GRANULES: std::ops::RangeInclusive<u32> = 6..=STEP.trailing_zeros();
/// Of so many rows one may contradict the others.
const STRAYS: usize = 8;

/// A division that the rows agree with.
#[derive(Debug, Clone)]
pub(super) struct Division {
    /// Its ways, odd, and its granule.
    pub interleave: Interleave,
    /// For each channel: its way, but for a turn, and its number among those
    /// of the way.
    classes: BTreeMap<u32, (u32, u32)>,
    /// How far each group's ways are turned, by the order of groups.
    turns: Vec<u32>,
    /// Rows that it contradicts, by index.
    pub out: Vec<usize>,
}

impl Division {
    /// Divisions that the rows agree with, largest granule first; none where
    /// channels are a power of two, or the rows too few to show one.
    pub fn candidates(rows: &[Row], groups: &[Group]) -> Vec<Self> {
        let channels: BTreeSet<u32> = rows.iter().map(|row| row.values[0]).collect();
        // A wrong row may name a channel that there is not.
        let mut counts: Vec<usize> = vec![channels.len()];
        counts
            .extend((1..=rows.len() / STRAYS).filter_map(|more| channels.len().checked_sub(more)));
        let mut found: Vec<Self> = Vec::new();
        for count in counts.into_iter().take_while(|&count| count > 2) {
            let ways = count as u32 >> count.trailing_zeros();
            if ways > 1 && found.is_empty() {
                let granules = GRANULES.rev().map(|bits| Interleave {
                    ways,
                    granule: 1 << bits,
                });
                found.extend(granules.filter_map(|i| Self::fit(i, count, rows, groups)));
            }
        }
        let fewest = found.iter().map(|division| division.out.len()).min();
        found.retain(|division| Some(division.out.len()) == fewest);
        found
    }

    fn fit(interleave: Interleave, count: usize, rows: &[Row], groups: &[Group]) -> Option<Self> {
        let ways = interleave.ways;
        let way = |row: usize| (rows[row].address / interleave.granule % u64::from(ways)) as u32;
        // How often each channel is met in each way.
        let mut met: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut turns = Vec::new();
        for group in groups {
            let agreeing = |turn: u32| -> usize {
                let at = |&row: &usize| {
                    let ways_of = met.get(&rows[row].values[0]);
                    ways_of.map_or(0, |ways_of| {
                        let most = ways_of.iter().max().copied().unwrap_or(0);
                        usize::from(ways_of[((way(row) + turn) % ways) as usize] == most)
                    })
                };
                group.rows.iter().map(at).sum()
            };
            let turn = (0..ways)
                .rev()
                .max_by_key(|&turn| agreeing(turn))
                .unwrap_or(0);
            turns.push(turn);
            for &row in &group.rows {
                let ways_of = met
                    .entry(rows[row].values[0])
                    .or_insert_with(|| vec![0; ways as usize]);
                ways_of[((way(row) + turn) % ways) as usize] += 1;
            }
        }
        let mut channels: Vec<(u32, u32, usize)> = met
            .iter()
            .map(|(&channel, ways_of)| {
                let most = ways_of.iter().max().copied().unwrap_or(0);
                let way = ways_of.iter().position(|&n| n == most).unwrap_or(0) as u32;
                (channel, way, most)
            })
            .collect();
        // Rarest last: those that there are too many of are wrong rows'.
        channels.sort_by_key(|&(channel, _, rows)| (std::cmp::Reverse(rows), channel));
        channels.truncate(count);
        channels.sort_unstable();
        let mut of_way = vec![0u32; ways as usize];
        let mut classes = BTreeMap::new();
        for (channel, way, _) in channels {
            let number = &mut of_way[way as usize];
            classes.insert(channel, (way, *number));
            *number += 1;
        }
        let each = (count / ways as usize) as u32;
        let strays = |row: usize, turn: u32| {
            let class = classes.get(&rows[row].values[0]);
            class.is_none_or(|class| class.0 != (way(row) + turn) % ways)
        };
        let mut out: Vec<usize> = Vec::new();
        for (group, &turn) in groups.iter().zip(&turns) {
            out.extend(group.rows.iter().copied().filter(|&row| strays(row, turn)));
        }
        out.sort_unstable();
        let agreeing = rows.len().saturating_sub(out.len() + count + groups.len()) as f64;
        let chance = choices(rows.len(), out.len()) + (GRANULES.count() as f64).log2();
        let sure = agreeing * f64::from(ways).log2() >= chance + SURE_BITS;
        let shared = of_way.iter().all(|&n| n == each);
        let few = out.len() <= rows.len() / STRAYS;
        (sure && shared && few).then_some(Self {
            interleave,
            classes,
            turns,
            out,
        })
    }

    /// What XOR functions must tell of a channel: its number among those of
    /// its way.
    pub fn number(&self, channel: u32) -> u32 {
        self.classes.get(&channel).map_or(0, |class| class.1)
    }

    /// The way that a channel is, by offsets of this phase.
    pub fn way(&self, channel: u32, phase: u32) -> Option<u32> {
        let ways = self.interleave.ways;
        let class = self.classes.get(&channel)?;
        Some((class.0 + ways - phase) % ways)
    }

    /// How far ways by offset are turned, in a group with this shift. All
    /// groups must be turned alike.
    pub fn phase(&self, group: usize, shift: u64) -> u32 {
        let ways = u64::from(self.interleave.ways);
        let turn = self.turns.get(group).copied().unwrap_or(0);
        ((u64::from(turn) + shift / self.interleave.granule) % ways) as u32
    }

    /// All channels.
    pub fn channels(&self) -> impl Iterator<Item = u32> + '_ {
        self.classes.keys().copied()
    }
}

//! Whether two maps are the same: the judge behind every "recovered".
//!
//! Two maps are the same when they put the same pairs of lines of every range
//! into the same bank and row. Names of functions, the order of bits, columns
//! and bases count for nothing but through this. Lines are decoded by core, as
//! the kernel decodes them, so that carries, holes and missing or invented
//! functions show as what they do. A wrong linear function is wrong for half of
//! all lines; what is wrong only near an edge (a base, a carry) is met because
//! lines are taken at every scale from the ends of ranges and from the
//! multiples of every power of two.

use std::collections::HashMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::{AddrMap, Dram};
use soloist_machine::gf2::{self, Basis};
use soloist_machine::{MapRange, MapSpec};

/// Lines of a range, taken from anywhere; as many again from edges.
const LINES: usize = 4096;
/// Pairs of lines of one row, by either map.
const ROW_PAIRS: usize = 1024;

/// What differs between `known` and `found`, in words; empty when they put the
/// same pairs of lines of every range of `known` into the same bank and row.
#[must_use]
pub fn differences(known: &MapSpec, found: &MapSpec) -> Vec<String> {
    let (a, b) = match (parsed(known, "known"), parsed(found, "found")) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(refusal), _) | (_, Err(refusal)) => return vec![refusal],
    };
    let mut rng = ChaCha8Rng::seed_from_u64(14);
    let mut judge = Judge::new(&a, &b);
    let mut wrong = Vec::new();
    for range in &known.ranges {
        let at = format!("{:#x} to {:#x}", range.start, range.end - 1);
        let inside: Vec<Piece> = found
            .ranges
            .iter()
            .filter_map(|other| Piece::of(known, range, found, other))
            .collect();
        let covered: u64 = inside.iter().map(|piece| piece.end - piece.start).sum();
        if covered < range.end - range.start {
            let all = range.end - range.start;
            wrong.push(format!("{at}: {covered} of {all} bytes covered"));
        }
        let verdict = inside.iter().find_map(|piece| {
            let lines = piece.lines(&mut rng);
            let banks = lines.iter().find_map(|&line| judge.banks(line));
            banks.or_else(|| piece.rows(&judge, &mut rng))
        });
        wrong.extend(verdict.map(|why| format!("{at}: {why}")));
    }
    wrong
}

/// Where `channels`, a map that knows no more of memory than its channels,
/// contradicts `banks`: lines of one bank lie in one channel. In words; empty where
/// they agree on all lines that both know.
#[must_use]
pub fn channels(channels: &MapSpec, banks: &MapSpec) -> Vec<String> {
    let (a, b) = match (parsed(channels, "channels"), parsed(banks, "banks")) {
        (Ok(a), Ok(b)) => (a, b),
        (Err(refusal), _) | (_, Err(refusal)) => return vec![refusal],
    };
    let mut rng = ChaCha8Rng::seed_from_u64(14);
    let mut judge = Judge::new(&a, &b);
    let pairs = channels
        .ranges
        .iter()
        .flat_map(|range| banks.ranges.iter().map(move |other| (range, other)));
    pairs
        .filter_map(|(range, other)| Piece::of(channels, range, banks, other))
        .filter_map(|piece| {
            let lines = piece.lines(&mut rng);
            let pair = lines.into_iter().find_map(|line| judge.coarser(line))?;
            Some(format!("{pair} share a bank, and lie in two channels"))
        })
        .collect()
}

fn parsed(map: &MapSpec, name: &str) -> Result<AddrMap, String> {
    AddrMap::parse(&map.to_text(name)).map_err(|refusal| refusal.to_string())
}

/// Which bank of one map is which of the other, as far as lines were met.
struct Judge<'a> {
    known: &'a AddrMap,
    found: &'a AddrMap,
    found_of: HashMap<u32, (u32, u64)>,
    known_of: HashMap<u32, (u32, u64)>,
}

impl<'a> Judge<'a> {
    fn new(known: &'a AddrMap, found: &'a AddrMap) -> Self {
        Self {
            known,
            found,
            found_of: HashMap::new(),
            known_of: HashMap::new(),
        }
    }

    fn decode(&self, line: u64) -> Option<(Dram, Dram)> {
        Some((self.known.decode(line).ok()?, self.found.decode(line).ok()?))
    }

    /// Banks must be the same ones but for their numbers, all over the node.
    fn banks(&mut self, line: u64) -> Option<String> {
        let (known, found) = self.decode(line)?;
        let (other, first) = *self
            .found_of
            .entry(known.color)
            .or_insert((found.color, line));
        if other != found.color {
            return Some(format!(
                "{first:#x} and {line:#x} share a bank, and don't by what was found"
            ));
        }
        self.coarser(line)
            .map(|pair| format!("{pair} share no bank, but do by what was found"))
    }

    /// Banks that were found must each lie in one of the known: else two lines
    /// of which they don't.
    fn coarser(&mut self, line: u64) -> Option<String> {
        let (known, found) = self.decode(line)?;
        let (other, first) = *self
            .known_of
            .entry(found.color)
            .or_insert((known.color, line));
        (other != known.color).then(|| format!("{first:#x} and {line:#x}"))
    }
}

/// Memory that a range of one map and one of the other have in common.
struct Piece<'a> {
    start: u64,
    end: u64,
    line: u32,
    sides: [(&'a MapSpec, &'a MapRange); 2],
}

impl<'a> Piece<'a> {
    fn of(
        known: &'a MapSpec,
        range: &'a MapRange,
        found: &'a MapSpec,
        other: &'a MapRange,
    ) -> Option<Self> {
        let (start, end) = (range.start.max(other.start), range.end.min(other.end));
        (start < end).then_some(Self {
            start,
            end,
            line: known.line.trailing_zeros(),
            sides: [(known, range), (found, other)],
        })
    }

    fn lines(&self, rng: &mut ChaCha8Rng) -> Vec<u64> {
        let span = self.end - self.start;
        let scales = 64 - span.leading_zeros();
        let mut lines: Vec<u64> = (0..LINES).map(|_| rng.gen_range(0..span)).collect();
        for _ in 0..LINES {
            let scale = rng.gen_range(self.line..scales.max(self.line + 1));
            let off = rng.gen_range(0..1u64 << scale);
            // From an end, or from where a bit of either offset changes.
            let edge = match rng.gen_range(0..4) {
                0 => 0,
                1 => span,
                side => {
                    let (map, range) = self.sides[side as usize - 2];
                    let before = self.start - range.start + range.base;
                    let mut size = 1u64 << rng.gen_range(self.line..scales.max(self.line + 1));
                    // Normalised bits change at multiples of all ways.
                    if let Some(by) = map.layouts[range.layout].interleave {
                        size *= u64::from(by.ways);
                    }
                    let at = (before + rng.gen_range(0..span)) / size * size;
                    at.saturating_sub(before)
                }
            };
            lines.push(if rng.gen() {
                edge.saturating_add(off)
            } else {
                edge.saturating_sub(off)
            });
        }
        lines.retain(|&line| line < span);
        lines
            .into_iter()
            .map(|line| (self.start + line) >> self.line << self.line)
            .filter(|&line| line >= self.start)
            .collect()
    }

    /// Lines of one row by one map must be so by the other, both ways.
    fn rows(&self, judge: &Judge<'_>, rng: &mut ChaCha8Rng) -> Option<String> {
        for (side, &(map, range)) in self.sides.iter().enumerate() {
            let layout = &map.layouts[range.layout];
            let mut functions = layout.bank_functions();
            functions.extend(layout.row_masks());
            let place = |offset| layout.interleave.map_or((0, offset), |by| by.split(offset));
            let last = place(range.base + (range.end - range.start) - 1).1;
            let visible = gf2::span(self.line, 63 - last.leading_zeros().min(62));
            let in_row = Basis::of(functions).nullspace(visible);
            for _ in 0..ROW_PAIRS {
                let one = rng.gen_range(self.start..self.end) >> self.line << self.line;
                let (way, mut offset) = place(one.max(self.start) - range.start + range.base);
                for &row in in_row.rows() {
                    if rng.gen() {
                        offset ^= row;
                    }
                }
                let offset = layout.interleave.map_or(offset, |by| by.join(way, offset));
                let Some(moved) = offset.checked_sub(range.base) else {
                    continue;
                };
                let two = range.start + moved;
                if !(self.start..self.end).contains(&two) {
                    continue;
                }
                let (Some(one_at), Some(two_at)) = (judge.decode(one), judge.decode(two)) else {
                    continue;
                };
                let same = |a: &Dram, b: &Dram| (a.color, a.row) == (b.color, b.row);
                if !(same(&one_at.0, &two_at.0) && same(&one_at.1, &two_at.1)) {
                    let claim = ["share a row, and don't", "share no row, but do"][side];
                    return Some(format!("{one:#x} and {two:#x} {claim} by what was found"));
                }
            }
        }
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use soloist_core::Interleave;
    use soloist_machine::function::parse_list;
    use soloist_machine::Layout;

    /// Functions of banks and rows, and ranges as start, end, base.
    fn map(bank: &str, row: &str, ranges: &[(u64, u64, u64)]) -> MapSpec {
        let functions = |list: &str| parse_list(list).unwrap();
        let layout = Layout {
            bank: functions(bank).iter().map(|term| term.mask).collect(),
            row: functions(row),
            ..Layout::default()
        };
        let mut spec = MapSpec::single(layout, 0);
        spec.ranges = ranges
            .iter()
            .map(|&(start, end, base)| MapRange {
                start,
                end,
                node: 0,
                base,
                layout: 0,
            })
            .collect();
        spec.complete(64);
        spec
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn the_judge_asks_which_lines_share_banks_and_rows_and_nothing_else() {
        let all = [(0, 4 * GIB, 0)];
        let known = map("13^17 14^18 31", "16-30", &all);
        let same = |found: &MapSpec| differences(&known, found).is_empty();
        // Other sums, other order, another base that changes no pair.
        assert!(same(&map(
            "31, 13^14^17^18, 14^18",
            "17-30, 16^13^17",
            &all
        )));
        assert!(same(&map(
            "13^17 14^18 31",
            "16-30",
            &[(0, 4 * GIB, 4 * GIB)]
        )));
        // A bank function too many, one too few, another one.
        assert!(!same(&map("13^17, 14^18, 31, 30", "16-29", &all)));
        assert!(!same(&map("13^17, 14^18", "16-31", &all)));
        assert!(!same(&map("13^17, 14^19, 31", "16-30", &all)));
        // A row bit too few, and one too many.
        assert!(!same(&map("13^17 14^18 31", "17-30", &all)));
        assert!(!same(&map("13^17 14^18 31", "15-30", &all)));
        // Half of memory is missing.
        assert!(!same(&map("13^17 14^18 31", "16-30", &[(0, 2 * GIB, 0)])));
    }

    #[test]
    fn maps_over_a_division_are_judged_way_by_way() {
        let divided = |ways, granule, bank, row| {
            let mut spec = map(bank, row, &[(0, 6 * GIB, 0)]);
            spec.layouts[0].interleave = Some(Interleave { ways, granule });
            spec.layouts[0].column.clear();
            spec.complete(64);
            spec
        };
        let known = divided(3, 4096, "13^17 14^18", "17-30");
        let same = |found: &MapSpec| differences(&known, found).is_empty();
        assert!(same(&known));
        assert!(same(&divided(3, 4096, "13^14^17^18 14^18", "17-30")));
        assert!(!same(&divided(3, 4096, "13^17 14^19", "17-30")));
        assert!(!same(&divided(3, 4096, "13^17 14^18", "18-30")));
        assert!(!same(&divided(3, 8192, "13^17 14^18", "17-30")));
        assert!(!same(&map("13^17 14^18", "17-32", &[(0, 6 * GIB, 0)])));
    }

    #[test]
    fn a_carry_counts_where_it_changes_a_bank() {
        let ranges = |base: u64| [(GIB, 9 * GIB, base)];
        let known = map("13^17, 33", "16-32", &ranges(GIB));
        let moved = map("13^17, 33", "16-32", &ranges(GIB + (16 << 20)));
        // One line in 512 is in another bank.
        assert!(!differences(&known, &moved).is_empty());
        // The rows and banks of all lines are but renamed.
        let low = map("13^17, 14^18", "16-33", &ranges(GIB));
        let shifted = map("13^17, 14^18", "16-33", &ranges(0));
        assert_eq!(differences(&low, &shifted), Vec::<String>::new());
    }

    #[test]
    fn ranges_of_a_node_must_agree_on_which_bank_is_which() {
        let at = |base: u64| [(0, GIB, 0), (4 * GIB, 5 * GIB, base)];
        let known = map("13^30, 14^18", "16-29, 31", &at(GIB));
        let other = map("13^30, 14^18", "16-29, 31", &at(2 * GIB));
        // Inside either range all pairs are the same.
        assert!(!differences(&known, &other).is_empty());
    }
}

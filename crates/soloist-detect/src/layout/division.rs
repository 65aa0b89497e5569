//! Channels that come from a division: (offset / granule) mod n, n odd.
//!
//! Lines of one bank share a channel, so both lines of every conflicting pair
//! are of one way, while lines of different pairs are so once in n. A base that
//! is a multiple of the granule renames the ways and changes nothing else: the
//! address does for the offset. Six or twelve channels show as three of a larger
//! granule, the rest of them being XOR functions of what is left.
//!
//! Where bank functions are plain bits at the top of memory, both lines of a pair
//! lie in one granule, and so in one way of any division. Only pairs of two granules
//! tell a division from that.

use soloist_core::Interleave;

use crate::model::Pair;

/// Odd numbers of ways that are tried.
const WAYS: [u32; 3] = [3, 5, 7];
/// Granules that are tried, log2: a line to a GiB.
const GRANULES: std::ops::RangeInclusive<u32> = 6..=30;
/// Fewer pairs say nothing.
const LEAST_PAIRS: usize = 24;
/// Fewer pairs of two granules say nothing.
const LEAST_APART: usize = 8;
/// Share of pairs that may only have seemed to conflict.
const SLIPS: f64 = 0.1;

/// The division that nearly all conflicting pairs agree with, if there is one.
/// Several granules hold where the bits between are bank functions, and any of
/// them is right then; the largest leaves most of a page in one way.
#[must_use]
pub fn find(pairs: &[Pair]) -> Option<Interleave> {
    if pairs.len() < LEAST_PAIRS {
        return None;
    }
    for ways in WAYS {
        for granule in GRANULES.rev().map(|bits| 1u64 << bits) {
            let division = Interleave { ways, granule };
            if holds(pairs, division) && holds_apart(pairs, division) {
                return Some(division);
            }
        }
    }
    None
}

/// Whether lines of a pair are of one way, and those of different pairs are not.
fn holds(pairs: &[Pair], division: Interleave) -> bool {
    let all = pairs.len() as f64;
    let agreeing = pairs.iter().filter(|pair| is_alike(pair, division)).count();
    // Where the pool lies in one granule, all lines are of one way.
    let alike = strangers(pairs).filter(|pair| is_alike(pair, division));
    agreeing as f64 >= (1.0 - SLIPS) * all && alike.count() as f64 <= by_chance(division) * all
}

/// Whether lines of a pair that lie in two granules are of one way, too.
fn holds_apart(pairs: &[Pair], division: Interleave) -> bool {
    let is_apart = |pair: &&Pair| pair.0 / division.granule != pair.1 / division.granule;
    let apart: Vec<&Pair> = pairs.iter().filter(is_apart).collect();
    let agreeing = apart.iter().filter(|pair| is_alike(pair, division)).count();
    apart.len() >= LEAST_APART && agreeing as f64 > by_chance(division) * apart.len() as f64
}

/// Lines of different pairs.
fn strangers(pairs: &[Pair]) -> impl Iterator<Item = Pair> + '_ {
    let next = pairs.iter().cycle().skip(1);
    pairs.iter().zip(next).map(|((a, _), (_, b))| (*a, *b))
}

/// Whether both lines are of one way.
fn is_alike(pair: &Pair, division: Interleave) -> bool {
    let way = |address: u64| address / division.granule % u64::from(division.ways);
    way(pair.0) == way(pair.1)
}

/// Between the share of strangers of one way and that of pairs.
fn by_chance(division: Interleave) -> f64 {
    (1.0 + 1.0 / f64::from(division.ways)) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Random pairs inside `span` that `keep` lets through.
    fn pairs(span: u64, keep: impl Fn(u64, u64) -> bool) -> Vec<Pair> {
        let mut rng = ChaCha8Rng::seed_from_u64(span);
        let mut line = || rng.gen_range(0..span) >> 6 << 6;
        let any = std::iter::repeat_with(|| (line(), line()));
        any.filter(|(a, b)| keep(*a, *b)).take(60).collect()
    }

    #[test]
    fn the_division_is_found_whatever_its_ways_granule_and_base() {
        for (ways, granule) in [(3u32, 256u64), (5, 4096), (7, 128), (3, 1 << 20)] {
            for base in [0, 3 << 30] {
                let way = |a: u64| (a + base) / granule % u64::from(ways);
                let found = find(&pairs(1 << 33, |a, b| way(a) == way(b)));
                assert_eq!(found, Some(Interleave { ways, granule }));
            }
        }
    }

    #[test]
    fn bits_below_that_are_bank_functions_make_the_granule_no_smaller() {
        let way = |a: u64| a / 1024 % 7;
        let found = find(&pairs(1 << 33, |a, b| {
            way(a) == way(b) && (a ^ b) & 0x300 == 0
        }));
        let seven = Interleave {
            ways: 7,
            granule: 1024,
        };
        assert_eq!(found, Some(seven));
    }

    #[test]
    fn six_channels_show_as_three_of_twice_the_granule() {
        let found = find(&pairs(1 << 33, |a, b| a / 256 % 6 == b / 256 % 6));
        let three = Interleave {
            ways: 3,
            granule: 512,
        };
        assert_eq!(found, Some(three));
    }

    /// A Raspberry Pi 5 with its firmware's default: bits 12, 30, 31 and 32.
    #[test]
    fn bank_bits_at_the_top_of_memory_are_no_division() {
        for top in 31..=34 {
            let banks = |a: u64, b: u64| (a ^ b) & (7 << 30 | 1 << 12) == 0;
            let mut found = pairs(1 << top, banks);
            // As few as may be wrong.
            found.truncate(55);
            found.extend(pairs(1 << top, |a, b| (a ^ b) >> 30 != 0).iter().take(5));
            assert_eq!(find(&found), None, "{top}");
        }
    }

    #[test]
    fn pairs_of_xor_maps_and_few_pages_show_none() {
        let parity = |a: u64, b: u64| ((a ^ b) & 0x4_2080).count_ones() % 2 == 0;
        assert_eq!(find(&pairs(1 << 33, parity)), None);
        assert_eq!(find(&pairs(1 << 20, parity)), None);
        assert_eq!(
            find(&pairs(1 << 33, |a, b| a / 256 % 3 == b / 256 % 3)[..8]),
            None
        );
    }
}

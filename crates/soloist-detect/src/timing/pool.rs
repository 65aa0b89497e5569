//! The pages that are measured: which of them, and what they can show.
//!
//! A kernel hands out memory as it likes, often in one piece, and bits that
//! never vary among the pages can't be found. So pages are asked for until
//! they lie all over memory, or until there are no more to be had; a part of
//! them, spread evenly, is measured. Real runs and simulated ones do this by
//! the same code; only who hands out the pages differs ([`Supply`]).

use std::collections::BTreeMap;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use soloist_core::Interleave;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::RamRange;

/// Parts that memory is looked at in.
const BLOCKS: u64 = 128;
/// Parts of memory are not smaller than this.
const LEAST_BLOCK: u64 = 32 << 20;
/// Parts that must each have a page, at most, and what they are not smaller than.
const PARTS: u64 = 4096;
const LEAST_PART: u64 = 16 << 20;
/// Pairs of pages that are kept for each bit in which they differ alone.
const PAIRS_OF_BIT: usize = 4;
/// Share of the parts that must have a page before no more are asked for.
const ENOUGH: f64 = 0.97;

/// Who hands out pages.
pub trait Supply {
    /// Up to `bytes` more, as physical addresses of pages; none: there are no
    /// more.
    fn more(&mut self, bytes: u64) -> Vec<u64>;
}

/// How much memory a pool may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that are kept and measured.
    pub keep: u64,
    /// Bytes that may be asked for to choose them from.
    pub most: u64,
}

/// Pages that were got, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Those to measure.
    pub chosen: Vec<u64>,
    /// All of them.
    pub all: Vec<u64>,
    /// Bytes that were asked for.
    pub asked: u64,
}

/// Asks `supply` for pages until they lie all over `ranges`, and chooses those
/// to keep.
pub fn gather(
    supply: &mut dyn Supply,
    ranges: &[RamRange],
    page_shift: u32,
    limits: Limits,
) -> Gathered {
    let mut pages: Vec<u64> = Vec::new();
    let mut asked = 0;
    let mut next = limits.keep.min(limits.most);
    while next > 0 {
        let more = supply.more(next);
        asked += next;
        if more.is_empty() {
            break;
        }
        pages.extend(more);
        pages.sort_unstable();
        pages.dedup();
        let covers = |size| covered(&pages, ranges, size) >= ENOUGH;
        let part = part_size(ranges).max(1 << page_shift);
        let enough = covers(block_size(ranges)) && covers(part);
        if enough && bits_alone(&pages, ranges, page_shift) {
            break;
        }
        next = asked.min(limits.most.saturating_sub(asked));
    }
    let count = (limits.keep >> page_shift).max(1) as usize;
    Gathered {
        chosen: choose(&pages, ranges, page_shift, count),
        all: pages,
        asked,
    }
}

/// All pages of `range` that were not chosen before and can be had, those that
/// `supply` gives when it is asked for `most` bytes more among them.
pub fn fetch(
    supply: &mut dyn Supply,
    range: &RamRange,
    page_shift: u32,
    had: &[u64],
    most: u64,
) -> Vec<u64> {
    let size = 1u64 << page_shift;
    let inside = |page: &u64| page + size > range.start && *page < range.end;
    let mut pages: Vec<u64> = had.iter().copied().filter(inside).collect();
    let wanted = (range.end - range.start).div_ceil(size) as usize;
    let (mut asked, mut next) = (0, (range.end - range.start).max(64 * size));
    while pages.len() < wanted && asked < most {
        let more = supply.more(next.min(most - asked));
        if more.is_empty() {
            break;
        }
        asked += next;
        next = asked;
        pages.extend(more.into_iter().filter(inside));
        pages.sort_unstable();
        pages.dedup();
    }
    pages
}

/// The part of memory, numbered, of `size` bytes that a page lies in.
fn block_of(ranges: &[RamRange], page: u64, size: u64) -> Option<u64> {
    let mut before = 0;
    for range in ranges {
        if (range.start..range.end).contains(&page) {
            return Some(before + (page - range.start) / size);
        }
        before += (range.end - range.start).div_ceil(size);
    }
    None
}

fn block_size(ranges: &[RamRange]) -> u64 {
    let all: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    (all / BLOCKS).max(LEAST_BLOCK)
}

/// Size of the parts of memory that each must have a page: 16 MiB, or more where
/// there would be too many.
#[must_use]
pub fn part_size(ranges: &[RamRange]) -> u64 {
    let all: u64 = ranges.iter().map(|range| range.end - range.start).sum();
    (all / PARTS).next_power_of_two().max(LEAST_PART)
}

/// Share of the parts of `ranges`, of `size` bytes each, that have a page.
fn covered(pages: &[u64], ranges: &[RamRange], size: u64) -> f64 {
    // What is smaller than a part needn't have one.
    let all: u64 = ranges
        .iter()
        .map(|range| (range.end - range.start) / size)
        .sum();
    let parts = pages
        .iter()
        .filter_map(|&page| block_of(ranges, page, size));
    let mut met: Vec<u64> = parts.collect();
    met.sort_unstable();
    met.dedup();
    met.len() as f64 / all.max(1) as f64
}

/// `count` of the pages, which ascend, in turn from every part of memory, and
/// some more.
fn choose(pages: &[u64], ranges: &[RamRange], page_shift: u32, count: usize) -> Vec<u64> {
    if pages.len() <= count {
        return pages.to_vec();
    }
    let pairs = pairs_in_one_bit(pages, ranges, page_shift);
    let (size, part) = (block_size(ranges), part_size(ranges));
    let mut blocks: BTreeMap<Option<u64>, Vec<u64>> = Default::default();
    let mut parts: BTreeMap<Option<u64>, u64> = Default::default();
    for &page in pages {
        let block = block_of(ranges, page, size);
        blocks.entry(block).or_default().push(page);
        let of_part = parts.entry(block_of(ranges, page, part)).or_insert(page);
        *of_part = std::cmp::min_by_key(*of_part, page, |page| scatter(*page));
    }
    // Within a part, a choice without a pattern (one in eight would never vary
    // in three bits); and its ends, where high bits change.
    let share = count.div_ceil(blocks.len());
    let mut chosen: Vec<u64> = Vec::with_capacity(count);
    for mut block in blocks.into_values() {
        chosen.extend(block.first().into_iter().chain(block.last()));
        block.sort_unstable_by_key(|&page| scatter(page));
        chosen.extend(block.into_iter().take(share));
    }
    chosen.extend(pairs);
    chosen.extend(parts.into_values());
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// The ranges of each node.
#[must_use]
pub fn of_nodes(ranges: &[RamRange]) -> Vec<Vec<RamRange>> {
    let mut nodes: BTreeMap<u8, Vec<RamRange>> = BTreeMap::new();
    for range in ranges {
        nodes.entry(range.node).or_default().push(*range);
    }
    nodes.into_values().collect()
}

fn lies_in(ranges: &[RamRange], address: u64) -> bool {
    ranges
        .iter()
        .any(|range| (range.start..range.end).contains(&address))
}

/// Ranges and pages of each node; pages ascend.
fn by_node(pages: &[u64], ranges: &[RamRange]) -> Vec<(Vec<RamRange>, Vec<u64>)> {
    let with_pages = |own: Vec<RamRange>| {
        let inside = pages.iter().copied().filter(|&page| lies_in(&own, page));
        let inside = inside.collect();
        (own, inside)
    };
    of_nodes(ranges).into_iter().map(with_pages).collect()
}

/// Whether for each bit two pages of a node differ in it alone, where two of its
/// memory do.
fn bits_alone(pages: &[u64], ranges: &[RamRange], page_shift: u32) -> bool {
    let step = (block_size(ranges) / 4).max(1 << page_shift) as usize;
    let exists = |own: &[RamRange], bit: u32| {
        own.iter()
            .flat_map(|range| (range.start..range.end).step_by(step))
            .any(|at| lies_in(own, at ^ 1 << bit))
    };
    by_node(pages, ranges).iter().all(|(own, pages)| {
        (page_shift..span(own))
            .all(|bit| pairs_in(pages, bit).next().is_some() || !exists(own, bit))
    })
}

/// The bits in which addresses of `ranges` differ: those below it.
fn span(ranges: &[RamRange]) -> u32 {
    let ends = ranges.iter().flat_map(|range| [range.start, range.end - 1]);
    let (all, any) = ends.fold((u64::MAX, 0), |(all, any), end| (all & end, any | end));
    64 - (all ^ any).leading_zeros()
}

/// Pairs of `pages`, which ascend, that differ in one bit alone.
fn pairs_in(pages: &[u64], bit: u32) -> impl Iterator<Item = (u64, u64)> + '_ {
    let pairs = pages.iter().map(move |&page| (page, page ^ 1 << bit));
    pairs.filter(|(page, other)| page < other && pages.binary_search(other).is_ok())
}

/// Some pairs of pages that differ in one bit alone, for each bit: only those
/// show that a bit is a row's, and among few pages there are none.
fn pairs_in_one_bit(pages: &[u64], ranges: &[RamRange], page_shift: u32) -> Vec<u64> {
    let mut kept = Vec::new();
    for (own, pages) in by_node(pages, ranges) {
        for bit in page_shift..span(&own) {
            let mut pairs: Vec<(u64, u64)> = pairs_in(&pages, bit).collect();
            pairs.sort_unstable_by_key(|&(page, _)| scatter(page));
            kept.extend(
                pairs
                    .into_iter()
                    .take(PAIRS_OF_BIT)
                    .flat_map(|(a, b)| [a, b]),
            );
        }
    }
    kept
}

/// A hash that mixes (SplitMix64's finaliser).
fn scatter(page: u64) -> u64 {
    let mut x = page.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Pages by address, ascending.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    pages: Vec<u64>,
    page_shift: u32,
}

impl Pool {
    /// A pool of these pages.
    #[must_use]
    pub fn new(mut pages: Vec<u64>, page_shift: u32) -> Self {
        pages.sort_unstable();
        pages.dedup();
        Self { pages, page_shift }
    }

    /// Takes pages in.
    pub fn add(&mut self, pages: impl IntoIterator<Item = u64>) {
        self.pages.extend(pages);
        self.pages.sort_unstable();
        self.pages.dedup();
    }

    /// Page addresses, ascending.
    #[must_use]
    pub fn pages(&self) -> &[u64] {
        &self.pages
    }

    /// log2 of the page size.
    #[must_use]
    pub fn page_shift(&self) -> u32 {
        self.page_shift
    }

    /// Pages that lie, at least in part, in `range`.
    #[must_use]
    pub fn inside(&self, range: &RamRange) -> &[u64] {
        let size = 1u64 << self.page_shift;
        let low = self.pages.partition_point(|p| p + size <= range.start);
        let high = self.pages.partition_point(|&p| p < range.end);
        &self.pages[low..high.max(low)]
    }

    /// Whether it holds the line at `address`.
    #[must_use]
    pub fn has(&self, address: u64) -> bool {
        let page = address >> self.page_shift << self.page_shift;
        self.pages.binary_search(&page).is_ok()
    }

    /// A random line inside `range`; `None` where it holds none.
    pub fn random(&self, range: &RamRange, rng: &mut ChaCha8Rng) -> Option<u64> {
        let size = 1u64 << self.page_shift;
        let pages = self.inside(range);
        for _ in 0..64 {
            if pages.is_empty() {
                return None;
            }
            let page = pages[rng.gen_range(0..pages.len())];
            let (from, to) = (page.max(range.start), (page + size).min(range.end));
            let line = rng.gen_range(from..to) & !63;
            if line >= from {
                return Some(line);
            }
        }
        None
    }

    /// Differences that occur among its lines inside `range`, and the offset of
    /// one: what lies outside their span can't be measured.
    #[must_use]
    pub fn differences(&self, range: &RamRange, lines: Lines) -> Option<(u64, Basis)> {
        let size = 1u64 << self.page_shift;
        let pages = self.inside(range).iter().filter_map(|&page| {
            let (from, to) = (page.max(range.start), (page + size).min(range.end));
            lines.between(from, to - 1)
        });
        differences(pages)
    }
}

/// Lines whose differences are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    /// Offset = address - shift.
    pub shift: u64,
    /// Only those of one way of a division, by their normalised offsets.
    pub way: Option<(Interleave, u32)>,
}

impl Lines {
    /// The offsets of the first and the last of them from address `first` to
    /// `last`.
    fn between(self, first: u64, last: u64) -> Option<[u64; 2]> {
        let [first, last] = [first, last].map(|address| address.wrapping_sub(self.shift));
        let Some((by, way)) = self.way else {
            return Some([first, last]);
        };
        // The first granule of this way that is not all before, the last one
        // that is not all behind.
        let (ways, way) = (u64::from(by.ways), u64::from(way));
        let [low, high] = [first, last].map(|offset| offset / by.granule);
        let from = low + (ways + way - low % ways) % ways;
        let to = high.checked_sub((ways + high % ways - way) % ways)?;
        let ends = [
            first.max(from * by.granule),
            last.min(to * by.granule + (by.granule - 1)),
        ];
        (from <= to).then(|| ends.map(|offset| by.split(offset).1))
    }
}

/// Differences among the numbers of all `spans`, first to last, and the first.
fn differences(spans: impl Iterator<Item = [u64; 2]> + Clone) -> Option<(u64, Basis)> {
    let [origin, _] = spans.clone().next()?;
    // What they can differ in at all: with that, no more need be looked at.
    let varying = spans
        .clone()
        .fold(0, |all, [low, high]| all | (low ^ origin) | (high ^ origin));
    let most = (64 - varying.leading_zeros()) as usize;
    let mut seen = Basis::new();
    for [low, high] in spans {
        spread(&mut seen, low, high);
        seen.insert(low ^ origin);
        if seen.rank() >= most {
            break;
        }
    }
    Some((origin, seen))
}

/// Differences among all numbers from `low` to `high`: every bit up to the
/// highest that differs.
fn spread(seen: &mut Basis, low: u64, high: u64) {
    let bits = 64 - (low ^ high).leading_zeros();
    if bits > 0 {
        // Both sides of the highest bit that differs: all below it vary as
        // far as either side reaches.
        let middle = high >> (bits - 1) << (bits - 1);
        let reach = (high - middle).max(middle - 1 - low);
        let below = 64 - reach.leading_zeros();
        for bit in 0..below.min(bits) {
            // Most pages are alike in this.
            if !seen.contains(1 << bit) {
                seen.insert(1 << bit);
            }
        }
        seen.insert(middle ^ (middle - 1));
    }
}

/// As [`Pool::differences`], among the lines of memory.
#[must_use]
pub fn differences_of_memory<'a>(
    ranges: impl Iterator<Item = &'a RamRange> + Clone,
    lines: Lines,
) -> Option<(u64, Basis)> {
    differences(ranges.filter_map(|range| lines.between(range.start, range.end - 1)))
}

/// The bits that functions name, for a sentence.
#[must_use]
pub fn bits_of(functions: &[u64]) -> String {
    let all = functions.iter().fold(0, |all, f| all | f);
    let bits: Vec<String> = gf2::bits(all).map(|bit| bit.to_string()).collect();
    bits.join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const PLAIN: Lines = Lines {
        shift: 0,
        way: None,
    };

    fn memory() -> Vec<RamRange> {
        let range = |start, end| RamRange {
            start,
            end,
            node: 0,
        };
        vec![range(1 << 20, 3 * GIB), range(4 * GIB, 17 * GIB)]
    }

    /// A kernel that hands out memory from the bottom up.
    struct Upward {
        next: u64,
        end: u64,
    }

    impl Supply for Upward {
        fn more(&mut self, bytes: u64) -> Vec<u64> {
            let end = self.end.min(self.next + bytes);
            let pages = (self.next..end).step_by(2 << 20).collect();
            self.next = end.max(self.next);
            pages
        }
    }

    #[test]
    fn pages_are_asked_for_until_they_lie_all_over_memory() {
        let limits = Limits {
            keep: 512 << 20,
            most: 16 * GIB,
        };
        let mut upward = Upward {
            next: 4 * GIB,
            end: 17 * GIB,
        };
        let pages = gather(&mut upward, &memory(), 21, limits).chosen;
        assert!(upward.next > 14 * GIB, "{:#x}", upward.next);
        // Half a GiB, and one page for each 16 MiB.
        assert!((900..=1200).contains(&pages.len()), "{}", pages.len());
        assert!(pages.iter().any(|&page| page > 14 * GIB));
        let pool = Pool::new(pages, 21);
        let whole = &memory()[1];
        let (_, seen) = pool.differences(whole, PLAIN).unwrap();
        // Bits 0 to 33, and 34 with the others.
        assert!(seen.rank() >= 34, "{}", seen.rank());
    }

    #[test]
    fn the_lines_of_a_way_lie_one_behind_the_other() {
        let by = Interleave {
            ways: 3,
            granule: 256,
        };
        for (first, last) in [
            (64, 5000),
            (300, 1000),
            (1 << 20, (1 << 20) + 130),
            (70u64, 200),
        ] {
            for way in 0..3 {
                let lines = Lines {
                    shift: 64,
                    way: Some((by, way)),
                };
                let all: Vec<u64> = (first..=last)
                    .map(|address: u64| by.split(address.wrapping_sub(64)))
                    .filter(|place| place.0 == way && place.1 < 1 << 40)
                    .map(|place| place.1)
                    .collect();
                let ends = all.first().map(|&low| [low, all[all.len() - 1]]);
                if first >= 64 {
                    assert_eq!(lines.between(first, last), ends, "{first} {last} {way}");
                    let count = ends.map_or(0, |[low, high]| high - low + 1);
                    assert_eq!(count as usize, all.len());
                }
            }
        }
    }

    #[test]
    fn what_never_varies_is_known_not_to() {
        let mut upward = Upward {
            next: 5 * GIB,
            end: 17 * GIB,
        };
        let limits = Limits {
            keep: 512 << 20,
            most: 512 << 20,
        };
        let pool = Pool::new(gather(&mut upward, &memory(), 21, limits).chosen, 21);
        let (_, seen) = pool.differences(&memory()[1], PLAIN).unwrap();
        assert_eq!(seen.rank(), 29);
        let (_, all) = differences_of_memory(memory().iter(), PLAIN).unwrap();
        assert_eq!(all.rank(), 35);
    }
}

//! The last-level cache: which address bits choose the set, and whether a hash
//! over slices makes page colours useless.
//!
//! Lines that are one way's size apart share a set in a plain cache, so as many
//! of them as the cache has ways, and few more, push a line out. In a cache
//! that hashes over slices they spread over the slices, and it takes a multiple.
//! With a group that does push a line out, flipping one address bit of all of it
//! shows whether that bit is part of the set index: then it does so no more.

use std::fs;

use serde::Serialize;
use soloist_core::format_size;

use crate::timing::cpu;
use crate::timing::hardware::Hardware;
use crate::timing::TimingSource;

/// Repetitions of which the majority counts.
const VOTES: u32 = 9;
/// Groups are tried up to this many times the ways.
const MOST: u32 = 24;

/// Size, ways and line of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Geometry {
    /// Bytes.
    pub size: u64,
    /// Associativity.
    pub ways: u32,
    /// Bytes of a line.
    pub line: u32,
}

impl Geometry {
    /// Bytes of one way: addresses so far apart share a set if nothing hashes.
    #[must_use]
    pub fn way(&self) -> u64 {
        self.size / u64::from(self.ways.max(1))
    }
}

/// Something that can tell whether lines push another out of the cache.
pub trait CacheProbe {
    /// Size, ways, line.
    fn geometry(&self) -> Geometry;

    /// Up to `count` lines at a distance of multiples of the way's size from
    /// `target`, itself left out.
    fn congruent(&self, target: u64, count: usize) -> Vec<u64>;

    /// First addresses of all pages in the pool.
    fn pages(&self) -> Vec<u64>;

    /// Bytes of a page, as the kernel has it.
    fn page_bytes(&self) -> u64 {
        4096
    }

    /// Whether the addresses of a page are one piece of physical memory. In a virtual machine
    /// they may not be.
    fn pages_are_whole(&self) -> bool {
        true
    }

    /// Whether the pool holds a line.
    fn has(&self, line: u64) -> bool;

    /// Whether reading all of `lines`, several times, after `target` leaves the
    /// target outside the cache. Once; may be wrong.
    fn evicts(&mut self, target: u64, lines: &[u64]) -> bool;
}

/// What is known of the last level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Llc {
    /// The cache.
    pub geometry: Geometry,
    /// Congruent lines that it takes to push one out; `None`: none did.
    pub group: Option<usize>,
    /// Whether the set index is hashed; `None`: not known.
    pub hashed: Option<bool>,
    /// Address bits that choose the set, of those that could be tried.
    pub set_bits: Vec<u32>,
    /// Set bits above the page offset: the LLC colours; empty when hashed.
    pub color_bits: Vec<u32>,
    /// What follows, in a sentence.
    pub advice: String,
}

/// Looks at the cache behind `probe`, from `target`.
pub fn detect(probe: &mut dyn CacheProbe, target: u64) -> Llc {
    let geometry = probe.geometry();
    let mut found = Llc {
        geometry,
        group: None,
        hashed: None,
        set_bits: Vec::new(),
        color_bits: Vec::new(),
        advice: String::new(),
    };
    let lines = probe.congruent(target, (geometry.ways * MOST) as usize);
    let Some(group) = smallest_group(probe, target, &lines, geometry.ways) else {
        found.advice = format!(
            "{} lines one way apart don't push a line out: not enough memory in huge pages, or a \
             strong hash; don't rely on LLC colours, use resctrl where the CPU has it",
            lines.len()
        );
        return found;
    };
    let hashed = group > 2 * geometry.ways as usize - geometry.ways as usize / 4;
    found.group = Some(group);
    // Scattered pages need more lines, as a hash does. They never need fewer.
    let is_known = !hashed || probe.pages_are_whole();
    found.hashed = is_known.then_some(hashed);
    found.set_bits = set_bits(probe, target, &lines[..group]);
    if !is_known {
        found.advice = "the set index is hashed over slices, or the hypervisor made this virtual \
                        machine's huge pages out of small ones: don't rely on LLC colours \
                        by address bits"
            .into();
    } else if hashed {
        found.advice = "the set index is hashed over slices: page colours do not partition this \
                        cache; use resctrl (CAT) instead. A machine file that says so (`hashed = \
                        true`) lets `soloist run` warn"
            .into();
    } else {
        found.color_bits = found
            .set_bits
            .iter()
            .copied()
            .filter(|&bit| 1 << bit >= probe.page_bytes())
            .collect();
        found.advice = format!(
            "{} LLC colours by plain address bits",
            1u64 << found.color_bits.len()
        );
    }
    found
}

/// By majority.
pub(super) fn evicts(probe: &mut dyn CacheProbe, target: u64, lines: &[u64]) -> bool {
    let yes = (0..VOTES).filter(|_| probe.evicts(target, lines)).count();
    yes as u32 * 2 > VOTES
}

/// How many of `lines` it takes, to a quarter of the ways.
fn smallest_group(
    probe: &mut dyn CacheProbe,
    target: u64,
    lines: &[u64],
    ways: u32,
) -> Option<usize> {
    let step = (ways as usize / 4).max(1);
    let mut count = ways as usize;
    while count <= lines.len() {
        if evicts(probe, target, &lines[..count]) {
            return Some(count);
        }
        count += step;
    }
    None
}

/// Bits whose flip in all lines of the group takes it away from the target.
fn set_bits(probe: &mut dyn CacheProbe, target: u64, group: &[u64]) -> Vec<u32> {
    let geometry = probe.geometry();
    let line_bits = geometry.line.trailing_zeros();
    let way_bits = geometry.way().next_power_of_two().trailing_zeros();
    let mut bits = Vec::new();
    for bit in line_bits..way_bits {
        let moved: Vec<u64> = group.iter().map(|line| line ^ 1 << bit).collect();
        if moved.iter().all(|&line| probe.has(line)) && !evicts(probe, target, &moved) {
            bits.push(bit);
        }
    }
    bits
}

/// This machine's last level, by its own memory.
pub struct HardwareProbe<'a> {
    memory: &'a Hardware,
    geometry: Geometry,
    /// Slower than this is from memory.
    threshold: u32,
    page_bytes: u64,
}

/// Between the times of [`cpu::READS`] reads that hit and that miss; `None`: they are too near.
fn threshold(mut hits: Vec<u32>, mut misses: Vec<u32>, reads: u32) -> Option<u32> {
    let median = |times: &mut Vec<u32>| {
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    };
    let (hit, miss) = (median(&mut hits)?, median(&mut misses)?);
    // 20 cycles of one read; half a tick of each of many.
    let least = if reads == 1 { 20 } else { reads / 2 };
    // A hit in the last level is nearer to one in the first than to memory.
    (miss > hit + least).then(|| hit + (miss - hit) * 3 / 5)
}

/// Why this machine's last level can't be looked at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoProbe {
    /// sysfs has none.
    #[error("the kernel names no last-level cache")]
    Unnamed,
    /// Too little memory.
    #[error("{have} of memory push no line out of the last-level cache of {cache}: give it {wanted} or more (--memory)")]
    Memory {
        /// What there is.
        have: String,
        /// Size of the cache.
        cache: String,
        /// Twice that.
        wanted: String,
    },
    /// Times are too near.
    #[error("hits and misses of the last-level cache can't be told apart here")]
    Apart,
}

/// Whether so much memory pushes lines out of the cache.
fn enough(have: u64, cache: u64) -> Result<(), NoProbe> {
    match have < 2 * cache {
        true => Err(NoProbe::Memory {
            have: format_size(have),
            cache: format_size(cache),
            wanted: format_size(2 * cache),
        }),
        false => Ok(()),
    }
}

impl<'a> HardwareProbe<'a> {
    /// Reads the geometry from sysfs and times hits and misses.
    ///
    /// # Errors
    /// When sysfs tells nothing, memory is too small, or hits and misses can't be told apart.
    pub fn new(memory: &'a Hardware) -> Result<Self, NoProbe> {
        let geometry = geometry_of_host().ok_or(NoProbe::Unnamed)?;
        let pages = memory.pages().count() as u64;
        enough(pages << memory.page_shift(), geometry.size)?;
        let first = memory.pages().next().and_then(|page| memory.locate(page));
        let line = first.ok_or(NoProbe::Apart)?;
        let read = |flushed: bool| {
            // SAFETY: the line lies in the pool, which lives on.
            unsafe {
                if flushed {
                    cpu::flush(line);
                } else {
                    cpu::time_one(line);
                }
                cpu::time_one(line)
            }
        };
        let once = |flushed: bool| (0..cpu::READS).map(|_| read(flushed)).sum();
        let times = |flushed: bool| (0..101).map(|_| once(flushed)).collect();
        let threshold = threshold(times(false), times(true), cpu::READS).ok_or(NoProbe::Apart)?;
        Ok(Self {
            memory,
            geometry,
            threshold,
            page_bytes: 1 << memory.frame_shift(),
        })
    }

    /// A line to look from.
    #[must_use]
    pub fn target(&self) -> u64 {
        // Ranges may be of all memory: the pool has pages of them, not their first bytes.
        self.memory.pages().next().unwrap_or(0) + 0x8c0
    }
}

impl CacheProbe for HardwareProbe<'_> {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn congruent(&self, target: u64, count: usize) -> Vec<u64> {
        let way = self.geometry.way();
        // Only bits inside a page are known: a way must fit into one.
        if !way.is_power_of_two() || way > 1 << self.memory.page_shift() {
            return Vec::new();
        }
        // A page is aligned to its size, and a way fits into it: so are ways.
        let per_page = (1 << self.memory.page_shift()) / way;
        let lines = self.memory.pages().flat_map(|page| {
            let first = page + target % way;
            (0..per_page).map(move |i| first + i * way)
        });
        lines.filter(|&line| line != target).take(count).collect()
    }

    fn pages(&self) -> Vec<u64> {
        let bytes = 1u64 << self.memory.page_shift();
        let pages = self.memory.pages();
        let small = |page: u64| (page..page + bytes).step_by(self.page_bytes as usize);
        pages.flat_map(small).collect()
    }

    fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    fn pages_are_whole(&self) -> bool {
        self.memory.pages_are_whole()
    }

    fn has(&self, line: u64) -> bool {
        self.memory.locate(line).is_some()
    }

    fn evicts(&mut self, target: u64, lines: &[u64]) -> bool {
        let Some(target) = self.memory.locate(target) else {
            return false;
        };
        let lines: Vec<*const u8> = lines
            .iter()
            .filter_map(|&l| self.memory.locate(l))
            .collect();
        // SAFETY: all lie in the pool. Forth and back, so that replacement
        // that is not strictly by age gives way too.
        let once = || unsafe {
            cpu::time_one(target);
            for _ in 0..3 {
                for &line in lines.iter().chain(lines.iter().rev()) {
                    std::ptr::read_volatile(line);
                }
            }
            cpu::time_one(target)
        };
        (0..cpu::READS).map(|_| once()).sum::<u32>() > self.threshold
    }
}

/// The last level of the processor that the caller runs on, as sysfs tells it: one machine may
/// have several, of several sizes.
#[must_use]
pub fn geometry_of_host() -> Option<Geometry> {
    // SAFETY: it takes nothing; where it fails, the first one does.
    let cpu = unsafe { libc::sched_getcpu() }.max(0);
    let root = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let last = (0..8)
        .rev()
        .map(|i| format!("{root}/index{i}"))
        .find(|path| fs::metadata(path).is_ok())?;
    let read = |name: &str| {
        let text = fs::read_to_string(format!("{last}/{name}")).ok()?;
        soloist_core::parse_size(&text).ok()
    };
    Some(Geometry {
        size: read("size")?,
        ways: read("ways_of_associativity")? as u32,
        line: read("coherency_line_size")? as u32,
    })
    .filter(|geometry| geometry.ways > 0 && geometry.line.is_power_of_two())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::timing::hardware::HardwareOptions;
    use soloist_machine::{gf2, RamRange};

    /// A cache that keeps the last `ways` lines of each set and slice.
    struct Model {
        geometry: Geometry,
        slices: Vec<u64>,
        calls: u32,
        /// Every so often the answer is wrong.
        wrong_every: u32,
        /// The hypervisor puts small pages anywhere.
        is_scattered: bool,
    }

    impl Model {
        fn place(&self, mut line: u64) -> (u64, u64) {
            if self.is_scattered {
                let frame = (line >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
                line = frame << 12 | line & 0xfff;
            }
            let sets = self.geometry.way() >> self.slices.len();
            let slice = self
                .slices
                .iter()
                .fold(0, |slice, &mask| slice << 1 | gf2::parity(mask, line));
            (line / 64 % (sets / 64), slice)
        }
    }

    impl CacheProbe for Model {
        fn geometry(&self) -> Geometry {
            self.geometry
        }
        fn congruent(&self, target: u64, count: usize) -> Vec<u64> {
            let way = self.geometry.way();
            (1..=count as u64).map(|i| target + i * way).collect()
        }
        fn pages(&self) -> Vec<u64> {
            Vec::new()
        }
        fn pages_are_whole(&self) -> bool {
            !self.is_scattered
        }
        fn has(&self, _line: u64) -> bool {
            true
        }
        fn evicts(&mut self, target: u64, lines: &[u64]) -> bool {
            self.calls += 1;
            let place = self.place(target);
            let rivals = lines
                .iter()
                .filter(|&&line| self.place(line) == place)
                .count();
            let truth = rivals >= self.geometry.ways as usize;
            truth != (self.wrong_every > 0 && self.calls % self.wrong_every == 0)
        }
    }

    /// Too little memory is not called a cache that can't be seen.
    #[test]
    fn too_little_memory_is_named() {
        let why = enough(4096, 8 << 20).unwrap_err().to_string();
        assert!(
            why.contains("4 KiB of memory") && why.contains("give it 16 MiB"),
            "{why}"
        );
        assert_eq!(enough(16 << 20, 8 << 20), Ok(()));
    }

    #[test]
    fn a_plain_cache_has_the_opterons_32_colours() {
        let mut model = Model {
            geometry: Geometry {
                size: 6 << 20,
                ways: 48,
                line: 64,
            },
            slices: Vec::new(),
            calls: 0,
            wrong_every: 5,
            is_scattered: false,
        };
        let found = detect(&mut model, 0x4_0000_1240);
        assert_eq!(found.hashed, Some(false));
        assert_eq!(found.set_bits, (6..17).collect::<Vec<_>>());
        assert_eq!(found.color_bits, [12, 13, 14, 15, 16]);
    }

    /// Of one read no tick of 52 ns tells 25 ns from 130; of many the sum does.
    #[test]
    fn a_slow_counter_tells_hits_from_misses() {
        for mhz in [19.2, 54.0] {
            let mut phase = 0.0f64;
            let mut time = |ns: f64, reads: u32| -> u32 {
                let one = |_| {
                    phase = (phase + 0.618_034).fract();
                    (phase + ns * mhz / 1000.0).floor() as u32
                };
                (0..reads).map(one).sum()
            };
            let reads = 16;
            let mut times = |ns, reads| (0..101).map(|_| time(ns, reads)).collect::<Vec<_>>();
            assert_eq!(threshold(times(25.0, 1), times(130.0, 1), 1), None);
            let (hits, misses) = (times(25.0, reads), times(130.0, reads));
            let at =
                threshold(hits.clone(), misses.clone(), reads).expect("they differ by two ticks");
            assert!(hits.iter().all(|&t| t <= at) && misses.iter().all(|&t| t > at));
        }
    }

    /// With physical addresses the ranges are all of memory, and the pool has a few pages
    /// somewhere in them.
    #[test]
    fn lines_are_of_the_pool_wherever_its_ranges_begin() {
        let small = soloist_host::machine::Host::at("/").page_size().shift();
        let options = HardwareOptions {
            memory: Some(16 << small),
            page_shift: Some(small),
            unprivileged: true,
            ..HardwareOptions::default()
        };
        let memory = Hardware::new(&options).unwrap().moved_by(
            1 << 32,
            vec![RamRange {
                start: 0x1000,
                end: 2 << 32,
                node: 0,
            }],
        );
        let page = 1u64 << memory.page_shift();
        let mut probe = HardwareProbe {
            geometry: Geometry {
                size: 4 * page / 2,
                ways: 4,
                line: 64,
            },
            threshold: 0,
            page_bytes: page,
            memory: &memory,
        };
        let target = probe.target();
        assert!(probe.has(target), "{target:#x}");
        let way = probe.geometry.way();
        let lines = probe.congruent(target, 8);
        assert_eq!(lines.len(), 8);
        let fit = |&line: &u64| probe.has(line) && line != target && (line ^ target) % way == 0;
        assert!(lines.iter().all(fit), "{target:#x}: {lines:x?}");
        assert!(probe.evicts(target, &lines));
    }

    #[test]
    fn a_sliced_cache_is_called_hashed() {
        let mut model = Model {
            geometry: Geometry {
                size: 8 << 20,
                ways: 16,
                line: 64,
            },
            slices: vec![0x1_b5f5_7540, 0x2_eb5f_aa80],
            calls: 0,
            wrong_every: 7,
            is_scattered: false,
        };
        let found = detect(&mut model, 0x4_0000_1240);
        assert_eq!(found.hashed, Some(true));
        assert!(found.color_bits.is_empty());
        assert!(found.advice.contains("resctrl"));
    }

    /// A guest's huge page may be 512 of the host's pages, anywhere: it looks like a hash.
    #[test]
    fn a_plain_cache_is_not_called_hashed_in_a_virtual_machine() {
        let mut model = Model {
            geometry: Geometry {
                size: 1 << 20,
                ways: 16,
                line: 64,
            },
            slices: Vec::new(),
            calls: 0,
            wrong_every: 0,
            is_scattered: true,
        };
        let found = detect(&mut model, 0x4_0000_1240);
        assert!(found.group.is_some_and(|group| group > 32), "{found:?}");
        assert_eq!(found.hashed, None);
        assert!(found.color_bits.is_empty() && found.advice.contains("hypervisor"));
    }
}

//! How many page colours the last-level cache has, by which pages push each other out,
//! whatever its hash is (CacheX, arXiv 2511.09956, finds a cloud machine's so).
//!
//! Lines at one place in their pages are reduced to a smallest group that pushes a target
//! out: those share its set. With one of them left out, another page takes its place only if
//! it is of the target's class, so the share of pages that do is one over the number of
//! classes. A class is a colour only if it holds for the whole page: the group must push out
//! the target's page at other places too. A hash that is linear keeps it so; others don't.

use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::cache::llc::{evicts, CacheProbe};

/// The place in a page that is looked at first.
const PLACE: u64 = 0x8c0;
/// Other places at which a class must hold, and of how many targets.
const PLACES: usize = 8;
/// Pages, or groups of them, that are asked whether they are of the target's class.
const ASKED: usize = 96;
/// Pages of a group where single ones hardly ever are.
const GROUP: usize = 16;
/// With fewer single pages of the class groups are asked.
const LEAST: usize = 8;
/// Standard errors on each side of the estimate.
const ERRORS: f64 = 2.6;
/// Lines of a smallest group, at most, in ways of the last level.
const MOST_WAYS: usize = 6;
/// Pages that are looked through, in times of those that fill the cache.
pub const POOL: u64 = 6;
/// Pages that are sorted, in times of those that fill the cache: half of a class is still half
/// as much again as the cache has room for.
const SORTED: u64 = 3;
/// Times that a reduction that came to no smallest group begins anew.
const TRIES: usize = 3;

/// What is known of the cache's page colours.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Eviction {
    /// Lines of the smallest group that pushes one out.
    pub group: usize,
    /// Classes of pages: about so many.
    pub classes: f64,
    /// Between so many in 99 of 100 cases; no end above: too few were met.
    pub least: f64,
    /// See `least`.
    pub most: Option<f64>,
    /// Places in a page at which the class held, of those that were tried.
    pub held: usize,
    /// Places that were tried.
    pub tried: usize,
    /// A page, and its group less one: what other pages are held against.
    #[serde(skip)]
    target: u64,
    #[serde(skip)]
    kept: Vec<u64>,
}

/// Pages by class.
#[derive(Debug, Clone)]
pub struct Sorted {
    /// Of one class.
    pub own: Vec<u64>,
    /// Of all others.
    pub others: Vec<u64>,
    /// Classes that there are.
    pub classes: f64,
}

/// Why no page colours of the cache are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unseen {
    /// Time was up.
    #[error("no group of pages was found in time that pushes a line out: a longer --deadline may find one")]
    Late,
    /// There was time enough, but memory was too little, or noise too much.
    #[error("no group of pages was found that pushes a line out: memory is too small for one (--memory), or noise hides it")]
    NoGroup,
}

impl Eviction {
    /// Whether a page's class is that of all its lines.
    #[must_use]
    pub fn is_of_pages(&self) -> bool {
        2 * self.held > self.tried
    }

    /// Page colours of the cache: about so many; 1: none.
    #[must_use]
    pub fn colors(&self) -> f64 {
        match self.is_of_pages() {
            true => self.classes.max(1.0),
            false => 1.0,
        }
    }

    /// Sorts pages by whether they are of the class that was looked at: as many as fill the
    /// cache three times. `None`: classes are not of whole pages, or there is but one.
    pub fn sort(&self, probe: &mut dyn CacheProbe, seed: u64) -> Option<Sorted> {
        // Nearer to one than to two.
        if self.colors() < 1.5 {
            return None;
        }
        let mut pages = probe.pages();
        pages.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        pages.retain(|page| *page != self.target && !self.kept.contains(page));
        pages.truncate((SORTED * probe.geometry().size / probe.page_bytes()) as usize);
        let is_own = |page: &u64| {
            let with: Vec<u64> = self.kept.iter().chain([page]).copied().collect();
            pushes(probe, self.target, &with, PLACE)
        };
        let (own, others) = pages.into_iter().partition(is_own);
        Some(Sorted {
            own,
            others,
            classes: self.classes,
        })
    }

    /// What follows, in a sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        if !self.is_of_pages() {
            return format!(
                "Pages that push each other out at one place do so at {} of {} others: the hash keeps no page \
                 together, so page colours divide nothing of this cache.",
                self.held, self.tried
            );
        }
        if self.most.is_some_and(|most| most < 2.0) {
            return "All pages push each other out: the cache has no page colours.".to_owned();
        }
        let between = match self.most {
            Some(most) => format!("{:.0} to {most:.0}", self.least),
            None => format!("{:.0} or more", self.least),
        };
        format!(
            "By which pages push each other out the cache has about {:.0} page colours ({between}), whatever \
             address bits choose them.",
            self.classes
        )
    }
}

/// As [`detect`], with pages that are sorted by the class that was looked at.
///
/// # Errors
/// Why there is none, such as that no group is found within `deadline`.
pub fn look(
    probe: &mut dyn CacheProbe,
    seed: u64,
    deadline: Duration,
    progress: &mut dyn FnMut(f64),
) -> Result<(Eviction, Option<Sorted>), Unseen> {
    let found = detect_within(probe, seed, Some(deadline), progress)?;
    let sorted = found.sort(probe, seed);
    Ok((found, sorted))
}

/// Looks at the cache behind `probe`; `None`: no group pushes a line out, for lack of memory
/// or for noise.
pub fn detect(
    probe: &mut dyn CacheProbe,
    seed: u64,
    progress: &mut dyn FnMut(f64),
) -> Option<Eviction> {
    detect_within(probe, seed, None, progress).ok()
}

fn detect_within(
    probe: &mut dyn CacheProbe,
    seed: u64,
    deadline: Option<Duration>,
    progress: &mut dyn FnMut(f64),
) -> Result<Eviction, Unseen> {
    let begun = Instant::now();
    let is_late = || deadline.is_some_and(|deadline| begun.elapsed() > deadline);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut pages = probe.pages();
    pages.shuffle(&mut rng);
    pages.truncate((POOL * probe.geometry().size / probe.page_bytes()) as usize);
    let mut of_one = |turn| {
        progress(turn as f64 / TRIES as f64 / 2.0);
        pages.rotate_left(1);
        let (&target, others) = pages.split_first().ok_or(Unseen::NoGroup)?;
        let group = smallest(probe, target, others, &is_late)?;
        Ok((target, group))
    };
    let mut tries = (0..TRIES).map(&mut of_one);
    let is_over = |tried: &Result<_, _>| !matches!(tried, Err(Unseen::NoGroup));
    let (target, group) = tries.find(is_over).unwrap_or(Err(Unseen::NoGroup))?;
    progress(0.5);
    let rest: Vec<u64> = pages
        .iter()
        .copied()
        .filter(|page| *page != target && !group.contains(page))
        .collect();
    let (held, tried) = holds(probe, target, &group, &mut rng);
    progress(0.6);
    let asked = classes(probe, target, &group, &rest, progress).ok_or(Unseen::NoGroup)?;
    // The target and its group are of the class, and were not among those asked.
    let taken = group.len() as f64 + 1.0;
    let of_all = |classes: f64| {
        let (all, rest) = (pages.len() as f64, pages.len() as f64 - taken);
        all / (taken + rest / classes)
    };
    let (classes, least, most) = (of_all(asked.0), of_all(asked.1), asked.2.map(of_all));
    Ok(Eviction {
        group: group.len(),
        classes,
        least,
        most,
        held,
        tried,
        target,
        kept: group[1..].to_vec(),
    })
}

/// Whether the lines of `pages` at `place` push out that of `target`.
fn pushes(probe: &mut dyn CacheProbe, target: u64, pages: &[u64], place: u64) -> bool {
    let lines: Vec<u64> = pages.iter().map(|page| page + place).collect();
    evicts(probe, target + place, &lines)
}

/// A group of `pages` none of which can be left out. Of one more parts than are needed one
/// holds nothing that is needed, so it goes. Where a level before the last keeps what the
/// last one does not have, lines of both are needed.
fn smallest(
    probe: &mut dyn CacheProbe,
    target: u64,
    pages: &[u64],
    is_late: &dyn Fn() -> bool,
) -> Result<Vec<u64>, Unseen> {
    let most = MOST_WAYS * probe.geometry().ways.max(1) as usize;
    let mut group = pages.to_vec();
    if !pushes(probe, target, &group, PLACE) {
        return Err(Unseen::NoGroup);
    }
    loop {
        let (before, part) = (group.len(), group.len().div_ceil(most + 1).max(1));
        let mut from = 0;
        while from < group.len() {
            if is_late() {
                return Err(Unseen::Late);
            }
            let mut without = group.clone();
            without.drain(from..(from + part).min(group.len()));
            match pushes(probe, target, &without, PLACE) {
                true => group = without,
                false => from += part,
            }
        }
        match group.len() < before {
            true => {}
            false if part > 1 => return Err(Unseen::NoGroup),
            false => break,
        }
    }
    match group.len() <= most && pushes(probe, target, &group, PLACE) {
        true => Ok(group),
        false => Err(Unseen::NoGroup),
    }
}

/// At how many other places the group pushes out the target's page.
fn holds(
    probe: &mut dyn CacheProbe,
    target: u64,
    group: &[u64],
    rng: &mut ChaCha8Rng,
) -> (usize, usize) {
    let line = u64::from(probe.geometry().line);
    let places: Vec<u64> = (0..PLACES)
        .map(|_| rng.gen_range(0..probe.page_bytes() / line) * line)
        .collect();
    let held = places
        .iter()
        .filter(|&&place| pushes(probe, target, group, place));
    (held.count(), places.len())
}

/// Number of classes and between what it lies, among the `pages` asked, by the share of pages that can stand for one
/// of the group; `None`: what is left of the group pushes the target out by itself.
fn classes(
    probe: &mut dyn CacheProbe,
    target: u64,
    group: &[u64],
    pages: &[u64],
    progress: &mut dyn FnMut(f64),
) -> Option<(f64, f64, Option<f64>)> {
    let (_, kept) = group.split_first()?;
    if pushes(probe, target, kept, PLACE) {
        return None;
    }
    let mut ask = |size: usize| {
        let groups: Vec<&[u64]> = pages.chunks_exact(size).take(ASKED).collect();
        let of_class = groups.iter().enumerate().filter(|(turn, some)| {
            progress(0.6 + 0.4 * *turn as f64 / ASKED as f64);
            let with: Vec<u64> = kept.iter().chain(some.iter()).copied().collect();
            pushes(probe, target, &with, PLACE)
        });
        (of_class.count(), groups.len())
    };
    let (mut met, mut asked) = ask(1);
    let mut size = 1;
    if met < LEAST {
        size = GROUP;
        (met, asked) = ask(size);
    }
    (asked > 0).then(|| estimate(met, asked, size))
}

/// Classes where `met` of `asked` groups of `size` pages had one of the class.
fn estimate(met: usize, asked: usize, size: usize) -> (f64, f64, Option<f64>) {
    let n = asked as f64;
    let share = met as f64 / n;
    // Wilson's interval.
    let z = ERRORS * ERRORS / n;
    let middle = (share + z / 2.0) / (1.0 + z);
    let half = ERRORS / (1.0 + z) * (share * (1.0 - share) / n + z / (4.0 * n)).sqrt();
    let classes = |share: f64| match share {
        s if s >= 1.0 => 1.0,
        s => 1.0 / (1.0 - (1.0 - s).powf(1.0 / size as f64)),
    };
    let least = classes((middle + half).min(1.0));
    let most = (met > 0).then(|| classes((middle - half).max(0.0)));
    (if met > 0 { classes(share) } else { least }, least, most)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::cache::llc::Geometry;
    use soloist_machine::gf2;

    /// How a line finds its slice.
    enum Hash {
        Masks(Vec<u64>),
        /// One of three, by the sum of pieces of the address.
        Thirds,
    }

    struct Model {
        geometry: Geometry,
        hash: Hash,
        slices: u64,
        calls: u32,
        /// Every so often the answer is wrong.
        wrong_every: u32,
    }

    impl Model {
        fn new(mib: u64, ways: u32, hash: Hash, wrong_every: u32) -> Self {
            let slices = match &hash {
                Hash::Masks(masks) => 1 << masks.len(),
                Hash::Thirds => 3,
            };
            Self {
                geometry: Geometry {
                    size: mib << 20,
                    ways,
                    line: 64,
                },
                hash,
                slices,
                calls: 0,
                wrong_every,
            }
        }

        fn place(&self, line: u64) -> (u64, u64) {
            let sets = self.geometry.way() / 64 / self.slices;
            let slice = match &self.hash {
                Hash::Masks(masks) => {
                    let bits = masks.iter().enumerate();
                    bits.map(|(i, &mask)| gf2::parity(mask, line) << i).sum()
                }
                Hash::Thirds => (line >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 & 0xffff,
            };
            (line / 64 % sets, slice % self.slices)
        }
    }

    impl CacheProbe for Model {
        fn geometry(&self) -> Geometry {
            self.geometry
        }
        fn congruent(&self, _target: u64, _count: usize) -> Vec<u64> {
            Vec::new()
        }
        fn has(&self, _line: u64) -> bool {
            true
        }
        fn pages(&self) -> Vec<u64> {
            // Pages of 4 KiB from all over 4 GiB.
            (0..12_000u64)
                .map(|i| i * 0x9e37_79b1 % (1 << 20) << 12)
                .collect()
        }
        fn evicts(&mut self, target: u64, lines: &[u64]) -> bool {
            self.calls += 1;
            let place = self.place(target);
            let rivals = lines.iter().filter(|&&line| self.place(line) == place);
            let truth = rivals.count() >= self.geometry.ways as usize;
            truth != (self.wrong_every > 0 && self.calls % self.wrong_every == 0)
        }
    }

    fn found(model: Model) -> Eviction {
        let mut model = model;
        detect(&mut model, 1, &mut |_| {}).unwrap()
    }

    /// (cache, colours: a page's lines are 64 sets)
    #[test]
    fn colours_are_counted_whatever_chooses_the_set() {
        let masks = vec![0x1_b5f5_7540, 0x2_eb5f_aa80];
        for (name, model, truth) in [
            (
                "plain, as an Opteron",
                Model::new(6, 48, Hash::Masks(Vec::new()), 11),
                32.0,
            ),
            (
                "two linear functions",
                Model::new(8, 16, Hash::Masks(masks), 13),
                128.0,
            ),
            (
                "a way is a page",
                Model::new(1, 256, Hash::Masks(Vec::new()), 0),
                1.0,
            ),
        ] {
            let found = found(model);
            assert!(found.is_of_pages(), "{name}: {found:?}");
            let most = found.most.unwrap();
            assert!(found.least <= truth && truth <= most, "{name}: {found:?}");
            assert!(most < 4.0 * truth, "{name}: {found:?}");
        }
    }

    /// Of ten looks none says that such pages have colours.
    #[test]
    fn a_hash_that_keeps_no_page_together_has_no_colours() {
        for seed in 0..10 {
            let mut model = Model::new(6, 16, Hash::Thirds, 13);
            let found = detect(&mut model, seed, &mut |_| {}).unwrap();
            assert!(!found.is_of_pages(), "{found:?}");
            assert_eq!(found.colors(), 1.0);
            let said = found.verdict();
            assert!(said.contains("divide nothing"), "{said}");
        }
    }

    /// A large cache takes long; somebody waits.
    #[test]
    fn a_look_ends_at_its_deadline() {
        let mut model = Model::new(6, 48, Hash::Masks(Vec::new()), 0);
        let found = look(&mut model, 1, Duration::ZERO, &mut |_| {});
        assert_eq!(found.err(), Some(Unseen::Late));
        // Only whether all pages push the target out.
        assert_eq!(model.calls, 9);
    }

    #[test]
    fn nothing_is_claimed_where_no_line_is_pushed_out() {
        let mut model = Model::new(512, 16, Hash::Masks(Vec::new()), 7);
        assert_eq!(detect(&mut model, 1, &mut |_| {}), None);
        // More time finds no more.
        let found = look(&mut model, 1, Duration::MAX, &mut |_| {});
        assert_eq!(found.err(), Some(Unseen::NoGroup));
    }
}

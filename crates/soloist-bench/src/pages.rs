//! Whole pages, with caches: what page colours buy here.
//!
//! A victim follows pointers through a working set that fits into its share of the last
//! level, or one that is larger than the cache. Neighbours read or write as much as the cache
//! holds, again and again; nobody flushes. *Spread*: all tasks have pages from anywhere, as
//! Linux places them. *Private*: the victim has pages of its own, drawn anew for each block,
//! and the neighbours have others ([`By`]):
//!
//! - of a class of pages that push each other out of the last level ([`Sorted`]), whatever
//!   address bits choose it;
//! - of some bank colours, by the functions that were found ([`Caching::bank_color`]);
//! - of both at once;
//! - with one value of one address bit, each bit that is known, then the two together that
//!   saved most, measured anew. A bit that chooses cache sets divides the cache so, one that
//!   chooses banks divides those, and one that does both does both.
//!
//! The saving is spread less private, both beside neighbours, so it is net of the cost of
//! fewer sets and banks. All judgements of a run share one limit for chance (Holm), so of
//! many divisions without an effect hardly any is claimed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use soloist_core::statistics::median;

use crate::cores::{Attack, Round};
use crate::slices::{figures, Figures, Plan, LEAST_BLOCKS, PATIENCE};
use crate::statistics::difference::{at_most, judge, Difference, Loss};
use crate::two_banks::CHANCE;
use soloist_detect::cache::eviction::Sorted;

pub mod real;
pub mod sim;

/// Bits that are tried, from the page offset's end on.
const MOST_BITS: u32 = 9;

/// Processors whose caches play a part, real or simulated.
pub trait Caching {
    /// Neighbours at most.
    fn most_neighbours(&self) -> usize;

    /// Bytes of the last-level cache.
    fn cache_bytes(&self) -> u64;

    /// Bytes of a page as the kernel has it.
    fn page_bytes(&self) -> u64;

    /// First addresses of all such pages; those of huge pages, so that the bits below
    /// `known_bits` are physical ones.
    fn pages(&self) -> Vec<u64>;

    /// The first address bit that may not be a physical one.
    fn known_bits(&self) -> u32;

    /// The bank colour of a page: pages of one lie in the same banks. `None`: not known.
    fn bank_color(&self, page: u64) -> Option<u64>;

    /// The victim on all lines of its pages, beside neighbours that do `attack` on theirs.
    /// `None`: a neighbour hardly ran.
    fn round(&mut self, own: &[u64], theirs: &[Vec<u64>], attack: Attack) -> Option<Round>;
}

/// What the victim's pages have in common, and no page of its neighbours has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// The values of these address bits; of two the victim has a quarter of the pages.
    Bits(Vec<u32>),
    /// The class of pages that push each other out of the last level.
    Class,
    /// A quarter of the bank colours.
    Banks,
    /// The class, and half of the bank colours.
    ClassAndBanks,
}

impl By {
    /// In words.
    fn says(&self) -> String {
        match self {
            Self::Bits(bits) => {
                let bits: Vec<String> = bits.iter().map(u32::to_string).collect();
                format!("by bit {}", bits.join(" and "))
            }
            Self::Class => "by what pushes out".to_owned(),
            Self::Banks => "by bank colours".to_owned(),
            Self::ClassAndBanks => "by what pushes out and bank colours".to_owned(),
        }
    }
}

/// How large the victim's working set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// A quarter of the last level.
    Inside,
    /// Twice the last level, or what a quarter of the memory at hand has.
    Beyond,
    /// Three quarters of what the last level has for one class of pages.
    OfClass,
    /// Half as much again as it has for one, or what there is.
    BeyondClass,
}

/// Which divisions are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// By classes of pages, by bank colours and by both, where they are known.
    Colors,
    /// By address bits, too.
    All,
}

/// Pages divided in one way.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Split {
    /// The way.
    pub by: By,
    /// The victim's working set.
    pub size: Size,
    /// Its bytes.
    pub bytes: u64,
    /// Neighbours.
    pub neighbours: usize,
    /// What they do.
    pub attack: Attack,
    /// The victim beside neighbours, spread over all pages.
    pub spread: Figures,
    /// In pages of its own.
    pub private: Figures,
    /// The saving by private pages.
    pub saved: Difference,
    /// By which share the neighbours are slower.
    pub neighbours_lose: Loss,
    /// Blocks that count.
    pub blocks: usize,
}

impl Split {
    /// The figures in a sentence, which claims nothing that chance explains.
    #[must_use]
    pub fn verdict(&self) -> String {
        let set = match self.size {
            Size::Inside => "a working set inside the cache",
            Size::Beyond => "one beyond it",
            Size::OfClass => "a working set that one class has room for",
            Size::BeyondClass => "one that a class has no room for",
        };
        let head = format!(
            "Pages {}, {set}, {}:",
            self.by.says(),
            self.attack.neighbours(self.neighbours)
        );
        let lose = self.neighbours_lose.says();
        if !self.saved.shown && !self.saved.shown_less {
            return format!(
                "{head} that pages of its own save anything is not shown ({}){lose}.",
                at_most(self.saved.ns.high / self.spread.ns)
            );
        }
        let worse = if self.saved.shown_less {
            ", so worse"
        } else {
            ""
        };
        format!(
            "{head} {:.0} ns spread, {:.0} in pages of its own{worse}{lose}.",
            self.spread.ns, self.private.ns
        )
    }

    /// Whether anything is shown: a saving, harm, or what it costs the neighbours.
    #[must_use]
    pub fn shows_anything(&self) -> bool {
        self.saved.shown || self.saved.shown_less || self.neighbours_lose.shown
    }
}

/// Why nothing can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoPages {
    /// No bit of a page's address is a physical one.
    #[error("memory has no huge pages, so no address bit of a page is known")]
    Bits,
    /// Nothing is known that tells pages apart.
    #[error("neither classes of pages that push each other out nor bank colours are known; `--only pages` tries address bits")]
    Colors,
    /// Too few pages.
    #[error("memory is less than four times the last-level cache; give it more (--memory)")]
    Memory,
    /// Blocks hardly count.
    #[error("co-runners hardly ran beside the victim: other tasks use the CPUs")]
    Taken,
}

/// The pages of the victim and of each neighbour.
struct Shares {
    own: Vec<u64>,
    theirs: Vec<Vec<u64>>,
}

impl Shares {
    /// Pages that each neighbour has, at least.
    fn pages_of_each(&self) -> usize {
        self.theirs.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Leaves both as many: less pressure, or a smaller working set, would save something, too.
    /// `None`: one of them has nothing.
    fn alike(mut one: Self, mut other: Self) -> Option<[Self; 2]> {
        let own = one.own.len().min(other.own.len());
        let each = one.pages_of_each().min(other.pages_of_each());
        for shares in [&mut one, &mut other] {
            shares.own.truncate(own);
            shares.theirs.iter_mut().for_each(|of| of.truncate(each));
        }
        (own > 0 && each > 0).then_some([one, other])
    }
}

/// The blocks measured of one split: spread, private.
struct Taken {
    by: By,
    size: Size,
    attack: Attack,
    /// Pages of the victim, in each block at least.
    pages: usize,
    blocks: Vec<[Round; 2]>,
}

struct Experiment<'a> {
    cores: &'a mut dyn Caching,
    sorted: Option<&'a Sorted>,
    page: u64,
    pages: Vec<u64>,
    /// Pages by bank colour; empty where there are not two colours.
    colors: BTreeMap<u64, Vec<u64>>,
    plan: Plan,
    rng: ChaCha8Rng,
}

/// Measures what is `tried`. Address bits are tried beside writers; what is known to divide
/// something, and the two best bits together, beside readers and beside writers.
///
/// # Errors
/// Why nothing could be measured.
pub fn measure(
    cores: &mut dyn Caching,
    sorted: Option<&Sorted>,
    tried: Tried,
    plan: Plan,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<Split>, NoPages> {
    let mut experiment = Experiment::new(cores, sorted, plan);
    let mut taken = experiment.colors();
    if tried == Tried::All {
        taken.extend(experiment.bits());
    }
    if taken.is_empty() {
        return Err(match tried {
            Tried::Colors => NoPages::Colors,
            Tried::All => NoPages::Bits,
        });
    }
    if (experiment.pages.len() as u64) * experiment.page < 4 * experiment.cores.cache_bytes() {
        return Err(NoPages::Memory);
    }
    let time = plan.time * 4 / 5;
    experiment.take(&mut taken, time, &mut |share| progress(0.8 * share));
    if taken.iter().all(|one| one.blocks.len() < LEAST_BLOCKS) {
        return Err(NoPages::Taken);
    }
    let mut both = best_together(&taken);
    experiment.take(&mut both, plan.time / 5, &mut |share| {
        progress(0.8 + 0.2 * share);
    });
    taken.extend(both);
    let enough = taken.iter().filter(|one| one.blocks.len() >= LEAST_BLOCKS);
    let mut splits: Vec<Split> = enough.map(|one| experiment.split(one)).collect();
    let both = splits.iter_mut();
    let both = both.map(|one| (&mut one.saved, &mut one.neighbours_lose));
    let (differences, losses) = both.unzip();
    judge(differences, losses, CHANCE);
    Ok(splits)
}

/// For each working set the two address bits that saved most.
fn best_together(taken: &[Taken]) -> Vec<Taken> {
    let best = |size: Size| -> Option<By> {
        let of_size = taken.iter().filter(|one| one.size == size);
        let mut best: Vec<(u32, f64)> = of_size
            .filter_map(|one| match &one.by {
                By::Bits(bits) if !one.blocks.is_empty() => Some((bits[0], one.median_saved())),
                _ => None,
            })
            .collect();
        best.sort_by(|a, b| b.1.total_cmp(&a.1));
        match best[..] {
            [first, second, ..] => Some(By::Bits(vec![first.0, second.0])),
            _ => None,
        }
    };
    let sizes = [Size::Inside, Size::Beyond].into_iter();
    let pairs = sizes.filter_map(|size| Some(Taken::beside_both(&best(size)?, size)));
    pairs.flatten().collect()
}

impl Taken {
    fn of(by: By, size: Size, attack: Attack) -> Self {
        Self {
            by,
            size,
            attack,
            pages: usize::MAX,
            blocks: Vec::new(),
        }
    }

    /// Beside readers, beside writers.
    fn beside_both(by: &By, size: Size) -> [Self; 2] {
        [Attack::Read, Attack::Write].map(|attack| Self::of(by.clone(), size, attack))
    }

    fn saved(&self) -> Vec<f64> {
        let saved = |[spread, private]: &[Round; 2]| spread.ns - private.ns;
        self.blocks.iter().map(saved).collect()
    }

    fn median_saved(&self) -> f64 {
        median(&mut self.saved())
    }
}

impl<'a> Experiment<'a> {
    fn new(cores: &'a mut dyn Caching, sorted: Option<&'a Sorted>, plan: Plan) -> Self {
        let pages = cores.pages();
        let mut colors: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for &page in &pages {
            if let Some(color) = cores.bank_color(page) {
                colors.entry(color).or_default().push(page);
            }
        }
        if colors.len() < 2 {
            colors.clear();
        }
        Self {
            page: cores.page_bytes(),
            cores,
            sorted,
            pages,
            colors,
            plan,
            rng: ChaCha8Rng::seed_from_u64(plan.seed),
        }
    }

    /// By what is known to tell pages apart.
    fn colors(&self) -> Vec<Taken> {
        let mut all = Vec::new();
        let mut of = |by: &By, sizes: [Size; 2]| {
            all.extend(
                sizes
                    .into_iter()
                    .flat_map(|size| Taken::beside_both(by, size)),
            );
        };
        let of_class = [Size::OfClass, Size::BeyondClass];
        if self.sorted.is_some() {
            of(&By::Class, of_class);
        }
        if !self.colors.is_empty() {
            of(&By::Banks, [Size::Inside, Size::Beyond]);
            if self.sorted.is_some() {
                of(&By::ClassAndBanks, of_class);
            }
        }
        all
    }

    /// By each address bit.
    fn bits(&self) -> Vec<Taken> {
        let first = self.page.trailing_zeros();
        let bits = first..self.cores.known_bits().min(first + MOST_BITS);
        let sizes = [Size::Inside, Size::Beyond];
        let of = |bit| sizes.map(|size| Taken::of(By::Bits(vec![bit]), size, Attack::Write));
        bits.flat_map(of).collect()
    }

    /// Takes blocks of all, in random order, until each has as many as planned.
    fn take(&mut self, all: &mut [Taken], time: Duration, progress: &mut dyn FnMut(f64)) {
        let begun = Instant::now();
        for turn in 0..PATIENCE as usize * self.plan.blocks {
            let least = all.iter().map(|one| one.blocks.len()).min();
            let least = least.unwrap_or(self.plan.blocks);
            let late = begun.elapsed();
            let enough = least >= self.plan.blocks || (late > time && least >= LEAST_BLOCKS);
            if enough || late > PATIENCE * time {
                break;
            }
            let mut order: Vec<usize> = (0..all.len()).collect();
            order.shuffle(&mut self.rng);
            for at in order {
                self.block(&mut all[at]);
            }
            let by_time = late.as_secs_f64() / time.as_secs_f64().max(1e-9);
            let by_blocks = (turn + 1) as f64 / self.plan.blocks as f64;
            progress(by_blocks.max(by_time).min(1.0));
        }
    }

    /// Spread and private, either first.
    fn block(&mut self, of: &mut Taken) {
        let spread = self.shares(&[], of.size);
        let private = self.private(&of.by, of.size);
        let Some(shares) = Shares::alike(spread, private) else {
            return;
        };
        let mut order = [0, 1];
        order.shuffle(&mut self.rng);
        let mut rounds = [None, None];
        for at in order {
            let Shares { own, theirs } = &shares[at];
            rounds[at] = self.cores.round(own, theirs, of.attack);
        }
        if let [Some(spread), Some(private)] = rounds {
            of.pages = of.pages.min(shares[0].own.len());
            of.blocks.push([spread, private]);
        }
    }

    fn private(&mut self, by: &By, size: Size) -> Shares {
        match (by, self.sorted) {
            (By::Bits(bits), _) => self.shares(bits, size),
            (By::Banks, _) => {
                let [own, others] = self.split_colors(4);
                self.shares_of(own, others, size)
            }
            (By::Class, Some(sorted)) => {
                self.shares_of(sorted.own.clone(), sorted.others.clone(), size)
            }
            (By::ClassAndBanks, Some(sorted)) => {
                let [own, others] = self.split_colors(2).map(|mut pages| {
                    pages.sort_unstable();
                    pages
                });
                let among = |pages: &[u64], of: &[u64]| -> Vec<u64> {
                    let is_in = |page: &&u64| of.binary_search(page).is_ok();
                    pages.iter().filter(is_in).copied().collect()
                };
                let (own, others) = (among(&sorted.own, &own), among(&sorted.others, &others));
                self.shares_of(own, others, size)
            }
            (By::Class | By::ClassAndBanks, None) => self.shares_of(Vec::new(), Vec::new(), size),
        }
    }

    /// The pages of a random one of `parts` of the bank colours, and those of the others.
    fn split_colors(&mut self, parts: usize) -> [Vec<u64>; 2] {
        let mut colors: Vec<&Vec<u64>> = self.colors.values().collect();
        colors.shuffle(&mut self.rng);
        let (own, others) = colors.split_at((colors.len() / parts).max(1));
        [own, others].map(|colors| {
            colors
                .iter()
                .flat_map(|pages| pages.iter().copied())
                .collect()
        })
    }

    /// As many of `own` as the working set has, and `others` for the neighbours.
    fn shares_of(&mut self, mut own: Vec<u64>, mut others: Vec<u64>, size: Size) -> Shares {
        own.shuffle(&mut self.rng);
        own.truncate((self.bytes(size) / self.page) as usize);
        others.shuffle(&mut self.rng);
        self.deal(own, &others)
    }

    /// Pages for all: by these bits, or without any spread over all pages.
    fn shares(&mut self, bits: &[u32], size: Size) -> Shares {
        let value: u64 = self.rng.gen();
        let is_own = |page: &u64| bits.iter().all(|bit| (page ^ value) >> bit & 1 == 0);
        let mut pages = self.pages.clone();
        pages.shuffle(&mut self.rng);
        let wanted = (self.bytes(size) / self.page) as usize;
        let (mut own, mut rest) = (Vec::with_capacity(wanted), Vec::new());
        for page in pages {
            match own.len() < wanted && is_own(&page) {
                true => own.push(page),
                false if bits.is_empty() || !is_own(&page) => rest.push(page),
                false => {}
            }
        }
        self.deal(own, &rest)
    }

    /// Deals as much of `rest` as the cache holds to the neighbours, as many pages to each.
    fn deal(&self, own: Vec<u64>, rest: &[u64]) -> Shares {
        let neighbours = self.cores.most_neighbours();
        let wanted = (self.cores.cache_bytes() / self.page) as usize;
        let each = wanted.min(rest.len()) / neighbours.max(1);
        let theirs = rest.chunks(each.max(1)).take(neighbours);
        Shares {
            own,
            theirs: theirs.map(<[u64]>::to_vec).collect(),
        }
    }

    /// Bytes of a working set; of a class there may be fewer.
    fn bytes(&self, size: Size) -> u64 {
        let cache = self.cores.cache_bytes();
        let of_class = |share: f64| {
            let classes = self.sorted.map_or(1.0, |sorted| sorted.classes);
            let pages = share * cache as f64 / classes / self.page as f64;
            (pages as u64).max(1) * self.page
        };
        match size {
            Size::Inside => cache / 4,
            // Two bits leave a quarter of all pages.
            Size::Beyond => (2 * cache).min(self.pages.len() as u64 * self.page / 4),
            Size::OfClass => of_class(0.75),
            Size::BeyondClass => of_class(1.5),
        }
    }

    fn split(&self, taken: &Taken) -> Split {
        let of = |at: usize| figures(taken.blocks.iter().map(move |block| &block[at]));
        let blocks = taken.blocks.iter();
        let rates = blocks.map(|[spread, private]| (spread.rate, private.rate));
        Split {
            by: taken.by.clone(),
            size: taken.size,
            bytes: taken.pages as u64 * self.page,
            neighbours: self.cores.most_neighbours(),
            attack: taken.attack,
            spread: of(0),
            private: of(1),
            saved: Difference::of(&taken.saved()),
            neighbours_lose: Loss::of(rates),
            blocks: taken.blocks.len(),
        }
    }
}

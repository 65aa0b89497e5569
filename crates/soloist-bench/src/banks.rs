//! Lines of known banks, and slices of few of them.
//!
//! Where functions hold inside a page, they and the classes of pages say the bank of
//! every line: what `soloist map detect` finds. Where none do (a host whose huge
//! pages are made of small ones, channels by a division), lines of a few banks are
//! found pair by pair. A *slice* is all lines of some banks: tasks confined to it have
//! a memory as small as a small machine's.

pub mod sets;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use soloist_machine::gf2::{self, Basis};

use sets::SetsError;
use soloist_detect::classes::classify::classify;
use soloist_detect::classes::Classes;
use soloist_detect::layout::names::{self, SURE};
use soloist_detect::layout::node::solve_node;
use soloist_detect::meter::Meter;
use soloist_detect::model::Model;
use soloist_detect::timing::{Addresses, TimingSource};

/// Banks found pair by pair.
const BY_PAIRS: usize = 16;
/// Lines of each of them: for each task, and at least.
const OF_TASK: usize = 12;
const LEAST_LINES: usize = 48;
/// Random lines of all of memory.
const ANYWHERE: usize = 1 << 16;
/// Lines of a bank that are kept.
const MOST_LINES: usize = 8192;
/// A slice of fewer banks leaves none to be private.
pub const LEAST_BANKS: usize = 4;

/// How lines and banks were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// By these functions inside a page, and a class for each page.
    Functions(Vec<u64>),
    /// Pair by pair.
    Pairs,
}

/// Lines by bank.
#[derive(Debug, Clone)]
pub struct Banks {
    /// How they were found.
    pub how: How,
    /// Of each bank; by functions, all banks of memory.
    lines: Vec<Vec<u64>>,
    /// Banks that memory has, by functions or by how often random pairs conflict; `None`:
    /// nobody knows.
    pub total: Option<f64>,
    /// Random lines of all of memory, where `lines` are of few banks.
    pub anywhere: Vec<u64>,
    /// Functions, sums of the bank functions, that choose the channel: half of the lines take
    /// twice as long when all processors read at once. None: none is seen to.
    pub channel: Vec<u64>,
    /// Why nobody knows whether there are any; `None`: it was looked at.
    pub channel_why: Option<String>,
    /// log2 of a page as the kernel has it.
    pub frame_shift: u32,
    /// Huge pages, and by what the number of a bank of theirs differs from what the functions
    /// say; none where lines were found pair by pair.
    pages: Vec<(u64, usize)>,
    /// log2 of a huge page.
    page_shift: u32,
}

/// Functions that choose the channel, and why nobody knows of any.
fn channel(meter: &mut Meter<'_>, model: &Model) -> (Vec<u64>, Option<String>) {
    match names::channel(meter, model) {
        Ok(Some(name)) if name.confidence < SURE => {
            let why = format!("what was seen is too unsure ({:.2})", name.confidence);
            (Vec::new(), Some(why))
        }
        Ok(name) => (name.map_or_else(Vec::new, |name| name.functions), None),
        Err(why) => (Vec::new(), Some(why.to_string())),
    }
}

/// What the functions say of an address, a bit each.
fn value(functions: &[u64], address: u64) -> usize {
    let bit = |(i, &f): (usize, &u64)| (gf2::parity(f, address) as usize) << i;
    functions.iter().enumerate().map(bit).sum()
}

/// One of several programs that draw lines and have none in common.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// From 0.
    pub number: usize,
    /// How many there are.
    pub owners: usize,
}

impl Owner {
    /// How many of `lines` are its own: every `owners`-th.
    fn count(self, lines: usize) -> usize {
        (lines + self.owners - 1 - self.number) / self.owners
    }

    /// Where its line number `i` is among all.
    fn index(self, i: usize) -> usize {
        i * self.owners + self.number
    }
}

impl Banks {
    /// Finds lines in the memory of `source` for a victim and `neighbours`, each part
    /// within `deadline`.
    ///
    /// # Errors
    /// When conflicts can't be seen, or what is found does not hold.
    pub fn find(
        source: &mut dyn TimingSource,
        neighbours: usize,
        deadline: Duration,
        seed: u64,
        progress: &mut dyn FnMut(&str, f64),
    ) -> Result<Self, SetsError> {
        let (found, total) = Self::by_functions(source, deadline, seed, progress);
        if let Some(found) = found {
            return Ok(found);
        }
        let mut meter = Meter::new(source, deadline, seed);
        let lines = LEAST_LINES.max(OF_TASK * (neighbours + 1));
        let mut tell = |share| progress("looking for lines of 16 banks", share);
        let lines = sets::many(&mut meter, BY_PAIRS, lines, &mut tell)?;
        Ok(Self {
            how: How::Pairs,
            total,
            lines,
            anywhere: sets::anywhere(&mut meter, ANYWHERE)?,
            channel: Vec::new(),
            channel_why: None,
            frame_shift: meter.source().frame_shift(),
            pages: Vec::new(),
            page_shift: 0,
        })
    }

    /// As [`Banks::find`], by functions inside a page and a class for each page, or not at all;
    /// and how many banks memory has by how often random pairs conflict, where that is known.
    pub fn by_functions(
        source: &mut dyn TimingSource,
        deadline: Duration,
        seed: u64,
        progress: &mut dyn FnMut(&str, f64),
    ) -> (Option<Self>, Option<f64>) {
        let Addresses::InsidePages { page_shift } = source.addresses() else {
            return (None, None);
        };
        let mut meter = Meter::new(source, deadline, seed);
        let pages = meter.source().ranges();
        let mut tell = |share| progress("looking for bank functions", share);
        let node = solve_node(&mut meter, &pages[..pages.len().min(1)], None, &mut tell);
        let Some(region) = node.regions.first() else {
            return (None, None);
        };
        let total = Some(region.banks_by_rate);
        if !region.is_sound() || region.division.is_some() {
            return (None, total);
        }
        let mut tell = |share| progress("sorting pages into classes", share);
        let model = &region.model;
        let classes = classify(&mut meter, model, page_shift, pages.len(), &mut tell);
        if !classes.proof.holds() {
            return (None, total);
        }
        progress("reading on all CPUs at once", 0.0);
        let (channel, channel_why) = channel(&mut meter, model);
        let found = Self {
            channel,
            channel_why,
            frame_shift: meter.source().frame_shift(),
            ..Self::of_classes(&classes, meter.source().line_shift())
        };
        (Some(found), total)
    }

    /// The lines of pages that are sorted into classes.
    #[must_use]
    pub fn of_classes(classes: &Classes, line_shift: u32) -> Self {
        let mut order: Vec<usize> = (0..classes.functions.len()).collect();
        order.sort_unstable_by_key(|&i| classes.functions[i].trailing_zeros());
        let functions: Vec<u64> = order.iter().map(|&i| classes.functions[i]).collect();
        let moved = |class: u32| -> usize {
            let moved = order.iter().enumerate();
            moved
                .map(|(i, &old)| (class as usize >> old & 1) << i)
                .sum()
        };
        let pages = classes.pages.iter();
        let pages = pages.filter_map(|page| Some((page.page, moved(page.class?))));
        let pages: Vec<(u64, usize)> = pages.collect();
        let mut lines: Vec<Vec<u64>> = vec![Vec::new(); 1 << functions.len()];
        for offset in (0..1u64 << classes.page_shift).step_by(1 << line_shift) {
            let inside = value(&functions, offset);
            for (page, moved) in &pages {
                lines[inside ^ moved].push(page + offset);
            }
        }
        // From all over the pages, not from the first of them.
        for bank in &mut lines {
            let step = bank.len().div_ceil(MOST_LINES).max(1);
            *bank = bank.iter().copied().step_by(step).collect();
        }
        Self {
            total: Some(lines.len() as f64),
            how: How::Functions(functions),
            lines,
            anywhere: Vec::new(),
            channel: Vec::new(),
            channel_why: None,
            frame_shift: 12,
            pages,
            page_shift: classes.page_shift,
        }
    }

    /// Whether slices can be made of all of memory's banks.
    #[must_use]
    pub fn are_all(&self) -> bool {
        matches!(self.how, How::Functions(_))
    }

    /// Sizes of the slices that there are, the largest first. Where lines were found pair by
    /// pair a smallest one makes three: fewer have no law.
    #[must_use]
    pub fn sizes(&self) -> Vec<usize> {
        let all = self.lines.len();
        let least = if self.are_all() { 8 } else { LEAST_BANKS };
        let small = [64, 32, 16, 8, 4].into_iter();
        let small = small.filter(|&size| size < all && size >= least);
        let whole = std::iter::once(all).filter(|&all| all >= LEAST_BANKS);
        whole.chain(small).collect()
    }

    /// The numbers of a slice's banks: those for which the lowest functions are 0.
    #[must_use]
    pub fn slice(&self, size: usize) -> Vec<usize> {
        let step = (self.lines.len() / size.max(1)).max(1);
        (0..size.min(self.lines.len())).map(|i| i * step).collect()
    }

    /// Some `count` lines of `banks`, as many of each, in random order: those of one
    /// of several owners, who have no line in common.
    pub fn draw(
        &self,
        banks: &[usize],
        owner: Owner,
        count: usize,
        rng: &mut ChaCha8Rng,
    ) -> Vec<u64> {
        let each = count.div_ceil(banks.len().max(1));
        let mut drawn = Vec::with_capacity(each * banks.len());
        for &bank in banks {
            let lines = &self.lines[bank];
            let own = owner.count(lines.len());
            let chosen = rand::seq::index::sample(rng, own, each.min(own));
            drawn.extend(chosen.iter().map(|i| lines[owner.index(i)]));
        }
        drawn.shuffle(rng);
        drawn
    }

    /// The lines of `bank` that are one of several owners', side by side in memory: those of
    /// a page are one row's where rows are as large.
    #[must_use]
    pub fn share(&self, bank: usize, owner: Owner) -> Vec<u64> {
        let mut lines = self.lines[bank].clone();
        lines.sort_unstable();
        let begin = |number: usize| lines.len() * number / owner.owners;
        lines[begin(owner.number)..begin(owner.number + 1)].to_vec()
    }

    /// As [`Banks::draw`], of all of memory.
    pub fn draw_anywhere(&self, owner: Owner, count: usize, rng: &mut ChaCha8Rng) -> Vec<u64> {
        let own = owner.count(self.anywhere.len());
        let chosen = rand::seq::index::sample(rng, own, count.min(own));
        let line = |i: usize| self.anywhere[owner.index(i)];
        chosen.iter().map(line).collect()
    }

    /// A random quarter of the banks, and the others.
    pub fn split(banks: &[usize], rng: &mut ChaCha8Rng) -> (Vec<usize>, Vec<usize>) {
        let mut shuffled = banks.to_vec();
        shuffled.shuffle(rng);
        let others = shuffled.split_off((banks.len() / 4).max(1));
        (shuffled, others)
    }

    /// Banks that the kernel's pages lie in together: what page colours can't tell apart.
    /// A set for each colour; none where no functions are known.
    #[must_use]
    pub fn page_sets(&self) -> Vec<Vec<usize>> {
        if !self.are_all() {
            return Vec::new();
        }
        let inside = self.inside_pages();
        let mut sets: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for bank in 0..self.lines.len() {
            let set = inside.reduce(bank as u64);
            sets.entry(set).or_default().push(bank);
        }
        sets.into_values().collect()
    }

    /// The colour of each of the kernel's pages: those of one lie in the same banks. None where
    /// no functions are known.
    #[must_use]
    pub fn page_colors(&self) -> HashMap<u64, u64> {
        let How::Functions(functions) = &self.how else {
            return HashMap::new();
        };
        let inside = self.inside_pages();
        let mut colors = HashMap::new();
        for offset in (0..1u64 << self.page_shift).step_by(1 << self.frame_shift) {
            let first = value(functions, offset);
            let of = |&(page, moved): &(u64, usize)| {
                (page + offset, inside.reduce((first ^ moved) as u64))
            };
            colors.extend(self.pages.iter().map(of));
        }
        colors
    }

    /// What lines of one of the kernel's pages differ by, as numbers of banks.
    fn inside_pages(&self) -> Basis {
        let functions = match &self.how {
            How::Functions(functions) => functions.as_slice(),
            How::Pairs => &[],
        };
        Basis::of((0..self.frame_shift).map(|bit| value(functions, 1 << bit) as u64))
    }

    /// The banks for which the sum of some functions, a bit each of `sum`, is 0, and
    /// those for which it is 1.
    #[must_use]
    pub fn apart(&self, sum: u64) -> [Vec<usize>; 2] {
        let is_in = |bank: &usize| gf2::parity(sum, *bank as u64) == 1;
        let (ones, zeros) = (0..self.lines.len()).partition(is_in);
        [zeros, ones]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use soloist_machine::known;

    use super::*;
    use soloist_detect::timing::sim::{SimPool, SimSource};

    /// Too many functions, and no time: nobody looked, and why.
    #[test]
    fn why_nobody_looked_for_channels_is_kept() {
        let machine = known::find("haswell").unwrap();
        let noise = "low".parse().unwrap();
        let mut memory = SimSource::new(&machine, SimPool::unprivileged(21, 8), noise, 1);
        let mut why = |functions: u32, seconds: u64| {
            let mut meter = Meter::new(&mut memory, Duration::from_secs(seconds), 1);
            let model = Model {
                functions: (0..functions).map(|i| 1 << (6 + i)).collect(),
                ..Model::default()
            };
            channel(&mut meter, &model)
        };
        let (none, said) = why(11, 60);
        assert!(none.is_empty());
        assert!(said.unwrap().contains("of 11 functions"));
        assert_eq!(why(0, 60), (Vec::new(), None));
        let said = why(2, 0).1.unwrap();
        assert!(!said.is_empty(), "{said}");
    }
}

//! Memory that devices hide below 4 GiB, where firmware puts it behind all other.
//!
//! Intel's clients leave memory where it lies up to REMAPBASE; from there to the end
//! follows what their devices hide: offset = address - REMAPBASE + TOLUD, all in steps
//! of a MiB. No operating system shows the border, and a bit above the memory's size
//! mimics what changes there. So the end of memory, as much as may have been hidden, is
//! left out where functions are found. Then it is measured in which bank some lines of
//! it lie, and every shift and border that contradicts one of them is dropped; lines
//! are added where those that are left differ, until they say the same of every MiB.
//! Memory of which they never do is left out of the map.

use std::collections::BTreeMap;

use soloist_machine::RamRange;

use crate::layout::place::HOLE_END;
use crate::layout::sweep::{Anchors, STEP};
use crate::meter::{Meter, Stop};
use crate::model::{InWay, Model, Section};
use soloist_map::sources::bridge::Lifted;

/// Devices hide more than this.
const LEAST_HIDDEN: u64 = 64 << 20;
/// Functions are found in no less than this.
const LEAST_HEAD: u64 = 256 << 20;
/// Distance of the lines that are measured first.
const FIRST: u64 = 16 << 20;
/// Banks that a line is looked for in.
const MOST_BANKS: usize = 1 << 10;
/// Memory around a border that all pages are asked for of, at most.
const MOST_FETCHED: u64 = 256 << 20;
/// Rounds of lines that are added, and how many a round.
const ROUNDS: usize = 16;
const ADDED: usize = 8;
/// Lines that may have been misjudged, one in so many.
const MISJUDGED: usize = 32;

/// The end of memory, of which as much may be lifted as the hole below 4 GiB hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// All of it.
    pub range: RamRange,
    /// End of memory below 4 GiB.
    low: u64,
}

/// The findings on a tail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The memory that is lifted; `None`: none is, and the tail lies as the memory before it.
    pub lifted: Option<Lifted>,
    /// Memory whose bank is not known.
    pub open: Vec<RamRange>,
}

impl Tail {
    /// The tail of a node's memory, ascending; `None` where there is no hole, or
    /// too little before what may be lifted.
    #[must_use]
    pub fn of(spans: &[RamRange]) -> Option<Self> {
        let (low, high): (Vec<&RamRange>, Vec<&RamRange>) =
            spans.iter().partition(|span| span.start < HOLE_END);
        let low = low.last()?.end;
        let (first, last) = (high.first()?, high.last()?);
        let hidden = HOLE_END.checked_sub(low / STEP * STEP)?;
        let start = last.end.next_multiple_of(STEP) - hidden;
        let range = RamRange { start, ..**last };
        (hidden >= LEAST_HIDDEN && start >= first.start + LEAST_HEAD && start < last.end)
            .then_some(Self { range, low })
    }

    /// The parts of `spans` before it, ascending.
    #[must_use]
    pub fn cut_off(&self, spans: Vec<RamRange>) -> Vec<RamRange> {
        let before = spans.into_iter().map(|span| RamRange {
            end: span.end.min(self.range.start),
            ..span
        });
        before.filter(|span| span.start < span.end).collect()
    }

    /// The section that ends before it, above 4 GiB.
    #[must_use]
    pub fn head(&self, sections: &[Section]) -> Option<usize> {
        let above = |section: &&Section| {
            section.range.start >= HOLE_END && section.range.end <= self.range.start
        };
        let last = sections.iter().filter(above).map(|s| s.range.end).max()?;
        sections
            .iter()
            .position(|section| section.range.end == last)
    }

    /// Shifts that what is lifted may have: it fits into the hole, all of it.
    fn shifts(&self) -> impl Iterator<Item = u64> {
        let least = self.range.end.next_multiple_of(STEP) - HOLE_END;
        let most = self.range.end.saturating_sub(LEAST_HIDDEN + self.low);
        (least..=most).step_by(STEP as usize)
    }

    /// The first MiB, the last and all between.
    fn steps(&self) -> impl Iterator<Item = u64> {
        let first = self.range.start / STEP * STEP;
        (first..self.range.end).step_by(STEP as usize)
    }

    /// The MiB from `first` to `last`.
    fn between(&self, first: u64, last: u64) -> RamRange {
        RamRange {
            start: first.max(self.range.start),
            end: (last + STEP).min(self.range.end),
            ..self.range
        }
    }

    /// A line of the pool in a MiB.
    fn line(&self, meter: &mut Meter<'_>, step: u64) -> Option<u64> {
        meter.random(&self.between(step, step)).ok()
    }
}

/// A line, and what was measured of it: way and bank, `None` where it is in no bank
/// that it may be in.
#[derive(Debug, Clone, Copy)]
struct Known {
    line: u64,
    bank: Option<InWay>,
}

/// A shift that nothing measured contradicts, and the MiB that the border may be in.
#[derive(Debug, Clone, Copy)]
struct Likely {
    shift: u64,
    /// The border is not before it.
    earliest: u64,
    /// The border is not behind it.
    latest: u64,
}

/// Finds what of `tail` is lifted, by the functions of `model`, which were found before
/// it, under `shift`. `by_host` is what the host says, if it does: then nothing else is looked
/// for. `None`: no shift explains what was measured, or not what was told.
///
/// # Errors
/// When the deadline has passed.
pub fn find(
    meter: &mut Meter<'_>,
    model: &Model,
    shift: u64,
    tail: &Tail,
    by_host: Option<Lifted>,
) -> Result<Option<Found>, Stop> {
    let mut search = Search {
        by_host,
        anchors: Anchors::of(meter, model, &model.sections),
        model,
        shift,
        tail,
        known: Vec::new(),
        bare: Vec::new(),
    };
    search.run(meter)
}

struct Search<'a> {
    anchors: Anchors,
    model: &'a Model,
    /// Of what is before the tail.
    shift: u64,
    /// The memory that the host says is lifted.
    by_host: Option<Lifted>,
    tail: &'a Tail,
    /// Ascending.
    known: Vec<Known>,
    /// MiB that no page lies in, or whose bank can't be told.
    bare: Vec<u64>,
}

impl Search<'_> {
    fn run(&mut self, meter: &mut Meter<'_>) -> Result<Option<Found>, Stop> {
        let first: Vec<u64> = self.tail.steps().collect();
        for steps in first.chunks((FIRST / STEP) as usize) {
            // The first that has a page.
            for &step in steps {
                if let Some(line) = self.tail.line(meter, step) {
                    self.learn(meter, line)?;
                    break;
                }
            }
        }
        let mut likely = self.likely();
        if likely.is_none() {
            self.doubt(meter)?;
            likely = self.likely();
        }
        let mut fetched = false;
        for _ in 0..ROUNDS {
            let Some((straight, shifts)) = &likely else {
                return Ok(None);
            };
            let mut asked: Vec<u64> = self.disputed(*straight, shifts);
            asked.retain(|step| !self.bare.contains(step));
            if asked.is_empty() {
                break;
            }
            let span = self.tail.between(asked[0], asked[asked.len() - 1]);
            if !fetched && span.end - span.start <= MOST_FETCHED {
                fetched = true;
                meter.fetch(&span);
            }
            // Evenly among them: a border is closed in on from both sides.
            let every = asked.len().div_ceil(ADDED).max(1);
            for step in asked.iter().skip(every / 2).step_by(every) {
                match self.tail.line(meter, *step) {
                    Some(line) => self.learn(meter, line)?,
                    None => self.bare.push(*step),
                }
            }
            likely = self.likely();
        }
        Ok(likely.map(|(straight, shifts)| self.settled(straight, &shifts)))
    }

    /// Measures in which bank a line is.
    fn learn(&mut self, meter: &mut Meter<'_>, line: u64) -> Result<(), Stop> {
        let bank = self.bank(meter, line)?;
        let at = self.known.partition_point(|known| known.line < line);
        self.known.insert(at, Known { line, bank });
        Ok(())
    }

    /// The bank of a line: the one it would be in were nothing lifted, those of likely
    /// shifts, then all that differ in functions that a shift can change.
    fn bank(&self, meter: &mut Meter<'_>, line: u64) -> Result<Option<InWay>, Stop> {
        let straight = self.at(line, self.shift);
        let likely = self
            .by_host
            .map(|lifted| lifted.shift)
            .or(self.tail.shifts().next());
        let likely = likely.map(|shift| self.at(line, shift));
        let (way, bank) = straight;
        let functions = self.model.functions.iter().enumerate();
        let changed: Vec<usize> = functions
            .filter(|(_, &f)| f >= STEP)
            .map(|(i, _)| i)
            .collect();
        let sums = (0..1usize << changed.len().min(10)).map(|sum| {
            let flips = changed.iter().enumerate();
            flips.fold(bank, |bank, (i, at)| bank ^ ((sum as u64 >> i & 1) << at))
        });
        let ways = self.model.ways();
        let others = sums.flat_map(|bank| (0..ways).map(move |i| ((way + i) % ways, bank)));
        let mut tried = Vec::new();
        let candidates = std::iter::once(straight).chain(likely).chain(others);
        for candidate in candidates.take(MOST_BANKS) {
            if !tried.contains(&candidate) {
                if self.anchors.holds(meter, line, candidate)? == Some(true) {
                    return Ok(Some(candidate));
                }
                tried.push(candidate);
            }
        }
        Ok(None)
    }

    fn at(&self, line: u64, shift: u64) -> InWay {
        self.model.bank_at(line.wrapping_sub(shift))
    }

    /// Whether nothing may be lifted, and the shifts under which something may; `None`:
    /// whatever is lifted, something measured contradicts it.
    fn likely(&self) -> Option<(bool, Vec<Likely>)> {
        let fits = |known: &Known, shift| known.bank == Some(self.at(known.line, shift));
        if let Some(Lifted { border, shift }) = self.by_host {
            let before = |known: &Known| {
                if known.line < border {
                    self.shift
                } else {
                    shift
                }
            };
            let holds = self.known.iter().all(|known| fits(known, before(known)));
            return holds.then(|| {
                (
                    false,
                    vec![Likely {
                        shift,
                        earliest: border,
                        latest: border,
                    }],
                )
            });
        }
        let top = self.model.functions.iter().fold(0, |all, f| all | f);
        let distinguished = match self.model.ways() {
            1 => u64::MAX.checked_shr(top.leading_zeros()).unwrap_or(0),
            _ => u64::MAX,
        };
        // From here on something is lifted.
        let moved = self.known.iter().position(|known| !fits(known, self.shift));
        let moved = moved.unwrap_or(self.known.len());
        let last = self.tail.range.end.saturating_sub(LEAST_HIDDEN) / STEP * STEP;
        let latest = match self.known.get(moved) {
            Some(known) => known.line / STEP * STEP,
            None => last,
        };
        // Shifts that no function tells apart are one.
        let mut likely: BTreeMap<u64, Likely> = BTreeMap::new();
        for shift in self.tail.shifts() {
            let straight = self.known.iter().rposition(|known| !fits(known, shift));
            let after = straight.map_or(0, |at| self.known[at].line / STEP * STEP + STEP);
            let earliest = after
                .max(shift + self.tail.low.next_multiple_of(STEP))
                .max(self.tail.range.start / STEP * STEP);
            let latest = latest.min(last);
            if straight.is_none_or(|at| at < moved) && earliest <= latest {
                let alike = likely.entry(shift & distinguished).or_insert(Likely {
                    shift,
                    earliest,
                    latest,
                });
                alike.earliest = alike.earliest.min(earliest);
            }
        }
        likely.remove(&(self.shift & distinguished));
        let mut likely: Vec<Likely> = likely.into_values().collect();
        likely.sort_by_key(|one| one.shift);
        let straight = moved == self.known.len();
        (straight || !likely.is_empty()).then_some((straight, likely))
    }

    /// MiB of whose banks what is likely says more than one thing.
    fn disputed(&self, straight: bool, likely: &[Likely]) -> Vec<u64> {
        // Inside a MiB two shifts differ by the same everywhere, but for ways.
        let lines = if self.model.ways() > 1 { 16 } else { 1 };
        let differs = |step: u64, line: u64| {
            let here = self.at(line, self.shift);
            let mut said = straight.then_some(here);
            likely.iter().any(|one| {
                let moved = (step >= one.earliest).then(|| self.at(line, one.shift));
                let kept = (step < one.latest).then_some(here);
                let mut says = moved.into_iter().chain(kept);
                says.any(|says| *said.get_or_insert(says) != says)
            })
        };
        let is_disputed = |step: &u64| (0..lines).any(|i| differs(*step, *step + i * (STEP / 16)));
        self.tail.steps().filter(is_disputed).collect()
    }

    /// Measures anew, by other lines, what contradicts what was told or is likeliest,
    /// where that is little.
    fn doubt(&mut self, meter: &mut Meter<'_>) -> Result<(), Stop> {
        let fits = |known: &Known, shift| known.bank == Some(self.at(known.line, shift));
        let best = match self.by_host {
            Some(Lifted { border, shift }) => Some((
                shift,
                self.known.partition_point(|known| known.line < border),
            )),
            None => {
                let borders = self.tail.shifts().map(|shift| {
                    let (border, wrong) = best_border(&self.known, |known, moved| {
                        fits(known, if moved { shift } else { self.shift })
                    });
                    (wrong, shift, border)
                });
                borders.min().map(|(_, shift, border)| (shift, border))
            }
        };
        let Some((shift, border)) = best else {
            return Ok(());
        };
        let known = self.known.iter().enumerate();
        let wrong =
            known.filter(|(i, known)| !fits(known, if *i < border { self.shift } else { shift }));
        let wrong: Vec<usize> = wrong.map(|(i, _)| i).collect();
        if wrong.len() > self.known.len() / MISJUDGED + 1 {
            return Ok(());
        }
        let again: Vec<u64> = wrong
            .into_iter()
            .rev()
            .map(|at| self.known.remove(at).line / STEP * STEP)
            .collect();
        for step in again {
            if let Some(line) = self.tail.line(meter, step) {
                self.learn(meter, line)?;
            }
        }
        Ok(())
    }

    /// Takes one of the `likely` ones: that nothing is lifted where that is possible, else the
    /// one that fills the hole.
    fn settled(&self, straight: bool, likely: &[Likely]) -> Found {
        let lifted = likely.first().filter(|_| !straight).map(|one| Lifted {
            border: one.latest,
            shift: one.shift,
        });
        let mut open: Vec<RamRange> = Vec::new();
        for start in self.disputed(straight, likely) {
            let end = (start + STEP).min(self.tail.range.end);
            match open.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => open.push(RamRange {
                    start: start.max(self.tail.range.start),
                    end,
                    ..self.tail.range
                }),
            }
        }
        Found { lifted, open }
    }
}

/// The place in the list from which on all are taken as moved with the fewest that do
/// not fit, and their number.
fn best_border(known: &[Known], fits: impl Fn(&Known, bool) -> bool) -> (usize, usize) {
    // All are moved first; each step takes one as not.
    let mut wrong = known.iter().filter(|known| !fits(known, true)).count();
    let mut best = (0, wrong);
    for (i, one) in known.iter().enumerate() {
        wrong = wrong - usize::from(!fits(one, true)) + usize::from(!fits(one, false));
        if wrong < best.1 {
            best = (i + 1, wrong);
        }
    }
    best
}

//! One layout of a node: from nothing to a model that stood up.

use soloist_core::Interleave;
use soloist_machine::gf2::{self, Basis};
use soloist_machine::RamRange;

use crate::layout::division;
use crate::layout::functions::{collect, functions, Collected, SPARE_PAIRS};
use crate::layout::names::Names;
use crate::layout::place::{any_shifts, decide, likely_shifts, near_shifts, Between};
use crate::layout::prove::{plausible, prove_banks, prove_rows, Proof};
use crate::layout::rows::rows;
use crate::layout::sweep::{sweep, Anchors, Swept};
use crate::meter::{Levels, Meter, Stop};
use crate::model::{Model, Section};
use crate::timing::Addresses;

/// Rounds of collecting pairs before a part of memory is given up.
const ROUNDS: usize = 3;
/// By how much the banks of the functions may differ from those that the rate of
/// conflicts speaks for, and from where on the rate is measured better.
const RATE_MAY_DIFFER: f64 = 1.7;
const RATE_DIFFERS: f64 = 1.3;
/// Conflicts that a rate is measured by then.
const RATE_HITS: u64 = 160;
/// Where more of memory denies the functions than this share, they are wrong.
const MOST_DENIED: f64 = 0.25;
/// Invented functions that are dropped one after the other, at most.
const CORRECTIONS: usize = 6;

/// What is known of a layout.
#[derive(Debug, Clone)]
pub struct Region {
    /// Functions, rows, and where they hold.
    pub model: Model,
    /// Memory in the sections, as the operating system shows it.
    pub ranges: Vec<RamRange>,
    /// How the model stood up.
    pub proof: Proof,
    /// Banks by how often random pairs conflict.
    pub banks_by_rate: f64,
    /// The pairs that it comes from.
    found: Collected,
    /// How the levels were told apart.
    pub levels: Levels,
    /// Sums of offset bits that never vary in the pool, but do in memory.
    pub unknown: Vec<u64>,
    /// Whether lines of one row are told from lines of two.
    pub rows_seen: bool,
    /// Whether another base, or end, would be noticed.
    pub settled: bool,
    /// The division that channels come from, whether or not functions over what
    /// it leaves were found.
    pub division: Option<Interleave>,
    /// Names of some of the functions.
    pub names: Names,
    /// How each part of its memory stood up.
    pub swept: Swept,
    /// Memory that was left out, since pairs of lines there deny the functions.
    pub denied: Vec<RamRange>,
}

impl Region {
    /// A layout of `model` as it was first solved.
    fn new(range: &RamRange, model: Model, proof: Proof, found: Collected, levels: Levels) -> Self {
        Self {
            division: model.division,
            model,
            ranges: vec![*range],
            proof,
            banks_by_rate: found.banks(),
            found,
            levels,
            unknown: Vec::new(),
            rows_seen: false,
            settled: true,
            names: Names::default(),
            swept: Swept::default(),
            denied: Vec::new(),
        }
    }

    /// Banks by the functions.
    #[must_use]
    pub fn banks(&self) -> u64 {
        u64::from(self.model.ways()) << self.model.functions.len()
    }

    /// By which factor the banks of the functions and those by the rate of conflicts differ.
    fn rate_differs(&self) -> f64 {
        let factor = self.banks() as f64 / self.banks_by_rate.max(f64::MIN_POSITIVE);
        factor.max(1.0 / factor)
    }

    /// Whether there are bank functions that stood up.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        !self.model.functions.is_empty() && self.proof.banks_hold()
    }

    /// Whether nothing is left open.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_sound()
            && self.proof.rows_hold()
            && self.rows_seen
            && self.settled
            && self.rate_differs() <= RATE_MAY_DIFFER
            && self.unknown.is_empty()
            && self.proof.untried == 0
            && self.proof.untried_rows.is_empty()
            && self.confidence() > 0.9
    }

    /// Probability that banks and rows are right for what could be measured.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        if self.is_sound() {
            self.proof.confidence()
        } else {
            0.0
        }
    }

    /// Node of its memory.
    #[must_use]
    pub fn node(&self) -> u8 {
        self.model.sections.first().map_or(0, |s| s.range.node)
    }

    /// Reasons why it is not complete, a sentence each.
    #[must_use]
    pub fn open(&self) -> Vec<String> {
        let mut open = Vec::new();
        let failed = self.division.filter(|_| !self.is_sound());
        if let Some(Interleave { ways, granule }) = failed {
            open.push(format!(
                "channels come from a division, (address / {granule}) mod {ways}, which is not \
                 linear, and no functions over what it leaves stood up"
            ));
        } else if !self.is_sound() {
            open.push("the bank functions did not stand up in fresh pairs".into());
        }
        if !self.unknown.is_empty() {
            open.push(format!(
                "address bits {} never vary among the pages measured: whether they choose a bank \
                 is not known; more memory (--memory) or huge pages show more",
                crate::timing::pool::bits_of(&self.unknown)
            ));
        }
        if failed.is_none() && !self.rows_seen {
            open.push(
                "lines of one row conflict as those of two do, so this controller closes rows: \
                 rows are not known"
                    .into(),
            );
        } else if self.is_sound() && !self.proof.rows_hold() {
            open.push("the row functions did not stand up in fresh pairs".into());
        }
        if failed.is_none() && !self.settled {
            open.push(
                "another base, or another end of the layout, would fit the pages measured as well"
                    .into(),
            );
        }
        if self.is_sound() && self.rate_differs() > RATE_MAY_DIFFER {
            open.push(format!(
                "the functions make {} banks, and random pairs conflict as often as with {:.0}",
                self.banks(),
                self.banks_by_rate
            ));
        }
        if self.proof.untried > 0 {
            open.push(format!(
                "{} combinations of bank functions occur in no pair of the pages measured",
                self.proof.untried
            ));
        }
        if !self.proof.untried_rows.is_empty() {
            let masks: Vec<String> = self
                .proof
                .untried_rows
                .iter()
                .map(|&f| gf2::show(f))
                .collect();
            open.push(format!(
                "no two lines of the pages measured differ in the row function{} {} alone, so nothing \
                 shows that {}; more memory (--memory) shows more",
                if masks.len() == 1 { "" } else { "s" },
                masks.join(", "),
                if masks.len() == 1 { "it is one" } else { "they are" },
            ));
        }
        open
    }
}

/// The other memory of the node.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// Its memory.
    pub spans: &'a [RamRange],
    /// Sections that are solved.
    pub known: &'a [Section],
}

/// Solves `range` of a node: levels, functions, shift. What did not stand up is returned too, as far as it came.
///
/// # Errors
/// When the deadline has passed or nothing can be seen.
pub fn solve(
    meter: &mut Meter<'_>,
    range: &RamRange,
    around: &Around<'_>,
    progress: &mut dyn FnMut(f64),
) -> Result<Region, Stop> {
    let levels = meter.calibrate(range)?;
    let section = |shift: u64| {
        vec![Section {
            range: *range,
            shift,
        }]
    };
    let inside = meter.source().addresses() != Addresses::Physical;
    let plain = Model::of(meter, section(if inside { range.start } else { 0 }), None);
    let bits = plain.visible.count_ones() as usize + 1;
    let mut found = Collected::default();
    let mut failed: Option<(Model, Proof)> = None;
    let mut division = None;
    for round in 0..ROUNDS {
        let more = collect(meter, &plain, bits + SPARE_PAIRS, progress)?;
        found = match round {
            0 => more,
            _ => {
                found.extend(more);
                found
            }
        };
        division = division::find(&found.pairs).or(division);
        let likely = match inside {
            true => vec![range.start],
            false => likely_shifts(range, around.spans, around.known),
        };
        let search = (round > 0 && !inside).then(|| any_shifts(range));
        for shift in likely.into_iter().chain(search.into_iter().flatten()) {
            let model = Model::of(meter, section(shift), division);
            if !is_promising(meter, &model, &found) {
                continue;
            }
            let (model, proof) = correct(meter, model, &found)?;
            if proof.banks_hold() && !model.functions.is_empty() {
                let region = Region::new(range, model, proof, found, levels);
                return settle(meter, region, around);
            }
            if failed
                .as_ref()
                .is_none_or(|(old, _)| old.functions.len() < model.functions.len())
            {
                failed = Some((model, proof));
            }
        }
    }
    let (model, proof) = failed.unwrap_or((plain, Proof::default()));
    Ok(Region {
        settled: false,
        division,
        ..Region::new(range, model, proof, found, levels)
    })
}

/// Whether the pairs leave about as many functions as their rate speaks for: a
/// quick look, nothing is measured.
fn is_promising(meter: &mut Meter<'_>, model: &Model, found: &Collected) -> bool {
    use rand::seq::SliceRandom;
    let ways = f64::from(model.ways());
    let expected = (found.banks() / ways).max(1.0).log2() - 1.6;
    let mut vectors: Vec<u64> = found
        .pairs
        .iter()
        .filter_map(|&pair| model.difference(pair))
        .collect();
    let part = vectors.len() * 3 / 4;
    let rank = (0..6)
        .map(|_| {
            vectors.partial_shuffle(&mut meter.rng, part);
            let pairs = Basis::of(vectors[..part].iter().copied());
            pairs.nullspace(model.visible).rank()
        })
        .max()
        .unwrap_or(0);
    if rank == 0 || (rank as f64) < expected {
        return false;
    }
    let constant = model.differences(meter).nullspace(model.visible);
    let rank = rank.saturating_sub(constant.rank());
    rank > 0 && rank as f64 >= expected
}

/// Functions of the pairs, proved; what the proof shows to be invented is
/// dropped, since the pairs that show it are pairs as others are.
fn correct(
    meter: &mut Meter<'_>,
    mut model: Model,
    found: &Collected,
) -> Result<(Model, Proof), Stop> {
    let mut proof = Proof::default();
    let mut surprises = Vec::new();
    for _ in 0..CORRECTIONS {
        let pairs: Vec<_> = found.pairs.iter().chain(&surprises).copied().collect();
        model.functions = functions(meter, &model, &pairs);
        // Surprises were measured harder than anything: they count for all.
        let sure = Basis::of(surprises.iter().filter_map(|&pair| model.difference(pair)));
        let kept = Basis::of(model.functions.iter().copied());
        if sure.rank() > 0 {
            let space = sure.nullspace(model.visible);
            let constant = model.differences(meter).nullspace(model.visible);
            model.functions = kept.intersect(&space).lightest_beside(&constant);
        }
        proof = Proof::default();
        if model.functions.is_empty() || !plausible(meter, &model, 24)? {
            return Ok((model, proof));
        }
        prove_banks(meter, &model, &mut proof)?;
        if proof.surprises.is_empty() {
            break;
        }
        surprises.append(&mut proof.surprises);
    }
    Ok((model, proof))
}

/// Sets the shift of the newest section against all others that are likely.
fn settle(meter: &mut Meter<'_>, mut region: Region, around: &Around<'_>) -> Result<Region, Stop> {
    if meter.source().addresses() != Addresses::Physical {
        return Ok(region);
    }
    let Some(section) = region.model.sections.last().copied() else {
        return Ok(region);
    };
    let likely = likely_shifts(&section.range, around.spans, around.known);
    let near = (!likely.contains(&section.shift)).then(|| near_shifts(section));
    for other in likely.into_iter().chain(near.into_iter().flatten()) {
        for rival in rivals(meter, &region, other) {
            match decide(meter, &region.model, &rival)? {
                Between::First | Between::Same => {}
                Between::Open => region.settled = false,
                Between::Second => {
                    let model = Model::of(meter, rival.sections, rival.division);
                    let (model, proof) = correct(meter, model, &region.found)?;
                    if proof.banks_hold() && !model.functions.is_empty() {
                        region.model = model;
                        region.proof = proof;
                        break;
                    }
                    region.settled = false;
                }
            }
        }
    }
    Ok(region)
}

/// Models in which the newest section has another shift: one with the functions that
/// were found, and one with those that the pairs give for this shift. Where pages
/// are few, other functions over another base can say the same of all of them.
fn rivals(meter: &mut Meter<'_>, region: &Region, shift: u64) -> Vec<Model> {
    let mut sections = region.model.sections.clone();
    let Some(last) = sections.last_mut().filter(|last| last.shift != shift) else {
        return Vec::new();
    };
    last.shift = shift;
    let mut own = Model::of(meter, sections.clone(), region.model.division);
    let moved = Model {
        sections,
        visible: region.model.visible | own.visible,
        ..region.model.clone()
    };
    let mut rivals = vec![moved];
    if is_promising(meter, &own, &region.found) {
        own.functions = functions(meter, &own, &region.found.pairs);
        let same = |model: &Model| Basis::of(model.functions.iter().copied());
        if !own.functions.is_empty() && same(&own) != same(&region.model) {
            rivals.push(own);
        }
    }
    rivals
}

/// Takes `range` into `region` where its functions hold there too, with a
/// likely shift that stood up against the others.
///
/// # Errors
/// When the deadline has passed.
pub fn join(
    meter: &mut Meter<'_>,
    region: &mut Region,
    range: &RamRange,
    spans: &[RamRange],
) -> Result<bool, Stop> {
    let known = region.model.sections.clone();
    let with = |shift: u64| {
        let mut sections = known.clone();
        sections.push(Section {
            range: *range,
            shift,
        });
        sections
    };
    // Fresh pairs over both: bits that never varied in the one may do so now.
    let division = region.model.division;
    let both = Model::of(meter, with(0), division);
    let bits = both.visible.count_ones() as usize + 1;
    let found = collect(meter, &both, bits + SPARE_PAIRS, &mut |_| {})?;
    let around = Around {
        spans,
        known: &known,
    };
    for shift in likely_shifts(range, spans, &known) {
        let model = Model::of(meter, with(shift), division);
        if !is_promising(meter, &model, &found) {
            continue;
        }
        let (model, proof) = correct(meter, model, &found)?;
        if !proof.banks_hold() || model.functions.len() < region.model.functions.len() {
            continue;
        }
        let mut ranges = region.ranges.clone();
        ranges.push(*range);
        let joined = Region {
            model,
            proof,
            ranges,
            banks_by_rate: found.banks(),
            found,
            ..region.clone()
        };
        *region = settle(meter, joined, &around)?;
        return Ok(true);
    }
    Ok(false)
}

/// Whether lines of `range`, the model's newest section or a part of one,
/// conflict with lines anywhere as the model says.
///
/// # Errors
/// When the deadline has passed.
pub fn holds(meter: &mut Meter<'_>, model: &Model, range: &RamRange) -> Result<bool, Stop> {
    let wanted = model.same_bank();
    let (mut held, mut all) = (0, 0);
    for _ in 0..16 {
        let Ok(a) = meter.random(range) else {
            return Ok(false);
        };
        let Some(b) = model.partner(meter, a, &wanted) else {
            continue;
        };
        all += 1;
        held += i32::from(meter.is_conflict(a, b, 300.0)?);
        if all - held > 2 {
            return Ok(false);
        }
    }
    Ok(all >= 8)
}

/// The last steps: proof over all sections, rows, what could not be seen.
///
/// # Errors
/// When the deadline has passed.
pub fn finish(meter: &mut Meter<'_>, region: &mut Region) -> Result<(), Stop> {
    if !region.is_sound() {
        return Ok(());
    }
    let seen = region.model.differences(meter);
    let model = &mut region.model;
    let constant = seen.nullspace(model.visible);
    let physical = meter.source().addresses() == Addresses::Physical;
    if physical {
        let memory = model.differences_of_memory(meter, &region.ranges);
        let never = memory.nullspace(model.visible);
        let mut unknown = constant.lightest_beside(&never);
        unknown.retain(|f| !never.contains(*f));
        region.unknown = unknown;
    }
    if physical {
        let anchors = Anchors::of(meter, model, &model.sections);
        region.swept = sweep(meter, model, &region.ranges, &anchors)?;
        let bytes = |ranges: &[RamRange]| -> u64 { ranges.iter().map(|r| r.end - r.start).sum() };
        let denied = bytes(&region.swept.wrong) as f64;
        if denied > MOST_DENIED * bytes(&region.ranges) as f64 {
            region.settled = false;
        } else {
            region.denied = region.swept.wrong.clone();
            region.denied.iter().for_each(|range| model.cut(range));
            region.ranges = model.memory(&region.ranges);
        }
        if region.rate_differs() > RATE_DIFFERS {
            region.found.count(meter, &region.model, RATE_HITS)?;
            region.banks_by_rate = region.found.banks();
        }
    }
    let model = &mut region.model;
    // What the sections have in common was not proved when each was.
    if model.sections.len() > 1 {
        region.proof = Proof::default();
        prove_banks(meter, model, &mut region.proof)?;
        if !region.proof.banks_hold() {
            return Ok(());
        }
    }
    if let Some(found) = rows(meter, model)? {
        model.rows = found;
        region.rows_seen = true;
        let wide: Vec<u64> = model.rows.iter().map(|row| row.mask).collect();
        debug_assert!(wide.iter().all(|row| gf2::bits(*row).count() > 0));
        prove_rows(meter, model, &mut region.proof)?;
    }
    Ok(())
}

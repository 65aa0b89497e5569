//! One node: its memory in spans, its layouts, and where each ends.

use soloist_machine::ram::RamRange;

use crate::layout::lifted::{self, Tail};
use crate::layout::place::HOLE_END;
use crate::layout::region::{finish, holds, join, solve, Around, Region};
use crate::meter::{Meter, Stop};
use crate::model::{Model, Section};
use crate::timing::Addresses;
use soloist_map::sources::bridge::Lifted;

/// Smallest piece that a layout is looked for in.
const SMALLEST: u64 = 32 << 20;
/// Ends of layouts are found to this granularity.
const EDGE: u64 = 2 << 20;
/// Memory on both sides of a smaller gap has one shift: firmware keeps parts
/// for itself, but hoists nothing there.
const GAP: u64 = 64 << 20;

/// What is known of a node.
#[derive(Debug, Default)]
pub struct Node {
    /// Its memory, small gaps left out of account.
    spans: Vec<RamRange>,
    /// Its layouts.
    pub regions: Vec<Region>,
    /// Memory that no layout was found for, and why.
    pub unsolved: Vec<(RamRange, Stop)>,
    /// Parts of layouts' memory whose banks are not known.
    left_out: Vec<RamRange>,
    /// Memory too small to measure, which was taken to be as its neighbours.
    pub assumed: Vec<RamRange>,
}

/// Finds the layouts of a node's memory. `by_host` is what the host says of memory that
/// lies elsewhere than its address says.
pub fn solve_node(
    meter: &mut Meter<'_>,
    ranges: &[RamRange],
    by_host: Option<Lifted>,
    progress: &mut dyn FnMut(f64),
) -> Node {
    // A page of unknown address is measured by itself, whatever its size.
    let inside = meter.source().addresses() != Addresses::Physical;
    let mut rest = spans_of(ranges);
    let tail = Tail::of(&rest).filter(|_| !inside);
    if let Some(tail) = &tail {
        rest = tail.cut_off(rest);
    }
    let mut node = Node {
        spans: rest.clone(),
        ..Node::default()
    };
    // The largest first: it sees the most bits, and the others follow it.
    rest.sort_by_key(|span| std::cmp::Reverse(span.end - span.start));
    let (large, small): (Vec<RamRange>, Vec<RamRange>) = rest
        .into_iter()
        .partition(|span| inside || span.end - span.start >= SMALLEST);
    for span in large {
        if meter.source().pool().inside(&span).is_empty() {
            node.unsolved.push((span, Stop::NotHeld));
        } else {
            node.cover(meter, &span, progress);
        }
    }
    if let Some(tail) = tail {
        node.lift(meter, &tail, by_host, progress);
    }
    node.adopt(meter, &small);
    for region in &mut node.regions {
        for range in &node.left_out {
            region.model.cut(range);
        }
        // Sections as the operating system has them, gaps left out.
        region.ranges = region.model.memory(ranges);
        if let Err(stop) = finish(meter, region) {
            region.settled = false;
            node.unsolved.push((region.ranges[0], stop));
        }
        let denied = region.denied.iter().map(|range| (*range, Stop::Denied));
        node.unsolved.extend(denied);
    }
    // Memory that firmware keeps there is not reported.
    let open = node.left_out.iter().flat_map(|out| {
        ranges.iter().map(|range| RamRange {
            start: range.start.max(out.start),
            end: range.end.min(out.end),
            ..*range
        })
    });
    let open = open.filter(|range| range.start < range.end);
    let open = open.map(|range| (range, Stop::Undecided));
    node.unsolved.extend(open);
    node.regions
        .sort_by_key(|region| region.ranges.first().map(|range| range.start));
    node
}

/// Ranges with small gaps between them as one.
fn spans_of(ranges: &[RamRange]) -> Vec<RamRange> {
    let mut spans: Vec<RamRange> = Vec::new();
    for range in ranges {
        match spans.last_mut() {
            Some(last)
                if range.start - last.end < GAP
                    && !(last.end <= HOLE_END && range.start >= HOLE_END) =>
            {
                last.end = range.end;
            }
            _ => spans.push(*range),
        }
    }
    spans
}

impl Node {
    /// Solves a span, layout after layout.
    fn cover(&mut self, meter: &mut Meter<'_>, span: &RamRange, progress: &mut dyn FnMut(f64)) {
        let mut rest = *span;
        while rest.end - rest.start >= EDGE {
            match self.first_layout(meter, &rest, progress) {
                Ok(end) => rest.start = end,
                Err(stop) => {
                    self.unsolved.push((rest, stop));
                    return;
                }
            }
        }
    }

    /// Finds the layout at the start of `rest`, and where it ends.
    fn first_layout(
        &mut self,
        meter: &mut Meter<'_>,
        rest: &RamRange,
        progress: &mut dyn FnMut(f64),
    ) -> Result<u64, Stop> {
        for region in &mut self.regions {
            if region.is_sound() && join(meter, region, rest, &self.spans)? {
                return Ok(rest.end);
            }
        }
        let known: Vec<Section> = self
            .regions
            .iter()
            .flat_map(|region| region.model.sections.clone())
            .collect();
        let spans = self.spans.clone();
        let around = Around {
            spans: &spans,
            known: &known,
        };
        let whole = solve(meter, rest, &around, progress)?;
        let is_divided = whole.division.is_some();
        if whole.is_sound() || is_divided || meter.source().addresses() != Addresses::Physical {
            self.regions.push(whole);
            return Ok(rest.end);
        }
        // Solve a part small enough to have one layout, follow it to its end,
        // and solve again over all that it reaches.
        let mut part = *rest;
        while part.end - part.start > SMALLEST {
            part.end = part.start + ((part.end - part.start) / 2 / EDGE).max(1) * EDGE;
            if meter.source().pool().inside(&part).len() < 4 {
                break;
            }
            let local = match solve(meter, &part, &around, progress) {
                Ok(local) if local.is_sound() => local,
                Ok(_) | Err(Stop::NoConflicts) => continue,
                Err(stop) => return Err(stop),
            };
            let (end, exact) = reach(meter, &local.model, rest)?;
            let reached = RamRange { end, ..*rest };
            let full = solve(meter, &reached, &around, progress)?;
            let (mut best, end) = match full.is_sound() {
                true => (full, end),
                false => (local, part.end),
            };
            best.settled &= exact;
            self.regions.push(best);
            return Ok(end);
        }
        self.regions.push(whole);
        Ok(rest.end)
    }

    /// Finds where the end of memory lies, of which some may be lifted out of the hole
    /// below 4 GiB.
    fn lift(
        &mut self,
        meter: &mut Meter<'_>,
        tail: &Tail,
        by_host: Option<Lifted>,
        progress: &mut dyn FnMut(f64),
    ) {
        // Of another node, or where no tail can begin.
        let by_host =
            by_host.filter(|lifted| (tail.range.start..tail.range.end).contains(&lifted.border));
        let heads = self.regions.iter().enumerate().filter_map(|(at, region)| {
            let head = tail.head(&region.model.sections)?;
            region.is_sound().then_some((at, head))
        });
        let ends = |&(at, head): &(usize, usize)| {
            let sections: &[Section] = &self.regions[at].model.sections;
            sections[head].range.end
        };
        let holder = heads.max_by_key(ends);
        let found = holder.map(|(at, head)| {
            let model = &self.regions[at].model;
            let shift = model.sections[head].shift;
            let found = lifted::find(meter, model, shift, tail, by_host)?;
            if found.is_some() || by_host.is_none() {
                return Ok(found);
            }
            self.unsolved.push((tail.range, Stop::ToldOtherwise));
            lifted::find(meter, model, shift, tail, None)
        });
        match (holder, found) {
            (Some((at, head)), Some(Ok(Some(found)))) => {
                let model = &mut self.regions[at].model;
                extend(meter, model, head, tail, &found);
                self.left_out.extend(found.open);
            }
            (_, Some(Err(stop))) => self.unsolved.push((tail.range, stop)),
            // No shift explains it: another layout, or bits that only it has.
            _ => self.cover(meter, &tail.range, progress),
        }
    }

    /// Memory too small to be measured by itself goes with its neighbour.
    fn adopt(&mut self, meter: &mut Meter<'_>, small: &[RamRange]) {
        for span in small {
            let distance = |section: &Section| {
                let apart = (section.range.start.saturating_sub(span.end))
                    .max(span.start.saturating_sub(section.range.end));
                let other_side = (section.range.end <= HOLE_END) != (span.end <= HOLE_END);
                (other_side, apart)
            };
            let nearest = self
                .regions
                .iter_mut()
                .flat_map(|region| {
                    let sections = region.model.sections.clone();
                    let near = sections.into_iter().min_by_key(&distance);
                    near.map(|section| (region, section))
                })
                .min_by_key(|(_, section)| distance(section));
            let Some((region, section)) = nearest else {
                self.unsolved.push((*span, Stop::NotHeld));
                continue;
            };
            let mut model = region.model.clone();
            model.sections.push(Section {
                range: *span,
                shift: section.shift,
            });
            model.visible |= Model::of(meter, model.sections.clone(), model.division).visible;
            let held = !meter.source().pool().inside(span).is_empty();
            if held && !holds(meter, &model, span).unwrap_or(false) {
                self.unsolved.push((*span, Stop::NotHeld));
                continue;
            }
            if !held {
                self.assumed.push(*span);
            }
            region.model = model;
        }
    }
}

/// Adds the tail to the sections of a model, whose `head` is before it.
fn extend(meter: &Meter<'_>, model: &mut Model, head: usize, tail: &Tail, found: &lifted::Found) {
    let end = tail.range.end;
    let border = found.lifted.map_or(end, |lifted| lifted.border);
    model.sections[head].range.end = border.clamp(tail.range.start, end);
    if let Some(lifted) = found.lifted {
        model.sections.push(Section {
            range: RamRange {
                start: border.max(tail.range.start),
                ..tail.range
            },
            shift: lifted.shift,
        });
    }
    model.visible |= Model::of(meter, model.sections.clone(), model.division).visible;
}

/// Where the layout of `known`, which begins at the start of `range`, ends; and
/// whether that is known to the page.
fn reach(meter: &mut Meter<'_>, known: &Model, range: &RamRange) -> Result<(u64, bool), Stop> {
    let Some(section) = known.sections.last().copied() else {
        return Ok((range.start, false));
    };
    let size = 1u64 << meter.source().pool().page_shift();
    let all = meter.source().pool().inside(range).to_vec();
    let pages: Vec<u64> = all
        .into_iter()
        .filter(|page| page + size > section.range.end)
        .collect();
    // Pages one behind the other are judged together: one has too few rows.
    let mut reaches = |at: usize| {
        let last = pages[(at + 3).min(pages.len() - 1)] + size;
        let block = RamRange {
            start: pages[at],
            end: last.min(range.end),
            ..*range
        };
        let mut model = known.clone();
        model.sections.push(Section {
            range: block,
            shift: section.shift,
        });
        model.visible |= Model::of(meter, model.sections.clone(), model.division).visible;
        holds(meter, &model, &block)
    };
    let (mut good, mut bad) = (None, None);
    let stride = (pages.len() / 48).max(1);
    // Coarse first: the layout may come back later.
    for at in (0..pages.len()).step_by(stride) {
        if !reaches(at)? {
            bad = Some(at);
            break;
        }
        good = Some(at);
    }
    let Some(mut bad) = bad else {
        return Ok((range.end, true));
    };
    let mut good = match good {
        Some(good) => good as i64,
        None => -1,
    };
    while good + 1 < bad as i64 {
        let middle = (good + bad as i64) / 2;
        if reaches(middle as usize)? {
            good = middle;
        } else {
            bad = middle as usize;
        }
    }
    // The four pages of `bad` hold the end, or begin behind it.
    let low = match good {
        0.. => pages[good as usize] + size,
        _ => section.range.end,
    };
    let high = pages[(bad + 3).min(pages.len() - 1)];
    // Modules end at round numbers.
    for align in [30, 29, 28, 27, 26, 25, 24, 23, 22, 21] {
        let end = low.wrapping_add((1 << align) - 1) >> align << align;
        if end <= high {
            return Ok((end, high - low <= 8 * size));
        }
    }
    Ok((low / EDGE * EDGE, false))
}

//! Ranges of a solved map: where nodes, holes and what is lifted out of them begin and end.

use soloist_machine::spec::MapRange;

use super::group::{Group, FOUR_GIB, MIB};
use super::Row;

/// Ranges: a node begins where its offset is 0, or between the rows of the node
/// before it and its own, and ends where the next one begins or its offset
/// bits end, `size` bytes on.
pub(super) fn ranges(groups: &[Group], rows: &[Row], size: u64) -> Vec<MapRange> {
    let span = |group: &Group| {
        let addresses = || group.rows.iter().map(|&row| rows[row].address);
        (
            addresses().min().unwrap_or(0),
            addresses().max().unwrap_or(0),
        )
    };
    let mut sorted: Vec<&Group> = groups.iter().collect();
    sorted.sort_by_key(|group| span(group));
    let mut ranges: Vec<MapRange> = Vec::new();
    let mut before = 0;
    for group in &sorted {
        let (first, last) = span(group);
        let floor = if group.low { 0 } else { FOUR_GIB };
        let start = match group.shift.max(floor) {
            _ if group.lifted => first / MIB * MIB,
            start if start >= before => start,
            _ => (first >> 24 << 24).max(before),
        };
        if let Some(range) = ranges.last_mut() {
            range.end = range.end.min(start);
        }
        let full = group.shift + if group.lifted { FOUR_GIB } else { size };
        let end = if group.low { full.min(FOUR_GIB) } else { full };
        if group.lifted {
            // The hole that it was lifted out of holds no memory.
            let hidden = start - group.shift;
            let below = ranges.iter_mut().filter(|range| range.node == group.node);
            below
                .filter(|range| range.start < FOUR_GIB)
                .for_each(|range| range.end = range.end.min(range.start + hidden - range.base));
        }
        ranges.push(MapRange {
            start,
            end,
            node: group.node,
            base: start - group.shift,
            layout: 0,
        });
        before = (last | 0xfff) + 1;
    }
    hoist(&sorted, &mut ranges);
    ranges
}

/// Memory below the hole of the node whose offsets above 4 GiB leave it over.
fn hoist(sorted: &[&Group], ranges: &mut Vec<MapRange>) {
    let Some(above) = sorted
        .iter()
        .position(|group| !group.low && group.shift < FOUR_GIB)
    else {
        return;
    };
    let group = sorted[above];
    let end = FOUR_GIB - group.shift;
    let below = sorted
        .iter()
        .position(|other| other.low && other.node == group.node && other.shift == 0);
    match below {
        Some(below) => ranges[below].end = ranges[below].end.min(end),
        None if above == 0 => ranges.insert(
            0,
            MapRange {
                start: 0,
                end,
                node: group.node,
                base: 0,
                layout: 0,
            },
        ),
        None => {}
    }
}

/// Says where what is lifted may begin; false where the rows leave that open.
pub(super) fn borders(groups: &[Group], rows: &[Row], notes: &mut Vec<String>) -> bool {
    let mut complete = true;
    for tail in groups.iter().filter(|group| group.lifted) {
        let addresses = |group: &Group| -> Vec<u64> {
            group.rows.iter().map(|&row| rows[row].address).collect()
        };
        let start = addresses(tail).into_iter().min().unwrap_or(0) / MIB * MIB;
        let others = groups.iter().filter(|group| group.node == tail.node);
        let before = others.flat_map(addresses).filter(|&at| at < start).max();
        let before = before.map_or(0, |at| (at / MIB + 1) * MIB);
        notes.push(format!(
            "node {}: addresses from {start:#x} on lie {:#x} lower in the node: what devices hide \
             below 4 GiB",
            tail.node, tail.shift
        ));
        if before < start {
            complete = false;
            notes.push(format!(
                "node {}: whether {before:#x} to {:#x} lies as what is before it or as what is \
                 behind, no row says",
                tail.node,
                start - 1
            ));
        }
    }
    complete
}

/// Says where nodes and holes begin, and that the end of memory is not known.
pub(super) fn range_notes(groups: &[Group], ranges: &[MapRange], notes: &mut Vec<String>) {
    for group in groups
        .iter()
        .filter(|group| group.shift > 0 && !group.lifted)
    {
        notes.push(if !group.low && group.shift < FOUR_GIB {
            format!(
                "node {}: addresses above 4 GiB lie {:#x} lower in the node: a hole from {:#x} to 0xffffffff",
                group.node,
                group.shift,
                FOUR_GIB - group.shift
            )
        } else {
            format!("node {}: begins at {:#x}", group.node, group.shift)
        });
    }
    if let Some(last) = ranges.last() {
        notes.push(format!(
            "the end of memory, {:#x}, is where the offset bits end; the rows don't say",
            last.end
        ));
    }
}

//! Rows that share a shift, and how sure an agreement of rows must be.

use std::collections::BTreeMap;

use super::Row;

/// Granularity of node bases and holes.
pub(super) const STEP: u64 = 16 << 20;
/// Granularity of what is lifted out of the hole below 4 GiB.
pub(super) const MIB: u64 = 1 << 20;
/// Where the hole below 4 GiB ends.
pub(super) const FOUR_GIB: u64 = 1 << 32;
/// How unlikely a coincidence must be: one in 2^20.
pub(super) const SURE_BITS: f64 = 20.0;

/// Rows that share a shift: those of a node, below 4 GiB or above.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub node: u8,
    pub low: bool,
    /// Its place in the order of groups.
    pub index: usize,
    /// Below 4 GiB, and the first there: it may begin at address 0.
    pub first: bool,
    /// Behind all other memory of the node: what devices hide below 4 GiB.
    pub lifted: bool,
    /// Indices of the rows, less those that were left out.
    pub rows: Vec<usize>,
    /// Address less offset.
    pub shift: u64,
    /// Other shifts that the rows agree with as well.
    pub rivals: Vec<u64>,
}

/// Rows by place, largest group first: those say most and fix what the others
/// must agree with.
pub(super) fn groups(rows: &[Row]) -> Vec<Group> {
    let mut by_place: BTreeMap<(u8, bool), Vec<usize>> = BTreeMap::new();
    for (i, row) in rows.iter().enumerate() {
        let place = (row.node, row.address < FOUR_GIB);
        by_place.entry(place).or_default().push(i);
    }
    let lowest = rows.iter().min_by_key(|row| row.address);
    let first = lowest.map_or(0, |row| row.node);
    let mut groups: Vec<Group> = by_place
        .into_iter()
        .map(|((node, low), rows)| Group {
            node,
            low,
            index: 0,
            first: low && node == first,
            lifted: false,
            rows,
            shift: 0,
            rivals: Vec::new(),
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.rows.len()));
    for (index, group) in groups.iter_mut().enumerate() {
        group.index = index;
    }
    groups
}

/// log2 of the ways to choose `k` of `n`.
pub(super) fn choices(n: usize, k: usize) -> f64 {
    (0..k)
        .map(|i| ((n - i) as f64 / (i + 1) as f64).log2())
        .sum()
}

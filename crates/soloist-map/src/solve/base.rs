//! Where each node's offsets begin, and which rows of the table are wrong.
//!
//! The rows of a node below 4 GiB, and those above, share a *shift*: address
//! less offset. Under the right one all rows are linear, under a wrong one
//! carries make them contradict each other; so candidates are tried, and the
//! rows decide. A wrong row contradicts under every shift: then the shift and
//! the smallest set of rows to leave out are searched together, by
//! eliminating the rows in many random orders (information-set decoding). What
//! is left must agree so often that chance can't have made it.

use std::collections::BTreeSet;

use rand::seq::SliceRandom;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::division::Division;
use super::equations::{Added, Equation, System};
use super::group::{choices, Group, FOUR_GIB, MIB, STEP, SURE_BITS};
use super::Row;
use soloist_machine::FileError;

/// Shifts that are tried for a group.
const MOST_SHIFTS: u64 = 1 << 14;
/// Random orders that are tried, and orders times shifts.
const MOST_ORDERS: usize = 80;
const MOST_TRIALS: usize = 1 << 19;

/// The table as the search sees it.
pub(super) struct Table<'a> {
    pub rows: &'a [Row],
    /// The unknown bits of each row, packed.
    pub values: Vec<u128>,
    /// Number of unknown bits.
    pub width: u32,
    /// Rows of DRAM are given: offsets count from the node's start.
    pub has_rows: bool,
    /// What deals out the channels, where it is no XOR.
    pub division: Option<&'a Division>,
}

impl Table<'_> {
    fn equation(&self, row: usize, shift: u64) -> Equation {
        Equation {
            row,
            offset: self.offset(row, shift),
            value: self.values[row],
        }
    }

    /// The offset of a row, normalised where there is a division.
    pub fn offset(&self, row: usize, shift: u64) -> u64 {
        let offset = self.rows[row].address - shift;
        match self.division {
            Some(division) => division.interleave.split(offset).1,
            None => offset,
        }
    }

    /// The last address of a group.
    pub fn last(&self, group: &Group) -> u64 {
        let addresses = group.rows.iter().map(|&row| self.rows[row].address);
        addresses.max().unwrap_or(0)
    }

    /// How far a group's ways are turned under a shift.
    pub fn phase(&self, group: &Group, shift: u64) -> u32 {
        let phase = |division: &Division| division.phase(group.index, shift);
        self.division.map_or(0, phase)
    }
}

/// Finds each group's shift. Returns the rows that were left out, ascending.
///
/// # Errors
/// When the rows contradict each other, and no small set of them is to blame.
pub(super) fn settle(table: &Table<'_>, groups: &mut Vec<Group>) -> Result<Vec<usize>, FileError> {
    let mut out = strays(table, groups);
    groups.retain(|group| !group.rows.is_empty());
    let mut system = System::default();
    let mut phase = None;
    let lows: Vec<(u8, u64)> = groups
        .iter()
        .filter(|group| group.low)
        .map(|group| (group.node, table.last(group)))
        .collect();
    let mut tails = Vec::new();
    for group in groups.iter_mut() {
        let mut shifts = shifts(table, group);
        shifts.retain(|&shift| phase.is_none_or(|phase| table.phase(group, shift) == phase));
        if shifts.is_empty() {
            return Err(contradiction(table, group, &system));
        }
        let low = lows.iter().find(|(node, _)| *node == group.node);
        let low = low.filter(|_| !group.low && table.division.is_none());
        let tail = low.and_then(|&(_, low)| lifted(table, group, &system, &shifts, low));
        if settle_clean(table, group, &system, &shifts) {
            // A bit that only the last rows have may mimic it.
            group.rivals.extend(tail.map(|tail| tail.shift));
        } else {
            if let Some(tail) = &tail {
                group.rows.retain(|row| !tail.rows.contains(row));
            }
            tails.extend(tail);
            if !settle_clean(table, group, &system, &shifts) {
                out.extend(settle_dirty(table, group, &system, &shifts)?);
            }
        }
        phase = Some(table.phase(group, group.shift));
        for &row in &group.rows {
            system.add(table.equation(row, group.shift));
        }
    }
    groups.append(&mut tails);
    out.sort_unstable();
    Ok(out)
}

/// The rows of a group above 4 GiB, whose node has memory up to `low` below, that lie
/// behind all others under a shift of their own: as an Intel client's memory that its
/// devices hide there.
fn lifted(
    table: &Table<'_>,
    group: &Group,
    system: &System,
    shifts: &[u64],
    low: u64,
) -> Option<Group> {
    let at = |row: &usize| table.rows[*row].address;
    let mut rows = group.rows.clone();
    rows.sort_by_key(at);
    // No more is lifted than fits into the hole.
    let last = table.last(group);
    let first = rows.partition_point(|row| at(row) + FOUR_GIB < last + low);
    let mut head = Group {
        rows: rows[..first].to_vec(),
        ..group.clone()
    };
    if !settle_clean(table, &mut head, system, shifts) {
        return None;
    }
    let mut system = system.clone();
    let mut confirmed = 0;
    for &row in &head.rows {
        let added = system.add(table.equation(row, head.shift));
        confirmed += u32::from(added == Added::Confirms);
    }
    let sure = |confirmed: u32, shifts: usize| {
        let bits = f64::from(confirmed) * f64::from(table.width.min(16));
        bits >= (shifts as f64).log2() + SURE_BITS
    };
    if !sure(confirmed, shifts.len()) {
        return None;
    }
    let moved = (first..rows.len()).filter(|&i| {
        let equation = table.equation(rows[i], head.shift);
        system.clone().add(equation) != Added::Confirms
    });
    let mut tails = moved.map(|from| {
        let rows = rows[from..].to_vec();
        let least = (last + 1).saturating_sub(FOUR_GIB).div_ceil(MIB);
        let most = at(&rows[0]).saturating_sub(low) / MIB;
        let shifts: Vec<u64> = (least..=most).map(|step| step * MIB).collect();
        let mut tail = Group {
            rows,
            lifted: true,
            index: usize::MAX,
            ..group.clone()
        };
        let fits = sure(tail.rows.len() as u32, shifts.len())
            && settle_clean(table, &mut tail, &system, &shifts);
        fits.then_some(tail)
    });
    tails.find_map(|tail| tail)
}

/// Rows whose address lies amid the rows of another node that has ten times as
/// many: nodes are ranges, so the node is wrong, or the address.
fn strays(table: &Table<'_>, groups: &mut [Group]) -> Vec<usize> {
    let spans: Vec<(u8, usize, u64, u64)> = groups
        .iter()
        .map(|group| {
            let addresses = || group.rows.iter().map(|&row| table.rows[row].address);
            let (low, high) = (addresses().min(), addresses().max());
            (
                group.node,
                group.rows.len(),
                low.unwrap_or(0),
                high.unwrap_or(0),
            )
        })
        .collect();
    let mut out = Vec::new();
    for group in groups {
        let (node, few) = (group.node, group.rows.len());
        group.rows.retain(|&row| {
            let at = table.rows[row].address;
            let stray = spans.iter().any(|&(other, many, low, high)| {
                other != node && many >= 10 * few && (low..=high).contains(&at)
            });
            if stray {
                out.push(row);
            }
            !stray
        });
    }
    out
}

/// Shifts to try, ascending.
fn shifts(table: &Table<'_>, group: &Group) -> Vec<u64> {
    let addresses = || group.rows.iter().map(|&row| table.rows[row].address);
    let low = addresses().min().unwrap_or(0);
    let high = addresses().max().unwrap_or(0);
    let mut shifts: BTreeSet<u64> = (0..=low.min(FOUR_GIB) / STEP).map(|i| i * STEP).collect();
    // A node begins where its address is round, ...
    shifts.extend((24..52).map(|bit| low >> bit << bit));
    // ... or nowhere further down than all its fields together can count, and
    // the bits of a page and one more, which a table may hide.
    let reach = (64 - (high - low).leading_zeros() + 1)
        .max(if table.has_rows { table.width + 13 } else { 36 })
        .saturating_add(table.division.map_or(0, |d| d.interleave.ways.ilog2() + 1))
        .clamp(25, 51);
    let first = high.saturating_sub(1 << reach) / STEP;
    let last = low / STEP;
    let each = ((last - first.min(last)) / MOST_SHIFTS + 1).next_power_of_two();
    shifts.extend(
        (first.div_ceil(each)..=last / each)
            .map(|i| i * each * STEP)
            .filter(|&shift| shift <= low),
    );
    shifts.into_iter().collect()
}

/// The shift under which all rows of the group agree with the system, with
/// most fields plain address bits. Of equals: the largest when rows are given,
/// since they count from the node's start (but none at all for the first node
/// below 4 GiB), else the smallest. False when there is none.
fn settle_clean(table: &Table<'_>, group: &mut Group, system: &System, shifts: &[u64]) -> bool {
    let mut best: Vec<u64> = Vec::new();
    let mut most = 0;
    for &shift in shifts {
        let mut trial = system.clone();
        let agrees = group
            .rows
            .iter()
            .all(|&row| trial.add(table.equation(row, shift)) != Added::Contradicts);
        if !agrees {
            continue;
        }
        let plain = plain_bits(table, group, shift);
        if plain > most || best.is_empty() {
            best.clear();
            most = plain;
        }
        if plain == most {
            best.push(shift);
        }
    }
    let chosen = match table.has_rows && !group.first {
        true => best.pop(),
        false => (!best.is_empty()).then(|| best.remove(0)),
    };
    group.rivals = best;
    match chosen {
        Some(shift) => {
            group.shift = shift;
            true
        }
        None => false,
    }
}

/// How many unknown bits equal some single offset bit on all rows.
fn plain_bits(table: &Table<'_>, group: &Group, shift: u64) -> u32 {
    let fits = |bit: u32| {
        group.rows.iter().fold(!0u64, |fit, &row| {
            let offset = table.offset(row, shift);
            let set = table.values[row] >> bit & 1 == 1;
            fit & if set { offset } else { !offset }
        }) != 0
    };
    (0..table.width).filter(|&bit| fits(bit)).count() as u32
}

/// As [`settle_clean`], leaving out the fewest rows. Returns them.
fn settle_dirty(
    table: &Table<'_>,
    group: &mut Group,
    system: &System,
    shifts: &[u64],
) -> Result<Vec<usize>, FileError> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut order = group.rows.clone();
    let most = group.rows.len() / 8;
    let mut best: Vec<(Vec<usize>, u64)> = Vec::new();
    let mut fewest = most;
    for _ in 0..MOST_ORDERS.min(MOST_TRIALS / shifts.len()).max(4) {
        order.shuffle(&mut random);
        for &shift in shifts {
            let Some((out, sure)) = left_out(table, system, &order, shift, fewest) else {
                continue;
            };
            let chance = choices(order.len(), out.len()) + (shifts.len() as f64).log2();
            if f64::from(sure) * f64::from(table.width.min(16)) < chance + SURE_BITS {
                continue;
            }
            if out.len() < fewest || best.is_empty() {
                best.clear();
            }
            fewest = out.len();
            if !best.contains(&(out.clone(), shift)) {
                best.push((out, shift));
            }
        }
    }
    // Where one of several might be the wrong one, none of them can stay.
    let out: BTreeSet<usize> = best.iter().flat_map(|(out, _)| out).copied().collect();
    if best.is_empty() || out.len() > most {
        return Err(contradiction(table, group, system));
    }
    group.rows.retain(|row| !out.contains(row));
    match settle_clean(table, group, system, shifts) {
        true => Ok(out.into_iter().collect()),
        false => Err(contradiction(table, group, system)),
    }
}

/// The rows that contradict those before them in `order`, ascending, and how
/// many agreed though they need not have; `None`: more than `most` contradict.
fn left_out(
    table: &Table<'_>,
    system: &System,
    order: &[usize],
    shift: u64,
    most: usize,
) -> Option<(Vec<usize>, u32)> {
    let mut trial = system.clone();
    let mut out = Vec::new();
    let mut sure = 0;
    for &row in order {
        match trial.add(table.equation(row, shift)) {
            Added::New => {}
            Added::Confirms => sure += 1,
            Added::Contradicts if out.len() == most => return None,
            Added::Contradicts => out.push(row),
        }
    }
    out.sort_unstable();
    Some((out, sure))
}

/// Names a smallest contradiction that is easily found, at the shift with most
/// plain bits.
fn contradiction(table: &Table<'_>, group: &Group, system: &System) -> FileError {
    let shift = shifts(table, group)
        .into_iter()
        .max_by_key(|&shift| plain_bits(table, group, shift))
        .unwrap_or(0);
    let mut trial = system.clone();
    let mut shortest: Option<Vec<usize>> = None;
    for &row in &group.rows {
        let equation = table.equation(row, shift);
        if trial.add(equation) == Added::Contradicts {
            let mut lines: Vec<usize> = trial
                .made_of(equation)
                .into_iter()
                .chain([row])
                .map(|row| table.rows[row].line)
                .collect();
            lines.sort_unstable();
            if shortest.as_ref().is_none_or(|s| lines.len() < s.len()) {
                shortest = Some(lines);
            }
        }
    }
    let lines = shortest.unwrap_or_default();
    let list: Vec<String> = lines.iter().map(ToString::to_string).collect();
    FileError::in_line(
        "",
        lines.first().copied().unwrap_or(0),
        format!(
            "the decodes of node {} {} 4 GiB contradict each other, and no few rows are to blame: \
             not linear (a channel count that is no power of two?), or many wrong rows. The \
             offsets of lines {} cancel out, their fields don't",
            group.node,
            if group.low { "below" } else { "above" },
            list.join(", ")
        ),
    )
}

//! Linear equations over GF(2): an offset and what all fields are there.

use std::collections::BTreeSet;

use soloist_machine::gf2::Basis;

/// An equation: a row of the table, its offset, and the bits of its fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct Equation {
    /// Index of the row.
    pub row: usize,
    /// Address less shift.
    pub offset: u64,
    /// The unknown bits, packed.
    pub value: u128,
}

/// What an equation does to those before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It says something new.
    New,
    /// It follows from others, and agrees with them.
    Confirms,
    /// It follows from others, and doesn't.
    Contradicts,
}

/// One line of the echelon form.
#[derive(Debug, Clone, Copy)]
struct Pivot {
    offset: u64,
    value: u128,
    /// Which pivots' rows were summed up to it, by index.
    made_of: u64,
}

/// Equations in reduced echelon form.
#[derive(Debug, Clone, Default)]
pub(super) struct System {
    pivots: Vec<Pivot>,
    /// The row that brought each pivot.
    rows: Vec<usize>,
}

impl System {
    /// Adds an equation, unless it contradicts the others.
    pub fn add(&mut self, equation: Equation) -> Added {
        let mut rest = self.reduce(equation);
        if rest.offset == 0 {
            return match rest.value == 0 {
                true => Added::Confirms,
                false => Added::Contradicts,
            };
        }
        rest.made_of |= 1 << self.pivots.len();
        let lead = 63 - rest.offset.leading_zeros();
        for pivot in &mut self.pivots {
            if pivot.offset >> lead & 1 == 1 {
                pivot.offset ^= rest.offset;
                pivot.value ^= rest.value;
                pivot.made_of ^= rest.made_of;
            }
        }
        self.pivots.push(rest);
        self.rows.push(equation.row);
        Added::New
    }

    fn reduce(&self, equation: Equation) -> Pivot {
        let mut rest = Pivot {
            offset: equation.offset,
            value: equation.value,
            made_of: 0,
        };
        for pivot in &self.pivots {
            if rest.offset >> (63 - pivot.offset.leading_zeros()) & 1 == 1 {
                rest.offset ^= pivot.offset;
                rest.value ^= pivot.value;
                rest.made_of ^= pivot.made_of;
            }
        }
        rest
    }

    /// The rows whose sum the equation is: those that it contradicts.
    pub fn made_of(&self, equation: Equation) -> Vec<usize> {
        let made_of = self.reduce(equation).made_of;
        let taken = |(i, row): (usize, &usize)| (made_of >> i & 1 == 1).then_some(*row);
        self.rows.iter().enumerate().filter_map(taken).collect()
    }
}

/// How many disjoint sets of the offsets tell what each offset bit in `bits`
/// does; sets are taken greedily, so that there may be more. A bit that one
/// set tells was believed; a second set proved it. An offset that comes again
/// proves nothing anew.
pub(super) fn disjoint_proofs(offsets: impl Iterator<Item = u64>, bits: u64) -> Vec<(u32, u32)> {
    let mut seen = BTreeSet::new();
    let mut left: Vec<u64> = offsets.filter(|&offset| seen.insert(offset)).collect();
    let mut proofs: Vec<(u32, u32)> = soloist_machine::gf2::bits(bits)
        .map(|bit| (bit, 0))
        .collect();
    loop {
        let mut basis = Basis::new();
        left.retain(|&offset| !basis.insert(offset));
        let mut any = false;
        for (bit, sets) in &mut proofs {
            if basis.contains(1 << *bit) {
                *sets += 1;
                any = true;
            }
        }
        if !any {
            return proofs;
        }
    }
}

//! Linear algebra over GF(2) on 64-bit rows.
//!
//! An XOR function of address bits is a row: bit i is set when address bit i
//! takes part. Two lists of functions tell the same things apart when their
//! spans are equal; that is what is compared everywhere, never the lists.

/// Parity of the bits of `address` that `mask` selects.
#[inline]
#[must_use]
pub fn parity(mask: u64, address: u64) -> u64 {
    u64::from((mask & address).count_ones() & 1)
}

/// A basis in echelon form, kept reduced: every leading bit occurs in one row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Basis {
    /// Rows by leading (highest) bit, descending.
    rows: Vec<u64>,
}

impl Basis {
    /// The empty basis.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The basis of the span of `rows`.
    #[must_use]
    pub fn of(rows: impl IntoIterator<Item = u64>) -> Self {
        let mut basis = Self::new();
        basis.extend(rows);
        basis
    }

    /// Adds a vector; false when it was in the span already.
    pub fn insert(&mut self, vector: u64) -> bool {
        let rest = self.reduce(vector);
        if rest == 0 {
            return false;
        }
        let lead = 63 - rest.leading_zeros();
        for row in &mut self.rows {
            if *row >> lead & 1 == 1 {
                *row ^= rest;
            }
        }
        let at = self.rows.partition_point(|&row| row > rest);
        self.rows.insert(at, rest);
        true
    }

    /// What is left of `vector` after subtracting rows of the basis; 0 when it
    /// lies in the span.
    #[must_use]
    pub fn reduce(&self, mut vector: u64) -> u64 {
        for &row in &self.rows {
            let lead = 63 - row.leading_zeros();
            if vector >> lead & 1 == 1 {
                vector ^= row;
            }
        }
        vector
    }

    /// Whether `vector` is a sum of rows.
    #[must_use]
    pub fn contains(&self, vector: u64) -> bool {
        self.reduce(vector) == 0
    }

    /// Number of independent rows.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.rows.len()
    }

    /// The rows, highest leading bit first.
    #[must_use]
    pub fn rows(&self) -> &[u64] {
        &self.rows
    }

    /// All vectors inside `within` (a mask of positions) whose product with
    /// every row is 0: the functions that are constant over a set when the
    /// rows are the differences inside it.
    #[must_use]
    pub fn nullspace(&self, within: u64) -> Basis {
        let rows = Basis::of(self.rows.iter().map(|row| row & within));
        let leads: Vec<u32> = rows
            .rows
            .iter()
            .map(|row| 63 - row.leading_zeros())
            .collect();
        let lead_mask = leads.iter().fold(0u64, |mask, bit| mask | 1 << bit);
        let mut null = Basis::new();
        for free in bits(within & !lead_mask) {
            let mut vector = 1u64 << free;
            for (row, lead) in rows.rows.iter().zip(&leads) {
                if row >> free & 1 == 1 {
                    vector |= 1 << lead;
                }
            }
            null.insert(vector);
        }
        null
    }

    /// Vectors in both spans.
    #[must_use]
    pub fn intersect(&self, other: &Basis) -> Basis {
        let all = !0u64;
        let mut annihilators = self.nullspace(all);
        annihilators.extend(other.nullspace(all).rows.iter().copied());
        annihilators.nullspace(all)
    }

    /// A basis of the same span with few bits per function, as people and
    /// datasheets write maps: lightest first, then lowest bits first.
    ///
    /// Up to 2^16 vectors are tried all, which is exact; beyond that, sums of
    /// up to four rows are.
    #[must_use]
    pub fn lightest(&self) -> Vec<u64> {
        self.lightest_beside(&Basis::new())
    }

    /// As [`Basis::lightest`], without what `known` spans already: `known` and
    /// the result together span both.
    #[must_use]
    pub fn lightest_beside(&self, known: &Basis) -> Vec<u64> {
        let mut candidates = if self.rank() <= 16 {
            all_sums(&self.rows)
        } else {
            few_sums(&self.rows)
        };
        candidates.sort_by_key(|&vector| (vector.count_ones(), vector));
        let mut taken = known.clone();
        let mut lightest = Vec::with_capacity(self.rank());
        for vector in candidates {
            if taken.insert(vector) {
                lightest.push(vector);
            }
        }
        lightest.sort_by_key(|&vector| (vector.trailing_zeros(), vector));
        lightest
    }
}

impl Extend<u64> for Basis {
    fn extend<T: IntoIterator<Item = u64>>(&mut self, rows: T) {
        for row in rows {
            self.insert(row);
        }
    }
}

/// Every non-empty sum of `rows`, by Gray code: one XOR each.
fn all_sums(rows: &[u64]) -> Vec<u64> {
    let count = 1usize << rows.len();
    let mut sums = Vec::with_capacity(count);
    let mut sum = 0;
    for i in 1..count {
        sum ^= rows[i.trailing_zeros() as usize];
        sums.push(sum);
    }
    sums
}

/// Sums of one to four of `rows`, and the rows themselves.
fn few_sums(rows: &[u64]) -> Vec<u64> {
    let mut sums: Vec<u64> = rows.to_vec();
    let mut last: Vec<(usize, u64)> = rows.iter().copied().enumerate().collect();
    for _ in 1..4 {
        let next: Vec<(usize, u64)> = last
            .iter()
            .flat_map(|&(i, sum)| (i + 1..rows.len()).map(move |j| (j, sum ^ rows[j])))
            .collect();
        sums.extend(next.iter().map(|&(_, sum)| sum));
        last = next;
    }
    sums
}

/// Positions of the bits that are set, ascending.
pub fn bits(mask: u64) -> impl Iterator<Item = u32> {
    (0..64).filter(move |bit| mask >> bit & 1 == 1)
}

/// The mask of bits `low..=high`.
#[must_use]
pub fn span(low: u32, high: u32) -> u64 {
    let up_to = |bit: u32| {
        if bit >= 63 {
            !0
        } else {
            (1u64 << (bit + 1)) - 1
        }
    };
    up_to(high) & !(if low == 0 { 0 } else { up_to(low - 1) })
}

/// Whether two lists of functions have the same span.
#[must_use]
pub fn same_span(a: &[u64], b: &[u64]) -> bool {
    Basis::of(a.iter().copied()) == Basis::of(b.iter().copied())
}

/// Writes a function as machine files do: `6^16^17`.
#[must_use]
pub fn show(function: u64) -> String {
    bits(function)
        .map(|bit| bit.to_string())
        .collect::<Vec<_>>()
        .join("^")
}

/// Finds the function `f` with `parity(f, x) == y` for all samples, or `None`
/// when there is none. `free` gets the space of functions that are 0 on all
/// samples: what the samples leave undetermined.
#[must_use]
pub fn fit(samples: &[(u64, bool)], within: u64) -> Option<(u64, Basis)> {
    // Eliminate over 65 columns: 64 of the address, one of the value.
    let mut rows: Vec<(u64, bool)> = Vec::new();
    for &(address, value) in samples {
        let (mut x, mut y) = (address & within, value);
        for &(row, row_value) in &rows {
            if x >> (63 - row.leading_zeros()) & 1 == 1 {
                x ^= row;
                y ^= row_value;
            }
        }
        if x == 0 {
            if y {
                return None;
            }
            continue;
        }
        let lead = 63 - x.leading_zeros();
        for (row, row_value) in &mut rows {
            if *row >> lead & 1 == 1 {
                *row ^= x;
                *row_value ^= y;
            }
        }
        rows.push((x, y));
    }
    let mut function = 0u64;
    for (row, value) in &rows {
        if *value {
            function |= 1 << (63 - row.leading_zeros());
        }
    }
    let free = Basis::of(rows.iter().map(|row| row.0)).nullspace(within);
    Some((function, free))
}

/// The lightest member of the coset `function + span(free)`.
#[must_use]
pub fn lightest_of_coset(function: u64, free: &Basis) -> u64 {
    let mut best = function;
    if free.rank() <= 16 {
        for sum in all_sums(free.rows()) {
            let candidate = function ^ sum;
            if (candidate.count_ones(), candidate) < (best.count_ones(), best) {
                best = candidate;
            }
        }
        return best;
    }
    // Greedy descent: good enough where the samples say little anyway.
    loop {
        let before = best;
        for &row in free.rows() {
            if (best ^ row).count_ones() < best.count_ones() {
                best ^= row;
            }
        }
        if best == before {
            return best;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_basis_spans_what_was_put_in(rows in prop::collection::vec(any::<u64>(), 0..40)) {
            let basis = Basis::of(rows.iter().copied());
            for row in &rows {
                prop_assert!(basis.contains(*row));
            }
            prop_assert!(basis.rank() <= rows.len());
        }

        #[test]
        fn a_nullspace_is_orthogonal_and_complete(
            rows in prop::collection::vec(any::<u64>(), 0..40),
            within in any::<u64>(),
        ) {
            let basis = Basis::of(rows.iter().map(|row| row & within));
            let null = basis.nullspace(within);
            prop_assert_eq!(null.rank() + basis.rank(), within.count_ones() as usize);
            for function in null.rows() {
                prop_assert_eq!(function & !within, 0);
                for row in &rows {
                    prop_assert_eq!(parity(*function, row & within), 0);
                }
            }
        }

        #[test]
        fn the_lightest_basis_has_the_same_span(
            rows in prop::collection::vec(any::<u64>(), 1..22),
        ) {
            let basis = Basis::of(rows.iter().copied());
            let light = basis.lightest();
            prop_assert!(same_span(&light, basis.rows()));
            prop_assert!(
                light.iter().map(|f| f.count_ones()).sum::<u32>()
                    <= basis.rows().iter().map(|f| f.count_ones()).sum::<u32>()
            );
        }

        #[test]
        fn a_fit_reproduces_the_samples(
            function in any::<u64>(),
            addresses in prop::collection::vec(any::<u64>(), 0..100),
        ) {
            let samples: Vec<_> =
                addresses.iter().map(|&a| (a, parity(function, a) == 1)).collect();
            let (found, free) = fit(&samples, !0).unwrap();
            for (address, value) in samples {
                prop_assert_eq!(parity(found, address) == 1, value);
            }
            prop_assert!(free.contains(found ^ function));
        }

        #[test]
        fn an_intersection_lies_in_both(
            a in prop::collection::vec(0u64..1 << 12, 0..9),
            b in prop::collection::vec(0u64..1 << 12, 0..9),
        ) {
            let (a, b) = (Basis::of(a), Basis::of(b));
            let both = a.intersect(&b);
            let mut sum = a.clone();
            sum.extend(b.rows().iter().copied());
            prop_assert_eq!(both.rank() + sum.rank(), a.rank() + b.rank());
            for row in both.rows() {
                prop_assert!(a.contains(*row) && b.contains(*row));
            }
        }
    }

    #[test]
    fn contradictory_samples_have_no_fit() {
        assert!(fit(&[(3, true), (3, false)], !0).is_none());
        assert!(fit(&[(0, true)], !0).is_none());
    }
}

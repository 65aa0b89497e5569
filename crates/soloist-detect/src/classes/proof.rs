//! Proves conflict classes: fresh random pairs of lines of one bank, by the
//! classes, and of two. Only the former may conflict.

use rand::Rng;
use soloist_machine::classmap::{ClassMap, Proof};
use soloist_machine::gf2;

use crate::meter::{Meter, Stop};

/// Pairs of lines of one bank, and ten times that of two.
const PAIRS: u32 = 2_500;
/// Random lines looked through for one that makes such a pair.
const TRIES: u32 = 20_000;
/// Odds against a pair that only seems to conflict.
const ODDS: f64 = 20_000.0;

/// Pages with a class, as they are measured.
pub struct Sorted<'a> {
    /// Address in the source, and class.
    pub pages: Vec<(u64, u32)>,
    /// log2 of the page size.
    pub page_shift: u32,
    /// Functions inside a page.
    pub functions: &'a [u64],
}

impl<'a> Sorted<'a> {
    /// The pages of `map` that the source of `meter` holds.
    #[must_use]
    pub fn held(meter: &Meter<'_>, map: &'a ClassMap) -> Self {
        let size = 1usize << map.page_shift;
        let ranges = meter.source().ranges();
        let pages = ranges
            .iter()
            .flat_map(|range| (range.start..range.end).step_by(size));
        Self {
            pages: pages
                .filter_map(|page| {
                    let guest = meter.source().guest_address(page)?;
                    Some((page, *map.pages.get(&guest)?))
                })
                .collect(),
            page_shift: map.page_shift,
            functions: &map.functions,
        }
    }

    fn random(&self, meter: &mut Meter<'_>) -> (u64, u32) {
        let (page, class) = self.pages[meter.rng.gen_range(0..self.pages.len())];
        let line = meter.source().line_shift();
        let inside = meter.rng.gen_range(0..1u64 << (self.page_shift - line)) << line;
        let bank = self
            .functions
            .iter()
            .enumerate()
            .fold(class, |bank, (i, &f)| {
                bank ^ (gf2::parity(f, inside) as u32) << i
            });
        (page + inside, bank)
    }

    /// Lines of two pages, of one bank or not.
    fn pair(&self, meter: &mut Meter<'_>, same: bool) -> Option<(u64, u64)> {
        let (a, bank) = self.random(meter);
        for _ in 0..TRIES {
            let (b, other) = self.random(meter);
            let fits = (bank == other) == same && (a ^ b) >> self.page_shift != 0;
            if fits && meter.source().is_fair(a, b) {
                return Some((a, b));
            }
        }
        None
    }
}

/// Measures fresh pairs; fewer, or none, where there are no such pairs or the
/// deadline passes.
#[must_use]
pub fn prove(meter: &mut Meter<'_>, sorted: &Sorted<'_>) -> Proof {
    let mut proof = Proof::default();
    if sorted.pages.len() < 2 {
        return proof;
    }
    for (same, pairs) in [(true, PAIRS), (false, 10 * PAIRS)] {
        let mut missing = 0;
        let count = if same {
            &mut proof.same
        } else {
            &mut proof.other
        };
        while count.1 < pairs && missing < 16 {
            let Some((a, b)) = sorted.pair(meter, same) else {
                missing += 1;
                continue;
            };
            let Ok(conflict) = conflicts(meter, a, b) else {
                break;
            };
            count.0 += u32::from(conflict);
            count.1 += 1;
        }
    }
    proof
}

fn conflicts(meter: &mut Meter<'_>, a: u64, b: u64) -> Result<bool, Stop> {
    Ok(meter.is_conflict_among_many(a, b, ODDS)? && meter.is_conflict(a, b, 300.0)?)
}

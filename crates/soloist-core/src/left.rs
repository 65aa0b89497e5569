//! The colours of a map that pages larger than 4 KiB leave.

use std::fmt;

use serde::Serialize;

use crate::map::AddrMap;
use crate::page::PageSize;
use crate::size::format_size;

/// How many of something are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Part {
    /// With these pages.
    pub left: u32,
    /// With pages of 4 KiB.
    pub of: u32,
}

impl Part {
    fn words(self, what: &str) -> String {
        match self.left == self.of {
            true => format!("all {} {what}", self.of),
            false => format!("{} of {} {what}", self.left, self.of),
        }
    }
}

/// The colours of a map that pages larger than 4 KiB leave, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Left {
    /// The pages.
    pub page_bytes: PageSize,
    /// Bank sets that hold memory.
    pub bank_sets: Part,
    /// LLC colours.
    pub llc_colors: Part,
    /// Address bits that choose a bank or an LLC colour and lie inside such a page, not
    /// inside one of 4 KiB.
    pub bits: Vec<u32>,
    /// Bytes in a row of one channel, where those are dealt out inside such a page.
    pub granule: Option<u64>,
}

impl Left {
    /// `None`: the map is of pages of 4 KiB, which leave everything.
    #[must_use]
    pub fn of(map: &AddrMap) -> Option<Self> {
        let pages = map.page_size();
        if pages == PageSize::K4 {
            return None;
        }
        let small = map.for_pages(PageSize::K4).ok()?;
        let sets = |map: &AddrMap| {
            let all = 0..map.n_bank_sets();
            all.filter(|&set| map.set_frames(set) > 0).count() as u32
        };
        let part = |of: fn(&AddrMap) -> u32| Part {
            left: of(map),
            of: of(&small),
        };
        let between = |at: u64| (PageSize::K4.bytes()..pages.bytes()).contains(&at);
        Some(Self {
            page_bytes: pages,
            bank_sets: Part {
                left: sets(map),
                of: sets(&small),
            },
            llc_colors: part(AddrMap::n_llc),
            bits: (PageSize::K4.shift()..pages.shift())
                .filter(|bit| chooses(map) >> bit & 1 == 1)
                .collect(),
            granule: map
                .layouts()
                .filter_map(|layout| Some(layout.interleave?.granule))
                .find(|&granule| between(granule)),
        })
    }

    /// Is there less than with pages of 4 KiB?
    #[must_use]
    pub fn is_less(&self) -> bool {
        let less = |part: Part| part.left < part.of;
        less(self.bank_sets) || less(self.llc_colors)
    }

    fn why(&self) -> Vec<String> {
        let bits = match self.bits.as_slice() {
            [] => None,
            [bit] => Some(format!("bit {bit} lies inside a page")),
            [before @ .., last] => {
                let before: Vec<String> = before.iter().map(ToString::to_string).collect();
                let before = before.join(", ");
                Some(format!("bits {before} and {last} lie inside a page"))
            }
        };
        let dealt = self.granule.map(|granule| {
            let granule = format_size(granule);
            format!("channels change every {granule} inside a page")
        });
        bits.into_iter().chain(dealt).collect()
    }
}

/// Address bits that choose a bank or an LLC colour.
fn chooses(map: &AddrMap) -> u64 {
    let layouts = map.layouts();
    let banks = layouts.flat_map(|l| [l.channel, l.rank, l.bank].concat());
    let llc = map.llc_masks().iter().copied();
    banks.chain(llc).fold(0, |all, mask| all | mask)
}

/// One sentence: `4 of 16 bank sets are left with 16 KiB pages: bits 12 and 13 lie inside a
/// page`.
impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.bank_sets.words("bank sets"))?;
        if self.llc_colors.of > 1 {
            write!(f, " and {}", self.llc_colors.words("LLC colours"))?;
        }
        write!(f, " are left with {} pages", self.page_bytes)?;
        match self.why().join(", ") {
            why if why.is_empty() => Ok(()),
            why => write!(f, ": {why}"),
        }
    }
}

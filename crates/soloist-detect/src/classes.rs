//! Conflict classes: colours without functions, for virtual machines.
//!
//! In a guest without root on the host only the bits inside a page are known,
//! so no function can reach above it. But whether two pages share banks can
//! be measured: inside every page the same functions F choose a bank, plus a
//! constant of that page, c. Two lines conflict when F(x) ^ c = F(y) ^ d, so
//! pages with the same constant are one class. A class is a colour that holds
//! as long as the host does not move the page.
//!
//! Where functions hold inside a page, pages are sorted as a whole (`classify`), else
//! frame by frame (`frames`).

pub mod classify;
pub mod frames;
pub mod proof;

use serde::Serialize;
use soloist_machine::classmap::{self, ClassMap, Proof};
use soloist_machine::gf2;
use soloist_machine::About;

/// A page and its class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClassedPage {
    /// Its address in the source.
    pub page: u64,
    /// Its address as the guest's kernel numbers it, where that is told.
    pub guest: Option<u64>,
    /// `None`: none fitted.
    pub class: Option<u32>,
}

/// The class of every page that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Classes {
    /// log2 of the page size.
    pub page_shift: u32,
    /// Functions inside a page; none: frames are of one class as a whole.
    #[serde(serialize_with = "as_text")]
    pub functions: Vec<u64>,
    /// The pages.
    pub pages: Vec<ClassedPage>,
    /// Different classes seen.
    pub classes: usize,
    /// How they stood up.
    pub proof: Proof,
}

impl Classes {
    /// As a file has it; pages without a class are left out.
    #[must_use]
    pub fn to_file(&self, about: About, line_shift: u32) -> ClassMap {
        let located = self.pages.iter().all(|page| page.guest.is_some());
        let address = |page: &ClassedPage| match located {
            true => page.guest.unwrap_or(page.page),
            false => page.page,
        };
        ClassMap {
            about,
            page_shift: self.page_shift,
            line_shift,
            addresses: if located {
                classmap::Addresses::Guest
            } else {
                classmap::Addresses::Run
            },
            functions: self.functions.clone(),
            pages: self
                .pages
                .iter()
                .filter_map(|page| Some((address(page), page.class?)))
                .collect(),
            proof: self.proof,
        }
    }
}

fn as_text<S: serde::Serializer>(functions: &[u64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(functions.iter().map(|&f| gf2::show(f)))
}

//! Conflict-class files: colours of measured pages, where no map is known.
//!
//! A map kind of its own, beside functions: it lists pages of a virtual
//! machine and the class that each was measured to be in (by `soloist map detect`).
//! The bank number of a line is its page's class, summed with the functions
//! inside the page where some hold; lines of different numbers share no bank.
//! Numbers mean nothing beyond that: they are no addresses of banks, can't be
//! computed for another page, and hold until the host moves a page.
//!
//! The file is TOML as machine files are, with `[classes]` for `[map]`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use soloist_core::{parse_size, FRAME_SHIFT};

use crate::about::{check_name, About};
use crate::cache::Bytes;
use crate::file::{read_text, FileError, FileText};
use crate::function::{parse_list, MAX_BIT};
use crate::gf2::{self, Basis};
use toml::Spanned;

/// Most pages in a file.
const MAX_PAGES: u64 = 1 << 20;
/// Classes are below this.
const MAX_CLASS: u32 = 1 << 16;
/// Pages are at most this large.
const MAX_SHIFT: u32 = 30;

/// What the addresses of the pages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Addresses {
    /// Physical addresses as the guest's kernel numbers them.
    Guest,
    /// Places in the memory of the run that measured them, which is gone:
    /// pagemap told no addresses (no root).
    Run,
}

/// Pairs of lines that were measured to prove classes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Pairs whose banks may be one, by the classes: conflicts, all.
    pub same: (u32, u32),
    /// Pairs whose banks differ, by the classes: conflicts, all.
    pub other: (u32, u32),
}

impl Proof {
    /// Whether conflicts keep to where the classes allow them.
    #[must_use]
    pub fn holds(&self) -> bool {
        let rate = |(hits, all): (u32, u32)| f64::from(hits) / f64::from(all.max(1));
        self.same.0 >= 8 && self.other.1 >= 8 && rate(self.other) * 50.0 < rate(self.same)
    }
}

/// Pages and their classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassMap {
    /// Name, description, sources.
    pub about: About,
    /// log2 of the page size.
    pub page_shift: u32,
    /// log2 of a cache line.
    pub line_shift: u32,
    /// What the addresses are.
    pub addresses: Addresses,
    /// Functions inside a page; empty: frames are of one class as a whole.
    pub functions: Vec<u64>,
    /// Class by the page's address.
    pub pages: BTreeMap<u64, u32>,
    /// How the classes stood up when they were measured.
    pub proof: Proof,
}

/// Where a line lies, as far as classes tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClassPlace {
    /// The address.
    pub address: u64,
    /// First byte of its page.
    pub page: u64,
    /// Class of the page.
    pub class: u32,
    /// Lines of different numbers share no bank.
    pub bank: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    machine: Spanned<About>,
    classes: Spanned<RawClasses>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClasses {
    page: Spanned<Bytes>,
    line: Spanned<Bytes>,
    addresses: Addresses,
    #[serde(default)]
    functions: Vec<Spanned<String>>,
    #[serde(default)]
    proof: Proof,
    class: Vec<Spanned<RawClass>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClass {
    number: u32,
    pages: Vec<Spanned<String>>,
}

impl ClassMap {
    /// Whether the text is such a file rather than a machine file.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        text.lines()
            .any(|line| line.split('#').next().unwrap_or("").trim() == "[classes]")
    }

    /// Reads a file's text; `file` is its name in messages.
    ///
    /// # Errors
    /// With the line, what was wrong and what was expected.
    pub fn parse(text: &str, file: &str) -> Result<Self, FileError> {
        let place = FileText { file, text };
        let raw: Raw = toml::from_str(text).map_err(|error| place.toml(&error))?;
        check_name(&raw.machine).map_err(|(span, message)| place.error(span, message))?;
        let raw_classes = raw.classes.into_inner();
        let shift = |size: &Spanned<Bytes>, least: u32, most: u32| {
            let bytes = size.get_ref().0;
            let fits = bytes.is_power_of_two() && (least..=most).contains(&bytes.trailing_zeros());
            let expected = format!(
                "expected a power of two from {} to {} bytes",
                1u64 << least,
                1u64 << most
            );
            fits.then(|| bytes.trailing_zeros())
                .ok_or_else(|| place.error(size.span(), expected))
        };
        let page_shift = shift(&raw_classes.page, FRAME_SHIFT, MAX_SHIFT)?;
        let line_shift = shift(&raw_classes.line, 4, FRAME_SHIFT - 1)?;
        let mut map = Self {
            about: raw.machine.into_inner(),
            page_shift,
            line_shift,
            addresses: raw_classes.addresses,
            functions: Vec::new(),
            pages: BTreeMap::new(),
            proof: raw_classes.proof,
        };
        for text in &raw_classes.functions {
            map.add_function(text.get_ref())
                .map_err(|message| place.error(text.span(), message))?;
        }
        for class in &raw_classes.class {
            let number = class.get_ref().number;
            if number >= MAX_CLASS {
                let message = format!("class {number}: expected less than {MAX_CLASS}");
                return Err(place.error(class.span(), message));
            }
            for pages in &class.get_ref().pages {
                map.add_pages(pages.get_ref(), number)
                    .map_err(|message| place.error(pages.span(), message))?;
            }
        }
        Ok(map)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`ClassMap::parse`], or that it can't be read.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let (text, file) = read_text(path)?;
        Self::parse(&text, &file)
    }

    fn add_function(&mut self, text: &str) -> Result<(), String> {
        let inside = gf2::span(self.line_shift, self.page_shift - 1);
        for term in parse_list(text)? {
            if term.mask & !inside != 0 {
                return Err(format!(
                    "`{text}`: expected bits {} to {}, of a line inside a page",
                    self.line_shift,
                    self.page_shift - 1
                ));
            }
            if Basis::of(self.functions.iter().copied()).contains(term.mask) {
                return Err(format!("`{text}`: follows from the functions before it"));
            }
            self.functions.push(term.mask);
        }
        Ok(())
    }

    /// `0x1000`, or `0x1000-0x4000` for all pages up to that one.
    fn add_pages(&mut self, text: &str, class: u32) -> Result<(), String> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let page = |text: &str| {
            let address = parse_size(text).map_err(|e| e.to_string())?;
            let fits = address >> self.page_shift << self.page_shift == address;
            if !fits || address >> (MAX_BIT + 1) != 0 {
                return Err(format!("`{text}`: no page begins there"));
            }
            Ok(address)
        };
        let (first, last) = (page(first)?, page(last)?);
        if last < first || (last - first) >> self.page_shift >= MAX_PAGES {
            return Err(format!(
                "`{text}`: expected pages that ascend, a million at most"
            ));
        }
        for address in (first..=last).step_by(1 << self.page_shift) {
            if self.pages.insert(address, class).is_some() {
                return Err(format!("`{text}`: page {address:#x} is listed twice"));
            }
        }
        if self.pages.len() as u64 > MAX_PAGES {
            return Err("expected a million pages at most".into());
        }
        Ok(())
    }

    /// The text of the file; `notes` become comments at its head.
    #[must_use]
    pub fn to_text(&self, notes: &[String]) -> String {
        let mut out = String::new();
        for line in notes.iter().flat_map(|note| note.lines()) {
            let _ = writeln!(out, "# {line}");
        }
        crate::write::about(&mut out, &self.about);
        let _ = writeln!(out, "\n[classes]");
        let _ = writeln!(out, "page = {}", 1u64 << self.page_shift);
        let _ = writeln!(out, "line = {}", 1u64 << self.line_shift);
        let addresses = match self.addresses {
            Addresses::Guest => "guest",
            Addresses::Run => "run",
        };
        let _ = writeln!(out, "addresses = \"{addresses}\"");
        let functions: Vec<String> = self.functions.iter().map(|&f| gf2::show(f)).collect();
        let _ = writeln!(out, "functions = {functions:?}");
        let ((a, b), (c, d)) = (self.proof.same, self.proof.other);
        let _ = writeln!(out, "proof = {{ same = [{a}, {b}], other = [{c}, {d}] }}");
        for class in self.classes() {
            let _ = writeln!(out, "\n[[classes.class]]\nnumber = {class}\npages = [");
            for run in self.runs(class) {
                let _ = writeln!(out, "    \"{run}\",");
            }
            let _ = writeln!(out, "]");
        }
        out
    }

    /// Pages of a class, neighbours as one.
    fn runs(&self, class: u32) -> Vec<String> {
        let size = 1u64 << self.page_shift;
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (&page, _) in self.pages.iter().filter(|(_, c)| **c == class) {
            match runs.last_mut() {
                Some((_, last)) if *last + size == page => *last = page,
                _ => runs.push((page, page)),
            }
        }
        let show = |(first, last): (u64, u64)| match first == last {
            true => format!("{first:#x}"),
            false => format!("{first:#x}-{last:#x}"),
        };
        runs.into_iter().map(show).collect()
    }

    /// The classes, ascending.
    #[must_use]
    pub fn classes(&self) -> Vec<u32> {
        let classes: BTreeSet<u32> = self.pages.values().copied().collect();
        classes.into_iter().collect()
    }

    /// Pages of each class, in the order of [`ClassMap::classes`].
    #[must_use]
    pub fn population(&self) -> BTreeMap<u32, usize> {
        let mut count = BTreeMap::new();
        for class in self.pages.values() {
            *count.entry(*class).or_default() += 1;
        }
        count
    }

    /// Where a line lies; `None`: its page was not measured.
    #[must_use]
    pub fn decode(&self, address: u64) -> Option<ClassPlace> {
        let page = address >> self.page_shift << self.page_shift;
        let class = *self.pages.get(&page)?;
        let inside = self
            .functions
            .iter()
            .enumerate()
            .map(|(i, &f)| (gf2::parity(f, address - page) as u32) << i)
            .sum::<u32>();
        Some(ClassPlace {
            address,
            page,
            class,
            bank: class ^ inside,
        })
    }

    /// Frames of 4 KiB by the banks that their lines touch: the sets that a
    /// colouring could hand out, with the number of frames in each. Frames of
    /// different sets share no bank.
    #[must_use]
    pub fn bank_sets(&self) -> BTreeMap<Vec<u32>, usize> {
        let frames = 1u64 << (self.page_shift - FRAME_SHIFT);
        let mut sets: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
        let mut of_class: BTreeMap<u32, Vec<Vec<u32>>> = BTreeMap::new();
        for (&page, &class) in &self.pages {
            let touched = of_class.entry(class).or_insert_with(|| {
                (0..frames)
                    .map(|frame| self.banks_of(page + (frame << FRAME_SHIFT)))
                    .collect()
            });
            for set in touched {
                *sets.entry(set.clone()).or_default() += 1;
            }
        }
        sets
    }

    fn banks_of(&self, frame: u64) -> Vec<u32> {
        let lines = (frame..frame + (1 << FRAME_SHIFT)).step_by(1 << self.line_shift);
        let banks: BTreeSet<u32> = lines
            .filter_map(|line| Some(self.decode(line)?.bank))
            .collect();
        banks.into_iter().collect()
    }

    /// What a reader must know, a sentence each.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let sets = self.bank_sets();
        let frames: usize = sets.values().sum();
        let (least, most) = (sets.values().min(), sets.values().max());
        let mut out = vec![format!(
            "{} pages of {} were measured and lie in {} conflict classes.",
            self.pages.len(),
            soloist_core::format_size(1 << self.page_shift),
            self.classes().len()
        )];
        if !self.functions.is_empty() {
            let list: Vec<String> = self.functions.iter().map(|&f| gf2::show(f)).collect();
            out.push(format!(
                "Inside a page banks follow the functions {}.",
                list.join(", ")
            ));
        }
        out.push(format!(
            "That makes {} colours of 4 KiB frames, {} to {} of {frames} frames each.",
            sets.len(),
            least.unwrap_or(&0),
            most.unwrap_or(&0),
        ));
        let ((a, b), (c, d)) = (self.proof.same, self.proof.other);
        out.push(format!(
            "When measured, {a} of {b} pairs of lines conflicted where the classes allow it, and \
             {c} of {d} where they don't."
        ));
        out.push(
            match self.addresses {
                Addresses::Guest => {
                    "Pages are named by the guest's physical addresses; all this holds for these \
                     pages only, until the host moves them."
                }
                Addresses::Run => {
                    "Pages are numbered as in the run that measured them, for want of root: the \
                     file is a record, and no page can be found again."
                }
            }
            .into(),
        );
        out.push(
            "The kernel module computes colours from addresses, which classes don't allow: \
             `soloist up` takes no such file."
                .into(),
        );
        out
    }
}

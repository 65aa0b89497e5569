//! Writes machine files.

use std::fmt::Write as _;

use crate::about::About;
use crate::function::Term;
use crate::gf2;
use crate::spec::{Layout, MapSpec};
use crate::topology::Topology;

/// The text of a machine file. `notes` become comments at its head.
#[must_use]
pub fn machine_file(about: &About, topology: &Topology, map: &MapSpec, notes: &[String]) -> String {
    let mut out = String::new();
    for line in notes.iter().flat_map(|note| note.lines()) {
        let _ = writeln!(out, "# {line}");
    }
    self::about(&mut out, about);
    let cpus: Vec<String> = topology.cpus.iter().map(|cpus| quote(cpus)).collect();
    let _ = writeln!(out, "\n[topology]\nsockets = {}", topology.sockets);
    let _ = writeln!(out, "cpus = [{}]", cpus.join(", "));
    if !topology.distances.is_empty() {
        let _ = writeln!(out, "distances = {:?}", topology.distances);
    }
    let _ = writeln!(out, "\n[map]\nline = {}", map.line);
    list(&mut out, "llc", &map.llc);
    match map.layouts.as_slice() {
        [only] => layout(&mut out, only),
        several => {
            for one in several {
                let _ = writeln!(out, "\n[map.layouts.{}]", one.name);
                layout(&mut out, one);
            }
        }
    }
    for range in &map.ranges {
        let _ = writeln!(
            out,
            "\n[[map.range]]\nstart = {:#x}\nend = {:#x}\nnode = {}\nbase = {:#x}",
            range.start, range.end, range.node, range.base
        );
        if map.layouts.len() > 1 {
            let _ = writeln!(out, "layout = {}", quote(&map.layouts[range.layout].name));
        }
    }
    out
}

/// The section that says whose file it is.
pub(crate) fn about(out: &mut String, about: &About) {
    let _ = writeln!(out, "\n[machine]");
    let _ = writeln!(out, "name = {}", quote(&about.name));
    let _ = writeln!(out, "description = {}", quote(&about.description));
    let _ = writeln!(out, "trust = \"{}\"", about.trust);
    let sources: Vec<String> = about.source.iter().map(|source| quote(source)).collect();
    let _ = writeln!(out, "source = [{}]", sources.join(", "));
}

fn layout(out: &mut String, layout: &Layout) {
    if let Some(interleave) = layout.interleave {
        let on = match layout.ways.is_empty() {
            true => String::new(),
            false => format!(", on = {:?}", layout.ways),
        };
        let _ = writeln!(
            out,
            "interleave = {{ ways = {}, granule = {}{on} }}",
            interleave.ways, interleave.granule
        );
    }
    list(out, "channel", &layout.channel);
    list(out, "rank", &layout.rank);
    list(out, "bank", &layout.bank);
    if layout.chip_select != 0 {
        let _ = writeln!(out, "chip_select = {}", layout.chip_select);
    }
    for (name, numbers) in [
        ("bank_group", &layout.bank_group),
        ("sub_channel", &layout.sub_channel),
    ] {
        if !numbers.is_empty() {
            let _ = writeln!(out, "{name} = {numbers:?}");
        }
    }
    for (name, terms) in [("row", &layout.row), ("column", &layout.column)] {
        if !terms.is_empty() {
            let words: Vec<String> = runs(terms).iter().map(|word| quote(word)).collect();
            let _ = writeln!(out, "{name} = [{}]", words.join(", "));
        }
    }
}

/// Terms as people write them: `20-32` for neighbours, `@11:` where the printed
/// position jumps.
fn runs(terms: &[Term]) -> Vec<String> {
    let mut words = Vec::new();
    let mut next = 0;
    let mut i = 0;
    while i < terms.len() {
        let first = terms[i];
        let mut j = i;
        while first.mask.count_ones() == 1
            && terms.get(j + 1).is_some_and(|term| {
                let step = (j + 1 - i) as u32;
                term.at == first.at + step && term.mask == first.mask << step
            })
        {
            j += 1;
        }
        let prefix = if first.at == next {
            String::new()
        } else {
            format!("@{}:", first.at)
        };
        words.push(if j > i {
            let (low, high) = (first.mask.trailing_zeros(), terms[j].mask.trailing_zeros());
            format!("{prefix}{low}-{high}")
        } else {
            format!("{prefix}{}", gf2::show(first.mask))
        });
        next = terms[j].at + 1;
        i = j + 1;
    }
    words
}

fn list(out: &mut String, name: &str, masks: &[u64]) {
    if !masks.is_empty() {
        let functions: Vec<String> = masks.iter().map(|&mask| quote(&gf2::show(mask))).collect();
        let _ = writeln!(out, "{name} = [{}]", functions.join(", "));
    }
}

/// A TOML string.
fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

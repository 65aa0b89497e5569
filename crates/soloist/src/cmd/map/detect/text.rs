//! A report of detection, for people.

use std::fmt::Write as _;

use anyhow::Result;
use soloist_core::{format_size, Interleave};
use soloist_detect::choice::measured::Report;
use soloist_detect::classes::Classes;
use soloist_detect::RegionReport;

/// All of it.
pub(super) fn text_of(report: &Report) -> Result<String> {
    let mut out = format!("{}\n", report.source);
    for region in &report.regions {
        region_text(&mut out, region, report)?;
    }
    for (start, end, why) in &report.unsolved {
        writeln!(out, "\n{start} to {end}: {why}")?;
    }
    for open in report.open.iter().chain(&report.contradicted) {
        writeln!(out, "\nopen: {open}")?;
    }
    if let Some(classes) = &report.classes {
        classes_text(&mut out, classes)?;
        if let Some(fleeting) = report.fleeting.as_ref().filter(|_| classes.classes > 0) {
            writeln!(out, "{fleeting}")?;
        }
    }
    let seconds = report.seconds;
    writeln!(out, "\n{} samples, {seconds:.2} s", report.samples)?;
    match report.recovered {
        Some(true) => out.push_str("the map was recovered exactly\n"),
        Some(false) => writeln!(
            out,
            "not the machine's map: {}",
            report.differences.join("; ")
        )?,
        None => {}
    }
    if !report.complete {
        out.push_str("incomplete: see above for what was not explained\n");
    }
    Ok(out)
}

fn region_text(out: &mut String, region: &RegionReport, report: &Report) -> Result<()> {
    let place = if report.physical {
        let ranges: Vec<String> = region
            .ranges
            .iter()
            .map(|(start, end, base)| format!("{start} to {end} at offset {base}"))
            .collect();
        format!("node {}, {}", region.node, ranges.join(", "))
    } else {
        format!(
            "inside a page, bits {} to {}",
            region.visible.0, region.visible.1
        )
    };
    if region.functions.is_empty() {
        return Ok(writeln!(
            out,
            "\n{place}: conflicts are there, one random pair in {:.0} ({:.0} against {:.0} {}), but \
             no XOR of address bits tells which pairs, over a division or not. So it is with a guest \
             whose huge pages are made of small ones on the host.",
            region.banks_by_rate, region.levels.slow, region.levels.fast, report.unit
        )?);
    }
    writeln!(
        out,
        "\n{place}: {} banks (by rate {}), confidence {:.2}",
        region.banks, region.banks_by_rate, region.confidence
    )?;
    if let Some(Interleave { ways, granule }) = region.division {
        writeln!(
            out,
            "  way    (offset / {granule}) mod {ways}; all else is over what that leaves"
        )?;
    }
    writeln!(out, "  banks  {}", region.functions.join(", "))?;
    writeln!(out, "  rows   {}", region.rows)?;
    for name in region.names.said() {
        writeln!(out, "  {name}")?;
    }
    let levels = &region.levels;
    writeln!(
        out,
        "  fast {:.0}, slow {:.0} ({}); one sample is the median of {}",
        levels.fast, levels.slow, report.unit, levels.repeats,
    )?;
    writeln!(
        out,
        "  fresh pairs: {} of {} of one bank conflicted, {} of {} combinations of functions kept apart, \
         {} of {} pairs of one row did not conflict, {} of {} combinations of rows did",
        region.same_bank.held,
        region.same_bank.all,
        region.other_bank.held,
        region.other_bank.all,
        region.same_row.held,
        region.same_row.all,
        region.other_row.held,
        region.other_row.all
    )?;
    for open in region.open.iter().filter(|_| report.physical) {
        writeln!(out, "  open: {open}")?;
    }
    Ok(())
}

fn classes_text(out: &mut String, classes: &Classes) -> Result<()> {
    let sorted = classes.pages.iter().filter(|page| page.class.is_some());
    let size = format_size(1 << classes.page_shift);
    writeln!(
        out,
        "\n{} of {} pages of {size} sorted into {} conflict classes.",
        sorted.count(),
        classes.pages.len(),
        classes.classes
    )?;
    if classes.classes == 0 {
        out.push_str(
            "So nothing is known of classes; more time (--deadline) may sort some pages.\n",
        );
        return Ok(());
    }
    out.push_str(match classes.functions.is_empty() {
        true => "Pages of different classes share no bank; pages of one share some.\n",
        false => {
            "The functions say how banks lie inside a page, the class how a page's are moved: \
             pages of one class have theirs at the same places.\n"
        }
    });
    let proof = &classes.proof;
    writeln!(
        out,
        "Fresh pairs of lines: {} of {} conflicted where the classes allow it, {} of {} where they \
         don't.",
        proof.same.0, proof.same.1, proof.other.0, proof.other.1
    )?;
    out.push_str(
        "Physical addresses are not known here (no root, or a virtual machine): this holds for \
         the very pages measured, until the host moves them.\n",
    );
    if classes.classes == 1 {
        out.push_str("There is but one class: nothing to colour by.\n");
    }
    Ok(())
}

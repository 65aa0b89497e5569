//! `soloist map show|decode|check` for files of conflict classes.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{anyhow, Result};
use soloist_detect::check::{check_classes, Verdict};
use soloist_detect::timing::hardware::{Hardware, HardwareOptions};
use soloist_detect::timing::sim::{SimPool, SimSource};
use soloist_detect::Options;
use soloist_machine::classmap::ClassMap;

use super::check::Check;
use super::plain_table;
use soloist_cli::machine::named;
use soloist_cli::out::put;
use soloist_cli::{Ctx, Misuse};

/// What is known of the classes.
pub fn show(map: &ClassMap, ctx: &Ctx) -> Result<ExitCode> {
    if ctx.json {
        let classes: Vec<_> = map
            .population()
            .into_iter()
            .map(|(class, pages)| serde_json::json!({ "class": class, "pages": pages }))
            .collect();
        ctx.print_json(&serde_json::json!({
            "kind": "conflict-classes",
            "name": map.about.name,
            "description": map.about.description,
            "page": 1u64 << map.page_shift,
            "addresses": map.addresses,
            "functions": map.functions,
            "classes": classes,
            "colors": map.bank_sets().len(),
            "proof": map.proof,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = format!("{}: {}\n\n", map.about.name, map.about.description);
    for sentence in map.sentences() {
        writeln!(out, "{sentence}")?;
    }
    let mut table = plain_table();
    table.set_header(["class", "pages"]);
    for (class, pages) in map.population() {
        table.add_row([class.to_string(), pages.to_string()]);
    }
    writeln!(out, "\n{table}")?;
    put(&out)?;
    Ok(ExitCode::SUCCESS)
}

/// `--text` and `--svg` have nothing to print.
pub fn refuse_drawing() -> Result<ExitCode> {
    let why = "conflict classes are no functions of the address: there is no map text for the \
               kernel and no bits to draw; leave --text and --svg out";
    Err(Misuse(why.into()).into())
}

/// Classes and bank numbers of addresses.
pub fn decode(map: &ClassMap, addresses: &[u64], ctx: &Ctx) -> Result<ExitCode> {
    let mut places = Vec::new();
    for &address in addresses {
        let place = map.decode(address).ok_or_else(|| {
            anyhow!("{address:#x}: its page was not measured, and classes tell of no other")
        })?;
        places.push(place);
    }
    if ctx.json {
        ctx.print_json(&places)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = plain_table();
    table.set_header(["address", "page", "class", "bank number"]);
    for place in &places {
        table.add_row([
            format!("{:#x}", place.address),
            format!("{:#x}", place.page),
            place.class.to_string(),
            place.bank.to_string(),
        ]);
    }
    put(&format!("{table}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// Measures the pages again that can be had.
pub fn check(map: &ClassMap, args: &Check, ctx: &Ctx) -> Result<ExitCode> {
    if args.trust_guest {
        let why =
            "--trust-guest is for maps: classes are of single pages, by whatever addresses the \
                   kernel tells";
        return Err(Misuse(why.to_owned()).into());
    }
    let options = Options {
        deadline: args.deadline(),
        seed: args.seed,
        ..Options::default()
    };
    let (verdict, held, proof) = match &args.simulate {
        Some(name) => {
            let machine = named(name)?;
            let pool = SimPool::all();
            let mut source = SimSource::new(&machine, pool, args.noise, args.seed);
            check_classes(&mut source, map, &options)?
        }
        None => {
            let memory = HardwareOptions {
                memory: args.memory,
                ..HardwareOptions::default()
            };
            let (mut source, left) = Hardware::within(&memory, &options)?;
            check_classes(&mut source, map, &left)?
        }
    };
    let printed = if ctx.json {
        ctx.print_json(&serde_json::json!({
            "machine": map.about.name,
            "kind": "conflict-classes",
            "verdict": verdict,
            "pages_held": held,
            "pages": map.pages.len(),
            "proof": proof,
        }))
    } else {
        let ((a, b), (c, d)) = (proof.same, proof.other);
        let mut out = format!(
            "{held} of its {} pages could be had again; {a} of {b} pairs of lines conflicted where \
             the classes allow it, and {c} of {d} where they don't\n",
            map.pages.len()
        );
        let name = &map.about.name;
        match verdict {
            Verdict::Fits => writeln!(out, "{name} fits, for these pages")?,
            Verdict::Contradicted => writeln!(out, "{name} does not fit: detect again")?,
            Verdict::Unknown => writeln!(
                out,
                "too few of them to tell: other pages have other classes; try a larger --memory, \
                 or detect again"
            )?,
        }
        put(&out)
    };
    Ok(ctx.judged(printed, verdict == Verdict::Fits))
}

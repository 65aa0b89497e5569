//! `soloist map llc`: the last-level cache, by timing.

use std::process::ExitCode;

use anyhow::Result;
use soloist_core::{format_size, parse_size, show_list};
use soloist_detect::cache::eviction;
use soloist_detect::cache::llc::{detect, HardwareProbe, Llc, NoProbe};
use soloist_detect::timing::hardware::{Hardware, HardwareOptions};

use soloist_cli::out::put;
use soloist_cli::{progress, Ctx, Misuse};

/// What `soloist map llc` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Memory to measure with; a strong hash needs more.
    #[arg(long, default_value = "512M", value_parser = parse_size)]
    memory: u64,
}

/// Too little memory is the user's to mend.
fn objection(why: NoProbe) -> anyhow::Error {
    match why {
        NoProbe::Memory { .. } => Misuse(why.to_string()).into(),
        _ => why.into(),
    }
}

/// Runs the command.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    let memory = Hardware::new(&HardwareOptions {
        memory: Some(args.memory),
        ..HardwareOptions::default()
    })?;
    let mut probe = HardwareProbe::new(&memory).map_err(objection)?;
    let target = probe.target();
    let found = detect(&mut probe, target);
    let bar = progress::bar(ctx, 100, "looking which pages push each other out");
    let pages = eviction::detect(&mut probe, 1, &mut |share| {
        bar.set_position((100.0 * share) as u64);
    });
    bar.finish_and_clear();
    let found = LlcFound { bits: found, pages };
    let printed = match ctx.json {
        true => ctx.print_json(&found),
        false => put(&found.text()),
    };
    Ok(ctx.judged(printed, found.is_known()))
}

/// What `llc --json` prints.
#[derive(serde::Serialize)]
struct LlcFound {
    #[serde(flatten)]
    bits: Llc,
    /// By which pages push each other out; `None`: no group does.
    pages: Option<eviction::Eviction>,
}

impl LlcFound {
    /// Whether anything is known of which pages share sets.
    fn is_known(&self) -> bool {
        self.bits.hashed.is_some() || self.pages.is_some()
    }

    fn text(&self) -> String {
        let geometry = self.bits.geometry;
        let mut out = format!(
            "last level: {} in {} ways, lines of {} bytes\n",
            format_size(geometry.size),
            geometry.ways,
            geometry.line
        );
        if let Some(group) = self.bits.group {
            out.push_str(&format!("{group} lines one way apart push a line out\n"));
        }
        if !self.bits.set_bits.is_empty() {
            out.push_str(&format!("set bits: {}\n", show_list(&self.bits.set_bits)));
        }
        out.push_str(&format!("{}\n", self.bits.advice));
        match &self.pages {
            Some(pages) => out.push_str(&format!("{}\n", pages.verdict())),
            None => out.push_str(
                "no group of pages was found that pushes a line out: page colours are not known\n",
            ),
        }
        out
    }
}

//! `soloist sim profile`: what recorded programs do with memory.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use soloist_memory::Platform;
use soloist_play::profile::{profile, Profile};
use soloist_record::{Lines, Meta};

use super::{damage, no_machine, recorded};
use soloist_cli::complete;
use soloist_cli::Ctx;
use soloist_cli::{status, table};

/// Show statistics of recorded programs: misses, writes, footprint, rows, banks.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!["soloist sim profile sort.rec"])]
pub struct Args {
    /// Recordings that `soloist vm record` made.
    #[arg(required = true, value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Machine whose last-level cache and map the statistics use [default: that of each
    /// recording].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,
    /// Print the pages of the first program instead: virtual and physical number, and
    /// the thread that touched them first.
    #[arg(long)]
    pages: bool,
}

#[derive(Serialize)]
struct Page {
    virt: u64,
    phys: u64,
    user: bool,
    thread: u32,
}

#[derive(Serialize)]
struct PagesOf {
    pages: Vec<Page>,
    damage: Vec<String>,
}

#[derive(Serialize)]
struct Profiled {
    #[serde(flatten)]
    profile: Profile,
    damage: Vec<String>,
}

impl Args {
    /// Runs the command.
    pub fn run(self, ctx: &Ctx) -> Result<ExitCode> {
        if self.pages {
            return self.print_pages(ctx);
        }
        let mut profiles = Vec::new();
        for dir in &self.dirs {
            let meta = Meta::read(dir)?;
            let name = self.machine.as_deref().unwrap_or(&meta.machine);
            let platform = Platform::find(name).map_err(no_machine)?;
            for program in 0..meta.programs.len() {
                let part = recorded(dir, program, Lines::ALL)?;
                profiles.push(Profiled {
                    profile: profile(&part, &platform),
                    damage: damage([&part]),
                });
            }
        }
        if ctx.json {
            ctx.print_json(&profiles)?;
        } else {
            print_profiles(&profiles)?;
        }
        Ok(status(profiles.iter().all(|p| p.damage.is_empty())))
    }

    fn print_pages(&self, ctx: &Ctx) -> Result<ExitCode> {
        let mut intact = true;
        for dir in &self.dirs {
            let part = recorded(dir, 0, Lines::ALL)?;
            let damage = damage([&part]);
            intact &= damage.is_empty();
            let page = |p: &soloist_record::Page| Page {
                virt: p.virt,
                phys: p.phys,
                user: p.user,
                thread: p.thread,
            };
            let pages: Vec<Page> = part.program.pages.iter().map(page).collect();
            if ctx.json {
                ctx.print_json(&PagesOf { pages, damage })?;
                continue;
            }
            for page in pages {
                outln!(
                    "page {:#x} {:#x} {} {}",
                    page.virt,
                    page.phys,
                    if page.user { "user" } else { "kernel" },
                    page.thread
                )?;
            }
        }
        Ok(status(intact))
    }
}

fn print_profiles(profiles: &[Profiled]) -> Result<()> {
    let mut table = table([
        "PROGRAM",
        "LANES",
        "10^6 INSTR",
        "L2 MISSES/1000",
        "LLC MISSES/1000",
        "WRITES %",
        "FETCHES %",
        "KERNEL %",
        "DEPENDENT %",
        "MiB",
        "ROW HITS %",
        "BANKS OF 8",
    ]);
    for Profiled { profile: p, .. } in profiles {
        table.add_row([
            p.name.clone(),
            p.lanes.to_string(),
            format!("{:.1}", p.minstructions),
            format!("{:.2}", p.apki),
            format!("{:.2}", p.mpki),
            format!("{:.0}", p.writes),
            format!("{:.0}", p.fetches),
            format!("{:.0}", p.kernel),
            format!("{:.0}", p.dependent),
            format!("{:.1}", p.footprint_mib),
            format!("{:.0}", p.row_hits),
            format!("{:.1}", p.banks),
        ]);
    }
    outln!("{}", table)
}

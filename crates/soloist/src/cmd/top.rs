//! `soloist top`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use soloist_host::{Control, Group, GroupView, Host};

use super::table;
use crate::Ctx;

/// Watch the groups: pages in colour and what is handed out per second.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seconds between two looks.
    #[arg(long, short, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    interval: u64,

    /// Look so many times, then stop; 0: until interrupted.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 0)]
    count: u64,
}

/// Counters whose change per second is shown.
const RATES: [(&str, &str); 4] = [
    ("hits", "HITS/S"),
    ("refills", "REFILLS/S"),
    ("spilled", "SPILLED/S"),
    ("exhausted", "EXHAUSTED/S"),
];

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let control = Control::open(&Host::live())?;
    let mut before: BTreeMap<String, GroupView> = BTreeMap::new();
    let mut looks = 0;
    loop {
        let now = look(&control)?;
        looks += 1;
        if ctx.json {
            ctx.print_json(&now.values().collect::<Vec<_>>())?;
        } else {
            if ctx.color && looks > 1 {
                print!("\x1b[H\x1b[2J");
            }
            println!("{}", draw(&now, &before, args.interval));
        }
        if looks == args.count {
            return Ok(ExitCode::SUCCESS);
        }
        before = now;
        sleep(Duration::from_secs(args.interval));
    }
}

fn look(control: &Control) -> Result<BTreeMap<String, GroupView>> {
    control
        .groups()?
        .iter()
        // A group may go while we look.
        .filter_map(|group| Group::view(group).ok())
        .map(|view| Ok((view.name.clone(), view)))
        .collect()
}

fn draw(
    now: &BTreeMap<String, GroupView>,
    before: &BTreeMap<String, GroupView>,
    seconds: u64,
) -> String {
    let heads = ["GROUP", "BANK SETS", "TASKS", "PAGES"];
    let mut table = table(heads.into_iter().chain(RATES.map(|(_, head)| head)));
    for (name, view) in now {
        let pages = view.stats.get("pages").cloned().unwrap_or_default();
        let mut row = vec![
            name.clone(),
            view.bank_set.clone(),
            view.tasks.len().to_string(),
            pages,
        ];
        row.extend(RATES.map(|(key, _)| rate(view, before.get(name), key, seconds)));
        table.add_row(row);
    }
    table.trim_fmt()
}

/// `-` at the first look.
fn rate(now: &GroupView, before: Option<&GroupView>, key: &str, seconds: u64) -> String {
    let count = |view: &GroupView| view.stats.get(key).and_then(|v| v.parse::<u64>().ok());
    match (count(now), before.and_then(count)) {
        (Some(now), Some(before)) => (now.saturating_sub(before) / seconds).to_string(),
        _ => "-".to_owned(),
    }
}

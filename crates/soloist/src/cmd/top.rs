//! `soloist top`.

mod view;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use soloist_host::control::{limits, Control};
use soloist_host::machine::Host;
use soloist_host::observe::watch::Snapshot;
use soloist_host::observe::{rates, GroupRates};
use soloist_host::words::percent;

use soloist_cli::number::whole;
use soloist_cli::table;
use soloist_cli::Ctx;

/// Watch groups: pages in colour, bandwidth, and pages allocated per second.
///
/// A group that a rule made is called RULE#NUMBER. On a terminal this is a live view,
/// and its last line names the keys. Elsewhere it prints one table. Rates need two
/// updates, so `-n 2` prints them in its second table.
#[derive(Debug, clap::Args)]
#[command(after_help = examples!["soloist top", "soloist top -n 1 --json"])]
pub struct Args {
    /// Seconds between updates.
    #[arg(long, short, value_name = "SECONDS", default_value_t = 2, value_parser = whole::<u64>(1..=3600))]
    interval: u64,

    /// Print N tables one after the other, instead of the live view; 0: until
    /// interrupted.
    #[arg(long, short = 'n', value_name = "N", value_parser = whole::<u64>(..))]
    count: Option<u64>,
}

/// Two looks at the groups.
struct Watch {
    host: Host,
    control: Control,
    before: Option<Snapshot>,
}

impl Watch {
    fn new(host: Host) -> Result<Self> {
        Ok(Self {
            control: Control::open(&host)?,
            host,
            before: None,
        })
    }

    fn look(&mut self) -> Result<Vec<GroupRates>> {
        let now = Snapshot::take(&self.control)?;
        let rates = rates(&self.host, &self.control, self.before.as_ref(), &now);
        self.before = Some(now);
        Ok(rates)
    }
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let mut watch = Watch::new(Host::live())?;
    let interval = Duration::from_secs(args.interval);
    let live = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let count = match args.count {
        None if live && !ctx.json => {
            view::show(&mut watch, interval, ctx.color)?;
            return Ok(ExitCode::SUCCESS);
        }
        None => 1,
        Some(count) => count,
    };
    let mut looks = 0;
    loop {
        let groups = watch.look()?;
        if ctx.json {
            ctx.print_json(&groups)?;
        } else {
            outln!("{}", text(&groups))?;
        }
        looks += 1;
        if looks == count {
            return Ok(ExitCode::SUCCESS);
        }
        sleep(interval);
    }
}

fn text(groups: &[GroupRates]) -> String {
    let mut table = table(COLUMNS.iter().map(|column| column.head));
    for group in groups {
        table.add_row(COLUMNS.iter().map(|column| (column.cell)(group)));
    }
    table.trim_fmt()
}

/// A column of the table and of the live view.
struct Column {
    head: &'static str,
    /// The key that sorts by it.
    key: char,
    cell: fn(&GroupRates) -> String,
    /// What it sorts by, the greatest first; `None`: by name.
    rank: Option<fn(&GroupRates) -> f64>,
}

const COLUMNS: &[Column] = &[
    Column {
        head: "GROUP",
        key: 'n',
        cell: |g| g.name.clone(),
        rank: None,
    },
    Column {
        head: "BANK SETS",
        key: ' ',
        cell: |g| limits(&g.bank_sets, &g.llc).to_owned(),
        rank: None,
    },
    Column {
        head: "TASKS",
        key: 't',
        cell: |g| g.tasks.to_string(),
        rank: Some(|g| g.tasks as f64),
    },
    Column {
        head: "PAGES",
        key: 'p',
        cell: |g| g.pages.to_string(),
        rank: Some(|g| g.pages as f64),
    },
    Column {
        head: "IN COLOUR",
        key: 'c',
        cell: |g| share(g.in_color),
        rank: Some(|g| -g.in_color.unwrap_or(2.0)),
    },
    Column {
        head: "OTHERS",
        key: 'x',
        cell: |g| share(g.occupancy.and_then(|held| held.share_of_others())),
        rank: Some(|g| g.occupancy.map_or(0.0, |held| held.others() as f64)),
    },
    Column {
        head: "HITS/S",
        key: 'h',
        cell: |g| number(g.hits),
        rank: Some(|g| g.hits.unwrap_or(0.0)),
    },
    Column {
        head: "REFILLS/S",
        key: 'r',
        cell: |g| number(g.refills),
        rank: Some(|g| g.refills.unwrap_or(0.0)),
    },
    Column {
        head: "SPILLED/S",
        key: 's',
        cell: |g| number(g.spilled),
        rank: Some(|g| g.spilled.unwrap_or(0.0)),
    },
    Column {
        head: "EXHAUSTED/S",
        key: 'e',
        cell: |g| number(g.exhausted),
        rank: Some(|g| g.exhausted.unwrap_or(0.0)),
    },
    Column {
        head: "MB/S",
        key: 'b',
        cell: |g| {
            g.used
                .map_or("-".to_owned(), |rate| format!("{:.1}", rate / 1e6))
        },
        rank: Some(|g| g.used.unwrap_or(0.0)),
    },
    Column {
        head: "RESERVED",
        key: 'v',
        cell: |g| match g.reserved {
            0 => "-".to_owned(),
            rate => format!("{:.1}", rate as f64 / 1e6),
        },
        rank: Some(|g| g.reserved as f64),
    },
    Column {
        head: "STOPPED",
        key: 'o',
        cell: |g| share(g.stopped),
        rank: Some(|g| g.stopped.unwrap_or(0.0)),
    },
];

fn share(of_one: Option<f64>) -> String {
    of_one.map_or("-".to_owned(), percent)
}

fn number(rate: Option<f64>) -> String {
    rate.map_or("-".to_owned(), |rate| format!("{rate:.0}"))
}

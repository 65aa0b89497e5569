//! `soloist verify`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::ValueEnum;
use soloist_core::{format_size, AddrMap, ColorSet, NumList};
use soloist_host::control::{contradiction, is_label, Control};
use soloist_host::machine::{threads, Host};
use soloist_host::observe::{picture, verify, GroupColors, Report, Tally};
use soloist_host::words::{counted, percent};
use soloist_host::HostError;
use soloist_machine::Trust;

use soloist_cli::complete;
use soloist_cli::machine::named;
use soloist_cli::number::pid;
use soloist_cli::table;
use soloist_cli::{out, Ctx, Misuse};

use super::up;

/// Show which pages of a process are in its colours, which are not, and why.
///
/// Counts the pages that are in memory now, by mapping. Frame numbers come from the
/// kernel's pagemap, which only root may read. "Own" pages are those of private
/// mappings: heap, stack, data and private copies of text. PID may be a thread; its
/// group's colours apply.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    status "0 done, 1 failed, or what --strict asks for is not so; 2 misused";
    "soloist verify 1234 --summary",
    "soloist verify 1234 --strict=banks",
    "soloist run -- soloist verify --self --strict --by node",
    "soloist verify 1234 --svg pages.svg",
])]
pub struct Args {
    /// The process.
    #[arg(required_unless_present = "this", value_parser = pid::<i32>)]
    pid: Option<i32>,

    /// Verify this process itself (`soloist run -- soloist verify --self`).
    #[arg(long = "self", id = "this", conflicts_with = "pid")]
    this: bool,

    /// Check against these bank sets instead of those of the process's group.
    #[arg(long, value_name = "LIST")]
    bank_sets: Option<String>,

    /// Check against these LLC colours instead of those of the process's group.
    #[arg(long, value_name = "LIST")]
    llc: Option<String>,

    /// Decode by this machine's map instead of the loaded one.
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,

    /// Print only totals, without a line for each mapping.
    #[arg(long)]
    summary: bool,

    /// Also count pages by node, bank set or LLC colour.
    #[arg(long, value_enum, value_name = "WHAT")]
    by: Vec<By>,

    /// Draw its pages: a column for each bank set, a row for each LLC colour.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Exit with 1 unless all its own pages are in colour; with =banks, also if others
    /// hold memory in the colours of its exclusive groups, or if that can't be seen.
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "own"
    )]
    strict: Option<Strict>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Strict {
    /// Its own pages are in colour.
    Own,
    /// And no other task holds memory in its exclusive colours.
    Banks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Node,
    Bank,
    Llc,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    if args.strict == Some(Strict::Banks) && (args.bank_sets.is_some() || args.llc.is_some()) {
        return Err(Misuse(
            "--strict=banks judges the groups of the process: leave --bank-sets and --llc out"
                .to_owned(),
        )
        .into());
    }
    soloist_cli::check_files(&[("--svg", args.svg.as_deref())])?;
    let host = Host::live();
    let pid = args.pid.unwrap_or(std::process::id() as i32);
    let control = Control::open(&host);
    let (map, trust) = match (&args.machine, &control) {
        (Some(name), _) => {
            let machine = named(name)?;
            let map = machine.addr_map().for_pages(host.page_size())?;
            (map, Some(machine.about.trust))
        }
        (None, Ok(control)) => {
            let map = control.map()?;
            let machine = up::loaded_machine(&map);
            (map, machine.map(|(_, machine)| machine.about.trust))
        }
        (None, Err(_)) => return Err(Misuse("no map: the module is not loaded; name a machine (--machine), or run `soloist up` first".to_owned()).into()),
    };
    let groups = match (by_hand(&args, &map)?, &control) {
        (Some(colors), _) => vec![GroupColors::by_hand(colors, threads(&host, pid)?.len())],
        (None, Ok(control)) => GroupColors::of_process(&host, control, &map, pid)?,
        (None, Err(_)) => Vec::new(),
    };
    let mut report = verify(&host, pid, &map, groups)?;
    if let (Ok(control), None, None) = (&control, &args.bank_sets, &args.llc) {
        report.contradiction = contradiction(&host, control, &map, pid)?;
        report.look_who_holds(control, args.strict == Some(Strict::Banks))?;
    }
    if let Some(path) = &args.svg {
        out::write(path, picture::svg(&report, &map))?;
    }
    let printed = match ctx.json {
        true => ctx.print_json(&report),
        false => print(&report, trust, &args, ctx),
    };
    Ok(ctx.judged(printed, is_good(&report, args.strict)))
}

/// Is it as --strict asks for?
fn is_good(report: &Report, strict: Option<Strict>) -> bool {
    let all = report.is_colored() && report.own.share() == Some(1.0);
    match strict {
        None => true,
        Some(Strict::Own) => all,
        Some(Strict::Banks) => all && are_alone(report),
    }
}

/// No others hold memory in its exclusive colours; says where that can't be seen.
fn are_alone(report: &Report) -> bool {
    for name in report.untold() {
        let why = match report.occupancy.get(name) {
            Some(held) => format!(
                "none were seen in one stretch of memory in {}, and the loaded module looks at no more",
                held.by.one_of
            ),
            None if is_label(name) => {
                "the module tells it only of groups that have a directory".to_owned()
            }
            None => "the loaded module does not tell".to_owned(),
        };
        errln!("soloist: whether others hold memory in {name}'s colours can't be seen: {why}");
    }
    report.untold().next().is_none() && report.intruded().next().is_none()
}

/// Colours named on the command line.
fn by_hand(args: &Args, map: &AddrMap) -> Result<Option<ColorSet>, HostError> {
    if args.bank_sets.is_none() && args.llc.is_none() {
        return Ok(None);
    }
    let list = |flag: &str, text: &str, limit| {
        NumList::parse(text, limit).map_err(|e| HostError::Request(format!("{flag} {text}: {e}")))
    };
    let mut colors = ColorSet::any(map);
    if let Some(text) = &args.bank_sets {
        colors = colors.with_sets(list("--bank-sets", text, map.n_bank_sets())?.iter());
    }
    if let Some(text) = &args.llc {
        colors = colors.with_llc(list("--llc", text, map.n_llc())?.iter());
    }
    Ok(Some(colors))
}

fn print(report: &Report, trust: Option<Trust>, args: &Args, ctx: &Ctx) -> Result<()> {
    outln!("{}", heading(report, trust))?;
    for group in &report.groups {
        outln!(
            "group {}: {}, {}",
            group.name,
            group.colors,
            counted(group.threads as u64, "thread")
        )?;
    }
    if report.groups.is_empty() {
        let pid = report.pid;
        outln!("in no group (`soloist group set NAME --pid {pid}` puts it in one)")?;
    } else if report.uncolored_threads > 0 {
        outln!(
            "{} of its threads are in no group with colours",
            report.uncolored_threads
        )?;
    }
    if let Some(words) = &report.contradiction {
        outln!("{words}")?;
    }
    if !args.summary {
        outln!("\n{}", mappings(report))?;
    }
    outln!("\n{}", totals(report, ctx))?;
    for by in &args.by {
        let (title, counts) = match by {
            By::Node => ("node", &report.by_node),
            By::Bank => ("bank set", &report.by_bank_set),
            By::Llc => ("LLC colour", &report.by_llc),
        };
        outln!("\n{}", histogram(title, counts, report.total.present))?;
    }
    Ok(())
}

/// Which process it is, and by which map it is judged; `trust`: of that map's machine file.
fn heading(report: &Report, trust: Option<Trust>) -> String {
    let trust = match trust {
        Some(trust) => format!("which is {trust}"),
        None => "of no machine file that is known".to_owned(),
    };
    format!(
        "process {} ({}), {}, map {}, {trust}",
        report.pid,
        report.command,
        counted(report.threads as u64, "thread"),
        report.map
    )
}

fn mappings(report: &Report) -> String {
    let colored = report.is_colored();
    let judged = ["IN COLOUR", "NOT", "WHY NOT"]
        .into_iter()
        .filter(|_| colored);
    let heads = ["MAPPING", "PERMS", "PAGES", "SWAPPED"]
        .into_iter()
        .chain(judged);
    let mut table = table(heads);
    for mapping in &report.mappings {
        let pages = &mapping.pages;
        let name = match mapping.name.as_str() {
            "" => format!("{:x}-{:x}", mapping.start, mapping.end),
            name => name.to_owned(),
        };
        let mut row = vec![
            name,
            mapping.perms.clone(),
            pages.present.to_string(),
            pages.swapped.to_string(),
        ];
        if colored {
            row.push(pages.in_color.to_string());
            row.push((pages.present - pages.in_color).to_string());
            row.push(reasons(pages));
        }
        table.add_row(row);
    }
    table.trim_fmt()
}

fn totals(report: &Report, ctx: &Ctx) -> String {
    if !report.is_colored() {
        let Tally {
            present, swapped, ..
        } = &report.total;
        let sets = counted(report.by_bank_set.len() as u64, "bank set");
        let off = match present - report.by_bank_set.values().sum::<u64>() {
            0 => String::new(),
            off => format!(", {off} outside the address map"),
        };
        return format!("total {present} pages in {sets}{off}, {swapped} swapped");
    }
    let line = |what: &str, tally: &Tally| {
        let Some(share) = tally.share() else {
            return format!("{what} none in memory");
        };
        let shown = percent(share);
        let code = if tally.in_color == tally.present {
            32
        } else {
            33
        };
        format!(
            "{what} {} of {} pages in colour ({})",
            tally.in_color,
            tally.present,
            ctx.paint(code, &shown)
        )
    };
    let handed: u64 = report.groups.iter().filter_map(|g| g.page_tables).sum();
    let mut lines = vec![
        line("all it mapped    ", &report.total),
        line("  of it, its own ", &report.own),
        format!(
            "page tables: {} now; its groups were handed {handed} page-table pages in colour so far",
            format_size(report.page_table_bytes)
        ),
    ];
    if report.movable_bytes > 0 {
        lines.push(format!(
            "  none can be in movable memory, which {} of its colours' nodes are (kernelcore=, movablecore=, hotplug): where the lists hold no other, tables are out of colour",
            format_size(report.movable_bytes)
        ));
    }
    if report.groups.len() > 1 {
        let each = |g: &GroupColors| format!("{} in those of {}", counted(g.pages, "page"), g.name);
        let each: Vec<String> = report.groups.iter().map(each).collect();
        lines.push(format!(
            "its threads are in {} groups, each with its colours: {}; judge one thread by `soloist verify TID`",
            each.len(),
            each.join(", ")
        ));
    }
    for (name, held) in &report.occupancy {
        lines.push(format!("memory of {name}'s colours: {}", held.by.words()));
    }
    for (name, _) in report.intruded() {
        lines.push(format!(
            "  {name} is exclusive, but others hold memory there: `soloist group set {name} --evict`"
        ));
    }
    for (reason, n) in &report.total.not_in_color {
        lines.push(format!("{n:>8} {reason}: {}", reason.remedy()));
    }
    lines.join("\n")
}

/// `12 zero page, 3 huge page`.
fn reasons(tally: &Tally) -> String {
    let parts: Vec<String> = tally
        .not_in_color
        .iter()
        .map(|(reason, n)| format!("{n} {reason}"))
        .collect();
    parts.join(", ")
}

fn histogram(title: &str, counts: &BTreeMap<u32, u64>, present: u64) -> String {
    let largest = counts.values().copied().max().unwrap_or(1).max(1);
    let mut text = format!("pages by {title}:");
    for (number, n) in counts {
        let bar = "#".repeat((n * 40 / largest) as usize);
        let share = *n as f64 * 100.0 / present.max(1) as f64;
        text += &format!("\n{number:>6} {n:>8} {share:>5.1} % {bar}");
    }
    text
}

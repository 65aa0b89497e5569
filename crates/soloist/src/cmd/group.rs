//! `soloist group`.

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Result;
use serde_json::json;
use soloist_core::{cpu_list, parse_size};
use soloist_host::control::{in_use, parse_rate, Bandwidth, Control, Group, Mode, Text};
use soloist_host::machine::Host;
use soloist_host::HostError;

use super::colors::{mode, text, ColorArgs};
use super::distinct;
use soloist_cli::complete;
use soloist_cli::number::pid;
use soloist_cli::Ctx;

mod change;
mod show;

use show::Shown;

/// Manage groups: colours, and the tasks whose memory has them.
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// List groups; a group that a rule made is called RULE#NUMBER.
    #[command(after_help = examples!["soloist group list", "soloist group list --json"])]
    List,
    /// Show one group in full.
    #[command(after_help = examples!["soloist group show video", "soloist group show x264#3"])]
    Show {
        /// The group, or RULE#NUMBER for one that a rule made.
        #[arg(add = complete::shown_groups())]
        name: String,
    },
    /// Create a group with colours.
    #[command(after_help = examples![
        "soloist group create video --colors 4 --llc 8 --reserve 64M",
        "soloist group create batch --node 1 --mode shareable --exhaust spill",
        "soloist group create rest --everything-else",
    ])]
    Create {
        /// The group.
        name: String,
        #[command(flatten)]
        settings: Box<Settings>,
    },
    /// Change a group's colours or settings, or move processes into it.
    #[command(after_help = examples![
        "soloist group set video --exhaust grow",
        "soloist group set video --bandwidth 500MB/s --cpus 2-3",
        "soloist group set video --pid 1234 --move",
        "soloist group set video --bank-sets 4-7 --move",
        "soloist group set video --evict",
        "soloist group set x264#3 --evict",
    ])]
    Set {
        /// The group. For RULE#NUMBER, one that a rule made, only --evict is possible.
        #[arg(add = complete::shown_groups())]
        name: String,
        #[command(flatten)]
        settings: Box<Settings>,
    },
    /// Remove groups.
    ///
    /// Fails if they have tasks, and names the tasks.
    #[command(after_help = examples!["soloist group rm video batch"])]
    Rm {
        /// The groups.
        #[arg(required = true, add = complete::groups())]
        names: Vec<String>,

        /// Move tasks out of them first; the tasks' new pages have no colour.
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, clap::Args)]
pub struct Settings {
    /// Whether other shareable groups may have the same colours. Default: a number of
    /// colours makes it exclusive; listed ones leave it as it is, at first shareable.
    #[arg(long, value_parser = mode())]
    mode: Option<Mode>,

    /// File pages that it only reads: private (copy programs and libraries into its
    /// colours), all (copy any file) or shared (use the page cache).
    #[arg(long, value_parser = text())]
    text: Option<Text>,

    /// Memory to reserve for it beforehand, zeroed.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    reserve: Option<u64>,

    /// Bandwidth to reserve for it on `--cpus` together: RATE[:write=RATE] such as
    /// 500MB/s, weight=N, or off; docs/reference/guard.md.
    #[arg(long, value_name = "RATE")]
    bandwidth: Option<Reservation>,

    /// CPUs for `--bandwidth`; its tasks do not move to them. Default: as before.
    #[arg(long, value_name = "LIST", value_parser = processors)]
    cpus: Option<String>,

    /// Move these processes in, with all their threads. Present pages stay unless
    /// `--move` is given.
    #[arg(long = "pid", value_name = "PID", value_parser = pid::<i32>)]
    pids: Vec<i32>,

    /// Move the present pages of these processes into its colours, while they run. With
    /// a change of its colours, move the pages of all its tasks.
    #[arg(long = "move", id = "move")]
    recolor: bool,

    /// Evict others' pages from its colours: drop clean page cache, and migrate the
    /// rest. Ctrl-C ends it.
    #[arg(long)]
    evict: bool,

    /// Limit the rate of --evict, such as 100MB/s.
    #[arg(long, value_name = "RATE", value_parser = parse_rate, requires = "evict")]
    evict_rate: Option<u64>,

    /// Also interrupt isolated CPUs. Otherwise --move and --evict leave pages that are
    /// mapped there.
    #[arg(long)]
    isolated: bool,

    /// Bind it to a cgroup (v2): all tasks in the cgroup, now and later, are in the
    /// group. PATH is as in /proc/PID/cgroup (/video.slice), or a directory below
    /// /sys/fs/cgroup. Repeat to bind several cgroups. This unbinds all other cgroups;
    /// `none` unbinds all.
    #[arg(long = "cgroup", id = "cgroup", value_name = "PATH")]
    cgroups: Vec<String>,

    /// Take in all tasks that are in no group, now and later; `group rm` releases them.
    /// Without a colour flag it gets all colours that no exclusive group has. Default:
    /// --exhaust spill. To leave a cgroup out, bind a group without colours to it.
    #[arg(long, conflicts_with_all = ["cgroup", "pids", "tids"])]
    everything_else: bool,

    /// Bind it before the cgroup exists. Systemd's cgroups (.slice, .service, .scope)
    /// do not need this.
    #[arg(long, requires = "cgroup")]
    later: bool,

    /// Move only these threads in.
    #[arg(long = "tid", value_name = "TID", value_parser = pid::<i32>)]
    tids: Vec<i32>,

    #[command(flatten)]
    colors: ColorArgs,
}

/// What `--bandwidth` takes.
#[derive(Debug, Clone, Copy)]
enum Reservation {
    Off,
    Of(Bandwidth),
}

impl FromStr for Reservation {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        match text {
            "off" => Ok(Self::Off),
            _ => text.parse().map(Self::Of),
        }
    }
}

fn processors(text: &str) -> Result<String, String> {
    cpu_list(text)
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let control = Control::open(&host)?;
    match args {
        Args::List => show::list(&control, ctx)?,
        Args::Show { name } => show::show(&Shown::look(&name, &host, &control)?, ctx)?,
        Args::Create { name, settings } => settings.create(&name, &host, &control, ctx)?,
        Args::Set { name, settings } => settings.set(&name, &host, &control, ctx)?,
        Args::Rm { names, force } => {
            remove(&names, force, &host, &control)?;
            if ctx.json {
                ctx.print_json(&json!({ "removed": names }))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// All are looked up before the first goes; one may be named twice.
fn remove(names: &[String], force: bool, host: &Host, control: &Control) -> Result<()> {
    let groups = distinct(names).map(|name| control.group(name));
    let groups = groups.collect::<Result<Vec<_>, _>>()?;
    let used = in_use(host, &groups)?;
    if !force && !used.is_empty() {
        return Err(HostError::InUse(used).into());
    }
    Ok(groups.iter().try_for_each(Group::remove)?)
}

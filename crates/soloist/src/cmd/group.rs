//! `soloist group`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use soloist_host::{format_size, parse_size, Control, Group, GroupView, Host, Mode};

use super::colors::{mode, ColorArgs};
use super::table;
use crate::Ctx;

/// Groups: colours and the tasks that allocate by them.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the groups.
    List,
    /// Show all of one group.
    Show {
        /// The group.
        name: String,
    },
    /// Make a group and give it colours.
    Create(Settings),
    /// Change a group's colours or policy, or move processes in.
    Set(Settings),
    /// Remove a group; its tasks leave it and colour no more.
    Rm {
        /// The groups.
        #[arg(required = true)]
        names: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Settings {
    /// The group.
    name: String,

    /// Share its colours with other shareable groups, or with nobody.
    #[arg(long, value_parser = mode())]
    mode: Option<Mode>,

    /// Memory kept in its lists beforehand, known to be zero.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    reserve: Option<u64>,

    /// Move these processes, all their threads, in. Pages that they have
    /// already stay where they are.
    #[arg(long = "pid", value_name = "PID")]
    pids: Vec<i32>,

    /// Move these single threads in.
    #[arg(long = "tid", value_name = "TID")]
    tids: Vec<i32>,

    #[command(flatten)]
    colors: ColorArgs,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let control = Control::open(&host)?;
    match args.command {
        Command::List => list(&control, ctx)?,
        Command::Show { name } => show(&control.group(&name)?.view()?, ctx)?,
        Command::Create(settings) => {
            let group = control.create_group(&settings.name)?;
            if let Err(error) = settings.apply(&host, &control, &group) {
                // What it lacked is in the error; do not leave half a group.
                let _ = group.remove();
                return Err(error);
            }
            done(&group, ctx)?;
        }
        Command::Set(settings) => {
            let group = control.group(&settings.name)?;
            settings.apply(&host, &control, &group)?;
            done(&group, ctx)?;
        }
        Command::Rm { names } => {
            for name in &names {
                control.group(name)?.remove()?;
            }
            if ctx.json {
                ctx.print_json(&json!({ "removed": names }))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Settings {
    fn apply(&self, host: &Host, control: &Control, group: &Group) -> Result<()> {
        if let Some(mode) = self.mode {
            group.set_mode(mode)?;
        }
        if self.only_exhaust() {
            self.colors
                .exhaust
                .map_or(Ok(()), |e| group.set_exhaust(e))?;
        } else if !self.colors.is_empty() {
            let map = control.map()?;
            self.colors.plan(host, &map, None)?.apply(group, &map)?;
        }
        if let Some(bytes) = self.reserve {
            group.set_reserve(bytes)?;
        }
        for &pid in &self.pids {
            group.add_process(pid)?;
        }
        for &tid in &self.tids {
            group.add_thread(tid)?;
        }
        Ok(())
    }

    /// `--exhaust` alone changes no colours.
    fn only_exhaust(&self) -> bool {
        let others = ColorArgs {
            exhaust: None,
            ..self.colors.clone()
        };
        others.is_empty()
    }
}

fn done(group: &Group, ctx: &Ctx) -> Result<()> {
    let view = group.view()?;
    if ctx.json {
        return ctx.print_json(&view);
    }
    println!("{}", colors(&view));
    Ok(())
}

fn list(control: &Control, ctx: &Ctx) -> Result<()> {
    let views = control
        .groups()?
        .iter()
        .map(Group::view)
        .collect::<Result<Vec<_>, _>>()?;
    if ctx.json {
        return ctx.print_json(&views);
    }
    if views.is_empty() {
        println!("no groups; `soloist run -- CMD` makes one for a command, `soloist group create NAME` one that stays");
        return Ok(());
    }
    let mut table = table([
        "GROUP",
        "BANK SETS",
        "LLC",
        "NODES",
        "MODE",
        "EXHAUST",
        "TASKS",
        "PAGES",
    ]);
    for view in &views {
        table.add_row([
            view.name.clone(),
            or_any(&view.bank_set),
            or_any(&view.llc_color),
            view.on_nodes.clone(),
            view.mode.clone(),
            view.exhaust.clone(),
            view.tasks.len().to_string(),
            view.stats.get("pages").cloned().unwrap_or_default(),
        ]);
    }
    println!("{}", table.trim_fmt());
    Ok(())
}

fn show(view: &GroupView, ctx: &Ctx) -> Result<()> {
    if ctx.json {
        return ctx.print_json(view);
    }
    let reserve = view
        .reserve
        .parse()
        .map_or(view.reserve.clone(), format_size);
    let tasks: Vec<String> = view.tasks.iter().map(i32::to_string).collect();
    println!("group        {} (id {})", view.name, view.id);
    println!("bank sets    {}", or_any(&view.bank_set));
    println!("bank colours {}", or_any(&view.dram_bank));
    println!("LLC colours  {}", or_any(&view.llc_color));
    println!("nodes        {}", view.on_nodes);
    println!("mode         {}", view.mode);
    println!("exhaust      {}", view.exhaust);
    println!("reserve      {reserve}");
    println!("tasks        {}", tasks.join(" "));
    for (key, value) in &view.stats {
        println!("{key:<12} {value}");
    }
    Ok(())
}

fn colors(view: &GroupView) -> String {
    format!(
        "group {}: bank sets {}, LLC colours {}, {}",
        view.name,
        or_any(&view.bank_set),
        or_any(&view.llc_color),
        view.mode
    )
}

fn or_any(list: &str) -> String {
    if list.is_empty() {
        "any".to_owned()
    } else {
        list.to_owned()
    }
}

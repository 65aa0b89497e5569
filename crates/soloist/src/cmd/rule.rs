//! `soloist rule`.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;
use soloist_host::{Control, Exhaust, Host, Rule, RuleView};

use super::colors::exhaust;
use super::table;
use crate::Ctx;

/// Rules: programs that are coloured automatically when they are executed.
///
/// A process that a rule matches gets free colours of its own, disjoint from
/// everybody else's, on the node of its processors; they come back when its
/// last page is gone.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the rules.
    List,
    /// Make a rule and enable it.
    Add(Settings),
    /// Remove rules; processes that they matched keep their colours.
    Rm(Names),
    /// Let rules match.
    Enable(Names),
    /// Let rules match no more.
    Disable(Names),
}

#[derive(Debug, clap::Args)]
struct Names {
    /// The rules.
    #[arg(required = true)]
    names: Vec<String>,
}

#[derive(Debug, clap::Args)]
struct Settings {
    /// Name of the new rule.
    name: String,

    /// Programs: a glob over the absolute path, such as '/usr/bin/x264' or
    /// '/opt/control/*' (quoted, or the shell expands it).
    #[arg(long, value_name = "GLOB")]
    path: String,

    /// Whose: a user id, `any`, or `registered` (by CAMC's mmap() call).
    #[arg(long, value_name = "UID", default_value = "any")]
    uid: String,

    /// Bank sets for each process.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    colors: u32,

    /// When the colours have no page left: fail, grow or spill.
    #[arg(long, value_name = "HOW", value_parser = exhaust())]
    exhaust: Option<Exhaust>,

    /// Keep its processes apart from others by memory controller.
    #[arg(long)]
    realtime: bool,

    /// Do not enable it yet.
    #[arg(long)]
    disabled: bool,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let control = Control::open(&Host::live())?;
    match args.command {
        Command::List => list(&control, ctx)?,
        Command::Add(settings) => {
            let rule = control.create_rule(&settings.name)?;
            if let Err(error) = settings.apply(&rule) {
                // What was wrong is in the error; do not leave half a rule.
                let _ = rule.remove();
                return Err(error);
            }
            if ctx.json {
                ctx.print_json(&rule.view()?)?;
            }
        }
        Command::Rm(names) => each(&control, &names, ctx, "removed", Rule::remove)?,
        Command::Enable(names) => each(&control, &names, ctx, "enabled", |r| r.set_enabled(true))?,
        Command::Disable(names) => {
            each(&control, &names, ctx, "disabled", |r| r.set_enabled(false))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Settings {
    fn apply(&self, rule: &Rule) -> Result<()> {
        rule.set_path(&self.path)?;
        rule.set_uid(&self.uid)?;
        rule.set_colors(self.colors)?;
        if let Some(exhaust) = self.exhaust {
            rule.set_exhaust(exhaust)?;
        }
        rule.set_realtime(self.realtime)?;
        Ok(rule.set_enabled(!self.disabled)?)
    }
}

fn each(
    control: &Control,
    names: &Names,
    ctx: &Ctx,
    what: &str,
    act: impl Fn(&Rule) -> Result<(), soloist_host::HostError>,
) -> Result<()> {
    for name in &names.names {
        act(&control.rule(name)?)?;
    }
    if ctx.json {
        ctx.print_json(&json!({ what: names.names }))?;
    }
    Ok(())
}

fn list(control: &Control, ctx: &Ctx) -> Result<()> {
    let views = control
        .rules()?
        .iter()
        .map(Rule::view)
        .collect::<Result<Vec<RuleView>, _>>()?;
    if ctx.json {
        return ctx.print_json(&views);
    }
    if views.is_empty() {
        println!("no rules; `soloist rule add NAME --path GLOB` makes one");
        return Ok(());
    }
    let mut table = table([
        "RULE", "ENABLED", "UID", "PATH", "COLOURS", "EXHAUST", "MATCHED", "REFUSED",
    ]);
    for view in views {
        let count = |key: &str| view.stats.get(key).cloned().unwrap_or_default();
        let (matched, refused) = (count("matched"), count("refused"));
        table.add_row([
            view.name,
            if view.enabled { "yes" } else { "no" }.to_owned(),
            view.uid,
            view.path,
            view.colors,
            view.exhaust,
            matched,
            refused,
        ]);
    }
    println!("{}", table.trim_fmt());
    Ok(())
}

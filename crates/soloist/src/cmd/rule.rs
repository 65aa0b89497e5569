//! `soloist rule`.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::BoolishValueParser;
use serde_json::json;
use soloist_host::control::{Control, Exhaust, Rule, RuleChange, RuleView, LIMIT_DEFAULT};
use soloist_host::machine::{user_id, Host};
use soloist_host::run::HeldSignals;

use super::colors::exhaust;
use super::{distinct, up};
use soloist_cli::complete;
use soloist_cli::number::whole;
use soloist_cli::table;
use soloist_cli::{Ctx, Misuse};

/// Manage rules: programs that get colours automatically at `exec`.
///
/// A process that a rule matches gets free, private colours on the node of its CPUs.
/// The colours are free again when its last page is free.
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// List the rules.
    #[command(after_help = examples!["soloist rule list"])]
    List,
    /// Add a rule and enable it.
    #[command(after_help = examples![
        "soloist rule add x264 --path /usr/bin/x264 --colors 2",
        "soloist rule add control --path '/opt/control/*' --realtime",
    ])]
    Add(New),
    /// Change, enable or disable rules.
    ///
    /// Processes that they coloured keep their colours.
    #[command(after_help = examples![
        "soloist rule set x264 --colors 4 --exhaust grow",
        "soloist rule set x264 control --enabled false",
    ])]
    Set(Change),
    /// Remove rules; processes that they coloured keep their colours.
    #[command(after_help = examples!["soloist rule rm x264"])]
    Rm(Names),
    /// Enable rules.
    #[command(hide = true)]
    Enable(Names),
    /// Disable rules.
    #[command(hide = true)]
    Disable(Names),
}

#[derive(Debug, clap::Args)]
pub struct Names {
    /// The rules.
    #[arg(required = true, add = complete::rules())]
    names: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct New {
    /// Name of the new rule.
    name: String,

    /// Programs: a glob over the absolute path, such as '/usr/bin/x264' or
    /// '/opt/control/*' (quoted, or the shell expands it).
    #[arg(long, value_name = "GLOB")]
    path: String,

    #[command(flatten)]
    settings: Settings,

    /// Give its processes a private memory controller.
    #[arg(long)]
    realtime: bool,

    /// Add it disabled.
    #[arg(long)]
    disabled: bool,
}

#[derive(Debug, clap::Args)]
pub struct Change {
    #[command(flatten)]
    names: Names,

    /// Programs: a glob over the absolute path.
    #[arg(long, value_name = "GLOB")]
    path: Option<String>,

    #[command(flatten)]
    settings: Settings,

    /// Give its processes a private memory controller, or not.
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new())]
    realtime: Option<bool>,

    /// Enable or disable it.
    #[arg(long, value_name = "BOOL", value_parser = BoolishValueParser::new())]
    enabled: Option<bool>,
}

/// What both take.
#[derive(Debug, clap::Args)]
struct Settings {
    /// User of the processes: a name or number, `any`, or `registered` (by CAMC's
    /// mmap() call) [new rules: any].
    #[arg(long, value_name = "USER", value_parser = user_id)]
    uid: Option<String>,

    /// Bank sets for each process [new rules: 1].
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..))]
    colors: Option<u32>,

    /// Limit of bank sets for all its processes together, or `default`: half of the
    /// machine's.
    #[arg(long, value_name = "N", value_parser = limit)]
    limit: Option<String>,

    /// Limit of bank sets for all processes of one user that rules coloured, or
    /// `default`: a quarter of the machine's. Root has no such limit.
    #[arg(long, value_name = "N", value_parser = limit)]
    user_limit: Option<String>,

    /// What to do when the colours have no page left: fail, grow or spill.
    #[arg(long, value_name = "HOW", value_parser = exhaust())]
    exhaust: Option<Exhaust>,
}

/// A limit, as the module takes it.
fn limit(text: &str) -> Result<String, String> {
    match text.parse::<u32>() {
        Ok(n) if n > 0 => Ok(n.to_string()),
        _ if text == LIMIT_DEFAULT => Ok(text.to_owned()),
        _ => Err("expected a number of bank sets, at least 1, or default".to_owned()),
    }
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let control = Control::open(&Host::live())?;
    // A signal that comes midway ends this afterwards: a change is made whole.
    let _held = HeldSignals::hold();
    match args {
        Args::List => list(&control, ctx)?,
        Args::Add(new) => new.run(&control, ctx)?,
        Args::Set(change) => change.run(&control, ctx)?,
        Args::Rm(names) => {
            let _alone = control.alone()?;
            names.find(&control)?.iter().try_for_each(Rule::remove)?;
            names.tell("removed", ctx)?;
        }
        Args::Enable(names) => names.enable(true, &control, ctx)?,
        Args::Disable(names) => names.enable(false, &control, ctx)?,
    }
    Ok(ExitCode::SUCCESS)
}

impl New {
    fn run(self, control: &Control, ctx: &Ctx) -> Result<()> {
        // Before anything is made: it holds of any rule.
        if let (false, Ok(map)) = (ctx.json, control.map()) {
            up::warn(&map, &Host::live());
        }
        let rule = control.create_rule(&self.name)?;
        let change = RuleChange {
            path: Some(self.path),
            uid: self.settings.uid.or_else(|| Some("any".to_owned())),
            colors: self.settings.colors.or(Some(1)),
            limit: self.settings.limit,
            user_limit: self.settings.user_limit,
            exhaust: self.settings.exhaust,
            realtime: Some(self.realtime),
            enabled: Some(!self.disabled),
        };
        if let Err(error) = rule.change(&change) {
            // What was wrong is in the error; do not leave half a rule.
            let _ = rule.remove();
            return Err(error.into());
        }
        tell(&[rule], ctx)
    }
}

impl Change {
    fn run(self, control: &Control, ctx: &Ctx) -> Result<()> {
        let rules = self.names.find(control)?;
        let change = RuleChange {
            path: self.path,
            realtime: self.realtime,
            enabled: self.enabled,
            ..self.settings.change()
        };
        if change == RuleChange::default() {
            return Err(Misuse("nothing to set: `soloist rule set --help`".to_owned()).into());
        }
        Rule::change_all(&rules, &change)?;
        tell(&rules, ctx)
    }
}

impl Names {
    /// All of them, before the first is changed; one may be named twice.
    fn find(&self, control: &Control) -> Result<Vec<Rule>> {
        let rules = distinct(&self.names).map(|name| control.rule(name));
        Ok(rules.collect::<Result<_, _>>()?)
    }

    /// All of them, or none.
    fn enable(&self, enabled: bool, control: &Control, ctx: &Ctx) -> Result<()> {
        let change = RuleChange {
            enabled: Some(enabled),
            ..RuleChange::default()
        };
        Rule::change_all(&self.find(control)?, &change)?;
        self.tell(if enabled { "enabled" } else { "disabled" }, ctx)
    }

    /// With `--json`, what was done to which rules.
    fn tell(&self, what: &str, ctx: &Ctx) -> Result<()> {
        match ctx.json {
            true => ctx.print_json(&json!({ what: self.names })),
            false => Ok(()),
        }
    }
}

impl Settings {
    fn change(self) -> RuleChange {
        RuleChange {
            uid: self.uid,
            colors: self.colors,
            limit: self.limit,
            user_limit: self.user_limit,
            exhaust: self.exhaust,
            ..RuleChange::default()
        }
    }
}

/// With `--json`, what was made or changed: one rule, or a list.
fn tell(rules: &[Rule], ctx: &Ctx) -> Result<()> {
    if !ctx.json {
        return Ok(());
    }
    let views: Vec<RuleView> = rules.iter().map(Rule::view).collect::<Result<_, _>>()?;
    match views.as_slice() {
        [view] => ctx.print_json(view),
        views => ctx.print_json(views),
    }
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
        outln!("no rules; `soloist rule add NAME --path GLOB` makes one")?;
        return Ok(());
    }
    let mut table = table([
        "RULE",
        "ENABLED",
        "UID",
        "PATH",
        "COLOURS",
        "HELD",
        "LIMIT",
        "USER LIMIT",
        "EXHAUST",
        "MATCHED",
        "REFUSED",
    ]);
    for view in views {
        let count = |key: &str| view.stats.get(key).cloned().unwrap_or_default();
        let (matched, refused, held) = (count("matched"), count("refused"), count("held"));
        table.add_row([
            view.name,
            if view.enabled { "yes" } else { "no" }.to_owned(),
            view.uid,
            view.path,
            view.colors,
            held,
            view.limit.unwrap_or_default(),
            view.user_limit.unwrap_or_default(),
            view.exhaust,
            matched,
            refused,
        ]);
    }
    outln!("{}", table.trim_fmt())?;
    Ok(())
}

//! The plan on this host.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{bail, Result};
use soloist_cli::{weigh, Ctx};
use soloist_core::AddrMap;
use soloist_host::config::Config;
use soloist_host::control::{load, Alone, Control, ModuleChoice};
use soloist_host::machine::Host;
use soloist_machine::Machine;
use soloist_rt::plan::event::Event;
use soloist_rt::plan::host::{doubt, take_hosts_event, Difference};

/// Is the machine this host? What is loaded already was asked before.
pub fn weigh(machine: &Machine, force: bool) -> Result<()> {
    let loaded = Control::open(&Host::live()).and_then(|control| control.map());
    match loaded.ok() == Some(machine.addr_map()) {
        true => Ok(()),
        false => weigh::weigh(machine, force),
    }
}

/// What is done to a host.
pub struct Ask {
    /// The plan is applied; else compared.
    pub apply: bool,
    /// An event that nobody named stays the host's own.
    pub force: bool,
    /// Cores with deadlines.
    pub timed: BTreeSet<u32>,
}

/// Applies the plan to this host, or says how the host differs.
pub fn host(
    mut config: Config,
    map: &AddrMap,
    ask: &Ask,
    event: Option<&Event>,
    ctx: &Ctx,
) -> Result<(ExitCode, Difference)> {
    if let (Some(why), false) = (doubt(event, &Host::live(), &ask.timed), ask.force) {
        let done = if ask.apply { "applied" } else { "compared" };
        bail!("the plan's bounds may not hold: {why}, or take it as it is with --force: nothing was {done}");
    }
    if ask.apply {
        load(
            &Host::live(),
            &ModuleChoice::default(),
            Some(map),
            &|step| ctx.step(step),
        )?;
    }
    let (control, _alone) = opened(ask)?;
    if let Some(event) = event.filter(|event| ask.force && !event.named) {
        let counted = take_hosts_event(&control, &mut config, event)?;
        errln!("soloist: {}", counted.says());
    }
    let difference = Difference::new(&Host::live(), &control, &config, map, &ask.timed)?;
    if ask.apply && !difference.stopped.is_empty() {
        bail!("{}", difference.stopped.join("; "));
    }
    if ask.apply {
        difference.steps.apply(&control)?;
    }
    let printed = match ctx.json {
        true => Ok(()),
        false => say(&difference, ask.apply),
    };
    let is_good = ask.apply || difference.is_none();
    Ok((ctx.judged(printed, is_good), difference))
}

/// The control interface; for a change no other command changes it meanwhile.
fn opened(ask: &Ask) -> Result<(Control, Option<Alone>)> {
    let control = Control::open(&Host::live())?;
    let alone = ask.apply.then(|| control.alone()).transpose()?;
    Ok((control, alone))
}

fn say(difference: &Difference, applied: bool) -> Result<()> {
    // `--apply` prints how to turn them off, beside the commands that start the tasks.
    let servers = match applied {
        true => &[],
        false => difference.servers.as_slice(),
    };
    let changed = difference.steps.steps.len() + difference.stopped.len() + servers.len();
    let head = match (changed == 0, applied) {
        (true, _) => "this host is as the plan says",
        (false, true) => "applied:",
        (false, false) => "differs from the plan:",
    };
    outln!("\n{head}")?;
    for step in &difference.steps.steps {
        outln!("{step}")?;
    }
    for line in difference.stopped.iter().chain(servers) {
        outln!("  {line}")?;
    }
    Ok(())
}

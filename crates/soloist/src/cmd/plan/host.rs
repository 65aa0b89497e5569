//! The plan on this host.

use std::process::ExitCode;

use anyhow::{bail, Result};
use soloist_core::AddrMap;
use soloist_host::{load, plan as steps_to, Config, Control, Guard, Host, ModuleChoice};
use soloist_machine::Machine;

use super::config::keep_event;
use super::event::Event;
use crate::cmd::up;
use crate::Ctx;

/// Is the machine this host? What is loaded already was asked before.
pub fn weigh(machine: &Machine, force: bool) -> Result<()> {
    let loaded = Control::open(&Host::live()).and_then(|control| control.map());
    match loaded.ok() == Some(machine.addr_map()) {
        true => Ok(()),
        false => up::weigh(machine, force),
    }
}

/// Applies the plan to this host, or says how the host differs. With `force` an
/// event that nobody named stays the host's own.
pub fn host(
    mut config: Config,
    map: &AddrMap,
    (apply, force): (bool, bool),
    event: Option<&Event>,
    ctx: &Ctx,
) -> Result<ExitCode> {
    let host = Host::live();
    if let Some(why) = event.and_then(|e| e.objection.as_ref()).filter(|_| !force) {
        let done = if apply { "applied" } else { "compared" };
        bail!("the plan's limits may not hold: {why}; name an event that counts every line with --event (docs/guard.md), or take it as it is with --force: nothing was {done}");
    }
    if apply {
        let say = |step: &str| {
            if ctx.progress {
                errln!("soloist: {step} ...");
            }
        };
        load(&host, &ModuleChoice::default(), Some(map), &say)?;
    }
    let control = Control::open(&host)?;
    if let Some(event) = event.filter(|event| force && !event.named) {
        keep_event(&mut config);
        let settings = Guard::open(&control)?.settings()?;
        let counted = settings.get("event").map_or("", String::as_str);
        errln!("soloist: {}", event.on_host(counted).says());
    }
    let steps = steps_to(&config, Some(&control), map, false)?;
    if apply {
        steps.apply(&control)?;
    }
    let head = if apply {
        "applied"
    } else {
        "differs from the plan"
    };
    if !ctx.json {
        match steps.steps.is_empty() {
            true => outln!("\nthis host is as the plan says")?,
            false => outln!("\n{head}:")?,
        }
        for step in &steps.steps {
            outln!("{step}")?;
        }
    }
    Ok(ExitCode::from(u8::from(!apply && !steps.steps.is_empty())))
}

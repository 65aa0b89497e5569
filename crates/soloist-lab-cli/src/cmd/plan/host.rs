//! The plan on this host.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{bail, Result};
use soloist_core::AddrMap;
use soloist_host::config::{plan as steps_to, Config};
use soloist_host::control::{load, Control, Guard, GuardCpu, ModuleChoice};
use soloist_host::machine::Host;
use soloist_machine::Machine;

use super::config::keep_event;
use super::event::Event;
use soloist_cli::weigh;
use soloist_cli::Ctx;

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

/// Reservations that would stop tasks with deadlines.
fn stopped(control: &Control, timed: &BTreeSet<u32>) -> Vec<String> {
    // Without a guard nobody is stopped.
    let view = Guard::open(control).and_then(|guard| guard.view());
    let cpus = view.map_or_else(|_| Vec::new(), |view| view.cpus);
    let stopped = cpus
        .iter()
        .filter(|cpu| timed.contains(&cpu.cpu) && cpu.bandwidth != "off");
    let line = |cpu: &GuardCpu| {
        format!(
            "core {} has a reservation of bandwidth ({}), which would stop its tasks with deadlines: take it away (`soloist guard set {}:off`, or its group's)",
            cpu.cpu, cpu.bandwidth, cpu.cpu
        )
    };
    stopped.map(line).collect()
}

/// Applies the plan to this host, or says how the host differs.
pub fn host(
    mut config: Config,
    map: &AddrMap,
    ask: &Ask,
    event: Option<&Event>,
    ctx: &Ctx,
) -> Result<ExitCode> {
    let host = Host::live();
    let Ask {
        apply,
        force,
        timed,
    } = ask;
    let (apply, force) = (*apply, *force);
    if let Some(why) = event.and_then(|e| e.objection.as_ref()).filter(|_| !force) {
        let done = if apply { "applied" } else { "compared" };
        bail!("the plan's limits may not hold: {why}; name an event that counts every line with --event (docs/reference/guard.md), or take it as it is with --force: nothing was {done}");
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
    let stopped = stopped(&control, timed);
    if apply && !stopped.is_empty() {
        bail!("{}", stopped.join("; "));
    }
    let steps = steps_to(&config, Some(&control), map, false)?;
    let same = steps.steps.is_empty() && stopped.is_empty();
    if apply {
        steps.apply(&control)?;
    }
    let head = if apply {
        "applied"
    } else {
        "differs from the plan"
    };
    if !ctx.json {
        match same {
            true => outln!("\nthis host is as the plan says")?,
            false => outln!("\n{head}:")?,
        }
        for step in &steps.steps {
            outln!("{step}")?;
        }
        for line in &stopped {
            outln!("  {line}")?;
        }
    }
    Ok(ExitCode::from(u8::from(!apply && !same)))
}

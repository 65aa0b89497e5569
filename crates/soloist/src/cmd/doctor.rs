//! `soloist doctor`.

use std::process::ExitCode;

use anyhow::Result;
use soloist_core::AddrMap;
use soloist_host::control::Control;
use soloist_host::machine::{objections, Facts, Host};
use soloist_host::observe::{examine, verdict, Check, Status};
use soloist_machine::{known, Machine, Trust};

use soloist_cli::complete;
use soloist_cli::Ctx;

/// Check what this machine supports, and say what to do about what is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    status "0 it can work here, 1 something keeps it from working, 2 misused";
    "soloist doctor",
    "soloist doctor --machine zen2 --json",
])]
pub struct Args {
    /// Check this machine against the map of NAME (see `soloist map list`) if none
    /// is loaded.
    #[arg(long, value_name = "NAME", add = complete::machines())]
    machine: Option<String>,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let host = Host::live();
    let offered = args.machine.as_deref().map(known::find).transpose()?;
    let map = offered.as_ref().map(Machine::addr_map);
    let mut checks = examine(&host, map.as_ref());
    if let Some(trust) = trust(&host, offered.as_ref()) {
        let map = checks.iter().position(|c| c.name == "address map");
        checks.insert(map.map_or(checks.len(), |at| at + 1), trust);
    }
    if ctx.json {
        ctx.print_json(&checks)?;
    } else {
        let width = checks.iter().map(|c| c.name.len()).max().unwrap_or(0);
        for check in &checks {
            let mark = match check.status {
                Status::Ok => ctx.paint(32, "ok  "),
                Status::Warn => ctx.paint(33, "warn"),
                Status::Fail => ctx.paint(31, "FAIL"),
            };
            outln!("{mark}  {:width$}  {}", check.name, check.found)?;
            if let Some(next) = &check.next {
                outln!("      {:width$}  -> {next}", "")?;
            }
        }
        outln!("{}", verdict(&checks))?;
    }
    let failed = checks.iter().any(|c| c.status == Status::Fail);
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

const TRUST: &str = "map's trust";

/// How far the map that is loaded, or else the one offered, can be trusted.
fn trust(host: &Host, offered: Option<&Machine>) -> Option<Check> {
    let loaded = Control::open(host).ok().and_then(|c| c.map().ok());
    match (loaded, offered) {
        (Some(map), _) => Some(of_loaded(&map)),
        (None, Some(machine)) => Some(of_machine(machine, &Facts::of(&Host::live()))),
        (None, None) => None,
    }
}

/// The kernel has a map's text alone; its machine's file says the rest.
fn of_loaded(map: &AddrMap) -> Check {
    let name = map.name();
    match known::find(&name) {
        Err(_) => Check::warn(
            TRUST,
            format!("{name} is of no machine file that is known"),
            "`soloist map check` measures whether it is this machine's; `soloist up --machine NAME` takes one whose trust is told",
        ),
        Ok(machine) if machine.addr_map() != *map => Check::warn(
            TRUST,
            format!("{name} is loaded, and is not what its machine file says now"),
            format!("`soloist down`, then `soloist up --machine {name}`, take the file's"),
        ),
        Ok(machine) => of_machine(&machine, &Facts::of(&Host::live())),
    }
}

/// What the machine's file says of itself, and what the host says against it;
/// `soloist up` weighs the same.
fn of_machine(machine: &Machine, host: &Facts) -> Check {
    let about = &machine.about;
    let said = format!("{} is {}", about.name, about.trust);
    let found = objections(machine, host);
    if !found.against.is_empty() {
        return Check::warn(
            TRUST,
            format!("{said}, but another machine's: {}", found.against.join("; ")),
            "colours by a wrong map keep nothing apart: `soloist map list` says which fit, `soloist map detect` finds this one's",
        );
    }
    match about.trust {
        Trust::Incomplete | Trust::Assumed => Check::warn(
            TRUST,
            format!("{said}: some of it was shown by nothing"),
            "`soloist map detect` measures this machine's",
        ),
        _ if !found.unknown.is_empty() => Check::warn(
            TRUST,
            format!("{said}; not known: {}", found.unknown.join("; ")),
            "`soloist map check` measures whether it is this machine's",
        ),
        _ => Check::ok(TRUST, format!("{said}, and nothing here speaks against it")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use soloist_machine::ram::RamRange;

    use super::*;

    /// A host on which nothing speaks against `machine`.
    fn its_host(machine: &Machine) -> Facts {
        let range = |r: &soloist_machine::MapRange| RamRange {
            start: r.start,
            end: r.end,
            node: r.node,
        };
        Facts {
            nodes: machine.topology.nodes(),
            ranges: machine.map.ranges.iter().map(range).collect(),
            ..Facts::default()
        }
    }

    #[test]
    fn trust_is_told_and_held_against_the_host() {
        let mut machine = known::find("qemu-2node").unwrap();
        let host = its_host(&machine);
        let fits = of_machine(&machine, &host);
        assert_eq!(fits.status, Status::Ok, "{fits:?}");
        assert!(fits.found.contains("qemu-2node is synthetic"), "{fits:?}");

        let other = Facts { nodes: 7, ..host };
        let wrong = of_machine(&machine, &other);
        assert_eq!(wrong.status, Status::Warn);
        assert!(wrong.found.contains("7 memory nodes"), "{wrong:?}");

        machine.about.trust = Trust::Incomplete;
        let part = of_machine(&machine, &its_host(&machine));
        assert_eq!(part.status, Status::Warn);
        assert!(part.found.contains("is incomplete"), "{part:?}");
    }

    #[test]
    fn a_loaded_map_is_held_against_its_file() {
        let machine = known::find("zen2").unwrap();
        let same = of_loaded(&machine.addr_map());
        assert!(same.found.starts_with("zen2 is "), "{same:?}");
        let text = known::find("skylake").unwrap().addr_map().to_string();
        let text = text.replace("name skylake", "name zen2");
        let changed = of_loaded(&AddrMap::parse(&text).unwrap());
        assert!(
            changed.found.contains("not what its machine file says"),
            "{changed:?}"
        );
        let nobody = text.replace("name zen2", "name nobodys");
        let nobodys = of_loaded(&AddrMap::parse(&nobody).unwrap());
        assert!(nobodys.found.contains("no machine file"), "{nobodys:?}");
    }
}

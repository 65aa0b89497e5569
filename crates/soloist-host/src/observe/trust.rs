//! How far the map that is loaded, or that somebody offers, can be trusted on this host.

use soloist_core::AddrMap;
use soloist_machine::{known, Machine, Trust};

use crate::control::Control;
use crate::machine::{objections, Facts, Host};
use crate::observe::doctor::{examine, Check};

/// Looks at everything, as [`examine`] does, and at what the loaded map's file, or else the
/// machine that is offered, says of itself.
pub fn examine_for(host: &Host, offered: Option<&Machine>) -> Vec<Check> {
    let mut checks = examine(host, offered.map(Machine::addr_map).as_ref());
    if let Some(trust) = trust(host, offered) {
        let map = checks.iter().position(|c| c.name == "address map");
        checks.insert(map.map_or(checks.len(), |at| at + 1), trust);
    }
    checks
}

const TRUST: &str = "map's trust";

/// How far the map that is loaded, or else the one offered, can be trusted.
fn trust(host: &Host, offered: Option<&Machine>) -> Option<Check> {
    let loaded = Control::open(host).ok().and_then(|c| c.map().ok());
    match (loaded, offered) {
        (Some(map), _) => Some(of_loaded(host, &map)),
        (None, Some(machine)) => Some(of_machine(machine, &Facts::of(host))),
        (None, None) => None,
    }
}

/// The kernel has a map's text alone; its machine's file says the rest.
fn of_loaded(host: &Host, map: &AddrMap) -> Check {
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
        Ok(machine) => of_machine(&machine, &Facts::of(host)),
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
    use crate::observe::doctor::Status;

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
        let same = of_loaded(&Host::live(), &machine.addr_map());
        assert!(same.found.starts_with("zen2 is "), "{same:?}");
        let text = known::find("skylake").unwrap().addr_map().to_string();
        let text = text.replace("name skylake", "name zen2");
        let changed = of_loaded(&Host::live(), &AddrMap::parse(&text).unwrap());
        assert!(
            changed.found.contains("not what its machine file says"),
            "{changed:?}"
        );
        let nobody = text.replace("name zen2", "name nobodys");
        let nobodys = of_loaded(&Host::live(), &AddrMap::parse(&nobody).unwrap());
        assert!(nobodys.found.contains("no machine file"), "{nobodys:?}");
    }
}

//! Groups and reservations of the loaded module, and others in their memory.

use super::Check;
use crate::control::{Control, Group, Guard};
use crate::machine::Host;
use crate::words::counted;

pub(super) fn control(host: &Host) -> Check {
    let name = "control interface";
    match Control::open(host) {
        Ok(control) => {
            let groups = counted(control.groups().map_or(0, |g| g.len() as u64), "group");
            let rules = counted(control.rules().map_or(0, |r| r.len() as u64), "rule");
            Check::ok(
                name,
                format!("/sys/kernel/config/soloist: {groups}, {rules}"),
            )
        }
        Err(_) if host.has("/sys/module/soloist") => Check::fail(
            name,
            "the module is loaded, configfs is not mounted",
            "run `soloist up`",
        ),
        Err(_) => Check::warn(
            name,
            "not there: the module is not loaded",
            "run `soloist up`",
        ),
    }
}

/// Tasks that run uncoloured since their cpuset contradicts their group.
pub(super) fn barred(host: &Host) -> Option<Check> {
    let control = Control::open(host).ok()?;
    let contradictions = control.contradictions(host, &control.map().ok()?).ok()?;
    (!contradictions.is_empty()).then(|| {
        Check::warn(
            "tasks and cpusets",
            contradictions.join("; "),
            "give the group colours on the node that cpuset.mems allows, or allow its node",
        )
    })
}

/// Groups that keep nothing apart.
pub(super) fn bare(host: &Host) -> Option<Check> {
    let control = Control::open(host).ok()?;
    let look = |group: &Group| Ok(group.is_bare()?.then(|| group.name().to_owned()));
    let names: Vec<String> = control
        .each_group(look)
        .ok()?
        .into_iter()
        .flatten()
        .collect();
    let first = names.first()?;
    Some(Check::warn(
        "groups without colours",
        format!("{}: no colours, no task", names.join(", ")),
        format!(
            "`soloist group set {first}` gives it colours; if a command that was killed left it, \
             `soloist group rm {first}` removes it"
        ),
    ))
}

/// Share of an exclusive group's colours from which on others are worth a hint: the
/// kernel's caches come and go.
const MANY_OTHERS: f64 = 0.02;

/// Exclusive groups in whose colours others hold memory.
pub(super) fn intruded(host: &Host) -> Option<Check> {
    let control = Control::open(host).ok()?;
    let look = |group: &Group| {
        let held = match group.is_exclusive()? {
            true => group.occupancy()?,
            false => None,
        };
        let share = held.and_then(|held| held.share_of_others());
        Ok(share.map(|share| (group.name().to_owned(), share)))
    };
    let shares = control.each_group(look).ok()?;
    let many = |(_, share): &(String, f64)| *share > MANY_OTHERS;
    let (names, found): (Vec<String>, Vec<String>) = shares
        .into_iter()
        .flatten()
        .filter(many)
        .map(|(name, share)| {
            let words = format!("{:.0} % of {name}'s memory is others'", share * 100.0);
            (name, words)
        })
        .unzip();
    let first = names.first()?;
    Some(Check::warn(
        "exclusive colours",
        found.join("; "),
        format!("`soloist group set {first} --evict` moves it out; `soloist group show {first}` says whose it is"),
    ))
}

/// Processors whose reservations limit nothing.
pub(super) fn unregulated(host: &Host) -> Option<Check> {
    let view = Guard::open(&Control::open(host).ok()?).and_then(|guard| guard.view());
    Some(Check::warn(
        "reservations",
        view.ok()?.unregulated()?,
        "the guard tries again each second, as soon as the CPU's counters are free: end \
         other users of perf, or write the reservation again to be told why",
    ))
}

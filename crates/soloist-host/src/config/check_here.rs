//! What this machine, and what is loaded, refute of a configuration.

use soloist_core::{cpu_list, format_size, parse_size, AddrMap};
use soloist_machine::KeyError;

use crate::config::file::{Config, GroupConfig};
use crate::control::{colors_of, Control, Guard};
use crate::HostError;

/// A group as it is and as it shall be.
pub(super) struct Change<'a> {
    pub(super) name: &'a str,
    pub(super) now: &'a GroupConfig,
    pub(super) wanted: &'a GroupConfig,
}

/// Refuses rules that are there in another order: the first one that matches counts, and
/// where a rule stands it stays.
pub(super) fn check_order(wanted: &Config, now: &Config) -> Result<(), HostError> {
    let mut last: Option<(usize, &String)> = None;
    let mut is_new: Option<&String> = None;
    for name in wanted.rules.keys() {
        let Some(at) = now.rules.get_index_of(name) else {
            is_new = is_new.or(Some(name));
            continue;
        };
        let later = last
            .filter(|(before, _)| *before > at)
            .map(|(_, name)| name);
        if let Some(other) = later.or(is_new) {
            let what = format!(
                "[rules.{name}]: {other} stands before it in the file, but this rule is there already and is asked first: `soloist rule rm {name}`, then apply again"
            );
            return Err(KeyError::at(&["rules", name], what).into());
        }
        last = Some((at, name));
    }
    Ok(())
}

/// Refuses processors that this machine lacks.
pub(super) fn check_cpus(wanted: &Config, control: &Control) -> Result<(), HostError> {
    let of_groups = wanted.groups.iter().filter_map(|(name, group)| {
        let cpus = cpu_list(group.cpus.as_deref()?).ok()?;
        Some((Some(name), cpus.iter().collect()))
    });
    let own = wanted.cpus.keys();
    let own = own.filter_map(|cpu| Some((None, vec![cpu.parse().ok()?])));
    let asked: Vec<(Option<&String>, Vec<u32>)> = of_groups.chain(own).collect();
    if asked.is_empty() {
        return Ok(());
    }
    // Where the module has no guard it says so itself.
    let there = Guard::open(control).and_then(|guard| guard.cpus());
    let Some(&last) = there.unwrap_or_default().last() else {
        return Ok(());
    };
    for (group, cpus) in asked {
        if let Some(cpu) = cpus.iter().find(|&&cpu| cpu > last) {
            let what = format!(": there is no CPU {cpu}: this machine has CPUs 0-{last}");
            return Err(HostError::Key(match group {
                Some(name) => KeyError::of(&["groups", name], "cpus", what),
                None => KeyError::at(&["cpus"], format!("[cpus]{what}")),
            }));
        }
    }
    Ok(())
}

/// Refuses colours that no page has, and a reserve that they can't hold.
pub(super) fn check_room(of: &Change, map: &AddrMap) -> Result<(), HostError> {
    let Change { name, now, wanted } = of;
    let Ok(colors) = colors_of(map, &wanted.bank_sets, &wanted.llc) else {
        return Ok(());
    };
    let bytes = colors.bytes(map);
    let wrong = |key, what: String| Err(KeyError::of(&["groups", name], key, what).into());
    if bytes == 0 {
        let what = format!(": no page of {} is in {colors}", map.name());
        return wrong("llc", what);
    }
    // The kernel does not take back what it granted.
    let reserve = wanted.reserve.as_deref();
    let reserve = reserve.filter(|_| wanted.reserve != now.reserve);
    let reserve = reserve.and_then(|size| parse_size(size).ok());
    match reserve.filter(|&reserve| reserve > bytes) {
        Some(reserve) => wrong(
            "reserve",
            format!(
                ": {}, its colours ({colors}) hold {} in all",
                format_size(reserve),
                format_size(bytes)
            ),
        ),
        None => Ok(()),
    }
}

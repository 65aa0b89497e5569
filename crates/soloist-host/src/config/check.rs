//! What a configuration's text alone refutes, before anything is loaded.

use std::collections::BTreeMap;

use soloist_core::{cpu_list, NumList};
use soloist_machine::{did_you_mean, KeyError};

use crate::config::file::{Config, GroupConfig};
use crate::control::{check_event, Bandwidth, Mode};

const MAX_RATE: u64 = 10_000_000_000_000;

/// Settings that are numbers, and from where to where they go.
const NUMBERS: [(&str, u64, u64); 10] = [
    ("line", 16, 4096),
    ("period_us", 10, 1_000_000),
    ("r_min", 0, MAX_RATE),
    ("write_r_min", 0, MAX_RATE),
    ("peak", 0, MAX_RATE),
    ("q_min", 0, 1 << 31),
    ("ewma", 1, 256),
    ("count_kernel", 0, 1),
    ("per_task", 0, 1),
    ("by_bank", 0, 1),
];

/// More colours than any map has.
const COLORS: u32 = 1 << 20;

/// Finds where the file contradicts itself.
pub(crate) fn check(config: &Config) -> Result<(), KeyError> {
    settings(&config.guard)?;
    let mut before: Vec<Named> = Vec::new();
    for (name, config) in &config.groups {
        let group = Named { name, config };
        lists(name, config)?;
        for other in &before {
            alone(&group, other)?;
            own_cgroup(&group, other)?;
        }
        before.push(group);
    }
    reservations(config)
}

// ---- Groups ----

/// A group and its name.
struct Named<'a> {
    name: &'a str,
    config: &'a GroupConfig,
}

fn list(text: &str) -> Result<NumList, String> {
    NumList::parse(text, COLORS).map_err(|refusal| refusal.text)
}

fn lists(name: &str, group: &GroupConfig) -> Result<(), KeyError> {
    for (key, text) in [("bank_sets", &group.bank_sets), ("llc", &group.llc)] {
        list(text)
            .map_err(|why| KeyError::of(&["groups", name], key, format!(" {text}: {why}")))?;
    }
    Ok(())
}

/// A group with mode exclusive shares no bank set and no cache colour.
fn alone(group: &Named, other: &Named) -> Result<(), KeyError> {
    let exclusive = [group, other]
        .into_iter()
        .find(|group| group.config.mode == Mode::Exclusive);
    let Some(alone) = exclusive else {
        return Ok(());
    };
    let (own, theirs) = (group.config, other.config);
    for (key, what, own, theirs) in [
        ("bank_sets", "bank sets", &own.bank_sets, &theirs.bank_sets),
        ("llc", "LLC colours", &own.llc, &theirs.llc),
    ] {
        // Both were read before.
        let (Ok(numbers), Ok(others)) = (list(own), list(theirs)) else {
            continue;
        };
        let mut both = numbers.clone();
        for number in numbers.iter().filter(|&n| !others.contains(n)) {
            both.remove(number);
        }
        if !both.is_empty() {
            let what = format!(
                " {own}: {what} {both} are group {}'s too, and {} is exclusive: it shares none",
                other.name, alone.name
            );
            return Err(KeyError::of(&["groups", group.name], key, what));
        }
    }
    Ok(())
}

/// A cgroup is in one group.
fn own_cgroup(group: &Named, other: &Named) -> Result<(), KeyError> {
    let is_theirs = |own: &&str| {
        let mut theirs = other.config.cgroups.iter();
        theirs.any(|path| path.trim_end_matches('/') == *own)
    };
    let paths = group.config.cgroups.iter();
    match paths.map(|p| p.trim_end_matches('/')).find(is_theirs) {
        Some(own) => Err(KeyError::of(
            &["groups", group.name],
            "cgroup",
            format!(
                ": {own} is group {}'s: a cgroup is in one group",
                other.name
            ),
        )),
        None => Ok(()),
    }
}

// ---- The guard ----

fn settings(guard: &BTreeMap<String, String>) -> Result<(), KeyError> {
    for (key, value) in guard {
        setting(key, value).map_err(|why| KeyError::of(&["guard"], key, format!(": {why}")))?;
    }
    let number = |key: &str| guard.get(key).and_then(|text| text.parse::<u64>().ok());
    let peak = number("peak").filter(|&peak| peak > 0);
    for key in ["r_min", "write_r_min"] {
        if let (Some(rate), Some(peak)) = (number(key), peak) {
            if rate > peak {
                let what = format!(": {rate} is above the peak, {peak}");
                return Err(KeyError::of(&["guard"], key, what));
            }
        }
    }
    Ok(())
}

fn setting(key: &str, value: &str) -> Result<(), String> {
    let one_of = |known: &[&str]| match known.contains(&value) {
        true => Ok(()),
        false => Err(format!("`{value}`: expected {}", known.join(", "))),
    };
    match key {
        "event" => event(value),
        "write_event" if value == "none" => Ok(()),
        "write_event" => event(value),
        "sharing" => one_of(&["none", "spare", "proportional"]),
        "stop" => one_of(&["anywhere", "user"]),
        _ => match NUMBERS.iter().find(|(name, _, _)| *name == key) {
            Some(&(_, least, most)) => number(value, least, most, key == "line"),
            None => {
                let names = NUMBERS.iter().map(|(name, _, _)| *name);
                let all = names.chain(["event", "write_event", "sharing", "stop"]);
                Err(format!("no such setting{}", did_you_mean(key, all)))
            }
        },
    }
}

fn number(text: &str, least: u64, most: u64, power: bool) -> Result<(), String> {
    let right = |&n: &u64| (least..=most).contains(&n) && (!power || n.is_power_of_two());
    let what = if power { "a power of two" } else { "a number" };
    match text.parse().ok().filter(right) {
        Some(_) => Ok(()),
        None => Err(format!("`{text}`: expected {what} from {least} to {most}")),
    }
}

fn event(name: &str) -> Result<(), String> {
    check_event(name).map_err(|error| error.to_string())
}

/// A processor has one reservation, and the sum of all is no more than r_min.
fn reservations(config: &Config) -> Result<(), KeyError> {
    let mut owner: BTreeMap<u32, String> = BTreeMap::new();
    let mut sum = [0u64; 2];
    let mut add = |table: &[&str], key: &str, text: &str, cpus: Vec<u32>| {
        for cpu in cpus {
            let place = format!("[{}] {key}", table.join("."));
            if let Some(other) = owner.insert(cpu, place) {
                let what = format!(
                    ": CPU {cpu} already has a reservation, of {other}; it can have only one"
                );
                return Err(KeyError::of(table, key, what));
            }
        }
        let rates = text.parse::<Bandwidth>().map(|bandwidth| bandwidth.rates());
        let [reads, writes] = rates.unwrap_or_default();
        sum = [sum[0].saturating_add(reads), sum[1].saturating_add(writes)];
        Ok(())
    };
    for (cpu, text) in &config.cpus {
        let number = cpu.parse().ok().into_iter().collect();
        add(&["cpus"], cpu, text, number)?;
    }
    for (name, group) in &config.groups {
        if let (Some(text), Some(cpus)) = (&group.bandwidth, &group.cpus) {
            let cpus = cpu_list(cpus).map(|cpus| cpus.iter().collect());
            add(&["groups", name], "cpus", text, cpus.unwrap_or_default())?;
        }
    }
    // CPUs that share no bank are apart, where the guard looks at that.
    if config.guard.get("by_bank").is_some_and(|on| on == "1") {
        return Ok(());
    }
    for (key, sum) in ["r_min", "write_r_min"].into_iter().zip(sum) {
        let limit = config
            .guard
            .get(key)
            .and_then(|text| text.parse::<u64>().ok());
        // The kernel counts whole lines in a period: what is just above may fit.
        if let Some(limit) = limit.filter(|&limit| sum > limit + limit / 100) {
            let what =
                format!(": {limit} bytes per second, less than the reservations' sum, {sum}");
            return Err(KeyError::of(&["guard"], key, what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn events_are_the_kernels() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/guard/counter.c");
        let source = std::fs::read_to_string(path).unwrap();
        let table = source.split("known[] = {").nth(1).unwrap();
        let table = table.split("\n};").next().unwrap();
        let names: Vec<&str> = table.split("{ \"").skip(1).collect();
        let names: Vec<&str> = names.iter().filter_map(|n| n.split('"').next()).collect();
        assert!(names.len() > 9, "{names:?}");
        assert!(names.into_iter().all(|name| check_event(name).is_ok()));
    }
}

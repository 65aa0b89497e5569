//! Makes a [`Config`] true: what differs from it becomes a list of steps, each a
//! file or directory of the control interface, and either all of them are done
//! or none. A step that is refused has those before it taken back, in reverse.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use soloist_core::{AddrMap, NumList};

use crate::config::{Config, GroupConfig, RuleConfig};
use crate::order::loosened;
use crate::{parse_size, Bandwidth, Control, HostError, Mode};

/// One change of the control interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum Step {
    /// A group or rule is made.
    Make {
        /// `groups/video`.
        path: String,
    },
    /// A file is written.
    Write {
        /// `groups/video/bank_set`.
        path: String,
        /// What it says now.
        old: String,
        /// What it shall say.
        new: String,
    },
    /// A group or rule is removed; its tasks go on uncoloured.
    Remove {
        /// `groups/video`.
        path: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Make { path } => write!(f, "+ {path}"),
            Self::Write { path, old, new } if old.is_empty() => write!(f, "  {path}: {new}"),
            Self::Write { path, old, new } => write!(f, "  {path}: {old} -> {new}"),
            Self::Remove { path } => write!(f, "- {path}"),
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Steps {
    /// In order.
    pub steps: Vec<Step>,
    /// Groups and rules that the file does not name and that stay.
    pub others: Vec<String>,
}

/// A group as it is and as it shall be.
struct Change<'a> {
    name: &'a str,
    now: &'a GroupConfig,
    wanted: &'a GroupConfig,
}

/// What `wanted` takes; `prune`: what it does not name goes.
pub fn plan(
    wanted: &Config,
    control: &Control,
    map: &AddrMap,
    prune: bool,
) -> Result<Steps, HostError> {
    let now = Config::now(control)?;
    let mut plan = Steps::default();
    plan.guard(&wanted.guard, control)?;
    plan.groups(&now, wanted, map, prune)?;
    for (cpu, text) in &wanted.cpus {
        plan.cpu(cpu, text, now.cpus.get(cpu))?;
    }
    for (name, rule) in &wanted.rules {
        plan.rule(name, rule, now.rules.get(name));
    }
    plan.rest("groups", now.groups.keys(), &wanted.groups, prune);
    plan.rest("rules", now.rules.keys(), &wanted.rules, prune);
    Ok(plan)
}

impl Steps {
    fn write(&mut self, path: String, old: &str, new: String) {
        self.steps.push(Step::Write {
            path,
            old: old.to_owned(),
            new,
        });
    }

    fn groups(
        &mut self,
        now: &Config,
        wanted: &Config,
        map: &AddrMap,
        prune: bool,
    ) -> Result<(), HostError> {
        let (loose, fresh) = (loosened(now, wanted, map, prune), GroupConfig::default());
        for name in wanted
            .groups
            .keys()
            .filter(|name| !now.groups.contains_key(*name))
        {
            let path = format!("groups/{name}");
            self.steps.push(Step::Make { path });
        }
        for name in &loose {
            let (old, new) = (Mode::Exclusive.to_string(), Mode::Shareable.to_string());
            self.write(format!("groups/{name}/mode"), &old, new);
        }
        let changes: Vec<Change> = wanted
            .groups
            .iter()
            .map(|(name, wanted)| Change {
                name,
                now: now.groups.get(name).unwrap_or(&fresh),
                wanted,
            })
            .collect();
        for change in &changes {
            self.colors(change, map)?;
        }
        for change in &changes {
            let mode = match loose.contains(change.name) {
                true => Mode::Shareable,
                false => change.now.mode,
            };
            self.differ(change, "mode", &mode, &change.wanted.mode);
        }
        changes.iter().try_for_each(|change| self.means(change))
    }

    fn guard(
        &mut self,
        wanted: &BTreeMap<String, String>,
        control: &Control,
    ) -> Result<(), HostError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let now = control.key_values("guard/settings")?;
        let moved = |key: &str| wanted.get(key).is_some_and(|v| now.get(key) != Some(v));
        // An event brings its own line, unless that is written after it.
        let differs = |(key, _): &(&String, &String)| {
            moved(key) || (key.as_str() == "line" && moved("event"))
        };
        let lines = |pick: &dyn Fn(&str, &str) -> String| -> Vec<String> {
            let pairs = wanted.iter().filter(differs);
            pairs.map(|(key, value)| pick(key, value)).collect()
        };
        let new = lines(&|key, value| format!("{key} {value}"));
        let old = lines(&|key, _| format!("{key} {}", now.get(key).map_or("", String::as_str)));
        if !new.is_empty() {
            self.write("guard/settings".to_owned(), &old.join("\n"), new.join("\n"));
        }
        Ok(())
    }

    /// Its colours, and what happens to requests for pages.
    fn colors(&mut self, of: &Change, map: &AddrMap) -> Result<(), HostError> {
        let Change { name, now, wanted } = of;
        let list = |key: &str, text: &str, limit| {
            NumList::parse(text, limit)
                .map(|list| list.to_string())
                .map_err(|e| HostError::Request(format!("[groups.{name}] {key} {text}: {e}")))
        };
        let sets = list("bank_sets", &wanted.bank_sets, map.n_bank_sets())?;
        let llc = list("llc", &wanted.llc, map.n_llc())?;
        let mut old_llc = now.llc.as_str();
        self.differ(of, "exhaust", &now.exhaust, &wanted.exhaust);
        self.differ(of, "text", &now.text, &wanted.text);
        // New sets with old LLC colours may be a pair that no page has.
        let both = now.bank_sets != sets && old_llc != llc;
        if both && !sets.is_empty() && !old_llc.is_empty() {
            self.differ(of, "llc_color", &old_llc, &"");
            old_llc = "";
        }
        self.differ(of, "bank_set", &now.bank_sets, &sets);
        self.differ(of, "llc_color", &old_llc, &llc.as_str());
        Ok(())
    }

    /// What it has beside colours.
    fn means(&mut self, of: &Change) -> Result<(), HostError> {
        let Change { now, wanted, .. } = of;
        let bytes = |text: &Option<String>| {
            let size = text.as_deref().map(parse_size);
            size.and_then(Result::ok).unwrap_or(0)
        };
        self.differ(of, "reserve", &bytes(&now.reserve), &bytes(&wanted.reserve));
        self.differ(of, "bandwidth", &bandwidth(now)?, &bandwidth(wanted)?);
        let path = |group: &GroupConfig| group.cgroup.clone().unwrap_or_default();
        self.differ(of, "cgroup", &path(now), &path(wanted));
        Ok(())
    }

    /// An attribute of a group is written where it differs.
    fn differ<T: fmt::Display>(&mut self, of: &Change, attribute: &str, old: &T, new: &T) {
        let (old, new) = (old.to_string(), new.to_string());
        if old != new {
            self.write(format!("groups/{}/{attribute}", of.name), &old, new);
        }
    }

    fn cpu(&mut self, cpu: &str, text: &str, now: Option<&String>) -> Result<(), HostError> {
        let wanted: Bandwidth = text.parse()?;
        let old = now.map(|text| text.parse::<Bandwidth>()).transpose()?;
        if old.as_ref() != Some(&wanted) {
            let old = old.map_or_else(|| "off".to_owned(), |b| b.to_string());
            self.write(
                format!("guard/cpu{cpu}/bandwidth"),
                &old,
                wanted.to_string(),
            );
        }
        Ok(())
    }

    fn rule(&mut self, name: &str, wanted: &RuleConfig, now: Option<&RuleConfig>) {
        let dir = format!("rules/{name}");
        if now.is_none() {
            self.steps.push(Step::Make { path: dir.clone() });
        }
        let flag = |on: bool| u8::from(on).to_string();
        let of = |rule: &RuleConfig| {
            [
                ("path", rule.path.clone()),
                ("uid", rule.uid.clone()),
                ("colors", rule.colors.to_string()),
                ("exhaust", rule.exhaust.to_string()),
                ("realtime", flag(rule.realtime)),
                ("enabled", flag(rule.enabled)),
            ]
        };
        let olds = now.map(of);
        for (at, (attribute, new)) in of(wanted).into_iter().enumerate() {
            let old = olds.as_ref().map_or("", |olds| olds[at].1.as_str());
            if old != new {
                self.write(format!("{dir}/{attribute}"), old, new);
            }
        }
    }

    /// Those that are there and were not named.
    fn rest<'a, T>(
        &mut self,
        kind: &str,
        there: impl Iterator<Item = &'a String>,
        wanted: &BTreeMap<String, T>,
        prune: bool,
    ) {
        for name in there.filter(|name| !wanted.contains_key(*name)) {
            let path = format!("{kind}/{name}");
            match prune {
                true => self.steps.push(Step::Remove { path }),
                false => self.others.push(path),
            }
        }
    }

    /// Does all of it, or nothing.
    pub fn apply(&self, control: &Control) -> Result<(), HostError> {
        for (at, step) in self.steps.iter().enumerate() {
            if let Err(error) = step.apply(control) {
                // A group that was removed can't come back with its tasks, so
                // removals stand last and nothing but removals follows them.
                for done in self.steps[..at].iter().rev() {
                    let _ = done.take_back(control);
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

impl Step {
    fn apply(&self, control: &Control) -> Result<(), HostError> {
        match self {
            Self::Make { path } => control.make(path),
            Self::Write { path, new, .. } => control.write(path, new),
            Self::Remove { path } => control.rmdir(path),
        }
    }

    fn take_back(&self, control: &Control) -> Result<(), HostError> {
        match self {
            Self::Make { path } => control.rmdir(path),
            Self::Write { path, old, .. } => control.write(path, old),
            Self::Remove { .. } => Ok(()),
        }
    }
}

/// A group's reservation as the kernel takes it.
fn bandwidth(group: &GroupConfig) -> Result<String, HostError> {
    match (&group.bandwidth, &group.cpus) {
        (Some(text), Some(cpus)) => {
            let bandwidth: Bandwidth = text.parse()?;
            let cpus = soloist_core::cpu_list(cpus)
                .map_err(|e| HostError::Request(format!("cpus {cpus}: {e}")))?;
            Ok(format!("{bandwidth} cpus={cpus}"))
        }
        _ => Ok("off".to_owned()),
    }
}

//! Scenario files: which tasks run on which machine, under which policies,
//! and what is claimed of the outcome. The papers' experiments
//! (`experiments/*.toml`) and a user's own questions are the same kind of
//! file; docs/lab.md describes it.
//!
//! A scenario is run once per policy and sweep value: its *cases*. Names of
//! measured values are `CASE_TASK_METRIC`, see [`Scenario::cases`].

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use soloist_core::{cpu_list, parse_size};

use crate::outcome;
use crate::policy::Policy;
use crate::profile::Profile;
use crate::regulation::{Mode, RegulatorSpec, Reserve, ReserveSpec};

/// What is wrong with a scenario file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0: the whole file.
    pub line: usize,
    /// What was wrong and what was expected.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// A scenario file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about.
    pub experiment: About,
    /// Under which policies it runs.
    #[serde(default)]
    pub policies: Vec<String>,
    /// One number that varies.
    pub sweep: Option<Sweep>,
    /// What is changed of the machine file's `[memory]` table: an ablation.
    /// A value may be `"$sweep"`.
    #[serde(default)]
    pub model: toml::Table,
    /// Bandwidth regulation, and the modes to run in.
    pub regulator: Option<RegulatorSpec>,
    /// Who runs.
    #[serde(rename = "task")]
    pub tasks: Vec<TaskSpec>,
    /// What is said of the outcome.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
    /// How it is drawn.
    pub plot: Option<Plot>,
}

/// `[experiment]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Short name, also the file's.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// Where the printed figures stand, or nothing for one's own.
    #[serde(default)]
    pub source: String,
    /// Machine file by name.
    pub machine: String,
    /// Runs with different seeds.
    #[serde(default = "one")]
    pub repeats: u32,
    /// The same for the small version that `make check` runs.
    #[serde(default = "one")]
    pub small_repeats: u32,
    /// By what the accesses of every task are divided in the small version.
    #[serde(default = "eight")]
    pub small_divide: u64,
    /// Share of memory in use when it begins, and how scattered (see
    /// [`crate::buddy::History`]).
    #[serde(default = "used")]
    pub used: f64,
    /// See `used`.
    #[serde(default = "scatter")]
    pub scatter: f64,
    /// What to know when reading the figures.
    #[serde(default)]
    pub note: String,
}

fn one() -> u32 {
    1
}

fn eight() -> u64 {
    8
}

fn used() -> f64 {
    0.1
}

fn scatter() -> f64 {
    0.3
}

/// `[sweep]`: a number that task fields may name as `"$name"`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<u64>,
    /// Unit, for the plot's axis.
    #[serde(default)]
    pub unit: String,
}

/// A number, a size such as `"32M"`, or `"$name"` of the sweep.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
#[serde(
    untagged,
    expecting = "expected a number from 0 on, a size such as \"32M\", or \"$NAME\" of [sweep]"
)]
pub enum Number {
    /// As it stands.
    Fixed(u64),
    /// A size or the sweep's name.
    Text(String),
}

impl Number {
    pub(crate) fn resolve(&self, sweep: Option<(&str, u64)>) -> Result<u64, String> {
        let text = match self {
            Self::Fixed(n) => return Ok(*n),
            Self::Text(text) => text,
        };
        if let Some(name) = text.strip_prefix('$') {
            return match sweep {
                Some((known, value)) if known == name => Ok(value),
                _ => Err(format!("`${name}` is not the name of [sweep]")),
            };
        }
        parse_size(text).map_err(|_| {
            format!("`{text}`: expected a number, a size such as \"32M\", or \"$NAME\" of [sweep]")
        })
    }
}

/// What a kind of task does; parameters are in [`TaskSpec`].
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// [`crate::task::AlternatingStride`].
    AlternatingStride,
    /// [`crate::task::PointerChase`].
    Latency,
    /// [`crate::task::Bandwidth`], loads.
    BandwidthRead,
    /// [`crate::task::Bandwidth`], stores.
    BandwidthWrite,
    /// [`crate::task::Triad`].
    Stream,
    /// [`crate::task::IntegerSort`].
    Is,
    /// [`crate::task::MatMult`], naive.
    Matmult,
    /// [`crate::task::MatMult`] in blocks of 32.
    MatmultBlocked,
    /// [`crate::task::RandomSwaps`].
    Canneal,
    /// [`crate::task::StreamCluster`].
    Streamcluster,
    /// [`crate::task::BlockWalk`].
    Video,
    /// [`crate::profile::Profiled`]; `work` is microseconds alone.
    Spec,
    /// [`crate::images::Images`]; `work` is lines.
    Fps,
    /// [`crate::task::Counted`]: a program known by its counters.
    Program,
}

/// `[[task]]`: one task per cpu of the list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSpec {
    /// Its name in measured values.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// The cpus, as the kernel writes lists: `"0-3"`; one task on each.
    pub cpus: String,
    /// How many of `cpus` are used (default: all); may be `"$sweep"`.
    pub copies: Option<Number>,
    /// Bytes of memory of each.
    pub bytes: Number,
    /// Steps of work of each (what a step is depends on the kind).
    pub work: Number,
    /// Bytes from one access to the next, for kinds that stride (default: a
    /// line).
    pub stride: Option<Number>,
    /// Runs as long as the others do, and is not waited for.
    #[serde(default)]
    pub background: bool,
    /// Pages come from this node whatever the policy; may be `"$sweep"`.
    pub node: Option<Number>,
    /// Bank sets that a private assignment gives it (default: 1, or what its
    /// bytes need).
    pub sets: Option<Number>,
    /// Rounds that end with a barrier of all tasks of this name; 0: none.
    #[serde(default)]
    pub rounds: u32,
    /// Cpu whose thread touches the memory first (default: its own).
    pub first_touch: Option<u32>,
    /// Number of the SPEC benchmark, for kind `spec`; may be `"$sweep"`.
    pub benchmark: Option<Number>,
    /// Bandwidth that its cpu reserves.
    pub reserve: Option<ReserveSpec>,
    /// Of a `program`: instructions per cycle when it runs alone.
    pub ipc: Option<f64>,
    /// Of a `program`: last-level misses per thousand instructions.
    pub mpki: Option<f64>,
    /// Of a `program`: share of its lines that it writes to (default 0.3).
    pub writes: Option<f64>,
}

/// `[[claim]]`: a printed figure beside ours.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In words.
    pub what: String,
    /// Expression over measured values.
    pub ours: String,
    /// `ours` is computed for every value of the sweep, which is put in place
    /// of `$`, and this is taken of them.
    pub over: Option<Over>,
    /// What the paper prints.
    pub theirs: Option<f64>,
    /// Holds when ours / theirs is within 1 +- this (default 0.15).
    pub within: Option<f64>,
    /// Or: an expression that is true when it holds (order of policies).
    pub holds: Option<String>,
    /// Unit for printing.
    #[serde(default)]
    pub unit: String,
}

/// What a claim takes of its values over the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Arithmetic mean.
    Mean,
    /// Geometric mean.
    Geomean,
    /// Least.
    Min,
    /// Greatest.
    Max,
}

/// `[plot]`: the paper's axes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Task whose metric is drawn.
    pub task: String,
    /// The metric: `time`, `latency`, `idle`, `bandwidth`, ...
    pub metric: String,
    /// Label of the y axis, with the unit.
    pub y: String,
    /// Also draw least and greatest.
    #[serde(default)]
    pub range: bool,
    /// x axis: the repeats of each policy, instead of policy or sweep.
    #[serde(default)]
    pub by_repeat: bool,
    /// Figures that the source prints, by case; nothing else is drawn as
    /// theirs.
    #[serde(default)]
    pub printed: BTreeMap<String, f64>,
}

/// One policy, mode and sweep value.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// `policy`, `policy_mode`, and with `_value` behind it in a sweep.
    pub name: String,
    /// The policy.
    pub policy: Policy,
    /// How bandwidth is regulated; `None`: the scenario has no regulator.
    pub mode: Option<Mode>,
    /// The sweep's value.
    pub value: Option<u64>,
    /// Its tasks, one per cpu.
    pub tasks: Vec<CaseTask>,
}

/// One task of a case, all numbers resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseTask {
    /// Name of its `[[task]]`.
    pub name: String,
    /// What it does.
    pub kind: Kind,
    /// Where it is pinned.
    pub cpu: u32,
    /// Bytes of memory.
    pub bytes: u64,
    /// Steps of work.
    pub work: u64,
    /// Bytes from one access to the next; 0: a line.
    pub stride: u64,
    /// Not waited for.
    pub background: bool,
    /// Pages of this node only.
    pub node: Option<u32>,
    /// Bank sets of a private assignment.
    pub sets: Option<u32>,
    /// Rounds with a barrier.
    pub rounds: u32,
    /// Cpu of the first touch.
    pub first_touch: u32,
    /// For [`Kind::Spec`].
    pub profile: Option<Profile>,
    /// Bandwidth that its cpu reserves.
    pub reserve: Option<Reserve>,
    /// What a `program`'s counters say.
    pub counters: Counters,
}

/// What is known of a program that runs alone.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    /// Instructions per cycle.
    pub ipc: f64,
    /// Last-level misses per thousand instructions.
    pub mpki: f64,
    /// Share of lines that are written to.
    pub writes: f64,
}

impl Counters {
    fn of(spec: &TaskSpec) -> Result<Self, String> {
        let within = |name: &str, value: Option<f64>, most: f64| match value {
            Some(v) if v > 0.0 && v <= most => Ok(v),
            Some(v) => Err(format!("{name} {v}: expected above 0 and at most {most}")),
            None => Err(format!("kind \"program\" needs `{name}`")),
        };
        match spec.kind {
            Kind::Program => Ok(Self {
                ipc: within("ipc", spec.ipc, 8.0)?,
                mpki: within("mpki", spec.mpki, 500.0)?,
                writes: within("writes", spec.writes.or(Some(0.3)), 1.0)?,
            }),
            _ if spec.ipc.or(spec.mpki).or(spec.writes).is_some() => {
                Err("`ipc`, `mpki` and `writes` are for kind \"program\"".to_owned())
            }
            _ => Ok(Self::default()),
        }
    }
}

impl Scenario {
    /// Parses and checks a file's text; `file` is for messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, ScenarioError> {
        let at = |line, message: String| ScenarioError {
            file: file.to_owned(),
            line,
            message,
        };
        let scenario: Self = toml::from_str(text).map_err(|e| {
            let line = e
                .span()
                .map_or(0, |span| text[..span.start].matches('\n').count() + 1);
            at(line, e.message().to_owned())
        })?;
        let cases = scenario
            .cases(1)
            .map_err(|(word, message)| at(line_of(text, &word), message))?;
        scenario
            .check_claims(&cases)
            .map_err(|(word, message)| at(line_of(text, &word), message))?;
        Ok(scenario)
    }

    /// All cases, with every task's work divided by `divide`. An error names
    /// the word of the file that is wrong.
    pub fn cases(&self, divide: u64) -> Result<Vec<Case>, (String, String)> {
        let mut cases = Vec::new();
        let sweep: Vec<Option<u64>> = match &self.sweep {
            Some(sweep) if sweep.values.is_empty() => {
                return Err(("values".into(), "[sweep] needs at least one value".into()))
            }
            Some(sweep) => sweep.values.iter().copied().map(Some).collect(),
            None => vec![None],
        };
        if self.policies.is_empty() {
            return Err((
                "policies".into(),
                "`policies` needs at least one, such as [\"buddy\", \"camc\"]".into(),
            ));
        }
        let modes: Vec<Option<Mode>> = match &self.regulator {
            Some(regulator) => regulator.modes()?.into_iter().map(Some).collect(),
            None => vec![None],
        };
        for &value in &sweep {
            let model = self.model_of(value);
            model.map_err(|message| ("[model".to_owned(), message))?;
        }
        for name in &self.policies {
            let policy: Policy = name
                .parse()
                .map_err(|e| (format!("\"{name}\""), format!("{e}")))?;
            for mode in &modes {
                for &value in &sweep {
                    cases.push(self.case(policy, mode.as_ref(), value, divide)?);
                }
            }
        }
        Ok(cases)
    }

    fn case(
        &self,
        policy: Policy,
        mode: Option<&Mode>,
        value: Option<u64>,
        divide: u64,
    ) -> Result<Case, (String, String)> {
        let sweep = self
            .sweep
            .as_ref()
            .and_then(|s| Some((s.name.as_str(), value?)));
        let mut tasks = Vec::new();
        let only = mode.and_then(|m| m.only.as_deref());
        let runs = |spec: &&TaskSpec| only.is_none_or(|name| spec.name == name);
        for spec in self.tasks.iter().filter(runs) {
            let wrong = |message| (format!("\"{}\"", spec.name), message);
            let get = |n: &Number| n.resolve(sweep).map_err(wrong);
            let small = |n: &Number| get(n).and_then(|n| as_u32(n).map_err(wrong));
            let counters = Counters::of(spec).map_err(wrong)?;
            let mut cpus = parse_cpus(&spec.cpus).map_err(wrong)?;
            if let Some(copies) = &spec.copies {
                cpus.truncate(get(copies)? as usize);
            }
            let profile = match (spec.kind, &spec.benchmark) {
                (Kind::Spec, Some(n)) => Some(get(n).and_then(|n| profile(n).map_err(wrong))?),
                (Kind::Spec, None) => {
                    return Err(wrong("kind `spec` needs `benchmark`, such as 470".into()))
                }
                _ => None,
            };
            let reserve = spec.reserve.as_ref().map(|r| r.resolve(sweep));
            let reserve = reserve.transpose().map_err(wrong)?;
            for cpu in cpus {
                tasks.push(CaseTask {
                    name: spec.name.clone(),
                    kind: spec.kind,
                    cpu,
                    bytes: get(&spec.bytes)?.max(4096),
                    work: (get(&spec.work)? / divide).max(1),
                    stride: spec.stride.as_ref().map_or(Ok(0), get)?,
                    background: spec.background && only.is_none(),
                    node: spec.node.as_ref().map(small).transpose()?,
                    sets: spec.sets.as_ref().map(small).transpose()?,
                    rounds: spec.rounds,
                    first_touch: spec.first_touch.unwrap_or(cpu),
                    profile,
                    reserve: reserve.clone(),
                    counters,
                });
            }
        }
        if tasks.iter().all(|t| t.background) {
            return Err((
                "task".into(),
                "every task is `background`: none to wait for".into(),
            ));
        }
        let identifier = match mode {
            Some(mode) => format!("{}_{mode}", policy.name()),
            None => policy.name().to_owned(),
        }
        .replace(|c: char| !c.is_alphanumeric(), "_")
        .trim_end_matches('_')
        .to_owned();
        Ok(Case {
            name: match value {
                Some(value) => format!("{identifier}_{value}"),
                None => identifier,
            },
            policy,
            mode: mode.cloned(),
            value,
            tasks,
        })
    }

    /// What is changed of the machine's model in cases of this sweep value.
    pub fn model_of(&self, value: Option<u64>) -> Result<toml::Table, String> {
        let mut model = self.model.clone();
        let sweep = self.sweep.as_ref().map(|s| s.name.as_str()).zip(value);
        for (_, value) in &mut model {
            resolve_sweep(value, sweep)?;
        }
        Ok(model)
    }

    /// Claims that can be computed: from values that this scenario measures.
    fn check_claims(&self, cases: &[Case]) -> Result<(), (String, String)> {
        let mut stems = Vec::new();
        for case in cases {
            let stem = |task: &CaseTask| format!("{}_{}_", case.name, task.name);
            stems.extend(case.tasks.iter().map(stem));
        }
        for claim in &self.claims {
            for text in [Some(&claim.ours), claim.holds.as_ref()]
                .into_iter()
                .flatten()
            {
                // A value of the sweep is a number in a name, or alone.
                let value = self.sweep.as_ref().and_then(|s| s.values.first());
                let value = value.map_or_else(|| "1".to_owned(), u64::to_string);
                let tree = evalexpr::build_operator_tree(&text.replace('$', &value))
                    .map_err(|e| (text.clone(), format!("`{text}`: {e}")))?;
                let unknown = tree
                    .iter_variable_identifiers()
                    // What `holds` may use besides: the claim's own value.
                    .filter(|&word| word != "ours" || claim.holds.as_ref() != Some(text))
                    .find(|word| !stems.iter().any(|stem| measured(stem, word)));
                if let Some(word) = unknown {
                    return Err((word.to_owned(), not_measured(word, &stems)));
                }
            }
        }
        Ok(())
    }
}

/// Puts the sweep's number in place of its `"$name"`, in tables too.
fn resolve_sweep(value: &mut toml::Value, sweep: Option<(&str, u64)>) -> Result<(), String> {
    match value {
        toml::Value::Table(table) => table
            .iter_mut()
            .try_for_each(|(_, inner)| resolve_sweep(inner, sweep)),
        toml::Value::String(text) if text.starts_with('$') => {
            let number = Number::Text(text.clone()).resolve(sweep)?;
            let number = i64::try_from(number).map_err(|_| format!("{number} is too large"))?;
            *value = toml::Value::Integer(number);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn profile(spec: u64) -> Result<Profile, String> {
    Profile::find(spec)
        .ok_or_else(|| format!("no benchmark {spec}: expected a SPEC CPU2006 number such as 470"))
}

/// Is `word` a metric of the case and task `stem`, see [`outcome::values`]?
fn measured(stem: &str, word: &str) -> bool {
    let metrics = outcome::METRICS.iter();
    metrics
        .filter_map(|(metric, _)| word.strip_prefix(stem)?.strip_prefix(metric))
        .any(|suffix| suffix.is_empty() || outcome::SUFFIXES.contains(&suffix))
}

fn not_measured(word: &str, stems: &[String]) -> String {
    let names = |all: Vec<&str>| all.join(", ");
    format!(
        "`{word}` is not measured; expected one of {} before one of {}",
        names(stems.iter().map(String::as_str).collect()),
        names(outcome::METRICS.iter().map(|(name, _)| *name).collect()),
    )
}

/// The line of `text`, from 1, that first has `word`; 0: none.
pub(crate) fn line_of(text: &str, word: &str) -> usize {
    text.lines()
        .position(|line| line.contains(word))
        .map_or(0, |i| i + 1)
}

fn as_u32(n: u64) -> Result<u32, String> {
    u32::try_from(n).map_err(|_| format!("{n} is too large"))
}

/// In the order in which they are named, which `copies` goes by.
fn parse_cpus(list: &str) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let named = cpu_list(part).ok().filter(|n| n.iter().next().is_some());
        let named = named.ok_or_else(|| format!("`{list}`: expected cpus such as \"0-3,8\""))?;
        cpus.extend(named.iter());
    }
    Ok(cpus)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const GOOD: &str = r#"
policies = ["buddy", "mem+llc(part)"]

[experiment]
id = "mine"
title = "Mine"
machine = "opteron-6128"

[sweep]
name = "n"
values = [1, 3]

[[task]]
name = "victim"
kind = "latency"
cpus = "0"
bytes = "24M"
work = 1000

[[task]]
name = "attacker"
kind = "stream"
cpus = "1-3"
copies = "$n"
bytes = "32M"
work = 1
background = true

[[claim]]
what = "it helps"
ours = "buddy_3_victim_time / buddy_1_victim_time"
theirs = 2.0
"#;

    #[test]
    fn cases_are_policies_times_sweep() {
        let cases = Scenario::parse(GOOD, "f").unwrap().cases(10).unwrap();
        let names: Vec<_> = cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(
            names,
            ["buddy_1", "buddy_3", "mem_llc_part_1", "mem_llc_part_3"]
        );
        assert_eq!(cases[0].tasks.len(), 2);
        assert_eq!(cases[1].tasks.len(), 4);
        assert_eq!(cases[1].tasks[0].work, 100);
        assert_eq!(cases[1].tasks[3].cpu, 3);
    }

    #[test]
    fn errors_name_the_line() {
        for (from, to, line, words) in [
            ("\"latency\"", "\"latencies\"", 15, "unknown variant"),
            ("\"buddy\"", "\"body\"", 2, "no policy `body`"),
            ("\"24M\"", "\"24 M\"", 14, "expected a number"),
            ("\"$n\"", "\"$m\"", 21, "not the name of [sweep]"),
            ("cpus = \"0\"", "cpus = \"3-1\"", 14, "expected cpus"),
            ("work = 1000", "wrok = 1000", 18, "unknown field"),
            ("work = 1000", "work = -1", 18, "expected a number from 0"),
            (
                "buddy_3_victim_time /",
                "body_3_victim_time /",
                31,
                "not measured",
            ),
            (
                "buddy_3_victim_time /",
                "buddy_3_victim_tim /",
                31,
                "not measured",
            ),
            ("buddy_3_victim_time /", "( /", 31, "`"),
            ("values = [1, 3]", "values = []", 11, "at least one value"),
            (
                "[sweep]",
                "[model]\ncore.window = \"$m\"\n[sweep]",
                9,
                "not the name of [sweep]",
            ),
        ] {
            let e = Scenario::parse(&GOOD.replace(from, to), "f").unwrap_err();
            assert!(e.message.contains(words), "{e}");
            assert_eq!(e.line, line, "{e}");
        }
    }
}

//! What is to hold after a reboot: `/etc/soloist/soloist.toml`, which `soloist
//! save` writes and `soloist apply` makes true (docs/reference/config.md).

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Spanned;

use soloist_machine::KeyError;

use crate::control::{Bandwidth, Control, Exhaust, Group, Guard, Mode, Rule, Text};
use crate::machine::{find_existing, is_of_systemd, user_id, Host};
use crate::HostError;

/// A whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The machine whose map is loaded: a name or a machine file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Takes that map although the host contradicts it, or it is incomplete.
    #[serde(skip_serializing_if = "is_false")]
    pub force: bool,
    /// Settings of the guard, as in `guard/settings`; empty: none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub guard: BTreeMap<String, String>,
    /// Bandwidth reserved on single processors, by number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub cpus: BTreeMap<String, String>,
    /// Groups by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, GroupConfig>,
    /// Rules by name, in the order in which they are asked.
    #[serde(
        skip_serializing_if = "IndexMap::is_empty",
        deserialize_with = "as_written"
    )]
    pub rules: IndexMap<String, RuleConfig>,
    /// The file and its text, to name lines by.
    #[serde(skip)]
    pub source: Option<(String, String)>,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GroupConfig {
    /// Bank sets, a list; empty: any.
    pub bank_sets: String,
    /// LLC colours, a list; empty: any.
    pub llc: String,
    /// Shared or not.
    pub mode: Mode,
    /// What happens when its colours have no page left.
    pub exhaust: Exhaust,
    /// What becomes of file pages that it only reads.
    pub text: Text,
    /// Memory kept in its lists beforehand: `64M`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<String>,
    /// Bandwidth reserved for it on `cpus`: `500MB/s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<String>,
    /// Processors that `bandwidth` is reserved on, a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// The cgroups whose tasks are in it: `/video.slice`, or its directory below
    /// /sys/fs/cgroup. In a file a single one may stand without brackets.
    #[serde(
        rename = "cgroup",
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "one_or_list",
        deserialize_with = "list_or_one"
    )]
    pub cgroups: Vec<String>,
    /// These cgroups may be made later, by something else than systemd.
    #[serde(skip_serializing_if = "is_false")]
    pub cgroup_later: bool,
    /// It goes with its last task, as no group of a file does.
    #[serde(skip)]
    pub ephemeral: bool,
}

/// What a group is that was just made.
impl Default for GroupConfig {
    fn default() -> Self {
        Self {
            bank_sets: String::new(),
            llc: String::new(),
            mode: Mode::Shareable,
            exhaust: Exhaust::Fail,
            text: Text::Private,
            reserve: None,
            bandwidth: None,
            cpus: None,
            cgroups: Vec::new(),
            cgroup_later: false,
            ephemeral: false,
        }
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleConfig {
    /// Which programs: a glob over the absolute path.
    pub path: String,
    /// Whose programs: a user's number, `any`, or `registered`; a file may name the
    /// user.
    #[serde(default = "any", deserialize_with = "user")]
    pub uid: String,
    /// Bank sets per process.
    #[serde(default = "one")]
    pub colors: u32,
    /// Bank sets of all its processes together; none: the module's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Bank sets of all of one user's processes that a rule matched; none: the
    /// module's choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_limit: Option<u32>,
    /// What happens when a process' colours have no page left.
    #[serde(default = "grow")]
    pub exhaust: Exhaust,
    /// Keeps its processes apart from others by controller.
    #[serde(default)]
    pub realtime: bool,
    /// Lets it match.
    #[serde(default = "yes")]
    pub enabled: bool,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// In the order of the file, which the parser forgets.
fn as_written<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<IndexMap<String, RuleConfig>, D::Error> {
    let rules = BTreeMap::<String, Spanned<RuleConfig>>::deserialize(from)?;
    let mut rules: Vec<_> = rules.into_iter().collect();
    rules.sort_by_key(|(_, rule)| rule.span().start);
    let plain = rules
        .into_iter()
        .map(|(name, rule)| (name, rule.into_inner()));
    Ok(plain.collect())
}

fn one_or_list<S: Serializer>(paths: &[String], to: S) -> Result<S::Ok, S::Error> {
    match paths {
        [path] => path.serialize(to),
        paths => paths.serialize(to),
    }
}

/// An empty path is none.
fn list_or_one<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected a path, or a list of paths: [\"/a\", \"/b\"]"
    )]
    enum Paths {
        One(String),
        List(Vec<String>),
    }
    let mut paths = match Paths::deserialize(from)? {
        Paths::One(path) => vec![path],
        Paths::List(paths) => paths,
    };
    paths.retain(|path| !path.is_empty());
    Ok(paths)
}

fn user<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    user_id(&text).map_err(D::Error::custom)
}

fn any() -> String {
    "any".to_owned()
}

fn one() -> u32 {
    1
}

fn grow() -> Exhaust {
    Exhaust::Grow
}

fn yes() -> bool {
    true
}

impl Config {
    /// Puts the kernel's path in place of each cgroup that is named otherwise, such
    /// as by its directory. One that is not there is refused, unless it comes later;
    /// what there is to say of those that do.
    pub fn find_cgroups(&mut self, host: &Host) -> Result<Vec<String>, HostError> {
        let mut later = Vec::new();
        for (name, group) in &mut self.groups {
            for path in &mut group.cgroups {
                let found = find_existing(host, path, group.cgroup_later).map_err(|error| {
                    let what = format!(": {error} (cgroup_later = true)");
                    KeyError::of(&["groups", name], "cgroup", what)
                })?;
                let words = found.words();
                later.extend(words.map(|words| format!("[groups.{name}] cgroup: {words}")));
                *path = found.path;
            }
        }
        Ok(later)
    }

    /// Notes which cgroups are not there now, so that they may be missing when the
    /// file is applied.
    pub fn note_later(&mut self, host: &Host) {
        let comes = |path: &String| {
            let found = find_existing(host, path, true);
            !is_of_systemd(path) && found.is_ok_and(|found| found.missing == Some(true))
        };
        for group in self.groups.values_mut() {
            group.cgroup_later = group.cgroups.iter().any(comes);
        }
    }

    /// What holds now. Groups that `soloist run` made for one command are left
    /// out: they go with it.
    pub fn now(control: &Control) -> Result<Self, HostError> {
        Self::beside(control, |_| false)
    }

    /// As [`Config::now`], with those groups of one command, too, that are `wanted`.
    pub(super) fn beside(
        control: &Control,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Self, HostError> {
        let guard = Guard::open(control).ok();
        let groups = control.each_group(|group| {
            let is_told = wanted(group.name()) || !group.is_of_a_run();
            let config = is_told.then(|| GroupConfig::now(group)).transpose()?;
            Ok(config.map(|config| (group.name().to_owned(), config)))
        })?;
        Ok(Self {
            machine: control.map().ok().map(|map| map.name()),
            force: false,
            guard: match &guard {
                Some(guard) => settings(guard)?,
                None => BTreeMap::new(),
            },
            cpus: match &guard {
                Some(guard) => reservations(guard)?,
                None => BTreeMap::new(),
            },
            groups: groups.into_iter().flatten().collect(),
            rules: control
                .rules()?
                .iter()
                .map(|rule| Ok((rule.name().to_owned(), RuleConfig::now(rule)?)))
                .collect::<Result<_, HostError>>()?,
            source: None,
        })
    }

    /// Has it colours, which are those of a map?
    #[must_use]
    pub fn needs_map(&self) -> bool {
        let colors = |g: &GroupConfig| !g.bank_sets.is_empty() || !g.llc.is_empty();
        let mut groups = self.groups.values();
        !self.rules.is_empty() || groups.any(|g| colors(g) || g.reserve.is_some())
    }

    /// As the text of a file that `soloist save` writes; refused where `soloist apply`
    /// would refuse it, which at boot leaves everything out of colour.
    pub fn text(&self) -> Result<String, HostError> {
        let text = self.text_under(HEAD)?;
        Self::check_text(&text).map_err(|why| {
            let what = "what holds now can't be saved, for `soloist apply` would refuse it";
            HostError::Other(format!("{what}: {why}"))
        })?;
        Ok(text)
    }

    /// As a file's text; `head`: lines of comments that it begins with.
    pub fn text_under(&self, head: &str) -> Result<String, HostError> {
        let body = toml::to_string_pretty(self).map_err(|e| HostError::Other(e.to_string()))?;
        Ok(format!("{head}{body}"))
    }
}

const HEAD: &str = "# Written by `soloist save`; `soloist apply` makes it true.\n\
    # /usr/share/doc/soloist/reference/config.md says what may stand here.\n\n";

/// Where nobody has set anything there is nothing to keep.
fn settings(guard: &Guard) -> Result<BTreeMap<String, String>, HostError> {
    let settings = guard.settings()?;
    Ok(match Guard::are_fresh(&settings) {
        true => BTreeMap::new(),
        false => settings,
    })
}

fn reservations(guard: &Guard) -> Result<BTreeMap<String, String>, HostError> {
    let view = guard.view()?;
    let own = view
        .cpus
        .iter()
        .filter(|cpu| !cpu.bandwidth.contains("group="));
    Ok(own
        .filter_map(|cpu| {
            let (bandwidth, _) = Bandwidth::of_kernel(&cpu.bandwidth)?;
            Some((cpu.cpu.to_string(), bandwidth.for_people()))
        })
        .collect())
}

impl GroupConfig {
    /// What `group` is now.
    pub fn now(group: &Group) -> Result<Self, HostError> {
        let view = group.view()?;
        let unexpected = |e: String| HostError::Other(format!("group {}: {e}", view.name));
        let reserved = group.bandwidth()?;
        let reserved = Bandwidth::of_kernel(&reserved);
        let reserve: u64 = view.reserve.parse().unwrap_or(0);
        Ok(Self {
            mode: view.mode.parse().map_err(unexpected)?,
            exhaust: view.exhaust.parse().map_err(unexpected)?,
            text: view.text.parse().map_err(unexpected)?,
            reserve: (reserve > 0).then(|| exact_size(reserve)),
            bandwidth: reserved.as_ref().map(|(b, _)| b.for_people()),
            cpus: reserved.and_then(|(_, cpus)| cpus),
            cgroups: view.cgroups,
            cgroup_later: false,
            ephemeral: group.is_ephemeral(),
            bank_sets: view.bank_set,
            llc: view.llc_color,
        })
    }
}

/// In the largest unit that loses nothing.
fn exact_size(bytes: u64) -> String {
    for (shift, unit) in [(30, "G"), (20, "M"), (10, "K")] {
        if bytes % (1 << shift) == 0 {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    bytes.to_string()
}

impl RuleConfig {
    fn now(rule: &Rule) -> Result<Self, HostError> {
        let view = rule.view()?;
        let unexpected = |e: String| HostError::Other(format!("rule {}: {e}", view.name));
        Ok(Self {
            colors: view.colors.parse().unwrap_or(1),
            limit: view.limit.and_then(|limit| limit.parse().ok()),
            user_limit: view.user_limit.and_then(|limit| limit.parse().ok()),
            exhaust: view.exhaust.parse().map_err(unexpected)?,
            path: rule.path()?,
            uid: view.uid,
            realtime: view.realtime,
            enabled: view.enabled,
        })
    }
}

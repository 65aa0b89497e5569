//! A rule: which programs are coloured at exec, and by how many colours.

use serde::Serialize;
use soloist_core::AddrMap;

use crate::control::group::Exhaust;
use crate::control::interface::{Control, KeyValues};
use crate::HostError;

/// A rule of the control interface.
#[derive(Debug, Clone)]
pub struct Rule {
    control: Control,
    name: String,
}

/// All that can be read of a rule.
#[derive(Debug, Clone, Serialize)]
pub struct RuleView {
    /// Its name.
    pub name: String,
    /// User id, `any`, or `registered`.
    pub uid: String,
    /// Glob over the executable's absolute path.
    pub path: String,
    /// Bank sets per process.
    pub colors: String,
    /// `fail`, `grow` or `spill`.
    pub exhaust: String,
    /// Bank sets of all its processes together; `... default`: nobody set it.
    pub limit: Option<String>,
    /// Bank sets of all of one user's processes that a rule matched.
    pub user_limit: Option<String>,
    /// Kept apart by controller.
    pub realtime: bool,
    /// Does it match?
    pub enabled: bool,
    /// Counters.
    pub stats: KeyValues,
}

/// What of a rule is to be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleChange {
    /// Which programs: a glob over the absolute path.
    pub path: Option<String>,
    /// Whose programs: a user id, `any`, or `registered` (by CAMC's mmap()).
    pub uid: Option<String>,
    /// Bank sets per process.
    pub colors: Option<u32>,
    /// Bank sets of all its processes together, or [`LIMIT_DEFAULT`].
    pub limit: Option<String>,
    /// Bank sets of all of one user's processes that a rule matched, or [`LIMIT_DEFAULT`].
    pub user_limit: Option<String>,
    /// What happens when a process' colours have no page left.
    pub exhaust: Option<Exhaust>,
    /// Keeps its processes apart from others by controller.
    pub realtime: Option<bool>,
    /// Lets it match.
    pub enabled: Option<bool>,
}

/// A limit that the module chooses.
pub const LIMIT_DEFAULT: &str = "default";

/// A limit as the module shows it, as it takes it: `16 default` is `default`.
pub(crate) fn limit_set(shown: &str) -> &str {
    match shown.ends_with(LIMIT_DEFAULT) {
        true => LIMIT_DEFAULT,
        false => shown,
    }
}

/// Refuses more colours than there are, which would never be free: each program
/// would run uncoloured. The error begins with their number.
pub(crate) fn check_colors(colors: u32, map: &AddrMap) -> Result<(), String> {
    let sets = map.n_bank_sets();
    match colors > sets {
        true => Err(format!("{colors}: {} has {sets} bank sets", map.name())),
        false => Ok(()),
    }
}

/// A path as it was written.
fn without_end(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

impl Control {
    /// All rules, in the order in which they are asked.
    pub fn rules(&self) -> Result<Vec<Rule>, HostError> {
        let names = self.names("rules")?;
        let rules = names.into_iter().map(|name| Rule::new(self.clone(), name));
        let mut rules: Vec<Rule> = rules.collect();
        rules.sort_by_cached_key(Rule::order);
        Ok(rules)
    }

    /// The rule `name`.
    pub fn rule(&self, name: &str) -> Result<Rule, HostError> {
        self.find("rule", name)?;
        Ok(Rule::new(self.clone(), name.to_owned()))
    }

    /// Makes the rule `name`; it is disabled.
    pub fn create_rule(&self, name: &str) -> Result<Rule, HostError> {
        self.mkdir("rule", name)?;
        Ok(Rule::new(self.clone(), name.to_owned()))
    }
}

impl RuleChange {
    /// Attributes and their new values; it is enabled last.
    fn writes(&self) -> impl Iterator<Item = (&'static str, String)> {
        let flag = |on: bool| u8::from(on).to_string();
        [
            ("path", self.path.clone()),
            ("uid", self.uid.clone()),
            ("colors", self.colors.map(|n| n.to_string())),
            ("limit", self.limit.clone()),
            ("user_limit", self.user_limit.clone()),
            ("exhaust", self.exhaust.map(|e| e.to_string())),
            ("realtime", self.realtime.map(flag)),
            ("enabled", self.enabled.map(flag)),
        ]
        .into_iter()
        .filter_map(|(attribute, value)| Some((attribute, value?)))
    }
}

impl Rule {
    pub(crate) fn new(control: Control, name: String) -> Self {
        Self { control, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// It is asked before those with a larger number; 0: an older module does not say.
    fn order(&self) -> u64 {
        let stats = self.control.key_values(&self.file("stats"));
        let order = stats
            .ok()
            .and_then(|stats| stats.get("order")?.parse().ok());
        order.unwrap_or(0)
    }

    /// Reads everything.
    pub fn view(&self) -> Result<RuleView, HostError> {
        Ok(RuleView {
            name: self.name.clone(),
            uid: self.get("uid")?,
            path: self
                .control
                .read_marked(&self.file("path"))
                .map(without_end)?,
            colors: self.get("colors")?,
            exhaust: self.get("exhaust")?,
            limit: self.get_if_there("limit")?,
            user_limit: self.get_if_there("user_limit")?,
            realtime: self.get("realtime")? == "1",
            enabled: self.get("enabled")? == "1",
            stats: self.control.key_values(&self.file("stats"))?,
        })
    }

    /// Its path, which may end in a blank.
    ///
    /// # Errors
    /// Where it is no UTF-8, too: the kernel takes any.
    pub(crate) fn path(&self) -> Result<String, HostError> {
        self.control.read(&self.file("path")).map(without_end)
    }

    /// Makes `change`, all of it or nothing.
    pub fn change(&self, change: &RuleChange) -> Result<(), HostError> {
        Self::change_all(std::slice::from_ref(self), change)
    }

    /// Makes `change` in each of `rules`, all of it or nothing.
    pub fn change_all(rules: &[Self], change: &RuleChange) -> Result<(), HostError> {
        let map = rules.first().and_then(|rule| rule.control.map().ok());
        if let (Some(colors), Some(map)) = (change.colors, map) {
            check_colors(colors, &map)
                .map_err(|why| HostError::Request(format!("--colors {why}")))?;
        }
        let _alone = rules.first().map(|rule| rule.control.alone()).transpose()?;
        let mut writes = Vec::new();
        for rule in rules {
            for (attribute, value) in change.writes() {
                let old = match attribute {
                    "path" => rule.path()?,
                    _ => rule.get(attribute)?,
                };
                writes.push((rule, attribute, value, old));
            }
        }
        for (at, (rule, attribute, value, _)) in writes.iter().enumerate() {
            if let Err(error) = rule.set(attribute, value) {
                for (rule, attribute, _, old) in writes[..at].iter().rev() {
                    // It was taken before, so it is taken again.
                    let _ = rule.set(attribute, limit_set(old));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes it; processes that it matched keep their colours.
    pub fn remove(&self) -> Result<(), HostError> {
        self.control.rmdir(&format!("rules/{}", self.name))
    }

    fn file(&self, attribute: &str) -> String {
        format!("rules/{}/{attribute}", self.name)
    }

    fn get(&self, attribute: &str) -> Result<String, HostError> {
        Ok(self.control.read(&self.file(attribute))?.trim().to_owned())
    }

    /// None where the module has no such attribute.
    fn get_if_there(&self, attribute: &str) -> Result<Option<String>, HostError> {
        match self.get(attribute) {
            Err(HostError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn set(&self, attribute: &str, value: &str) -> Result<(), HostError> {
        self.control.write(&self.file(attribute), value)
    }
}

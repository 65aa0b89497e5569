//! A rule: which programs are coloured at exec, and by how many colours.

use serde::Serialize;

use crate::{Control, Exhaust, HostError, KeyValues};

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
    /// Kept apart by controller.
    pub realtime: bool,
    /// Does it match?
    pub enabled: bool,
    /// Counters.
    pub stats: KeyValues,
}

impl Rule {
    pub(crate) fn new(control: Control, name: String) -> Self {
        Self { control, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads everything.
    pub fn view(&self) -> Result<RuleView, HostError> {
        Ok(RuleView {
            name: self.name.clone(),
            uid: self.get("uid")?,
            path: self.get("path")?,
            colors: self.get("colors")?,
            exhaust: self.get("exhaust")?,
            realtime: self.get("realtime")? == "1",
            enabled: self.get("enabled")? == "1",
            stats: self.control.key_values(&self.file("stats"))?,
        })
    }

    /// Whose programs: a user id, `any`, or `registered` (by CAMC's mmap()).
    pub fn set_uid(&self, uid: &str) -> Result<(), HostError> {
        self.set("uid", uid)
    }

    /// Which programs: a glob over the absolute path.
    pub fn set_path(&self, glob: &str) -> Result<(), HostError> {
        self.set("path", glob)
    }

    /// Bank sets per process.
    pub fn set_colors(&self, colors: u32) -> Result<(), HostError> {
        self.set("colors", &colors.to_string())
    }

    /// Sets what happens when a process' colours have no page left.
    pub fn set_exhaust(&self, exhaust: Exhaust) -> Result<(), HostError> {
        self.set("exhaust", &exhaust.to_string())
    }

    /// Keeps its processes apart from others by controller.
    pub fn set_realtime(&self, realtime: bool) -> Result<(), HostError> {
        self.set("realtime", if realtime { "1" } else { "0" })
    }

    /// Lets it match, or not.
    pub fn set_enabled(&self, enabled: bool) -> Result<(), HostError> {
        self.set("enabled", if enabled { "1" } else { "0" })
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

    fn set(&self, attribute: &str, value: &str) -> Result<(), HostError> {
        self.control.write(&self.file(attribute), value)
    }
}

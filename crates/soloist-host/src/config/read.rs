//! Reads a configuration file and says in which line it is wrong.

use std::path::Path;

use soloist_core::{cpu_list, parse_size};
use soloist_machine::file::read_text;
use soloist_machine::{FileError, FileText, KeyError};

use crate::config::check;
use crate::config::file::Config;
use crate::control::{check_name, Bandwidth, Exhaust};
use crate::machine::EVERYTHING_ELSE;
use crate::run::check_lasting_name;
use crate::HostError;

impl Config {
    /// Reads a file, and refuses what contradicts itself; an error names it and the
    /// line.
    pub fn read(path: &Path) -> Result<Self, HostError> {
        let (text, file) = read_text(path)?;
        let place = FileText {
            file: &file,
            text: &text,
        };
        let mut this = Self::read_text(place)?;
        check::check(&this).map_err(|error| place.of_key(error))?;
        this.source = Some((file, text));
        Ok(this)
    }

    /// What [`Config::read`] would refuse in a file with this text.
    pub(crate) fn check_text(text: &str) -> Result<(), String> {
        let this = Self::parse(text).map_err(|error| error.to_string())?;
        check::check(&this).map_err(|error| error.to_string())
    }

    /// Reads its text.
    pub fn parse(text: &str) -> Result<Self, FileError> {
        Self::read_text(FileText { file: "", text })
    }

    fn read_text(place: FileText<'_>) -> Result<Self, FileError> {
        let mut this: Self = toml::from_str(place.text).map_err(|error| place.toml(&error))?;
        this.spill_the_rest(place.text);
        this.check().map_err(|error| place.of_key(error))?;
        Ok(this)
    }

    /// Names the line that an error of this configuration is about, where that is
    /// known.
    pub fn located(&self, error: HostError) -> HostError {
        let (HostError::Key(wrong), Some((file, text))) = (&error, &self.source) else {
            return error;
        };
        let located = FileText { file, text }.of_key(wrong.clone());
        match located.line {
            0 => error,
            _ => HostError::Request(located.to_string()),
        }
    }

    /// A group that takes in everything else spills where `text` does not say what it does: a
    /// system that finds no page would not live long.
    fn spill_the_rest(&mut self, text: &str) {
        let table: toml::Table = toml::from_str(text).unwrap_or_default();
        let says = |name: &str| {
            let groups = table.get("groups").and_then(|groups| groups.get(name));
            groups.is_some_and(|group| group.get("exhaust").is_some())
        };
        for (name, group) in &mut self.groups {
            if group.cgroups.iter().any(|path| path == EVERYTHING_ELSE) && !says(name) {
                group.exhaust = Exhaust::Spill;
            }
        }
    }

    /// What toml can't know.
    fn check(&self) -> Result<(), KeyError> {
        for (name, group) in &self.groups {
            named("groups", name)?;
            let wrong =
                |key: &str, why: String| KeyError::of(&["groups", name], key, format!(": {why}"));
            let no_path = |path: &&String| {
                let path = path.as_str();
                path != EVERYTHING_ELSE && (!path.starts_with('/') || path == "/")
            };
            if let Some(cgroup) = group.cgroups.iter().find(no_path) {
                let like = "expected a path such as /system.slice/x.service";
                return Err(wrong("cgroup", format!("{cgroup:?}: {like}")));
            }
            if let Some(cgroup) = group.cgroups.iter().find(|path| path.contains('\n')) {
                let what = format!("{cgroup:?}: no cgroup has a line break in its name");
                return Err(wrong("cgroup", what));
            }
            if let Some(size) = &group.reserve {
                parse_size(size).map_err(|e| wrong("reserve", e.to_string()))?;
            }
            match (&group.bandwidth, &group.cpus) {
                (None, Some(_)) => return Err(wrong("cpus", "without bandwidth".to_owned())),
                (Some(_), None) => return Err(wrong("bandwidth", "without cpus".to_owned())),
                (None, None) => {}
                (Some(text), Some(cpus)) => {
                    let parsed = text.parse::<Bandwidth>();
                    parsed.map_err(|e| wrong("bandwidth", e.to_string()))?;
                    cpu_list(cpus).map_err(|e| wrong("cpus", e.to_string()))?;
                }
            }
        }
        for (name, rule) in &self.rules {
            named("rules", name)?;
            let wrong = |key: &str, why: &str| {
                let what = format!(": {why}");
                Err(KeyError::of(&["rules", name], key, what))
            };
            if !rule.path.starts_with(['/', '*']) {
                return wrong(
                    "path",
                    "expected a glob over absolute paths, such as /usr/bin/*",
                );
            }
            if rule.colors == 0 {
                return wrong("colors", "0 colours hold no page: ask for at least 1");
            }
            for (key, limit) in [("limit", rule.limit), ("user_limit", rule.user_limit)] {
                if limit == Some(0) {
                    return wrong(key, "no process could have colours: at least 1");
                }
            }
        }
        for (cpu, text) in &self.cpus {
            let wrong = |why: String| KeyError::of(&["cpus"], cpu, format!(": {why}"));
            // As the kernel writes it: its directory has that name.
            let number = cpu.parse::<u32>().map(|number| number.to_string());
            if number.as_ref() != Ok(cpu) {
                return Err(wrong("expected the number of a CPU".to_owned()));
            }
            text.parse::<Bandwidth>()
                .map_err(|e| wrong(e.to_string()))?;
        }
        Ok(())
    }
}

/// The name of a group or a rule can be one of the control interface.
fn named(kind: &str, name: &str) -> Result<(), KeyError> {
    let lasting = match kind {
        "groups" => check_lasting_name(name),
        _ => Ok(()),
    };
    check_name(name)
        .and(lasting)
        .map_err(|e| KeyError::at(&[kind, name], format!("[{kind}.{name:?}]: {e}")))
}

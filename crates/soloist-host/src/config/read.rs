//! Reads a configuration file and says in which line it is wrong.

use std::fs;
use std::path::Path;

use soloist_core::{cpu_list, parse_size};
use soloist_machine::FileText;

use crate::config::check;
use crate::config::file::Config;
use crate::control::{check_name, Bandwidth};
use crate::error::KeyError;
use crate::machine::EVERYTHING_ELSE;
use crate::run::check_lasting_name;
use crate::HostError;

impl Config {
    /// Reads a file, and refuses what contradicts itself; an error names it and the
    /// line.
    pub fn read(path: &Path) -> Result<Self, HostError> {
        let text = fs::read_to_string(path).map_err(|e| HostError::io(path, e))?;
        let wrong = |(line, why)| HostError::Config {
            path: path.to_owned(),
            line,
            why,
        };
        let mut this = Self::read_text(&text).map_err(wrong)?;
        check::check(&this).map_err(|error| wrong(in_line(&text, error)))?;
        this.source = Some((path.to_owned(), text));
        Ok(this)
    }

    /// What [`Config::read`] would refuse in a file with this text.
    pub(crate) fn check_text(text: &str) -> Result<(), String> {
        let this = Self::parse(text)?;
        check::check(&this).map_err(|error| error.to_string())
    }

    /// Reads its text.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read_text(text).map_err(|(line, why)| match line {
            Some(line) => format!("line {line}: {why}"),
            None => why,
        })
    }

    fn read_text(text: &str) -> Result<Self, (Option<usize>, String)> {
        let file = FileText { file: "", text };
        let this: Self = toml::from_str(text).map_err(|error| {
            let wrong = file.toml(&error);
            (Some(wrong.line).filter(|&line| line > 0), wrong.message)
        })?;
        match this.check() {
            Err(error) => Err(in_line(text, error)),
            Ok(()) => Ok(this),
        }
    }

    /// Names the line that an error of this configuration is about, where that is
    /// known.
    pub fn located(&self, error: HostError) -> HostError {
        let HostError::Key(wrong) = &error else {
            return error;
        };
        let at = self.source.as_ref().and_then(|(path, text)| {
            let line = line_of(text, &wrong.keys)?;
            Some(format!("{}:{line}: {wrong}", path.display()))
        });
        at.map_or(error, HostError::Request)
    }

    /// What toml can't know.
    fn check(&self) -> Result<(), KeyError> {
        for (name, group) in &self.groups {
            named("groups", name)?;
            let wrong =
                |key: &str, why: String| KeyError::new(&["groups", name], key, format!(": {why}"));
            let no_path = |path: &&String| {
                let path = path.as_str();
                path != EVERYTHING_ELSE && (!path.starts_with('/') || path == "/")
            };
            if let Some(cgroup) = group.cgroups.iter().find(no_path) {
                let like = "expected a path such as /system.slice/x.service";
                return Err(wrong("cgroup", format!("{cgroup:?}: {like}")));
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
                Err(KeyError::new(&["rules", name], key, what))
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
            let wrong = |why: String| KeyError::new(&["cpus"], cpu, format!(": {why}"));
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
        .map_err(|e| KeyError::table(&[kind, name], format!("[{kind}.{name:?}]: {e}")))
}

/// The line of an error, from 1, where it is of one, and its words.
fn in_line(text: &str, error: KeyError) -> (Option<usize>, String) {
    (line_of(text, &error.keys), error.message)
}

/// The line, from 1, of the value that `keys` lead to, or of the innermost table around it.
fn line_of(text: &str, keys: &[String]) -> Option<usize> {
    let line = FileText { file: "", text }.line_of(keys);
    Some(line).filter(|&line| line > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where keys stand in TOML's forms is a test of [`FileText`].
    #[test]
    fn an_error_leads_to_its_line_or_to_none() {
        let text = "[groups.a]\nllc = '0'\n";
        let line = |table: &[&str], key| line_of(text, &KeyError::new(table, key, ": x").keys);
        assert_eq!(line(&["groups", "a"], "llc"), Some(2));
        assert_eq!(line(&["groups", "a"], "reserve"), Some(1));
        assert_eq!(line(&["guard"], "event"), None);
    }
}

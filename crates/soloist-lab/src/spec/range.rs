//! `[range]`: inputs of an experiment that its source does not print, each with the
//! least and the greatest that it could be. [`crate::sensitivity`] runs both ends.

use soloist_machine::file::plain;
use soloist_machine::KeyError;

use super::{Scenario, TaskSpec};

/// Fields of `[experiment]` that a range may name.
const OF_ALL: [&str; 3] = ["machine", "used", "scatter"];

/// A key with the least and the greatest that it could be.
pub type Range = (String, [toml::Value; 2]);

impl Scenario {
    /// The keys of `[range]` with both ends, `machine`, `used`, `sets` (of every task) or
    /// `attacker.bytes`.
    ///
    /// # Errors
    /// What is wrong with one of them.
    pub fn ranges(&self) -> Result<Vec<Range>, KeyError> {
        let mut ranges = Vec::new();
        for (key, value) in &self.range {
            match value {
                toml::Value::Table(fields) => {
                    for (field, value) in fields {
                        let key = format!("{key}.{field}");
                        ranges.push((key.clone(), ends(&key, value)?));
                    }
                }
                value => ranges.push((key.clone(), ends(key, value)?)),
            }
        }
        Ok(ranges)
    }

    /// The scenario with the input `key` of `[range]` at `value`.
    ///
    /// # Errors
    /// There is no such input, or it can't have that value.
    pub fn with_input(&self, key: &str, value: &toml::Value) -> Result<Self, String> {
        let mut changed = self.clone();
        if OF_ALL.contains(&key) {
            changed.experiment = with_field(&self.experiment, key, value)?;
            return Ok(changed);
        }
        if let Some(field) = key.strip_prefix("regulator.") {
            let regulator = self.regulator.as_ref();
            let regulator = regulator.ok_or_else(|| "there is no [regulator]".to_owned())?;
            changed.regulator = Some(with_field(regulator, field, value)?);
            return Ok(changed);
        }
        let (name, field) = match key.split_once('.') {
            Some((name, field)) => (Some(name), field),
            None => (None, key),
        };
        if field == "recording" {
            return Err("`recording` can't be changed: another one is another file's".to_owned());
        }
        let named = |task: &&mut TaskSpec| name.is_none_or(|name| task.name == name);
        let mut found = false;
        for task in changed.tasks.iter_mut().filter(named) {
            let recorded = task.recorded.take();
            *task = with_field(task, field, value)?;
            task.recorded = recorded;
            task.check_recording()?;
            found = true;
        }
        match found {
            true => Ok(changed),
            false => Err(format!(
                "no task `{}`; expected {}, a field of [[task]], or NAME.FIELD of one",
                name.unwrap_or_default(),
                OF_ALL.join(", ")
            )),
        }
    }

    /// The scenario with one thing otherwise, as a command line has it: `model.KEY=VALUE`
    /// of the machine's model, or `INPUT=VALUE` of what a `[range]` may name, whether it
    /// does or not. A value that is no TOML is a word: `model.controller.order=oldest`
    /// needs no quotes. [`crate::known::check`] says whether what comes of all changes can be.
    ///
    /// # Errors
    /// There is no such thing, or nothing can have that value.
    pub fn with_change(&self, change: &str) -> Result<Self, String> {
        let no_sign = || "there is no = in it".to_owned();
        let (key, value) = change.split_once('=').ok_or_else(no_sign)?;
        if let Some(key) = key.strip_prefix("model.") {
            let mut changed = self.clone();
            changed
                .change_model(key, value)
                .or_else(|_| changed.change_model(key, &format!("{value:?}")))
                .map_err(|e| plain(e.message()))?;
            return Ok(changed);
        }
        let table = toml::from_str::<toml::Table>(&format!("value = {value}"));
        let value = table.ok().and_then(|mut table| table.remove("value"));
        let word = || toml::Value::String(change[key.len() + 1..].to_owned());
        self.with_input(key, &value.unwrap_or_else(word))
    }

    /// Whether the scenario could run at both ends of each of its ranges.
    pub(crate) fn check_ranges(&self) -> Result<(), KeyError> {
        for (key, ends) in self.ranges()? {
            for end in &ends {
                let wrong = |what| at(&key, format!("`{key}` {end}: {what}"));
                let changed = self.with_input(&key, end).map_err(wrong)?;
                changed.check().map_err(|e| wrong(e.message))?;
                changed.cases(1).map_err(|e| wrong(e.message))?;
            }
        }
        Ok(())
    }
}

fn ends(key: &str, value: &toml::Value) -> Result<[toml::Value; 2], KeyError> {
    let both = value
        .as_array()
        .and_then(|a| <[_; 2]>::try_from(a.clone()).ok());
    let what =
        format!("`{key}`: expected the least and the greatest that it could be, such as [1, 16]");
    both.ok_or_else(|| at(key, what))
}

/// What is wrong with a key of `[range]`.
fn at(key: &str, what: String) -> KeyError {
    let path: Vec<&str> = std::iter::once("range").chain(key.split('.')).collect();
    KeyError::at(&path, what)
}

/// What a table of the file says with one field otherwise.
fn with_field<T>(of: &T, field: &str, value: &toml::Value) -> Result<T, String>
where
    T: serde::Serialize + serde::de::DeserializeOwned,
{
    let mut table = toml::Table::try_from(of).map_err(|e| e.to_string())?;
    table.insert(field.to_owned(), value.clone());
    table
        .try_into()
        .map_err(|e: toml::de::Error| plain(e.message()))
}

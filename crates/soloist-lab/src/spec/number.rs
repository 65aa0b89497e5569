//! Numbers of a scenario file.

use serde::{Deserialize, Serialize};
use soloist_core::{cpu_list, parse_size};

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
    pub(crate) fn resolve(&self, sweep: &[(&str, u64)]) -> Result<u64, String> {
        let text = match self {
            Self::Fixed(n) => return Ok(*n),
            Self::Text(text) => text,
        };
        if let Some(name) = text.strip_prefix('$') {
            let known = sweep.iter().find(|(known, _)| *known == name);
            let value = known.map(|(_, value)| *value);
            return value.ok_or_else(|| format!("`${name}` is not the name of [sweep]"));
        }
        parse_size(text).map_err(|_| {
            format!("`{text}`: expected a number, a size such as \"32M\", or \"$NAME\" of [sweep]")
        })
    }
}

pub(crate) fn as_u32(n: u64) -> Result<u32, String> {
    u32::try_from(n).map_err(|_| format!("{n} is too large"))
}

/// In the order in which they are named, which `copies` goes by.
pub(crate) fn parse_cpus(list: &str) -> Result<Vec<u32>, String> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let named = cpu_list(part).ok().filter(|n| n.iter().next().is_some());
        let named = named.ok_or_else(|| format!("`{list}`: expected cpus such as \"0-3,8\""))?;
        cpus.extend(named.iter());
    }
    Ok(cpus)
}

/// Puts the sweep's number in place of its `"$name"`, in tables too.
pub(crate) fn resolve_sweep(value: &mut toml::Value, sweep: &[(&str, u64)]) -> Result<(), String> {
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

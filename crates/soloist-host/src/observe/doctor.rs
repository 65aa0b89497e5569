//! What this machine offers, and what to do about what it lacks. Each check
//! only reads.

use serde::Serialize;
use soloist_core::AddrMap;

use crate::machine::Host;
use crate::words::counted;

mod groups;
mod kernel;
mod memory;
mod module;
mod processors;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, but something is worth knowing or doing.
    Warn,
    /// Soloist can't work until this is done.
    Fail,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it is.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What to do next.
    pub next: Option<String>,
}

impl Check {
    /// As it should be.
    pub fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Ok,
            found: found.into(),
            next: None,
        }
    }

    /// Worth knowing, with what to do about it.
    pub fn warn(name: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Warn,
            found: found.into(),
            next: Some(next.into()),
        }
    }

    fn fail(name: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self {
            status: Status::Fail,
            ..Self::warn(name, found, next)
        }
    }
}

/// Looks at everything. `map`: the map to hold against this machine's memory
/// where none is loaded.
pub fn examine(host: &Host, map: Option<&AddrMap>) -> Vec<Check> {
    let mut checks = vec![
        kernel::kernel(host),
        kernel::hooks(host),
        kernel::tracer(host),
        kernel::headers(host),
        module::module(host),
        module::secure_boot(host),
        module::signing(host),
        groups::control(host),
        memory::fit(host, map),
        memory::pages(host, map),
        memory::nodes(host),
        memory::huge_pages(host),
        memory::swap_and_ksm(host),
        processors::pmu(host),
        processors::resctrl(host),
        processors::isolation(host),
    ];
    checks.extend(groups::barred(host));
    checks.extend(groups::bare(host));
    checks.extend(groups::intruded(host));
    checks.extend(groups::unregulated(host));
    checks.extend(memory::movable(host));
    checks
}

/// All of it in one line.
pub fn verdict(checks: &[Check]) -> String {
    let named = |status| {
        let found = checks.iter().filter(move |c| c.status == status);
        found.map(|c| c.name).collect::<Vec<_>>()
    };
    let (failed, warned) = (named(Status::Fail), named(Status::Warn));
    let loaded = checks
        .iter()
        .any(|c| c.name == "control interface" && c.status == Status::Ok);
    let hints = counted(warned.len() as u64, "hint");
    // Without the right map colours keep nothing apart.
    let map = warned
        .iter()
        .find(|name| [memory::MAP, "map's trust"].contains(*name));
    match (failed.as_slice(), warned.len()) {
        ([], 0) => "Soloist works here".to_owned(),
        ([], _) if loaded => match map {
            Some(map) => format!("Soloist works here; {hints} above, first {map}"),
            None => format!("Soloist works here; {hints} above"),
        },
        ([], _) => format!("Soloist can work here: run `soloist up`; {hints} above"),
        (failed, _) => format!("Soloist can't work here yet: {}", failed.join(", ")),
    }
}

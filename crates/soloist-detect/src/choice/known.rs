//! Maps of known machines.

use serde::Serialize;
use soloist_core::AddrMap;
use soloist_host::machine::{fit, Host};
use soloist_machine::{known, Machine, Trust};

use crate::choice::finding::{Candidate, Finding, Source};
use soloist_map::sources::bridge;

/// A known machine, and whether it is this host's.
#[derive(Debug, Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// How far its map is to be trusted.
    pub trust: String,
    /// What it is.
    pub description: String,
    /// Its file.
    pub file: String,
    /// The host that the machine file names is this one.
    pub fits: bool,
    /// Its map is the one that is loaded.
    pub loaded: bool,
    /// Why, or why not.
    pub reasons: Vec<String>,
}

impl Listed {
    /// `machine` held against `host` and the map that is `loaded`.
    #[must_use]
    pub fn new(host: &Host, machine: &Machine, loaded: Option<&AddrMap>) -> Self {
        let fit = fit(host, machine);
        Self {
            name: machine.about.name.clone(),
            trust: machine.about.trust.to_string(),
            description: machine.about.description.clone(),
            file: machine.file.clone(),
            fits: fit.fits,
            loaded: loaded == Some(&machine.addr_map()),
            reasons: fit.reasons,
        }
    }
}

/// Known machines that fit, maps of virtual machines aside.
pub(crate) fn from_known(host: &Host) -> Vec<Finding> {
    let mut found = Vec::new();
    let bridge = bridge::read(host).ok();
    for mut machine in known::all().into_iter().flatten() {
        // Functions were published over memory in one piece.
        let laid = bridge.and_then(|bridge| bridge.lay(&machine.map));
        let mut notes = vec![format!("The known machine {}.", machine.about.name)];
        if let (Some(map), Some(bridge)) = (laid, bridge) {
            machine.map = map;
            notes.push(format!("By the host bridge, {}.", bridge.said()));
        }
        let made_up = matches!(machine.about.trust, Trust::Synthetic | Trust::Assumed);
        let fit = fit(host, &machine);
        if made_up || !fit.fits {
            continue;
        }
        found.push(Finding {
            from: Source::Known,
            found: format!(
                "{}, {}: {}",
                machine.about.name,
                machine.about.trust,
                fit.reasons.join("; ")
            ),
            nodes: Vec::new(),
            map: Some(Candidate {
                notes,
                about: machine.about,
                map: machine.map,
            }),
            channels: None,
        });
    }
    if found.is_empty() {
        found.push(Finding::nothing(
            Source::Known,
            "no machine of `soloist map list` fits this host".into(),
        ));
    }
    found
}

//! Maps of known machines.

use soloist_host::machine::{fit, Host};
use soloist_machine::{known, Trust};

use crate::choice::finding::{Candidate, Finding, Source};
use crate::sources::bridge;

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

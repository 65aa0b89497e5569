//! Holds a map against what else knows of the memory: timing, channels, counts.

use std::time::Duration;

use soloist_host::machine::edac::Counted;
use soloist_host::machine::guest::is_bare_metal;
use soloist_host::machine::Host;
use soloist_machine::{Machine, MapSpec};

use crate::choice::finding::{Candidate, Finding, Source};
use crate::detect::check::{check, Verdict};
use crate::detect::hardware::{Hardware, HardwareOptions};
use crate::detect::Options;

/// Why no map is taken, in words: what knows of the memory contradicts it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Contradiction(pub(crate) String);

/// What those who know of channels only say of a map.
pub(crate) fn by_channels(
    tried: &[Finding],
    from: Source,
    chosen: &Candidate,
) -> Result<Vec<String>, Contradiction> {
    let mut checks = Vec::new();
    for wrong in tried.iter().filter_map(|one| one.against(&chosen.map)) {
        if !wrong.is_empty() {
            return Err(Contradiction(format!(
                "the map from {} is contradicted: {}. It is not taken; --from asks another source",
                from,
                wrong.join("; ")
            )));
        }
        checks.push("amd_atl: banks lie in one channel each".into());
    }
    Ok(checks)
}

/// What the kernel's drivers count of a map's memory, where they do.
pub(crate) fn by_count(
    counted: Option<&Counted>,
    from: Source,
    chosen: &Candidate,
) -> Result<Vec<String>, Contradiction> {
    let Some(counted) = counted else {
        return Ok(vec![
            "not checked by count: no EDAC driver of this machine's controllers is loaded".into(),
        ]);
    };
    let says = counted.against(&chosen.map, None, chosen.about.trust);
    if !says.against.is_empty() {
        return Err(Contradiction(format!(
            "the map from {} is contradicted: {}. It is not taken; --from asks another source",
            from,
            says.against.join("; ")
        )));
    }
    let mut checks = vec![format!("{} counts the same", counted.by)];
    if !says.unknown.is_empty() {
        checks = says
            .unknown
            .iter()
            .map(|why| format!("not known: {why}"))
            .collect();
    }
    Ok(checks)
}

/// What timing says of a map, where it can be measured at all.
pub(crate) fn by_timing(
    host: &Host,
    map: &MapSpec,
    seed: u64,
    deadline: Duration,
) -> Result<String, Contradiction> {
    if !is_bare_metal(host) {
        return Ok("not checked by timing: a virtual machine has other addresses than DRAM".into());
    }
    let measured = Hardware::new(&HardwareOptions {
        memory: None,
        page_shift: None,
        trust_guest: false,
    })
    .map_err(|error| error.to_string())
    .and_then(|mut source| {
        let options = Options {
            deadline,
            seed,
            ..Options::default()
        };
        check(&mut source, map, &options).map_err(|stop| stop.to_string())
    });
    match measured {
        Ok((Verdict::Fits, _)) => Ok("timing: row conflicts are where the map says".into()),
        Ok((Verdict::Contradicted, _)) => Err(Contradiction(
            "timing contradicts this map: row conflicts are not where it says; \
                 --from timing measures a map instead"
                .to_owned(),
        )),
        Ok((Verdict::Unknown, _)) => Ok("not checked by timing: nothing could be measured".into()),
        Err(why) => Ok(format!("not checked by timing: {why}")),
    }
}

/// What the kernel's drivers count of a machine's memory, in words.
#[derive(Debug, Default)]
pub struct Counts {
    /// In sentences.
    pub said: Vec<String>,
    /// They contradict it.
    pub is_against: bool,
}

impl Counts {
    /// What `counted` says of the map of `machine`.
    #[must_use]
    pub fn of(counted: Option<&Counted>, machine: &Machine) -> Self {
        let Some(counted) = counted else {
            let none =
                "not checked by count: no EDAC driver of this machine's controllers is loaded";
            return Self {
                said: vec![none.into()],
                is_against: false,
            };
        };
        let says = counted.against(&machine.map, machine.host.channels, machine.about.trust);
        let is_against = !says.against.is_empty();
        let against = says
            .against
            .iter()
            .map(|why| format!("contradicted: {why}"));
        let unknown = says.unknown.iter().map(|why| format!("not known: {why}"));
        let mut said: Vec<String> = against.chain(unknown).collect();
        if said.is_empty() {
            said.push(format!("{} counts the same", counted.by));
        }
        Self { said, is_against }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use soloist_machine::known;

    #[test]
    fn a_map_that_knows_channels_is_held_against_others() {
        let candidate = |name: &str| {
            let machine = known::find(name).unwrap();
            Candidate {
                about: machine.about,
                map: machine.map,
                notes: Vec::new(),
            }
        };
        let mut tried = Finding::nothing(Source::Firmware, String::new());
        let chosen = candidate("opteron-6128");
        let said = by_channels(&[], Source::Known, &chosen).unwrap();
        assert!(said.is_empty(), "{said:?}");
        let mut own = candidate("opteron-6128");
        for layout in &mut own.map.layouts {
            layout.rank.clear();
            layout.bank.clear();
            layout.row.clear();
            layout.column.clear();
            layout.bank_group.clear();
        }
        tried.channels = Some(own);
        let said = by_channels(std::slice::from_ref(&tried), Source::Known, &chosen).unwrap();
        assert_eq!(said, ["amd_atl: banks lie in one channel each"]);
        for layout in &mut tried.channels.as_mut().unwrap().map.layouts {
            layout.channel = vec![1 << 19];
        }
        let error = by_channels(&[tried], Source::Known, &chosen).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("known is contradicted: amd_atl"), "{error}");
    }

    #[test]
    fn a_map_that_edac_contradicts_is_not_taken() {
        let machine = known::find("opteron-6128").unwrap();
        let chosen = Candidate {
            about: machine.about,
            map: machine.map,
            notes: Vec::new(),
        };
        let mut counted = Counted {
            by: "EDAC (F10h)".into(),
            channels: 8,
            ranks: Some(2),
            bytes: 32 << 30,
        };
        let said = by_count(Some(&counted), Source::Registers, &chosen).unwrap();
        assert_eq!(said, ["EDAC (F10h) counts the same"]);
        counted.channels = 4;
        let error = by_count(Some(&counted), Source::Registers, &chosen).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("registers is contradicted"), "{error}");
        assert!(error.contains("counts 4 channels"), "{error}");
        let said = by_count(None, Source::Known, &chosen).unwrap();
        assert!(said[0].contains("not checked by count"), "{said:?}");
    }

    #[test]
    fn a_check_says_what_edac_counts() {
        let machine = known::find("opteron-6128").unwrap();
        let mut counted = Counted {
            by: "EDAC (F10h)".into(),
            channels: 8,
            ranks: Some(2),
            bytes: 32 << 30,
        };
        let says = Counts::of(Some(&counted), &machine);
        assert_eq!(says.said, ["EDAC (F10h) counts the same"]);
        assert!(!says.is_against);
        counted.channels = 4;
        let says = Counts::of(Some(&counted), &machine);
        assert!(says.is_against && says.said[0].contains("counts 4 channels"));
        let says = Counts::of(None, &machine);
        assert!(!says.is_against && says.said[0].contains("not checked by count"));
    }
}

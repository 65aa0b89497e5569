//! Holds a map against what else knows of the memory: timing, channels, counts.

use std::time::Duration;

use soloist_host::machine::edac::Counted;
use soloist_host::machine::guest::is_bare_metal;
use soloist_host::machine::Host;
use soloist_machine::{MapSpec, Trust};

use crate::check::{check, why_unknown, Verdict};
use crate::choice::finding::{Candidate, Finding, Source};
use crate::timing::hardware::{Hardware, HardwareOptions};
use crate::Options;

/// Why no map is taken, in words: what knows of the memory contradicts it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Contradiction(pub(crate) String);

/// The refusal of the map from `from`.
fn contradicted(from: Source, why: &[String]) -> Contradiction {
    Contradiction(format!(
        "the map from {from} is contradicted: {}. It is not taken; --from asks another source",
        why.join("; ")
    ))
}

/// Compares a map with the sources that know of channels only.
pub(crate) fn by_channels(
    tried: &[Finding],
    from: Source,
    chosen: &Candidate,
) -> Result<Vec<String>, Contradiction> {
    let mut checks = Vec::new();
    for wrong in tried.iter().filter_map(|one| one.against(&chosen.map)) {
        if !wrong.is_empty() {
            return Err(contradicted(from, &wrong));
        }
        checks.push("amd_atl: banks lie in one channel each".into());
    }
    Ok(checks)
}

/// Compares a map with the counts of the kernel's drivers, where they count.
pub(crate) fn by_count(
    counted: Option<&Counted>,
    from: Source,
    chosen: &Candidate,
) -> Result<Vec<String>, Contradiction> {
    let counts = Counts::of(counted, &chosen.map, None, chosen.about.trust);
    if counts.is_against() {
        return Err(contradicted(from, &counts.against));
    }
    Ok(counts.rest)
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
    let options = Options {
        deadline,
        seed,
        ..Options::default()
    };
    let measured = Hardware::within(&HardwareOptions::default(), &options)
        .map_err(|error| error.to_string())
        .and_then(|(mut source, left)| {
            check(&mut source, map, &left).map_err(|stop| stop.to_string())
        });
    let found = match measured {
        Ok(found) => found,
        Err(why) => return Ok(format!("not checked by timing: {why}")),
    };
    match why_unknown(found.verdict, &found, false) {
        Some(why) => Ok(format!("not checked by timing: {why}")),
        None if found.verdict == Verdict::Fits => {
            Ok("timing: row conflicts are where the map says".into())
        }
        None => Err(Contradiction(
            "timing contradicts this map: row conflicts are not where it says; \
                 --from timing measures a map instead"
                .to_owned(),
        )),
    }
}

/// The counts of the kernel's drivers beside a map, in words.
#[derive(Debug, Default)]
pub struct Counts {
    /// What contradicts the map.
    against: Vec<String>,
    /// What agrees, or is not known.
    rest: Vec<String>,
}

impl Counts {
    /// Compares `counted` with the memory of a map, and with the `channels` of the
    /// machine where they are known.
    #[must_use]
    pub fn of(
        counted: Option<&Counted>,
        map: &MapSpec,
        channels: Option<u32>,
        trust: Trust,
    ) -> Self {
        let Some(counted) = counted else {
            let none =
                "not checked by count: no EDAC driver of this machine's controllers is loaded";
            return Self {
                against: Vec::new(),
                rest: vec![none.into()],
            };
        };
        let says = counted.against(map, channels, trust);
        let unknown = says.unknown.iter().map(|why| format!("not known: {why}"));
        let mut rest: Vec<String> = unknown.collect();
        if says.against.is_empty() && rest.is_empty() {
            rest.push(format!("{} counts the same", counted.by));
        }
        Self {
            against: says.against,
            rest,
        }
    }

    /// Does a count contradict the map?
    fn is_against(&self) -> bool {
        !self.against.is_empty()
    }

    /// The verdict on the map that timing gave this one: a count that contradicts the map
    /// outweighs it.
    #[must_use]
    pub fn over(&self, timing: Verdict) -> Verdict {
        match self.is_against() {
            true => Verdict::Contradicted,
            false => timing,
        }
    }

    /// All of it, a sentence each.
    pub fn said(&self) -> impl Iterator<Item = String> + '_ {
        let against = self
            .against
            .iter()
            .map(|why| format!("contradicted: {why}"));
        against.chain(self.rest.iter().cloned())
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
        let judged = |counted: Option<&Counted>| {
            let about = (machine.host.channels, machine.about.trust);
            let says = Counts::of(counted, &machine.map, about.0, about.1);
            (says.over(Verdict::Fits), says.said().collect::<Vec<_>>())
        };
        let same = vec!["EDAC (F10h) counts the same".to_owned()];
        assert_eq!(judged(Some(&counted)), (Verdict::Fits, same));
        counted.channels = 4;
        let (verdict, said) = judged(Some(&counted));
        assert_eq!(verdict, Verdict::Contradicted);
        assert!(said[0].contains("counts 4 channels"), "{said:?}");
        let (verdict, said) = judged(None);
        assert_eq!(verdict, Verdict::Fits);
        assert!(said[0].contains("not checked by count"), "{said:?}");
    }
}

//! The choice among the sources of a map: a known machine that fits, the firmware,
//! registers; in this order, and timing where none of them has one. It compares the
//! maps of two sources with each other.

mod finding;
mod firmware;
mod judge;
mod known;
pub mod measured;
mod registers;

pub use finding::{Candidate, Finding, Source};
pub use judge::{Contradiction, Counts};
pub use known::Listed;

use std::time::Duration;

use soloist_host::machine::{edac, topology, Host};
use soloist_machine::{write, FileError, Machine};

use soloist_map::compare;

/// Asks the sources that need no timing: `from` alone, or all.
#[must_use]
pub fn search(host: &Host, from: Option<Source>, seed: u64) -> Vec<Finding> {
    let asked = |source| from.is_none_or(|from| from == source);
    let mut findings = Vec::new();
    if asked(Source::Known) {
        findings.extend(known::from_known(host));
    }
    if asked(Source::Firmware) {
        let mut firmware = firmware::from_firmware(host, seed);
        if from.is_some() {
            firmware.map = firmware.map.or(firmware.channels.take());
        }
        findings.push(firmware);
    }
    if asked(Source::Registers) {
        findings.push(registers::from_registers(host));
    }
    findings
}

/// A map that was chosen.
#[derive(Debug)]
pub struct Chosen {
    /// Where it is from.
    pub from: Source,
    /// The words of other sources on the map, in sentences.
    pub checks: Vec<String>,
    /// As a machine file has it.
    pub text: String,
    /// As that file is read.
    pub machine: Machine,
}

/// Why no map was chosen.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// A source that knows of the memory contradicts the map.
    #[error(transparent)]
    Contradicted(#[from] Contradiction),
    /// The file that was made can't be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Takes the first map that was found, held against the others, or against timing;
/// `None`: none was found.
///
/// # Errors
/// When something contradicts it.
pub fn choose(
    host: &Host,
    findings: &[Finding],
    seed: u64,
    deadline: Duration,
) -> Result<Option<Chosen>, ChoiceError> {
    let mut others = findings.iter();
    let Some((chosen, from)) = others.find_map(|one| Some((one.map.as_ref()?, one.from))) else {
        return Ok(None);
    };
    let mut checks = agreeing(chosen, from, others.as_slice())?;
    if checks.is_empty() {
        checks.push(judge::by_timing(host, &chosen.map, seed, deadline)?);
    }
    checks.extend(judge::by_channels(findings, from, chosen)?);
    checks.extend(judge::by_count(edac::counted(host).as_ref(), from, chosen)?);
    let text = write::machine_file(&chosen.about, &topology(host), &chosen.map, &chosen.notes);
    Ok(Some(Chosen {
        from,
        checks,
        machine: Machine::parse(&text, "the map that was found")?,
        text,
    }))
}

/// The sources that say the same; refused where one says otherwise.
fn agreeing(
    chosen: &Candidate,
    from: Source,
    others: &[Finding],
) -> Result<Vec<String>, Contradiction> {
    let mut checks = Vec::new();
    for other in others {
        let Some(map) = &other.map else {
            continue;
        };
        let differ = compare::differences(&chosen.map, &map.map);
        let (one, two) = (&chosen.about.name, &map.about.name);
        // --from tells two machines of one source apart as little as this does.
        let is_one_source = other.from == from;
        if !differ.is_empty() {
            let differ = differ.join("; ");
            let what = match is_one_source {
                true => format!(
                    "{from} machines {one} and {two} both fit and contradict each other: \
                     {differ}. Neither is taken; ask `soloist map check --machine {one}`, and of \
                     {two}, then `soloist up --machine` of that which fits"
                ),
                false => format!(
                    "{from} ({one}) and {other} contradict each other: {differ}. Neither is \
                     taken; --from {from} or --from {other} takes one",
                    other = other.from,
                ),
            };
            return Err(Contradiction(what));
        }
        checks.push(match is_one_source {
            true => format!("{from} machine {two} says the same"),
            false => format!("{} says the same", other.from),
        });
    }
    Ok(checks)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use soloist_machine::known;

    fn found(from: Source, name: &str) -> Finding {
        let machine = known::find(name).unwrap();
        let mut finding = Finding::nothing(from, String::new());
        finding.map = Some(Candidate {
            about: machine.about,
            map: machine.map,
            notes: Vec::new(),
        });
        finding
    }

    /// `--from known` is no way out where both are known.
    #[test]
    fn two_known_machines_are_told_apart_by_name() {
        let (one, two) = ("opteron-6128", "opteron-6128-noninterleaved");
        let chosen = found(Source::Known, one).map.unwrap();
        let said = |from, name| {
            agreeing(&chosen, Source::Known, &[found(from, name)]).map_err(|why| why.to_string())
        };
        let refused = said(Source::Known, two).unwrap_err();
        assert!(!refused.contains("--from"), "{refused}");
        for words in [&format!("{one} and {two}"), "soloist map check --machine"] {
            assert!(refused.contains(words), "{refused}");
        }
        let refused = said(Source::Registers, two).unwrap_err();
        assert!(
            refused.contains("--from known or --from registers"),
            "{refused}"
        );
        let same = said(Source::Registers, one).unwrap();
        assert_eq!(same, ["registers says the same"]);
    }
}

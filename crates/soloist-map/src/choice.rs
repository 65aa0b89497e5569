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

use crate::compare;

/// What the sources that need no timing say: that of `from` alone, or all.
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
    /// What else knows of the memory says of it, in sentences.
    pub checks: Vec<String>,
    /// As a machine file has it.
    pub text: String,
    /// As that file is read.
    pub machine: Machine,
}

/// Why no map was chosen.
#[derive(Debug, thiserror::Error)]
pub enum ChoiceError {
    /// What knows of the memory contradicts the map.
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
        if !differ.is_empty() {
            return Err(Contradiction(format!(
                "{from} ({}) and {other} contradict each other: {}. Neither is taken; --from \
                 {from} or --from {other} takes one",
                chosen.about.name,
                differ.join("; "),
                other = other.from,
            )));
        }
        checks.push(format!("{} says the same", other.from));
    }
    Ok(checks)
}

//! Of which machine a file's figures are: advice takes none of another's.

/// Behind the name of a machine that is none.
pub const SIMULATED: &str = ", simulated";

/// Where advice is asked.
#[derive(Debug, Clone, Copy)]
pub struct Here<'a> {
    /// The machine's name.
    pub machine: &'a str,
    /// Its processors that may be used.
    pub processors: usize,
    /// The machine file whose colours are judged.
    pub named: Option<&'a str>,
}

/// The simulated machine that figures of `machine` are of; `None`: a real one.
#[must_use]
pub fn simulated(machine: &str) -> Option<&str> {
    machine.strip_suffix(SIMULATED)
}

/// Why figures of `machine`, measured on so many processors, say nothing here; `None`: they
/// are of this machine, or of the simulated one that is named.
#[must_use]
pub fn objection(machine: &str, processors: usize, here: Here<'_>) -> Option<String> {
    if let Some(name) = simulated(machine) {
        let is_named = here.named == Some(name);
        return (!is_named).then(|| {
            format!(
                "of {name}, simulated, not of this machine; --machine {name} advises on that one"
            )
        });
    }
    if machine != here.machine {
        return Some(format!(
            "measured on {machine}, and this machine is {}: ask there",
            here.machine
        ));
    }
    (processors > here.processors).then(|| {
        format!(
            "measured on {processors} CPUs, and here are {}: it is another machine",
            here.processors
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_another_machine_are_told() {
        let here = |named| Here {
            machine: "AMD EPYC",
            processors: 2,
            named,
        };
        let is_taken =
            |machine, processors, named| objection(machine, processors, here(named)).is_none();
        assert!(is_taken("AMD EPYC", 2, None) && is_taken("AMD EPYC", 2, Some("zen2")));
        assert!(!is_taken("AMD EPYC", 16, None) && !is_taken("Intel", 2, None));
        assert!(is_taken("zen2, simulated", 16, Some("zen2")));
        assert!(!is_taken("zen2, simulated", 16, None));
        assert!(!is_taken("zen2, simulated", 16, Some("haswell")));
    }
}

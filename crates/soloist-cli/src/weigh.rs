//! Whether a machine's map may be taken on this host.

use anyhow::{bail, Result};
use soloist_host::machine::{self, Facts, Host, Objections};
use soloist_machine::{Machine, Trust};

/// Refuses a map that this host contradicts, and one that is incomplete; warns
/// of what can't be known.
pub fn weigh(machine: &Machine, force: bool) -> Result<()> {
    let Objections { against, unknown } = objections(machine);
    let name = &machine.about.name;
    if !against.is_empty() && !force {
        bail!(
            "{name} is not this machine's map: {}; `soloist map list` shows which fit, \
             `soloist map check` measures, --force takes it all the same",
            against.join("; ")
        );
    }
    for reason in against.iter().chain(&unknown) {
        errln!("soloist: {name}: {reason}");
    }
    Ok(())
}

/// Returns what speaks against the map here, an incomplete one's own word too.
pub fn objections(machine: &Machine) -> Objections {
    let mut objections = machine::objections(machine, &Facts::of(&Host::live()));
    objections.against.extend(incomplete(machine));
    objections
}

/// The objection to a map whose own file calls it incomplete; it holds on any host.
pub fn incomplete(machine: &Machine) -> Option<String> {
    let why = "the map is incomplete: its file says what nothing has shown";
    (machine.about.trust == Trust::Incomplete).then(|| why.into())
}

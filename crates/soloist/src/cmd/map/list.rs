//! `soloist map list`.

use std::process::ExitCode;

use anyhow::Result;
use soloist_detect::choice::Listed;
use soloist_host::control::Control;
use soloist_host::machine::{cpu_name, Host};
use soloist_machine::known;

use soloist_cli::out::put;
use soloist_cli::table;
use soloist_cli::Ctx;

/// Runs the command.
pub fn run(ctx: &Ctx) -> Result<ExitCode> {
    let loaded = Control::open(&Host::live()).and_then(|control| control.map());
    let loaded = loaded.ok();
    let mut listed = Vec::new();
    for machine in known::all() {
        match machine {
            Ok(machine) => listed.push(Listed::new(&Host::live(), &machine, loaded.as_ref())),
            Err(error) => errln!("soloist: {error}"),
        }
    }
    if ctx.json {
        ctx.print_json(&listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    put(&list_text(&listed))?;
    Ok(ExitCode::SUCCESS)
}

fn list_text(listed: &[Listed]) -> String {
    let mut table = table(["MACHINE", "MAP", "HOST", "DESCRIPTION"]);
    for machine in listed {
        let host = match (machine.loaded, machine.fits) {
            (true, _) => "loaded",
            (false, true) => "fits",
            (false, false) => "-",
        };
        table.add_row([&machine.name, &machine.trust, host, &machine.description]);
    }
    let table = table.trim_fmt();
    let cpu = cpu_name(&Host::live()).unwrap_or_else(|| "not known".into());
    let mut out = format!("{table}\n\nThis host: {cpu}\n");
    for machine in listed.iter().filter(|machine| machine.fits) {
        out.push_str(&format!(
            "{} fits: {}. Make sure: soloist map check --machine {}\n",
            machine.name,
            machine.reasons.join("; "),
            machine.name
        ));
    }
    if !listed.iter().any(|machine| machine.fits || machine.loaded) {
        out.push_str("None of them fits it; `soloist map detect` finds the map by timing.\n");
    }
    out
}

//! What `make demo` runs in the guest: real programs of Debian's, each once as
//! it is and once under `soloist run`, both looked at while they run.
//!
//! Where the pages are is read from the stock kernel (pagemap) and the address
//! map, by the code behind `soloist verify`; the module is not asked.

mod placement;
mod program;
mod table;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{ensure, Context, Result};
use serde::Serialize;
use soloist_host::control::Control;
use soloist_host::machine::Host;

use placement::Placement;
use program::Program;

/// One run of a program.
#[derive(Debug, Serialize)]
struct Run {
    /// Where its pages were when it had most of them.
    placement: Placement,
    /// All that it printed or wrote, in one number.
    result: u64,
    /// How long it took; emulated, so only good for patience.
    seconds: f64,
}

/// A program, as it is and coloured.
#[derive(Debug, Serialize)]
struct Pair {
    name: &'static str,
    about: &'static str,
    colors: &'static str,
    without: Run,
    with: Run,
}

fn main() -> ExitCode {
    match demo() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn demo() -> Result<bool> {
    let json = std::env::args().any(|arg| arg == "--json");
    let progress = std::env::var_os("SOLOIST_PROGRESS").is_some();
    let host = Host::live();
    let map = Control::open(&host)?.map()?;
    let sets_of_nodes = placement::sets_of_nodes(&map);
    ensure!(
        sets_of_nodes.len() > 1,
        "the demo is made for a machine of several nodes"
    );
    let work = tempfile::tempdir_in("/run").context("a directory to work in")?;
    std::env::set_current_dir(work.path())?;
    program::prepare()?;
    let mut pairs = Vec::new();
    for program in program::all() {
        let note = |what: &str| {
            if progress {
                eprint!("\r\x1b[K{} {what} ...", program.name);
                // A line that is about to be overwritten may as well be lost.
                let _ = std::io::stderr().flush();
            }
        };
        note("as it is");
        let without = program.run(&host, &map, false)?;
        note("under soloist run");
        let with = program.run(&host, &map, true)?;
        note("done");
        let pair = pair(&program, without, with);
        if progress {
            eprint!("\r\x1b[K");
        }
        if !json {
            print!("{}", table::show(&pair, &sets_of_nodes));
        }
        pairs.push(pair);
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&pairs)?);
    } else {
        print!("{}", table::summary(&pairs));
    }
    Ok(pairs.iter().all(Pair::good))
}

fn pair(program: &Program, without: Run, with: Run) -> Pair {
    Pair {
        name: program.name,
        about: program.about,
        colors: program.colors,
        without,
        with,
    }
}

impl Pair {
    /// The same result, and every page of its own in colour.
    fn good(&self) -> bool {
        self.without.result == self.with.result && self.with.placement.stray == 0
    }
}

//! `soloist sweep`: a door to the sweeps of the Python package, which stand on Dask.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{bail, Context as _, Result};
use soloist_cli::number::whole;
use soloist_cli::Ctx;

/// Run a scenario at every point of a grid, on all CPUs or a cluster.
///
/// Needs the Python package soloist with its extra `sweep` (docs/how-to/python.md), in
/// the Python that SOLOIST_PYTHON names, or python3. Results go to Parquet files as
/// they come. The sweep does not repeat a case with a result of the same machine and
/// version.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    status "0 done, 1 failed or a case could not be run, 2 misused";
    "soloist sweep sweep.toml",
    "soloist sweep sweep.toml --scheduler tcp://head:8786 --out results",
])]
pub struct Args {
    /// File of the sweep: scenario, and grid or sample.
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Scheduler of Dask [default: all CPUs of this machine].
    #[arg(long, value_name = "ADDRESS", conflicts_with = "workers")]
    scheduler: Option<String>,

    /// Worker processes on this machine [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=4096))]
    workers: Option<u32>,

    /// Folder of the results [default: the file's, or `results`].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs the command: becomes Python.
pub fn run(args: &Args, ctx: &Ctx) -> Result<ExitCode> {
    // Python begins only after seconds.
    File::open(&args.file).with_context(|| args.file.display().to_string())?;
    let python = env::var_os("SOLOIST_PYTHON").unwrap_or_else(|| "python3".into());
    check(&python)?;
    let mut command = Command::new(&python);
    command.args(["-m", "soloist", "sweep"]).arg(&args.file);
    let workers = args.workers.map(|n| OsString::from(n.to_string()));
    for (option, value) in [
        ("--scheduler", args.scheduler.clone().map(OsString::from)),
        ("--workers", workers),
        ("--out", args.out.clone().map(OsString::from)),
    ] {
        command.args(
            value
                .map(|value| [option.into(), value])
                .into_iter()
                .flatten(),
        );
    }
    if ctx.json {
        command.arg("--json");
    }
    Err(command.exec().into())
}

/// Is the package there?
fn check(python: &OsString) -> Result<()> {
    let mut probe = Command::new(python);
    probe.args(["-c", "import soloist, distributed"]);
    let found = probe.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    bail!(
        "{} has no package soloist with its extra `sweep`: `make wheel` makes it, \
         `pip install 'soloist-VERSION.whl[sweep]'` installs it; SOLOIST_PYTHON names \
         another Python",
        Path::new(python).display()
    )
}

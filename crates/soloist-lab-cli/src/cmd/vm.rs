//! `soloist vm`: every subcommand is a call into `soloist-vm`.

mod directory;
pub(super) mod record;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use soloist_core::format_size;
use soloist_vm::{
    kernel, parse_size, source_root, GuestNodes, GuestOutcome, Kernel, Output, Spec, Verdict,
};

use soloist_cli::complete;
use soloist_cli::machine::named;
use soloist_cli::number::whole;
use soloist_cli::table;
use soloist_cli::{Ctx, Misuse};

/// Boot a stock Debian kernel in QEMU with the module loaded.
#[derive(Debug, clap::Subcommand)]
pub enum Args {
    /// List the kernels that are installed.
    #[command(after_help = examples!["soloist vm list"])]
    List,
    /// Run a command in a virtual machine, and pass on its exit status.
    #[command(after_help = examples![
        status "the command's own, as of `soloist run`; 1 the kernel complained or died, or\n\
         output was lost, 124 the time limit, 130 Ctrl-C, 2 misused";
        "soloist vm run -- uname -r",
        "soloist vm run --kernel 6.1-rt --machine opteron-6128 -- numactl -H",
        "soloist vm run --arch arm64 -- soloist doctor",
    ])]
    Run(Box<Run>),
    /// Open a shell, or run a program with this terminal, in a virtual machine.
    #[command(after_help = examples![
        status "the shell's own; 1 the kernel complained or died, 2 misused";
        "soloist vm shell",
        "soloist vm shell -k 6.1 -- htop",
    ])]
    Shell(Box<Shell>),
    Record(Box<record::Args>),
}

/// The guest sees this machine's files. Its writes are lost when it ends, except below
/// the current directory and in --writable.
#[derive(Debug, clap::Args)]
pub struct Run {
    #[command(flatten)]
    guest: Guest,
    /// Pass standard input to the command [default: it is empty].
    #[arg(long)]
    stdin: bool,
    /// Stop after SECONDS; 0: never.
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = whole::<u64>(..))]
    timeout: u64,
    /// The command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND", add = complete::command_line())]
    argv: Vec<OsString>,
}

/// All keys go to the program in the guest, even Ctrl-C. To leave a guest that hangs,
/// type Enter and `~.`. There is no time limit: the guest ends with the program. The
/// guest sees this machine's files. Its writes are lost when it ends, except below the
/// current directory and in --writable.
#[derive(Debug, clap::Args)]
pub struct Shell {
    #[command(flatten)]
    guest: Guest,
    /// The program and its arguments [default: $SHELL].
    #[arg(last = true, value_name = "COMMAND", add = complete::command_line())]
    argv: Vec<OsString>,
}

/// The guest.
#[derive(Debug, clap::Args)]
struct Guest {
    /// Kernel: 6.12, 6.12-rt, 6.12-cloud, 6.1, 6.1-rt, 6.1-cloud or a version
    /// from `soloist vm list`.
    #[arg(long, short, default_value = "6.12", add = complete::names(kernel_names))]
    kernel: String,
    /// The kernel's architecture: with arm64, 6.12-rt means 6.12-rt-arm64. The guest
    /// runs the programs that `make arm64` built.
    #[arg(long, value_name = "ARCH", value_parser = ["x86_64", "arm64"], default_value = "x86_64")]
    arch: String,
    /// Machine: a name from `soloist map list` or a machine file. Its [vm] table gives
    /// CPUs and memory [default: qemu-2node; for arm64 qemu-arm64-2node].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,
    /// Memory of all nodes together, without a map [default: the machine's].
    #[arg(long, value_name = "SIZE", conflicts_with = "machine")]
    mem: Option<String>,
    /// Nodes that share --mem evenly.
    #[arg(long, requires = "mem", default_value_t = 1, value_parser = whole::<u32>(1..=32))]
    nodes: u32,
    /// Number of CPUs [default: the machine's].
    #[arg(long, value_parser = whole::<u32>(1..=64))]
    cpus: Option<u32>,
    /// Do not load the module.
    #[arg(long, conflicts_with_all = ["module", "params"])]
    no_module: bool,
    /// Load this module [default: that of `make build`].
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Parameters for the module, such as 'mmap_abi=1'.
    #[arg(long, value_name = "WORDS", default_value = "")]
    params: String,
    /// Load the module without a map.
    #[arg(long)]
    no_map: bool,
    /// More words for the kernel's command line.
    #[arg(
        long,
        value_name = "WORDS",
        default_value = "",
        allow_hyphen_values = true
    )]
    append: String,
    /// One more argument for QEMU; may be repeated.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    qemu: Vec<String>,
    /// QEMU's model of the CPU [default: max].
    #[arg(long)]
    cpu: Option<String>,
    /// Let each instruction take 2^N ns of the guest's time.
    #[arg(long, value_name = "N", value_parser = whole::<u8>(0..=10))]
    icount: Option<u8>,
    /// One more directory that the guest may write to; may be repeated.
    #[arg(long, value_name = "DIR")]
    writable: Vec<PathBuf>,
    /// Write the kernel's console to this file.
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    match args {
        Args::List => list(ctx),
        Args::Run(run) => boot(run.spec(ctx)?, ctx),
        Args::Shell(shell) => {
            if ctx.json {
                return Err(Misuse(
                    "--json: a shell has a terminal, `soloist vm run` has JSON".to_owned(),
                )
                .into());
            }
            let spec = shell.spec()?;
            errln!(
                "soloist: booting {}, {} cpus ...",
                spec.kernel.version,
                spec.nodes.cpus
            );
            boot(spec, ctx)
        }
        Args::Record(args) => record::run(*args, ctx),
    }
}

/// A machine's private caches, as a recording goes through them.
pub(super) fn private_caches(
    machine: &soloist_machine::Machine,
) -> Result<Vec<soloist_record::meta::Cache>> {
    soloist_vm::record::private_caches(machine, true).map_err(misuse)
}

fn list(ctx: &Ctx) -> Result<ExitCode> {
    let kernels = kernel::list(source_root().as_deref());
    if ctx.json {
        let rows: Vec<_> = kernels
            .iter()
            .map(
                |k| serde_json::json!({ "name": k.name(), "version": k.version, "image": k.image }),
            )
            .collect();
        ctx.print_json(&rows)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut rows = table(["kernel", "version"]);
    for kernel in &kernels {
        rows.add_row([&kernel.name(), &kernel.version]);
    }
    if !kernels.is_empty() {
        outln!("{}", rows.trim_fmt())?;
    }
    let missing: Vec<String> = kernel::names()
        .into_iter()
        .filter(|name| kernels.iter().all(|k| k.name() != *name))
        .collect();
    if !missing.is_empty() {
        errln!(
            "not here: {}; `scripts/kernels {}` unpacks them",
            missing.join(", "),
            missing.join(" ")
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn boot(spec: Spec, ctx: &Ctx) -> Result<ExitCode> {
    let outcome = soloist_vm::run(&spec)?;
    if ctx.json {
        ctx.print_json(&outcome)?;
    } else {
        report(&outcome, ctx);
    }
    Ok(ExitCode::from(outcome.status()))
}

impl Run {
    fn spec(self, ctx: &Ctx) -> Result<Spec> {
        Ok(Spec {
            timeout: (self.timeout > 0).then(|| Duration::from_secs(self.timeout)),
            output: if ctx.json { Output::Keep } else { Output::Pass },
            stdin: self.stdin,
            ..self.guest.spec(self.argv)?
        })
    }
}

impl Shell {
    fn spec(self) -> Result<Spec> {
        let shell = || std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let command = match self.argv.is_empty() {
            true => vec![shell()],
            false => self.argv,
        };
        Ok(Spec {
            output: Output::Terminal,
            ..self.guest.spec(command)?
        })
    }
}

/// The kernel's whole name: it says of which architecture it is.
fn kernel_of(arch: &str, kernel: &str) -> String {
    match arch {
        "arm64" if !kernel.contains("-arm64") => match kernel.strip_suffix("-16k") {
            Some(plain) => format!("{plain}-arm64-16k"),
            None => format!("{kernel}-arm64"),
        },
        _ => kernel.to_owned(),
    }
}

impl Guest {
    fn spec(self, command: Vec<OsString>) -> Result<Spec> {
        soloist_cli::check_files(&[("--log", self.log.as_deref())])?;
        let root = source_root();
        let kernel = kernel::find(&kernel_of(&self.arch, &self.kernel), root.as_deref())?;
        let module = module(&self, &kernel, root.as_deref())?;
        let (mut nodes, mut map) = machine(&self, &kernel)?;
        nodes.cpus = self.cpus.unwrap_or(nodes.cpus);
        map = map.filter(|_| module.is_some() && !self.no_map);
        let mut spec = Spec::here(kernel, nodes).map_err(misuse)?;
        for dir in self.writable {
            spec.writable.push(
                dir.canonicalize()
                    .with_context(|| format!("--writable {}", dir.display()))?,
            );
        }
        Ok(Spec {
            cpu: self.cpu,
            icount: self.icount,
            append: self.append,
            qemu_args: self.qemu,
            module,
            params: self.params,
            map,
            command,
            log: self.log,
            ..spec
        })
    }
}

fn module(run: &Guest, kernel: &Kernel, root: Option<&Path>) -> Result<Option<PathBuf>> {
    if run.no_module {
        return Ok(None);
    }
    if let Some(module) = &run.module {
        return Ok(Some(module.clone()));
    }
    kernel.built_module(root).map(Some).map_err(misuse)
}

/// What the user got wrong, apart from what went wrong.
fn misuse(error: soloist_vm::Error) -> anyhow::Error {
    match error {
        soloist_vm::Error::NoModule(_) | soloist_vm::Error::Refused(_) => {
            Misuse(error.to_string()).into()
        }
        other => other.into(),
    }
}

/// What a kernel needs to boot, and each of its nodes.
const LEAST_MEMORY: u64 = 256 << 20;
const LEAST_NODE: u64 = 64 << 20;

/// The nodes and, for a machine, its map.
fn machine(run: &Guest, kernel: &Kernel) -> Result<(GuestNodes, Option<String>)> {
    if let Some(mem) = &run.mem {
        let bytes = parse_size(mem).map_err(|e| Misuse(format!("--mem: {e}")))?;
        let least = LEAST_MEMORY.max(u64::from(run.nodes) * LEAST_NODE);
        if bytes < least {
            let why = format!(
                "--mem {mem}: {} nodes need {} at least",
                run.nodes,
                format_size(least)
            );
            return Err(Misuse(why).into());
        }
        return Ok((
            GuestNodes::even(bytes, run.nodes, run.cpus.unwrap_or(run.nodes)),
            None,
        ));
    }
    let arch = kernel.arch();
    let machine = named(run.machine.as_deref().unwrap_or(arch.machine()))?;
    let nodes = GuestNodes::of(&machine)?.on(arch, &machine);
    Ok((nodes, Some(machine.map_text())))
}

/// Of kernels that are here.
fn kernel_names() -> Vec<String> {
    let kernels = kernel::list(source_root().as_deref());
    kernels.iter().map(|kernel| kernel.name()).collect()
}

/// Says on standard error why a guest failed, or that output was lost; else silent.
fn report(outcome: &GuestOutcome, ctx: &Ctx) {
    if let Some(why) = &outcome.lost {
        errln!("soloist: {why}");
    }
    if outcome.healthy() || outcome.verdict == Verdict::Interrupted {
        return;
    }
    if !outcome.excerpt.is_empty() {
        errln!("{}", outcome.excerpt);
    }
    let why = match &outcome.verdict {
        Verdict::Failed(why) | Verdict::Died(why) => why.clone(),
        Verdict::Timeout => "the time limit passed (--timeout)".to_owned(),
        Verdict::Silent => "the command printed nothing for too long".to_owned(),
        _ => format!("the kernel complained {} time(s)", outcome.troubles.len()),
    };
    errln!(
        "soloist: {}: {why}",
        ctx.paint(31, &format!("guest {} failed", outcome.kernel))
    );
    if let Some(log) = &outcome.log {
        errln!("soloist: the console's log is {}", log.display());
    }
}

//! `soloist vm run` before the command line has it: boots a kernel and runs a
//! command there.
//!
//! cargo run -q -p soloist-vm --example vm -- run --kernel 6.12 -- uname -r

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use soloist_vm::{kernel, parse_size, source_root, Layout, Output, Spec};

#[derive(Parser)]
enum Cli {
    /// Boot a stock kernel and run a command there.
    Run(Args),
}

#[derive(clap::Args)]
struct Args {
    #[arg(long, default_value = "6.12")]
    kernel: String,
    #[arg(long)]
    machine: Option<PathBuf>,
    #[arg(long, default_value = "1G")]
    mem: String,
    #[arg(long, default_value_t = 2)]
    nodes: u32,
    #[arg(long, default_value_t = 2)]
    cpus: u32,
    #[arg(long)]
    cpu: Option<String>,
    #[arg(long)]
    icount: Option<u8>,
    #[arg(long)]
    no_module: bool,
    #[arg(long)]
    module: Option<PathBuf>,
    #[arg(long, default_value = "")]
    params: String,
    #[arg(long)]
    map: Option<PathBuf>,
    #[arg(long, default_value = "")]
    append: String,
    #[arg(long, default_value_t = 600)]
    timeout: u64,
    #[arg(long)]
    log: Option<PathBuf>,
    #[arg(long)]
    json: bool,
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let Cli::Run(args) = Cli::parse();
    let root = source_root();
    let kernel = kernel::find(&args.kernel, root.as_deref())?;
    let built = root
        .unwrap_or_default()
        .join("build/kernel")
        .join(&kernel.version)
        .join("soloist.ko");
    let layout = match &args.machine {
        Some(path) => Layout::parse(&std::fs::read_to_string(path)?, &path.display().to_string())?,
        None => Layout::even(parse_size(&args.mem)?, args.nodes, args.cpus),
    };
    let cwd = std::env::current_dir()?;
    let spec = Spec {
        module: args
            .module
            .or_else(|| (!args.no_module && built.exists()).then_some(built)),
        kernel,
        layout,
        cpu: args.cpu,
        icount: args.icount,
        append: args.append,
        qemu_args: Vec::new(),
        params: args.params,
        map: args.map.map(std::fs::read_to_string).transpose()?,
        command: args.command,
        env: ["PATH", "HOME", "TERM", "LANG"]
            .iter()
            .filter_map(|name| {
                let mut pair = OsString::from(format!("{name}="));
                pair.push(std::env::var_os(name)?);
                Some(pair)
            })
            .collect(),
        writable: vec![cwd.clone()],
        cwd,
        timeout: Some(Duration::from_secs(args.timeout)),
        log: args.log,
        output: if args.json {
            Output::Keep
        } else {
            Output::Pass
        },
        stdin: false,
    };
    let outcome = soloist_vm::run(&spec)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&outcome)?);
    } else if !outcome.healthy() {
        eprintln!(
            "{}\nguest: {:?}; log: {:?}",
            outcome.excerpt, outcome.verdict, outcome.log
        );
    }
    Ok(ExitCode::from(outcome.status()))
}

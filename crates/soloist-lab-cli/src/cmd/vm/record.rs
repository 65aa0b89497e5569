//! `soloist vm record`: real programs, placed by the real module, as recordings.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use soloist_play::policy::{linux, Policy};
use soloist_record::Meta;
use soloist_vm::record::{self, Request};
use soloist_vm::{parse_size, source_root, Arch, GuestOutcome, Output, Verdict};

use super::directory::Directory;
use super::{kernel_names, kernel_of, misuse};
use soloist_cli::complete;
use soloist_cli::machine::named;
use soloist_cli::number::whole;
use soloist_cli::{Ctx, Misuse};

/// Record the memory accesses of programs, for `soloist sim replay`.
///
/// Boots a stock kernel in QEMU 10, where the module places the programs' pages.
/// Records the lines that leave the private caches of their CPUs, with guest physical
/// addresses. The first program is the foreground: recording ends with it. Others
/// follow after further `--`.
#[derive(Debug, clap::Args)]
#[command(after_help = examples![
    status "the first program's own, as of `soloist run`; 1 the kernel complained or died, 124\n\
     the time limit, 130 Ctrl-C, 2 misused";
    "soloist vm record -o sort.rec -- sort big.txt",
    "soloist vm record --arch arm64 -m raspberry-pi-4 -o sort.rec -- sort big.txt",
])]
pub struct Args {
    /// Machine whose nodes, map and private caches the guest has [default:
    /// opteron-6128; for arm64 raspberry-pi-4].
    #[arg(long, short, value_name = "NAME|FILE", add = complete::machines())]
    machine: Option<String>,
    /// The guest's architecture, as in `soloist vm run`. For arm64, `scripts/userland
    /// arm64 PACKAGE...` brings Debian's programs.
    #[arg(long, value_name = "ARCH", value_parser = ["x86_64", "arm64"], default_value = "x86_64")]
    arch: String,
    /// Kernel, as in `soloist vm run`.
    #[arg(long, short, default_value = "6.12", add = complete::names(kernel_names))]
    kernel: String,
    /// How to place pages: buddy (Linux), membind, interleave; by colour
    /// `same_bank`, `diff_bank`, `diff_controller`, camc, mem, llc, mem+llc ...
    #[arg(long, default_value = "buddy")]
    policy: &'static dyn Policy,
    /// Bank sets for each program.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(..))]
    sets: u32,
    /// Directory to write the recording to; it must not have one.
    #[arg(long, short, default_value = "recording")]
    out: PathBuf,
    /// Stop recording after SIZE, and a MiB more for each CPU; the programs run on.
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    limit: String,
    /// Number of CPUs of the foreground program.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=32))]
    threads: u32,
    /// Number of CPUs of the guest [default: as many as are recorded, or nodes].
    #[arg(long, value_parser = whole::<u32>(1..=64))]
    cpus: Option<u32>,
    /// Do not record instruction fetches.
    #[arg(long)]
    no_fetch: bool,
    /// Do not load the module: Linux places the pages.
    #[arg(long)]
    no_module: bool,
    /// Stop after SECONDS; 0: never.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = whole::<u64>(..))]
    timeout: u64,
    /// FOREGROUND [ARG...] [-- BACKGROUND [ARG...]]...
    #[arg(last = true, required = true, value_name = "PROGRAM", add = complete::command_line())]
    words: Vec<OsString>,
}

/// How long another command's programs are recorded.
pub const LONGEST: Duration = Duration::from_secs(3600);

/// Records programs on the newest 6.12 by Linux' own placement, for another command, and
/// returns the status of the first; `None`: it did not end in time. That command's answer leaves
/// their output out; if the first fails, the output goes to standard error.
pub fn here(
    machine: &str,
    out: &Path,
    programs: Vec<Vec<OsString>>,
    ctx: &Ctx,
) -> Result<Option<u8>> {
    let request = Request {
        machine: machine.to_owned(),
        kernel: "6.12".to_owned(),
        module: false,
        policy: &linux::BUDDY,
        sets: 1,
        out: out.to_path_buf(),
        limit: 2 << 30,
        threads: 1,
        cpus: None,
        fetches: true,
        timeout: Some(LONGEST),
        programs,
    };
    let recorded = record(&request, Output::Keep, ctx)?;
    let status = recorded.tell(ctx);
    if status != 0 {
        recorded.repeat_errors();
    }
    Ok((recorded.outcome.verdict != Verdict::Timeout).then_some(status))
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let output = if ctx.json { Output::Keep } else { Output::Pass };
    let recorded = record(&args.request()?, output, ctx)?;
    let status = recorded.tell(ctx);
    if ctx.json {
        ctx.print_json(&recorded.answer())?;
        if recorded.recording().is_none() {
            recorded.repeat_errors();
        }
    }
    Ok(ExitCode::from(status))
}

impl Args {
    fn request(self) -> Result<Request> {
        let programs = programs(&self.words);
        if programs.is_empty() {
            return Err(Misuse("no program: soloist vm record -- PROGRAM".to_owned()).into());
        }
        let kernel = kernel_of(&self.arch, &self.kernel);
        if kernel.ends_with("-16k") {
            let plain = kernel.trim_end_matches("-16k");
            let why = format!("{kernel}: recordings are of pages of 4 KiB; take {plain}");
            return Err(Misuse(why).into());
        }
        Ok(Request {
            limit: parse_size(&self.limit).map_err(|e| Misuse(format!("--limit: {e}")))?,
            machine: self.machine.unwrap_or_else(|| default_machine(&kernel)),
            kernel,
            module: !self.no_module,
            policy: self.policy,
            sets: self.sets,
            out: self.out,
            threads: self.threads,
            cpus: self.cpus,
            fetches: !self.no_fetch,
            timeout: (self.timeout > 0).then(|| Duration::from_secs(self.timeout)),
            programs,
        })
    }
}

/// By the kernel's name, as `vm run` has it: it may say the architecture alone.
fn default_machine(kernel: &str) -> String {
    match Arch::of_version(kernel) {
        Arch::Arm64 => "raspberry-pi-4".to_owned(),
        Arch::X86_64 => "opteron-6128".to_owned(),
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Answer<'a> {
    guest: &'a GuestOutcome,
    /// None of a program that could not be run.
    recording: Option<&'a Meta>,
}

/// How it went.
struct Recorded {
    outcome: GuestOutcome,
    meta: Meta,
}

fn record(request: &Request, output: Output, ctx: &Ctx) -> Result<Recorded> {
    let root = source_root();
    let machine = named(&request.machine)?;
    let (spec, order) = request
        .prepare(&machine, output, root.as_deref())
        .map_err(misuse)?;
    tell_disk_use(&request.out, request.limit)?;
    let watch = Directory::watch(&request.out, "recorded", ctx);
    let (outcome, meta) = record::record(spec, &order, root.as_deref())?;
    drop(watch);
    Ok(Recorded { outcome, meta })
}

impl Recorded {
    /// The recording, if the foreground program ran.
    fn recording(&self) -> Option<&Meta> {
        record::ran(&self.outcome).then_some(&self.meta)
    }

    fn answer(&self) -> Answer<'_> {
        Answer {
            guest: &self.outcome,
            recording: self.recording(),
        }
    }

    /// Says what the programs said, where it was kept from standard error.
    fn repeat_errors(&self) {
        let said = self.outcome.stderr.as_deref().unwrap_or_default();
        said.lines().for_each(|line| errln!("{line}"));
    }

    /// Says on standard error what is worth knowing; the status to end with.
    fn tell(&self, ctx: &Ctx) -> u8 {
        let status = self.outcome.status();
        if self.recording().is_none() {
            super::report(&self.outcome, ctx);
            return status.max(1);
        }
        if !ctx.json {
            print(&self.meta, self.outcome.wall_s);
        }
        if let Some(why) = &self.meta.streams.failed {
            errln!("soloist: {why}: what came later is not recorded");
            return status.max(1);
        }
        if let Some(why) = &self.outcome.lost {
            errln!("soloist: {why}");
        } else if status != 0 {
            errln!("soloist: the foreground ended with status {status}: that is what was recorded");
        }
        status
    }
}

/// Says how much may be written; refuses more than there is room for.
fn tell_disk_use(out: &Path, limit: u64) -> Result<()> {
    let (free, most) = (record::free_space(out)? / 1_000_000, limit / 1_000_000);
    let out = out.display();
    if most > free {
        let why = format!(
            "--limit: up to {most} MB would go to {out}, where {free} MB are free: lower it, or give another --out"
        );
        return Err(Misuse(why).into());
    }
    errln!("at most {most} MB go to {out}, where {free} MB are free (--limit)");
    Ok(())
}

fn print(meta: &Meta, wall_s: f64) {
    let streams = &meta.streams.streams;
    let lines: u64 = streams.iter().map(|s| s.lines).sum();
    let bytes: u64 = streams.iter().map(|s| s.bytes).sum();
    let looked: u64 = streams.iter().map(|s| s.looked_at).sum();
    let instructions: u64 = streams.iter().map(|s| s.instructions).sum();
    errln!(
        "{} million instructions, {} million accesses looked at, {lines} lines recorded in {:.1} MB; {wall_s:.0} s",
        instructions / 1_000_000,
        looked / 1_000_000,
        bytes as f64 / 1e6,
    );
    if meta.streams.limited {
        errln!("soloist: the limit was reached: the end of the programs is not recorded");
    }
}

/// The words of each program; each separates itself from the next by `--`.
fn programs(words: &[OsString]) -> Vec<Vec<OsString>> {
    words
        .split(|word| word == "--")
        .filter(|w| !w.is_empty())
        .map(<[OsString]>::to_vec)
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use soloist_record::meta::{Streams, LINE};

    fn ended(status: i32) -> Recorded {
        Recorded {
            outcome: GuestOutcome {
                kernel: "6.12".to_owned(),
                verdict: Verdict::Exit(status),
                boot_s: None,
                wall_s: 1.0,
                troubles: Vec::new(),
                excerpt: String::new(),
                log: None,
                stdout: None,
                stderr: Some("nosuch: not found".to_owned()),
                lost: None,
            },
            meta: Meta {
                version: 2,
                machine: "m".to_owned(),
                map: String::new(),
                node_of_cpu: Vec::new(),
                kernel: "6.12".to_owned(),
                policy: "buddy".to_owned(),
                line: LINE,
                caches: Vec::new(),
                programs: Vec::new(),
                streams: Streams::default(),
            },
        }
    }

    /// Alone, as a command of its own.
    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_kernel_says_which_machine_is_recorded_on() {
        use clap::Parser;
        let machine = |words: &str| {
            let words = words.split_whitespace();
            let words = Words::try_parse_from(["record"].into_iter().chain(words));
            words.unwrap().args.request().unwrap().machine
        };
        assert_eq!(machine("-- true"), "opteron-6128");
        assert_eq!(machine("--arch arm64 -- true"), "raspberry-pi-4");
        assert_eq!(machine("-k 6.12-arm64 -- true"), "raspberry-pi-4");
        assert_eq!(machine("-k 6.12-arm64 -m qemu-2node -- true"), "qemu-2node");
    }

    #[test]
    fn json_tells_of_a_program_that_could_not_run_too() {
        let answer = |status| serde_json::json!(ended(status).answer());
        assert_eq!(answer(127)["guest"]["detail"], 127);
        assert_eq!(answer(127)["guest"]["stderr"], "nosuch: not found");
        assert_eq!(answer(127)["recording"], serde_json::Value::Null);
        assert_eq!(answer(3)["recording"]["machine"], "m");
    }
}

//! `soloist vm record`: real programs, placed by the real module, as recordings.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use soloist_core::{AddrMap, ColorSet};
use soloist_machine::{known, Machine};
use soloist_map::ruler::show_list;
use soloist_play::policy::{linux, Policy, Tenant};
use soloist_record::meta::{Cache, Program};
use soloist_record::Meta;
use soloist_vm::record::{self, Order};
use soloist_vm::{kernel, parse_size, source_root, GuestNodes, Outcome, Output, Spec};

use super::directory::Directory;
use soloist_cli::number::whole;
use soloist_cli::{Ctx, Misuse};

/// Record what real programs do to memory, for `soloist sim replay`.
///
/// Boots a stock kernel under QEMU 10, lets the module place the programs' pages,
/// and keeps what leaves the private caches of their processors, with guest
/// physical addresses. The first program is the foreground: recording ends with
/// it. Others follow behind further `--`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Machine whose nodes, map and private caches the guest has.
    #[arg(long, short, default_value = "opteron-6128")]
    machine: String,
    /// Kernel, as for `soloist vm run`.
    #[arg(long, short, default_value = "6.12")]
    kernel: String,
    /// Who gets which pages: buddy (Linux), membind, interleave; by colours `same_bank`,
    /// `diff_bank`, `diff_controller`, camc, mem, llc, mem+llc ...
    #[arg(long, default_value = "buddy")]
    policy: &'static dyn Policy,
    /// Bank sets for each program.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(..))]
    sets: u32,
    /// Directory of the recording; must not hold one.
    #[arg(long, short, default_value = "recording")]
    out: PathBuf,
    /// Stop recording at so many bytes, a MiB more for each processor; the programs run on.
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    limit: String,
    /// Processors of the foreground program.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u32>(1..=32))]
    threads: u32,
    /// Processors of the guest [default: as many as are recorded, or nodes].
    #[arg(long, value_parser = whole::<u32>(1..=64))]
    cpus: Option<u32>,
    /// Leave instruction fetches out.
    #[arg(long)]
    no_fetch: bool,
    /// Load no module; for the placement of Linux alone.
    #[arg(long)]
    no_module: bool,
    /// Give up after so many seconds; 0: never.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = whole::<u64>(..))]
    timeout: u64,
    /// FOREGROUND [ARG...] [-- BACKGROUND [ARG...]]...
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    words: Vec<OsString>,
}

/// Records for another command, with what nobody asked for left as it is by default.
pub fn here(machine: &str, out: &Path, programs: Vec<Vec<OsString>>, ctx: &Ctx) -> Result<u8> {
    let args = Args {
        machine: machine.to_owned(),
        kernel: "6.12".to_owned(),
        policy: &linux::BUDDY,
        sets: 1,
        out: out.to_path_buf(),
        limit: "2G".to_owned(),
        threads: 1,
        cpus: None,
        no_fetch: false,
        no_module: true,
        timeout: 3600,
        words: Vec::new(),
    };
    let programs: Vec<&[OsString]> = programs.iter().map(Vec::as_slice).collect();
    let recorded = record(&args, &programs, ctx)?;
    Ok(recorded.tell(ctx))
}

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    let programs = programs(&args.words);
    if programs.is_empty() {
        return Err(Misuse("no program: soloist vm record -- PROGRAM".to_owned()).into());
    }
    let recorded = record(&args, &programs, ctx)?;
    if ctx.json && record::ran(&recorded.outcome) {
        let (guest, recording) = (&recorded.outcome, &recorded.meta);
        ctx.print_json(&serde_json::json!({ "guest": guest, "recording": recording }))?;
    }
    Ok(ExitCode::from(recorded.tell(ctx)))
}

/// How it went.
struct Recorded {
    outcome: Outcome,
    meta: Meta,
}

fn record(args: &Args, programs: &[&[OsString]], ctx: &Ctx) -> Result<Recorded> {
    if args.out.join(soloist_record::meta::FILE).exists() {
        let out = args.out.display();
        return Err(Misuse(format!("--out: {out} holds a recording already")).into());
    }
    let machine = known::find(&args.machine)?;
    let nodes = nodes(args, programs.len(), &machine)?;
    let order = order(args, programs, (&machine, &nodes))?;
    let spec = spec(args, &machine, nodes, ctx)?;
    tell_disk_use(&args.out, order.limit)?;
    let watch = ctx
        .progress
        .then(|| Directory::watch(&args.out, "recorded"));
    let (outcome, meta) = record::record(spec, &order, source_root().as_deref())?;
    drop(watch);
    Ok(Recorded { outcome, meta })
}

impl Recorded {
    /// Says on standard error what is worth knowing; the status to end with.
    fn tell(&self, ctx: &Ctx) -> u8 {
        let status = self.outcome.status();
        if !record::ran(&self.outcome) {
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
        if status != 0 {
            errln!("soloist: the foreground ended with status {status}: that is what was recorded");
        }
        status
    }
}

/// Says how much may be written; refuses more than there is room for.
fn tell_disk_use(out: &Path, limit: u64) -> Result<()> {
    let mut there = out.to_path_buf();
    while !there.exists() && there.pop() {}
    if there.as_os_str().is_empty() {
        there.push(".");
    }
    let disk = rustix::fs::statvfs(&there).with_context(|| there.display().to_string())?;
    let (free, most) = (
        disk.f_bavail.saturating_mul(disk.f_frsize) / 1_000_000,
        limit / 1_000_000,
    );
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

fn nodes(args: &Args, programs: usize, machine: &Machine) -> Result<GuestNodes> {
    let mut guest = GuestNodes::of(machine)?;
    let needed = args.threads + programs as u32 - 1;
    let nodes = guest.node_memory.len() as u32;
    guest.cpus = args.cpus.unwrap_or(needed.max(nodes));
    if needed > guest.cpus {
        return Err(Misuse(format!("--cpus {}: the programs need {needed}", guest.cpus)).into());
    }
    Ok(guest)
}

/// The words of each program; each separates itself from the next by `--`.
fn programs(words: &[OsString]) -> Vec<&[OsString]> {
    words
        .split(|word| word == "--")
        .filter(|w| !w.is_empty())
        .collect()
}

fn order(
    args: &Args,
    words: &[&[OsString]],
    (machine, guest): (&Machine, &GuestNodes),
) -> Result<Order> {
    let limit = parse_size(&args.limit).map_err(|e| Misuse(format!("--limit: {e}")))?;
    let map = machine.addr_map();
    let mut next = 0;
    let cpus: Vec<Vec<u32>> = (0..words.len())
        .map(|i| {
            let n = if i == 0 { args.threads } else { 1 };
            next += n;
            (next - n..next).collect()
        })
        .collect();
    let tenants: Vec<Tenant> = cpus
        .iter()
        .map(|cpus| Tenant {
            node: guest.home(cpus[0]),
            sets: args.sets,
        })
        .collect();
    let settings = settings(args.policy, &map, &tenants)?;
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let programs = words
        .iter()
        .zip(cpus)
        .zip(settings)
        .map(|((words, cpus), colors)| Program {
            name: Path::new(&words[0])
                .file_name()
                .map_or_else(|| text(&words[0]), |n| n.to_string_lossy().into_owned()),
            argv: words.iter().map(text).collect(),
            cpus,
            colors,
        })
        .collect();
    Ok(Order {
        out: args.out.clone(),
        machine: args.machine.clone(),
        map: machine.map_text(),
        node_of_cpu: (0..guest.cpus).map(|cpu| guest.node_of(cpu)).collect(),
        policy: args.policy.name().to_owned(),
        limit,
        line: machine.cache.as_ref().map_or(64, |c| c.line),
        caches: caches(machine, !args.no_fetch)?,
        programs,
    })
}

/// What places the pages of each program: settings of the module's group, or words
/// of Linux' own for `guest/record.c`.
fn settings(policy: &dyn Policy, map: &AddrMap, tenants: &[Tenant]) -> Result<Vec<Vec<String>>> {
    if policy.is_colored() {
        let colors = policy.colors(map, tenants);
        let colors = colors.map_err(|e| Misuse(e.to_string()))?;
        return Ok(colors.iter().flatten().map(of_group).collect());
    }
    if policy.interleaves() {
        let word = format!("interleave={}", show_list(&map.memory_nodes()));
        return Ok(vec![vec![word]; tenants.len()]);
    }
    let home = tenants.first().map_or(0, |tenant| tenant.node);
    if policy.node(map, home, 0).is_none() && policy.name() != linux::BUDDY.name() {
        return Err(Misuse(format!(
            "--policy {policy}: pages lie as with buddy; record with that one, and \
             `sim replay --recolor {policy}` plays it"
        ))
        .into());
    }
    let word = |node: u32| format!("membind={node}");
    let words = |program| policy.node(map, home, program).map(word);
    Ok((0..tenants.len())
        .map(|program| words(program).into_iter().collect())
        .collect())
}

/// What the module's group is told.
fn of_group(colors: &ColorSet) -> Vec<String> {
    let mut settings = vec!["exhaust=spill".to_owned()];
    if let Some(sets) = colors.sets() {
        settings.push(format!("bank_set={sets}"));
    }
    if let Some(llc) = colors.llc() {
        settings.push(format!("llc_color={llc}"));
    }
    settings
}

/// The machine's private caches: all levels but the last; that of instructions if
/// they are recorded.
pub fn caches(machine: &Machine, fetches: bool) -> Result<Vec<Cache>> {
    let no_caches = || {
        Misuse(format!(
            "{}: no [cache] l1d and level behind it",
            machine.about.name
        ))
    };
    let caches = machine.cache.as_ref().ok_or_else(no_caches)?;
    let line = u64::from(caches.line);
    let named = |name: &str, cache: &soloist_machine::Cache| Cache {
        name: name.to_owned(),
        sets: cache.size.0 / (line * u64::from(cache.ways)).max(1),
        ways: cache.ways as usize,
    };
    let data: Vec<Cache> = [("l1d", &caches.l1d), ("l2", &caches.l2), ("l3", &caches.l3)]
        .into_iter()
        .filter_map(|(name, cache)| Some(named(name, cache.as_ref()?)))
        .collect();
    let [first, private @ .., _last] = data.as_slice() else {
        return Err(no_caches().into());
    };
    let mut list = vec![first.clone()];
    if let (Some(l1i), true) = (&caches.l1i, fetches) {
        list.push(named("l1i", l1i));
    }
    list.extend(private.iter().cloned());
    Ok(list)
}

fn spec(args: &Args, machine: &Machine, nodes: GuestNodes, ctx: &Ctx) -> Result<Spec> {
    let root = source_root();
    let kernel = kernel::find(&args.kernel, root.as_deref())?;
    let module = match args.no_module {
        true if args.policy.is_colored() => {
            return Err(Misuse(
                "--no-module: only Linux' own placement, --policy buddy, membind or interleave"
                    .into(),
            )
            .into())
        }
        true => None,
        false => Some(super::built_module(&kernel, root.as_deref())?),
    };
    let cwd = std::env::current_dir().context("the current directory")?;
    let mut writable = vec![];
    if cwd != Path::new("/") {
        writable.push(cwd.clone());
    }
    Ok(Spec {
        kernel,
        nodes,
        cpu: None,
        // 1 ns an instruction: a slow emulator would give the kernel more timer ticks.
        icount: Some(0),
        append: String::new(),
        qemu_args: Vec::new(),
        map: module.is_some().then(|| machine.map_text()),
        module,
        params: String::new(),
        command: Vec::new(),
        env: super::environment(),
        cwd,
        writable,
        timeout: (args.timeout > 0).then(|| Duration::from_secs(args.timeout)),
        log: None,
        output: if ctx.json { Output::Keep } else { Output::Pass },
        stdin: false,
        recorder: None,
    })
}

//! `soloist compare`: what isolation buys a program, measured.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Context, Result};
use soloist_cli::compare::{conditions, own_co_runner, Args, Condition, Found};
use soloist_cli::{lab, Ctx, Misuse};
use soloist_host::control::Control;
use soloist_host::machine::{guest, named_cpus, Host};
use soloist_host::run::Timing;

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    if args.is_modelled() {
        return lab::hand_over("compare --model");
    }
    args.begin()?;
    if args.html.is_some() || args.picture.is_some() {
        let why = "--html and --picture show what the model says: add --model";
        return Err(Misuse(why.to_owned()).into());
    }
    let Ok(control) = Control::open(&Host::live()) else {
        return Err(Misuse(
            "the module is not loaded: `soloist up` loads it; --model records the command in a \
             virtual machine and plays it in the timing model instead"
                .to_owned(),
        )
        .into());
    };
    control.map().context("no map, so no colours")?;
    let notes = emulated(args.force)?;
    let found = measure(&args, ctx)?;
    let how = match notes.is_empty() {
        true => "measured",
        false => "emulated",
    };
    let found = Found {
        how,
        conditions: &found,
        notes: &notes,
        damage: &[],
    };
    found.finish(&args, ctx)
}

/// What is to be said of an emulated processor, where its times are wanted all the same.
fn emulated(is_forced: bool) -> Result<Vec<String>> {
    let Some(sign) = guest::emulator(&Host::live()) else {
        return Ok(Vec::new());
    };
    let why = format!(
        "this processor is emulated ({sign}): its caches and memory take no time, so the times of \
         runs say nothing of isolation"
    );
    if is_forced {
        return Ok(vec![why]);
    }
    let instead =
        "`soloist compare --model -- CMD` on a workplace models it; --force measures all the same";
    Err(Misuse(format!("{why}; {instead}")).into())
}

/// The processors named, in the order that they are named in, or all that this process may
/// use.
pub(super) fn cpus(list: Option<&str>) -> Result<Vec<u32>> {
    let cpus = named_cpus(&Host::live(), list).map_err(|e| Misuse(e.to_string()))?;
    Ok(cpus)
}

fn measure(args: &Args, ctx: &Ctx) -> Result<Vec<Condition>> {
    let cpus = cpus(args.cpus.as_deref())?;
    let Some((&own, others)) = cpus.split_first() else {
        return Err(Misuse("no CPUs".to_owned()).into());
    };
    if others.len() < args.neighbours as usize {
        let why = format!(
            "{} co-runners need as many CPUs beside the command's own; there are {}: --neighbours, --cpus",
            args.neighbours,
            others.len()
        );
        return Err(Misuse(why).into());
    }
    let co_runners = co_runners(args, others)?;
    let own_path = std::env::current_exe().context("this program's own path")?;
    let mut colored: Vec<OsString> = vec![own_path.into(), "run".into(), "--cpus".into()];
    colored.push(own.to_string().into());
    colored.extend(args.run.split_whitespace().map(OsString::from));
    colored.push("--".into());
    colored.extend(args.command.iter().cloned());
    let n = args.neighbours;
    let timing = Timing {
        warmup: args.warmup,
        runs: args.runs,
        any_status: args.any_status,
    };
    let mut named = Vec::new();
    for (name, words, beside) in [
        ("alone".to_owned(), &args.command, false),
        (format!("beside {n}, Linux"), &args.command, true),
        (format!("beside {n}, Soloist"), &colored, true),
    ] {
        if ctx.progress && !ctx.json {
            errln!("{name}: {} runs", args.runs);
        }
        let beside = if beside { co_runners.as_slice() } else { &[] };
        named.push((name, timing.measure(words, own, beside)?));
    }
    let name = args.command[0].to_string_lossy();
    Ok(conditions(&name, named))
}

fn co_runners(args: &Args, cpus: &[u32]) -> Result<Vec<(Vec<OsString>, u32)>> {
    let mut commands: Vec<Vec<OsString>> = args
        .corun
        .iter()
        .map(|words| words.split_whitespace().map(OsString::from).collect())
        .collect();
    if commands.iter().any(Vec::is_empty) {
        return Err(Misuse("--corun: no command".to_owned()).into());
    }
    if commands.is_empty() {
        commands.push(own_co_runner()?);
    }
    let turns = commands.iter().cycle().cloned();
    Ok(turns
        .zip(cpus.iter().copied())
        .take(args.neighbours as usize)
        .collect())
}

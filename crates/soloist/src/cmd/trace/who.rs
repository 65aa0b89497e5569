//! Whom a trace watches.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::mem;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_rt::tasks::file;
use soloist_rt::time::{Time, US};
use soloist_trace::observer::{cut, Watch};
use soloist_trace::track::Timing;

use super::{not_run, Args};
use crate::{Ctx, Misuse};

/// Shorter ones are no period of a task that sleeps in between.
const SHORTEST: Time = Time(10 * US);

/// Everybody who was named; a command is not there yet.
pub fn watch(args: &Args) -> Result<Watch> {
    if let Some(period) = args.period {
        let deadline = args.deadline.unwrap_or(period);
        if period < SHORTEST {
            return Err(Misuse(format!("--period {period}: {SHORTEST} or more")).into());
        }
        if deadline > period || deadline.0 == 0 {
            return Err(Misuse(format!(
                "--deadline {deadline}: more than 0 and at most the period, {period}"
            ))
            .into());
        }
    }
    let mut watch = Watch::default();
    if let Some(path) = &args.tasks {
        watch.names = names(path)?;
    } else if !args.command.is_empty() {
        watch.children = true;
        watch.except = Some(env!("CARGO_BIN_NAME").to_owned());
    }
    let mut threads = args.pid.clone();
    if let Some(name) = &args.group {
        threads = in_group(name)?;
    }
    for id in threads {
        if !is_there(id) {
            return Err(Misuse(format!("--pid {id}: no thread has this id")).into());
        }
        watch
            .threads
            .insert(id, timing(args).or_else(|| own_timing(id)));
    }
    Ok(watch)
}

/// Who must be seen before anything can be said of deadlines.
pub enum Asked {
    /// Each of these, by name or by id, and whether it has a period.
    Each(Vec<(Who, bool)>),
    /// Somebody; whether there is a period.
    Somebody(bool),
}

/// A task that was asked for.
pub enum Who {
    Name(String),
    Id(u32),
}

/// Those named; of a group's and a command's threads any.
pub fn asked(args: &Args, watch: &Watch) -> Asked {
    if args.tasks.is_some() {
        let names = watch.names.iter();
        let name = |(name, timing): (&String, &Option<Timing>)| {
            (Who::Name(name.clone()), timing.is_some())
        };
        return Asked::Each(names.map(name).collect());
    }
    if args.pid.is_empty() {
        return Asked::Somebody(args.period.is_some());
    }
    let id = |(&id, timing): (&u32, &Option<Timing>)| (Who::Id(id), timing.is_some());
    Asked::Each(watch.threads.iter().map(id).collect())
}

/// What `--period` and `--deadline` say.
pub fn timing(args: &Args) -> Option<Timing> {
    let period = args.period?;
    Some(Timing {
        period_ps: period.0,
        deadline_ps: args.deadline.unwrap_or(period).0,
    })
}

pub fn is_there(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

fn in_group(name: &str) -> Result<Vec<u32>> {
    let tasks = Control::open(&Host::live())?.group(name)?.tasks()?;
    let ids: Vec<u32> = tasks.iter().filter_map(|&t| t.try_into().ok()).collect();
    if ids.is_empty() {
        return Err(Misuse(format!("--group {name}: nobody is in it; start its tasks first (`soloist run --group {name} ...`), or trace them by name with --tasks")).into());
    }
    Ok(ids)
}

fn names(path: &Path) -> Result<BTreeMap<String, Option<Timing>>> {
    let set = file::read(path).map_err(|error| Misuse(error.to_string()))?;
    let mut names = BTreeMap::new();
    for task in &set.tasks {
        let timing = task.release.map(|r| Timing {
            period_ps: r.period.0,
            deadline_ps: r.deadline.0,
        });
        if timing.is_some_and(|t| t.period_ps < SHORTEST.0) {
            return Err(Misuse(format!(
                "{}: {}: a period below {SHORTEST} can't be traced",
                path.display(),
                task.name
            ))
            .into());
        }
        let kept = |other: &&String| cut(other) == cut(&task.name);
        if let Some(other) = names.keys().find(kept) {
            return Err(Misuse(format!(
                "{}: {} and {other} are the same to the kernel, which keeps 15 bytes of a name: rename one",
                path.display(),
                task.name
            ))
            .into());
        }
        names.insert(task.name.clone(), timing);
    }
    Ok(names)
}

/// That of a task under `SCHED_DEADLINE`.
fn own_timing(id: u32) -> Option<Timing> {
    // SAFETY: sched_attr is plain numbers, for which zero is valid; the kernel
    // writes no more than the size that it is told.
    let attr = unsafe {
        let mut attr: libc::sched_attr = mem::zeroed();
        let size = mem::size_of::<libc::sched_attr>();
        let got = libc::syscall(libc::SYS_sched_getattr, id, &raw mut attr, size, 0);
        (got == 0).then_some(attr)?
    };
    let timing = Timing {
        period_ps: attr.sched_period.checked_mul(1000)?,
        deadline_ps: attr.sched_deadline.checked_mul(1000)?,
    };
    let deadline = attr.sched_policy == libc::SCHED_DEADLINE as u32;
    (deadline && timing.period_ps >= SHORTEST.0).then_some(timing)
}

/// Starts the command, if there is one. Its output is beside our table, and on
/// standard error where standard output is JSON.
pub fn start(command: &[OsString], ctx: &Ctx) -> Result<Option<Child>> {
    let Some((program, args)) = command.split_first() else {
        return Ok(None);
    };
    let mut run = Command::new(program);
    run.args(args);
    if ctx.json {
        let stderr = rustix::io::dup(std::io::stderr()).context("standard error")?;
        run.stdout(Stdio::from(stderr));
    }
    match run.spawn() {
        Ok(child) => Ok(Some(child)),
        Err(error) => Err(not_run(program, &error).into()),
    }
}

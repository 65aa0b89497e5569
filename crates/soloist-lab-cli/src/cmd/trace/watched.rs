//! The tasks that the flags of a trace name.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use soloist_cli::{Ctx, Misuse};
use soloist_host::control::Control;
use soloist_host::machine::Host;
use soloist_rt::tasks::file;
use soloist_rt::tasks::Release;
use soloist_trace::coverage::{Expected, ExpectedTask, Identity};
use soloist_trace::track::Timing;
use soloist_trace::watch::{deadline_timing, exists, Watch, SHORTEST};

use super::{not_run, Args};

/// Programs of ours that start a command: they are none of its tasks.
const LAUNCHERS: [&str; 2] = ["soloist", env!("CARGO_BIN_NAME")];

/// The tasks that were named; a command has not started yet.
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
        watch = of_file(path)?;
    } else if !args.command.is_empty() {
        watch.children = true;
        watch.except = LAUNCHERS.map(str::to_owned).into();
    }
    let mut threads = args.pid.clone();
    if let Some(name) = &args.group {
        threads = in_group(name)?;
    }
    for id in threads {
        if !exists(id) {
            return Err(Misuse(format!("--pid {id}: no thread has this id")).into());
        }
        watch
            .threads
            .insert(id, timing(args).or_else(|| deadline_timing(id)));
    }
    Ok(watch)
}

/// The tasks that the record must have: those that were named, or any of a group or a
/// command.
pub fn expected(args: &Args, watch: &Watch) -> Expected {
    if args.tasks.is_none() && args.pid.is_empty() {
        let kept_by_the_kernel = watch.threads.values().any(Option::is_some);
        return Expected::Anybody(args.period.is_some() || kept_by_the_kernel);
    }
    let names = watch.names.iter();
    let names = names.map(|(name, timing)| (Identity::Name(name.clone()), timing));
    let ids = watch.threads.iter();
    let ids = ids.map(|(&id, timing)| (Identity::Id(id), timing));
    let all = names.chain(ids).map(|(identity, timing)| ExpectedTask {
        identity,
        timed: timing.is_some(),
    });
    Expected::Each(all.collect())
}

/// What `--period` and `--deadline` say.
pub fn timing(args: &Args) -> Option<Timing> {
    let period = args.period?;
    Some(Timing {
        period_ps: period.0,
        deadline_ps: args.deadline.unwrap_or(period).0,
    })
}

fn in_group(name: &str) -> Result<Vec<u32>> {
    let tasks = Control::open(&Host::live())?.group(name)?.tasks()?;
    let ids: Vec<u32> = tasks.iter().filter_map(|&t| t.try_into().ok()).collect();
    if ids.is_empty() {
        return Err(Misuse(format!("--group {name}: nobody is in it; start its tasks first (`soloist run --group {name} ...`), or trace them by name with --tasks")).into());
    }
    Ok(ids)
}

fn of_file(path: &Path) -> Result<Watch> {
    let set = file::read(path).map_err(|error| Misuse(error.to_string()))?;
    let tasks = set.tasks.into_iter();
    let watch = Watch::named(tasks.map(|task| (task.name, task.release.map(timing_of))));
    Ok(watch.map_err(|error| Misuse(format!("{}: {error}", path.display())))?)
}

/// A release may be late by the jitter, and the deadline counts from when it should have
/// been: of a job that begins with its wake-up no more than the rest is left.
fn timing_of(release: Release) -> Timing {
    Timing {
        period_ps: release.period.0,
        deadline_ps: release.deadline.0.saturating_sub(release.jitter.0),
    }
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn jitter_is_taken_off_the_deadline() {
        use soloist_core::time::{Time, MS};

        let release = Release {
            period: Time(10 * MS),
            deadline: Time(8 * MS),
            phase: Time(0),
            jitter: Time(3 * MS),
            priority: 0,
        };
        let expected = Timing {
            period_ps: 10 * MS,
            deadline_ps: 5 * MS,
        };
        assert_eq!(timing_of(release), expected);
    }

    /// The kernel tells the periods of SCHED_DEADLINE.
    #[test]
    fn a_group_with_periods_must_have_jobs() {
        let line = Line::try_parse_from(["trace", "--group", "control"]).unwrap();
        let of = |timing| Watch {
            threads: [(1, None), (2, timing)].into(),
            ..Watch::default()
        };
        let timing = Timing {
            period_ps: 9,
            deadline_ps: 9,
        };
        let must = |timing| matches!(expected(&line.args, &of(timing)), Expected::Anybody(true));
        assert!(must(Some(timing)));
        assert!(!must(None));
    }

    #[test]
    fn what_starts_a_command_is_none_of_its_tasks() {
        let line = "trace --period 10ms -- soloist run -- control-loop";
        let line = Line::try_parse_from(line.split(' ')).unwrap();
        let watch = watch(&line.args).unwrap();
        assert!(watch.children);
        for launcher in ["soloist", "soloist-lab"] {
            assert!(
                watch.except.iter().any(|name| name == launcher),
                "{launcher}"
            );
        }
    }
}

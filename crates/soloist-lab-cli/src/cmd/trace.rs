//! `soloist trace`.

mod report;
mod watched;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Child, ExitCode};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use soloist_cli::complete;
use soloist_cli::number::pid;
use soloist_cli::{out, Ctx, Misuse};
use soloist_core::time::Time;
use soloist_host::run::kill_children;
use soloist_trace::observer::Record;
use soloist_trace::recording::Recording;
use soloist_trace::watch::exists;
use soloist_trace::{gantt, perfetto, tracefs};

/// Trace when tasks run, and which deadlines they miss.
///
/// Reads the kernel's scheduler events and the module's stops of CPUs. For this it
/// makes a trace instance and removes it at the end. A wake-up releases a job; the last
/// sleep before the next release completes it (docs/how-to/real-time.md has the limits
/// of this). The trace leaves out a task's first job. It exits with 0 only if it saw a
/// job of every named task, and none missed its deadline. Needs root.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("whom").args(["pid", "group", "tasks", "command"]).required(true).multiple(true))]
#[command(after_help = examples![
    status "0 no deadline was missed, 1 one was, events were lost, or failed; 2 misused";
    "soloist trace --tasks docs/examples/three-tasks.toml --for 10s --svg schedule.svg",
    "soloist trace --pid 1234 --period 10ms --deadline 8ms --perfetto control.json",
    "soloist trace --period 10ms -- soloist run --rt 80 -- ./control-loop",
])]
pub struct Args {
    /// Threads by id; those under SCHED_DEADLINE have their period already.
    #[arg(long, value_name = "P", value_parser = pid::<u32>, value_delimiter = ',', conflicts_with_all = ["group", "tasks", "command"])]
    pid: Vec<u32>,

    /// The threads in this group now.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["tasks", "command"], add = complete::groups())]
    group: Option<String>,

    /// Threads with the names of a task file's tasks (docs/reference/task-files.md),
    /// with its periods and deadlines.
    #[arg(long, value_name = "FILE", conflicts_with = "period")]
    tasks: Option<PathBuf>,

    /// Time between releases, such as 10ms [default: every wake-up is a release,
    /// and nothing is late].
    #[arg(long, value_name = "TIME")]
    period: Option<Time>,

    /// Time from release to deadline [default: the period].
    #[arg(long, value_name = "TIME", requires = "period")]
    deadline: Option<Time>,

    /// Stop after TIME, such as 10s [default: until Ctrl-C, or until the command or
    /// the threads end].
    #[arg(long = "for", value_name = "TIME")]
    length: Option<Time>,

    /// Ignore jobs released before TIME, such as those of a program's start.
    #[arg(long, value_name = "TIME", default_value = "0ns")]
    skip: Time,

    /// Draw a Gantt chart as SVG: eight of the longest period, around the first
    /// miss if there is one.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Write the trace for ui.perfetto.dev (Chrome's trace events, JSON).
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,

    /// Run this command, and trace it and all that it starts (with --tasks, only the
    /// named threads). The command ends with the trace.
    #[arg(trailing_var_arg = true, value_name = "CMD", add = complete::command_line())]
    command: Vec<std::ffi::OsString>,
}

/// Between two looks at a command that was asked to end, and for how long.
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the command.
pub fn run(args: Args, ctx: &Ctx) -> Result<ExitCode> {
    soloist_cli::check_files(&[
        ("--svg", args.svg.as_deref()),
        ("--perfetto", args.perfetto.as_deref()),
    ])?;
    let watch = watched::watch(&args)?;
    let threads: Vec<u32> = watch.threads.keys().copied().collect();
    let expected = watched::expected(&args, &watch);
    let mut recording = Recording::begin(watch)?;
    let mut command = watched::start(&args.command, ctx)?;
    if let (Some(child), None) = (&command, &args.tasks) {
        recording.watch_thread(child.id(), watched::timing(&args));
    }
    let length = args.length.map(|t| Duration::from_nanos(t.0 / 1000));
    let read = recording.run(length, || match &mut command {
        Some(child) => Ok(child.try_wait()?.is_some()),
        None => Ok(!threads.is_empty() && !threads.iter().any(|&id| exists(id))),
    });
    recording.stop()?;
    if let Some(child) = &mut command {
        end(child)?;
    }
    read?;
    let record = recording.finish()?;
    let drawn = write_files(&args, &record);
    Ok(report::print(&record, args.skip.0, &expected, drawn, ctx))
}

/// Ends the command, if it has not; says how it ended, unless well or by us.
fn end(child: &mut Child) -> Result<()> {
    if let Some(status) = child.try_wait()? {
        if !status.success() && !tracefs::ended() {
            errln!("soloist: the command ended with {status}");
        }
        return Ok(());
    }
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    let until = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if Instant::now() >= until {
            // `soloist run` alone would leave its command.
            return Ok(kill_children()?);
        }
        sleep(LOOK);
    }
    Ok(())
}

fn write_files(args: &Args, record: &Record) -> Result<()> {
    if let Some(path) = &args.perfetto {
        let text = perfetto::json(&record.timeline).to_string();
        out::write(path, text)?;
    }
    if let Some(path) = &args.svg {
        let (from, to) = record.excerpt(args.skip.0);
        let drawn = record.timeline.part(from, to);
        let title = format!(
            "{} of a running system, {} after the begin of the record",
            Time(to - from),
            Time(from)
        );
        let svg = gantt::svg(&drawn, &title, 1);
        out::write(path, svg)?;
    }
    Ok(())
}

/// A command that can't be run is a misuse like any other.
fn not_run(program: &std::ffi::OsStr, error: &std::io::Error) -> Misuse {
    let hint = match error.kind() {
        ErrorKind::NotFound => " (is it in PATH?)",
        _ => "",
    };
    Misuse(format!("{}: {error}{hint}", program.to_string_lossy()))
}

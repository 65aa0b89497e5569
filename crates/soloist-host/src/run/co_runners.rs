//! Commands that run beside another, and how long a command takes.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{sched_setaffinity, CpuSet};

use crate::HostError;

/// A co-runner that ends sooner than this in each of its runs loads nothing.
const SHORT: Duration = Duration::from_millis(5);

/// Commands that run on processors of their own until dropped; one that ends is
/// started again by [`CoRunners::keep`].
#[derive(Debug)]
pub struct CoRunners {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    words: Vec<OsString>,
    cpu: u32,
    child: Child,
    since: Instant,
}

/// Writes to each line of so many bytes again and again, until the process is killed:
/// what [`CoRunners`] may run. After so many `passes`, if any, it sleeps instead: an
/// emulator that records it has seen enough then. A loop without calls, in a crate that all profiles
/// optimise: an iterator's would take most of the time, and load the memory little.
pub fn write_forever(bytes: usize, passes: Option<u32>) -> ! {
    let mut memory = vec![0u8; bytes];
    let mut value = 0u8;
    let mut left = passes;
    loop {
        if left == Some(0) {
            std::thread::park();
            continue;
        }
        left = left.map(|passes| passes - 1);
        value = value.wrapping_add(1);
        let mut at = 0;
        while at < bytes {
            memory[at] = value;
            at += 64;
        }
        std::hint::black_box(&mut memory);
    }
}

fn command(words: &[OsString], cpu: u32) -> Result<Command, HostError> {
    let (program, args) = words
        .split_first()
        .ok_or_else(|| HostError::Request("no command to run".to_owned()))?;
    let mut command = Command::new(program);
    command.args(args);
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    // SAFETY: one system call on memory that was copied before the fork.
    unsafe {
        command.pre_exec(move || sched_setaffinity(None::<Pid>, &set).map_err(io::Error::from));
    }
    Ok(command)
}

fn start(words: &[OsString], cpu: u32) -> Result<Child, HostError> {
    let mut command = command(words, cpu)?;
    // SAFETY: prctl touches no memory of ours: a co-runner dies with its parent.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        });
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| HostError::io(words[0].to_string_lossy().into_owned(), e))
}

impl CoRunners {
    /// Starts each command on its processor.
    pub fn start(commands: &[(Vec<OsString>, u32)]) -> Result<Self, HostError> {
        let mut running = Vec::new();
        for (words, cpu) in commands {
            running.push(Running {
                child: start(words, *cpu)?,
                words: words.clone(),
                cpu: *cpu,
                since: Instant::now(),
            });
        }
        Ok(Self { running })
    }

    /// Starts those again that have ended.
    pub fn keep(&mut self) -> Result<(), HostError> {
        for co_runner in &mut self.running {
            let name = co_runner.words[0].to_string_lossy().into_owned();
            let ended = co_runner.child.try_wait();
            let Some(status) = ended.map_err(|e| HostError::io(name.clone(), e))? else {
                continue;
            };
            if !status.success() || co_runner.since.elapsed() < SHORT {
                return Err(HostError::Request(format!(
                    "the co-runner `{name}` ended at once ({status}): it loads nothing"
                )));
            }
            co_runner.child = start(&co_runner.words, co_runner.cpu)?;
            co_runner.since = Instant::now();
        }
        Ok(())
    }
}

impl Drop for CoRunners {
    fn drop(&mut self) {
        for co_runner in &mut self.running {
            // It may have ended by itself.
            let _ = co_runner.child.kill();
            let _ = co_runner.child.wait();
        }
    }
}

/// How often a command is timed.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Runs before those that count.
    pub warmup: u32,
    /// Runs that count.
    pub runs: u32,
    /// A status other than 0 is no error.
    pub any_status: bool,
}

impl Timing {
    /// The seconds of each run of a command on a processor, beside co-runners on theirs.
    pub fn measure(
        &self,
        words: &[OsString],
        cpu: u32,
        co_runners: &[(Vec<OsString>, u32)],
    ) -> Result<Vec<f64>, HostError> {
        let mut company = CoRunners::start(co_runners)?;
        let mut seconds = Vec::new();
        for run in 0..self.warmup + self.runs {
            company.keep()?;
            let took = time(words, cpu, self.any_status)?;
            if run >= self.warmup {
                seconds.push(took);
            }
        }
        Ok(seconds)
    }
}

/// Runs a command on a processor; the seconds that it took. Its output is thrown
/// away. A status other than 0 is an error, unless `any_status`.
fn time(words: &[OsString], cpu: u32, any_status: bool) -> Result<f64, HostError> {
    let name = words
        .first()
        .map_or_else(String::new, |w| w.to_string_lossy().into_owned());
    let mut command = command(words, cpu)?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let from = Instant::now();
    let status = command
        .status()
        .map_err(|e| HostError::io(name.clone(), e))?;
    let seconds = from.elapsed().as_secs_f64();
    if status.success() || (any_status && status.signal().is_none()) {
        return Ok(seconds);
    }
    Err(HostError::Request(format!(
        "`{name}` ended with {status}: a command that fails is not compared (--any-status does)"
    )))
}

/// Runs a command on a processor; what it printed.
pub fn output(words: &[OsString], cpu: u32) -> Result<String, HostError> {
    let name = words
        .first()
        .map_or_else(String::new, |w| w.to_string_lossy().into_owned());
    let mut command = command(words, cpu)?;
    let done = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| HostError::io(name.clone(), e))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(HostError::Request(format!(
        "`{name}` ended with {}: {}",
        done.status,
        said.trim()
    )))
}

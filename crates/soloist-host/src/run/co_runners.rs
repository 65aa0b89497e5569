//! Commands that run beside another, and how long a command takes.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::io::retry_on_intr;
use rustix::process::{waitid, Pid, WaitId, WaitIdOptions};
use rustix::thread::{sched_setaffinity, CpuSet};

use crate::machine::allowed_cpus;
use crate::HostError;

/// A co-runner that ends sooner than this in each of its runs loads nothing.
const SHORT: Duration = Duration::from_millis(5);

/// Commands that run on processors of their own until dropped; one that ends is
/// started again at once.
#[derive(Debug)]
pub struct CoRunners {
    running: Vec<Arc<Mutex<Running>>>,
    /// Each starts one of them again.
    keepers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Running {
    words: Vec<OsString>,
    cpu: u32,
    child: Child,
    since: Instant,
    /// It is not to be started again.
    is_over: bool,
    /// Why it could not be started again.
    failure: Option<HostError>,
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

/// Why a command did not start on a processor.
fn not_started(words: &[OsString], cpu: u32, error: io::Error) -> HostError {
    // The kernel says so of a processor that is offline or outside of the cpuset.
    if error.raw_os_error() == Some(libc::EINVAL) {
        let allowed = format!("; this process is on {}", allowed_cpus());
        return HostError::Request(format!("CPU {cpu} is not online and allowed here{allowed}"));
    }
    let name = words
        .first()
        .map_or_else(String::new, |w| w.to_string_lossy().into_owned());
    HostError::io(name, error)
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
        .map_err(|e| not_started(words, cpu, e))
}

impl Running {
    fn new(words: &[OsString], cpu: u32) -> Result<Self, HostError> {
        Ok(Self {
            child: start(words, cpu)?,
            words: words.to_vec(),
            cpu,
            since: Instant::now(),
            is_over: false,
            failure: None,
        })
    }

    /// Starts it again, since it ended.
    fn again(&mut self) -> Result<(), HostError> {
        let name = self.words[0].to_string_lossy().into_owned();
        let took = self.since.elapsed();
        let status = self.child.wait().map_err(|e| HostError::io(&name, e))?;
        if !status.success() || took < SHORT {
            return Err(HostError::Request(format!(
                "the co-runner `{name}` ended at once ({status}): it loads nothing"
            )));
        }
        self.child = start(&self.words, self.cpu)?;
        self.since = Instant::now();
        Ok(())
    }
}

fn locked(running: &Mutex<Running>) -> MutexGuard<'_, Running> {
    running.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a co-runner again whenever it ends, until it is over or fails.
fn keep(running: &Mutex<Running>) {
    loop {
        let id = Pid::from_child(&locked(running).child);
        // It is reaped under the lock: so its id is no other's where it is killed.
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let _ = retry_on_intr(|| waitid(WaitId::Pid(id), ended));
        let mut running = locked(running);
        if running.is_over {
            return;
        }
        if let Err(error) = running.again() {
            running.failure = Some(error);
            return;
        }
    }
}

impl CoRunners {
    /// Starts each command on its processor.
    pub fn start(commands: &[(Vec<OsString>, u32)]) -> Result<Self, HostError> {
        let mut all = Self {
            running: Vec::new(),
            keepers: Vec::new(),
        };
        for (words, cpu) in commands {
            let running = Arc::new(Mutex::new(Running::new(words, *cpu)?));
            all.running.push(Arc::clone(&running));
            all.keepers.push(thread::spawn(move || keep(&running)));
        }
        Ok(all)
    }

    /// Fails where one of them is gone.
    pub fn check(&self) -> Result<(), HostError> {
        let mut all = self.running.iter();
        let failure = all.find_map(|running| locked(running).failure.take());
        failure.map_or(Ok(()), Err)
    }
}

impl Drop for CoRunners {
    fn drop(&mut self) {
        for running in &self.running {
            let mut running = locked(running);
            running.is_over = true;
            // It may have ended by itself.
            let _ = running.child.kill();
        }
        for keeper in self.keepers.drain(..) {
            let _ = keeper.join();
        }
        for running in &self.running {
            let _ = locked(running).child.wait();
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
        let company = CoRunners::start(co_runners)?;
        let mut seconds = Vec::new();
        for run in 0..self.warmup + self.runs {
            let took = time(words, cpu, self.any_status)?;
            company.check()?;
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
    let status = command.status().map_err(|e| not_started(words, cpu, e))?;
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
        .map_err(|e| not_started(words, cpu, e))?;
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn words(line: &[&str]) -> Vec<OsString> {
        line.iter().map(OsString::from).collect()
    }

    fn own_cpu() -> u32 {
        crate::machine::allowed_cpus().iter().next().unwrap()
    }

    const ONCE: Timing = Timing {
        warmup: 0,
        runs: 1,
        any_status: false,
    };

    #[test]
    fn a_co_runner_that_is_gone_after_the_only_run_is_told() {
        let cpu = own_cpu();
        let beside = [(words(&["false"]), cpu)];
        let measured = ONCE.measure(&words(&["sleep", "0.5"]), cpu, &beside);
        let why = measured.unwrap_err().to_string();
        assert!(why.contains("`false` ended at once"), "{why}");
    }

    #[test]
    fn a_processor_that_is_not_there_is_named() {
        let run = [OsString::from("true")];
        let why = output(&run, 1023).unwrap_err().to_string();
        assert!(why.contains("CPU 1023 is not online and allowed"), "{why}");
    }

    #[test]
    fn a_co_runner_that_ends_is_started_again_during_a_run() {
        let cpu = own_cpu();
        let file = std::env::temp_dir().join(format!("co-runner-{}", std::process::id()));
        let script = format!("echo x >>{}; sleep 0.05", file.display());
        let beside = [(words(&["sh", "-c", &script]), cpu)];
        let measured = ONCE.measure(&words(&["sleep", "1"]), cpu, &beside);
        let starts = std::fs::read_to_string(&file).unwrap().len() / 2;
        std::fs::remove_file(&file).unwrap();
        assert_eq!(measured.unwrap().len(), 1);
        assert!(starts > 2, "{starts} starts");
    }
}

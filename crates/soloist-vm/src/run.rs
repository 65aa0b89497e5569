//! One guest from start to verdict.
//!
//! Four threads of the host wait on it: two copy what the command prints, one
//! reads the verdict port, and the caller's waits for a verdict, the time limit,
//! Ctrl-C or the end of QEMU, whichever comes first. Every way out kills QEMU
//! and the server of the host's files.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use soloist_machine::file::read_bytes;

use crate::console;
use crate::error::{io, Error};
use crate::initramfs::Archive;
use crate::interrupt::{self, Running, Scratch};
use crate::outcome::{GuestOutcome, Verdict};
use crate::qemu::{self, Files, Ports, Process};
use crate::source::source_root;
use crate::spec::{Output, Spec};
use crate::terminal::{end_input, Terminal};

/// How long a guest may take to power off once its command has ended, on a busy host, too.
const POWER_OFF: Duration = Duration::from_secs(120);
/// The same of one that was recorded: the plugin packs and writes the ends of its streams then,
/// and a recording is worth the wait on a slow disk. Ctrl-C ends it.
const RECORDED_OFF: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_millis(50);
/// How often the console is searched for a panic; a kernel may hang in one.
const LOOK: Duration = Duration::from_secs(1);

/// Boots the guest, runs its command and waits for its end.
pub fn run(spec: &Spec) -> Result<GuestOutcome, Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    if let Some(log) = &spec.log {
        make_log(log)?;
    }
    interrupt::catch()?;
    let _running = Running::begin();
    let dir = Scratch::new("soloist-vm-")?;
    let paths = Paths::in_dir(dir.path());
    write_initramfs(spec, &paths.initramfs)?;

    let listener = UnixListener::bind(&paths.host_files).map_err(io("cannot make a socket"))?;
    let _server = qemu::serve_files(listener, &paths.server_log)?;
    let (send, events) = channel();
    let started = Instant::now();
    let heard = Arc::new(Mutex::new(started));
    let (ports, readers, terminal) = open_ports(spec, send, &heard)?;
    let mut guest = qemu::start(spec, ports, &paths.files())?;
    let mut wait = Wait {
        started,
        looked: started,
        limit: spec.timeout,
        silence: spec.silence,
        heard,
        boot: None,
        terminal,
        console: &paths.console,
    };
    let mut verdict = wait.for_verdict(&events, &mut guest);
    if matches!(
        verdict,
        Some(Verdict::Exit(_) | Verdict::Signal(_) | Verdict::Failed(_))
    ) && !ends(&mut guest, power_off(spec))
    {
        let limit = power_off(spec).as_secs();
        verdict = Some(Verdict::Died(format!(
            "its command has ended, but it did not power off in {limit} s"
        )));
    }
    guest.kill();
    let wall_s = started.elapsed().as_secs_f64();
    let [out, err] = readers.map(|reader| reader.join().unwrap_or_default());

    let log = read_lossy(&paths.console);
    let verdict = verdict.unwrap_or_else(|| Verdict::Died(why_died(&log, &paths)));
    let troubles = console::troubles(&log);
    let mut outcome = GuestOutcome {
        kernel: spec.kernel.version.clone(),
        excerpt: String::new(),
        verdict,
        boot_s: wait.boot.map(|boot| boot.as_secs_f64()),
        wall_s,
        troubles,
        log: None,
        stdout: (spec.output == Output::Keep).then_some(out.kept),
        stderr: (spec.output == Output::Keep).then_some(err.kept),
        lost: out.lost.or(err.lost),
    };
    if !outcome.healthy() && outcome.verdict != Verdict::Interrupted {
        outcome.excerpt = match outcome.troubles.first() {
            Some(first) => console::excerpt(&log, first.line, 60),
            None => console::tail(&log, 20),
        };
    }
    outcome.log = keep_log(spec, &outcome, &paths.console)?;
    Ok(outcome)
}

/// Files of one guest, all in one directory that goes with it.
struct Paths {
    initramfs: PathBuf,
    console: PathBuf,
    host_files: PathBuf,
    qemu_log: PathBuf,
    server_log: PathBuf,
}

impl Paths {
    fn in_dir(dir: &Path) -> Self {
        Self {
            initramfs: dir.join("initramfs"),
            console: dir.join("console"),
            host_files: dir.join("host"),
            qemu_log: dir.join("qemu"),
            server_log: dir.join("virtiofsd"),
        }
    }

    fn files(&self) -> Files<'_> {
        Files {
            initramfs: &self.initramfs,
            console: &self.console,
            host_files: &self.host_files,
            qemu_log: &self.qemu_log,
        }
    }
}

fn write_initramfs(spec: &Spec, path: &Path) -> Result<(), Error> {
    let what = || format!("cannot write {}", path.display());
    let mut out = BufWriter::new(File::create(path).map_err(io(what()))?);
    let mut archive = Archive::new(&mut out, &spec.kernel)?;
    archive.strings("argv", &spec.command)?;
    archive.strings("env", &spec.env)?;
    archive.file("cwd", spec.cwd.as_os_str().as_encoded_bytes())?;
    archive.strings("binds", &binds(spec))?;
    if let Some(root) = programs(spec)? {
        archive.file("layer", root.as_os_str().as_encoded_bytes())?;
    }
    if let Some(module) = &spec.module {
        archive.file("soloist.ko", &read_bytes(module)?)?;
        archive.file("params", spec.params.as_bytes())?;
    }
    if spec.output == Output::Terminal {
        archive.file("terminal", b"")?;
    }
    if spec.stdin {
        archive.file("input", b"")?;
    }
    if let Some(map) = &spec.map {
        archive.file("map", map.as_bytes())?;
    }
    archive.finish()?;
    out.flush().map_err(io(what()))
}

/// Pairs of a host path and the guest path that shows it, writable.
fn binds(spec: &Spec) -> Vec<OsString> {
    let modules = PathBuf::from("/lib/modules").join(&spec.kernel.version);
    let mut binds = Vec::new();
    if spec.kernel.modules != modules {
        binds.extend([spec.kernel.modules.clone().into(), modules.into()]);
    }
    let tests = Path::new("build/tests/guest");
    if let Some((root, built)) = built(spec).filter(|(_, built)| built.join("tests").is_dir()) {
        binds.extend([built.join("tests").into(), root.join(tests).into()]);
    }
    for dir in &spec.writable {
        binds.extend([dir.clone().into(), dir.clone().into()]);
    }
    binds
}

/// The source tree, and where what was built for the guest's architecture lies; none: the
/// guest runs the host's own.
fn built(spec: &Spec) -> Option<(PathBuf, PathBuf)> {
    let root = source_root()?;
    let built = spec.kernel.arch().built(&root)?;
    Some((root, built))
}

/// The directory of programs that the guest sees before the host's files.
fn programs(spec: &Spec) -> Result<Option<PathBuf>, Error> {
    match built(spec).map(|(_, built)| built.join("root")) {
        Some(root) if !root.join("done").exists() => Err(Error::NoUserland(root)),
        root => Ok(root),
    }
}

enum Event {
    Line(String),
    Closed,
}

/// One of the command's two outputs, to its end.
#[derive(Default)]
struct Copied {
    kept: String,
    /// Why not all of it could be passed on.
    lost: Option<String>,
}

type Reader = JoinHandle<Copied>;

/// When the command last printed something.
type Heard = Arc<Mutex<Instant>>;

/// Makes the ports; the threads that read the command's output and errors.
/// And the terminal, where the command has one.
fn open_ports(
    spec: &Spec,
    send: Sender<Event>,
    heard: &Heard,
) -> Result<(Ports, [Reader; 2], Option<Terminal>), Error> {
    let output = spec.output;
    let pair = || UnixStream::pair().map_err(io("cannot make a socket"));
    let (out, guest_out) = pair()?;
    let (err, guest_err) = pair()?;
    let (verdict, guest_verdict) = pair()?;
    thread::spawn(move || read_verdict(verdict, &send));
    let (heard_out, heard_err) = (Arc::clone(heard), Arc::clone(heard));
    let readers = [
        thread::spawn(move || copy(out, output, std::io::stdout(), &heard_out)),
        thread::spawn(move || copy(err, output, std::io::stderr(), &heard_err)),
    ];
    let mut list = vec![
        ("verdict", guest_verdict.into()),
        ("out", guest_out.into()),
        ("err", guest_err.into()),
    ];
    let mut terminal = None;
    if spec.output == Output::Terminal {
        let (keys, guest_keys) = pair()?;
        let (size, guest_size) = pair()?;
        terminal = Some(Terminal::new(keys, size)?);
        list.push(("in", guest_keys.into()));
        list.push(("size", guest_size.into()));
    } else if spec.stdin {
        let (input, guest_input) = pair()?;
        thread::spawn(move || pass_input(std::io::stdin().lock(), input));
        list.push(("in", guest_input.into()));
    }
    Ok((Ports { list }, readers, terminal))
}

fn read_verdict(port: UnixStream, send: &Sender<Event>) {
    for line in BufReader::new(port).lines().map_while(Result::ok) {
        if send.send(Event::Line(line)).is_err() {
            return;
        }
    }
    // Nobody listens any more once the guest has been given up.
    let _ = send.send(Event::Closed);
}

/// Copies standard input to the command until either has ended.
fn pass_input(mut from: impl Read, mut port: UnixStream) {
    let _ = std::io::copy(&mut from, &mut port);
    end_input(port);
}

/// Copies what the command prints; a reader that has gone (`| head`) or a full disk does not
/// stop the guest.
fn copy(mut port: impl Read, output: Output, mut to: impl Write, heard: &Heard) -> Copied {
    let (mut kept, mut lost) = (Vec::new(), None);
    let mut buffer = [0; 1 << 16];
    while let Ok(n @ 1..) = port.read(&mut buffer) {
        if let Ok(mut heard) = heard.lock() {
            *heard = Instant::now();
        }
        match output {
            Output::Keep => kept.extend_from_slice(&buffer[..n]),
            // Output behind a gap is of no use.
            Output::Pass if lost.is_some() => {}
            Output::Pass => lost = to.write_all(&buffer[..n]).and_then(|()| to.flush()).err(),
            Output::Terminal => {
                let _ = to.write_all(&buffer[..n]).and_then(|()| to.flush());
            }
        }
    }
    let lost = lost.filter(|e| e.kind() != std::io::ErrorKind::BrokenPipe);
    Copied {
        kept: String::from_utf8_lossy(&kept).into_owned(),
        lost: lost.map(|e| format!("what the command printed could not all be passed on: {e}")),
    }
}

struct Wait<'a> {
    started: Instant,
    looked: Instant,
    limit: Option<Duration>,
    silence: Option<Duration>,
    heard: Heard,
    boot: Option<Duration>,
    terminal: Option<Terminal>,
    console: &'a Path,
}

impl Wait<'_> {
    /// The verdict; none if the guest died without one.
    fn for_verdict(&mut self, events: &Receiver<Event>, guest: &mut Process) -> Option<Verdict> {
        loop {
            match events.recv_timeout(TICK) {
                Ok(Event::Line(line)) => {
                    if let Some(verdict) = self.hear(&line) {
                        return Some(verdict);
                    }
                }
                Ok(Event::Closed) | Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    if interrupt::raised() {
                        return Some(Verdict::Interrupted);
                    }
                    if self.silent() {
                        return Some(Verdict::Silent);
                    }
                    if self
                        .limit
                        .is_some_and(|limit| self.started.elapsed() > limit)
                    {
                        return Some(Verdict::Timeout);
                    }
                    if guest.ended() || self.panicked() {
                        return None;
                    }
                }
            }
        }
    }

    fn silent(&self) -> bool {
        let since = self.heard.lock().map(|heard| heard.elapsed());
        matches!((self.silence, since), (Some(limit), Ok(since)) if since > limit)
    }

    /// Whether the kernel panicked; it has had time to print all of it then.
    fn panicked(&mut self) -> bool {
        if self.looked.elapsed() < LOOK {
            return false;
        }
        self.looked = Instant::now();
        let panicked = read_lossy(self.console).contains("Kernel panic - not syncing");
        if panicked {
            thread::sleep(LOOK);
        }
        panicked
    }

    fn hear(&mut self, line: &str) -> Option<Verdict> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = || rest.parse().unwrap_or(1);
        match word {
            "ready" => {
                self.boot = Some(self.started.elapsed());
                if let Some(terminal) = &mut self.terminal {
                    terminal.lend();
                }
                None
            }
            "exit" => Some(Verdict::Exit(number())),
            "signal" => Some(Verdict::Signal(number())),
            _ => Some(Verdict::Failed(rest.to_owned())),
        }
    }
}

fn power_off(spec: &Spec) -> Duration {
    match spec.recorder {
        Some(_) => RECORDED_OFF,
        None => POWER_OFF,
    }
}

/// Lets the guest power off by itself, so that trouble at its end is seen. Whether it does, or
/// was interrupted.
fn ends(guest: &mut Process, limit: Duration) -> bool {
    let from = Instant::now();
    while !guest.ended() && !interrupt::raised() {
        if from.elapsed() >= limit {
            return false;
        }
        thread::sleep(Duration::from_millis(5));
    }
    true
}

fn why_died(log: &str, paths: &Paths) -> String {
    if let Some(first) = console::troubles(log).first() {
        return first.text.clone();
    }
    let said = read_lossy(&paths.qemu_log);
    match said.trim() {
        "" if log.trim().is_empty() => "QEMU ended before the kernel printed anything".into(),
        "" => "QEMU ended without a verdict".into(),
        said => format!("QEMU: {said}"),
    }
}

fn read_lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// Keeps the console's log where it was asked for, or where a failure needs it:
/// then in a new file, whose name nobody can foresee and put a link in the way.
fn keep_log(spec: &Spec, outcome: &GuestOutcome, console: &Path) -> Result<Option<PathBuf>, Error> {
    let failed = !outcome.healthy() && outcome.verdict != Verdict::Interrupted;
    let to = match &spec.log {
        Some(path) => path.clone(),
        None if failed => new_log()?,
        None => return Ok(None),
    };
    fs::copy(console, &to).map_err(io(format!("cannot write {}", to.display())))?;
    Ok(Some(to))
}

/// Makes the file that was asked for, before the guest: what can't be written is said at once.
fn make_log(path: &Path) -> Result<(), Error> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(io(format!("cannot make {}", dir.display())))?;
    }
    File::create(path).map_err(io(format!("cannot write {}", path.display())))?;
    Ok(())
}

fn new_log() -> Result<PathBuf, Error> {
    let mut name = tempfile::Builder::new();
    name.prefix("soloist-vm-").suffix(".log");
    let (_, path) = name
        .tempfile()
        .and_then(|file| file.keep().map_err(|e| e.error))
        .map_err(io("cannot make a log"))?;
    Ok(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    /// A disk with room for nothing, or a reader that has gone.
    struct Refuses(std::io::ErrorKind);

    impl Write for Refuses {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_guest_that_does_not_power_off_is_seen() {
        let start = |command: &str| {
            let child = std::process::Command::new("sh")
                .args(["-c", command])
                .spawn();
            Process(child.unwrap())
        };
        assert!(ends(&mut start("true"), Duration::from_secs(60)));
        let mut stands = start("exec sleep 60");
        assert!(!ends(&mut stands, Duration::from_millis(20)));
        stands.kill();
    }

    #[test]
    fn output_that_is_lost_is_told_but_not_of_a_reader_that_has_gone() {
        let heard = Arc::new(Mutex::new(Instant::now()));
        let lost = |kind| copy(&b"a word"[..], Output::Pass, Refuses(kind), &heard).lost;
        let full = lost(std::io::ErrorKind::StorageFull).unwrap();
        assert!(full.contains("could not all be passed on"), "{full}");
        assert_eq!(lost(std::io::ErrorKind::BrokenPipe), None);
    }

    #[test]
    fn a_log_that_cannot_be_written_is_said_before_the_guest_runs() {
        let dir = tempfile::tempdir().unwrap();
        let kernel = crate::Kernel {
            version: "6.12.0-arm64".to_owned(),
            image: dir.path().join("nowhere"),
            modules: dir.path().join("nowhere"),
        };
        let spec = Spec {
            log: Some(dir.path().to_path_buf()),
            // What would be said next.
            module: Some(dir.path().join("nowhere")),
            ..Spec::here(kernel, crate::GuestNodes::even(1 << 28, 1, 1)).unwrap()
        };
        let said = run(&spec).unwrap_err();
        let why = said.to_string();
        // Only root gets so far.
        let is_root = !matches!(said, Error::NotRoot);
        let wanted = format!("cannot write {}", dir.path().display());
        assert!(!is_root || why.contains(&wanted), "{why}");
        let log = dir.path().join("new/log");
        make_log(&log).unwrap();
        assert!(log.exists());
    }

    /// Of several ports one comes after another: init must know which to wait for.
    #[test]
    fn init_is_told_of_an_input() {
        let dir = tempfile::tempdir().unwrap();
        let told = |stdin| {
            let kernel = crate::Kernel {
                version: "6.12.0-amd64".to_owned(),
                image: dir.path().join("nowhere"),
                modules: dir.path().join("nowhere"),
            };
            let spec = Spec {
                stdin,
                ..Spec::here(kernel, crate::GuestNodes::even(1 << 28, 1, 1)).unwrap()
            };
            let path = dir.path().join("initramfs");
            write_initramfs(&spec, &path).unwrap();
            // Behind the zeros of its header: init has the same word.
            let name = b"0soloist/input\0";
            let bytes = read_bytes(&path).unwrap();
            bytes.windows(name.len()).any(|part| part == name)
        };
        assert!(told(true) && !told(false));
    }

    #[test]
    fn the_end_of_the_input_does_not_close_its_port() {
        let (ours, mut qemu) = UnixStream::pair().unwrap();
        let passes = thread::spawn(move || pass_input(&b"a word"[..], ours));
        let mut heard = String::new();
        qemu.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "a word");
        let mut port = [rustix::event::PollFd::new(
            &qemu,
            rustix::event::PollFlags::empty(),
        )];
        let wait = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 200_000_000,
        };
        let hung_up = rustix::event::poll(&mut port, Some(&wait)).unwrap();
        assert_eq!(hung_up, 0, "{port:?}");
        drop(qemu);
        passes.join().unwrap();
    }
}

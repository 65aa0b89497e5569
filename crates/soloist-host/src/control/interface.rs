//! The module's control interface (docs/reference/interface.md): a tree of small files
//! under `/sys/kernel/config/soloist`. One write is one command; the sentence
//! in `last_cmd_status` is shown with every refusal.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use soloist_core::{AddrMap, Refusal};
use soloist_machine::did_you_mean;

use crate::machine::Host;
use crate::signals::check_came;
use crate::HostError;

/// Where configfs is mounted.
pub(crate) const CONFIGFS: &str = "/sys/kernel/config";

/// `key value` lines, in the order of the keys.
pub type KeyValues = BTreeMap<String, String>;

/// How long a command waits for another one's change, and how often it looks.
const ALONE_LIMIT: Duration = Duration::from_secs(60);
const ALONE_NAP: Duration = Duration::from_millis(20);

/// No other command of Soloist changes anything while this lives.
#[derive(Debug)]
#[must_use = "what is dropped holds nobody off"]
pub struct Alone {
    _lock: fs::File,
}

/// The control interface of a loaded module.
#[derive(Debug, Clone)]
pub struct Control {
    dir: PathBuf,
    host: Host,
}

impl Control {
    /// The interface on `host`; refused where the module is not loaded.
    pub fn open(host: &Host) -> Result<Self, HostError> {
        let dir = host.path(CONFIGFS).join("soloist");
        if dir.is_dir() {
            let host = host.clone();
            Ok(Self { dir, host })
        } else {
            Err(HostError::NotLoaded)
        }
    }

    /// The map text that was written; `None` before the first.
    pub fn map_text(&self) -> Result<Option<String>, HostError> {
        let text = self.read("map")?;
        Ok((!text.trim().is_empty()).then_some(text))
    }

    /// The loaded map.
    pub fn map(&self) -> Result<AddrMap, HostError> {
        let text = self.map_text()?.ok_or(HostError::NoMap)?;
        self.parse_map(&text)
            .map_err(|refusal| HostError::unexpected(&self.dir.join("map"), refusal.to_string()))
    }

    /// The map of a text, for pages of this kernel's size.
    pub(crate) fn parse_map(&self, text: &str) -> Result<AddrMap, Refusal> {
        AddrMap::parse_for(text, self.host.page_size())
    }

    /// Writes the map.
    pub fn write_map(&self, map: &AddrMap) -> Result<(), HostError> {
        self.write("map", &map.to_string())
    }

    /// What the module offers.
    pub fn features(&self) -> Result<KeyValues, HostError> {
        self.key_values("features")
    }

    /// Counters of the whole system.
    pub fn stats(&self) -> Result<KeyValues, HostError> {
        self.key_values("stats")
    }

    /// The reason of the last refusal, or `ok`.
    pub fn last_status(&self) -> Option<String> {
        let text = fs::read_to_string(self.dir.join("last_cmd_status")).ok()?;
        Some(text.trim().to_owned())
    }

    /// Waits until no other command is in the middle of a change, a minute at most. Two that
    /// are made at once would mix, and what one takes back would undo the other.
    ///
    /// # Errors
    /// Without root, that another command does not end, or that a signal came that is held back.
    pub fn alone(&self) -> Result<Alone, HostError> {
        self.alone_within(ALONE_LIMIT)
    }

    fn alone_within(&self, limit: Duration) -> Result<Alone, HostError> {
        // Root's alone, so that nobody else can hold it for ever.
        let path = self.path("map");
        let lock = fs::File::open(&path).map_err(|e| self.refusal("a change", &path, e))?;
        let begun = Instant::now();
        loop {
            match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Alone { _lock: lock }),
                Err(Errno::WOULDBLOCK) if begun.elapsed() < limit => {
                    check_came()?;
                    sleep(ALONE_NAP);
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(HostError::Request(format!(
                        "another command of Soloist is in the middle of a change: end it (`fuser {}` names it), then try again",
                        path.display()
                    )))
                }
                Err(errno) => return Err(HostError::io(&path, errno.into())),
            }
        }
    }

    /// The machine that it is of.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Path of a file of the interface.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Reads a file of the interface.
    pub(crate) fn read(&self, file: &str) -> Result<String, HostError> {
        String::from_utf8(self.read_bytes(file)?)
            .map_err(|error| HostError::unexpected(&self.path(file), error.to_string()))
    }

    /// As [`Control::read`], for people: what is no UTF-8 is marked.
    pub(crate) fn read_marked(&self, file: &str) -> Result<String, HostError> {
        let bytes = self.read_bytes(file)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn read_bytes(&self, file: &str) -> Result<Vec<u8>, HostError> {
        let path = self.path(file);
        fs::read(&path).map_err(|error| match error.kind() {
            // Only root may read where memory lies (docs/reference/security.md).
            io::ErrorKind::PermissionDenied => HostError::NeedsRoot(format!("reading {file}")),
            _ => HostError::io(path, error),
        })
    }

    /// Reads `key value` lines.
    pub(crate) fn key_values(&self, file: &str) -> Result<KeyValues, HostError> {
        Ok(key_values(&self.read(file)?))
    }

    /// One command: writes `value` to `file` in a single write.
    pub(crate) fn write(&self, file: &str, value: &str) -> Result<(), HostError> {
        let path = self.path(file);
        let done = OpenOptions::new()
            .write(true)
            .truncate(true)
            .open(&path)
            .and_then(|mut f| write_once(&mut f, value));
        done.map_err(|e| self.refusal(&format!("{file} = {}", one_line(value)), &path, e))
    }

    /// Removes a directory of the interface.
    pub(crate) fn rmdir(&self, file: &str) -> Result<(), HostError> {
        let path = self.path(file);
        fs::remove_dir(&path).map_err(|e| self.refusal(&format!("rmdir {file}"), &path, e))
    }

    /// Makes a directory of the interface: `groups/video`.
    pub(crate) fn make(&self, file: &str) -> Result<(), HostError> {
        match file.split_once('/') {
            Some(("groups", name)) => self.mkdir("group", name),
            Some(("rules", name)) => self.mkdir("rule", name),
            _ => Err(HostError::BadName(file.to_owned())),
        }
    }

    pub(crate) fn mkdir(&self, kind: &'static str, name: &str) -> Result<(), HostError> {
        check_name(name)?;
        let file = format!("{kind}s/{name}");
        let path = self.path(&file);
        match fs::create_dir(&path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(HostError::Exists {
                kind,
                name: name.to_owned(),
            }),
            done => done.map_err(|e| self.refusal(&format!("mkdir {file}"), &path, e)),
        }
    }

    pub(crate) fn find(&self, kind: &'static str, name: &str) -> Result<(), HostError> {
        if kind == "group" && is_label(name) {
            return Err(HostError::Implicit(name.to_owned()));
        }
        // By mkdir there may be one of any name.
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        if plain && self.path(&format!("{kind}s/{name}")).is_dir() {
            Ok(())
        } else {
            check_name(name)?;
            let known = self.names(&format!("{kind}s")).unwrap_or_default();
            Err(HostError::NoSuch {
                kind,
                name: name.to_owned(),
                like: did_you_mean(name, known.iter().map(String::as_str)),
            })
        }
    }

    pub(crate) fn names(&self, dir: &str) -> Result<Vec<String>, HostError> {
        let path = self.path(dir);
        let entries = fs::read_dir(&path).map_err(|e| HostError::io(&path, e))?;
        let directories = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()));
        let mut names: Vec<String> = directories
            .map(|entry| entry.file_name().into_string())
            .collect::<Result<_, _>>()
            .map_err(|name| {
                let what = "has a name that is no UTF-8, which Soloist can't take: end its tasks, then rmdir it";
                HostError::Other(format!("{:?} {what}", path.join(name)))
            })?;
        names.sort();
        Ok(names)
    }

    /// What an error of a command means, with the module's words.
    pub(crate) fn refusal(&self, what: &str, path: &Path, error: io::Error) -> HostError {
        let errno = error.raw_os_error().unwrap_or(0);
        if error.kind() == io::ErrorKind::PermissionDenied {
            return HostError::NeedsRoot(what.to_owned());
        }
        // The kernel may say ENOENT too, of an event that a machine lacks.
        if error.kind() == io::ErrorKind::NotFound && !path.exists() {
            return HostError::io(path, error);
        }
        let why = match self.last_status() {
            Some(status) if !status.is_empty() && status != "ok" => status,
            _ => error.to_string(),
        };
        HostError::Refused {
            what: what.to_owned(),
            why,
            errno,
        }
    }
}

/// configfs takes a command per write(2): never in two.
fn write_once(file: &mut fs::File, value: &str) -> io::Result<()> {
    let line = format!("{}\n", value.trim_end_matches('\n'));
    let n = file.write(line.as_bytes())?;
    if n == line.len() {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "only {n} of {} bytes were taken",
            line.len()
        )))
    }
}

/// Reads `key value` lines.
pub(crate) fn key_values(text: &str) -> KeyValues {
    text.lines()
        .filter_map(|line| {
            let (key, value) = line.split_once(char::is_whitespace)?;
            Some((key.to_owned(), value.trim().to_owned()))
        })
        .collect()
}

/// For messages: the first line, shortened.
fn one_line(value: &str) -> String {
    let first = value.lines().next().unwrap_or("");
    match first.char_indices().nth(60) {
        Some((at, _)) => format!("{}...", &first[..at]),
        None if value.lines().count() > 1 => format!("{first} ..."),
        None => first.to_owned(),
    }
}

/// Is it `RULE#NUMBER`, as no group with a directory is called?
pub fn is_label(name: &str) -> bool {
    let number = name.rsplit_once('#').map(|(_, number)| number);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

pub(crate) fn check_name(name: &str) -> Result<(), HostError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    // A command takes a name that begins with `-` for an option.
    let is_hidden = name.starts_with(['.', '-']);
    if name.is_empty() || is_hidden || !name.chars().all(good) || name.len() > 64 {
        return Err(HostError::BadName(name.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::run::HeldSignals;

    fn control() -> (tempfile::TempDir, Control) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sys/kernel/config/soloist");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("map"), "").unwrap();
        let control = Control::open(&Host::at(root.path())).unwrap();
        (root, control)
    }

    #[test]
    fn a_command_does_not_wait_for_ever() {
        let (_root, control) = control();
        let held = control.alone().unwrap();
        let why = control.alone_within(Duration::ZERO).unwrap_err();
        assert!(why.to_string().contains("is in the middle of a change"));
        drop(held);
        assert!(control.alone_within(Duration::ZERO).is_ok());
    }

    /// Who types Ctrl-C does not want to wait for a minute.
    #[test]
    fn a_signal_ends_the_waiting() {
        extern "C" fn nothing(_: libc::c_int) {}
        // SAFETY: the handler does nothing; the signal comes to this thread alone.
        unsafe { libc::signal(libc::SIGHUP, nothing as extern "C" fn(libc::c_int) as usize) };
        let (_root, control) = control();
        let _other = control.alone().unwrap();
        let _held = HeldSignals::hold();
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGHUP) };
        let why = control.alone_within(Duration::from_secs(3)).unwrap_err();
        assert!(why.to_string().contains("a signal ended it"), "{why}");
    }
}

//! The module's control interface (docs/reference/interface.md): a tree of small files
//! under `/sys/kernel/config/soloist`. One write is one command; the sentence
//! in `last_cmd_status` is shown with every refusal.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use soloist_core::AddrMap;
use soloist_machine::did_you_mean;

use crate::control::group::{Group, GroupView};
use crate::control::rule::Rule;
use crate::machine::Host;
use crate::HostError;

/// Where configfs is mounted.
pub(crate) const CONFIGFS: &str = "/sys/kernel/config";

/// `key value` lines, in the order of the keys.
pub type KeyValues = BTreeMap<String, String>;

/// The control interface of a loaded module.
#[derive(Debug, Clone)]
pub struct Control {
    dir: PathBuf,
}

impl Control {
    /// The interface on `host`; refused where the module is not loaded.
    pub fn open(host: &Host) -> Result<Self, HostError> {
        let dir = host.path(CONFIGFS).join("soloist");
        if dir.is_dir() {
            Ok(Self { dir })
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
        AddrMap::parse(&text).map_err(|refusal| HostError::Unexpected {
            path: self.dir.join("map"),
            text: refusal.to_string(),
        })
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

    /// Names of what the machine's firmware translates an address to; empty:
    /// it translates none.
    pub fn firmware_components(&self) -> Result<Vec<String>, HostError> {
        Ok(lines(&self.read("firmware/components")?))
    }

    /// What the firmware says of each address: a value for each component, as
    /// far as it has one; `None` where it does not translate the address.
    pub fn firmware_decode(
        &self,
        addresses: &[u64],
        components: usize,
    ) -> Result<Vec<Option<Vec<Option<u64>>>>, HostError> {
        let mut all = Vec::with_capacity(addresses.len());
        for some in addresses.chunks(addresses_at_once(components)) {
            let words: Vec<String> = some.iter().map(|a| format!("{a:#x}")).collect();
            self.write("firmware/decode", &words.join(" "))?;
            let text = self.read("firmware/decode")?;
            let answers: Option<Vec<_>> = text.lines().map(answer).collect();
            match answers {
                Some(answers) if answers.iter().map(|a| a.0).eq(some.iter().copied()) => {
                    all.extend(answers.into_iter().map(|(_, values)| values));
                }
                _ => return Err(self.not_ours("firmware/decode")),
            }
        }
        Ok(all)
    }

    /// Where places of memory channels lie: of each, a CPU of the channel's
    /// node, its number and an address within it; `None`: not translated.
    pub fn firmware_locate(
        &self,
        places: &[(u32, u32, u64)],
    ) -> Result<Vec<Option<u64>>, HostError> {
        self.ask_places("firmware/locate", places)
    }

    /// Registers of memory controllers of AMD's Zen (UMC): of each, AMD's number
    /// of the node, the channel's and the register; `None`: no answer.
    pub fn firmware_umc(
        &self,
        registers: &[(u32, u32, u64)],
    ) -> Result<Vec<Option<u64>>, HostError> {
        self.ask_places("firmware/umc", registers)
    }

    fn ask_places(
        &self,
        name: &str,
        places: &[(u32, u32, u64)],
    ) -> Result<Vec<Option<u64>>, HostError> {
        let mut all = Vec::with_capacity(places.len());
        for some in places.chunks(16) {
            let words: Vec<String> = some
                .iter()
                .map(|(of, channel, at)| format!("{of}:{channel}:{at:#x}"))
                .collect();
            self.write(name, &words.join(" "))?;
            let text = self.read(name)?;
            let told = |(line, word): (&str, &String)| {
                let (place, told) = line.split_once(' ')?;
                let hex = |told: &str| u64::from_str_radix(told.strip_prefix("0x")?, 16).ok();
                match told {
                    _ if place != word => None,
                    "error" => Some(None),
                    told => hex(told).map(Some),
                }
            };
            let answers: Option<Vec<_>> = text.lines().zip(&words).map(told).collect();
            match answers {
                Some(answers) if answers.len() == some.len() => all.extend(answers),
                _ => return Err(self.not_ours(name)),
            }
        }
        Ok(all)
    }

    fn not_ours(&self, name: &str) -> HostError {
        HostError::Unexpected {
            path: self.path(name),
            text: "not the answers to what was asked: does another program ask too?".into(),
        }
    }

    /// All groups, by name.
    pub fn groups(&self) -> Result<Vec<Group>, HostError> {
        let names = self.names("groups")?;
        Ok(names
            .into_iter()
            .map(|name| Group::new(self.clone(), name))
            .collect())
    }

    /// What `look` sees of each group, by name. One that is removed meanwhile is
    /// passed over; one that is just being made is waited for.
    pub fn each_group<T>(
        &self,
        mut look: impl FnMut(&Group) -> Result<T, HostError>,
    ) -> Result<Vec<T>, HostError> {
        let mut all = Vec::new();
        for group in self.groups()? {
            let mut tries = 20;
            let seen = loop {
                match look(&group) {
                    Err(error) if error.is_not_found() && group.exists() && tries > 0 => {
                        tries -= 1;
                        sleep(Duration::from_millis(1));
                    }
                    seen => break seen,
                }
            };
            match seen {
                Err(_) if !group.exists() => {}
                seen => all.push(seen?),
            }
        }
        Ok(all)
    }

    /// The group `name`.
    pub fn group(&self, name: &str) -> Result<Group, HostError> {
        self.find("group", name)?;
        Ok(Group::new(self.clone(), name.to_owned()))
    }

    /// All that can be read of the group `name`, which may be one that a rule
    /// made: `RULE#NUMBER`.
    pub fn group_view(&self, name: &str) -> Result<GroupView, HostError> {
        if !is_label(name) {
            return self.group(name)?.view();
        }
        // Before there is a map no rule made any.
        let implicit = match self.map() {
            Err(HostError::NoMap) => Vec::new(),
            map => {
                let map = map?;
                let groups = self.implicit_groups(&map)?;
                groups.iter().map(|group| group.view(&map)).collect()
            }
        };
        let like = did_you_mean(name, implicit.iter().map(|view| view.name.as_str()));
        let found = implicit.into_iter().find(|view| view.name == name);
        found.ok_or_else(|| HostError::NoSuch {
            kind: "group",
            name: name.to_owned(),
            like,
        })
    }

    /// Makes the group `name`; it does not colour yet.
    pub fn create_group(&self, name: &str) -> Result<Group, HostError> {
        self.mkdir("group", name)?;
        Ok(Group::new(self.clone(), name.to_owned()))
    }

    /// All rules, by name.
    pub fn rules(&self) -> Result<Vec<Rule>, HostError> {
        let names = self.names("rules")?;
        Ok(names
            .into_iter()
            .map(|name| Rule::new(self.clone(), name))
            .collect())
    }

    /// The rule `name`.
    pub fn rule(&self, name: &str) -> Result<Rule, HostError> {
        self.find("rule", name)?;
        Ok(Rule::new(self.clone(), name.to_owned()))
    }

    /// Makes the rule `name`; it is disabled.
    pub fn create_rule(&self, name: &str) -> Result<Rule, HostError> {
        self.mkdir("rule", name)?;
        Ok(Rule::new(self.clone(), name.to_owned()))
    }

    /// Path of a file of the interface.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Reads a file of the interface.
    pub(crate) fn read(&self, file: &str) -> Result<String, HostError> {
        let path = self.path(file);
        fs::read_to_string(&path).map_err(|error| match error.kind() {
            // What tells where memory lies is root's (docs/reference/security.md).
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

    fn mkdir(&self, kind: &'static str, name: &str) -> Result<(), HostError> {
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

    fn find(&self, kind: &'static str, name: &str) -> Result<(), HostError> {
        if kind == "group" && is_label(name) {
            return Err(HostError::Implicit(name.to_owned()));
        }
        check_name(name)?;
        if self.path(&format!("{kind}s/{name}")).is_dir() {
            Ok(())
        } else {
            let known = self.names(&format!("{kind}s")).unwrap_or_default();
            Err(HostError::NoSuch {
                kind,
                name: name.to_owned(),
                like: did_you_mean(name, known.iter().map(String::as_str)),
            })
        }
    }

    fn names(&self, dir: &str) -> Result<Vec<String>, HostError> {
        let path = self.path(dir);
        let entries = fs::read_dir(&path).map_err(|e| HostError::io(&path, e))?;
        let mut names: Vec<String> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|t| t.is_dir()))
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
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

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// How many addresses the module takes in one write: their answers fit a page.
fn addresses_at_once(components: usize) -> usize {
    (4096 / (20 + 19 * components)).clamp(1, 16)
}

/// An address and its components: numbers, `-` for none, or `error`.
fn answer(line: &str) -> Option<(u64, Option<Vec<Option<u64>>>)> {
    let number = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let mut words = line.split_whitespace();
    let address = number(words.next()?)?;
    let rest: Vec<&str> = words.collect();
    if rest == ["error"] {
        return Some((address, None));
    }
    let values: Option<Vec<Option<u64>>> = rest
        .into_iter()
        .map(|word| match word {
            "-" => Some(None),
            word => number(word).map(Some),
        })
        .collect();
    Some((address, Some(values?)))
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
fn is_label(name: &str) -> bool {
    let number = name.rsplit_once('#').map(|(_, number)| number);
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

pub(crate) fn check_name(name: &str) -> Result<(), HostError> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(good) || name.len() > 64 {
        return Err(HostError::BadName(name.to_owned()));
    }
    Ok(())
}

//! Paths of cgroups (v2): as the kernel names them, `/video.slice`, from what people
//! write, which may be the directory that they see below /sys/fs/cgroup.

use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::machine::host::Host;
use crate::HostError;

/// A mount of cgroup v2.
struct Mount {
    /// The cgroup that it shows, `/` mostly.
    root: PathBuf,
    /// Where.
    point: PathBuf,
}

/// A cgroup that was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// Its path, as in /proc/PID/cgroup.
    pub path: String,
    /// It is not there now; `None`: that can't be seen, for cgroup v2 is not
    /// mounted.
    pub missing: Option<bool>,
}

/// What stands for the cgroup of a group that has everything else.
pub const EVERYTHING_ELSE: &str = "everything-else";

/// Finds the cgroup that `given` names: a path as in /proc/PID/cgroup, or a file path
/// below a mount of cgroup v2, of the cgroup itself or of a file in it.
pub fn find(host: &Host, given: &str) -> Result<Cgroup, HostError> {
    if given == EVERYTHING_ELSE {
        return Ok(Cgroup {
            path: given.to_owned(),
            missing: None,
        });
    }
    let mounts = mounts(host);
    let text = given.trim().trim_start_matches("0::");
    let path = match absolute(host, text) {
        Some(path) => path,
        None => {
            return Err(wrong(
                given,
                "expected a path such as /system.slice/x.service",
            ))
        }
    };
    let as_cgroup = mounts.iter().find_map(|mount| mount.seen(host, &path));
    let followed = fs::canonicalize(host.path(&path.to_string_lossy())).ok();
    let followed = followed.and_then(|real| host.inside(&real));
    let as_file = || {
        let found = |path: &Path| mounts.iter().find_map(|mount| mount.below(host, path));
        found(&path).or_else(|| found(followed.as_deref()?))
    };
    let named = as_cgroup.or_else(as_file);
    let is_old = |path: &Path| old_mounts(host).iter().any(|old| path.starts_with(old));
    if named.is_none() && (is_old(&path) || followed.as_deref().is_some_and(is_old)) {
        return Err(wrong(
            given,
            "a directory of cgroup v1, and groups take in cgroups of v2 alone: name the path \
             that the line `0::` of /proc/PID/cgroup has",
        ));
    }
    let path = named.unwrap_or_else(|| without_file(path));
    if path.parent().is_none() {
        return Err(wrong(given, "the root of all cgroups: name one below it"));
    }
    let seen = mounts.iter().any(|mount| mount.seen(host, &path).is_some());
    Ok(Cgroup {
        path: path.to_string_lossy().into_owned(),
        missing: (!mounts.is_empty()).then_some(!seen),
    })
}

/// Refuses a cgroup that is not there, unless it is to come `later`, or is a unit's,
/// which systemd makes when it starts.
pub fn find_existing(host: &Host, given: &str, later: bool) -> Result<Cgroup, HostError> {
    let cgroup = find(host, given)?;
    match cgroup.missing {
        Some(true) if !later && !is_of_systemd(&cgroup.path) => Err(HostError::Request(format!(
            "there is no cgroup {}: nothing would be in its colours; make it first, correct \
             the path, or say that it comes later",
            cgroup.path
        ))),
        _ => Ok(cgroup),
    }
}

impl Cgroup {
    /// What there is to say of one that is not there.
    pub fn words(&self) -> Option<String> {
        (self.missing == Some(true)).then(|| {
            format!(
                "there is no cgroup {} yet: what runs there is in colour once it is made",
                self.path
            )
        })
    }
}

/// Is it a unit's, or below one?
pub(crate) fn is_of_systemd(path: &str) -> bool {
    let ends = [".slice", ".service", ".scope"];
    path.split('/')
        .any(|name| ends.iter().any(|end| name.ends_with(end)))
}

/// The threads in cgroup `path` and below, but not in `others` or below these.
pub(crate) fn threads_of(host: &Host, path: &str, others: &[String]) -> Vec<i32> {
    let mut tids = Vec::new();
    for mount in mounts(host) {
        if let Some(dir) = mount.dir(host, Path::new(path)) {
            collect(&dir, path, others, &mut tids);
            break;
        }
    }
    tids
}

fn collect(dir: &Path, path: &str, others: &[String], tids: &mut Vec<i32>) {
    // A cgroup may be threaded: then only this file says.
    let text = fs::read_to_string(dir.join("cgroup.threads")).unwrap_or_default();
    tids.extend(
        text.lines()
            .filter_map(|line| line.trim().parse::<i32>().ok()),
    );
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let below = format!("{path}/{}", name.to_string_lossy());
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir && !others.contains(&below) {
            collect(&entry.path(), &below, others, tids);
        }
    }
}

fn wrong(given: &str, why: &str) -> HostError {
    HostError::Request(format!("cgroup {given:?}: {why}"))
}

/// Without `//`, `.`, `..` and the last `/`; a relative path is one from here, if
/// there is such a file.
fn absolute(host: &Host, text: &str) -> Option<PathBuf> {
    let path = match Path::new(text) {
        path if path.is_absolute() => path.to_owned(),
        _ if text.is_empty() => return None,
        path => host.inside(&fs::canonicalize(path).ok()?)?,
    };
    let mut clean = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            _ => {}
        }
    }
    Some(clean)
}

/// `/x/cgroup.procs` is a file in `/x`.
fn without_file(path: PathBuf) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match name.starts_with("cgroup.") {
        true => path.parent().unwrap_or(Path::new("/")).to_owned(),
        false => path,
    }
}

impl Mount {
    /// The directory of cgroup `path`, whether it is there or not.
    fn place(&self, host: &Host, path: &Path) -> Option<PathBuf> {
        let rest = path.strip_prefix(&self.root).ok()?;
        Some(host.path(&self.point.join(rest).to_string_lossy()))
    }

    /// The same if it is there.
    fn dir(&self, host: &Host, path: &Path) -> Option<PathBuf> {
        self.place(host, path).filter(|dir| dir.is_dir())
    }

    /// The cgroup that `path`, of a cgroup or of a file in one, names; `None`: there
    /// is none here.
    fn seen(&self, host: &Host, path: &Path) -> Option<PathBuf> {
        if self.dir(host, path).is_some() {
            return Some(path.to_owned());
        }
        let is_file = self.place(host, path).is_some_and(|file| file.is_file());
        is_file.then(|| path.parent().map(Path::to_owned))?
    }

    /// The cgroup of a file path below the mount.
    fn below(&self, host: &Host, path: &Path) -> Option<PathBuf> {
        let rest = path.strip_prefix(&self.point).ok()?;
        let path = self.root.join(rest);
        Some(self.seen(host, &path).unwrap_or_else(|| without_file(path)))
    }
}

/// Memory that the cgroups of this process, its own and all above, still let it have, what
/// they can give back of files counted in; `None`: none of them has a limit.
pub(crate) fn memory_left(host: &Host) -> Option<u64> {
    let own = host.read("/proc/self/cgroup").ok()?;
    let left = own.lines().filter_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (mounts, files) = match controllers {
            "" => (mounts(host), &V2),
            names if names.split(',').any(|name| name == "memory") => (memory_mounts(host), &V1),
            _ => return None,
        };
        let left = mounts
            .iter()
            .filter_map(|mount| mount.left(host, path, files));
        left.min()
    });
    left.min()
}

/// The files of a cgroup that tell of its memory.
struct MemoryFiles {
    /// Whichever of them is there and has a number.
    limits: &'static [&'static str],
    used: &'static str,
    /// In `memory.stat`: bytes of files that nothing used of late.
    idle: &'static str,
}

const V2: MemoryFiles = MemoryFiles {
    // A task above the lower one is not ended, but stopped again and again, for seconds.
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    idle: "inactive_file ",
};

const V1: MemoryFiles = MemoryFiles {
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    idle: "total_inactive_file ",
};

impl MemoryFiles {
    /// Bytes that the cgroup at `dir` may still use; `None`: it has no limit.
    fn left(&self, dir: &Path) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(dir.join(name)).ok();
        let number = |name: &str| read(name)?.trim().parse::<u64>().ok();
        let limits = self.limits.iter().filter_map(|name| number(name));
        let limit = limits.min()?;
        let stat = read("memory.stat").unwrap_or_default();
        let idle = stat.lines().find_map(|line| line.strip_prefix(self.idle));
        let idle = idle
            .and_then(|bytes| bytes.trim().parse().ok())
            .unwrap_or(0);
        let used = number(self.used)?.saturating_sub(idle);
        Some(limit.saturating_sub(used))
    }
}

impl Mount {
    /// The least that cgroup `path` and those above it, as far as this mount shows them,
    /// leave of memory.
    fn left(&self, host: &Host, path: &str, files: &MemoryFiles) -> Option<u64> {
        let dirs = Path::new(path).ancestors();
        let dirs = dirs.filter_map(|path| self.dir(host, path));
        dirs.filter_map(|dir| files.left(&dir)).min()
    }
}

/// Where the memory controller of cgroup v1 is mounted.
fn memory_mounts(host: &Host) -> Vec<Mount> {
    let text = host.read("/proc/self/mountinfo").unwrap_or_default();
    let is_of_memory = |line: &&str| {
        let options = line.rsplit(' ').next().unwrap_or_default();
        options.split(',').any(|option| option == "memory")
    };
    let of_memory = text.lines().filter(is_of_memory);
    let of_memory: Vec<&str> = of_memory.collect();
    mounts_of(&of_memory.join("\n"), "cgroup")
}

/// Where cgroup v2 is mounted: at the usual place, if nothing tells.
fn mounts(host: &Host) -> Vec<Mount> {
    let mut mounts = match host.read("/proc/self/mountinfo") {
        Ok(text) => mounts_of(&text, "cgroup2"),
        Err(_) => vec![Mount {
            root: "/".into(),
            point: "/sys/fs/cgroup".into(),
        }],
    };
    mounts.retain(|mount| host.path(&mount.point.to_string_lossy()).is_dir());
    mounts
}

/// Where controllers of cgroup v1 are mounted.
fn old_mounts(host: &Host) -> Vec<PathBuf> {
    let text = host.read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = mounts_of(&text, "cgroup");
    mounts.into_iter().map(|mount| mount.point).collect()
}

/// The mounts of file systems of this type, by the text of mountinfo.
fn mounts_of(mountinfo: &str, fs: &str) -> Vec<Mount> {
    let mount = |line: &str| {
        let (front, back) = line.split_once(" - ")?;
        let mut words = front.split(' ').skip(3);
        let (root, point) = (words.next()?, words.next()?);
        (back.split(' ').next()? == fs).then(|| Mount {
            root: PathBuf::from(unescaped(root)),
            point: PathBuf::from(unescaped(point)),
        })
    };
    mountinfo.lines().filter_map(mount).collect()
}

/// A word of mountinfo, in which the kernel writes blanks, ends of lines and backslashes as
/// `\` and three octal digits.
fn unescaped(word: &str) -> String {
    let mut parts = word.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..3).map(|digits| u8::from_str_radix(digits, 8));
        match code {
            Some(Ok(byte)) if byte.is_ascii() => {
                text.push(char::from(byte));
                text.push_str(&part[3..]);
            }
            _ => {
                text.push('\\');
                text.push_str(part);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn machine() -> (tempfile::TempDir, Host) {
        let dir = tempfile::tempdir().unwrap();
        let part = dir.path().join("sys/fs/cgroup/part1/inner");
        fs::create_dir_all(&part).unwrap();
        fs::write(part.join("cgroup.procs"), "").unwrap();
        fs::write(part.join("cpuset.mems"), "").unwrap();
        let host = Host::at(dir.path());
        (dir, host)
    }

    #[test]
    fn what_people_write_names_a_cgroup() {
        let (_dir, host) = machine();
        for (given, path) in [
            ("/part1", "/part1"),
            ("/part1/", "/part1"),
            ("0::/part1", "/part1"),
            ("/sys/fs/cgroup/part1", "/part1"),
            ("/sys/fs/cgroup//part1/./inner/../", "/part1"),
            ("/sys/fs/cgroup/part1/inner/cgroup.procs", "/part1/inner"),
            ("/sys/fs/cgroup/part1/inner/cpuset.mems", "/part1/inner"),
            ("/part1/inner/cgroup.procs", "/part1/inner"),
        ] {
            let found = find(&host, given).unwrap();
            assert_eq!(
                (found.path.as_str(), found.missing),
                (path, Some(false)),
                "{given}"
            );
        }
        for given in [
            "/sys/fs/cgroup/none",
            "/none",
            "/none/cgroup.procs",
            "/none.slice",
        ] {
            let found = find(&host, given).unwrap();
            assert_eq!(found.missing, Some(true), "{given}: {found:?}");
            let refused = find_existing(&host, given, false).is_err();
            assert_eq!(refused, !given.ends_with(".slice"), "{given}");
            assert!(found.words().unwrap().contains("/none"));
            assert!(find_existing(&host, given, true)
                .unwrap()
                .path
                .starts_with("/none"));
        }
        for given in ["", "part1", "/", "/sys/fs/cgroup", "/sys/fs/cgroup/"] {
            assert!(find(&host, given).is_err(), "{given:?}");
        }
    }

    #[test]
    fn a_mount_elsewhere_counts_as_well() {
        let (dir, host) = machine();
        fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        for (name, written) in [
            ("two words", "two\\040words"),
            ("a\tb", "a\\011b"),
            ("a\nb", "a\\012b"),
            ("a\\b", "a\\134b"),
            ("a\\040b", "a\\134040b"),
            ("\u{e9}t\u{e9}", "\u{e9}t\u{e9}"),
        ] {
            fs::create_dir_all(dir.path().join(format!("cg/{name}/x"))).unwrap();
            let info = format!(
                "31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
                 32 23 0:28 /user.slice /cg/{written} rw shared:9 - cgroup2 cgroup2 rw\n"
            );
            fs::write(dir.path().join("proc/self/mountinfo"), info).unwrap();
            let found = find(&host, &format!("/cg/{name}/x/")).unwrap();
            assert_eq!(found.path, "/user.slice/x");
            assert_eq!(found.missing, Some(false), "{name}");
        }
    }

    /// Nothing in it would ever be in colour.
    #[test]
    fn a_cgroup_of_v1_is_refused() {
        let (dir, host) = machine();
        for part in [
            "proc/self",
            "sys/fs/cgroup/memory/box",
            "sys/fs/cgroup/unified/box",
        ] {
            fs::create_dir_all(dir.path().join(part)).unwrap();
        }
        let v1 = "30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                  31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let v2 = "32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        for (info, seen) in [(v1.to_owned(), None), ([v1, v2].concat(), Some(false))] {
            fs::write(dir.path().join("proc/self/mountinfo"), info).unwrap();
            for given in [
                "/sys/fs/cgroup/memory/box",
                "/sys/fs/cgroup/memory/box/cgroup.procs",
                "/sys/fs/cgroup/memory/system.slice/x.service",
            ] {
                let refused = find_existing(&host, given, true).map(|found| found.path);
                let words = refused.unwrap_err().to_string();
                assert!(words.contains("a directory of cgroup v1"), "{words}");
            }
            let found = find(&host, "/box").unwrap();
            assert_eq!((found.path.as_str(), found.missing), ("/box", seen));
        }
    }
}

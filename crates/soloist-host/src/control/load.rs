//! Loads and unloads the module: `soloist up`, `soloist down`.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::mount::{mount, MountFlags};
use serde::Serialize;
use soloist_core::{AddrMap, Left};
use soloist_machine::did_you_mean;

use crate::control::group::Group;
use crate::control::guard::Guard;
use crate::control::interface::{Control, CONFIGFS};
use crate::machine::{built_module, image, module_file, Host, ENROLL, FIRMWARE_MODULE};
use crate::words::counted;
use crate::HostError;

/// How long the kernel may take to load the module, and to let go of it: hooks wait
/// until no task sleeps in them.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Which module to load, and how.
#[derive(Debug, Clone, Default)]
pub struct ModuleChoice {
    /// This file; otherwise an installed one, a built one, or one that is
    /// built now.
    pub file: Option<PathBuf>,
    /// Its parameters: `mmap_abi=1`.
    pub params: Vec<String>,
}

impl ModuleChoice {
    /// The flag that asks for what only loading can do.
    fn asks_for(&self) -> Option<&'static str> {
        match (&self.file, self.params.is_empty()) {
            (Some(_), _) => Some("--module"),
            (None, false) => Some("--param"),
            (None, true) => None,
        }
    }
}

/// What [`load`] did.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// The module file; `None`: it was loaded already.
    pub module: Option<PathBuf>,
    /// It was built just now.
    pub built: bool,
    /// Name of the map that is loaded.
    pub map: Option<String>,
    /// The map was written just now.
    pub map_written: bool,
    /// The colours of the map that this kernel's pages leave, where they are large.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
}

/// Loads the module for the running kernel, mounts configfs and writes `map`.
/// `say` hears of each step that takes time.
pub fn load(
    host: &Host,
    module: &ModuleChoice,
    map: Option<&AddrMap>,
    say: &dyn Fn(&str),
) -> Result<LoadReport, HostError> {
    if !host.is_root() {
        return Err(HostError::NeedsRoot("loading the module".to_owned()));
    }
    let mut report = LoadReport {
        module: None,
        built: false,
        map: None,
        map_written: false,
        left: None,
    };
    if !host.has("/sys/module/soloist") {
        modprobe("configfs");
        let (path, built) = module_file(host, module.file.as_deref(), say)?;
        say(&format!("loading {}", path.display()));
        report.built = built;
        report.module = insert(&path, &module.params)?.then_some(path);
    }
    if let (None, Some(flag)) = (&report.module, module.asks_for()) {
        return Err(HostError::Request(format!(
            "{flag}: the module is loaded already; `soloist down` first"
        )));
    }
    wait_for_other(host);
    mount_configfs(host)?;
    let control = Control::open(host)?;
    write_map(&control, map, &mut report)?;
    report.left = loaded_map(&control)?.as_ref().and_then(Left::of);
    Ok(report)
}

/// Takes every task out of its group, removes groups and rules, unloads.
/// Refused while tasks are in groups, unless `force`d. Whether it was loaded.
pub fn unload(host: &Host, force: bool) -> Result<bool, HostError> {
    if !host.is_root() {
        return Err(HostError::NeedsRoot("unloading the module".to_owned()));
    }
    if !host.has("/sys/module/soloist") {
        return Ok(false);
    }
    let deadline = Instant::now() + TIMEOUT;
    loop {
        // Again each time: a command that waited for its turn may have made a group.
        dismantle(host, force)?;
        let mut modules = [FIRMWARE_NAME, c"soloist"].into_iter();
        match modules.try_for_each(|name| remove(host, name)) {
            Ok(()) => return Ok(true),
            Err((_, errno)) if is_used(errno) && Instant::now() < deadline => {
                sleep(Duration::from_millis(100));
            }
            Err((name, errno)) => {
                return Err(HostError::Other(format!(
                    "the module {} stays loaded: {} (is something open under {CONFIGFS}/soloist, or does another module use it?)",
                    name.to_string_lossy(),
                    io::Error::from(errno)
                )))
            }
        }
    }
}

/// Takes every task out of its group, and removes groups and rules, while no other command
/// changes anything.
fn dismantle(host: &Host, force: bool) -> Result<(), HostError> {
    // Without configfs mounted there is nothing to take down.
    let Ok(control) = Control::open(host) else {
        return Ok(());
    };
    // Until the module is to go: who has a file of its interface open holds it.
    let _alone = control.alone()?;
    let live = live_groups(&control)?;
    if !force && !live.is_empty() {
        return Err(HostError::InUse(live));
    }
    // First: a processor that stands still would be waited for below.
    if let Ok(guard) = Guard::open(&control) {
        let _ = guard.off();
    }
    for rule in control.rules()? {
        rule.remove()?;
    }
    control.each_group(Group::remove)?;
    Ok(())
}

/// The kernel's name for the module of [`FIRMWARE_MODULE`].
const FIRMWARE_NAME: &CStr = c"soloist_firmware";

/// Takes a module away that may not be loaded; its name and the kernel's answer where it stays.
fn remove<'a>(host: &Host, name: &'a CStr) -> Result<(), (&'a CStr, Errno)> {
    // The kernel's modules are none of a made-up machine's.
    if !host.is_live() {
        return Ok(());
    }
    match rustix::system::delete_module(name, libc::O_NONBLOCK) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err((name, errno)),
    }
}

/// Does something use the module that the kernel does not let go?
fn is_used(errno: Errno) -> bool {
    matches!(errno, Errno::AGAIN | Errno::BUSY)
}

/// The module that asks firmware and registers about addresses, for as long as this lives.
#[derive(Debug)]
#[must_use = "what is dropped asks nothing"]
pub struct FirmwareModule {
    ours: bool,
}

impl FirmwareModule {
    /// Loads it, unless somebody has.
    ///
    /// # Errors
    /// Without root, when no such module is built or installed, or when the kernel refuses it:
    /// in words.
    pub fn load(host: &Host) -> Result<Self, HostError> {
        if host.has(&format!("{CONFIGFS}/soloist/firmware")) {
            return Ok(Self { ours: false });
        }
        if !host.is_root() {
            return Err(HostError::NeedsRoot("asking the firmware".to_owned()));
        }
        let release = host.kernel_release();
        let path = built_module(host, &release, FIRMWARE_MODULE).ok_or_else(|| {
            HostError::Other(format!(
                "no {FIRMWARE_MODULE} for kernel {release}, which asks the firmware: it is built and installed beside soloist.ko"
            ))
        })?;
        let ours = insert(&path, &[])?;
        Ok(Self { ours })
    }
}

impl Drop for FirmwareModule {
    fn drop(&mut self) {
        if self.ours {
            // If somebody else uses it meanwhile, `soloist down` takes it away.
            let _ = rustix::system::delete_module(FIRMWARE_NAME, libc::O_NONBLOCK);
        }
    }
}

/// Groups with tasks, the implicit ones too: `video (3 tasks)`.
fn live_groups(control: &Control) -> Result<Vec<String>, HostError> {
    let mut live = Vec::new();
    let mut note = |name: &str, tasks: u64| {
        if tasks > 0 {
            live.push(format!("{name} ({})", counted(tasks, "task")));
        }
    };
    let all = |group: &Group| {
        let tasks = group.hidden_tasks()? + group.tasks()?.len() as u64;
        Ok((group.name().to_owned(), tasks))
    };
    for (name, tasks) in control.each_group(all)? {
        note(&name, tasks);
    }
    if let Ok(map) = control.map() {
        for group in control.implicit_groups(&map)? {
            note(&group.label(), group.tasks.len() as u64);
        }
    }
    Ok(live)
}

fn write_map(
    control: &Control,
    map: Option<&AddrMap>,
    report: &mut LoadReport,
) -> Result<(), HostError> {
    let Some(map) = map else {
        report.map = loaded_map(control)?.map(|map| map.name());
        return Ok(());
    };
    if wants_map(control, map)? {
        control.write_map(map)?;
        report.map_written = true;
    }
    report.map = Some(map.name());
    Ok(())
}

fn loaded_map(control: &Control) -> Result<Option<AddrMap>, HostError> {
    Ok(control.map_text()?.and_then(|t| control.parse_map(&t).ok()))
}

/// Is `map` to be written, since it is not loaded? Refused where another one is in
/// use: that can't change under groups and rules, which are named.
pub fn wants_map(control: &Control, map: &AddrMap) -> Result<bool, HostError> {
    let loaded = match loaded_map(control)? {
        Some(loaded) if loaded != *map => loaded,
        loaded => return Ok(loaded.is_none()),
    };
    let (groups, rules) = (control.groups()?, control.rules()?);
    let names = groups.iter().map(|group| group.name());
    let names = names.chain(rules.iter().map(|rule| rule.name()));
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Ok(true);
    }
    Err(HostError::Other(format!(
        "the map of {} is in use by {}: `soloist down`, then `soloist up --machine {}` again",
        loaded.name(),
        names.join(", "),
        map.name()
    )))
}

/// Loads a module that may be built in or loaded already.
fn modprobe(name: &str) {
    // A failure shows when the control interface is looked for.
    let _ = Command::new("modprobe").arg(name).output();
}

/// Waits as long as another command is loading it: its interface is there at the end.
fn wait_for_other(host: &Host) {
    let deadline = Instant::now() + TIMEOUT;
    let is_coming = || host.text("/sys/module/soloist/initstate").as_deref() == Some("coming");
    while is_coming() && Instant::now() < deadline {
        sleep(Duration::from_millis(10));
    }
}

/// Loads the module at `path`; false: another command was quicker.
fn insert(path: &Path, params: &[String]) -> Result<bool, HostError> {
    let image = image(path)?;
    check_params(&image, params)?;
    let params = CString::new(params.join(" "))
        .map_err(|_| HostError::Request("--param: a NUL in it".to_owned()))?;
    let before = kernel_log();
    let loaded = rustix::system::init_module(&image, &params);
    if let Err(Errno::EXIST) = loaded {
        return Ok(false);
    }
    loaded.map(|()| true).map_err(|e| {
        let why = match (e, kernel_words(&before, &kernel_log())) {
            (Errno::PERM, _) if !may_load_modules(&read("/proc/self/status")) => {
                "this process may load no modules (CAP_SYS_MODULE): load it on the host, outside of the container".to_owned()
            }
            (Errno::PERM, _) if read("/proc/sys/kernel/modules_disabled").trim() == "1" => {
                "this kernel takes no more modules until it is restarted (kernel.modules_disabled is 1)".to_owned()
            }
            (Errno::KEYREJECTED | Errno::NOKEY | Errno::PERM, _) => {
                format!("this kernel takes modules only that are signed by a key that it knows: {ENROLL}")
            }
            (_, Some(words)) => words,
            (Errno::NOEXEC, None) => "it was built for another kernel".to_owned(),
            (e, None) => io::Error::from(e).to_string(),
        };
        HostError::Other(format!("{}: not loaded: {why}", path.display()))
    })
}

/// The kernel takes a module with a parameter that it does not have, and says so
/// in its log alone.
fn check_params(image: &[u8], params: &[String]) -> Result<(), HostError> {
    let entries = image.split(|&byte| byte == 0);
    let known: Vec<&str> = entries
        .filter_map(|entry| entry.strip_prefix(b"parmtype="))
        .filter_map(|entry| std::str::from_utf8(entry).ok()?.split(':').next())
        .collect();
    for param in params {
        let name = param.split('=').next().unwrap_or("");
        // Nothing is known of a file that is no module; the kernel says so.
        if !known.is_empty() && !known.contains(&name) {
            return Err(HostError::Request(format!(
                "--param {param}: the module has no such parameter{}; it has {}",
                did_you_mean(name, known.iter().copied()),
                known.join(", ")
            )));
        }
    }
    Ok(())
}

/// The text of a file of /proc; empty where there is none.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Has the process with this /proc/PID/status CAP_SYS_MODULE? Yes where it does not say.
fn may_load_modules(status: &str) -> bool {
    const CAP_SYS_MODULE: u32 = 16;
    let bits = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_none_or(|bits| bits >> CAP_SYS_MODULE & 1 == 1)
}

/// The module's lines in the kernel log `now` that were not in it `before`. A full log drops
/// its first lines when new ones come.
fn kernel_words(before: &[String], now: &[String]) -> Option<String> {
    let last = before.last();
    let seen = last.and_then(|last| now.iter().rposition(|line| line == last));
    let words: Vec<String> = now[seen.map_or(0, |at| at + 1)..]
        .iter()
        .filter_map(|line| Some(line.split_once("soloist: ")?.1.to_owned()))
        .filter(|words| !words.contains("taint"))
        .collect();
    (!words.is_empty()).then(|| words.join("; "))
}

fn kernel_log() -> Vec<String> {
    let output = Command::new("dmesg").output();
    let text = output.map(|o| o.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().map(str::to_owned).collect()
}

fn mount_configfs(host: &Host) -> Result<(), HostError> {
    if host.has(&format!("{CONFIGFS}/soloist")) {
        return Ok(());
    }
    let dir = host.path(CONFIGFS);
    let mounted = fs::read_to_string("/proc/mounts")
        .is_ok_and(|text| text.lines().any(|l| l.split(' ').nth(1) == Some(CONFIGFS)));
    if mounted {
        return Ok(());
    }
    mount("configfs", &dir, "configfs", MountFlags::empty(), None).map_err(|e| {
        HostError::Other(format!(
            "mounting configfs on {CONFIGFS}: {}",
            io::Error::from(e)
        ))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn words_of_a_log_that_loses_its_first_lines_are_found() {
        let log =
            |lines: &[&str]| -> Vec<String> { lines.iter().map(|l| (*l).to_owned()).collect() };
        let before = log(&["[1] a", "[2] b", "[3] c"]);
        let why = "soloist: 'alloc_pages' is held by another";
        let full = log(&[
            "[3] c",
            "[4] soloist: loading taints kernel",
            &format!("[5] {why}"),
        ]);
        let words = Some("'alloc_pages' is held by another".to_owned());
        assert_eq!(kernel_words(&before, &full), words);
        assert_eq!(kernel_words(&before, &before), None);
        assert_eq!(kernel_words(&[], &full), words);
    }

    #[test]
    fn who_may_load_no_modules_is_known() {
        assert!(may_load_modules("Name:\tsh\nCapEff:\t000001ffffffffff\n"));
        // A container of podman or docker has these capabilities.
        assert!(!may_load_modules("CapEff:\t00000000a80425fb\n"));
        assert!(may_load_modules(""));
    }

    #[test]
    fn a_parameter_that_the_module_lacks_is_refused() {
        let image = b"\x7fELF\0parmtype=mmap_abi:int\0parm=mmap_abi:calls\0parmtype=lack:charp\0";
        let check = |param: &str| check_params(image, &[param.to_owned()]);
        assert!(check("mmap_abi=1").is_ok());
        let refused = check("mmap_api=1").unwrap_err().to_string();
        assert!(refused.contains("did you mean \"mmap_abi\""), "{refused}");
        assert!(check_params(b"no module", &["x=1".to_owned()]).is_ok());
    }
}

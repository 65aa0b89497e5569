//! The module: whether it is built, loaded, and allowed to be.

use std::fs;

use super::Check;
use crate::machine::{built_module, is_signed, source_tree, Build, Host, ENROLL, MODULE};

pub(super) fn module(host: &Host) -> Check {
    let name = "module";
    let release = host.kernel_release();
    if host.has("/sys/module/soloist") {
        return loaded(host, &release);
    }
    match built_module(host, &release, MODULE) {
        Some(path) => Check::ok(
            name,
            format!("built: {}; `soloist up` loads it", path.display()),
        ),
        None if source_tree().is_some() => Check::warn(
            name,
            "not built for this kernel",
            "`soloist up` builds and loads it",
        ),
        None => Check::fail(
            name,
            "neither built nor installed for this kernel",
            "install it by DKMS, or run soloist from its source tree",
        ),
    }
}

/// Is the loaded module the one that the next `soloist up` would load?
fn loaded(host: &Host, release: &str) -> Check {
    let name = "module";
    let running = Build::running(host);
    let Some(path) = built_module(host, release, MODULE) else {
        return Check::ok(name, format!("loaded{running}"));
    };
    match Build::of_file(&path) {
        Some(file) if file.differs(&running) => Check::warn(
            name,
            format!("loaded{running}, but {} is another build{file}", path.display()),
            "`soloist save`, `soloist down`, `soloist up` take the new one; tasks that run stay uncoloured afterwards",
        ),
        _ => Check::ok(name, format!("loaded{running}")),
    }
}

pub(super) fn secure_boot(host: &Host) -> Check {
    let name = "Secure Boot";
    let (on, lockdown) = (secure_boot_is_on(host), lockdown(host));
    let booted = match on {
        Some(true) => "on",
        Some(false) => "off",
        None => NOT_TOLD,
    };
    let locked = lockdown.as_deref().unwrap_or(NOT_TOLD);
    let found = format!("{booted}, lockdown {locked}");
    // A module that is loaded was signed by a key that the kernel knows.
    if host.has("/sys/module/soloist") {
        return Check::ok(name, found);
    }
    match lockdown.as_deref() {
        Some("none") => Check::ok(name, found),
        Some(_) => only_signed(host, name, found),
        None if on == Some(false) => Check::ok(name, found),
        None => Check::warn(
            name,
            found,
            "`mount -t securityfs securityfs /sys/kernel/security` shows whether only signed modules are taken",
        ),
    }
}

/// The kernel takes only modules that are signed by a key that it knows.
fn only_signed(host: &Host, name: &'static str, found: impl Into<String>) -> Check {
    let file = built_module(host, &host.kernel_release(), MODULE);
    match file.is_some_and(|path| is_signed(&path)) {
        true => Check::warn(
            name,
            found,
            format!("the module is signed: it is taken if `mokutil --list-enrolled` shows its key; else {ENROLL}"),
        ),
        false => Check::fail(name, found, format!("only signed modules are taken: {ENROLL}")),
    }
}

/// The answer where a file can't be read.
const NOT_TOLD: &str = "not told";

/// `None`: EFI booted this machine, and its variable can't be read.
fn secure_boot_is_on(host: &Host) -> Option<bool> {
    let efi = "/sys/firmware/efi";
    let variable = format!("{efi}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
    match fs::read(host.path(&variable)) {
        Ok(bytes) => Some(bytes.last() == Some(&1)),
        Err(_) => (!host.has(efi)).then_some(false),
    }
}

/// The kernel's lockdown; `None`: securityfs, which says it, is not mounted.
fn lockdown(host: &Host) -> Option<String> {
    let folder = "/sys/kernel/security";
    match host.text(&format!("{folder}/lockdown")) {
        Some(text) => Some(text.split('[').nth(1)?.split(']').next()?.to_owned()),
        // Where it is mounted and has no such file the kernel was built without.
        None => host
            .has(&format!("{folder}/lsm"))
            .then(|| "none".to_owned()),
    }
}

pub(super) fn signing(host: &Host) -> Check {
    let name = "module signing";
    match host
        .text("/sys/module/module/parameters/sig_enforce")
        .as_deref()
    {
        Some("Y") if host.has("/sys/module/soloist") => Check::ok(name, "enforced"),
        Some("Y") => only_signed(host, name, "enforced"),
        _ => Check::ok(name, "not enforced"),
    }
}

//! The module as a file: an installed one, one that was built in the source tree, or
//! one that is built now.

use std::path::{Path, PathBuf};
use std::process::Command;

use soloist_machine::file::read_bytes;

use crate::machine::host::Host;
use crate::HostError;

/// How a kernel that takes only signed modules gets to know the key that DKMS
/// signs with.
pub(crate) const ENROLL: &str = "`mokutil --import /var/lib/dkms/mok.pub` (DKMS signs what it builds with this machine's key), \
     restart, and choose Enroll MOK on the blue screen; or turn Secure Boot off";

/// The module file to load, and whether it was built just now.
pub(crate) fn module_file(
    host: &Host,
    file: Option<&Path>,
    say: &dyn Fn(&str),
) -> Result<(PathBuf, bool), HostError> {
    if let Some(file) = file {
        return Ok((file.to_owned(), false));
    }
    let release = host.kernel_release();
    if let Some(path) = built_module(host, &release, MODULE) {
        return Ok((path, false));
    }
    let tree = source_tree().ok_or_else(|| {
        HostError::Other(format!(
            "no soloist.ko for kernel {release} and no sources to build it from: install it by DKMS, or name it with --module FILE"
        ))
    })?;
    say(&format!("building soloist.ko for {release}"));
    build(&tree, &release)?;
    built_module(host, &release, MODULE)
        .map(|path| (path, true))
        .ok_or_else(|| HostError::Other("the build left no soloist.ko".to_owned()))
}

/// File names of the module, and of the one that asks firmware and registers.
pub(crate) const MODULE: &str = "soloist.ko";
pub(crate) const FIRMWARE_MODULE: &str = "soloist-firmware.ko";

/// An installed or built module, of this file name, for kernel `release`. One built in the source
/// tree that this program came from goes first: it is the newer.
pub(crate) fn built_module(host: &Host, release: &str, name: &str) -> Option<PathBuf> {
    let built = source_tree().map(|tree| tree.join(format!("build/kernel/{release}/{name}")));
    let installed = ["updates/dkms", "updates", "extra"]
        .into_iter()
        .flat_map(|dir| {
            let path = move |end| format!("/lib/modules/{release}/{dir}/{name}{end}");
            ["", ".xz", ".zst", ".gz"].map(|end| host.path(&path(end)))
        });
    built
        .into_iter()
        .chain(installed)
        .find(|path| path.is_file())
}

/// The bytes of a module file; DKMS may have compressed it.
pub(crate) fn image(path: &Path) -> Result<Vec<u8>, HostError> {
    let tool = match path.extension().and_then(|end| end.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        Some("gz") => "gzip",
        _ => return Ok(read_bytes(path)?),
    };
    let output = Command::new(tool).arg("-dc").arg(path).output();
    match output {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(HostError::Other(format!(
            "{tool}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
        Err(e) => Err(HostError::Other(format!(
            "{} is compressed, and {tool} can't be run: {e}",
            path.display()
        ))),
    }
}

/// Is there a signature in the module file? Whether the kernel knows its key, it alone can tell.
pub(crate) fn is_signed(path: &Path) -> bool {
    image(path).is_ok_and(|bytes| bytes.ends_with(b"~Module signature appended~\n"))
}

/// The source tree: above this program, or as DKMS has it.
pub(crate) fn source_tree() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let is_tree = |dir: &Path| dir.join("kernel/Kbuild").is_file() && dir.join("core").is_dir();
    let above = program.ancestors().find(|dir| is_tree(dir));
    let dkms = PathBuf::from(concat!("/usr/src/soloist-", env!("CARGO_PKG_VERSION")));
    above
        .map(Path::to_owned)
        .or_else(|| Some(dkms).filter(|dir| is_tree(dir)))
}

fn build(tree: &Path, release: &str) -> Result<(), HostError> {
    let output = Command::new("make")
        .arg("-C")
        .arg(tree.join("kernel"))
        .arg(format!("KVER={release}"))
        .output()
        .map_err(|e| HostError::Other(format!("make: {e} (apt install make gcc)")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines[lines.len().saturating_sub(10)..].join("\n  ");
    Err(HostError::Other(format!(
        "building soloist.ko for {release} failed:\n  {tail}"
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::fs;

    use super::*;

    /// DKMS on Debian compresses what it installs.
    #[test]
    fn a_compressed_module_is_found_and_read() {
        let dir = tempfile::tempdir().unwrap();
        let module = dir.path().join("lib/modules/9.9-none/updates/dkms");
        fs::create_dir_all(&module).unwrap();
        fs::write(module.join("soloist.ko"), "a module's bytes").unwrap();
        let done = Command::new("gzip")
            .arg(module.join("soloist.ko"))
            .status()
            .unwrap();
        assert!(done.success());
        let found = built_module(&Host::at(dir.path()), "9.9-none", MODULE).unwrap();
        assert_eq!(found, module.join("soloist.ko.gz"));
        assert_eq!(image(&found).unwrap(), b"a module's bytes");
        fs::write(&found, "not gzip").unwrap();
        let refused = image(&found).unwrap_err().to_string();
        assert!(refused.contains("gzip"), "{refused}");
    }
}

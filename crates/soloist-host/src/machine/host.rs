//! Where the machine's files are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use soloist_core::PageSize;

/// A machine: the running one, or files in a directory.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
    kernel: Option<String>,
}

impl Host {
    /// The running machine; below the directory that the environment variable
    /// `SOLOIST_HOST_ROOT` names, where it is set (for tests).
    pub fn live() -> Self {
        match std::env::var_os("SOLOIST_HOST_ROOT") {
            Some(root) if !root.is_empty() => Self::at(root),
            _ => Self::at("/"),
        }
    }

    /// A made-up machine below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            kernel: None,
        }
    }

    /// Is this the running machine?
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// `path`, which starts with `/`, on this machine.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// A path of the file system as this machine names it; `None`: it is outside.
    pub(crate) fn inside(&self, path: &Path) -> Option<PathBuf> {
        Some(Path::new("/").join(path.strip_prefix(&self.root).ok()?))
    }

    /// The text of a file. It replaces bytes that are no UTF-8: the kernel cuts names of
    /// tasks to 15 bytes, in the middle of a character too.
    pub fn read(&self, path: &str) -> io::Result<String> {
        Ok(text_of(fs::read(self.path(path))?))
    }

    /// The text of a file without the white space around it; `None` where it
    /// cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        Some(self.read(path).ok()?.trim().to_owned())
    }

    /// Is there such a file?
    pub fn has(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// The kernel's release, as `uname -r` prints it.
    pub fn kernel_release(&self) -> String {
        match &self.kernel {
            Some(release) => release.clone(),
            None => self
                .text("/proc/sys/kernel/osrelease")
                .unwrap_or_else(|| "unknown".to_owned()),
        }
    }

    /// The size of this kernel's pages; a made-up machine has pages of 4 KiB.
    pub fn page_size(&self) -> PageSize {
        let bytes = match self.is_live() {
            true => rustix::param::page_size() as u64,
            false => PageSize::K4.bytes(),
        };
        PageSize::from_bytes(bytes).unwrap_or(PageSize::K4)
    }

    /// Are we root here (in effect: may we write the control interface)?
    pub fn is_root(&self) -> bool {
        !self.is_live() || rustix::process::geteuid().is_root()
    }
}

/// `bytes` as text; replaces those that are no UTF-8.
pub(crate) fn text_of(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

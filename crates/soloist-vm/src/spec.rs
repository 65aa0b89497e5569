//! What to boot and what to run there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{io, Error};
use crate::kernel::Kernel;
use crate::nodes::GuestNodes;
use crate::source::source_root;

/// What to boot and what to run there.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The kernel.
    pub kernel: Kernel,
    /// Cpus and memory.
    pub nodes: GuestNodes,
    /// QEMU's `-cpu`; none: the host's under KVM, else all that is emulated.
    pub cpu: Option<String>,
    /// Count instructions: one takes 2^N ns of guest time. Implies emulation.
    pub icount: Option<u8>,
    /// Further words for the kernel's command line.
    pub append: String,
    /// Further arguments for QEMU.
    pub qemu_args: Vec<String>,
    /// The module to load, if any.
    pub module: Option<PathBuf>,
    /// Its parameters, `name=value` words.
    pub params: String,
    /// Text for the module's `map` file, if any.
    pub map: Option<String>,
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The command's environment, `NAME=value`.
    pub env: Vec<OsString>,
    /// The command's working directory; absolute.
    pub cwd: PathBuf,
    /// Host directories that the guest may write to; absolute. All else it
    /// writes is gone when it ends.
    pub writable: Vec<PathBuf>,
    /// When to give up.
    pub timeout: Option<Duration>,
    /// A guest whose command prints nothing for so long is taken for one whose clock stands
    /// still; none: it may be silent.
    pub silence: Option<Duration>,
    /// Where the console's log goes; none: it is dropped unless the guest
    /// failed.
    pub log: Option<PathBuf>,
    /// Where what the command prints goes.
    pub output: Output,
    /// Pass this process's standard input on; else the command's is empty.
    pub stdin: bool,
    /// Record memory accesses, with QEMU 10 and the plugin.
    pub recorder: Option<Recorder>,
}

/// What a command inherits from this process, beside everything named `SOLOIST_*`.
const INHERITED: [&str; 8] = [
    "PATH",
    "HOME",
    "LANG",
    "TERM",
    "SHELL",
    "COLUMNS",
    "NO_COLOR",
    "RUST_BACKTRACE",
];

impl Spec {
    /// A guest without a module whose command is yet to be named. It runs in this process's
    /// directory, which it may write to, with its environment, and prints to its output.
    ///
    /// # Errors
    /// When the current directory cannot be had, or this machine has no programs for the guest.
    pub fn here(kernel: Kernel, nodes: GuestNodes) -> Result<Self, Error> {
        kernel.arch().runs_on(std::env::consts::ARCH)?;
        let cwd = std::env::current_dir().map_err(io("the current directory"))?;
        let mut writable = vec![];
        if cwd != Path::new("/") {
            writable.push(cwd.clone());
        }
        Ok(Self {
            nodes,
            cpu: None,
            icount: None,
            append: String::new(),
            qemu_args: Vec::new(),
            module: None,
            params: String::new(),
            map: None,
            command: Vec::new(),
            env: environment(&kernel),
            cwd,
            writable,
            timeout: None,
            silence: None,
            log: None,
            output: Output::Pass,
            stdin: false,
            recorder: None,
            kernel,
        })
    }
}

/// What a command inherits; the directory of this very program, or of the same for another
/// architecture, is the first on its PATH.
fn environment(kernel: &Kernel) -> Vec<OsString> {
    let inherits = |name: &OsString| {
        let name = name.to_string_lossy();
        INHERITED.contains(&name.as_ref()) || name.starts_with("SOLOIST_")
    };
    let root = source_root().unwrap_or_default();
    let built = kernel.arch().built(&root).map(|built| built.join("bin"));
    let host = || Some(std::env::current_exe().ok()?.parent()?.to_owned());
    let own = built.or_else(host).unwrap_or_else(|| "/usr/bin".into());
    let pair = |(name, value): (OsString, OsString)| {
        let mut pair = name.clone();
        pair.push("=");
        if name == "PATH" {
            pair.push(&own);
            pair.push(":");
        }
        pair.push(value);
        pair
    };
    std::env::vars_os()
        .filter(|(name, _)| inherits(name))
        .map(pair)
        .collect()
}

/// What records, and where it reads its orders.
#[derive(Debug, Clone)]
pub struct Recorder {
    /// QEMU 10 or later.
    pub qemu: PathBuf,
    /// The plugin.
    pub plugin: PathBuf,
    /// Its plan, [`soloist_record::plan::Plan`].
    pub plan: PathBuf,
}

/// Where what the command prints goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// To this process's standard output and standard error, as it comes.
    Pass,
    /// Into what [`crate::run()`] returns.
    Keep,
    /// To this process's terminal, which the command has as its own; `stdin`
    /// is part of that.
    Terminal,
}

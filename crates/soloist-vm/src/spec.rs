//! What to boot and what to run there.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::kernel::Kernel;
use crate::nodes::GuestNodes;

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

//! Boots stock Debian kernels under QEMU with the module loaded.
//!
//! A guest sees the host's root file system, read-only with a tmpfs on top,
//! and runs one command from it: [`Spec`] says what to boot, [`run()`] boots it
//! and returns an [`Outcome`]. What the guest says of itself (`ready`, `exit 0`)
//! comes over a serial port of its own, never from the console; the console is
//! only searched for what a healthy kernel does not print ([`console`]).

mod clock;
pub mod console;
mod initramfs;
mod interrupt;
pub mod kernel;
pub mod nodes;
mod plan;
mod qemu;
pub mod record;
mod run;
mod terminal;

pub use interrupt::Scratch;
pub use kernel::Kernel;
pub use nodes::GuestNodes;
pub use plan::{Plan, Row};
pub use run::{run, Outcome, Output, Recorder, Spec, Verdict};
pub use soloist_core::parse_size;

use std::path::{Path, PathBuf};

/// What can keep a guest from being run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file, directory or program of the host could not be used.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, to what.
        what: String,
        /// The reason.
        source: std::io::Error,
    },
    /// No such kernel here.
    #[error("no kernel '{0}' here (have: {1}); `scripts/kernels {0}` unpacks one from Debian's packages")]
    NoKernel(String, String),
    /// A machine file is wrong, or has no virtual form.
    #[error(transparent)]
    Machine(#[from] soloist_machine::FileError),
    /// A program is missing on the host.
    #[error("{program} is not installed; `scripts/packages vm` installs it from Debian's package {package}")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// Debian's package that has it.
        package: &'static str,
    },
    /// Something that recording needs is not here.
    #[error("{what} is not here; `{advice}` makes it")]
    NoRecorder {
        /// What.
        what: String,
        /// The command that helps.
        advice: &'static str,
    },
    /// The recording could not be written or read.
    #[error(transparent)]
    Recording(#[from] soloist_record::Error),
    /// A terminal was asked for where there is none.
    #[error(
        "standard input or output is no terminal: `soloist vm run --stdin -- CMD` does without one"
    )]
    NoTerminal,
    /// The host's files are shared by a server that must be root.
    #[error("root is needed: the guest is shown the host's files by virtiofsd, which only root may run; try again with sudo")]
    NotRoot,
}

pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.into();
    move |source| Error::Io { what, source }
}

/// Where the source tree is: `SOLOIST_ROOT`, else the first directory above
/// the current one, or above this program, that looks like it.
pub fn source_root() -> Option<PathBuf> {
    let looks_like =
        |dir: &Path| dir.join("scripts/kernels").exists() && dir.join("kernel").is_dir();
    if let Some(root) = std::env::var_os("SOLOIST_ROOT") {
        return Some(root.into());
    }
    let here = std::env::current_dir().ok();
    let exe = std::env::current_exe().ok();
    here.iter()
        .chain(exe.iter())
        .flat_map(|path| path.ancestors())
        .find(|dir| looks_like(dir))
        .map(Path::to_path_buf)
}

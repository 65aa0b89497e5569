//! What can keep a guest from being run.

use std::path::PathBuf;

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
    /// The module was not built for this version of the kernel.
    #[error("no soloist.ko for {0}: `make build` builds it, --module FILE names another, --no-module does without")]
    NoModule(String),
    /// What guests of another architecture run was not built.
    #[error("{0} has no programs for guests of this architecture: `make arm64` makes them")]
    NoUserland(PathBuf),
    /// What was asked for cannot be had.
    #[error("{0}")]
    Refused(String),
    /// A file that was named can't be read, or is wrong, or has no virtual form.
    #[error(transparent)]
    File(#[from] soloist_machine::FileError),
    /// A program is missing on the host.
    #[error("{program} is not installed; `scripts/packages vm` installs it from Debian's package {package}")]
    NoProgram {
        /// The program.
        program: &'static str,
        /// Debian's package that has it.
        package: &'static str,
    },
    /// Something that the source tree makes is not here.
    #[error("{what} is not here; `{advice}` makes it")]
    NotMade {
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

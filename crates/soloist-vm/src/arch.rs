//! What a guest's architecture decides: QEMU's program and machine, the kernel's command
//! line, and whose programs the guest runs.
//!
//! A guest of another architecture than the host's sees Debian's programs of its own
//! before the host's files (`scripts/userland`), and where the source tree has
//! `build/tests/guest` it sees those that were built for it (`make arm64`).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// A processor's architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arch {
    /// QEMU's `pc`.
    X86_64,
    /// QEMU's `virt`, whose memory begins at 1 GiB.
    Arm64,
}

impl Arch {
    /// By the end of a version of Debian's, `6.12.117+deb12-arm64-16k`.
    #[must_use]
    pub fn of_version(version: &str) -> Self {
        let plain = version.strip_suffix("-16k").unwrap_or(version);
        match plain.ends_with("-arm64") {
            true => Self::Arm64,
            false => Self::X86_64,
        }
    }

    /// Refuses a guest that would be shown programs of another architecture: one of x86-64 runs
    /// the `host`'s own, and its init is this program's.
    pub(crate) fn runs_on(self, host: &str) -> Result<(), Error> {
        if self != Self::X86_64 || host == "x86_64" {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "a guest of x86_64 runs this machine's own programs, which are of {host}: take a host \
             of x86_64"
        )))
    }

    /// The first byte of the guest's memory.
    #[must_use]
    pub fn memory_begins(self) -> u64 {
        match self {
            Self::X86_64 => 0,
            Self::Arm64 => 1 << 30,
        }
    }

    /// The machine that a guest is where none is named.
    #[must_use]
    pub fn machine(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-2node",
            Self::Arm64 => "qemu-arm64-2node",
        }
    }

    /// What was built for guests of it below the source tree `root`; none: the host's own.
    #[must_use]
    pub fn built(self, root: &Path) -> Option<PathBuf> {
        match self {
            Self::X86_64 => None,
            Self::Arm64 => Some(root.join("build/arm64")),
        }
    }

    /// The guest's own program `name`: `own`, which was built into this one, or what lies beside
    /// the programs of another architecture.
    pub(crate) fn program(
        self,
        name: &str,
        own: &'static [u8],
        root: Option<&Path>,
    ) -> Result<Cow<'static, [u8]>, Error> {
        let Some(built) = self.built(root.unwrap_or(Path::new(""))) else {
            return Ok(own.into());
        };
        match std::fs::read(built.join(name)) {
            Ok(program) => Ok(program.into()),
            Err(_) => Err(Error::NoUserland(built)),
        }
    }

    /// QEMU's program of version 10 below the source tree `root`.
    pub(crate) fn qemu_of_tree(self, root: Option<&Path>) -> Result<PathBuf, Error> {
        let (name, advice) = match self {
            Self::X86_64 => ("qemu-system-x86_64", "scripts/qemu"),
            Self::Arm64 => ("qemu-system-aarch64", "scripts/qemu arm64"),
        };
        let qemu = root.unwrap_or(Path::new(".")).join("build/qemu").join(name);
        if !qemu.exists() {
            return Err(Error::NotMade {
                what: format!("QEMU 10 ({})", qemu.display()),
                advice,
            });
        }
        Ok(qemu)
    }

    /// Whether the host's own QEMU is good enough for a guest that is not recorded; Debian's
    /// package that has it. Debian 12 has version 7.2. A recording needs version 10: 7.2 tells
    /// its plugins wrong physical addresses where there are several memory backends. So do
    /// guests of arm64: 7.2 forgets only the first of the translations that DC ZVA overwrites
    /// (github.com/CTSRD-CHERI/qemu/pull/241 explains the mistake), so that a page which the
    /// kernel has cleared may go on running the program that it held. 13 programs were started
    /// 40 times, after their pages had been dropped: on Debian's kernel 2 starts ended by a
    /// signal; with version 10, on a board's kernel that cleared pages, none of 60 times 13 did.
    pub(crate) fn qemu_of_host(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::X86_64 => Some(("qemu-system-x86_64", "qemu-system-x86")),
            Self::Arm64 => None,
        }
    }

    /// Words for the kernel that only kernels of this architecture know.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::X86_64 => "console=ttyS0 tsc=reliable no_timer_check",
            Self::Arm64 => "console=ttyAMA0",
        }
    }

    /// The model of the processor that is emulated where none is named. `counted`: its
    /// instructions are counted.
    pub(crate) fn emulated(self, recorded: bool, counted: bool) -> &'static str {
        match self {
            // As processors are: bytes are cleared and copied by one instruction for all.
            Self::X86_64 if counted && !recorded => "max,la57=off",
            // QEMU does that byte by byte. Without the last two, kernel and programs take words:
            // a third less to do for `soloist` in a guest, and an eighth of what the recorder is
            // called for.
            Self::X86_64 => "max,la57=off,-erms,-fsrm",
            // A Raspberry Pi 4's: what the plugin would not follow (SVE, MOPS) it has not, and DC
            // ZVA clears a line.
            Self::Arm64 if recorded => "cortex-a72",
            // Signing pointers as the architecture has it costs half of the time.
            Self::Arm64 => "max,pauth-impdef=on",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn guests_of_x86_64_are_of_the_hosts_programs() {
        assert!(Arch::X86_64.runs_on("x86_64").is_ok());
        assert!(Arch::Arm64.runs_on("x86_64").is_ok());
        assert!(Arch::Arm64.runs_on("aarch64").is_ok());
        let why = Arch::X86_64.runs_on("aarch64").unwrap_err().to_string();
        assert!(
            why.contains("are of aarch64: take a host of x86_64"),
            "{why}"
        );
    }

    #[test]
    fn a_version_says_its_architecture() {
        let of = Arch::of_version;
        assert_eq!(of("6.12.117+deb12-rt-amd64"), Arch::X86_64);
        assert_eq!(of("6.12.117+deb12-rt-arm64"), Arch::Arm64);
        assert_eq!(of("6.12.117+deb12-arm64-16k"), Arch::Arm64);
        assert_eq!(of("6.12.117-soloist-debug"), Arch::X86_64);
    }
}

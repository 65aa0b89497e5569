//! Boots stock Debian kernels under QEMU with the module loaded.
//!
//! A guest sees the host's root file system, read-only with a tmpfs on top,
//! and runs one command from it: [`Spec`] says what to boot, [`run()`] boots it
//! and returns a [`GuestOutcome`]. What the guest says of itself (`ready`, `exit 0`)
//! comes over a serial port of its own, never from the console; the console is
//! only searched for what a healthy kernel does not print ([`console`]).
//! [`record`] runs programs in a guest and keeps what they do to memory.

mod arch;
mod clock;
pub mod console;
mod error;
mod initramfs;
mod interrupt;
pub mod kernel;
pub mod nodes;
mod outcome;
mod plan;
mod qemu;
pub mod record;
mod run;
mod source;
mod spec;
mod terminal;

pub use arch::Arch;
pub use error::Error;
pub use interrupt::Scratch;
pub use kernel::Kernel;
pub use nodes::GuestNodes;
pub use outcome::{GuestOutcome, Verdict};
pub use plan::{Row, TestPlan};
pub use run::run;
pub use soloist_core::parse_size;
pub use source::source_root;
pub use spec::{Output, Recorder, Spec};

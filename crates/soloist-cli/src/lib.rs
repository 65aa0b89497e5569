//! What the command lines `soloist` and `soloist-lab` share: how they parse,
//! print, complete and end, and the commands that both have.
//!
//! Both call themselves `soloist`: people type `soloist lab run`, and
//! `soloist` hands over to `soloist-lab` the commands that it lacks ([`lab`]).
//!
//! Exit status: 0 done, 1 failed, 2 misused. `run` passes on the status of
//! the command that it ran.

#![deny(missing_docs)]
#![deny(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "outln! and errln! do not panic on a closed pipe"
)]

#[macro_use]
pub mod examples;
#[macro_use]
pub mod out;
pub mod compare;
pub mod complete;
pub mod completions;
mod ctx;
pub mod lab;
pub mod machine;
pub mod man;
pub mod number;
mod pages;
mod program;
pub mod progress;
pub mod rules;
mod table;
pub mod weigh;

pub use ctx::{check_files, check_folder, status, Ctx, Misuse};
pub use program::{json_wanted, run, Cli};
pub use table::{behind, table, terminal_width, Table};

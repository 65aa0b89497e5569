//! The machine that a command names.

use soloist_machine::classmap::ClassMap;
use soloist_machine::{known, Machine};

use crate::Misuse;

/// A machine by the name or file that a user typed: none of it is a misuse.
///
/// # Errors
/// When there is no such machine, or its file is wrong.
pub fn named(name: &str) -> Result<Machine, Misuse> {
    known::find(name).map_err(|error| Misuse(error.to_string()))
}

/// A class map by the file that a user typed; `None`: what is typed names a machine.
///
/// # Errors
/// When the file is one, but wrong.
pub fn classes(name: &str) -> Result<Option<ClassMap>, Misuse> {
    known::find_classes(name).map_err(|error| Misuse(error.to_string()))
}

//! All that is printed goes through here. `println!` panics where a pipe was
//! closed or a disk is full; here the first ends the run quietly and the
//! second is an error like any other ([`crate::Ctx::fail`]).

use std::fmt::Arguments;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Prints a line on standard output: `println!` that returns a `Result`.
#[macro_export]
macro_rules! outln {
    () => { $crate::out::put("\n") };
    ($($words:tt)+) => { $crate::out::line(format_args!($($words)+)) };
}

/// Says something on standard error, beside the result.
#[macro_export]
macro_rules! errln {
    ($($words:tt)+) => { $crate::out::say(format_args!($($words)+)) };
}

/// `outln!`.
pub fn line(text: Arguments) -> Result<()> {
    put(&format!("{text}\n"))
}

/// Prints `text` as it is, in one call: a file of configfs takes its text
/// whole.
pub fn put(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    let done = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    done.context("standard output")
}

/// `errln!`.
pub fn say(text: Arguments) {
    // Where that fails there is nowhere left to say so.
    let _ = io::stderr()
        .lock()
        .write_all(format!("{text}\n").as_bytes());
}

/// Writes a file that was asked for. A plain one that is there stays as it was where that
/// fails, unless its folder takes no other.
pub fn write(file: &Path, text: impl AsRef<str>) -> Result<()> {
    // A link stays one.
    let whole = fs::canonicalize(file);
    let target = whole.as_deref().unwrap_or(file);
    let written = match fs::metadata(target) {
        Ok(there) if !there.is_file() => fs::write(target, text.as_ref()),
        _ => match replace(target, text.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                fs::write(target, text.as_ref())
            }
            written => written,
        },
    };
    written.with_context(|| file.display().to_string())
}

/// Writes a file whole: a reader, or a power cut, finds the old one or the new
/// one. What is there and is no plain file, a device say, stays.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    let there = fs::metadata(file).ok();
    if there.as_ref().is_some_and(|there| !there.is_file()) {
        return Err(io::Error::other("is there, and no plain file"));
    }
    let mut new = file.as_os_str().to_owned();
    new.push(".new");
    let new = Path::new(&new);
    let mut out = fs::File::create(new)?;
    let write = || {
        // The new file keeps the permissions of the old one.
        if let Some(there) = there {
            out.set_permissions(there.permissions())?;
        }
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(new, file)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(new);
    })
}

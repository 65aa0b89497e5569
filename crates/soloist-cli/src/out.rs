//! All that is printed goes through here. `println!` panics where a pipe was
//! closed or a disk is full; here the first ends the run quietly and the
//! second is an error like any other ([`crate::Ctx::fail`]).

use std::fmt::Arguments;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::{fchown, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Files that runs which were killed may have left under the names of a new one.
const MOST_LEFT: u32 = 100;

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
/// fails, unless its folder takes no other or the file has a second name.
pub fn write(file: &Path, text: impl AsRef<str>) -> Result<()> {
    let text = text.as_ref();
    let written = match replaceable(file) {
        Some(target) => match put_beside(&target, text) {
            Err(Failed::Place(_)) => fs::write(file, text),
            written => written.map_err(Failed::into),
        },
        None => fs::write(file, text),
    };
    written.with_context(|| file.display().to_string())
}

/// The file that another one may take the place of: where links lead, for a link stays one.
fn replaceable(file: &Path) -> Option<PathBuf> {
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let Ok(there) = fs::symlink_metadata(&target) else {
        return Some(target);
    };
    // One that is only to be read is not to be replaced either.
    let is_plain = there.is_file() && there.nlink() == 1;
    let takes_text = || File::options().write(true).open(&target).is_ok();
    (is_plain && takes_text()).then_some(target)
}

/// Writes a file whole: a reader, or a power cut, finds the old one or the new
/// one. A link stays one, and so does what is no plain file, a device say.
pub fn replace(file: &Path, text: &str) -> io::Result<()> {
    if fs::metadata(file).is_ok_and(|there| !there.is_file()) {
        return Err(io::Error::other("is there, and no plain file"));
    }
    match fs::canonicalize(file) {
        Err(_) if file.is_symlink() => fs::write(file, text),
        target => put_beside(target.as_deref().unwrap_or(file), text).map_err(Failed::into),
    }
}

/// Why a new file did not take the place of another.
enum Failed {
    /// The folder takes no other file, or not in this one's place.
    Place(io::Error),
    /// There is no room for the text, say.
    Text(io::Error),
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Place(error) | Failed::Text(error) => error,
        }
    }
}

/// Writes a new file beside `file`, then gives it the name.
fn put_beside(file: &Path, text: &str) -> Result<(), Failed> {
    let (new, out) = new_beside(file).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failed::Text(error),
        _ => Failed::Place(error),
    })?;
    let put = || {
        // It keeps owner and permissions of the old one.
        if let Ok(there) = fs::metadata(file) {
            own(&out, &there).map_err(Failed::Place)?;
        }
        fill(&out, text).map_err(Failed::Text)?;
        fs::rename(&new, file).map_err(Failed::Place)
    };
    put().inspect_err(|_| {
        let _ = fs::remove_file(&new);
    })
}

/// A file that nobody has, in the folder of `file`.
fn new_beside(file: &Path) -> io::Result<(PathBuf, File)> {
    let named = |turn: u32| {
        let mut name = file.as_os_str().to_owned();
        name.push(format!(".{}-{turn}.new", std::process::id()));
        PathBuf::from(name)
    };
    let mut turn = 0;
    loop {
        let new = named(turn);
        match File::create_new(&new) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && turn < MOST_LEFT => {
                turn += 1;
            }
            made => return Ok((new, made?)),
        }
    }
}

fn own(out: &File, there: &Metadata) -> io::Result<()> {
    let new = out.metadata()?;
    if (new.uid(), new.gid()) != (there.uid(), there.gid()) {
        fchown(out, Some(there.uid()), Some(there.gid()))?;
    }
    out.set_permissions(there.permissions())
}

fn fill(mut out: &File, text: &str) -> io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.sync_all()
}

/// Both were tried, so that neither keeps the other from being done; what could not be written
/// counts first, for a pipe's reader may go early (`| head`).
pub fn both(printed: Result<()>, written: Result<()>) -> Result<()> {
    written.and(printed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder of its own, removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("soloist-out-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        fn of(&self, file: &str) -> PathBuf {
            self.0.join(file)
        }

        fn read(&self, file: &str) -> String {
            fs::read_to_string(self.of(file)).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// A file `map.svg.new` keeps its text, and a link of that name leads to no write.
    #[test]
    fn no_other_file_is_touched() {
        let folder = Folder::new("other");
        fs::write(folder.of("map.svg.new"), "mine").unwrap();
        fs::write(folder.of("victim"), "precious").unwrap();
        symlink(folder.of("victim"), folder.of("a.svg.new")).unwrap();
        for (file, old) in [("map.svg", "old"), ("a.svg", "old")] {
            fs::write(folder.of(file), old).unwrap();
            write(&folder.of(file), "new").unwrap();
            assert_eq!(folder.read(file), "new");
            replace(&folder.of(file), "newer").unwrap();
            assert_eq!(folder.read(file), "newer");
        }
        assert_eq!(folder.read("map.svg.new"), "mine");
        assert_eq!(folder.read("victim"), "precious");
        assert!(folder.of("a.svg").symlink_metadata().unwrap().is_file());
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 5);
    }

    /// Links, to what is not there yet too, and a file's second name stay.
    #[test]
    fn links_stay() {
        let folder = Folder::new("links");
        let replacing = |file: &Path, text: &str| Ok(replace(file, text)?);
        let writing = |file: &Path, text: &str| write(file, text);
        for (name, put) in [
            ("one", &writing as &dyn Fn(&Path, &str) -> Result<()>),
            ("two", &replacing),
        ] {
            let (link, later) = (folder.of(name), format!("{name} later"));
            symlink(&later, &link).unwrap();
            for text in ["new", "newer"] {
                put(&link, text).unwrap();
                assert!(link.is_symlink(), "{name}");
                assert_eq!(folder.read(&later), text);
            }
        }
        fs::write(folder.of("three"), "old").unwrap();
        fs::hard_link(folder.of("three"), folder.of("four")).unwrap();
        write(&folder.of("three"), "new").unwrap();
        assert_eq!(folder.read("four"), "new");
    }

    /// A name for which there is none longer.
    #[test]
    fn a_long_name_is_written_to() {
        let folder = Folder::new("long");
        let name = "x".repeat(253);
        for text in ["new", "newer"] {
            write(&folder.of(&name), text).unwrap();
            assert_eq!(folder.read(&name), text);
        }
    }

    /// As root, which writes to files of others.
    #[test]
    fn a_file_stays_its_owners() {
        let folder = Folder::new("owner");
        fs::write(folder.of("theirs"), "old").unwrap();
        if std::os::unix::fs::chown(folder.of("theirs"), Some(1), Some(1)).is_err() {
            return;
        }
        write(&folder.of("theirs"), "new").unwrap();
        let there = fs::metadata(folder.of("theirs")).unwrap();
        assert_eq!((there.uid(), there.gid()), (1, 1));
        assert_eq!(folder.read("theirs"), "new");
    }
}

//! This process's terminal, lent to a program in the guest: keys go there as
//! they are typed (Ctrl-C too), what it prints comes back, and its window has
//! the size of this one. Enter `~.` leaves a guest that answers no more.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::termios::{isatty, tcgetattr, tcgetwinsize, tcsetattr, OptionalActions, Termios};
use signal_hook::iterator::Signals;

use crate::error::{io, Error};
use crate::interrupt;

/// The terminal; gets its ways back when it is dropped.
pub(crate) struct Terminal {
    before: Termios,
    ports: Option<(UnixStream, UnixStream)>,
    raw: bool,
}

impl Terminal {
    /// Keys shall go to `keys`, the window's size to `size`; nothing happens
    /// before [`Terminal::lend`].
    pub(crate) fn new(keys: UnixStream, size: UnixStream) -> Result<Self, Error> {
        if !isatty(std::io::stdin()) || !isatty(std::io::stdout()) {
            return Err(Error::NoTerminal);
        }
        let before = tcgetattr(std::io::stdin())
            .map_err(|e| io("cannot read the terminal's settings")(e.into()))?;
        Ok(Self {
            before,
            ports: Some((keys, size)),
            raw: false,
        })
    }

    /// From now on it is the guest's.
    pub(crate) fn lend(&mut self) {
        let Some((keys, size)) = self.ports.take() else {
            return;
        };
        let mut raw = self.before.clone();
        raw.make_raw();
        // Without it the guest still gets whole lines.
        self.raw = tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).is_ok();
        thread::spawn(move || pass_size(size));
        thread::spawn(move || pass_keys(keys));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.raw {
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Drain, &self.before);
        }
    }
}

/// Tells the window's size, now and whenever it changes: `ROWS COLUMNS` lines.
fn pass_size(mut port: UnixStream) {
    let mut tell = || {
        let size = tcgetwinsize(std::io::stdout()).ok();
        // In one write: the guest takes what it reads for whole lines.
        let line = size.map(|size| format!("{} {}\n", size.ws_row, size.ws_col));
        line.is_some_and(|line| port.write_all(line.as_bytes()).is_ok())
    };
    if !tell() {
        return;
    }
    if let Ok(mut changes) = Signals::new([libc::SIGWINCH]) {
        let _ = changes.forever().all(|_| tell());
    }
}

fn pass_keys(mut port: UnixStream) {
    let mut escape = Escape::default();
    let mut keys = [0; 1024];
    let mut stdin = std::io::stdin().lock();
    while let Ok(n @ 1..) = stdin.read(&mut keys) {
        let Some(passed) = escape.hear(&keys[..n]) else {
            return interrupt::raise();
        };
        if port.write_all(&passed).is_err() {
            return;
        }
    }
    end_input(port);
}

/// Says that no more comes. QEMU throws away what the guest has not read yet when it sees
/// that the port is closed, so that waits for QEMU's own end.
pub(crate) fn end_input(mut port: UnixStream) {
    let _ = port.shutdown(std::net::Shutdown::Write);
    let _ = std::io::copy(&mut port, &mut std::io::sink());
}

/// Looks for `~.` at the beginning of a line, as ssh does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Escape {
    #[default]
    LineStart,
    Tilde,
    Within,
}

impl Escape {
    /// What of `keys` goes on to the guest; `None`: it is to be left.
    fn hear(&mut self, keys: &[u8]) -> Option<Vec<u8>> {
        let mut passed = Vec::with_capacity(keys.len());
        for &key in keys {
            *self = match (*self, key) {
                (Self::Tilde, b'.') => return None,
                (Self::LineStart, b'~') => {
                    *self = Self::Tilde;
                    continue;
                }
                (state, key) => {
                    if state == Self::Tilde {
                        passed.push(b'~');
                    }
                    passed.push(key);
                    match key {
                        b'\r' | b'\n' => Self::LineStart,
                        _ => Self::Within,
                    }
                }
            };
        }
        Some(passed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;

    #[test]
    fn only_a_tilde_and_a_dot_on_a_new_line_leave() {
        let heard = |text: &str| {
            let mut escape = Escape::default();
            let mut all = Vec::new();
            // Key by key, as a terminal sends them.
            for key in text.as_bytes() {
                all.extend(escape.hear(&[*key])?);
            }
            Some(String::from_utf8(all).unwrap())
        };
        assert_eq!(heard("ls ~.\r").unwrap(), "ls ~.\r");
        assert_eq!(heard("cd ~/x\r~/y\r").unwrap(), "cd ~/x\r~/y\r");
        assert_eq!(heard("\x03").unwrap(), "\x03", "Ctrl-C is the program's");
        assert_eq!(heard("~."), None);
        assert_eq!(heard("true\r~."), None);
    }
}

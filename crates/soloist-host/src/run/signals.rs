//! Signals that would end this process, held back while it must not stop midway.

use std::mem::MaybeUninit;
use std::ptr;

/// Those that people and systemd end a program by.
const ENDING: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// As long as this lives, the thread that made it gets none of them; then it gets those
/// that came.
#[derive(Debug)]
#[must_use = "what is dropped holds nothing back"]
pub(crate) struct HeldSignals {
    before: libc::sigset_t,
    held: Vec<libc::c_int>,
}

impl HeldSignals {
    /// Holds back all that this process does not ignore: of those nobody would know.
    pub(crate) fn hold() -> Self {
        let held: Vec<libc::c_int> = ENDING.into_iter().filter(|&s| !is_ignored(s)).collect();
        let mut set = MaybeUninit::uninit();
        let mut before = MaybeUninit::zeroed();
        // SAFETY: sigemptyset initialises the set; zero bytes are a valid one.
        let before = unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            for &signal in &held {
                libc::sigaddset(set.as_mut_ptr(), signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        Self { before, held }
    }

    /// Did one come?
    pub(crate) fn came(&self) -> bool {
        let mut pending = MaybeUninit::zeroed();
        // SAFETY: zero bytes are a valid set.
        let pending = unsafe {
            libc::sigpending(pending.as_mut_ptr());
            pending.assume_init()
        };
        // SAFETY: a valid set.
        let is_there =
            |&signal: &libc::c_int| unsafe { libc::sigismember(&raw const pending, signal) } == 1;
        self.held.iter().any(is_there)
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        // SAFETY: a valid set.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut())
        };
    }
}

fn is_ignored(signal: libc::c_int) -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zero bytes are a valid sigaction; nothing is changed.
    let now = unsafe {
        libc::sigaction(signal, ptr::null(), now.as_mut_ptr());
        now.assume_init()
    };
    now.sa_sigaction == libc::SIG_IGN
}

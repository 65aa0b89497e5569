//! Signals: sets of them, blocked for a while; those that would end this process, held
//! back while it must not stop midway.

use std::mem::MaybeUninit;
use std::ptr;

/// Lets this process wait for its children. The program that started it may ignore SIGCHLD,
/// which an execve keeps, and then the kernel forgets how a child ended.
pub fn hear_of_children() {
    // SAFETY: no handler, the default alone.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// The set of `signals`.
pub(crate) fn set_of(signals: impl IntoIterator<Item = libc::c_int>) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}

/// Blocks `set` for this thread; the mask before.
pub(crate) fn block(set: &libc::sigset_t) -> libc::sigset_t {
    let mut old = MaybeUninit::zeroed();
    // SAFETY: valid sets; zero bytes are a valid one.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, set, old.as_mut_ptr());
        old.assume_init()
    }
}

/// Gives this thread the mask `old`.
pub(crate) fn unblock(old: &libc::sigset_t) {
    // SAFETY: a valid set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old, ptr::null_mut()) };
}

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
        let before = block(&set_of(held.iter().copied()));
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
        unblock(&self.before);
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

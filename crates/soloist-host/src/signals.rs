//! Signals: sets of them, blocked for a while; those that would end this process, held
//! back while it must not stop midway.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::HostError;

/// Lets this process wait for its children. The program that started it may ignore SIGCHLD,
/// which an execve keeps, and then the kernel forgets how a child ended.
pub fn hear_of_children() {
    // SAFETY: no handler, the default alone.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Was this program started with SIGPIPE ignored, as systemd starts services?
static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);

/// Rust ignores SIGPIPE before `main`, so this looks before that.
#[used]
#[link_section = ".init_array"]
static LOOK_AT_PIPE: extern "C" fn() = look_at_pipe;

extern "C" fn look_at_pipe() {
    let action = set_action(libc::SIGPIPE, None);
    PIPE_IGNORED.store(action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
}

/// In a child, before its execve: SIGPIPE as this program got it. Rust gives children the
/// default.
pub(crate) fn pass_on_pipe() {
    if PIPE_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: no handler.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    }
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

/// The last of [`ENDING`] that came while they were held; 0: none.
static CAME: AtomicI32 = AtomicI32::new(0);

extern "C" fn note(signal: libc::c_int) {
    CAME.store(signal, Ordering::Relaxed);
}

/// As long as this lives, none of the signals that end a program ends this one: a system
/// call that waits is interrupted, and the program may put back what it has begun. Then
/// the program gets the last one that came, or an earlier one of these that still lives.
#[derive(Debug)]
#[must_use = "what is dropped holds nothing back"]
pub struct HeldSignals {
    before: Vec<(libc::c_int, libc::sigaction)>,
    /// The signal that came while an earlier one of these held them; 0: none.
    outer: libc::c_int,
}

impl HeldSignals {
    /// Holds back all that this process does not ignore: of those nobody would know.
    pub fn hold() -> Self {
        let outer = CAME.swap(0, Ordering::Relaxed);
        // SAFETY: zero bytes are a valid sigaction: no flags, so that no call is restarted.
        let mut noting = unsafe { MaybeUninit::<libc::sigaction>::zeroed().assume_init() };
        noting.sa_sigaction = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        let now = ENDING.map(|signal| (signal, set_action(signal, None)));
        let heard = now
            .into_iter()
            .filter(|(_, action)| action.sa_sigaction != libc::SIG_IGN);
        let before: Vec<_> = heard.collect();
        for &(signal, _) in &before {
            set_action(signal, Some(&noting));
        }
        Self { before, outer }
    }

    /// An error if one came, or waits since it is blocked.
    pub fn check(&self) -> Result<(), HostError> {
        let waits = pending();
        // SAFETY: a valid set.
        let is_there = |(signal, _): &(libc::c_int, _)| unsafe {
            libc::sigismember(&raw const waits, *signal) == 1
        };
        match CAME.load(Ordering::Relaxed) == 0 && !self.before.iter().any(is_there) {
            true => Ok(()),
            false => Err(ended()),
        }
    }
}

/// Refuses to wait on: a signal came that a [`HeldSignals`] holds back.
pub(crate) fn check_came() -> Result<(), HostError> {
    match CAME.load(Ordering::Relaxed) {
        0 => Ok(()),
        _ => Err(ended()),
    }
}

fn ended() -> HostError {
    HostError::Other("a signal ended it".to_owned())
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        for (signal, old) in &self.before {
            set_action(*signal, Some(old));
        }
        let came = CAME.swap(self.outer, Ordering::Relaxed);
        if came != 0 {
            // SAFETY: a signal's number.
            unsafe { libc::raise(came) };
        }
    }
}

/// The signals that wait since they are blocked.
fn pending() -> libc::sigset_t {
    let mut set = MaybeUninit::zeroed();
    // SAFETY: zero bytes are a valid set.
    unsafe {
        libc::sigpending(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Gives `signal` the action `new`, or none; what it had before.
fn set_action(signal: libc::c_int, new: Option<&libc::sigaction>) -> libc::sigaction {
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: zero bytes are a valid sigaction; `note` does what a handler may.
    unsafe {
        libc::sigaction(signal, new, old.as_mut_ptr());
        old.assume_init()
    }
}

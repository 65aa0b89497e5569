//! Ctrl-C, for all guests of this process: the first ends every one of them in
//! order, those that wait for their turn too; the second ends this process at
//! once, and with it what it started ([`crate::qemu`] sees to that).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::{io, Error};

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// What a shell says of a program that Ctrl-C ended.
const STATUS: i32 = 130;

/// From now on signals end the guests, not the process.
pub(crate) fn catch() -> Result<(), Error> {
    if FLAG.get().is_some() {
        return Ok(());
    }
    let flag = FLAG.get_or_init(Arc::default);
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // In this order: it ends the process if the flag is up already.
        signal_hook::flag::register_conditional_shutdown(signal, STATUS, Arc::clone(flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(flag)))
            .map_err(io("cannot catch Ctrl-C"))?;
    }
    Ok(())
}

/// Ends the guests, as Ctrl-C does.
pub(crate) fn raise() {
    FLAG.get_or_init(Arc::default)
        .store(true, Ordering::Relaxed);
}

/// Whether they are to end.
pub(crate) fn raised() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

//! Long work, during which Python's other threads run, Ctrl-C is heard, and progress is
//! told. The work has a thread of its own; the caller's looks every so often. On Ctrl-C
//! the caller is free at once, and the work ends at its next part.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// How often the caller looks.
const LOOK: Duration = Duration::from_millis(50);

/// Messages between the work and its caller.
#[derive(Default)]
pub struct Told {
    done: AtomicUsize,
    all: AtomicUsize,
    stop: AtomicBool,
}

impl Told {
    /// So many parts there are.
    pub fn expect(&self, all: usize) {
        self.all.store(all, Ordering::Relaxed);
    }

    /// A part is done.
    pub fn one_done(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Nobody waits for the work any more.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Does `work`; `progress` is called with the parts done and all parts each time more are
/// done.
///
/// # Errors
/// The exceptions of Ctrl-C and of `progress`, and that the work panicked.
pub fn work<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<Bound<'_, PyAny>>,
    work: impl FnOnce(&Told) -> T + Send + 'static,
) -> PyResult<T> {
    let told = Arc::new(Told::default());
    let (sender, mut receiver) = mpsc::channel();
    let theirs = Arc::clone(&told);
    let thread = std::thread::Builder::new().name("soloist".to_owned());
    thread.spawn(move || {
        // Nobody listens where it was interrupted.
        let _ = sender.send(work(&theirs));
    })?;
    let mut seen = 0;
    loop {
        let waits = &mut receiver;
        let heard = py.detach(move || waits.recv_timeout(LOOK));
        let done = told.done.load(Ordering::Relaxed);
        let mut look = || {
            py.check_signals()?;
            if done > seen {
                seen = done;
                if let Some(progress) = &progress {
                    progress.call1((done, told.all.load(Ordering::Relaxed)))?;
                }
            }
            Ok(())
        };
        look().inspect_err(|_: &PyErr| told.stop.store(true, Ordering::Relaxed))?;
        match heard {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(failed()),
        }
    }
}

/// Of a thread that panicked.
pub fn failed() -> PyErr {
    PyRuntimeError::new_err(
        "the model failed; what it said stands on standard error: please report it with the \
         input",
    )
}

//! The tasks that a trace watches, by thread id or by name.

use std::collections::BTreeMap;
use std::mem;
use std::path::Path;

use soloist_core::time::{Time, US};

use crate::event::text_of;
use crate::track::Timing;

/// The shortest period that can be traced: a task with a shorter one does not sleep in
/// between.
pub const SHORTEST: Time = Time(10 * US);

/// Bytes that the kernel keeps of a thread's name.
const KEPT_BYTES: usize = 15;

/// The tasks to watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// Threads by id.
    pub threads: BTreeMap<u32, Option<Timing>>,
    /// Threads by name, those that appear later too.
    pub names: BTreeMap<String, Option<Timing>>,
    /// Threads and processes that a watched one makes, with its timing.
    pub children: bool,
    /// No task as long as it has one of these names.
    pub except: Vec<String>,
}

/// Why tasks can't be watched by their names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WatchError {
    /// Its jobs come too often.
    #[error("{0}: a period below {SHORTEST} can't be traced")]
    TooShort(String),
    /// The kernel can't tell two from each other.
    #[error("{0} and {1} are the same to the kernel, which keeps 15 bytes of a name: rename one")]
    SameName(String, String),
}

impl Watch {
    /// Watches the threads that have these names.
    ///
    /// # Errors
    /// When a period is too short, or two names are the same to the kernel.
    pub fn named(
        tasks: impl IntoIterator<Item = (String, Option<Timing>)>,
    ) -> Result<Self, WatchError> {
        let mut watch = Self::default();
        for (name, timing) in tasks {
            if timing.is_some_and(|t| t.period_ps < SHORTEST.0) {
                return Err(WatchError::TooShort(name));
            }
            let same = |other: &&String| kept_bytes(other) == kept_bytes(&name);
            if let Some(other) = watch.names.keys().find(same) {
                return Err(WatchError::SameName(name, other.clone()));
            }
            watch.names.insert(name, timing);
        }
        Ok(watch)
    }
}

/// What the kernel keeps of a name: its first 15 bytes.
pub(crate) fn kept_bytes(name: &str) -> &[u8] {
    &name.as_bytes()[..KEPT_BYTES.min(name.len())]
}

/// The same as a trace shows it.
#[must_use]
pub fn kept_name(name: &str) -> String {
    text_of(kept_bytes(name))
}

/// Is there a thread with this id?
#[must_use]
pub fn exists(id: u32) -> bool {
    Path::new(&format!("/proc/{id}")).exists()
}

/// When the jobs of a thread under `SCHED_DEADLINE` come, as the kernel has it.
#[must_use]
pub fn deadline_timing(id: u32) -> Option<Timing> {
    // SAFETY: sched_attr is plain numbers, for which zero is valid; the kernel
    // writes no more than the size that it is told.
    let attr = unsafe {
        let mut attr: libc::sched_attr = mem::zeroed();
        let size = mem::size_of::<libc::sched_attr>();
        let got = libc::syscall(libc::SYS_sched_getattr, id, &raw mut attr, size, 0);
        (got == 0).then_some(attr)?
    };
    let timing = Timing {
        period_ps: attr.sched_period.checked_mul(1000)?,
        deadline_ps: attr.sched_deadline.checked_mul(1000)?,
    };
    let deadline = attr.sched_policy == libc::SCHED_DEADLINE as u32;
    (deadline && timing.period_ps >= SHORTEST.0).then_some(timing)
}

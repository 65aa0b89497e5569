//! One step of a thread, and the eight bytes that it takes in memory.

use crate::event::{Access, Kind};

/// One step of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A line; `page` is an index into [`Program::pages`](crate::Program::pages).
    Access(Access),
    /// A marker.
    Mark(u16),
    /// What waits for this wake can go on.
    Wake(u32),
    /// Goes on only after this wake, which is in the program.
    Wait(u32),
}

/// Widths of a packed step: kind 2, kernel 1, dependent 1, line 6, page 26,
/// work 28. A write-back with work is none: its work says what it is.
const PAGE_BITS: u32 = 26;
const WORK_BITS: u32 = 28;

pub(crate) fn pack(a: &Access, page: u32) -> u64 {
    let work = u64::from(a.work).min((1 << WORK_BITS) - 1);
    (a.kind as u64)
        | u64::from(a.kernel) << 2
        | u64::from(a.dependent) << 3
        | u64::from(a.line) << 4
        | u64::from(page) << 10
        | work << (10 + PAGE_BITS)
}

pub(crate) const MARK: u32 = 1;
pub(crate) const WAKE: u32 = 2;
pub(crate) const WAIT: u32 = 3;

/// What is no line: `number` in the place of page and line.
pub(crate) fn pack_other(what: u32, number: u32) -> u64 {
    Kind::WriteBack as u64 | u64::from(number) << 4 | u64::from(what) << (10 + PAGE_BITS)
}

pub(crate) fn unpack(packed: u64) -> Step {
    let kind = Kind::of(packed as u8);
    let page = (packed >> 10) as u32 & ((1 << PAGE_BITS) - 1);
    let work = (packed >> (10 + PAGE_BITS)) as u32;
    if kind == Kind::WriteBack && work > 0 {
        let number = (packed >> 4) as u32;
        return match work {
            MARK => Step::Mark(number as u16),
            WAKE => Step::Wake(number),
            _ => Step::Wait(number),
        };
    }
    Step::Access(Access {
        kind,
        page,
        line: (packed >> 4) as u8 & 63,
        work,
        kernel: packed & 4 != 0,
        dependent: packed & 8 != 0,
    })
}

/// The step with pages numbered anew: page `n` becomes `number[n]`.
pub(crate) fn renumber(packed: u64, number: &[u32]) -> u64 {
    match unpack(packed) {
        Step::Mark(_) | Step::Wake(_) | Step::Wait(_) => packed,
        Step::Access(access) => pack(&access, number[access.page as usize]),
    }
}

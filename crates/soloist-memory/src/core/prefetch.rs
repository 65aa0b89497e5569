//! Stride prefetcher: one expectation per page, a few pages at a time.
//!
//! It sees the accesses that miss the first level. Two equal strides in a page
//! make it sure; from then on it keeps so many strides ahead of the
//! stream, never beyond the page, whose successor in physical memory may be
//! anybody's.

use std::collections::VecDeque;

use soloist_machine::memory::CoreConfig;

/// Pages watched.
const STREAMS: usize = 16;
/// Lines of a page.
const PAGE_LINES: u64 = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    page: u64,
    last: u64,
    stride: i64,
    sure: bool,
    /// Strides beyond `last` that it has asked for.
    ahead: i64,
    used: u64,
}

/// The prefetcher of one core.
#[derive(Clone, Debug)]
pub(crate) struct Prefetcher {
    watches: [Watch; STREAMS],
    clock: u64,
    slots: u32,
    distance: i64,
}

impl Prefetcher {
    /// As `[memory.core]` says, if it says that there is one.
    pub fn of(core: &CoreConfig) -> Option<Self> {
        core.prefetch.then(|| Self {
            watches: [Watch::default(); STREAMS],
            clock: 0,
            slots: core.prefetch_slots,
            distance: core.prefetch_distance.into(),
        })
    }

    /// Lines that it may have on their way.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// An access to `line`; appends the lines to fetch to `wanted`.
    pub fn see(&mut self, line: u64, wanted: &mut VecDeque<u64>) {
        self.clock += 1;
        let page = line / PAGE_LINES;
        let known = self
            .watches
            .iter_mut()
            .find(|w| w.used > 0 && w.page == page);
        let Some(watch) = known else {
            if let Some(oldest) = self.watches.iter_mut().min_by_key(|w| w.used) {
                *oldest = Watch {
                    page,
                    last: line,
                    used: self.clock,
                    ..Watch::default()
                };
            }
            return;
        };
        watch.used = self.clock;
        let stride = line as i64 - watch.last as i64;
        if stride == 0 {
            return;
        }
        watch.sure = stride == watch.stride;
        watch.stride = stride;
        watch.last = line;
        watch.ahead = if watch.sure {
            (watch.ahead - 1).max(0)
        } else {
            0
        };
        while watch.sure && watch.ahead < self.distance {
            let next = line.checked_add_signed(stride * (watch.ahead + 1));
            match next.filter(|next| next / PAGE_LINES == page) {
                Some(next) => wanted.push_back(next),
                None => return,
            }
            watch.ahead += 1;
        }
    }
}

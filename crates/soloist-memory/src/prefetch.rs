//! Stride prefetcher: one expectation per page, a few pages at a time.

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
    used: u64,
}

/// Sees the accesses that miss the first level, and says which line to fetch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefetcher {
    watches: [Watch; STREAMS],
    clock: u64,
}

impl Prefetcher {
    /// An access to `line`; returns the line expected next, within its page,
    /// once two equal strides have been seen.
    pub fn see(&mut self, line: u64) -> Option<u64> {
        self.clock += 1;
        let page = line / PAGE_LINES;
        let known = self
            .watches
            .iter()
            .position(|w| w.used > 0 && w.page == page);
        let Some(at) = known else {
            let oldest = self.watches.iter_mut().min_by_key(|w| w.used)?;
            *oldest = Watch {
                page,
                last: line,
                used: self.clock,
                ..Watch::default()
            };
            return None;
        };
        let watch = &mut self.watches[at];
        let stride = line as i64 - watch.last as i64;
        watch.sure = stride != 0 && stride == watch.stride;
        watch.stride = stride;
        watch.last = line;
        watch.used = self.clock;
        let next = line.checked_add_signed(stride)?;
        (watch.sure && next / PAGE_LINES == page).then_some(next)
    }
}

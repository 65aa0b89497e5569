//! The numbers of DynamoRIO's drmemtrace, as its `common/trace_entry.h` has them:
//! what is written of a recording and what is read of a trace are the same entries.

/// `trace_type_t`.
#[allow(missing_docs, reason = "DynamoRIO's own names")]
pub mod entry {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const FIRST_PREFETCH: u16 = 2;
    pub const LAST_PREFETCH: u16 = 9;
    pub const INSTR: u16 = 10;
    pub const LAST_BRANCH: u16 = 16;
    pub const BUNDLE: u16 = 17;
    pub const FIRST_FLUSH: u16 = 18;
    pub const LAST_FLUSH: u16 = 21;
    pub const THREAD: u16 = 22;
    pub const THREAD_EXIT: u16 = 23;
    pub const PID: u16 = 24;
    pub const HEADER: u16 = 25;
    pub const FOOTER: u16 = 26;
    pub const HARDWARE_PREFETCH: u16 = 27;
    pub const MARKER: u16 = 28;
    pub const NO_FETCH: u16 = 29;
    pub const MAYBE_FETCH: u16 = 30;
    pub const SYSENTER: u16 = 31;
    pub const FIRST_HINT: u16 = 32;
    pub const LAST_HINT: u16 = 46;
    pub const ENCODING: u16 = 47;
    pub const TAKEN: u16 = 48;
    pub const UNTAKEN: u16 = 49;
}

/// `trace_marker_type_t`: what stands in a marker's size.
#[allow(missing_docs, reason = "DynamoRIO's own names")]
pub mod marker {
    pub const TIMESTAMP: u16 = 2;
    pub const CPU_ID: u16 = 3;
    pub const FILETYPE: u16 = 9;
    pub const CACHE_LINE_SIZE: u16 = 10;
    pub const VERSION: u16 = 12;
    pub const PHYSICAL_ADDRESS: u16 = 15;
    pub const VIRTUAL_ADDRESS: u16 = 17;
    pub const PAGE_SIZE: u16 = 18;
}

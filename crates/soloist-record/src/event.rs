//! What a stream says, and how each event is packed into bytes.
//!
//! The first byte holds the event's number (bits 0 to 2) and flags. What is
//! small and usual is left out: a line in the same page as the last one, or
//! right behind it. Numbers are LEB128; differences are zigzag.

/// A kind of line that left the private caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A line read by a load.
    Read = 0,
    /// A line read because of a store.
    Write = 1,
    /// A line of instructions.
    Fetch = 2,
    /// A dirty line that had to go.
    WriteBack = 3,
}

impl Kind {
    /// The kind of this number (its two low bits).
    pub fn of(number: u8) -> Self {
        match number & 3 {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Fetch,
            _ => Self::WriteBack,
        }
    }
}

/// A line that left the private caches, or was asked for behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Its direction and its cause.
    pub kind: Kind,
    /// Page, by the number of its [`Event::Page`] in this stream, from 0.
    pub page: u32,
    /// Line in the page (64 bytes each).
    pub line: u8,
    /// Instructions executed since the event before; 0 for a write-back.
    pub work: u32,
    /// Executed in the kernel.
    pub kernel: bool,
    /// Its address was computed from the load before it that left the caches.
    pub dependent: bool,
}

/// One event of a processor's stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A line.
    Access(Access),
    /// A page is seen for the first time by this thread on this processor.
    Page {
        /// Virtual page number.
        virt: u64,
        /// Physical page number.
        phys: u64,
        /// When, among all first touches of the recording.
        order: u64,
    },
    /// Another thread runs from here on.
    Switch {
        /// Its number in the recording.
        thread: u32,
        /// When, among all switches of the recording.
        order: u64,
        /// Instructions of the thread before, since the last event.
        work: u32,
    },
    /// The program stored a marker.
    Mark {
        /// Its code.
        code: u16,
        /// Instructions since the last event.
        work: u32,
    },
    /// The running thread ends another's wait on a futex.
    Wake {
        /// Number of the wake in the recording.
        id: u32,
        /// Instructions since the last event.
        work: u32,
    },
    /// The running thread could only go on after this wake.
    Wait {
        /// Number of the wake.
        id: u32,
    },
}

const PAGE: u8 = 4;
const SWITCH: u8 = 5;
const MARK: u8 = 6;
const ORDER: u8 = 7;
/// With [`ORDER`]: a wait, not a wake.
const WAITS: u8 = 1 << 3;
const KERNEL: u8 = 1 << 3;
const DEPENDENT: u8 = 1 << 4;
const SAME_PAGE: u8 = 1 << 5;
const NEXT_LINE: u8 = 1 << 6;

/// What the next event is packed against; anew in each frame.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    page: u32,
    line: u8,
    virt: u64,
    phys: u64,
}

fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, ((n << 1) ^ (n >> 63)) as u64);
}

/// Reads packed numbers; `None` where they end too early or are too long.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(n);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let n = self.number()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }
}

impl Event {
    /// Packs it behind `out`.
    pub fn pack(&self, state: &mut State, out: &mut Vec<u8>) {
        match *self {
            Self::Access(a) => a.pack(state, out),
            Self::Page { virt, phys, order } => {
                out.push(PAGE);
                put_signed(out, virt.wrapping_sub(state.virt) as i64);
                put_signed(out, phys.wrapping_sub(state.phys) as i64);
                put(out, order);
                state.virt = virt;
                state.phys = phys;
            }
            Self::Switch {
                thread,
                order,
                work,
            } => {
                out.push(SWITCH);
                put(out, u64::from(thread));
                put(out, order);
                put(out, u64::from(work));
            }
            Self::Mark { code, work } => {
                out.push(MARK);
                put(out, u64::from(code));
                put(out, u64::from(work));
            }
            Self::Wake { id, work } => {
                out.push(ORDER);
                put(out, u64::from(id));
                put(out, u64::from(work));
            }
            Self::Wait { id } => {
                out.push(ORDER | WAITS);
                put(out, u64::from(id));
            }
        }
    }

    /// Unpacks one from the front of `bytes`; `None`: that is no event.
    pub fn unpack(state: &mut State, bytes: &mut &[u8]) -> Option<Self> {
        let mut from = Bytes(bytes);
        let first = from.byte()?;
        let event = match first & 7 {
            PAGE => {
                state.virt = state.virt.wrapping_add(from.signed()? as u64);
                state.phys = state.phys.wrapping_add(from.signed()? as u64);
                Self::Page {
                    virt: state.virt,
                    phys: state.phys,
                    order: from.number()?,
                }
            }
            SWITCH => Self::Switch {
                thread: u32::try_from(from.number()?).ok()?,
                order: from.number()?,
                work: u32::try_from(from.number()?).ok()?,
            },
            MARK => Self::Mark {
                code: u16::try_from(from.number()?).ok()?,
                work: u32::try_from(from.number()?).ok()?,
            },
            ORDER => {
                let id = u32::try_from(from.number()?).ok()?;
                match first & WAITS {
                    0 => Self::Wake {
                        id,
                        work: u32::try_from(from.number()?).ok()?,
                    },
                    _ => Self::Wait { id },
                }
            }
            kind => Self::Access(Access::unpack(Kind::of(kind), first, state, &mut from)?),
        };
        *bytes = from.0;
        Some(event)
    }
}

impl Access {
    fn pack(&self, state: &mut State, out: &mut Vec<u8>) {
        let same_page = self.page == state.page;
        let next_line = self.line == state.line + 1;
        out.push(
            self.kind as u8
                | if self.kernel { KERNEL } else { 0 }
                | if self.dependent { DEPENDENT } else { 0 }
                | if same_page { SAME_PAGE } else { 0 }
                | if next_line { NEXT_LINE } else { 0 },
        );
        if !same_page {
            put_signed(out, i64::from(self.page) - i64::from(state.page));
        }
        if !next_line {
            out.push(self.line);
        }
        if self.kind != Kind::WriteBack {
            put(out, u64::from(self.work));
            // Where a victim lay says nothing of where the next access will.
            state.page = self.page;
            state.line = self.line;
        }
    }

    fn unpack(kind: Kind, first: u8, state: &mut State, from: &mut Bytes) -> Option<Self> {
        let page = match first & SAME_PAGE {
            0 => u32::try_from(i64::from(state.page).checked_add(from.signed()?)?).ok()?,
            _ => state.page,
        };
        let line = match first & NEXT_LINE {
            0 => from.byte()?,
            _ => state.line + 1,
        };
        if line > 63 {
            return None;
        }
        let work = match kind {
            Kind::WriteBack => 0,
            _ => u32::try_from(from.number()?).ok()?,
        };
        if kind != Kind::WriteBack {
            state.page = page;
            state.line = line;
        }
        Some(Self {
            kind,
            page,
            line,
            work,
            kernel: first & KERNEL != 0,
            dependent: first & DEPENDENT != 0,
        })
    }
}

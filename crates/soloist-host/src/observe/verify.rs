//! Which pages of a process are in colour, which are not, and why not.
//!
//! Every page that the process maps is looked up: its frame in pagemap, the
//! frame's colours in the address map. A page in none of the colours of the
//! process' groups (its threads may be in several) gets a [`Reason`] from the
//! kernel's page flags and the kind of mapping.
//!
//! A page does not say which thread touched it first. Where threads are in
//! several groups a page in the colours of any is in colour, and the report says
//! how many are in each group's; a single thread is judged by its own group.

use std::collections::BTreeMap;
use std::io::Read;

use procfs::process::{MemoryMap, MemoryMaps, Process, Status};
use procfs::{FromBufRead, PhysicalPageFlags as Flags, ProcResult};
use serde::Serialize;
use soloist_core::AddrMap;

use crate::control::{is_label, Control, Occupancy};
use crate::machine::{movable_bytes, not_seen, plain, text_of, Host, Page, PageReader};
use crate::HostError;

mod groups;
mod mapping;
mod reason;

pub use groups::GroupColors;
pub use reason::Reason;

use groups::{judged_threads, nodes_of_all};
use mapping::{may_have_pages, name, perms, programs, Kind};

/// Counts of pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// In memory.
    pub present: u64,
    /// Of these, in colour (0 where no group says what the colours are).
    pub in_color: u64,
    /// Of these, not, by reason (empty where no group says).
    pub not_in_color: BTreeMap<Reason, u64>,
    /// On swap.
    pub swapped: u64,
}

impl Tally {
    /// Share in colour, 0 to 1; `None` where nothing is present.
    pub fn share(&self) -> Option<f64> {
        (self.present > 0).then(|| self.in_color as f64 / self.present as f64)
    }

    fn count(&mut self, verdict: Verdict) {
        self.present += 1;
        match verdict {
            Verdict::InColor => self.in_color += 1,
            Verdict::Not(reason) => *self.not_in_color.entry(reason).or_default() += 1,
            Verdict::Uncolored => {}
        }
    }

    fn add(&mut self, other: &Self) {
        self.present += other.present;
        self.in_color += other.in_color;
        self.swapped += other.swapped;
        for (&reason, &n) in &other.not_in_color {
            *self.not_in_color.entry(reason).or_default() += n;
        }
    }
}

/// One mapping.
#[derive(Debug, Clone, Serialize)]
pub struct MappingReport {
    /// First address.
    pub start: u64,
    /// First address after.
    pub end: u64,
    /// `r-xp` and the like.
    pub perms: String,
    /// File, `[heap]`, `[stack]`; empty: anonymous.
    pub name: String,
    /// The process' own: private and not the kernel's.
    pub own: bool,
    /// Its pages.
    pub pages: Tally,
}

/// Pages of one bank set and LLC colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// Bank set.
    pub bank_set: u32,
    /// LLC colour.
    pub llc: u32,
    /// Present pages there.
    pub pages: u64,
    /// A group of the process has these colours.
    pub in_color: bool,
}

/// Who holds the memory of a group's colours.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Held {
    /// The group shares its colours with no other.
    pub exclusive: bool,
    /// By whom.
    #[serde(flatten)]
    pub by: Occupancy,
}

impl Held {
    /// Whether others hold memory of an exclusive group's colours is known: some do, or all
    /// memory was looked at.
    fn tells(&self) -> bool {
        self.by.one_of <= 1 || !self.exclusive || self.by.others() > 0
    }
}

/// The verdict on a process.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The process.
    pub pid: i32,
    /// Its command name.
    pub command: String,
    /// Its threads.
    pub threads: usize,
    /// The address map.
    pub map: String,
    /// Groups of its threads; where none has colours nothing is judged.
    pub groups: Vec<GroupColors>,
    /// Threads that are in no group with colours.
    pub uncolored_threads: usize,
    /// Mappings that have pages.
    pub mappings: Vec<MappingReport>,
    /// All pages.
    pub total: Tally,
    /// Pages of its own mappings (private, not the kernel's), but for those of data files
    /// that it reads and did not write.
    pub own: Tally,
    /// Bytes of its page tables.
    pub page_table_bytes: u64,
    /// Bytes of memory on the groups' nodes that no page table can be in, for the
    /// kernel keeps it movable.
    pub movable_bytes: u64,
    /// Why it is in no colour although it belongs to a group: its cpuset.
    pub contradiction: Option<String>,
    /// Who holds the memory of its groups' colours, by group; see
    /// [`Report::look_who_holds`].
    pub occupancy: BTreeMap<String, Held>,
    /// Present pages by node.
    pub by_node: BTreeMap<u32, u64>,
    /// Present pages by bank set.
    pub by_bank_set: BTreeMap<u32, u64>,
    /// Present pages by LLC colour.
    pub by_llc: BTreeMap<u32, u64>,
    /// Present pages by both, by the number of the pair.
    pub by_cell: BTreeMap<u32, Cell>,
}

/// Looks at every page of process `pid`, against the colours of `groups`.
pub fn verify(
    host: &Host,
    pid: i32,
    map: &AddrMap,
    groups: Vec<GroupColors>,
) -> Result<Report, HostError> {
    let path = host.path(&format!("/proc/{pid}"));
    let unreadable = |e: procfs::ProcError| process_error(host, pid, e);
    let process = Process::new_with_root(path).map_err(unreadable)?;
    let status: Status = parse(&process, "status").map_err(unreadable)?;
    // Reading their mappings is an error on some kernels only.
    if status.vmsize.is_none() {
        return Err(HostError::NoMemory(pid));
    }
    // Opened first: of a process that ends, or begins another program, it then shows no
    // page, rather than those of the other.
    let pages = PageReader::open(host, pid)?;
    let smaps: MemoryMaps = parse(&process, "smaps").map_err(unreadable)?;
    let threads = judged_threads(host, pid)?.len();
    let movable_bytes = movable_bytes(host, &nodes_of_all(map, &groups));
    let coloring = groups.iter().filter(|group| group.set.is_some());
    let colored: usize = coloring.map(|group| group.threads).sum();
    let mut report = Report {
        pid,
        command: plain(&status.name),
        threads,
        map: map.name(),
        uncolored_threads: threads.saturating_sub(colored),
        groups,
        mappings: Vec::new(),
        total: Tally::default(),
        own: Tally::default(),
        page_table_bytes: status.vmpte.unwrap_or(0) * 1024,
        movable_bytes,
        contradiction: None,
        occupancy: BTreeMap::new(),
        by_node: BTreeMap::new(),
        by_bank_set: BTreeMap::new(),
        by_llc: BTreeMap::new(),
        by_cell: BTreeMap::new(),
    };
    if smaps.0.is_empty() {
        return Err(HostError::NoMemory(pid));
    }
    let programs = programs(&smaps.0);
    for mapping in smaps.0.iter().filter(|m| may_have_pages(m)) {
        report.look_at(mapping, Kind::of(mapping, &programs), map, &pages)?;
    }
    Ok(report)
}

/// Reads a file of a process, with names of tasks and files that are no UTF-8.
fn parse<T: FromBufRead>(process: &Process, file: &str) -> ProcResult<T> {
    let mut bytes = Vec::new();
    process.open_relative(file)?.read_to_end(&mut bytes)?;
    T::from_buf_read(text_of(bytes).as_bytes())
}

impl Report {
    /// A group of it has colours, so that its pages are judged.
    pub fn is_colored(&self) -> bool {
        self.groups.iter().any(|group| group.set.is_some())
    }

    /// Looks who holds the memory of its groups' colours. A group that a rule made
    /// does not tell. With `whole` all memory of exclusive ones is looked at, without the
    /// pages of ended tasks that wait on a CPU.
    pub fn look_who_holds(&mut self, control: &Control, whole: bool) -> Result<(), HostError> {
        for group in self.groups.iter().filter(|group| !is_label(&group.name)) {
            let Ok(named) = control.group(&group.name) else {
                continue;
            };
            if let Some(by) = named.occupancy()? {
                let exclusive = named.is_exclusive()?;
                let mut held = Held { exclusive, by };
                if whole && exclusive {
                    held.by = named.occupancy_of_all()?.unwrap_or(by);
                }
                self.occupancy.insert(group.name.clone(), held);
            }
        }
        Ok(())
    }

    /// Its groups with colours of which nothing tells who holds their memory, or of exclusive
    /// ones only a part of memory: that nobody else was seen there says nothing of the rest.
    pub fn untold(&self) -> impl Iterator<Item = &str> {
        let groups = self.groups.iter().filter(|group| group.set.is_some());
        let names = groups.map(|group| group.name.as_str());
        names.filter(move |name| !self.occupancy.get(*name).is_some_and(Held::tells))
    }

    /// Exclusive groups of it in whose colours others hold memory.
    pub fn intruded(&self) -> impl Iterator<Item = (&str, &Occupancy)> {
        let held = self.occupancy.iter();
        held.filter(|(_, held)| held.exclusive && held.by.others() > 0)
            .map(|(name, held)| (name.as_str(), &held.by))
    }

    fn look_at(
        &mut self,
        mapping: &MemoryMap,
        kind: Kind,
        map: &AddrMap,
        pages: &PageReader,
    ) -> Result<(), HostError> {
        let own = matches!(kind, Kind::Private | Kind::Data);
        let mut tally = Tally::default();
        let mut hidden = false;
        let (start, end) = mapping.address;
        let shift = map.page_size().shift();
        let seen = pages.each(start >> shift..end >> shift, |_, page| match page {
            Page::Absent => {}
            Page::Swapped => tally.swapped += 1,
            Page::Present { pfn: 0, .. } => hidden = true,
            Page::Present {
                pfn,
                file,
                exclusive,
            } => {
                let seen = Seen {
                    pfn,
                    file,
                    exclusive,
                };
                let verdict = self.judge(&seen, kind, map, pages);
                tally.count(verdict);
                // A page of the file, not a copy: whatever colours it is in by chance.
                if own && !(file && kind == Kind::Data) {
                    self.own.count(verdict);
                }
            }
        });
        if hidden {
            let what = format!("reading the frame numbers of process {}", self.pid);
            return Err(HostError::NeedsRoot(what));
        }
        seen?;
        if tally.present + tally.swapped > 0 {
            self.total.add(&tally);
            if own {
                self.own.swapped += tally.swapped;
            }
            self.mappings.push(MappingReport {
                start,
                end,
                perms: perms(mapping.perms),
                name: plain(&name(&mapping.pathname)),
                own,
                pages: tally,
            });
        }
        Ok(())
    }

    fn judge(&mut self, page: &Seen, kind: Kind, map: &AddrMap, pages: &PageReader) -> Verdict {
        let color = map.color_of_frame(page.pfn);
        if let Some(color) = &color {
            *self.by_node.entry(color.node).or_default() += 1;
            *self.by_bank_set.entry(color.bank_set).or_default() += 1;
            *self.by_llc.entry(color.llc).or_default() += 1;
        }
        let mut held = false;
        for group in &mut self.groups {
            let set = group.set.as_ref();
            if color.is_some_and(|c| set.is_some_and(|set| set.holds(c.bank_set, c.llc))) {
                group.pages += 1;
                held = true;
            }
        }
        if let Some(color) = &color {
            let cell = self.by_cell.entry(color.cell).or_insert(Cell {
                bank_set: color.bank_set,
                llc: color.llc,
                pages: 0,
                in_color: held,
            });
            cell.pages += 1;
        }
        if !self.is_colored() {
            return Verdict::Uncolored;
        }
        if held {
            return Verdict::InColor;
        }
        let otherwise = match color {
            Some(_) => Reason::OutOfColor,
            None => Reason::OffMap,
        };
        let why = reason(page, kind, pages.flags(page.pfn), otherwise);
        let by_choice = self.groups.iter().any(|g| g.shares_text);
        Verdict::Not(if by_choice && why == Reason::FileCache {
            Reason::SharedText
        } else {
            why
        })
    }
}

/// A present page.
struct Seen {
    pfn: u64,
    file: bool,
    exclusive: bool,
}

/// What is said of a page.
#[derive(Clone, Copy)]
enum Verdict {
    InColor,
    Not(Reason),
    /// The process is in no group with colours.
    Uncolored,
}

/// Why this page is where it is; `otherwise` where nothing explains it.
fn reason(page: &Seen, kind: Kind, flags: Option<Flags>, otherwise: Reason) -> Reason {
    let flags = flags.unwrap_or(Flags::empty());
    if kind == Kind::Kernel {
        Reason::Kernel
    } else if flags.contains(Flags::ZERO_PAGE) {
        Reason::ZeroPage
    } else if flags.contains(Flags::NOPAGE) {
        Reason::Device
    } else if flags.contains(Flags::HUGE) {
        Reason::Hugetlb
    } else if flags.contains(Flags::THP) && !page.file {
        // The kernel calls every large folio so, those of the page cache too.
        Reason::HugePage
    } else if flags.contains(Flags::KSM) && !page.exclusive {
        Reason::Merged
    } else if page.file && flags.contains(Flags::SWAPBACKED) {
        Reason::SharedMemory
    } else if page.file && kind == Kind::Shared {
        Reason::SharedFile
    } else if page.file && kind == Kind::Data {
        Reason::FileData
    } else if page.file {
        Reason::FileCache
    } else if !page.exclusive {
        Reason::Forked
    } else {
        otherwise
    }
}

fn process_error(host: &Host, pid: i32, error: procfs::ProcError) -> HostError {
    match error {
        procfs::ProcError::PermissionDenied(_) => {
            HostError::NeedsRoot(format!("reading the mappings of process {pid}"))
        }
        procfs::ProcError::NotFound(_) => not_seen(host, pid),
        procfs::ProcError::Io(e, _) if e.raw_os_error() == Some(libc::ESRCH) => {
            HostError::NoMemory(pid)
        }
        other => HostError::Other(format!("process {pid}: {other}")),
    }
}

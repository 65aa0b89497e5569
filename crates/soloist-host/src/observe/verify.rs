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

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::Read;

use procfs::process::{MMPermissions, MMapPath, MemoryMap, MemoryMaps, Process, Status};
use procfs::{FromBufRead, PhysicalPageFlags as Flags, ProcResult};
use serde::Serialize;
use soloist_core::{AddrMap, ColorSet, NumList};

use crate::control::{is_label, nodes_of, Control, Occupancy};
use crate::machine::{
    movable_bytes, not_seen, plain, process_of, text_of, threads, Host, Page, PageReader,
};
use crate::HostError;

/// Why a page is not in colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Page cache, mapped shared: other programs use it too.
    SharedFile,
    /// Page cache in a private mapping: mapped before the task was coloured.
    FileCache,
    /// Page cache in a private mapping, by the choice of a group (`text shared`).
    SharedText,
    /// Page cache in a private mapping of a file that is no program: the process
    /// must see what others write to it.
    FileData,
    /// Shared memory (tmpfs, memfd, System V): it belongs to its file, whoever
    /// touched it first.
    SharedMemory,
    /// The kernel's page of zeroes.
    ZeroPage,
    /// The kernel's own page: vvar, vdso, vsyscall, and what uprobes run.
    Kernel,
    /// Part of a transparent huge page.
    HugePage,
    /// Part of a huge page that was set aside (hugetlb).
    Hugetlb,
    /// Merged with equal pages (KSM).
    Merged,
    /// Memory of a device.
    Device,
    /// Shared with another process since a fork, not yet copied.
    Forked,
    /// Its own page: from before it joined the group, spilled, or moved.
    OutOfColor,
    /// In no range of the address map.
    OffMap,
}

impl Reason {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::SharedFile => "shared file page",
            Self::FileCache => "file page mapped before colouring",
            Self::SharedText => "file text that the group shares",
            Self::FileData => "file data, read and not written",
            Self::SharedMemory => "shared memory",
            Self::ZeroPage => "zero page",
            Self::Kernel => "kernel page (vdso, vvar, uprobes)",
            Self::HugePage => "huge page",
            Self::Hugetlb => "huge page set aside (hugetlb)",
            Self::Merged => "merged page (KSM)",
            Self::Device => "device memory",
            Self::Forked => "shared since fork",
            Self::OutOfColor => "from before joining, spilled or moved",
            Self::OffMap => "outside the address map",
        }
    }
}

impl Reason {
    /// What would bring such pages into colour, or why nothing does.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::SharedFile => "none: other programs share it; a private copy of the file is coloured when it is written",
            Self::FileCache => "start the program by `soloist run`: what it maps then is copied into its colours",
            Self::SharedText => "`echo private > /sys/kernel/config/soloist/groups/NAME/text`: copies in colour of what is touched from then on",
            Self::FileData => "`echo all > /sys/kernel/config/soloist/groups/NAME/text`: copies in colour, which don't show what others write to the file later",
            Self::SharedMemory => "use private memory where nothing is shared; files of tmpfs belong to nobody",
            Self::ZeroPage => "none needed: it is read only, and becomes a page in colour when it is written",
            Self::Kernel => "none: the kernel shares it with every process",
            Self::HugePage => "start the program by `soloist run`, or give it colours that hold whole huge pages (--node)",
            Self::Hugetlb => "none: it comes from the pool of `vm.nr_hugepages`, which has no colours; ask for less of it",
            Self::Merged => "switch KSM off: echo 2 > /sys/kernel/mm/ksm/run",
            Self::Device => "none: it is a device's",
            Self::Forked => "none needed: it is copied into colour when either process writes it",
            Self::OutOfColor => "start the program in its group; see `soloist group show` for what was spilled or moved",
            Self::OffMap => "load the map of this machine: `soloist doctor`",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

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

/// A group that threads of the process are in, and its colours.
#[derive(Debug, Clone, Serialize)]
pub struct GroupColors {
    /// Its name; of a rule's group, with its number.
    pub name: String,
    /// Its colours, in words.
    pub colors: String,
    /// Threads of the process in it.
    pub threads: usize,
    /// Page-table pages handed out in colour so far, to all its tasks.
    pub page_tables: Option<u64>,
    /// Pages of the process in these colours.
    pub pages: u64,
    /// File text that is only read stays in the page cache.
    pub shares_text: bool,
    /// Its colours; `None`: it has none yet, and does not colour.
    #[serde(skip)]
    pub set: Option<ColorSet>,
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
    /// Pages of its own mappings (private, not the kernel's).
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

impl GroupColors {
    /// Colours given by hand, for a process in no group.
    pub fn by_hand(colors: ColorSet, threads: usize) -> Self {
        Self {
            name: "(as asked)".to_owned(),
            colors: colors.to_string(),
            threads,
            page_tables: None,
            pages: 0,
            shares_text: false,
            set: Some(colors),
        }
    }

    /// The groups that threads of process `pid` are in; of a thread that is not
    /// its process' first, the group of that thread alone.
    pub fn of_process(
        host: &Host,
        control: &Control,
        map: &AddrMap,
        pid: i32,
    ) -> Result<Vec<Self>, HostError> {
        let threads = judged_threads(host, pid)?;
        let named = control.each_group(|group| {
            let tasks = group.tasks()?;
            let n = threads.iter().filter(|&t| tasks.contains(t)).count();
            if n == 0 {
                return Ok(None);
            }
            let colors = group.colors(map)?;
            let set = (colors.sets().is_some() || colors.llc().is_some()).then_some(colors);
            let stats = group.stats()?;
            Ok(Some(Self {
                name: group.name().to_owned(),
                colors: set
                    .as_ref()
                    .map_or_else(|| "no colours yet".to_owned(), ColorSet::to_string),
                threads: n,
                page_tables: stats.get("page_tables").and_then(|v| v.parse().ok()),
                pages: 0,
                shares_text: group.shares_text()?,
                set,
            }))
        })?;
        let mut found: Vec<Self> = named.into_iter().flatten().collect();
        for group in control.implicit_groups(map)? {
            let n = threads.iter().filter(|&t| group.tasks.contains(t)).count();
            if n > 0 {
                found.push(Self {
                    name: group.label(),
                    colors: group.colors.to_string(),
                    threads: n,
                    page_tables: Some(group.page_tables),
                    pages: 0,
                    shares_text: false,
                    set: Some(group.colors),
                });
            }
        }
        Ok(found)
    }
}

/// The threads that `pid` means: all of a process, or one thread.
fn judged_threads(host: &Host, pid: i32) -> Result<Vec<i32>, HostError> {
    let threads = threads(host, pid)?;
    Ok(match process_of(host, pid) == pid {
        true => threads,
        false => vec![pid],
    })
}

/// Memory nodes that the colours of `groups` are on.
fn nodes_of_all(map: &AddrMap, groups: &[GroupColors]) -> NumList {
    let mut nodes = NumList::new(map.n_nodes());
    for set in groups.iter().filter_map(|group| group.set.as_ref()) {
        for node in nodes_of(map, set).iter() {
            nodes.insert(node);
        }
    }
    nodes
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
                let is_data = file && kind == Kind::Data;
                // A page that lies in colour by chance still belongs to the file.
                if own && !(is_data && verdict.is_of_data()) {
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

impl Verdict {
    /// Of a page of data in the page cache: no other reason was found.
    fn is_of_data(self) -> bool {
        !matches!(self, Self::Not(reason) if reason != Reason::FileData)
    }
}

/// What a mapping is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Private,
    /// Private, of a file that is no program and no library.
    Data,
    Shared,
    Kernel,
}

impl Kind {
    fn of(mapping: &MemoryMap, programs: &BTreeSet<FileId>) -> Self {
        match &mapping.pathname {
            MMapPath::Vdso | MMapPath::Vvar | MMapPath::Vsyscall => Self::Kernel,
            MMapPath::Other(name) if name.starts_with("vvar") || name == "uprobes" => Self::Kernel,
            _ if mapping.perms.contains(MMPermissions::SHARED) => Self::Shared,
            _ if mapping.inode != 0 && !programs.contains(&file_id(mapping)) => Self::Data,
            _ => Self::Private,
        }
    }
}

/// Device and inode.
type FileId = ((i32, i32), u64);

fn file_id(mapping: &MemoryMap) -> FileId {
    (mapping.dev, mapping.inode)
}

/// The files that the process executes parts of: programs and libraries.
fn programs(mappings: &[MemoryMap]) -> BTreeSet<FileId> {
    let executed = |m: &&MemoryMap| m.perms.contains(MMPermissions::EXECUTE);
    mappings.iter().filter(executed).map(file_id).collect()
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
    } else if flags.contains(Flags::THP) {
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

/// Spares reading the page tables of large reservations that hold nothing.
fn may_have_pages(mapping: &MemoryMap) -> bool {
    let sizes = &mapping.extension.map;
    let has = |key: &str| sizes.get(key).is_none_or(|&bytes| bytes > 0);
    let small = mapping.address.1 - mapping.address.0 <= 1 << 20;
    let user = mapping.pathname != MMapPath::Vsyscall;
    user && (small || has("Rss") || has("Swap") || has("Shared_Hugetlb") || has("Private_Hugetlb"))
}

fn perms(perms: MMPermissions) -> String {
    let flag = |p, c| if perms.contains(p) { c } else { '-' };
    let shared = perms.contains(MMPermissions::SHARED);
    [
        flag(MMPermissions::READ, 'r'),
        flag(MMPermissions::WRITE, 'w'),
        flag(MMPermissions::EXECUTE, 'x'),
        if shared { 's' } else { 'p' },
    ]
    .iter()
    .collect()
}

fn name(path: &MMapPath) -> String {
    match path {
        MMapPath::Path(path) => path.display().to_string(),
        MMapPath::Heap => "[heap]".to_owned(),
        MMapPath::Stack => "[stack]".to_owned(),
        MMapPath::TStack(tid) => format!("[stack:{tid}]"),
        MMapPath::Vdso => "[vdso]".to_owned(),
        MMapPath::Vvar => "[vvar]".to_owned(),
        MMapPath::Vsyscall => "[vsyscall]".to_owned(),
        MMapPath::Vsys(key) => format!("/SYSV{key:08x}"),
        MMapPath::Other(name) => format!("[{name}]"),
        MMapPath::Anonymous | MMapPath::Rollup => String::new(),
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

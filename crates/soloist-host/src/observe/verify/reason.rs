//! Why a page is not in colour, and what brings it there.

use std::fmt;

use serde::Serialize;

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

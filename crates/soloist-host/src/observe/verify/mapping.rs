//! A mapping of a process: its kind, and how it is shown.

use std::collections::BTreeSet;

use procfs::process::{MMPermissions, MMapPath, MemoryMap};

/// What a mapping is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Private,
    /// Private, of a file that is no program and no library.
    Data,
    Shared,
    Kernel,
}

impl Kind {
    pub(super) fn of(mapping: &MemoryMap, programs: &BTreeSet<FileId>) -> Self {
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
pub(super) type FileId = ((i32, i32), u64);

fn file_id(mapping: &MemoryMap) -> FileId {
    (mapping.dev, mapping.inode)
}

/// The files that the process executes parts of: programs and libraries.
pub(super) fn programs(mappings: &[MemoryMap]) -> BTreeSet<FileId> {
    let executed = |m: &&MemoryMap| m.perms.contains(MMPermissions::EXECUTE);
    mappings.iter().filter(executed).map(file_id).collect()
}

/// Spares reading the page tables of large reservations that hold nothing.
pub(super) fn may_have_pages(mapping: &MemoryMap) -> bool {
    let sizes = &mapping.extension.map;
    let has = |key: &str| sizes.get(key).is_none_or(|&bytes| bytes > 0);
    let small = mapping.address.1 - mapping.address.0 <= 1 << 20;
    let user = mapping.pathname != MMapPath::Vsyscall;
    user && (small || has("Rss") || has("Swap") || has("Shared_Hugetlb") || has("Private_Hugetlb"))
}

pub(super) fn perms(perms: MMPermissions) -> String {
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

pub(super) fn name(path: &MMapPath) -> String {
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

//! Pages of a made-up process, one of each kind.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod machine;

use machine::{Machine, MAP};
use soloist_core::AddrMap;
use soloist_host::control::Control;
use soloist_host::observe::{picture, verify, GroupColors, Reason, Report};
use soloist_host::HostError;

const PRESENT: u64 = 1 << 63;
const SWAP: u64 = 1 << 62;
const FILE: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;

/// Flags of a frame, by bit number in /proc/kpageflags.
const SWAPBACKED: u64 = 1 << 14;
const KSM: u64 = 1 << 21;
const HUGETLB: u64 = 1 << 17;
const THP: u64 = 1 << 22;
const ZERO: u64 = 1 << 24;

/// Frame of bank set 2 of node 0: bank bits are 15 to 17.
const IN: u64 = 0x1_0000 >> 12;
/// Frame of bank set 0.
const OUT: u64 = 0;

fn smaps(mappings: &[(&str, &str)]) -> String {
    let of = |&(range, rest): &(&str, &str)| {
        format!("{range} {rest}\nSize:  8 kB\nRss:  8 kB\nSwap:  0 kB\nVmFlags: rd mr\n")
    };
    mappings.iter().map(of).collect()
}

fn process(machine: &Machine) {
    machine.file("proc/100/status", include_str!("status.txt"));
    machine.dir("proc/100/task/100");
    machine.dir("proc/100/task/101");
    machine.dir("proc/100/task/102");
    machine.file("sys/kernel/mm/ksm/pages_shared", "1\n");
    let mappings = smaps(&[
        ("00400000-00402000", "r-xp 00000000 08:01 7   /bin/prog"),
        ("00500000-00504000", "rw-p 00000000 00:00 0   [heap]"),
        ("00600000-00602000", "r--s 00000000 08:01 8   /etc/shared"),
        ("00700000-00701000", "rw-s 00000000 00:01 9   /dev/shm/x"),
        ("00800000-00803000", "rw-p 00000000 00:00 0 "),
        (
            "7ffd00000000-7ffd00001000",
            "r-xp 00000000 00:00 0   [vdso]",
        ),
        (
            "ffffffffff600000-ffffffffff601000",
            "--xp 00000000 00:00 0   [vsyscall]",
        ),
    ]);
    machine.file("proc/100/smaps", &mappings);
    machine.words(
        "proc/100/pagemap",
        &[
            (0x400, PRESENT | EXCLUSIVE | IN),
            (0x401, PRESENT | FILE | (OUT + 1)),
            (0x500, PRESENT | EXCLUSIVE | (IN + 1)),
            (0x501, SWAP),
            (0x502, PRESENT | (OUT + 2)),
            (0x503, PRESENT | EXCLUSIVE | (OUT + 3)),
            (0x600, PRESENT | FILE | (OUT + 4)),
            (0x700, PRESENT | FILE | (OUT + 5)),
            (0x800, PRESENT | EXCLUSIVE | (OUT + 6)),
            (0x801, PRESENT | (OUT + 7)),
            (0x802, PRESENT | EXCLUSIVE | 0xfffff),
            (0x7_ffd0_0000, PRESENT | 0xffffe),
        ],
    );
    machine.words(
        "proc/kpageflags",
        &[
            (OUT + 2, ZERO),
            (OUT + 5, SWAPBACKED),
            (OUT + 6, THP),
            (OUT + 7, KSM),
            (OUT + 8, 0),
        ],
    );
}

fn report(machine: &Machine) -> Report {
    let host = machine.host();
    let map = AddrMap::parse(MAP).unwrap();
    let control = Control::open(&host).unwrap();
    let groups = GroupColors::of_process(&host, &control, &map, 100).unwrap();
    verify(&host, 100, &map, groups).unwrap()
}

#[test]
fn every_page_is_explained() {
    let machine = Machine::loaded();
    process(&machine);
    let report = report(&machine);
    assert_eq!((report.command.as_str(), report.threads), ("prog", 3));
    assert_eq!(report.groups.len(), 1);
    assert_eq!(
        (report.groups[0].threads, report.groups[0].page_tables),
        (2, Some(3))
    );
    assert_eq!(report.uncolored_threads, 1);
    assert_eq!(report.page_table_bytes, 44 * 1024);
    assert_eq!((report.total.present, report.total.in_color), (11, 2));
    assert_eq!(report.total.swapped, 1);
    let not: Vec<(Reason, u64)> = report.total.not_in_color.into_iter().collect();
    assert_eq!(
        not,
        [
            (Reason::SharedFile, 1),
            (Reason::FileCache, 1),
            (Reason::SharedMemory, 1),
            (Reason::ZeroPage, 1),
            (Reason::Kernel, 1),
            (Reason::HugePage, 1),
            (Reason::Merged, 1),
            (Reason::OutOfColor, 1),
            (Reason::OffMap, 1),
        ]
    );
    assert_eq!((report.own.present, report.own.in_color), (8, 2));
    assert_eq!(report.by_bank_set[&2], 2);
    assert_eq!(report.by_node[&0], 9);
    let names: Vec<&str> = report.mappings.iter().map(|m| m.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "/bin/prog",
            "[heap]",
            "/etc/shared",
            "/dev/shm/x",
            "",
            "[vdso]"
        ]
    );
    assert_eq!(report.mappings[0].perms, "r-xp");
}

/// A file that is no program stays in the page cache while it is only read, so
/// that the process sees what others write to it. That is not its own memory.
#[test]
fn data_of_files_is_not_its_own_while_it_is_read() {
    let machine = Machine::loaded();
    process(&machine);
    let mappings = smaps(&[
        ("00400000-00401000", "r-xp 00000000 08:01 7   /bin/prog"),
        ("00401000-00402000", "r--p 00001000 08:01 7   /bin/prog"),
        ("00a00000-00a03000", "r--p 00000000 08:01 10   /var/data"),
    ]);
    machine.file("proc/100/smaps", &mappings);
    machine.words(
        "proc/100/pagemap",
        &[
            (0x400, PRESENT | EXCLUSIVE | IN),
            (0x401, PRESENT | FILE | (OUT + 1)),
            (0xa00, PRESENT | FILE | (OUT + 1)),
            (0xa01, PRESENT | EXCLUSIVE | (IN + 1)),
            // Where it lies in the colours it is no more its own.
            (0xa02, PRESENT | FILE | (IN + 2)),
        ],
    );
    let report = report(&machine);
    let not: Vec<(Reason, u64)> = report.total.not_in_color.into_iter().collect();
    assert_eq!(not, [(Reason::FileCache, 1), (Reason::FileData, 1)]);
    assert_eq!((report.total.present, report.total.in_color), (5, 3));
    assert_eq!((report.own.present, report.own.in_color), (3, 2));
}

/// The kernel calls every large folio a huge page, those of the page cache too. Of a file they
/// say no more of the process than small ones; a private copy is its own.
#[test]
fn large_folios_of_files_are_file_pages() {
    let machine = Machine::loaded();
    process(&machine);
    let mappings = smaps(&[
        ("00400000-00401000", "r-xp 00000000 08:01 7   /bin/prog"),
        ("00a00000-00a02000", "rw-p 00000000 08:01 10   /var/data"),
        ("00b00000-00b02000", "r--p 00000000 00:19 11   /tmp/data"),
        ("00c00000-00c01000", "r--s 00000000 08:01 12   /etc/shared"),
    ]);
    machine.file("proc/100/smaps", &mappings);
    machine.words(
        "proc/100/pagemap",
        &[
            (0x400, PRESENT | FILE | (OUT + 1)),
            (0xa00, PRESENT | FILE | (OUT + 2)),
            (0xa01, PRESENT | EXCLUSIVE | (OUT + 3)),
            // Of tmpfs, and no more the process' own where it lies out of its colours.
            (0xb00, PRESENT | FILE | (OUT + 4)),
            (0xb01, PRESENT | FILE | (IN + 5)),
            (0xc00, PRESENT | FILE | (OUT + 6)),
        ],
    );
    let large = [1, 2, 3, 6].map(|frame| (OUT + frame, THP));
    let tmpfs = (OUT + 4, THP | SWAPBACKED);
    machine.words(
        "proc/kpageflags",
        &[&large[..], &[tmpfs, (OUT + 8, 0)]].concat(),
    );
    let report = report(&machine);
    let not: Vec<(Reason, u64)> = report.total.not_in_color.into_iter().collect();
    assert_eq!(
        not,
        [
            (Reason::SharedFile, 1),
            (Reason::FileCache, 1),
            (Reason::FileData, 1),
            (Reason::SharedMemory, 1),
            (Reason::HugePage, 1),
        ]
    );
    let own: Vec<(Reason, u64)> = report.own.not_in_color.into_iter().collect();
    assert_eq!(own, [(Reason::FileCache, 1), (Reason::HugePage, 1)]);
    assert_eq!((report.own.present, report.own.in_color), (2, 0));
}

/// No remedy is named for what no group can colour.
#[test]
fn what_is_never_coloured_is_told_apart() {
    let machine = Machine::loaded();
    process(&machine);
    let mappings = smaps(&[
        (
            "00b00000-00b01000",
            "rw-p 00000000 00:0f 11   /anon_hugepage",
        ),
        ("7ffff000-80000000", "--xp 00000000 00:00 0   [uprobes]"),
    ]);
    machine.file("proc/100/smaps", &mappings);
    machine.words(
        "proc/100/pagemap",
        &[
            (0xb00, PRESENT | EXCLUSIVE | FILE | (OUT + 2)),
            (0x7_ffff, PRESENT | FILE | (OUT + 8)),
        ],
    );
    machine.words("proc/kpageflags", &[(OUT + 2, HUGETLB), (OUT + 8, 0)]);
    let report = report(&machine);
    let not: Vec<(Reason, u64)> = report.total.not_in_color.into_iter().collect();
    assert_eq!(not, [(Reason::Kernel, 1), (Reason::Hugetlb, 1)]);
    assert!(not
        .iter()
        .all(|(reason, _)| reason.remedy().starts_with("none")));
}

#[test]
fn the_picture_shows_each_page() {
    let machine = Machine::loaded();
    process(&machine);
    let report = report(&machine);
    let map = AddrMap::parse(MAP).unwrap();
    let svg = picture::svg(&report, &map);
    assert!(
        svg.contains("prog (100) in core0: 2 of 11 pages in colour"),
        "{svg}"
    );
    // Two of set 2 in colour, seven of set 0 not; what is outside the map has no place.
    let said: Vec<&str> = svg
        .lines()
        .filter(|line| line.contains("<title>"))
        .collect();
    assert_eq!(said.len(), report.by_cell.len());
    let count = |what: &str| said.iter().filter(|line| line.contains(what)).count();
    assert_eq!(
        count("bank set 2, LLC colour 0: 1 page, in colour<"),
        1,
        "{said:?}"
    );
    assert_eq!(
        count("bank set 0, LLC colour 3: 2 pages, not in colour<"),
        1,
        "{said:?}"
    );
    assert_eq!((count(", in colour<"), count("not in colour<")), (2, 4));
    let drawn: u64 = report.by_cell.values().map(|cell| cell.pages).sum();
    assert_eq!(drawn, report.by_node.values().sum::<u64>());
    // The rest of set 2 is pale, as the group may use it.
    assert!(svg.contains("#c9dcf2"), "{svg}");

    machine.soloist("groups/core0/members", "77\n");
    let svg = picture::svg(&self::report(&machine), &map);
    assert!(svg.contains("11 pages, in no group"), "{svg}");
    assert!(!svg.contains("in colour"), "{svg}");
}

#[test]
fn where_nothing_is_merged_the_flag_means_nothing() {
    let machine = Machine::loaded();
    process(&machine);
    machine.file("sys/kernel/mm/ksm/pages_shared", "0\n");
    let not = report(&machine).total.not_in_color;
    assert!(!not.contains_key(&Reason::Merged));
    assert_eq!(not[&Reason::Forked], 1);
}

#[test]
fn without_a_group_nothing_is_judged() {
    let machine = Machine::loaded();
    process(&machine);
    machine.soloist("groups/core0/members", "77\n");
    let report = report(&machine);
    assert!(report.groups.is_empty());
    assert_eq!((report.total.present, report.total.in_color), (11, 0));
    assert!(report.total.not_in_color.is_empty());
    assert_eq!(report.by_node[&0], 9);
}

/// Its tasks allocate as in stock Linux, so nothing is in colour, nor out of it.
#[test]
fn a_group_without_colours_judges_nothing() {
    let machine = Machine::loaded();
    process(&machine);
    machine.group("core0", "", "");
    let none = report(&machine);
    assert_eq!(none.groups[0].colors, "no colours yet");
    assert_eq!(none.uncolored_threads, 3);
    assert_eq!((none.total.present, none.total.in_color), (11, 0));
    assert!(none.total.not_in_color.is_empty());
    let map = AddrMap::parse(MAP).unwrap();
    let svg = picture::svg(&none, &map);
    assert!(svg.contains("in core0: 11 pages, no colours yet"), "{svg}");
    // A thread in such a group brings no page of the others into colour.
    machine.group("core1", "2-3", "");
    machine.soloist("groups/core1/members", "102\n");
    let one = report(&machine);
    assert_eq!((one.groups.len(), one.uncolored_threads), (2, 2));
    assert_eq!((one.total.present, one.total.in_color), (11, 2));
}

#[test]
fn hidden_frame_numbers_need_root() {
    let machine = Machine::loaded();
    process(&machine);
    machine.words("proc/100/pagemap", &[(0x400, PRESENT | EXCLUSIVE)]);
    let host = machine.host();
    let map = AddrMap::parse(MAP).unwrap();
    let error = verify(&host, 100, &map, Vec::new()).unwrap_err();
    assert!(matches!(error, HostError::NeedsRoot(_)), "{error}");
}

#[test]
fn a_process_that_is_not_there() {
    let machine = Machine::loaded();
    let map = AddrMap::parse(MAP).unwrap();
    let error = verify(&machine.host(), 5, &map, Vec::new()).unwrap_err();
    assert!(matches!(error, HostError::NoProcess(5)), "{error}");
}

#[test]
fn a_kernel_thread_has_no_memory() {
    let machine = Machine::loaded();
    process(&machine);
    let status = include_str!("status.txt").lines();
    let kernel: Vec<&str> = status.filter(|line| !line.starts_with("Vm")).collect();
    machine.file("proc/100/status", &(kernel.join("\n") + "\n"));
    machine.file("proc/100/smaps", "");
    let host = machine.host();
    let map = AddrMap::parse(MAP).unwrap();
    let refused = verify(&host, 100, &map, Vec::new());
    assert!(matches!(refused, Err(HostError::NoMemory(100))));
}

/// The kernel cuts a name to 15 bytes, here the last letter of one to half of it, and a
/// file's name is whatever bytes somebody chose.
#[test]
fn names_that_are_no_utf8_hide_nothing() {
    let machine = Machine::loaded();
    process(&machine);
    let status = include_str!("status.txt");
    let (_, rest) = status.split_once('\n').unwrap();
    let cut = [b"Name:\tBildverarbeit\xc3\n", rest.as_bytes()].concat();
    machine.bytes("proc/100/status", &cut);
    machine.bytes("proc/101/status", &cut);
    let smaps = std::fs::read(machine.path("proc/100/smaps")).unwrap();
    let smaps = String::from_utf8(smaps).unwrap();
    let (before, after) = smaps.split_once("/etc/shared").unwrap();
    let latin1 = [before.as_bytes(), b"/etc/gr\xfcn", after.as_bytes()].concat();
    machine.bytes("proc/100/smaps", &latin1);
    let seen = report(&machine);
    assert_eq!(seen.command, "Bildverarbeit\u{fffd}");
    assert_eq!((seen.total.present, seen.total.in_color), (11, 2));
    assert_eq!(seen.mappings[2].name, "/etc/gr\u{fffd}n");
    // A thread is not taken for a process of its own.
    let host = machine.host();
    let control = Control::open(&host).unwrap();
    let refused = control.group_of_process(&host, 101).unwrap_err();
    let words = "a thread of process 100";
    assert!(refused.to_string().contains(words), "{refused}");
}

/// The pages that were seen until then do not stand for all.
#[test]
fn a_process_that_ends_meanwhile_is_not_judged() {
    let machine = Machine::loaded();
    process(&machine);
    let host = machine.host();
    let map = AddrMap::parse(MAP).unwrap();
    let judged = || {
        let control = Control::open(&host).unwrap();
        let groups = GroupColors::of_process(&host, &control, &map, 100).unwrap();
        verify(&host, 100, &map, groups)
    };
    // Of its text alone there is a page to be seen, and that one is in colour.
    machine.words(
        "proc/100/pagemap",
        &[(0x400, PRESENT | EXCLUSIVE | IN), (0x401, 0)],
    );
    let ended = judged().map(|report| report.total);
    assert!(matches!(ended, Err(HostError::NoMemory(100))), "{ended:?}");
    process(&machine);
    machine.file("proc/100/smaps", "");
    let ended = judged().map(|report| report.total);
    assert!(matches!(ended, Err(HostError::NoMemory(100))), "{ended:?}");
}

//! Registers of AMD Family 10h against the report's rows and against core.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use soloist_core::AddrMap;
use soloist_host::machine::pci::Registers;
use soloist_machine::known;
use soloist_map::compare;
use soloist_map::solve::parse_rows;
use soloist_map::sources::amd10h::{locate, map, AmdError};

const DUMP: &str = include_str!("data/opteron-6128.pci");

/// The dump with registers of function 2 of all nodes set otherwise.
fn with(settings: &[(u16, u32)]) -> Registers {
    let mut text = DUMP.to_owned();
    for node in 0..4 {
        for (offset, value) in settings {
            text.push_str(&format!("{:x}.2 {offset:#x} {value:#x}\n", 0x18 + node));
        }
    }
    Registers::parse(&text).unwrap()
}

#[test]
fn the_dump_gives_the_reports_rows() {
    let registers = Registers::parse(DUMP).unwrap();
    let rows = parse_rows(include_str!(
        "../../soloist-machine/tests/data/opteron-6128-report.csv"
    ))
    .unwrap();
    assert_eq!(rows.len(), 73);
    for row in rows {
        let p = locate(&registers, row.address).unwrap().unwrap();
        let got = [
            p.channel.into(),
            p.chip_select.into(),
            p.bank,
            p.row,
            p.column,
        ];
        assert_eq!((p.node, got), (row.node, row.values), "{:#x}", row.address);
    }
}

#[test]
fn a_range_that_ends_before_it_begins_is_refused() {
    // The limit of the second node's memory.
    let damaged = Registers::parse(&format!("{DUMP}\n18.1 0x4c 0x1\n")).unwrap();
    let refused = map(&damaged).unwrap_err();
    assert!(
        matches!(refused, AmdError::Backwards { register: 0x48, .. }),
        "{refused}"
    );
    let said = locate(&damaged, 0x1000).unwrap_err().to_string();
    assert!(
        said.starts_with("F1x48: ") && said.contains("to 0xffffff,"),
        "{said}"
    );
}

/// Registers of two nodes with DDR3: some set (device, function, offset, value), the others
/// of ranges and chip selects 0.
fn nodes(set: &[(u8, u8, u16, u32)]) -> Registers {
    let mut text = String::from("18.0 0x0 0x12001022\n");
    let ranges = (0x40..0x80).step_by(4).map(|at| (1, at));
    let selects = (0x40..0x70).step_by(4).map(|at| (2, at));
    for (function, at) in ranges
        .chain(selects)
        .chain([(1, 0xf0), (2, 0x80), (2, 0x110)])
    {
        for device in [18, 19] {
            text.push_str(&format!("{device}.{function} {at:#x} 0\n"));
        }
    }
    text.push_str("18.2 0x94 0x100\n19.2 0x94 0x100\n");
    for (device, function, at, value) in set {
        text.push_str(&format!("{device}.{function} {at:#x} {value:#x}\n"));
    }
    Registers::parse(&text).unwrap()
}

/// Registers of one node.
fn alone(set: &[(u8, u16, u32)]) -> Registers {
    let of = |&(function, at, value): &(u8, u16, u32)| (18, function, at, value);
    nodes(&set.iter().map(of).collect::<Vec<_>>())
}

/// Two ranks of 2 GiB in node 1, whose range and hole are set.
fn behind_another(set: &[(u8, u8, u16, u32)]) -> Registers {
    let ranks = [
        (19, 2, 0x40, 1),
        (19, 2, 0x44, 0x0080_0001),
        (19, 2, 0x60, 0x0078_3fe0),
        (19, 2, 0x80, 8),
        (18, 2, 0x40, 1),
        (18, 1, 0x40, 3),
    ];
    nodes(&[&ranks[..], set].concat())
}

#[test]
fn a_hole_in_a_node_behind_another_joins_what_lies_around_it() {
    // 1 GiB in node 0, then 2 GiB, a hole of 1 GiB, 2 GiB more.
    let early = [
        (18, 1, 0x44, 0x003f_0000),
        (18, 2, 0x60, 0x0038_3fe0),
        (18, 2, 0x80, 5),
        (18, 1, 0x48, 0x0040_0003),
        (18, 1, 0x4c, 0x017f_0001),
        (19, 1, 0xf0, 0xc000_8001),
    ];
    let map_early = map(&behind_another(&early)).unwrap();
    let of_node = |node: u8| map_early.ranges.iter().filter(move |r| r.node == node);
    let bases: Vec<(u64, u64, u64)> = of_node(1).map(|r| (r.start, r.end, r.base)).collect();
    assert_eq!(
        bases,
        [
            (0x4000_0000, 0xc000_0000, 0),
            (0x1_0000_0000, 0x1_8000_0000, 0x8000_0000)
        ]
    );
    let layouts: Vec<usize> = of_node(1).map(|r| r.layout).collect();
    assert_eq!(layouts[0], layouts[1]);
    assert_eq!(map_early.layouts[layouts[0]].rank, [1 << 31]);

    // 2 GiB in node 0, then 1.5 GiB, a hole of 512 MiB, 512 MiB more.
    let late = [
        (18, 1, 0x44, 0x007f_0000),
        (18, 2, 0x60, 0x0078_3fe0),
        (18, 2, 0x80, 7),
        (18, 1, 0x48, 0x0080_0003),
        (18, 1, 0x4c, 0x011f_0001),
        (19, 1, 0xf0, 0xe000_a001),
    ];
    let map_late = map(&behind_another(&late)).unwrap();
    let above = map_late.ranges.iter().find(|r| r.start == 1 << 32).unwrap();
    assert_eq!((above.node, above.base), (1, 0x6000_0000));
}

#[test]
fn ddr2_is_refused() {
    let ranks = [
        (1, 0x40, 3),
        (1, 0x44, 0x003f_0000),
        (2, 0x40, 1),
        (2, 0x44, 0x0020_0001),
        (2, 0x60, 0x0018_3fe0),
        (2, 0x80, 2),
    ];
    assert!(map(&alone(&ranks)).is_ok());
    let refused = map(&alone(&[&ranks[..], &[(2, 0x94, 0)]].concat()));
    assert_eq!(
        refused,
        Err(AmdError::Ddr2 {
            node: 0,
            channel: 0
        })
    );
}

#[test]
fn another_family_is_refused() {
    let family = |setting: &str| map(&Registers::parse(&format!("{DUMP}{setting}\n")).unwrap());
    let fits = family("");
    assert!(fits.is_ok(), "{fits:?}");
    assert_eq!(family("18.3 0xfc 0x00100f91"), fits);
    for (setting, register, found) in [
        ("18.0 0x0 0x16001022", "F0x0", 0x1600_1022),
        ("18.3 0xfc 0x00600f12", "F3xFC", 0x0060_0f12),
    ] {
        let refused = family(setting);
        assert_eq!(refused, Err(AmdError::Family { register, found }));
    }
}

#[test]
fn a_damaged_dump_is_refused() {
    let select = [(2, 0x40, 1), (2, 0x80, 1)];
    let hole = [
        (1, 0x40, 0x0040_0003),
        (1, 0x44, 0x013f_0000),
        (1, 0xf0, 0xc000_ff81),
    ];
    let refused = map(&alone(&[&select[..], &hole[..]].concat()));
    assert!(
        matches!(refused, Err(AmdError::Hole { node: 0, .. })),
        "{refused:?}"
    );
    let odd = [(1, 0x40, 0x0001_0003), (1, 0x44, 0x0005_0000)];
    let refused = map(&alone(&[&select[..], &odd[..]].concat()));
    assert!(refused.is_err(), "{refused:?}");
}

#[test]
fn the_dump_gives_the_opterons_map() {
    let found = map(&Registers::parse(DUMP).unwrap()).unwrap();
    let opteron = known::find("opteron-6128").unwrap();
    assert_eq!(
        compare::differences(&opteron.map, &found),
        Vec::<String>::new()
    );
    let found = AddrMap::parse(&found.to_text("found")).unwrap();
    let truth = opteron.addr_map();
    for i in 0..2000u64 {
        let address = (i * 0x1_0503_1940 % 0x8_2800_0000) & !63;
        assert_eq!(found.decode(address), truth.decode(address), "{address:#x}");
    }
}

#[test]
fn every_setting_gives_a_map_that_core_decodes_alike() {
    let swizzle = 1 << 22 | 1 << 8;
    let settings: [(&str, &[(u16, u32)]); 5] = [
        ("mode 0", &[(0x110, 0x04)]),
        ("mode 1", &[(0x110, 0x44)]),
        ("mode 3", &[(0x110, 0xc4)]),
        ("swizzle", &[(0x94, swizzle), (0x194, swizzle)]),
        // The first 256 MiB and those at 1 GiB exchanged.
        ("swap", &[(0x10c, 1 | 8 << 3 | 9 << 11 | 2 << 20)]),
    ];
    for (name, registers) in settings {
        let registers = with(registers);
        let spec = map(&registers).unwrap_or_else(|error| panic!("{name}: {error}"));
        let found = AddrMap::parse(&spec.to_text("x")).unwrap();
        let mut checked = 0;
        for i in 0..2000u64 {
            let address = (i * 0x1_0503_1940 % 0x8_2800_0000) & !63;
            let Some(p) = locate(&registers, address).unwrap() else {
                continue;
            };
            let d = found.decode(address).unwrap();
            assert_eq!(
                (
                    p.node.into(),
                    p.channel.into(),
                    p.chip_select.into(),
                    p.bank,
                    p.row
                ),
                (d.node, d.channel, d.chip_select, d.bank, d.row),
                "{name} {address:#x}"
            );
            checked += 1;
        }
        assert!(checked > 1800, "{name}: {checked}");
    }
}

#[test]
fn the_hole_is_no_memory() {
    let registers = Registers::parse(DUMP).unwrap();
    for address in [0xd800_0000, 0xffff_ffc0, 0x8_2800_0000] {
        assert_eq!(locate(&registers, address), Ok(None), "{address:#x}");
    }
}

#[test]
fn what_cannot_be_is_said() {
    let missing = Registers::parse("18.1 0x40 0x3\n").unwrap();
    assert!(matches!(map(&missing), Err(AmdError::Pci(_))));
    let mode = with(&[(0x80, 0x30)]);
    assert!(matches!(map(&mode), Err(AmdError::Mode { mode: 3, .. })));
    let off = (0..8).fold(DUMP.to_owned(), |text, i| {
        text + &format!("18.1 {:#x} 0x0\n", 0x40 + 8 * i)
    });
    assert_eq!(
        map(&Registers::parse(&off).unwrap()),
        Err(AmdError::NoRanges)
    );
    let interleaved = format!("{DUMP}18.1 0x40 0x103\n");
    assert_eq!(
        map(&Registers::parse(&interleaved).unwrap()),
        Err(AmdError::NodeInterleave)
    );
}

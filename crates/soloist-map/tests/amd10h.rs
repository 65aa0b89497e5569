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

/// Registers of one node: some set, the others of ranges and chip selects 0.
fn alone(set: &[(u8, u16, u32)]) -> Registers {
    let mut text = String::new();
    let ranges = (0x40..0x80).step_by(4).map(|at| (1, at));
    let selects = (0x40..0x70).step_by(4).map(|at| (2, at));
    for (function, at) in ranges
        .chain(selects)
        .chain([(1, 0xf0), (2, 0x80), (2, 0x110)])
    {
        text.push_str(&format!("18.{function} {at:#x} 0\n"));
    }
    for (function, at, value) in set {
        text.push_str(&format!("18.{function} {at:#x} {value:#x}\n"));
    }
    Registers::parse(&text).unwrap()
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

//! Maps solved from known decodes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use soloist_core::AddrMap;
use soloist_map::solve::{parse_rows, solve, Row};
use soloist_map::{compare, known, Machine};

fn rows_of(map: &AddrMap, addresses: impl Iterator<Item = u64>) -> Vec<Row> {
    addresses
        .map(|address| {
            let d = map.decode(address).unwrap();
            Row {
                line: 0,
                address,
                node: d.node as u8,
                values: [d.channel, d.chip_select, d.bank, d.row, d.column],
            }
        })
        .collect()
}

/// `count` lines spread over all ranges by a fixed generator.
fn spread(machine: &Machine, count: u64, seed: u64) -> impl Iterator<Item = u64> + '_ {
    machine.map.ranges.iter().flat_map(move |range| {
        (0..count).map(move |i| {
            let random = (i + 1)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .wrapping_add(seed.wrapping_mul(0xbf58_476d_1ce4_e5b9));
            let random = (random ^ (random >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb);
            range.start + (((random ^ (random >> 32)) % (range.end - range.start)) & !63)
        })
    })
}

#[test]
fn the_report_gives_the_opteron() {
    let rows = parse_rows(include_str!("data/opteron-6128-report.csv")).unwrap();
    let solved = solve(&rows).unwrap();
    let found = AddrMap::parse(&solved.map.to_text("solved")).unwrap();
    let opteron = known::find("opteron-6128").unwrap();
    for row in &rows {
        let d = found.decode(row.address).unwrap();
        assert_eq!(u32::from(row.node), d.node);
        assert_eq!(
            row.values,
            [d.channel, d.chip_select, d.bank, d.row, d.column]
        );
    }
    // Frames that the report does not print; its addresses all end in 0x010.
    let truth = opteron.addr_map();
    for address in spread(&opteron, 500, 1).map(|a| a & !0xfff | 0x10) {
        assert_eq!(found.decode(address), truth.decode(address), "{address:#x}");
    }
    assert_eq!(solved.map.ranges.len(), opteron.map.ranges.len());
    for (a, b) in solved.map.ranges.iter().zip(&opteron.map.ranges) {
        assert_eq!(
            (a.start, a.end, a.node, a.base),
            (b.start, b.end, b.node, b.base)
        );
    }
    // Bit 6 is 0 in every row: the channel's share of it can't be known.
    assert!(solved.open.contains(&(1 << 6)));
}

#[test]
fn known_machines_come_back_from_their_decodes() {
    for name in [
        "opteron-6128",
        "opteron-6128-noninterleaved",
        "skylake",
        "zen2",
        "p4080",
    ] {
        let machine = known::find(name).unwrap();
        let map = machine.addr_map();
        let rows = rows_of(&map, spread(&machine, 120, 2));
        let solved = solve(&rows).unwrap();
        let differ = compare::differences(&machine.map, &solved.map);
        assert!(differ.is_empty(), "{name}: {differ:?}");
    }
}

#[test]
fn a_wrong_row_is_told() {
    let machine = known::find("skylake").unwrap();
    let mut rows = rows_of(&machine.addr_map(), spread(&machine, 120, 3));
    rows[7].values[2] ^= 1;
    let error = solve(&rows).unwrap_err();
    assert!(error.message.contains("contradict"), "{error}");
}

#[test]
fn wrong_files_are_refused_with_their_line() {
    for (text, line, says) in [
        ("", 0, "no rows"),
        ("node,bank\n1,2\n", 1, "address"),
        ("address\n1\n", 1, "besides"),
        ("address,bank\n1,2,3\n", 2, "2 cells"),
        ("address,bank\n# ok\n0x1z,2\n", 3, "0x1z"),
        ("address,bank,bank\n", 1, "twice"),
        ("address,node\n0x10,99\n", 2, "less than"),
    ] {
        let error = parse_rows(text).unwrap_err();
        assert_eq!(error.line, line, "{text:?}: {error}");
        assert!(error.message.contains(says), "{text:?}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        if let Ok(rows) = parse_rows(&text) {
            let _ = solve(&rows);
        }
    }

    #[test]
    fn any_rows_are_solved_or_refused(
        cells in prop::collection::vec((0u64..1 << 32, 0u8..1, 0u32..4, 0u32..8, 0u32..100), 1..12),
    ) {
        let rows: Vec<Row> = cells
            .iter()
            .map(|&(address, node, rank, bank, row)| Row {
                line: 0,
                address,
                node,
                values: [0, rank, bank, row, 0],
            })
            .collect();
        if let Ok(solved) = solve(&rows) {
            // What is called solved reproduces the rows.
            if let Ok(map) = AddrMap::parse(&solved.map.to_text("x")) {
                for row in &rows {
                    if let Ok(d) = map.decode(row.address) {
                        prop_assert_eq!(d.chip_select, row.values[1]);
                        prop_assert_eq!(d.bank, row.values[2]);
                        prop_assert_eq!(d.row, row.values[3]);
                    }
                }
            }
        }
    }
}

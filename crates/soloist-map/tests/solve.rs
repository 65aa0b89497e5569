//! Maps solved from known decodes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use soloist_core::AddrMap;
use soloist_machine::function::Term;
use soloist_machine::{known, Layout, Machine, MapSpec};
use soloist_map::compare;
use soloist_map::solve::{parse_rows, passed_over, solve, Row};

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
    let rows = parse_rows(include_str!(
        "../../soloist-machine/tests/data/opteron-6128-report.csv"
    ))
    .unwrap();
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

/// A table that has its rows twice, as two runs of a tool make it, shows what it shows once:
/// with one wrong number in it too.
#[test]
fn rows_that_come_twice_prove_nothing() {
    let machine = known::find("skylake").unwrap();
    let mut rows = rows_of(
        &machine.addr_map(),
        std::iter::once(0).chain((6..34).map(|bit| 1 << bit)),
    );
    for wrong in [false, true] {
        if wrong {
            rows[20].values[2] ^= 1;
        }
        let line = |row: &Row| {
            let [channel, rank, bank, r, column] = row.values;
            format!("{:#x},{channel},{rank},{bank},{r},{column}\n", row.address)
        };
        let once: String = rows.iter().map(line).collect();
        let header = "address,channel,rank,bank,row,column\n";
        let read = |text: &str| parse_rows(&format!("{header}{text}")).unwrap();
        let (one, two) = (read(&once), read(&format!("{once}{once}")));
        assert_eq!(one, two);
        for rows in [one.clone(), [one.clone(), one].concat()] {
            let solved = solve(&rows).unwrap();
            assert!(!solved.complete, "{}", solved.shown());
            assert!(solved.told.iter().all(|&(_, sets)| sets < 2));
        }
    }
}

#[test]
fn a_second_node_below_4_gib_counts_from_its_own_start() {
    let machine = Machine::parse(
        "[machine]\nname = \"x\"\ndescription = \"x\"\ntrust = \"synthetic\"\n\
         [topology]\nsockets = 2\ncpus = [\"0\", \"1\"]\n\
         [map]\nbank = [\"13^17\", \"14^18\", \"15^19\"]\nrow = [\"17-29\"]\n\
         column = [\"6-12\", \"16\"]\n\
         [[map.range]]\nstart = 0\nend = 0x40000000\nnode = 0\nbase = 0\n\
         [[map.range]]\nstart = 0x40000000\nend = 0x80000000\nnode = 1\nbase = 0\n",
        "x.toml",
    )
    .unwrap();
    let rows = rows_of(&machine.addr_map(), spread(&machine, 200, 1));
    let solved = solve(&rows).unwrap();
    let found: Vec<_> = solved
        .map
        .ranges
        .iter()
        .map(|r| (r.start, r.node, r.base))
        .collect();
    assert_eq!(found, [(0, 0, 0), (0x4000_0000, 1, 0)]);
    let wrong = compare::differences(&machine.map, &solved.map);
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Numbers the rows as a file with a header would.
fn numbered(mut rows: Vec<Row>) -> Vec<Row> {
    for (i, row) in rows.iter_mut().enumerate() {
        row.line = i + 2;
    }
    rows
}

#[test]
fn a_wrong_row_is_left_out_and_named() {
    for name in ["skylake", "opteron-6128", "zen2", "p4080"] {
        let machine = known::find(name).unwrap();
        let ranges = machine.map.ranges.len() as u64;
        for seed in 0..10u64 {
            let mut rows = numbered(rows_of(
                &machine.addr_map(),
                spread(&machine, 240 / ranges, seed),
            ));
            let bad = (seed as usize * 37 + 11) % rows.len();
            let field = [2, 3, 4][seed as usize % 3];
            rows[bad].values[field] ^= 1 << (seed % 3);
            let solved = solve(&rows).unwrap_or_else(|e| panic!("{name} {seed}: {e}"));
            assert_eq!(solved.left_out, [bad + 2], "{name}, seed {seed}");
            let differ = compare::differences(&machine.map, &solved.map);
            assert!(differ.is_empty(), "{name} {seed}: {differ:?}");
        }
    }
}

#[test]
fn several_wrong_rows_are_left_out() {
    let machine = known::find("skylake").unwrap();
    let mut rows = numbered(rows_of(&machine.addr_map(), spread(&machine, 120, 3)));
    rows[7].values[2] ^= 1;
    rows[50].address ^= 1 << 15;
    rows[51].values = [0, 0, 5, 77, 3];
    rows[99].node = 1;
    let solved = solve(&rows).unwrap();
    assert_eq!(solved.left_out, [9, 52, 53, 101]);
    assert!(compare::differences(&machine.map, &solved.map).is_empty());
}

#[test]
fn nonsense_is_refused_and_a_contradiction_named() {
    let machine = known::find("skylake").unwrap();
    let mut rows = numbered(rows_of(&machine.addr_map(), spread(&machine, 120, 3)));
    // A third of the memory goes elsewhere, as with three channels.
    for row in &mut rows {
        row.values[0] = (row.address >> 8) as u32 % 3;
    }
    let error = solve(&rows).unwrap_err();
    assert!(error.line > 1, "{error}");
    assert!(error.message.contains("not linear"), "{error}");
    assert!(error.message.contains("cancel out"), "{error}");
}

#[test]
fn complete_means_right() {
    let mut complete = 0;
    for name in [
        "opteron-6128",
        "opteron-6128-noninterleaved",
        "skylake",
        "zen2",
        "p4080",
        "haswell",
        "raspberry-pi-4",
    ] {
        let machine = known::find(name).unwrap();
        let map = machine.addr_map();
        for seed in 0..60 {
            let rows = rows_of(&map, spread(&machine, 4 + seed * 2, seed));
            let Ok(solved) = solve(&numbered(rows)) else {
                continue;
            };
            if !solved.complete {
                continue;
            }
            complete += 1;
            let found = AddrMap::parse(&solved.map.to_text("x")).unwrap();
            for address in spread(&machine, 300, seed + 1000) {
                // Where memory ends no row can say.
                if let Ok(place) = found.decode(address) {
                    assert_eq!(Ok(place), map.decode(address), "{name} {seed} {address:#x}");
                }
            }
        }
    }
    assert!(complete > 100, "only {complete} of 420 are complete");
}

const DIVISIONS: [&str; 3] = [
    "server-3-channels",
    "server-6-channels",
    "server-12-channels",
];

/// Whether both put the lines into the same banks and rows, however numbered.
fn same_places(a: &AddrMap, b: &AddrMap, lines: impl Iterator<Item = u64>) -> bool {
    let (mut there, mut back) = (BTreeMap::new(), BTreeMap::new());
    for line in lines {
        // Where memory ends no row can say.
        let (Ok(a), Ok(b)) = (a.decode(line), b.decode(line)) else {
            continue;
        };
        let same = *there.entry(a.color).or_insert(b.color) == b.color
            && *back.entry(b.color).or_insert(a.color) == a.color
            && a.row == b.row;
        if !same {
            return false;
        }
    }
    true
}

#[test]
fn divisions_come_back_from_their_decodes() {
    for name in DIVISIONS {
        let machine = known::find(name).unwrap();
        let rows = rows_of(&machine.addr_map(), spread(&machine, 200, 2));
        let solved = solve(&rows).unwrap_or_else(|e| panic!("{name}: {e}"));
        let differ = compare::differences(&machine.map, &solved.map);
        assert!(differ.is_empty(), "{name}: {differ:?}");
        let channels = solved.channels.len() as u32;
        assert_eq!(channels, machine.addr_map().channels(), "{name}");
    }
}

#[test]
fn wrong_rows_of_a_division_are_left_out_and_named() {
    for name in DIVISIONS {
        let machine = known::find(name).unwrap();
        for seed in 0..6u64 {
            let decodes = rows_of(&machine.addr_map(), spread(&machine, 200, seed));
            let mut rows = numbered(decodes);
            let bad = (seed as usize * 37 + 11) % rows.len();
            match seed % 3 {
                0 => rows[bad].values[0] = (rows[bad].values[0] + 1) % 3,
                1 => rows[bad].values[0] = 99,
                _ => rows[bad].values[3] ^= 1,
            }
            let solved = solve(&rows).unwrap_or_else(|e| panic!("{name} {seed}: {e}"));
            assert_eq!(solved.left_out, [bad + 2], "{name}, seed {seed}");
            let differ = compare::differences(&machine.map, &solved.map);
            assert!(differ.is_empty(), "{name} {seed}: {differ:?}");
        }
    }
}

#[test]
fn a_complete_division_is_right() {
    let (mut complete, mut all) = (0, 0);
    for name in DIVISIONS {
        let machine = known::find(name).unwrap();
        let map = machine.addr_map();
        for seed in 0..60 {
            let rows = rows_of(&map, spread(&machine, 4 + seed * 3, seed));
            all += 1;
            let Ok(solved) = solve(&numbered(rows)) else {
                continue;
            };
            if solved.complete {
                complete += 1;
                let found = AddrMap::parse(&solved.map.to_text("x")).unwrap();
                let lines = spread(&machine, 2000, seed + 1000);
                assert!(same_places(&found, &map, lines), "{name} {seed}");
            }
        }
    }
    assert!(complete > 60, "only {complete} of {all} are complete");
}

#[test]
fn few_rows_are_no_complete_map() {
    for name in known::names().filter(|name| !name.starts_with("qemu")) {
        let machine = known::find(name).unwrap();
        let ranges = machine.map.ranges.len() as u64;
        for count in 1..=18 / ranges {
            let rows = rows_of(&machine.addr_map(), spread(&machine, count, count));
            match solve(&rows) {
                Ok(solved) => {
                    assert!(!solved.complete, "{name} from {count} rows");
                    assert!(AddrMap::parse(&solved.map.to_text("x")).is_ok());
                }
                Err(error) => {
                    assert!(!error.message.contains("more than 20"), "{name}: {error}")
                }
            }
        }
    }
}

#[test]
fn address_and_bank_are_enough_for_banks() {
    for name in known::names().filter(|name| !name.starts_with("qemu")) {
        let machine = known::find(name).unwrap();
        // Which way is which, channels say; banks alone don't.
        if machine.map.layouts[0].interleave.is_some() {
            continue;
        }
        let map = machine.addr_map();
        // Nobody has published this one's banks.
        if map.n_banks() == 1 {
            continue;
        }
        let rows: Vec<Row> = rows_of(&map, spread(&machine, 150, 5))
            .into_iter()
            .map(|mut row| {
                row.values = [0, 0, row.values[2], 0, 0];
                row
            })
            .collect();
        let solved = solve(&rows).unwrap_or_else(|e| panic!("{name}: {e}"));
        let found = AddrMap::parse(&solved.map.to_text("x")).unwrap();
        for address in spread(&machine, 300, 6) {
            let bank = found.decode(address).map(|d| d.bank);
            assert_eq!(
                bank,
                map.decode(address).map(|d| d.bank),
                "{name} {address:#x}"
            );
        }
    }
}

#[test]
fn equal_rows_are_nothing_to_solve() {
    let machine = known::find("skylake").unwrap();
    let one = rows_of(&machine.addr_map(), spread(&machine, 1, 3));
    let error = solve(&vec![one[0].clone(); 100]).unwrap_err();
    assert!(error.message.contains("nothing to solve"), "{error}");
    // No line of a file is to blame.
    assert_eq!(error.to_string(), error.message);
}

#[test]
fn high_addresses_are_solved() {
    let machine = known::find("skylake").unwrap();
    let mut rows = rows_of(&machine.addr_map(), spread(&machine, 120, 3));
    for row in &mut rows {
        row.address += 1 << 45;
    }
    let solved = solve(&rows).unwrap();
    assert_eq!(solved.map.ranges[0].start, 1 << 45);
    assert_eq!(solved.map.ranges[0].base, 0);
    assert!(solved.complete, "{:?} {}", solved.notes, solved.shown());
}

/// A table of four banks in four bank groups, whose column is named `group`.
fn grouped(group: &str) -> String {
    let plain = |(at, bit): (u32, u32)| Term { at, mask: 1 << bit };
    let layout = Layout {
        bank: [[7, 18], [15, 19], [16, 20], [17, 21]]
            .map(|bits| 1u64 << bits[0] | 1 << bits[1])
            .to_vec(),
        row: (0..).zip(18..34).map(plain).collect(),
        column: (3..).zip([6].into_iter().chain(8..15)).map(plain).collect(),
        ..Layout::default()
    };
    let map = AddrMap::parse(&MapSpec::single(layout, 1 << 34).to_text("x")).unwrap();
    let lines = (0..400u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 30 & !63);
    let mut text = format!("address,{group},bank,row,column,note\n");
    for row in rows_of(&map, lines) {
        let [_, _, bank, row_of, column] = row.values;
        let (low, high) = (bank & 3, bank >> 2);
        text += &format!("{:#x},{low},{high},{row_of},{column},7\n", row.address);
    }
    text
}

#[test]
fn bank_groups_are_banks_and_a_missing_field_is_no_exact_map() {
    let text = grouped("BankGroup");
    let solved = solve(&parse_rows(&text).unwrap()).unwrap();
    assert!(solved.complete, "{:?}", solved.notes);
    let bank = &solved.map.layouts[0].bank;
    assert_eq!(
        bank[..],
        [[7, 18], [15, 19], [16, 20], [17, 21]].map(|b| 1u64 << b[0] | 1 << b[1])
    );
    assert_eq!(passed_over(&text), ["note"]);

    let text = grouped("stack");
    let solved = solve(&parse_rows(&text).unwrap()).unwrap();
    assert!(!solved.complete, "{:?}", solved.notes);
    let said = solved
        .notes
        .iter()
        .any(|note| note.contains("bits 7, 15 vary"));
    assert!(said, "{:?}", solved.notes);
    assert_eq!(passed_over(&text), ["stack", "note"]);
}

#[test]
fn tables_come_in_many_dresses() {
    let plain = parse_rows("address,bank\n0x40,1\n0x80,2\n").unwrap();
    for text in [
        "\u{feff}address,bank\n0x40,1\n0x80,2\n",
        "\"address\",\"bank\"\r\n\"0x40\",\"1\"\r\n\"0x80\",\"2\"\r\n",
        "address;bank\n0x40;1\n0x80;2",
        "address\tbank\n 64 \t1\n128\t2",
        "Address, Bank,\"a note, with a comma\"\n0x40, 1, x\n0x80, 2,\"y, z\"\n",
    ] {
        assert_eq!(parse_rows(text).unwrap(), plain, "{text:?}");
    }
    // Lines are counted as an editor does.
    let error = parse_rows("# a\n\naddress,bank\n\n# b\n1,x\n").unwrap_err();
    assert_eq!(error.line, 6, "{error}");
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

/// An Intel client: what devices hide below 4 GiB lies behind all other memory, from a
/// MiB on that no row need name.
#[test]
fn rows_of_lifted_memory_are_right_and_stay() {
    const GIB: u64 = 1 << 30;
    for (name, border, end) in [
        ("skylake", 0x3_fe00_0000, 0x4_1e60_0000),
        ("core-12th-ddr4", 0x3_ff90_0000, 0x4_4fe0_0000),
        ("haswell", 0x1_ff00_0000, 0x2_4fe0_0000),
        ("i7-6700k", 0x3_fe00_0000, 0x4_7ff0_0000u64),
    ] {
        let mut machine = known::find(name).unwrap();
        let low = border + 4 * GIB - end;
        let one = machine.map.ranges[0];
        let range = |start, end, base| soloist_machine::MapRange {
            start,
            end,
            base,
            ..one
        };
        machine.map.ranges = vec![
            range(0, low, 0),
            range(4 * GIB, border, 4 * GIB),
            range(border, end, low),
        ];
        let map = machine.addr_map();
        // Far more rows lie straight, as memory does.
        for few in [5, 60] {
            for seed in 0..4 {
                let all = spread(&machine, 120, seed);
                let lines: Vec<u64> = all
                    .enumerate()
                    .filter(|(i, _)| i % 120 < few || i / 120 < 2)
                    .map(|(_, line)| line)
                    .collect();
                let mut rows = numbered(rows_of(&map, lines.into_iter()));
                let solved = solve(&rows).unwrap_or_else(|e| panic!("{name} {few} {seed}: {e}"));
                assert_eq!(
                    solved.left_out, [0usize; 0],
                    "{name} {few} {seed}: {:?}",
                    solved.notes
                );
                assert!(!solved.complete, "{name} {few} {seed}: {:?}", solved.notes);
                let told = solved.notes.join(" ");
                assert!(told.contains("no row says"), "{told}");
                // The rows next to the border say where it is, to the MiB.
                rows.extend(rows_of(&map, [border - 64, border, low - 64].into_iter()));
                rows.extend(rows_of(&map, (1..9).map(|i| end - i * 64)));
                let solved = solve(&numbered(rows)).unwrap();
                let found = AddrMap::parse(&solved.map.to_text("x")).unwrap();
                for line in spread(&machine, 300, seed + 99) {
                    assert_eq!(
                        found.decode(line),
                        map.decode(line),
                        "{name} {few} {line:#x}"
                    );
                }
                assert!(!solved.notes.join(" ").contains("no row says"), "{name}");
            }
        }
    }
}

/// Rows of one stretch of memory, all of which contradict the others.
#[test]
fn rows_left_out_together_make_no_exact_map() {
    let machine = known::find("skylake").unwrap();
    let mut rows = numbered(rows_of(&machine.addr_map(), spread(&machine, 160, 3)));
    rows.sort_by_key(|row| row.address);
    for row in &mut rows[40..45] {
        row.values[2] ^= 1;
    }
    let solved = solve(&rows).unwrap();
    assert_eq!(solved.left_out.len(), 5);
    assert!(!solved.complete);
    let told = solved.notes.join(" ");
    assert!(told.contains("may lie elsewhere"), "{told}");
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
            .enumerate()
            .map(|(i, &(address, node, rank, bank, row))| Row {
                line: i + 1,
                address,
                node,
                values: [0, rank, bank, row, 0],
            })
            .collect();
        if let Ok(solved) = solve(&rows) {
            // What is called solved tells the rows' banks apart, and no others;
            // bits that never vary may be gone.
            let map = AddrMap::parse(&solved.map.to_text("x")).unwrap();
            let used: Vec<_> = rows
                .iter()
                .filter(|row| !solved.left_out.contains(&row.line))
                .map(|row| (row, map.decode(row.address).unwrap()))
                .collect();
            for ((one, a), (other, b)) in used.iter().zip(used.iter().skip(1)) {
                let same = one.values[1..3] == other.values[1..3];
                prop_assert_eq!((a.rank, a.bank) == (b.rank, b.bank), same);
            }
        }
    }
}

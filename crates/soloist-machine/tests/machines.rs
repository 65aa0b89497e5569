//! Every machine file is read, accepted by core, and decodes as published.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use soloist_core::Dram;
use soloist_machine::{known, write, Machine, Trust};

/// Deterministic addresses spread over all ranges of a map.
fn addresses(machine: &Machine) -> impl Iterator<Item = u64> + '_ {
    machine.map.ranges.iter().flat_map(|range| {
        let size = range.end - range.start;
        (0..200u64)
            .map(move |i| range.start + ((i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % size) & !63))
    })
}

#[test]
fn every_machine_decodes_and_encodes_back() {
    for name in known::names() {
        let machine = known::find(name).unwrap();
        let map = machine.addr_map();
        assert_eq!(machine.about.name, name);
        for addr in addresses(&machine) {
            let dram = map.decode(addr).unwrap();
            let back = map.encode(&Dram {
                chip_select: 0,
                color: 0,
                ..dram
            });
            assert_eq!(back, Ok(addr), "{name}: {dram:?}");
        }
    }
}

#[test]
fn every_machine_file_is_built_in() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(known::names().collect::<Vec<_>>(), files);
}

#[test]
fn every_machine_text_fits_the_kernel() {
    for name in known::names() {
        let text = known::find(name).unwrap().map_text();
        assert!(text.len() < 4096, "{name}: {} bytes", text.len());
    }
}

#[test]
fn the_opteron_agrees_with_every_row_of_the_report() {
    let map = known::find("opteron-6128").unwrap().addr_map();
    let rows = include_str!("data/opteron-6128-report.csv");
    let mut checked = 0;
    for row in rows.lines().filter(|row| row.starts_with("0x")) {
        let (addr, rest) = row.split_once(',').unwrap();
        let addr = u64::from_str_radix(&addr[2..], 16).unwrap();
        let want: Vec<u32> = rest.split(',').map(|n| n.parse().unwrap()).collect();
        let d = map.decode(addr).unwrap();
        let got = [d.node, d.channel, d.chip_select, d.bank, d.row, d.column];
        assert_eq!(got[..], want[..], "{row}");
        checked += 1;
    }
    assert_eq!(checked, 73);
}

#[test]
fn the_opteron_has_64_disjoint_bank_sets() {
    let map = known::find("opteron-6128").unwrap().addr_map();
    assert_eq!(
        (map.n_colors(), map.n_bank_sets(), map.n_llc()),
        (128, 64, 32)
    );
    let map = known::find("opteron-6128-noninterleaved")
        .unwrap()
        .addr_map();
    assert_eq!((map.n_colors(), map.n_bank_sets()), (128, 128));
}

/// Where the same address bits choose bank and set of the shared cache, most pairs of a
/// bank set and an LLC colour have no frame.
#[test]
fn boards_have_impossible_pairs() {
    let possible = |name: &str| {
        let map = known::find(name).unwrap().addr_map();
        let pairs = (0..map.n_bank_sets()).flat_map(|set| (0..map.n_llc()).map(move |c| (set, c)));
        let possible = pairs.filter(|&(set, color)| map.cell_frames(set, color) > 0);
        (possible.collect::<Vec<_>>(), map.n_cells())
    };
    // Banks by bits 12 to 14, sets of the L2 by 6 to 15: a colour has one bank.
    let (pi, pairs) = possible("raspberry-pi-4");
    assert_eq!((pi.len(), pairs), (16, 128));
    assert!(pi.iter().all(|(bank, color)| color & 7 == *bank));
    for (name, colors) in [("jetson-nano", 32), ("imx8m-plus", 8)] {
        assert_eq!(possible(name).0.len(), colors, "{name}");
    }
}

/// A known machine that names no banks is none that `map detect` may take.
#[test]
fn boards_without_banks_are_assumed() {
    for name in known::names() {
        let machine = known::find(name).unwrap();
        let has_banks = machine.addr_map().n_colors() > 1;
        let assumed = matches!(machine.about.trust, Trust::Assumed | Trust::Synthetic);
        assert!(has_banks || assumed, "{name}");
    }
}

#[test]
fn channels_by_division_go_through_a_file() {
    let machine = known::find("server-3-channels").unwrap();
    let text = write::machine_file(&machine.about, &machine.topology, &machine.map, &[]);
    let again = Machine::parse(&text, "again").unwrap();
    assert_eq!(again.map, machine.map);
    assert!(again.map_text().contains("\ninterleave 3 4096\n"));
    let map = again.addr_map();
    assert_eq!((map.channels(), map.n_channels()), (3, 4));
    let missing = text.replace("ways = 3", "ways = 4");
    let error = Machine::parse(&missing, "x.toml").unwrap_err().to_string();
    assert!(error.contains("channel functions"), "{error}");
}

#[test]
fn channels_by_region_go_through_a_file() {
    let machine = known::find("server-uneven-channels").unwrap();
    let text = write::machine_file(&machine.about, &machine.topology, &machine.map, &[]);
    let again = Machine::parse(&text, "again").unwrap();
    assert_eq!(again.map, machine.map);
    let map = again.addr_map();
    assert_eq!((map.channels(), map.n_channels()), (3, 4));
    assert_eq!(map.n_bank_sets(), 64);
    // 12 GiB over three channels, 8 more over two: 4, 8, 8 and none.
    for channel in 0..4 {
        let sets = channel * 16..(channel + 1) * 16;
        let frames: u64 = sets.map(|set| map.set_frames(set)).sum();
        assert_eq!(frames >> 18, [4, 8, 8, 0][channel as usize]);
    }
    for (addr, channel) in [(0, 0), (0x2000, 2), (0x3_4000_0000, 1), (0x3_4000_1000, 2)] {
        let place = map.decode(addr).unwrap();
        assert_eq!(place.channel, channel);
        assert_eq!(map.encode(&place).unwrap(), addr);
    }
    let twice = text.replace("on = [1, 2]", "on = [1, 1]");
    let error = Machine::parse(&twice, "x.toml").unwrap_err().to_string();
    assert!(error.contains("given twice"), "{error}");
    let none = text.replace(", on = [1, 2]", "");
    let error = Machine::parse(&none, "x.toml").unwrap_err().to_string();
    assert!(error.contains("or `on` and the ways"), "{error}");
}

#[test]
fn wrong_files_are_refused_with_line_and_reason() {
    let good = known::text("qemu-2node").unwrap().to_owned();
    for (from, to, line_of, says) in [
        (
            "bank = [\"13^17\"",
            "bank = [\"13^99\"",
            "bank =",
            "bit number",
        ),
        ("bank = [", "banks = [", "banks =", "unknown field `banks`"),
        (
            "end = 0x40000000",
            "end = 0x40000001",
            "[[map.range]]",
            "range",
        ),
        ("node = 1", "node = 9", "[[map.range]]", "node 9"),
        (
            "trust = \"synthetic\"",
            "trust = \"sure\"",
            "trust =",
            "unknown variant",
        ),
        (
            "size = \"512K\"",
            "size = \"512Q\"",
            "size = \"512Q\"",
            "is no size",
        ),
        (
            "cpus = [\"0-1\", \"2-3\"]",
            "cpus = [\"0-1\", \"1-3\"]",
            "sockets",
            "two nodes",
        ),
        (
            "name = \"qemu-2node\"",
            "name = \"Qemu\"",
            "name =",
            "lower-case",
        ),
        ("[[10, 20], [20, 10]]", "[[10, 20]]", "sockets", "2 rows"),
    ] {
        assert!(good.contains(from), "{from}");
        let text = good.replacen(from, to, 1);
        let error = Machine::parse(&text, "x.toml").unwrap_err();
        assert!(error.message.contains(says), "{to}: {error}");
        let near = text
            .lines()
            .position(|line| line.starts_with(line_of) || line.contains(to))
            .unwrap();
        assert!(
            error.line > 0 && error.line.abs_diff(near + 1) <= 12,
            "{to}: {error}, expected near line {}",
            near + 1
        );
    }
}

#[test]
fn a_machine_without_channels_or_modules_is_refused_with_its_line() {
    let good = known::text("opteron-6128").unwrap();
    for key in ["channels", "dimms"] {
        let is_it = |line: &str| line.starts_with(&format!("{key} ="));
        let at = good.lines().position(is_it).unwrap();
        let old = good.lines().nth(at).unwrap();
        let text = good.replacen(old, &format!("{key} = 0"), 1);
        let error = Machine::parse(&text, "x.toml").unwrap_err();
        assert_eq!(error.line, at + 1, "{error}");
        assert!(error.message.contains("at least 1"), "{error}");
    }
}

#[test]
fn every_section_is_read_and_refused_with_its_line() {
    let good = known::text("opteron-6128").unwrap();
    let machine = Machine::parse(good, "x.toml").unwrap();
    assert_eq!(machine.vm.unwrap().memory.len(), 4);
    assert_eq!(machine.memory.unwrap().device, "ddr3-1333h");
    for (from, to, says) in [
        ("max_ram_below_4g", "max_ram", "unknown field"),
        ("cpus = 16\nmemory", "cpus = 65\nmemory", "1 to 64"),
        ("\"8G\", \"8G\", \"8G\", \"8G\"", "", "1 to 32 sizes"),
        ("\"8G\", \"8G\"", "\"8G\", \"1K\"", "multiples of 2M"),
        ("cpi = 0.5", "cpi = 0.0", "cpi 0 must be above 0"),
        ("drain_low = 0", "drain_low = 9", "drain_low 9"),
        (
            "victims = ",
            "deferred = 1\nvictims = ",
            "deferred 1 must be in_order (0) at most",
        ),
        (
            "bytes_per_us = 14400",
            "bytes_per_us = 9999999999999999999",
            "[memory.northbridge]: bytes_per_us 9999999999999999999 must be 1 to",
        ),
        (
            "bytes_per_us = 12800",
            "bytes_per_us = 9999999999999999999",
            "[[memory.hop]]: bytes_per_us 9999999999999999999 must be 1 to",
        ),
        ("[vm]", "[guard]\nperiod = 1\n\n[vm]", "guard"),
    ] {
        assert!(good.contains(from), "{from}");
        let text = good.replacen(from, to, 1);
        let error = Machine::parse(&text, "x.toml").unwrap_err();
        assert!(error.message.contains(says), "{to}: {error}");
        assert!(error.line > 20, "{to}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = Machine::parse(&text, "x.toml");
    }

    /// A good file with some bytes replaced, dropped or doubled.
    #[test]
    fn a_damaged_file_is_read_or_refused(
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0u8..3, 32u8..127), 1..6),
    ) {
        let mut bytes = known::text("opteron-6128").unwrap().as_bytes().to_vec();
        for (at, kind, byte) in damage {
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => { bytes.remove(at); }
                _ => bytes.insert(at, byte),
            }
        }
        if let Ok(machine) = Machine::parse(&String::from_utf8_lossy(&bytes), "x.toml") {
            // What is accepted can be used.
            let _ = machine.addr_map();
            let _ = machine.topology.cpus_of_nodes();
        }
    }
}

/// Looking for classes reads the file: the read of one that never ends must end.
#[test]
fn a_file_without_end_has_no_classes() {
    assert!(known::find_classes("/dev/zero").unwrap().is_none());
}

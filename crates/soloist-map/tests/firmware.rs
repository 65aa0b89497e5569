//! Maps from what firmware says of addresses; here it says what known maps do.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use soloist_core::AddrMap;
use soloist_machine::ram::RamRange;
use soloist_machine::{known, Machine};
use soloist_map::compare;
use soloist_map::firmware::{find, Firmware, FirmwareError, Values};

/// Names as servers print them.
const NAMES: [&str; 11] = [
    "SystemAddress",
    "ProcessorSocketId",
    "MemoryControllerId",
    "ChannelId",
    "PhysicalRankId",
    "DimmSlotId",
    "Row",
    "Column",
    "Bank",
    "BankGroup",
    "ChipSelect",
];

struct Server {
    names: Vec<String>,
    map: AddrMap,
    /// Changes an answer.
    twist: fn(u64, &mut Values) -> bool,
}

impl Server {
    fn of(machine: &Machine, twist: fn(u64, &mut Values) -> bool) -> Self {
        Self {
            names: NAMES.iter().map(ToString::to_string).collect(),
            map: machine.addr_map(),
            twist,
        }
    }
}

impl Firmware for Server {
    fn components(&self) -> &[String] {
        &self.names
    }

    fn decode(&mut self, addresses: &[u64]) -> Result<Vec<Option<Values>>, String> {
        Ok(addresses
            .iter()
            .map(|&address| {
                let d = self.map.decode(address).ok()?;
                let mut values: Values = [
                    address,
                    d.node.into(),
                    (d.channel >> 1).into(),
                    (d.channel & 1).into(),
                    d.rank.into(),
                    (d.rank >> 1).into(),
                    d.row.into(),
                    d.column.into(),
                    (d.bank >> 2).into(),
                    (d.bank & 3).into(),
                    u64::from(d.rank) << 1,
                ]
                .map(Some)
                .to_vec();
                (self.twist)(address, &mut values).then_some(values)
            })
            .collect())
    }
}

fn memory(machine: &Machine) -> Vec<RamRange> {
    let ram = |r: &soloist_machine::MapRange| RamRange {
        start: r.start,
        end: r.end,
        node: r.node,
    };
    machine.map.ranges.iter().map(ram).collect()
}

#[test]
fn known_machines_come_back_exactly() {
    for name in ["opteron-6128", "skylake", "zen2", "haswell", "p4080"] {
        let machine = known::find(name).unwrap();
        let mut server = Server::of(&machine, |_, _| true);
        let found = find(&mut server, &memory(&machine), 1).unwrap();
        let differ = compare::differences(&machine.map, &found.map);
        assert!(differ.is_empty(), "{name}: {differ:?}");
        assert!(found.exact, "{name}: {:?} {:?}", found.nodes, found.notes);
        let proved: usize = found.nodes.iter().map(|node| node.held.0).sum();
        assert!(proved > 3000, "{name}: {proved}");
    }
}

#[test]
fn divisions_come_back_exactly() {
    for name in [
        "server-3-channels",
        "server-6-channels",
        "server-12-channels",
    ] {
        let machine = known::find(name).unwrap();
        for seed in 1..4 {
            let mut server = Server::of(&machine, |_, _| true);
            let found = find(&mut server, &memory(&machine), seed).unwrap();
            let differ = compare::differences(&machine.map, &found.map);
            assert!(differ.is_empty(), "{name}: {differ:?}");
            assert!(found.exact, "{name}: {:?} {:?}", found.nodes, found.notes);
        }
    }
}

/// One set of functions can't be all of such a node's: it is named, not guessed.
#[test]
fn channels_by_region_have_no_map_of_one_layout() {
    let machine = known::find("server-uneven-channels").unwrap();
    for seed in 1..4 {
        let mut server = Server::of(&machine, |_, _| true);
        let error = find(&mut server, &memory(&machine), seed).unwrap_err();
        let told = error.to_string();
        assert!(told.contains("node 0: 3 channels, and no"), "{told}");
    }
}

#[test]
fn channels_dealt_out_by_a_hash_of_the_address_are_refused_by_name() {
    let machine = known::find("server-3-channels").unwrap();
    let mut server = Server::of(&machine, |address, values| {
        values[2] = Some(0);
        values[3] = Some((address / 4096 % 3 + (address >> 30) * (address >> 12)) % 3);
        true
    });
    let error = find(&mut server, &memory(&machine), 1).unwrap_err();
    assert!(error.to_string().contains("3 channels, and no"), "{error}");
}

#[test]
fn one_node_that_is_not_linear_spares_the_others() {
    let machine = known::find("opteron-6128").unwrap();
    let mut server = Server::of(&machine, |address, values| {
        if values[1] == Some(2) {
            values[3] = Some(address / 4096 % 3);
        }
        true
    });
    let found = find(&mut server, &memory(&machine), 1).unwrap();
    assert!(!found.exact);
    for node in &found.nodes {
        assert_eq!(node.unsolved.is_some(), node.node == 2, "{node:?}");
        assert_eq!(node.held.0, node.held.1);
    }
    assert!(found.map.ranges.iter().all(|range| range.node != 2));
}

#[test]
fn what_firmware_hides_or_gets_wrong_is_no_exact_map() {
    let machine = known::find("skylake").unwrap();
    // A piece of memory goes untranslated.
    let mut server = Server::of(&machine, |address, _| address >> 28 != 3);
    let found = find(&mut server, &memory(&machine), 1).unwrap();
    assert!(!found.exact);
    assert!(found.nodes[0].untranslated > 0);
    // One rank swaps two banks above 2 GiB by an AND: not linear.
    let mut server = Server::of(&machine, |address, values| {
        if address >> 31 & 1 == 1 && address >> 20 & 7 == 7 {
            values[8] = values[8].map(|bank| bank ^ 1);
        }
        true
    });
    match find(&mut server, &memory(&machine), 1) {
        Ok(found) => assert!(!found.exact),
        Err(error) => assert!(error.to_string().contains("contradict"), "{error}"),
    }
}

#[test]
fn sockets_by_turns_and_missing_names_are_refused() {
    let machine = known::find("skylake").unwrap();
    let mut server = Server::of(&machine, |address, values| {
        values[1] = Some(address >> 12 & 1);
        true
    });
    let error = find(&mut server, &memory(&machine), 1).unwrap_err();
    assert!(matches!(error, FirmwareError::Sockets(0, _)), "{error}");
    let mut server = Server::of(&machine, |_, _| true);
    server.names[8] = "Bnak".into();
    let error = find(&mut server, &memory(&machine), 1).unwrap_err();
    assert!(error.to_string().contains("gives no Bank"), "{error}");
    let error = find(
        &mut Server::of(&machine, |_, _| false),
        &memory(&machine),
        1,
    )
    .unwrap_err();
    assert!(matches!(error, FirmwareError::Nothing(_)), "{error}");
}

#[test]
fn decodes_agree_in_every_field() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/guest/firmware/known.toml"
    );
    let machine = Machine::read(std::path::Path::new(file)).unwrap();
    let truth = machine.addr_map();
    // As in adxl.asl: one controller has the second node's three channels.
    let mut server = Server::of(&machine, |_, values| {
        if values[1] == Some(1) {
            values[3] = values[2].zip(values[3]).map(|(high, low)| 2 * high + low);
            values[2] = Some(0);
        }
        true
    });
    let found = find(&mut server, &memory(&machine), 1).unwrap();
    assert!(found.exact, "{:?} {:?}", found.nodes, found.notes);
    let map = AddrMap::parse(&found.map.to_text("found")).unwrap();
    for i in 0..5000u64 {
        let address = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33 & !63;
        let (a, b) = (truth.decode(address).unwrap(), map.decode(address).unwrap());
        assert_eq!(
            (a.node, a.channel, a.rank, a.row, a.column),
            (b.node, b.channel, b.rank, b.row, b.column),
            "{address:#x}: {:?}",
            found.map.layouts[0].column
        );
    }
}

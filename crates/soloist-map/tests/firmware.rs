//! Maps from what firmware says of addresses; here it says what known maps do.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use soloist_core::AddrMap;
use soloist_host::control::ChannelAddress;
use soloist_host::machine::Host;
use soloist_machine::ram::RamRange;
use soloist_machine::{known, Machine};
use soloist_map::compare;
use soloist_map::sources::firmware::channel::Channel;
use soloist_map::sources::firmware::zen::{channels, Locator, Zen};
use soloist_map::sources::firmware::{find, Decoder, FirmwareError, Values};

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

impl Decoder for Server {
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

/// Linux' library for Zen, of a machine that is made up: node 0's four
/// channels by XOR, node 1's three by a division.
struct Library {
    first_of_node_1: u32,
    twist: fn(ChannelAddress, u64) -> Option<u64>,
}

const GIB: u64 = 1 << 30;

/// Makes room for a bit of 0.
fn spread(n: u64, bit: u32) -> u64 {
    let low = n & ((1 << bit) - 1);
    (n ^ low) << 1 | low
}

impl Locator for Library {
    fn locate(&mut self, places: &[ChannelAddress]) -> Result<Vec<Option<u64>>, String> {
        let one = |&place: &ChannelAddress| {
            let ChannelAddress {
                cpu,
                channel,
                address: at,
            } = place;
            let bit = |n: u64, bit: u32| n >> bit & 1;
            let address = match cpu {
                0 => {
                    let offset = spread(spread(at, 6), 8);
                    let [low, high] = [u64::from(channel & 1), u64::from(channel >> 1)];
                    let high = high ^ bit(offset, 13) ^ bit(offset, 18);
                    let low = low ^ bit(offset, 14) ^ bit(offset, 20);
                    offset | low << 6 | high << 8
                }
                _ => {
                    let way = u64::from(channel - self.first_of_node_1);
                    GIB + (at >> 12) * (3 << 12) + (way << 12) + (at & 4095)
                }
            };
            (self.twist)(place, address)
        };
        Ok(places.iter().map(one).collect())
    }
}

fn library(twist: fn(ChannelAddress, u64) -> Option<u64>) -> Zen<Library> {
    let channel = |node: u32, number: u32, bytes| Channel {
        node,
        number,
        cpu: 2 * node,
        bytes,
    };
    let four = (0..4).map(|number| channel(0, number, GIB / 4));
    let three = (0..3).map(|number| channel(1, number, GIB / 3 >> 20 << 20));
    let library = Library {
        first_of_node_1: 0,
        twist,
    };
    Zen::new(library, four.chain(three).collect())
}

fn two_nodes() -> (Machine, Vec<RamRange>) {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/guest/firmware/known.toml"
    );
    let machine = Machine::read(std::path::Path::new(file)).unwrap();
    let ranges = memory(&machine);
    (machine, ranges)
}

#[test]
fn channels_of_zen_come_back_as_the_library_has_them() {
    let (machine, memory) = two_nodes();
    let mut zen = library(|_, at| Some(at));
    let found = find(&mut zen, &memory, 1).unwrap();
    assert_eq!(zen.untranslated.0, 0);
    assert!(!found.exact, "banks are not known");
    for node in &found.nodes {
        assert_eq!(node.held.0, node.held.1, "{node:?}");
        assert!(node.held.0 > 1500, "{node:?}");
    }
    let (truth, map) = (
        machine.addr_map(),
        AddrMap::parse(&found.map.to_text("found")).unwrap(),
    );
    let end = 2 * GIB - 3 * (2 << 20);
    for i in 0..20_000u64 {
        let address = i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33 & !63;
        if address < end {
            let (a, b) = (truth.decode(address).unwrap(), map.decode(address).unwrap());
            assert_eq!((a.node, a.channel), (b.node, b.channel), "{address:#x}");
        }
    }
    // The channels are those of the whole map, and no others.
    assert_eq!(compare::channels(&found.map, &machine.map), [""; 0]);
    let other = known::find("qemu-2node").unwrap();
    assert!(!compare::channels(&found.map, &other.map).is_empty());
}

#[test]
fn nodes_that_share_a_socket_have_channels_of_their_own() {
    let (_, memory) = two_nodes();
    let mut zen = library(|_, at| Some(at));
    for channel in &mut zen.channels {
        if channel.node == 1 {
            *channel = Channel {
                node: 0,
                number: channel.number + 4,
                ..*channel
            };
        }
    }
    zen.locator.first_of_node_1 = 4;
    let found = find(&mut zen, &memory, 1).unwrap();
    for node in &found.nodes {
        assert_eq!(node.unsolved, None, "{node:?}");
        assert_eq!(node.held.0, node.held.1, "{node:?}");
    }
    assert_eq!(found.map.layouts.len(), 2);
}

#[test]
fn what_the_library_does_not_know_or_tells_twice_is_told() {
    let (_, memory) = two_nodes();
    let mut zen = library(|place, at| (place.address >> 24 != 3).then_some(at));
    find(&mut zen, &memory, 1).unwrap();
    assert!(zen.untranslated.0 > 0, "{:?}", zen.untranslated);
    let error = find(&mut library(|_, _| None), &memory, 1).unwrap_err();
    assert!(matches!(error, FirmwareError::Nothing(_)), "{error}");
    let error = find(&mut library(|place, _| Some(place.address)), &memory, 1).unwrap_err();
    assert!(error.to_string().contains("two channels"), "{error}");
    // Three channels of node 1 by a hash of the address: named, and no map.
    let hashed = |place: ChannelAddress, told| match place.cpu {
        0 => Some(told),
        _ => {
            let (channel, at) = (place.channel, place.address);
            let way = (u64::from(channel) + (at >> 20) * (at >> 13)) % 3;
            Some(GIB + (at >> 12) * (3 << 12) + (way << 12) + (at & 4095))
        }
    };
    let found = find(&mut library(hashed), &memory, 1).unwrap();
    let told: Vec<_> = found.nodes.iter().map(|node| &node.unsolved).collect();
    assert!(told[0].is_none(), "{told:?}");
    assert!(
        told[1]
            .as_ref()
            .is_some_and(|why| why.contains("3 channels, and no")),
        "{told:?}"
    );
}

#[test]
fn channels_to_ask_for_are_those_that_edac_lists() {
    let root = std::env::temp_dir().join(format!("soloist-zen-{}", std::process::id()));
    let write = |path: String, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let cpus = |package: fn(u32) -> u32, die: fn(u32) -> u32| {
        for cpu in 0..16 {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            write(
                format!("{folder}/physical_package_id"),
                &format!("{}\n", package(cpu)),
            );
            write(format!("{folder}/die_id"), &format!("{}\n", die(cpu)));
        }
    };
    cpus(|cpu| cpu / 8, |_| 0);
    let error = channels(&Host::at(&root)).unwrap_err();
    assert!(error.contains("modprobe amd64_edac"), "{error}");
    for controller in 0..2 {
        for rank in 0..4 {
            let folder = format!("sys/devices/system/edac/mc/mc{controller}/rank{rank}");
            let channel = 10 * (rank % 2);
            write(format!("{folder}/size"), "1024\n");
            write(
                format!("{folder}/dimm_location"),
                &format!("csrow {} channel {channel} \n", rank / 2),
            );
        }
    }
    let found = channels(&Host::at(&root)).unwrap();
    let told: Vec<_> = found.iter().map(|c| (c.node, c.number, c.cpu)).collect();
    assert_eq!(told, [(0, 0, 0), (0, 10, 0), (1, 0, 8), (1, 10, 8)]);
    assert!(found.iter().all(|channel| channel.bytes == 2 * GIB));
    // Dies of the first generation: a node each.
    cpus(|_| 0, |cpu| cpu / 8);
    let found = channels(&Host::at(&root)).unwrap();
    assert_eq!(found[2].cpu, 8);
    cpus(|_| 0, |_| 0);
    let error = channels(&Host::at(&root)).unwrap_err();
    assert!(error.contains("2 controllers"), "{error}");
    std::fs::remove_dir_all(root).unwrap();
}

//! Many addresses at a time are what core says of each.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use soloist_core::{AddrMap, Dram, EncodeError};
use soloist_machine::codec::{Codec, Field, Places, NO_PLACE};
use soloist_machine::known;

/// Addresses all over the map, at the edges of its ranges, and in holes.
fn addresses(map: &AddrMap) -> Vec<u64> {
    let end = map.end_pfn() << 12;
    let mut state = 1_u64;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (u128::from(state) * u128::from(end + (end >> 4)) >> 64) as u64
    };
    let mut all: Vec<u64> = (0..3000).map(|_| random()).collect();
    for range in map.ranges() {
        for edge in [range.start, range.end] {
            all.extend((0..128).map(|i| (edge + i).wrapping_sub(64)));
        }
    }
    all.push(u64::MAX);
    all
}

fn decoded(codec: &Codec, addresses: &[u64]) -> (Vec<Vec<u32>>, usize) {
    let mut columns = vec![vec![0; addresses.len()]; 7];
    let mut out: Vec<(Field, &mut [u32])> = Field::ALL
        .into_iter()
        .zip(columns.iter_mut().map(Vec::as_mut_slice))
        .collect();
    let holes = codec.decode(addresses, &mut out);
    (columns, holes)
}

#[test]
fn every_machine_decodes_as_core_does_and_back() {
    for name in known::names() {
        let map = known::find(name).unwrap().addr_map();
        let codec = Codec::new(&map);
        let addresses = addresses(&map);
        let (columns, holes) = decoded(&codec, &addresses);
        let mut lost = 0;
        let mut places: Vec<Dram> = Vec::new();
        for (i, &addr) in addresses.iter().enumerate() {
            let ours: Vec<u32> = columns.iter().map(|c| c[i]).collect();
            match map.decode(addr) {
                Err(_) => {
                    assert_eq!(ours, [NO_PLACE; 7], "{name} {addr:#x}");
                    lost += 1;
                }
                Ok(d) => {
                    let core = [d.node, d.channel, d.rank, d.bank, d.row, d.column, d.color];
                    assert_eq!(ours, core, "{name} {addr:#x}");
                    places.push(d);
                }
            }
        }
        assert_eq!(holes, lost, "{name}");
        // Places that there are, and some that there are not.
        let wrong = |d: &Dram| Dram {
            row: d.row.wrapping_mul(77),
            bank: d.bank ^ 1,
            ..*d
        };
        let odd: Vec<Dram> = places.iter().step_by(7).map(wrong).collect();
        for d in places.iter().chain(&odd) {
            let one = [d.node, d.channel, d.rank, d.bank, d.row, d.column].map(|v| [v]);
            let mut addr = [0];
            let fields = Places(one.each_ref().map(|v| &v[..]));
            let ours = codec.encode(fields, &mut addr).map(|()| addr[0]);
            let core = map.encode(d).map_err(|e| (0, e));
            assert_eq!(ours, core, "{name} {d:?}");
        }
    }
}

#[test]
fn the_first_place_without_an_address_is_told() {
    for name in ["opteron-6128", "server-3-channels", "zen2"] {
        let map = known::find(name).unwrap().addr_map();
        let codec = Codec::new(&map);
        let addresses: Vec<u64> = addresses(&map)
            .into_iter()
            .filter(|&addr| map.decode(addr).is_ok())
            .map(|addr| addr & !63)
            .collect();
        let (mut columns, _) = decoded(&codec, &addresses);
        let mut out = vec![0; addresses.len()];
        let places = Places(std::array::from_fn(|field| &columns[field][..]));
        assert_eq!(codec.encode(places, &mut out), Ok(()), "{name}");
        assert_eq!(out, addresses, "{name}");
        // A bank that is not there, and a row that does not fit into a key.
        for (field, value) in [(3, map.n_banks()), (4, u32::MAX)] {
            let kept = std::mem::replace(&mut columns[field][2500], value);
            let places = Places(std::array::from_fn(|field| &columns[field][..]));
            let wrong = codec.encode(places, &mut out).unwrap_err();
            assert_eq!(wrong, (2500, EncodeError::NoSuchPlace), "{name}");
            columns[field][2500] = kept;
        }
    }
}

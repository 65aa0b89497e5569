//! The wrapper over the address map: the report's rows, inverse, colours.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use soloist_core::{AddrMap, ColorSet, EncodeError, Hole, Left, NumList, PageSize, FRAME_SHIFT};

const OPTERON: &str = "\
soloist-map 1
name opteron-6128
line 64
llc 12 13 14 15 16
layout
channel 6^16^17^18^19^20
rank 17
bank 15 16 18
cs 2
row 20 21 22 23 24 25 26 27 28 29 30 31 32 19
col @3:7 8 9 10 11 12 13 @11:14
range 0x0 0xd8000000 node 0 base 0x0
range 0x100000000 0x228000000 node 0 base 0xd8000000
range 0x228000000 0x428000000 node 1
range 0x428000000 0x628000000 node 2
range 0x628000000 0x828000000 node 3
";

fn opteron() -> AddrMap {
    AddrMap::parse(OPTERON).unwrap()
}

#[test]
fn shape_of_the_opteron() {
    let map = opteron();
    assert_eq!(map.name(), "opteron-6128");
    assert_eq!((map.n_nodes(), map.n_channels(), map.n_ranks()), (4, 2, 2));
    assert_eq!((map.n_banks(), map.n_colors()), (8, 128));
    assert_eq!((map.n_bank_sets(), map.n_llc()), (64, 32));
    assert_eq!(map.ranges().count(), 5);
    let layout = map.layouts().next().unwrap();
    assert_eq!(layout.bank, [1 << 15, 1 << 16, 1 << 18]);
    assert_eq!(layout.chip_select, 2);
    assert_eq!(map.llc_masks().len(), 5);
}

/// Address, node, channel, chip select, bank, row, column: as printed.
const REPORT: &[(u64, [u32; 6])] = &[
    (0x1_DAF3_2010, [0, 1, 3, 2, 6959, 512]),
    (0x2_055B_E010, [0, 0, 3, 3, 15829, 2560]),
    (0x6_1148_5010, [2, 1, 2, 0, 16020, 2304]),
    (0x5_56E7_4010, [2, 1, 3, 6, 4846, 2048]),
    (0x8_0ED0_3010, [3, 1, 2, 0, 7789, 768]),
];

#[test]
fn decodes_the_report() {
    let map = opteron();
    for (addr, expected) in REPORT {
        let d = map.decode(*addr).unwrap();
        let got = [d.node, d.channel, d.chip_select, d.bank, d.row, d.column];
        assert_eq!(&got, expected, "{addr:#x}");
        let bc = ((d.node * 2 + d.channel) * 2 + d.rank) * 8 + d.bank;
        assert_eq!(d.color, bc);
    }
}

#[test]
fn holes_and_impossible_places_are_refused() {
    let map = opteron();
    assert_eq!(map.decode(0xd800_0000), Err(Hole(0xd800_0000)));
    assert_eq!(map.decode(u64::MAX), Err(Hole(u64::MAX)));
    assert_eq!(map.color_of_frame(u64::MAX), None);
    assert_eq!(map.cell_of_frame(u64::MAX >> FRAME_SHIFT), None);
    assert_eq!(map.cell_of_frame(0xd8000), None);
    let mut dram = map.decode(0).unwrap();
    dram.node = 9;
    assert_eq!(map.encode(&dram), Err(EncodeError::NoSuchPlace));
    assert_eq!(map.cell_frames(64, 0), 0);
    assert_eq!(map.cell_frames(0, 32), 0);
    assert_eq!(map.set_of_color(128), None);
    assert!(map.colors_of_set(64).is_empty());
}

#[test]
fn a_wrong_map_names_its_line() {
    let refusal = AddrMap::parse(&OPTERON.replace("rank 17", "rank banana")).unwrap_err();
    assert_eq!(refusal.line, Some(7), "{refusal}");
    assert!(!refusal.text.is_empty());
    assert!(refusal.to_string().starts_with("line 7: "), "{refusal}");
    assert!(AddrMap::parse("").is_err());
}

#[test]
fn the_text_comes_back() {
    let map = opteron();
    let again = AddrMap::parse(&map.to_string()).unwrap();
    assert_eq!(map, again);
    assert_ne!(
        map,
        AddrMap::parse(&OPTERON.replace("cs 2", "cs 0")).unwrap()
    );
}

#[test]
fn cells_add_up_to_the_memory() {
    let map = opteron();
    let frames: u64 = (0..map.n_bank_sets()).map(|s| map.set_frames(s)).sum();
    assert_eq!(frames << FRAME_SHIFT, map.bytes());
    assert_eq!(ColorSet::any(&map).bytes(&map), map.bytes());
}

#[test]
fn only_a_quarter_of_the_cells_can_hold_pages() {
    let map = opteron();
    let any = ColorSet::any(&map).cells(&map);
    assert_eq!(any.len() as u32, map.n_cells() / 4);
    let one = ColorSet::any(&map).with_sets([5]);
    assert_eq!(one.cells(&map).len(), 8);
    assert_eq!(one.bytes(&map), map.set_frames(5) << FRAME_SHIFT);
    assert!(one.holds(5, 0) && !one.holds(6, 0));
}

#[test]
fn every_colour_is_in_one_set() {
    let map = opteron();
    let mut seen = NumList::new(map.n_colors());
    for set in 0..map.n_bank_sets() {
        let colors = map.colors_of_set(set);
        assert_eq!(colors.len(), 2);
        for bc in colors {
            assert_eq!(map.set_of_color(bc), Some(set));
            assert!(!seen.contains(bc) && seen.insert(bc));
        }
    }
    assert_eq!(seen.len(), 128);
    let node1: Vec<u32> = map.sets_of_node(1).collect();
    assert_eq!(node1, (16..32).collect::<Vec<_>>());
}

/// Where pages lie in both channels of a node, a node is a controller; a channel is
/// one where it is a colour.
#[test]
fn controllers_are_channels_that_no_page_shares() {
    let map = opteron();
    let controllers = map.controllers();
    assert_eq!(controllers.len(), 4);
    assert!((0..4).all(|n| controllers[n].len() == 16));
    let three = "soloist-map 1\nlayout\ninterleave 3 4096\nbank 13 14\nrange 0 0x6000000\n";
    let map = AddrMap::parse(three).unwrap();
    let sets = |channel: u32| (4 * channel..4 * channel + 4).collect::<Vec<_>>();
    assert_eq!(map.controllers(), [sets(0), sets(1), sets(2)]);
    // Bits 6 and 7 are within a page: of four channels, two times two are seen.
    let part = "soloist-map 1\nlayout\nchannel 6^14 15\nbank 13^16\nrange 0 0x100000\n";
    let map = AddrMap::parse(part).unwrap();
    assert_eq!(map.controllers(), [[0, 1], [2, 3]]);
}

#[test]
fn whole_nodes_allow_huge_pages() {
    let map = opteron();
    let mut sets = NumList::new(map.n_bank_sets());
    sets.insert(3);
    assert!(map.block_order(&sets) < 9);
    map.sets_of_node(1).for_each(|s| assert!(sets.insert(s)));
    sets.remove(3);
    assert_eq!(map.block_order(&sets), 9);
}

proptest! {
    #[test]
    fn encode_inverts_decode(addr in 0u64..0x8_2800_0000) {
        let map = opteron();
        if let Ok(dram) = map.decode(addr) {
            let back = map.encode(&dram).unwrap();
            prop_assert_eq!(map.decode(back).unwrap(), dram);
            prop_assert_eq!(back >> 6, addr >> 6);
        }
    }

    #[test]
    fn a_frame_has_one_colour(pfn in 0u64..0x82_8000) {
        let map = opteron();
        let color = map.color_of_frame(pfn);
        prop_assert_eq!(color.map(|c| c.cell), map.cell_of_frame(pfn));
        if let Some(c) = color {
            let d = map.decode(pfn << FRAME_SHIFT).unwrap();
            prop_assert_eq!((c.node, c.color), (d.node, d.color));
            prop_assert_eq!(map.set_of_color(c.color), Some(c.bank_set));
            prop_assert_eq!(map.node_of_set(c.bank_set), c.node);
            prop_assert!(map.cell_frames(c.bank_set, c.llc) > 0);
        }
    }

    #[test]
    fn parsing_survives_anything(text in "(?s).{0,400}") {
        let _ = AddrMap::parse(&text);
    }

    #[test]
    fn parsing_survives_damage(at in 0usize..400, with in "[ -~\n]{0,8}") {
        let mut text = OPTERON.to_owned();
        text.insert_str(at.min(text.len()), &with);
        if let Ok(map) = AddrMap::parse(&text) {
            prop_assert_eq!(AddrMap::parse(&map.to_string()).unwrap(), map);
        }
    }

    #[test]
    fn lists_come_back(numbers in proptest::collection::btree_set(0u32..300, 0..60)) {
        let mut list = NumList::new(300);
        numbers.iter().for_each(|&n| assert!(list.insert(n)));
        let text = list.to_string();
        let back = NumList::parse(&text, 300).unwrap();
        prop_assert_eq!(back.iter().collect::<Vec<_>>(), numbers.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn lists_refuse_what_is_wrong() {
    for text in ["a", "1-", "-1", "3-1", "16", "0-16", "1 2"] {
        let refusal = NumList::parse(text, 16);
        assert!(refusal.is_err(), "{text:?} gave {refusal:?}");
    }
    assert_eq!(NumList::parse("0-3,8\n", 16).unwrap().to_string(), "0-3,8");
    let mut list = NumList::new(4);
    assert!(!list.insert(4) && list.is_empty());
}

/// A sentence says what larger pages leave; the text of the map stays the same.
#[test]
fn larger_pages_leave_fewer_colors() {
    let map = opteron();
    assert_eq!(Left::of(&map), None);
    for (pages, words) in [
        (
            PageSize::K16,
            "all 64 bank sets and 8 of 32 LLC colours are left with 16 KiB pages: bits 12 and 13 lie inside a page",
        ),
        (
            PageSize::K64,
            "32 of 64 bank sets and 2 of 32 LLC colours are left with 64 KiB pages: bits 12, 13, 14 and 15 lie inside a page",
        ),
    ] {
        let large = map.for_pages(pages).unwrap();
        let left = Left::of(&large).unwrap();
        assert_eq!(left.to_string(), words);
        assert!(left.is_less());
        assert_eq!(large.page_size(), pages);
        assert_eq!(large, map);
        assert_eq!(large.to_string(), map.to_string());
        assert_eq!(large.for_pages(PageSize::K4).unwrap().n_llc(), 32);
        assert_eq!(large.end_pfn(), map.bytes().div_ceil(pages.bytes()) + (0x2800_0000 >> pages.shift()));
        assert_eq!(ColorSet::any(&large).bytes(&large), map.bytes());
    }
}

/// Channels that change inside a page, and ranges that are no whole pages.
#[test]
fn what_larger_pages_can_not_tell_apart_is_named() {
    let ways = "soloist-map 1\nlayout\ninterleave 3 4096\nbank 16 17\nrange 0x0 0xc0000000\n";
    let map = AddrMap::parse(ways).unwrap();
    let left = Left::of(&map.for_pages(PageSize::K16).unwrap()).unwrap();
    let words =
        "4 of 12 bank sets are left with 16 KiB pages: channels change every 4 KiB inside a page";
    assert_eq!(left.to_string(), words);
    let odd = AddrMap::parse("soloist-map 1\nlayout\nbank 14\nrange 0x1000 0x9000\n").unwrap();
    let refusal = odd.for_pages(PageSize::K16).unwrap_err().to_string();
    assert!(
        refusal.contains("multiples of the page size 16384"),
        "{refusal}"
    );
    assert!("8K".parse::<PageSize>().is_err());
    assert_eq!("16 KiB".parse(), Ok(PageSize::K16));
}

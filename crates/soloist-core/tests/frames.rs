//! Frame lists conserve frames, and refuse what C would not survive.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use soloist_core::{AddrMap, Block, FillLimits, FrameError, FrameLists, FrameState, Source};

const SMALL: &str = "\
soloist-map 1
name small
line 64
llc 12
layout
bank 15 16 17
row 18 19 20 21 22 23
col 3 4 5 6 7 8 9 10 11 12 13 14
range 0x0 0x1000000 node 0
";

fn lists() -> FrameLists {
    FrameLists::new(&AddrMap::parse(SMALL).unwrap())
}

/// Hands out blocks of one order, upwards.
struct Upwards {
    next: u64,
    end: u64,
    order: u32,
}

impl Source for Upwards {
    fn block(&mut self, _node: u32, max_order: u32) -> Option<Block> {
        let order = self.order.min(max_order);
        let pfn = self.next;
        self.next += 1 << order;
        (self.next <= self.end).then_some(Block {
            pfn,
            order,
            zero: true,
        })
    }
}

#[test]
fn fills_until_the_colour_is_found() {
    let mut lists = lists();
    let cell = lists.map().cell_of_frame(0x20).unwrap();
    let mut source = Upwards {
        next: 0,
        end: 0x1000,
        order: 3,
    };
    let fill = lists
        .fill(&mut source, &[cell], FillLimits::default())
        .unwrap();
    assert_eq!(fill.hit, Some(0));
    assert!(fill.added >= 0x28, "it went on past the first blocks");
    let (pfn, zero) = lists.get(cell, 9, true).unwrap();
    assert_eq!(lists.map().cell_of_frame(pfn.into()), Some(cell));
    assert!(zero);
    assert_eq!(lists.owner(pfn), Some(9));
    assert_eq!(lists.put(pfn, false), Ok(9));
    assert_eq!(lists.state(pfn), FrameState::Listed);
}

#[test]
fn an_empty_source_is_exhaustion() {
    let mut lists = lists();
    let mut source = Upwards {
        next: 0,
        end: 0,
        order: 0,
    };
    let fill = lists
        .fill(&mut source, &[0], FillLimits::default())
        .unwrap();
    assert_eq!((fill.added, fill.hit), (0, None));
    assert_eq!(lists.get(0, 1, false), None);
}

#[test]
fn bad_blocks_are_refused() {
    struct Bad(Block);
    impl Source for Bad {
        fn block(&mut self, _node: u32, _max_order: u32) -> Option<Block> {
            Some(self.0)
        }
    }
    let mut lists = lists();
    lists.add(0x40, false).unwrap();
    for (pfn, order) in [
        (0x1000, 0),
        (0xfff, 1),
        (1, 1),
        (0x40, 0),
        (0, 30),
        (u64::MAX, 0),
    ] {
        let mut source = Bad(Block {
            pfn,
            order,
            zero: false,
        });
        let refused = lists.fill(&mut source, &[1], FillLimits::default());
        assert_eq!(refused, Err(FrameError::BadBlock { pfn, order }));
    }
    let none = lists.fill(
        &mut Upwards {
            next: 0,
            end: 0,
            order: 0,
        },
        &[999],
        FillLimits::default(),
    );
    assert_eq!(none, Err(FrameError::NoCell(999)));
}

#[test]
fn states_are_checked() {
    let mut lists = lists();
    assert!(matches!(
        lists.put(5, false),
        Err(FrameError::WrongState { pfn: 5, .. })
    ));
    assert_eq!(
        lists.add(0x1000, false),
        Err(FrameError::OutOfRange(0x1000))
    );
    lists.add(5, false).unwrap();
    assert!(lists.add(5, false).is_err() && lists.forget(5).is_err());
    assert_eq!(lists.get(u32::MAX, 1, false), None);
    assert_eq!(lists.drain(u32::MAX), None);
    let cell = lists.map().cell_of_frame(5).unwrap();
    assert_eq!(lists.drain(cell), Some(5));
    assert_eq!(lists.state(5), FrameState::Foreign);
}

proptest! {
    /// Whatever happens, each frame is in one state and the counts agree.
    #[test]
    fn frames_are_conserved(steps in proptest::collection::vec((0u8..5, 0u32..0x1000, any::<bool>()), 0..400)) {
        let mut lists = lists();
        for (op, n, zero) in steps {
            let cell = n % lists.map().n_cells();
            match op {
                0 => { let _ = lists.add(n, zero); }
                1 => if let Some((pfn, _)) = lists.get(cell, n, zero) {
                    prop_assert_eq!(lists.map().cell_of_frame(pfn.into()), Some(cell));
                    prop_assert_eq!(lists.owner(pfn), Some(n));
                },
                2 => { let _ = lists.put(n, zero); }
                3 => { let _ = lists.forget(n); }
                _ => { lists.drain(cell); }
            }
        }
        let (mut listed, mut used) = (0, 0);
        for pfn in 0..0x1000 {
            match lists.state(pfn) {
                FrameState::Listed => listed += 1,
                FrameState::Used => used += 1,
                FrameState::Foreign => {}
            }
        }
        let cells = 0..lists.map().n_cells();
        prop_assert_eq!(cells.clone().map(|c| lists.listed(c)).sum::<u32>(), listed);
        prop_assert_eq!(cells.clone().map(|c| lists.used(c)).sum::<u32>(), used);
        let mut drained = 0;
        for cell in cells {
            while lists.drain(cell).is_some() {
                drained += 1;
            }
        }
        prop_assert_eq!(drained, listed);
    }
}

//! Timing rules: each is illegal at t-1 and legal at t, by hand; and no command
//! of the scheduler ever breaks one, whatever the requests.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

mod common;

use common::{device, devices, play, Req};
use proptest::prelude::*;
use soloist_machine::dram::{Device, RefreshScheme};
use soloist_machine::memory::{Order, Page, Policy};
use soloist_memory::checker::ChannelChecker;
use soloist_memory::controller::schedulers;
use soloist_memory::dram::{Command, Issued};
use soloist_memory::Geometry;

const ACT: Command = Command::Activate { row: 1 };
const RD: Command = Command::Read { auto: false };
const WR: Command = Command::Write { auto: false };
const PRE: Command = Command::Precharge;

/// `last` at `t - 1` breaks a rule, at `t` it breaks none.
fn boundary(name: &str, ranks: u32, before: &[(u64, u16, Command)], t: u64, last: (u16, Command)) {
    boundary_of(&device(name), ranks, before, t, last);
}

fn boundary_of(
    d: &Device,
    ranks: u32,
    before: &[(u64, u16, Command)],
    t: u64,
    last: (u16, Command),
) {
    let name = &d.name;
    let verdict = |at: u64| {
        let mut checker = ChannelChecker::new(d, &Geometry::of_device(d, ranks));
        for &(at, bank, command) in before {
            checker.see(&Issued { at, bank, command }).unwrap();
        }
        let (bank, command) = last;
        checker.see(&Issued { at, bank, command })
    };
    let early = verdict(t - 1);
    assert!(
        early.is_err(),
        "{name}: {last:?} was legal at {} already",
        t - 1
    );
    assert_eq!(early.unwrap_err().legal_at, t, "{name}: {last:?}");
    assert_eq!(verdict(t), Ok(()), "{name}: {last:?} at {t}");
}

/// The figures are the data sheet's, typed in once more by hand.
#[test]
fn rules_of_ddr3_1600k() {
    let k = "DDR3-1600K";
    boundary(k, 1, &[(0, 0, ACT)], 11, (0, RD)); // tRCD
    boundary(k, 1, &[(0, 0, ACT)], 11, (0, WR));
    boundary(k, 1, &[(0, 0, ACT)], 28, (0, PRE)); // tRAS
    boundary(k, 1, &[(0, 0, ACT), (40, 0, PRE)], 51, (0, ACT)); // tRP
    boundary(k, 1, &[(0, 0, ACT), (28, 0, PRE)], 39, (0, ACT)); // tRC
    boundary(k, 1, &[(0, 0, ACT)], 5, (1, ACT)); // tRRD
    let four = [(0, 0, ACT), (5, 1, ACT), (10, 2, ACT), (15, 3, ACT)];
    boundary(k, 1, &four, 24, (4, ACT)); // tFAW
    let open = [(0, 0, ACT), (5, 1, ACT)];
    let after = |c| [open[0], open[1], (100, 0, c)];
    boundary(k, 1, &after(RD), 104, (0, RD)); // tCCD
    boundary(k, 1, &after(RD), 104, (1, RD));
    boundary(k, 1, &after(WR), 104, (1, WR));
    boundary(k, 1, &after(RD), 109, (0, WR)); // CL + burst + 2 - CWL
    boundary(k, 1, &after(WR), 118, (1, RD)); // CWL + burst + tWTR
    boundary(k, 1, &after(RD), 106, (0, PRE)); // tRTP
    boundary(k, 1, &after(WR), 124, (0, PRE)); // CWL + burst + tWR
    let closed = [(0, 0, ACT), (50, 0, PRE)];
    boundary(k, 1, &closed, 61, (0, Command::Refresh)); // tRP
    boundary(k, 1, &[(10, 0, Command::Refresh)], 138, (0, ACT)); // tRFC
    boundary(k, 1, &[(10, 0, Command::Refresh)], 138, (7, ACT));
}

#[test]
fn rules_between_ranks() {
    let k = "DDR3-1600K";
    let open = [(0, 0, ACT), (1, 8, ACT)];
    let after = |c| [open[0], open[1], (100, 0, c)];
    boundary(k, 2, &after(RD), 106, (8, RD)); // burst + tRTRS
    boundary(k, 2, &after(WR), 106, (8, WR));
    boundary(k, 2, &after(RD), 109, (8, WR)); // CL + burst + tRTRS - CWL
    boundary(k, 2, &after(WR), 103, (8, RD)); // CWL + burst + tRTRS - CL
}

#[test]
fn rules_of_bank_groups() {
    let k = "DDR4-2400R";
    // Low bank bits are the group: 0 and 4 share one, 0 and 1 do not.
    boundary(k, 1, &[(0, 0, ACT)], 4, (1, ACT)); // tRRD_S
    boundary(k, 1, &[(0, 0, ACT)], 6, (4, ACT)); // tRRD_L
    let open = [(0, 0, ACT), (4, 1, ACT), (10, 4, ACT)];
    let after = |c| [open[0], open[1], open[2], (100, 0, c)];
    boundary(k, 1, &after(RD), 104, (1, RD)); // tCCD_S
    boundary(k, 1, &after(RD), 106, (4, RD)); // tCCD_L
    boundary(k, 1, &after(WR), 119, (1, RD)); // CWL + burst + tWTR_S
    boundary(k, 1, &after(WR), 125, (4, RD)); // CWL + burst + tWTR_L
}

#[test]
fn rules_of_the_standards() {
    // DDR2: read to precharge is burst + tRTP - 2.
    let ddr2 = "DDR2-800 (PC2-6400)";
    boundary(ddr2, 1, &[(0, 0, ACT), (50, 0, RD)], 55, (0, PRE));
    // LPDDR4: tWR counts from a cycle after the last beat.
    let lp4 = "LPDDR4-3200";
    boundary(
        lp4,
        1,
        &[(0, 0, ACT), (200, 0, WR)],
        200 + 14 + 16 + 1 + 29,
        (0, PRE),
    );
    // Per-bank refresh leaves the other banks alone.
    boundary(lp4, 1, &[(10, 0, Command::Refresh)], 154, (0, ACT));
    boundary(lp4, 1, &[(10, 0, Command::Refresh)], 26, (1, ACT));
    // But it is an activate to them: tRRD, and one of four in tFAW.
    boundary(lp4, 1, &[(10, 0, ACT)], 26, (1, Command::Refresh));
    let four = [
        (0, 0, ACT),
        (16, 1, ACT),
        (32, 2, ACT),
        (48, 3, Command::Refresh),
    ];
    boundary(lp4, 1, &four, 64, (4, ACT));
    let four = [(0, 0, ACT), (16, 1, ACT), (32, 2, ACT), (48, 3, ACT)];
    boundary(lp4, 1, &four, 64, (4, Command::Refresh));
    boundary(
        lp4,
        1,
        &[(10, 0, Command::Refresh)],
        154,
        (1, Command::Refresh),
    );
    // Precharges keep a distance, and one of all banks takes longer.
    boundary(
        lp4,
        1,
        &[(0, 0, ACT), (16, 1, ACT), (100, 0, PRE)],
        104,
        (1, PRE),
    );
    let all = [(0, 0, ACT), (40, 0, Command::PrechargeUnit)];
    boundary(ddr2, 1, &all, 46, (0, ACT));
    // A command of LPDDR4 takes two cycles of the command bus.
    boundary(lp4, 1, &[(0, 0, ACT), (100, 0, PRE)], 102, (1, ACT));
    boundary(
        lp4,
        1,
        &[(0, 0, ACT), (100, 1, Command::Refresh)],
        102,
        (0, RD),
    );
    boundary(lp4, 1, &[(0, 0, ACT), (200, 0, RD)], 220, (0, PRE)); // burst + tRTP - 8
                                                                   // LPDDR5: tRBTP counts from the burst's end; tpbR2act, tpbR2pbR.
    let lp5 = "LPDDR5-6400";
    boundary(lp5, 1, &[(0, 0, ACT), (100, 0, RD)], 108, (0, PRE)); // burst + 7.5 ns - 2
    boundary(lp5, 1, &[(10, 0, Command::Refresh)], 16, (1, ACT));
    boundary(
        lp5,
        1,
        &[(10, 0, Command::Refresh)],
        82,
        (1, Command::Refresh),
    );
    // DDR5: an activate takes two cycles of the command bus.
    let ddr5 = "DDR5-4800B";
    boundary(ddr5, 2, &[(0, 0, ACT)], 2, (32, ACT));
    // Read to write: BL/2 + 2; CL - CWL + BL/2 + 2, and the preamble of two cycles.
    let read = [(0, 0, ACT), (100, 0, RD)];
    boundary(ddr2, 1, &read, 106, (0, WR));
    boundary(ddr5, 1, &read, 114, (0, WR));
    for name in [ddr2, ddr5] {
        let (device, reads) = (
            device(name),
            [common::read(0, 0, 1), common::write(0, 0, 1)],
        );
        let played = play(&device, 1, &Policy::default(), &reads);
        let at = |wanted| played.log.iter().find(|c| c.command == wanted).unwrap().at;
        let legal = if name == ddr2 { 6 } else { 14 };
        assert_eq!(at(WR) - at(RD), legal, "{name}");
    }
}

/// DDR5 with a refresh of the same bank of every group.
#[test]
fn rules_of_same_bank_refresh() {
    let d = same_bank_refresh();
    let on = |before: &[(u64, u16, Command)], t, last| boundary_of(&d, 1, before, t, last);
    on(&[(10, 0, Command::Refresh)], 323, (3, ACT)); // tRFCsb: bank 0 of group 3
    on(&[(10, 0, Command::Refresh)], 83, (8, ACT)); // tREFSBRD, not tRRD_L
    on(&[(10, 0, Command::Refresh)], 323, (8, Command::Refresh));
    on(&[(10, 8, ACT)], 22, (0, Command::Refresh)); // tRRD_L
                                                    // Writes of one group: tCCD_L_WR.
    let open = [(0, 0, ACT), (20, 8, ACT), (100, 0, WR)];
    on(&open, 124, (8, WR));
}

fn same_bank_refresh() -> Device {
    Device {
        name: "DDR5-4800B, same-bank refresh".to_owned(),
        refresh: RefreshScheme::SameBank,
        ..device("DDR5-4800B")
    }
}

#[test]
fn states() {
    let d = device("DDR3-1600K");
    let mut c = ChannelChecker::new(&d, &Geometry::of_device(&d, 1));
    let see = |c: &mut ChannelChecker, at, command| {
        c.see(&Issued {
            at,
            bank: 0,
            command,
        })
    };
    assert!(see(&mut c, 5, RD).is_err(), "read of a closed bank");
    assert!(see(&mut c, 5, ACT).is_ok());
    assert!(see(&mut c, 100, ACT).is_err(), "activate of an open bank");
    assert!(
        see(&mut c, 100, Command::Refresh).is_err(),
        "refresh of an open bank"
    );
}

fn policies() -> impl Strategy<Value = Policy> {
    let idle = (1_u32..300).prop_map(Page::Idle);
    let pages = prop_oneof![Just(Page::Open), Just(Page::Closed), idle];
    let orders = prop_oneof![Just(Order::RoundRobin), Just(Order::Oldest)];
    let queues = (1_u32..17, 1_u32..40, 1_u32..20);
    let caps = (0_u32..20, 0_u32..20, 0_u32..40);
    (pages, orders, queues, caps).prop_map(
        |(page, order, (bank_queue, hit_cap, drain_idle), caps)| Policy {
            direction_cap: caps.0,
            rank_cap: caps.1,
            refresh_management: caps.2,
            page,
            order,
            bank_queue,
            hit_cap,
            drain_idle,
            ..Policy::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// No command of the scheduler is ever early, every request is served
    /// once, and refreshes keep up.
    #[test]
    fn the_scheduler_breaks_no_rule(
        which in 0..=devices().len(),
        ranks in 1_u32..4,
        policy in policies(),
        gap in 0_u64..60,
        rows in 1_u32..6,
        raw in prop::collection::vec((any::<u32>(), any::<u16>(), 0_u32..6, any::<bool>()), 1..600),
    ) {
        let mut devices = devices();
        devices.push(same_bank_refresh());
        let d = &devices[which];
        let banks = ranks * d.banks;
        let mut at = 0;
        let requests: Vec<Req> = raw
            .iter()
            .map(|&(wait, bank, row, write)| {
                at += if gap == 0 { 0 } else { u64::from(wait) % gap };
                Req { at, bank: (u32::from(bank) % banks) as u16, row: row % rows, write }
            })
            .collect();
        for scheduler in schedulers() {
            let policy = Policy { scheduler, ..policy.clone() };
            breaks_no_rule(d, ranks, &policy, &requests)?;
        }
    }
}

fn breaks_no_rule(
    d: &Device,
    ranks: u32,
    policy: &Policy,
    requests: &[Req],
) -> Result<(), TestCaseError> {
    let played = play(d, ranks, policy, requests);
    let mut checker = ChannelChecker::new(d, &Geometry::of_device(d, ranks));
    for command in &played.log {
        if let Err(violation) = checker.see(command) {
            prop_assert!(false, "{}: {violation}", d.name);
        }
    }
    let mut tokens: Vec<_> = played.done.iter().map(|c| c.token).collect();
    tokens.sort_unstable();
    prop_assert_eq!(tokens, (0..requests.len() as u64).collect::<Vec<_>>());
    let is_refresh = |c: &&Issued| c.command == Command::Refresh;
    let refreshes = played.log.iter().filter(is_refresh).count() as u64;
    let last = played.log.last().map_or(0, |c| c.at);
    let due = last * u64::from(ranks) / u64::from(d.refresh_interval());
    let lag = u64::from(ranks) * u64::from(d.refresh_units()) + 1;
    prop_assert!(
        refreshes + lag >= due,
        "{}: {refreshes} of {due} refreshes",
        d.name
    );
    Ok(())
}

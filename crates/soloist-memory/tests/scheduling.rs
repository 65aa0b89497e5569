//! Who goes first, and nobody starves.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

mod common;

use common::{device, play, read, write, Played, Req};
use soloist_machine::dram::RefreshScheme;
use soloist_machine::memory::{Order, Policy};
use soloist_memory::dram::Issued;
use soloist_memory::{Controller, Geometry, Request};

fn ddr3(policy: &Policy, requests: &[Req]) -> Played {
    play(&device("DDR3-1600K"), 1, policy, requests)
}

#[test]
fn a_row_hit_passes_an_older_conflict() {
    let p = ddr3(
        &Policy::default(),
        &[read(0, 0, 0), read(1, 0, 1), read(2, 0, 0)],
    );
    assert!(p.turn(2) < p.turn(1));
}

#[test]
fn first_come_first_served_lets_no_hit_pass_in_its_bank() {
    let policy = Policy {
        scheduler: "fcfs".to_owned(),
        ..Policy::default()
    };
    // Rows 0, 1, 0, 1 ... of bank 0: every one is a conflict; bank 1 goes on beside it.
    let mut requests: Vec<_> = (0..8).map(|i| read(0, 0, i % 2)).collect();
    requests.push(read(0, 1, 0));
    let p = ddr3(&policy, &requests);
    let turns: Vec<usize> = (0..8).map(|i| p.turn(i)).collect();
    assert!(turns.is_sorted(), "{turns:?}");
    assert!(p.turn(8) < p.turn(1));
    let ready_first = ddr3(&Policy::default(), &requests);
    assert!(p.makespan() > 2 * ready_first.makespan());
}

#[test]
fn hits_may_pass_only_so_often() {
    for hit_cap in [1, 4, 16] {
        let policy = Policy {
            hit_cap,
            // Closing early is not what is tested here.
            hit_limit: 1 << 20,
            ..Policy::default()
        };
        let mut requests = vec![read(0, 0, 0), read(1, 0, 1)];
        requests.extend((0..200).map(|_| read(2, 0, 0)));
        let p = ddr3(&policy, &requests);
        // Itself, the request before it, and those that passed it.
        assert_eq!(p.turn(1), hit_cap as usize + 1, "hit_cap {hit_cap}");
    }
}

#[test]
fn nobody_starves_under_a_stream_of_hits() {
    let mut requests = vec![read(0, 0, 0), read(10, 0, 1)];
    requests.extend((0..5000).map(|i| read(i, 0, 0)));
    let policy = Policy::default();
    let p = ddr3(&policy, &requests);
    assert!(
        p.turn(1) <= policy.hit_cap as usize + 1,
        "turn {}",
        p.turn(1)
    );
}

#[test]
fn writes_wait_while_there_is_something_to_read() {
    let policy = Policy::default();
    let mut requests: Vec<_> = (0..10).map(|i| read(0, 0, i)).collect();
    requests.extend((0..20).map(|i| write(0, 1, i)));
    requests.extend((10..200).map(|i| read(0, 0, i)));
    let p = ddr3(&policy, &requests);
    let first_write = (10..30).map(|i| p.turn(i)).min().unwrap();
    assert!(policy.drain_high > 20);
    assert_eq!(first_write, 200, "all reads come first");
}

#[test]
fn a_full_write_buffer_goes_before_reads() {
    let n = u64::from(Policy::default().drain_high);
    let mut requests: Vec<_> = (0..n as u32).map(|i| write(0, 1, i)).collect();
    requests.extend((0..200).map(|i| read(0, 0, i)));
    let p = ddr3(&Policy::default(), &requests);
    let first_write = (0..n).map(|i| p.turn(i)).min().unwrap();
    assert!(first_write < 20, "{first_write}");
}

#[test]
fn a_read_of_buffered_data_needs_no_dram() {
    use soloist_memory::RowOutcome;
    let d = device("DDR3-1600K");
    let mut c = Controller::new(&d, &Geometry::of_device(&d, 1), &Policy::default());
    let request = |token, write| Request {
        token,
        line: 7,
        bank: 0,
        row: 0,
        write,
        owner: 0,
    };
    assert!(c.push(0, request(0, true)).is_none());
    let served = c.push(1, request(1, false)).unwrap();
    assert_eq!((served.outcome, served.done), (RowOutcome::Buffered, 2));
}

#[test]
fn banks_take_turns_or_the_oldest_goes_first() {
    // Rows 0 of banks 1 and 2 are open. Three hits of bank 2 and then one of
    // bank 1 arrive within four cycles, which is what a column command takes.
    let requests = [
        read(0, 1, 0),
        read(0, 2, 0),
        read(300, 2, 0),
        read(300, 2, 0),
        read(300, 2, 0),
        read(300, 1, 0),
    ];
    for (order, turn) in [(Order::RoundRobin, 3), (Order::Oldest, 5)] {
        let policy = Policy {
            order,
            ..Policy::default()
        };
        assert_eq!(ddr3(&policy, &requests).turn(5), turn, "{order:?}");
    }
}

#[test]
fn sleep_through_refreshes_changes_nothing_afterwards() {
    use soloist_machine::memory::Page;
    let d = device("LPDDR4-3200");
    let after = |steps: u64, end: u64, page: Page| {
        let policy = Policy {
            page,
            ..Policy::default()
        };
        let mut c = Controller::new(&d, &Geometry::of_device(&d, 2), &policy);
        let request = |token, row| Request {
            token,
            line: token,
            bank: 5,
            row,
            write: false,
            owner: 0,
        };
        c.idle_until(10);
        c.push(10, request(0, 1));
        while c.next().is_some() {
            c.step();
        }
        for i in 1..=steps {
            c.idle_until(end * i / steps);
        }
        c.push(end, request(1, 2));
        let mut done = None;
        while done.is_none() {
            done = c.step();
        }
        (done.unwrap().done, c.counts())
    };
    for end in [3_000_000, 3_000_150, 3_003_999, 3_123_456] {
        for page in [Page::Open, Page::Idle(500)] {
            assert_eq!(
                after(1, end, page),
                after(20_000, end, page),
                "{end} {page:?}"
            );
        }
    }
}

#[test]
fn closed_page_closes_by_itself() {
    use soloist_machine::memory::Page;
    use soloist_memory::dram::Command;
    let policy = Policy {
        page: Page::Closed,
        ..Policy::default()
    };
    let p = ddr3(&policy, &[read(0, 0, 0), read(200, 0, 1), read(400, 0, 1)]);
    assert!(p.log.iter().all(|c| c.command != Command::Precharge));
    assert_eq!((p.latency(1), p.latency(2)), (27, 27));
}

#[test]
fn a_row_that_nobody_uses_closes() {
    use soloist_machine::memory::Page;
    use soloist_memory::dram::Command;
    let policy = Policy {
        page: Page::Idle(100),
        ..Policy::default()
    };
    // The second finds the row open, the third, of another row, a closed bank; and the fourth,
    // which comes too soon for that, a conflict.
    let requests = [
        read(0, 0, 0),
        read(100, 0, 0),
        read(300, 0, 1),
        read(380, 0, 2),
    ];
    let p = ddr3(&policy, &requests);
    let latencies = [1, 2, 3].map(|i| p.latency(i));
    assert_eq!(latencies, [16, 27, 38]);
    let closed = p.log.iter().filter(|c| c.command == Command::Precharge);
    let at: Vec<u64> = closed.map(|c| c.at).collect();
    // The column command of the second is in cycle 101.
    assert_eq!(at[..2], [201, 381]);
}

/// DDR5's refresh management: a bank that is activated often is refreshed more often.
#[test]
fn a_bank_that_is_activated_often_is_refreshed_more() {
    use soloist_memory::dram::Command;
    let device = device("DDR5-4800B")
        .refreshed_by(RefreshScheme::SameBank)
        .unwrap();
    let requests: Vec<Req> = (0..3000).map(|i| read(0, 0, i)).collect();
    let refreshes = |refresh_management| {
        let policy = Policy {
            refresh_management,
            ..Policy::default()
        };
        let played = play(&device, 1, &policy, &requests);
        let of_bank_0 = |c: &&Issued| c.command == Command::Refresh && c.bank == 0;
        played.log.iter().filter(of_bank_0).count()
    };
    assert!((70..90).contains(&refreshes(0)), "{}", refreshes(0));
    // A refresh in turn takes off no more than there is.
    let managed = 3000 / 16;
    assert!(
        (managed..managed + 80).contains(&refreshes(16)),
        "{}",
        refreshes(16)
    );
}

/// A stream of reads in other banks is always legal before a write that must turn the bus.
#[test]
fn a_stream_does_not_starve_the_other_direction() {
    let reads = |i: u64| read(4 * i, (i % 4) as u16, 0);
    let mut requests: Vec<Req> = (0..400).map(reads).collect();
    requests.insert(40, write(160, 7, 0));
    let written = |direction_cap| {
        let policy = Policy {
            direction_cap,
            // One write is enough for a drain.
            drain_high: 1,
            drain_low: 0,
            ..Policy::default()
        };
        ddr3(&policy, &requests).latency(40)
    };
    assert!(written(0) > 1000, "{}", written(0));
    assert!(written(16) < 200, "{}", written(16));
}

/// A stream of reads in one rank is always legal before a read of the other.
#[test]
fn a_stream_does_not_starve_the_other_rank() {
    let reads = |i: u64| read(4 * i, (i % 4) as u16, 0);
    let mut requests: Vec<Req> = (0..400).map(reads).collect();
    // Bank 0 of the second rank.
    requests.insert(40, read(160, 8, 0));
    let latency = |rank_cap| {
        let policy = Policy {
            rank_cap,
            ..Policy::default()
        };
        play(&device("DDR3-1600K"), 2, &policy, &requests).latency(40)
    };
    assert!(latency(0) > 1000, "{}", latency(0));
    assert!(latency(15) < 120, "{}", latency(15));
}

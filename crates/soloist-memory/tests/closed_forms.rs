//! Latency and throughput against closed forms.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

mod common;

use common::{device, devices, play, read, write, Req};
use soloist_machine::memory::Policy;
use soloist_memory::replay::{Replay, Source};
use soloist_memory::trace::{Format, Reader};
use soloist_memory::{Machine, RowOutcome};

/// Idle latencies of the device on which established simulators agree.
#[test]
fn idle_latencies_of_ddr3_1600k() {
    let d = device("DDR3-1600K");
    let p = play(
        &d,
        1,
        &Policy::default(),
        &[read(100, 0, 0), read(300, 0, 0), read(500, 0, 1)],
    );
    assert_eq!(p.latency(0), 27, "bank closed");
    assert_eq!(p.latency(1), 16, "row hit");
    assert_eq!(p.latency(2), 38, "row conflict");
    assert_eq!(p.of(0).outcome, RowOutcome::Closed);
    assert_eq!(p.of(1).outcome, RowOutcome::Hit);
    assert_eq!(p.of(2).outcome, RowOutcome::Conflict);
}

/// One cycle to the controller, then CL and the burst; tRCD and tRP before it.
#[test]
fn idle_latencies_of_every_device() {
    for d in devices() {
        // Bank 7, because per-bank refresh comes to bank 0 first.
        let p = play(
            &d,
            1,
            &Policy::default(),
            &[read(100, 7, 0), read(300, 7, 0), read(500, 7, 1)],
        );
        let hit = u64::from(1 + d.cl + d.burst_cycles());
        assert_eq!(p.latency(1), hit, "{}", d.name);
        assert_eq!(p.latency(0), hit + u64::from(d.trcd), "{}", d.name);
        assert_eq!(p.latency(2), hit + u64::from(d.trcd + d.trp), "{}", d.name);
    }
}

/// Reads of one row after the other, banks in turn.
fn stream(d: &soloist_machine::dram::Device, n: u32) -> Vec<Req> {
    let lines = d.row_bytes / d.burst_bytes();
    let group_first = |i: u32| (i % d.banks) as u16;
    (0..n)
        .map(|i| {
            // Neighbouring lines go to different bank groups where there are
            // some, as address maps of such devices do.
            let block = i / (lines * d.bank_groups);
            let bank = group_first(block * d.bank_groups + i % d.bank_groups);
            read(0, bank, block / d.banks)
        })
        .collect()
}

/// A stream fills the data bus, refresh aside.
#[test]
fn streams_reach_peak_bandwidth() {
    for d in devices() {
        let n = 40_000;
        let p = play(&d, 1, &Policy::default(), &stream(&d, n));
        let ideal = f64::from(n) * f64::from(d.burst_cycles());
        // All-bank refresh stops the rank for tRFC of every tREFI; per-bank
        // refresh hides behind the other banks.
        let lost = if d.refresh_units() > 1 { 0 } else { d.trfc };
        let refresh = f64::from(d.trefi) / f64::from(d.trefi - lost);
        let ratio = p.makespan() as f64 / (ideal * refresh);
        // Some bank is refreshed for so long of each interval: what is long does not hide.
        let busy = f64::from(d.trfc_pb) * f64::from(d.refresh_units()) / f64::from(d.trefi);
        let most = if busy > 0.2 { 1.0 / (1.0 - busy) } else { 1.03 };
        assert!((0.95..most).contains(&ratio), "{}: {ratio:.3}", d.name);
    }
}

/// Another row of one bank every time: one request per tRC, and refreshes.
#[test]
fn one_bank_with_row_misses_takes_trc_each() {
    for d in devices() {
        let n = 3000_u32;
        let requests: Vec<_> = (0..n).map(|i| read(0, 0, i)).collect();
        let p = play(&d, 1, &Policy::default(), &requests);
        let ideal = f64::from(n) * f64::from(d.trc);
        let lost = match d.trfc_pb {
            0 => d.trfc,
            pb if d.refresh_units() > 1 => pb / d.refresh_units(),
            _ => d.trfc,
        };
        let refresh = f64::from(d.refresh_interval()) / f64::from(d.refresh_interval() - lost);
        let ratio = p.makespan() as f64 / (ideal * refresh);
        assert!((0.99..1.01).contains(&ratio), "{}: {ratio:.4}", d.name);
    }
}

/// MemGuard 4.1: 1.2 GB/s for PC2-6400, from tRC.
#[test]
fn guaranteed_bandwidth_of_memguard() {
    let d = device("DDR2-800 (PC2-6400)");
    assert!((d.one_bank_bandwidth() / 1e9 - 1.2).abs() < 0.05);
    let requests: Vec<_> = (0..5000).map(|i| read(0, 0, i)).collect();
    let p = play(&d, 1, &Policy::default(), &requests);
    let seconds = p.makespan() as f64 * f64::from(d.tck_ps) * 1e-12;
    let bandwidth = 5000.0 * 64.0 / seconds / 1e9;
    assert!((bandwidth - 1.2).abs() < 0.1, "{bandwidth:.3} GB/s");
}

/// Random rows over all banks of DDR3-1600K: four activates per tFAW.
#[test]
fn random_rows_are_bound_by_tfaw() {
    let d = device("DDR3-1600K");
    let mut x = 1_u64;
    let requests: Vec<_> = (0..20_000)
        .map(|_| {
            x = x
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            read(0, (x >> 61) as u16, (x >> 40) as u32 & 0xffff)
        })
        .collect();
    let p = play(&d, 1, &Policy::default(), &requests);
    let ideal = 20_000.0 * 6.0 * 6240.0 / (6240.0 - 128.0);
    let ratio = p.makespan() as f64 / ideal;
    assert!((1.0..1.03).contains(&ratio), "{ratio:.4}");
}

/// Writes of one row: CWL and burst to the last beat.
#[test]
fn an_idle_write_takes_cwl_and_burst() {
    let d = device("DDR3-1600K");
    let p = play(&d, 1, &Policy::default(), &[write(100, 0, 0)]);
    // Nothing to read: the drain at the end of the trace takes it at once.
    assert_eq!(p.latency(0), 1 + 11 + 8 + 4);
}

/// Writes to one line that waits already move nothing: the bus carries no more than it can.
#[test]
fn what_the_write_buffer_merges_is_no_bandwidth() {
    let machine = Machine::find("ddr3-1600k").unwrap();
    let text = "0x0 W\n".repeat(10_000);
    let source = Source {
        reader: Reader::new(text.as_bytes(), "t.trc", Format::Ramulator),
        outstanding: None,
    };
    let report = Replay::new(&machine, vec![source]).run(|_, _| {}, None);
    let all = report.unwrap().all;
    assert!(all.buffered > 9_000, "{all:?}");
    let most = machine.device.peak_bandwidth();
    let moved = all.bandwidth_bytes_per_second;
    assert!(moved > 0.0 && moved <= most, "{moved} of {most} bytes/s");
}

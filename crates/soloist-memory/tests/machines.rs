//! Files, traces and whole machines.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

use soloist_machine::dram::Device;
use soloist_memory::core::{Access, CoreStats, Step, Stream};
use soloist_memory::replay::{Replay, Report, Source};
use soloist_memory::system::{Free, Guard, RunError};
use soloist_memory::trace::{Format, Reader};
use soloist_memory::{Decoder, Machine, Platform, System};

const MODELLED: [&str; 11] = [
    "ddr3-1600k",
    "opteron-6128",
    "opteron-6128-noninterleaved",
    "xeon-w3530",
    "core2quad-q8400",
    "p4080",
    "haswell",
    "skylake",
    "zen2",
    "raspberry-pi-4",
    "sapphire-rapids",
];

#[test]
fn decoder_agrees_with_core() {
    let divided = [
        "server-3-channels",
        "server-6-channels",
        "server-12-channels",
        "server-uneven-channels",
    ];
    for name in MODELLED.into_iter().chain(divided) {
        let map = &soloist_machine::known::find(name).unwrap().addr_map();
        let decoder = Decoder::new(map);
        let end = map.ranges().map(|r| r.end).max().unwrap();
        let mut addr = 0_u64;
        for i in 0..20_000_u64 {
            addr = addr
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(i | 1);
            let a = addr % (end + end / 8);
            let core = map.decode(a).ok().map(|d| {
                let channel = d.node * map.n_channels() + d.channel;
                (channel, d.rank * map.n_banks() + d.bank, d.row)
            });
            let fast = decoder
                .decode(a)
                .map(|p| (u32::from(p.channel), u32::from(p.bank), p.row));
            assert_eq!(fast, core, "{name}: {a:#x}");
        }
    }
}

#[test]
fn device_files_are_checked() {
    let good = include_str!("../../../machines/dram/ddr3-1600k.toml");
    assert!(Device::parse(good, "x.toml").is_ok());
    let misspelt = good.replace("tREFI = 6240", "tREF = 6240");
    let error = Device::parse(&misspelt, "x.toml").unwrap_err().to_string();
    let line = 1 + good.lines().position(|l| l.starts_with("tREFI")).unwrap();
    assert!(error.starts_with(&format!("x.toml:{line}:")), "{error}");
    assert!(error.contains("tREF"), "{error}");
    let missing = good.replace("tFAW = 24\n", "");
    let error = Device::parse(&missing, "x.toml").unwrap_err().to_string();
    assert!(error.contains("tFAW"), "{error}");
    for huge in ["4294967295", "20000000"] {
        let huge = good.replace("tRFC = 128", &format!("tRFC = {huge}"));
        let error = Device::parse(&huge, "x.toml").unwrap_err().to_string();
        assert!(error.contains("tRFC"), "{error}");
    }
    let absurd = good.replace("tRC = 39", "tRC = 3");
    let error = Device::parse(&absurd, "x.toml").unwrap_err().to_string();
    assert!(error.contains("tRC"), "{error}");
}

fn replay(
    machine: &str,
    format: Format,
    traces: &[(&str, Option<usize>)],
) -> Result<Report, String> {
    let machine = Machine::find(machine).unwrap();
    let sources = traces
        .iter()
        .map(|&(text, outstanding)| Source {
            reader: Reader::new(text.as_bytes(), "t.trc", format),
            outstanding,
        })
        .collect();
    let mut replay = Replay::new(&machine, sources);
    replay.run(|_, _| {}, None).map_err(|e| e.to_string())
}

#[test]
fn traces_of_both_formats() {
    let text = "# a comment\n0x0 READ 100\n\n0x40 READ 300\r\n0x10000 WRITE 500";
    let report = replay("ddr3-1600k", Format::Dramsim3, &[(text, None)]).unwrap();
    assert_eq!((report.all.reads, report.all.writes), (2, 1));
    assert_eq!(
        (
            report.all.row_hits,
            report.all.row_misses,
            report.all.row_conflicts
        ),
        (1, 1, 1)
    );
    assert_eq!(report.all.latency_cycles.average, (27.0 + 16.0) / 2.0);
    assert_eq!(report.all.latency_ns.max, 27.0 * 1.25);
    let text = "0x0 R\nST 64\nW 0x80\n0x40 W\n";
    let report = replay("ddr3-1600k", Format::Ramulator, &[(text, None)]).unwrap();
    assert_eq!((report.all.reads, report.all.writes), (1, 3));
    assert_eq!(report.all.buffered, 1);
}

#[test]
fn wrong_lines_are_named() {
    for (format, text, line) in [
        (Format::Dramsim3, "0x0 READ 0\n0x40 READ\n", 2),
        (Format::Dramsim3, "0x0 READ 0 7\n", 1),
        (Format::Dramsim3, "0xfffffffffffffffff READ 0\n", 1),
        (Format::Dramsim3, "0x0 FETCH 0\n", 1),
        (Format::Ramulator, "0x0 R\n0x0 X\n", 2),
        (Format::Ramulator, "R\n", 1),
    ] {
        let error = replay("ddr3-1600k", format, &[(text, None)]).unwrap_err();
        assert!(
            error.starts_with(&format!("t.trc:{line}: expected")),
            "{error}"
        );
    }
    let hole = "0xd8000000 READ 0\n";
    let error = replay("opteron-6128", Format::Dramsim3, &[(hole, None)]).unwrap_err();
    assert!(error.contains("no memory range"), "{error}");
}

#[test]
fn a_scheduler_that_is_no_file_is_refused() {
    for (machine, name) in [("haswell", "fastest"), ("opteron-6128", "fr_fcfs")] {
        let changes = format!("controller.scheduler = \"{name}\"");
        let error = Platform::find_changed(machine, &changes.parse().unwrap());
        let said = error.err().map(|e| e.to_string()).unwrap_or_default();
        let expected = format!("no scheduler `{name}`; there are: fcfs, fr-fcfs");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn idle_time_costs_nothing() {
    let text = "0x0 READ 100\n0x0 READ 900000000000000000\n";
    for machine in ["ddr3-1600k", "opteron-6128"] {
        let report = replay(machine, Format::Dramsim3, &[(text, None)]).unwrap();
        let interval = Machine::find(machine).unwrap().device.trefi;
        let rounds = 900_000_000_000_000_000 / u64::from(interval);
        assert!(report.commands.refreshes >= rounds - 1, "{machine}");
    }
    let late = "0x0 READ 1\n0x0 READ 9223372036854775808\n";
    let error = replay("ddr3-1600k", Format::Dramsim3, &[(late, None)]).unwrap_err();
    assert!(error.starts_with("t.trc:2:"), "{error}");
}

#[test]
fn one_outstanding_read_at_a_time() {
    let text: String = (0..1000_u64)
        .map(|i| format!("{:#x} READ 0\n", i << 16))
        .collect();
    let report = replay("ddr3-1600k", Format::Dramsim3, &[(&text, Some(1))]).unwrap();
    // Conflicts one after the other: tRC (39) each, which is more than the 38
    // of an idle conflict, but for those that meet a refresh.
    assert_eq!(report.all.latency_cycles.p50, 39.0);
    let per_request = report.all.makespan_cycles as f64 / 1000.0;
    assert!((39.0..41.0).contains(&per_request), "{per_request}");
}

#[test]
fn replays_repeat_to_the_cycle() {
    let text: String = (0..3000_u64)
        .map(|i| {
            let a = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            format!(
                "{:#x} {} {}\n",
                a,
                if i % 3 == 0 { "WRITE" } else { "READ" },
                i * 5
            )
        })
        .collect();
    let run = || {
        replay(
            "ddr3-1600k",
            Format::Dramsim3,
            &[(&text, None), (&text, Some(4))],
        )
        .unwrap()
    };
    assert_eq!(run(), run());
}

/// Sources that send alike take turns: none ends before the others.
#[test]
fn alike_sources_end_together() {
    let text = |seed: u64| -> String {
        let address = |i: u64| (i + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33 << 6;
        (0..3000)
            .map(|i| format!("{:#x} W\n", address(i)))
            .collect()
    };
    let (first, second) = (text(0), text(1 << 20));
    let traces = [(first.as_str(), None), (second.as_str(), None)];
    let report = replay("ddr3-1600k", Format::Ramulator, &traces).unwrap();
    let ends: Vec<u64> = report.sources.iter().map(|s| s.makespan_cycles).collect();
    assert!(ends[0].abs_diff(ends[1]) * 20 < ends[0], "{ends:?}");
}

/// Loads or stores at a stride, wrapping in a region.
struct Walk {
    base: u64,
    stride: u64,
    bytes: u64,
    left: u64,
    at: u64,
    write: bool,
    dependent: bool,
    barrier_every: u64,
}

impl Walk {
    fn new(base: u64, stride: u64, bytes: u64, left: u64) -> Self {
        Self {
            base,
            stride,
            bytes,
            left,
            at: 0,
            write: false,
            dependent: false,
            barrier_every: 0,
        }
    }
}

impl Stream for Walk {
    fn step(&mut self) -> Step {
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        if self.barrier_every > 0 && self.left % self.barrier_every == 0 {
            return Step::Barrier;
        }
        self.at = (self.at + self.stride) % self.bytes;
        Step::Access(Access {
            work: 2,
            addr: self.base + self.at,
            write: self.write,
            dependent: self.dependent,
        })
    }
}

fn run(platform: &Platform, walks: Vec<(usize, Walk)>) -> Vec<CoreStats> {
    let mut system = System::new(platform);
    for (core, walk) in walks {
        system.put(core, Box::new(walk), 0, false);
    }
    system.run(&mut Free).unwrap()
}

#[test]
fn a_dependent_chase_pays_full_latency_and_independent_loads_overlap() {
    let p = Platform::find("opteron-6128").unwrap();
    // Another row and bank nearly every time, nothing ever cached.
    let walk = |dependent| Walk {
        dependent,
        ..Walk::new(0, 0x11_8c40, 1 << 31, 2000)
    };
    let chase = run(&p, vec![(0, walk(true))]);
    let spread = run(&p, vec![(0, walk(false))]);
    let each = chase[0].finished_ps / 2000;
    assert!((40_000..120_000).contains(&each), "{each} ps");
    let ratio = chase[0].finished_ps as f64 / spread[0].finished_ps as f64;
    let slots = f64::from(p.core.outstanding);
    assert!(ratio > 2.0 && ratio <= slots + 0.5, "{ratio}");
}

#[test]
fn caches_catch_what_fits() {
    let p = Platform::find("opteron-6128").unwrap();
    let s = &run(&p, vec![(0, Walk::new(0, 64, 32 << 10, 10_000))])[0];
    assert_eq!(s.llc_misses, 512, "each line once");
    assert!(s.private_hits[0] >= 9000);
    let s = &run(&p, vec![(0, Walk::new(0, 64, 4 << 20, 200_000))])[0];
    assert_eq!(s.llc_misses, 65_536);
    assert!(s.llc_hits > 100_000);
}

#[test]
fn memory_farther_away_is_slower() {
    let p = Platform::find("opteron-6128").unwrap();
    let time = |base| {
        let walk = Walk {
            dependent: true,
            ..Walk::new(base, 4096 + 64, 1 << 30, 2000)
        };
        run(&p, vec![(1, walk)])[1].finished_ps
    };
    let (local, near, far) = (time(0), time(0x2_2800_0000), time(0x4_2800_0000));
    assert!(local < near && near < far, "{local} {near} {far}");
}

#[test]
fn sharing_a_controller_costs_and_another_node_does_not() {
    let p = Platform::find("opteron-6128").unwrap();
    let walk = |base| Walk {
        write: true,
        ..Walk::new(base, 64, 1 << 28, 40_000)
    };
    let alone = run(&p, vec![(0, walk(0))])[0].finished_ps;
    let shared = run(&p, (0..4).map(|c| (c, walk((c as u64) << 28))).collect())[0].finished_ps;
    let apart = run(
        &p,
        vec![
            (0, walk(0)),
            (4, walk(0x2_2800_0000)),
            (8, walk(0x4_2800_0000)),
        ],
    )[0]
    .finished_ps;
    assert!(shared as f64 > 1.5 * alone as f64, "{shared} {alone}");
    assert!(
        (apart as f64 / alone as f64 - 1.0).abs() < 0.001,
        "{apart} {alone}"
    );
}

#[test]
fn runs_repeat_to_the_picosecond() {
    let p = Platform::find("opteron-6128").unwrap();
    let walks = || {
        (0..8)
            .map(|c| {
                let walk = Walk {
                    write: c % 2 == 0,
                    ..Walk::new((c as u64) << 26, 64 * (c as u64 + 1), 1 << 26, 5000)
                };
                (c, walk)
            })
            .collect()
    };
    assert_eq!(run(&p, walks()), run(&p, walks()));
}

#[test]
fn barriers_hold_the_quick_for_the_slow() {
    let p = Platform::find("opteron-6128").unwrap();
    let walk = |stride, bytes| Walk {
        barrier_every: 500,
        dependent: true,
        ..Walk::new(0, stride, bytes, 2001)
    };
    let s = run(&p, vec![(0, walk(8, 4096)), (1, walk(4160, 1 << 30))]);
    assert!(s[0].barrier_ps > s[0].finished_ps / 2);
    assert_eq!(s[1].barrier_ps, 0);
}

/// Lets core 0 have `budget` fills a microsecond.
struct Turnstile {
    budget: u32,
    left: u32,
    next_ps: u64,
    opened: bool,
}

impl Guard for Turnstile {
    fn miss(&mut self, core: usize, _now_ps: u64, write: bool) -> bool {
        if core > 0 || write {
            return true;
        }
        let goes = self.left > 0;
        self.left = self.left.saturating_sub(1);
        goes
    }

    fn alarm_ps(&self) -> u64 {
        self.next_ps
    }

    fn alarm(&mut self, now_ps: u64) {
        assert!(now_ps >= self.next_ps);
        self.next_ps += 1_000_000;
        self.left = self.budget;
        self.opened = true;
    }

    fn released(&mut self) -> Option<usize> {
        std::mem::take(&mut self.opened).then_some(0)
    }
}

#[test]
fn a_guard_holds_one_core_back_and_no_other() {
    let p = Platform::find("opteron-6128").unwrap();
    let walks = || {
        let walk = |base| Walk::new(base, 64, 1 << 28, 2000);
        vec![(0, walk(0)), (4, walk(0x2_2800_0000))]
    };
    let free = run(&p, walks());
    let mut system = System::new(&p);
    for (core, walk) in walks() {
        system.put(core, Box::new(walk), core, false);
    }
    let mut turnstile = Turnstile {
        budget: 4,
        left: 4,
        next_ps: 1_000_000,
        opened: false,
    };
    let held = system.run(&mut turnstile).unwrap();
    // 4, and what was held when the alarm came: 8 at most, and 8 of the prefetcher's.
    let alarms = held[0].finished_ps / 1_000_000;
    assert!((100..=500).contains(&alarms), "{alarms}");
    assert_eq!(held[4], free[4]);
}

#[test]
fn a_hole_is_an_error() {
    let p = Platform::find("opteron-6128").unwrap();
    let mut system = System::new(&p);
    system.put(2, Box::new(Walk::new(0xd800_0000, 64, 4096, 10)), 0, false);
    let error = system.run(&mut Free).unwrap_err();
    assert!(matches!(error, RunError::Hole { core: 2, .. }));
}

/// A device of another density than the map's has another tRFC. Those that do say so, and what it
/// does, in their files; figures of the evidence come from them.
#[test]
fn devices_have_the_density_of_their_maps() {
    let known = ["ddr3-1600k", "xeon-w3530", "skylake", "raspberry-pi-4"];
    for name in MODELLED {
        let machine = Machine::find(name).unwrap();
        let bits = machine.map.layouts().map(|l| l.row.len()).max().unwrap();
        let same = 1_u64 << bits == u64::from(machine.device.rows);
        assert_eq!(same, !known.contains(&name), "{name}: {bits} bits");
    }
}

#[test]
fn a_device_with_rows_of_another_size_is_refused() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let text = std::fs::read_to_string(format!("{dir}/p4080.toml")).unwrap();
    let named = |device: &str| {
        let text = text.replace("\"ddr3-1333h-x8\"", &format!("{device:?}"));
        let machine = soloist_machine::Machine::parse(&text, "x.toml").unwrap();
        (Machine::of(&machine).err(), Platform::of(&machine).err())
    };
    assert!(matches!(named("ddr3-1333h-x8"), (None, None)));
    let (memory, platform) = named("ddr3-1333h");
    for error in [memory.unwrap().to_string(), platform.unwrap().to_string()] {
        let words = "the map's rows have 8192 bytes, those of DDR3-1333H 16384";
        assert!(
            error.starts_with("x.toml") && error.contains(words),
            "{error}"
        );
    }
}

/// The file of a machine, changed.
fn changed(machine: &str, from: &str, to: &str) -> Result<Platform, String> {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let text = std::fs::read_to_string(format!("{dir}/{machine}.toml")).unwrap();
    assert!(text.contains(from), "{from}");
    let machine = soloist_machine::Machine::parse(&text.replace(from, to), "x.toml");
    let machine = machine.map_err(|e| e.to_string())?;
    Platform::of(&machine).map_err(|e| e.to_string())
}

/// The ends of ranges belong to the file's values, not to changed ones.
#[test]
fn a_change_need_not_fit_the_ends_of_ranges() {
    for changes in [
        "controller = { write_queue = 16, drain_high = 12 }",
        "northbridge = { in_order = 0, deferred = 0 }",
    ] {
        let platform = Platform::find_changed("core2quad-q8400", &changes.parse().unwrap());
        assert!(platform.is_ok(), "{changes}: {:?}", platform.err());
    }
    let wrong = changed(
        "core2quad-q8400",
        "drain_high\" = [8, 31]",
        "drain_high\" = [8, 33]",
    );
    let said = wrong.err().unwrap();
    assert!(
        said.contains("[memory.range]: controller.drain_high: "),
        "{said}"
    );
}

#[test]
fn cpus_that_are_not_there_are_not_played() {
    let cpus = |list: &str| changed("raspberry-pi-4", "cpus = [\"0-3\"]", list);
    let gap = cpus("cpus = [\"2-3,6-7\"]").unwrap_err();
    assert!(gap.contains("a CPU 2 and no CPU 0"), "{gap}");
    let gap = cpus("cpus = [\"0-1,3\"]").unwrap_err();
    assert!(gap.contains("a CPU 3 and no CPU 2"), "{gap}");
    let none = cpus("cpus = [\"\"]").unwrap_err();
    assert!(none.contains("no node has a CPU"), "{none}");
}

#[test]
fn what_would_be_taken_for_something_else_is_refused() {
    for (from, to, says) in [
        ("line = 64", "line = 32", "those of the map have 64 bytes"),
        ("clock_mhz = 1500", "clock_mhz = 0", "clock_mhz 0 must be"),
        ("shared_by = 4", "shared_by = 0", "l2: shared_by must not"),
        (
            "request_ps = 37000",
            "request_ps = 9000000000000000000",
            "request_ps 9000000000000000000 must be",
        ),
    ] {
        let said = changed("raspberry-pi-4", from, to).err();
        let said = said.unwrap_or_else(|| panic!("{to} is taken"));
        assert!(said.contains(says), "{said}");
    }
}

/// A bus that answers in order moves no more lines than it has places, in each line's latency.
#[test]
fn a_bus_in_order_keeps_its_depth() {
    const DEPTH: u32 = 2;
    const LINES: u64 = 5000;
    let chase = |dependent| Walk {
        dependent,
        ..Walk::new(0, 0x11_8c40, 1 << 30, LINES)
    };
    for shared in [false, true] {
        let changes =
            format!("northbridge = {{ shared = {shared}, in_order = {DEPTH}, deferred = 0 }}");
        let p = Platform::find_changed("core2quad-q8400", &changes.parse().unwrap()).unwrap();
        let alone_ps = run(&p, vec![(0, chase(true))])[0].finished_ps / LINES;
        let walks = (0..4).map(|core| {
            let base = (core as u64) << 30;
            let bytes = (1 << 30) - (1 << 20);
            (
                core,
                Walk {
                    base,
                    bytes,
                    ..chase(false)
                },
            )
        });
        let stats = run(&p, walks.collect());
        let last_ps = stats.iter().map(|s| s.finished_ps).max().unwrap();
        let each_ps = last_ps / (4 * LINES);
        assert!(
            each_ps * u64::from(DEPTH) * 10 > alone_ps * 9,
            "{shared} {alone_ps} {each_ps}"
        );
    }
}

/// Gives up so many dirty lines, one after the other.
struct GivingUp(u64);

impl Stream for GivingUp {
    fn step(&mut self) -> Step {
        match self.0.checked_sub(1) {
            None => Step::Done,
            Some(left) => {
                self.0 = left;
                Step::WriteBack(left * 64)
            }
        }
    }
}

/// A core that only gives up lines is no faster than memory is.
#[test]
fn a_core_waits_for_room_for_what_it_gives_up() {
    const LINES: u64 = 400_000;
    let p = Platform::find("opteron-6128").unwrap();
    let mut system = System::new(&p);
    system.put(0, Box::new(GivingUp(LINES)), 0, false);
    let stats = system.run(&mut Free).unwrap();
    let path_ps = 64 * 1_000_000 / p.northbridge.bytes_per_us;
    let least = stats[0].write_backs * path_ps;
    assert!(stats[0].write_backs > LINES / 2, "{:?}", stats[0]);
    assert!(stats[0].finished_ps > least / 10 * 9, "{:?}", stats[0]);
}

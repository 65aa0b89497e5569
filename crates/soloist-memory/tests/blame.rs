//! Who waited for whom: it adds up, and it names the right one.
#![allow(clippy::unwrap_used)] // a failed expectation should fail the test

use soloist_memory::blame::{Blame, Cause};
use soloist_memory::core::{Access, CoreStats, Step, Stream};
use soloist_memory::system::Free;
use soloist_memory::{Platform, System};

/// Accesses that somebody computes, after a mark.
struct Program<F> {
    access: F,
    left: u64,
    marked: bool,
}

impl<F: FnMut(u64) -> Access> Stream for Program<F> {
    fn step(&mut self) -> Step {
        if !self.marked {
            self.marked = true;
            return Step::Mark;
        }
        if self.left == 0 {
            return Step::Done;
        }
        self.left -= 1;
        Step::Access((self.access)(self.left))
    }
}

type Put = (usize, u64, Box<dyn FnMut(u64) -> Access + Send>);

fn put(core: usize, n: u64, access: impl FnMut(u64) -> Access + Send + 'static) -> Put {
    (core, n, Box::new(access))
}

/// All but the first run in the background, without end.
fn run(changes: &str, programs: Vec<Put>) -> Vec<CoreStats> {
    let platform = Platform::find_changed("opteron-6128", &changes.parse().unwrap()).unwrap();
    let mut system = System::new(&platform);
    system.account();
    system.latencies();
    for (i, (core, left, access)) in programs.into_iter().enumerate() {
        let program = Program {
            access,
            left,
            marked: false,
        };
        system.put(core, Box::new(program), core, i > 0);
    }
    system.run(&mut Free).unwrap()
}

fn since_mark(s: &CoreStats) -> u64 {
    s.finished_ps - s.marks_ps.first().unwrap()
}

fn adds_up(s: &CoreStats) {
    let a = &s.account;
    assert_eq!(a.blame.total_ps(), a.stall_ps as i64);
    let parts = a.compute_ps + a.stall_ps + a.barrier_ps + a.slept_ps;
    assert_eq!(parts, since_mark(s));
}

/// Blame of core 0 beside others, less that of core 0 alone; it adds up to the
/// slowdown.
fn slowdown(changes: &str, victim: impl Fn() -> Put, others: Vec<Put>) -> (u64, Blame) {
    let alone = run(changes, vec![victim()]);
    let mut programs = vec![victim()];
    programs.extend(others);
    let beside = run(changes, programs);
    adds_up(&alone[0]);
    adds_up(&beside[0]);
    let slower = since_mark(&beside[0]) as i64 - since_mark(&alone[0]) as i64;
    let blame = beside[0].account.blame.less(&alone[0].account.blame);
    assert_eq!(blame.total_ps(), slower, "to the picosecond");
    assert!(slower > 0, "{slower}");
    (slower as u64, blame)
}

fn load(addr: u64) -> Access {
    Access {
        work: 2,
        addr,
        write: false,
        dependent: false,
    }
}

fn chase(addr: u64) -> Access {
    Access {
        dependent: true,
        ..load(addr)
    }
}

fn random(i: u64) -> u64 {
    i.wrapping_add(77).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 34
}

/// A line of bank 0, rank 0, channel 0 or 1 of node 0, in one of many rows.
fn in_bank(i: u64, bank: u64) -> u64 {
    let row = (random(i) % 1024) << 20;
    row | (bank & 3) << 15 | (bank >> 2 & 1) << 18 | (random(i) / 1024 % 512) << 6
}

const N: u64 = 20_000;
const ENDLESS: u64 = 1 << 40;

fn of_cause(blame: &Blame, cause: Cause) -> i64 {
    blame
        .shares()
        .filter(|s| s.cause == cause)
        .map(|s| s.ps)
        .sum()
}

#[test]
fn a_slowdown_is_the_sum_of_its_blames() {
    let victim = || put(0, N, |i| load((random(i) % (1 << 25)) << 6));
    let others = vec![
        put(1, ENDLESS, |i| Access {
            write: true,
            ..load((1 << 28) + i % (1 << 20) * 64)
        }),
        put(2, ENDLESS, |i| chase((random(i) % (1 << 25)) << 6)),
        put(5, ENDLESS, |i| load((1 << 27) + i % (1 << 20) * 64)),
    ];
    let (slower, blame) = slowdown("", victim, others);
    let named: i64 = [1, 2, 5].iter().map(|&c| blame.of_culprit(Some(c))).sum();
    assert!(named as f64 > 0.9 * slower as f64, "{named} of {slower}");
    assert_eq!(blame.of_culprit(Some(9)), 0, "core 9 was idle");
}

#[test]
fn rows_in_one_bank_are_a_bank_conflict() {
    let victim = || put(0, N, |i| chase(in_bank(i, 2)));
    let other = |bank| vec![put(1, ENDLESS, move |i| load(in_bank(i, bank) + (1 << 30)))];
    let (same, blame) = slowdown("", victim, other(2));
    let conflict = blame.of(Cause::BankConflict, Some(1));
    assert!(conflict as f64 > 0.6 * same as f64, "{conflict} of {same}");
    let (apart, blame) = slowdown("", victim, other(5));
    let conflict = blame.of(Cause::BankConflict, Some(1));
    assert!(apart * 3 < same, "{apart} {same}");
    assert!(
        (conflict as f64) < 0.1 * apart as f64,
        "{conflict} of {apart}"
    );
}

#[test]
fn writes_beside_reads_are_a_drain() {
    let victim = || put(0, 3 * N, |i| chase(in_bank(i, 2)));
    let writer = vec![put(4, ENDLESS, |i| Access {
        write: true,
        ..load(in_bank(i, 2) + (1 << 29) + ((i % 16) << 21))
    })];
    let (slower, blame) = slowdown("", victim, writer);
    let drain = blame.of(Cause::WriteDrain, Some(4));
    assert!(drain as f64 > 0.02 * slower as f64, "{drain} of {slower}");
}

#[test]
fn a_line_pushed_out_is_an_eviction() {
    // 4 MiB of its own fit into the last level, until core 1 streams through.
    let victim = || put(0, 200_000, |i| chase(random(i) % 65_536 * 64));
    let stream = |core| {
        vec![put(core, ENDLESS, move |i| {
            load((1 << 28) + i % (1 << 20) * 64)
        })]
    };
    let (slower, blame) = slowdown("", victim, stream(1));
    let evicted = blame.of(Cause::LlcEviction, Some(1));
    assert!(
        evicted as f64 > 0.5 * slower as f64,
        "{evicted} of {slower}"
    );
    let (_, blame) = slowdown("", victim, stream(4));
    assert_eq!(
        of_cause(&blame, Cause::LlcEviction),
        0,
        "another last level"
    );
}

#[test]
fn a_path_in_use_is_a_link() {
    let far = 0x4_2800_0000;
    let victim = move || put(0, N, move |i| chase(far + ((random(i) % (1 << 25)) << 6)));
    let stream = vec![
        put(1, ENDLESS, move |i| load(far + i % (1 << 20) * 64)),
        put(2, ENDLESS, move |i| {
            load(far + (1 << 27) + i % (1 << 20) * 64)
        }),
    ];
    let (slower, blame) = slowdown("", victim, stream);
    let link = of_cause(&blame, Cause::Link);
    assert!(link as f64 > 0.3 * slower as f64, "{link} of {slower}");
    assert!(blame.of(Cause::Link, Some(1)) > 0 && blame.of(Cause::Link, Some(2)) > 0);
}

#[test]
fn refreshes_are_nobodys_fault() {
    let s = &run("", vec![put(0, N, |i| chase(in_bank(i, 2)))])[0];
    adds_up(s);
    let refresh = s.account.blame.of(Cause::Refresh, None);
    // tRFC of every tREFI, half of it on average, and the row after it.
    let share = refresh as f64 / since_mark(s) as f64;
    assert!((0.002..0.03).contains(&share), "{share}");
    for other in 1..16 {
        assert_eq!(s.account.blame.of_culprit(Some(other)), 0);
    }
}

/// A second mark half-way notes the time and takes nothing from the account.
#[test]
fn an_account_is_of_all_time_since_the_first_mark() {
    struct Halved(Program<fn(u64) -> Access>);
    impl Stream for Halved {
        fn step(&mut self) -> Step {
            if self.0.left == N / 2 {
                self.0.marked = false;
                self.0.left -= 1;
            }
            self.0.step()
        }
    }
    let platform = Platform::find("opteron-6128").unwrap();
    let mut system = System::new(&platform);
    system.account();
    system.latencies();
    let program = Program {
        access: (|i| chase((random(i) % (1 << 25)) << 6)) as fn(u64) -> Access,
        left: N,
        marked: false,
    };
    system.put(0, Box::new(Halved(program)), 0, false);
    let s = &system.run(&mut Free).unwrap()[0];
    assert_eq!(s.marks_ps.len(), 2, "{:?}", s.marks_ps);
    adds_up(s);
    let latencies = s.account.latencies.as_ref().unwrap();
    assert_eq!(latencies.count(), s.llc_hits + s.llc_misses);
}

#[test]
fn accounts_change_nothing() {
    let programs = || {
        vec![
            put(0, N, |i| load((random(i) % (1 << 25)) << 6)),
            put(1, ENDLESS, |i| chase((random(i) % (1 << 25)) << 6)),
            put(6, ENDLESS, |i| load(i % (1 << 20) * 64)),
        ]
    };
    let with = run("", programs());
    let mut system = System::new(&Platform::find("opteron-6128").unwrap());
    system.latencies();
    for (i, (core, left, access)) in programs().into_iter().enumerate() {
        let program = Program {
            access,
            left,
            marked: false,
        };
        system.put(core, Box::new(program), core, i > 0);
    }
    let without = system.run(&mut Free).unwrap();
    for (a, b) in with.iter().zip(&without) {
        assert_eq!(a.finished_ps, b.finished_ps);
        assert_eq!(a.account.stall_ps, b.account.stall_ps);
        assert_eq!(a.account.latencies, b.account.latencies);
    }
}

#[test]
fn latencies_have_a_tail() {
    let s = &run("", vec![put(0, N, |i| chase((random(i) % (1 << 25)) << 6))])[0];
    let latencies = s.account.latencies.as_ref().unwrap();
    let l = latencies.summary(1e-3);
    assert_eq!(latencies.count(), s.llc_hits + s.llc_misses);
    assert!(l.p50 <= l.p95 && l.p95 <= l.p99 && l.p99 <= l.max);
    // A refresh is in the way of some.
    assert!(l.max > l.p50 + 100.0, "{l:?}");
}

#[test]
fn latencies_are_kept_only_where_they_are_asked_for() {
    let mut system = System::new(&Platform::find("opteron-6128").unwrap());
    let (core, left, access) = put(0, N, |i| chase((random(i) % (1 << 25)) << 6));
    let program = Program {
        access,
        left,
        marked: false,
    };
    system.put(core, Box::new(program), core, false);
    let account = &system.run(&mut Free).unwrap()[0].account;
    assert_eq!(account.latencies, None);
    assert_eq!(account.latency_ns().max.to_bits(), 0);
    assert!(account.stall_ps > 0, "it waited");
}

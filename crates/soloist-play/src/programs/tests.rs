//! Every generator stays inside its memory and does what it says.

use soloist_memory::Platform;
use soloist_record::meta::{self, Stream};
use soloist_record::{Access as Line, Kind, Meta, Writer};

use super::chase::{PointerChase, Scattered};
use super::cluster::StreamCluster;
use super::matrix::MatMult;
use super::order::Wakes;
use super::recorded::{Playback, Recorded, Span};
use super::rounds::Rounds;
use super::sort::IntegerSort;
use super::stride::{AlternatingStride, Bandwidth};
use super::swaps::RandomSwaps;
use super::triad::Triad;
use super::video::BlockWalk;
use super::{Access, Program, Step};
use crate::policy::Policy;
use crate::stage::{Seat, Stage};

/// All accesses, checked to lie within the task's memory.
fn run(mut task: impl Program) -> Vec<Access> {
    let bytes = task.bytes();
    let mut seen = Vec::new();
    loop {
        match task.step() {
            Step::Access(a) | Step::Fetch(a) => {
                assert!(a.at < bytes, "{} of {bytes}", a.at);
                seen.push(a);
            }
            Step::WriteBack(_) | Step::Until(_) | Step::Barrier | Step::Mark => {}
            Step::Done => {
                assert_eq!(task.step(), Step::Done);
                return seen;
            }
        }
    }
}

#[test]
fn strides_alternate_and_grow_as_the_paper_prints() {
    // CAMC 4.2: the 256th element (of 4 bytes), then +16, -16, +32, -32.
    let seen = run(AlternatingStride::new(2048, 64, 5));
    let elements: Vec<_> = seen.iter().map(|a| a.at / 4).collect();
    assert_eq!(elements, [256, 272, 240, 288, 224]);
    assert!(seen.iter().all(|a| a.write));
}

#[test]
fn strides_touch_nearly_every_line_once_a_round() {
    let lines = 1 << 10;
    let mut seen: Vec<_> = run(AlternatingStride::new(lines * 64, 64, lines - 1))
        .iter()
        .map(|a| a.at)
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len() as u64, lines - 1);
}

/// Each line once a round, in no order, and nothing waits for anything.
#[test]
fn scattered_accesses_visit_every_line_and_wait_for_none() {
    let seen = run(Scattered::new(4096, 64, true, 128, 1));
    assert!(seen.iter().all(|a| a.write && !a.dependent));
    let at: Vec<_> = seen.iter().map(|a| a.at).collect();
    assert_eq!(at[..64], at[64..]);
    let mut sorted = at[..64].to_vec();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..64).map(|i| i * 64).collect::<Vec<_>>());
    assert_ne!(sorted, at[..64]);
}

#[test]
fn a_chase_visits_every_line_before_it_repeats() {
    let mut seen: Vec<_> = run(PointerChase::new(4096, 64, 64, 1))
        .iter()
        .map(|a| a.at)
        .collect();
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 64);
}

#[test]
fn tasks_stay_inside_their_memory_and_end() {
    assert_eq!(run(Bandwidth::new(1000, 64, true, 100)).len(), 100);
    assert_eq!(run(Triad::new(4096, 64, 100)).len(), 300);
    assert!(run(IntegerSort::new(4096, 8192, 64, 2000, 3)).len() > 2000);
    assert!(!run(MatMult::new(32, 64, 0, 32 * 32 * 32)).is_empty());
    assert!(!run(MatMult::new(40, 64, 16, 100_000)).is_empty());
    assert_eq!(run(RandomSwaps::new(1 << 16, 3, 50, 4)).len(), 50 * 10);
    assert!(run(StreamCluster::new(1 << 16, 64, 3000, 6)).len() > 3000);
    assert!(!run(BlockWalk::new(128, 64, 100, 5)).is_empty());
}

/// As the program's source has it: all points in each round, in shuffled order,
/// the coordinates of one in order and behind the pointer to them.
#[test]
fn streamcluster_reads_points_in_no_order() {
    let points = 100;
    let all = run(StreamCluster::new(points * 544, 64, 8 * points, 7));
    let firsts: Vec<u64> = all.chunks(9).map(|point| point[1].at).collect();
    for (point, &first) in all.chunks(9).zip(&firsts) {
        assert_eq!(first % 512, 0);
        assert!(point[0].at >= 512 * points && !point[0].dependent && point[1].dependent);
        let follow = point[1..]
            .iter()
            .zip(0..)
            .all(|(a, i)| a.at == first + i * 64);
        assert!(follow && point.iter().all(|a| !a.write));
    }
    let next = firsts.windows(2).filter(|w| w[1] == w[0] + 512).count();
    assert!(next < 10, "{next} points follow the one before in memory");
    let mut sorted = firsts;
    sorted.sort_unstable();
    assert!(sorted
        .iter()
        .zip(0..)
        .all(|(&at, i): (_, u64)| at == i * 512));
}

#[test]
fn naive_and_blocked_multiplication_do_the_same_work() {
    let places = |block| {
        let mut b: Vec<_> = run(MatMult::new(32, 64, block, 32 * 32 * 32))
            .iter()
            .filter(|a| a.work == 4)
            .map(|a| a.at)
            .collect();
        b.sort_unstable();
        b
    };
    assert_eq!(places(0), places(8));
}

#[test]
fn rounds_go_on_where_the_last_one_stopped() {
    let lines = |rounds| {
        let make = || Box::new(Bandwidth::new(1 << 20, 64, false, 100));
        let mut task = Rounds::new(rounds, make(), make());
        let (mut seen, mut barriers) = (Vec::new(), 0);
        loop {
            match task.step() {
                Step::Barrier => barriers += 1,
                Step::Done => break,
                Step::Access(a) | Step::Fetch(a) => seen.push(a.at),
                Step::WriteBack(_) | Step::Until(_) | Step::Mark => {}
            }
        }
        assert_eq!(barriers, rounds);
        seen
    };
    // No line twice: a round that began anew would stay in the caches.
    assert_eq!(lines(3), lines(1));
    assert_eq!(lines(3).len(), 100);
}

/// A recording of a fetch, and of a load `work` instructions behind it.
fn recording(work: u32) -> Result<Recorded, Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let file = meta::stream_file(0);
    let mut writer = Writer::create(&dir.path().join(&file), 0)?;
    writer.switch(0, 0, 0)?;
    for (kind, line, work) in [(Kind::Fetch, 1, 1), (Kind::Read, 9, work)] {
        let line = Line {
            kind,
            page: 0,
            line,
            work,
            kernel: false,
            dependent: false,
        };
        writer.access(line, 1, 1, || 0)?;
    }
    writer.flush()?;
    let stream = Stream {
        cpu: 0,
        file,
        lines: writer.accesses,
        bytes: writer.bytes,
        looked_at: 2,
        instructions: u64::from(work) + 1,
    };
    Meta::of_program("two", vec![stream]).write(dir.path())?;
    Ok(Recorded::load(dir.path())?)
}

/// The instructions that a fetch brings are executed behind it, not beside it.
#[test]
fn what_follows_a_recorded_fetch_waits_for_it() -> Result<(), Box<dyn std::error::Error>> {
    let platform = Platform::find("opteron-6128")?;
    let policy: &dyn Policy = "buddy".parse()?;
    let time_ps = |work| -> Result<u64, Box<dyn std::error::Error>> {
        let recorded = recording(work)?;
        let playback = Playback::new(&recorded, 0, Span::Whole, &Wakes::default());
        let seats = vec![Seat::new(Box::new(playback), 0)];
        let played = Stage::new(&platform, policy, seats, 1).play()?;
        Ok(played.cores[0].finished_ps)
    };
    let (more, work) = (
        time_ps(65)? - time_ps(1)?,
        64 * platform.instruction_fs / 1000,
    );
    assert!(more * 10 > work * 9, "{more} of {work} ps");
    Ok(())
}

//! The analysis of processor time against thousands of played schedules.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/share/random.rs"]
mod random;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::time::{MS, US};
use soloist_memory::Platform;
use soloist_rt::analysis::interference::{Costs, Surroundings};
use soloist_rt::analysis::response::analyse;
use soloist_rt::analysis::ProfiledSet;
use soloist_rt::model::profile::Profile;
use soloist_rt::schedule::times::play;
use soloist_rt::tasks::file::parse;
use soloist_rt::tasks::TaskSet;
use soloist_trace::timeline::End;

use self::random::{period, utilisations};

fn set(rng: &mut ChaCha8Rng, order: &str) -> TaskSet {
    let n = rng.gen_range(1..6);
    let total = rng.gen_range(0.3..1.0);
    let mut text = format!("order = {order:?}\n");
    for (i, share) in utilisations(rng, n, total).into_iter().enumerate() {
        let period = period(rng, 2 * MS, 40 * MS) / US;
        let wcet = (period as f64 * share) as u64 + 1;
        let deadline = rng.gen_range(wcet.min(period)..=period);
        let jitter = rng.gen_range(0..=(deadline - wcet.min(deadline)) / 3);
        let phase = rng.gen_range(0..period);
        text += &format!(
            "[[task]]\nname = \"t{i}\"\nperiod = \"{period} us\"\nwcet = \"{} us\"\n\
            deadline = \"{deadline} us\"\njitter = \"{jitter} us\"\nphase = \"{phase} us\"\n",
            wcet.min(deadline)
        );
    }
    let mut set = parse(&text, "random").unwrap();
    // Bound here, so that a set beyond the core is analysed too.
    set.tasks.iter_mut().for_each(|t| t.core = Some(0));
    set
}

#[test]
fn what_is_proved_is_never_missed_and_never_later() {
    let costs = Costs::of(&Platform::find("opteron-6128").unwrap());
    let around = Surroundings::alone(costs);
    let (mut proved, mut refused) = (0, 0);
    for seed in 0..4000 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let order = ["rm", "dm", "edf"][seed as usize % 3];
        let set = set(&mut rng, order);
        let profiles = vec![Profile::default(); set.tasks.len()];
        let answers = analyse(ProfiledSet::new(&set, &profiles), 0, &around);
        let wcet: Vec<u64> = set.tasks.iter().map(|t| t.wcet.0).collect();
        let played = play(&set, 400 * MS, seed, &mut |task, _| wcet[task]);
        for (task, answer) in answers.iter().enumerate() {
            if !answer.holds {
                refused += 1;
                assert!(answer.slack_ps < 0, "seed {seed}: {answer:?}");
                continue;
            }
            proved += 1;
            for job in played.jobs.iter().filter(|j| j.task == task) {
                assert_ne!(job.end, End::Missed, "seed {seed}: {answer:?} {job:?}");
                if let (Some(bound), Some(response)) = (answer.response, job.response_ps()) {
                    assert!(bound.0 >= response, "seed {seed}: {answer:?} {job:?}");
                }
            }
        }
    }
    // The test says something only where both come out.
    assert!(proved > 4000 && refused > 500, "{proved} {refused}");
}

/// Table 6's set as the papers analyse it: C = 90 and 60 ms do not fit beside
/// each other, what a single run takes does (CAMC 4.5).
#[test]
fn camc_s_set_holds_with_times_alone_and_not_with_those_of_same_bank() {
    let costs = Costs::of(&Platform::find("opteron-6128").unwrap());
    for (synthetic, is, holds) in [(61.2, 56.0, true), (107.1, 87.8, false)] {
        let text = format!(
            "[[task]]\nname = \"synthetic\"\ncore = 0\nperiod = \"150 ms\"\nwcet = \"{synthetic} ms\"\n\
             [[task]]\nname = \"is\"\ncore = 0\nperiod = \"200 ms\"\nwcet = \"{is} ms\"\n"
        );
        let set = match parse(&text, "t") {
            Ok(set) => set,
            Err(error) => {
                assert!(!holds && error.message.contains("even alone"), "{error}");
                continue;
            }
        };
        let profiles = [Profile::default(); 2];
        let answers = analyse(
            ProfiledSet::new(&set, &profiles),
            0,
            &Surroundings::alone(costs),
        );
        assert_eq!(answers.iter().all(|a| a.holds), holds, "{answers:?}");
    }
}

//! The processor demand under EDF (Baruah et al., 1990), by quick convergence
//! (QPA: Zhang and Burns, 2009).

/// Jobs that come again and again, ps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sporadic {
    pub(crate) time: u64,
    /// From the planned release on.
    pub(crate) deadline: u64,
    pub(crate) period: u64,
    /// By how much a release may be late.
    pub(crate) jitter: u64,
}

impl Sporadic {
    /// Jobs with release and deadline in a window of `t`.
    fn due(&self, t: u64) -> u64 {
        match (t + self.jitter).checked_sub(self.deadline) {
            Some(rest) => rest / self.period + 1,
            None => 0,
        }
    }

    /// Jobs that are released in a window of `t`.
    fn released(&self, t: u64) -> u64 {
        (t + self.jitter).div_ceil(self.period)
    }

    /// The last deadline before `t`.
    fn before(&self, t: u64) -> Option<u64> {
        let rest = (t + self.jitter).checked_sub(self.deadline + 1)?;
        (self.deadline + rest / self.period * self.period).checked_sub(self.jitter)
    }

    /// The first deadline after `t`.
    fn after(&self, t: u64) -> u64 {
        (self.deadline + self.due(t) * self.period).saturating_sub(self.jitter)
    }

    /// No less than what `due` jobs take, and linear from the first deadline on.
    fn at_most(&self, t: u64) -> i128 {
        let window = i128::from(t + self.jitter + self.period) - i128::from(self.deadline);
        let period = i128::from(self.period);
        (window.max(0) * i128::from(self.time) + period - 1) / period
    }
}

/// Windows that [`slack`] looks at before it takes a bound for the rest.
const WINDOWS: u32 = 4096;

/// Time that jobs take of all tasks.
fn demand(tasks: &[Sporadic], jobs: impl Fn(&Sporadic) -> u64) -> u64 {
    let time = tasks
        .iter()
        .map(|task| jobs(task).saturating_mul(task.time));
    time.fold(0, u64::saturating_add)
}

/// Processor time that is left in the window that has least, ps, or less than that where
/// there are too many windows; negative: missing in some window. Where nothing bounds the
/// demand, what was known to be missing in 200 of the longest period.
pub(crate) fn slack(tasks: &[Sporadic]) -> i64 {
    missing(tasks).map_or_else(|| left(tasks), |ps| -(ps.min(i64::MAX as u64) as i64))
}

/// Processor time that is missing in some window, ps; `None`: in none.
pub(crate) fn missing(tasks: &[Sporadic]) -> Option<u64> {
    let longest = tasks.iter().map(|task| task.period).max().unwrap_or(1);
    let limit = longest.saturating_mul(200);
    let mut busy = demand(tasks, |_| 1).max(1);
    loop {
        let next = demand(tasks, |task| task.released(busy));
        if next <= busy {
            break;
        }
        busy = next;
        if busy > limit {
            return Some(busy - limit);
        }
    }
    let before = |t: u64| {
        let deadlines = tasks.iter().filter_map(|task| task.before(t));
        deadlines.max().filter(|&d| d > 0)
    };
    let mut window = before(busy + 1);
    while let Some(at) = window {
        let h = demand(tasks, |task| task.due(at));
        window = match h {
            h if h > at => return Some(h - at),
            h if h < at && h > 0 => before(h + 1).map(|d| d.min(at - 1)),
            _ => before(at),
        };
    }
    None
}

/// The time left in the window that has least, where no window misses any. Quick convergence
/// passes over windows, and the one with least may be longer than the busy period.
fn left(tasks: &[Sporadic]) -> i64 {
    let Some(longest) = tasks.iter().map(|task| task.deadline).max() else {
        return i64::MAX;
    };
    let first = |task: &Sporadic| task.deadline.saturating_sub(task.jitter);
    // No window as long as `t` or longer has less.
    let at_least = |t: u64| {
        let need: i128 = tasks.iter().map(|task| task.at_most(t)).sum();
        i64::try_from(i128::from(t) - need).unwrap_or(i64::MIN)
    };
    let mut at = tasks.iter().map(first).min().unwrap_or(0);
    let mut least = i64::MAX;
    for _ in 0..WINDOWS {
        let have = at.saturating_sub(demand(tasks, |task| task.due(at)));
        least = least.min(have.min(i64::MAX as u64) as i64);
        if at >= longest && at_least(at) >= least {
            return least;
        }
        at = tasks.iter().map(|task| task.after(at)).min().unwrap_or(at);
    }
    least.min(at_least(at)).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn set(rng: &mut ChaCha8Rng) -> Vec<Sporadic> {
        let task = |rng: &mut ChaCha8Rng| {
            let period: u64 = rng.gen_range(2..13);
            let deadline: u64 = rng.gen_range(1..=period);
            Sporadic {
                time: rng.gen_range(1..=deadline.div_ceil(2)),
                deadline,
                period,
                jitter: rng.gen_range(0..=deadline / 3),
            }
        };
        (0..rng.gen_range(1..5)).map(|_| task(rng)).collect()
    }

    /// Of all windows up to three times what all periods divide.
    fn by_all_windows(tasks: &[Sporadic]) -> i64 {
        let windows = (0..3 * 27_720).map(|t| t as i64 - demand(tasks, |task| task.due(t)) as i64);
        let first = tasks
            .iter()
            .map(|t| t.deadline - t.jitter)
            .min()
            .unwrap_or(0);
        windows.skip(first as usize).min().unwrap_or(0)
    }

    #[test]
    fn what_is_left_is_of_the_window_that_has_least() {
        let (mut fit, mut beyond_busy) = (0, 0);
        for seed in 0..600 {
            let tasks = set(&mut ChaCha8Rng::seed_from_u64(seed));
            let (found, truth) = (slack(&tasks), by_all_windows(&tasks));
            if truth < 0 {
                assert!(found < 0, "seed {seed}: {found}, truly {truth}: {tasks:?}");
                continue;
            }
            fit += 1;
            let full = tasks
                .iter()
                .map(|t| t.time as f64 / t.period as f64)
                .sum::<f64>()
                >= 1.0;
            // Where a core is full, nothing may bound the demand, or end the search.
            assert!(
                found == truth || (full && found <= truth),
                "seed {seed}: {found}, truly {truth}: {tasks:?}"
            );
            beyond_busy += u32::from(demand(&tasks, |_| 1) < tasks[0].deadline);
        }
        assert!(
            fit > 100 && beyond_busy > 20,
            "{fit} fit, {beyond_busy} with a short busy period"
        );
    }

    /// Both are done before the first deadline.
    #[test]
    fn a_busy_period_without_a_deadline_leaves_what_the_windows_leave() {
        let job = |time, period| Sporadic {
            time,
            deadline: period,
            period,
            jitter: 0,
        };
        assert_eq!(slack(&[job(450, 1000), job(520, 1400)]), 430);
    }
}

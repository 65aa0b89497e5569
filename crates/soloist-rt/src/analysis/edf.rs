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
}

/// Processor time that is left in the window that has least, ps; negative: missing.
/// Where nothing bounds the demand, what was known to be missing in 200 of the
/// longest period.
pub(crate) fn slack(tasks: &[Sporadic]) -> i64 {
    let demand = |jobs: &dyn Fn(&Sporadic) -> u64| {
        let time = tasks
            .iter()
            .map(|task| jobs(task).saturating_mul(task.time));
        time.fold(0, u64::saturating_add)
    };
    let missing = |have: u64, need: u64| have as i64 - need.min(i64::MAX as u64) as i64;
    let longest = tasks.iter().map(|task| task.period).max().unwrap_or(1);
    let limit = longest.saturating_mul(200);
    let mut busy = demand(&|_| 1).max(1);
    loop {
        let next = demand(&|task| task.released(busy));
        if next <= busy {
            break;
        }
        busy = next;
        if busy > limit {
            return missing(limit, busy);
        }
    }
    let before = |t: u64| {
        let deadlines = tasks.iter().filter_map(|task| task.before(t));
        deadlines.max().filter(|&d| d > 0)
    };
    let mut slack = i64::MAX;
    let mut t = before(busy + 1);
    while let Some(at) = t {
        let h = demand(&|task| task.due(at));
        slack = slack.min(missing(at, h));
        t = match h {
            h if h > at => None,
            h if h < at && h > 0 => before(h + 1).map(|d| d.min(at - 1)),
            _ => before(at),
        };
    }
    slack
}

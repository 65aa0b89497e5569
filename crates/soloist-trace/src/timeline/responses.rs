//! How long jobs took from release to completion, as a distribution.

use hdrhistogram::Histogram;

use super::{End, Timeline};

/// Response times of one task, nanoseconds; percentiles have 3 digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Responses {
    /// The median; none: no job was completed or missed.
    pub p50_ns: Option<u64>,
    /// 999 of 1000 took no longer.
    pub p999_ns: Option<u64>,
    /// The longest.
    pub worst_ns: u64,
    /// The longest was cut off by the end of the record or of its task, and takes longer:
    /// such jobs count with what was seen of them.
    pub worst_cut_off: bool,
}

impl Timeline {
    /// The distribution over a task's jobs that were released at `from_ps` or
    /// later, where the task was seen until `until_ps`; `None`: there was none. One that is still
    /// open can be the longest, and is in no percentile.
    #[must_use]
    pub fn responses(&self, task: usize, from_ps: u64, until_ps: u64) -> Option<Responses> {
        // Grows as it must, so that no time is refused.
        let mut all = Histogram::<u64>::new(3).ok()?;
        let mut worst = None;
        let jobs = self.jobs.iter();
        for job in jobs.filter(|j| j.task == task && j.release_ps >= from_ps) {
            let (until, cut_off) = match job.end {
                End::Open | End::Missed => (until_ps.min(self.end_ps), true),
                End::Completed(at) => (at, false),
            };
            let seen = until.saturating_sub(job.release_ps) / 1000;
            if job.end != End::Open {
                all.record(seen).ok()?;
            }
            worst = worst.max(Some((seen, cut_off)));
        }
        let (worst_ns, worst_cut_off) = worst?;
        // The histogram gives the upper end of a bucket.
        let quantile = |part| all.value_at_quantile(part).min(worst_ns);
        let quantile = |part| (!all.is_empty()).then(|| quantile(part));
        Some(Responses {
            p50_ns: quantile(0.5),
            p999_ns: quantile(0.999),
            worst_ns,
            worst_cut_off,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::timeline::Job;

    fn timeline(ends: impl Iterator<Item = End>) -> Timeline {
        let job = |(number, end)| Job {
            task: 0,
            number,
            release_ps: 0,
            deadline_ps: None,
            runs: Vec::new(),
            end,
        };
        Timeline {
            jobs: (0..).zip(ends).map(job).collect(),
            end_ps: 9_000_000,
            ..Timeline::default()
        }
    }

    #[test]
    fn of_a_thousand_and_one_jobs_the_longest_is_no_p999() {
        let ends = (0..1001).map(|n| End::Completed(if n == 7 { 5_000_000 } else { 1_000_000 }));
        let seen = timeline(ends).responses(0, 0, u64::MAX).unwrap();
        assert_eq!((seen.p50_ns, seen.p999_ns), (Some(1000), Some(1000)));
        assert!(seen.worst_ns == 5000 && !seen.worst_cut_off);
        assert_eq!(timeline([].into_iter()).responses(0, 0, u64::MAX), None);
    }

    /// A job that hangs until the record ends took so long at least.
    #[test]
    fn a_job_in_which_the_record_ends_can_be_the_worst() {
        let ends = [End::Completed(1_000_000), End::Open];
        let all = timeline(ends.into_iter());
        let seen = all.responses(0, 0, u64::MAX).unwrap();
        assert_eq!((seen.worst_ns, seen.worst_cut_off), (9000, true));
        assert_eq!((seen.p50_ns, seen.p999_ns), (Some(1000), Some(1000)));
        // It was the shorter one when its task ended.
        let seen = all.responses(0, 0, 500_000).unwrap();
        assert_eq!((seen.worst_ns, seen.worst_cut_off), (1000, false));
        let open = timeline([End::Open].into_iter());
        let seen = open.responses(0, 0, u64::MAX).unwrap();
        assert_eq!((seen.p50_ns, seen.p999_ns), (None, None));
        assert_eq!((seen.worst_ns, seen.worst_cut_off), (9000, true));
    }

    #[test]
    fn a_job_that_is_never_done_is_the_worst() {
        let ends = [End::Completed(8_999_000), End::Missed];
        let all = timeline(ends.into_iter());
        let seen = all.responses(0, 0, u64::MAX).unwrap();
        assert!(seen.worst_ns == 9000 && seen.worst_cut_off);
        assert!(seen.p999_ns <= Some(seen.worst_ns));
        // Nothing was seen of it any more.
        let seen = all.responses(0, 0, 2_000_000).unwrap();
        assert!(seen.worst_ns == 8999 && !seen.worst_cut_off);
    }
}

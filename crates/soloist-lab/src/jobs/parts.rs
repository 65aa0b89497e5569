//! Work in parts, which share nothing and may be done in any order: the parts of
//! several works go through one queue, so that no core is idle before the last of
//! them has begun.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{mpsc, Mutex, PoisonError};

use rayon::prelude::*;

/// Work in parts.
pub trait Parts: Sync {
    /// What a part comes to.
    type Part: Send;
    /// What all come to.
    type Whole;
    /// Why a part could not be done.
    type Error: Send;

    /// A guess at what each part costs, in units that all works share.
    fn costs(&self) -> Vec<u64>;

    /// Does one of them.
    ///
    /// # Errors
    /// When it can't be done.
    fn part(&self, n: usize) -> Result<Self::Part, Self::Error>;

    /// All of them, in their order.
    fn whole(&self, parts: Vec<Self::Part>) -> Self::Whole;
}

/// All parts of a work, or why there are not all.
type Ended<W> = Result<Vec<<W as Parts>::Part>, <W as Parts>::Error>;

/// One work while its parts are done.
struct Open<P> {
    parts: Mutex<Vec<Option<P>>>,
    left: AtomicUsize,
    failed: AtomicBool,
}

impl<P> Open<P> {
    fn new(n: usize) -> Self {
        Self {
            parts: Mutex::new((0..n).map(|_| None).collect()),
            left: AtomicUsize::new(n),
            failed: AtomicBool::new(false),
        }
    }

    fn is_empty(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Keeps a part; after the last, all.
    fn keep(&self, n: usize, part: P) -> Option<Vec<P>> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts[n] = Some(part);
        let last = self.left.fetch_sub(1, Ordering::Relaxed) == 1;
        last.then(|| parts.drain(..).flatten().collect())
    }
}

/// Which part of which work comes when: works with the longest parts first, so
/// that only short ones are left when a core finds nothing more to do, and of each
/// all parts together, so that whole works are done early.
fn order<W: Parts>(works: &[W]) -> Vec<(usize, usize)> {
    let longest = |costs: &Vec<u64>| costs.iter().copied().max().unwrap_or(0);
    let mut works: Vec<(usize, Vec<u64>)> = works.iter().map(W::costs).enumerate().collect();
    works.sort_by_key(|(_, costs)| std::cmp::Reverse(longest(costs)));
    let longest_first = |(work, costs): (usize, Vec<u64>)| {
        let mut parts: Vec<usize> = (0..costs.len()).collect();
        parts.sort_by_key(|&part| std::cmp::Reverse(costs[part]));
        parts.into_iter().map(move |part| (work, part))
    };
    works.into_iter().flat_map(longest_first).collect()
}

/// The next message; `None` after the last. A caller that is one of the pool's own
/// threads does parts itself until there is one.
fn next<T>(receiver: &mpsc::Receiver<T>) -> Option<T> {
    loop {
        match receiver.try_recv() {
            Ok(message) => return Some(message),
            Err(mpsc::TryRecvError::Disconnected) => return None,
            Err(mpsc::TryRecvError::Empty) => {}
        }
        if rayon::yield_now() != Some(rayon::Yield::Executed) {
            return receiver.recv().ok();
        }
    }
}

/// Does all parts of one work; `progress` is told each time a part is done.
///
/// # Errors
/// That of a part.
pub fn do_one<W: Parts>(work: &W, progress: &(dyn Fn() + Sync)) -> Result<W::Whole, W::Error> {
    let part = |n| {
        let done = work.part(n);
        progress();
        done
    };
    let parts = (0..work.costs().len()).into_par_iter().map(part);
    Ok(work.whole(parts.collect::<Result<_, _>>()?))
}

/// Does all parts of all `works`. `done` gets each work with its index as it ends,
/// in whatever order, on the caller's thread; false: the rest is given up.
/// `progress` is told each time a part is done.
pub fn do_all<W: Parts>(
    works: &[W],
    progress: &(dyn Fn() + Sync),
    mut done: impl FnMut(usize, Result<W::Whole, W::Error>) -> bool,
) {
    let order = order(works);
    let given_up = AtomicBool::new(false);
    let open: Vec<Open<W::Part>> = works.iter().map(|w| Open::new(w.costs().len())).collect();
    let (sender, receiver) = mpsc::channel();
    for (work, _) in open
        .iter()
        .enumerate()
        .filter(|(_, parts)| parts.is_empty())
    {
        let _ = sender.send((work, Ok(Vec::new())));
    }
    let do_part = |(work, part): (usize, usize), sender: &mpsc::Sender<(usize, Ended<W>)>| {
        let state = &open[work];
        if given_up.load(Ordering::Relaxed) || state.failed.load(Ordering::Relaxed) {
            return;
        }
        let kept = match works[work].part(part) {
            Ok(done) => state.keep(part, done).map(Ok),
            Err(error) => (!state.failed.swap(true, Ordering::Relaxed)).then_some(Err(error)),
        };
        progress();
        if let Some(kept) = kept {
            // Nobody listens any more where it was given up.
            let _ = sender.send((work, kept));
        }
    };
    rayon::in_place_scope_fifo(|scope| {
        for at in order {
            let (sender, do_part) = (sender.clone(), &do_part);
            scope.spawn_fifo(move |_| do_part(at, &sender));
        }
        drop(sender);
        while let Some((work, parts)) = next(&receiver) {
            let whole = parts.map(|parts| works[work].whole(parts));
            if !given_up.load(Ordering::Relaxed) && !done(work, whole) {
                given_up.store(true, Ordering::Relaxed);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts that cost what they come to; a part of nothing fails.
    struct Sums(Vec<u64>);

    impl Parts for Sums {
        type Part = u64;
        type Whole = u64;
        type Error = &'static str;

        fn costs(&self) -> Vec<u64> {
            self.0.clone()
        }

        fn part(&self, n: usize) -> Result<u64, &'static str> {
            Some(self.0[n]).filter(|&n| n > 0).ok_or("nothing")
        }

        fn whole(&self, parts: Vec<u64>) -> u64 {
            parts.iter().fold(0, |sum, part| sum * 10 + part)
        }
    }

    #[test]
    fn works_with_the_longest_parts_come_first() {
        let works = [Sums(vec![2, 3]), Sums(vec![1, 9]), Sums(vec![4])];
        let order = order(&works);
        assert_eq!(order, [(1, 1), (1, 0), (2, 0), (0, 1), (0, 0)]);
    }

    #[test]
    fn each_work_ends_once_with_its_parts_in_order_or_its_error() {
        let works = [vec![1, 2, 3], vec![0, 0, 4], vec![7], vec![]].map(Sums);
        let mut ends = vec![Vec::new(); works.len()];
        do_all(&works, &|| {}, |work, whole| {
            ends[work].push(whole);
            true
        });
        assert_eq!(ends, [[Ok(123)], [Err("nothing")], [Ok(7)], [Ok(0)]]);
    }

    #[test]
    fn what_is_given_up_ends_nowhere() {
        let works: Vec<Sums> = (1..50).map(|n| Sums(vec![n])).collect();
        let mut ended = 0;
        do_all(&works, &|| {}, |_, _| {
            ended += 1;
            false
        });
        assert_eq!(ended, 1);
    }
}

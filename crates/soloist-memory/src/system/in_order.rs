//! A bus that answers in the order in which it was asked, as a front-side bus does.
//!
//! It holds so many transactions at a time (its in-order queue), and the oldest has to
//! be answered before the next. A few may be *deferred*: the oldest, not ready while a
//! younger one is, steps aside and is answered whenever it is ready.

use std::collections::VecDeque;

use soloist_machine::memory::NorthbridgeConfig;

/// The transactions on the bus of one node.
#[derive(Debug)]
pub(super) struct InOrder {
    depth: usize,
    most_deferred: usize,
    /// Oldest first, with the time in which each is ready, ps.
    waiting: VecDeque<(u32, Option<u64>)>,
    deferred: Vec<u32>,
    /// When the last in order was answered, ps.
    last: u64,
}

impl InOrder {
    /// `None`: answers may come in any order.
    pub fn new(config: &NorthbridgeConfig) -> Option<Self> {
        (config.in_order > 0).then(|| Self {
            depth: config.in_order as usize,
            most_deferred: config.deferred as usize,
            waiting: VecDeque::new(),
            deferred: Vec::new(),
            last: 0,
        })
    }

    /// Room for one more?
    pub fn has_room(&self) -> bool {
        self.waiting.len() < self.depth
    }

    /// Transaction `t` is on the bus.
    pub fn enter(&mut self, t: u32) {
        self.waiting.push_back((t, None));
    }

    /// `t` is ready at `at`, ps: those that can be answered now, and when.
    pub fn ready(&mut self, t: u32, at: u64) -> Vec<(u32, u64)> {
        if let Some(i) = self.deferred.iter().position(|&d| d == t) {
            self.deferred.swap_remove(i);
            return vec![(t, at)];
        }
        if let Some(entry) = self.waiting.iter_mut().find(|(other, _)| *other == t) {
            entry.1 = Some(at);
        }
        let mut answered = Vec::new();
        while let Some(&(first, ready)) = self.waiting.front() {
            if let Some(at) = ready {
                self.last = self.last.max(at);
                answered.push((first, self.last));
            } else if self.deferred.len() < self.most_deferred
                && self.waiting.iter().any(|(_, ready)| ready.is_some())
            {
                self.deferred.push(first);
            } else {
                break;
            }
            self.waiting.pop_front();
        }
        answered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus(in_order: u32, deferred: u32) -> InOrder {
        let config = NorthbridgeConfig {
            in_order,
            deferred,
            ..NorthbridgeConfig::default()
        };
        let mut bus = InOrder::new(&config).expect("in order");
        (0..3).for_each(|t| bus.enter(t));
        bus
    }

    #[test]
    fn the_oldest_holds_up_the_others() {
        let mut bus = bus(3, 0);
        assert!(!bus.has_room());
        assert_eq!(bus.ready(2, 10), []);
        assert_eq!(bus.ready(1, 30), []);
        assert_eq!(bus.ready(0, 20), [(0, 20), (1, 30), (2, 30)]);
        assert!(bus.has_room());
    }

    #[test]
    fn one_that_is_deferred_lets_the_others_pass() {
        let mut bus = bus(3, 1);
        assert_eq!(bus.ready(1, 10), [(1, 10)]);
        assert!(bus.has_room(), "the deferred one has left the queue");
        bus.enter(3);
        assert_eq!(bus.ready(3, 20), [], "a second one is not deferred");
        assert_eq!(bus.ready(0, 25), [(0, 25)]);
        assert_eq!(bus.ready(2, 15), [(2, 15), (3, 20)]);
    }

    #[test]
    fn a_bus_without_a_depth_answers_in_any_order() {
        assert!(InOrder::new(&NorthbridgeConfig::default()).is_none());
    }
}

//! What isolation bought in the model on machines of one node, for what can't be measured
//! without the module or root. The figures of evidence/one-node.csv beside writers.

use serde::Serialize;

/// The machines that were modelled; the last one is a board.
const MACHINES: [&str; 4] = ["skylake", "haswell", "zen2", "raspberry-pi-4"];
/// Of them, those with an L3, in words.
const LARGE: &str = "Skylake, Haswell and Zen 2";
/// The board, in words.
const BOARD: &str = "a Raspberry Pi 4";

/// A kind of isolation as the model played it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Played {
    /// Name of the placement in evidence/one-node.csv.
    placement: &'static str,
    /// A sort's time beside three writers over its time alone on Linux, on each machine.
    slowdowns: [f64; MACHINES.len()],
}

/// Nothing: Linux.
const LINUX: Played = played("buddy", [6.29, 5.49, 10.09, 2.38]);
/// Cache ways.
pub const CACHE_WAYS: Played = played("cat", [5.06, 4.58, 7.75, 2.08]);
/// Neighbours throttled.
pub const THROTTLING: Played = played("throttle", [3.69, 4.67, 8.84, 1.99]);
/// Bandwidth reserved.
pub const RESERVATION: Played = played("memguard", [1.11, 1.12, 1.05, 1.09]);

const fn played(placement: &'static str, slowdowns: [f64; MACHINES.len()]) -> Played {
    Played {
        placement,
        slowdowns,
    }
}

/// The model's figures of machines like this one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Modelled {
    /// The machines that were modelled.
    pub machines: &'static str,
    /// Slowdown beside three writers under Linux: least and most of the machines.
    pub linux: [f64; 2],
    /// The same with this isolation.
    pub slowdown: [f64; 2],
    /// The share of what the writers cost that it takes away.
    pub removes: [f64; 2],
}

impl Played {
    /// On boards, or on machines with an L3.
    #[must_use]
    pub fn on(self, is_board: bool) -> Modelled {
        let board = MACHINES.len() - 1;
        let (machines, like) = match is_board {
            true => (BOARD, board..MACHINES.len()),
            false => (LARGE, 0..board),
        };
        let (linux, with) = (&LINUX.slowdowns[like.clone()], &self.slowdowns[like]);
        let removed = linux.iter().zip(with);
        let removed = removed.map(|(linux, with)| (linux - with) / (linux - 1.0));
        Modelled {
            machines,
            linux: range(linux.iter().copied()),
            slowdown: range(with.iter().copied()),
            removes: range(removed),
        }
    }
}

/// Least and most.
fn range(of: impl Iterator<Item = f64>) -> [f64; 2] {
    of.fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], one| {
        [low.min(one), high.max(one)]
    })
}

impl Modelled {
    /// The figures in a sentence, which says what they are.
    #[must_use]
    pub fn says(&self) -> String {
        format!(
            "Modelled, not measured here: on {} a sort beside three writers took {} times as long as alone, \
             for {} without.",
            self.machines,
            words(self.slowdown, 1.0, 2),
            words(self.linux, 1.0, 2)
        )
    }

    /// The share that it takes away, per cent.
    #[must_use]
    pub fn share(&self) -> String {
        words(self.removes, 100.0, 0)
    }

    /// Where it stands among others that are only modelled, 0 to 1.
    #[must_use]
    pub fn rank(&self) -> f64 {
        ((self.removes[0] + self.removes[1]) / 2.0).clamp(0.0, 1.0)
    }
}

/// `3.67 to 8.93`, or one figure where both print alike.
fn words([low, high]: [f64; 2], by: f64, digits: usize) -> String {
    let show = |figure: f64| format!("{:.digits$}", by * figure);
    let (low, high) = (show(low), show(high));
    match low == high {
        true => low,
        false => format!("{low} to {high}"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The figures are those of the evidence: played anew, they are stale here.
    #[test]
    fn the_figures_are_the_evidence() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../evidence/one-node.csv");
        let text = std::fs::read_to_string(file).unwrap();
        let mut rows = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
        for one in [LINUX, CACHE_WAYS, THROTTLING, RESERVATION] {
            let found = MACHINES.map(|machine| -> f64 {
                let is_it = |row: &&csv::StringRecord| {
                    (&row[0], &row[1], &row[2]) == (machine, "write", one.placement)
                };
                rows.iter().find(is_it).unwrap()[6].parse().unwrap()
            });
            let off = found.iter().zip(one.slowdowns).map(|(a, b)| (a - b).abs());
            let is_it = off.fold(0.0, f64::max) < 0.0051;
            assert!(is_it, "{}: evidence has {found:.2?}", one.placement);
        }
    }

    #[test]
    fn a_board_has_the_figures_of_a_board() {
        let large = THROTTLING.on(false);
        assert_eq!(
            large.slowdown,
            range(THROTTLING.slowdowns[..3].iter().copied())
        );
        let [low, high] = large.slowdown;
        let said = large.says();
        assert!(
            said.contains(&format!("{low:.2} to {high:.2} times")),
            "{said}"
        );
        assert!(said.contains("Zen 2") && !said.contains("Pi"), "{said}");
        let board = RESERVATION.on(true);
        assert_eq!(board.slowdown, [RESERVATION.slowdowns[3]; 2]);
        let said = board.says();
        assert!(
            said.contains("Raspberry Pi 4") && !said.contains("Zen"),
            "{said}"
        );
        // The slowdown that it removes, as a share of all slowdown: (2.38 - 1.09) / 1.38.
        let of = (LINUX.slowdowns[3] - RESERVATION.slowdowns[3]) / (LINUX.slowdowns[3] - 1.0);
        assert!((board.rank() - of).abs() < 1e-9, "{board:?}");
    }
}

//! What isolation bought recorded programs in the model, for what can't be measured without
//! the module or root. The medians of evidence/recorded.md.

/// A kind of isolation as the model played it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modelled {
    /// Name of the placement in evidence/recorded.csv.
    pub placement: &'static str,
    /// Time beside three writers over the time alone on Linux: the median of eleven programs.
    pub slowdown: f64,
}

/// Nothing: Linux.
pub const LINUX: Modelled = modelled("buddy", 1.94);
/// Cache ways.
pub const CACHE_WAYS: Modelled = modelled("cat", 1.59);
/// Neighbours throttled.
pub const THROTTLING: Modelled = modelled("throttle", 1.19);
/// Bandwidth reserved.
pub const RESERVATION: Modelled = modelled("memguard", 1.05);

const fn modelled(placement: &'static str, slowdown: f64) -> Modelled {
    Modelled {
        placement,
        slowdown,
    }
}

impl Modelled {
    /// The figure in a sentence, which says what it is.
    #[must_use]
    pub fn says(self) -> String {
        format!(
            "Modelled, not measured here: programs beside three writers on an Opteron took {:.2} times as long, for \
             {:.2} without (medians).",
            self.slowdown, LINUX.slowdown
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use soloist_core::statistics::median;

    /// The figures are those of the evidence.
    #[test]
    fn the_figures_are_the_evidence() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../evidence/recorded.csv");
        let text = std::fs::read_to_string(file).unwrap();
        let mut rows = csv::Reader::from_reader(text.as_bytes());
        let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
        for one in [LINUX, CACHE_WAYS, THROTTLING, RESERVATION] {
            let of = rows
                .iter()
                .filter(|row| &row[1] == "write" && &row[2] == one.placement);
            let mut slowdowns: Vec<f64> = of.map(|row| row[6].parse().unwrap()).collect();
            assert!(
                slowdowns.len() >= 11,
                "{}: {}",
                one.placement,
                slowdowns.len()
            );
            let found = median(&mut slowdowns);
            assert!(
                (found - one.slowdown).abs() < 0.006,
                "{}: {found}",
                one.placement
            );
        }
    }
}

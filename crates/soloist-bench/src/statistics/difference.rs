//! Differences between two conditions, and which of them are more than chance: both ways,
//! since isolation that costs more than it saves is worth as many words.

use serde::{Deserialize, Serialize};

use crate::statistics::{chance, shown, Interval};

/// A difference, and whether it is more than chance.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Difference {
    /// ns of an access: median over blocks, and between what it lies in 99 of 100 cases.
    pub ns: Interval,
    /// Chance that luck alone gives as much.
    pub chance: f64,
    /// Whether it is an effect, all judgements of the run taken together.
    pub shown: bool,
    /// Chance that luck alone gives as little.
    #[serde(default = "certain")]
    pub chance_less: f64,
    /// Whether it is shown to lie below 0.
    #[serde(default)]
    pub shown_less: bool,
}

/// By which share neighbours are slower, and whether that is more than chance.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Loss {
    /// The share.
    #[serde(flatten)]
    pub share: Interval,
    /// Chance that luck alone gives as much.
    #[serde(default = "certain")]
    pub chance: f64,
    /// Whether they are slower, all judgements of the run taken together.
    #[serde(default)]
    pub shown: bool,
}

fn certain() -> f64 {
    1.0
}

impl Difference {
    /// Of these values, a block each; not judged yet.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let less: Vec<f64> = values.iter().map(|value| -value).collect();
        Self {
            ns: Interval::of_median(values),
            chance: chance(values),
            shown: false,
            chance_less: chance(&less),
            shown_less: false,
        }
    }
}

impl Loss {
    /// Of neighbours' rates, a block each: as they were, and with isolation; not judged yet.
    /// A block in which they did nothing does not count.
    #[must_use]
    pub fn of(rates: impl Iterator<Item = (f64, f64)>) -> Self {
        let ran = rates.filter(|(before, _)| *before > 0.0);
        let lost: Vec<f64> = ran.map(|(before, after)| 1.0 - after / before).collect();
        if lost.is_empty() {
            return Self::default();
        }
        Self {
            share: Interval::of_median(&lost),
            chance: chance(&lost),
            shown: false,
        }
    }

    /// The median as a percentage, for a table.
    #[must_use]
    pub fn percent(&self) -> String {
        // No -0.
        format!("{:.0} %", (100.0 * self.share.median).round() + 0.0)
    }

    /// A clause where neighbours are shown to be slower; else nothing.
    #[must_use]
    pub fn says(&self) -> String {
        match self.shown {
            true => format!(
                "; the co-runners are {:.0} % slower",
                100.0 * self.share.median
            ),
            false => String::new(),
        }
    }
}

impl Default for Difference {
    fn default() -> Self {
        Self {
            ns: Interval::default(),
            chance: certain(),
            shown: false,
            chance_less: certain(),
            shown_less: false,
        }
    }
}

impl Default for Loss {
    fn default() -> Self {
        Self {
            share: Interval::default(),
            chance: certain(),
            shown: false,
        }
    }
}

/// Says which of all these are more than chance, with one limit for all of them (Holm).
pub(crate) fn judge(differences: Vec<&mut Difference>, losses: Vec<&mut Loss>, limit: f64) {
    let both = differences
        .iter()
        .flat_map(|one| [one.chance, one.chance_less]);
    let chances: Vec<f64> = both.chain(losses.iter().map(|one| one.chance)).collect();
    let are_shown = shown(&chances, limit);
    let (of_differences, of_losses) = are_shown.split_at(2 * differences.len());
    for (one, shown) in differences.into_iter().zip(of_differences.chunks(2)) {
        one.shown = shown[0] && one.ns.low > 0.0;
        one.shown_less = shown[1] && one.ns.high < 0.0;
    }
    for (one, &shown) in losses.into_iter().zip(of_losses) {
        one.shown = shown && one.share.low > 0.0;
    }
}

/// At most this share of an access, in words.
pub(crate) fn at_most(share: f64) -> String {
    match share < 0.0005 {
        true => "less than 0.1 %".to_owned(),
        false => format!("at most {:.1} %", 100.0 * share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(rates: &[(f64, f64)]) -> Loss {
        let mut loss = Loss::of(rates.iter().copied());
        judge(Vec::new(), vec![&mut loss], 0.01);
        loss
    }

    #[test]
    fn a_loss_is_said_where_it_is_shown() {
        let lost: Vec<(f64, f64)> = (0..20).map(|i| (100.0, 80.0 + f64::from(i % 5))).collect();
        assert_eq!(judged(&lost).says(), "; the co-runners are 18 % slower");
        let luck: Vec<(f64, f64)> = (0..20).map(|i| (100.0, 98.0 + f64::from(i % 5))).collect();
        assert_eq!(judged(&luck).says(), "");
        // Neighbours that did nothing lost nothing.
        let none = judged(&[(0.0, 0.0); 20]);
        assert!(!none.shown && none.share.median == 0.0, "{none:?}");
    }

    #[test]
    fn a_difference_is_shown_both_ways() {
        let both = |sign: f64| {
            let values: Vec<f64> = (0..20).map(|i| sign * f64::from(3 + i % 5)).collect();
            let mut one = Difference::of(&values);
            judge(vec![&mut one], Vec::new(), 0.01);
            (one.shown, one.shown_less)
        };
        assert_eq!((both(1.0), both(-1.0)), ((true, false), (false, true)));
    }

    #[test]
    fn nothing_is_less_than_nothing() {
        assert_eq!(at_most(-0.2), "less than 0.1 %");
        assert_eq!(at_most(0.123), "at most 12.3 %");
    }
}

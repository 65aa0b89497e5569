//! How many claims hold, kind by kind.

use serde::Serialize;

use super::Verdict;
use crate::spec::ClaimKind;

/// Of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// They hold.
    pub hold: usize,
    /// Of so many.
    pub of: usize,
}

impl Count {
    fn add(&mut self, v: &Verdict) {
        self.of += 1;
        self.hold += usize::from(v.holds == Some(true));
    }
}

/// Of all claims of some experiments. Only the papers' predictions and orders count
/// for or against the model's likeness to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Printed effects that nothing was chosen by.
    pub predicted: Count,
    /// Which is larger.
    pub order: Count,
    /// What the model was calibrated on.
    pub fitted: Count,
    /// Where the papers contradict each other; counted nowhere else.
    pub contradicted: usize,
    /// Measured on real DRAM; counted nowhere else.
    pub silicon: Count,
    /// In no paper; counted nowhere else.
    pub own: usize,
    /// Of ablations; counted nowhere else.
    pub ablation: usize,
}

impl Totals {
    /// Counts.
    pub fn of<'a>(verdicts: impl IntoIterator<Item = &'a Verdict>) -> Self {
        let mut totals = Self::default();
        for v in verdicts {
            match v.kind {
                ClaimKind::Ablation => totals.ablation += 1,
                ClaimKind::Own => totals.own += 1,
                ClaimKind::Silicon => totals.silicon.add(v),
                _ if v.contradicted.is_some() => totals.contradicted += 1,
                ClaimKind::Predicted => totals.predicted.add(v),
                ClaimKind::Order => totals.order.add(v),
                ClaimKind::Fitted => totals.fitted.add(v),
            }
        }
        totals
    }

    /// In a sentence.
    pub fn sentence(&self) -> String {
        let silicon = match self.silicon {
            Count { of: 0, .. } => String::new(),
            Count { hold, of } => format!("{hold} of {of} figures measured on real DRAM hold; "),
        };
        format!(
            "{} of {} printed effects are predicted within 15 %, {} of {} orders hold; {silicon}\
             {} of {} fits hold (no prediction); {} claims that the papers contradict, {} in no \
             paper and {} of ablations are not counted",
            self.predicted.hold,
            self.predicted.of,
            self.order.hold,
            self.order.of,
            self.fitted.hold,
            self.fitted.of,
            self.contradicted,
            self.own,
            self.ablation
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::judgement::table::read_claims;
    use crate::known;
    use crate::spec::Basis;

    fn verdict(kind: ClaimKind, holds: bool) -> Verdict {
        Verdict {
            what: String::new(),
            kind,
            theirs: None,
            ours: None,
            effect: None,
            holds: Some(holds),
            half: None,
            contradicted: None,
            unit: String::new(),
            error: None,
        }
    }

    #[test]
    fn what_no_paper_prints_counts_for_nothing() {
        let all = [
            verdict(ClaimKind::Own, true),
            verdict(ClaimKind::Own, false),
            verdict(ClaimKind::Order, true),
            verdict(ClaimKind::Silicon, true),
            verdict(ClaimKind::Silicon, false),
        ];
        let totals = Totals::of(&all);
        assert_eq!(totals.order, Count { hold: 1, of: 1 });
        assert_eq!(totals.silicon, Count { hold: 1, of: 2 });
        assert_eq!((totals.own, totals.predicted.of), (2, 0));
        let said = totals.sentence();
        assert!(said.contains("1 of 2 figures measured"), "{said}");
        assert!(said.contains("2 in no paper"), "{said}");
        assert!(!Totals::of(&all[..3]).sentence().contains("measured"));
    }

    /// An experiment that names no paper has no claims of one.
    #[test]
    fn what_is_kept_says_which_claims_are_of_no_paper() {
        let kept = read_claims(include_str!("../../../../evidence/verdicts-full.csv")).unwrap();
        for line in &kept {
            let Ok(scenario) = known::find(&line.experiment) else {
                continue;
            };
            let own = scenario.experiment.basis == Basis::Own;
            assert_eq!(line.kind == "own", own, "{line:?}");
            assert_eq!(scenario.experiment.source.contains("none of"), own);
        }
    }
}

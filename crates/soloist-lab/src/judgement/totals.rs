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

/// Of all claims of some experiments. Only predictions and orders count.
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
        format!(
            "{} of {} printed effects are predicted within 15 %, {} of {} orders hold; \
             {} of {} fits hold (no prediction); {} claims that the papers contradict and {} of \
             ablations are not counted",
            self.predicted.hold,
            self.predicted.of,
            self.order.hold,
            self.order.of,
            self.fitted.hold,
            self.fitted.of,
            self.contradicted,
            self.ablation
        )
    }
}

//! What changed between two runs of the same experiments.

use serde::Serialize;

use super::{Estimate, Outcome};

/// A claim whose figure or verdict is another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Of this experiment.
    pub experiment: String,
    /// In words.
    pub what: String,
    /// What the paper prints.
    pub theirs: Option<f64>,
    /// What came out then.
    pub before: Option<Estimate>,
    /// What comes out now.
    pub after: Option<Estimate>,
    /// Did it hold?
    pub held: Option<bool>,
    /// Does it hold?
    pub holds: Option<bool>,
    /// Unit.
    pub unit: String,
}

/// Claims of experiments that are in both.
pub fn changes(before: &[Outcome], after: &[Outcome]) -> Vec<Change> {
    let mut all = Vec::new();
    for now in after {
        let id = &now.scenario.experiment.id;
        let then = before.iter().find(|o| o.scenario.experiment.id == *id);
        for new in &now.verdicts {
            let old = then.and_then(|o| o.verdicts.iter().find(|v| v.what == new.what));
            let Some(old) = old.filter(|old| (old.ours, old.holds) != (new.ours, new.holds)) else {
                continue;
            };
            all.push(Change {
                experiment: id.clone(),
                what: new.what.clone(),
                theirs: new.theirs,
                before: old.ours,
                after: new.ours,
                held: old.holds,
                holds: new.holds,
                unit: new.unit.clone(),
            });
        }
    }
    all
}

//! What changed between two runs of the same experiments.

use serde::Serialize;

use super::{Estimate, Outcome, Totals, Verdict};

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

/// Two runs of the same experiments.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Claims whose figure or verdict is another.
    pub changes: Vec<Change>,
    /// Claims that both have.
    pub common: usize,
    /// Of those, how many held.
    pub before: Totals,
    /// And hold.
    pub after: Totals,
    /// Claims, or whole experiments, that only the former has.
    pub only_before: Vec<String>,
    /// And only the latter.
    pub only_after: Vec<String>,
}

impl Comparison {
    /// Compares: totals are of what both have, since what only one has would
    /// look like a change of the model.
    #[must_use]
    pub fn of(before: &[Outcome], after: &[Outcome]) -> Self {
        let pairs: Vec<(&Outcome, &Verdict, &Verdict)> = after
            .iter()
            .flat_map(|now| now.verdicts.iter().map(move |new| (now, new)))
            .filter_map(|(now, new)| Some((now, same_claim(before, now, new)?, new)))
            .collect();
        let differs = |(_, old, new): &&(&Outcome, &Verdict, &Verdict)| {
            (old.ours, old.holds) != (new.ours, new.holds)
        };
        let change = |(now, old, new): &(&Outcome, &Verdict, &Verdict)| Change {
            experiment: now.scenario.experiment.id.clone(),
            what: new.what.clone(),
            theirs: new.theirs,
            before: old.ours,
            after: new.ours,
            held: old.holds,
            holds: new.holds,
            unit: new.unit.clone(),
        };
        Self {
            changes: pairs.iter().filter(differs).map(change).collect(),
            common: pairs.len(),
            before: Totals::of(pairs.iter().map(|(_, old, _)| *old)),
            after: Totals::of(pairs.iter().map(|(.., new)| *new)),
            only_before: only_in(before, after),
            only_after: only_in(after, before),
        }
    }
}

/// The claim `of` an outcome as it came out among `others`.
fn same_claim<'a>(others: &'a [Outcome], of: &Outcome, claim: &Verdict) -> Option<&'a Verdict> {
    let id = &of.scenario.experiment.id;
    let other = others.iter().find(|o| o.scenario.experiment.id == *id)?;
    other.verdicts.iter().find(|v| v.what == claim.what)
}

/// What `these` have and `others` don't: an experiment, or some of its claims.
fn only_in(these: &[Outcome], others: &[Outcome]) -> Vec<String> {
    let mut only = Vec::new();
    for this in these {
        let id = &this.scenario.experiment.id;
        if !others.iter().any(|o| o.scenario.experiment.id == *id) {
            only.push(id.clone());
            continue;
        }
        let missing = |v: &&Verdict| same_claim(others, this, v).is_none();
        let claims = this.verdicts.iter().filter(missing);
        only.extend(claims.map(|v| format!("{id}: {}", v.what)));
    }
    only
}

//! What changed between two runs of the same experiments.

use serde::Serialize;

use super::{Estimate, Judged, Totals, Verdict};

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
    pub fn new(before: &[Judged], after: &[Judged]) -> Self {
        let pairs: Vec<(&Judged, &Verdict, &Verdict)> = after
            .iter()
            .flat_map(|now| now.verdicts.iter().map(move |new| (now, new)))
            .filter_map(|(now, new)| Some((now, same_claim(before, now, new)?, new)))
            .collect();
        let differs = |(_, old, new): &&(&Judged, &Verdict, &Verdict)| {
            (old.ours, old.holds) != (new.ours, new.holds)
        };
        let change = |(now, old, new): &(&Judged, &Verdict, &Verdict)| Change {
            experiment: now.id.to_owned(),
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
fn same_claim<'a>(others: &[Judged<'a>], of: &Judged, claim: &Verdict) -> Option<&'a Verdict> {
    let other = others.iter().find(|o| o.id == of.id)?;
    other.verdicts.iter().find(|v| v.what == claim.what)
}

/// What `these` have and `others` don't: an experiment, or some of its claims.
fn only_in(these: &[Judged], others: &[Judged]) -> Vec<String> {
    let mut only = Vec::new();
    for this in these {
        let id = this.id;
        if !others.iter().any(|o| o.id == id) {
            only.push(id.to_owned());
            continue;
        }
        let missing = |v: &&Verdict| same_claim(others, this, v).is_none();
        let claims = this.verdicts.iter().filter(missing);
        only.extend(claims.map(|v| format!("{id}: {}", v.what)));
    }
    only
}

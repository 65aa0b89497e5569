//! Claims over all changes, and what decides those that miss.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Change, Line, Of};
use crate::judgement::table::ClaimLine;

/// A figure, and the change that gives it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct End {
    /// The figure.
    pub value: Option<f64>,
    /// Where it is so; nothing: as shipped.
    pub at: String,
}

/// A claim over all changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spread {
    /// As shipped.
    pub shipped: ClaimLine,
    /// Its least figure of all, as shipped included.
    pub least: End,
    /// Its greatest.
    pub most: End,
    /// The changes that change its verdict, with the figure there.
    pub flips: Vec<(String, Option<f64>)>,
    /// The keys, by whose they are, between whose ends the printed figure lies, or
    /// at one of whose ends the claim holds.
    pub brackets: BTreeMap<Of, Vec<String>>,
}

impl Spread {
    /// What decides whether the claim comes out, in words.
    #[must_use]
    pub fn bracketed(&self) -> String {
        let named = |(of, word): (Of, &str)| {
            let keys = self.brackets.get(&of)?;
            Some(format!("{word} ({})", keys.join("; ")))
        };
        let all = [
            (Of::Experiment, "inputs"),
            (Of::Pair, "two inputs"),
            (Of::Machine, "the machine"),
        ];
        let all: Vec<String> = all.into_iter().filter_map(named).collect();
        match all.is_empty() {
            true => "nothing".to_owned(),
            false => all.join(", "),
        }
    }
}

/// All claims, in the order of `lines`.
#[must_use]
pub fn spreads(lines: &[Line]) -> Vec<Spread> {
    let mut order = Vec::new();
    let mut by_claim: BTreeMap<(&str, &str), Vec<&Line>> = BTreeMap::new();
    for line in lines {
        let name = (&*line.claim.experiment, &*line.claim.claim);
        let all = by_claim.entry(name).or_insert_with(|| {
            order.push(name);
            Vec::new()
        });
        all.push(line);
    }
    let of_claim = |name| spread(&by_claim[&name]);
    order.into_iter().filter_map(of_claim).collect()
}

/// One claim's; nothing where it is not known as shipped.
fn spread(lines: &[&Line]) -> Option<Spread> {
    let shipped = lines.iter().find(|l| l.change.of == Of::Nothing)?;
    let shipped = shipped.claim.clone();
    let end = |line: &Line| End {
        value: line.claim.ours,
        at: named(&line.change),
    };
    let by = |a: &&&Line, b: &&&Line| {
        let ours = |line: &Line| line.claim.ours.unwrap_or_default();
        ours(a).total_cmp(&ours(b))
    };
    let known = || lines.iter().filter(|line| line.claim.ours.is_some());
    let flipped = lines.iter().filter(|l| l.claim.verdict != shipped.verdict);
    Some(Spread {
        least: known().min_by(by).map(|l| end(l)).unwrap_or_default(),
        most: known().max_by(by).map(|l| end(l)).unwrap_or_default(),
        flips: flipped.map(|l| (named(&l.change), l.claim.ours)).collect(),
        brackets: brackets(&shipped, lines),
        shipped,
    })
}

fn named(change: &Change) -> String {
    match change.of {
        Of::Nothing => String::new(),
        _ => format!("{} = {}", change.key, change.value),
    }
}

/// The keys that bracket what is printed.
fn brackets(shipped: &ClaimLine, lines: &[&Line]) -> BTreeMap<Of, Vec<String>> {
    let mut brackets: BTreeMap<Of, Vec<String>> = BTreeMap::new();
    let (Some(theirs), Some(ours)) = (shipped.theirs, shipped.ours) else {
        return brackets;
    };
    for line in lines.iter().filter(|l| l.change.of != Of::Nothing) {
        let there = line.claim.ours;
        let between = |there: f64| ours.min(there) <= theirs && theirs <= ours.max(there);
        let keys = brackets.entry(line.change.of).or_default();
        if (there.is_some_and(between) || line.claim.near()) && !keys.contains(&line.change.key) {
            keys.push(line.change.key.clone());
        }
    }
    brackets.retain(|_, keys| !keys.is_empty());
    brackets
}

/// All claims as tab-separated values: what is printed, ours as shipped, least and
/// greatest with the change that gives them, and what brackets what is printed.
#[must_use]
pub fn tsv(spreads: &[Spread]) -> String {
    let number = |value: Option<f64>| value.map_or_else(String::new, |v| v.to_string());
    let mut text =
        "experiment\tclaim\ttheirs\tas shipped\tverdict\tleast\tat\tgreatest\tat\tbracketed by\n"
            .to_owned();
    for s in spreads {
        let fields = [
            s.shipped.experiment.clone(),
            s.shipped.claim.clone(),
            number(s.shipped.theirs),
            number(s.shipped.ours),
            s.shipped.verdict.clone(),
            number(s.least.value),
            s.least.at.clone(),
            number(s.most.value),
            s.most.at.clone(),
            s.bracketed(),
        ];
        text.push_str(&fields.join("\t"));
        text.push('\n');
    }
    text
}

/// What a change does to all claims of a kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Moved {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// Claims of experiments that have it.
    pub of_claims: usize,
    /// They hold as shipped.
    pub shipped: usize,
    /// They hold then.
    pub hold: usize,
    /// They hold only then.
    pub won: usize,
    /// They hold only as shipped.
    pub lost: usize,
}

/// What each change of the machine does to the claims of `kind`; inputs are each
/// experiment's own.
#[must_use]
pub fn settings(lines: &[Line], kind: &str) -> Vec<Moved> {
    let holds = |line: &Line| line.claim.near();
    let shipped: BTreeMap<(&str, &str), bool> = lines
        .iter()
        .filter(|line| line.change.of == Of::Nothing)
        .map(|l| ((&*l.claim.experiment, &*l.claim.claim), holds(l)))
        .collect();
    let mut all: BTreeMap<&Change, Moved> = BTreeMap::new();
    let of_kind = |l: &&Line| l.claim.kind == kind && l.change.of == Of::Machine;
    for line in lines.iter().filter(of_kind) {
        let before = shipped.get(&(&*line.claim.experiment, &*line.claim.claim));
        let (before, now) = (before == Some(&true), holds(line));
        let moved = all.entry(&line.change).or_insert_with(|| Moved {
            change: line.change.clone(),
            ..Moved::default()
        });
        moved.of_claims += 1;
        moved.shipped += usize::from(before);
        moved.hold += usize::from(now);
        moved.won += usize::from(now && !before);
        moved.lost += usize::from(before && !now);
    }
    all.into_values().collect()
}

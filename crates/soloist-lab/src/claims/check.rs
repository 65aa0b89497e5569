//! Whether claims can be computed, before anything runs.

use crate::cases::{Case, CaseTask};
use crate::measurements::{METRICS, SUFFIXES};
use crate::spec::{Claim, Point, Scenario, Wrong};

use super::comparison::comparisons;

/// Claims that can be computed: from values that this scenario measures.
pub fn check_claims(scenario: &Scenario, cases: &[Case]) -> Result<(), Wrong> {
    let mut stems = Vec::new();
    for case in cases {
        let stem = |task: &CaseTask| format!("{}_{}_", case.name, task.name);
        stems.extend(case.tasks.iter().map(stem));
    }
    for (number, claim) in scenario.claims.iter().enumerate() {
        let number = number.to_string();
        let wrong = |key: &str, what: String| Wrong::at(&["claim", &number, key], what);
        if let Some(text) = &claim.holds {
            comparisons(text).map_err(|what| wrong("holds", what))?;
        }
        let ours = (Some(&claim.ours), "ours");
        for (text, key) in [ours, (claim.holds.as_ref(), "holds")] {
            let Some(text) = text else { continue };
            // A value of the sweep is a number in a name, or alone.
            let value = match scenario.points().first() {
                Some(point) if point.first().is_some() => point.to_string(),
                _ => "1".to_owned(),
            };
            let tree = evalexpr::build_operator_tree(&text.replace('$', &value))
                .map_err(|e| wrong(key, format!("`{text}`: {e}")))?;
            let unknown = tree
                .iter_variable_identifiers()
                // What `holds` may use besides: the claim's own value.
                .filter(|&word| word != "ours" || key != "holds")
                .find(|word| !stems.iter().any(|stem| measured(stem, word)));
            if let Some(word) = unknown {
                return Err(wrong(key, not_measured(word, &stems)));
            }
        }
    }
    Ok(())
}

/// Does a claim need what is measured of `case`?
pub fn needs(scenario: &Scenario, case: &Case) -> bool {
    let values: Vec<String> = scenario.points().iter().map(Point::to_string).collect();
    let named = |text: &String| {
        let text = |value: &str| text.replace('$', value);
        let mut texts = values.iter().map(|v| text(v)).chain([text("1")]);
        texts.any(|text| {
            evalexpr::build_operator_tree(&text).is_ok_and(|tree| {
                let mut words = tree.iter_variable_identifiers();
                words.any(|word| is_of(word, case))
            })
        })
    };
    let texts = |claim: &Claim| [Some(claim.ours.clone()), claim.holds.clone()];
    let mut texts = scenario.claims.iter().flat_map(texts).flatten();
    texts.any(|text| named(&text))
}

/// Is `word` measured of a task of `case`?
fn is_of(word: &str, case: &Case) -> bool {
    let stem = |task: &CaseTask| format!("{}_{}_", case.name, task.name);
    case.tasks.iter().any(|task| measured(&stem(task), word))
}

/// Is `word` a metric of the case and task `stem`, see [`crate::measurements::values()`]?
fn measured(stem: &str, word: &str) -> bool {
    let metrics = METRICS.iter();
    metrics
        .filter_map(|(metric, _)| word.strip_prefix(stem)?.strip_prefix(metric))
        .any(|suffix| suffix.is_empty() || SUFFIXES.contains(&suffix))
}

fn not_measured(word: &str, stems: &[String]) -> String {
    let names = |all: Vec<&str>| all.join(", ");
    format!(
        "`{word}` is not measured; expected one of {} before one of {}",
        names(stems.iter().map(String::as_str).collect()),
        names(METRICS.iter().map(|(name, _)| *name).collect()),
    )
}

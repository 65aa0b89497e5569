//! Whether claims can be computed, before anything runs.

use evalexpr::{ContextWithMutableVariables, HashMapContext, Value};
use soloist_machine::KeyError;

use crate::cases::{Case, CaseTask};
use crate::measurements::{METRICS, SUFFIXES};
use crate::spec::{Claim, ClaimKind, Point, Scenario};

use super::comparison::comparisons;
use super::expression::tree;

/// Claims that can be computed: from values that this scenario measures.
pub fn check_claims(scenario: &Scenario, cases: &[Case]) -> Result<(), KeyError> {
    let mut stems = Vec::new();
    for case in cases {
        let stem = |task: &CaseTask| format!("{}_{}_", case.name, task.name);
        stems.extend(case.tasks.iter().map(stem));
    }
    let point = scenario.points().into_iter().next();
    let value = point.filter(|point| point.first().is_some());
    let value = value.map(|point| point.to_string());
    for (number, claim) in scenario.claims.iter().enumerate() {
        let wrong =
            |(key, what): (&str, String)| KeyError::at(&["claim", &number.to_string(), key], what);
        if scenario.claims[..number]
            .iter()
            .any(|c| c.what == claim.what)
        {
            return Err(wrong(("what", said_twice(&claim.what))));
        }
        check_keys(claim, value.is_some()).map_err(wrong)?;
        check_words(claim, value.as_deref(), &stems).map_err(wrong)?;
    }
    Ok(())
}

/// Claims are told apart by what they say.
pub fn said_twice(what: &str) -> String {
    format!("another claim says {what:?} too: say what only this one is about")
}

/// A key, and what is wrong with it.
type WrongKey = (&'static str, String);

/// Keys that mean something beside each other.
fn check_keys(claim: &Claim, sweeps: bool) -> Result<(), WrongKey> {
    let in_ours = claim.ours.contains('$');
    let in_holds = claim.holds.as_ref().is_some_and(|text| text.contains('$'));
    let wrong = |key, what: &str| Err((key, what.to_owned()));
    match claim {
        _ if in_holds => wrong(
            "holds",
            "`$` is for `ours`, of which `over` takes one value: compare `ours`, or name the cases",
        ),
        _ if in_ours && !sweeps => wrong("ours", "`$` is the value of a [sweep]: there is none"),
        _ if in_ours && claim.over.is_none() => {
            wrong("ours", "`$` needs `over`, such as over = \"mean\"")
        }
        Claim { over: Some(_), .. } if !in_ours => {
            wrong("over", "`over` needs `$` in `ours`, for the sweep's value")
        }
        Claim {
            margin: Some(_),
            holds: Some(_),
            ..
        } => wrong(
            "margin",
            "`holds` takes no `margin`: write it into the comparison",
        ),
        Claim {
            margin: Some(_),
            theirs: None,
            ..
        } => wrong(
            "margin",
            "`margin` needs `theirs`, the figure that it is of",
        ),
        Claim {
            from: Some(_),
            theirs: None,
            ..
        } => wrong(
            "from",
            "`from` needs `theirs`, the figure whose effect it is of",
        ),
        Claim {
            kind: Some(ClaimKind::Order),
            theirs: None,
            holds: None,
            ..
        } => wrong("kind", "an order needs `holds`, what is larger than what"),
        _ => check_figures(claim),
    }
}

/// Figures that something can be near to.
fn check_figures(claim: &Claim) -> Result<(), WrongKey> {
    let wrong = |key, what: String| Err((key, what));
    for (key, value) in [("theirs", claim.theirs), ("from", claim.from)] {
        if let Some(value) = value.filter(|value| !value.is_finite()) {
            return wrong(key, format!("`{key}` {value}: expected a number"));
        }
    }
    match claim.margin {
        Some(margin) if !(margin >= 0.0 && margin.is_finite()) => {
            let what = format!("`margin` {margin}: expected a number from 0 on");
            return wrong("margin", what);
        }
        Some(_) => return Ok(()),
        None => {}
    }
    match claim.theirs {
        Some(theirs) if theirs == claim.neutral() && claim.holds.is_none() => {
            let what = format!(
                "`theirs` {theirs} is what it would be without effect, of which nothing is 15 %: \
                 give `margin`, or `from`"
            );
            wrong("theirs", what)
        }
        _ => Ok(()),
    }
}

/// Expressions of measured values; `value` is one of the sweep's.
fn check_words(claim: &Claim, value: Option<&str>, stems: &[String]) -> Result<(), WrongKey> {
    if let Some(text) = &claim.holds {
        comparisons(text).map_err(|what| ("holds", what))?;
    }
    check_number(&claim.ours.replace('$', value.unwrap_or("1")))?;
    let ours = (Some(&claim.ours), "ours");
    for (text, key) in [ours, (claim.holds.as_ref(), "holds")] {
        let Some(text) = text else { continue };
        // A value of the sweep is a number in a name, or alone.
        let tree = tree(&text.replace('$', value.unwrap_or("1")))
            .map_err(|e| (key, format!("`{text}`: {e}")))?;
        let unknown = tree
            .iter_variable_identifiers()
            // What `holds` may use besides: the claim's own value.
            .filter(|&word| word != "ours" || key != "holds")
            .find(|word| !stems.iter().any(|stem| measured(stem, word)));
        if let Some(word) = unknown {
            return Err((key, not_measured(word, stems)));
        }
    }
    Ok(())
}

/// Whether `ours` comes to a number, whatever its values are.
fn check_number(text: &str) -> Result<(), WrongKey> {
    // What it can't be parsed for is said with its place.
    let Ok(tree) = tree(text) else { return Ok(()) };
    let mut context = HashMapContext::new();
    for word in tree.iter_variable_identifiers() {
        let _ = context.set_value(word.to_owned(), Value::Float(1.0));
    }
    match tree.eval_number_with_context(&context) {
        Ok(_) => Ok(()),
        Err(error) => Err(("ours", format!("`{text}`: {error}"))),
    }
}

/// Might a claim name `metric` of any task?
pub fn name(scenario: &Scenario, metric: &str) -> bool {
    let word = format!("_{metric}");
    let texts = |claim: &Claim| [Some(claim.ours.clone()), claim.holds.clone()];
    let mut texts = scenario.claims.iter().flat_map(texts).flatten();
    texts.any(|text| text.contains(&word))
}

/// Does a claim need what is measured of `case`?
pub fn needs(scenario: &Scenario, case: &Case) -> bool {
    let values: Vec<String> = scenario.points().iter().map(Point::to_string).collect();
    let named = |text: &String| {
        let text = |value: &str| text.replace('$', value);
        let mut texts = values.iter().map(|v| text(v)).chain([text("1")]);
        texts.any(|text| {
            tree(&text).is_ok_and(|tree| {
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

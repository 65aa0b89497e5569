//! What page colours of the last-level cache are worth.
//!
//! A count by timing stands above the map: a map's colours that push each other out divide
//! nothing. The worth is that of pages of one class beside co-runners in all others.

use super::facts::Facts;
use super::{Item, WORTH};
use crate::cores::Attack;
use crate::pages::{By, Size, Split};
use crate::report::Report;
use soloist_detect::cache::eviction::Eviction;

/// Classes of pages that are nearer to two than to one.
const TWO: f64 = 1.5;

/// Result of the count by timing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Counted {
    /// Pages of all addresses push each other out.
    Nothing,
    /// The cache has colours.
    Colors,
    /// Not counted, or one colour is as likely as two.
    Unknown,
}

fn counted(found: &Report) -> Counted {
    let Some(cache) = &found.cache else {
        return Counted::Unknown;
    };
    let is_one = cache.most.is_some_and(|most| most < 2.0);
    let isolates = of_class(found).is_some_and(|split| split.saved.shown);
    match cache.is_of_pages() {
        false => Counted::Nothing,
        true if is_one => Counted::Nothing,
        true if cache.least >= TWO || isolates => Counted::Colors,
        true => Counted::Unknown,
    }
}

/// A class of pages against all others, which write, with room for the victim.
fn of_class(found: &Report) -> Option<&Split> {
    let is_it = |split: &&Split| {
        let of = (&split.by, split.size, split.attack);
        of == (&By::Class, Size::OfClass, Attack::Write)
    };
    found.pages.iter().find(is_it)
}

/// The share of an access beside co-runners that a class of its own saves.
fn share(split: &Split) -> f64 {
    split.saved.ns.median / split.spread.ns
}

/// The worth of a class of its own, as a share of an access beside co-runners, and whether that is
/// only a bound. Nobody timed an access alone, which is shorter, so its share is larger.
fn worth(split: &Split) -> (Option<f64>, bool) {
    if split.saved.shown || split.saved.shown_less {
        return (Some(share(split)), false);
    }
    let most = split.saved.ns.high.max(0.0) / split.spread.ns;
    (Some(most).filter(|&most| most < WORTH), true)
}

/// The verdict in a sentence; `None`: nothing was counted that decides.
pub(super) fn answer(facts: &Facts, found: &Report) -> Option<String> {
    let shown = of_class(found).filter(|split| split.saved.shown);
    match (counted(found), shown) {
        (Counted::Unknown, _) => None,
        (Counted::Nothing, _) => Some("Cache colours isolate nothing here.".to_owned()),
        (Counted::Colors, _) if has_none(facts) => {
            Some("The cache has page colours, but the map has none.".to_owned())
        }
        (Counted::Colors, Some(split)) => Some(format!(
            "Cache colours isolate here: a class of its own saves {:.0} % of an access beside co-runners.",
            100.0 * share(split)
        )),
        (Counted::Colors, None) => Some(
            "The cache has page colours; that they save anything is not shown.".to_owned(),
        ),
    }
}

/// Whether a map is there that has no cache colours.
fn has_none(facts: &Facts) -> bool {
    matches!(facts.cache_colors, Some(0 | 1))
}

pub(super) fn item(facts: &Facts, found: &Report) -> Item {
    let nothing = Item {
        name: "cache colours",
        is_known: true,
        is_beside: true,
        costs: "a share of the cache for each group",
        commands: vec!["soloist run --llc 0-3 -- CMD"],
        ..Item::default()
    };
    match (counted(found), &found.cache) {
        (Counted::Nothing, Some(cache)) => Item {
            says: isolates_nothing(facts, cache),
            ..nothing
        },
        (Counted::Colors, Some(cache)) => of_count(facts, found, cache, nothing),
        _ => by_map(facts, found, nothing),
    }
}

fn isolates_nothing(facts: &Facts, cache: &Eviction) -> String {
    let map = match facts.cache_colors {
        Some(colors) if colors > 1 => format!(" So the map's {colors} divide nothing of it."),
        _ => String::new(),
    };
    format!(
        "Cache colours isolate nothing here. {}{map}",
        cache.verdict()
    )
}

/// Where the cache has colours.
fn of_count(facts: &Facts, found: &Report, cache: &Eviction, nothing: Item) -> Item {
    let split = of_class(found);
    let (worth, is_bound) = split.map_or((None, false), worth);
    let measured = split.map_or_else(String::new, |split| format!(" {}", split.verdict()));
    let map = match facts.cache_colors {
        Some(0 | 1) => "The map has none, so `--llc` can't use them.".to_owned(),
        Some(colors) => format!("The map has {colors}."),
        None => "No map is loaded; `soloist map llc` looks for the address bits.".to_owned(),
    };
    Item {
        is_there: !has_none(facts),
        worth,
        is_bound,
        says: format!("{}{measured} {map}", cache.verdict()),
        ..nothing
    }
}

/// Where no count decides.
fn by_map(facts: &Facts, found: &Report, nothing: Item) -> Item {
    // Without a map nobody knows; with one, it has some or none to use.
    let is_known = facts.cache_colors.is_some() || facts.hashed_cache.is_some();
    let (is_there, mut says) = match (facts.cache_colors, &facts.hashed_cache) {
        (_, Some(why)) => (false, why.clone()),
        (Some(0 | 1), _) => (
            false,
            "The map has none: the last level hashes its sets, or they are not known.".to_owned(),
        ),
        (Some(colors), _) => (true, format!("The map has {colors} cache colours.")),
        (None, _) => (
            false,
            "No map is loaded; `soloist bench silicon` counts the cache's colours.".to_owned(),
        ),
    };
    if let Some(cache) = &found.cache {
        says = format!("{says} {} One is as likely.", cache.verdict());
    } else if let Some(why) = found.cache_why() {
        says = format!(
            "{says} By timing none could be counted: {}.",
            why.trim_end_matches('.')
        );
    }
    Item {
        is_there,
        is_known,
        says,
        ..nothing
    }
}

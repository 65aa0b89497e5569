//! What to do on a machine: which isolation there is, what each is worth, what it costs.
//!
//! Facts come from the host ([`facts`]), worth from what [`crate::silicon`] measured
//! there. Without a measurement the worth is unknown, and said to be. What a map's
//! colours can't keep apart is told apart from that ([`weaknesses`]): it needs no
//! measurement. What only root or the module can measure has a figure of the model, and
//! says so ([`modelled`]).

mod cache;
pub mod facts;
pub mod modelled;
pub mod origin;
pub mod weaknesses;

use serde::Serialize;

use crate::detect::eviction::Eviction;
use crate::silicon::channels::Side;
use crate::silicon::paced::Paced;
use crate::silicon::pages::Split;
use crate::silicon::report::Report;
use crate::silicon::slices::Cell;
use facts::Facts;

/// Private banks that save less than this share of an access are not worth their cost.
const WORTH: f64 = 0.03;
/// A slowdown that a reservation is to keep.
const BOUND: f64 = 1.05;

/// One kind of isolation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Its name.
    pub name: &'static str,
    /// Whether this machine has it.
    pub is_there: bool,
    /// What it saves of a task's slowdown, as a share of an access alone; `None`: not
    /// known here, or no figure says it.
    pub worth: Option<f64>,
    /// Whether it ends all interference, so that it is worth more than any figure.
    pub is_first: bool,
    /// Whether `worth` is only what it can be at most: nothing was shown.
    pub is_bound: bool,
    /// What it is worth here, in words.
    pub says: String,
    /// What it costs.
    pub costs: &'static str,
    /// How to use it.
    pub commands: Vec<&'static str>,
}

/// The page of advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// The answer in a sentence.
    pub answer: String,
    /// Isolation, in the order of worth.
    pub items: Vec<Item>,
}

/// What `soloist bench silicon` found.
#[derive(Debug, Clone, Copy, Default)]
pub struct Measured<'a> {
    /// In slices.
    pub slices: Option<&'a Report>,
    /// Why there are none, if that was tried: to measure is no advice then.
    pub slices_why: Option<&'a str>,
    /// Page colours of the last-level cache, by which pages push each other out.
    pub cache: Option<&'a Eviction>,
    /// Why they are not known, if that was tried.
    pub cache_why: Option<&'a str>,
    /// Savings of pages of one class, or with one value of an address bit.
    pub pages: &'a [Split],
}

/// Returns what to do on a machine with these facts, where `found` was measured.
#[must_use]
pub fn advise(facts: &Facts, found: &Measured<'_>) -> Advice {
    let measured = found.slices;
    let banks = banks(facts, measured);
    let mut answer = match (found.slices_why, measured, found.cache) {
        (Some(why), None, _) => in_vain(why),
        (None, None, Some(_)) => NO_SLICES.to_owned(),
        _ => answer(&banks, facts, measured),
    };
    if let Some(said) = cache::answer(facts, found) {
        answer = format!("{answer} {said}");
    }
    let mut items = vec![
        nodes(facts),
        reservations(facts, measured),
        banks,
        channels(facts, measured),
        cache_ways(facts),
        throttling(facts),
        cache::item(facts, found),
    ];
    // First what exists; of that, known worth first, and the greatest worth at the top.
    items.sort_by(|a, b| {
        let rank = |item: &Item| match (item.is_there, item.worth) {
            _ if item.is_first => f64::INFINITY,
            (true, Some(worth)) if worth < 0.0 => -1.5,
            (true, Some(worth)) => worth,
            (true, None) => -1.0,
            (false, _) => -2.0,
        };
        rank(b).total_cmp(&rank(a))
    });
    Advice { answer, items }
}

/// The answer where the cache was looked at, and banks were not.
const NO_SLICES: &str = "Banks were not measured here, so nobody knows what bank colours buy: \
                         `soloist bench silicon --json` finds out in about a minute.";

/// The answer where measuring brought nothing, for this reason.
fn in_vain(why: &str) -> String {
    format!(
        "Nothing could be measured here, so nobody knows what colours buy: {}. With the module loaded \
         `soloist compare -- CMD` measures one program.",
        why.trim_end_matches('.')
    )
}

fn answer(banks: &Item, facts: &Facts, measured: Option<&Report>) -> String {
    let at_most = if banks.is_bound { "at most " } else { "" };
    let Some(report) = measured else {
        return "Nothing was measured here, so nobody knows what colours buy: `soloist advise --measure` \
                finds out in one to three minutes."
            .to_owned();
    };
    let grave = facts.weaknesses.iter().find(|weakness| weakness.is_grave);
    let busy = report.busy();
    match banks.worth {
        _ if !banks.is_there => {
            "Don't colour banks here: each page lies in all banks, so pages have no bank colours."
                .to_owned()
        }
        None => format!(
            "What private banks buy with {busy} busy could not be shown here: colour only what you have \
             measured with `soloist compare`."
        ),
        Some(worth) if worth < 0.0 => format!(
            "Don't colour banks here: with {busy} busy private banks make a memory access longer, by \
             {:.1} % of one alone.",
            -100.0 * worth
        ),
        // Few tasks hardly meet: that says little of many.
        Some(worth) if worth < WORTH && report.is_of_few_processors() => format!(
            "With {busy} busy private banks save {at_most}{:.1} % of a memory access; with more, nobody \
             measured. {}",
            100.0 * worth,
            report.density.verdict()
        ),
        Some(worth) if worth < WORTH => format!(
            "Don't colour banks here: private banks save {at_most}{:.1} % of a memory access with all \
             CPUs busy.",
            100.0 * worth
        ),
        Some(worth) => match grave {
            Some(weakness) => format!(
                "Don't colour banks yet: by what was measured private banks save {:.0} % of a memory \
                 access, but by the map their colours isolate little. {} `soloist map check` says whether \
                 the map is this machine's.",
                100.0 * worth,
                weakness.says
            ),
            None if !report.has_all_banks() => format!(
                "Perhaps colour banks here: by a fit through slices private banks save about {:.0} % of a \
                 memory access with all CPUs busy; `soloist compare` measures one program.",
                100.0 * worth
            ),
            None => format!(
                "Colour banks here: with {busy} busy private banks save {:.0} % of a memory access.",
                100.0 * worth
            ),
        },
    }
}

fn nodes(facts: &Facts) -> Item {
    let is_there = facts.nodes > 1;
    Item {
        name: "a memory node of its own",
        is_there,
        worth: None,
        is_first: is_there,
        is_bound: false,
        says: match facts.nodes {
            0 | 1 => "This machine has one node.".to_owned(),
            n => format!(
                "{n} nodes. A task on a node that nobody else uses shares no bank, bus, queue or cache: \
                 use that first, if a node is free."
            ),
        },
        costs: "the node's CPUs and memory",
        commands: vec![
            "numactl --cpunodebind=N --membind=N CMD",
            "soloist run --node N -- CMD",
        ],
    }
}

/// What private banks save with all processors busy: measured in all banks, else by the fit.
fn worth_of_banks(report: &Report) -> (Option<f64>, bool, String) {
    let whole = report
        .cells
        .iter()
        .filter(|cell| report.has_all_banks() && Some(cell.banks as f64) == report.banks);
    let most = whole.clone().map(|cell| cell.neighbours).max();
    let whole: Vec<&Cell> = whole.filter(|cell| Some(cell.neighbours) == most).collect();
    // Pages are what the module colours: where colours of pages were measured, they count.
    let by_pages: Vec<&Cell> = whole.iter().filter(|cell| cell.by_pages).copied().collect();
    let cells = if by_pages.is_empty() { whole } else { by_pages };
    let saved = |cell: &&Cell| match cell.saved.shown {
        true => cell.saved.ns.median / cell.alone.ns,
        false => 0.0,
    };
    if let Some(best) = cells
        .iter()
        .copied()
        .max_by(|a, b| saved(a).total_cmp(&saved(b)))
    {
        let how = match best.by_pages {
            true => "by page colours",
            false => "by bank",
        };
        let mut said = format!("Measured in all banks, {how}: {}", best.verdict());
        if let Some(worst) = cells.iter().copied().find(|cell| cell.saved.shown_less) {
            said = format!("{said} {}", worst.verdict());
            if !best.saved.shown {
                let lost = worst.saved.ns.median / worst.alone.ns;
                return (Some(lost), false, said);
            }
        }
        // Where nothing is shown, it counts for little only if it can't be much.
        let most = best.saved.ns.high.max(0.0) / best.alone.ns;
        let worth = match best.saved.shown {
            true => Some(saved(&best)),
            false => Some(most).filter(|&most| most < WORTH),
        };
        return (worth, !best.saved.shown, said);
    }
    let bound = report
        .whole
        .iter()
        .max_by(|a, b| a.bound().total_cmp(&b.bound()));
    if let Some(whole) = bound.filter(|whole| whole.bound() < WORTH) {
        return (Some(whole.bound()), true, whole.verdict());
    }
    let whole = bound.map_or_else(String::new, |whole| whole.verdict() + " ");
    let said = whole + &report.density.verdict();
    match report.density.expected() {
        // A fit is no measurement: it counts where all of it is on one side.
        Some([low, middle, high]) if low >= WORTH || high < WORTH => (Some(middle), false, said),
        _ => (None, false, said),
    }
}

fn banks(facts: &Facts, measured: Option<&Report>) -> Item {
    let (worth, is_bound, mut says) = match measured {
        Some(report) => worth_of_banks(report),
        None => (None, false, "Not measured here.".to_owned()),
    };
    let colors = measured.and_then(|report| report.page_colors);
    let has_colors = colors.is_none_or(|colors| colors > 1);
    if !has_colors {
        says.push_str(" Each page lies in all banks, so pages have no bank colours.");
    }
    for weakness in &facts.weaknesses {
        says.push(' ');
        says.push_str(&weakness.says);
    }
    Item {
        name: "private banks (colours)",
        is_there: has_colors,
        worth,
        is_first: false,
        is_bound,
        says,
        costs: "the module; small pages only; a share of memory for each group",
        commands: vec!["soloist up --machine NAME", "soloist run --colors N -- CMD"],
    }
}

fn channels(facts: &Facts, measured: Option<&Report>) -> Item {
    let channels = measured.and_then(|report| report.channels.as_ref());
    let seen = channels.map(|channels| {
        let shown = channels.sides.iter().filter(|side| side.saved.shown);
        let (inside, between): (Vec<&Side>, Vec<&Side>) =
            shown.partition(|side| side.is_inside(measured.map_or(0, |of| of.frame_bytes)));
        let saved = between
            .iter()
            .map(|side| side.saved.ns.median / channels.alone_ns);
        (saved.fold(0.0, f64::max), !inside.is_empty())
    });
    let says = channels.map_or_else(
        || "Not measured here, or no bank functions were found.".to_owned(),
        |channels| channels.verdict(),
    );
    let says = match seen {
        Some((0.0, true)) => {
            format!("{says} Each page lies on both sides of it, so pages have no channel colours.")
        }
        _ => says,
    };
    let seen = seen.map(|(saved, _)| saved);
    Item {
        name: "a channel of its own (colours)",
        is_there: facts.no_channel_colors.is_none() && seen.is_none_or(|saved| saved > 0.0),
        worth: seen,
        is_first: false,
        is_bound: false,
        says: match &facts.no_channel_colors {
            Some(why) => why.clone(),
            None => says,
        },
        costs: "as private banks, and that channel's bandwidth",
        commands: vec![
            "soloist run --colors LIST -- CMD    # sets of one channel: soloist map show",
        ],
    }
}

fn reservations(facts: &Facts, measured: Option<&Report>) -> Item {
    let paced = measured.and_then(|report| {
        let cost = |paced: &&Paced| match paced.points.first() {
            Some(full) if full.adds.shown => full.shared.median,
            _ => 0.0,
        };
        let all = report.paced.iter();
        all.max_by(|a, b| cost(a).total_cmp(&cost(b)))
    });
    let says = paced.map_or_else(|| modelled::RESERVATION.says(), of_pace);
    let counts = match facts.has_events {
        true => "",
        false => " This host counts no processor events, so a stand-in would count.",
    };
    Item {
        name: "bandwidth reservations",
        is_there: facts.has_events,
        // A slice is smaller than the machine: no figure of it is worth on the whole.
        worth: None,
        is_first: false,
        is_bound: false,
        says: says + counts,
        costs: "the co-runners' time; the module",
        commands: vec![
            "soloist guard set 1-3:500MB/s",
            "soloist run --cpus 2 --bandwidth 500MB/s -- CMD",
        ],
    }
}

/// What neighbours at full speed cost in a slice, and which pace surely ends that.
fn of_pace(paced: &Paced) -> String {
    let who = paced.attack.neighbours(paced.neighbours);
    let head = format!("In a slice of {} banks, {who}", paced.banks);
    let Some(full) = paced.points.first().filter(|full| full.adds.shown) else {
        return format!("{head} at full speed are not shown to make an access longer.");
    };
    let within = match paced.within(BOUND, false) {
        Some(rate) => format!(
            "It is surely {BOUND} or less with {:.0} MB/s in shared banks.",
            rate / 1e6
        ),
        None => format!("No pace that was tried is shown to keep it to {BOUND} in shared banks."),
    };
    format!(
        "{head} make an access {:.2} times as long at full speed. {within} {}",
        full.shared.median,
        paced.verdict()
    )
}

fn cache_ways(facts: &Facts) -> Item {
    Item {
        name: "cache ways (CAT)",
        is_there: facts.has_cat,
        worth: None,
        is_first: false,
        is_bound: false,
        says: there(
            facts.has_cat,
            &format!(
                "It divides the last-level cache whatever its hash is. {}",
                modelled::CACHE_WAYS.says()
            ),
        ),
        costs: "the ways that others lose",
        commands: vec![
            "mount -t resctrl resctrl /sys/fs/resctrl && mkdir /sys/fs/resctrl/task",
            "echo 'L3:0=f' >/sys/fs/resctrl/task/schemata; echo PID >/sys/fs/resctrl/task/tasks",
        ],
    }
}

fn throttling(facts: &Facts) -> Item {
    Item {
        name: "bandwidth throttling (MBA)",
        is_there: facts.has_mba,
        worth: None,
        is_first: false,
        is_bound: false,
        says: there(
            facts.has_mba,
            &format!(
                "It slows co-runners down by steps, without the module. {}",
                modelled::THROTTLING.says()
            ),
        ),
        costs: "the co-runners' time, in the caches too",
        commands: vec!["echo 'MB:0=20' >/sys/fs/resctrl/others/schemata"],
    }
}

fn there(is_there: bool, what: &str) -> String {
    match is_there {
        true => what.to_owned(),
        false => "This processor has none.".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;

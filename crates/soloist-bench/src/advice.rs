//! What to do on a machine: which isolation there is, what each is worth, what it costs.
//!
//! Facts come from the host ([`facts`]), worth from what the experiments measured
//! there. Without a measurement the worth is unknown, and said to be. What a map's
//! colours can't keep apart is told apart from that ([`weaknesses`]): it needs no
//! measurement. What only root or the module can measure has a figure of the model, and
//! says so ([`modelled`]).

mod cache;
pub mod facts;
pub mod modelled;
pub mod weaknesses;

use serde::Serialize;

use crate::channels::{Channels, Side};
use crate::in_slices::InSlices;
use crate::paced::{Paced, Point};
use crate::report::Report;
use crate::slices::Cell;
use facts::Facts;
use modelled::{Modelled, Played};

/// Private banks that save less than this share of an access are not worth their cost.
const WORTH: f64 = 0.03;
/// A slowdown that a reservation is to keep.
const BOUND: f64 = 1.05;

/// One kind of isolation.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Item {
    /// Its name.
    pub name: &'static str,
    /// Whether this machine has it.
    pub is_there: bool,
    /// Whether anybody knows if it has: of a machine that is only simulated, not all is known.
    pub is_known: bool,
    /// What it saves of a task's slowdown, as a share of an access alone; `None`: not
    /// known here, or no figure says it.
    pub worth: Option<f64>,
    /// Whether `worth` is a share of an access beside co-runners instead, which is longer.
    pub is_beside: bool,
    /// Whether it ends all interference, so that it is worth more than any figure.
    pub is_first: bool,
    /// Whether `worth` is only what it can be at most: nothing was shown.
    pub is_bound: bool,
    /// The model's figures of machines like this one; `None`: it has none, or what was measured
    /// here speaks against them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modelled: Option<Modelled>,
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

/// Returns what to do on a machine with these facts, where `found` was measured.
#[must_use]
pub fn advise(facts: &Facts, found: &Report) -> Advice {
    let measured = found.slices.as_ref();
    let worth = measured.map(worth_of_banks);
    let banks = banks(facts, found, worth.as_ref());
    let mut answer = match (measured, worth, found.slices_why.as_deref(), &found.cache) {
        (Some(report), Some(worth), ..) => answer(&banks, facts, report, &worth),
        (_, _, Some(why), Some(_)) => no_banks(why),
        (_, _, Some(why), None) => in_vain(why),
        (_, _, None, Some(_)) => NO_SLICES.to_owned(),
        _ => NOTHING.to_owned(),
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
    items.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    Advice { answer, items }
}

/// The place of an item on the page: a higher one comes first. Items that the machine has come
/// before items that it lacks, and measured worth comes before modelled worth. Items that are
/// measured to do harm come last of those that the machine has.
fn rank(item: &Item) -> f64 {
    match (item.is_there, item.worth, &item.modelled) {
        _ if item.is_first => f64::INFINITY,
        (false, ..) => -3.0,
        (true, Some(worth), _) if worth < 0.0 => -2.5,
        // A bound on a share of a longer access does not bound the share of an access alone.
        (true, Some(_), _) if item.is_beside && item.is_bound => -0.5,
        (true, Some(worth), _) => worth,
        (true, None, Some(modelled)) => modelled.rank() - 2.0,
        (true, None, None) => -2.0,
    }
}

/// The answer where the cache was looked at, and banks were not.
const NO_SLICES: &str = "Banks were not measured here, so nobody knows what bank colours buy: \
                         `soloist bench silicon --json` finds out in one to three minutes.";

/// The answer where nobody measured.
const NOTHING: &str =
    "Nothing was measured here, so nobody knows what colours buy: `soloist advise \
                       --measure` finds out in one to three minutes.";

/// The answer where the cache was looked at, and measuring banks brought nothing.
fn no_banks(why: &str) -> String {
    format!(
        "Banks could not be measured here: {}.",
        why.trim_end_matches('.')
    )
}

/// The answer where measuring brought nothing, for this reason.
fn in_vain(why: &str) -> String {
    format!(
        "Nothing could be measured here, so nobody knows what colours buy: {}. With the module loaded \
         `soloist compare -- CMD` measures one program.",
        why.trim_end_matches('.')
    )
}

/// The answer where slices were measured.
fn answer(banks: &Item, facts: &Facts, report: &InSlices, found: &Worth) -> String {
    let at_most = if banks.is_bound { "at most " } else { "" };
    let grave = facts.weaknesses.iter().find(|weakness| weakness.is_grave);
    let tasks = found.busy;
    let busy = report.busy(tasks);
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
        Some(worth) if worth < WORTH && found.is_fit && report.is_of_few_processors(tasks) => format!(
            "What private banks save with all CPUs busy nobody measured; slices of {tasks} tasks were. {}",
            report.density.verdict()
        ),
        Some(worth) if worth < WORTH && report.is_of_few_processors(tasks) => format!(
            "With {busy} busy private banks save {at_most}{:.1} % of a memory access; with more, nobody \
             measured. {}",
            100.0 * worth,
            report.density.verdict()
        ),
        Some(worth) if worth < WORTH => format!(
            "Don't colour banks here: private banks save {at_most}{:.1} % of a memory access with {busy} \
             busy.",
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
            None if found.is_fit => format!(
                "Perhaps colour banks here: by a fit through slices of {tasks} tasks private banks save about \
                 {:.0} % of a memory access with all CPUs busy, beside readers; `soloist compare` measures one \
                 program.",
                100.0 * worth
            ),
            None => {
                let (when, but) = found.except.clone().unwrap_or_default();
                format!(
                    "Colour banks here{when}: with {busy} busy private banks save {:.0} % of a memory access{but}.",
                    100.0 * worth
                )
            }
        },
    }
}

fn nodes(facts: &Facts) -> Item {
    let is_there = facts.nodes > 1;
    Item {
        name: "a memory node of its own",
        is_there,
        is_known: true,
        is_first: is_there,
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
        ..Item::default()
    }
}

/// What private banks are worth, and by which figures.
struct Worth {
    /// As [`Item::worth`].
    share: Option<f64>,
    /// As [`Item::is_bound`].
    is_bound: bool,
    /// As [`Item::says`].
    says: String,
    /// Tasks that made those figures.
    busy: usize,
    /// Whether a fit says it, of all processors, and no measurement.
    is_fit: bool,
    /// Beside whom alone it is worth that, and what was measured beside others, in words;
    /// `None`: nothing else was.
    except: Option<(String, String)>,
}

/// What private banks save with most processors busy: measured in all banks, else by the fit.
fn worth_of_banks(report: &InSlices) -> Worth {
    measured_in_all(report).unwrap_or_else(|| by_slices(report))
}

/// Measured in all banks, beside most neighbours; `None`: it was not.
fn measured_in_all(report: &InSlices) -> Option<Worth> {
    let whole = report
        .cells
        .iter()
        .filter(|cell| report.has_all_banks() && Some(cell.banks as f64) == report.banks);
    let neighbours = whole.clone().map(|cell| cell.neighbours).max();
    let whole = whole.filter(|cell| Some(cell.neighbours) == neighbours);
    let whole: Vec<&Cell> = whole.collect();
    // Pages are what the module colours: where colours of pages were measured, they count.
    let by_pages: Vec<&Cell> = whole.iter().filter(|cell| cell.by_pages).copied().collect();
    let cells = if by_pages.is_empty() { whole } else { by_pages };
    let shown = cells.iter().copied().filter(|cell| cell.saved.shown);
    let best = shown
        .max_by(|a, b| saved(a).total_cmp(&saved(b)))
        .or_else(|| {
            let all = cells.iter().copied();
            all.max_by(|a, b| most(a).total_cmp(&most(b)))
        })?;
    let how = match best.by_pages {
        true => "by page colours",
        false => "by bank",
    };
    let mut found = Worth {
        share: Some(most(best)).filter(|&most| most < WORTH),
        is_bound: !best.saved.shown,
        says: format!("Measured in all banks, {how}: {}", best.verdict()),
        busy: best.neighbours + 1,
        is_fit: false,
        except: except(best, &cells),
    };
    // Beside other co-runners there may be much to save, though nothing is shown.
    let open = cells
        .iter()
        .copied()
        .find(|cell| !cell.saved.shown && most(cell) >= WORTH);
    if best.saved.shown {
        found.share = Some(saved(best)).filter(|&saved| saved >= WORTH || open.is_none());
    }
    let less = cells.iter().copied().filter(|cell| cell.saved.shown_less);
    let Some(worst) = less.min_by(|a, b| saved(a).total_cmp(&saved(b))) else {
        return Some(found);
    };
    if !std::ptr::eq(worst, best) {
        found.says = format!("{} {}", found.says, worst.verdict());
    }
    if !best.saved.shown && open.is_none() {
        (found.share, found.is_bound) = (Some(saved(worst)), false);
    }
    Some(found)
}

/// Time that private banks save beside the cell's co-runners, as a share of an access alone.
fn saved(cell: &Cell) -> f64 {
    cell.saved.ns.median / cell.alone.ns
}

/// The same at most. Where nothing is shown, whatever may save most bounds what there is to save.
fn most(cell: &Cell) -> f64 {
    cell.saved.ns.high.max(0.0) / cell.alone.ns
}

/// As [`Worth::except`], of the co-runners beside whom private banks save least: next to nothing,
/// or less.
fn except(best: &Cell, cells: &[&Cell]) -> Option<(String, String)> {
    let little = |cell: &Cell| cell.saved.shown_less || most(cell) < WORTH;
    let others = cells.iter().filter(|cell| little(cell));
    let least = others.min_by(|a, b| saved(a).total_cmp(&saved(b)))?;
    let beside = |cell: &Cell| format!("beside {}", cell.attack.neighbours(cell.neighbours));
    let but = match least.saved.shown_less {
        true => format!(
            "but make one longer {}, by {:.1} % of one alone",
            beside(least),
            -100.0 * saved(least)
        ),
        false => format!("but at most {:.1} % {}", 100.0 * most(least), beside(least)),
    };
    let when = format!(" if co-runners {}", best.attack.does());
    Some((when, format!(" {}, {but}", beside(best))))
}

/// By what neighbours cost in all of memory, else by the fit through slices.
fn by_slices(report: &InSlices) -> Worth {
    let bound = report
        .whole
        .iter()
        .max_by(|a, b| a.bound().total_cmp(&b.bound()));
    if let Some(whole) = bound.filter(|whole| whole.bound() < WORTH) {
        return Worth {
            share: Some(whole.bound()),
            is_bound: true,
            says: whole.verdict(),
            busy: whole.neighbours + 1,
            is_fit: false,
            except: None,
        };
    }
    let whole = bound.map_or_else(String::new, |whole| whole.verdict() + " ");
    // A fit is no measurement: it counts where all of it is on one side, and it is of readers.
    let writers = report.density.most_of_writers();
    let is_little = |high: f64| high < WORTH && writers.is_some_and(|most| most < WORTH);
    let is_clear = |&[low, _, high]: &[f64; 3]| low >= WORTH || is_little(high);
    let fitted = report.density.expected().filter(is_clear);
    let most = report.density.most_neighbours();
    Worth {
        share: fitted.map(|[_, middle, _]| middle),
        is_bound: false,
        says: whole + &report.density.verdict(),
        busy: most.map_or(report.processors, |most| most + 1),
        is_fit: fitted.is_some(),
        except: None,
    }
}

fn banks(facts: &Facts, found: &Report, worth: Option<&Worth>) -> Item {
    let mut says = match (worth, found.slices_why.as_deref()) {
        (Some(worth), _) => worth.says.clone(),
        (None, Some(why)) => format!("Not measured here: {}.", why.trim_end_matches('.')),
        (None, None) => "Not measured here.".to_owned(),
    };
    let colors = found.slices.as_ref().and_then(|report| report.page_colors);
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
        is_known: true,
        worth: worth.and_then(|worth| worth.share),
        is_bound: worth.is_some_and(|worth| worth.is_bound),
        says,
        costs: "the module; small pages only; a share of memory for each group",
        commands: vec!["soloist up --machine NAME", "soloist run --colors N -- CMD"],
        ..Item::default()
    }
}

fn channels(facts: &Facts, measured: Option<&InSlices>) -> Item {
    let channels = measured.and_then(|report| report.channels.as_ref());
    // Of functions that may choose a rank as well, what they save is no worth of a channel.
    let known = channels.filter(|channels| channels.are_known());
    let seen = known.map(|channels| {
        let shown = channels.sides.iter().filter(|side| side.saved.shown);
        let (inside, between): (Vec<&Side>, Vec<&Side>) =
            shown.partition(|side| side.is_inside(measured.map_or(0, |of| of.frame_bytes)));
        let saved = between.iter();
        let saved = saved.map(|side| side.saved.ns.median / channels.alone_ns);
        (saved.reduce(f64::max), !inside.is_empty())
    });
    let is_inside = seen == Some((None, true));
    let mut says = channels.map_or_else(
        || "Not measured here, or no bank functions were found.".to_owned(),
        Channels::verdict,
    );
    if is_inside {
        says.push_str(" Each page lies on both sides of it, so pages have no channel colours.");
    }
    // Where no function is seen to halve throughput there may be channels all the same.
    let is_open = channels.is_some() && known.is_none();
    Item {
        name: "a channel of its own (colours)",
        is_there: facts.no_channel_colors.is_none() && !is_inside && !is_open,
        is_known: facts.no_channel_colors.is_some() || !is_open,
        worth: seen
            .and_then(|(saved, _)| saved)
            .filter(|_| facts.no_channel_colors.is_none()),
        says: facts.no_channel_colors.clone().unwrap_or(says),
        costs: "as private banks, and that channel's bandwidth",
        commands: vec![
            "soloist run --bank-sets LIST -- CMD    # sets of one channel: soloist map show",
        ],
        ..Item::default()
    }
}

fn reservations(facts: &Facts, measured: Option<&InSlices>) -> Item {
    let paced = measured.and_then(|report| {
        let cost = |paced: &&Paced| full_speed(paced).map_or(0.0, |full| full.shared.median);
        let all = report.paced.iter();
        all.max_by(|a, b| cost(a).total_cmp(&cost(b)))
    });
    let is_there = facts.has_events == Some(true);
    let modelled = modelled::RESERVATION.on(facts.is_board);
    // Where co-runners at full speed are not shown to cost anything, the model has no say.
    let is_denied = paced.is_some_and(|paced| full_speed(paced).is_none());
    let says = match paced {
        Some(paced) if is_denied => of_pace(paced),
        Some(paced) => format!("{} {}", of_pace(paced), modelled.says()),
        None => modelled.says(),
    };
    let counts = match facts.has_events {
        Some(true) => "",
        Some(false) => {
            " This host counts no processor events, so a reservation would count page faults or the \
             clock, not traffic."
        }
        None => " Of a simulated machine nobody knows whether it counts processor events.",
    };
    Item {
        name: "bandwidth reservations",
        is_there,
        is_known: facts.has_events.is_some(),
        // Without `worth`: a slice is smaller than the machine, and no figure of it is worth on
        // the whole.
        modelled: Some(modelled).filter(|_| is_there && !is_denied),
        says: says + counts,
        costs: "the co-runners' time; the module",
        commands: vec![
            "soloist guard set 1-3:500MB/s",
            "soloist run --cpus 2 --bandwidth 500MB/s -- CMD",
        ],
        ..Item::default()
    }
}

/// Neighbours at full speed, where they are shown to make an access longer.
fn full_speed(paced: &Paced) -> Option<&Point> {
    paced.points.first().filter(|full| full.adds.shown)
}

/// What neighbours at full speed cost in a slice, and which pace surely ends that.
fn of_pace(paced: &Paced) -> String {
    let who = paced.attack.neighbours(paced.neighbours);
    let head = format!("In a slice of {} banks, {who}", paced.banks);
    let Some(full) = full_speed(paced) else {
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
    let what = "It divides the last-level cache whatever its hash is.";
    Item {
        name: "cache ways (CAT)",
        costs: "the ways that others lose",
        commands: vec![
            "mount -t resctrl resctrl /sys/fs/resctrl && mkdir /sys/fs/resctrl/task",
            "echo 'L3:0=f' >/sys/fs/resctrl/task/schemata; echo PID >/sys/fs/resctrl/task/tasks",
        ],
        ..of_processor(facts, facts.has_cat, what, modelled::CACHE_WAYS)
    }
}

fn throttling(facts: &Facts) -> Item {
    let what = "It slows co-runners down by steps, without the module.";
    Item {
        name: "bandwidth throttling (MBA)",
        costs: "the co-runners' time, in the caches too",
        commands: vec!["echo 'MB:0=20' >/sys/fs/resctrl/others/schemata"],
        ..of_processor(facts, facts.has_mba, what, modelled::THROTTLING)
    }
}

/// An item that the processor has or lacks. Only the model has a figure of it.
fn of_processor(facts: &Facts, has_it: Option<bool>, what: &str, played: Played) -> Item {
    let modelled = played.on(facts.is_board);
    Item {
        is_there: has_it == Some(true),
        is_known: has_it.is_some(),
        says: there(has_it, &format!("{what} {}", modelled.says())),
        modelled: Some(modelled).filter(|_| has_it == Some(true)),
        ..Item::default()
    }
}

fn there(is_there: Option<bool>, what: &str) -> String {
    match is_there {
        Some(true) => what.to_owned(),
        Some(false) => "This processor has none.".to_owned(),
        None => "Of a simulated machine nobody knows whether it has any.".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;

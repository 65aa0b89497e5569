//! The answer follows what was measured.

use soloist_machine::known;

use super::facts::Facts;
use super::*;
use crate::cores::Attack;
use crate::density::Density;
use crate::paced::{Paced, Point};
use crate::pages::{By, Size, Split};
use crate::slices::Figures;
use crate::statistics::difference::{Difference, Loss};
use crate::statistics::Interval;
use crate::whole::Whole;
use soloist_detect::cache::eviction::Eviction;

fn interval(median: f64) -> Interval {
    Interval {
        median,
        low: median - 1.0,
        high: median + 1.0,
    }
}

fn difference(ns: f64, shown: bool) -> Difference {
    Difference {
        ns: interval(ns),
        chance: if shown { 1e-6 } else { 0.5 },
        shown,
        ..Difference::default()
    }
}

fn figures(ns: f64) -> Figures {
    Figures {
        ns,
        ..Figures::default()
    }
}

fn cell(banks: usize, saved: f64) -> Cell {
    let alone = figures(100.0);
    Cell {
        banks,
        by_pages: false,
        neighbours: 7,
        attack: Attack::Read,
        alone,
        shared: alone,
        alone_private: alone,
        private: alone,
        same: alone,
        shared_adds: difference(saved + 4.0, saved > 0.0),
        private_adds: difference(4.0, false),
        saved: difference(saved, saved > 0.0),
        neighbours_lose: Loss::default(),
        blocks: 20,
        dropped: 0,
    }
}

/// A machine of so many banks, all of which save `saved` ns of 100.
fn report(banks: usize, saved: f64) -> InSlices {
    let cells = vec![cell(banks, saved)];
    InSlices {
        functions: vec!["6^13".to_owned()],
        banks: Some(banks as f64),
        frame_bytes: 4096,
        page_colors: None,
        processors: 8,
        machine_processors: Some(8),
        density: Density::of(&cells, Some(banks as f64), 8),
        cells,
        whole: Vec::new(),
        paced: Vec::new(),
        channels: None,
    }
}

/// By slices alone.
fn advise(facts: &Facts, slices: Option<&InSlices>) -> Advice {
    let found = Report {
        slices: slices.cloned(),
        ..Report::default()
    };
    super::advise(facts, &found)
}

fn order(advice: &Advice) -> Vec<&'static str> {
    advice.items.iter().map(|item| item.name).collect()
}

#[test]
fn the_answer_is_what_was_measured() {
    let facts = Facts {
        nodes: 1,
        processors: 8,
        ..Facts::default()
    };
    let none = advise(&facts, None);
    assert!(
        none.answer.contains("Nothing was measured"),
        "{}",
        none.answer
    );

    let small = advise(&facts, Some(&report(16, 90.0)));
    assert!(
        small.answer.starts_with("Colour banks here"),
        "{}",
        small.answer
    );
    assert!(small.answer.contains("90 %"), "{}", small.answer);
    assert_eq!(order(&small)[0], "private banks (colours)");

    let large = advise(&facts, Some(&report(1024, 0.0)));
    assert!(
        large.answer.starts_with("Don't colour banks here"),
        "{}",
        large.answer
    );

    // A slice alone does not say what the whole machine would save.
    let mut part = report(16, 90.0);
    part.functions.clear();
    part.banks = Some(1600.0);
    part.density = Density::of(&part.cells, part.banks, 8);
    let said = advise(&facts, Some(&part));
    assert!(
        said.answer.contains("could not be shown"),
        "{}",
        said.answer
    );
    // Unless neighbours cost nothing in all of memory: no more than that can be saved.
    part.whole = vec![Whole {
        neighbours: 7,
        attack: Attack::Read,
        alone: part.cells[0].alone,
        shared: part.cells[0].alone,
        adds: difference(0.5, false),
        blocks: 20,
    }];
    let said = advise(&facts, Some(&part));
    assert!(said.answer.contains("at most"), "{}", said.answer);
    assert!(said.items[0].is_bound, "{:?}", said.items[0]);
    assert!(
        said.answer.starts_with("Don't colour banks here"),
        "{}",
        said.answer
    );
}

/// Sixteen of 128 processors hardly meet in 1024 banks; that all of them do not is not said.
#[test]
fn few_busy_processors_say_nothing_of_all() {
    let mut part = report(1024, 0.0);
    part.machine_processors = Some(128);
    part.density = Density::of(&part.cells, part.banks, 128);
    let said = advise(&Facts::default(), Some(&part)).answer;
    assert!(said.starts_with("With 8 of 128 CPUs busy"), "{said}");
    assert!(said.contains("8 banks for each busy core"), "{said}");
    let mut part = report(16, 90.0);
    part.machine_processors = Some(128);
    let said = advise(&Facts::default(), Some(&part)).answer;
    assert!(said.contains("with 8 of 128 CPUs busy"), "{said}");
    let mut shown = report(16, 90.0);
    shown.machine_processors = None;
    let said = advise(&Facts::default(), Some(&shown)).answer;
    assert!(said.contains("with all CPUs busy"), "{said}");
}

/// A cell of 16 banks by so many co-runners, in which private banks save between nothing and
/// `most` of 100 ns.
fn unsure(attack: Attack, neighbours: usize, most: f64) -> Cell {
    let mut one = cell(16, 0.0);
    (one.attack, one.neighbours) = (attack, neighbours);
    one.saved.ns = Interval {
        median: most / 3.0,
        low: -1.0,
        high: most,
    };
    one
}

/// Where nothing is shown, the attack that may save most bounds what there is to save, in
/// whatever order attacks are listed.
#[test]
fn the_bound_is_that_of_the_attack_that_may_save_most() {
    let said = |most: [f64; 3]| {
        let mut of = report(16, 0.0);
        let attacks = [Attack::Read, Attack::Write, Attack::Both];
        let cells = attacks.into_iter().zip(most);
        of.cells = cells
            .map(|(attack, most)| unsure(attack, 7, most))
            .collect();
        advise(&Facts::default(), Some(&of))
    };
    for most in [[60.0, 25.0, 1.0], [1.0, 25.0, 60.0], [2.0, 4.0, 1.0]] {
        let said = said(most).answer;
        assert!(said.contains("could not be shown"), "{most:?}: {said}");
    }
    let little = said([1.0, 2.0, 0.5]);
    assert!(little.answer.contains("at most 2.0 %"), "{}", little.answer);
    assert!(
        little.answer.starts_with("Don't colour"),
        "{}",
        little.answer
    );
}

/// A little that is shown beside readers says nothing of what writers may cost, nor does harm.
#[test]
fn what_one_attack_shows_does_not_decide_for_another() {
    let said = |ns: f64, most: f64| {
        let mut of = report(16, 0.0);
        let mut seen = cell(16, ns);
        seen.saved.shown_less = ns < 0.0;
        of.cells = vec![seen, unsure(Attack::Write, 7, most)];
        advise(&Facts::default(), Some(&of)).answer
    };
    for ns in [1.5, -5.0] {
        let open = said(ns, 60.0);
        assert!(open.contains("could not be shown"), "{ns}: {open}");
        let closed = said(ns, 2.0);
        assert!(closed.starts_with("Don't colour"), "{ns}: {closed}");
    }
    let much = said(60.0, 80.0);
    assert!(much.starts_with("Colour banks here: "), "{much}");
}

/// Much that is shown beside writers is not said of readers, beside whom it is nothing or less.
#[test]
fn colours_are_advised_only_beside_whom_they_help() {
    let said = |mut beside_readers: Cell| {
        let mut of = report(16, 60.0);
        of.cells[0].attack = Attack::Write;
        beside_readers.attack = Attack::Read;
        of.cells.push(beside_readers);
        advise(&Facts::default(), Some(&of)).answer
    };
    let mut worse = cell(16, -10.0);
    worse.saved.shown_less = true;
    assert_eq!(
        said(worse),
        "Colour banks here if co-runners write: with all CPUs busy private banks save 60 % of a memory access \
         beside 7 writers, but make one longer beside 7 readers, by 10.0 % of one alone."
    );
    assert_eq!(
        said(unsure(Attack::Read, 7, 2.0)),
        "Colour banks here if co-runners write: with all CPUs busy private banks save 60 % of a memory access \
         beside 7 writers, but at most 2.0 % beside 7 readers."
    );
    for also in [cell(16, 30.0), unsure(Attack::Read, 7, 40.0)] {
        let said = said(also);
        assert!(said.starts_with("Colour banks here: "), "{said}");
    }
}

/// Slices of 4 to 32 banks beside seven neighbours, in which private banks save this much of 100
/// ns with one bank for each core, less with more.
fn slices(attack: Attack, at_one: f64) -> Vec<Cell> {
    let of = |banks: usize| {
        let saved = at_one * 8.0 / banks as f64;
        let mut one = cell(banks, saved);
        one.attack = attack;
        one.saved.ns.low = 0.98 * saved;
        one.saved.ns.high = 1.02 * saved;
        one
    };
    [4, 8, 16, 32].map(of).to_vec()
}

/// Of a machine with so many banks and processors, none of whose slices is of all banks.
fn fitted(cells: Vec<Cell>, banks: f64, processors: usize) -> Advice {
    let mut of = report(16, 0.0);
    (of.banks, of.machine_processors) = (Some(banks), Some(processors));
    of.density = Density::of(&cells, of.banks, processors);
    of.cells = cells;
    advise(&Facts::default(), Some(&of))
}

/// Functions are known, and the slice of all banks was not measured.
#[test]
fn a_fit_is_never_taken_for_a_measurement() {
    let much = fitted(slices(Attack::Read, 40.0), 16.0, 8).answer;
    assert!(much.starts_with("Colour banks here"), "{much}");
    let much = fitted(slices(Attack::Read, 40.0), 24.0, 8).answer;
    assert!(much.starts_with("Perhaps colour"), "{much}");
    // Its figure is of all processors, not of those that took part.
    let much = fitted(slices(Attack::Read, 40.0), 96.0, 32).answer;
    let words = "slices of 8 tasks private banks save about 13 % of a memory access with all CPUs";
    assert!(much.contains(words), "{much}");
    let little = fitted(slices(Attack::Read, 2.0), 96.0, 32).answer;
    assert!(!little.contains("With 8 of 32 CPUs"), "{little}");
    assert!(little.contains("nobody measured"), "{little}");
}

/// A fit through slices beside readers says nothing of writers.
#[test]
fn readers_do_not_decide_for_writers() {
    let said = |writers: Vec<Cell>| {
        let cells = [slices(Attack::Read, 2.0), writers].concat();
        fitted(cells, 24.0, 8).answer
    };
    let little = said(Vec::new());
    assert!(little.starts_with("Don't colour"), "{little}");
    let little = said(slices(Attack::Write, 3.0));
    assert!(little.starts_with("Don't colour"), "{little}");
    for much in [
        slices(Attack::Both, 60.0),
        vec![unsure(Attack::Write, 7, 60.0)],
    ] {
        let said = said(much);
        assert!(said.contains("could not be shown"), "{said}");
    }
}

/// Of several that are worse the worst one counts.
#[test]
fn the_worst_of_what_is_worse_is_said() {
    let mut of = report(16, 0.0);
    let worse = |ns| {
        let mut one = cell(16, 0.0);
        one.saved = Difference {
            shown_less: true,
            ..difference(ns, false)
        };
        one
    };
    of.cells = vec![worse(-5.0), worse(-40.0), worse(-10.0)];
    let said = advise(&Facts::default(), Some(&of)).answer;
    assert!(said.contains("longer, by 40.0 %"), "{said}");
}

/// Sixteen processors took part, but beside fifteen and seven co-runners too few blocks counted.
#[test]
fn cells_of_few_corunners_say_nothing_of_all_processors() {
    let of = |saved: f64| {
        let mut few = report(16, saved);
        (few.processors, few.machine_processors) = (16, Some(16));
        few.cells[0].neighbours = 3;
        few.density = Density::of(&few.cells, few.banks, 16);
        advise(&Facts::default(), Some(&few)).answer
    };
    let said = of(90.0);
    assert!(said.contains("with 4 of 16 CPUs busy"), "{said}");
    let said = of(0.0);
    assert!(said.starts_with("With 4 of 16 CPUs busy"), "{said}");
    assert!(said.contains("with more, nobody measured"), "{said}");
}

/// Of a simulated machine nobody knows what else it has; that is not to have none.
#[test]
fn what_nobody_knows_of_a_simulated_machine_is_not_denied() {
    let map = known::find("sapphire-rapids").unwrap().addr_map();
    let advice = advise(&Facts::simulated(&map, 32), None);
    for name in [
        "cache ways (CAT)",
        "bandwidth throttling (MBA)",
        "bandwidth reservations",
    ] {
        let mut items = advice.items.iter();
        let item = items.find(|item| item.name == name).unwrap();
        assert!(!item.is_known && !item.is_there, "{item:?}");
        assert!(item.says.contains("nobody knows"), "{item:?}");
        assert!(!item.says.contains("has none"), "{item:?}");
    }
}

/// Slices in vain, and a cache that was measured: no sentence denies the other.
#[test]
fn a_cache_that_was_measured_is_not_denied_by_slices_in_vain() {
    let pages = vec![class(10.0, true)];
    let count = eviction(2.0, 1.7, Some(2.4), 8);
    let found = Report {
        slices_why: Some("co-runners hardly ran".to_owned()),
        cache: Some(count),
        pages,
        ..Report::default()
    };
    let advice = super::advise(&Facts::default(), &found);
    let said = &advice.answer;
    assert!(
        said.starts_with("Banks could not be measured here: co-runners hardly ran. Cache colours"),
        "{said}"
    );
    assert!(!said.contains("Nothing could be measured"), "{said}");
    let of_banks = |item: &&Item| item.name.starts_with("private banks");
    let item = advice.items.iter().find(of_banks).unwrap();
    assert!(item.says.contains("co-runners hardly ran"), "{item:?}");
}

/// What is at most a share of an access beside co-runners may be more of one alone: it stands
/// behind all that is known of one alone.
#[test]
fn a_bound_beside_corunners_is_not_ranked_by_one_alone() {
    let pages = vec![class(0.0, false)];
    let count = eviction(2.0, 1.7, Some(2.4), 8);
    let small = report(16, 0.0);
    let found = Report {
        slices: Some(small),
        cache: Some(count),
        pages,
        ..Report::default()
    };
    let facts = Facts {
        cache_colors: Some(4),
        ..Facts::default()
    };
    let items = super::advise(&facts, &found).items;
    let place = |name: &str| items.iter().position(|item| item.name == name).unwrap();
    let cache = &items[place("cache colours")];
    assert!(cache.is_beside && cache.is_bound, "{cache:?}");
    assert!(cache.worth > items[place("private banks (colours)")].worth);
    assert!(place("private banks (colours)") < place("cache colours"));
}

/// What is found pair by pair is a slice, however many banks there may be.
#[test]
fn a_slice_is_never_sold_as_all_banks() {
    for banks in [None, Some(15.7), Some(16.0)] {
        let mut slice = report(16, 90.0);
        slice.functions.clear();
        slice.banks = banks;
        slice.density = Density::of(&slice.cells, banks, 8);
        let said = advise(&Facts::default(), Some(&slice));
        assert!(
            said.answer.contains("could not be shown"),
            "{banks:?}: {}",
            said.answer
        );
        let says = said.items.iter().map(|item| &item.says);
        assert!(
            says.clone().all(|says| !says.contains("all banks")),
            "{banks:?}: {said:?}"
        );
    }
}

#[test]
fn a_free_node_comes_first_and_what_is_not_there_last() {
    let facts = Facts {
        nodes: 2,
        processors: 16,
        has_cat: Some(true),
        has_events: Some(true),
        ..Facts::default()
    };
    let advice = advise(&facts, Some(&report(16, 90.0)));
    let names = order(&advice);
    assert_eq!(names[0], "a memory node of its own");
    assert_eq!(names[1], "private banks (colours)");
    let node = serde_json::to_value(&advice.items[0]).unwrap();
    assert_eq!(
        (&node["is_first"], &node["worth"]),
        (&true.into(), &().into())
    );
    assert!(!advice.items[1].is_first);
    let missing = advice.items.iter().position(|item| !item.is_there);
    let there = advice.items.iter().rposition(|item| item.is_there);
    assert!(there < missing, "{names:?}");
}

/// What can't be measured here has a figure of the model, and only where it is there.
#[test]
fn modelled_figures_are_said_to_be_modelled() {
    let says = |has_it: bool| -> Vec<String> {
        let facts = Facts {
            nodes: 1,
            processors: 8,
            has_cat: Some(has_it),
            has_mba: Some(has_it),
            ..Facts::default()
        };
        let items = advise(&facts, None).items.into_iter();
        let wanted = ["cache ways (CAT)", "bandwidth throttling (MBA)"];
        items
            .filter(|item| wanted.contains(&item.name))
            .map(|item| item.says)
            .collect()
    };
    assert!(says(true)
        .iter()
        .all(|says| says.contains("Modelled, not measured here")));
    assert!(says(false)
        .iter()
        .all(|says| says == "This processor has none."));
}

/// What is only modelled takes part in the order, behind what was measured here, and says that it
/// is modelled: never as worth. Which it is says nothing where it is not there.
#[test]
fn what_is_modelled_stands_behind_what_was_measured() {
    let facts = |has_it| Facts {
        nodes: 1,
        processors: 8,
        has_cat: Some(has_it),
        has_mba: Some(has_it),
        has_events: Some(has_it),
        ..Facts::default()
    };
    let modelled = [
        "bandwidth reservations",
        "bandwidth throttling (MBA)",
        "cache ways (CAT)",
    ];
    let measured = advise(&facts(true), Some(&report(1024, 0.0)));
    let names = order(&measured);
    assert_eq!(names[0], "private banks (colours)", "{names:?}");
    assert_eq!(names[1..4], modelled, "{names:?}");
    for item in &measured.items[1..4] {
        assert_eq!(item.worth, None, "{item:?}");
        assert!(item.modelled.is_some(), "{item:?}");
    }
    // A measured loss is no worth.
    let mut worse = report(16, 0.0);
    worse.cells[0].saved = Difference {
        shown_less: true,
        ..difference(-20.0, false)
    };
    let names = order(&advise(&facts(true), Some(&worse)));
    assert_eq!(names[..3], modelled, "{names:?}");
    let none = advise(&facts(false), None);
    assert!(none.items.iter().all(|item| item.modelled.is_none()));
    assert!(none.answer.contains("nobody knows"), "{}", none.answer);
}

/// On a board its figures, and where no machine is known those of larger ones.
#[test]
fn a_board_is_told_of_a_board() {
    let says = |is_board| {
        let facts = Facts {
            has_events: Some(true),
            is_board,
            ..Facts::default()
        };
        let items = advise(&facts, None).items;
        let mut items = items.into_iter();
        items
            .find(|item| item.name == "bandwidth reservations")
            .unwrap()
            .says
    };
    assert!(says(true).contains("on a Raspberry Pi 4"), "{}", says(true));
    assert!(says(false).contains("Zen 2"), "{}", says(false));
    for (name, is_board) in [("raspberry-pi-4", true), ("skylake", false)] {
        let machine = known::find(name).unwrap();
        let facts = Facts::simulated(&machine.addr_map(), 4).described_by(&machine);
        assert_eq!(facts.is_board, is_board, "{name}");
    }
}

/// A map of more cache colours than the cache can have, by the file of its machine.
#[test]
fn cache_colours_of_a_hashed_cache_are_not_there() {
    let mut machine = known::find("opteron-6128").unwrap();
    let map = machine.addr_map();
    let item = |machine: &soloist_machine::Machine| {
        let facts = Facts::simulated(&map, 16).described_by(machine);
        let items = advise(&facts, None).items;
        let mut items = items.into_iter();
        items.find(|item| item.name == "cache colours").unwrap()
    };
    assert!(item(&machine).is_there);
    machine.cache.as_mut().unwrap().l3.as_mut().unwrap().hashed = true;
    let hashed = item(&machine);
    assert!(!hashed.is_there, "{hashed:?}");
    assert!(
        hashed.says.contains("32 cache colours divide nothing"),
        "{hashed:?}"
    );
    // A machine whose map claims none needs no such word.
    let skylake = known::find("skylake").unwrap();
    let none = Facts::simulated(&skylake.addr_map(), 4).described_by(&skylake);
    assert_eq!(none.hashed_cache, None);
}

/// What the map excludes is not there, whatever it would be worth.
#[test]
fn a_channel_that_pages_cant_have_is_not_there() {
    let facts = |name: &str| {
        let map = known::find(name).unwrap().addr_map();
        Facts {
            nodes: 1,
            processors: 4,
            no_channel_colors: super::weaknesses::no_channel_colors(&map),
            ..Facts::default()
        }
    };
    let channel = |facts: &Facts| {
        let advice = advise(facts, None);
        let mut items = advice.items.into_iter();
        let is_channel = |item: &Item| item.name.starts_with("a channel");
        items.find(is_channel).unwrap()
    };
    for name in ["raspberry-pi-4", "sapphire-rapids"] {
        let item = channel(&facts(name));
        assert!(!item.is_there, "{name}: {item:?}");
    }
    assert!(channel(&Facts::default()).is_there);
}

/// The advice on channels where co-runners on the other side of a function save 30 % of an
/// access, and these functions are known to choose the channel.
fn channel_item(function: &str, shown: bool, by_throughput: &[&str]) -> Item {
    let mut of = report(16, 20.0);
    of.channels = Some(Channels {
        neighbours: 7,
        alone_ns: 100.0,
        sides: vec![Side {
            function: function.to_owned(),
            attack: Attack::Read,
            near: figures(130.0),
            far: figures(100.0),
            saved: difference(30.0, shown),
            neighbours_lose: Loss::default(),
        }],
        by_throughput: by_throughput.iter().map(|&f| f.to_owned()).collect(),
        throughput_why: None,
    });
    let items = advise(&Facts::default(), Some(&of)).items;
    let first = items[0].name.starts_with("a channel");
    let mut items = items.into_iter();
    let item = items.find(|item| item.name.starts_with("a channel"));
    let item = item.unwrap();
    assert_eq!(first, item.worth.is_some(), "{item:?}");
    item
}

/// Without a map, too: a bit inside each page tells no pages apart, whatever it saves.
#[test]
fn a_channel_inside_each_page_is_not_sold() {
    for function in ["7", "8^14"] {
        let item = channel_item(function, true, &[function]);
        assert!(!item.is_there && item.is_known, "{function}: {item:?}");
        assert!(item.says.contains("no channel colours"), "{item:?}");
    }
    let between = channel_item("13^17", true, &["13^17"]);
    assert_eq!((between.is_there, between.worth), (true, Some(0.3)));
    // That nothing is shown is no figure, nor a proof that there is none.
    let open = channel_item("13^17", false, &["13^17"]);
    assert_eq!((open.is_there, open.worth), (true, None), "{open:?}");
}

/// A rank or a group of banks saves something too: it is no channel.
#[test]
fn a_function_that_halves_no_throughput_is_not_sold_as_a_channel() {
    for shown in [true, false] {
        let item = channel_item("16^20", shown, &[]);
        assert_eq!((item.is_there, item.is_known), (false, false), "{item:?}");
        assert_eq!(item.worth, None, "{item:?}");
        let words = match shown {
            true => "Another channel, rank or group of banks, 7 readers",
            false => "no function is shown to save anything",
        };
        assert!(item.says.contains(words), "{item:?}");
    }
}

/// Without a map nobody knows whether the cache has colours.
#[test]
fn cache_colours_that_nobody_looked_for_are_not_denied() {
    for (colors, is_known) in [(None, false), (Some(1), true)] {
        let facts = Facts {
            cache_colors: colors,
            ..Facts::default()
        };
        let mut items = advise(&facts, None).items.into_iter();
        let item = items.find(|item| item.name == "cache colours").unwrap();
        assert_eq!(
            (item.is_there, item.is_known),
            (false, is_known),
            "{item:?}"
        );
    }
}

/// Measured and told apart by no page, worse, or against the map: never "colour here".
#[test]
fn what_contradicts_itself_is_not_recommended() {
    let facts = Facts::default();
    let mut flat = report(16, 90.0);
    flat.page_colors = Some(1);
    let said = advise(&facts, Some(&flat));
    assert!(
        said.answer.starts_with("Don't colour banks here"),
        "{}",
        said.answer
    );

    let mut worse = report(16, 0.0);
    worse.cells[0].saved = Difference {
        shown_less: true,
        ..difference(-20.0, false)
    };
    let said = advise(&facts, Some(&worse));
    assert!(said.answer.contains("longer, by 20.0 %"), "{}", said.answer);

    let map = known::find("sapphire-rapids").unwrap().addr_map();
    let against = Facts {
        weaknesses: super::weaknesses::weaknesses(&map, 2),
        ..Facts::default()
    };
    let said = advise(&against, Some(&report(16, 90.0)));
    assert!(
        said.answer.starts_with("Don't colour banks yet"),
        "{}",
        said.answer
    );
}

/// Paces that noise tells apart are no advice.
#[test]
fn reservations_follow_only_what_is_shown() {
    let point = |pause_ns, shared: f64, shown| Point {
        pause_ns,
        shared: Interval {
            median: shared,
            low: shared - 0.02,
            high: shared + 0.02,
        },
        shared_bytes_per_second: 4e9 / f64::from(1 + pause_ns),
        private: interval(1.0),
        private_bytes_per_second: 4e9 / f64::from(1 + pause_ns),
        adds: difference(10.0 * (shared - 1.0), shown),
        saved: difference(0.0, false),
    };
    let says = |shown| {
        let mut of = report(16, 0.0);
        of.paced = vec![Paced {
            banks: 16,
            neighbours: 1,
            attack: Attack::Read,
            points: vec![
                point(0, 1.2, shown),
                point(9, 1.04, shown),
                point(19, 1.02, shown),
            ],
            blocks: 20,
        }];
        let items = advise(&Facts::default(), Some(&of)).items;
        let mut items = items.into_iter();
        items
            .find(|item| item.name == "bandwidth reservations")
            .unwrap()
            .says
    };
    assert!(
        says(true).contains("1.05 or less with 200 MB/s in shared"),
        "{}",
        says(true)
    );
    assert!(says(true).contains("Modelled"), "{}", says(true));
    assert!(
        says(false).contains("not shown to make an access longer"),
        "{}",
        says(false)
    );
    // The model has no say against what was measured.
    assert!(!says(false).contains("Modelled"), "{}", says(false));
}

/// A count as `bench silicon` writes it: classes, least, most, held of 8 places.
fn eviction(classes: f64, least: f64, most: Option<f64>, held: usize) -> Eviction {
    let text = serde_json::json!({
        "group": 16, "classes": classes, "least": least, "most": most, "held": held, "tried": 8,
    });
    serde_json::from_value(text).unwrap()
}

/// One class against all others saves `saved` ns of 40.
fn class(saved: f64, shown: bool) -> Split {
    Split {
        by: By::Class,
        size: Size::OfClass,
        bytes: 1 << 20,
        neighbours: 3,
        attack: Attack::Write,
        spread: figures(40.0),
        private: figures(40.0 - saved),
        saved: difference(saved, shown),
        neighbours_lose: Loss::default(),
        blocks: 20,
    }
}

/// (count, class, colours of the map; words of the answer and of the item, is there, worth)
#[test]
fn cache_colours_follow_the_count_by_timing() {
    let two = || eviction(2.0, 1.7, Some(2.4), 8);
    let hashed = || eviction(16.0, 9.0, Some(30.0), 0);
    let one = || eviction(1.0, 1.0, Some(1.2), 8);
    let unsure = || eviction(1.6, 1.2, Some(2.3), 8);
    let nothing = "Cache colours isolate nothing here.";
    for (count, split, map, answer, item, is_there, worth) in [
        (
            hashed(),
            None,
            None,
            nothing,
            "keeps no page together",
            false,
            None,
        ),
        (
            hashed(),
            None,
            Some(32),
            nothing,
            "the map's 32 divide nothing",
            false,
            None,
        ),
        (
            one(),
            None,
            Some(1),
            nothing,
            "no page colours",
            false,
            None,
        ),
        (
            two(),
            Some(class(10.0, true)),
            Some(4),
            "saves 25 %",
            "The map has 4",
            true,
            Some(0.25),
        ),
        (
            two(),
            Some(class(10.0, true)),
            None,
            "saves 25 %",
            "map llc",
            true,
            Some(0.25),
        ),
        (
            two(),
            Some(class(10.0, true)),
            Some(1),
            "the map has none",
            "`--llc` can't",
            false,
            Some(0.25),
        ),
        (
            two(),
            Some(class(0.0, false)),
            Some(4),
            "is not shown",
            "at most 2.5 %",
            true,
            Some(0.025),
        ),
        (
            two(),
            Some(class(2.0, false)),
            Some(4),
            "is not shown",
            "The map has 4",
            true,
            None,
        ),
        (
            two(),
            None,
            Some(4),
            "is not shown",
            "about 2 page colours",
            true,
            None,
        ),
        (unsure(), None, Some(4), "", "One is as likely", true, None),
        (
            unsure(),
            Some(class(10.0, true)),
            Some(4),
            "saves 25 %",
            "The map has 4",
            true,
            Some(0.25),
        ),
    ] {
        let facts = Facts {
            cache_colors: map,
            ..Facts::default()
        };
        let pages: Vec<Split> = split.into_iter().collect();
        let found = Report {
            cache: Some(count),
            pages,
            ..Report::default()
        };
        let advice = super::advise(&facts, &found);
        assert!(
            advice.answer.starts_with("Banks were not measured"),
            "{}",
            advice.answer
        );
        assert!(advice.answer.contains(answer), "{}", advice.answer);
        assert_eq!(
            advice.answer.contains("ache colours isolate"),
            answer.contains("isolate") || answer.contains("saves")
        );
        let of_cache = |item: &&Item| item.name == "cache colours";
        let said = advice.items.iter().find(of_cache).unwrap();
        assert!(said.says.contains(item), "{item}: {}", said.says);
        assert_eq!((said.is_there, said.worth), (is_there, worth), "{said:?}");
    }
    let found = Report {
        cache_why: Some("no group of pages".to_owned()),
        ..Report::default()
    };
    let advice = super::advise(&Facts::default(), &found);
    let says = |item: &Item| item.says.contains("none could be counted: no group");
    assert!(advice.items.iter().any(says), "{advice:?}");
}

//! The experiments of the source tree, one for each table or figure, of papers and
//! of measurements on silicon.

use std::path::Path;

use soloist_machine::file::read_text;
use soloist_machine::{FileError, FileText, KeyError};
use soloist_play::programs::recorded::Recorded;
use toml::de::{DeTable, Deserializer};

use crate::claims::{check_claims, check_plot};
use crate::spec::{of_task, Scenario, TaskSpec};

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../experiments/", $name, ".toml")))),*]
    };
}

/// Name and text of each, in the order of the papers.
pub const EXPERIMENTS: &[(&str, &str)] = built_in![
    "camc-table-2",
    "camc-table-3",
    "camc-figure-7",
    "camc-figure-9-canneal",
    "camc-figure-9-x264",
    "camc-figure-9-streamcluster",
    "camc-figure-9-ferret",
    "camc-figure-9-fluidanimate",
    "camc-figure-9-swaptions",
    "camc-figure-10",
    "camc-table-4",
    "camc-table-5",
    "camc-figure-11",
    "camc-figure-12",
    "camc-figure-13",
    "camc-figure-13-single",
    "camc-figure-14",
    "camc-figure-14-single",
    "camc-figure-14-llc",
    "camc-figure-17",
    "camc-figure-18-gcc",
    "camc-figure-18-libquantum",
    "camc-figure-18-milc",
    "camc-figure-18-soplex",
    "report-controllers",
    "report-contention",
    "report-threads",
    "report-sizes",
    "tintmalloc-figure-10",
    "tintmalloc-16-threads-4-nodes",
    "tintmalloc-8-threads-4-nodes",
    "tintmalloc-8-threads-2-nodes",
    "tintmalloc-4-threads-4-nodes",
    "tintmalloc-4-threads-1-node",
    "memguard-table-1",
    "memguard-figure-1",
    "memguard-figure-2",
    "memguard-figure-10",
    "memguard-figure-11",
    "memguard-figure-12",
    "memguard-figure-15a",
    "memguard-figure-15b",
    "memguard-figure-16",
    "memguard-figure-17",
    "memguard-colors-4-readers",
    "memguard-colors-4-writers",
    "memguard-colors-16-writers",
    "palloc-banks-p4080",
    "palloc-banks-xeon",
    "palloc-isolation-libquantum",
    "palloc-isolation-soplex",
    "palloc-peak",
    "palloc-one-bank",
    "palloc-solo-lbm",
    "palloc-solo-soplex",
    "tintmalloc-art",
    "tintmalloc-art-compact",
    "tintmalloc-blackscholes",
    "tintmalloc-blackscholes-compact",
    "tintmalloc-bodytrack",
    "tintmalloc-bodytrack-compact",
    "tintmalloc-equake",
    "tintmalloc-equake-compact",
    "tintmalloc-freqmine",
    "tintmalloc-freqmine-compact",
    "silicon-8-banks-readers",
    "silicon-8-banks-writers",
    "silicon-16-banks-readers",
    "silicon-16-banks-writers",
    "silicon-16-banks-streaming-readers",
    "silicon-16-banks-streaming-writers",
    "silicon-64-banks-readers",
    "silicon-64-banks-writers",
    "ablation-rank-cap",
    "ablation-counted-table-3",
    "ablation-counted-figure-10",
    "ablation-queue-table-3",
    "ablation-any-order-figure-15a",
    "ablation-any-order-figure-1",
    "ablation-queue-figure-10",
    "ablation-matrix-figure-17",
    "ablation-banks-figure-7",
    "ablation-parts-figure-11",
];

/// A scenario that is built in, by name, or by the path of its file.
pub fn find(name: &str) -> Result<Scenario, FileError> {
    let (text, file) = text(name)?;
    parse(&text, &file)
}

/// A scenario whose cases and claims can be: errors name the line.
pub fn parse(text: &str, file: &str) -> Result<Scenario, FileError> {
    let place = FileText { file, text };
    let table = DeTable::parse(text).map_err(|e| place.toml(&e))?;
    read(table.into(), place)
}

/// The same of a file whose TOML has been parsed.
pub(crate) fn read(table: Deserializer<'_>, place: FileText<'_>) -> Result<Scenario, FileError> {
    let mut scenario = Scenario::read(table, place)?;
    complete(&mut scenario, place.file).map_err(|wrong| scenario.source.error(wrong))?;
    Ok(scenario)
}

/// Reads what the file names, and checks that all of it can be.
fn complete(scenario: &mut Scenario, file: &str) -> Result<(), KeyError> {
    let beside = Path::new(file).parent().unwrap_or(Path::new(""));
    for (number, task) in scenario.tasks.iter_mut().enumerate() {
        let recorded = recorded(task, beside);
        task.recorded = recorded.map_err(|what| of_task(number, what))?;
    }
    check(scenario)?;
    scenario.check_ranges()
}

/// Whether the scenario has cases, of which no two are equal for all values of a sweep, and
/// whether they have what its claims and plot name.
///
/// # Errors
/// What is wrong, with its key.
pub fn check(scenario: &Scenario) -> Result<(), KeyError> {
    scenario.check()?;
    let cases = scenario.cases(1)?;
    check_claims(scenario, &cases)?;
    check_plot(scenario, &cases)?;
    scenario.check_sweeps()
}

/// The recording of a task of that kind.
fn recorded(task: &TaskSpec, beside: &Path) -> Result<Option<Recorded>, String> {
    task.check_recording()?;
    let load = |dir| Recorded::load(&beside.join(dir));
    task.recording.as_ref().map(load).transpose()
}

/// Text and name of the file.
pub(crate) fn text(name: &str) -> Result<(String, String), FileError> {
    let wrong = |message: String| FileError::whole(name, message);
    if name.contains('/') || name.ends_with(".toml") {
        return read_text(Path::new(name));
    }
    match EXPERIMENTS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(((*text).to_owned(), format!("experiments/{name}.toml"))),
        None if Path::new(name).exists() => read_text(Path::new(name)),
        None => Err(wrong(format!(
            "no such experiment{}; `soloist lab list` names them, and the path of a file is taken \
             too",
            soloist_machine::did_you_mean(name, EXPERIMENTS.iter().map(|(known, _)| *known))
        ))),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const GOOD: &str = r#"
policies = ["buddy", "mem+llc(part)"]

[experiment]
id = "mine"
title = "Mine"
machine = "opteron-6128"

[sweep]
name = "n"
values = [1, 3]

[[task]]
name = "victim"
kind = "latency"
cpus = "0"
bytes = "24M"
work = 1000

[[task]]
name = "attacker"
kind = "stream"
cpus = "1-3"
copies = "$n"
bytes = "32M"
work = 1
background = true

[[claim]]
what = "it helps"
ours = "buddy_3_victim_time / buddy_1_victim_time"
theirs = 2.0
"#;

    #[test]
    fn cases_are_policies_times_sweep() {
        let cases = parse(GOOD, "f").unwrap().cases(10).unwrap();
        let names: Vec<_> = cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(
            names,
            ["buddy_1", "buddy_3", "mem_llc_part_1", "mem_llc_part_3"]
        );
        assert_eq!(cases[0].tasks.len(), 2);
        assert_eq!(cases[1].tasks.len(), 4);
        assert_eq!(cases[1].tasks[0].program.work, 100);
        assert_eq!(cases[1].tasks[3].cpu, 3);
    }

    /// Two numbers vary: every combination, in names and fields.
    #[test]
    fn sweeps_are_combined() {
        let two = GOOD
            .replace(
                "[sweep]",
                "[[sweep]]\nname = \"size\"\nvalues = [8, 9]\n[[sweep]]",
            )
            .replace("bytes = \"32M\"", "bytes = \"$size\"")
            .replace("buddy_3_", "buddy_9_3_")
            .replace("buddy_1_", "buddy_9_1_");
        let scenario = parse(&two, "f").unwrap();
        let cases = scenario.cases(1).unwrap();
        let names: Vec<_> = cases.iter().map(|c| c.name.as_str()).collect();
        let buddy = ["buddy_8_1", "buddy_8_3", "buddy_9_1", "buddy_9_3"];
        assert_eq!((names.len(), &names[..4]), (8, &buddy[..]));
        assert_eq!(cases[3].tasks.len(), 4);
        let kept = serde_json::to_string(&scenario).unwrap();
        let kept: Scenario = serde_json::from_str(&kept).unwrap();
        assert_eq!(kept.sweep, scenario.sweep);
        let e = parse(&two.replace("values = [8, 9]", "valus = [8, 9]"), "f").unwrap_err();
        assert!((e.line, e.message.contains("valus")) == (11, true), "{e}");
    }

    #[test]
    fn a_mistyped_name_has_a_proposal() {
        let told = find("camc-tabel-2").unwrap_err().to_string();
        assert!(told.contains("did you mean \"camc-table-2\""), "{told}");
    }

    #[test]
    fn errors_name_the_line() {
        for (from, to, line, words) in [
            ("\"latency\"", "\"latencies\"", 15, "unknown variant"),
            ("\"buddy\"", "\"body\"", 2, "no policy `body`"),
            (
                ", \"mem+llc(part)\"]",
                ", \"memguard\"]\n[regulator]\nmodes = [\"vanilla\"]\nr_min = 1200\npeak = 6400",
                2,
                "memguard regulates by itself",
            ),
            ("\"24M\"", "\"24 Q\"", 14, "expected a number"),
            ("\"$n\"", "\"$m\"", 21, "not the name of [sweep]"),
            ("cpus = \"0\"", "cpus = \"3-1\"", 14, "expected cpus"),
            ("work = 1000", "wrok = 1000", 18, "unknown field"),
            ("work = 1000", "work = -1", 18, "expected a number from 0"),
            (
                "buddy_3_victim_time /",
                "body_3_victim_time /",
                31,
                "not measured",
            ),
            (
                "buddy_3_victim_time /",
                "buddy_3_victim_tim /",
                31,
                "not measured",
            ),
            ("buddy_3_victim_time /", "( /", 31, "`"),
            (
                "theirs = 2.0",
                "holds = \"ours = 1\"",
                32,
                "expected comparisons",
            ),
            ("values = [1, 3]", "values = []", 11, "at least one value"),
            ("copies = \"$n\"", "copies = 1", 10, "nothing says \"$n\""),
            (
                "[sweep]",
                "used = 5.0\n[sweep]",
                9,
                "a share from 0 to 0.99",
            ),
            (
                "[sweep]",
                "used = nan\n[sweep]",
                9,
                "a share from 0 to 0.99",
            ),
            (
                "[sweep]",
                "scatter = -0.1\n[sweep]",
                9,
                "a share from 0 to 1",
            ),
            ("[sweep]", "repeats = 4294967295\n[sweep]", 9, "1 to 1000"),
            ("[sweep]", "repeats = 0\n[sweep]", 9, "1 to 1000"),
            (
                "[sweep]",
                "[range]\nn = 1\n[sweep]",
                10,
                "the least and the greatest",
            ),
            (
                "[sweep]",
                "[range]\nvictim.n = [1, 2]\n[sweep]",
                10,
                "unknown field",
            ),
            (
                "[sweep]",
                "[range]\nwho.sets = [1, 2]\n[sweep]",
                10,
                "no task `who`",
            ),
            (
                "[sweep]",
                "[range]\nused = [0, 1]\n[sweep]",
                10,
                "a share from 0 to 0.99",
            ),
            (
                "[sweep]",
                "[range]\nvictim.bytes = [\"4M\", \"4Q\"]\n[sweep]",
                10,
                "expected a number",
            ),
            (
                "[sweep]",
                "[model]\ncore.window = \"$m\"\n[sweep]",
                9,
                "not the name of [sweep]",
            ),
        ] {
            let e = parse(&GOOD.replace(from, to), "f").unwrap_err();
            assert!(e.message.contains(words), "{e}");
            assert_eq!(e.line, line, "{e}");
        }
    }
}

//! `soloist lab` as a user types it: what is refused and in which words, what a
//! resumed run takes, what a comparison counts.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, ExitStatus, Output};
use std::ptr::{null, null_mut};

use tempfile::TempDir;

/// Two tasks of little work on a machine of its own.
const SCENARIO: &str = r#"policies = ["buddy"]

[experiment]
id = "mine"
title = "Mine"
machine = "./machine.toml"

[[task]]
name = "reader"
kind = "latency"
cpus = "0"
bytes = "4M"
work = 2000

[[claim]]
what = "time of a line"
ours = "buddy_reader_latency"
theirs = 100.0
unit = "ns"
"#;

fn lab(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
    command.current_dir(dir).arg("lab").args(args);
    command.output().unwrap()
}

fn refused(dir: &Path, args: &[&str]) -> String {
    let out = lab(dir, args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
    said
}

fn json(dir: &Path, args: &[&str]) -> serde_json::Value {
    let out = lab(dir, args);
    assert!(out.status.success(), "{args:?}: {out:?}");
    serde_json::from_slice(&out.stdout).unwrap()
}

/// A folder with the scenario and its machine.
fn folder() -> TempDir {
    let dir = TempDir::new().unwrap();
    let machines = concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines");
    let machine = fs::read_to_string(format!("{machines}/raspberry-pi-4.toml")).unwrap();
    fs::write(dir.path().join("machine.toml"), machine).unwrap();
    fs::write(dir.path().join("mine.toml"), SCENARIO).unwrap();
    dir
}

#[test]
fn a_wrong_option_is_blamed_and_not_the_experiment() {
    let dir = folder();
    for (option, value, words) in [
        ("--machine", "nosuch", "no such machine"),
        ("--machine", "raspberry-pi-5", "no [memory] table"),
        ("--set", "model.controller.foo=1", "unknown field `foo`"),
        (
            "--set",
            "model.controller.order=fast",
            "unknown variant `fast`",
        ),
        ("--set", "controller.order=1", "expected model.KEY=VALUE"),
        ("--set", "sets", "there is no = in it"),
        ("--set", "nobody.bytes=1M", "no task `nobody`"),
        ("--set", "sets=many", "--set sets=many"),
    ] {
        let said = refused(
            dir.path(),
            &["run", "palloc-peak", "--small", option, value],
        );
        assert!(said.contains(words), "{said}");
        assert!(said.contains(&format!("{option} {value}")), "{said}");
        assert!(!said.contains("palloc-peak.toml"), "{said}");
    }
    // A word needs no quotes.
    let words = ["run", "./mine.toml", "--seeds", "1", "--json", "--set"];
    let with = |set| json(dir.path(), &[&words[..], &[set]].concat());
    let model = with("model.controller.order=oldest")[0]["scenario"]["model"].clone();
    assert_eq!(model["controller"]["order"], "oldest");
    let tasks = with("sets=3")[0]["scenario"]["task"].clone();
    assert_eq!(tasks[0]["sets"], 3);
    let said = refused(dir.path(), &["sensitivity", "palloc-peak", "--key", "foo"]);
    assert!(
        said.contains("--key foo") && said.contains("which have"),
        "{said}"
    );
}

#[test]
fn a_run_names_the_command_that_repeats_it() {
    let dir = folder();
    let typed = ["./mine.toml", "--set", "sets=3", "--seed", "2"];
    let out = lab(dir.path(), &[&["run"], &typed[..]].concat());
    let said = String::from_utf8(out.stdout).unwrap();
    let repeats = format!("soloist lab run {}\n", typed.join(" "));
    assert!(said.contains(&repeats), "{said}");
}

/// Else the totals look like those that the pages print of the whole.
#[test]
fn the_totals_of_small_runs_say_that_they_are() {
    let dir = folder();
    let other = SCENARIO.replace("\"mine\"", "\"other\"");
    fs::write(dir.path().join("other.toml"), other).unwrap();
    let files = ["run", "./mine.toml", "./other.toml", "--seeds", "1"];
    for small in [&[][..], &["--small"]] {
        let out = lab(dir.path(), &[&files, small].concat());
        let said = String::from_utf8(out.stdout).unwrap();
        assert!(said.contains("\n2 experiments in "), "{said}");
        let tells = said.contains("\n--small: less work and fewer seeds");
        assert_eq!(tells, !small.is_empty(), "{said}");
    }
}

#[test]
fn check_refuses_what_run_would() {
    let dir = folder();
    assert!(lab(dir.path(), &["check", "./mine.toml"]).status.success());
    for (from, to, at, words) in [
        ("./machine.toml", "./gone.toml", ":6:", "gone.toml"),
        ("[[task]]", "[model]\ncore.foo = 1\n\n[[task]]", "", "foo"),
    ] {
        let wrong = SCENARIO.replacen(from, to, 1);
        fs::write(dir.path().join("wrong.toml"), wrong).unwrap();
        let checked = refused(dir.path(), &["check", "./wrong.toml"]);
        let run = refused(dir.path(), &["run", "./wrong.toml"]);
        assert_eq!(checked, run);
        assert!(checked.contains(words), "{checked}");
        assert!(checked.contains(&format!("wrong.toml{at}")), "{checked}");
    }
}

#[test]
fn a_resumed_run_takes_what_is_of_the_same_version_and_machine_only() {
    let dir = folder();
    let words = [
        "run",
        "./mine.toml",
        "--seeds",
        "1",
        "--out",
        "out",
        "--resume",
        "--json",
    ];
    let run = || json(dir.path(), &words)[0]["cases"].clone();
    let first = run();
    // A figure that no run would give shows which outcomes were taken.
    let kept = dir.path().join("out/mine.json");
    let marked = |from: &str, to: &str| {
        let text = fs::read_to_string(&kept).unwrap();
        assert!(text.contains(from));
        fs::write(&kept, text.replace(from, to)).unwrap();
    };
    marked("\"case\": \"buddy\"", "\"case\": \"marked\"");
    assert_eq!(run()[0]["case"], "marked");
    // The model of another version may differ.
    let version = concat!("\"version\": \"", env!("CARGO_PKG_VERSION"), "\"");
    marked(version, "\"version\": \"0.0.1\"");
    assert_eq!(run()[0]["case"], "buddy");
    let machine = dir.path().join("machine.toml");
    let text = fs::read_to_string(&machine).unwrap();
    fs::write(
        &machine,
        text.replace("request_ps = 37000", "request_ps = 90000"),
    )
    .unwrap();
    let second = run();
    assert_eq!(second[0]["case"], "buddy");
    assert_ne!(second, first);
}

/// A line every `step` bytes, as `sim import` takes it.
fn record(dir: &Path, name: &str, step: u64) {
    let line = |i: u64| format!("{:#x} READ {}\n", i * step % (1 << 22), i * 10);
    let trace: String = (0..4000).map(line).collect();
    fs::write(dir.join("trace"), trace).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
    let words = ["sim", "import", "--format", "dramsim3", "-o", name, "trace"];
    let made = command.current_dir(dir).args(words).output().unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// Another recording of the same name is another input, of scenarios and of task sets.
#[test]
fn a_resumed_run_takes_what_is_of_the_same_recording_only() {
    let dir = folder();
    let played = "kind = \"recorded\"\nrecording = \"rec\"";
    let scenario = SCENARIO
        .replace("kind = \"latency\"", played)
        .replace("bytes = \"4M\"\nwork = 2000\n", "");
    write_task_set(dir.path(), TASK_SET);
    let tasks = fs::read_to_string(dir.path().join("tasks.toml")).unwrap();
    let tasks = tasks
        .replace("kind = \"bandwidth-read\"", played)
        .replace("memory = \"32K\"\n", "");
    fs::write(dir.path().join("tasks.toml"), tasks).unwrap();
    fs::write(dir.path().join("mine.toml"), scenario).unwrap();
    for file in ["./mine.toml", "./mine-rt.toml"] {
        let words = ["run", file, "--seeds", "1", "--out", "out", "--resume"];
        let kept = dir.path().join("out/mine.json");
        // A word that no run writes shows whether what is there was taken.
        let mark = || {
            let text = fs::read_to_string(&kept).unwrap();
            fs::write(&kept, text.replacen('{', "{\"marked\": 1,", 1)).unwrap();
        };
        let is_marked = || fs::read_to_string(&kept).unwrap().contains("marked");
        let run = || assert!(lab(dir.path(), &words).status.success(), "{file}");
        record_anew(dir.path(), 448);
        run();
        mark();
        run();
        assert!(is_marked(), "{file}: the same recording was played again");
        record_anew(dir.path(), 64);
        run();
        assert!(
            !is_marked(),
            "{file}: another recording's outcome was taken"
        );
    }
}

fn record_anew(dir: &Path, step: u64) {
    let _ = fs::remove_dir_all(dir.join("rec"));
    record(dir, "rec", step);
}

#[test]
fn a_comparison_counts_what_both_have() {
    let dir = folder();
    let run = |file: &str, out: &str| {
        json(
            dir.path(),
            &["run", file, "--seeds", "1", "--out", out, "--json"],
        );
    };
    run("./mine.toml", "a");
    run("./mine.toml", "b");
    let other = SCENARIO.replace("\"mine\"", "\"other\"");
    fs::write(dir.path().join("other.toml"), other).unwrap();
    run("./other.toml", "a");
    let more = "\n[[claim]]\nwhat = \"again\"\nours = \"buddy_reader_latency\"\ntheirs = 2.0\n";
    fs::write(dir.path().join("mine.toml"), format!("{SCENARIO}{more}")).unwrap();
    run("./mine.toml", "b");
    let compared = json(dir.path(), &["compare", "a", "b", "--json"]);
    assert_eq!(compared["common"], 1, "{compared}");
    assert_eq!(compared["changes"], serde_json::json!([]));
    assert_eq!(compared["only_before"], serde_json::json!(["other"]));
    assert_eq!(compared["only_after"], serde_json::json!(["mine: again"]));
    assert_eq!(compared["before"], compared["after"]);
    let told = lab(dir.path(), &["compare", "a", "b"]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(
        told.contains("of 1 claims that both have, 0 came out otherwise"),
        "{told}"
    );
    assert!(told.contains("only in a: other") && told.contains("only in b: mine: again"));
    // Nothing is not the same as nothing.
    fs::create_dir(dir.path().join("empty")).unwrap();
    for words in [["compare", "empty", "b"], ["compare", "a", "empty"]] {
        let said = refused(dir.path(), &words);
        assert!(said.contains("empty: no outcomes"), "{said}");
    }
}

/// Of a number that varies no one value: its cases would be equal, and more repeats of one.
#[test]
fn a_number_that_varies_is_not_set() {
    let dir = folder();
    let varies = "[sweep]\nname = \"n\"\nvalues = [4, 8]\n\n[model]\n\
                  controller.bank_queue = \"$n\"\n\n[[task]]";
    let scenario = SCENARIO
        .replace("[[task]]", varies)
        .replace("buddy_reader_latency", "buddy_4_reader_latency");
    fs::write(dir.path().join("varies.toml"), scenario).unwrap();
    let set = ["--set", "model.controller.bank_queue=16"];
    let said = refused(dir.path(), &[&["run", "./varies.toml"][..], &set].concat());
    assert!(
        said.contains("--set model.controller.bank_queue=16: nothing says \"$n\""),
        "{said}"
    );
    // Claims are checked once all changes are made.
    let said = refused(
        dir.path(),
        &["run", "./mine.toml", "--set", "reader.name=writer"],
    );
    assert!(
        said.contains("`buddy_reader_latency` is not measured"),
        "{said}"
    );
    let both = [
        "--set",
        "reader.stride=64",
        "--set",
        "reader.kind=bandwidth-read",
    ];
    let out = lab(
        dir.path(),
        &[&["run", "./mine.toml", "--seeds", "1"][..], &both].concat(),
    );
    assert!(out.status.success(), "{out:?}");
}

/// Each would be left out, taken for something else, or found when all has run.
#[test]
fn what_a_scenario_says_in_vain_is_refused_by_check() {
    let dir = folder();
    let claim = "[[claim]]\nwhat = \"more\"\n";
    for (from, to, line, words) in [
        ("[\"buddy\"]", "[\"buddy\", \"buddy\"]", 1, "`buddy` is in `policies` twice"),
        ("cpus = \"0\"", "cpus = \"0-1\"\ncopies = 3", 9, "`copies` is 3, but `cpus` \"0-1\" names 2 CPUs"),
        ("bytes = \"4M\"", "bytes = 0", 9, "`bytes` 0: expected 1"),
        ("work = 2000", "work = 0", 9, "`work` 0: expected 1"),
        ("work = 2000", "work = 1\nstride = 64", 9, "`stride` is for kinds"),
        ("work = 2000", "work = 1\nsets = 0", 9, "`sets` 0: expected 1"),
        ("work = 2000", "work = 1\nbenchmark = 470", 9, "is for kind \"spec\""),
        ("work = 2000", "work = 1\nreserve = { reads = 1 }", 9, "is of a [regulator]"),
        (
            "kind = \"latency\"",
            "kind = \"bandwidth-read\"\nstride = \"8M\"",
            9,
            "`stride` 8388608: expected 1 to 4194304",
        ),
        (
            "kind = \"latency\"",
            "kind = \"program\"\nipc = 1.0\nmpki = 1.0\narrays = 65",
            9,
            "arrays 65: expected from 0 to 64",
        ),
        ("title =", "small_divide = 0\ntitle =", 5, "`small_divide` 0: expected 1"),
        ("[[task]]", "[sweep]\nname = \"n\"\nvalues = [1, 2, 1]\n[[task]]", 10, "in `values` twice"),
        (
            "[[task]]",
            "[regulator]\nmodes = [\"ro\", \"ro\"]\nr_min = 1\npeak = 2\n[[task]]",
            9,
            "`ro` is in `modes` twice",
        ),
        (
            "[[task]]",
            "[regulator]\nmodes = [\"ro\", \"ro@readr\"]\nr_min = 1\npeak = 2\n[[task]]",
            9,
            "no task `readr`; there are: reader",
        ),
        (
            "[[task]]",
            "[plot]\ntask = \"nobody\"\nmetric = \"time\"\ny = \"\"\n[[task]]",
            9,
            "no task `nobody`; there are: reader",
        ),
        (
            "[[task]]",
            "[plot]\ntask = \"reader\"\nmetric = \"tim\"\ny = \"\"\n[[task]]",
            10,
            "no metric `tim`",
        ),
        (
            "[[task]]",
            "[plot]\ntask = \"reader\"\nmetric = \"time\"\ny = \"\"\nprinted = { mem = 1.0 }\n[[task]]",
            12,
            "no case `mem`; there are: buddy",
        ),
        (
            "[[claim]]",
            "[[claim]]\nwhat = \"time of a line\"\nours = \"buddy_reader_time\"\n[[claim]]",
            19,
            "another claim says \"time of a line\" too",
        ),
        (
            "[[claim]]",
            &format!("{claim}ours = \"1\"\nmargin = 0.5\n[[claim]]"),
            18,
            "`margin` needs `theirs`",
        ),
        (
            "[[claim]]",
            &format!("{claim}ours = \"1\"\nmargin = 0.5\ntheirs = 1.0\nholds = \"1 < 2\"\n[[claim]]"),
            18,
            "`holds` takes no `margin`",
        ),
        (
            "[[claim]]",
            &format!("{claim}ours = \"1\"\nfrom = 0.5\n[[claim]]"),
            18,
            "`from` needs `theirs`",
        ),
        (
            "[[claim]]",
            &format!("{claim}ours = \"1\"\nholds = \"1 < $\"\n[[claim]]"),
            18,
            "`$` is for `ours`",
        ),
        (
            "[[claim]]",
            &format!("{claim}ours = \"1\"\nover = \"mean\"\n[[claim]]"),
            18,
            "`over` needs `$`",
        ),
        (
            "[[claim]]",
            &format!("{claim}ours = \"$\"\nover = \"mean\"\n[[claim]]"),
            17,
            "there is none",
        ),
        ("theirs = 100.0", "theirs = nan", 18, "`theirs` NaN: expected a number"),
        ("theirs = 100.0", "theirs = 1.0\nfrom = inf", 19, "`from` inf: expected a number"),
        ("theirs = 100.0", "theirs = 1.0\nmargin = -1", 19, "`margin` -1: expected"),
        ("theirs = 100.0", "theirs = 0.0", 18, "what it would be without effect"),
        ("theirs = 100.0", "kind = \"order\"", 18, "an order needs `holds`"),
        (
            "\"buddy_reader_latency\"",
            "\"buddy_reader_latency == 3\"",
            17,
            "but got Boolean",
        ),
    ] {
        let wrong = SCENARIO.replacen(from, to, 1);
        assert_ne!(wrong, SCENARIO, "{from}");
        fs::write(dir.path().join("wrong.toml"), wrong).unwrap();
        let said = refused(dir.path(), &["check", "./wrong.toml"]);
        assert!(
            said.contains(words) && said.contains(&format!("wrong.toml:{line}: ")),
            "{to}: {said}"
        );
    }
    let sweep = "[sweep]\nname = \"n\"\nvalues = [1, 2]\n[[task]]";
    let wrong = SCENARIO
        .replace("[[task]]", sweep)
        .replace("buddy_reader_latency", "buddy_$_reader_latency");
    fs::write(dir.path().join("wrong.toml"), wrong).unwrap();
    let said = refused(dir.path(), &["check", "./wrong.toml"]);
    assert!(said.contains("wrong.toml:20: `$` needs `over`"), "{said}");
}

/// And not after the hours that the runs may take.
#[test]
fn a_file_that_can_t_be_written_is_refused_before_anything_runs() {
    let dir = folder();
    for words in [
        ["run", "./mine.toml", "--csv"],
        ["run", "./mine.toml", "--verdicts"],
        ["sensitivity", "./mine.toml", "--csv"],
        ["sensitivity", "./mine.toml", "--tsv"],
    ] {
        let [.., option] = words;
        for (file, why) in [
            ("no/x", ": no directory no"),
            (".", ": . is a directory"),
            ("-", " -: standard output has"),
        ] {
            let said = refused(dir.path(), &[&words[..], &[file]].concat());
            assert!(said.contains(&format!("{option}{why}")), "{said}");
        }
    }
}

/// A copy of a built-in experiment's file has claims of its own under that name.
#[test]
fn a_report_is_of_what_ran() {
    let dir = folder();
    let copied = SCENARIO.replace("\"mine\"", "\"camc-table-2\"");
    fs::write(dir.path().join("mine.toml"), copied).unwrap();
    let typed = [
        "./mine.toml",
        "--set",
        "sets=3",
        "--seed",
        "2",
        "--seeds",
        "1",
    ];
    let out = lab(dir.path(), &[&["run", "--out", "out"][..], &typed].concat());
    assert!(out.status.success(), "{out:?}");
    let report = || {
        assert!(lab(dir.path(), &["report", "out"]).status.success());
        fs::read_to_string(dir.path().join("report.html")).unwrap()
    };
    let page = report();
    let repeats = format!("<code>soloist lab run {}</code>", typed.join(" "));
    assert!(page.contains(&repeats), "{page}");
    assert!(
        page.contains("time of a line") && !page.contains("not bound"),
        "{page}"
    );
    // Figures of another version are not taken for this one's.
    let kept = dir.path().join("out/camc-table-2.json");
    let ours = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    let text = fs::read_to_string(&kept).unwrap();
    assert!(text.contains(&ours) && !page.contains(", version "));
    fs::write(&kept, text.replace(&ours, "\"version\": \"0.0.1\"")).unwrap();
    let page = report();
    assert!(page.contains("seed 2, version 0.0.1. <code>"), "{page}");
}

#[test]
fn a_file_is_no_folder_of_outcomes() {
    let dir = folder();
    for place in ["mine.toml", "mine.toml/out"] {
        let said = refused(dir.path(), &["run", "./mine.toml", "--out", place]);
        assert!(said.contains("--out: mine.toml is no directory"), "{said}");
    }
    for words in [&["report", "mine.toml"][..], &["compare", "mine.toml", "."]] {
        let failed = lab(dir.path(), words);
        let said = String::from_utf8(failed.stderr).unwrap();
        assert_eq!(failed.status.code(), Some(1), "{said}");
        assert!(
            said.contains("mine.toml: ") && said.contains("`soloist lab run --out`"),
            "{said}"
        );
    }
}

/// Task `a_a` in mode `vanilla` and task `a` alone would both be `buddy_vanilla_a_a_time`.
#[test]
fn two_values_of_one_name_are_refused() {
    let dir = folder();
    let other =
        "[[task]]\nname = \"a_a\"\nkind = \"latency\"\ncpus = \"1\"\nbytes = \"64K\"\nwork = 80\n";
    let modes = "[regulator]\nmodes = [\"vanilla\", \"vanilla@a\"]\nr_min = 1000\npeak = 4000\n";
    let clash = SCENARIO
        .replace("\"reader\"", "\"a\"")
        .replace("buddy_reader_latency", "buddy_vanilla_a_a_time")
        .replace("[[claim]]", &format!("{other}{modes}[[claim]]"));
    fs::write(dir.path().join("clash.toml"), &clash).unwrap();
    let said = refused(dir.path(), &["check", "./clash.toml"]);
    let words = "task `a_a` in case `buddy_vanilla` and of task `a` in case `buddy_vanilla_a`";
    assert!(said.contains(words), "{said}");
    // A name that another one begins with is a name of its own.
    let fine = clash.replace(", \"vanilla@a\"", "");
    fs::write(dir.path().join("fine.toml"), fine).unwrap();
    assert!(lab(dir.path(), &["check", "./fine.toml"]).status.success());
}

/// Between whole numbers `1 / 4` would be 0.
#[test]
fn a_claim_divides_whole_numbers_as_fractions() {
    let dir = folder();
    let third = SCENARIO.replace(
        "\"buddy_reader_latency\"",
        "\"1 / 4 + 0 * buddy_reader_latency\"",
    );
    fs::write(dir.path().join("mine.toml"), third).unwrap();
    let run = json(
        dir.path(),
        &["run", "./mine.toml", "--seeds", "1", "--json"],
    );
    assert_eq!(run[0]["verdicts"][0]["ours"]["value"], 0.25, "{run}");
}

/// `--strict` counts what its help names.
#[test]
fn a_claim_of_silicon_counts() {
    let dir = folder();
    let help = String::from_utf8(lab(dir.path(), &["run", "--help"]).stdout).unwrap();
    assert!(help.contains("`silicon`"), "{help}");
    let missed = SCENARIO
        .replace("title =", "basis = \"silicon\"\ntitle =")
        .replace("theirs = 100.0", "theirs = 900.0");
    fs::write(dir.path().join("mine.toml"), missed).unwrap();
    let out = lab(dir.path(), &["run", "./mine.toml", "--strict"]);
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.contains("misses"), "{said}");
    assert_eq!(out.status.code(), Some(1), "{said}");
}

#[test]
fn a_summary_of_files_takes_no_option_of_runs() {
    let dir = folder();
    for option in [&["--small"][..], &["--seed", "9"], &["--seeds", "44"]] {
        let words = [&["sensitivity", "--from", "lines.csv"], option].concat();
        let said = refused(dir.path(), &words);
        assert!(said.contains("cannot be used with"), "{said}");
    }
    // Nor any file but what --csv wrote.
    for text in ["", "experiment,claim\n"] {
        fs::write(dir.path().join("lines.csv"), text).unwrap();
        let said = refused(dir.path(), &["sensitivity", "--from", "lines.csv"]);
        assert!(said.contains("lines.csv: not what --csv wrote"), "{said}");
    }
}

#[test]
fn policies_are_listed_by_the_names_that_files_use() {
    let dir = folder();
    let listed = json(dir.path(), &["list", "--policies", "--json"]);
    let names: Vec<_> = listed.as_array().unwrap().iter().collect();
    for name in ["buddy", "palloc", "llc+mem(part)"] {
        assert!(names.iter().any(|policy| policy["name"] == name), "{name}");
    }
    let text = String::from_utf8(lab(dir.path(), &["list", "--policies"]).stdout).unwrap();
    assert!(text.contains("PALLOC: own banks"), "{text}");
}

#[test]
fn experiments_on_task_sets_are_the_labs_too() {
    let dir = folder();
    let listed = json(dir.path(), &["list", "--json"]);
    let names = listed.as_array().unwrap().iter();
    let names: Vec<_> = names.filter_map(|l| l["name"].as_str()).collect();
    assert!(names.contains(&"camc-tables-7-9") && names.contains(&"palloc-real-time"));
    for option in [["--set", "model.core.window=1"], ["--csv", "all.csv"]] {
        let words = [&["run", "palloc-real-time"][..], &option].concat();
        let said = refused(dir.path(), &words);
        assert!(
            said.contains(option[0]) && said.contains("task sets"),
            "{said}"
        );
    }
    // A small one of one's own.
    write_task_set(dir.path(), TASK_SET);
    assert!(lab(dir.path(), &["check", "./mine-rt.toml"])
        .status
        .success());
    let words = [
        "run",
        "./mine-rt.toml",
        "--out",
        "out",
        "--verdicts",
        "v.csv",
        "--strict",
    ];
    let out = lab(dir.path(), &words);
    assert!(out.status.success(), "{out:?}");
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(
        said.contains("nobody misses") && said.contains("holds"),
        "{said}"
    );
    let verdicts = fs::read_to_string(dir.path().join("v.csv")).unwrap();
    assert!(
        verdicts.contains("mine,nobody misses,predicted,0.0,0.0,"),
        "{verdicts}"
    );
    assert!(lab(dir.path(), &["report", "out"]).status.success());
    let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
    for words in [
        "A &lt; B",
        "<td>quick</td>",
        "Under single",
        "nobody misses",
        "<svg",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let same = json(dir.path(), &["compare", "out", "out", "--json"]);
    assert_eq!(same["common"], 1);
}

const TASK_SET: &str = r#"id = "mine"
title = "A < B"
source = "nobody"
tasks = "tasks.toml"
policies = ["single"]
scale = 1
warm = 0
hyperperiods = 1
seeds = 2

[[claim]]
what = "nobody misses"
policy = "single"
task = "quick"
figure = "misses"
theirs = 0.0
"#;

/// `mine-rt.toml` with a task set that takes no time.
fn write_task_set(dir: &Path, task_set: &str) {
    let tasks = "machine = \"raspberry-pi-4\"\n[[task]]\nname = \"quick\"\ncore = 0\n\
                 period = \"1 ms\"\nwcet = \"50 us\"\nmemory = \"32K\"\nkind = \"bandwidth-read\"\n";
    fs::write(dir.join("mine-rt.toml"), task_set).unwrap();
    fs::write(dir.join("tasks.toml"), tasks).unwrap();
}

/// Each is found by `check`, before anything is played, and told with its line.
#[test]
fn an_experiment_on_tasks_that_can_not_be_played_is_refused() {
    let dir = folder();
    for (right, wrong, line, words) in [
        ("scale", "scael", 6, "unknown field"),
        ("scale = 1", "scale = 0", 6, "`scale` 0: expected 1 to 1000"),
        (
            "scale = 1",
            "scale = 1000",
            6,
            "of task \"quick\" less than 1 us",
        ),
        (
            "warm = 0",
            "warm = 9999999999999999",
            7,
            "expected 0 to 1000",
        ),
        (
            "hyperperiods = 1",
            "hyperperiods = 0",
            8,
            "expected 1 to 1000",
        ),
        ("seeds = 2", "seeds = 0", 9, "expected 1 to 1000"),
        ("[\"single\"]", "[]", 5, "no policies"),
        ("id = \"mine\"", "id = \"../mine\"", 1, "a file's name"),
        (
            "task = \"quick\"",
            "task = \"quack\"",
            14,
            "no task \"quack\"",
        ),
        (
            "policy = \"single\"",
            "policy = \"linux\"",
            12,
            "no \"linux\"",
        ),
        (
            "[\"single\"]",
            "[\"single\", \"single\"]",
            5,
            "policy \"single\" is named twice",
        ),
        (
            "theirs = 0.0",
            "theirs = 0.0\nbelow = \"single\"",
            17,
            "`below` is instead of `theirs`",
        ),
        (
            "[[claim]]",
            "[[claim]]\nwhat = \"nobody misses\"\npolicy = \"single\"\ntask = \"quick\"\n\
             figure = \"mean\"\n\n[[claim]]",
            18,
            "another claim says \"nobody misses\" too",
        ),
    ] {
        write_task_set(dir.path(), &TASK_SET.replace(right, wrong));
        let said = refused(dir.path(), &["check", "./mine-rt.toml"]);
        let place = format!("mine-rt.toml:{line}: ");
        assert!(
            said.contains(&place) && said.contains(words),
            "{wrong}: {said}"
        );
    }
}

/// `--resume` finds an outcome whole, or none, whenever the run before was ended.
#[test]
fn an_outcome_takes_the_place_of_another_at_once() {
    let dir = folder();
    write_task_set(dir.path(), TASK_SET);
    let run = |seed| {
        let words = ["run", "./mine-rt.toml", "--out", "out", "--seed", seed];
        let done = lab(dir.path(), &words);
        assert!(done.status.success(), "{done:?}");
        fs::read_to_string(dir.path().join("out/mine.json")).unwrap()
    };
    let first = run("1");
    let other = dir.path().join("other.json");
    fs::hard_link(dir.path().join("out/mine.json"), &other).unwrap();
    // The largest seed has others after it, too.
    assert_ne!(run("18446744073709551615"), first);
    assert_eq!(fs::read_to_string(other).unwrap(), first);
    let last = [
        "run",
        "./mine.toml",
        "--seed",
        "18446744073709551615",
        "--seeds",
        "2",
    ];
    assert!(lab(dir.path(), &last).status.success());
    fs::write(
        dir.path().join("up.toml"),
        SCENARIO.replace("\"mine\"", "\"../up\""),
    )
    .unwrap();
    let said = refused(dir.path(), &["check", "./up.toml"]);
    assert!(said.contains("up.toml:4: `id`"), "{said}");
    // Two of one name can't both be there.
    let twice = ["run", "./mine-rt.toml", "./mine-rt.toml", "--out", "out"];
    let said = refused(dir.path(), &twice);
    assert!(said.contains("`id` \"mine\""), "{said}");
}

/// What a command says on a terminal that is its standard error.
fn on_a_terminal(mut command: Command) -> (ExitStatus, String) {
    let (mut ours, mut theirs) = (0, 0);
    // SAFETY: two descriptors are written; no name, no settings.
    let made = unsafe { libc::openpty(&mut ours, &mut theirs, null_mut(), null(), null()) };
    assert_eq!(made, 0);
    // SAFETY: both are open, and nobody else's.
    let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs)) };
    let mut child = command.stderr(theirs).spawn().unwrap();
    // It holds the other end, which is read until nobody does.
    drop(command);
    let mut said = Vec::new();
    let _ = fs::File::from(ours).read_to_end(&mut said);
    let status = child.wait().unwrap();
    (status, String::from_utf8_lossy(&said).into_owned())
}

/// Minutes without a word look like a command that hangs.
#[test]
fn a_terminal_shows_progress_beside_json() {
    let dir = folder();
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
    let words = ["lab", "run", "mine.toml", "--small", "--json"];
    command
        .current_dir(dir.path())
        .args(words)
        .env("TERM", "xterm");
    command.stdout(fs::File::create(dir.path().join("out.json")).unwrap());
    let (status, said) = on_a_terminal(command);
    assert!(status.success() && said.contains(" runs, "), "{said}");
    let json = fs::read(dir.path().join("out.json")).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&json).is_ok());
}

/// Who reads it knows no Rust.
#[test]
fn a_file_that_is_no_outcome_is_refused_without_types_of_rust() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("out")).unwrap();
    for text in ["\"x\"", "{\"scenario\": 5}", "[1]", "{}", ""] {
        fs::write(dir.path().join("out/a.json"), text).unwrap();
        let refused = lab(dir.path(), &["report", "out"]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{text}: {said}");
        assert!(
            said.contains("out/a.json: not an outcome of `lab run`"),
            "{said}"
        );
        assert!(!said.contains("struct"), "{said}");
    }
}

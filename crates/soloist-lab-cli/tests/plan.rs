//! `soloist plan` as a user types it: what is refused and in which words, and
//! what stands in its files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// One task with a deadline, which leaves controllers for all else.
const TASKS: &str = r#"machine = "opteron-6128"

[[task]]
name = "control"
period = "5 ms"
wcet = "200 us"
memory = "1M"
lines = 0
"#;

fn plan(dir: &Path, args: &[&str]) -> Output {
    plan_of(dir, TASKS, args)
}

fn plan_of(dir: &Path, tasks: &str, args: &[&str]) -> Output {
    fs::write(dir.join("tasks.toml"), tasks).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
    command.current_dir(dir).args(["plan", "tasks.toml"]);
    command.args(args).output().unwrap()
}

fn text(of: &[u8]) -> String {
    String::from_utf8(of.to_vec()).unwrap()
}

/// Tasks of docs/examples.
fn example(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    fs::read_to_string(docs.join(name)).unwrap()
}

fn refused(dir: &Path, args: &[&str]) -> String {
    let out = plan(dir, args);
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
    assert!(out.stdout.is_empty(), "{args:?}");
    said
}

#[test]
fn an_option_without_effect_is_refused() {
    let dir = TempDir::new().unwrap();
    let said = refused(dir.path(), &["--rest"]);
    assert!(
        said.contains("--rest") && said.contains("--apply"),
        "{said}"
    );
    let with = plan(dir.path(), &["--rest", "--config", "-"]);
    let text = String::from_utf8(with.stdout).unwrap();
    assert!(text.contains("rest-system"), "{text}");
    let said = refused(dir.path(), &["--measured", "trace.json"]);
    assert!(said.contains("--report"), "{said}");
    // The file alone is printed: nothing is applied, compared or told in JSON.
    for option in ["--apply", "--check", "--json"] {
        let said = refused(dir.path(), &["--config", "-", option]);
        assert!(
            said.contains(&format!("leave {option} out")),
            "{option}: {said}"
        );
    }
}

#[test]
fn a_file_that_can_t_be_written_is_refused_before_anything_is_played() {
    let dir = TempDir::new().unwrap();
    for option in ["--report", "--config", "--gantt"] {
        let said = refused(dir.path(), &[option, "no/x"]);
        assert!(
            said.contains(&format!("{option}: no directory no")),
            "{said}"
        );
    }
}

/// A trace of the task under its plan.
fn traced() -> String {
    r#"{"length_ns":1000000000,"lost_events":0,"unread_lines":0,"tasks":[
    {"task":"control","pid":7,"cores":[0],"period_ns":5000000,"deadline_ns":5000000,
    "jobs":199,"missed":0,"miss_rate":0.0,"response_p50_ns":190000,
    "response_p999_ns":195000,"response_worst_ns":199000,"worst_is_cut_off":false,
    "execution_max_ns":1,"preempted":0,"yielded":0,"migrated":0,"throttled_ns":0,
    "held_ns":0}]}"#
        .to_owned()
}

/// A job that took longer than is proved makes the proof worth nothing on that host.
#[test]
fn a_measurement_refutes_a_proof() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    let with = |from: &str, to: &str, more: &[&str]| {
        let text = traced().replace(from, to);
        assert!(text.contains(to), "{to}");
        fs::write(dir.join("trace.json"), text).unwrap();
        let words = ["--report", "e.html", "--measured", "trace.json"];
        plan(dir, &[&words, more].concat())
    };
    for (from, to) in [
        (
            "\"response_worst_ns\":199000",
            "\"response_worst_ns\":900000",
        ),
        ("\"missed\":0", "\"missed\":15"),
    ] {
        let out = with(from, to, &["--config", "c.toml"]);
        assert_eq!(out.status.code(), Some(1), "{out:?}");
        let said = text(&out.stdout);
        assert!(said.contains("what was measured refutes"), "{said}");
        assert!(
            said.contains("control took ") && !said.contains("to run it"),
            "{said}"
        );
        assert!(text(&out.stderr).contains("does not hold"), "{out:?}");
        assert!(!dir.join("c.toml").exists());
        let page = fs::read_to_string(dir.join("e.html")).unwrap();
        assert!(
            page.contains("What was measured refutes the proof"),
            "{page}"
        );
        assert!(!page.contains("Every deadline is proved"));
    }
    fs::remove_file(dir.join("e.html")).unwrap();
    for (from, to, says) in [
        (
            "\"period_ns\":5000000",
            "\"period_ns\":500000000",
            "another period (500 ms)",
        ),
        (
            "\"period_ns\":5000000",
            "\"period_ns\":null",
            "another period (none)",
        ),
        (
            "\"deadline_ns\":5000000",
            "\"deadline_ns\":4000000",
            "another deadline",
        ),
        ("\"cores\":[0]", "\"cores\":[0,3]", "ran on core 3"),
    ] {
        let out = with(from, to, &[]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.contains("--measured trace.json: control") && said.contains(says),
            "{said}"
        );
        assert!(!dir.join("e.html").exists());
    }
}

#[test]
fn the_report_says_what_was_measured_and_of_what_it_was_made() {
    let dir = TempDir::new().unwrap();
    let words = ["--report", "e.html", "--measured", "trace.json"];
    fs::write(dir.path().join("trace.json"), "{}").unwrap();
    let said = refused(dir.path(), &words);
    assert!(said.contains("soloist trace --json"), "{said}");
    let trace = |name: &str| {
        let text = traced().replace("control", name);
        fs::write(dir.path().join("trace.json"), text).unwrap();
    };
    trace("somebody");
    let said = refused(dir.path(), &words);
    assert!(said.contains("none of its tasks"), "{said}");
    trace("control");
    let out = plan(dir.path(), &words);
    assert!(out.status.success(), "{out:?}");
    let page = fs::read_to_string(dir.path().join("e.html")).unwrap();
    let sum = |file: &Path| {
        let out = Command::new("sha256sum").arg(file).output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        text.split(' ').next().unwrap().to_owned()
    };
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines/opteron-6128.toml");
    for words in [
        "199 us; 0 of 199 jobs missed",
        "--measured trace.json",
        &sum(&dir.path().join("trace.json")),
        &sum(&dir.path().join("tasks.toml")),
        &sum(&machine),
    ] {
        assert!(page.contains(words), "{words}");
    }
}

/// A pipe has its text only once, and the report quotes it.
#[test]
fn a_task_file_may_be_a_pipe() {
    let dir = TempDir::new().unwrap();
    let mut plan = Command::new(env!("CARGO_BIN_EXE_soloist-lab"))
        .args(["plan", "/dev/stdin", "--report", "e.html"])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = plan.stdin.as_mut().unwrap();
    input.write_all(TASKS.as_bytes()).unwrap();
    let out = plan.wait_with_output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let page = fs::read_to_string(dir.path().join("e.html")).unwrap();
    assert!(page.contains("wcet = &quot;200 us&quot;"), "{page}");
}

#[test]
fn a_measurement_without_end_is_refused_before_anything_is_played() {
    let dir = TempDir::new().unwrap();
    let words = [
        "--report",
        "e.html",
        "--gantt",
        "g.svg",
        "--measured",
        "/dev/zero",
    ];
    let said = refused(dir.path(), &words);
    assert!(
        said.contains("--measured /dev/zero: it has more than 256 MiB"),
        "{said}"
    );
    assert!(!dir.path().join("g.svg").exists());
}

/// Refused with the line, by the status of what is written wrong.
#[test]
fn a_file_that_can_t_be_meant_is_a_misuse() {
    let dir = TempDir::new().unwrap();
    let refused = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
        let out = command
            .current_dir(dir.path())
            .args(words)
            .output()
            .unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(out.stdout.is_empty(), "{words:?}");
        said
    };
    for words in [
        ["plan", "nosuch.toml"].as_slice(),
        &["lab", "check", "nosuch.toml"],
        &["trace", "--tasks", "nosuch.toml"],
    ] {
        let said = refused(words);
        assert!(said.contains("nosuch.toml: No such file"), "{said}");
    }
    for (from, to, says) in [
        ("5 ms", "0 ms", "5: period must be above 0"),
        ("5 ms", "5 ms 3 us", "5: \"5 ms 3 us\" has two units"),
        ("200 us", "6 ms", "6: wcet 6 ms is longer than the deadline"),
        (
            "\"1M\"\nlines = 0",
            "\"900G\"\nkind = \"latency\"",
            "3: task \"control\" needs 900 GiB",
        ),
        (
            "\"1M\"",
            "\"1M\"\ncore = 99",
            "3: task \"control\" is bound to core 99",
        ),
        (
            "opteron-6128",
            "optron-6128",
            "1: optron-6128: no such machine",
        ),
        (
            "period = \"5 ms\"\nwcet = \"200 us\"\nmemory = \"1M\"\nlines = 0\n",
            "",
            "3: no task has a period",
        ),
    ] {
        let text = TASKS.replacen(from, to, 1);
        assert_ne!(text, TASKS);
        fs::write(dir.path().join("bad.toml"), text).unwrap();
        let said = refused(&["plan", "bad.toml"]);
        assert!(said.contains(&format!("bad.toml:{says}")), "{said}");
    }
    let said = refused(&["plan", "bad.toml", "--machine", "nowhere"]);
    assert!(said.contains("nowhere: no such machine"), "{said}");
}

/// What docs/how-to/real-time.md shows of a plan is printed, number by number.
#[test]
fn the_page_shows_what_is_printed() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(top.join("docs/how-to/real-time.md")).unwrap();
    let blocks = page.split("```console\n").skip(1);
    let mut compared = 0;
    for block in blocks.map(|b| b.split("\n```").next().unwrap()) {
        let Some((words, shown)) = block
            .strip_prefix("$ soloist plan ")
            .and_then(|b| b.split_once('\n'))
        else {
            continue;
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
        command.current_dir(&top).arg("plan").args(words.split(' '));
        let out = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let mut printed = out.lines().map(str::trim_end);
        for line in shown.lines().filter(|line| *line != "...") {
            assert!(printed.any(|p| p == line), "{words}: {line:?} in\n{out}");
        }
        compared += 1;
    }
    assert_eq!(compared, 3);
}

/// The written file names its sources and its worth; what is not proved is
/// written only if that is asked for.
#[test]
fn a_plan_that_does_not_hold_is_not_written() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    let head = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    let good = text(&plan(dir, &["--config", "-"]).stdout);
    assert_eq!(
        head(&good),
        "# Written by soloist plan from tasks.toml: proved"
    );
    assert!(good.contains("# for opteron-6128, "), "{good}");
    assert!(good.contains("soloist run --group control"), "{good}");
    assert!(
        good.contains("taskset -c 0 sh -c 'for f in") && good.contains("_server/cpu0/runtime"),
        "{good}"
    );
    let heavy = example("three-tasks.toml");
    let pi = ["--machine", "raspberry-pi-4", "--config"];
    let out = plan_of(dir, &heavy, &[pi.as_slice(), &["-"]].concat());
    assert_eq!(
        (out.status.code(), text(&out.stdout)),
        (Some(1), String::new())
    );
    let said = text(&out.stderr);
    assert!(
        said.contains("control misses by") && said.contains("--force"),
        "{said}"
    );
    let endless = "no bound says by how much camera misses: make the others hold";
    assert!(said.contains(endless), "{said}");
    fs::write(dir.join("c.toml"), "mine").unwrap();
    let out = plan_of(dir, &heavy, &[pi.as_slice(), &["c.toml"]].concat());
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).contains("c.toml"), "{out:?}");
    assert_eq!(fs::read_to_string(dir.join("c.toml")).unwrap(), "mine");
    let out = plan_of(
        dir,
        &heavy,
        &[pi.as_slice(), &["c.toml", "--force"]].concat(),
    );
    assert_eq!(out.status.code(), Some(1));
    let written = fs::read_to_string(dir.join("c.toml")).unwrap();
    assert_eq!(
        head(&written),
        "# Written by soloist plan from tasks.toml: NOT proved"
    );
    assert!(written.contains("# control misses by"), "{written}");
    let said = refused(dir, &["--force"]);
    assert!(said.contains("--apply"), "{said}");
}

/// A limit holds by all settings of the guard together.
#[test]
fn limits_bring_all_that_they_rest_on() {
    let dir = TempDir::new().unwrap();
    let dir = dir.path();
    let pi = example("three-tasks-pi.toml");
    let limited = pi.replace("28 ms", "99 ms");
    let with = |more: &[&str]| {
        let args = [&["--machine", "raspberry-pi-4", "--config", "-"], more].concat();
        plan_of(dir, &pi, &args)
    };
    let written = text(&with(&[]).stdout);
    for setting in [
        "event = \"bus-accesses\"",
        "line = \"64\"",
        "write_event = \"none\"",
        "write_r_min = \"0\"",
        "period_us = \"1000\"",
        "r_min = ",
        "sharing = \"none\"",
        "count_kernel = \"1\"",
        "per_task = \"0\"",
        "2 = \"16MB/s:reclaim=0\"",
    ] {
        assert!(written.contains(setting), "{setting} in\n{written}");
    }
    let out = with(&["--event", "page-faults"]);
    let (status, written) = (out.status.code(), text(&out.stdout));
    assert_eq!((status, written), (Some(1), String::new()));
    let said = text(&out.stderr);
    assert!(said.contains("page-faults counts no lines"), "{said}");
    let forced = text(&with(&["--event", "LLC-misses", "--force"]).stdout);
    assert!(
        forced.contains("limits may not hold: LLC-misses does not count"),
        "{forced}"
    );
    assert!(forced.contains("event = \"LLC-misses\""), "{forced}");
    // Without a prefetcher it still misses some: what glibc copies past the caches.
    let old = |more: &[&str]| {
        let args = [
            &[
                "--machine",
                "xeon-w3530",
                "--config",
                "-",
                "--event",
                "LLC-misses",
            ],
            more,
        ]
        .concat();
        plan_of(dir, &limited, &args)
    };
    let said = text(&old(&[]).stderr);
    assert!(said.contains("stores that go past the caches"), "{said}");
    let raw = text(&with(&["--event", "r0123"]).stdout);
    assert!(
        raw.contains("for you to know") && raw.contains("event = \"r0123\""),
        "{raw}"
    );
    let out = with(&["--event", "LLC-mises"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("did you mean"), "{out:?}");
    // Without limits there is nothing to count.
    let free = text(&plan(dir, &["--config", "-", "--event", "page-faults"]).stdout);
    assert!(
        !free.contains("[guard]") && !free.contains("page-faults"),
        "{free}"
    );
}

/// EDF is started as the budgets that were proved, not by priorities.
#[test]
fn edf_is_started_as_it_was_proved() {
    let dir = TempDir::new().unwrap();
    let task = |name: &str, period: &str, wcet: &str| {
        format!("[[task]]\nname = {name:?}\ncore = 0\nperiod = {period:?}\nwcet = {wcet:?}\n")
    };
    let pair = task("a", "5 ms", "2 ms") + &task("b", "7 ms", "3600 us");
    let set = format!("machine = \"opteron-6128\"\norder = \"edf\"\n{pair}");
    let out = plan_of(dir.path(), &set, &[]);
    assert!(out.status.success(), "{out:?}");
    let said = text(&out.stdout);
    for words in [
        "--period 5ms -- ./a",
        "--period 7ms -- ./b",
        "--group core-0-node-0 --cpus 0 --budget ",
        "/sys/fs/cgroup/soloist-core-0/cpuset.cpus.partition",
        "(echo 0 >/sys/fs/cgroup/soloist-core-0/cgroup.procs && for f in",
        "_server/cpu0/runtime",
        "echo 0 >/sys/fs/cgroup/soloist-core-0/cgroup.procs && exec soloist run",
    ] {
        assert!(said.contains(words), "{words} in\n{said}");
    }
    assert!(!said.contains("--rt"), "{said}");
    let budgets = said.split("--budget ").skip(1);
    let ns: Vec<f64> = budgets
        .map(|rest| rest.split("ns").next().unwrap().parse().unwrap())
        .collect();
    assert!(ns[0] > 2e6 && ns[1] > 3.6e6, "{ns:?}");
    assert!(ns[0] / 5e6 + ns[1] / 7e6 <= 0.95, "{ns:?}");
    let full = set.replace("3600 us", "3900 us");
    let out = plan_of(dir.path(), &full, &[]);
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert!(
        text(&out.stdout).contains("50 ms of each second"),
        "{out:?}"
    );
}

/// Beside a verdict stands what of the machine it rests on.
#[test]
fn a_verdict_names_what_is_guessed() {
    let dir = TempDir::new().unwrap();
    let said = text(&plan(dir.path(), &[]).stdout);
    for words in [
        "opteron-6128.toml says (trust: exact)",
        "northbridge.victims 32",
        "the bounds cover these tasks only",
    ] {
        assert!(said.contains(words), "{said}");
    }
    let json = text(&plan(dir.path(), &["--json"]).stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["grounds"]["trust"], "exact");
    let guessed = json["grounds"]["guessed"].as_array().unwrap();
    assert!(
        guessed.iter().any(|g| g["key"] == "northbridge.victims"),
        "{guessed:?}"
    );
    assert_eq!(json["event"], serde_json::Value::Null);
}

#[test]
fn a_check_in_json_says_how_the_host_differs() {
    let dir = TempDir::new().unwrap();
    let soloist = dir.path().join("sys/kernel/config/soloist");
    fs::create_dir_all(soloist.join("groups")).unwrap();
    fs::create_dir_all(soloist.join("rules")).unwrap();
    let map = soloist_machine::known::find("opteron-6128").unwrap();
    for (file, text) in [
        ("map", map.map_text().as_str()),
        ("last_cmd_status", "ok\n"),
        ("implicit", "\n"),
        ("stats", "groups 0\nused 0\n"),
    ] {
        fs::write(soloist.join(file), text).unwrap();
    }
    fs::write(dir.path().join("tasks.toml"), TASKS).unwrap();
    // A thread beside the task's takes a part of its core.
    let cpus = dir.path().join("sys/devices/system/cpu");
    fs::create_dir_all(cpus.join("cpu0/topology")).unwrap();
    fs::write(cpus.join("cpu0/topology/core_cpus_list"), "0,16\n").unwrap();
    let refused = Command::new(env!("CARGO_BIN_EXE_soloist-lab"))
        .current_dir(&dir)
        .env("SOLOIST_HOST_ROOT", dir.path())
        .args(["plan", "tasks.toml", "--check"])
        .output()
        .unwrap();
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("CPU 16 is a hardware thread of core 0"),
        "{said}"
    );
    fs::write(cpus.join("cpu0/topology/core_cpus_list"), "0\n").unwrap();
    let difference = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
        command
            .current_dir(&dir)
            .env("SOLOIST_HOST_ROOT", dir.path());
        let out = command.args(["plan", "tasks.toml", "--check", "--json"]);
        let out = out.output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{}", text(&out.stderr));
        let said: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        said["difference"].clone()
    };
    // From 6.12 on the kernel may run ordinary tasks first, on the task's core as on others.
    let servers = || difference()["servers"].to_string();
    assert!(servers().contains("mount debugfs"), "{}", servers());
    let sched = dir.path().join("sys/kernel/debug/sched/fair_server");
    for core in ["cpu0", "cpu1"] {
        fs::create_dir_all(sched.join(core)).unwrap();
        fs::write(sched.join(core).join("runtime"), "50000000\n").unwrap();
    }
    let told = servers();
    assert!(
        told.contains("fair_server/cpu0/runtime") && !told.contains("cpu1"),
        "{told}"
    );
    fs::write(sched.join("cpu0/runtime"), "0\n").unwrap();
    assert_eq!(servers(), "[]");
    let difference = difference();
    let steps = difference["steps"].as_array().unwrap();
    assert!(
        steps.iter().any(|step| step == "+ groups/control"),
        "{difference}"
    );
}

/// `set -o pipefail; soloist plan tasks.toml | head -1` must not say that all is proved.
#[test]
fn a_closed_pipe_proves_nothing() {
    let dir = TempDir::new().unwrap();
    let late = TASKS
        .replace("200 us", "4900 us")
        .replace("lines = 0", "lines = 100000");
    for words in [&[][..], &["--json"], &["--config", "-", "--force"]] {
        let read = plan_of(dir.path(), &late, words);
        assert_eq!(read.status.code(), Some(1), "{read:?}");
        let (reader, unread) = UnixStream::pair().unwrap();
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
        command.current_dir(dir.path()).args(["plan", "tasks.toml"]);
        command.args(words).stdout(OwnedFd::from(unread));
        let out = command.output().unwrap();
        assert_eq!(out.status.code(), Some(1), "{words:?}: {out:?}");
    }
}

/// A trace may take hours.
#[test]
fn a_trace_that_can_t_be_drawn_is_not_begun() {
    let dir = TempDir::new().unwrap();
    for option in ["--svg", "--perfetto"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist-lab"));
        command
            .current_dir(dir.path())
            .args(["trace", option, "no/x", "--", "true"]);
        let out = command.output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.contains(&format!("{option}: no directory no")),
            "{said}"
        );
    }
}

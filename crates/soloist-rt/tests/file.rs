//! Task files: what is read, and how what is wrong is told.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use soloist_core::time::MS;
use soloist_rt::tasks::file::{parse, read};
use soloist_rt::tasks::{Behaviour, Order};

const GOOD: &str = r#"machine = "opteron-6128"
order = "dm"

[[task]]
name = "control"
period = "10 ms"
deadline = "8 ms"
phase = "1 ms"
jitter = "50 us"
core = 0
wcet = "3 ms"
memory = "4M"
kind = "is"

[[task]]
name = "logger"
core = 1
memory = "24M"
kind = "program"
ipc = 0.9
mpki = 20

[[task]]
name = "vision"
period = "20 ms"
wcet = "12 ms"
core = 0
lines = 100000
memory = "8M"
"#;

#[test]
fn a_task_file_is_read() {
    let set = parse(GOOD, "f").unwrap();
    assert_eq!(set.order, Order::DeadlineMonotonic);
    assert_eq!(set.machine_line, 1);
    let control = &set.tasks[0];
    assert_eq!(control.release.unwrap().deadline.0, 8 * MS);
    assert_eq!((control.line, control.bytes), (4, 4 << 20));
    assert!(set.tasks[1].release.is_none());
    assert_eq!(set.tasks[2].behaviour, Behaviour::Lines(100_000));
    assert_eq!(set.ranks(), [0, 2, 1]);
    assert_eq!(set.hyperperiod(), Some(20 * MS));
}

#[test]
fn errors_name_the_line_and_what_to_change() {
    for (from, to, line, words) in [
        ("\"10 ms\"", "\"0 ms\"", 6, "period must be above 0"),
        ("\"10 ms\"", "\"10\"", 6, "expected a number and one of"),
        ("\"10 ms\"", "10", 6, "10 has no unit"),
        ("\"10 ms\"", "\"1 s 10 ms\"", 6, "two units"),
        ("\"8 ms\"", "\"12 ms\"", 7, "at most the period, 10 ms"),
        ("\"50 us\"", "\"9 ms\"", 9, "leaves nothing of the deadline"),
        ("\"3 ms\"", "\"9 ms\"", 11, "longer than the deadline"),
        ("\"3 ms\"", "\"0 us\"", 11, "wcet must be above 0"),
        ("wcet = \"3 ms\"", "", 5, "needs `wcet`"),
        ("\"4M\"", "\"4 Q\"", 12, "memory"),
        ("\"4M\"", "\"4M2K\"", 12, "two units"),
        ("\"4M\"", "\"0\"", 12, "above 0"),
        ("\"is\"", "\"iss\"", 13, "unknown variant"),
        ("\"logger\"", "\"control\"", 16, "two tasks \"control\""),
        ("mpki = 20", "mpki = -1", 21, "mpki -1: expected above 0"),
        ("mpki = 20", "", 19, "needs `ipc` and `mpki`"),
        ("\"12 ms\"", "\"19 ms\"", 24, "125 % of it even alone"),
        (
            "lines = 100000",
            "kind = \"is\"\nlines = 1",
            29,
            "either `lines`",
        ),
        ("lines = 100000", "ipc = 1.0", 28, "is for kind"),
        ("memory = \"8M\"", "", 28, "no memory that they could be of"),
        ("lines = 100000", "priority = 5", 28, "order = \"fixed\""),
        ("order = \"dm\"", "order = \"fixed\"", 5, "needs `priority`"),
        ("name = \"control\"", "name = \"a b\"", 5, "1 to 40 letters"),
        ("core = 1", "core = -1", 17, "a whole number from 0"),
        ("core = 1", "core = 1.5", 17, "a whole number from 0"),
        ("lines = 100000", "lines = -5", 28, "a whole number"),
        (
            "lines = 100000",
            "lines = 5000000000",
            28,
            "from 0 to 4294967295",
        ),
        ("\"10 ms\"", "\"10 ms us\"", 6, "two units"),
        ("core = 1", "core = 1\nwcet = \"1 ms\"", 18, "no period"),
        (
            "core = 1",
            "core = 1\njitter = \"1 ms\"",
            18,
            "only tasks with",
        ),
        // Keys that would do nothing.
        ("kind = \"is\"", "", 12, "nothing says what it does to it"),
        ("memory = \"4M\"", "", 13, "no memory that it could be done"),
        (
            "memory = \"24M\"",
            "",
            19,
            "no memory that it could be done",
        ),
        ("core = 1", "core = 1\npriority = 5", 18, "only tasks with"),
        (
            "kind = \"program\"\nipc = 0.9\nmpki = 20",
            "lines = 5",
            19,
            "only tasks with",
        ),
        (
            "kind = \"program\"\nipc = 0.9\nmpki = 20",
            "",
            18,
            "\"logger\" has `memory`",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = parse(&GOOD.replacen(from, to, 1), "f").unwrap_err();
        assert!(error.message.contains(words), "{to}: {error}");
        assert!(!error.message.trim_end().ends_with(';'), "{to}: {error}");
        assert_eq!(error.line, line, "{to}: {error}");
    }
    for (text, line, words) in [
        ("order = \"edf\"\n\n", 1, "no [[task]]"),
        ("", 1, "no [[task]]"),
        ("# mine\ntask = []\n", 2, "no [[task]]"),
        (
            "\n[task]\nname = \"a\"\n",
            2,
            "as [[task]], in two brackets",
        ),
    ] {
        let error = parse(text, "f").unwrap_err();
        assert!(error.message.contains(words), "{text}: {error}");
        assert_eq!(error.line, line, "{text}: {error}");
    }
}

/// A task may say that it keeps to its private caches, whatever memory it has.
#[test]
fn memory_that_stays_in_private_caches_is_said_by_lines_of_0() {
    let quiet = GOOD.replacen("kind = \"is\"", "lines = 0", 1);
    let set = parse(&quiet, "f").unwrap();
    assert_eq!(set.tasks[0].behaviour, Behaviour::Compute);
    assert_eq!(set.tasks[0].bytes, 4 << 20);
}

#[test]
fn a_file_that_is_no_text_is_told_with_the_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        b"# caf\xc3\xa9\n[[task]]\nname = \"caf\xe9\"\n",
    )
    .unwrap();
    let error = read(file.path()).unwrap_err();
    assert_eq!(error.line, 3, "{error}");
    assert!(error.message.contains("0xe9 is no text"), "{error}");
}

proptest! {
    /// Whatever stands there, the answer is a set or an error in the file.
    #[test]
    fn no_text_breaks_the_parser(
        at in 0..GOOD.len(),
        length in 0usize..12,
        put in "[a-z0-9\"= .\\[\\]\n#-]{0,12}",
    ) {
        let mut text = GOOD.to_owned();
        text.replace_range(at..(at + length).min(GOOD.len()), &put);
        match parse(&text, "f") {
            Ok(set) => prop_assert!(!set.tasks.is_empty()),
            Err(error) => prop_assert!(error.line <= text.lines().count() + 1),
        }
    }

    /// What is well formed is read as it was meant.
    #[test]
    fn what_is_meant_is_read(
        period in 1u64..100_000,
        share in 0.01f64..1.0,
        core in 0u32..64,
        bytes in 4096u64..1 << 34,
    ) {
        let wcet = ((period * 1000) as f64 * share).ceil() as u64;
        let text = format!(
            "[[task]]\nname = \"t\"\nperiod = \"{period} us\"\nwcet = \"{wcet} ns\"\ncore = {core}\nmemory = \"{bytes}\"\nkind = \"is\"\n"
        );
        let set = parse(&text, "f").unwrap();
        let task = &set.tasks[0];
        prop_assert_eq!(task.release.unwrap().period.0, period * 1_000_000);
        prop_assert_eq!(task.wcet.0, wcet * 1000);
        prop_assert_eq!((task.core, task.bytes), (Some(core), bytes));
        prop_assert!(task.utilisation() <= 1.0);
    }
}

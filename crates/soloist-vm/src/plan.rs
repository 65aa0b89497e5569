//! Which guest test runs on which kernel: the table in `tests/kernels`.

use std::fs;
use std::path::Path;

/// The table: kernels, sets of tests, and tests that run on busy machines, too.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TestPlan {
    /// Every kernel, in the order of the table.
    pub kernels: Vec<Row>,
    /// `AREA/NAME` of the tests of the set `core`.
    pub core: Vec<String>,
    /// Those of them that are of the set `short`, too.
    pub short: Vec<String>,
    /// A test and the kinds of busy memory on which it runs once more, as `AREA/NAME@KIND`.
    pub busy: Vec<(String, Vec<String>)>,
    /// Kinds of busy memory on which `make check-long` runs every test of the set `core`.
    pub busy_core: Vec<String>,
}

/// A kernel and the tests that it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The kernel's short name, `6.12-rt`.
    pub kernel: String,
    /// `all`, `core`, `short`, `none`, `AREA` or `AREA/NAME`, one or more; `long`: all in
    /// `make check-long`, which else runs `core` and these.
    pub tests: Vec<String>,
    /// What it leaves out of them: `AREA/NAME`, or `AREA/NAME@KIND`.
    pub without: Vec<String>,
    /// The model of the processor, as QEMU names it; none: the usual one.
    pub cpu: Option<String>,
    /// Words for the kernel's command line, if any.
    pub append: Option<String>,
}

impl Row {
    /// Whether the row names `test` itself, its area, or all.
    fn names(&self, test: &str) -> bool {
        let area = test.split('/').next().unwrap_or(test);
        let idle = test.split('@').next().unwrap_or(test);
        let named = |set: &String| set == test || set == idle || set == area || set == "all";
        self.tests.iter().any(named)
    }

    /// Whether the row leaves `test` out.
    fn lacks(&self, test: &str) -> bool {
        let idle = test.split('@').next().unwrap_or(test);
        self.without.iter().any(|left| left == test || left == idle)
    }

    /// Whether the row has the set `name`.
    fn has(&self, name: &str) -> bool {
        self.tests.iter().any(|set| set == name)
    }
}

impl TestPlan {
    /// Reads `tests/kernels` below `root`.
    pub fn read(root: &Path) -> Result<Self, String> {
        let file = root.join("tests/kernels");
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        Self::parse(&text).map_err(|e| format!("{}:{e}", file.display()))
    }

    /// The table in `text`; an error begins with the number of its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut plan = Self::default();
        for (at, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] | ["#", ..] => {}
                ["+", test] => plan.core.push((*test).to_owned()),
                ["+", test, "short"] => {
                    plan.core.push((*test).to_owned());
                    plan.short.push((*test).to_owned());
                }
                ["@", "core", kinds @ ..] if !kinds.is_empty() => {
                    plan.busy_core
                        .extend(kinds.iter().map(|kind| (*kind).to_owned()));
                }
                ["@", test, kinds @ ..] if !kinds.is_empty() => plan.busy.push((
                    (*test).to_owned(),
                    kinds.iter().map(|kind| (*kind).to_owned()).collect(),
                )),
                [kernel, tests @ ..] if !tests.is_empty() && !["+", "@"].contains(kernel) => {
                    let after = |mark: &'static str| {
                        let words = tests.iter().filter_map(move |word| word.strip_prefix(mark));
                        words.map(str::to_owned)
                    };
                    let tests = tests
                        .iter()
                        .filter(|word| !["cpu=", "append=", "-"].iter().any(|mark| word.starts_with(mark)));
                    plan.kernels.push(Row {
                        kernel: (*kernel).to_owned(),
                        tests: tests.map(|set| (*set).to_owned()).collect(),
                        without: after("-").collect(),
                        cpu: after("cpu=").next(),
                        append: after("append=").reduce(|words, word| words + " " + &word),
                    });
                }
                _ => {
                    return Err(format!(
                        "{}: expected a kernel and its tests (`6.12 all -cli/run@full`, `6.1 core guard cli/run`), `+ AREA/TEST [short]`, `@ AREA/TEST KIND` or `@ core KIND`",
                        at + 1
                    ))
                }
            }
        }
        Ok(plan)
    }

    /// `test` and its names on busy machines; with `long` those of `make check-long`, too.
    #[must_use]
    pub fn ways(&self, test: &str, long: bool) -> Vec<String> {
        let named = self.busy.iter().filter(|(name, _)| name == test);
        let mut kinds: Vec<&String> = named.flat_map(|(_, kinds)| kinds).collect();
        if long && self.core.iter().any(|name| name == test) {
            let more = self.busy_core.iter().filter(|kind| !kinds.contains(kind));
            kinds.extend(more.collect::<Vec<_>>());
        }
        let busy = kinds.iter().map(|kind| format!("{test}@{kind}"));
        std::iter::once(test.to_owned()).chain(busy).collect()
    }

    fn row(&self, kernel: &str) -> Option<&Row> {
        self.kernels.iter().find(|row| row.kernel == kernel)
    }

    /// The processor that the table has for `kernel`.
    #[must_use]
    pub fn cpu(&self, kernel: &str) -> Option<&str> {
        self.row(kernel)?.cpu.as_deref()
    }

    /// The words that the table has for the command line of `kernel`.
    #[must_use]
    pub fn append(&self, kernel: &str) -> Option<&str> {
        self.row(kernel)?.append.as_deref()
    }

    /// Whether `test` runs on `kernel`; on one that is not in the table, all do.
    #[must_use]
    pub fn runs(&self, kernel: &str, test: &str) -> bool {
        let Some(row) = self.row(kernel) else {
            return true;
        };
        let sets = [("core", &self.core), ("short", &self.short)];
        let in_set =
            |(name, set): (&str, &Vec<String>)| row.has(name) && set.iter().any(|s| s == test);
        !row.lacks(test) && (row.names(test) || sets.into_iter().any(in_set))
    }

    /// The same in `make check-long`: all tests on a kernel that says `long`, on any other
    /// the core set, on busy machines too, and what the kernel runs anyway.
    #[must_use]
    pub fn runs_long(&self, kernel: &str, test: &str) -> bool {
        let idle = test.split('@').next().unwrap_or(test);
        let core = self.core.iter().any(|name| name == idle);
        core || self.row(kernel).is_none_or(|row| row.has("long")) || self.runs(kernel, test)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::kernel;

    #[test]
    fn busy_machines_are_ways_of_a_test() {
        let plan =
            TestPlan::parse("6.12 all\n6.1 core\n6.1-rt a/x\n@ a/x full fragmented\n").unwrap();
        assert_eq!(
            plan.ways("a/x", true),
            ["a/x", "a/x@full", "a/x@fragmented"]
        );
        assert_eq!(plan.ways("a/y", true), ["a/y"]);
        assert!(plan.runs("6.12", "a/x@full"));
        assert!(plan.runs("6.1-rt", "a/x@full"));
        assert!(!plan.runs("6.1", "a/x@full"));
        assert!(TestPlan::parse("@ a/x\n").is_err());
    }

    #[test]
    fn a_kernel_leaves_tests_out() {
        let plan = TestPlan::parse("6.12 all -a/x@full -a/y\n6.1 core -a/x\n+ a/x\n").unwrap();
        assert!(plan.runs("6.12", "a/x"));
        assert!(!plan.runs("6.12", "a/x@full"));
        assert!(!plan.runs("6.12", "a/y"));
        assert!(!plan.runs("6.12", "a/y@full"));
        assert!(plan.runs("6.12", "a/z"));
        assert!(!plan.runs("6.1", "a/x"));
    }

    #[test]
    fn the_core_set_runs_on_busy_machines_in_the_long_check() {
        let plan =
            TestPlan::parse("6.12 all\n+ a/x\n+ a/y\n@ a/x full\n@ core full odd\n").unwrap();
        assert_eq!(plan.ways("a/x", false), ["a/x", "a/x@full"]);
        assert_eq!(plan.ways("a/y", false), ["a/y"]);
        assert_eq!(plan.ways("a/x", true), ["a/x", "a/x@full", "a/x@odd"]);
        assert_eq!(plan.ways("a/y", true), ["a/y", "a/y@full", "a/y@odd"]);
        assert_eq!(plan.ways("a/z", true), ["a/z"]);
        assert!(TestPlan::parse("@ core\n").is_err());
    }

    #[test]
    fn the_long_check_runs_all_on_some_kernels() {
        let plan =
            TestPlan::parse("6.12 all\n6.1 none long\n7.3 none\n7.3-rt b -b/y\n+ a/x\n").unwrap();
        let runs = |kernel: &str| {
            ["a/x", "a/x@full", "b/x", "b/y"].map(|test| u8::from(plan.runs_long(kernel, test)))
        };
        assert_eq!(runs("6.12"), [1, 1, 1, 1]);
        assert_eq!(runs("6.1"), [1, 1, 1, 1]);
        assert_eq!(runs("7.3"), [1, 1, 0, 0]);
        assert_eq!(runs("7.3-rt"), [1, 1, 1, 0]);
        assert!(!plan.runs("6.1", "a/x") && !plan.runs("7.3", "a/x"));
    }

    #[test]
    fn the_table_says_what_runs_where() {
        let plan = TestPlan::parse(
            "# x\n6.12\tall\n6.1 core\n6.1-rt core b c/x\n7.3 short cpu=x-1\n7.3-rt none append=x=1 append=y\n\n+ a/x\n+ a/z short\n",
        )
        .unwrap();
        assert!(plan.runs("6.12", "a/y"));
        assert!(plan.runs("6.1", "a/x"));
        assert!(!plan.runs("6.1", "a/y"));
        assert!(plan.runs("6.1", "a/z") && plan.runs("7.3", "a/z"));
        assert!(!plan.runs("7.3", "a/x"));
        assert_eq!([plan.cpu("7.3"), plan.cpu("7.3-rt")], [Some("x-1"), None]);
        assert_eq!(
            [plan.append("7.3-rt"), plan.append("7.3")],
            [Some("x=1 y"), None]
        );
        assert!(!plan.runs("7.3-rt", "a/z"));
        assert!(plan.runs("9.9", "a/y"));
        let ran = ["a/x", "a/y", "b/x", "c/x", "c/y"].map(|test| plan.runs("6.1-rt", test));
        assert_eq!(ran, [true, false, true, true, false]);
        let error = TestPlan::parse("6.12 all\n6.1\n").unwrap_err();
        assert!(error.starts_with("2: "), "{error}");
    }

    /// `AREA/NAME` of each file below `tests/guest` that is a test.
    fn guest_tests(root: &Path) -> Vec<String> {
        let inside = |dir: &Path| {
            fs::read_dir(dir)
                .unwrap()
                .map(|entry| entry.unwrap().path())
        };
        let is_area =
            |dir: &PathBuf| dir.is_dir() && !dir.ends_with("lib") && !dir.ends_with("inside");
        let is_test = |file: &PathBuf| {
            file.extension()
                .is_some_and(|kind| kind == "c" || kind == "sh")
        };
        inside(&root.join("tests/guest"))
            .filter(is_area)
            .flat_map(|area| inside(&area).filter(is_test).collect::<Vec<_>>())
            .map(|file| {
                let name = file.with_extension("");
                let name = name.strip_prefix(root.join("tests/guest")).unwrap();
                name.to_str().unwrap().to_owned()
            })
            .collect()
    }

    #[test]
    fn our_table_names_the_kernels_and_tests_that_there_are() {
        let root = crate::source_root().unwrap();
        let plan = TestPlan::read(&root).unwrap();
        let flavours = ["", "-rt", "-cloud", "-deb13", "-deb13-rt", "-deb13-cloud"];
        for name in kernel::names() {
            let series = |c: char| c.is_ascii_digit() || c == '.';
            let flavour = name.trim_start_matches(series).trim_end_matches("-16k");
            let flavour = flavour.strip_suffix("-arm64").unwrap_or(flavour);
            assert!(flavours.contains(&flavour), "{name}");
        }
        assert_eq!(plan.kernels.len(), kernel::names().len());
        let all = plan.kernels.iter().filter(|row| row.has("all"));
        let all: Vec<&str> = all.map(|row| row.kernel.as_str()).collect();
        assert_eq!(all, ["6.12", "6.12-arm64"], "one of each architecture");
        let is_there = |test: &str| {
            let file = root.join("tests/guest").join(test);
            file.is_dir() || file.with_extension("c").exists() || file.with_extension("sh").exists()
        };
        for set in plan.kernels.iter().flat_map(|row| &row.tests) {
            assert!(
                ["all", "core", "short", "none", "long"].contains(&set.as_str()) || is_there(set),
                "tests/kernels: there is no set, area or test {set}"
            );
        }
        for test in guest_tests(&root) {
            assert!(
                all.iter().any(|kernel| plan.runs(kernel, &test)),
                "tests/kernels: no 6.12 runs {test}"
            );
        }
        let left_out = plan.kernels.iter().flat_map(|row| &row.without);
        for test in plan.core.iter().chain(left_out) {
            let idle = test.split('@').next().unwrap_or(test);
            assert!(
                test.contains('/') && is_there(idle),
                "tests/kernels: there is no test {test}"
            );
        }
    }
}

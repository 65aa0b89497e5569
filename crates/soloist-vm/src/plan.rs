//! Which guest test runs on which kernel: the table in `tests/kernels`.

use std::fs;
use std::path::Path;

/// The table: kernels, and the core set of tests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Name of each kernel, and whether it runs every test.
    pub kernels: Vec<(String, bool)>,
    /// `AREA/NAME` of the tests that run on all kernels.
    pub core: Vec<String>,
}

impl Plan {
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
                [kernel, "all"] => plan.kernels.push(((*kernel).to_owned(), true)),
                [kernel, "core"] => plan.kernels.push(((*kernel).to_owned(), false)),
                _ => {
                    return Err(format!(
                        "{}: expected `KERNEL all`, `KERNEL core` or `+ AREA/TEST`",
                        at + 1
                    ))
                }
            }
        }
        Ok(plan)
    }

    /// Whether `test` runs on `kernel`; on one that is not in the table, all do.
    pub fn runs(&self, kernel: &str, test: &str) -> bool {
        let all = self
            .kernels
            .iter()
            .find(|(name, _)| name == kernel)
            .is_none_or(|(_, all)| *all);
        all || self.core.iter().any(|core| core == test)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed unwrap is a failed test
mod tests {
    use super::*;
    use crate::kernel;

    #[test]
    fn the_table_says_what_runs_where() {
        let plan = Plan::parse("# x\n6.12\tall\n6.1 core\n\n+ a/x\n").unwrap();
        assert!(plan.runs("6.12", "a/y"));
        assert!(plan.runs("6.1", "a/x"));
        assert!(!plan.runs("6.1", "a/y"));
        assert!(plan.runs("9.9", "a/y"));
        let error = Plan::parse("6.12 all\n6.1 some\n").unwrap_err();
        assert!(error.starts_with("2: "), "{error}");
    }

    #[test]
    fn our_table_names_the_kernels_and_tests_that_there_are() {
        let root = crate::source_root().unwrap();
        let plan = Plan::read(&root).unwrap();
        let names: Vec<&str> = plan.kernels.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, kernel::NAMES);
        assert_eq!(plan.kernels.iter().filter(|(_, all)| *all).count(), 2);
        for test in &plan.core {
            let file = root.join("tests/guest").join(test);
            assert!(
                file.with_extension("c").exists() || file.with_extension("sh").exists(),
                "tests/kernels: there is no test {test}"
            );
        }
    }
}

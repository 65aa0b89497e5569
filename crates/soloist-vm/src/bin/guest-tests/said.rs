//! What a guest and its tests said.

use std::fmt::Write as _;

use serde::Serialize;
use soloist_vm::{GuestOutcome, Verdict};

use super::guest::Guest;

/// One test of one kernel.
#[derive(Serialize)]
pub struct Test {
    pub name: String,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    pub seconds: f64,
    pub status: i32,
    /// The lines that say what failed.
    pub failures: Vec<String>,
    #[serde(skip)]
    pub output: String,
}

/// What one guest said.
#[derive(Serialize)]
pub struct GuestResult {
    pub name: String,
    #[serde(flatten)]
    pub guest: GuestOutcome,
    /// Why the guest was not well; a failure of its own.
    pub trouble: Option<String>,
    pub tests: Vec<Test>,
}

pub fn judge(guest: &Guest, mut outcome: GuestOutcome) -> GuestResult {
    let output = outcome.stdout.take().unwrap_or_default();
    let errors = outcome.stderr.take().unwrap_or_default();
    let tests = read_tests(&output);
    let trouble = match &outcome.verdict {
        _ if !outcome.troubles.is_empty() => Some(outcome.troubles[0].text.clone()),
        Verdict::Exit(0) => None,
        Verdict::Exit(status) => Some(format!("the tests' runner exited with {status}: {errors}")),
        other => Some(format!("{other:?}")),
    };
    GuestResult {
        name: guest.name.clone(),
        guest: outcome,
        trouble,
        tests,
    }
}

/// What `tests/guest/inside` printed, test by test.
fn read_tests(output: &str) -> Vec<Test> {
    let mut tests: Vec<Test> = Vec::new();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["@@", "start", name] => tests.push(Test {
                name: (*name).to_owned(),
                passed: 0,
                failed: 0,
                skipped: 0,
                seconds: 0.0,
                status: -1,
                failures: Vec::new(),
                output: String::new(),
            }),
            ["@@", "end", _, status, seconds] => {
                if let Some(test) = tests.last_mut() {
                    test.status = status.parse().unwrap_or(-1);
                    test.seconds = seconds.parse().unwrap_or(0.0);
                }
            }
            _ => {
                if let Some(test) = tests.last_mut() {
                    test.hear(line);
                }
            }
        }
    }
    tests.iter_mut().for_each(Test::close);
    tests
}

impl Test {
    fn hear(&mut self, line: &str) {
        self.output.push_str(line);
        self.output.push('\n');
        match line.split_whitespace().next() {
            Some("ok") => self.passed += 1,
            Some("skip") => self.skipped += 1,
            Some("FAIL") => {
                self.failed += 1;
                self.failures.push(line.to_owned());
            }
            Some("kernel:") => self.failures.push(line.to_owned()),
            _ => {}
        }
    }

    /// Counts what a test did not say itself.
    fn close(&mut self) {
        let why = match self.status {
            -1 => "FAIL did not end".to_owned(),
            124 | 137 => "FAIL ran out of time".to_owned(),
            0 if self.passed + self.failed + self.skipped == 0 => "FAIL checked nothing".to_owned(),
            status if status != 0 && self.failed == 0 => format!("FAIL exited with {status}"),
            _ => return,
        };
        self.failed += 1;
        self.failures.push(why);
    }
}

pub fn show(result: &GuestResult, verbose: bool) -> String {
    let mut text = String::new();
    let sum = |count: fn(&Test) -> usize| -> usize { result.tests.iter().map(count).sum() };
    let failed = sum(|t| t.failed) + usize::from(result.trouble.is_some());
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "{:<10} {} passed, {failed} failed, {} skipped  ({} tests, boot {:.1} s, {:.0} s)",
        result.name,
        sum(|t| t.passed),
        sum(|t| t.skipped),
        result.tests.len(),
        result.guest.boot_s.unwrap_or(f64::NAN),
        result.guest.wall_s,
    );
    for test in &result.tests {
        if verbose {
            let _ = write!(
                text,
                "  {} ({:.1} s)\n{}",
                test.name,
                test.seconds,
                indent(&test.output)
            );
        } else if test.failed > 0 {
            let _ = write!(
                text,
                "  {} ({:.1} s)\n{}",
                test.name,
                test.seconds,
                indent(&test.failures.join("\n"))
            );
        }
    }
    if let Some(trouble) = &result.trouble {
        let _ = write!(
            text,
            "  guest: {trouble}\n{}",
            indent(&result.guest.excerpt)
        );
        if let Some(log) = &result.guest.log {
            let _ = writeln!(text, "  console: {}", log.display());
        }
    }
    text
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_counted() {
        let tests = read_tests(
            "@@ start a/x\nok one\nFAIL two: why\nskip three: no\nkernel: [ 1.0] so\n\
             @@ end a/x 1 2.5\n\
             @@ start a/silent\n@@ end a/silent 0 0.1\n@@ start a/dies\nok one\n",
        );
        let counts: Vec<_> = tests
            .iter()
            .map(|t| (t.passed, t.failed, t.skipped))
            .collect();
        assert_eq!(counts, [(1, 1, 1), (0, 1, 0), (1, 1, 0)]);
        assert_eq!(tests[0].failures, ["FAIL two: why", "kernel: [ 1.0] so"]);
        assert_eq!(tests[2].failures, ["FAIL did not end"]);
    }

    #[test]
    fn a_status_without_a_word_is_a_failure() {
        let tests = read_tests("@@ start a/x\nok one\n@@ end a/x 139 2.5\n");
        assert_eq!(tests[0].failures, ["FAIL exited with 139"]);
    }
}

//! What is wrong with a scenario file, and where.

use std::fmt;

/// What is wrong with a scenario file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ScenarioError {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0: the whole file.
    pub line: usize,
    /// What was wrong and what was expected.
    pub message: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// The line of `text`, from 1, that first begins with `word`, else has it; 0: none.
/// Of a word of several lines, that of its last behind that of the line before.
#[must_use]
pub fn line_of(text: &str, word: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let mut last = 0;
    for part in word.split('\n') {
        let behind = lines[last..].iter();
        let begun = behind
            .clone()
            .position(|line| line.trim_start().starts_with(part));
        let at = begun.or_else(|| behind.clone().position(|line| line.contains(part)));
        last = at.map_or(last, |at| last + at + 1);
    }
    last
}

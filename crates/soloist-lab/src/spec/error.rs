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

/// The line of `text`, from 1, that first has `word`; 0: none. Of a word of several
/// lines, the first that has its last line behind one that has the line before.
pub(crate) fn line_of(text: &str, word: &str) -> usize {
    let mut lines = text.lines().enumerate();
    let mut last = 0;
    for part in word.split('\n') {
        last = lines
            .find(|(_, line)| line.contains(part))
            .map_or(last, |(i, _)| i + 1);
    }
    last
}

//! What is wrong with a scenario, and where in its file.

use std::sync::Arc;

use soloist_machine::{FileError, FileText};

/// What is wrong with a scenario, and the keys of its file that lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Keys of tables, and numbers, from 0, of elements of lists.
    pub path: Vec<String>,
    /// What was wrong and what was expected.
    pub message: String,
}

impl Wrong {
    /// What stands where `path` leads.
    pub fn at(path: &[&str], message: impl Into<String>) -> Self {
        Self {
            path: path.iter().map(|&key| key.to_owned()).collect(),
            message: message.into(),
        }
    }

    /// What a task says: at its name.
    pub fn of_task(number: usize, message: impl Into<String>) -> Self {
        Self::at(&["task", &number.to_string(), "name"], message)
    }
}

/// The file that a scenario was read from; empty where it was not.
#[derive(Debug, Clone, Default)]
pub struct Source(Arc<(String, String)>);

impl Source {
    /// The name of a file, and its text.
    #[must_use]
    pub fn new(file: &str, text: &str) -> Self {
        Self(Arc::new((file.to_owned(), text.to_owned())))
    }

    /// What is wrong, with its line.
    #[must_use]
    pub fn error(&self, wrong: Wrong) -> FileError {
        let (file, text) = &*self.0;
        let line = FileText { file, text }.line_of(&wrong.path);
        FileError::in_line(file, line, wrong.message)
    }
}

//! What is wrong with a scenario, and where in its file.

use std::sync::Arc;

use soloist_machine::{FileError, FileText, KeyError};

/// An error of the task with this number; it leads to the line of the task's name.
pub fn of_task(number: usize, message: impl Into<String>) -> KeyError {
    KeyError::at(&["task", &number.to_string(), "name"], message)
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
    pub fn error(&self, wrong: KeyError) -> FileError {
        let (file, text) = &*self.0;
        FileText { file, text }.of_key(wrong)
    }
}

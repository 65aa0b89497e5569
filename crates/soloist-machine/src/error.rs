//! What is wrong with a file, and where: the one error of everything that
//! people write.

use std::fmt;
use std::ops::Range;
use std::path::Path;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FileError {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// What was wrong and what was expected.
    pub message: String,
}

impl FileError {
    /// An error of the whole file.
    pub fn whole(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line: 0,
            message: message.into(),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.file, self.message)
        } else {
            write!(f, "{}:{}: {}", self.file, self.line, self.message)
        }
    }
}

/// A file's name and text, which errors are reported against.
#[derive(Debug, Clone, Copy)]
pub struct FileText<'a> {
    /// The file as it was named.
    pub file: &'a str,
    /// What is in it.
    pub text: &'a str,
}

impl FileText<'_> {
    /// The line, from 1, of the byte at `offset`.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// An error of what stands at `span`.
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> FileError {
        FileError {
            file: self.file.to_owned(),
            line: self.line(span.start),
            message: message.into(),
        }
    }

    /// What the TOML parser has to say.
    #[must_use]
    pub fn toml(&self, error: &toml::de::Error) -> FileError {
        FileError {
            file: self.file.to_owned(),
            line: error.span().map_or(0, |span| self.line(span.start)),
            message: error.message().trim_end().replace('\n', "; "),
        }
    }
}

/// A file's text, and the file's name as errors have it.
///
/// # Errors
/// When it can't be read.
pub fn read_text(path: &Path) -> Result<(String, String), FileError> {
    let file = path.display().to_string();
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return Err(FileError::whole(file, error.to_string())),
    };
    match String::from_utf8(bytes) {
        Ok(text) => Ok((text, file)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..at];
            Err(FileError {
                line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
                message: format!(
                    "byte {:#04x} is no text: save the file as UTF-8, if it is the right one",
                    error.as_bytes()[at]
                ),
                file,
            })
        }
    }
}

/// What is wrong and where it stands, before the file is known.
pub(crate) type Wrong = (Range<usize>, String);

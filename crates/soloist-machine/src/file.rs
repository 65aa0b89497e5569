//! What is wrong with a file, where, and what to do: the one error of everything
//! that people write.
//!
//! [`FileText`] is a file's name and text. It makes a [`FileError`] from what the
//! reader of the file knows: the span of a TOML value ([`FileText::error`]), the keys
//! that lead to one ([`KeyError`]), or an error of the TOML parser
//! ([`FileText::toml`]). A reader that counts lines itself takes
//! [`FileError::in_line`].
//!
//! A crate has an error type of its own only for kinds that its callers tell apart; what
//! one of these says of a file is a [`FileError`] inside.

use std::fmt::{self, Display};
use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FileError {
    /// The file as it was named; empty where only its text is known.
    pub file: String,
    /// Line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// Names the fault, the expected value and the remedy.
    pub message: String,
}

impl FileError {
    /// An error of the whole file.
    pub fn whole(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self::in_line(file, 0, message)
    }

    /// An error of a line, from 1.
    pub fn in_line(file: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            line,
            message: message.into(),
        }
    }

    /// The same error of a file that its finder did not know.
    #[must_use]
    pub fn of_file(self, file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            ..self
        }
    }
}

impl Display for FileError {
    /// `file:3: message`, without what is not known; `line 3: message` of no file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", 0) => {}
            ("", line) => write!(f, "line {line}: ")?,
            (file, 0) => write!(f, "{file}: ")?,
            (file, line) => write!(f, "{file}:{line}: ")?,
        }
        f.write_str(&self.message)
    }
}

/// An error of a value in a TOML file, made where neither file nor line is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KeyError {
    /// Keys of tables, and numbers, from 0, of elements of lists: `groups`, `video`,
    /// `bank_sets`.
    pub keys: Vec<String>,
    /// Names the fault, the expected value and the remedy.
    pub message: String,
}

impl KeyError {
    /// An error of the value or table that `keys` lead to.
    pub fn at(keys: &[&str], message: impl Into<String>) -> Self {
        Self {
            keys: keys.iter().map(ToString::to_string).collect(),
            message: message.into(),
        }
    }

    /// An error of the value at `key` in the table that `table` leads to, whose message
    /// begins with its place, as `[groups.video] bank_sets`; `what` follows.
    pub fn of(table: &[&str], key: &str, what: impl Display) -> Self {
        let place = format!("[{}] {key}{what}", table.join("."));
        Self::at(&[table, &[key]].concat(), place)
    }
}

/// A file's name and text, which errors are reported against.
#[derive(Debug, Clone, Copy)]
pub struct FileText<'a> {
    /// The file as it was named; empty where it has no name.
    pub file: &'a str,
    /// What is in it.
    pub text: &'a str,
}

impl FileText<'_> {
    /// The line, from 1, of the byte at `offset`.
    #[must_use]
    pub fn line(&self, offset: usize) -> usize {
        line_at(self.text.as_bytes(), offset)
    }

    /// The line, from 1, of the TOML value that `path` leads to: keys of tables,
    /// and numbers, from 0, of elements of lists. Of a value that is not in the text,
    /// the line of the innermost table or list around it that is; 0 where none is.
    ///
    /// ```
    /// use soloist_machine::FileText;
    ///
    /// let text = "[[task]]\nname = 'a'\n[[task]]\nname = 'b'\n";
    /// let file = FileText { file: "tasks.toml", text };
    /// assert_eq!(file.line_of(&["task", "1", "name"]), 4);
    /// assert_eq!(file.line_of(&["task", "1", "wcet"]), 3);
    /// assert_eq!(file.line_of(&["machine"]), 0);
    /// ```
    #[must_use]
    pub fn line_of(&self, path: &[impl AsRef<str>]) -> usize {
        let Ok(table) = DeTable::parse(self.text) else {
            return 0;
        };
        let span = path.split_first().and_then(|(key, rest)| {
            let (key, value) = table.get_ref().get_key_value(key.as_ref())?;
            Some(span_of(key.span(), value, rest))
        });
        span.map_or(0, |span| self.line(span.start))
    }

    /// An error of what stands at `span`.
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> FileError {
        FileError::in_line(self.file, self.line(span.start), message)
    }

    /// An error of what the keys lead to, with its line.
    #[must_use]
    pub fn of_key(&self, wrong: KeyError) -> FileError {
        FileError::in_line(self.file, self.line_of(&wrong.keys), wrong.message)
    }

    /// What the TOML parser has to say.
    #[must_use]
    pub fn toml(&self, error: &toml::de::Error) -> FileError {
        let line = error.span().map_or(0, |span| self.line(span.start));
        let message = error.message().trim_end().replace('\n', "; ");
        FileError::in_line(self.file, line, message)
    }
}

/// Where what `path` leads to stands, in `value` that begins at `here`.
fn span_of(
    here: Range<usize>,
    value: &Spanned<DeValue<'_>>,
    path: &[impl AsRef<str>],
) -> Range<usize> {
    let Some((step, rest)) = path.split_first() else {
        return here;
    };
    let step = step.as_ref();
    let inner = match value.get_ref() {
        DeValue::Table(table) => table
            .get_key_value(step)
            .map(|(key, value)| (key.span(), value)),
        DeValue::Array(list) => step
            .parse()
            .ok()
            .and_then(|at: usize| list.get(at))
            .map(|value| (value.span(), value)),
        _ => None,
    };
    inner.map_or(here, |(span, value)| span_of(span, value, rest))
}

fn line_at(text: &[u8], offset: usize) -> usize {
    let before = &text[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

/// A file's text, and the file's name as errors have it.
///
/// # Errors
/// When it can't be read, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<(String, String), FileError> {
    let file = path.display().to_string();
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => return Err(FileError::whole(file, error.to_string())),
    };
    String::from_utf8(bytes).map_or_else(
        |error| {
            let at = error.utf8_error().valid_up_to();
            let message = format!(
                "byte {:#04x} is no text: save the file as UTF-8, if it is the right one",
                error.as_bytes()[at]
            );
            let line = line_at(error.as_bytes(), at);
            Err(FileError::in_line(&file, line, message))
        },
        |text| Ok((text, file.clone())),
    )
}

/// What is wrong and where it stands, before the file is known.
pub(crate) type Wrong = (Range<usize>, String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_each_form_that_toml_has() {
        let text = "# [groups.a]\n[groups.a]\nllc = '0'\n bank_sets = '1'\n\n[ groups . 'b c' ]\n\
                    mode = 'x'\n[groups]\nd = { llc = '1' }\ne.llc = '2'\n[cpus]\n2 = 'x'\n";
        let file = FileText { file: "", text };
        for (path, line) in [
            (&["groups", "a", "bank_sets"][..], 4),
            (&["groups", "a", "reserve"], 2),
            (&["groups", "b c", "mode"], 7),
            (&["groups", "d", "llc"], 9),
            (&["groups", "e", "llc"], 10),
            (&["cpus", "2"], 12),
            (&["guard", "event"], 0),
            (&[], 0),
        ] {
            assert_eq!(file.line_of(path), line, "{path:?}");
        }
    }

    #[test]
    fn an_error_of_a_key_leads_to_its_line_or_to_none() {
        let text = "[groups.a]\nllc = '0'\n";
        let file = FileText {
            file: "c.toml",
            text,
        };
        let said = |table: &[&str], key| file.of_key(KeyError::of(table, key, ": x")).to_string();
        assert_eq!(said(&["groups", "a"], "llc"), "c.toml:2: [groups.a] llc: x");
        assert_eq!(
            said(&["groups", "a"], "reserve"),
            "c.toml:1: [groups.a] reserve: x"
        );
        assert_eq!(said(&["guard"], "event"), "c.toml: [guard] event: x");
    }

    #[test]
    fn an_error_names_what_is_known() {
        let error = FileError::in_line("", 3, "x");
        assert_eq!(error.to_string(), "line 3: x");
        assert_eq!(error.of_file("a").to_string(), "a:3: x");
        assert_eq!(FileError::whole("a", "x").to_string(), "a: x");
        assert_eq!(FileError::whole("", "x").to_string(), "x");
    }
}

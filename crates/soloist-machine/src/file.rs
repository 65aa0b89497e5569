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
use std::fs::File;
use std::io::Read;
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
        FileError::in_line(self.file, line, plain(&message))
    }
}

/// Names that parsers have for what they expect, and what a writer of files calls it.
const EXPECTED: [(&str, &str); 12] = [
    ("a map", "a table"),
    ("map", "a table"),
    ("a sequence", "a list"),
    ("a boolean", "true or false"),
    ("u8", "a whole number from 0 to 255"),
    ("u16", "a whole number from 0 to 65535"),
    ("u32", "a whole number from 0 to 4294967295"),
    ("u64", "a whole number from 0 to 9223372036854775807"),
    ("usize", "a whole number from 0 to 9223372036854775807"),
    ("i32", "a whole number"),
    ("i64", "a whole number"),
    ("f64", "a number"),
];

/// The message of a parser of TOML or JSON in words for who wrote the file: parsers name what
/// they expect by its type in Rust.
///
/// ```
/// use soloist_machine::file::plain;
///
/// let said = "invalid type: integer `5`, expected struct About at line 1";
/// assert_eq!(plain(said), "invalid type: integer `5`, expected a table at line 1");
/// ```
#[must_use]
pub fn plain(message: &str) -> String {
    let Some((found, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    let named = EXPECTED.iter().find_map(|(name, words)| {
        let rest = expected.strip_prefix(name)?;
        let is_whole = rest.is_empty() || rest.starts_with([' ', ';']);
        is_whole.then(|| format!("{words}{rest}"))
    });
    let expected = named.or_else(|| Some(format!("a table{}", behind_struct(expected)?)));
    match expected {
        Some(expected) => format!("{}, expected {expected}", found.replace(" as i128", "")),
        None => message.to_owned(),
    }
}

/// What stands behind `struct Name`, or `struct Name with 3 elements`.
fn behind_struct(expected: &str) -> Option<&str> {
    let rest = expected.strip_prefix("struct ")?;
    let rest = rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    let elements = rest.strip_prefix(" with ");
    let behind = elements.and_then(|rest| Some(rest.split_once(" element")?.1));
    Some(behind.map_or(rest, |behind| behind.trim_start_matches('s')))
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

/// No file that somebody wrote is larger; one that never ends, /dev/zero say, would take all
/// memory.
const MOST_BYTES: u64 = 256 << 20;

/// A file's text, and the file's name as errors have it.
///
/// # Errors
/// When it can't be read, has more than 256 MiB, or is not UTF-8.
pub fn read_text(path: &Path) -> Result<(String, String), FileError> {
    let file = path.display().to_string();
    let text = text_of(read_bytes(path)?, &file)?;
    Ok((text, file))
}

/// A file's bytes.
///
/// # Errors
/// When it can't be read, or has more than 256 MiB.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    let file = path.display().to_string();
    match File::open(path) {
        Ok(opened) => bytes_of(opened, &file),
        Err(error) => Err(FileError::whole(file, error.to_string())),
    }
}

/// The text of what is open already, standard input say; errors call it `file`.
///
/// # Errors
/// As [`read_text`].
pub fn text_from(open: impl Read, file: &str) -> Result<String, FileError> {
    text_of(bytes_of(open, file)?, file)
}

fn bytes_of(open: impl Read, file: &str) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    match open.take(MOST_BYTES + 1).read_to_end(&mut bytes) {
        Ok(size) if size as u64 <= MOST_BYTES => Ok(bytes),
        Ok(_) => Err(FileError::whole(file, TOO_LARGE)),
        Err(error) => Err(FileError::whole(file, error.to_string())),
    }
}

fn text_of(bytes: Vec<u8>, file: &str) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let message = format!(
            "byte {:#04x} is no text: save the file as UTF-8, if it is the right one",
            error.as_bytes()[at]
        );
        FileError::in_line(file, line_at(error.as_bytes(), at), message)
    })
}

const TOO_LARGE: &str = "it has more than 256 MiB: is it the right file?";

/// What is wrong and where it stands, before the file is known.
pub(crate) type Wrong = (Range<usize>, String);

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
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

    /// Who writes a file knows no Rust.
    #[test]
    fn no_error_names_a_type_of_rust() {
        for (said, words) in [
            ("x, expected struct About", "x, expected a table"),
            (
                "x, expected struct A with 13 elements; y",
                "x, expected a table; y",
            ),
            ("x, expected struct A with 1 element", "x, expected a table"),
            (
                "integer `9` as i128, expected u32",
                "integer `9`, expected a whole number from 0 to 4294967295",
            ),
            ("x, expected a map", "x, expected a table"),
            ("x, expected one of `a`, `b`", "x, expected one of `a`, `b`"),
            ("x, expected u256", "x, expected u256"),
            (
                "key with no value, expected `=`",
                "key with no value, expected `=`",
            ),
            ("missing field `x`", "missing field `x`"),
        ] {
            assert_eq!(plain(said), words);
        }
        let text = "machine = 5\n";
        let error = toml::from_str::<std::collections::BTreeMap<String, super::super::About>>(text);
        let file = FileText { file: "a", text };
        assert_eq!(
            file.toml(&error.unwrap_err()).to_string(),
            "a:1: invalid type: integer `5`, expected a table"
        );
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), format!("/dev/zero: {TOO_LARGE}"));
        let error = text_from(std::io::repeat(b' '), "standard input").unwrap_err();
        assert_eq!(error.to_string(), format!("standard input: {TOO_LARGE}"));
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

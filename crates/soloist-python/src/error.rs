//! Errors of the rooms as exceptions: with `file`, `line` and `message`.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use soloist_lab::taskset::ExperimentError;
use soloist_machine::FileError;
use soloist_rt::plan::refusal::PlanError;

create_exception!(
    soloist,
    SoloistError,
    PyValueError,
    "What is wrong with an input, where, and what to do.\n\n\
     Attributes: `message`; `file`, the file's name or None; `line`, from 1, or None."
);

/// The refusals of a room.
pub struct Refused(FileError);

impl Refused {
    /// Of a text that has no file, such as a dictionary's: the line says nothing to those
    /// who did not write it, so the message quotes it.
    pub fn quoting(self, file: &str, text: &str) -> Self {
        let Self(mut error) = self;
        let quoted = match error.line {
            0 => None,
            line => text.lines().nth(line - 1),
        };
        if error.file == file {
            if let Some(quoted) = quoted {
                error.message = format!("{} (at `{}`)", error.message, quoted.trim());
            }
            error.line = 0;
        }
        Self(error)
    }
}

impl From<FileError> for Refused {
    fn from(error: FileError) -> Self {
        Self(error)
    }
}

impl From<soloist_memory::Error> for Refused {
    fn from(error: soloist_memory::Error) -> Self {
        match error {
            soloist_memory::Error::File(error) => Self(error),
            other => Self::from(other.to_string()),
        }
    }
}

impl From<soloist_record::Error> for Refused {
    fn from(error: soloist_record::Error) -> Self {
        match error {
            soloist_record::Error::File(error) => Self(error),
            soloist_record::Error::Damaged { ref file, .. } => {
                let (file, what) = (file.display().to_string(), error.to_string());
                let what = what.strip_prefix(&format!("{file}: ")).unwrap_or(&what);
                Self(FileError::whole(&file, what))
            }
        }
    }
}

impl From<ExperimentError> for Refused {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::File(error) => Self(error),
            other => Self::from(other.to_string()),
        }
    }
}

impl From<PlanError> for Refused {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Memory(error) | PlanError::Task(error) => Self(error),
            other => Self::from(other.to_string()),
        }
    }
}

impl From<String> for Refused {
    fn from(message: String) -> Self {
        Self(FileError::whole("", message))
    }
}

impl From<Refused> for PyErr {
    fn from(Refused(error): Refused) -> Self {
        let raised = SoloistError::new_err(error.to_string());
        Python::attach(|py| {
            let value = raised.value(py);
            let file = (!error.file.is_empty()).then_some(&error.file);
            let line = (error.line > 0).then_some(error.line);
            let set = value
                .setattr("file", file)
                .and_then(|()| value.setattr("line", line))
                .and_then(|()| value.setattr("message", &error.message));
            set.err().unwrap_or(raised)
        })
    }
}

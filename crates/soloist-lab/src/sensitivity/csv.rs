//! Lines of claims under changes, as comma-separated values.

use std::io;

use csv::{Error, ReaderBuilder, WriterBuilder};

use super::{Change, Line};
use crate::judgement::table::ClaimLine;

const HEAD: [&str; 12] = [
    "of",
    "key",
    "value",
    "experiment",
    "claim",
    "kind",
    "theirs",
    "ours",
    "interval",
    "effect",
    "verdict",
    "converged",
];

/// The lines as comma-separated values.
///
/// # Errors
/// None that a writer into memory has.
pub fn write(lines: &[Line]) -> Result<String, Error> {
    let mut writer = WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    writer.write_record(HEAD)?;
    for line in lines {
        writer.serialize((&line.change, &line.claim))?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|e| Error::from(e.into_error()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What [`write`] wrote.
///
/// # Errors
/// The text is none of it; the error says which line.
pub fn read(text: &str) -> Result<Vec<Line>, Error> {
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .from_reader(text.as_bytes());
    let line = |record: Result<csv::StringRecord, Error>| {
        let (change, claim): (Change, ClaimLine) = record?.deserialize(None)?;
        Ok(Line { change, claim })
    };
    let mut records = reader.records();
    let head = records.next().transpose()?;
    if head.is_none_or(|head| head != HEAD[..]) {
        let why = "its first line does not name the columns";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why).into());
    }
    records.map(line).collect()
}

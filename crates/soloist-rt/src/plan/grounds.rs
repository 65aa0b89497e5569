//! What a verdict rests on beside the analysis: the machine's file, how far that can
//! be trusted, and which of its figures nobody vouches for.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use soloist_machine::about::Trust;
use soloist_machine::file::read_text;
use soloist_machine::{known, FileError, Machine};
use soloist_memory::platform::{data_caches, USUAL_CLOCK_MHZ};
use soloist_memory::Platform;

/// Figures of `[memory]` that bounds are made of; `core.prefetch_slots` where there
/// is a prefetcher, `controller.rank_cap` where there are ranks.
const FIGURES: [&str; 16] = [
    "device",
    "core.outstanding",
    "core.prefetch",
    "core.prefetch_slots",
    "core.tlb",
    "core.walk",
    "northbridge.request_ps",
    "northbridge.response_ps",
    "northbridge.bytes_per_us",
    "northbridge.victims",
    "controller.read_queue",
    "controller.write_queue",
    "controller.bank_queue",
    "controller.hit_cap",
    "controller.direction_cap",
    "controller.rank_cap",
];

/// The reason why a figure is a guess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The file has it, and says that no document does (`[memory.range]`).
    Guessed,
    /// The file leaves it to the model.
    LeftOut,
}

/// What a play takes for granted where the file has no clock, and no latency of a cache.
fn assumed(machine: &Machine) -> Vec<Guess> {
    let guess = |key: String, value: u32| Guess {
        key,
        value: value.to_string(),
        why: Why::LeftOut,
    };
    let clock = machine.topology.clock_mhz.is_none();
    let clock = clock.then(|| guess("topology.clock_mhz".to_owned(), USUAL_CLOCK_MHZ));
    let caches = machine.cache.iter().flat_map(data_caches);
    let silent = caches.filter(|(_, cache, _)| cache.latency.is_none());
    let levels = silent.map(|(name, _, cycles)| guess(format!("cache.{name}.latency"), cycles));
    clock.into_iter().chain(levels).collect()
}

/// A figure that bounds are made of and nobody vouches for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guess {
    /// Its key in `[memory]`, or with the table's name in another.
    pub key: String,
    /// The value that it was taken for.
    pub value: String,
    /// The reason why it is a guess.
    pub why: Why,
}

/// The machine's part of a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grounds {
    /// Its file.
    pub file: String,
    /// The trust that its map deserves.
    pub trust: Trust,
    /// Figures that are guesses.
    pub guessed: Vec<Guess>,
}

impl Grounds {
    /// Returns the grounds of a machine; `text` is its file's.
    #[must_use]
    pub fn of(machine: &Machine, text: &str) -> Self {
        let given: toml::Table = text.parse().unwrap_or_default();
        let given = given.get("memory").and_then(toml::Value::as_table);
        let taken = machine.memory.as_ref();
        let all = taken.and_then(|memory| toml::Table::try_from(memory).ok());
        let ranges = taken.map(|memory| &memory.range);
        let prefetches = taken.is_some_and(|memory| memory.core.prefetch);
        let guess = |key: &&str| {
            let why = match given.and_then(|table| at(table, key)) {
                None => Why::LeftOut,
                Some(_) if ranges.is_some_and(|r| r.contains_key(*key)) => Why::Guessed,
                Some(_) => return None,
            };
            Some(Guess {
                key: (*key).to_owned(),
                value: at(all.as_ref()?, key)?.to_string(),
                why,
            })
        };
        let ranks = Platform::of(machine).is_ok_and(|p| p.memory.geometry.ranks > 1);
        let counts = |key: &&&str| match **key {
            "core.prefetch_slots" => prefetches,
            "controller.rank_cap" => ranks,
            _ => true,
        };
        let figures = FIGURES.iter().filter(counts).filter_map(guess);
        Self {
            file: machine.file.clone(),
            trust: machine.about.trust,
            guessed: figures.chain(assumed(machine)).collect(),
        }
    }

    fn list(&self, why: Why) -> String {
        let some = self.guessed.iter().filter(|guess| guess.why == why);
        let some: Vec<String> = some.map(|g| format!("{} {}", g.key, g.value)).collect();
        some.join(", ")
    }
}

/// The text of a machine's file.
///
/// # Errors
/// As [`read_text`].
pub fn machine_text(machine: &Machine) -> Result<String, FileError> {
    let name = &machine.about.name;
    match known::text(name).filter(|_| machine.file == format!("machines/{name}.toml")) {
        Some(text) if !Path::new(&machine.file).exists() => Ok(text.to_owned()),
        _ => Ok(read_text(Path::new(&machine.file))?.0),
    }
}

/// `core.tlb` of a table of tables.
fn at<'a>(table: &'a toml::Table, key: &str) -> Option<&'a toml::Value> {
    match key.split_once('.') {
        Some((outer, inner)) => table.get(outer)?.as_table()?.get(inner),
        None => table.get(key),
    }
}

impl fmt::Display for Grounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the machine is as {} says (trust: {})",
            self.file, self.trust
        )?;
        for (why, says) in [
            (Why::Guessed, "guessed there"),
            (Why::LeftOut, "not there and the model's guess"),
        ] {
            let list = self.list(why);
            if !list.is_empty() {
                write!(f, "; {says}: {list}")?;
            }
        }
        Ok(())
    }
}

//! `[sweep]`: a number that varies, or several.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use soloist_machine::KeyError;

use super::Scenario;

/// A number that task fields may name as `"$name"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<u64>,
    /// Unit, for the plot's axis.
    #[serde(default)]
    pub unit: String,
}

/// `[sweep]`, or a `[[sweep]]` for each number that varies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sweeps(pub Vec<Sweep>);

impl Sweeps {
    /// None varies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for Sweeps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [one] => one.serialize(serializer),
            all => all.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Sweeps {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Sweeps;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("[sweep], or [[sweep]] for each of several")
            }

            // What has none says so in outcomes of older versions.
            fn visit_unit<E>(self) -> Result<Sweeps, E> {
                Ok(Sweeps::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Sweeps, A::Error> {
                let one = Sweep::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Sweeps(vec![one]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Sweeps, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Sweeps)
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

/// Where in its sweeps a case is: a value of each, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point(pub Vec<u64>);

impl Point {
    /// The first sweep's, which is a plot's x axis.
    pub fn first(&self) -> Option<u64> {
        self.0.first().copied()
    }
}

/// As in names of cases: `3`, or `3_16`.
impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.0.iter().map(u64::to_string).collect();
        f.write_str(&values.join("_"))
    }
}

/// Whether one of the values in it is `word`.
fn says(value: &serde_json::Value, word: &str) -> bool {
    match value {
        serde_json::Value::String(text) => text == word,
        serde_json::Value::Array(all) => all.iter().any(|value| says(value, word)),
        serde_json::Value::Object(all) => all.values().any(|value| says(value, word)),
        _ => false,
    }
}

impl Scenario {
    /// Every combination of values; without a sweep, one of none.
    pub fn points(&self) -> Vec<Point> {
        let mut points = vec![Point::default()];
        for sweep in &self.sweep.0 {
            let with = |point: &Point| {
                let point = point.clone();
                let values = sweep.values.iter();
                let all: Vec<Point> = values
                    .map(|&v| Point([&point.0[..], &[v]].concat()))
                    .collect();
                all
            };
            points = points.iter().flat_map(with).collect();
        }
        points
    }

    /// Sweeps that something varies with: otherwise their cases would be equal.
    ///
    /// # Errors
    /// The sweep that nothing names.
    pub fn check_sweeps(&self) -> Result<(), KeyError> {
        let tasks = serde_json::to_value(&self.tasks).unwrap_or_default();
        let model = serde_json::to_value(&self.model).unwrap_or_default();
        for (number, sweep) in self.sweep.0.iter().enumerate() {
            let word = format!("${}", sweep.name);
            if says(&tasks, &word) || says(&model, &word) {
                continue;
            }
            let number = number.to_string();
            let path: &[&str] = match self.sweep.0.len() {
                1 => &["sweep", "name"],
                _ => &["sweep", &number, "name"],
            };
            let what = format!("nothing says {word:?}: the cases of all values would be equal");
            return Err(KeyError::at(path, what));
        }
        Ok(())
    }

    /// The names of the sweeps with the values of `point`.
    pub fn named<'a>(&'a self, point: &Point) -> Vec<(&'a str, u64)> {
        let names = self.sweep.0.iter().map(|s| s.name.as_str());
        names.zip(point.0.iter().copied()).collect()
    }
}

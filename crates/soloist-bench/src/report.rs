//! All that `soloist bench silicon` found: it prints this as JSON, and `soloist advise` reads it.

use serde::{Deserialize, Serialize};
use soloist_detect::cache::eviction::Eviction;
use soloist_host::machine::guest::is_bare_metal;
use soloist_host::machine::{cpu_name, Host};
use soloist_machine::file::plain;

use crate::banks::sets::Sets;
use crate::in_slices::InSlices;
use crate::origin::{self, Here};
use crate::pages::Split;
use crate::two_banks::Measured;

/// That a report names.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Results of the experiments. Advice uses nothing of those with two banks, so they are not read
/// back.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Report {
    /// The version that wrote it.
    #[serde(skip_deserializing)]
    pub soloist: &'static str,
    /// The machine; empty: nothing was measured.
    pub machine: String,
    /// Whether that is a virtual machine.
    pub virtual_machine: bool,
    /// Processors of the victim and its neighbour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<(usize, usize)>,
    /// Bytes of the pages that lines were found in.
    pub page_bytes: u64,
    /// Unit of the levels of `sets`.
    #[serde(skip_deserializing)]
    pub unit: &'static str,
    /// Lines of two banks.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub sets: Option<Sets>,
    /// Costs of neighbours in the same bank.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub measured: Option<Measured>,
    /// Whether a co-runner in the same bank was shown to cost something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<bool>,
    /// Why nothing could be measured with two banks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The experiments in slices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices: Option<InSlices>,
    /// Why there are no slices, if that was tried: to measure is no advice then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slices_why: Option<String>,
    /// Whole pages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pages: Vec<Split>,
    /// Why there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages_why: Option<String>,
    /// Page colours of the last-level cache, by which pages push each other out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<Eviction>,
    /// Why they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_why: Option<String>,
}

/// The name of this machine in a report.
fn name_of(host: &Host) -> String {
    cpu_name(host).unwrap_or_else(|| "a processor without a name".to_owned())
}

impl Report {
    /// Of a machine of which nothing is known yet.
    #[must_use]
    pub fn of(machine: String, unit: &'static str) -> Self {
        Self {
            soloist: VERSION,
            machine,
            unit,
            ..Self::default()
        }
    }

    /// Of this machine, of which nothing is measured yet.
    #[must_use]
    pub fn of_host(host: &Host, unit: &'static str) -> Self {
        let mut report = Self::of(name_of(host), unit);
        report.virtual_machine = !is_bare_metal(host);
        report
    }

    /// Whether anything was measured.
    #[must_use]
    pub fn has_any(&self) -> bool {
        self.measured.is_some()
            || self.slices.is_some()
            || !self.pages.is_empty()
            || self.cache.is_some()
    }

    /// Why not one experiment could be measured, where the reason is the same for all.
    #[must_use]
    pub fn why_nothing(&self) -> Option<&str> {
        let why = self.why.as_deref();
        let all = [&self.slices_why, &self.pages_why];
        why.filter(|_| all.iter().all(|other| other.as_deref() == why))
    }

    /// Why the page colours of the cache are not known, if that was tried.
    #[must_use]
    pub fn cache_why(&self) -> Option<&str> {
        self.cache_why.as_deref().or(self.pages_why.as_deref())
    }

    /// Reads what `soloist bench silicon --json` wrote.
    ///
    /// # Errors
    /// When it is nothing of the kind, another version's, or has nothing that advice rests on.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("not what `soloist bench silicon --json` writes{why}");
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| wrong(&format!(": {e}")))?;
        if !value.is_object() {
            return Err(wrong(""));
        }
        let other = by_another(&value);
        let report: Self = serde_json::from_value(value)
            .map_err(|e| other.unwrap_or_else(|| wrong("")) + ": " + &plain(&e.to_string()))?;
        let of_slices = report.slices.is_some() || report.slices_why.is_some();
        let of_cache = report.cache.is_some() || report.cache_why().is_some();
        match of_slices || of_cache {
            true => Ok(report),
            false => Err(
                "it has no slices and no count of cache colours: `soloist bench silicon --json` \
                         writes both without --only"
                    .to_owned(),
            ),
        }
    }

    /// Adds what another report has.
    ///
    /// # Errors
    /// When it is of another machine, or has an experiment that is here already.
    pub fn take(&mut self, other: Self) -> Result<(), String> {
        let is_twice = self.slices.is_some() && other.slices.is_some()
            || self.cache.is_some() && other.cache.is_some();
        if is_twice {
            return Err("a file before it has the same experiment: give one of them".to_owned());
        }
        if !self.machine.is_empty() && self.machine != other.machine {
            return Err("it is of another machine than the file before it".to_owned());
        }
        self.machine = other.machine;
        self.slices = self.slices.take().or(other.slices);
        self.slices_why = self.slices_why.take().or(other.slices_why);
        self.cache = self.cache.take().or(other.cache);
        self.cache_why = self.cache_why.take().or(other.cache_why);
        self.pages_why = self.pages_why.take().or(other.pages_why);
        self.pages.extend(other.pages);
        Ok(())
    }

    /// The machine that was simulated; `None`: it is a real one.
    #[must_use]
    pub fn simulated(&self) -> Option<&str> {
        origin::simulated(&self.machine)
    }

    /// Processors that took part; `None`: nobody knows.
    fn processors(&self) -> Option<usize> {
        let of_slices = self.slices.as_ref().map(|slices| slices.processors);
        let of_pages = self.pages.first().map(|split| split.neighbours + 1);
        of_slices.or(of_pages)
    }

    /// Whether the figures are of this machine, or of the simulated one that is `named`.
    ///
    /// # Errors
    /// When they are not, with the reason.
    pub fn is_of(&self, host: &Host, named: Option<&str>) -> Result<(), String> {
        if self.machine.is_empty() {
            return match self.slices.is_none() && self.cache.is_none() {
                true => Ok(()),
                false => Err("it names no machine".to_owned()),
            };
        }
        let here = Here {
            machine: &name_of(host),
            processors: available(),
            named,
        };
        let processors = self.processors().unwrap_or(1);
        origin::objection(&self.machine, processors, here).map_or(Ok(()), Err)
    }
}

/// The objection to figures that have other fields than this version's; `None`: it is no
/// measurement.
fn by_another(value: &serde_json::Value) -> Option<String> {
    let has_figures = ["slices", "pages", "cache"]
        .iter()
        .any(|part| value.get(part).is_some());
    let is_measured = value.get("machine").is_some() && has_figures;
    let by = match value.get("soloist").and_then(serde_json::Value::as_str) {
        Some(version) => format!("soloist {version}"),
        None => "an older soloist".to_owned(),
    };
    is_measured
        .then(|| format!("{by} wrote it, and this one, {VERSION}, can't read it: measure again"))
}

/// Processors of this machine that this process may use.
fn available() -> usize {
    std::thread::available_parallelism().map_or(usize::MAX, usize::from)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Advice says the same from a file as at once.
    #[test]
    fn what_is_written_is_read_back() {
        let mut report = Report::of("AMD EPYC".to_owned(), "cycles");
        report.pages_why = Some("the kernel names no last-level cache".to_owned());
        let text = serde_json::to_string(&report).unwrap();
        let back = Report::parse(&text).unwrap();
        assert_eq!(back.machine, report.machine);
        assert_eq!(back.cache_why(), report.cache_why());
        assert!(back.cache_why().is_some());
        report.pages_why = None;
        let text = serde_json::to_string(&report).unwrap();
        assert!(Report::parse(&text).unwrap_err().contains("no slices"));
    }
}

//! What a source of maps said.

use std::fmt;

use serde::Serialize;
use soloist_host::machine::{cpu_name, Host};
use soloist_machine::{About, MapSpec, Trust};

use soloist_map::compare;
use soloist_map::sources::firmware::NodeProof;

/// One place that maps come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A machine of `soloist map list` whose file agrees with this host.
    Known,
    /// The firmware's address translation (Intel servers; module loaded, root).
    Firmware,
    /// Registers of AMD Family 10h (root); Intel's clients have some that say where
    /// memory lies, which the other sources use.
    Registers,
    /// Timing of row conflicts.
    Timing,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Known => "known",
            Self::Firmware => "firmware",
            Self::Registers => "registers",
            Self::Timing => "timing",
        })
    }
}

/// A map that a source has.
#[derive(Debug)]
pub struct Candidate {
    /// Its name, and how far it is to be trusted.
    pub about: About,
    /// The map.
    pub map: MapSpec,
    /// What is to be said of it, in sentences.
    pub notes: Vec<String>,
}

/// What one place said.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// The source.
    pub from: Source,
    /// Its answer, in words.
    pub found: String,
    /// How the firmware's translation of each node stood up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeProof>,
    /// The map, where it has one.
    #[serde(skip)]
    pub map: Option<Candidate>,
    /// The map of a source that knows of channels only: others go before it.
    #[serde(skip)]
    pub channels: Option<Candidate>,
}

impl Finding {
    /// Nothing came of it, for the reason `found`.
    pub(crate) fn nothing(from: Source, found: String) -> Self {
        Self {
            from,
            found,
            nodes: Vec::new(),
            map: None,
            channels: None,
        }
    }

    /// Where its channels contradict a map's banks, in words; `None`: it knows
    /// of no channels.
    pub fn against(&self, map: &MapSpec) -> Option<Vec<String>> {
        let own = self.channels.as_ref()?;
        let wrong = compare::channels(&own.map, map).into_iter();
        Some(wrong.map(|why| format!("amd_atl: {why}")).collect())
    }
}

/// The head of a map from `name`.
pub(crate) fn about(host: &Host, name: &str, trust: Trust, source: &str) -> About {
    About {
        name: name.into(),
        description: format!(
            "from the {name} of {}",
            cpu_name(host).unwrap_or_else(|| "this machine".into())
        ),
        trust,
        source: vec![format!("soloist map detect --from {name}: {source}")],
    }
}

//! `[[claim]]`: what is said of the outcome.

use serde::{Deserialize, Serialize};

/// `[[claim]]`: a printed figure beside ours.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In words.
    pub what: String,
    /// Expression over measured values.
    pub ours: String,
    /// `ours` is computed for every value of the sweep, which is put in place
    /// of `$`, and this is taken of them.
    pub over: Option<Over>,
    /// What the paper prints.
    pub theirs: Option<f64>,
    /// What `ours` and `theirs` would be if there were no effect (default: 1
    /// without `unit`, a ratio, else 0): tolerance is on the distance from it.
    pub from: Option<f64>,
    /// Tolerance in the unit of `theirs` instead, for what the paper prints as
    /// no effect; such a claim is an order.
    pub margin: Option<f64>,
    /// Or: comparisons joined by `&&` that hold (order of policies).
    pub holds: Option<String>,
    /// Default: an order with `holds` or `margin`, else predicted.
    pub kind: Option<ClaimKind>,
    /// What else the papers print of the same, and where: the claim counts for
    /// neither side.
    pub contradicted: Option<String>,
    /// Unit for printing.
    #[serde(default)]
    pub unit: String,
}

/// What a claim's figure is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimKind {
    /// The model was calibrated on it, or the program made from it.
    Fitted,
    /// Nothing was chosen by it.
    Predicted,
    /// Which is larger; holds only where the intervals are apart.
    Order,
    /// Measured on real DRAM, and predicted from documents: counted by itself.
    Silicon,
    /// In no paper and measured nowhere: counts for nothing.
    Own,
    /// One thing of another experiment is changed: counts for nothing.
    Ablation,
}

impl ClaimKind {
    /// It counts for or against the model.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self, Self::Predicted | Self::Order | Self::Silicon)
    }

    /// A claim of this kind may be an order, which prints no figure.
    #[must_use]
    pub fn orders(self) -> bool {
        matches!(self, Self::Order | Self::Silicon | Self::Own)
    }
}

/// Where an experiment's claims are from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// A paper prints them.
    #[default]
    Paper,
    /// They were measured on real DRAM.
    Silicon,
    /// Nobody published them: they say what one hopes for.
    Own,
    /// One thing of another experiment is changed.
    Ablation,
}

impl Claim {
    /// Its kind in an experiment whose claims are from `basis`.
    pub fn kind(&self, basis: Basis) -> ClaimKind {
        let usual = match (&self.holds, self.margin) {
            (None, None) => ClaimKind::Predicted,
            _ => ClaimKind::Order,
        };
        match basis {
            Basis::Paper => self.kind.unwrap_or(usual),
            Basis::Silicon => ClaimKind::Silicon,
            Basis::Own => ClaimKind::Own,
            Basis::Ablation => ClaimKind::Ablation,
        }
    }

    /// What its figure would be if there were no effect.
    pub fn neutral(&self) -> f64 {
        let usual = if self.unit.is_empty() { 1.0 } else { 0.0 };
        self.from.unwrap_or(usual)
    }
}

/// What a claim takes of its values over the sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// Arithmetic mean.
    Mean,
    /// Geometric mean.
    Geomean,
    /// Least.
    Min,
    /// Greatest.
    Max,
}

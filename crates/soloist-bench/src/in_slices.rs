//! The experiments in slices, one after the other, and what all of them say together.

use serde::{Deserialize, Serialize};
use soloist_core::format_size;
use soloist_machine::gf2;

use crate::banks::{Banks, How};
use crate::channels;
use crate::channels::Channels;
use crate::cores::{Attack, Cores};
use crate::density::Density;
use crate::paced;
use crate::paced::Paced;
use crate::slices;
use crate::slices::{Cell, Plan};
use crate::whole;
use crate::whole::Whole;

/// Banks of the slice that neighbours are paced in.
const PACED_BANKS: usize = 16;

/// The experiments in slices.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct InSlices {
    /// Bank functions inside a page; none: lines were found pair by pair.
    pub functions: Vec<String>,
    /// Banks that memory has, by functions or by how often random pairs conflict; `None`:
    /// nobody knows.
    pub banks: Option<f64>,
    /// Bytes of the kernel's pages.
    #[serde(default = "four_kib")]
    pub frame_bytes: u64,
    /// Colours that these pages have by those functions, for banks; `None`: not known.
    pub page_colors: Option<usize>,
    /// Processors that took part.
    pub processors: usize,
    /// Processors that the machine has; `None`: a file does not say, so it is taken to have
    /// those that took part.
    #[serde(default)]
    pub machine_processors: Option<usize>,
    /// Slices.
    pub cells: Vec<Cell>,
    /// All of memory, where no slice is of all banks.
    pub whole: Vec<Whole>,
    /// Paced neighbours.
    pub paced: Vec<Paced>,
    /// Other channels; `None`: no functions, or neighbours hardly ran.
    pub channels: Option<Channels>,
    /// Banks for each busy core.
    pub density: Density,
}

/// Of a file that says nothing of them.
fn four_kib() -> u64 {
    4096
}

impl InSlices {
    /// Runs all experiments; `plan.time` is that of the slices, the others take a part of
    /// it more.
    pub fn measure(
        cores: &mut dyn Cores,
        banks: &Banks,
        plan: Plan,
        progress: &mut dyn FnMut(&str, f64),
    ) -> Self {
        let mut tell = |share| progress("slices of few banks", share);
        let cells = slices::measure(cores, banks, plan, &mut tell);
        let part = Plan {
            time: plan.time / 6,
            ..plan
        };
        let mut tell = |share| progress("all of memory", share);
        let whole = whole::measure(cores, banks, part, &mut tell);
        let size = banks.sizes().into_iter().find(|&size| size <= PACED_BANKS);
        let mut paced = Vec::new();
        for attack in [Attack::Read, Attack::Write] {
            let mut tell = |share| progress("co-runners paced", share);
            let curve =
                size.and_then(|size| paced::measure(cores, banks, size, attack, part, &mut tell));
            paced.extend(curve);
        }
        let mut tell = |share| progress("other channels", share);
        let channels = channels::measure(cores, banks, part, &mut tell);
        let processors = cores.most_neighbours() + 1;
        let sets = banks.page_sets().len();
        Self {
            functions: match &banks.how {
                How::Functions(functions) => functions.iter().map(|&f| gf2::show(f)).collect(),
                How::Pairs => Vec::new(),
            },
            banks: banks.total,
            frame_bytes: 1 << banks.frame_shift,
            page_colors: banks.are_all().then_some(sets),
            processors,
            machine_processors: Some(cores.processors()),
            density: Density::of(&cells, banks.total, cores.processors()),
            cells,
            whole,
            paced,
            channels,
        }
    }

    /// Whether a slice can be of all banks: functions say which there are.
    #[must_use]
    pub fn has_all_banks(&self) -> bool {
        !self.functions.is_empty()
    }

    /// Whether so many tasks leave processors of the machine idle.
    #[must_use]
    pub fn is_of_few_processors(&self, tasks: usize) -> bool {
        tasks < self.machine_processors.unwrap_or(self.processors)
    }

    /// The processors that so many tasks keep busy, in words. Those that took part may be more:
    /// where co-runners hardly ran, only few of them made a figure.
    #[must_use]
    pub fn busy(&self, tasks: usize) -> String {
        match self.machine_processors.unwrap_or(self.processors) {
            all if all > tasks => format!("{tasks} of {all} CPUs"),
            _ => "all CPUs".to_owned(),
        }
    }

    /// What all of it says, a sentence each; of slices, those beside most neighbours.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let most = self.cells.iter().map(|cell| cell.neighbours).max();
        let cells = self
            .cells
            .iter()
            .filter(|cell| Some(cell.neighbours) == most);
        let mut all: Vec<String> = cells.map(Cell::verdict).collect();
        all.extend(self.whole.iter().map(Whole::verdict));
        all.extend(self.paced.iter().map(Paced::verdict));
        all.extend(self.channels.iter().map(Channels::verdict));
        if let (Some(colors), Some(banks)) = (self.page_colors, self.banks) {
            let page = format_size(self.frame_bytes);
            let touched = banks / colors.max(1) as f64;
            all.push(match colors {
                0 | 1 => format!("Pages of {page} have no bank colours here: each lies in all banks."),
                _ => format!(
                    "Pages of {page} have {colors} bank colours by what was seen of the functions; each lies \
                     in {touched:.0} {}.",
                    if touched < 1.5 { "bank" } else { "banks" }
                ),
            });
        }
        if !self.cells.is_empty() {
            all.push(self.density.verdict());
        }
        all
    }
}

//! Everything else: one group for all tasks that are in no other, on the bank sets that
//! no exclusive group has.

use soloist_core::{AddrMap, NumList};

use crate::control::group::{Exhaust, Group};
use crate::control::interface::Control;
use crate::machine::EVERYTHING_ELSE;
use crate::HostError;

impl Control {
    /// Bank sets that no exclusive group has, but `except`.
    pub fn shared_sets(&self, map: &AddrMap, except: &str) -> Result<NumList, HostError> {
        let mut sets = NumList::new(map.n_bank_sets());
        for node in map.memory_nodes() {
            for set in map.sets_of_node(node) {
                sets.insert(set);
            }
        }
        let taken = self.each_group(|group| match group.is_exclusive()? {
            true if group.name() != except => group.colors(map).map(Some),
            _ => Ok(None),
        })?;
        // Rules make exclusive groups.
        let implicit = self.implicit_groups(map)?;
        let taken = taken.into_iter().flatten();
        for colors in taken.chain(implicit.into_iter().map(|group| group.colors)) {
            for set in colors.sets().into_iter().flat_map(NumList::iter) {
                sets.remove(set);
            }
        }
        Ok(sets)
    }
}

impl Group {
    /// Takes in all tasks that are in no group, and those that come. Without colours of
    /// its own (`colored` is false) it gets all that no exclusive group has. It spills
    /// beyond them unless `exhaust` says otherwise: a system that finds no page would not
    /// live long.
    pub fn take_everything_else(
        &self,
        map: &AddrMap,
        colored: bool,
        exhaust: Option<Exhaust>,
    ) -> Result<(), HostError> {
        if !colored {
            let sets = self.control().shared_sets(map, self.name())?;
            if sets.is_empty() {
                return Err(HostError::Request(
                    "--everything-else: exclusive groups have all bank sets; none is left"
                        .to_owned(),
                ));
            }
            self.set_bank_set(&sets.to_string())?;
        }
        self.set_exhaust(exhaust.unwrap_or(Exhaust::Spill))?;
        self.set_cgroups(&[EVERYTHING_ELSE.to_owned()])
    }
}

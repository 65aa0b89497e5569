//! Policies: where the pages of each program of a set come from, which ways of the
//! last-level cache it may fill, and what bandwidth it gets.
//!
//! A policy is a value that implements [`Policy`], in a file of this folder, which lists
//! it in its `POLICIES`. The build finds the files ([`all`]). Most only choose colours
//! ([`Coloring`]): core's palette checks them, and core's frame lists hand out the pages
//! ([`crate::placement`]).

use std::fmt;
use std::str::FromStr;

use soloist_core::{AddrMap, ColorSet, Palette, Refusal, Want};
use soloist_memory::system::Guard;
use soloist_memory::Platform;

/// Makes of the files of this folder the list of policies.
macro_rules! each_file {
    ($(($module:ident, $_:ident))*) => {
        static FILES: &[&[&dyn Policy]] = &[$($module::POLICIES),*];
    };
}

include!(concat!(env!("OUT_DIR"), "/policy.rs"));

/// All that files and commands can name: file by file, and as each file lists them.
pub fn all() -> impl Iterator<Item = &'static dyn Policy> {
    FILES.iter().copied().flatten().copied()
}

/// What each program of a set gets. What a policy does not say, Linux decides: any
/// page of the nearest node, all ways, all bandwidth.
pub trait Policy: Sync {
    /// The name that files and reports use.
    fn name(&self) -> &'static str;

    /// What it is, for people.
    fn title(&self) -> &'static str;

    /// Whether [`Self::colors`] gives any. If not, all pages come from Linux.
    fn is_colored(&self) -> bool {
        false
    }

    /// The colours of each tenant; `None`: uncoloured.
    ///
    /// # Errors
    /// When the machine has not enough of them.
    fn colors(&self, map: &AddrMap, tenants: &[Tenant]) -> Result<Vec<Option<ColorSet>>, Refusal> {
        let _ = map;
        Ok(vec![None; tenants.len()])
    }

    /// Whether coloured pages come from all nodes in turn, not the local one's first.
    fn ignores_nodes(&self) -> bool {
        false
    }

    /// Whether uncoloured pages come from all nodes in turn.
    fn interleaves(&self) -> bool {
        false
    }

    /// Whether banks alone show what it does: it can be played on a slice of a machine's
    /// memory, which has one node, one channel, and no part in caches.
    fn fits_slice(&self) -> bool {
        false
    }

    /// Whether all tenants but the first share what the first one leaves.
    fn shares_rest(&self) -> bool {
        false
    }

    /// The node that the uncoloured pages of each program are bound to; `homes` are the nodes
    /// with memory that are nearest to their cores.
    fn nodes(&self, map: &AddrMap, homes: &[u32]) -> Vec<Option<u32>> {
        let _ = map;
        vec![None; homes.len()]
    }

    /// The node that program number `program` is bound to where all are at home on `home`.
    fn node(&self, map: &AddrMap, home: u32, program: usize) -> Option<u32> {
        let nodes = self.nodes(map, &vec![home; program + 1]);
        nodes.last().copied().flatten()
    }

    /// How many ways of its last-level cache each core may fill, by the core's number; 0: all.
    /// `busy` are the cores that run a program.
    fn ways(&self, platform: &Platform, busy: &[usize]) -> Option<Vec<usize>> {
        let _ = (platform, busy);
        None
    }

    /// Whether [`Self::guard`] holds anybody back.
    fn is_regulated(&self) -> bool {
        false
    }

    /// What holds back the fills of cores: `front` run what is waited for, `back` what
    /// runs beside it.
    ///
    /// # Errors
    /// When the regulator refuses.
    fn guard(
        &self,
        platform: &Platform,
        front: &[usize],
        back: &[usize],
    ) -> Result<Option<Box<dyn Guard>>, Refusal> {
        let _ = (platform, front, back);
        Ok(None)
    }
}

impl PartialEq for dyn Policy + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Policy + '_ {}

impl fmt::Debug for dyn Policy + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for dyn Policy + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Colours that somebody else has chosen.
pub struct Given(
    /// Of each tenant.
    pub Vec<Option<ColorSet>>,
);

impl Policy for Given {
    fn name(&self) -> &'static str {
        "given"
    }

    fn title(&self) -> &'static str {
        "given colours"
    }

    fn is_colored(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    fn colors(&self, _map: &AddrMap, _: &[Tenant]) -> Result<Vec<Option<ColorSet>>, Refusal> {
        Ok(self.0.clone())
    }
}

/// There is no policy of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no policy `{0}`; there are: {names}", names = names().join(", "))]
pub struct UnknownPolicy(pub String);

fn names() -> Vec<&'static str> {
    all().map(|policy| policy.name()).collect()
}

impl FromStr for &'static dyn Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        all()
            .find(|policy| policy.name() == name)
            .ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// A program, or a thread of one, that wants colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenant {
    /// Node of the core that it is pinned to; it has memory.
    pub node: u32,
    /// Bank sets that it needs.
    pub sets: u32,
}

/// A policy that only chooses colours, tenant by tenant.
pub struct Coloring {
    name: &'static str,
    title: &'static str,
    choose: Choose,
    ignores_nodes: bool,
    fits_slice: bool,
    shares_rest: bool,
}

/// The colours of the tenant whose turn it is.
pub type Choose = fn(&Turn) -> Result<ColorSet, Refusal>;

impl Coloring {
    /// See [`Policy::name`] and [`Policy::title`]; pages come from the local node first.
    #[must_use]
    pub const fn new(name: &'static str, title: &'static str, choose: Choose) -> Self {
        Self {
            name,
            title,
            choose,
            ignores_nodes: false,
            fits_slice: false,
            shares_rest: false,
        }
    }

    /// See [`Policy::ignores_nodes`].
    #[must_use]
    pub const fn from_all_nodes(mut self) -> Self {
        self.ignores_nodes = true;
        self
    }

    /// See [`Policy::fits_slice`].
    #[must_use]
    pub const fn on_slices(mut self) -> Self {
        self.fits_slice = true;
        self
    }

    /// See [`Policy::shares_rest`].
    #[must_use]
    pub const fn sharing_the_rest(mut self) -> Self {
        self.shares_rest = true;
        self
    }
}

/// The tenant whose turn it is to get colours.
pub struct Turn<'a> {
    map: &'a AddrMap,
    /// What those before it got.
    palette: &'a Palette,
    tenants: &'a [Tenant],
    /// Its number.
    index: usize,
}

impl Turn<'_> {
    fn tenant(&self) -> Tenant {
        self.tenants[self.index]
    }

    /// How many tenants there are.
    fn count(&self) -> usize {
        self.tenants.len()
    }

    /// The node of the first tenant.
    fn home(&self) -> u32 {
        self.tenants[0].node
    }

    /// A node of its own, if there are as many.
    fn own_node(&self) -> u32 {
        self.map.node_in_turn(self.home(), self.index)
    }

    fn any(&self) -> ColorSet {
        ColorSet::any(self.map)
    }

    /// As many bank sets of `node` as it needs, which nobody else has.
    fn private(&self, node: u32) -> Result<ColorSet, Refusal> {
        self.palette.assign(&Want {
            sets: self.tenant().sets,
            near: 1 << node,
            strict: true,
            ..Want::default()
        })
    }
}

impl Policy for Coloring {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn is_colored(&self) -> bool {
        true
    }

    fn ignores_nodes(&self) -> bool {
        self.ignores_nodes
    }

    fn fits_slice(&self) -> bool {
        self.fits_slice
    }

    fn shares_rest(&self) -> bool {
        self.shares_rest
    }

    fn colors(&self, map: &AddrMap, tenants: &[Tenant]) -> Result<Vec<Option<ColorSet>>, Refusal> {
        let mut palette = Palette::new(map);
        let mut given = Vec::with_capacity(tenants.len());
        for index in 0..tenants.len() {
            let colors = (self.choose)(&Turn {
                map,
                palette: &palette,
                tenants,
                index,
            })?;
            palette.change(index as u32, Some(colors.clone()))?;
            given.push(Some(colors));
        }
        Ok(given)
    }
}

/// The `index`th of `n` even shares of 0..`total`.
fn share(total: u32, n: usize, index: usize) -> impl Iterator<Item = u32> {
    let n = n as u32;
    let index = index as u32;
    (total * index / n)..(total * (index + 1) / n)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::placement::SMALL_MAP;

    /// A map as detection writes it: channel functions that have a name, above a
    /// page. The same functions without it are banks, and nobody can know.
    #[test]
    fn an_own_controller_is_the_channel_that_has_a_name() {
        let named = "soloist-map 1\nlayout\nchannel 13^17 14^18\nbank 12 15^19\n\
            row 17 18 19 20 21 22\ncol 6 7 8 9 10 11 16\nrange 0 0x800000\n";
        let plain = named.replace("channel 13^17 14^18\nbank", "bank 13^17 14^18");
        let channels = |text: &str, policy: &dyn Policy| -> Vec<Vec<u32>> {
            let map = AddrMap::parse(text).unwrap();
            let given = policy
                .colors(&map, &[Tenant { node: 0, sets: 2 }; 4])
                .unwrap();
            let sets = |c: &Option<ColorSet>| -> Vec<u32> {
                let c = c.as_ref().unwrap();
                (0..map.n_bank_sets())
                    .filter(|&set| c.holds(set, 0))
                    .collect()
            };
            given.iter().map(sets).collect()
        };
        let own = channels(named, &camc::DIFF_CONTROLLER);
        assert_eq!(own, [[0, 1], [4, 5], [8, 9], [12, 13]]);
        let whole = channels(named, &camc::CONTROLLER);
        assert!((0..4).all(|i| whole[i] == (4 * i as u32..4 * i as u32 + 4).collect::<Vec<_>>()));
        // All would share the one that there is.
        let map = AddrMap::parse(&plain).unwrap();
        for policy in [&camc::DIFF_CONTROLLER, &camc::CONTROLLER] {
            let refused = policy.colors(&map, &[Tenant { node: 0, sets: 2 }; 4]);
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("one memory controller"), "{refused}");
        }
    }

    /// The first has its banks alone, all others share theirs.
    #[test]
    fn the_protected_program_shares_with_nobody() {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        let tenants = [3, 5, 1, 1].map(|sets| Tenant { node: 0, sets });
        let given = protect::PROTECT.colors(&map, &tenants).unwrap();
        let sets = |i: usize| -> Vec<u32> {
            let c: &ColorSet = given[i].as_ref().unwrap();
            (0..map.n_bank_sets())
                .filter(|&s| c.holds(s, 0) || c.holds(s, 1))
                .collect()
        };
        assert_eq!((sets(0).len(), sets(1).len()), (3, 5));
        assert!(sets(0).iter().all(|set| !sets(1).contains(set)));
        assert_eq!((sets(2), sets(3)), (sets(1), sets(1)));
        let shared = protect::TOGETHER.colors(&map, &tenants).unwrap();
        assert_eq!(shared[0], given[0]);
        assert!(shared.iter().all(|colors| *colors == given[0]));
    }

    #[test]
    fn a_policy_gives_colours_if_it_says_so() {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        for policy in all() {
            let given = policy.colors(&map, &[Tenant { node: 0, sets: 1 }; 4]);
            let colored = given.unwrap().iter().any(Option::is_some);
            assert_eq!(policy.is_colored(), colored, "{policy}");
        }
    }

    #[test]
    fn a_policy_regulates_if_it_says_so() {
        let platform = Platform::find("opteron-6128").unwrap();
        for policy in all() {
            let guard = policy.guard(&platform, &[0], &[1]).unwrap();
            assert_eq!(policy.is_regulated(), guard.is_some(), "{policy}");
        }
    }

    #[test]
    fn what_a_tenant_gets_does_not_hang_on_the_order_of_cpus() {
        let map = AddrMap::parse(SMALL_MAP).unwrap();
        let cells = |nodes: [u32; 4], policy: &dyn Policy| {
            let tenants = nodes.map(|node| Tenant { node, sets: 1 });
            let given = policy.colors(&map, &tenants).unwrap();
            let mut sizes: Vec<usize> = given
                .iter()
                .map(|c| c.as_ref().unwrap().cells(&map).len())
                .collect();
            sizes.sort_unstable();
            sizes
        };
        for policy in all().filter(|p| p.is_colored()) {
            assert_eq!(
                cells([0, 0, 1, 1], policy),
                cells([0, 1, 0, 1], policy),
                "{policy}"
            );
        }
    }
}

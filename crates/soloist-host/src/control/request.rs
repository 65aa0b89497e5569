//! What a user asks for (`--colors 4 --mem 512M`), made into commands for a
//! group and checked against the map first, so that a refusal names the flag.

use std::str::FromStr;

use serde::Serialize;
use soloist_core::{format_size, AddrMap, ColorSet, NumList, PageSize};

use crate::control::group::{Exhaust, Group};
use crate::HostError;

/// `4`: so many, chosen automatically. `4,` or `4-7,9`: these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// So many.
    Count(u32),
    /// A list, as the kernel writes them.
    List(String),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text:?} is neither a number (4: any four) nor a list (4-7,9)");
        if text.contains([',', '-']) {
            let list = text.strip_suffix(',').unwrap_or(text);
            NumList::parse(list, 1 << 20).map_err(|e| format!("{}: {e}", wrong()))?;
            return Ok(Self::List(list.to_owned()));
        }
        match text.parse() {
            Ok(0) => Err("0 colours hold no page: ask for at least 1".to_owned()),
            Ok(count) => Ok(Self::Count(count)),
            Err(_) => Err(match NumList::parse(text, 1 << 20) {
                Err(why) if why.text.contains("a mask") => format!("{}: {why}", wrong()),
                _ => wrong(),
            }),
        }
    }
}

/// Colours as asked for on the command line.
#[derive(Debug, Clone, Default)]
pub struct ColorRequest {
    /// Bank colours (a list), or so many bank sets.
    pub colors: Option<Choice>,
    /// Bank sets, a list.
    pub bank_sets: Option<String>,
    /// LLC colours.
    pub llc: Option<Choice>,
    /// Memory nodes, a list.
    pub node: Option<String>,
    /// Bytes that the colours must hold.
    pub mem: Option<u64>,
    /// Keep apart from others by controller.
    pub realtime: bool,
    /// What happens when they have no page left.
    pub exhaust: Option<Exhaust>,
    /// Nodes of the processors asked for: where automatic colours come from
    /// when `node` does not say.
    pub near: Vec<u32>,
}

/// Of what a program needs, so much more is taken: its page tables, and the
/// files' pages that become copies of its own.
const MARGIN: u64 = 16;

/// How a group gets its colours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Assign {
    Auto(String),
    Lists {
        sets: Option<String>,
        llc: Option<String>,
    },
    Nodes(String),
}

/// A checked request.
#[derive(Debug, Clone, Serialize)]
pub struct ColorPlan {
    assign: Assign,
    exhaust: Exhaust,
    /// Bytes that the colours must hold.
    pub mem: Option<u64>,
    /// Bytes of one bank set (with its LLC colours), the smallest there is.
    pub capacity_of_one: u64,
    /// Bank sets asked for.
    pub sets: u32,
    /// More may be taken, if so many have too little that is free.
    #[serde(skip)]
    open: bool,
}

impl ColorRequest {
    /// Nothing about colours was said.
    pub fn is_empty(&self) -> bool {
        self.colors.is_none()
            && self.bank_sets.is_none()
            && self.llc.is_none()
            && self.node.is_none()
            && self.mem.is_none()
            && !self.realtime
            && self.exhaust.is_none()
    }

    /// Checks it against `map`.
    pub fn plan(&self, map: &AddrMap) -> Result<ColorPlan, HostError> {
        let nodes = self.nodes(map)?;
        let plan = match (&self.colors, &self.bank_sets) {
            (Some(_), Some(_)) => Err(wrong(
                "--colors and --bank-sets name the same thing twice: leave one out",
            )),
            (Some(Choice::List(list)), None) => {
                let colors = list_of(list, map.n_colors(), "--colors", "bank colours")?;
                let sets = colors.iter().filter_map(|bc| map.set_of_color(bc));
                self.by_list(map, &nodes, sets)
            }
            (None, Some(list)) => {
                let sets = list_of(list, map.n_bank_sets(), "--bank-sets", "bank sets")?;
                self.by_list(map, &nodes, sets.iter())
            }
            (Some(Choice::Count(n)), None) => self.automatic(map, &nodes, Some(*n)),
            (None, None) => self.without_banks(map, &nodes),
        }?;
        if !matches!(plan.assign, Assign::Auto(_)) && self.realtime {
            return Err(wrong(
                "--realtime is for automatic colours: give a number with --colors",
            ));
        }
        Ok(plan)
    }

    /// No bank was named: whole nodes, LLC colours alone, or automatic.
    fn without_banks(
        &self,
        map: &AddrMap,
        nodes: &Option<NumList>,
    ) -> Result<ColorPlan, HostError> {
        let alone = self.mem.is_none() && !self.realtime;
        match (&self.llc, &self.node) {
            (Some(Choice::List(_)), None) if alone => self.by_list(map, nodes, std::iter::empty()),
            (None, Some(list)) if alone => {
                let of_nodes = |set: &u32| {
                    nodes
                        .as_ref()
                        .is_some_and(|n| n.contains(map.node_of_set(*set)))
                };
                let colors = ColorSet::any(map).with_sets((0..map.n_bank_sets()).filter(of_nodes));
                self.finish(map, Assign::Nodes(list.clone()), &colors)
            }
            _ => self.automatic(map, nodes, None),
        }
    }

    fn by_list(
        &self,
        map: &AddrMap,
        nodes: &Option<NumList>,
        sets: impl Iterator<Item = u32>,
    ) -> Result<ColorPlan, HostError> {
        let mut chosen = NumList::new(map.n_bank_sets());
        sets.for_each(|set| {
            chosen.insert(set);
        });
        let by_bank = !chosen.is_empty();
        if let Some(nodes) = nodes {
            let stray = chosen
                .iter()
                .find(|&set| !nodes.contains(map.node_of_set(set)));
            if let Some(set) = stray {
                let node = map.node_of_set(set);
                return Err(wrong(format!("bank set {set} is on node {node}, --node says {nodes}: leave --node out or take other colours")));
            }
        }
        let mut colors = ColorSet::any(map);
        if by_bank {
            colors = colors.with_sets(chosen.iter());
        }
        let llc = match &self.llc {
            Some(Choice::Count(n)) => {
                return Err(wrong(format!("--llc {n} leaves the choice to Soloist, the banks were named: name the LLC colours too (--llc 0-{}), or give a number with --colors", n - 1)))
            }
            Some(Choice::List(list)) => {
                let llc = list_of(list, map.n_llc(), "--llc", "LLC colours")?;
                colors = colors.with_llc(llc.iter());
                Some(llc.to_string())
            }
            None => None,
        };
        let sets = by_bank.then(|| chosen.to_string());
        self.finish(map, Assign::Lists { sets, llc }, &colors)
    }

    /// Checks what the named colours hold.
    fn finish(
        &self,
        map: &AddrMap,
        assign: Assign,
        colors: &ColorSet,
    ) -> Result<ColorPlan, HostError> {
        let bytes = colors.bytes(map);
        if bytes == 0 {
            return Err(wrong(format!("no page of {} is in both {colors}: those LLC colours lie in other banks (`soloist map show` says which)", map.name())));
        }
        if let Some(mem) = self.mem.filter(|&mem| mem > bytes) {
            return Err(wrong(format!(
                "--mem {}: {colors} hold {} only: name more colours",
                format_size(mem),
                format_size(bytes)
            )));
        }
        let sets = colors.sets().map_or(map.n_bank_sets(), NumList::len);
        Ok(ColorPlan {
            assign,
            exhaust: self.exhaust.unwrap_or(Exhaust::Fail),
            mem: self.mem,
            capacity_of_one: bytes / u64::from(sets.max(1)),
            sets,
            open: false,
        })
    }

    /// `n` bank sets of the kernel's choice, or as many as `mem` needs.
    fn automatic(
        &self,
        map: &AddrMap,
        nodes: &Option<NumList>,
        n: Option<u32>,
    ) -> Result<ColorPlan, HostError> {
        let llc = match &self.llc {
            None => None,
            Some(Choice::Count(m)) if n.is_none() && self.mem.is_none() => {
                return Err(wrong(format!(
                    "--llc {m} does not say of how many banks: give --colors N or --mem SIZE \
                     with it, or list the LLC colours (--llc 0-{})",
                    m.saturating_sub(1)
                )))
            }
            Some(Choice::Count(m)) if *m <= map.n_llc() => Some(*m),
            Some(Choice::Count(m)) => {
                return Err(wrong(format!("--llc {m}: {} has {} LLC colours", map.name(), map.n_llc())))
            }
            Some(Choice::List(list)) => {
                return Err(wrong(format!("--llc {list} names colours, the banks are left to Soloist: name the banks too (--bank-sets), or give a number with --llc")))
            }
        };
        let capacity = capacity_of_one(map, nodes, llc);
        let sets = match (n, self.mem) {
            (Some(n), Some(mem)) if u64::from(n).saturating_mul(capacity) < mem => {
                let needed = mem.div_ceil(capacity.max(1));
                return Err(wrong(format!(
                    "--colors {n}: a colour holds {}, so {} need {needed} of them",
                    format_size(capacity),
                    format_size(mem)
                )));
            }
            (Some(n), _) => u64::from(n),
            (None, Some(mem)) => with_margin(mem, map.page_size())
                .div_ceil(capacity.max(1))
                .max(1),
            (None, None) => 1,
        };
        let there = (0..map.n_bank_sets())
            .filter(|&set| {
                nodes
                    .as_ref()
                    .is_none_or(|n| n.contains(map.node_of_set(set)))
            })
            .count();
        let Some(sets) = u32::try_from(sets).ok().filter(|&n| n as usize <= there) else {
            let place = nodes.as_ref().map_or(map.name(), |n| format!("node {n}"));
            let why = self
                .mem
                .map(|mem| format!("--mem {} needs ", format_size(mem)));
            return Err(wrong(format!(
                "{}{sets} colours of {} each: {place} has {there}",
                why.unwrap_or_default(),
                format_size(capacity)
            )));
        };
        // Said nothing of colours: the command shall run, so let it grow.
        let said = n.is_some() || self.mem.is_some() || self.realtime;
        Ok(ColorPlan {
            assign: Assign::Auto(self.auto_words(sets, llc)),
            exhaust: self
                .exhaust
                .unwrap_or(if said { Exhaust::Fail } else { Exhaust::Grow }),
            mem: self.mem,
            capacity_of_one: capacity,
            sets,
            open: n.is_none() && self.mem.is_some(),
        })
    }

    fn auto_words(&self, sets: u32, llc: Option<u32>) -> String {
        let mut words = sets.to_string();
        match &self.node {
            Some(list) => words += &format!(" node={list}"),
            None if !self.near.is_empty() => {
                let list: Vec<String> = self.near.iter().map(u32::to_string).collect();
                words += &format!(" node={}", list.join(","));
            }
            None => {}
        }
        if let Some(llc) = llc {
            words += &format!(" llc={llc}");
        }
        if self.realtime {
            words += " realtime";
        }
        words
    }

    fn nodes(&self, map: &AddrMap) -> Result<Option<NumList>, HostError> {
        match &self.node {
            Some(list) => {
                let nodes = list_of(list, map.n_nodes(), "--node", "nodes")?;
                let memory = map.memory_nodes();
                if let Some(empty) = nodes.iter().find(|node| !memory.contains(node)) {
                    let memory = memory
                        .iter()
                        .map(u32::to_string)
                        .collect::<Vec<_>>()
                        .join(",");
                    let name = map.name();
                    return Err(wrong(format!(
                        "--node {list}: {name} has no memory on node {empty}, but on {memory}"
                    )));
                }
                Ok(Some(nodes))
            }
            None if self.near.is_empty() => Ok(None),
            None => {
                let mut nodes = NumList::new(map.n_nodes());
                self.near.iter().for_each(|&node| {
                    nodes.insert(node);
                });
                Ok(Some(nodes))
            }
        }
    }
}

impl ColorPlan {
    /// Soloist chooses the colours.
    pub fn is_automatic(&self) -> bool {
        matches!(self.assign, Assign::Auto(_))
    }

    /// Gives `group` its colours.
    pub fn apply(&self, group: &Group, map: &AddrMap) -> Result<(), HostError> {
        self.assign(group, map)?;
        group.set_exhaust(self.exhaust)
    }

    fn assign(&self, group: &Group, map: &AddrMap) -> Result<(), HostError> {
        match &self.assign {
            Assign::Auto(words) => return self.take(group, map, words),
            Assign::Nodes(list) => group.set_node(list)?,
            Assign::Lists { sets, llc } => {
                if let Some(sets) = sets {
                    group.set_bank_set(sets)?;
                }
                if let Some(llc) = llc {
                    group.set_llc_color(llc)?;
                }
            }
        }
        self.check_room(group, map)
    }

    /// Takes colours of the kernel's choice: with --mem alone so many that what
    /// is free in them is enough, for others may have memory there.
    fn take(&self, group: &Group, map: &AddrMap, words: &str) -> Result<(), HostError> {
        group.set_auto(words)?;
        let (Some(mem), true) = (self.mem, self.open) else {
            return self.check_room(group, map);
        };
        let rest = words.trim_start_matches(|c: char| c.is_ascii_digit());
        let mut sets = self.sets;
        loop {
            let held = self.check_room(group, map);
            let short =
                match held.and_then(|()| group.try_reserve(with_margin(mem, map.page_size()))) {
                    Ok(()) => return Ok(()),
                    Err(short) if self.exhaust == Exhaust::Fail => short,
                    // Under another policy the group gets its memory later: more sets, or any page.
                    Err(_) => return Ok(()),
                };
            sets += 1;
            if group.set_auto(&format!("{sets}{rest}")).is_err() {
                return Err(wrong(format!("--mem {}: {short}", format_size(mem))));
            }
        }
    }

    /// The colours that were assigned may hold less than one would think:
    /// LLC colours that lie in few of the banks.
    fn check_room(&self, group: &Group, map: &AddrMap) -> Result<(), HostError> {
        let colors = group.colors(map)?;
        let bytes = colors.bytes(map);
        match self.mem {
            Some(mem) if bytes < mem => Err(wrong(format!(
                "--mem {}: the colours that were free ({colors}) hold {} only: ask for more with --colors",
                format_size(mem),
                format_size(bytes)
            ))),
            _ => Ok(()),
        }
    }
}

fn with_margin(mem: u64, pages: PageSize) -> u64 {
    let more = mem.saturating_add(mem / MARGIN);
    more.checked_next_multiple_of(pages.bytes()).unwrap_or(more)
}

/// Bytes of the smallest bank set of `nodes`, with `llc` of its LLC colours.
fn capacity_of_one(map: &AddrMap, nodes: &Option<NumList>, llc: Option<u32>) -> u64 {
    let of_set = |set: u32| {
        let set = ColorSet::any(map).with_sets([set]);
        let llcs = set.cells(map).len() as u64;
        match llc {
            Some(m) if llcs > 0 => set.bytes(map) / llcs * u64::from(m).min(llcs),
            _ => set.bytes(map),
        }
    };
    (0..map.n_bank_sets())
        .filter(|&set| {
            nodes
                .as_ref()
                .is_none_or(|n| n.contains(map.node_of_set(set)))
        })
        .map(of_set)
        .filter(|&bytes| bytes > 0)
        .min()
        .unwrap_or(0)
}

fn list_of(text: &str, limit: u32, flag: &str, what: &str) -> Result<NumList, HostError> {
    let text = text.strip_suffix(',').unwrap_or(text);
    let list = NumList::parse(text, limit).map_err(|e| {
        wrong(format!(
            "{flag} {text}: {e} (this machine has {what} 0-{})",
            limit.saturating_sub(1)
        ))
    })?;
    if list.is_empty() {
        return Err(wrong(format!("{flag}: an empty list; name some {what}")));
    }
    Ok(list)
}

fn wrong(text: impl Into<String>) -> HostError {
    HostError::Request(text.into())
}

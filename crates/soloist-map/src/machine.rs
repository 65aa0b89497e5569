//! Machine files: one TOML file per machine (docs/machine-files.md).
//!
//! The file is for people; [`Machine::map_text`] turns its `[map]` into the
//! compact text of docs/map-format.md, and only core's parser turns that into
//! a map that decodes. Sections that other crates own (`[memory]`, `[guard]`,
//! `[vm]`) are kept unread and handed out by [`Machine::section`], which still
//! reports file and line.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use soloist_core::{cpu_list, parse_size, AddrMap};
use toml::Spanned;

use crate::spec::{Layout, MapRange, MapSpec};

/// What is wrong with a machine file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct MachineError {
    /// The file as it was named.
    pub file: String,
    /// Line, from 1; 0 where the whole file is meant.
    pub line: usize,
    /// What was wrong and what was expected.
    pub message: String,
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.file, self.message)
        } else {
            write!(f, "{}:{}: {}", self.file, self.line, self.message)
        }
    }
}

/// How far a map can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// Agrees with decodes that the machine itself printed.
    Exact,
    /// The functions were published; what was not (often rows and columns) is
    /// filled in.
    Published,
    /// Found by timing on the machine.
    Detected,
    /// No facts are public: plausible, for the simulator only.
    Assumed,
    /// Made up for virtual machines: their memory has no banks of its own.
    Synthetic,
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exact",
            Self::Published => "published",
            Self::Detected => "detected",
            Self::Assumed => "assumed",
            Self::Synthetic => "synthetic",
        })
    }
}

/// What `[machine]` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Short name, also the file's: lower-case letters, digits, `-`.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// How far the map can be trusted.
    pub trust: Trust,
    /// Where the facts come from.
    #[serde(default)]
    pub source: Vec<String>,
}

/// What a host must look like for the machine to fit (`[host]`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFit {
    /// Globs over the CPU's model name.
    #[serde(default)]
    pub cpu: Vec<String>,
    /// Populated memory channels of one node, where the map depends on it.
    pub channels: Option<u32>,
    /// Memory modules of the whole machine, where the map depends on it.
    pub dimms: Option<u32>,
}

/// `[topology]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Processor packages.
    pub sockets: u32,
    /// CPUs of each node, in the kernel's list syntax.
    pub cpus: Vec<String>,
    /// Distances between nodes, 10 is local (ACPI SLIT).
    #[serde(default)]
    pub distances: Vec<Vec<u32>>,
    /// Core clock, MHz.
    pub clock_mhz: Option<u32>,
}

impl Topology {
    /// Number of nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.cpus.len()
    }

    /// The CPUs of each node, ascending.
    #[must_use]
    pub fn cpus_of_nodes(&self) -> Vec<Vec<u32>> {
        self.cpus
            .iter()
            .map(|list| cpu_list(list).map_or_else(|_| Vec::new(), |cpus| cpus.iter().collect()))
            .collect()
    }
}

/// One cache of `[cache]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Size of one instance.
    pub size: Bytes,
    /// Associativity.
    pub ways: u32,
    /// CPUs that share one instance.
    pub shared_by: u32,
    /// Load-to-use latency in core clocks, where known.
    pub latency: Option<u32>,
    /// The set index is hashed over slices: page colours don't partition it.
    #[serde(default)]
    pub hashed: bool,
}

/// `[cache]`: line size and levels by name (`l1d`, `l1i`, `l2`, `l3`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Caches {
    /// Line, bytes.
    pub line: u32,
    /// First-level data cache.
    pub l1d: Option<Cache>,
    /// First-level instruction cache.
    pub l1i: Option<Cache>,
    /// Second level.
    pub l2: Option<Cache>,
    /// Third level.
    pub l3: Option<Cache>,
}

impl Caches {
    /// The last level, with its name.
    #[must_use]
    pub fn last(&self) -> Option<(&'static str, &Cache)> {
        let levels = [("L3", &self.l3), ("L2", &self.l2), ("L1", &self.l1d)];
        levels
            .into_iter()
            .find_map(|(name, cache)| Some((name, cache.as_ref()?)))
    }
}

/// A size in bytes, written `512K`, `6M`, `8G` or as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Bytes(pub u64);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        match Either::deserialize(from) {
            Ok(Either::Number(bytes)) => Ok(Self(bytes)),
            Ok(Either::Text(text)) => parse_size(&text)
                .map(Self)
                .map_err(serde::de::Error::custom),
            Err(_) => Err(serde::de::Error::custom(
                "expected a size such as \"512K\", \"6M\" or a number of bytes",
            )),
        }
    }
}

/// A machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Name, description, sources.
    pub about: About,
    /// Which hosts it fits.
    pub host: HostFit,
    /// Nodes, CPUs, distances.
    pub topology: Topology,
    /// Caches, where known.
    pub cache: Option<Caches>,
    /// The address map.
    pub map: MapSpec,
    /// The file as it was named, for messages.
    pub file: String,
    text: String,
}

/// A file's text, and the file's name as errors have it.
pub(crate) fn read_text(path: &std::path::Path) -> Result<(String, String), MachineError> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => Ok((text, file)),
        Err(error) => Err(MachineError {
            file,
            line: 0,
            message: error.to_string(),
        }),
    }
}

impl Machine {
    /// Reads a machine from the text of a file; `file` is its name in messages.
    ///
    /// # Errors
    /// With line, what was wrong and what was expected. The map itself is
    /// checked by core's parser before this returns.
    pub fn parse(text: &str, file: &str) -> Result<Self, MachineError> {
        let place = Place { file, text };
        if crate::classmap::ClassMap::is_one(text) {
            return Err(MachineError {
                file: file.to_owned(),
                line: 0,
                message: "holds conflict classes of single pages, not a map that tells every \
                          address's bank; `soloist map show`, `decode` and `check` take it, \
                          nothing else can"
                    .into(),
            });
        }
        let raw: Raw = toml::from_str(text).map_err(|error| place.toml(&error))?;
        check_name(&raw.machine).map_err(|(span, message)| place.error(span, message))?;
        check_topology(&raw.topology).map_err(|(span, message)| place.error(span, message))?;
        let (map, lines) = raw.map.into_spec(&place)?;
        let machine = Self {
            about: raw.machine.into_inner(),
            host: raw.host,
            topology: raw.topology.into_inner(),
            cache: raw.cache,
            map,
            file: file.to_owned(),
            text: text.to_owned(),
        };
        lines.check(&machine, &place)?;
        Ok(machine)
    }

    /// Reads a machine file.
    ///
    /// # Errors
    /// As [`Machine::parse`], or that the file can't be read.
    pub fn read(path: &std::path::Path) -> Result<Self, MachineError> {
        let (text, file) = read_text(path)?;
        Self::parse(&text, &file)
    }

    /// The map text of docs/map-format.md: what the kernel module takes.
    #[must_use]
    pub fn map_text(&self) -> String {
        self.map.to_text(&self.about.name)
    }

    /// The map, parsed by core.
    ///
    /// # Panics
    /// Never: [`Machine::parse`] let nothing through that core refuses.
    #[must_use]
    pub fn addr_map(&self) -> AddrMap {
        AddrMap::parse(&self.map_text()).expect("the map was checked when the file was read")
    }

    /// A section that another crate owns, such as `vm`; `None` when the file
    /// has none.
    ///
    /// # Errors
    /// With the line in the machine file.
    pub fn section<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, MachineError> {
        let place = Place {
            file: &self.file,
            text: &self.text,
        };
        Pick {
            name,
            value: std::marker::PhantomData,
        }
        .deserialize(toml::Deserializer::new(&self.text))
        .map_err(|error| place.toml(&error))
    }

    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Where errors are reported against.
pub(crate) struct Place<'a> {
    pub(crate) file: &'a str,
    pub(crate) text: &'a str,
}

impl Place<'_> {
    fn line(&self, offset: usize) -> usize {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    pub(crate) fn error(&self, span: Range<usize>, message: impl Into<String>) -> MachineError {
        MachineError {
            file: self.file.to_owned(),
            line: self.line(span.start),
            message: message.into(),
        }
    }

    pub(crate) fn toml(&self, error: &toml::de::Error) -> MachineError {
        MachineError {
            file: self.file.to_owned(),
            line: error.span().map_or(0, |span| self.line(span.start)),
            message: error.message().replace('\n', "; "),
        }
    }
}

/// Deserialises one key of a table and skips the others.
struct Pick<'a, T> {
    name: &'a str,
    value: std::marker::PhantomData<T>,
}

impl<'de, T: DeserializeOwned> DeserializeSeed<'de> for Pick<'_, T> {
    type Value = Option<T>;
    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Option<T>, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, T: DeserializeOwned> Visitor<'de> for Pick<'_, T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a machine file")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.name {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

// The file as TOML sees it; every value that is checked here keeps its span.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    machine: Spanned<About>,
    #[serde(default)]
    host: HostFit,
    topology: Spanned<Topology>,
    map: RawMap,
    cache: Option<Caches>,
    #[serde(rename = "memory")]
    _memory: Option<IgnoredAny>,
    #[serde(rename = "guard")]
    _guard: Option<IgnoredAny>,
    #[serde(rename = "vm")]
    _vm: Option<IgnoredAny>,
}

type Functions = Vec<Spanned<String>>;

/// `[map]`, or one of its layouts, which has nothing but functions.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMap {
    line: Option<u32>,
    #[serde(default)]
    llc: Functions,
    #[serde(default)]
    layouts: BTreeMap<String, Spanned<RawMap>>,
    #[serde(default)]
    range: Vec<Spanned<RawRange>>,
    #[serde(default)]
    channel: Functions,
    #[serde(default)]
    rank: Functions,
    #[serde(default)]
    bank: Functions,
    #[serde(default)]
    row: Functions,
    #[serde(default)]
    column: Functions,
    chip_select: Option<u16>,
    #[serde(default)]
    bank_group: Vec<u8>,
    #[serde(default)]
    sub_channel: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRange {
    start: u64,
    end: u64,
    #[serde(default)]
    node: u8,
    #[serde(default)]
    base: u64,
    layout: Option<Spanned<String>>,
}

/// Line of a map that names none, bytes.
const LINE: u32 = 64;

pub(crate) type Wrong = (Range<usize>, String);

fn functions(
    list: &Functions,
    place: &Place<'_>,
) -> Result<Vec<crate::function::Term>, MachineError> {
    let mut terms = Vec::new();
    for entry in list {
        crate::function::parse_into(&mut terms, entry.get_ref())
            .map_err(|message| place.error(entry.span(), message))?;
    }
    Ok(terms)
}

fn plain(list: &Functions, place: &Place<'_>) -> Result<Vec<u64>, MachineError> {
    let terms = functions(list, place)?;
    if let Some((i, _)) = terms.iter().enumerate().find(|(i, t)| t.at as usize != *i) {
        let at = list.get(i.min(list.len() - 1)).map_or(0..0, Spanned::span);
        return Err(place.error(at, "`@N:` is for rows and columns only"));
    }
    Ok(terms.into_iter().map(|term| term.mask).collect())
}

impl RawMap {
    fn is_layout(&self) -> bool {
        self.line.is_none()
            && self.llc.is_empty()
            && self.layouts.is_empty()
            && self.range.is_empty()
    }

    fn to_layout(&self, name: &str, place: &Place<'_>) -> Result<Layout, MachineError> {
        Ok(Layout {
            name: name.to_owned(),
            channel: plain(&self.channel, place)?,
            rank: plain(&self.rank, place)?,
            bank: plain(&self.bank, place)?,
            row: functions(&self.row, place)?,
            column: functions(&self.column, place)?,
            chip_select: self.chip_select.unwrap_or(0),
            bank_group: self.bank_group.clone(),
            sub_channel: self.sub_channel.clone(),
        })
    }

    fn into_spec(self, place: &Place<'_>) -> Result<(MapSpec, MapLines), MachineError> {
        let mut at = MapLines::default();
        let mut layouts = Vec::new();
        if self.layouts.is_empty() {
            at.layouts.push(any_span(&self).unwrap_or(0..0));
            layouts.push(self.to_layout("", place)?);
        } else if let Some(span) = any_span(&self) {
            return Err(place.error(
                span,
                "functions stand either in [map] or in [map.layouts.NAME], not in both",
            ));
        }
        for (name, raw) in &self.layouts {
            if !raw.get_ref().is_layout() {
                let message = format!("layout {name}: line, llc, range and layouts go into [map]");
                return Err(place.error(raw.span(), message));
            }
            at.layouts.push(raw.span());
            layouts.push(raw.get_ref().to_layout(name, place)?);
        }
        if self.range.is_empty() {
            let message = "[map]: expected at least one [[map.range]]";
            return Err(place.error(0..0, message));
        }
        let mut ranges = Vec::new();
        for raw in self.range {
            at.ranges.push(raw.span());
            let raw = raw.into_inner();
            let layout = match &raw.layout {
                None if layouts.len() == 1 => 0,
                None => {
                    let span = at.ranges.last().cloned().unwrap_or(0..0);
                    return Err(place.error(span, "expected `layout`: the map has several"));
                }
                Some(name) => layouts
                    .iter()
                    .position(|layout| layout.name == *name.get_ref())
                    .ok_or_else(|| {
                        let known: Vec<_> = layouts.iter().map(|l| l.name.as_str()).collect();
                        place.error(
                            name.span(),
                            format!(
                                "no layout `{}`; expected one of: {}",
                                name.get_ref(),
                                known.join(", ")
                            ),
                        )
                    })?,
            };
            ranges.push(MapRange {
                start: raw.start,
                end: raw.end,
                node: raw.node,
                base: raw.base,
                layout,
            });
        }
        let spec = MapSpec {
            line: self.line.unwrap_or(LINE),
            llc: plain(&self.llc, place)?,
            layouts,
            ranges,
        };
        at.llc = self.llc.first().map_or(0..0, Spanned::span);
        Ok((spec, at))
    }
}

fn any_span(layout: &RawMap) -> Option<Range<usize>> {
    [
        &layout.channel,
        &layout.rank,
        &layout.bank,
        &layout.row,
        &layout.column,
    ]
    .into_iter()
    .find_map(|list| list.first().map(Spanned::span))
}

/// Where in the TOML file the statements of the map text came from, so that a
/// refusal by core's parser is reported at the line that people wrote.
#[derive(Default)]
struct MapLines {
    llc: Range<usize>,
    layouts: Vec<Range<usize>>,
    ranges: Vec<Range<usize>>,
}

impl MapLines {
    fn check(&self, machine: &Machine, place: &Place<'_>) -> Result<(), MachineError> {
        let text = machine.map_text();
        let Err(error) = AddrMap::parse(&text) else {
            return self.check_nodes(machine, place);
        };
        let line = error.line.unwrap_or(0) as usize;
        let statements: Vec<&str> = text.lines().collect();
        let statement = line.checked_sub(1).and_then(|i| statements.get(i).copied());
        let count = |word: &str| {
            statements
                .iter()
                .take(line)
                .filter(|s| s.split_whitespace().next() == Some(word))
                .count()
        };
        let span = match statement.and_then(|s| s.split_whitespace().next()) {
            Some("range") => self.ranges.get(count("range").wrapping_sub(1)),
            Some("llc") => Some(&self.llc),
            Some(_) => self.layouts.get(count("layout").wrapping_sub(1)),
            None => None,
        };
        let message = match statement {
            Some(statement) => format!("{} (in `{statement}`)", error.text),
            None => error.text,
        };
        Err(match span {
            Some(span) => place.error(span.clone(), message),
            None => MachineError {
                file: machine.file.clone(),
                line: 0,
                message,
            },
        })
    }

    fn check_nodes(&self, machine: &Machine, place: &Place<'_>) -> Result<(), MachineError> {
        let nodes = machine.topology.nodes();
        for (range, span) in machine.map.ranges.iter().zip(&self.ranges) {
            if usize::from(range.node) >= nodes {
                return Err(place.error(
                    span.clone(),
                    format!(
                        "node {} is not in [topology], which has {nodes}",
                        range.node
                    ),
                ));
            }
        }
        Ok(())
    }
}

pub(crate) fn check_name(about: &Spanned<About>) -> Result<(), Wrong> {
    let name = &about.get_ref().name;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 31 || !name.chars().all(fits) {
        return Err((
            about.span(),
            format!("name `{name}`: expected 1 to 31 lower-case letters, digits and `-`"),
        ));
    }
    Ok(())
}

fn check_topology(topology: &Spanned<Topology>) -> Result<(), Wrong> {
    let wrong = |message: String| Err((topology.span(), message));
    let t = topology.get_ref();
    if t.cpus.is_empty() || t.cpus.len() > 16 {
        return wrong(format!(
            "cpus: expected 1 to 16 nodes, found {}",
            t.cpus.len()
        ));
    }
    if t.sockets == 0 || t.sockets as usize > t.cpus.len() {
        return wrong(format!("sockets: expected 1 to {} (nodes)", t.cpus.len()));
    }
    let mut seen = std::collections::BTreeSet::new();
    for list in &t.cpus {
        match cpu_list(list) {
            Ok(cpus) => {
                for cpu in cpus.iter() {
                    if !seen.insert(cpu) {
                        return wrong(format!("cpus: cpu {cpu} is in two nodes"));
                    }
                }
            }
            Err(message) => return wrong(format!("cpus: {message}")),
        }
    }
    let square = t.distances.len() == t.cpus.len()
        && t.distances.iter().all(|row| row.len() == t.cpus.len());
    if !t.distances.is_empty() && !square {
        return wrong(format!(
            "distances: expected {0} rows of {0} numbers",
            t.cpus.len()
        ));
    }
    for (i, row) in t.distances.iter().enumerate() {
        if row[i] != 10 || row.iter().any(|&d| !(10..=254).contains(&d)) {
            return wrong(format!(
                "distances: row {i}: expected 10 to itself and 10 to 254 to the others"
            ));
        }
    }
    Ok(())
}

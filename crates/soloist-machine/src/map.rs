//! `[map]` of a machine file, and where its statements stand.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use soloist_core::{AddrMap, Interleave};
use toml::Spanned;

use crate::cache::Bytes;
use crate::file::{FileError, FileText};
use crate::spec::{Layout, MapRange, MapSpec};

/// `[map]`, or one of its layouts, which has nothing but functions.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawMap {
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
    interleave: Option<Spanned<RawInterleave>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInterleave {
    ways: u32,
    granule: Bytes,
    #[serde(default)]
    on: Vec<u8>,
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

type Functions = Vec<Spanned<String>>;

/// Line of a map that names none, bytes.
const LINE: u32 = 64;

fn functions(
    list: &Functions,
    place: &FileText<'_>,
) -> Result<Vec<crate::function::Term>, FileError> {
    let mut terms = Vec::new();
    for entry in list {
        crate::function::parse_into(&mut terms, entry.get_ref())
            .map_err(|message| place.error(entry.span(), message))?;
    }
    Ok(terms)
}

fn plain(list: &Functions, place: &FileText<'_>) -> Result<Vec<u64>, FileError> {
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

    fn to_layout(&self, name: &str, place: &FileText<'_>) -> Result<Layout, FileError> {
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
            interleave: self.interleave.as_ref().map(|raw| Interleave {
                ways: raw.get_ref().ways,
                granule: raw.get_ref().granule.0,
            }),
            ways: match &self.interleave {
                Some(raw) => raw.get_ref().on.clone(),
                None => Vec::new(),
            },
        })
    }

    pub(crate) fn into_spec(self, place: &FileText<'_>) -> Result<(MapSpec, MapLines), FileError> {
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
    .or_else(|| layout.interleave.as_ref().map(Spanned::span))
}

/// Where in the TOML file the statements of the map text came from, so that a
/// refusal by core's parser is reported at the line that people wrote.
#[derive(Default)]
pub(crate) struct MapLines {
    llc: Range<usize>,
    layouts: Vec<Range<usize>>,
    ranges: Vec<Range<usize>>,
}

impl MapLines {
    /// Has core's parser look at the map; `nodes` is what [topology] has.
    pub(crate) fn check(
        &self,
        map: &MapSpec,
        name: &str,
        nodes: usize,
        place: &FileText<'_>,
    ) -> Result<(), FileError> {
        let text = map.to_text(name);
        let Err(error) = AddrMap::parse(&text) else {
            return self.check_nodes(map, nodes, place);
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
            None => FileError::whole(place.file, message),
        })
    }

    fn check_nodes(
        &self,
        map: &MapSpec,
        nodes: usize,
        place: &FileText<'_>,
    ) -> Result<(), FileError> {
        for (range, span) in map.ranges.iter().zip(&self.ranges) {
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

//! What memory the kernel's drivers count: a cross-check of maps, no map.
//!
//! EDAC's drivers for memory controllers (i7core, sb, skx, i10nm, amd64 and
//! others) list what they find in each controller's registers under
//! /sys/devices/system/edac/mc: `dimmN`, or `rankN` where chip selects are
//! counted, each with its size and place. Boards with a device tree may have nodes
//! of LPDDR channels (binding jedec,lpddr-channel), which say channels, ranks
//! and sizes too; no binding of Linux says how addresses are dealt out over them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use soloist_core::format_size;
use soloist_machine::{MapSpec, Trust};

use crate::machine::host::Host;
use crate::machine::objections::Objections;

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counted {
    /// Who counted, in words.
    pub by: String,
    /// Channels with memory, of the whole machine.
    pub channels: u32,
    /// Most ranks that a channel has, where they are counted.
    pub ranks: Option<u32>,
    /// Bytes in all.
    pub bytes: u64,
}

/// What the kernel of `host` counts: EDAC, else the device tree.
#[must_use]
pub fn counted(host: &Host) -> Option<Counted> {
    edac(&host.path("sys/devices/system/edac/mc"))
        .or_else(|| device_tree(&host.path("proc/device-tree")))
}

fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.trim_matches(['\0', '\n', ' ']).to_owned())
}

/// Entries of a folder whose names are `prefix` and a number.
fn numbered(folder: &Path, prefix: &str) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(prefix));
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

/// `csrow 0 channel 1 `: the number behind a word.
fn number_of(location: &str, layer: &str) -> Option<u32> {
    let mut words = location.split_whitespace();
    words.find(|word| *word == layer)?;
    words.next()?.parse().ok()
}

/// A module or chip select that EDAC lists, with memory.
struct Part {
    controller: u32,
    channel: u32,
    select: Option<u32>,
    bytes: u64,
    is_rank: bool,
    by: Option<String>,
}

fn parts(folder: &Path) -> Vec<Part> {
    let mut found = Vec::new();
    for controller in numbered(folder, "mc") {
        let name = controller.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix("mc")?.parse().ok());
        for (prefix, is_rank) in [("rank", true), ("dimm", false)] {
            for part in numbered(&controller, prefix) {
                let mib: Option<u64> = text(&part.join("size")).and_then(|n| n.parse().ok());
                let place = text(&part.join("dimm_location")).unwrap_or_default();
                let branch = number_of(&place, "branch").unwrap_or(0);
                let channel = number_of(&place, "channel").map(|channel| branch << 8 | channel);
                let (Some(mib), Some(channel), Some(controller_number)) = (mib, channel, number)
                else {
                    continue;
                };
                if mib > 0 {
                    found.push(Part {
                        controller: controller_number,
                        channel,
                        select: number_of(&place, "csrow"),
                        bytes: mib << 20,
                        is_rank,
                        by: text(&controller.join("mc_name")),
                    });
                }
            }
        }
    }
    found
}

/// The channels with memory that EDAC lists: number of the
/// controller and of the channel there, which begins with its branch's if it has one, and bytes.
#[must_use]
pub fn channels(host: &Host) -> BTreeMap<(u32, u32), u64> {
    let mut channels = BTreeMap::new();
    for part in parts(&host.path("sys/devices/system/edac/mc")) {
        *channels.entry((part.controller, part.channel)).or_default() += part.bytes;
    }
    channels
}

fn edac(folder: &Path) -> Option<Counted> {
    // Channels of each controller, and chip selects of each of them.
    let mut channels: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
    let parts = parts(folder);
    for part in &parts {
        let selects = channels.entry((part.controller, part.channel)).or_default();
        selects.extend(part.select);
    }
    let most = channels
        .values()
        .map(|selects| selects.len() as u32)
        .max()?;
    let names: BTreeSet<&str> = parts.iter().filter_map(|part| part.by.as_deref()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    Some(Counted {
        by: format!("EDAC ({})", names.join(", ")),
        channels: channels.len() as u32,
        ranks: (parts.iter().any(|part| part.is_rank) && most > 0).then_some(most),
        bytes: parts.iter().map(|part| part.bytes).sum(),
    })
}

/// A cell of the device tree: big-endian.
fn cell(path: &Path) -> Option<u64> {
    let bytes = fs::read(path).ok()?;
    Some(u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?).into())
}

fn device_tree(root: &Path) -> Option<Counted> {
    let (mut channels, mut ranks, mut bytes) = (0, 0, 0);
    let mut folders = vec![(root.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        let below: Vec<_> = below
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        let kinds = text(&folder.join("compatible")).unwrap_or_default();
        let is_channel = kinds
            .split('\0')
            .any(|kind| kind.starts_with("jedec,lpddr") && kind.ends_with("-channel"));
        if !is_channel {
            // Such nodes stand at the root or under the memory controller.
            if depth < 4 {
                folders.extend(below.into_iter().map(|path| (path, depth + 1)));
            }
            continue;
        }
        let width = cell(&folder.join("io-width")).unwrap_or(0);
        let mut own = 0;
        for rank in &below {
            // Megabits of a chip, and how many of them stand side by side.
            let density = cell(&rank.join("density")).unwrap_or(0);
            let chip = cell(&rank.join("io-width")).unwrap_or(0);
            bytes += (density << 17) * width.checked_div(chip).unwrap_or(0);
            own += 1;
        }
        channels += 1;
        ranks = ranks.max(own);
    }
    (channels > 0 && bytes > 0).then(|| Counted {
        by: "the device tree (LPDDR channels)".into(),
        channels,
        ranks: (ranks > 0).then_some(ranks),
        bytes,
    })
}

/// Memory that a map may have and no driver counts: rounding.
const SPARE: u64 = 64 << 20;

impl Counted {
    /// What it says against a map, and what it leaves open. `channels`: of a
    /// node, where the machine's file names them; else those that its functions
    /// make, if any is named. Timing names some, and may take others for banks.
    #[must_use]
    pub fn against(&self, map: &MapSpec, channels: Option<u32>, trust: Trust) -> Objections {
        let mut found = Objections::default();
        let by = &self.by;
        let is_partly_named =
            channels.is_none() && matches!(trust, Trust::Detected | Trust::Incomplete);
        if let Some(of_node) = channels.or_else(|| named_channels(map)) {
            let all = of_node.saturating_mul(memory_nodes(map));
            let more = self.channels / all;
            let fits = match is_partly_named {
                true => self.channels % all == 0 && more.is_power_of_two(),
                false => self.channels == all,
            };
            if !fits {
                found.against.push(format!(
                    "{by} counts {} channel{} with memory, the map has {all}",
                    self.channels,
                    if self.channels == 1 { "" } else { "s" },
                ));
            }
        }
        let rank_bits = map.layouts.iter().map(|layout| layout.rank.len()).max();
        let map_ranks = 1u32 << rank_bits.unwrap_or(0).min(16);
        match self.ranks {
            Some(ranks) if map_ranks > 1 && ranks.next_power_of_two() != map_ranks => {
                found.against.push(format!(
                    "{by} counts {ranks} rank{} in a channel, the map has {map_ranks}",
                    if ranks == 1 { "" } else { "s" },
                ));
            }
            _ => {}
        }
        let bytes = map.bytes();
        if bytes > self.bytes + SPARE {
            found.against.push(format!(
                "{by} counts {} of memory, the map has {}",
                format_size(self.bytes),
                format_size(bytes)
            ));
        } else if bytes < self.bytes - self.bytes / 4 {
            found.unknown.push(format!(
                "why {by} counts {} of memory, and the map has {}: mirrored, or not all of it there",
                format_size(self.bytes),
                format_size(bytes)
            ));
        }
        found
    }
}

/// How many nodes of the map have memory.
pub(crate) fn memory_nodes(map: &MapSpec) -> u32 {
    let nodes: BTreeSet<u8> = map.ranges.iter().map(|range| range.node).collect();
    nodes.len() as u32
}

/// Channels of a node as the functions have them; `None`: none is named. Those
/// of a sub-channel are one.
fn named_channels(map: &MapSpec) -> Option<u32> {
    let mut ways = BTreeSet::new();
    for layout in &map.layouts {
        match (layout.interleave, layout.ways.as_slice()) {
            (None, _) => ways.extend([0]),
            (Some(by), []) => ways.extend(0..by.ways),
            (Some(_), named) => ways.extend(named.iter().map(|&way| u32::from(way))),
        }
    }
    let bits = |layout: &soloist_machine::Layout| {
        layout
            .channel
            .len()
            .saturating_sub(layout.sub_channel.len())
    };
    let bits = map.layouts.iter().map(bits).max().unwrap_or(0);
    let is_divided = map.layouts.iter().any(|layout| layout.interleave.is_some());
    (bits > 0 || is_divided).then_some((ways.len() as u32) << bits.min(16))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use soloist_machine::known;

    /// What is counted on a machine that has only these files.
    fn counted(name: &str, files: &[(String, Vec<u8>)]) -> Option<Counted> {
        let root = std::env::temp_dir().join(format!("soloist-{}-{name}", std::process::id()));
        for (path, content) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let found = super::counted(&Host::at(&root));
        let _ = fs::remove_dir_all(root);
        found
    }

    fn part(mc: u32, name: &str, place: &str, mib: u64) -> Vec<(String, Vec<u8>)> {
        let folder = format!("sys/devices/system/edac/mc/mc{mc}");
        let file = |path: &str, text: String| (format!("{folder}/{path}"), text.into_bytes());
        vec![
            file("mc_name", "Somebody's\n".into()),
            file(&format!("{name}/dimm_location"), format!("{place} \n")),
            file(&format!("{name}/size"), format!("{mib}\n")),
        ]
    }

    /// Two nodes as amd64_edac lists them: chip selects of two channels each.
    fn opteron(selects: u32) -> Vec<(String, Vec<u8>)> {
        let all = (0..4).flat_map(|mc| (0..2).map(move |channel| (mc, channel)));
        all.flat_map(|(mc, channel)| {
            (0..selects).flat_map(move |select| {
                let name = format!("rank{}", select * 2 + channel);
                part(
                    mc,
                    &name,
                    &format!("csrow {select} channel {channel}"),
                    2048,
                )
            })
        })
        .collect()
    }

    #[test]
    fn the_map_that_amd64_edac_agrees_with() {
        let map = known::find("opteron-6128").unwrap();
        let found = counted("opteron", &opteron(2)).unwrap();
        assert_eq!((found.channels, found.ranks), (8, Some(2)));
        assert_eq!(found.bytes, 32 << 30);
        let says = found.against(&map.map, map.host.channels, map.about.trust);
        assert_eq!(says, Objections::default());
    }

    /// Buffered modules hang on branches, each of which counts its own channels.
    #[test]
    fn channels_of_two_branches_are_not_one() {
        let places = (0..2).flat_map(|branch| (0..2).map(move |channel| (branch, channel)));
        let files = places.flat_map(|(branch, channel)| {
            let place = format!("branch {branch} channel {channel} slot 0");
            part(0, &format!("dimm{}", branch * 2 + channel), &place, 1024)
        });
        let found = counted("branches", &files.collect::<Vec<_>>()).unwrap();
        assert_eq!((found.channels, found.bytes), (4, 4 << 30));
    }

    #[test]
    fn other_channels_ranks_and_sizes_are_told() {
        let map = known::find("opteron-6128").unwrap();
        let tell = |name: &str, files: &[(String, Vec<u8>)], what: &str| {
            let says =
                counted(name, files)
                    .unwrap()
                    .against(&map.map, map.host.channels, map.about.trust);
            assert!(
                says.against.iter().any(|why| why.contains(what)),
                "{says:?}"
            );
        };
        let mut one_channel = opteron(2);
        one_channel.retain(|(path, _)| !path.contains("rank1") && !path.contains("rank3"));
        tell(
            "channels",
            &one_channel,
            "counts 4 channels with memory, the map has 8",
        );
        tell(
            "ranks",
            &opteron(1),
            "counts 1 rank in a channel, the map has 2",
        );
        tell(
            "sizes",
            &opteron(1),
            "counts 16 GiB of memory, the map has 32",
        );
        // Twice the memory: mirrored, for all that is known.
        let says = counted("mirror", &opteron(4))
            .unwrap()
            .against(&map.map, None, Trust::Exact);
        assert!(
            says.unknown.iter().any(|why| why.contains("mirrored")),
            "{says:?}"
        );
    }

    /// skx_edac and i10nm_edac: modules of three channels, two controllers.
    #[test]
    fn modules_of_an_intel_server() {
        let map = known::find("server-6-channels").unwrap();
        let size = map.map.bytes() / 6 >> 20;
        let modules = |of_each: u32| -> Vec<(String, Vec<u8>)> {
            let all = (0..2).flat_map(|mc| (0..of_each).map(move |channel| (mc, channel)));
            all.flat_map(|(mc, channel)| {
                let empty = part(
                    mc,
                    &format!("dimm{}", 2 * channel + 1),
                    "channel 0 slot 1",
                    0,
                );
                let place = format!("channel {channel} slot 0");
                let mut files = part(mc, &format!("dimm{}", 2 * channel), &place, size);
                files.extend(empty);
                files
            })
            .collect()
        };
        let found = counted("skx", &modules(3)).unwrap();
        assert_eq!((found.channels, found.ranks), (6, None));
        assert_eq!(
            found.against(&map.map, None, Trust::Exact),
            Objections::default()
        );
        // Of six channels timing sees three, and takes the rest for banks.
        let three = known::find("server-3-channels").unwrap().map;
        let timed = Counted {
            bytes: three.bytes(),
            ..found
        };
        let says = |trust| timed.against(&three, None, trust).against.len();
        assert_eq!((says(Trust::Detected), says(Trust::Exact)), (0, 1));
        let says = counted("skx2", &modules(2))
            .unwrap()
            .against(&map.map, None, Trust::Exact);
        assert!(says.against[0].contains("4 channels"), "{says:?}");
    }

    #[test]
    fn lpddr_channels_of_a_device_tree() {
        let file = |path: &str, bytes: &[u8]| (format!("proc/device-tree/{path}"), bytes.to_vec());
        let number = |n: u32| n.to_be_bytes();
        let mut files = Vec::new();
        for channel in 0..2 {
            let at = |path: &str| format!("lpddr-channel{channel}/{path}");
            files.push(file(&at("compatible"), b"jedec,lpddr4-channel\0"));
            files.push(file(&at("io-width"), &number(32)));
            for rank in 0..2 {
                files.push(file(&at(&format!("rank@{rank}/density")), &number(8192)));
                files.push(file(&at(&format!("rank@{rank}/io-width")), &number(16)));
            }
        }
        let found = counted("lpddr", &files).unwrap();
        assert_eq!((found.channels, found.ranks), (2, Some(2)));
        assert_eq!(found.bytes, 8 << 30);
        assert_eq!(counted("none", &[file("model", b"A board\0")]), None);
    }

    #[test]
    fn files_that_make_no_sense_are_passed_over() {
        let mut files = part(0, "dimm0", "channel x slot 0", 4096);
        files.extend(part(0, "dimm1", "", 4096));
        files.extend(part(0, "dimm2", "channel 1 slot 0", 4096));
        files.push((
            "sys/devices/system/edac/mc/mc0/dimm3/size".into(),
            b"?".to_vec(),
        ));
        let found = counted("odd", &files).unwrap();
        assert_eq!((found.channels, found.bytes), (1, 4 << 30));
        assert_eq!(counted("empty", &[]), None);
    }
}

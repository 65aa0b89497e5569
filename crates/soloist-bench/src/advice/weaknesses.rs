//! What the colours of a map can't keep apart.

use serde::Serialize;
use soloist_core::AddrMap;
use soloist_host::machine::{topology, Host};
use soloist_machine::Machine;

/// With so many banks for each processor, neighbours hardly meet in one.
const MANY_BANKS: usize = 32;
/// A page that lies on so many channels is beside everybody, whatever its colour.
const MANY_CHANNELS: usize = 4;

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Weakness {
    /// In a sentence.
    pub says: String,
    /// Colours isolate little for this alone.
    pub is_grave: bool,
}

/// Why the map's colours isolate less than their number says, on a machine with so many
/// processors; none: nothing is known to.
#[must_use]
pub fn weaknesses(map: &AddrMap, processors: usize) -> Vec<Weakness> {
    let mut found = Vec::new();
    let mut add = |is_grave, says| found.push(Weakness { says, is_grave });
    let set = map.controllers().into_iter().flatten().next();
    let banks = map.colors_of_set(set.unwrap_or(0)).len();
    let channels = channels_of_page(map);
    if channels > 1 {
        add(
            channels >= MANY_CHANNELS,
            format!(
                "A page of {} lies in {banks} banks on {channels} channels, so tasks of all colours \
                 share each channel's bus and queues.",
                map.page_size()
            ),
        );
    }
    if sets_of_node(map) < 2 {
        let says = "Each page lies in all banks of its node, so pages have no bank colours.";
        add(true, says.to_owned());
    }
    let per_core = banks_with_memory(map) / processors.max(1);
    if per_core >= MANY_BANKS {
        add(
            true,
            format!("There are {per_core} banks for each CPU, so co-runners hardly meet in one."),
        );
    }
    found
}

/// Why a page can't have a channel to itself; `None`: it may.
#[must_use]
pub fn no_channel_colors(map: &AddrMap) -> Option<String> {
    let channels = map.channels() as usize;
    let of_page = channels_of_page(map);
    match channels {
        0 | 1 => Some("The map has one channel for each node.".to_owned()),
        _ if of_page >= channels => Some(format!(
            "A page of {} lies on all {channels} channels of its node, so pages have no channel colours.",
            map.page_size()
        )),
        _ => None,
    }
}

/// Why so many cache colours of a map divide nothing, by its machine's file; `None`: no file
/// says so, or the map has none.
#[must_use]
pub fn hashed_cache(colors: u32, machine: &Machine) -> Option<String> {
    let (name, last) = machine.cache.as_ref()?.last()?;
    (colors > 1 && last.hashed).then(|| {
        format!(
            "The {name} hashes its sets (by the file of {}), so the map's {colors} cache colours divide \
             nothing of it.",
            machine.about.name
        )
    })
}

/// What speaks against colours of this map on this host, a line each, for those who colour.
/// `machine` is the map's, where its file is known.
#[must_use]
pub fn warnings(map: &AddrMap, machine: Option<&Machine>, host: &Host) -> Vec<String> {
    let grave = weaknesses(map, topology(host).processors())
        .into_iter()
        .filter(|w| w.is_grave);
    let grave: Vec<String> = grave.map(|weakness| weakness.says).collect();
    let little = (!grave.is_empty()).then(|| {
        format!(
            "these colours isolate little: {} `soloist advise` says what does",
            grave.join(" ")
        )
    });
    let hashed = machine.and_then(|machine| hashed_cache(map.n_llc(), machine));
    little.into_iter().chain(hashed).collect()
}

/// Channels that lines of one page lie on.
fn channels_of_page(map: &AddrMap) -> usize {
    let Some(range) = map.ranges().next() else {
        return 0;
    };
    let size = map.page_size().bytes();
    let page = range.start.next_multiple_of(size);
    let lines = (page..page + size).step_by(map.line_size() as usize);
    let places = lines.filter_map(|line| map.decode(line).ok());
    let mut channels: Vec<u32> = places.map(|place| place.channel).collect();
    channels.sort_unstable();
    channels.dedup();
    channels.len()
}

/// Banks of the sets that hold memory. A map counts ways and nodes in powers of two, so some of
/// its sets hold none.
fn banks_with_memory(map: &AddrMap) -> usize {
    let sets = (0..map.n_bank_sets()).filter(|&set| map.set_frames(set) > 0);
    sets.map(|set| map.colors_of_set(set).len()).sum()
}

/// Bank sets of the node that has most.
fn sets_of_node(map: &AddrMap) -> usize {
    let nodes = map.memory_nodes().into_iter();
    let sets = nodes.map(|node| map.sets_of_node(node).count());
    sets.max().unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use soloist_machine::known;

    /// (machine, processors, words of each weakness, whether one is grave)
    #[test]
    fn maps_that_isolate_little_are_told_from_others() {
        for (name, processors, words, grave) in [
            ("raspberry-pi-4", 4, vec![], false),
            ("qemu-2node", 4, vec![], false),
            ("opteron-6128", 16, vec!["2 banks on 2 channels"], false),
            ("skylake", 4, vec!["4 banks on 2 channels"], false),
            ("sapphire-rapids", 64, vec!["16 banks on 16 channels"], true),
            // One way of four has no memory.
            ("server-3-channels", 2, vec![], false),
            ("server-6-channels", 2, vec!["96 banks for each"], true),
            (
                "opteron-6128",
                1,
                vec!["2 channels", "128 banks for each"],
                true,
            ),
        ] {
            let map = known::find(name).unwrap().addr_map();
            let found = weaknesses(&map, processors);
            assert_eq!(found.len(), words.len(), "{name}: {found:?}");
            for (weakness, words) in found.iter().zip(words) {
                assert!(weakness.says.contains(words), "{name}: {weakness:?}");
            }
            assert_eq!(found.iter().any(|w| w.is_grave), grave, "{name}: {found:?}");
        }
    }
}

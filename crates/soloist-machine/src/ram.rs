//! Ranges of physical memory, as an operating system shows them.

/// Memory that the operating system shows as one piece: addresses of a node
/// without a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RamRange {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// Node.
    pub node: u8,
}

/// `System RAM` lines of /proc/iomem, neighbours as one, all of node 0; also those of drivers
/// that bring memory, such as `System RAM (kmem)` within a device's range. Without privilege all addresses are 0: then there are no ranges.
#[must_use]
pub fn parse_iomem(text: &str) -> Vec<RamRange> {
    let is_ram = |line: &&str| match line.split_once(" : ") {
        Some((at, "System RAM")) => !at.starts_with(' '),
        Some((_, name)) => name.starts_with("System RAM ("),
        None => false,
    };
    let ram = text.lines().filter(is_ram);
    join(ram.filter_map(|line| {
        let (start, end) = line.split_once(" : ")?.0.trim_start().split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?.checked_add(1)?;
        (end > start + 1).then_some(RamRange {
            start,
            end,
            node: 0,
        })
    }))
}

/// Ascending ranges with neighbours of one node made one.
pub fn join(ranges: impl IntoIterator<Item = RamRange>) -> Vec<RamRange> {
    let mut joined: Vec<RamRange> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start && last.node == range.node => {
                last.end = range.end
            }
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn iomem_without_privilege_tells_nothing() {
        let hidden = "00000000-00000000 : System RAM\n00000000-00000000 : Kernel code\n";
        assert!(parse_iomem(hidden).is_empty());
        let shown = "00100000-bfffffff : System RAM\n  01000000-01ffffff : Kernel code\n100000000-23fffffff : System RAM\n";
        let ranges = parse_iomem(shown);
        assert_eq!(ranges[1].start, 0x1_0000_0000);
        assert_eq!(ranges.len(), 2);
    }

    #[test]
    fn memory_that_a_driver_brings_is_memory() {
        let text = "100000000-1ffffffff : System RAM\n280000000-47fffffff : Persistent Memory\n  280000000-47fffffff : dax0.0\n    280000000-47fffffff : System RAM (kmem)\n";
        let ranges = parse_iomem(text);
        assert_eq!(ranges.len(), 2);
        assert_eq!(
            (ranges[1].start, ranges[1].end),
            (0x2_8000_0000, 0x4_8000_0000)
        );
    }

    proptest! {
        #[test]
        fn iomem_never_panics(text in "\\PC{0,80}") {
            let _ = parse_iomem(&text);
        }
    }
}

//! From an address of QEMU's own to the guest's physical one.
//!
//! QEMU tells the physical address of data, but of instructions only where in
//! its own memory they lie. The guest's memory is one memfd a node, made in order,
//! so that their inode numbers ascend; `/proc/self/maps` says where they are.

use soloist_record::plan::Plan;

/// The guest's memory in QEMU's.
#[derive(Debug, Default)]
pub struct Ram {
    /// First address, bytes, and offset in the guest's memory.
    parts: Vec<(u64, u64, u64)>,
    begins: u64,
    below_4g: u64,
}

impl Ram {
    /// Finds it; empty if what is there is not what the plan says.
    pub fn find(plan: &Plan, maps: &str) -> Self {
        let mut found: Vec<(u64, u64, u64)> = maps.lines().filter_map(memfd).collect();
        found.sort_by_key(|&(inode, ..)| inode);
        let sizes: Vec<u64> = found.iter().map(|&(_, _, size)| size).collect();
        if sizes != plan.ram {
            return Self::default();
        }
        let mut offset = 0;
        let mut parts = Vec::new();
        for (_, start, size) in found {
            parts.push((start, size, offset));
            offset += size;
        }
        Self {
            parts,
            begins: plan.begins,
            below_4g: plan.below_4g,
        }
    }

    /// The guest's physical address.
    pub fn physical(&self, host: u64) -> Option<u64> {
        let &(start, _, offset) = self
            .parts
            .iter()
            .find(|(start, size, _)| (*start..start + size).contains(&host))?;
        let at = host - start + offset;
        Some(if at < self.below_4g {
            self.begins + at
        } else {
            at - self.below_4g + (4 << 30)
        })
    }
}

/// Inode, start and size of a line of `/proc/self/maps` that maps guest memory.
fn memfd(line: &str) -> Option<(u64, u64, u64)> {
    if !line.contains("/memfd:memory-backend-memfd") {
        return None;
    }
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let inode = words.nth(3)?.parse().ok()?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    Some((inode, start, end - start))
}

//! From an address of QEMU's own to the guest's physical one.
//!
//! QEMU tells the physical address of data, but of instructions only where in
//! its own memory they lie. The guest's memory is one memfd a node that has some, or one
//! for all, made in order, so that their inode numbers ascend; `/proc/self/maps` says where
//! they are.

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

    /// Whether it was not found.
    pub fn is_lost(&self) -> bool {
        self.parts.is_empty()
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn plan(ram: &[u64]) -> Plan {
        Plan {
            out: PathBuf::new(),
            limit: 0,
            line: 64,
            caches: Vec::new(),
            programs: Vec::new(),
            ram: ram.to_vec(),
            begins: 0,
            below_4g: 0x3000,
        }
    }

    #[test]
    fn pieces_follow_each_other_in_the_order_of_their_making() {
        let maps = "7f0000000000-7f0000002000 rw-s 00000000 00:01 12 /memfd:memory-backend-memfd\n\
                    7f0000010000-7f0000012000 rw-s 00000000 00:01 11 /memfd:memory-backend-memfd\n\
                    7f0000020000-7f0000022000 rw-p 00000000 00:00 0 [heap]\n";
        let ram = Ram::find(&plan(&[0x2000, 0x2000]), maps);
        assert_eq!(ram.physical(0x7f00_0001_0010), Some(0x10));
        assert_eq!(ram.physical(0x7f00_0000_0010), Some(0x2010));
        assert_eq!(ram.physical(0x7f00_0000_1010), Some((4 << 30) + 0x10));
        assert_eq!(ram.physical(0x7f00_0002_0010), None);
        assert!(!ram.is_lost());
        assert!(Ram::find(&plan(&[0x2000, 0, 0x2000]), maps).is_lost());
    }
}

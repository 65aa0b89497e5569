//! MemGuard: bandwidth is reserved for the cores in front and for those in the background,
//! where Linux places the pages and where each program has banks of its own.

use soloist_core::{AddrMap, ColorSet, Refusal, Regulation, Reservation, Sharing};
use soloist_memory::system::Guard;
use soloist_memory::Platform;

use super::camc::DIFF_BANK;
use super::linux::BUDDY;
use super::{Policy, Tenant};
use crate::guard::{ModelGuard, EWMA, PERIOD_US};

pub(super) static POLICIES: &[&dyn Policy] = &[&MEMGUARD, &BANKS_MEMGUARD];

/// The programs in the background get one of so many parts of what is guaranteed
/// together (the paper's 7.1: 0.2 of 1.2 GB/s).
const PARTS: u64 = 6;

/// Linux, bandwidth reserved: five sixths of what is guaranteed to the programs in
/// front, the rest to those in the background, more in proportion.
pub static MEMGUARD: MemGuard = MemGuard {
    name: "memguard",
    title: "Linux, MemGuard",
    pages: &BUDDY,
};

/// The same reservations, and private banks.
pub static BANKS_MEMGUARD: MemGuard = MemGuard {
    name: "diff_bank+memguard",
    title: "own banks, MemGuard",
    pages: &DIFF_BANK,
};

/// Bandwidth reserved, and pages as another policy places them.
pub struct MemGuard {
    name: &'static str,
    title: &'static str,
    pages: &'static dyn Policy,
}

impl Policy for MemGuard {
    fn name(&self) -> &'static str {
        self.name
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn is_colored(&self) -> bool {
        self.pages.is_colored()
    }

    fn colors(&self, map: &AddrMap, tenants: &[Tenant]) -> Result<Vec<Option<ColorSet>>, Refusal> {
        self.pages.colors(map, tenants)
    }

    fn ignores_nodes(&self) -> bool {
        self.pages.ignores_nodes()
    }

    fn is_regulated(&self) -> bool {
        true
    }

    /// Reserves for both groups, all of one group alike; what is left goes in
    /// proportion (BR+PS), and only misses count. Guaranteed is a line in each row
    /// cycle of one bank (the paper's 4.1).
    fn guard(
        &self,
        platform: &Platform,
        front: &[usize],
        back: &[usize],
    ) -> Result<Option<Box<dyn Guard>>, Refusal> {
        if back.is_empty() {
            return Ok(None);
        }
        let line = platform.memory.map.line_size();
        let device = &platform.memory.device;
        let row_cycle_ps = u64::from(device.trc) * u64::from(device.tck_ps);
        let r_min = u64::from(line) * 1_000_000_000_000 / row_cycle_ps.max(1);
        let settings = Regulation {
            period_us: PERIOD_US,
            line,
            r_min: [r_min, 0],
            peak: platform.northbridge.bytes_per_us * 1_000_000,
            q_min: 0,
            ewma: EWMA,
            sharing: Sharing::Proportional,
        };
        let of_back = r_min / PARTS;
        let mut reservations = vec![None; platform.node_of_core.len()];
        for (cores, rate) in [(front, r_min - of_back), (back, of_back)] {
            for &core in cores {
                reservations[core] = Some(Reservation {
                    rate: [rate / cores.len() as u64, 0],
                    weight: 0,
                    reclaim: true,
                });
            }
        }
        let tasks = vec![None; reservations.len()];
        let guard = ModelGuard::regulating(&settings, &reservations, None, tasks)?;
        Ok(Some(Box::new(guard)))
    }
}

//! Where a case's pages lie: colours by the policy, pages by first touch.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use soloist_core::ColorSet;
use soloist_memory::Platform;
use soloist_play::linux::own_node;
use soloist_play::placement::buddy::{Buddy, History, NumaLayout};
use soloist_play::placement::memory::{Allocation, Exhaust, Memory};
use soloist_play::placement::policy::{assign, Policy, Seat};
use soloist_play::programs::Program;

use super::error::RunError;
use crate::cases::Case;

/// Pages of 4 KiB.
pub(super) const PAGE_SHIFT: u32 = 12;

/// A bank set counts as full at this share, since some of it is in use already.
const USABLE: f64 = 0.7;

/// A task's program and where its pages lie.
pub(super) struct Placed {
    pub(super) program: Box<dyn Program>,
    pub(super) pages: Vec<u32>,
    pub(super) spilled: u64,
}

/// Places all pages of the tasks of `case`, which run `programs`: one page at a
/// time, whose turn it is drawn from `seed`.
pub(super) fn place(
    platform: &Platform,
    (history, exhausted): (History, Exhaust),
    case: &Case,
    programs: Vec<Box<dyn Program>>,
    seed: u64,
) -> Result<Vec<Placed>, RunError> {
    let map = &platform.memory.map;
    let colors = colors(platform, case)?;
    let layout = NumaLayout {
        node_of_cpu: platform.node_of_core.iter().map(|&n| n as u32).collect(),
        distance: platform
            .hops
            .iter()
            .map(|row| row.iter().map(|&h| h as u32).collect())
            .collect(),
    };
    let mut memory = Memory::new(map, Buddy::new(map, layout, history, seed));
    let mut placed: Vec<Placed> = programs
        .into_iter()
        .map(|program| Placed {
            program,
            pages: Vec::new(),
            spilled: 0,
        })
        .collect();
    let first = case.tasks[0].cpu as usize;
    // Threads of a program are one program.
    let program = |i: usize| case.tasks[1..=i].iter().filter(|t| t.thread == 0).count();
    let own = |i| (case.policy == Policy::Membind).then(|| own_node(platform, first, program(i)));
    let allocation = |i: usize, colors: Option<&ColorSet>| {
        let task = &case.tasks[i];
        Allocation::new(map, i as u32, task.first_touch, colors, exhausted)
            .from_anywhere(case.policy.ignores_nodes())
            .interleaved(case.policy == Policy::Interleave)
            .bound_to(task.node.or_else(|| own(i)))
    };
    let tasks = 0..case.tasks.len();
    let mut colored: Vec<Allocation> = tasks
        .clone()
        .map(|i| allocation(i, colors[i].as_ref()))
        .collect();
    let mut plain: Vec<Allocation> = tasks.map(|i| allocation(i, None)).collect();
    let mut left: Vec<(usize, u64)> = placed
        .iter()
        .enumerate()
        .map(|(i, p)| {
            let others = if case.tasks[i].thread == 0 {
                0
            } else {
                p.program.shared_pages()
            };
            (i, p.program.bytes().div_ceil(1 << PAGE_SHIFT) - others)
        })
        .filter(|&(_, pages)| pages > 0)
        .collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed ^ 0x7061_6765);
    while !left.is_empty() {
        let turn = rng.gen_range(0..left.len());
        let (i, pages) = &mut left[turn];
        let taken = &mut placed[*i];
        // The first thread's turn is that of all that its program shares.
        let shared = taken.program.shared_pages();
        let leads = case.tasks[*i].thread == 0;
        let page = taken.pages.len() as u64 + if leads { 0 } else { shared };
        let by = match page < shared {
            true => *i + taken.program.first_thread(page),
            false => *i,
        };
        let from = match taken.program.colored(page) {
            true => &mut colored[by],
            false => &mut plain[by],
        };
        let pfn = memory.page(from).map_err(|source| RunError::Memory {
            case: case.name.clone(),
            task: case.tasks[*i].name.clone(),
            source,
        })?;
        taken.pages.push(pfn);
        *pages -= 1;
        if *pages == 0 {
            left.swap_remove(turn);
        }
    }
    for (placed, allocation) in placed.iter_mut().zip(colored) {
        placed.spilled = allocation.spilled;
    }
    let mut shared = Vec::new();
    for (placed, task) in placed.iter_mut().zip(&case.tasks) {
        let pages = placed.program.shared_pages() as usize;
        if task.thread == 0 {
            shared = placed.pages[..pages].to_vec();
        } else {
            placed.pages.splice(..0, shared.iter().copied());
        }
    }
    Ok(placed)
}

/// The colours of each task by the policy; `None`: uncoloured.
pub(super) fn colors(platform: &Platform, case: &Case) -> Result<Vec<Option<ColorSet>>, RunError> {
    let map = &platform.memory.map;
    let set_bytes = map.bytes() as f64 / f64::from(map.n_bank_sets()) * USABLE;
    let seats: Vec<Seat> = case
        .tasks
        .iter()
        .map(|task| Seat {
            node: task
                .node
                .unwrap_or_else(|| platform.home(task.cpu as usize)),
            sets: task
                .sets
                .unwrap_or((task.bytes as f64 / set_bytes).ceil() as u32)
                .max(1),
        })
        .collect();
    if case.policy.uncolored() {
        return Ok(vec![None; seats.len()]);
    }
    assign(case.policy, map, &seats).map_err(|source| RunError::Colors {
        case: case.name.clone(),
        source,
    })
}

//! Puts a program together from the streams of its processors.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::error::Error;
use crate::event::{Event, Kind};
use crate::program::{Page, Piece, Program};
use crate::step::{pack, pack_other, renumber, unpack, Step, MARK, WAIT, WAKE};

/// Lowest virtual page of the kernel's half.
const KERNEL_HALF: u64 = 1 << 51;

/// What is loaded so far.
#[derive(Default)]
pub(crate) struct Loader {
    pub(crate) pieces: Vec<Piece>,
    seen: Vec<Page>,
    by_phys: HashMap<u64, u32>,
    pub(crate) damage: Vec<Error>,
}

impl Loader {
    /// Takes the events of the stream of `cpu`, in order; of its lines those numbers.
    pub(crate) fn stream(&mut self, cpu: u32, lines: Range<usize>) -> impl FnMut(Event) + '_ {
        // Page numbers of the stream, as indices into `seen`.
        let mut pages: Vec<u32> = Vec::new();
        let mut owed: HashMap<u32, u32> = HashMap::new();
        let mut next = 0;
        let mut thread = u32::MAX;
        move |event| match event {
            Event::Switch {
                thread: next,
                order,
                work,
            } => {
                let debt = owed.entry(thread).or_default();
                *debt = debt.saturating_add(work);
                thread = next;
                self.pieces.push(Piece {
                    thread,
                    cpu,
                    order,
                    steps: Vec::new(),
                });
            }
            Event::Page { virt, phys, order } => pages.push(self.page(virt, phys, order, thread)),
            Event::Mark { code, work } => {
                let debt = owed.entry(thread).or_default();
                *debt = debt.saturating_add(work);
                if let Some(piece) = self.pieces.last_mut() {
                    piece.steps.push(pack_other(MARK, u32::from(code)));
                }
            }
            Event::Wake { id, work } => {
                let debt = owed.entry(thread).or_default();
                *debt = debt.saturating_add(work);
                if let Some(piece) = self.pieces.last_mut().filter(|_| lines.contains(&next)) {
                    piece.steps.push(pack_other(WAKE, id));
                }
            }
            Event::Wait { id } => {
                if let Some(piece) = self.pieces.last_mut().filter(|_| lines.contains(&next)) {
                    piece.steps.push(pack_other(WAIT, id));
                }
            }
            Event::Access(mut access) => {
                let Some(&page) = pages.get(access.page as usize) else {
                    return;
                };
                next += 1;
                if !lines.contains(&(next - 1)) {
                    owed.clear();
                    return;
                }
                if access.kind != Kind::WriteBack {
                    let debt = owed.entry(thread).or_default();
                    access.work = access.work.saturating_add(std::mem::take(debt));
                }
                if let Some(piece) = self.pieces.last_mut() {
                    piece.steps.push(pack(&access, page));
                }
            }
        }
    }

    fn page(&mut self, virt: u64, phys: u64, order: u64, thread: u32) -> u32 {
        let user = virt < KERNEL_HALF;
        let next = self.seen.len() as u32;
        let at = *self.by_phys.entry(phys).or_insert(next);
        if at == next {
            self.seen.push(Page {
                phys,
                virt,
                user,
                thread,
                order,
            });
        } else {
            let seen = &mut self.seen[at as usize];
            // The kernel clears a page before its owner ever sees it.
            if (user && !seen.user) || (user == seen.user && order < seen.order) {
                seen.virt = virt;
                seen.thread = thread;
            }
            seen.user |= user;
            seen.order = seen.order.min(order);
        }
        at
    }

    /// The program, with the threads that `user` holds for those of user space.
    pub(crate) fn finish(mut self, user: impl Fn(u32) -> bool) -> Program {
        let mut by_order: Vec<u32> = (0..self.seen.len() as u32).collect();
        by_order.sort_by_key(|&at| self.seen[at as usize].order);
        let mut number = vec![0; self.seen.len()];
        for (new, &old) in by_order.iter().enumerate() {
            number[old as usize] = new as u32;
        }
        self.pieces
            .retain(|piece| user(piece.thread) && !piece.steps.is_empty());
        self.pieces.sort_by_key(|piece| piece.order);
        // Who woke it may be another program, or not among the lines.
        let steps = self.pieces.iter().flat_map(|piece| &piece.steps);
        let wakes: HashSet<u32> = steps
            .filter_map(|&packed| match unpack(packed) {
                Step::Wake(id) => Some(id),
                _ => None,
            })
            .collect();
        for piece in &mut self.pieces {
            piece.steps.retain(|&packed| match unpack(packed) {
                Step::Wait(id) => wakes.contains(&id),
                _ => true,
            });
        }
        for piece in &mut self.pieces {
            for packed in &mut piece.steps {
                *packed = renumber(*packed, &number);
            }
        }
        Program {
            pages: by_order.iter().map(|&at| self.seen[at as usize]).collect(),
            damage: self.damage,
            pieces: self.pieces,
        }
    }
}

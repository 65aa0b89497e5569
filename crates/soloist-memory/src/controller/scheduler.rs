//! Schedulers: which commands a bank offers, and which of several goes first.
//!
//! The controller issues the command that is legal first. A scheduler decides
//! on two levels. In a bank it picks the requests whose next command the bank
//! offers ([`Scheduler::offer`]); among banks it orders commands that are legal
//! in the same cycle ([`Scheduler::turns`]). When a command is legal, writes are
//! drained and refreshes fall due is not its business.
//!
//! Another scheduler is a file here, and nothing else: the build makes each file a
//! module. `fr_fcfs.rs` has the type `FrFcfs`, and machine files call it "fr-fcfs".

use soloist_machine::memory::{Order, Policy};

use super::offer::{BankView, Key, Offers, Turns};

/// A memory scheduler.
pub(super) trait Scheduler {
    /// Puts what a bank with requests offers into `offers`, in which is nothing.
    fn offer(&self, bank: &BankView<'_>, offers: &mut Offers);

    /// Places of a bank's commands among those that are legal in the same cycle.
    fn turns(&self, bank: u16, offers: &Offers) -> Turns;

    /// A bank's command has been issued.
    fn issued(&mut self, bank: u16);

    /// Could a request that has come behind others change what its bank
    /// offered up to now? `hits`: it is for the open row.
    fn reconsiders(&self, _offered: &Offers, _hits: bool, _write: bool) -> bool {
        true
    }
}

/// Makes of the files the type of a controller's scheduler: an enum, since calls
/// through it can be inlined.
macro_rules! each_file {
    ($(($module:ident, $name:ident))*) => {
        /// Names of all schedulers, as machine files write them, ascending.
        pub fn names() -> impl Iterator<Item = String> {
            [$(stringify!($module)),*].into_iter().map(|module| module.replace('_', "-"))
        }

        #[derive(Clone, Debug)]
        pub(super) enum AnyScheduler {
            $($name($module::$name)),*
        }

        impl AnyScheduler {
            /// `None`: no file has that name.
            pub fn new(policy: &Policy) -> Option<Self> {
                $(if policy.scheduler == stringify!($module).replace('_', "-") {
                    return Some(Self::$name($module::$name::new(policy)));
                })*
                None
            }
        }

        impl Scheduler for AnyScheduler {
            #[inline(always)]
            fn offer(&self, bank: &BankView<'_>, offers: &mut Offers) {
                match self { $(Self::$name(s) => s.offer(bank, offers)),* }
            }

            #[inline(always)]
            fn turns(&self, bank: u16, offers: &Offers) -> Turns {
                match self { $(Self::$name(s) => s.turns(bank, offers)),* }
            }

            #[inline(always)]
            fn issued(&mut self, bank: u16) {
                match self { $(Self::$name(s) => s.issued(bank)),* }
            }

            #[inline(always)]
            fn reconsiders(&self, offered: &Offers, hits: bool, write: bool) -> bool {
                match self { $(Self::$name(s) => s.reconsiders(offered, hits, write)),* }
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/scheduler.rs"));

/// Turns by the policy's [`Order`] among banks.
#[derive(Clone, Copy, Debug)]
struct BankOrder {
    order: Order,
    /// The bank served last.
    served: u16,
}

impl BankOrder {
    fn new(policy: &Policy) -> Self {
        Self {
            order: policy.order,
            served: 0,
        }
    }

    #[inline(always)]
    fn turns(&self, bank: u16) -> Turns {
        match self.order {
            Order::Oldest => Turns { column: 0, row: 1 },
            Order::RoundRobin => {
                let after = bank.wrapping_sub(self.served).wrapping_sub(1);
                let turn = u64::from(after) & ((1 << Key::TURN_BITS) - 1);
                Turns {
                    column: turn,
                    row: turn,
                }
            }
        }
    }
}

//! Which processor a callback is for.
//!
//! QEMU 10 tells it, but wrongly where one thread emulates several processors, as it does
//! when instructions are counted: it writes the number of the processor for which a block was
//! translated into the block's code, and all processors run that code. The code itself has
//! the processor's state in a register, RBP on an x86-64 host. So callbacks come in
//! through a few instructions that pass it on, and the guest tells by markers which state is
//! whose ([`soloist_record::plan::HERE`]). Accesses by QEMU's own functions come with the
//! right number, and with anything in RBP.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use soloist_record::plan::MAX_CPUS;

/// The state of each processor; 0: not told yet.
pub struct Whose([AtomicUsize; MAX_CPUS]);

impl Default for Whose {
    fn default() -> Self {
        Self([const { AtomicUsize::new(0) }; MAX_CPUS])
    }
}

impl Whose {
    /// The processor whose state is `env`, or `told` if that is nobody's.
    #[inline]
    pub fn cpu(&self, told: c_uint, env: usize) -> c_uint {
        let is = |state: &AtomicUsize| state.load(Relaxed) == env;
        if self.0.get(told as usize).is_some_and(is) {
            return told;
        }
        self.0.iter().position(is).map_or(told, |at| at as c_uint)
    }

    /// `env` is the state of processor `cpu`.
    pub fn is(&self, cpu: u16, env: usize) {
        if let Some(state) = self.0.get(usize::from(cpu)) {
            state.store(env, Relaxed);
        }
    }
}

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".globl soloist_on_block",
    ".hidden soloist_on_block",
    "soloist_on_block:",
    "mov rdx, rbp",
    "jmp {block}",
    ".globl soloist_on_clear",
    ".hidden soloist_on_clear",
    "soloist_on_clear:",
    "mov rdx, rbp",
    "jmp {clear}",
    ".globl soloist_on_store",
    ".hidden soloist_on_store",
    "soloist_on_store:",
    "mov r8, rbp",
    "jmp {store}",
    ".globl soloist_on_access",
    ".hidden soloist_on_access",
    "soloist_on_access:",
    "mov r8, rbp",
    "jmp {access}",
    block = sym crate::on_block,
    clear = sym crate::on_clear,
    store = sym crate::on_store,
    access = sym crate::on_access,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_state_is_right_and_an_unknown_one_says_nothing() {
        let whose = Whose::default();
        assert_eq!(whose.cpu(3, 0x1000), 3);
        whose.is(0, 0x1000);
        whose.is(2, 0x3000);
        assert_eq!(whose.cpu(2, 0x1000), 0, "translated for 2, run by 0");
        assert_eq!(whose.cpu(2, 0x3000), 2);
        assert_eq!(whose.cpu(1, 0x2000), 1, "an access by QEMU's own function");
        assert_eq!(whose.cpu(900, 0x3000), 2);
    }
}

//! What is known of a block of code before it runs.
//!
//! For dependence, each block says which registers feed which ([`crate::registers`]).

use std::ffi::c_void;

use crate::arm64;
use crate::qemu::{self, Tb};
use crate::registers::{Move, Moves, Registers, Seen};
use crate::x86;

/// What the guest's processors run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// x86-64.
    X86,
    /// arm64.
    Arm64,
}

impl Target {
    /// By QEMU's name of it; `None`: one that cannot be recorded.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "x86_64" => Some(Self::X86),
            "aarch64" => Some(Self::Arm64),
            _ => None,
        }
    }
}

/// An instruction that accesses memory.
#[derive(Debug)]
pub struct Access {
    /// Address of the instruction.
    pub pc: u64,
    /// Instructions of the block from this one on.
    pub left: u32,
    /// Whether it is in the kernel's half of the address space.
    pub kernel: bool,
    /// How many of the block's moves come before it.
    pub moves: usize,
    /// Registers of the address.
    pub address: Registers,
    /// Registers that take what is loaded.
    pub loads: Registers,
    /// Registers beside the address that what is loaded is computed with.
    pub mixes: Registers,
    /// The register whose line it clears, if that is what it does.
    pub clears: Option<u8>,
}

/// A block.
#[derive(Debug)]
pub struct Block {
    /// Instructions.
    pub size: u32,
    /// Whether it is in the kernel's half of the address space.
    pub kernel: bool,
    /// Virtual page number of its first instruction.
    pub virt: u64,
    /// Where its first instruction lies: in physical memory, or its address if that is unknown.
    first: u64,
    /// The same of its last, if that is a repeated string instruction.
    repeats: Option<u64>,
    /// Physical lines that it lies in; none where that is unknown.
    pub lines: Box<[u64]>,
    /// Its computations from registers, in order.
    pub moves: Moves,
}

impl Block {
    /// An instruction of user code that does these moves.
    #[cfg(test)]
    pub fn of(moves: &[Move]) -> Self {
        Self {
            size: 1,
            kernel: false,
            virt: 1,
            first: 0x1000,
            repeats: None,
            lines: Box::default(),
            moves: moves.into(),
        }
    }

    /// Returns whether it only goes on with the string instruction that `before` ended in.
    /// Where instructions are counted, QEMU makes a block of each repetition.
    pub fn goes_on(&self, before: &Self) -> bool {
        self.size == 1 && self.repeats == Some(self.first) && self.repeats == before.repeats
    }
}

/// A block's instructions and QEMU's handles of those that access memory.
pub struct Translated {
    /// The block.
    pub block: Block,
    /// The accesses.
    pub accesses: Vec<(*mut qemu::Insn, Access)>,
}

/// Returns whether this address is the kernel's.
pub fn is_kernel(addr: u64) -> bool {
    addr >> 63 == 1
}

/// Looks at a block. `physical` says where code of the host's address lies.
///
/// # Safety
/// `tb` is the block that QEMU is translating.
pub unsafe fn translate(
    tb: *mut Tb,
    target: Target,
    line: u64,
    physical: impl Fn(u64) -> Option<u64>,
) -> Translated {
    let mut decoder = Decoder::new(target);
    let mut moves: Vec<Move> = Vec::new();
    let mut lines: Vec<u64> = Vec::new();
    let mut accesses = Vec::new();
    let (mut first, mut virt, mut repeats) = (0, 0, None);
    // SAFETY: the caller says that the block is QEMU's.
    let size = unsafe { qemu::qemu_plugin_tb_n_insns(tb) };
    for at in 0..size {
        let mut bytes = [0u8; 16];
        // SAFETY: `at` is below the number of instructions; `bytes` holds `length`.
        let (insn, length, pc, host) = unsafe {
            let insn = qemu::qemu_plugin_tb_get_insn(tb, at);
            let length = qemu::qemu_plugin_insn_size(insn).min(bytes.len());
            qemu::qemu_plugin_insn_data(insn, bytes.as_mut_ptr().cast::<c_void>(), length);
            let host = qemu::qemu_plugin_insn_haddr(insn) as u64;
            (insn, length, qemu::qemu_plugin_insn_vaddr(insn), host)
        };
        let phys = (host != 0).then(|| physical(host)).flatten();
        if at == 0 {
            (first, virt) = (phys.unwrap_or(pc), pc);
        }
        if let Some(phys) = phys {
            add_lines(&mut lines, phys, length as u64, line);
        }
        let seen = decoder.see(&bytes[..length], pc);
        repeats = seen.repeats.then_some(phys.unwrap_or(pc));
        let before = moves.len();
        moves.extend(seen.moves);
        accesses.push((
            insn,
            Access {
                pc,
                left: (size - at) as u32,
                kernel: is_kernel(pc),
                moves: before,
                address: seen.address,
                loads: seen.loads,
                mixes: seen.mixes,
                clears: seen.clears,
            },
        ));
    }
    Translated {
        block: Block {
            size: size as u32,
            kernel: is_kernel(virt),
            virt: virt >> 12,
            first,
            repeats,
            lines: lines.into(),
            moves: moves.into(),
        },
        accesses,
    }
}

/// The lines of an instruction, without that of another page: where it lies is not known.
fn add_lines(lines: &mut Vec<u64>, first: u64, length: u64, line: u64) {
    let last = (first + length - 1).min(first | 0xfff);
    for of_line in first / line..=last / line {
        if lines.last() != Some(&of_line) {
            lines.push(of_line);
        }
    }
}

/// Decodes instruction after instruction.
enum Decoder {
    X86(x86::Decoder),
    Arm64,
}

impl Decoder {
    fn new(target: Target) -> Self {
        match target {
            Target::X86 => Self::X86(x86::Decoder::default()),
            Target::Arm64 => Self::Arm64,
        }
    }

    fn see(&mut self, bytes: &[u8], pc: u64) -> Seen {
        match self {
            Self::X86(decoder) => decoder.see(bytes, pc),
            Self::Arm64 => arm64::see(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(instructions: &[(u64, u64)]) -> Vec<u64> {
        let mut lines = Vec::new();
        for &(first, length) in instructions {
            add_lines(&mut lines, first, length, 64);
        }
        lines
    }

    #[test]
    fn an_instruction_lies_in_the_line_of_its_last_byte_too() {
        assert_eq!(lines_of(&[(0x38, 5), (0x3d, 5)]), [0, 1]);
        assert_eq!(lines_of(&[(0x3d, 3)]), [0]);
        assert_eq!(lines_of(&[(0x3d, 5), (0x42, 4)]), [0, 1]);
        assert_eq!(lines_of(&[(0xfe, 4)]), [3, 4]);
        assert_eq!(
            lines_of(&[(0xffe, 4)]),
            [63],
            "the next page lies elsewhere"
        );
    }
}

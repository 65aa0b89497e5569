//! What is known of a block of code before it runs.
//!
//! For dependence, each block says which registers feed which: a register that
//! was computed from a load's result carries that load's number along
//! ([`Moves`]). Only general and vector registers are followed; what goes through memory
//! or flags is not, and the stack pointer never depends.

use std::ffi::c_void;

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, Register,
};

use crate::qemu::{self, Tb};

/// Registers that are followed: 16 general ones, 16 vector ones; a bit each.
pub type Registers = u32;
/// Number of registers that are followed.
pub const REGISTERS: usize = 32;

/// A register takes the youngest load of those that it is computed from.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    /// Number of the register.
    pub to: u8,
    /// The registers that it is computed from.
    pub from: Registers,
}

/// Moves in the order of the code.
pub type Moves = Box<[Move]>;

/// An instruction that accesses memory.
#[derive(Debug)]
pub struct Access {
    /// Address of the instruction.
    pub pc: u64,
    /// Instructions of the block from this one on.
    pub left: u32,
    /// Whether it is in the kernel's half of the address space.
    pub kernel: bool,
    /// Moves since the access before, or since the block's start.
    pub moves: Moves,
    /// Registers of the address.
    pub address: Registers,
    /// Registers that take what is loaded.
    pub loads: Registers,
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
    /// Address of its first instruction.
    first: u64,
    /// Of its last, if that is a repeated string instruction.
    repeats: Option<u64>,
    /// Physical lines that it lies in; none where that is unknown.
    pub lines: Box<[u64]>,
    /// Moves behind its last access.
    pub tail: Moves,
}

impl Block {
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
    line: u64,
    physical: impl Fn(u64) -> Option<u64>,
) -> Translated {
    let mut follow = Follow::default();
    let mut lines: Vec<u64> = Vec::new();
    let mut accesses = Vec::new();
    let (mut first, mut repeats) = (0, None);
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
        if at == 0 {
            first = pc;
        }
        let of_line = (host != 0)
            .then(|| physical(host))
            .flatten()
            .map(|a| a / line);
        if let Some(of_line) = of_line.filter(|l| lines.last() != Some(l)) {
            lines.push(of_line);
        }
        let seen = follow.see(&bytes[..length], pc);
        repeats = seen.repeats.then_some(pc);
        accesses.push((
            insn,
            Access {
                pc,
                left: (size - at) as u32,
                kernel: is_kernel(pc),
                moves: seen.moves,
                address: seen.address,
                loads: seen.loads,
            },
        ));
    }
    Translated {
        block: Block {
            size: size as u32,
            kernel: is_kernel(first),
            virt: first >> 12,
            first,
            repeats,
            lines: lines.into(),
            tail: std::mem::take(&mut follow.moves).into(),
        },
        accesses,
    }
}

/// What an instruction does to registers.
struct Seen {
    moves: Moves,
    address: Registers,
    loads: Registers,
    repeats: bool,
}

/// Decodes instruction after instruction.
struct Follow {
    info: InstructionInfoFactory,
    moves: Vec<Move>,
}

impl Default for Follow {
    fn default() -> Self {
        Self {
            info: InstructionInfoFactory::new(),
            moves: Vec::new(),
        }
    }
}

fn number(register: Register) -> Registers {
    let full = register.full_register();
    if full.is_gpr64() && full != Register::RSP {
        return 1 << full.number();
    }
    if (full.is_xmm() || full.is_ymm() || full.is_zmm()) && full.number() < 16 {
        return 1 << (16 + full.number());
    }
    0
}

impl Follow {
    fn see(&mut self, bytes: &[u8], pc: u64) -> Seen {
        let mut instruction = Instruction::default();
        Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode_out(&mut instruction);
        let mut seen = Seen {
            moves: Box::default(),
            address: 0,
            loads: 0,
            repeats: instruction.has_rep_prefix() || instruction.has_repne_prefix(),
        };
        seen.repeats &= instruction.is_string_instruction();
        if instruction.code() == Code::INVALID {
            return seen;
        }
        let info = self.info.info(&instruction);
        let mut reads_memory = false;
        for memory in info.used_memory() {
            seen.address |= number(memory.base()) | number(memory.index());
            reads_memory |= !matches!(
                memory.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::NoMemAccess
            );
        }
        let (mut sources, mut targets) = (0, 0);
        for used in info.used_registers() {
            let of = number(used.register());
            match used.access() {
                OpAccess::Read | OpAccess::CondRead => sources |= of,
                OpAccess::Write => targets |= of,
                OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                    sources |= of;
                    targets |= of;
                }
                _ => {}
            }
        }
        let has_memory = !info.used_memory().is_empty();
        if has_memory {
            // What moved before belongs to this access; what it loads, it says itself.
            seen.moves = std::mem::take(&mut self.moves).into();
            if reads_memory {
                seen.loads = targets;
                return seen;
            }
        }
        // xor of a register with itself and the like depend on nothing.
        let zeroes = sources != 0 && sources == targets && is_zeroing(&instruction);
        for to in (0..REGISTERS as u8).filter(|to| targets >> to & 1 == 1) {
            self.moves.push(Move {
                to,
                from: if zeroes { 0 } else { sources },
            });
        }
        seen
    }
}

fn is_zeroing(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Pxor, Sub, Vpxor, Xor};
    matches!(instruction.mnemonic(), Xor | Sub | Pxor | Vpxor)
        && instruction.op_count() >= 2
        && instruction.op_register(instruction.op_count() - 1)
            == instruction.op_register(instruction.op_count() - 2)
}

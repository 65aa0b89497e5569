//! What an x86-64 instruction does to registers.

use iced_x86::{
    Code, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register,
    UsedRegister,
};

use crate::registers::{Registers, Seen, VECTORS};

/// Registers that string instructions only advance: RCX, RSI and RDI.
const ADVANCED: Registers = 1 << 1 | 1 << 6 | 1 << 7;

/// Decodes instruction after instruction.
pub struct Decoder(InstructionInfoFactory);

impl Default for Decoder {
    fn default() -> Self {
        Self(InstructionInfoFactory::new())
    }
}

fn number(register: Register) -> Registers {
    let full = register.full_register();
    if full.is_gpr64() && full != Register::RSP {
        return 1 << full.number();
    }
    if (full.is_xmm() || full.is_ymm() || full.is_zmm()) && full.number() < 16 {
        return 1 << (VECTORS + full.number() as u32);
    }
    0
}

impl Decoder {
    /// What the instruction at `pc` does.
    pub fn see(&mut self, bytes: &[u8], pc: u64) -> Seen {
        let mut instruction = Instruction::default();
        iced_x86::Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE)
            .decode_out(&mut instruction);
        let string = instruction.is_string_instruction();
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        let mut seen = Seen {
            repeats: repeats && string,
            ..Seen::default()
        };
        if instruction.code() == Code::INVALID {
            return seen;
        }
        let info = self.0.info(&instruction);
        seen.accesses = !info.used_memory().is_empty();
        let mut reads_memory = false;
        let advanced = if string { ADVANCED } else { 0 };
        for memory in info.used_memory() {
            seen.address |= number(memory.base()) | number(memory.index());
            reads_memory |= !matches!(
                memory.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::NoMemAccess
            );
        }
        if is_bit_of_memory(&instruction) {
            seen.address |= number(instruction.op1_register());
        }
        let (sources, targets) = sources_and_targets(info.used_registers());
        let targets = targets & !advanced;
        if reads_memory {
            seen.loads = targets;
            if !takes_what_was_there(&instruction) {
                seen.mixes = sources & !seen.address;
            }
            return seen;
        }
        // xor of a register with itself and the like depend on nothing.
        let zeroes = sources != 0 && sources == targets && is_zeroing(&instruction);
        seen.compute(targets, if zeroes { 0 } else { sources });
        seen
    }
}

fn sources_and_targets(used: &[UsedRegister]) -> (Registers, Registers) {
    let (mut sources, mut targets) = (0, 0);
    for used in used {
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
    (sources, targets)
}

/// Whether the instruction's register takes what was in memory, whatever it held.
fn takes_what_was_there(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Cmpxchg, Cmpxchg16b, Cmpxchg8b, Xadd, Xchg};
    matches!(
        instruction.mnemonic(),
        Xchg | Xadd | Cmpxchg | Cmpxchg8b | Cmpxchg16b
    )
}

/// Whether a register says which bit of a string of bits in memory is meant: it is a part of the
/// address.
fn is_bit_of_memory(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Bt, Btc, Btr, Bts};
    matches!(instruction.mnemonic(), Bt | Btc | Btr | Bts)
        && instruction.op0_kind() == OpKind::Memory
        && instruction.op1_kind() == OpKind::Register
}

fn is_zeroing(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Pxor, Sub, Vpxor, Xor};
    matches!(instruction.mnemonic(), Xor | Sub | Pxor | Vpxor)
        && instruction.op_count() >= 2
        && instruction.op_register(instruction.op_count() - 1)
            == instruction.op_register(instruction.op_count() - 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAX: Registers = 1;
    const RCX: Registers = 1 << 1;
    const RBX: Registers = 1 << 3;
    const RSI: Registers = 1 << 6;
    const RDI: Registers = 1 << 7;

    fn see(bytes: &[u8]) -> Seen {
        Decoder::default().see(bytes, 0x1000)
    }

    #[test]
    fn where_a_string_instruction_goes_on_is_not_loaded() {
        for movs in [&[0xf3, 0x48, 0xa5][..], &[0x48, 0xa5], &[0xf3, 0xa4]] {
            let seen = see(movs);
            assert_eq!((seen.loads, seen.address), (0, RSI | RDI), "{movs:x?}");
        }
        assert_eq!(see(&[0x48, 0xad]).loads, RAX, "lodsq");
        assert_eq!(see(&[0xf3, 0x48, 0xab]).moves, [], "rep stosq");
        assert_eq!(see(&[0xf3, 0xa6]).loads, 0, "repe cmpsb");
        assert_eq!(see(&[0xf2, 0xae]).loads, 0, "repne scasb");
        assert!(see(&[0xf3, 0x48, 0xa5]).repeats && !see(&[0x48, 0xa5]).repeats);
    }

    #[test]
    fn a_result_of_a_load_and_a_register_depends_on_both() {
        let add = see(&[0x48, 0x03, 0x03]); // add rax, [rbx]
        assert_eq!((add.loads, add.address, add.mixes), (RAX, RBX, RAX));
        let mov = see(&[0x48, 0x8b, 0x03]); // mov rax, [rbx]
        assert_eq!((mov.loads, mov.address, mov.mixes), (RAX, RBX, 0));
        let xchg = see(&[0x48, 0x87, 0x03]); // xchg [rbx], rax
        assert_eq!((xchg.loads, xchg.mixes), (RAX, 0));
        let cmpxchg = see(&[0xf0, 0x48, 0x0f, 0xb1, 0x0b]); // lock cmpxchg [rbx], rcx
        assert_eq!((cmpxchg.loads, cmpxchg.mixes), (RAX, 0));
    }

    #[test]
    fn the_number_of_a_bit_is_a_part_of_the_address() {
        assert_eq!(see(&[0x48, 0x0f, 0xa3, 0x0b]).address, RBX | RCX); // bt [rbx], rcx
        assert_eq!(see(&[0x48, 0x0f, 0xba, 0x23, 0x05]).address, RBX); // bt qword [rbx], 5
    }
}

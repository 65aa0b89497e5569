//! What an arm64 instruction does to registers.
//!
//! The first operand is what an instruction computes, the others are what from; what is
//! otherwise stands here by name. Prefetches access nothing here: QEMU does nothing for them.

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction, Operand};

use crate::registers::{Registers, Seen, VECTORS};

/// `DC ZVA, X0`: clears the line that X0 points into, and reads nothing.
const CLEAR: u32 = 0xd50b_7420;
/// The link register.
const LINK: Registers = 1 << 30;

/// What the instruction does. One that is not known does nothing.
pub fn see(bytes: &[u8]) -> Seen {
    if let Some(register) = cleared_by(bytes) {
        return Seen {
            accesses: true,
            address: general(register),
            clears: Some(register as u8),
            ..Seen::default()
        };
    }
    let mut instruction = Instruction::default();
    let decoded = InstDecoder::default().decode_into(&mut instruction, &mut U8Reader::new(bytes));
    if decoded.is_err() {
        return Seen::default();
    }
    let name = instruction.opcode.to_string();
    match instruction.operands.iter().find_map(Memory::of) {
        Some(memory) => access(&name, &instruction.operands, &memory),
        None => compute(&name, &instruction.operands),
    }
}

fn cleared_by(bytes: &[u8]) -> Option<u16> {
    let word = u32::from_le_bytes(bytes.try_into().ok()?);
    let register = (word & 31) as u16;
    (word & !31 == CLEAR && register < 31).then_some(register)
}

/// Number 31 is zero or the stack pointer.
fn general(number: u16) -> Registers {
    match number < 31 {
        true => 1 << number,
        false => 0,
    }
}

fn vectors(first: u16, count: u8) -> Registers {
    let bit = |i: u16| 1 << (VECTORS + u32::from((first + i) % 32));
    (0..u16::from(count)).map(bit).fold(0, |all, bit| all | bit)
}

fn registers(operand: &Operand) -> Registers {
    use Operand as O;
    match *operand {
        O::Register(_, n) | O::RegisterOrSP(_, n) | O::RegShift(_, _, _, n) => general(n),
        O::RegisterPair(_, n) => general(n) | general(n + 1),
        O::SIMDRegister(_, n)
        | O::SIMDRegisterElements(_, n, _)
        | O::SIMDRegisterElementsLane(_, n, _, _)
        | O::SIMDRegisterElementsMultipleLane(_, n, _, _, _) => vectors(n, 1),
        O::SIMDRegisterGroup(_, n, _, count) | O::SIMDRegisterGroupLane(n, _, count, _) => {
            vectors(n, count)
        }
        _ => 0,
    }
}

/// An address.
struct Memory {
    registers: Registers,
    /// The base, if it is moved on.
    moved: Registers,
}

impl Memory {
    fn of(operand: &Operand) -> Option<Self> {
        let (registers, moved) = match *operand {
            Operand::RegRegOffset(base, index, ..) => (general(base) | general(index), 0),
            Operand::RegPreIndex(base, _, false) => (general(base), 0),
            Operand::RegPreIndex(base, _, true) | Operand::RegPostIndex(base, _) => {
                (general(base), general(base))
            }
            Operand::RegPostIndexReg(base, _) => (general(base), general(base)),
            _ => return None,
        };
        Some(Self { registers, moved })
    }
}

/// A load of a constant beside the code has no such operand.
fn access(name: &str, operands: &[Operand; 4], memory: &Memory) -> Seen {
    if name.starts_with("prf") {
        return Seen::default();
    }
    let [first, second, ..] = operands.each_ref().map(registers);
    let all = operands.iter().fold(0, |all, o| all | registers(o));
    let mut seen = Seen {
        accesses: true,
        address: memory.registers,
        ..Seen::default()
    };
    match name {
        // An exclusive store says whether it was done.
        _ if name.starts_with("stx") || name.starts_with("stlx") => seen.compute(first, 0),
        _ if name.starts_with("st") => {}
        _ if name.starts_with("cas") => seen.loads = first,
        _ if is_atomic(name) => seen.loads = second,
        _ => seen.loads = all,
    }
    // One lane of a vector is loaded, the others stay.
    if let (Operand::SIMDRegisterGroupLane(..), true) = (&operands[0], seen.loads != 0) {
        seen.mixes = first;
    }
    if let Operand::RegPostIndexReg(base, by) = operands[1] {
        seen.compute(memory.moved, general(base) | general(by));
    }
    seen
}

fn is_atomic(name: &str) -> bool {
    const OPERATIONS: [&str; 8] = [
        "ldadd", "ldclr", "ldeor", "ldset", "ldsmax", "ldsmin", "ldumax", "ldumin",
    ];
    name.starts_with("swp") || OPERATIONS.iter().any(|atomic| name.starts_with(atomic))
}

fn compute(name: &str, operands: &[Operand; 4]) -> Seen {
    let [first, others @ ..] = operands.each_ref().map(registers);
    let sources = others.iter().fold(0, |all, of| all | of);
    let mut seen = Seen::default();
    match name {
        "bl" => seen.compute(LINK, 0),
        _ if name.starts_with("blr") => seen.compute(LINK, 0),
        _ if only_reads(name) => {}
        // A constant that stands beside the code: its address is known.
        _ if name.starts_with("ld") => {
            seen.accesses = true;
            seen.loads = first;
        }
        _ if keeps(name) => seen.compute(first, first | sources),
        _ => seen.compute(first, sources),
    }
    seen
}

/// Whether the first operand is no result: branches, and what sets flags alone.
fn only_reads(name: &str) -> bool {
    const BEGIN: [&str; 11] = [
        "br", "cb", "tbn", "tbz", "ret", "ccm", "fcmp", "fccmp", "setf", "rmif", "sys",
    ];
    BEGIN.iter().any(|begin| name.starts_with(begin)) && name != "sysl"
}

/// Whether the result also depends on what was in its register.
fn keeps(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "movk", "bfm", "ins", "bsl", "bit", "bif", "tbx", "sli", "sri", "suqadd", "usqadd",
    ];
    const BEGIN: [&str; 6] = ["sha", "aese", "aesd", "pac", "aut", "xpac"];
    const PARTS: [&str; 5] = ["mla", "mls", "dot", "aba", "adalp"];
    NAMES.contains(&name)
        || BEGIN.iter().any(|begin| name.starts_with(begin))
        || PARTS.iter().any(|part| name.contains(part))
        || name.ends_with("sra")
        || name.ends_with('2')
}

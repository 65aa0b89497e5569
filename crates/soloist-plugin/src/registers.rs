//! Which registers feed which.
//!
//! A register that was computed from a load's result carries that load's number along
//! ([`Moves`]). Only general and vector registers are followed; what goes through memory
//! or flags is not, and the stack pointer never depends.

/// Registers that are followed, a bit each: general ones from 0 on, vector ones from
/// [`VECTORS`] on.
pub type Registers = u64;
/// Number of registers that are followed.
pub const REGISTERS: usize = 64;
/// Where the vector registers begin.
pub const VECTORS: u32 = 32;

/// A register takes the youngest load of those that it is computed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// Number of the register.
    pub to: u8,
    /// The registers that it is computed from.
    pub from: Registers,
}

/// Moves in the order of the code.
pub type Moves = Box<[Move]>;

/// What an instruction does to registers.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Whether it may access memory.
    pub accesses: bool,
    /// What it computes from registers.
    pub moves: Vec<Move>,
    /// Registers of its address.
    pub address: Registers,
    /// Registers that take what it loads.
    pub loads: Registers,
    /// Registers beside the address that what it loads is computed with (`add rax, [rbx]`: RAX).
    pub mixes: Registers,
    /// Whether it is a repeated string instruction.
    pub repeats: bool,
    /// The register whose line it clears, if that is what it does.
    pub clears: Option<u8>,
}

impl Seen {
    /// All of `targets` are computed from all of `sources`.
    pub fn compute(&mut self, targets: Registers, sources: Registers) {
        for to in (0..REGISTERS as u8).filter(|to| targets >> to & 1 == 1) {
            self.moves.push(Move { to, from: sources });
        }
    }
}
